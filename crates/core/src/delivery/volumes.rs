//! PersistentVolumeClaims that hold data. A claim that was ever bound on a member is released, not deleted, whatever removes it,
//! unless a user deletes the claim itself on the hub or requests deletion by `annotation::VOLUME_RETENTION` (architecture
//! 2.14).
//!
//! The requested retention is stored on the binding, because a claim or a policy may be gone. If it is unknown the claim is
//! kept.

use entourage_api::keys::{VOLUME_RETENTION_DELETE, annotation, event};

use crate::{
    cache::{CopyState, ResourceState},
    dependencies::retention::wish,
    fleet::Fleet,
    object::{ResourceId, Str, Time},
    observation::Watch,
    plan::{Change, Event, Regarding},
    scope,
};

/// The deletion of a claim's namespace on the hub may be reported after the deletion of the claim, by another watch: the time to
/// wait for it, in milliseconds.
const NAMESPACE_NEWS: i64 = 2_000;

/// The maximum number of workloads that get an Event about one claim.
const MOST_REPORTED: usize = 5;

/// True if a copy holds data, and its deletion was not requested. Cost: O(1).
pub(super) fn is_retained(resource: &ResourceState, state: &CopyState) -> bool {
    state.live.as_ref().is_some_and(|live| live.holds_data) && !is_deletion_asked(resource)
}

/// True if the deletion of the data that a claim holds was requested. Cost: O(1).
pub(crate) fn is_deletion_asked(resource: &ResourceState) -> bool {
    let stored = resource
        .last_binding()
        .and_then(|binding| binding.annotation(annotation::VOLUME_RETENTION));
    let asked = resource
        .template
        .as_ref()
        .and_then(|template| wish(&template.meta));
    asked.or(stored) == Some(VOLUME_RETENTION_DELETE)
}

/// True if a claim that holds data is kept because its namespace was deleted, too; false if a user deleted the claim alone.
/// `Err` until that is known: the time to look again, and the reason.
pub(super) fn goes_with_its_namespace(
    fleet: &Fleet,
    id: &ResourceId,
    deleted: Time,
    now: Time,
) -> Result<bool, (Time, &'static str)> {
    let until = deleted.plus(NAMESPACE_NEWS + 999);
    if now < until {
        return Err((until, "namespaces are not synced: its namespace may be deleted"));
    }
    let is_known = fleet.cache.watches.is_synced(&Watch::Namespaces);
    if !is_known && !fleet.cache.watches.is_unlistable(&Watch::Namespaces) {
        let again = now.plus(NAMESPACE_NEWS);
        return Err((again, "the namespaces of the hub are not synced"));
    }
    let namespace = fleet.cache.namespaces.hub.get(&id.namespace);
    Ok(namespace.is_none_or(|meta| meta.deleting.is_some()))
}

/// Returns Events for the workloads that depend on the claim, and for the claim itself. Cost: O(referrers).
pub(super) fn events(fleet: &Fleet, id: &ResourceId, resource: &ResourceState, cluster: &Str) -> Vec<Change> {
    let links = fleet.links(id);
    let mut regarding: Vec<Regarding> = links
        .referrers
        .iter()
        .chain(&links.stale_referrers)
        .filter_map(|referrer| on(referrer, fleet.resource(referrer)?))
        .take(MOST_REPORTED)
        .collect();
    let claim = resource.template.is_some().then(|| on(id, resource)).flatten();
    regarding.extend(claim.or_else(|| on_binding(resource)));
    let message = format!(
        "{id} holds data on {cluster} and is kept there, without ownership metadata: it is managed again when it is \
         scheduled to {cluster} again; delete it on {cluster} if its data is not needed any more"
    );
    let event = |regarding| {
        Change::Emit(Event {
            regarding,
            warning: false,
            reason: event::VOLUME_RETAINED,
            message: message.clone(),
        })
    };
    regarding.into_iter().map(event).collect()
}

fn on(id: &ResourceId, resource: &ResourceState) -> Option<Regarding> {
    let uid: Str = match &resource.template {
        Some(template) => template.meta.uid.clone(),
        None => resource.last_binding()?.object.spec.resource.uid.as_str().into(),
    };
    Some(Regarding {
        api_version: id.gvk.api_version(),
        kind: id.gvk.kind.to_string(),
        namespace: id.namespace.clone(),
        name: id.name.clone(),
        uid,
    })
}

fn on_binding(resource: &ResourceState) -> Option<Regarding> {
    let binding = resource.last_binding()?;
    Some(Regarding {
        api_version: scope::BINDING_API.into(),
        kind: scope::binding(&binding.name.namespace).kind.into(),
        namespace: binding.name.namespace.clone(),
        name: binding.name.name.clone(),
        uid: binding.meta.uid.clone(),
    })
}
