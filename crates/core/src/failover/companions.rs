//! The other workloads of a template's groups, as far as they confine its clusters.

use std::cell::Cell;

use entourage_api::policy::Placement;

use super::{Leave, leave};
use crate::{
    fleet::{
        Fleet,
        workload_groups::{Companions, groups_of},
    },
    object::{ResourceId, Str, Time},
    observation::Template,
    stored_binding::is_scheduled_by_us,
};

/// The clusters of the other workloads of its groups, and the time at which one of them begins to have to leave a cluster. One that has
/// to leave a cluster, or whose Cluster is gone, holds nobody back there: else the members of a group would wait for each other. Cost:
/// O(members × their clusters); O(1) without a group.
pub(super) fn companions(
    fleet: &Fleet,
    id: &ResourceId,
    template: &Template,
    placement: &Placement,
    now: Time,
) -> (Companions, Option<Time>) {
    let groups = groups_of(placement, &template.meta);
    let again_at = Cell::new(None);
    let companions = fleet.companions(id, groups.as_ref(), |other, cluster| {
        match leave_of(fleet, other, cluster, now) {
            Leave::No => !fleet.cache.members.contains_key(cluster),
            Leave::Now(_) => true,
            Leave::At(time) => {
                again_at.set(again_at.get().into_iter().chain([time]).min());
                false
            }
        }
    });
    (companions, again_at.get())
}

/// As [`leave`], of another workload. One that this control plane does not schedule stays where it is.
fn leave_of(fleet: &Fleet, other: &ResourceId, cluster: &Str, now: Time) -> Leave {
    let Some(resource) = fleet.resource(other) else {
        return Leave::No;
    };
    let spec = resource.last_binding().map(|binding| &binding.object.spec);
    let Some((spec, placement)) = spec.and_then(|spec| Some((spec, spec.placement.as_ref()?))) else {
        return Leave::No;
    };
    if !is_scheduled_by_us(spec) {
        return Leave::No;
    }
    leave(fleet, resource, cluster, (placement, spec.failover.as_ref()), now)
}
