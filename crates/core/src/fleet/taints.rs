//! Taints of a Cluster: those that this control plane writes, those of policies, and those of users.

use entourage_api::{cluster::ClusterSpec, keys::taint};
use k8s_openapi::api::core::v1::Taint;

use crate::{cache::TaintPolicy, fleet::Fleet};

pub(crate) const NO_SCHEDULE: &str = "NoSchedule";

/// Our own taints, each with the status of Ready that causes it.
pub(crate) const OWN: [(&str, &str); 2] = [(taint::NOT_READY, "False"), (taint::UNREACHABLE, "Unknown")];

/// True if two specs are equal but for our own taints, those that policies name, and the times when taints were added. Cost:
/// O(size of the specs); O(taints × those of all policies) when they differ.
pub(crate) fn is_same_of_others(fleet: &Fleet, held: &ClusterSpec, seen: &ClusterSpec) -> bool {
    let of_others = |spec: &ClusterSpec| {
        let mut spec = spec.clone();
        spec.taints.retain(|each| !is_own(each) && !is_named(fleet, each));
        for each in &mut spec.taints {
            each.time_added = None;
        }
        spec
    };
    held == seen || of_others(held) == of_others(seen)
}

/// True if a taint follows from the condition Ready.
pub(crate) fn is_own(taint: &Taint) -> bool {
    taint.effect == NO_SCHEDULE && OWN.iter().any(|(key, _)| taint.key == *key)
}

/// True if some policy names a taint.
fn is_named(fleet: &Fleet, taint: &Taint) -> bool {
    let taints = |policy: &TaintPolicy| {
        let mut named = policy.object.spec.taints.iter();
        named.any(|each| each.key == taint.key && each.effect == taint.effect)
    };
    fleet.cache.taint_policies.values().any(taints)
}
