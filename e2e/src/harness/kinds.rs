//! The kinds that tests deal in.

/// A kind and where it is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// `Deployment`.
    pub kind: &'static str,
    /// `apps/v1`.
    pub api_version: &'static str,
    /// `deployments`.
    pub plural: &'static str,
    /// Whether it lies in namespaces.
    pub namespaced: bool,
}

impl Kind {
    /// The path of a collection, or of an object in it.
    #[must_use]
    pub fn path(&self, namespace: &str, name: Option<&str>) -> String {
        let root = if self.api_version.contains('/') {
            "/apis"
        } else {
            "/api"
        };
        let mut path = format!("{root}/{}", self.api_version);
        if self.namespaced && !namespace.is_empty() {
            path += &format!("/namespaces/{namespace}");
        }
        path += &format!("/{}", self.plural);
        if let Some(name) = name {
            path += &format!("/{name}");
        }
        path
    }
}

const fn namespaced(kind: &'static str, api_version: &'static str, plural: &'static str) -> Kind {
    Kind {
        kind,
        api_version,
        plural,
        namespaced: true,
    }
}

const fn cluster(kind: &'static str, api_version: &'static str, plural: &'static str) -> Kind {
    Kind {
        kind,
        api_version,
        plural,
        namespaced: false,
    }
}

/// Every kind, each once.
pub const KINDS: &[Kind] = &[
    namespaced("Deployment", "apps/v1", "deployments"),
    namespaced("StatefulSet", "apps/v1", "statefulsets"),
    namespaced("DaemonSet", "apps/v1", "daemonsets"),
    namespaced("ReplicaSet", "apps/v1", "replicasets"),
    namespaced("Job", "batch/v1", "jobs"),
    namespaced("Pod", "v1", "pods"),
    namespaced("ConfigMap", "v1", "configmaps"),
    namespaced("Secret", "v1", "secrets"),
    namespaced("ServiceAccount", "v1", "serviceaccounts"),
    namespaced("PersistentVolumeClaim", "v1", "persistentvolumeclaims"),
    namespaced("Event", "v1", "events"),
    namespaced("ResourceQuota", "v1", "resourcequotas"),
    namespaced(
        "PropagationPolicy",
        "policy.karmada.io/v1alpha1",
        "propagationpolicies",
    ),
    namespaced("ResourceBinding", "work.karmada.io/v1alpha2", "resourcebindings"),
    cluster("Cluster", "cluster.karmada.io/v1alpha1", "clusters"),
    cluster("Namespace", "v1", "namespaces"),
    cluster(
        "CustomResourceDefinition",
        "apiextensions.k8s.io/v1",
        "customresourcedefinitions",
    ),
    cluster("ClusterRole", "rbac.authorization.k8s.io/v1", "clusterroles"),
];

/// The kinds of workloads.
pub const WORKLOADS: &[&str] = &[
    "Deployment",
    "StatefulSet",
    "DaemonSet",
    "ReplicaSet",
    "Job",
    "Pod",
];

/// The kinds of what workloads take along.
pub const DEPENDENCIES: &[&str] = &["ConfigMap", "Secret", "ServiceAccount", "PersistentVolumeClaim"];

/// A kind by its name.
///
/// # Panics
/// When [`KINDS`] does not list it: a mistake in the test.
#[must_use]
pub fn kind(name: &str) -> &'static Kind {
    KINDS
        .iter()
        .find(|kind| kind.kind == name)
        .unwrap_or_else(|| panic!("KINDS does not list {name}"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn paths_are_those_of_the_api() {
        assert_eq!(
            kind("Deployment").path("ns", Some("a")),
            "/apis/apps/v1/namespaces/ns/deployments/a"
        );
        assert_eq!(kind("ConfigMap").path("", None), "/api/v1/configmaps");
        assert_eq!(
            kind("Cluster").path("", Some("m")),
            "/apis/cluster.karmada.io/v1alpha1/clusters/m"
        );
    }

    #[test]
    fn every_kind_is_listed_once() {
        let names: BTreeSet<_> = KINDS.iter().map(|kind| kind.kind).collect();
        assert_eq!(names.len(), KINDS.len());
        for name in WORKLOADS.iter().chain(DEPENDENCIES) {
            assert!(kind(name).namespaced, "{name}");
        }
    }
}
