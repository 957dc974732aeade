//! The reports of the capacity of a Cluster: `nodeSummary` and `resourceSummary`, from the nodes and pods of the member.
//!
//! A report is written when it differs, but not more often than [`INTERVAL`]; the plans of a Cluster follow its
//! probes, so no event of a pod costs a plan. Source: Karmada reference 4.1 (cluster status).

use entourage_api::{
    cluster::ClusterStatus,
    keys::{condition, reason},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::{
    cache::{Member, MemberUsage},
    condition as conditions,
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
        conditions::remove(&mut status.conditions, condition::CAPACITY_WATCHED);
        return None;
    }
    let watches = [Watch::Nodes(name.clone()), Watch::Pods(name.clone())];
    if let Some(why) = watches
        .iter()
        .find_map(|watch| fleet.cache.watches.refused(watch))
    {
        (status.node_summary, status.resource_summary) = (None, None);
        conditions::set(&mut status.conditions, refused(name, member, why, now));
        return None;
    }
    if !watches.iter().all(|watch| fleet.cache.watches.is_synced(watch)) {
        return None;
    }
    conditions::remove(&mut status.conditions, condition::CAPACITY_WATCHED);
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

/// The report on a member that does not permit its nodes or pods to be watched; `why` is its message.
fn refused(name: &Str, member: &Member, why: &str, now: Time) -> Condition {
    let message = format!(
        "the joined account may not list and watch nodes and pods of {name}: {why}. Its capacity is not collected, and replicas that are \
         divided by room do not go there. Grant the rights with `entourage join {name}` and the flags that it was joined with"
    );
    Condition {
        type_: condition::CAPACITY_WATCHED.into(),
        status: "False".into(),
        reason: reason::RIGHTS_MISSING.into(),
        message,
        observed_generation: member.meta.generation,
        last_transition_time: now.to_k8s(),
    }
}
