//! The planner of one copy: deliver, keep, release, or delete it.
//!
//! A removal needs proof (architecture 2, I1–I3): the hub and the member are synced, the stored binding no longer schedules the
//! template to this cluster, no object requires the copy, no dependent is left there, and the copy is managed by this hub.

use entourage_api::keys::{ON_UNJOIN_REMOVE, annotation};
use serde_json::json;

use super::{awaited::awaited, marks, source_version, volumes, withheld};
use crate::{
    cache::{Attempt, Binding, CopyState, Member, ResourceState},
    dependencies,
    eviction::{self, data, task},
    fleet::{
        Fleet,
        current::is_current,
        needs::grace,
        render_specs::render_spec,
        suspension::is_suspended,
        wanted::{is_committed, is_former, wants},
    },
    governor,
    interpreter::{self, operations::Operation},
    object::{ResourceId, Str, Time},
    observation::Template,
    plan::{Change, Plan, Preconditions, RemovalMode, SyncRequirement},
    stored_binding::{eviction_from, is_held_back_from},
};

/// Plans one (template, member). Cost: O(referrers + references), usually O(1).
#[must_use]
pub fn plan(fleet: &Fleet, id: &ResourceId, cluster: &Str, now: Time) -> Plan {
    let (Some(resource), Some(member)) = (fleet.resource(id), fleet.cache.members.get(cluster)) else {
        return Plan::nothing();
    };
    let none = CopyState::default();
    let state = resource.copies.get(cluster).unwrap_or(&none);
    if state.in_flight {
        return Plan::wait("a write is under way");
    }
    if !fleet.is_kind_listed(&id.gvk) {
        return Plan::wait_for(SyncRequirement::Kind(id.gvk.clone()), "the hub is not synced yet");
    }
    if !fleet.copies_known(cluster, &id.gvk) {
        return Plan::wait(format!("unknown state of cluster {cluster}"));
    }
    let plan = known(fleet, id, cluster, (resource, member, state), now);
    let Some(pending) = state.pending.as_ref().filter(|_| plan.changes.is_empty()) else {
        return plan;
    };
    // A delivery that is retried reports it, too: no other request is sent before.
    let problem = state.problem.as_ref();
    let paused = problem.filter(|problem| problem.kind.is_passing() && now < problem.retry_at);
    let due = paused.map(|problem| problem.retry_at).or_else(|| pending.due());
    look(id, cluster, (plan, due), now)
}

/// The hub and the member are synced for this object.
fn known(
    fleet: &Fleet,
    id: &ResourceId,
    cluster: &Str,
    (resource, member, state): (&ResourceState, &Member, &CopyState),
    now: Time,
) -> Plan {
    if member.meta.deleting.is_some() {
        let stands = !state.is_absent();
        if stands && !fleet.is_base_synced() {
            return Plan::wait_for(
                SyncRequirement::Base,
                "Clusters are not synced: the cluster may no longer be deleted",
            );
        }
        let remove = member.meta.annotation(annotation::ON_UNJOIN) == Some(ON_UNJOIN_REMOVE);
        let mode = if remove {
            RemovalMode::Delete
        } else {
            RemovalMode::Release
        };
        let ended = (resource, state, true);
        return end_unless_retained(fleet, id, cluster, ended, mode, now, "the cluster leaves");
    }
    match &resource.template {
        Some(_) if resource.is_gone() => template_gone(fleet, id, cluster, (resource, state), now),
        Some(template) if template.meta.deleting.is_some() => Plan::wait("the template is being deleted"),
        Some(template) => match &resource.binding {
            Some(binding) => standing(fleet, id, cluster, (resource, template, binding, state), now),
            None => Plan::wait("there is no binding"),
        },
        None => template_gone(fleet, id, cluster, (resource, state), now),
    }
}

