//! The keys of one API server that wait for their plan: by priority, once each, one at a time per serialization key. Pure.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap, VecDeque},
    sync::Arc,
};

use entourage_core::{object::Time, plan::Key};

/// The reason why a key waits; earlier variants go first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// A live event.
    Live,
    /// It was in an initial list.
    Listed,
    /// It writes a status, which may change again before long.
    Status,
    /// A timer of a plan, or a retry.
    Timer,
}

const PRIORITIES: usize = 4;

/// The number of keys for which an empty queue keeps memory.
const SPARE: usize = 256;

/// The interval, in pops, at which listed keys go first, or, each second time, the lowest priority: so that none starves.
const TURN: u32 = 8;

/// The interval, in pops, at which a status goes first that has waited for [`PATIENCE`].
const STATUS_TURN: u32 = 4;

/// The time for which a status yields to all live and listed keys, in milliseconds.
const PATIENCE: i64 = 100;

/// A key that waits for its serialization key, with the position that it had.
type Parked = (Key, Position);

/// The position of a key that waits.
#[derive(Clone, Copy, Debug)]
struct Position {
    priority: Priority,
    /// Of two bindings with the same priority the higher rank goes first: see [`entourage_core::fleet::Fleet::rank`].
    rank: i32,
    /// The time since when it waits with this priority.
    since: Time,
    /// The time since when it waits.
    queued: Time,
    /// Of a binding: its place in the order of arrival.
    arrival: u64,
}

/// The interval, in turns of bindings, at which the one that waits longest goes first whatever its rank: so that none starves.
const OLDEST_TURN: u32 = 8;

/// A turn in the order of arrival: that of a key, or of whichever binding has the highest rank then. So bindings are ordered among
/// themselves, and no other key waits longer for that.
#[derive(Debug)]
enum Turn {
    Key(Arc<Key>),
    Binding,
}

/// The bindings that wait with one priority.
#[derive(Debug, Default)]
struct Bindings {
    /// By rank, the highest first, and arrival.
    by_rank: BTreeMap<(Reverse<i32>, u64), Arc<Key>>,
    /// Arrival → rank.
    by_arrival: BTreeMap<u64, i32>,
    /// The number of turns that they had.
    turns: u32,
}

impl Bindings {
    fn insert(&mut self, rank: i32, arrival: u64, key: Arc<Key>) {
        self.by_rank.insert((Reverse(rank), arrival), key);
        self.by_arrival.insert(arrival, rank);
    }

    fn remove(&mut self, rank: i32, arrival: u64) -> Option<Arc<Key>> {
        self.by_arrival.remove(&arrival);
        self.by_rank.remove(&(Reverse(rank), arrival))
    }

    /// The one whose turn it is. Cost: O(log bindings).
    fn take(&mut self) -> Option<Arc<Key>> {
        self.turns = self.turns.wrapping_add(1);
        let (rank, arrival) = if self.turns.is_multiple_of(OLDEST_TURN) {
            let (arrival, rank) = self.by_arrival.first_key_value()?;
            (*rank, *arrival)
        } else {
            let ((rank, arrival), _) = self.by_rank.first_key_value()?;
            (rank.0, *arrival)
        };
        self.remove(rank, arrival)
    }

    fn clear(&mut self) {
        self.by_rank.clear();
        self.by_arrival.clear();
    }
}

/// The queue of one API server.
///
/// A key waits at most once; pushed again with a higher priority, or a binding with a higher rank, it moves up. Two keys with the same [`Key::serialization_key`]
/// are never in flight together: the later one is parked until the first ends.
#[derive(Debug, Default)]
pub struct Queue {
    /// A key may be in more than one of these; only the priority in `waiting` counts.
    ready: [VecDeque<Turn>; PRIORITIES],
    /// The bindings that wait; no more than turns of bindings.
    bindings: [Bindings; PRIORITIES],
    /// The number of bindings that arrived.
    arrived: u64,
    waiting: HashMap<Arc<Key>, Position>,
    /// The number of keys in `waiting`, by the time since when they wait.
    queued: BTreeMap<Time, usize>,
    /// The serialization keys in flight, with the parked keys of each.
    serialization_keys: HashMap<Key, Vec<Parked>>,
    pops: u32,
}

impl Queue {
    /// Adds a key, or moves it up. One that writes a status goes after the others. `rank` counts for bindings alone.
    pub fn push(&mut self, key: Key, priority: Priority, rank: i32, now: Time) {
        let priority = if key.is_status() {
            priority.max(Priority::Status)
        } else {
            priority
        };
        let position = Position {
            priority,
            rank,
            since: now,
            queued: now,
            arrival: 0,
        };
        self.wait(key, position);
    }

