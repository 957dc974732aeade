//! The members that a status lists: targets, and members that have or may have a copy.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::merge;
use crate::{
    distribution::{Step, TargetStatus},
    fleet::{
        Fleet,
        secrets::{Withheld, withheld_copy},
    },
    memory::distributions::DistributionState,
    object::Str,
    plan::Plan,
};

/// The members that a copy is about to be written to, and that the stored status does not list. Cost: O(such places).
pub(super) fn unlisted(held: &DistributionState) -> BTreeSet<&Str> {
    let written = [
        TargetStatus::Pending,
        TargetStatus::Failed(Step::Get),
        TargetStatus::Failed(Step::Create),
        TargetStatus::Failed(Step::Update),
    ];
    let places = written
        .iter()
        .filter_map(|target_status| held.by_target_status.get(target_status));
    let clusters = places.flatten().filter_map(|place| place.cluster.as_ref());
    clusters
        .filter(|cluster| !held.object.reported_on(cluster))
        .collect()
}

/// Lists members before the first copy is written there, so that members that may have a copy are always recorded.
pub(super) fn list(name: &Str, held: &DistributionState, unlisted: &BTreeSet<&Str>) -> Plan {
    let mut all = held.object.status["clusters"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let new = unlisted
        .iter()
        .map(|name| json!({"name": &***name, "desired": 0, "succeeded": 0, "failed": 0}));
    all.extend(new);
    all.sort_by(|one, other| one["name"].as_str().cmp(&other["name"].as_str()));
    Plan::one(
        merge(name, held, &json!({ "clusters": all })),
        "members are listed before the first copy is written there",
    )
}

/// One entry for each member that is targeted, or that has or may have a copy: a member of an earlier report is kept as long as
/// it does not respond, so that it is recorded over restarts. Cost: O(members + places on members).
pub(super) fn clusters(fleet: &Fleet, name: &Str, held: &DistributionState) -> Vec<Value> {
    let mut all: BTreeMap<&Str, (i64, i64, Option<String>)> = BTreeMap::new();
    for (place, target_state) in &held.target_states {
        let (Some(cluster), Some(target_status)) = (&place.cluster, target_state.target_status) else {
            continue;
        };
        let (desired, succeeded, reason) = all.entry(cluster).or_default();
        *desired += i64::from(target_status.is_meant());
        *succeeded += i64::from(target_status == TargetStatus::Done);
        let spec = held.object.spec.as_ref().ok();
        let withheld = spec.and_then(|spec| withheld_copy(fleet, spec, Some(cluster)));
        if let Some(why) = withheld.as_ref().and_then(Withheld::message) {
            *reason = Some(why.to_owned());
            continue;
        }
        // An attempt that failed and is no longer relevant is no reason.
        if let (None, TargetStatus::Failed(_), Some(why)) =
            (&reason, target_status, target_state.failure_message())
        {
            *reason = Some(format!("namespace {}: {why}", place.namespace));
        }
    }
    for at in fleet.distribution_servers(name) {
        if let Some(cluster) = at
            .cluster
            .as_ref()
            .and_then(|cluster| fleet.cache.members.get_key_value(cluster))
            && held.object.reported_on(cluster.0)
            && !fleet.cache.watches.is_synced(&at.watch())
        {
            all.entry(cluster.0).or_default();
        }
    }
    all.into_iter()
        .map(|(name, (desired, succeeded, reason))| {
            let mut entry = json!({
                "name": &**name, "desired": desired, "succeeded": succeeded, "failed": desired - succeeded,
            });
            if let Some(reason) = reason {
                entry["reason"] = json!(reason);
            }
            entry
        })
        .collect()
}
