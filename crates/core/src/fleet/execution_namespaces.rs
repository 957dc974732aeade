//! The execution namespaces of Clusters, `karmada-es-<cluster>` on the hub, as observed.

use entourage_api::{
    keys::{TRUE, label},
    names,
};

use crate::{fleet::Fleet, object::Meta, observation::Watch};

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
        all.any(|(_, seen)| seen.deleting || seen.is_of(&self.config.hub, cluster))
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