    fn wait(&mut self, key: Key, mut position: Position) {
        let is_binding = matches!(key, Key::Binding(_));
        let before = self.waiting.get(&key).map(|held| held.queued);
        position.queued = position.queued.min(before.unwrap_or(position.queued));
        if let Some(before) = before {
            count_out(&mut self.queued, before);
        }
        *self.queued.entry(position.queued).or_default() += 1;
        if let Some(held) = self.waiting.get_mut(&key) {
            held.queued = position.queued;
            let bindings = &mut self.bindings[held.priority as usize];
            if held.priority > position.priority {
                bindings.remove(held.rank, held.arrival);
            } else {
                if is_binding
                    && position.rank > held.rank
                    && let Some(key) = bindings.remove(held.rank, held.arrival)
                {
                    held.rank = position.rank;
                    bindings.insert(held.rank, held.arrival, key);
                }
                return;
            }
        }
        let key = Arc::new(key);
        let class = position.priority as usize;
        if is_binding {
            if position.arrival == 0 {
                self.arrived += 1;
                position.arrival = self.arrived;
            }
            self.bindings[class].insert(position.rank, position.arrival, key.clone());
            self.ready[class].push_back(Turn::Binding);
        } else {
            self.ready[class].push_back(Turn::Key(key.clone()));
        }
        self.waiting.insert(key, position);
    }

    /// The key whose turn it is, or was. A binding that moved up leaves a turn behind, which another one gets, or none.
    fn turn(&mut self, priority: Priority) -> Option<Arc<Key>> {
        loop {
            match self.ready[priority as usize].pop_front()? {
                Turn::Key(key) => return Some(key),
                Turn::Binding => {
                    if let Some(key) = self.bindings[priority as usize].take() {
                        return Some(key);
                    }
                }
            }
        }
    }

    /// The next key whose serialization key is free, or `None`.
    pub fn pop(&mut self, now: Time) -> Option<Key> {
        self.pops = self.pops.wrapping_add(1);
        let mut order = [
            Priority::Live,
            Priority::Listed,
            Priority::Status,
            Priority::Timer,
        ];
        if self.pops.is_multiple_of(2 * TURN) {
            order.reverse();
        } else if self.pops.is_multiple_of(TURN) {
            order.swap(0, 1);
        } else if self.pops.is_multiple_of(STATUS_TURN) && self.has_late_status(now) {
            order[..3].rotate_right(1);
        }
        for priority in order {
            while let Some(key) = self.turn(priority) {
                let held = self.waiting.get(&key).copied();
                let Some(position) = held.filter(|held| held.priority == priority) else {
                    continue;
                };
                self.waiting.remove(&key);
                count_out(&mut self.queued, position.queued);
                match self.serialization_keys.get_mut(&key.serialization_key()) {
                    Some(parked) => park(parked, (Arc::unwrap_or_clone(key), position)),
                    None => return Some(Arc::unwrap_or_clone(key)),
                }
            }
        }
        self.shrink();
        None
    }

    /// Frees the memory of a burst that is over. Cost: O(1).
    fn shrink(&mut self) {
        if self.waiting.is_empty() && self.waiting.capacity() > SPARE {
            self.waiting = HashMap::new();
            (self.ready, self.bindings) = Default::default();
        }
    }

    /// True if the longest waiting status has waited long enough. Cost: O(1), and once for each that moved on.
    fn has_late_status(&mut self, now: Time) -> bool {
        let statuses = &mut self.ready[Priority::Status as usize];
        while let Some(Turn::Key(first)) = statuses.front() {
            match self.waiting.get(first) {
                Some(held) if held.priority == Priority::Status => {
                    return held.since.plus(PATIENCE) <= now;
                }
                _ => drop(statuses.pop_front()),
            }
        }
        false
    }

    /// Marks the key as running: its serialization key is taken.
    pub fn start(&mut self, key: &Key) {
        self.serialization_keys
            .entry(key.serialization_key())
            .or_default();
    }

    /// Marks the key as ended: keys parked for its serialization key wait in the queue again.
    pub fn finish(&mut self, key: &Key) {
        for (key, position) in self
            .serialization_keys
            .remove(&key.serialization_key())
            .unwrap_or_default()
        {
            self.wait(key, position);
        }
    }

