//! Keys with a timer: `again_at` of plans, and retries. One time per key. Pure.

use std::collections::{BTreeMap, HashMap};

use entourage_core::{object::Time, plan::Key};

use super::queue::Priority;

/// The timers of all keys.
#[derive(Debug, Default)]
pub struct Timers {
    due: BTreeMap<(Time, Key), Priority>,
    at: HashMap<Key, Time>,
}

impl Timers {
    /// Sets the key's timer unless it has an earlier one.
    pub fn set(&mut self, key: &Key, at: Time, priority: Priority) {
        if self.at.get(key).is_some_and(|standing| *standing <= at) {
            return;
        }
        self.clear(key);
        self.at.insert(key.clone(), at);
        self.due.insert((at, key.clone()), priority);
    }

    /// Removes the key's timer.
    pub fn clear(&mut self, key: &Key) {
        if let Some((key, at)) = self.at.remove_entry(key) {
            self.due.remove(&(at, key));
        }
    }

    /// Removes and returns one key whose time has come.
    pub fn pop(&mut self, now: Time) -> Option<(Key, Priority)> {
        let entry = self.due.first_entry().filter(|entry| entry.key().0 <= now)?;
        let ((_, key), priority) = entry.remove_entry();
        self.at.remove(&key);
        Some((key, priority))
    }

    /// The number of timers.
    #[must_use]
    pub fn count(&self) -> usize {
        self.due.len()
    }

    /// The time of the next timer, or `None`.
    #[must_use]
    pub fn next(&self) -> Option<Time> {
        self.due.first_key_value().map(|((at, _), _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Key {
        Key::Cluster(name.into())
    }

    #[test]
    fn the_earliest_time_wins_for_a_key() {
        let mut timers = Timers::default();
        timers.set(&key("a"), Time(50), Priority::Timer);
        timers.set(&key("a"), Time(80), Priority::Timer);
        assert_eq!(timers.next(), Some(Time(50)));
        timers.set(&key("a"), Time(20), Priority::Live);
        assert_eq!(timers.pop(Time(19)), None);
        assert_eq!(timers.pop(Time(20)), Some((key("a"), Priority::Live)));
        assert_eq!(timers.next(), None);
    }

    #[test]
    fn a_cleared_timer_never_comes() {
        let mut timers = Timers::default();
        timers.set(&key("a"), Time(1), Priority::Timer);
        timers.set(&key("b"), Time(2), Priority::Timer);
        timers.clear(&key("a"));
        assert_eq!(timers.pop(Time(9)).map(|(key, _)| key), Some(key("b")));
        assert_eq!(timers.pop(Time(9)), None);
    }
}
