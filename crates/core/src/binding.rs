//! The one planner of a binding's metadata and spec: it merges detection, scheduling and `requiredBy` into one write.
//!
//! A binding has up to two parts. Its *own* part comes from the policy that claims the template; when that policy is gone the
//! part stays as it was last stored, as users of Karmada expect. Its *required* part comes from the dependents of the template.
//! Each part is computed from its source every time, and each ends without the other.

mod desired;
mod estimates;
mod uses;
mod write;

use std::collections::BTreeSet;

use desired::{desired, identity, resume, vanished};
use entourage_api::{
    policy::ReplicaSchedulingType,
    work::{AggregatedStatusItem, ResourceBinding, ResourceBindingSpec},
};
use write::{create, delete, disown, evicted, finish, note_former, release, write};

use crate::{
    cache::{Binding, Policy, ResourceState},
    dependencies::{self, Required},
    descheduling,
    fleet::{
        Fleet, Priority,
        claims::{claimed_by, is_claim_over, is_selected},
        needs::grace,
        wanted::is_wanted,
    },
    interpreter::{
        operations::Operation,
        question::{InterpretError, Until},
    },
    object::{ResourceId, Str, Time},
    observation::Template,
    plan::{Change, Plan, SyncRequirement, Verb},
    scheduler,
    scheduling::{Own, own_part},
    stored_binding::to_value,
};

/// The delay, in milliseconds, for which changes of `requiredBy` that affect no copy are collected, so that many referrers cost
/// few writes.
const VIEW_DELAY: i64 = 1_000;

/// Plans the binding of a template. Cost: O(clusters + referrers × their clusters).
#[must_use]
pub fn plan(fleet: &Fleet, id: &ResourceId, now: Time) -> Plan {
    let Some(resource) = fleet.resource(id) else {
        return Plan::nothing();
    };
    if !fleet.is_kind_listed(&id.gvk) {
        return Plan::wait_for(SyncRequirement::Kind(id.gvk.clone()), "the hub is not synced yet");
    }
    if resource
        .binding
        .as_ref()
        .is_some_and(|binding| binding.is_kept_by_others())
    {
        return Plan::wait("another component keeps this binding");
    }
    let plan = planned(fleet, id, resource, now);
    match &resource.binding {
        // The requirement may take long to be met, and a policy that is being deleted must not wait for it.
        Some(binding) if plan.changes.is_empty() && binding.meta.deleting.is_some() => {
            match is_claim_over(fleet, binding.claimant()) {
                Some(true) => disown(binding),
                Some(false) => plan,
                None => Plan {
                    awaits: plan.awaits.or_else(|| Some(Box::new(SyncRequirement::Base))),
                    ..plan
                },
            }
        }
        _ => plan,
    }
}

fn planned(fleet: &Fleet, id: &ResourceId, resource: &ResourceState, now: Time) -> Plan {
    match (&resource.template, &resource.binding) {
        (None, None) if resource.vanished.is_some() && !resource.is_gone() => Plan::one(
            Change::GetTemplate(id.clone()),
            "its binding vanished: whether the template is gone must be known",
        ),
        (None, None) => Plan::nothing(),
        (_, None) if resource.is_gone() => Plan::nothing(),
        (None, Some(binding)) => template_gone(fleet, id, resource, binding, now),
        (Some(_), Some(binding)) if resource.is_gone() => template_gone(fleet, id, resource, binding, now),
        (Some(template), binding) if template.meta.deleting.is_some() => match binding {
            Some(binding) if resource.is_orphaning() && binding.meta.deleting.is_none() => {
                keep_orphaned(binding)
            }
            Some(binding) => match is_claim_over(fleet, binding.claimant()) {
                Some(true) => disown(binding),
                Some(false) => Plan::wait("the template is being deleted"),
                None => Plan::wait_for(
                    SyncRequirement::Base,
                    "policies are not synced: its policy may still exist",
                ),
            },
            None => Plan::wait("the template is being deleted"),
        },
        (Some(template), binding) => template_here(fleet, id, (resource, template, binding.as_ref()), now),
    }
}

