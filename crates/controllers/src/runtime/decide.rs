//! The interface of the control loop to the core. One implementation, the Engine; a scripted one in tests.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use entourage_api::cluster::Cluster;
use entourage_core::{
    Engine, distribution,
    fleet::{Eviction, Fleet, ProblemCounts, Propagated, Stats},
    interpreter::Interpreter,
    object::Time,
    observation::{Observation, Use, Watch},
    plan::{Event, Key, Plan},
};

/// The decisions.
pub trait Decide: Send + 'static {
    /// Observes one fact; returns the keys to plan again, possibly repeated.
    fn observe(&mut self, seen: Observation, now: Time) -> Vec<Key>;
    /// Plans a key as of `now`; a key that waits for a sync requirement is recorded.
    fn plan(&mut self, key: &Key, now: Time) -> Plan;
    /// The rank of a key among those of bindings: the highest is planned first.
    fn rank(&self, _key: &Key) -> i32 {
        0
    }
    /// The keys dirtied by planning: to be called after each plan.
    fn take_raised(&mut self) -> Vec<Key> {
        Vec::new()
    }
    /// The messages to log.
    fn take_notices(&mut self) -> Vec<String> {
        Vec::new()
    }
    /// The list-and-watches that must run.
    fn demand(&self) -> &BTreeSet<Watch>;
    /// A number that changes whenever the demand does.
    fn demand_changes(&self) -> u64;
    /// Watches that end now even if they are demanded again: they list again then.
    fn take_ended(&mut self) -> BTreeSet<Watch> {
        BTreeSet::new()
    }
    /// The interpretations of kinds; they change only together with the demand.
    fn interpreter(&self) -> Interpreter {
        Interpreter::default()
    }
    /// A Cluster as last observed.
    fn cluster(&self, name: &str) -> Option<Arc<Cluster>>;
    /// True if all required lists are synced.
    fn is_synced(&self) -> bool;
    /// The lists that are not synced.
    fn unsynced(&self) -> Vec<Watch> {
        Vec::new()
    }
    /// Sizes, for metrics.
    fn stats(&self) -> Stats;
    /// The state of each ResourceDistribution, for metrics.
    fn distributions(&self, now: Time) -> Vec<distribution::Report> {
        let _ = now;
        Vec::new()
    }
    /// The problems that conditions report, for metrics.
    fn problem_counts(&self) -> Option<&ProblemCounts> {
        None
    }
    /// The changes that have reached all members since the last call.
    fn take_propagated(&mut self) -> Vec<Propagated> {
        Vec::new()
    }
    /// The evictions that began since the last call, with their number.
    fn take_evictions(&mut self) -> BTreeMap<Eviction, u64> {
        BTreeMap::new()
    }
    /// The Event for a user when the hub refuses a key's write, with the hub's message.
    fn refused(&self, key: &Key, words: &str) -> Option<Event> {
        let _ = (key, words);
        None
    }
    /// The Event for a user when the decision itself waits for a user to change something.
    fn undecided(&self, key: &Key, words: &str) -> Option<Event> {
        self.refused(key, words)
    }
    /// The change of the hook results in use, when a key is planned again.
    fn used(&self, key: &Key) -> Option<Use> {
        let _ = key;
        None
    }
}

impl Decide for Engine {
    fn observe(&mut self, seen: Observation, now: Time) -> Vec<Key> {
        Self::observe(self, seen, now)
    }

    fn plan(&mut self, key: &Key, now: Time) -> Plan {
        Self::plan(self, key, now)
    }

    fn rank(&self, key: &Key) -> i32 {
        entourage_core::fleet::Fleet::rank(self, key)
    }

    fn take_raised(&mut self) -> Vec<Key> {
        Self::take_raised(self)
    }

    fn take_notices(&mut self) -> Vec<String> {
        Self::take_notices(self)
    }

    fn demand(&self) -> &BTreeSet<Watch> {
        Fleet::demand(self)
    }

    fn demand_changes(&self) -> u64 {
        Fleet::demand_changes(self)
    }

    fn take_ended(&mut self) -> BTreeSet<Watch> {
        Self::take_ended(self)
    }

    fn interpreter(&self) -> Interpreter {
        Fleet::interpreter(self).clone()
    }

    fn cluster(&self, name: &str) -> Option<Arc<Cluster>> {
        Fleet::cluster(self, name)
    }

    fn is_synced(&self) -> bool {
        Fleet::is_synced(self)
    }

    fn unsynced(&self) -> Vec<Watch> {
        Fleet::unsynced(self)
    }

    fn stats(&self) -> Stats {
        Fleet::stats(self)
    }

    fn distributions(&self, now: Time) -> Vec<distribution::Report> {
        distribution::reports(self, now)
    }

    fn problem_counts(&self) -> Option<&ProblemCounts> {
        Some(Fleet::problem_counts(self))
    }

    fn take_propagated(&mut self) -> Vec<Propagated> {
        Self::take_propagated(self)
    }

    fn take_evictions(&mut self) -> BTreeMap<Eviction, u64> {
        Self::take_evictions(self)
    }

    fn refused(&self, key: &Key, words: &str) -> Option<Event> {
        entourage_core::refusal::event(self, key, words)
    }

    fn undecided(&self, key: &Key, words: &str) -> Option<Event> {
        entourage_core::refusal::decision(self, key, words)
    }

    fn used(&self, key: &Key) -> Option<Use> {
        Fleet::used(self, key)
    }
}
