//! The planner of one copy: deliver it, leave it, release it, or remove it.
//!
//! A removal needs proof (architecture 2, I1–I3): what the hub and the member hold is known, the binding as stored no
//! longer places the copy here, nobody needs it, nothing that needs it is still there, and the copy is ours.

use entourage_api::{
    keys::{ON_UNJOIN_REMOVE, annotation, label},
    policy::{ConflictResolution, ReplicaSchedulingType},
};
use serde_json::json;

use super::{Recipe, marks::Marks, source_version};
use crate::{
    dependencies,
    index::{Binding, CopyState, Entity, Index, Trouble, referred},
    interpreter,
    object::{Id, Str, Time},
    observation::Template,
    plan::{Change, Guard, How, Plan},
};

/// Plans one (template, member). Cost: O(referrers + references), usually O(1).
#[must_use]
pub fn plan(index: &Index, id: &Id, cluster: &Str, now: Time) -> Plan {
    let (Some(entity), Some(member)) = (index.entity(id), index.members.get(cluster)) else {
        return Plan::nothing();
    };
    let none = CopyState::default();
    let state = entity.copies.get(cluster).unwrap_or(&none);
    if state.in_flight {
        return Plan::wait("a write is under way");
    }
    if !index.is_kind_listed(&id.gvk) {
        return Plan::wait("the hub is not known yet");
    }
    if !index.copies_known(cluster, &id.gvk) {
        return Plan::wait(format!("what {cluster} holds is not known"));
    }
    if member.meta.deleting.is_some() {
        let remove = member.meta.annotation(annotation::ON_UNJOIN) == Some(ON_UNJOIN_REMOVE);
        return end(
            id,
            cluster,
            state,
            if remove { How::Delete } else { How::Release },
            now,
            "the cluster leaves",
        );
    }
    match &entity.template {
        Some(_) if entity.is_gone() => template_gone(index, id, cluster, (entity, state), now),
        Some(template) if template.meta.deleting.is_some() => Plan::wait("the template is being deleted"),
        Some(template) => match &entity.binding {
            Some(binding) => standing(index, id, cluster, (entity, template, binding, state), now),
            None => Plan::wait("there is no binding"),
        },
        None => template_gone(index, id, cluster, (entity, state), now),
    }
}

/// The template exists and its binding stands.
fn standing(
    index: &Index,
    id: &Id,
    cluster: &Str,
    (entity, template, binding, state): (&Entity, &Template, &Binding, &CopyState),
    now: Time,
) -> Plan {
    let ending = binding.meta.deleting.is_some();
    if wants(index, entity, cluster) {
        // A binding that ends while it is wanted, or belongs to a former template of this name, is made again: until
        // then nothing is touched.
        let former = binding.owner().is_some_and(|owner| *owner != *template.meta.uid);
        if ending || former || !is_committed(binding, cluster) {
            return Plan::wait("the binding does not say so yet");
        }
        return deliver(index, id, cluster, (entity, template, binding, state), now);
    }
    if state.live.is_none() && !state.uncertain {
        return Plan::nothing();
    }
    let keeps = dependencies::referrers_preserve(index, entity, cluster);
    // A copy that is to stay is released while the binding still says who asked for that.
    if (is_committed(binding, cluster) && !ending && !keeps) || !index.is_removal_safe(&id.gvk) {
        return Plan::wait("the removal is not proven yet");
    }
    if let Some(holder) = dependencies::held_by(index, id, entity, cluster) {
        return Plan::wait(format!("{holder} still stands there"));
    }
    // Not for a copy that a policy placed: that one is moved, and a move never leaves a copy behind.
    let how = if keeps { How::Release } else { How::Delete };
    end(id, cluster, state, how, now, "nobody needs it there")
}