    /// Drops the waiting keys; running ones continue.
    pub fn forget(&mut self) {
        self.ready.iter_mut().for_each(VecDeque::clear);
        self.bindings.iter_mut().for_each(Bindings::clear);
        self.waiting.clear();
        self.queued.clear();
        self.serialization_keys.values_mut().for_each(Vec::clear);
    }

    /// The number of running keys.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.serialization_keys.len()
    }

    /// The number of waiting keys, without parked ones.
    #[must_use]
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// The time since when the oldest of the waiting keys waits, without parked ones. Cost: O(log keys).
    #[must_use]
    pub fn oldest(&self) -> Option<Time> {
        self.queued.first_key_value().map(|(since, _)| *since)
    }

    /// True if no key waits, without parked ones.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

/// One key less waits since then.
fn count_out(queued: &mut BTreeMap<Time, usize>, since: Time) {
    if let Some(count) = queued.get_mut(&since) {
        *count -= 1;
        if *count == 0 {
            queued.remove(&since);
        }
    }
}

fn park(parked: &mut Vec<Parked>, (key, position): Parked) {
    match parked.iter_mut().find(|(each, _)| *each == key) {
        Some((_, held)) => {
            *held = Position {
                priority: held.priority.min(position.priority),
                rank: position.rank,
                since: held.since.min(position.since),
                queued: held.queued.min(position.queued),
                arrival: held.arrival.min(position.arrival),
            };
        }
        None => parked.push((key, position)),
    }
}

#[cfg(test)]
mod tests {
    use entourage_core::object::{Gvk, ResourceId};

    use super::*;

    fn id(name: &str) -> ResourceId {
        ResourceId::new(Gvk::new("v1", "ConfigMap"), "ns", name)
    }

    fn binding(name: &str) -> Key {
        Key::Binding(id(name))
    }

    fn status(name: &str) -> Key {
        Key::BindingStatus(id(name))
    }

    fn drain(queue: &mut Queue) -> Vec<Key> {
        std::iter::from_fn(|| queue.pop(Time(0))).collect()
    }

    #[test]
    fn live_keys_go_before_listed_ones_and_those_before_timers() {
        let mut queue = Queue::default();
        queue.push(binding("timer"), Priority::Timer, 0, Time(0));
        queue.push(binding("listed"), Priority::Listed, 0, Time(0));
        queue.push(binding("live"), Priority::Live, 0, Time(0));
        assert_eq!(
            drain(&mut queue),
            [binding("live"), binding("listed"), binding("timer")]
        );
    }

    #[test]
    fn a_status_goes_after_what_it_may_tell_of_and_before_timers() {
        let mut queue = Queue::default();
        queue.push(status("a"), Priority::Live, 0, Time(0));
        queue.push(binding("timer"), Priority::Timer, 0, Time(0));
        queue.push(binding("b"), Priority::Listed, 0, Time(0));
        queue.push(binding("c"), Priority::Live, 0, Time(0));
        assert_eq!(
            drain(&mut queue),
            [binding("c"), binding("b"), status("a"), binding("timer")]
        );
    }

    #[test]
    fn a_status_that_has_waited_long_enough_gets_a_fifth_of_the_turns() {
        let mut queue = Queue::default();
        for name in 0..100 {
            queue.push(status(&name.to_string()), Priority::Live, 0, Time(0));
            queue.push(binding(&name.to_string()), Priority::Live, 0, Time(0));
        }
        let mut popped = |now| -> Vec<Key> { (0..40).filter_map(|_| queue.pop(Time(now))).collect() };
        let statuses = |keys: &[Key]| keys.iter().filter(|key| key.is_status()).count();
        // Every sixteenth pop begins with the lowest priority.
        assert_eq!(statuses(&popped(PATIENCE - 1)), 2);
        // Every fourth with a late status, except for every eighth.
        assert_eq!(statuses(&popped(PATIENCE)), 8);
    }

    #[test]
    fn the_memory_of_a_burst_is_freed_when_it_is_over() {
        let mut queue = Queue::default();
        for name in 0..1_000 {
            queue.push(binding(&name.to_string()), Priority::Live, 0, Time(0));
        }
        assert_eq!(drain(&mut queue).len(), 1_000);
        assert!(queue.waiting.capacity() <= SPARE);
        queue.push(binding("a"), Priority::Live, 0, Time(0));
        assert_eq!(drain(&mut queue), [binding("a")]);
    }

