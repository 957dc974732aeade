//! The kinds that are built in: one table, and who finds what in it and in the CRDs.

use std::sync::Arc;

use crate::resource::{Kinds, LazySchema, Resource, Rules};

mod admission_objects;
pub(crate) mod amounts;
mod autoscalers;
mod budgets;
mod certificates;
mod claims;
mod components;
mod config_maps;
mod crds;
mod cron_jobs;
mod daemon_sets;
mod deployments;
mod endpoints;
mod events;
mod ingresses;
mod jobs;
mod kind;
mod leases;
pub(crate) mod namespaces;
mod networks;
mod nodes;
pub(crate) mod pod_security;
mod pod_spec;
pub(crate) mod pods;
mod quotas;
mod rbac;
mod replica_sets;
mod revisions;
mod rules;
mod scheduling;
mod service_accounts;
mod services;
mod stateful_sets;
mod storage;
pub(crate) mod workloads;

/// A row of the table.
struct Row {
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
    short: &'static str,
    categories: &'static str,
    namespaced: bool,
    /// Subresources beside the object.
    sub: &'static str,
    /// Group of the definition in `io.k8s.api.<…>.<version>.<kind>`.
    definition: &'static str,
    verbs: Verbs,
}

/// Which verbs the resource has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verbs {
    /// All eight.
    All,
    /// All but deletecollection (namespaces).
    NoCollection,
    /// Only create (reviews).
    Create,
    /// Only get and list (component statuses).
    Read,
}

impl Verbs {
    fn list(self) -> Vec<&'static str> {
        match self {
            Self::All => vec![
                "create",
                "delete",
                "deletecollection",
                "get",
                "list",
                "patch",
                "update",
                "watch",
            ],
            Self::NoCollection => vec!["create", "delete", "get", "list", "patch", "update", "watch"],
            Self::Create => vec!["create"],
            Self::Read => vec!["get", "list"],
        }
    }
}

const N: bool = true;
const C: bool = false;

macro_rules! rows {
    ($($group:literal $version:literal $definition:literal: [
        $($kind:literal $plural:literal $short:literal $categories:literal $namespaced:ident $sub:literal $verbs:ident;)*
    ])*) => {
        &[$($(Row {
            group: $group, version: $version, kind: $kind, plural: $plural, short: $short, categories: $categories,
            namespaced: $namespaced, sub: $sub, definition: $definition, verbs: Verbs::$verbs,
        },)*)*]
    };
}

