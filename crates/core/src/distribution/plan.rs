//! The plans of a copy, and of a distribution itself.

use entourage_api::{
    keys::finalizer,
    kruise::{DeletionPolicy, WritePolicy},
};
use serde_json::json;

use super::{
    API_VERSION, KIND, Order, Place, Step, TargetStatus, observed::Spec, render::DistributionRenderSpec,
};
use crate::{
    fleet::{
        Fleet,
        claims::is_selected,
        secrets::withheld_copy,
        target_status::{WORKLOAD_GRACE, is_shut},
    },
    governor,
    memory::distributions::{DistributionServer, DistributionState, workload_kinds},
    object::{ResourceId, Str, Time},
    observation::Watch,
    plan::{
        Change, Evidence, EvidenceObject, EvidenceState, HubObject, Plan, Preconditions, RemovalMode, Verb,
        WithdrawalOrder,
    },
};

/// The time, in milliseconds, after which a distribution is planned again if a policy that selects it may claim it: its claim is
/// one write away.
const UNTIL_CLAIMED: i64 = 1_000;

/// Plans one copy. Cost: O(log), and that of the selectors.
#[must_use]
pub(crate) fn plan_copy(fleet: &Fleet, name: &Str, place: &Place, now: Time) -> Plan {
    let Some(held) = fleet.memory.distributions.held.get(name) else {
        return Plan::nothing();
    };
    let (Ok(spec), Some(at)) = (
        &held.object.spec,
        fleet.memory.distributions.place_of(name, place),
    ) else {
        return Plan::nothing();
    };
    if held.object.is_claimed() {
        return Plan::wait("a policy takes the distribution to members: it is carried out there");
    }
    let Some(target_status) = fleet.target_status(name, place, now) else {
        return Plan::nothing();
    };
    let mut plan = match target_status {
        TargetStatus::Pending | TargetStatus::Failed(Step::Get | Step::Create | Step::Update) => {
            write(fleet, name, held, spec, &at, place, now)
        }
        TargetStatus::Leaving | TargetStatus::Failed(Step::Delete) => {
            remove(fleet, name, held, spec, &at, place, now)
        }
        TargetStatus::Done
        | TargetStatus::Blocked
        | TargetStatus::Kept
        | TargetStatus::NoNamespace
        | TargetStatus::Conflict => Plan::nothing(),
    };
    // A namespace that the last selected workload left is planned again when its grace period is over.
    if let Some(left) = held.left.get(&place.namespace) {
        let until = left.plus(WORKLOAD_GRACE);
        if until > now {
            plan.again_at = Some(plan.again_at.map_or(until, |held| held.min(until)));
        }
    }
    plan
}

