//! The Ready condition of a Cluster, as stored.

use entourage_api::{
    cluster::Cluster,
    keys::{condition, reason},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

/// True if the Ready condition of a Cluster, as stored, is True.
pub(crate) fn is_ready(cluster: &Cluster) -> bool {
    stored_ready(cluster).is_some_and(|each| each.status == "True")
}

/// The Ready condition of a Cluster, as stored, or `None` if it has none.
pub(crate) fn stored_ready(cluster: &Cluster) -> Option<&Condition> {
    let mut all = cluster.status.iter().flat_map(|status| &status.conditions);
    all.find(|each| each.type_ == condition::READY)
}

/// True if pods of a Cluster may be used from others, as far as its Ready condition says: it is True, or the fault is the hub's, which is
/// cut off.
pub(crate) fn may_serve(cluster: &Cluster) -> bool {
    stored_ready(cluster).is_some_and(|ready| ready.status == "True" || is_cut_off(ready))
}

/// True if the Ready condition of a Cluster reports that the hub is cut off from it.
pub(crate) fn is_cut_off(ready: &Condition) -> bool {
    ready.status == "Unknown" && ready.reason == reason::HUB_CUT_OFF
}
