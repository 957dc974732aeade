//! The engine: the single entry point to all decisions. [`Engine::observe`] records an observation and returns the keys to plan
//! again ([`routes`]); [`Engine::plan`] returns the changes of one key.
//!
//! Each key has one planner, and the effect of its plan on the fleet is recorded at once.

mod demand;
mod kinds;
mod observe;
mod routes;

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    ops::Deref,
};

use entourage_api::work::{ResourceBindingSpec, TargetCluster};

use crate::{
    autoscaling, binding, cluster,
    config::Config,
    delivery, descheduling, detector, distribution, execution_namespaces,
    failover::budget,
    fleet::{Fleet, quotas::used_by},
    governor,
    graph::Membership,
    memory::{descheduled::Moved, estimates::Planned, eviction_counts::Eviction, propagations::Propagated},
    namespaces,
    object::{ResourceId, Time},
    observation::{Observation, Watch},
    override_effect,
    plan::{Change, HubObject, Key, Plan, SyncRequirement, Verb},
    quotas, rebalancer, services, status,
    stored_binding::sets::as_sets,
    works,
};

/// The state of the fleet, and the decisions that follow from it. Derefs to the [`Fleet`], for reading.
#[derive(Debug)]
pub struct Engine {
    fleet: Fleet,
}

impl Deref for Engine {
    type Target = Fleet;

    fn deref(&self) -> &Fleet {
        &self.fleet
    }
}

impl Engine {
    /// An engine with an empty state that demands the base watches.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            fleet: Fleet::new(config),
        }
    }

    /// The settings, to be changed: later plans follow them.
    pub fn config_mut(&mut self) -> &mut Config {
        &mut self.fleet.config
    }

    /// Records one observation. Returns the keys to plan again; a key may be among them more than once and in vain. Cost:
    /// O(what it affects), stated at each handler.
    pub fn observe(&mut self, seen: Observation, now: Time) -> Vec<Key> {
        self.fleet.observe(seen, now)
    }

    /// Plans a key, and records the sync requirement that it waits for. Cost: that of [`Self::preview`], twice if an eviction
    /// gets a slot.
    pub fn plan(&mut self, key: &Key, now: Time) -> Plan {
        self.fleet.plan(key, now)
    }

    /// Plans a key as of `now` and records nothing. Cost: stated at each planner; never O(all objects).
    #[must_use]
    pub fn preview(&self, key: &Key, now: Time) -> Plan {
        plan(&self.fleet, key, now)
    }

    /// The watches that ended since the last call: if one of them runs, it must end, and list afresh if it is demanded again. Cost: O(1).
    pub fn take_ended(&mut self) -> BTreeSet<Watch> {
        self.fleet.cache.watches.take_ended()
    }

    /// The keys that the plans of others made dirty; to be called after each plan. Cost: O(1) when there are none.
    pub fn take_raised(&mut self) -> Vec<Key> {
        self.fleet.take_raised()
    }

    /// The messages for the log since the last call. Cost: O(1) when there are none.
    pub fn take_notices(&mut self) -> Vec<String> {
        std::mem::take(&mut self.fleet.memory.notices)
    }

    /// The changes that have reached all members since the last call. Cost: O(1) when there are none.
    pub fn take_propagated(&mut self) -> Vec<Propagated> {
        self.fleet.memory.propagations.take_ended()
    }

    /// The evictions that began since the last call, with their number. Cost: O(1) when there are none.
    pub fn take_evictions(&mut self) -> BTreeMap<Eviction, u64> {
        self.fleet.memory.eviction_counts.take()
    }
}

/// Plans a key as of `now`. Cost: stated at each planner; never O(all objects).
pub(crate) fn plan(fleet: &Fleet, key: &Key, now: Time) -> Plan {
    // A key may name an old version of a kind; the plan is made for the version that is watched.
    let plan = match &fleet.in_use(key) {
        Key::Policy(name) => detector::plan_policy(fleet, name, now),
        Key::Template(id) => detector::plan_template(fleet, id, now),
        Key::TemplateStatus(id) => status::template::plan(fleet, id, now),
        Key::Scaling(id) => autoscaling::plan(fleet, id, now),
        Key::Binding(id) => binding::plan(fleet, id, now),
        Key::BindingStatus(id) => status::plan_binding(fleet, id, now),
        Key::Copy(id, cluster) => delivery::plan::plan(fleet, id, cluster, now),
        Key::Cluster(name) => cluster::plan(fleet, name, now),
        Key::Namespace(name, cluster) => namespaces::plan(fleet, name, cluster, now),
        Key::Distribution(name) => distribution::plan_end(fleet, name, now),
        Key::DistributionStatus(name) => distribution::plan_status(fleet, name, now),
        Key::Distributed(name, place) => distribution::plan_copy(fleet, name, place, now),
        Key::Override(name) => override_effect::plan(fleet, name, now),
        Key::Rebalancer(name) => rebalancer::plan(fleet, name, now),
        Key::Quota(name) => quotas::plan(fleet, name, now),
        Key::QuotaCopy(name, cluster) => quotas::plan_copy(fleet, name, cluster, now),
        Key::Work(id, cluster) => works::plan(fleet, id, cluster, now),
        Key::Endpoints(cluster, service) => services::plan(fleet, cluster, service, now),
        Key::DerivedService(import) => services::plan_derived(fleet, import),
        Key::ExecutionNamespace(cluster) => execution_namespaces::plan(fleet, cluster),
    };
    cluster::identity::gate(fleet, key, autoscaling::gate(fleet, key, plan))
}