fn write(
    fleet: &Fleet,
    name: &Str,
    held: &DistributionState,
    spec: &Spec,
    at: &DistributionServer,
    place: &Place,
    now: Time,
) -> Plan {
    if !fleet.cache.watches.is_listed(&Watch::Distributions)
        || !fleet.are_namespaces_listed(place)
        || !fleet.cache.watches.is_listed(&at.watch())
    {
        return Plan::wait("distributions, namespaces, or the objects of this name are not synced yet");
    }
    if spec.needs_finalizer() && !held.object.meta.has_finalizer(finalizer::DISTRIBUTION) {
        return Plan::wait("the distribution gets its finalizer first");
    }
    if let Some(cluster) = &place.cluster
        && !held.object.reported_on(cluster)
    {
        return Plan::wait(format!("the status does not list {cluster} yet"));
    }
    if fleet.may_be_claimed(name, held) {
        let look = now.plus(UNTIL_CLAIMED);
        return Plan::wait_until(
            look,
            "a policy that selects the distribution is about to claim it",
        );
    }
    if withheld_copy(fleet, spec, place.cluster.as_ref()).is_some() {
        return Plan::wait("an allow-list of Secrets keeps it away from the cluster");
    }
    let Ok(content) = fleet.content(name, spec) else {
        return Plan::wait("what is distributed is not there, or may not be distributed");
    };
    let part = fleet.memory.distributions.part(at, &place.namespace);
    if part.is_some_and(|part| part.deleting.is_some()) {
        return Plan::wait("it is being deleted, and made again when it is gone");
    }
    let target_state = held.target_states.get(place);
    let failure = target_state
        .and_then(|target_state| target_state.failure.as_ref())
        .filter(|failure| failure.step != Step::Delete);
    if let Some(failure) = failure.filter(|failure| failure.content == content && now < failure.retry_at) {
        return Plan::wait_until(failure.retry_at, "the last attempt failed");
    }
    if let Some(time) = target_state
        .and_then(|target_state| target_state.not_before)
        .filter(|time| now < *time)
    {
        return Plan::wait_until(
            time,
            "the last attempt came to nothing: what it was made from had changed",
        );
    }
    let written = target_state.and_then(|target_state| target_state.written.as_ref());
    let is_as_written =
        part.is_some_and(|part| written.is_some_and(|written| written.equal && written.is_of(part)));
    let drift_backoff = target_state.and_then(|target_state| target_state.drift_backoff.as_ref());
    let drift_backoff = drift_backoff.filter(|_| written.is_some_and(|written| written.content == content));
    // Once drift has stopped the copy is read again: it is found up to date, and drift is no longer reported.
    let until = drift_backoff.map(|drift_backoff| {
        if is_as_written {
            drift_backoff.reported_until()
        } else {
            drift_backoff.retry_at()
        }
    });
    if let Some(until) = until.filter(|until| now < *until) {
        return Plan::wait_until(until, "something changes it back each time");
    }
    let order = Order {
        distribution: name.clone(),
        place: place.clone(),
        id: ResourceId {
            gvk: spec.gvk.clone(),
            namespace: place.namespace.clone(),
            name: spec.name.clone(),
        },
        render_spec: DistributionRenderSpec {
            distribution: name.clone(),
            uid: held.object.meta.uid.clone(),
            namespace: place.namespace.clone(),
            mark: super::render::mark(place, &fleet.config.hub),
            take_over: spec.write_policy == WritePolicy::Overwrite,
        },
        source: spec.source.clone(),
        live: part.map(|part| preconditions(&part.uid, &part.resource_version)),
        read_first: part.is_some_and(|part| part.foreign) || !is_as_written || drift_backoff.is_some(),
        may_recreate: held.object.may_recreate(),
        may_write: !is_shut(held, spec),
    };
    let why = if !order.may_write {
        "the present object is read: nothing is written while there is a conflict"
    } else if part.is_some() {
        "the present object may be outdated"
    } else {
        "it is missing"
    };
    Plan::one(Change::Distribute(Box::new(order)), why)
}

fn remove(
    fleet: &Fleet,
    name: &Str,
    held: &DistributionState,
    spec: &Spec,
    at: &DistributionServer,
    place: &Place,
    now: Time,
) -> Plan {
    let ending = held.object.meta.deleting.is_some();
    if ending && !held.object.meta.has_finalizer(finalizer::DISTRIBUTION) {
        return Plan::wait("the distribution ends: garbage collection takes its copies");
    }
    if !fleet.is_distribution_known(spec, at, place) {
        return Plan::wait("a distribution that may target this namespace is not synced");
    }
    let of_source = Watch::Distributed(None, spec.gvk.clone(), spec.name.clone());
    if !ending
        && withheld_copy(fleet, spec, place.cluster.as_ref()).is_some()
        && !(fleet.are_secret_lists_certain() && fleet.cache.watches.is_synced(&of_source))
    {
        return Plan::wait("the allow-lists of the Secret are not synced");
    }
    let Some(part) = fleet.memory.distributions.part(at, &place.namespace) else {
        return Plan::nothing();
    };
    if part.deleting.is_some() {
        return Plan::wait("it is being deleted");
    }
    let target_state = held.target_states.get(place);
    let failure = target_state.and_then(|target_state| target_state.failure.as_ref());
    if let Some(failure) = failure.filter(|failure| failure.step == Step::Delete && now < failure.retry_at) {
        return Plan::wait_until(failure.retry_at, "the last attempt failed");
    }
    if let Some(time) = target_state
        .and_then(|target_state| target_state.not_before)
        .filter(|time| now < *time)
    {
        return Plan::wait_until(time, "the present object changed meanwhile");
    }
    let released = ending && spec.deletion_policy == DeletionPolicy::Orphan;
    let (explained, counted) = target_state.map_or((false, false), |target_state| {
        (target_state.explained, target_state.counted)
    });
    if !released
        && let Some(cluster) = &place.cluster
        && let Some(held) = governor::hold(fleet, cluster, (explained || ending, counted), now)
    {
        return held;
    }
    let order = WithdrawalOrder {
        distribution: name.clone(),
        uid: held.object.meta.uid.clone(),
        place: place.clone(),
        id: ResourceId {
            gvk: spec.gvk.clone(),
            namespace: place.namespace.clone(),
            name: spec.name.clone(),
        },
        preconditions: preconditions(&part.uid, &part.resource_version),
        mode: if released {
            RemovalMode::Release
        } else {
            RemovalMode::Delete
        },
        evidence: if ending {
            Vec::new()
        } else {
            evidence(fleet, name, held, place)
        },
    };
    Plan::one(Change::Withdraw(Box::new(order)), "it is no longer targeted")
}

