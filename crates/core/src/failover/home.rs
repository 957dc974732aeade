//! Fail-back: the home clusters of an evicted workload, and when it returns to them.
//!
//! A policy asks for it by [`annotation::FAIL_BACK`]. The binding then stores the clusters that the workload was evicted from
//! because of taints: its home clusters. It is scheduled again to one that has been ready for long enough, as to a cluster that
//! recovers in time: the replacement is evicted when the copy on the home cluster is healthy.
//!
//! The replacement of a home cluster does not become one. Another placement, or a rescheduling trigger, drops all of them.

use std::collections::BTreeMap;

use entourage_api::{
    cluster::Cluster,
    keys::annotation,
    policy::Placement,
    work::{GracefulEvictionTask, ResourceBinding, TargetCluster},
};
use k8s_openapi::api::core::v1::Taint;
use serde::{Deserialize, Serialize};

use super::records::Exchange;
use crate::{
    eviction::{
        TAINT_MANAGER,
        tolerance::{Stay, stay},
    },
    fleet::Fleet,
    object::{ResourceId, Str, Time, duration},
    readiness::stored_ready,
    scheduler::{filter, taint},
    stored_binding::{eviction_from, is_as_asked, is_held_back_from},
};

/// The maximum wait before a workload returns to a home cluster, in milliseconds: a year.
pub const LONGEST: i64 = 365 * 24 * 3_600_000;

/// The record of a home cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Home {
    /// The clusters of its replacements.
    #[serde(default)]
    by: Vec<String>,
    /// The number of replicas that the workload had there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    replicas: Option<i32>,
}

/// The home clusters of a binding, by name.
pub(super) type Homes = BTreeMap<Str, Home>;

/// The home clusters that a workload is not on.
#[derive(Default)]
pub(super) struct Ways {
    /// The clusters that it may fail back to now, with the settings of their eviction tasks: clusters that are no
    /// replacement for them are kept.
    pub(super) open: Vec<GracefulEvictionTask>,
    /// The clusters that it may fail back to later.
    pub(super) closed: Vec<Str>,
    /// The time at which that changes although nothing is observed.
    pub(super) again_at: Option<Time>,
}

/// The home clusters that a workload may fail back to now. Cost: O(home clusters × (taints + kinds that they serve)).
pub(super) fn ways(
    fleet: &Fleet,
    id: &ResourceId,
    held: &ResourceBinding,
    placement: &Placement,
    now: Time,
) -> Ways {
    let mut ways = Ways::default();
    let Some(wait) = wait(held).filter(|_| fleet.config.failover) else {
        return ways;
    };
    let spec = &held.spec;
    for (name, home) in stored(held, placement, now) {
        let is_placed = TargetCluster::find(&spec.clusters, &name).is_some();
        let Some(member) = fleet.cache.members.get(&name).filter(|_| !is_placed) else {
            continue;
        };
        let ready = stored_ready(&member.object).filter(|ready| ready.status == "True");
        let Some(ready) = ready.filter(|_| {
            member.meta.deleting.is_none()
                && eviction_from(spec, &name).is_none()
                && !is_held_back_from(spec, &name)
                && welcomes(&member.object, placement)
                && filter::serves(&member.object, &id.gvk)
                && stay(&member.object, &placement.cluster_tolerations) == Stay::Unlimited
        }) else {
            ways.closed.push(name);
            continue;
        };
        let from = Time::from_k8s(&ready.last_transition_time).plus(wait);
        if now < from {
            ways.again_at = ways.again_at.into_iter().chain([from]).min();
            ways.closed.push(name);
            continue;
        }
        let stays = spec
            .clusters
            .iter()
            .filter(|target| !home.by.contains(&target.name));
        let before = stays.map(|target| target.name.clone());
        ways.open.push(GracefulEvictionTask {
            clusters_before_failover: before.chain([name.to_string()]).collect(),
            from_cluster: name.to_string(),
            replicas: home.replicas,
            ..GracefulEvictionTask::default()
        });
    }
    ways
}

/// True if the placement tolerates the taints of a cluster: the scheduler treats a home cluster as already scheduled.
fn welcomes(cluster: &Cluster, placement: &Placement) -> bool {
    let tolerations = &placement.cluster_tolerations;
    let is_tolerated = |each: &Taint| tolerations.iter().any(|held| taint::tolerates(held, each));
    let mut all = cluster.spec.taints.iter();
    all.all(|each| !taint::keeps_away(each) || is_tolerated(each))
}

/// The home clusters that are stored from now on. Cost: O(tasks × home clusters).
pub(super) fn remembered(
    fleet: &Fleet,
    held: &ResourceBinding,
    placement: &Placement,
    exchange: &Exchange<'_>,
    now: Time,
) -> Homes {
    if wait(held).is_none() {
        return Homes::new();
    }
    let mut homes = stored(held, placement, now);
    let is_replacement = |name: &String, homes: &Homes| homes.values().any(|home| home.by.contains(name));
    let mut left = Vec::new();
    for task in &exchange.made {
        let by = exchange.instead_of(task);
        if is_replacement(&task.from_cluster, &homes) {
            for home in homes
                .values_mut()
                .filter(|home| home.by.contains(&task.from_cluster))
            {
                home.by.retain(|name| *name != task.from_cluster);
                home.by.extend(by.clone());
            }
        } else if task.producer == TAINT_MANAGER {
            let replicas = task.replicas;
            left.push((Str::from(task.from_cluster.as_str()), Home { by, replicas }));
        }
    }
    homes.extend(left);
    homes.retain(|name, _| {
        fleet.cache.members.contains_key(name) && TargetCluster::find(exchange.chosen, name).is_none()
    });
    homes
}

/// True if a cluster is one that the workload fails back to. Cost: O(size of the stored record).
pub(crate) fn is_home(held: &ResourceBinding, placement: &Placement, cluster: &str, now: Time) -> bool {
    wait(held).is_some() && stored(held, placement, now).contains_key(cluster)
}

/// The time that a home cluster must have been ready, in milliseconds; `None` if nothing fails back.
fn wait(held: &ResourceBinding) -> Option<i64> {
    let annotations = held.metadata.annotations.as_ref()?;
    let wait = duration(annotations.get(annotation::FAIL_BACK)?)?;
    i64::try_from(wait.as_millis())
        .ok()
        .filter(|wait| *wait <= LONGEST)
}

fn stored(held: &ResourceBinding, placement: &Placement, now: Time) -> Homes {
    let annotations = held.metadata.annotations.as_ref();
    let text = annotations.and_then(|all| all.get(annotation::HOME_CLUSTERS));
    let text = text.filter(|_| is_as_asked(held, placement, now));
    text.and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default()
}