/// The template is gone from the hub, or seems to be.
fn template_gone(
    index: &Index,
    id: &Id,
    cluster: &Str,
    (entity, state): (&Entity, &CopyState),
    now: Time,
) -> Plan {
    let proven = entity.is_gone() && index.is_removal_safe(&id.gvk);
    let deleted = match (&entity.binding, &entity.vanished) {
        (Some(binding), _) => binding.meta.deleting,
        // This process saw the binding that accounted for it. It may have been released a moment ago, because its
        // deletion was told before the template's: the grace is the same.
        (None, Some(vanished)) => Some(vanished.meta.deleting.unwrap_or(Time(0))),
        (None, None) => return Plan::wait("nobody accounts for it: it is left alone"),
    };
    let Some(deleted) = deleted.filter(|_| proven) else {
        return Plan::wait("the removal is not proven yet");
    };
    if state.live.is_none() && !state.uncertain {
        return Plan::nothing();
    }
    if let Some(time) = grace(index, entity, deleted, now) {
        return Plan::wait_until(time, "it was deleted while a workload needs it");
    }
    if let Some(holder) = dependencies::held_by(index, id, entity, cluster) {
        return Plan::wait(format!("{holder} still stands there"));
    }
    let how = if dependencies::preserves(index, entity, cluster) {
        How::Release
    } else {
        How::Delete
    };
    end(id, cluster, state, how, now, "the template was deleted")
}

/// Until when a dependency that was deleted while live workloads need it is left alone.
pub(crate) fn grace(index: &Index, entity: &Entity, deleted: Time, now: Time) -> Option<Time> {
    // API servers cut deletionTimestamp to whole seconds: it may have been at the end of that one.
    let until = deleted.plus(index.config.deletion_grace + 999);
    (now < until && dependencies::is_required(index, entity)).then_some(until)
}

fn end(id: &Id, cluster: &Str, state: &CopyState, how: How, now: Time, why: &str) -> Plan {
    if let Some(problem) = &state.problem
        && problem.source.is_empty()
        && now < problem.retry_at
    {
        return Plan::wait_until(problem.retry_at, problem.message.clone());
    }
    let (id, cluster) = (id.clone(), cluster.clone());
    match &state.live {
        Some(live) if live.meta.deleting.is_some() && how == How::Delete => Plan::wait("it is being deleted"),
        Some(live) => {
            let guard = Guard {
                uid: live.meta.uid.clone(),
                resource_version: live.meta.resource_version.clone(),
            };
            Plan::one(
                Change::Remove {
                    id,
                    cluster,
                    guard,
                    how,
                },
                why,
            )
        }
        None if state.uncertain => {
            Plan::one(Change::Confirm { id, cluster }, "a write ended without an answer")
        }
        None => Plan::nothing(),
    }
}

fn deliver(
    index: &Index,
    id: &Id,
    cluster: &Str,
    (entity, template, binding, state): (&Entity, &Template, &Binding, &CopyState),
    now: Time,
) -> Plan {
    let recipe = recipe(index, template, binding, state, cluster);
    let source = source_version(&template.meta, &recipe);
    if state
        .live
        .as_ref()
        .is_some_and(|live| live.meta.deleting.is_some())
    {
        return Plan::wait("the copy is being deleted on the member");
    }
    if is_current(index, id, cluster) {
        return Plan::nothing();
    }
    if let Some(problem) = &state.problem
        && problem.source == source
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
    if state.live.is_none()
        && state.record.is_none()
        && let Some(dependency) = awaited(index, entity, cluster)
    {
        let until = state
            .wanted_since
            .unwrap_or(now)
            .plus(index.config.dependency_wait);
        if now < until {
            return Plan::wait_until(until, format!("{dependency} goes first"));
        }
    }
    let live = state.live.as_ref().map(|live| Guard {
        uid: live.meta.uid.clone(),
        resource_version: live.meta.resource_version.clone(),
    });
    let read_first = state.live.as_ref().is_some_and(|live| {
        let labels = json!({"metadata": {"labels": template.meta.labels}});
        let retains = interpreter::native(&id.gvk.group, &id.gvk.version, &id.gvk.kind)
            .is_some_and(|native| native.needs_live(&labels));
        retains || !state.is_as_written() || live.meta.foreign
    });
    let (id, cluster) = (id.clone(), cluster.clone());
    Plan::one(
        Change::Deliver {
            id,
            cluster,
            recipe,
            live,
            read_first,
        },
        format!("source {source}"),
    )
}