/// The template and its binding exist.
fn standing(
    fleet: &Fleet,
    id: &ResourceId,
    cluster: &Str,
    (resource, template, binding, state): (&ResourceState, &Template, &Binding, &CopyState),
    now: Time,
) -> Plan {
    let of = (resource, template, binding, state);
    if let Some(plan) = withheld::plan(fleet, id, cluster, of, now) {
        return plan;
    }
    let ending = binding.meta.deleting.is_some();
    if wants(fleet, id, resource, cluster) {
        // A binding that is being deleted while it is required, or belongs to an earlier template of this name, is created
        // again: until then no copy is changed.
        if ending
            || is_former(binding, template)
            || binding.is_adoptable_by(template)
            || !is_committed(binding, cluster)
        {
            return Plan::wait("the binding does not say so yet");
        }
        return deliver(fleet, id, cluster, of, now);
    }
    if state.live.is_none() {
        return Plan::nothing();
    }
    if let Some(task) = eviction_from(&binding.object.spec, cluster)
        && !is_former(binding, template)
        && let Err((why, until)) = task::may_delete(fleet, id, (resource, binding), task, now)
    {
        return until.map_or_else(|| Plan::wait(why.clone()), |until| Plan::wait_until(until, &*why));
    }
    // While delivery is suspended the copy stays: it is not removed here before it may be delivered elsewhere.
    if !ending && is_held_back_from(&binding.object.spec, cluster) {
        return Plan::wait("delivery is suspended, so nothing is moved");
    }
    // A user deleted the template that the copy was made from.
    let keeps = if is_former(binding, template) {
        dependencies::preserves(fleet, resource, cluster)
    } else {
        dependencies::referrers_preserve(fleet, resource, cluster)
    };
    // A copy that is to be preserved is released while the binding still records who requested that.
    if is_committed(binding, cluster) && !ending && !keeps {
        return Plan::wait("the binding still says that it is wanted");
    }
    if !fleet.is_removal_safe(&id.gvk) {
        return Plan::not_proven(&id.gvk);
    }
    if let Some(holder) = dependencies::held_by(fleet, id, resource, cluster) {
        return Plan::wait(format!("{holder} still exists there"));
    }
    if let Some(gvk) = dependencies::unheard(fleet, id, resource, cluster) {
        let why = format!(
            "unknown state of {cluster}: a {} that depends on it may exist there",
            gvk.kind
        );
        return Plan::wait_for(SyncRequirement::Copies(cluster.clone(), gvk), why);
    }
    // Not for a copy that a policy scheduled: its template was rescheduled, and that never leaves a copy behind.
    let mode = if keeps {
        RemovalMode::Release
    } else {
        RemovalMode::Delete
    };
    let ended = (resource, state, state.explained);
    end_unless_retained(
        fleet,
        id,
        cluster,
        ended,
        mode,
        now,
        &format!("no longer scheduled to {cluster}"),
    )
}

/// The template is gone from the hub, or seems to be.
fn template_gone(
    fleet: &Fleet,
    id: &ResourceId,
    cluster: &Str,
    (resource, state): (&ResourceState, &CopyState),
    now: Time,
) -> Plan {
    let deleted = match (&resource.binding, &resource.vanished) {
        (Some(binding), _) => binding.meta.deleting,
        // This process observed the binding that managed it. It may have been deleted a moment ago, because its deletion was
        // reported before the template's: the grace period is the same.
        (None, Some(vanished)) => Some(vanished.meta.deleting.unwrap_or(Time(0))),
        (None, None) => return Plan::wait("orphaned: it is left unchanged"),
    };
    if resource.is_orphaned() {
        return Plan::wait("its template was deleted with --cascade=orphan: it stays");
    }
    let Some(deleted) = deleted.filter(|_| resource.is_gone()) else {
        return Plan::wait("whether the template is gone for good is not known yet");
    };
    if !fleet.is_removal_safe(&id.gvk) {
        return Plan::not_proven(&id.gvk);
    }
    if state.live.is_none() {
        return Plan::nothing();
    }
    let has_no_owner = resource
        .last_binding()
        .is_some_and(|binding| binding.owner().is_none());
    if has_no_owner || resource.is_orphaning() {
        let why = "its orphaned binding was deleted";
        return end(fleet, id, cluster, (state, true), RemovalMode::Release, now, why);
    }
    if let Some(time) = grace(fleet, id, deleted, now) {
        return Plan::wait_until(time, "it was deleted while a workload depends on it");
    }
    if let Some(holder) = dependencies::held_by(fleet, id, resource, cluster) {
        return Plan::wait(format!("{holder} still exists there"));
    }
    let mode = if dependencies::preserves(fleet, resource, cluster) {
        RemovalMode::Release
    } else {
        RemovalMode::Delete
    };
    let why = "the template was deleted";
    let ended = (state, state.explained);
    if mode == RemovalMode::Release || !volumes::is_retained(resource, state) {
        return end(fleet, id, cluster, ended, mode, now, why);
    }
    match volumes::goes_with_its_namespace(fleet, id, deleted, now) {
        Ok(true) => end_unless_retained(fleet, id, cluster, (resource, state, true), mode, now, why),
        Ok(false) => end(fleet, id, cluster, ended, mode, now, why),
        Err((until, why)) => Plan::wait_until(until, why),
    }
}

