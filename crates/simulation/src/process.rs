//! A process of the control plane: its engine, the watches that it has open, and the keys that it will plan.

use std::collections::{BTreeMap, BTreeSet};

use entourage_core::{
    Engine,
    config::Config,
    object::{Str, Time},
    observation::{Observation, Watch},
    plan::{Key, Plan},
};

/// A process. It loses everything when it ends.
pub struct Process {
    /// The engine.
    pub engine: Engine,
    /// The open watches.
    pub open: BTreeSet<Watch>,
    /// The keys to plan.
    pub queue: BTreeSet<Key>,
    /// The keys to plan later.
    pub timers: BTreeMap<Key, Time>,
    /// The watches that the engine demanded when it had changed its demand this often.
    pub demanded: BTreeSet<Watch>,
    demand_changes: Option<u64>,
}

impl Default for Process {
    fn default() -> Self {
        Self::new(Config::new(""))
    }
}

impl Process {
    /// A process that starts.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            // Models name namespaces that they do not contain.
            engine: Engine::new(Config {
                implied_namespaces: true,
                ..config
            }),
            open: BTreeSet::new(),
            queue: BTreeSet::new(),
            timers: BTreeMap::new(),
            demanded: BTreeSet::new(),
            demand_changes: None,
        }
    }

    /// Observes, and returns the keys that it queued.
    pub fn observe(&mut self, seen: Observation, now: Time) -> Vec<Key> {
        let dirty = self.engine.observe(seen, now);
        self.queue.extend(dirty.iter().cloned());
        dirty
    }

    /// Plans a key.
    pub fn plan(&mut self, key: &Key, now: Time) -> Plan {
        let plan = self.engine.plan(key, now);
        self.queue.extend(self.engine.take_raised());
        self.timers.remove(key);
        if let Some(time) = plan.again_at {
            self.timers.insert(key.clone(), time.max(now.plus(1)));
        }
        plan
    }

    /// The writes of copies of a plan begin.
    pub fn start(&mut self, plan: &Plan, now: Time) {
        for change in &plan.changes {
            if let Some(begun) = change.begun() {
                self.observe(begun, now);
            }
        }
    }

    /// Takes the next key: clusters first, so that replicas are not divided only among those that are ready already; of bindings the one
    /// with the highest rank.
    pub fn next_key(&mut self) -> Option<Key> {
        let first = Key::Cluster(Str::from(""));
        let cluster = self.queue.range(first..).next().cloned();
        match cluster.filter(|key| matches!(key, Key::Cluster(_))) {
            Some(key) => self.queue.take(&key),
            None => {
                let first = self.queue.first().cloned()?;
                let key = match first {
                    Key::Binding(_) if self.engine.has_priorities() => self.highest().unwrap_or(first),
                    _ => first,
                };
                self.queue.take(&key)
            }
        }
    }

    /// The binding with the highest rank, of two the first. Cost: O(bindings in the queue).
    fn highest(&self) -> Option<Key> {
        let bindings = self.queue.iter().filter(|key| matches!(key, Key::Binding(_)));
        bindings.rev().max_by_key(|key| self.engine.rank(key)).cloned()
    }

    /// Closes the watches that ended, because they are not demanded any more or their objects must be read again; returns them.
    pub fn close(&mut self) -> BTreeSet<Watch> {
        let changes = Some(self.engine.demand_changes());
        if self.demand_changes == changes {
            return BTreeSet::new();
        }
        self.demand_changes = changes;
        self.demanded.clone_from(self.engine.demand());
        let mut ended = self.engine.take_ended();
        ended.extend(self.open.difference(&self.demanded).cloned());
        self.open.retain(|watch| !ended.contains(watch));
        debug_assert!(self.open.is_subset(&self.demanded), "open and not demanded");
        ended
    }

    /// The watches that are demanded and not open. Cost: O(1) if there are none, which is so at most steps; else O(watches).
    pub fn closed(&self) -> impl Iterator<Item = &Watch> {
        // Only what is demanded is opened, and `close` closes what is not demanded any more.
        let is_any = self.open.len() < self.demanded.len();
        is_any
            .then(|| self.demanded.difference(&self.open))
            .into_iter()
            .flatten()
    }
}