/// Every built-in resource: kind, plural, short names, categories, N(amespaced) or C(luster), subresources, verbs.
const BUILTIN: &[Row] = rows! {
    "" "v1" "core": [
        "Binding" "bindings" "" "" N "" Create;
        "ComponentStatus" "componentstatuses" "cs" "" C "" Read;
        "ConfigMap" "configmaps" "cm" "" N "" All;
        "Endpoints" "endpoints" "ep" "" N "" All;
        "Event" "events" "ev" "" N "" All;
        "LimitRange" "limitranges" "limits" "" N "" All;
        "Namespace" "namespaces" "ns" "" C "finalize status" NoCollection;
        "Node" "nodes" "no" "" C "proxy status" All;
        "PersistentVolume" "persistentvolumes" "pv" "" C "status" All;
        "PersistentVolumeClaim" "persistentvolumeclaims" "pvc" "" N "status" All;
        "Pod" "pods" "po" "all" N "attach binding ephemeralcontainers eviction exec log portforward proxy resize status" All;
        "PodTemplate" "podtemplates" "" "" N "" All;
        "ReplicationController" "replicationcontrollers" "rc" "all" N "scale status" All;
        "ResourceQuota" "resourcequotas" "quota" "" N "status" All;
        "Secret" "secrets" "" "" N "" All;
        "Service" "services" "svc" "all" N "proxy status" All;
        "ServiceAccount" "serviceaccounts" "sa" "" N "token" All;
    ]
    "events.k8s.io" "v1" "events": [ "Event" "events" "ev" "" N "" All; ]
    "authentication.k8s.io" "v1" "authentication": [
        "SelfSubjectReview" "selfsubjectreviews" "" "" C "" Create;
        "TokenReview" "tokenreviews" "" "" C "" Create;
    ]
    "authorization.k8s.io" "v1" "authorization": [
        "LocalSubjectAccessReview" "localsubjectaccessreviews" "" "" N "" Create;
        "SelfSubjectAccessReview" "selfsubjectaccessreviews" "" "" C "" Create;
        "SelfSubjectRulesReview" "selfsubjectrulesreviews" "" "" C "" Create;
        "SubjectAccessReview" "subjectaccessreviews" "" "" C "" Create;
    ]
    "autoscaling" "v2" "autoscaling": [
        "HorizontalPodAutoscaler" "horizontalpodautoscalers" "hpa" "all" N "status" All;
    ]
    "autoscaling" "v1" "autoscaling": [
        "HorizontalPodAutoscaler" "horizontalpodautoscalers" "hpa" "all" N "status" All;
    ]
    "batch" "v1" "batch": [
        "CronJob" "cronjobs" "cj" "all" N "status" All;
        "Job" "jobs" "" "all" N "status" All;
    ]
    "certificates.k8s.io" "v1" "certificates": [
        "CertificateSigningRequest" "certificatesigningrequests" "csr" "" C "approval status" All;
    ]
    "networking.k8s.io" "v1" "networking": [
        "Ingress" "ingresses" "ing" "" N "status" All;
        "IngressClass" "ingressclasses" "" "" C "" All;
        "IPAddress" "ipaddresses" "ip" "" C "" All;
        "NetworkPolicy" "networkpolicies" "netpol" "" N "" All;
        "ServiceCIDR" "servicecidrs" "" "" C "status" All;
    ]
    "policy" "v1" "policy": [
        "PodDisruptionBudget" "poddisruptionbudgets" "pdb" "" N "status" All;
    ]
    "rbac.authorization.k8s.io" "v1" "rbac": [
        "ClusterRole" "clusterroles" "" "" C "" All;
        "ClusterRoleBinding" "clusterrolebindings" "" "" C "" All;
        "Role" "roles" "" "" N "" All;
        "RoleBinding" "rolebindings" "" "" N "" All;
    ]
    "storage.k8s.io" "v1" "storage": [
        "CSIDriver" "csidrivers" "" "" C "" All;
        "CSINode" "csinodes" "" "" C "" All;
        "CSIStorageCapacity" "csistoragecapacities" "" "" N "" All;
        "StorageClass" "storageclasses" "sc" "" C "" All;
        "VolumeAttachment" "volumeattachments" "" "" C "status" All;
    ]
    "admissionregistration.k8s.io" "v1" "admissionregistration": [
        "MutatingAdmissionPolicy" "mutatingadmissionpolicies" "" "api-extensions" C "" All;
        "MutatingAdmissionPolicyBinding" "mutatingadmissionpolicybindings" "" "api-extensions" C "" All;
        "MutatingWebhookConfiguration" "mutatingwebhookconfigurations" "" "api-extensions" C "" All;
        "ValidatingAdmissionPolicy" "validatingadmissionpolicies" "" "api-extensions" C "status" All;
        "ValidatingAdmissionPolicyBinding" "validatingadmissionpolicybindings" "" "api-extensions" C "" All;
        "ValidatingWebhookConfiguration" "validatingwebhookconfigurations" "" "api-extensions" C "" All;
    ]
    "apiextensions.k8s.io" "v1" "apiextensions": [
        "CustomResourceDefinition" "customresourcedefinitions" "crd crds" "api-extensions" C "status" All;
    ]
    "scheduling.k8s.io" "v1" "scheduling": [
        "PriorityClass" "priorityclasses" "pc" "" C "" All;
    ]
    "coordination.k8s.io" "v1" "coordination": [ "Lease" "leases" "" "" N "" All; ]
    "node.k8s.io" "v1" "node": [ "RuntimeClass" "runtimeclasses" "" "" C "" All; ]
    "discovery.k8s.io" "v1" "discovery": [ "EndpointSlice" "endpointslices" "" "" N "" All; ]
    "apps" "v1" "apps": [
        "ControllerRevision" "controllerrevisions" "" "" N "" All;
        "DaemonSet" "daemonsets" "ds" "all" N "status" All;
        "Deployment" "deployments" "deploy" "all" N "scale status" All;
        "ReplicaSet" "replicasets" "rs" "all" N "scale status" All;
        "StatefulSet" "statefulsets" "sts" "all" N "scale status" All;
    ]
};

