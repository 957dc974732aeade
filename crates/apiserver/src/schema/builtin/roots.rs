//! The kinds from whose types the schemas are made.

use k8s_openapi::{
    api::{
        admissionregistration::v1 as admissionregistration_v1,
        apps::v1 as apps_v1,
        authentication::v1 as authentication_v1,
        authorization::v1 as authorization_v1,
        autoscaling::{v1 as autoscaling_v1, v2 as autoscaling_v2},
        batch::v1 as batch_v1,
        certificates::v1 as certificates_v1,
        coordination::v1 as coordination_v1,
        core::v1 as core_v1,
        discovery::v1 as discovery_v1,
        events::v1 as events_v1,
        networking::v1 as networking_v1,
        node::v1 as node_v1,
        policy::v1 as policy_v1,
        rbac::v1 as rbac_v1,
        scheduling::v1 as scheduling_v1,
        storage::v1 as storage_v1,
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1 as apiextensions_v1,
    apimachinery::pkg::apis::meta::v1 as meta_v1,
};
use schemars::{JsonSchema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value};

/// Name of a kind's definition, and what adds it to a generator.
struct Root {
    name: fn() -> std::borrow::Cow<'static, str>,
    add: fn(&mut SchemaGenerator),
}

fn add<T: JsonSchema>(generator: &mut SchemaGenerator) {
    let _ = generator.subschema_for::<T>();
}

macro_rules! roots {
    ($($module:ident => $($kind:ident)+;)+) => {
        &[$($(Root {
            name: <$module::$kind as JsonSchema>::schema_name,
            add: add::<$module::$kind>,
        },)+)+]
    };
}

const ROOTS: &[Root] = roots! {
    admissionregistration_v1 =>
        MutatingAdmissionPolicy MutatingAdmissionPolicyBinding MutatingWebhookConfiguration
        ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding ValidatingWebhookConfiguration;
    apiextensions_v1 => CustomResourceDefinition;
    apps_v1 => ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet;
    authentication_v1 => SelfSubjectReview TokenRequest TokenReview;
    authorization_v1 =>
        LocalSubjectAccessReview SelfSubjectAccessReview SelfSubjectRulesReview SubjectAccessReview;
    autoscaling_v1 => HorizontalPodAutoscaler Scale;
    autoscaling_v2 => HorizontalPodAutoscaler;
    batch_v1 => CronJob Job;
    certificates_v1 => CertificateSigningRequest;
    coordination_v1 => Lease;
    core_v1 =>
        Binding ComponentStatus ConfigMap Endpoints Event LimitRange Namespace Node PersistentVolume
        PersistentVolumeClaim Pod PodTemplate ReplicationController ResourceQuota Secret Service
        ServiceAccount;
    discovery_v1 => EndpointSlice;
    events_v1 => Event;
    networking_v1 => IPAddress Ingress IngressClass NetworkPolicy ServiceCIDR;
    node_v1 => RuntimeClass;
    policy_v1 => Eviction PodDisruptionBudget;
    rbac_v1 => ClusterRole ClusterRoleBinding Role RoleBinding;
    scheduling_v1 => PriorityClass;
    storage_v1 => CSIDriver CSINode CSIStorageCapacity StorageClass VolumeAttachment;
    meta_v1 => DeleteOptions ObjectMeta;
};

/// Every definition that can be asked for before any other was.
#[cfg(test)]
pub(super) fn names() -> impl Iterator<Item = String> {
    ROOTS.iter().map(|root| (root.name)().into_owned())
}

/// The definitions that a definition is made of, itself included. What is no kind is looked for among all kinds.
pub(super) fn generate(name: &str) -> Map<String, Value> {
    let mut generator = SchemaSettings::openapi3().into_generator();
    let known = ROOTS.iter().any(|root| (root.name)() == name);
    for root in ROOTS.iter().filter(|root| !known || (root.name)() == name) {
        (root.add)(&mut generator);
    }
    generator.take_definitions(false).into_iter().collect()
}