/// The first dependency that a workload's first release to a cluster waits for: one that exists on the hub and is being
/// delivered there (architecture 2.9). Missing, never travelling, or kept out by a foreign object does not hold it.
fn awaited(index: &Index, entity: &Entity, cluster: &Str) -> Option<Id> {
    if !index.is_following(entity) {
        return None;
    }
    entity.references.iter().map(referred).find(|dependency| {
        if !index.is_kind_listed(&dependency.gvk) {
            return true;
        }
        let Some(needed) = index.entity(dependency) else {
            return false;
        };
        let exists = needed
            .template
            .as_ref()
            .is_some_and(|template| template.meta.deleting.is_none() && !needed.never_travels);
        if !exists {
            return false;
        }
        let Some(state) = needed.copies.get(cluster) else {
            return true;
        };
        let kept_out = state
            .problem
            .as_ref()
            .is_some_and(|problem| matches!(problem.trouble, Trouble::Foreign | Trouble::NoSource));
        let delivered = state.record.is_some()
            && state
                .live
                .as_ref()
                .is_some_and(|live| live.meta.deleting.is_none());
        !delivered && !kept_out
    })
}

/// Whether a template's copy is wanted on a cluster, also while its binding is being deleted: placed by the binding if it
/// has an own reason, or needed by a live referrer.
pub(crate) fn is_wanted(index: &Index, entity: &Entity, own: bool, cluster: &Str) -> bool {
    let placed = entity
        .last_binding()
        .is_some_and(|binding| binding.is_placed_on(cluster));
    (own && placed) || dependencies::is_required_on(index, entity, cluster)
}

/// Whether the copy is wanted here: the binding places it, or a live referrer is placed here.
#[must_use]
pub fn wants(index: &Index, entity: &Entity, cluster: &Str) -> bool {
    let placed = entity
        .binding
        .as_ref()
        .is_some_and(|binding| binding.object.spec.placement.is_some() && binding.is_placed_on(cluster));
    placed || dependencies::is_required_on(index, entity, cluster)
}

/// Whether the stored binding accounts for a copy here: no copy is made before (architecture 2.3).
fn is_committed(binding: &Binding, cluster: &str) -> bool {
    binding.is_placed_on(cluster)
        || binding
            .object
            .spec
            .required_by
            .iter()
            .any(|snapshot| snapshot.clusters.iter().any(|target| target.name == *cluster))
}

/// How the copy is rendered here.
fn recipe(index: &Index, template: &Template, binding: &Binding, state: &CopyState, cluster: &str) -> Recipe {
    let spec = &binding.object.spec;
    // The template's own wish beats the policy's (karmada reference 0.3); other values are ignored.
    let overwrite = match template.meta.annotation(annotation::CONFLICT_RESOLUTION) {
        Some("overwrite") => true,
        Some("abort") => false,
        _ => spec.conflict_resolution == ConflictResolution::Overwrite,
    };
    let divided = spec
        .placement
        .as_ref()
        .is_some_and(|placement| placement.replica_scheduling_type() == ReplicaSchedulingType::Divided);
    let replicas = spec
        .clusters
        .iter()
        .find(|target| target.name == *cluster)
        .filter(|_| divided && template.replicas.is_some())
        .map(|target| target.replicas);
    Recipe {
        hub: index.config.hub.clone(),
        binding: binding.name.clone(),
        permanent_id: binding
            .meta
            .label(label::RESOURCE_BINDING_ID)
            .unwrap_or_default()
            .into(),
        replicas,
        overwrite,
        written_uid: state.record.as_ref().map(|record| record.uid.as_str().into()),
    }
}

/// The source version that the copy should have been written from; `None` when there is nothing to write.
pub(crate) fn expected_source(index: &Index, id: &Id, cluster: &Str) -> Option<String> {
    let entity = index.entity(id)?;
    let (template, binding) = (entity.template.as_ref()?, entity.binding.as_ref()?);
    let none = CopyState::default();
    let state = entity.copies.get(cluster).unwrap_or(&none);
    Some(source_version(
        &template.meta,
        &recipe(index, template, binding, state, cluster),
    ))
}

/// Whether the copy is what it should be: as last written, from the template as it is now, with our marks on it.
///
/// Cost: O(labels and annotations).
#[must_use]
pub fn is_current(index: &Index, id: &Id, cluster: &Str) -> bool {
    let Some(entity) = index.entity(id) else {
        return false;
    };
    let (Some(template), Some(binding)) = (&entity.template, &entity.binding) else {
        return false;
    };
    let Some(state) = entity.copies.get(cluster) else {
        return false;
    };
    let (Some(live), Some(record)) = (&state.live, &state.record) else {
        return false;
    };
    if !state.is_as_written() {
        return false;
    }
    let recipe = recipe(index, template, binding, state, cluster);
    record.source == source_version(&template.meta, &recipe)
        && Marks::of(&template.meta, &recipe, id, cluster).hash() == live.meta.marks
}
