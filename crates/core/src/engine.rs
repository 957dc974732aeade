//! The entry point of the planners: each key has one planner, and the effect of its plan on the index is recorded at once.

use crate::{
    binding, cluster, delivery, detector, distribution,
    failover::budget,
    governor,
    index::Index,
    namespaces,
    object::Time,
    override_effect,
    plan::{Key, Plan, SyncRequirement},
    rebalancer, status,
};

/// Plans a key as of `now`. Cost: stated at each planner; never O(all objects).
#[must_use]
pub fn plan(index: &Index, key: &Key, now: Time) -> Plan {
    // A key may hold an old version of a kind; the plan is made for the version that is watched.
    let plan = match &index.in_use(key) {
        Key::Policy(name) => detector::plan_policy(index, name, now),
        Key::Template(id) => detector::plan_template(index, id, now),
        Key::TemplateStatus(id) => status::template::plan(index, id, now),
        Key::Binding(id) => binding::plan(index, id, now),
        Key::BindingStatus(id) => status::plan_binding(index, id, now),
        Key::Copy(id, cluster) => delivery::plan::plan(index, id, cluster, now),
        Key::Cluster(name) => cluster::plan(index, name, now),
        Key::Namespace(name, cluster) => namespaces::plan(index, name, cluster, now),
        Key::Distribution(name) => distribution::plan_end(index, name),
        Key::DistributionStatus(name) => distribution::plan_status(index, name, now),
        Key::Distributed(name, place) => distribution::plan_copy(index, name, place, now),
        Key::Override(name) => override_effect::plan(index, name, now),
        Key::Rebalancer(name) => rebalancer::plan(index, name, now),
    };
    cluster::identity::gate(index, key, plan)
}

impl Index {
    /// Plans a key, and records the sync requirement that it waits for. Cost: that of [`plan`](plan()), twice where an eviction
    /// gets a slot.
    pub fn plan(&mut self, key: &Key, now: Time) -> Plan {
        governor::explain(self, key, now);
        let mut plan = plan(self, key, now);
        if budget::reserve(self, key, &plan, now) {
            plan = self::plan(self, key, now);
        }
        debug_assert!(
            plan.awaits.is_none() || plan.changes.is_empty(),
            "who waits does nothing"
        );
        self.waiting.note(key, plan.awaits.as_deref());
        if let Key::Copy(id, cluster) = key {
            let waits = matches!(plan.awaits.as_deref(), Some(SyncRequirement::Removal(_)));
            self.brakes.keeps_from(id, cluster, waits);
            self.note_copy_plan(id, cluster, &plan, now);
        }
        if let Key::Binding(id) = key {
            self.note_leaving(id, &plan);
        }
        if let Key::TemplateStatus(id) = key {
            self.sends_status(id, &plan, now);
        }
        governor::account(self, key, &plan, now);
        plan
    }
}
