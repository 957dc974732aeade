//! The desired binding: the own part from its policy, the required part from its referrers.

mod fields;

use std::collections::BTreeSet;

use entourage_api::{
    keys::{annotation, finalizer, label},
    names,
    policy::Placement,
    work::{
        DependentObjectReference, GracefulEvictionTask, ResourceBinding, ResourceBindingSpec, Suspension,
        TargetCluster,
    },
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use super::uses::{exceeds_quota, prioritize, room_use};
use crate::{
    cache::{Policy, ResourceState},
    dependencies::{self, Required, retention::retention},
    failover::{Decision, clusters_of, decide, elsewhere::tended, home, records},
    fleet::{
        Fleet, activation,
        autoscaling::{as_scaled, raised_shares},
        uses::follows,
        workload_groups::groups_of,
    },
    object::{NamespacedName, ResourceId, Str, Time},
    observation::Template,
    plan::RoomUse,
    scheduler::Outcome,
    scheduling::Own,
    scope,
    stored_binding::is_of_our_scheduler,
};
use fields::{attach, demand, describe};

/// The follow-up to the write of a binding.
#[derive(Default)]
pub(super) struct Next {
    /// The time at which the desired binding may change although nothing is observed.
    pub(super) again_at: Option<Time>,
    /// See [`crate::plan::Plan::leaves`].
    pub(super) leaves: BTreeSet<Str>,
    /// See [`crate::plan::Plan::room`].
    pub(super) room: Option<Box<RoomUse>>,
    /// See [`crate::plan::Plan::exceeds_quota`].
    pub(super) exceeds_quota: bool,
    /// The clusters whose room is to be estimated before the binding is written.
    pub(super) unestimated: BTreeSet<Str>,
    /// The clusters whose room is to be estimated before a further move is decided.
    pub(super) tried: BTreeSet<Str>,
}

/// The desired binding, and what follows its write.
pub(super) fn desired(
    fleet: &Fleet,
    id: &ResourceId,
    (resource, template): (&ResourceState, &Template),
    own: Option<Own<'_>>,
    required: &[Required],
    mut binding: ResourceBinding,
    now: Time,
) -> (ResourceBinding, Next) {
    let mut next = Next::default();
    ask(fleet, id, &mut binding.spec);
    adopt(id, (resource, template), &mut binding);
    describe(id, (resource, template), &mut binding);
    let claimed = match own {
        Some(Own::Claimed(name, policy)) => {
            next = claim(fleet, id, (resource, template), policy, &mut binding, now);
            Some((name, policy, true))
        }
        Some(Own::Held(name, policy)) => {
            next = hold(fleet, id, (resource, template), &mut binding, now);
            Some((name, policy, false))
        }
        Some(Own::Orphaned) => {
            demand(fleet, template, &mut binding.spec);
            next = evict(fleet, id, (resource, template), &mut binding, now);
            None
        }
        None => {
            if fleet.config.propagate_deps {
                attach(&dependencies::merged(fleet, id), &mut binding.spec);
            }
            None
        }
    };
    let raised = raised_shares(fleet, id, (resource, template), &binding.spec);
    let annotations = binding.metadata.annotations.get_or_insert_default();
    match serde_json::to_string(&raised) {
        Ok(text) if !raised.is_empty() => annotations.insert(annotation::RAISED_SHARES.into(), text),
        _ => annotations.remove(annotation::RAISED_SHARES),
    };
    binding.spec.required_by = required.iter().map(|each| each.snapshot.clone()).collect();
    mark(fleet, (id, resource, template), claimed, required, &mut binding);
    (binding, next)
}

/// A binding that is created again keeps the fields of the previous one that have no other source.
pub(super) fn resume(
    (resource, template): (&ResourceState, &Template),
    own: Option<Own<'_>>,
    fresh: &mut ResourceBinding,
) {
    let (Some(own), Some(vanished)) = (own, &resource.vanished) else {
        return;
    };
    if matches!(own, Own::Orphaned | Own::Held(..)) {
        fresh.spec = vanished.object.spec.clone();
    }
    if vanished.owner().is_none_or(|owner| *owner == *template.meta.uid) {
        records::carry_over(&vanished.object, fresh);
    }
}

/// A WorkloadRebalancer triggers rescheduling: an earlier trigger never replaces a later one.
fn ask(fleet: &Fleet, id: &ResourceId, spec: &mut ResourceBindingSpec) {
    let Some(asked) = fleet.memory.rebalancers.asked_at(id) else {
        return;
    };
    let held = spec.reschedule_triggered_at.as_ref().map(Time::from_k8s);
    if held.is_none_or(|held| held < asked) {
        spec.reschedule_triggered_at = Some(asked.to_k8s());
    }
}

/// A binding that was orphaned is adopted by the new template of that name.
fn adopt(id: &ResourceId, (resource, template): (&ResourceState, &Template), binding: &mut ResourceBinding) {
    let stored = resource.binding.as_ref();
    if stored.is_some_and(|stored| stored.is_adoptable_by(template)) {
        let owners = binding.metadata.owner_references.get_or_insert_default();
        owners.push(owner(id, template));
    }
}

fn owner(id: &ResourceId, template: &Template) -> OwnerReference {
    OwnerReference {
        api_version: id.gvk.api_version(),
        kind: id.gvk.kind.to_string(),
        name: id.name.to_string(),
        uid: template.meta.uid.to_string(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// Fills in the own part by the policy (karmada reference 1.2).
fn claim(
    fleet: &Fleet,
    id: &ResourceId,
    (resource, template): (&ResourceState, &Template),
    policy: &Policy,
    binding: &mut ResourceBinding,
    now: Time,
) -> Next {
    let from = &policy.object.spec;
    let mut vanished = vanished(fleet, id, resource, template);
    for object in vanished.iter_mut().chain([&mut *binding]) {
        records::copy_settings(&policy.meta, object);
    }
    let spec = &mut binding.spec;
    if let Some(vanished) = &vanished {
        // Created again: the scheduling result is kept.
        spec.clusters.clone_from(&vanished.spec.clusters);
        spec.graceful_eviction_tasks
            .clone_from(&vanished.spec.graceful_eviction_tasks);
        spec.suspension.clone_from(&vanished.spec.suspension);
    }
    spec.propagate_deps = follows(from);
    spec.scheduler_name.clone_from(&from.scheduler_name);
    spec.failover.clone_from(&from.failover);
    spec.conflict_resolution = from.conflict_resolution;
    spec.preserve_resources_on_deletion = from.preserve_resources_on_deletion;
    let scheduling = spec.suspension.as_ref().and_then(|held| held.scheduling);
    spec.suspension = match (&from.suspension, scheduling) {
        (None, None) => None,
        (dispatch, scheduling) => Some(Suspension {
            dispatch: dispatch.clone().unwrap_or_default(),
            scheduling,
        }),
    };
    demand(fleet, template, spec);
    spec.placement = Some(from.placement.clone());
    spec.workload_affinity_groups = groups_of(&from.placement, &template.meta);
    prioritize(fleet, from, spec);
    let held = vanished.as_ref().unwrap_or(binding);
    let behaviour = (&from.placement, from.failover.as_ref());
    let decision = decide(fleet, id, (resource, template), behaviour, held, now);
    if decision.is_none() {
        binding.spec.graceful_eviction_tasks = tended(fleet, id, resource, held, &from.placement, now);
    }
    let is_chosen = is_chosen(decision.as_ref());
    let next = place(fleet, decision, &from.placement, binding);
    if !is_chosen {
        follow(fleet, id, (resource, template), &from.placement, binding);
    }
    next
}

/// True if the scheduler has chosen the clusters.
fn is_chosen(decision: Option<&Decision>) -> bool {
    decision.is_some_and(|decision| matches!(decision.outcome, Outcome::Placed { .. }))
}

/// The shares of clusters that stay, because none are chosen, follow where members decide how many replicas each has. Not those that
/// another scheduler writes. Cost: that of [`as_scaled`].
fn follow(
    fleet: &Fleet,
    id: &ResourceId,
    of: (&ResourceState, &Template),
    placement: &Placement,
    binding: &mut ResourceBinding,
) {
    if is_of_our_scheduler(&binding.spec)
        && let Some((_, scaled)) = as_scaled(fleet, id, of, placement, binding, None)
    {
        binding.spec.clusters = scaled.spec.clusters;
    }
}

/// Keeps the fields of a lazy policy as they were last applied; clusters are scheduled among the current ones.
fn hold(
    fleet: &Fleet,
    id: &ResourceId,
    (resource, template): (&ResourceState, &Template),
    binding: &mut ResourceBinding,
    now: Time,
) -> Next {
    demand(fleet, template, &mut binding.spec);
    let Some(placement) = binding.spec.placement.clone() else {
        return Next::default();
    };
    binding.spec.workload_affinity_groups = groups_of(&placement, &template.meta);
    let vanished = vanished(fleet, id, resource, template);
    let held = vanished.as_ref().unwrap_or(binding);
    let behaviour = (&placement, held.spec.failover.as_ref());
    let decision = decide(fleet, id, (resource, template), behaviour, held, now);
    if decision.is_none() {
        binding.spec.graceful_eviction_tasks = tended(fleet, id, resource, held, &placement, now);
    }
    let is_chosen = is_chosen(decision.as_ref());
    let next = place(fleet, decision, &placement, binding);
    if !is_chosen {
        follow(fleet, id, (resource, template), &placement, binding);
    }
    next
}

/// A binding whose policy is gone is not rescheduled, but it is evicted.
fn evict(
    fleet: &Fleet,
    id: &ResourceId,
    (resource, template): (&ResourceState, &Template),
    binding: &mut ResourceBinding,
    now: Time,
) -> Next {
    let Some(placement) = binding.spec.placement.clone() else {
        return Next::default();
    };
    let behaviour = (&placement, binding.spec.failover.as_ref());
    let Some(decision) = decide(fleet, id, (resource, template), behaviour, binding, now) else {
        binding.spec.graceful_eviction_tasks = tended(fleet, id, resource, binding, &placement, now);
        follow(fleet, id, (resource, template), &placement, binding);
        return Next::default();
    };
    let spec = &binding.spec;
    let stored = &spec.graceful_eviction_tasks;
    let begins = decision.tasks.iter().any(|task| {
        let is_of_it = |each: &GracefulEvictionTask| each.from_cluster == task.from_cluster;
        let is_scheduled = |target: &TargetCluster| target.name == task.from_cluster;
        !stored.iter().any(is_of_it) || spec.clusters.iter().any(is_scheduled)
    });
    let is_left = |target: &TargetCluster| {
        let is_placed = TargetCluster::find(&spec.clusters, &target.name).is_some();
        let is_home = || home::is_home(binding, &placement, &target.name, now);
        stored.iter().any(|task| task.from_cluster == target.name) || (!is_placed && is_home())
    };
    let returns = match &decision.outcome {
        Outcome::Placed { clusters, .. } => clusters.iter().any(is_left),
        Outcome::Failed { .. } => false,
    };
    if begins || returns {
        return place(fleet, Some(decision), &placement, binding);
    }
    follow(fleet, id, (resource, template), &placement, binding);
    binding.spec.graceful_eviction_tasks = decision.tasks;
    decision.records.store_failed(binding);
    Next {
        again_at: decision.again_at,
        leaves: decision.leaves,
        tried: decision.tried,
        ..Next::default()
    }
}

/// The earlier binding of this template that a user deleted, or `None`: its scheduling result is kept when it is created again.
pub(super) fn vanished(
    fleet: &Fleet,
    id: &ResourceId,
    resource: &ResourceState,
    template: &Template,
) -> Option<ResourceBinding> {
    let vanished = resource
        .vanished
        .as_ref()
        .filter(|_| resource.binding.is_none())?;
    let owner = vanished.owner();
    if owner.is_some_and(|owner| *owner != *template.meta.uid) {
        return None;
    }
    let mut object = (*vanished.object).clone();
    ask(fleet, id, &mut object.spec);
    Some(object)
}

/// Applies a scheduling decision. Without one the stored result is kept: the clusters, and the placement they were scheduled by.
/// If no cluster fits, it leaves only the clusters that the placement no longer selects.
fn place(
    fleet: &Fleet,
    decision: Option<Decision>,
    placement: &Placement,
    binding: &mut ResourceBinding,
) -> Next {
    let Some(decision) = decision else {
        return Next::default();
    };
    binding.spec.graceful_eviction_tasks = decision.tasks;
    let exceeds_quota = exceeds_quota(&decision.outcome);
    let room = room_use(fleet, &decision.outcome, placement, binding);
    decision.records.store(binding);
    binding.spec.clusters = clusters_of(&decision.outcome, &binding.spec.clusters);
    if let Outcome::Placed { .. } = decision.outcome {
        binding.metadata.annotations.get_or_insert_default().insert(
            annotation::APPLIED_PLACEMENT.into(),
            serde_json::to_string(placement).unwrap_or_default(),
        );
    }
    Next {
        again_at: decision.again_at,
        leaves: decision.leaves,
        room,
        exceeds_quota,
        unestimated: decision.unestimated,
        tried: decision.tried,
    }
}

/// Sets the labels, annotations and finalizers of this control plane; those of other writers are kept. `claimed`: the policy,
/// and true if its current spec applies.
fn mark(
    fleet: &Fleet,
    (id, resource, template): (&ResourceId, &ResourceState, &Template),
    claimed: Option<(&NamespacedName, &Policy, bool)>,
    required: &[Required],
    binding: &mut ResourceBinding,
) {
    let kind = scope::binding(&id.namespace);
    let following =
        fleet.config.propagate_deps && binding.spec.placement.is_some() && binding.spec.propagate_deps;
    let labels = binding.metadata.labels.get_or_insert_default();
    labels.retain(|key, _| {
        !key.starts_with(label::DEPENDED_BY_PREFIX) && !scope::CLAIM_LABELS.contains(&key.as_str())
    });
    for Required {
        snapshot,
        permanent_id,
    } in required
    {
        labels.insert(
            names::depended_by_key(&snapshot.namespace, &snapshot.name),
            permanent_id.to_string(),
        );
    }
    if let Some(permanent_id) = &resource.permanent_id {
        labels
            .entry(kind.id_label.into())
            .or_insert_with(|| permanent_id.to_string());
    }
    let left_out = dependencies::left_out(fleet, id, required.len());
    let annotations = binding.metadata.annotations.get_or_insert_default();
    for key in [
        annotation::DEPENDENCIES,
        annotation::REQUIRED_BY_LEFT_OUT,
        annotation::ACTIVATED,
    ]
    .iter()
    .chain(scope::CLAIM_ANNOTATIONS)
    {
        annotations.remove(*key);
    }
    if binding.spec.placement.is_none() {
        annotations.remove(annotation::APPLIED_PLACEMENT);
        records::forget(annotations);
    }
    if left_out > 0 {
        annotations.insert(annotation::REQUIRED_BY_LEFT_OUT.into(), left_out.to_string());
    }
    if let Some((name, policy, applied)) = claimed {
        let permanent_id = policy
            .meta
            .label(scope::policy(name).id_label)
            .unwrap_or_default();
        let claim = scope::claim(name, permanent_id);
        let owned = |(key, value): (&str, Str)| (key.to_owned(), value.to_string());
        labels.extend(claim.0.into_iter().map(owned));
        annotations.extend(claim.1.into_iter().map(owned));
        if let Some(content) = activation::record(policy, resource, &template.meta, applied) {
            annotations.insert(annotation::ACTIVATED.into(), content);
        }
    }
    // If the interpretation of a dependency fails one day, its referrers' dependencies must not shrink: so the dependencies of a
    // dependency are stored, too.
    let remembered = !required.is_empty();
    let listed = if following || remembered {
        dependencies_of(template)
    } else {
        Vec::new()
    };
    if !listed.is_empty() {
        annotations.insert(
            annotation::DEPENDENCIES.into(),
            serde_json::to_string(&listed).unwrap_or_default(),
        );
    }
    let policy = claimed.map(|(_, policy, _)| &policy.meta);
    let stored = annotations.remove(annotation::VOLUME_RETENTION);
    if let Some(wish) = retention(fleet, (id, resource), &template.meta, policy, stored.as_deref()) {
        annotations.insert(annotation::VOLUME_RETENTION.into(), wish.to_string());
    }
    if annotations.is_empty() {
        binding.metadata.annotations = None;
    }
    let finalizers = binding.metadata.finalizers.get_or_insert_default();
    let mut keep = |name: &str, wanted: bool| {
        let there = finalizers.iter().any(|each| each == name);
        if wanted && !there {
            finalizers.push(name.into());
        } else if !wanted && there {
            finalizers.retain(|each| each != name);
        }
    };
    keep(kind.finalizer, true);
    keep(finalizer::DEPENDENCIES, following);
}

/// The dependencies of a template: by name, then by label.
fn dependencies_of(template: &Template) -> Vec<DependentObjectReference> {
    let named = template
        .references
        .iter()
        .map(|reference| DependentObjectReference {
            api_version: reference.id.gvk.api_version(),
            kind: reference.id.gvk.kind.to_string(),
            namespace: reference.id.namespace.to_string(),
            name: reference.id.name.to_string(),
            label_selector: None,
        });
    let selected = template
        .selections
        .iter()
        .map(|selection| DependentObjectReference {
            api_version: selection.gvk.api_version(),
            kind: selection.gvk.kind.to_string(),
            namespace: selection.namespace.to_string(),
            name: String::new(),
            label_selector: Some(selection.selector.clone()),
        });
    named.chain(selected).collect()
}

/// Sets name, owner and permanent id of a binding that is created now.
pub(super) fn identity(
    fleet: &Fleet,
    id: &ResourceId,
    resource: &ResourceState,
    template: &Template,
) -> ObjectMeta {
    let kind = scope::binding(&id.namespace);
    let permanent_id = resource.permanent_id.as_ref().map_or_else(
        || names::permanent_id(&[&fleet.config.hub, &template.meta.uid, kind.kind]),
        ToString::to_string,
    );
    ObjectMeta {
        name: Some(fleet.binding_name_of(id).to_string()),
        namespace: (!id.namespace.is_empty()).then(|| id.namespace.to_string()),
        labels: Some([(kind.id_label.into(), permanent_id)].into()),
        owner_references: Some(vec![owner(id, template)]),
        ..ObjectMeta::default()
    }
}
