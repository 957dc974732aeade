//! The keys of one API server that wait for their plan: by priority, once each, one lane at a time. Pure.

use std::collections::{HashMap, VecDeque, hash_map::Entry};

use entourage_core::plan::Key;

/// Why a key waits; earlier ones go first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// Something just happened.
    Live,
    /// It was in an initial list.
    Listed,
    /// A plan asked for it, or it failed before.
    Timer,
}

const PRIORITIES: usize = 3;

/// Every so many pops the lowest priority goes first, so that none starves.
const TURN: u32 = 8;

/// The queue of one API server.
///
/// A key waits at most once; pushed again with a higher priority it moves up. Two keys with the same lane
/// ([`Key::lane`]) are never in flight together: the later one is parked until the first ends.
#[derive(Debug, Default)]
pub struct Queue {
    /// A key may stand in more than one of these; only the place that `waiting` names counts.
    ready: [VecDeque<Key>; PRIORITIES],
    waiting: HashMap<Key, Priority>,
    /// The lanes in flight, and who waits for each.
    lanes: HashMap<Key, Vec<(Key, Priority)>>,
    pops: u32,
}

impl Queue {
    /// Adds a key, or moves it up.
    pub fn push(&mut self, key: Key, priority: Priority) {
        match self.waiting.entry(key) {
            Entry::Occupied(mut entry) if *entry.get() > priority => {
                self.ready[priority as usize].push_back(entry.key().clone());
                entry.insert(priority);
            }
            Entry::Occupied(_) => {}
            Entry::Vacant(entry) => {
                self.ready[priority as usize].push_back(entry.key().clone());
                entry.insert(priority);
            }
        }
    }

    /// The next key whose lane is free.
    pub fn pop(&mut self) -> Option<Key> {
        self.pops = self.pops.wrapping_add(1);
        let mut order = [Priority::Live, Priority::Listed, Priority::Timer];
        if self.pops.is_multiple_of(TURN) {
            order.reverse();
        }
        for priority in order {
            while let Some(key) = self.ready[priority as usize].pop_front() {
                if self.waiting.get(&key) != Some(&priority) {
                    continue;
                }
                self.waiting.remove(&key);
                match self.lanes.get_mut(&key.lane()) {
                    Some(parked) => park(parked, key, priority),
                    None => return Some(key),
                }
            }
        }
        None
    }

    /// The key is being carried out: its lane is taken.
    pub fn start(&mut self, key: &Key) {
        self.lanes.entry(key.lane()).or_default();
    }

    /// It ended: who waited for the lane waits for its turn again.
    pub fn finish(&mut self, key: &Key) {
        for (key, priority) in self.lanes.remove(&key.lane()).unwrap_or_default() {
            self.push(key, priority);
        }
    }

    /// Forgets who waits; what is being carried out goes on.
    pub fn forget(&mut self) {
        self.ready.iter_mut().for_each(VecDeque::clear);
        self.waiting.clear();
        self.lanes.values_mut().for_each(Vec::clear);
    }

    /// How many are being carried out.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.lanes.len()
    }

    /// How many wait, parked ones aside.
    #[must_use]
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether none waits, parked ones aside.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

fn park(parked: &mut Vec<(Key, Priority)>, key: Key, priority: Priority) {
    match parked.iter_mut().find(|(each, _)| *each == key) {
        Some((_, standing)) => *standing = (*standing).min(priority),
        None => parked.push((key, priority)),
    }
}

#[cfg(test)]
mod tests {
    use entourage_core::object::{Gvk, Id};

    use super::*;

    fn id(name: &str) -> Id {
        Id::new(Gvk::new("v1", "ConfigMap"), "ns", name)
    }

    fn binding(name: &str) -> Key {
        Key::Binding(id(name))
    }

    fn drain(queue: &mut Queue) -> Vec<Key> {
        std::iter::from_fn(|| queue.pop()).collect()
    }

    #[test]
    fn live_keys_go_before_listed_ones_and_those_before_timers() {
        let mut queue = Queue::default();
        queue.push(binding("timer"), Priority::Timer);
        queue.push(binding("listed"), Priority::Listed);
        queue.push(binding("live"), Priority::Live);
        assert_eq!(
            drain(&mut queue),
            [binding("live"), binding("listed"), binding("timer")]
        );
    }

    #[test]
    fn a_key_waits_once_and_moves_up() {
        let mut queue = Queue::default();
        queue.push(binding("a"), Priority::Timer);
        queue.push(binding("b"), Priority::Listed);
        queue.push(binding("a"), Priority::Live);
        queue.push(binding("a"), Priority::Timer);
        assert_eq!(queue.len(), 2);
        assert_eq!(drain(&mut queue), [binding("a"), binding("b")]);
        assert!(queue.is_empty());
    }

    #[test]
    fn a_key_dirtied_while_its_lane_is_in_flight_comes_when_it_ends() {
        let mut queue = Queue::default();
        let (spec, status) = (Key::Binding(id("a")), Key::BindingStatus(id("a")));
        queue.start(&spec);
        queue.push(spec.clone(), Priority::Live);
        queue.push(status.clone(), Priority::Timer);
        queue.push(binding("b"), Priority::Listed);
        assert_eq!(drain(&mut queue), [binding("b")]);
        queue.push(spec.clone(), Priority::Live);
        assert_eq!(drain(&mut queue), []);
        assert_eq!(queue.in_flight(), 1);
        queue.finish(&spec);
        assert_eq!(queue.pop(), Some(spec.clone()));
        queue.start(&spec);
        assert_eq!(queue.pop(), None, "the status shares the lane of the spec");
        queue.finish(&spec);
        assert_eq!(drain(&mut queue), [status]);
    }

    #[test]
    fn who_waits_is_forgotten_and_what_is_carried_out_keeps_its_lane() {
        let mut queue = Queue::default();
        queue.start(&binding("a"));
        queue.push(binding("a"), Priority::Live);
        queue.push(binding("b"), Priority::Live);
        assert_eq!(queue.pop(), Some(binding("b")));
        queue.push(binding("b"), Priority::Timer);
        queue.forget();
        queue.push(binding("a"), Priority::Live);
        assert_eq!(queue.pop(), None, "its lane is taken");
        queue.finish(&binding("a"));
        assert_eq!(drain(&mut queue), [binding("a")]);
    }

    #[test]
    fn copies_on_one_member_do_not_share_a_lane() {
        let mut queue = Queue::default();
        let (a, b) = (Key::Copy(id("a"), "m1".into()), Key::Copy(id("b"), "m1".into()));
        queue.start(&a);
        queue.push(b.clone(), Priority::Live);
        assert_eq!(queue.pop(), Some(b));
    }

    #[test]
    fn timers_do_not_starve_under_constant_live_load() {
        let mut queue = Queue::default();
        queue.push(binding("timer"), Priority::Timer);
        let mut pops = 0;
        loop {
            queue.push(binding("live"), Priority::Live);
            pops += 1;
            if queue.pop() == Some(binding("timer")) {
                break;
            }
            assert!(pops < 10);
        }
    }
}