/// The built-in resources. O(table).
#[must_use]
pub fn builtin() -> Kinds {
    let mut kinds = Kinds::default();
    for row in BUILTIN {
        kinds.add(Arc::new(resource(row)));
    }
    kinds
}

/// What is only ever sent to a subresource.
const EVICTION: &Row = &Row {
    group: "policy",
    version: "v1",
    kind: "Eviction",
    plural: "evictions",
    short: "",
    categories: "",
    namespaced: true,
    sub: "",
    definition: "policy",
    verbs: Verbs::Create,
};

/// The resource of an Eviction, which has no path of its own.
pub(crate) fn eviction() -> Resource {
    resource(EVICTION)
}

/// Versions that are no longer served, but still known: objects of them are told apart from objects of no kind.
const PAST: &[(&str, &[&str])] = &[
    ("admissionregistration.k8s.io", &["v1beta1"]),
    ("apiextensions.k8s.io", &["v1beta1"]),
    ("apps", &["v1beta1", "v1beta2"]),
    ("batch", &["v1beta1"]),
    ("certificates.k8s.io", &["v1beta1"]),
    ("coordination.k8s.io", &["v1beta1"]),
    ("discovery.k8s.io", &["v1beta1"]),
    ("events.k8s.io", &["v1beta1"]),
    ("networking.k8s.io", &["v1beta1"]),
    ("node.k8s.io", &["v1beta1"]),
    ("policy", &["v1beta1"]),
    ("rbac.authorization.k8s.io", &["v1alpha1", "v1beta1"]),
    ("scheduling.k8s.io", &["v1beta1"]),
    ("storage.k8s.io", &["v1beta1"]),
];

/// The name of the definition of a built-in kind, whatever path it is served at; `None` when there is no such kind. What is of
/// a past version has that of v1. O(table).
#[must_use]
pub fn definition_of(group: &str, version: &str, kind: &str) -> Option<String> {
    let is_past = PAST
        .iter()
        .any(|(name, versions)| *name == group && versions.contains(&version));
    let version = if is_past { "v1" } else { version };
    match (group, version, kind) {
        ("autoscaling", "v1", "Scale") => Some("io.k8s.api.autoscaling.v1.Scale".to_owned()),
        ("policy", "v1", "Eviction") => Some("io.k8s.api.policy.v1.Eviction".to_owned()),
        ("authentication.k8s.io", "v1", "TokenRequest") => {
            Some("io.k8s.api.authentication.v1.TokenRequest".to_owned())
        }
        _ => BUILTIN
            .iter()
            .find(|row| row.group == group && row.version == version && row.kind == kind)
            .map(definition),
    }
}

fn definition(row: &Row) -> String {
    match row.definition {
        "apiextensions" => format!(
            "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.{}.{}",
            row.version, row.kind
        ),
        group => format!("io.k8s.api.{group}.{}.{}", row.version, row.kind),
    }
}

fn resource(row: &'static Row) -> Resource {
    let definition = definition(row);
    let words = |text: &'static str| text.split_whitespace().map(str::to_owned).collect();
    // Both event APIs show the same objects.
    let owner = if row.group == "events.k8s.io" {
        ""
    } else {
        row.group
    };
    let collection = if owner.is_empty() {
        row.plural.to_owned()
    } else {
        format!("{owner}/{}", row.plural)
    };
    Resource {
        group: row.group.to_owned(),
        version: row.version.to_owned(),
        kind: row.kind.to_owned(),
        list_kind: format!("{}List", row.kind),
        plural: row.plural.to_owned(),
        singular: row.kind.to_ascii_lowercase(),
        short_names: words(row.short),
        categories: words(row.categories),
        namespaced: row.namespaced,
        verbs: row.verbs.list(),
        subresources: row.sub.split_whitespace().collect(),
        collection,
        schema: LazySchema::new(move || crate::schema::builtin::definition(&definition)),
        rules: rules_of(row.group, row.version, row.kind),
        custom: None,
    }
}

/// Turns an object of the resource's kind in another group and version into the form of the resource. O(object).
pub(crate) fn convert(
    (group, version): (&str, &str),
    resource: &Resource,
    object: &mut crate::object::Object,
) {
    rules_of(group, version, &resource.kind).to_stored(object);
    resource.rules.show_stored(object);
}

/// The rules of a built-in kind.
fn rules_of(group: &str, version: &str, kind: &str) -> Arc<dyn Rules> {
    rules::of(group, version, kind)
}
