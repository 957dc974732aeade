//! Objects that are counted again after each change nearby, but only so often: many changes at once are counted once.

use std::collections::{BTreeMap, BTreeSet};

use tokio::time::{Duration, Instant};

/// The least time between two turns of the same key.
const PAUSE: Duration = Duration::from_millis(200);

/// Keys in the namespaces of a cluster, and when each has its next turn.
#[derive(Default)]
pub(super) struct Paced {
    /// All keys, `namespace/name`, with the time of the last turn.
    known: BTreeMap<String, Option<Instant>>,
    due: BTreeMap<String, Instant>,
    order: BTreeSet<(Instant, String)>,
}

impl Paced {
    /// Adds a key, and gives it a turn.
    pub(super) fn add(&mut self, key: &str) {
        self.known.entry(key.to_owned()).or_default();
        self.after(key, Duration::ZERO);
    }

    /// Forgets a key.
    pub(super) fn remove(&mut self, key: &str) {
        self.known.remove(key);
        if let Some(at) = self.due.remove(key) {
            self.order.remove(&(at, key.to_owned()));
        }
    }

    /// Gives each key of a namespace a turn after some time, or earlier if it has one. Cost: the keys of the namespace.
    pub(super) fn all_of(&mut self, namespace: &str, after: Duration) {
        if self.known.is_empty() {
            return;
        }
        let prefix = format!("{namespace}/");
        let keys = self.known.range(prefix.clone()..).map(|(key, _)| key);
        let keys: Vec<String> = keys.take_while(|key| key.starts_with(&prefix)).cloned().collect();
        for key in keys {
            self.after(&key, after);
        }
    }

    /// Gives a known key a turn after some time, or earlier if it has one.
    pub(super) fn after(&mut self, key: &str, after: Duration) {
        let Some(last) = self.known.get(key) else {
            return;
        };
        let now = Instant::now();
        let at = last.map_or(now, |last| last + PAUSE).max(now + after);
        let before = self.due.get(key).copied();
        if before.is_some_and(|before| before <= at) {
            return;
        }
        if let Some(before) = before {
            self.order.remove(&(before, key.to_owned()));
        }
        self.due.insert(key.to_owned(), at);
        self.order.insert((at, key.to_owned()));
    }

    /// The next key whose turn has come.
    pub(super) fn pop(&mut self) -> Option<String> {
        let now = Instant::now();
        let (at, _) = self.order.first()?;
        if *at > now {
            return None;
        }
        let (_, key) = self.order.pop_first()?;
        self.due.remove(&key);
        self.known.insert(key.clone(), Some(now));
        Some(key)
    }

    /// The time of the next turn.
    pub(super) fn wakes(&self) -> Option<Instant> {
        self.order.first().map(|(at, _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn many_changes_at_once_are_one_turn() {
        let mut paced = Paced::default();
        paced.all_of("a", Duration::ZERO);
        assert_eq!(paced.wakes(), None);
        paced.add("a/q");
        paced.add("ab/q");
        assert_eq!(paced.pop().as_deref(), Some("a/q"));
        assert_eq!(paced.pop().as_deref(), Some("ab/q"));
        for _ in 0..100 {
            paced.all_of("a", Duration::ZERO);
        }
        assert_eq!(paced.pop(), None);
        let wakes = paced.wakes().expect("a turn");
        tokio::time::sleep_until(wakes).await;
        assert_eq!(paced.pop().as_deref(), Some("a/q"));
        assert_eq!((paced.pop(), paced.wakes()), (None, None));
    }

    #[tokio::test(start_paused = true)]
    async fn the_earlier_of_two_turns_counts() {
        let mut paced = Paced::default();
        paced.add("a/q");
        paced.pop();
        tokio::time::sleep(PAUSE).await;
        paced.after("a/q", Duration::from_secs(1));
        assert_eq!(paced.pop(), None);
        paced.after("a/q", Duration::ZERO);
        paced.after("a/q", Duration::from_secs(1));
        assert_eq!(paced.pop().as_deref(), Some("a/q"));
        paced.after("a/q", Duration::from_secs(1));
        paced.remove("a/q");
        paced.after("a/q", Duration::ZERO);
        assert_eq!(paced.wakes(), None);
    }
}
