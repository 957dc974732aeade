//! Bootstrap tokens that are over are deleted. Source: the token cleaner of kube-controller-manager.

use std::{collections::BTreeMap, time::Duration};

use serde_json::Value;
use tokio::time::Instant;

use super::{Context, Controller, Queue, Seen, tokens};
use crate::{
    auth::bootstrap::{End, NAMESPACE, TYPE, end},
    store::Happened,
};

const SECRETS: &str = "secrets";

/// The longest time until a token is looked at again: a machine that slept has another time than its timers.
const LOOK: Duration = Duration::from_secs(3600);

/// Secrets of the namespace that may be tokens, and when those with an end are looked at again.
#[derive(Default)]
pub(super) struct Tokens {
    queue: Queue<String>,
    due: BTreeMap<String, Instant>,
}

impl Controller for Tokens {
    fn reset(&mut self) {
        *self = Self::default();
    }

    fn see(&mut self, seen: &Seen) {
        if seen.place.collection != SECRETS || seen.place.namespace() != NAMESPACE {
            return;
        }
        self.due.remove(&seen.place.key);
        if seen.happened != Happened::Deleted {
            self.queue.insert(seen.place.key.clone());
        }
    }

    fn wakes(&self) -> Option<Instant> {
        self.due.values().min().copied()
    }

    fn work(&mut self, cluster: &dyn Context) -> bool {
        let now = Instant::now();
        let due = || self.due.iter().find(|(_, due)| **due <= now);
        let Some(key) = self
            .queue
            .pop_first()
            .or_else(|| due().map(|(key, _)| key.clone()))
        else {
            return false;
        };
        self.due.remove(&key);
        let secret = cluster.get(SECRETS, &key);
        let Some(secret) = secret.filter(|one| one.get("type").and_then(Value::as_str) == Some(TYPE)) else {
            return true;
        };
        match end(&secret, cluster.timestamp()) {
            End::Never => {}
            End::Over => tokens::delete(cluster, &secret),
            End::In(left) => {
                let left = Duration::try_from(left).unwrap_or_default().min(LOOK);
                self.due.insert(key, now + left);
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        controllers::{Head, Place},
        resource::{Surroundings as _, stored::encode},
        server::tests_support::bare,
        store::Expect,
    };
    use base64::{Engine as _, prelude::BASE64_STANDARD};
    use jiff::{SignedDuration, Timestamp};
    use serde_json::json;

    #[test]
    fn a_token_is_deleted_when_it_is_over_and_looked_at_again_when_it_will_be() {
        let minutes = |minutes: i64| (Timestamp::now() + SignedDuration::from_mins(minutes)).to_string();
        let cases = [
            ("over", TYPE, Some(minutes(-1)), false, false),
            ("unreadable", TYPE, Some("tomorrow".to_owned()), false, false),
            ("good", TYPE, Some(minutes(10)), true, true),
            ("endless", TYPE, None, true, false),
            ("other", "Opaque", Some(minutes(-1)), true, false),
        ];
        for (name, kind, expiration, stays, is_due) in cases {
            let cluster = bare();
            let mut tokens = Tokens::default();
            let data = expiration.map(|text| json!({"expiration": BASE64_STANDARD.encode(text)}));
            let Value::Object(secret) = json!({"type": kind, "data": data,
                "metadata": {"namespace": NAMESPACE, "name": name, "uid": "1"}})
            else {
                panic!("an object")
            };
            let key = format!("{NAMESPACE}/{name}");
            let put = cluster
                .store
                .put(SECRETS, &key, Expect::Absent, |revision| encode(secret, revision));
            let entry = put.expect("written");
            let seen = |happened| Seen {
                place: Place {
                    collection: SECRETS.to_owned(),
                    key: key.clone(),
                },
                happened,
                head: Head::of(&entry),
                revision: entry.revision,
            };
            tokens.see(&seen(Happened::Added));
            while tokens.work(&*cluster) {}
            assert_eq!(cluster.get(SECRETS, &key).is_some(), stays, "{name}");
            assert_eq!(tokens.wakes().is_some(), is_due, "{name}");
            tokens.see(&seen(Happened::Deleted));
            assert_eq!(tokens.wakes(), None, "{name}");
        }
    }
}
