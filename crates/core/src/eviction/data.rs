//! The data that an evicted workload waits for on its new cluster: its claims are propagated as objects, their data is not.
//!
//! A policy asks for it by [`annotation::WAIT_FOR_DATA`]. The binding then stores the clusters that await data, each with the
//! start time, and the workload is not delivered there until each of its claims states, by [`annotation::DATA_RESTORED_AT`],
//! that its data was restored later than that: a claim may have been filled for an earlier eviction.

use std::collections::BTreeMap;

use entourage_api::{
    keys::{TRUE, annotation},
    work::ResourceBinding,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1;

use crate::{
    cache::{CopyState, ProblemKind, ResourceState, referred},
    fleet::{Fleet, needs::followers_on},
    object::{ResourceId, Str, Time},
};

/// The times since when data is awaited, by cluster.
pub(crate) type Awaited = BTreeMap<Str, v1::Time>;

/// True if a policy asks that data be awaited.
pub(crate) fn is_requested(binding: &ResourceBinding) -> bool {
    let annotations = binding.metadata.annotations.as_ref();
    annotations.is_some_and(|all| {
        all.get(annotation::WAIT_FOR_DATA)
            .is_some_and(|value| value == TRUE)
    })
}

/// The first claim of a workload whose data is awaited on a cluster, or `None`. Cost: O(1) if none is awaited, else
/// O(references).
pub(crate) fn lacking(
    fleet: &Fleet,
    (id, resource): (&ResourceId, &ResourceState),
    cluster: &Str,
) -> Option<ResourceId> {
    let since = since(fleet, (id, resource), cluster)?;
    let mut all = fleet.links(id).references.iter().map(referred);
    all.find(|claim| lacks(fleet, claim, cluster, since))
}

/// True if a workload awaits the data of a claim on a cluster, and has no copy there yet. Cost: as [`lacking`].
pub(crate) fn is_awaited(
    fleet: &Fleet,
    (id, resource): (&ResourceId, &ResourceState),
    claim: &ResourceId,
    cluster: &Str,
) -> bool {
    let is_new = |state: &CopyState| state.live.is_none() && state.record.is_none();
    claim.gvk.is_claim()
        && resource.copies.get(cluster).is_none_or(is_new)
        && since(fleet, (id, resource), cluster).is_some_and(|since| lacks(fleet, claim, cluster, since))
}

/// The time since when data is awaited on a cluster: by the workload's own binding, or by that of a dependent.
fn since(fleet: &Fleet, (id, resource): (&ResourceId, &ResourceState), cluster: &Str) -> Option<Time> {
    let own = resource.binding.iter().filter(|_| fleet.is_following(resource));
    let all = own.chain(followers_on(fleet, id, cluster));
    let all = all
        .map(|binding| &*binding.object)
        .filter(|binding| is_requested(binding));
    let times = all.filter_map(|binding| stored(binding).remove(cluster));
    times.map(|time| Time::from_k8s(&time)).max()
}

/// True if the data of a claim was not restored on a cluster since then. An unmanaged claim there was created with its data by
/// someone else; a claim that is proven not to exist on the hub has no data.
fn lacks(fleet: &Fleet, claim: &ResourceId, cluster: &Str, since: Time) -> bool {
    let Some(claim) = fleet.resource(claim).filter(|_| claim.gvk.is_claim()) else {
        return false;
    };
    if claim.template.is_none() && (claim.absent || claim.not_propagatable) {
        return false;
    }
    let state = claim.copies.get(cluster);
    let problem = state.and_then(|state| state.problem.as_ref());
    if problem.is_some_and(|problem| problem.kind == ProblemKind::Foreign) {
        return false;
    }
    let live = state.and_then(|state| state.live.as_ref());
    let restored = live.and_then(|live| live.data_restored_at.as_deref());
    // To the second, as servers and users write times.
    restored.is_none_or(|restored| restored.0.div_euclid(1_000) < since.0.div_euclid(1_000))
}

/// The stored times since when data is awaited, by cluster.
pub(crate) fn stored(binding: &ResourceBinding) -> Awaited {
    let annotations = binding.metadata.annotations.as_ref();
    let text = annotations.and_then(|all| all.get(annotation::AWAITS_DATA));
    text.and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default()
}