/// The objects that tell that a place is not targeted. Cost: O(log), and that of the metadata.
fn evidence(fleet: &Fleet, name: &Str, held: &DistributionState, place: &Place) -> Vec<Evidence> {
    let namespaces = &fleet.cache.namespaces;
    let namespace = match &place.cluster {
        None => (namespaces.hub.get(&place.namespace)).map(|meta| (&meta.uid, &meta.resource_version)),
        Some(cluster) => {
            let seen = namespaces.on(cluster, &place.namespace);
            seen.map(|seen| (&seen.uid, &seen.resource_version))
        }
    };
    let namespace = namespace.map_or(EvidenceState::Absent, |(uid, version)| {
        EvidenceState::Exactly(preconditions(uid, version))
    });
    let mut evidence = vec![
        Evidence {
            object: EvidenceObject::Distribution(name.clone()),
            state: EvidenceState::of_content(&held.object.meta),
        },
        Evidence {
            object: EvidenceObject::Namespace(place.clone()),
            state: namespace,
        },
    ];
    let cluster = place.cluster.as_ref();
    let member = cluster.and_then(|cluster| fleet.cache.members.get_key_value(cluster));
    evidence.extend(member.map(|(cluster, member)| Evidence {
        object: EvidenceObject::Cluster(cluster.clone()),
        state: EvidenceState::of_content(&member.meta),
    }));
    evidence
}

fn preconditions(uid: &Str, resource_version: &Str) -> Preconditions {
    Preconditions {
        uid: uid.clone(),
        resource_version: resource_version.clone(),
    }
}

/// Plans the finalizer of the distribution. Cost: O(members + writes in flight), and O(1) without a finalizer.
#[must_use]
pub(crate) fn plan_end(fleet: &Fleet, name: &Str, now: Time) -> Plan {
    let Some(held) = fleet.memory.distributions.held.get(name) else {
        return Plan::nothing();
    };
    let meta = &held.object.meta;
    let has = meta.has_finalizer(finalizer::DISTRIBUTION);
    let needs = match &held.object.spec {
        Ok(spec) => spec.needs_finalizer() && !held.object.is_claimed(),
        // Its earlier spec is unknown: it keeps its finalizer.
        Err(_) => has,
    };
    if let Some(plan) = wait_for_writes(held, now).filter(|_| has) {
        return plan;
    }
    let ours: Vec<&Place> = held.target_states.keys().collect();
    if meta.deleting.is_none() {
        let known = |spec| fleet.is_all_known(name, held, spec);
        let on_members =
            ours.iter().any(|place| place.cluster.is_some()) || !held.object.spec.as_ref().is_ok_and(known);
        return match (needs, has) {
            (true, false) => finalizers(held, name, true, "copies are not collected as garbage"),
            (false, true) if !on_members => {
                finalizers(held, name, false, "its copies are collected as garbage")
            }
            _ => Plan::nothing(),
        };
    }
    if !has {
        return Plan::nothing();
    }
    if held.object.is_claimed() || held.object.spec.is_err() {
        return finalizers(held, name, false, "nothing here is of it, as far as can be known");
    }
    if !ours.is_empty() {
        return Plan::wait("copies of it are still there");
    }
    let known = |spec| fleet.is_all_known(name, held, spec);
    if !held.object.spec.as_ref().is_ok_and(known) {
        return Plan::wait("it is not known whether copies of it still exist");
    }
    finalizers(held, name, false, "no copy of it is left")
}

