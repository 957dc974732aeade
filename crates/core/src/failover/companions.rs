//! The other workloads of a template's groups, as far as they confine its clusters.

use entourage_api::policy::Placement;

use crate::{
    eviction::tolerance::{Stay, stay},
    fleet::{
        Fleet,
        workload_groups::{Companions, groups_of},
    },
    object::{ResourceId, Time},
    observation::Template,
};

/// The clusters of the other workloads of its groups. One that has to leave a cluster, or whose Cluster is gone, holds nobody back
/// there: else the members of a group would wait for each other. Cost: O(members × their clusters); O(1) without a group.
pub(super) fn companions(
    fleet: &Fleet,
    id: &ResourceId,
    template: &Template,
    placement: &Placement,
    now: Time,
) -> Companions {
    let groups = groups_of(placement, &template.meta);
    fleet.companions(id, groups.as_ref(), |other, cluster| {
        let Some(member) = fleet.cache.members.get(cluster) else {
            return true;
        };
        let binding = fleet
            .resource(other)
            .and_then(|resource| resource.last_binding());
        let placement = binding.and_then(|binding| binding.object.spec.placement.as_ref());
        let tolerations = placement.map_or(&[][..], |placement| &placement.cluster_tolerations);
        match stay(&member.object, tolerations) {
            Stay::Ends(_) => fleet.config.failover,
            Stay::Until(time, _) => fleet.config.failover && time <= now,
            Stay::Unlimited => false,
        }
    })
}