fn template_gone(
    fleet: &Fleet,
    id: &ResourceId,
    resource: &ResourceState,
    binding: &Binding,
    now: Time,
) -> Plan {
    if !resource.is_gone() {
        return Plan::one(
            Change::GetTemplate(id.clone()),
            "whether the template is gone must be known for certain",
        );
    }
    let Some(deleted) = binding.meta.deleting else {
        return if resource.is_orphaned() {
            orphaned(fleet, binding)
        } else if resource.is_orphaning() {
            keep_orphaned(binding)
        } else {
            delete(binding, "the template was deleted")
        };
    };
    if let Some(time) = grace(fleet, id, deleted, now) {
        return Plan::wait_until(time, "it was deleted while a workload depends on it");
    }
    finish(fleet, id, resource, binding)
}

/// Removes the owner reference from the binding of a template that is deleted with `--cascade=orphan`, as a garbage collector
/// that knows the template would: from then on the binding itself shows that it is orphaned.
fn keep_orphaned(binding: &Binding) -> Plan {
    let mut object = (*binding.object).clone();
    if let Some(owners) = &mut object.metadata.owner_references {
        owners.retain(|owner| owner.controller != Some(true));
    }
    write(
        binding,
        Verb::Replace(to_value(&object)),
        "its template is deleted with --cascade=orphan",
    )
}

/// The template was deleted with `--cascade=orphan`: the binding stays as it is, except that the claim of a deleted policy is
/// removed.
fn orphaned(fleet: &Fleet, binding: &Binding) -> Plan {
    match is_claim_over(fleet, binding.claimant()) {
        Some(true) => disown(binding),
        Some(false) => Plan::wait("its template was deleted with --cascade=orphan"),
        None => Plan::wait_for(
            SyncRequirement::Base,
            "policies are not synced: its policy may still exist",
        ),
    }
}

fn template_here(
    fleet: &Fleet,
    id: &ResourceId,
    (resource, template, binding): (&ResourceState, &Template, Option<&Binding>),
    now: Time,
) -> Plan {
    let own = own_part(
        fleet,
        id,
        (resource, template),
        binding.or(resource.vanished.as_deref()),
    );
    let required = dependencies::snapshots(fleet, id, resource);
    if own.is_none() && required.is_empty() {
        return match binding {
            None if resource.vanished.is_some()
                && resource.copies.values().any(|state| state.live.is_some()) =>
            {
                let fresh = ResourceBinding {
                    metadata: identity(fleet, id, resource, template),
                    ..Default::default()
                };
                let (mut wanted, _) = desired(fleet, id, (resource, template), None, &[], fresh, now);
                note_former(fleet, id, resource, None, &mut wanted);
                create(fleet, id, &wanted)
            }
            None => Plan::nothing(),
            Some(binding) if binding.meta.deleting.is_some() => finish(fleet, id, resource, binding),
            Some(_) if !fleet.is_removal_safe(&id.gvk) => Plan::not_proven(&id.gvk),
            Some(binding) => delete(binding, "no longer required"),
        };
    }
    if let Some(plan) = failed_operation(fleet, id, (resource, template), own, !required.is_empty()) {
        return plan;
    }
    match binding {
        // Either a user deleted it, or the garbage collector did together with its template, whose deletion is reported later
        // by another watch. Only a GET on the hub can show which.
        Some(binding)
            if binding.meta.deleting.is_some() && resource.confirmed.as_ref() != Some(&binding.meta.uid) =>
        {
            Plan::one(
                Change::GetTemplate(id.clone()),
                "its binding ends: whether the template is still there must be known for certain",
            )
        }
        // It was deleted by a user, or with an earlier template of this name, while it is required: no copy is changed, and it
        // is created again with the same permanent id.
        Some(binding) if binding.meta.deleting.is_some() => {
            // Copies that are no longer required are removed first, because no record of them would be left. But a copy that an
            // orphaned copy depends on may never be removed.
            let unwanted = |cluster: &&Str| {
                fleet.may_stand(id, cluster)
                    && !is_wanted(fleet, id, resource, own.is_some(), cluster)
                    && dependencies::held_by_left(fleet, id, resource, cluster).is_none()
            };
            match resource.copies.keys().find(unwanted) {
                Some(cluster) => Plan::wait(format!(
                    "a copy that is no longer required may still exist on \
                    {cluster}"
                )),
                None => release(binding, "it is still wanted"),
            }
        }
        Some(binding) if binding.owner().is_some_and(|owner| *owner != *template.meta.uid) => {
            delete(binding, "it belongs to a former template of this name")
        }
        // The policy is about to be synced: the binding is written once.
        Some(stored)
            if stored.is_adoptable_by(template)
                && claimed_by(fleet, id, &template.meta).is_none()
                && is_selected(fleet, id, &template.meta) =>
        {
            Plan::wait("a policy is about to claim its new template")
        }
        Some(stored) => update(fleet, id, (resource, template, stored), own, &required, now),
        None if matches!(own, Some(Own::Claimed(_, policy)) if is_pending(fleet, policy)) => Plan::wait_for(
            SyncRequirement::Priorities,
            "the PriorityClass of its policy is not known yet",
        ),
        None => {
            let mut fresh = ResourceBinding {
                metadata: identity(fleet, id, resource, template),
                ..Default::default()
            };
            resume((resource, template), own, &mut fresh);
            let (mut wanted, next) = desired(fleet, id, (resource, template), own, &required, fresh, now);
            // One that is made again keeps its clusters.
            let kept = vanished(fleet, id, resource, template).map(|vanished| vanished.spec.clusters);
            let kept = kept.unwrap_or_default();
            if let Some(plan) = estimates::wait(fleet, id, template, (&next, &wanted), &kept, now) {
                return plan;
            }
            note_former(fleet, id, resource, None, &mut wanted);
            let plan = Plan {
                leaves: Some(next.leaves),
                room: next.room,
                exceeds_quota: next.exceeds_quota,
                ..create(fleet, id, &wanted)
            };
            estimates::ask(fleet, (id, template), &next.tried, plan, now)
        }
    }
}