impl Fleet {
    /// See [`Engine::plan`].
    pub(crate) fn plan(&mut self, key: &Key, now: Time) -> Plan {
        governor::explain(self, key, now);
        if matches!(key, Key::Binding(_)) {
            // Room that is free again is there for the first that is planned.
            self.memory.rooms.expire(now);
        }
        let mut plan = plan(self, key, now);
        if budget::reserve(self, key, &plan, now) {
            plan = self::plan(self, key, now);
        }
        debug_assert!(
            plan.awaits.is_none() || plan.changes.is_empty(),
            "who waits does nothing"
        );
        self.memory.waiting.note(key, plan.awaits.as_deref());
        if let Key::Copy(id, cluster) = key {
            let waits = matches!(plan.awaits.as_deref(), Some(SyncRequirement::Removal(_)));
            self.memory.deletion_pauses.keeps_from(id, cluster, waits);
            self.note_copy_plan(id, cluster, &plan, now);
        }
        if let Key::Binding(id) = key {
            // Who waits changes nothing yet: what a write before it may still remove stays marked.
            if !plan.waits_for_estimates() {
                self.note_leaving(id, &plan);
            }
            self.note_room(id, &mut plan, now);
            self.note_estimates(id, &plan, now);
            self.note_quota(id, &plan);
            self.note_groups(id, &plan);
        }
        if let Key::Quota(name) = key {
            quotas::note(self, name, &plan, now);
        }
        if let Key::Endpoints(cluster, service) = key {
            let is_write = |change: &Change| {
                matches!(
                    change,
                    Change::Hub {
                        verb: Verb::Create(_) | Verb::Merge(_),
                        ..
                    }
                )
            };
            let writes = plan.changes.iter().any(is_write);
            self.memory.endpoints.note(cluster, service, writes, now);
        }
        if let Key::BindingStatus(id) = key {
            self.note_reported_failures(id, &plan);
        }
        if let Key::TemplateStatus(id) = key {
            self.sends_status(id, &plan);
        }
        if let Key::Scaling(id) = key {
            self.sends_scaling(id, &plan, now);
        }
        governor::account(self, key, &plan, now);
        plan
    }

    /// Records the failing operations that a write of a binding's status reports: events follow from their change.
    fn note_reported_failures(&mut self, id: &ResourceId, plan: &Plan) {
        let is_written = plan
            .changes
            .iter()
            .any(|change| matches!(change, Change::Hub { .. }));
        if !is_written {
            return;
        }
        let failing = status::failing_operations(self, id);
        if let Some(resource) = self.cache.resources.get_mut(id) {
            resource.reported_failures = Some(failing);
        }
    }

    /// Reserves the room that the plan of a binding uses, or notes that it waits for room; notes the stuck replicas that it moves. Cost:
    /// that of `Rooms::planned` and of [`descheduling::moved`].
    fn note_room(&mut self, id: &ResourceId, plan: &mut Plan, now: Time) {
        // It keeps its place among those that wait for room.
        if plan.waits_for_estimates() {
            return;
        }
        let resource = self.cache.resources.get(id);
        let binding = resource.and_then(|resource| resource.binding.as_ref());
        let stored = binding.map_or(&[][..], |binding| binding.object.spec.clusters.as_slice());
        // Only a result that is about to be stored.
        let result = |body: &serde_json::Value| -> Option<Vec<TargetCluster>> {
            serde_json::from_value(body["spec"]["clusters"].clone()).ok()
        };
        let is_looked_at = descheduling::may_move(self, id);
        let wanted = written(plan).filter(|_| is_looked_at).and_then(result);
        if let (Some(resource), Some(binding), Some(wanted)) = (resource, binding, wanted) {
            let change = (&binding.object.spec, wanted.as_slice());
            for (cluster, _, left) in descheduling::moved(self, id, resource, change, now) {
                self.memory.descheduled.note(id, cluster, Moved { left, at: now });
            }
        }
        let used = plan.room.as_deref();
        let clusters = used.and_then(|used| used.clusters.as_deref());
        let stored = as_sets(stored, clusters.unwrap_or_default());
        if self.config.estimators.is_some() {
            self.memory.placed.planned(id, used, &stored);
        }
        let again_at = self.memory.rooms.planned(id, used, &stored, now);
        plan.again_at = plan.again_at.into_iter().chain(again_at).min();
    }

