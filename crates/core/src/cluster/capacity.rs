//! The reports of the capacity of a Cluster: `nodeSummary` and `resourceSummary`, from the nodes and pods of the member.
//!
//! A report is written when it differs, but not more often than [`INTERVAL`]; the plans of a Cluster follow its
//! probes, so no event of a pod costs a plan. Source: Karmada reference 4.1 (cluster status).

use entourage_api::cluster::ClusterStatus;

use crate::{
    cache::{Member, MemberUsage},
    fleet::Fleet,
    member_status::{node_summary, resource_summary},
    object::{Str, Time},
    observation::Watch,
};

/// The shortest time between two reports of the capacity of a member, in milliseconds.
const INTERVAL: i64 = 10_000;

/// Sets the capacity in the status of a Cluster, if it is collected. Returns the time to look again if it is too early for a
/// new report. While a member does not list its nodes and pods, the last report is kept; where it does not permit that, there
/// is none. Cost: O(nodes × resources).
pub(super) fn fill(
    fleet: &Fleet,
    name: &Str,
    member: &Member,
    status: &mut ClusterStatus,
    now: Time,
) -> Option<Time> {
    if !fleet.config.model_resources {
        return None;
    }
    let watches = [Watch::Nodes(name.clone()), Watch::Pods(name.clone())];
    if watches
        .iter()
        .any(|watch| fleet.cache.watches.refused(watch).is_some())
    {
        (status.node_summary, status.resource_summary) = (None, None);
        return None;
    }
    if !watches.iter().all(|watch| fleet.cache.watches.is_synced(watch)) {
        return None;
    }
    let none = MemberUsage::default();
    let usage = fleet.cache.usage.of(name).unwrap_or(&none);
    let nodes = node_summary(usage);
    let resources = resource_summary(usage, &member.object.spec.resource_models);
    let is_same =
        status.node_summary.as_ref() == Some(&nodes) && status.resource_summary.as_ref() == Some(&resources);
    if is_same {
        return None;
    }
    let due = fleet
        .memory
        .rooms
        .reported_at(name)
        .map(|last| last.plus(INTERVAL));
    if let Some(due) = due.filter(|due| now < *due) {
        return Some(due);
    }
    (status.node_summary, status.resource_summary) = (Some(nodes), Some(resources));
    None
}
