//! The execution namespaces of Clusters, `karmada-es-<cluster>` on the hub, as observed.

use entourage_api::{
    keys::{TRUE, label},
    names,
};

use crate::{fleet::Fleet, member_namespace::Seen, object::Meta, observation::Watch};

impl Fleet {
    /// The execution namespace of a Cluster, if it exists. Cost: O(log namespaces).
    pub(crate) fn execution_namespace(&self, cluster: &str) -> Option<&Meta> {
        self.cache
            .namespaces
            .hub
            .get(names::execution_namespace(cluster).as_str())
    }

    /// True if a cluster has a namespace of this hub, or one that is being deleted. Cost: O(namespaces there).
    pub(crate) fn holds_namespaces(&self, cluster: &str) -> bool {
        let mut all = self.cache.namespaces.members.get(cluster).into_iter().flatten();
        all.any(|(_, seen)| seen.deleting || self.is_left_with(seen, cluster))
    }

    /// True if a namespace of a cluster in Pull mode is released when the Cluster leaves: it has the record of this hub, or none at
    /// all and is ours by the label of its Work alone. A copy of a binding is removed as one.
    pub(crate) fn is_left_with(&self, seen: &Seen, cluster: &str) -> bool {
        let hub = &self.config.hub;
        let has_no_record = seen.created_by.is_none()
            && !seen.labels.contains_key(label::HUB)
            && !seen.has_records_of_others(hub);
        seen.is_of(hub, cluster) || (self.is_pull(cluster) && has_no_record)
    }

    /// True if a Cluster that leaves must wait for its execution namespace: it has the label of the system, so that it is deleted
    /// with the Cluster, or whether it exists is not known yet. Cost: O(log namespaces).
    pub(crate) fn awaits_execution_namespace(&self, cluster: &str) -> bool {
        let stands = self.execution_namespace(cluster).is_some_and(is_of_system);
        stands || !self.cache.watches.is_listed(&Watch::Namespaces)
    }
}

/// True if a control plane created an execution namespace: this one or, on a hub that was Karmada's, Karmada. Karmada reference 0.2.
pub(crate) fn is_of_system(namespace: &Meta) -> bool {
    namespace.label(label::SYSTEM) == Some(TRUE)
}