    /// Notes that a binding waits for estimates, and which it asks for; or that it does not wait. Cost: that of `Estimates::planned`; O(1)
    /// if estimators are not asked.
    fn note_estimates(&mut self, id: &ResourceId, plan: &Plan, now: Time) {
        let Some(settings) = self.config.estimators else {
            return;
        };
        let order = plan.changes.iter().find_map(|change| match change {
            Change::Estimate(order) => Some(order.clusters.as_slice()),
            _ => None,
        });
        let resource = self.cache.resources.get(id);
        let binding = resource.and_then(|resource| resource.binding.as_ref());
        let stored = binding.map_or(&[][..], |binding| binding.object.spec.clusters.as_slice());
        let room = plan.room.as_deref();
        let result = room.and_then(|room| room.clusters.as_deref());
        let planned = Planned {
            used: plan.estimates.as_deref(),
            asked: order.unwrap_or_default(),
            is_pending: result.is_some_and(|result| result != stored),
            lacks_room: room.is_some_and(|room| room.clusters.is_none()),
            is_by_room: room.is_some(),
        };
        let ended = self.memory.estimates.planned(id, &planned, settings.timeout, now);
        if ended.has_waited {
            // Its status was left as it is until now.
            self.memory.raised.push(Key::BindingStatus(id.clone()));
        }
        self.memory
            .raised
            .extend(ended.behind.into_iter().map(Key::Binding));
    }

    /// Notes what the plan of a binding is about to use of the quotas of its namespace, or that it waits for them. Cost: O(size of
    /// the binding's spec) if it is written and its namespace has a quota; else O(log bindings), and O(waiting bindings) where
    /// an earlier plan used more.
    fn note_quota(&mut self, id: &ResourceId, plan: &Plan) {
        if !self.config.enforce_quotas || !self.memory.quotas.is_limited(&id.namespace) {
            return;
        }
        if plan.waits_for_estimates() && self.memory.quotas.is_planned(id) {
            return;
        }
        let planned = about_to_store(plan).map(|spec| used_by(&spec));
        let raised = self.memory.quotas.planned(id, planned, plan.exceeds_quota);
        self.memory.raised.extend(raised.into_iter().map(Key::Binding));
    }

    /// Notes what the plan of a binding is about to store of its workload groups: members that are planned after it see that. Cost:
    /// O(log members) without a group, else O(size of its spec), and O(members × their clusters) where it differs.
    fn note_groups(&mut self, id: &ResourceId, plan: &Plan) {
        let before = self.memory.planned_groups.of(id);
        if plan.waits_for_estimates() && before.is_some() {
            return;
        }
        let is_member = |body: &serde_json::Value| body["spec"]["workloadAffinityGroups"].is_object();
        let may_be_one = written(plan).is_none_or(is_member);
        let spec = may_be_one.then(|| about_to_store(plan)).flatten();
        let planned = spec.and_then(|spec| Membership::of(&spec));
        if before == planned.as_ref() {
            return;
        }
        let before = self.standing(id);
        self.memory.planned_groups.set(id, planned);
        let after = self.standing(id);
        for other in self.companions_to_plan(id, (&before, &after)) {
            self.memory
                .raised
                .extend([Key::Binding(other.clone()), Key::BindingStatus(other)]);
        }
    }

    /// See [`Engine::take_raised`].
    pub(crate) fn take_raised(&mut self) -> Vec<Key> {
        let clusters = self.memory.deletion_pauses.take_raised().into_iter();
        let mut raised = std::mem::take(&mut self.memory.raised);
        raised.extend(clusters.map(Key::Cluster));
        raised
    }
}

/// The spec that a plan is about to store, or would if no answers of estimators were missing: who is planned first gets the quota, or the
/// cluster. What an earlier plan was about to store may be stored, so that counts on while it waits. Cost: O(size of the spec).
fn about_to_store(plan: &Plan) -> Option<Cow<'_, ResourceBindingSpec>> {
    let wanted = plan.estimates.as_ref().and_then(|used| used.wanted.as_ref());
    let body = || serde_json::from_value(written(plan)?["spec"].clone()).ok();
    wanted.map(Cow::Borrowed).or_else(|| body().map(Cow::Owned))
}

/// The binding that a plan is about to store.
fn written(plan: &Plan) -> Option<&serde_json::Value> {
    plan.changes.iter().find_map(|change| match change {
        Change::Hub {
            object: HubObject::Binding(_),
            verb: Verb::Create(body) | Verb::Replace(body),
        } => Some(body),
        _ => None,
    })
}
