//! The back-off of keys that failed. Pure: time and jitter are arguments.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use entourage_core::{object::Time, plan::Key};

use crate::failure_kind::FailureKind;

/// The keys that failed last time.
#[derive(Debug, Default)]
pub struct Retries {
    failed: HashMap<Key, Retry>,
    /// The keys that wait for the hub to respond again.
    unresponsive: HashSet<Key>,
}

#[derive(Debug)]
struct Retry {
    failures: u32,
    failure_kind: FailureKind,
    not_before: Time,
    /// True if it was refused since its last success.
    refused: bool,
    /// True if a response of the hub to another key ended its back-off since its last success: once is enough, else a request
    /// that always times out among others that do not would be sent at full speed.
    freed: bool,
}

impl Retries {
    /// Records a failure and returns the time of the next attempt: exponential, at least the server's Retry-After, plus up to
    /// half of it by `jitter` (0 to 1).
    pub fn failed(
        &mut self,
        key: &Key,
        now: Time,
        failure_kind: FailureKind,
        asked: Option<Duration>,
        jitter: f64,
    ) -> Time {
        let retry = retry(&mut self.failed, key, now, failure_kind);
        retry.refused |= failure_kind == FailureKind::Refused;
        if retry.failure_kind != failure_kind {
            (retry.failures, retry.failure_kind) = (0, failure_kind);
        }
        if failure_kind == FailureKind::NoResponse && !retry.freed {
            self.unresponsive.insert(key.clone());
        }
        let (first, longest) = failure_kind.range();
        let wait = first.saturating_mul(1 << retry.failures.min(20)).min(longest);
        let wait = wait.max(
            asked
                .and_then(|each| i64::try_from(each.as_millis()).ok())
                .unwrap_or(0),
        );
        retry.failures += 1;
        retry.not_before = now.plus(wait + (wait as f64 * jitter / 2.0) as i64);
        retry.not_before
    }

    /// Records that a refusal was reported without a request: there is nothing to wait for.
    pub fn reported(&mut self, key: &Key, now: Time) {
        let retry = retry(&mut self.failed, key, now, FailureKind::Refused);
        (retry.refused, retry.not_before) = (true, now);
    }

    /// True if a refusal now would be the first since the key's last success.
    #[must_use]
    pub fn is_first_refusal(&self, key: &Key) -> bool {
        self.failed.get(key).is_none_or(|retry| !retry.refused)
    }

    /// Records a success: its failures are dropped.
    pub fn succeeded(&mut self, key: &Key) {
        if self.failed.remove(key).is_some() {
            self.unresponsive.remove(key);
        }
    }

    /// The end of the key's back-off, or `None` if it is over.
    #[must_use]
    pub fn held(&self, key: &Key, now: Time) -> Option<Time> {
        self.failed
            .get(key)
            .map(|retry| retry.not_before)
            .filter(|at| *at > now)
    }

    /// Records a response of the hub. The keys whose requests got none since its last response need not wait any longer.
    ///
    /// Cost: O(those keys).
    pub fn answers_again(&mut self, now: Time) -> Vec<Key> {
        let mut keys = Vec::from_iter(self.unresponsive.drain());
        keys.retain(|key| match self.failed.get_mut(key) {
            Some(retry) if retry.failure_kind == FailureKind::NoResponse && retry.not_before > now => {
                (retry.not_before, retry.freed) = (now, true);
                true
            }
            _ => false,
        });
        keys
    }
}

fn retry<'a>(
    failed: &'a mut HashMap<Key, Retry>,
    key: &Key,
    now: Time,
    failure_kind: FailureKind,
) -> &'a mut Retry {
    failed.entry(key.clone()).or_insert(Retry {
        failures: 0,
        failure_kind,
        not_before: now,
        refused: false,
        freed: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> Key {
        Key::Cluster("a".into())
    }

    #[test]
    fn waits_double_up_to_the_longest() {
        let mut retries = Retries::default();
        let waits: Vec<i64> = (0..11)
            .map(|_| retries.failed(&key(), Time(0), FailureKind::Busy, None, 0.0).0)
            .collect();
        assert_eq!(
            waits,
            [100, 200, 400, 800, 1600, 3200, 6400, 12800, 25600, 30000, 30000]
        );
    }

    #[test]
    fn the_server_may_ask_for_more() {
        let mut retries = Retries::default();
        let at = retries.failed(
            &key(),
            Time(0),
            FailureKind::Busy,
            Some(Duration::from_secs(7)),
            0.0,
        );
        assert_eq!(at, Time(7000));
    }

    #[test]
    fn a_key_is_held_until_its_time_and_forgotten_on_success() {
        let mut retries = Retries::default();
        let at = retries.failed(&key(), Time(0), FailureKind::Refused, None, 1.0);
        assert_eq!(at, Time(1500));
        assert_eq!(retries.held(&key(), Time(1499)), Some(at));
        assert_eq!(retries.held(&key(), at), None);
        retries.succeeded(&key());
        assert_eq!(
            retries.failed(&key(), Time(0), FailureKind::Refused, None, 0.0),
            Time(1000)
        );
    }

    #[test]
    fn an_answer_after_no_response_frees_the_keys_that_waited_for_it() {
        let mut retries = Retries::default();
        retries.failed(&key(), Time(0), FailureKind::NoResponse, None, 0.0);
        retries.failed(&Key::Cluster("b".into()), Time(0), FailureKind::Busy, None, 0.0);
        assert_eq!(retries.answers_again(Time(1)), [key()]);
        assert_eq!(retries.held(&key(), Time(1)), None);
    }

    #[test]
    fn a_key_that_alone_meets_no_response_is_freed_once_until_it_goes_well() {
        let mut retries = Retries::default();
        retries.failed(&key(), Time(0), FailureKind::NoResponse, None, 0.0);
        assert_eq!(retries.answers_again(Time(1)), [key()]);
        let at = retries.failed(&key(), Time(2), FailureKind::NoResponse, None, 0.0);
        assert_eq!(retries.answers_again(Time(3)), []);
        assert_eq!(retries.held(&key(), Time(3)), Some(at));
        retries.succeeded(&key());
        retries.failed(&key(), Time(4), FailureKind::NoResponse, None, 0.0);
        assert_eq!(retries.answers_again(Time(5)), [key()]);
    }

    #[test]
    fn a_key_that_nobody_was_asked_about_is_not_held() {
        let mut retries = Retries::default();
        retries.failed(&key(), Time(0), FailureKind::Refused, None, 0.0);
        retries.reported(&key(), Time(5));
        assert_eq!(retries.held(&key(), Time(5)), None);
        assert!(!retries.is_first_refusal(&key()));
    }

    #[test]
    fn a_refusal_is_the_first_until_the_key_goes_well() {
        let mut retries = Retries::default();
        assert!(retries.is_first_refusal(&key()));
        for failure_kind in [FailureKind::Busy, FailureKind::Refused, FailureKind::NoResponse] {
            retries.failed(&key(), Time(0), failure_kind, None, 0.0);
        }
        assert!(!retries.is_first_refusal(&key()));
        retries.succeeded(&key());
        assert!(retries.is_first_refusal(&key()));
    }
}