/// The finalizer stays while a copy may exist that no watch has reported. Cost: O(writes in flight).
fn wait_for_writes(held: &DistributionState, now: Time) -> Option<Plan> {
    let mut until = now;
    for end in held.in_flight.values() {
        match end {
            None => return Some(Plan::wait("a copy of it is being written")),
            Some(time) => until = until.max(*time),
        }
    }
    (until > now).then(|| Plan::wait_until(until, "a copy of it may have been written"))
}

fn finalizers(held: &DistributionState, name: &Str, with: bool, why: &str) -> Plan {
    let meta = &held.object.meta;
    let mut wanted: Vec<&str> = meta
        .finalizers
        .iter()
        .map(|each| &**each)
        .filter(|each| *each != finalizer::DISTRIBUTION)
        .collect();
    if with {
        wanted.push(finalizer::DISTRIBUTION);
    }
    let patch = json!({
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {
            "name": &**name,
            "uid": &*meta.uid,
            "resourceVersion": &*meta.resource_version,
            "finalizers": wanted,
        },
    });
    let change = Change::Hub {
        object: HubObject::Distribution(name.clone()),
        verb: Verb::Merge(patch),
    };
    Plan::one(change, why)
}

impl Fleet {
    /// True if a policy selects a distribution that no policy has claimed, or if that is not synced: then it would be propagated
    /// to members, and copies written here would be orphaned. Cost: O(candidate policies).
    fn may_be_claimed(&self, name: &Str, held: &DistributionState) -> bool {
        let policies = Watch::ClusterPolicies;
        let is_unknown =
            !self.cache.watches.is_listed(&policies) && !self.cache.watches.is_unlistable(&policies);
        let id = ResourceId {
            gvk: super::gvk(),
            namespace: "".into(),
            name: name.clone(),
        };
        is_unknown || is_selected(self, &id, &held.object.meta)
    }

    /// True if the namespaces of a place's server were listed.
    fn are_namespaces_listed(&self, place: &Place) -> bool {
        self.cache.watches.is_listed(&namespaces_of(place))
    }

    /// True if all inputs that could target a place, and the object there, are synced: the proof that a removal needs.
    fn is_distribution_known(&self, spec: &Spec, at: &DistributionServer, place: &Place) -> bool {
        let of_member = place.cluster.is_none() || self.cache.watches.is_synced(&Watch::Clusters);
        let workloads = spec.targets.workloads().is_none()
            || workload_kinds().iter().all(|gvk| {
                let templates = self.templates(gvk);
                self.cache.watches.is_synced(&templates) || self.cache.watches.is_no_such_kind(&templates)
            });
        self.cache.watches.is_synced(&Watch::Distributions)
            && self.cache.watches.is_synced(&namespaces_of(place))
            && self.cache.watches.is_synced(&at.watch())
            && of_member
            && workloads
    }

    /// True if it is known for every server that may have a copy of a distribution whether it has one: for those that it
    /// targets, and those that its status lists. Cost: O(members).
    fn is_all_known(&self, name: &Str, held: &DistributionState, spec: &Spec) -> bool {
        let may_hold = |at: &DistributionServer| match (&at.cluster, &spec.clusters) {
            (None, _) => true,
            (Some(cluster), wanted) => {
                let selected = match wanted {
                    Some(wanted) => self.is_selected(cluster, wanted),
                    // It had targets before; a member that responds will report soon.
                    None => self.answers(cluster),
                };
                held.object.reported_on(cluster) || selected
            }
        };
        self.cache.watches.is_synced(&Watch::Distributions)
            && self.cache.watches.is_synced(&Watch::Clusters)
            && self
                .distribution_servers(name)
                .iter()
                .filter(|at| may_hold(at))
                .all(|at| self.cache.watches.is_synced(&at.watch()))
    }
}

fn namespaces_of(place: &Place) -> Watch {
    match &place.cluster {
        None => Watch::Namespaces,
        Some(cluster) => Watch::MemberNamespaces(cluster.clone()),
    }
}
