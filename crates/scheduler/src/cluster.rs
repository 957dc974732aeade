//! Accessors of a Cluster object.

use entourage_api::{
    cluster::{ApiEnablement, Cluster, ResourceSummary},
    keys::condition,
};

/// The status of its condition Ready, or `None` if it has no such condition.
pub(crate) fn ready(cluster: &Cluster) -> Option<&str> {
    let conditions = cluster.status.iter().flat_map(|status| &status.conditions);
    conditions
        .into_iter()
        .find(|each| each.type_ == condition::READY)
        .map(|each| each.status.as_str())
}

/// The APIs that it serves.
pub(crate) fn enablements(cluster: &Cluster) -> &[ApiEnablement] {
    cluster
        .status
        .as_ref()
        .map_or(&[], |status| &status.api_enablements)
}

/// The capacity that it reports, if it does.
pub(crate) fn resource_summary(cluster: &Cluster) -> Option<&ResourceSummary> {
    cluster.status.as_ref()?.resource_summary.as_ref()
}
