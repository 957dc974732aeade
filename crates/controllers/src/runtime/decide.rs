//! The interface of the control loop to the core. One implementation, the Index; a scripted one in tests.

use std::{collections::BTreeSet, sync::Arc};

use entourage_api::cluster::Cluster;
use entourage_core::{
    distribution,
    index::{Index, Stats},
    interpreter::Interpreter,
    object::Time,
    observation::{Observation, Use, Watch},
    plan::{Event, Key, Plan},
};

/// The decisions.
pub trait Decide: Send + 'static {
    /// Takes in one fact; the keys that are to be planned again, possibly repeated.
    fn observe(&mut self, seen: Observation, now: Time) -> Vec<Key>;
    /// What is to be done for a key now; who waits for proof is remembered.
    fn plan(&mut self, key: &Key, now: Time) -> Plan;
    /// What planning has dirtied: to be asked for after each plan.
    fn take_raised(&mut self) -> Vec<Key> {
        Vec::new()
    }
    /// What is to be said in the log.
    fn take_notices(&mut self) -> Vec<String> {
        Vec::new()
    }
    /// Which list-and-watches must run.
    fn demand(&self) -> &BTreeSet<Watch>;
    /// While this stays as it is, so does what is demanded.
    fn demand_changes(&self) -> u64;
    /// Watches that end now even if they are demanded again: they list afresh then.
    fn take_ended(&mut self) -> BTreeSet<Watch> {
        BTreeSet::new()
    }
    /// What people taught us of kinds; it changes only together with what is demanded.
    fn interpreter(&self) -> Interpreter {
        Interpreter::default()
    }
    /// A Cluster as last seen.
    fn cluster(&self, name: &str) -> Option<Arc<Cluster>>;
    /// Whether everything that must be listed was listed.
    fn is_synced(&self) -> bool;
    /// Sizes, for metrics.
    fn stats(&self) -> Stats;
    /// How each ResourceDistribution stands, for metrics.
    fn distributions(&self, now: Time) -> Vec<distribution::Report> {
        let _ = now;
        Vec::new()
    }
    /// What is to be said to a person when the hub refuses a key's write, in the hub's words.
    fn refused(&self, key: &Key, words: &str) -> Option<Event> {
        let _ = (key, words);
        None
    }
    /// What is to be said to a person when the decision itself waits for somebody to change something.
    fn undecided(&self, key: &Key, words: &str) -> Option<Event> {
        self.refused(key, words)
    }
    /// Which answers of hooks are used, now that a key is planned again.
    fn used(&self, key: &Key) -> Option<Use> {
        let _ = key;
        None
    }
}

impl Decide for Index {
    fn observe(&mut self, seen: Observation, now: Time) -> Vec<Key> {
        Self::observe(self, seen, now)
    }

    fn plan(&mut self, key: &Key, now: Time) -> Plan {
        Self::plan(self, key, now)
    }

    fn take_raised(&mut self) -> Vec<Key> {
        Self::take_raised(self)
    }

    fn take_notices(&mut self) -> Vec<String> {
        Self::take_notices(self)
    }

    fn demand(&self) -> &BTreeSet<Watch> {
        Self::demand(self)
    }

    fn demand_changes(&self) -> u64 {
        Self::demand_changes(self)
    }

    fn take_ended(&mut self) -> BTreeSet<Watch> {
        Self::take_ended(self)
    }

    fn interpreter(&self) -> Interpreter {
        Self::interpreter(self).clone()
    }

    fn cluster(&self, name: &str) -> Option<Arc<Cluster>> {
        Self::cluster(self, name)
    }

    fn is_synced(&self) -> bool {
        Self::is_synced(self)
    }

    fn stats(&self) -> Stats {
        Self::stats(self)
    }

    fn distributions(&self, now: Time) -> Vec<distribution::Report> {
        distribution::reports(self, now)
    }

    fn refused(&self, key: &Key, words: &str) -> Option<Event> {
        entourage_core::refusal::event(self, key, words)
    }

    fn undecided(&self, key: &Key, words: &str) -> Option<Event> {
        entourage_core::refusal::decision(self, key, words)
    }

    fn used(&self, key: &Key) -> Option<Use> {
        Self::used(self, key)
    }
}