/// As [`end`], but a claim that holds data is released, not deleted, and that is reported.
fn end_unless_retained(
    fleet: &Fleet,
    id: &ResourceId,
    cluster: &Str,
    (resource, state, explained): (&ResourceState, &CopyState, bool),
    mode: RemovalMode,
    now: Time,
    why: &str,
) -> Plan {
    let ended = (state, explained);
    if mode == RemovalMode::Release || !volumes::is_retained(resource, state) {
        return end(fleet, id, cluster, ended, mode, now, why);
    }
    let why = format!("{why}; it holds data and is kept, without ownership metadata");
    let mut plan = end(fleet, id, cluster, ended, RemovalMode::Release, now, &why);
    if !plan.changes.is_empty() {
        plan.changes.extend(volumes::events(fleet, id, resource, cluster));
    }
    plan
}

/// Removes a copy; the state records whether an edit explains that.
pub(super) fn end(
    fleet: &Fleet,
    id: &ResourceId,
    cluster: &Str,
    (state, explained): (&CopyState, bool),
    mode: RemovalMode,
    now: Time,
    why: &str,
) -> Plan {
    if let Some(problem) = &state.problem
        && problem.attempt == Attempt::Removal
        && now < problem.retry_at
    {
        return Plan::wait_until(problem.retry_at, problem.message.clone());
    }
    // A namespace may contain other objects: whether it is deleted is decided when the hub has deleted its own.
    let mode = match mode {
        RemovalMode::Delete if id.gvk.is_namespace() => RemovalMode::HandOver,
        mode => mode,
    };
    let (id, cluster) = (id.clone(), cluster.clone());
    match &state.live {
        Some(live) if live.meta.deleting.is_some() && mode == RemovalMode::Delete => {
            Plan::wait("it is being deleted")
        }
        Some(live) => {
            if mode == RemovalMode::Delete
                && let Some(held) = governor::hold(fleet, &cluster, (explained, state.counted), now)
            {
                return held;
            }
            let preconditions = Preconditions {
                uid: live.meta.uid.clone(),
                resource_version: live.meta.resource_version.clone(),
            };
            Plan::one(
                Change::Remove {
                    id,
                    cluster,
                    preconditions,
                    mode,
                },
                why,
            )
        }
        None => Plan::nothing(),
    }
}

/// Checks for a copy that may have been written, if nothing else is to be done; if that is due later, the plan states when.
fn look(id: &ResourceId, cluster: &Str, (plan, due): (Plan, Option<Time>), now: Time) -> Plan {
    match due {
        Some(due) if now < due => Plan {
            again_at: Some(plan.again_at.map_or(due, |again| again.min(due))),
            ..plan
        },
        _ => {
            let (id, cluster) = (id.clone(), cluster.clone());
            Plan::one(
                Change::GetCopy { id, cluster },
                "the outcome of a write is not known",
            )
        }
    }
}

