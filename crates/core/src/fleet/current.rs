//! The comparison of a copy with its desired state.

use crate::{
    cache::ProblemKind,
    fleet::{
        Fleet,
        render_specs::{render_spec, render_spec_of},
        wanted::wants,
    },
    object::{ResourceId, Str},
    observation::Template,
    ownership::metadata as marks,
    render_spec::source_version,
};

/// The source version that the copy should have been written from; `None` when there is nothing to write.
pub(crate) fn expected_source(fleet: &Fleet, id: &ResourceId, cluster: &Str) -> Option<String> {
    let render_spec = render_spec_of(fleet, id, cluster)?;
    let template = fleet.resource(id)?.template.as_ref()?;
    Some(source_version(&template.meta, &render_spec))
}

/// True if the copy was last written from another version than the template has now. False while there is no template, or none
/// that is still delivered, or no record. Cost: O(labels and annotations).
pub(crate) fn is_record_outdated(fleet: &Fleet, id: &ResourceId, cluster: &Str) -> bool {
    let Some(resource) = fleet.resource(id) else {
        return false;
    };
    let is_ending = |template: &Template| template.meta.deleting.is_some();
    let record = resource
        .copies
        .get(cluster)
        .and_then(|state| state.record.as_ref());
    let Some(record) = record.filter(|_| !resource.template.as_ref().is_some_and(is_ending)) else {
        return false;
    };
    expected_source(fleet, id, cluster).is_some_and(|expected| record.source != expected)
}

/// True if the copy is in the desired state: as last written, from the current template, with our ownership metadata.
///
/// Cost: O(labels and annotations).
pub(crate) fn is_current(fleet: &Fleet, id: &ResourceId, cluster: &Str) -> bool {
    let Some(resource) = fleet.resource(id) else {
        return false;
    };
    let (Some(template), Some(binding)) = (&resource.template, &resource.binding) else {
        return false;
    };
    let Some(state) = resource.copies.get(cluster) else {
        return false;
    };
    let (Some(live), Some(record)) = (&state.live, &state.record) else {
        return false;
    };
    if !state.is_as_written() {
        return false;
    }
    let render_spec = render_spec(fleet, id, (resource, template, binding), (state, cluster));
    record.source == source_version(&template.meta, &render_spec)
        && marks::of(&template.meta, &render_spec, id, cluster).hash() == live.meta.marks
}

/// True if the problem of a copy is over although nothing was written: the copy is wanted and known to be in the desired state,
/// because the failed change was reverted meanwhile. There is nothing to retry, and a restart would not find the problem again.
/// Drift ends by itself, and a cluster's refusal to release a copy while it is removed stays reported.
///
/// Cost: as [`is_current`], plus O(referrers).
pub(crate) fn is_problem_over(fleet: &Fleet, id: &ResourceId, cluster: &Str) -> bool {
    let Some(resource) = fleet.resource(id) else {
        return false;
    };
    let Some(state) = resource.copies.get(cluster) else {
        return false;
    };
    let is_settled = !state.in_flight
        && state.pending.is_none()
        && state.drift_backoff.is_none()
        && state
            .live
            .as_ref()
            .is_some_and(|live| live.meta.deleting.is_none());
    let stays = fleet
        .cache
        .members
        .get(cluster)
        .is_some_and(|member| member.meta.deleting.is_none())
        && resource
            .template
            .as_ref()
            .is_some_and(|template| template.meta.deleting.is_none())
        && resource
            .binding
            .as_ref()
            .is_some_and(|binding| binding.meta.deleting.is_none());
    let is_contended = state
        .problem
        .as_ref()
        .is_some_and(|problem| problem.kind == ProblemKind::Contended);
    is_settled
        && stays
        && !is_contended
        && wants(fleet, id, resource, cluster)
        && is_current(fleet, id, cluster)
}