    #[test]
    fn of_bindings_the_highest_rank_goes_first_and_no_other_key_waits_for_that() {
        let mut queue = Queue::default();
        let copy = Key::Copy(id("copy"), "m1".into());
        for (name, rank) in [("a", 0), ("b", -1), ("c", 9)] {
            queue.push(binding(name), Priority::Live, rank, Time(0));
        }
        queue.push(copy.clone(), Priority::Live, 0, Time(0));
        for (name, rank) in [("d", 9), ("e", 10)] {
            queue.push(binding(name), Priority::Live, rank, Time(0));
        }
        queue.push(binding("b"), Priority::Timer, 99, Time(0));
        assert_eq!(
            drain(&mut queue),
            [
                binding("b"),
                binding("e"),
                binding("c"),
                copy,
                binding("d"),
                binding("a")
            ]
        );
        // What moves up leaves a turn behind, and nobody loses one.
        queue.push(binding("a"), Priority::Timer, 5, Time(0));
        queue.push(binding("b"), Priority::Timer, 1, Time(0));
        queue.push(binding("a"), Priority::Live, 0, Time(0));
        assert_eq!(drain(&mut queue), [binding("a"), binding("b")]);
    }

    #[test]
    fn a_binding_whose_rank_rises_while_it_waits_moves_up() {
        use Priority::{Live, Timer};
        // What is pushed, in this order, and what comes out.
        type Case<'a> = (&'a [(&'a str, Priority, i32)], &'a [&'a str]);
        let cases: [Case<'_>; 4] = [
            (&[("a", Live, 5), ("b", Live, 0), ("b", Live, 9)], &["b", "a"]),
            // The better priority stays, and the higher rank counts.
            (&[("a", Live, 5), ("b", Live, 0), ("b", Timer, 9)], &["b", "a"]),
            (&[("a", Live, 5), ("b", Live, 9), ("b", Live, 0)], &["b", "a"]),
            (
                &[("a", Live, 5), ("b", Timer, 9), ("b", Live, 0), ("c", Timer, 0)],
                &["a", "b", "c"],
            ),
        ];
        for (pushes, want) in cases {
            let mut queue = Queue::default();
            for (name, priority, rank) in pushes {
                queue.push(binding(name), *priority, *rank, Time(0));
            }
            let want: Vec<Key> = want.iter().map(|name| binding(name)).collect();
            assert_eq!(drain(&mut queue), want, "{pushes:?}");
        }
    }

    #[test]
    fn no_rank_starves_under_constant_load_of_higher_ones() {
        for priority in [Priority::Live, Priority::Listed, Priority::Timer] {
            let mut queue = Queue::default();
            queue.push(binding("low"), priority, -1, Time(0));
            for pop in 0.. {
                for name in ["high-a", "high-b"] {
                    queue.push(binding(name), priority, 1_000, Time(0));
                }
                if queue.pop(Time(0)) == Some(binding("low")) {
                    break;
                }
                assert!(pop < 20, "{priority:?}");
            }
        }
    }

    #[test]
    fn a_key_waits_once_and_moves_up() {
        let mut queue = Queue::default();
        queue.push(binding("a"), Priority::Timer, 0, Time(0));
        queue.push(binding("b"), Priority::Listed, 0, Time(0));
        queue.push(binding("a"), Priority::Live, 0, Time(0));
        queue.push(binding("a"), Priority::Timer, 0, Time(0));
        assert_eq!(queue.len(), 2);
        assert_eq!(drain(&mut queue), [binding("a"), binding("b")]);
        assert!(queue.is_empty());
    }

    #[test]
    fn a_key_dirtied_while_its_lane_is_in_flight_comes_when_it_ends() {
        let mut queue = Queue::default();
        let (spec, status) = (Key::Binding(id("a")), Key::BindingStatus(id("a")));
        queue.start(&spec);
        queue.push(spec.clone(), Priority::Live, 0, Time(0));
        queue.push(status.clone(), Priority::Timer, 0, Time(0));
        queue.push(binding("b"), Priority::Listed, 0, Time(0));
        assert_eq!(drain(&mut queue), [binding("b")]);
        queue.push(spec.clone(), Priority::Live, 0, Time(0));
        assert_eq!(drain(&mut queue), []);
        assert_eq!(queue.in_flight(), 1);
        queue.finish(&spec);
        assert_eq!(queue.pop(Time(0)), Some(spec.clone()));
        queue.start(&spec);
        assert_eq!(queue.pop(Time(0)), None, "the status shares the lane of the spec");
        queue.finish(&spec);
        assert_eq!(drain(&mut queue), [status]);
    }

    #[test]
    fn who_waits_is_forgotten_and_what_is_carried_out_keeps_its_lane() {
        let mut queue = Queue::default();
        queue.start(&binding("a"));
        queue.push(binding("a"), Priority::Live, 0, Time(0));
        queue.push(binding("b"), Priority::Live, 0, Time(0));
        assert_eq!(queue.pop(Time(0)), Some(binding("b")));
        queue.push(binding("b"), Priority::Timer, 0, Time(0));
        queue.forget();
        queue.push(binding("a"), Priority::Live, 0, Time(0));
        assert_eq!(queue.pop(Time(0)), None, "its lane is taken");
        queue.finish(&binding("a"));
        assert_eq!(drain(&mut queue), [binding("a")]);
    }

    #[test]
    fn the_oldest_key_keeps_its_time_until_it_is_popped_or_forgotten() {
        let mut queue = Queue::default();
        assert_eq!(queue.oldest(), None);
        queue.push(binding("a"), Priority::Timer, 0, Time(10));
        queue.push(binding("b"), Priority::Live, 0, Time(20));
        queue.push(binding("c"), Priority::Live, 0, Time(20));
        // It moves up.
        queue.push(binding("a"), Priority::Live, 0, Time(30));
        queue.push(binding("a"), Priority::Timer, 0, Time(40));
        assert_eq!(queue.oldest(), Some(Time(10)));
        let mut times = Vec::new();
        while let Some(key) = queue.pop(Time(50)) {
            times.push((key, queue.oldest()));
        }
        assert_eq!(
            times,
            [
                (binding("b"), Some(Time(10))),
                (binding("c"), Some(Time(10))),
                (binding("a"), None)
            ]
        );
        queue.push(binding("a"), Priority::Live, 0, Time(60));
        queue.forget();
        assert_eq!(queue.oldest(), None);
    }

    #[test]
    fn a_key_that_was_parked_is_as_old_as_it_was() {
        let mut queue = Queue::default();
        queue.start(&binding("a"));
        queue.push(binding("a"), Priority::Live, 0, Time(10));
        assert_eq!((queue.pop(Time(20)), queue.oldest()), (None, None));
        queue.push(binding("a"), Priority::Live, 0, Time(30));
        assert_eq!(queue.oldest(), Some(Time(30)));
        queue.finish(&binding("a"));
        assert_eq!(queue.oldest(), Some(Time(10)));
        assert_eq!((queue.pop(Time(40)), queue.oldest()), (Some(binding("a")), None));
    }

    #[test]
    fn copies_on_one_member_do_not_share_a_lane() {
        let mut queue = Queue::default();
        let (a, b) = (Key::Copy(id("a"), "m1".into()), Key::Copy(id("b"), "m1".into()));
        queue.start(&a);
        queue.push(b.clone(), Priority::Live, 0, Time(0));
        assert_eq!(queue.pop(Time(0)), Some(b));
    }

    #[test]
    fn timers_do_not_starve_under_constant_live_load() {
        let mut queue = Queue::default();
        queue.push(binding("timer"), Priority::Timer, 0, Time(0));
        let mut pops = 0;
        loop {
            queue.push(binding("live"), Priority::Live, 0, Time(0));
            pops += 1;
            if queue.pop(Time(0)) == Some(binding("timer")) {
                break;
            }
            assert!(pops < 20);
        }
    }

    #[test]
    fn what_was_listed_does_not_starve_under_constant_live_load_and_its_statuses() {
        let mut queue = Queue::default();
        queue.push(binding("listed"), Priority::Listed, 0, Time(0));
        for pop in 0.. {
            queue.push(binding("live"), Priority::Live, 0, Time(0));
            queue.push(status("live"), Priority::Live, 0, Time(0));
            if queue.pop(Time(PATIENCE)) == Some(binding("listed")) {
                break;
            }
            assert!(pop < 20);
        }
    }

    #[test]
    fn a_status_that_waits_for_its_lane_keeps_its_place() {
        let mut queue = Queue::default();
        queue.start(&binding("a"));
        queue.push(status("a"), Priority::Live, 0, Time(0));
        assert_eq!(queue.pop(Time(0)), None);
        queue.finish(&binding("a"));
        for name in 0..9 {
            queue.push(binding(&name.to_string()), Priority::Live, 0, Time(PATIENCE));
        }
        let turns: Vec<Key> = (0..4).filter_map(|_| queue.pop(Time(PATIENCE))).collect();
        assert!(turns.contains(&status("a")), "{turns:?}");
    }
}
