//! Which of the kinds that are propagated with rules of their own the controllers may manage by default: one table, of which
//! the roles on the hub (`config/rbac`) and those that `entourage join` makes on members are generated.
//!
//! By default are granted the kinds that lie in a namespace, which are what workloads consist of. What reaches over a whole
//! cluster, or decides who may do what there, is granted by its administrator, one kind at a time.

/// Where the rights for one kind that is not granted by default are, under the root of the repository: a folder each.
pub const KINDS_FOLDER: &str = "config/rbac-kinds";

/// A kind, and where it is granted by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PropagatedKind {
    /// API group; empty for the core group.
    pub group: &'static str,
    /// Kind.
    pub kind: &'static str,
    /// The resource: the plural in lower case.
    pub resource: &'static str,
    /// On the hub. What is not comes with `config/rbac-kinds/<resource>`.
    pub on_hub: bool,
    /// On members. What is not comes with `entourage join --allow`.
    pub on_members: bool,
}

/// Every kind with rules of its own, sorted by group and resource.
pub const PROPAGATED: &[PropagatedKind] = &[
    granted("", "ConfigMap", "configmaps"),
    // Namespaces are on every member, whatever policies say; only a policy of their own asks for more there.
    on_hub("", "Namespace", "namespaces"),
    granted("", "PersistentVolumeClaim", "persistentvolumeclaims"),
    on_request("", "PersistentVolume", "persistentvolumes"),
    granted("", "Pod", "pods"),
    granted("", "ReplicationController", "replicationcontrollers"),
    on_request("", "ResourceQuota", "resourcequotas"),
    // On the hub they are those of every tenant: config/hub grants them by a line that can be left out.
    on_members("", "Secret", "secrets"),
    granted("", "ServiceAccount", "serviceaccounts"),
    granted("", "Service", "services"),
    on_request(
        "admissionregistration.k8s.io",
        "MutatingWebhookConfiguration",
        "mutatingwebhookconfigurations",
    ),
    on_request(
        "admissionregistration.k8s.io",
        "ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations",
    ),
    on_request(
        "apiextensions.k8s.io",
        "CustomResourceDefinition",
        "customresourcedefinitions",
    ),
    on_request("apiregistration.k8s.io", "APIService", "apiservices"),
    granted("apps", "DaemonSet", "daemonsets"),
    granted("apps", "Deployment", "deployments"),
    granted("apps", "ReplicaSet", "replicasets"),
    granted("apps", "StatefulSet", "statefulsets"),
    on_request("apps.kruise.io", "ResourceDistribution", "resourcedistributions"),
    granted(
        "autoscaling",
        "HorizontalPodAutoscaler",
        "horizontalpodautoscalers",
    ),
    granted("batch", "CronJob", "cronjobs"),
    granted("batch", "Job", "jobs"),
    granted("discovery.k8s.io", "EndpointSlice", "endpointslices"),
    granted("multicluster.x-k8s.io", "ServiceImport", "serviceimports"),
    granted("networking.k8s.io", "Ingress", "ingresses"),
    granted("policy", "PodDisruptionBudget", "poddisruptionbudgets"),
    on_request("rbac.authorization.k8s.io", "ClusterRole", "clusterroles"),
];

const fn kind(
    (group, kind, resource): (&'static str, &'static str, &'static str),
    on_hub: bool,
    on_members: bool,
) -> PropagatedKind {
    PropagatedKind {
        group,
        kind,
        resource,
        on_hub,
        on_members,
    }
}

const fn granted(group: &'static str, name: &'static str, resource: &'static str) -> PropagatedKind {
    kind((group, name, resource), true, true)
}

const fn on_hub(group: &'static str, name: &'static str, resource: &'static str) -> PropagatedKind {
    kind((group, name, resource), true, false)
}

const fn on_members(group: &'static str, name: &'static str, resource: &'static str) -> PropagatedKind {
    kind((group, name, resource), false, true)
}

const fn on_request(group: &'static str, name: &'static str, resource: &'static str) -> PropagatedKind {
    kind((group, name, resource), false, false)
}

/// How the controllers are given the right to a kind that they may not list on the hub.
#[must_use]
pub fn remedy(group: &str, kind: &str) -> String {
    let known = PROPAGATED
        .iter()
        .find(|each| each.group == group && each.kind == kind);
    match known.filter(|each| !each.on_hub) {
        Some(each) => format!("kubectl apply -k {KINDS_FOLDER}/{} grants it", each.resource),
        None => "grant get, list, watch and patch of it, and update of its finalizers, to the controllers' account".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::NATIVE;

    #[test]
    fn every_native_kind_stands_in_the_table_once_and_nothing_else_does() {
        let native: BTreeSet<_> = NATIVE
            .iter()
            .map(|native| (native.gvk().group, native.gvk().kind))
            .collect();
        let table: Vec<_> = PROPAGATED.iter().map(|each| (each.group, each.kind)).collect();
        assert_eq!(table.iter().copied().collect::<BTreeSet<_>>(), native);
        assert_eq!(table.len(), native.len());
        let resources: BTreeSet<_> = PROPAGATED.iter().map(|each| each.resource).collect();
        assert_eq!(resources.len(), table.len(), "folders are named after resources");
    }

    #[test]
    fn what_decides_who_may_do_what_is_granted_nowhere_by_default() {
        for resource in [
            "apiservices",
            "clusterroles",
            "customresourcedefinitions",
            "mutatingwebhookconfigurations",
            "validatingwebhookconfigurations",
        ] {
            let found = PROPAGATED.iter().find(|each| each.resource == resource);
            assert!(
                found.is_some_and(|each| !each.on_hub && !each.on_members),
                "{resource}"
            );
        }
        let secrets = PROPAGATED.iter().find(|each| each.resource == "secrets");
        assert!(secrets.is_some_and(|each| !each.on_hub && each.on_members));
    }

    #[test]
    fn a_missing_right_is_told_with_what_grants_it() {
        let known = remedy("rbac.authorization.k8s.io", "ClusterRole");
        assert_eq!(known, "kubectl apply -k config/rbac-kinds/clusterroles grants it");
        for (group, kind) in [("example.com", "Widget"), ("apps", "Deployment")] {
            assert!(remedy(group, kind).contains("get, list, watch and patch"));
        }
    }
}
