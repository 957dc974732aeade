//! The rights that the hub denies to our account: each is logged, whatever the request was for.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use entourage_core::object::Time;
use tracing::warn;

use crate::error::Failure;

/// The time for which a right that is denied again is not logged again, in milliseconds.
const QUIET: i64 = 600_000;

/// The maximum number of rights that are remembered; a further one is logged each time.
const MOST: usize = 1_000;

/// The maximum length of the name of an API, in bytes.
const LONGEST_NAME: usize = 253;

/// The rights that were denied, and when each was logged.
#[derive(Default)]
pub(super) struct Denied(Mutex<BTreeMap<String, Time>>);

impl Denied {
    /// Logs the right that a refusal is for want of, unless that was logged a short while ago.
    pub(super) fn note(&self, failure: &Failure, now: Time) {
        let Some(right) = failure.denied_right() else {
            return;
        };
        if self.is_news(&right, now) {
            let remedy = "grant it to the account; the roles of config/ list its rights: docs/reference/members.md, \"Rights on the hub\"";
            warn!(
                cluster = "hub",
                right, remedy, "a right is denied to this process"
            );
        }
    }

    fn is_news(&self, right: &str, now: Time) -> bool {
        let mut logged = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if logged.get(right).is_some_and(|at| now.0 - at.0 < QUIET) {
            return false;
        }
        if logged.len() < MOST || logged.contains_key(right) {
            logged.insert(right.to_owned(), now);
        }
        true
    }
}

/// The right that the message of a refusal names: `patch deployments.apps/status`.
pub(crate) fn right(message: &str) -> Option<String> {
    let words = message.split_once(" cannot ")?.1;
    let (verb, rest) = words.split_once(" resource \"")?;
    let (resource, rest) = rest.split_once("\" in API group \"")?;
    let (group, _) = rest.split_once('"')?;
    // Names of APIs, and no content of an object.
    let is_name = |text: &str| {
        let is_part = |each: char| each.is_ascii_alphanumeric() || "-./".contains(each);
        text.len() <= LONGEST_NAME && text.chars().all(is_part)
    };
    if ![verb, resource, group].into_iter().all(is_name) {
        return None;
    }
    let (plural, below) = resource.split_at(resource.find('/').unwrap_or(resource.len()));
    let dot = if group.is_empty() { "" } else { "." };
    Some(format!("{verb} {plural}{dot}{group}{below}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::error::Answer;

    #[test]
    fn the_right_is_read_from_the_words_of_a_refusal_for_want_of_it_and_of_no_other() {
        let user = "User \"system:serviceaccount:karmada-system:entourage-controllers\" cannot";
        for (code, message, wanted) in [
            (
                403,
                format!(
                    "deployments.apps \"a\" is forbidden: {user} patch resource \"deployments/status\" in API group \"apps\" in the namespace \"b\""
                ),
                Some("patch deployments.apps/status"),
            ),
            (
                403,
                format!(
                    "nodes is forbidden: {user} list resource \"nodes\" in API group \"\" at the cluster scope"
                ),
                Some("list nodes"),
            ),
            (
                409,
                format!("{user} list resource \"nodes\" in API group \"\""),
                None,
            ),
            (
                403,
                "unable to create new content in namespace a because it is being terminated".into(),
                None,
            ),
            (
                403,
                "the value cannot be a canary resource \"c a\" in API group \"\"".into(),
                None,
            ),
        ] {
            let body = json!({"kind": "Status", "code": code, "reason": "Forbidden", "message": message});
            let failure = Failure::Answer(Box::new(Answer::read(code, None, body.to_string().as_bytes())));
            assert_eq!(failure.denied_right().as_deref(), wanted, "{message}");
        }
    }

    #[test]
    fn a_right_is_news_once_in_ten_minutes() {
        let denied = Denied::default();
        let news = |right, minutes: i64| denied.is_news(right, Time(minutes * 60_000));
        assert!(news("list nodes", 0));
        assert!(!news("list nodes", 9));
        assert!(news("patch events", 9));
        assert!(news("list nodes", 10));
        assert!(!news("list nodes", 11));
    }
}