fn deliver(
    fleet: &Fleet,
    id: &ResourceId,
    cluster: &Str,
    (resource, template, binding, state): (&ResourceState, &Template, &Binding, &CopyState),
    now: Time,
) -> Plan {
    let render_spec = render_spec(fleet, id, (resource, template, binding), (state, cluster));
    let source = source_version(&template.meta, &render_spec);
    if state
        .live
        .as_ref()
        .is_some_and(|live| live.meta.deleting.is_some())
    {
        return Plan::wait("the copy is being deleted on the member");
    }
    if is_current(fleet, id, cluster) {
        // Once drift has stopped the copy is read again: it is found up to date, and drift is no longer reported.
        match &state.drift_backoff {
            None => return Plan::nothing(),
            Some(drift_backoff) if now < drift_backoff.over_at() => {
                return Plan::wait_until(drift_backoff.over_at(), "drift was corrected");
            }
            Some(_) => {}
        }
    } else if let Some(drift_backoff) = &state.drift_backoff
        && is_from(state, &source)
        && now < drift_backoff.retry_at()
    {
        return Plan::wait_until(drift_backoff.retry_at(), "drift was corrected a moment ago");
    }
    if fleet
        .cache
        .watches
        .is_no_such_kind(&fleet.copies(cluster, &id.gvk))
    {
        return Plan::wait(format!("{cluster} does not serve the kind"));
    }
    if is_suspended(fleet, id, resource, cluster) {
        return Plan::wait("delivery is suspended");
    }
    if let Some(problem) = &state.problem
        && problem.attempt.is_delivery_from(&source)
        && now < problem.retry_at
    {
        return Plan::wait_until(problem.retry_at, problem.message.clone());
    }
    if let Some(time) = state.not_before.filter(|time| now < *time) {
        return Plan::wait_until(
            time,
            "it was just written, from another version than the one expected",
        );
    }
    if state.live.is_none() && state.leaving {
        return Plan::wait("its binding is about to leave the cluster");
    }
    if state.live.is_none()
        && let Some(cluster) = eviction::awaits_purge(fleet, id, binding, (cluster, state))
    {
        return Plan::wait(format!("the copy on {cluster} is deleted first"));
    }
    if state.live.is_none()
        && state.record.is_none()
        && let Some(dependency) = awaited(fleet, id, resource, cluster)
    {
        let until = state
            .wanted_since
            .unwrap_or(now)
            .plus(fleet.config.dependency_wait);
        if now < until {
            return Plan::wait_until(until, format!("{dependency} goes first"));
        }
    }
    if state.live.is_none()
        && state.record.is_none()
        && let Some(claim) = data::lacking(fleet, (id, resource), cluster)
    {
        return Plan::wait(format!("the data of {claim} is not there yet"));
    }
    let live = state.live.as_ref().map(|live| Preconditions {
        uid: live.meta.uid.clone(),
        resource_version: live.meta.resource_version.clone(),
    });
    let read_first = state.live.as_ref().is_some_and(|live| {
        let labels = marks::of(&template.meta, &render_spec, id, cluster).labels;
        let labels = json!({"metadata": {"labels": labels}});
        let retains = interpreter::native(&id.gvk.group, &id.gvk.version, &id.gvk.kind)
            .is_some_and(|native| native.needs_live(&labels));
        retains
            || render_spec.interpretation.has(Operation::Retain)
            || !state.is_as_written()
            || live.meta.foreign
            || is_from(state, &source)
            || is_of_former_template(state, template)
    });
    let (id, cluster) = (id.clone(), cluster.clone());
    Plan::one(
        Change::Deliver {
            id,
            cluster,
            render_spec,
            live,
            read_first,
        },
        format!("source {source}"),
    )
}

/// True if the copy was last written from this source: then any difference was made on the member.
fn is_from(state: &CopyState, source: &str) -> bool {
    state
        .record
        .as_ref()
        .is_some_and(|record| record.source == source)
}

/// True if the copy was written from an earlier template of this name: an equal copy is not written again.
fn is_of_former_template(state: &CopyState, template: &Template) -> bool {
    let source = state.record.as_ref().map(|record| record.source.split_once('.'));
    source.is_some_and(|source| source.is_none_or(|(uid, _)| *uid != *template.meta.uid))
}
