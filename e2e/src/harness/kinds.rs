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
    /// True if it lies in namespaces.
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
    namespaced("CronJob", "batch/v1", "cronjobs"),
    namespaced("Pod", "v1", "pods"),
    namespaced("ReplicationController", "v1", "replicationcontrollers"),
    namespaced("Service", "v1", "services"),
    namespaced("NetworkPolicy", "networking.k8s.io/v1", "networkpolicies"),
    namespaced("Ingress", "networking.k8s.io/v1", "ingresses"),
    namespaced(
        "HorizontalPodAutoscaler",
        "autoscaling/v2",
        "horizontalpodautoscalers",
    ),
    namespaced("PodDisruptionBudget", "policy/v1", "poddisruptionbudgets"),
    cluster("PersistentVolume", "v1", "persistentvolumes"),
    namespaced("ConfigMap", "v1", "configmaps"),
    namespaced("Secret", "v1", "secrets"),
    namespaced("ServiceAccount", "v1", "serviceaccounts"),
    namespaced("PersistentVolumeClaim", "v1", "persistentvolumeclaims"),
    namespaced("Event", "v1", "events"),
    namespaced("ResourceQuota", "v1", "resourcequotas"),
    namespaced("EndpointSlice", "discovery.k8s.io/v1", "endpointslices"),
    namespaced(
        "ServiceExport",
        "multicluster.x-k8s.io/v1alpha1",
        "serviceexports",
    ),
    namespaced(
        "ServiceImport",
        "multicluster.x-k8s.io/v1alpha1",
        "serviceimports",
    ),
    namespaced(
        "PropagationPolicy",
        "policy.karmada.io/v1alpha1",
        "propagationpolicies",
    ),
    namespaced("OverridePolicy", "policy.karmada.io/v1alpha1", "overridepolicies"),
    namespaced("ResourceBinding", "work.karmada.io/v1alpha2", "resourcebindings"),
    cluster(
        "ClusterOverridePolicy",
        "policy.karmada.io/v1alpha1",
        "clusteroverridepolicies",
    ),
    cluster(
        "ClusterTaintPolicy",
        "policy.karmada.io/v1alpha1",
        "clustertaintpolicies",
    ),
    namespaced(
        "FederatedResourceQuota",
        "policy.karmada.io/v1alpha1",
        "federatedresourcequotas",
    ),
    cluster("Cluster", "cluster.karmada.io/v1alpha1", "clusters"),
    cluster("Namespace", "v1", "namespaces"),
    cluster(
        "CustomResourceDefinition",
        "apiextensions.k8s.io/v1",
        "customresourcedefinitions",
    ),
    namespaced("Role", "rbac.authorization.k8s.io/v1", "roles"),
    namespaced("RoleBinding", "rbac.authorization.k8s.io/v1", "rolebindings"),
    cluster("ClusterRole", "rbac.authorization.k8s.io/v1", "clusterroles"),
    cluster(
        "MutatingWebhookConfiguration",
        "admissionregistration.k8s.io/v1",
        "mutatingwebhookconfigurations",
    ),
    cluster(
        "ValidatingWebhookConfiguration",
        "admissionregistration.k8s.io/v1",
        "validatingwebhookconfigurations",
    ),
    cluster("PriorityClass", "scheduling.k8s.io/v1", "priorityclasses"),
    cluster(
        "ClusterPropagationPolicy",
        "policy.karmada.io/v1alpha1",
        "clusterpropagationpolicies",
    ),
    cluster(
        "ClusterResourceBinding",
        "work.karmada.io/v1alpha2",
        "clusterresourcebindings",
    ),
    cluster(
        "ResourceDistribution",
        "apps.kruise.io/v1alpha1",
        "resourcedistributions",
    ),
    cluster(
        "ResourceInterpreterCustomization",
        "config.karmada.io/v1alpha1",
        "resourceinterpretercustomizations",
    ),
    cluster(
        "ResourceInterpreterWebhookConfiguration",
        "config.karmada.io/v1alpha1",
        "resourceinterpreterwebhookconfigurations",
    ),
    cluster(
        "ResourceExploringWebhookConfiguration",
        "config.karmada.io/v1alpha1",
        "resourceexploringwebhookconfigurations",
    ),
    cluster(
        "WorkloadRebalancer",
        "apps.karmada.io/v1alpha1",
        "workloadrebalancers",
    ),
    // Not built in: tests install them.
    namespaced("Widget", "e2e.entourage.dev/v1", "widgets"),
    namespaced("Seer", "invented.entourage.dev/v1", "seers"),
    namespaced("Workload", "workload.example.io/v1alpha1", "workloads"),
];

/// The cluster-scoped kinds of which a test may leave objects; their names begin with the test's namespace.
pub(super) const OWN: &[&str] = &[
    "ClusterPropagationPolicy",
    "ClusterTaintPolicy",
    "ResourceDistribution",
    "ResourceInterpreterCustomization",
    "ResourceInterpreterWebhookConfiguration",
    "ResourceExploringWebhookConfiguration",
    "ClusterRole",
    "PriorityClass",
    "ClusterResourceBinding",
    "WorkloadRebalancer",
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

/// True if a kind is one of the control plane's own, which members do not serve.
pub(super) fn is_ours(kind_name: &str) -> bool {
    let api_version = kind(kind_name).api_version;
    api_version.contains("karmada.io") || api_version.contains("kruise.io")
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