/// True if the policy asks for a priority that is not known yet: the binding is created with it.
fn is_pending(fleet: &Fleet, policy: &Policy) -> bool {
    fleet.priority_by(&policy.object.spec) == Some(Priority::Pending)
}

fn update(
    fleet: &Fleet,
    id: &ResourceId,
    (resource, template, stored): (&ResourceState, &Template, &Binding),
    own: Option<Own<'_>>,
    required: &[Required],
    now: Time,
) -> Plan {
    let before = stored.object.as_ref().clone();
    let (mut wanted, next) = desired(fleet, id, (resource, template), own, required, before, now);
    let held = &stored.object.spec.clusters;
    if let Some(plan) = estimates::wait(fleet, id, template, (&next, &wanted), held, now) {
        return plan;
    }
    note_former(fleet, id, resource, Some(stored), &mut wanted);
    let plan = replace(
        fleet,
        id,
        (resource, template, stored),
        &wanted,
        next.again_at,
        now,
    );
    let plan = Plan {
        leaves: Some(next.leaves),
        room: next.room,
        exceeds_quota: next.exceeds_quota,
        ..plan
    };
    estimates::ask(fleet, (id, template), &next.tried, plan, now)
}

/// Replaces a binding by its desired form, as soon as no record is lost by it.
fn replace(
    fleet: &Fleet,
    id: &ResourceId,
    (resource, template, stored): (&ResourceState, &Template, &Binding),
    wanted: &ResourceBinding,
    again_at: Option<Time>,
    now: Time,
) -> Plan {
    let before: &ResourceBinding = &stored.object;
    if wanted.metadata == before.metadata && wanted.spec == before.spec {
        return Plan {
            again_at,
            ..Plan::nothing()
        };
    }
    let (old, new) = (places(&before.spec), places(&wanted.spec));
    let leaving: Vec<&Str> = old.iter().filter(|place| !new.contains(*place)).collect();
    let forgets = before
        .spec
        .required_by
        .iter()
        .any(|stored| !wanted.spec.required_by.contains(stored));
    if (forgets || !leaving.is_empty()) && !fleet.is_removal_safe(&id.gvk) {
        return Plan::not_proven(&id.gvk);
    }
    // The stored binding names the policy that requests preservation: the copy is released before that is overwritten.
    let kept = |place: &&&Str| {
        let live = resource
            .copies
            .get(place)
            .is_some_and(|state| state.live.is_some());
        live && dependencies::referrers_preserve(fleet, resource, place)
    };
    if let Some(place) = leaving.iter().find(kept) {
        return Plan::wait(format!("the copy on {place} is released first"));
    }
    // The durable record of the clusters with a copy must never lose one: its status entry is stored first (architecture 2.3).
    let status = before.status.as_ref();
    let recorded = |place: &Str| {
        status.is_some_and(|status| AggregatedStatusItem::find(&status.aggregated_status, place).is_some())
    };
    if let Some(place) = leaving
        .iter()
        .find(|place| fleet.may_exist(id, place) && !recorded(place))
    {
        return Plan::wait(format!("the status does not record {place} yet"));
    }
    if only_view_differs(before, wanted) {
        let pause = if old == new {
            VIEW_DELAY
        } else {
            fleet.config.coalesce
        };
        let until = resource.spec_written.map_or(now, |time| time.plus(pause));
        if now < until {
            return Plan::wait_until(until, "collecting referrers");
        }
    }
    let mut plan = write(stored, Verb::Replace(to_value(wanted)), "the binding differs");
    plan.changes.extend(evicted(id, template, stored, &wanted.spec));
    let of = (resource, template, stored);
    plan.changes
        .extend(descheduling::events(fleet, id, of, &wanted.spec, now));
    plan.leaving = leaving.into_iter().cloned().collect();
    plan
}

