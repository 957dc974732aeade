//! Which built-in kind has which rules.

use std::sync::Arc;

use super::{
    admission_objects, autoscalers, budgets, certificates, claims, components, config_maps, crds, cron_jobs,
    daemon_sets, deployments, endpoints, events, ingresses, jobs, kind::Kind, leases, namespaces, networks,
    nodes, pods, quotas, rbac, replica_sets, revisions, scheduling, service_accounts, services,
    stateful_sets, storage,
};
use crate::resource::{Plain, Rules};

/// The rules of a kind; [`Plain`] for one without any.
pub(super) fn of(group: &str, version: &str, kind: &str) -> Arc<dyn Rules> {
    match (group, kind) {
        ("", "Namespace") => Arc::new(namespaces::Namespace),
        ("", "Pod") => Arc::new(pods::Pods),
        ("", "PodTemplate") => Arc::new(revisions::PodTemplates),
        ("", "ReplicationController") => Arc::new(replica_sets::ReplicationControllers),
        ("", "Service") => Arc::new(services::Service::default()),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => Arc::new(crds::Crd),
        ("apps", "ControllerRevision") => Arc::new(revisions::Revisions),
        ("apps", "DaemonSet") => Arc::new(daemon_sets::DaemonSets),
        ("apps", "Deployment") => Arc::new(deployments::Deployments),
        ("apps", "ReplicaSet") => Arc::new(replica_sets::ReplicaSets),
        ("apps", "StatefulSet") => Arc::new(stateful_sets::StatefulSets),
        ("autoscaling", "HorizontalPodAutoscaler") => Arc::new(autoscalers::Autoscalers {
            first: version == "v1",
        }),
        ("batch", "CronJob") => Arc::new(cron_jobs::CronJobs),
        ("batch", "Job") => Arc::new(jobs::Jobs),
        ("events.k8s.io", "Event") => Arc::new(events::Modern),
        ("policy", "PodDisruptionBudget") => Arc::new(budgets::Budgets),
        _ => match of_table(group, kind) {
            Some(kind) => Arc::new(kind),
            None => Arc::new(Plain),
        },
    }
}

/// The kinds whose rules are flags and functions.
fn of_table(group: &str, kind: &str) -> Option<&'static Kind> {
    Some(match (group, kind) {
        ("", "ComponentStatus") => &components::COMPONENT_STATUS,
        ("", "ConfigMap") => &config_maps::CONFIG_MAP,
        ("", "Endpoints") => &endpoints::ENDPOINTS,
        ("", "Event") => &events::EVENT,
        ("", "LimitRange") => &quotas::LIMIT_RANGE,
        ("", "Node") => &nodes::NODE,
        ("", "PersistentVolume") => &claims::VOLUME,
        ("", "PersistentVolumeClaim") => &claims::CLAIM,
        ("", "ResourceQuota") => &quotas::QUOTA,
        ("", "Secret") => &config_maps::SECRET,
        ("", "ServiceAccount") => &service_accounts::SERVICE_ACCOUNT,
        ("admissionregistration.k8s.io", "MutatingAdmissionPolicy") => &admission_objects::MUTATING_POLICY,
        ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding") => {
            &admission_objects::MUTATING_BINDING
        }
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration") => {
            &admission_objects::MUTATING_WEBHOOKS
        }
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy") => {
            &admission_objects::VALIDATING_POLICY
        }
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding") => {
            &admission_objects::VALIDATING_BINDING
        }
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration") => {
            &admission_objects::VALIDATING_WEBHOOKS
        }
        ("certificates.k8s.io", "CertificateSigningRequest") => &certificates::REQUEST,
        ("coordination.k8s.io", "Lease") => &leases::LEASE,
        ("discovery.k8s.io", "EndpointSlice") => &endpoints::ENDPOINT_SLICE,
        ("networking.k8s.io", "IPAddress") => &networks::IP_ADDRESS,
        ("networking.k8s.io", "Ingress") => &ingresses::INGRESS,
        ("networking.k8s.io", "IngressClass") => &ingresses::INGRESS_CLASS,
        ("networking.k8s.io", "NetworkPolicy") => &networks::NETWORK_POLICY,
        ("networking.k8s.io", "ServiceCIDR") => &networks::SERVICE_CIDR,
        ("node.k8s.io", "RuntimeClass") => &scheduling::RUNTIME_CLASS,
        ("rbac.authorization.k8s.io", "ClusterRole") => &rbac::CLUSTER_ROLE,
        ("rbac.authorization.k8s.io", "ClusterRoleBinding") => &rbac::CLUSTER_ROLE_BINDING,
        ("rbac.authorization.k8s.io", "Role") => &rbac::ROLE,
        ("rbac.authorization.k8s.io", "RoleBinding") => &rbac::ROLE_BINDING,
        ("scheduling.k8s.io", "PriorityClass") => &scheduling::PRIORITY_CLASS,
        ("storage.k8s.io", "CSIDriver") => &storage::CSI_DRIVER,
        ("storage.k8s.io", "CSINode") => &storage::CSI_NODE,
        ("storage.k8s.io", "CSIStorageCapacity") => &storage::CAPACITY,
        ("storage.k8s.io", "StorageClass") => &storage::STORAGE_CLASS,
        ("storage.k8s.io", "VolumeAttachment") => &storage::ATTACHMENT,
        _ => return None,
    })
}
