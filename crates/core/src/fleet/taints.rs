//! Taints of a Cluster: which are written by this control plane or said by a policy, and which are a user's.

use entourage_api::{cluster::ClusterSpec, keys::taint};
use k8s_openapi::api::core::v1::Taint;

use crate::{cache::TaintPolicy, fleet::Fleet};

pub(crate) const NO_SCHEDULE: &str = "NoSchedule";

/// Our own taints, and the status of Ready that has them put on a Cluster.
pub(crate) const OWN: [(&str, &str); 2] = [(taint::NOT_READY, "False"), (taint::UNREACHABLE, "Unknown")];

/// Whether two specs differ in nothing that others say: not in our own taints, those that policies name, and when a taint was
/// added. Cost: O(size of the specs); O(taints × those of all policies) when they differ.
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

/// Whether a taint follows from the condition Ready.
pub(crate) fn is_own(taint: &Taint) -> bool {
    taint.effect == NO_SCHEDULE && OWN.iter().any(|(key, _)| taint.key == *key)
}

/// Whether some policy names a taint.
fn is_named(fleet: &Fleet, taint: &Taint) -> bool {
    let taints = |policy: &TaintPolicy| {
        let mut named = policy.object.spec.taints.iter();
        named.any(|each| each.key == taint.key && each.effect == taint.effect)
    };
    fleet.cache.taint_policies.values().any(taints)
}