/// True if only fields that referrers determine differ: `requiredBy` and the labels.
fn only_view_differs(before: &ResourceBinding, wanted: &ResourceBinding) -> bool {
    let mut same = wanted.spec.clone();
    same.required_by.clone_from(&before.spec.required_by);
    same == before.spec && before.metadata.finalizers == wanted.metadata.finalizers
}

fn places(spec: &ResourceBindingSpec) -> BTreeSet<Str> {
    named(spec).map(Str::from).collect()
}

/// The clusters that a spec names.
fn named(spec: &ResourceBindingSpec) -> impl Iterator<Item = &str> {
    let evicted = spec.graceful_eviction_tasks.iter();
    spec.clusters
        .iter()
        .chain(spec.required_by.iter().flat_map(|each| &each.clusters))
        .map(|target| target.name.as_str())
        .chain(evicted.map(|task| task.from_cluster.as_str()))
}

// --- the own part

/// Waits for failed interpretations of the template, where their results are in use.
fn failed_operation(
    fleet: &Fleet,
    id: &ResourceId,
    (resource, template): (&ResourceState, &Template),
    own: Option<Own<'_>>,
    is_dependency: bool,
) -> Option<Plan> {
    let first = resource.last_binding();
    let (placement, follows) = match own? {
        Own::Claimed(_, policy) => (
            Some(&policy.object.spec.placement),
            fleet.will_follow(id, resource),
        ),
        Own::Held(..) | Own::Orphaned => {
            let placement = first.and_then(|binding| binding.object.spec.placement.as_ref());
            (placement, fleet.will_follow(id, resource))
        }
    };
    // Scheduled without its replicas it would run all of them on every cluster.
    let divides = placement
        .is_some_and(|placement| placement.replica_scheduling_type() == ReplicaSchedulingType::Divided);
    if divides
        && template.replicas.is_none()
        && let Some(failed_operation) = template.lacks(Operation::Replicas)
    {
        return Some(hold(
            failed_operation,
            &format!("{id} is not scheduled, because its replicas are to be divided"),
        ));
    }
    // Scheduled without its components it would get a cluster whatever its room, and stay there.
    let is_one_cluster = placement.is_some_and(scheduler::is_one_cluster);
    let is_placed = first.is_some_and(|binding| !binding.object.spec.clusters.is_empty());
    if fleet.config.multiple_pod_templates
        && is_one_cluster
        && !is_placed
        && template.replicas.is_none()
        && template.components.is_none()
        && let Some(failed_operation) = template
            .lacks(Operation::Replicas)
            .or_else(|| template.lacks(Operation::Components))
    {
        return Some(hold(
            failed_operation,
            &format!("{id} is not scheduled, because its components are scheduled as one set, by their room"),
        ));
    }
    // The dependencies of a workload are propagated with it from the start, if their interpretation must succeed.
    if first.is_none()
        && (follows || is_dependency)
        && let Some(failed_operation) = template.lacks(Operation::References)
        && matches!(failed_operation.until, Until::Answered | Until::Used)
    {
        return Some(hold(
            failed_operation,
            &format!("{id} is not scheduled, because its dependencies are to be propagated"),
        ));
    }
    None
}

/// Waits for an interpretation; a failure is reported.
fn hold(failed_operation: &InterpretError, waits: &str) -> Plan {
    if failed_operation.is_unasked() {
        return Plan::wait(format!("{} is asked now", failed_operation.word()));
    }
    Plan::one(
        Change::Refuse(format!("{}; {waits}", failed_operation.failure())),
        "an answer that it needs was never given",
    )
}
