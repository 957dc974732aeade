//! The native kinds: one table, and one file for each kind with all its operations.
//!
//! An operation that a kind lacks keeps the default of [`NativeKind`], which documents the meaning of "not available".

mod api_service;
mod ca_bundle;
mod cluster_role;
mod config_map;
mod cron_job;
mod custom_resource_definition;
mod daemon_set;
mod deployment;
mod endpoint_slice;
mod horizontal_pod_autoscaler;
mod ingress;
mod job;
mod load_balancer;
mod namespace;
mod persistent_volume;
mod persistent_volume_claim;
mod pod;
mod pod_disruption_budget;
mod replica_set;
mod replication_controller;
mod resource_distribution;
mod resource_quota;
mod secret;
mod service;
mod service_account;
mod service_export;
mod service_import;
mod stateful_set;
mod webhook_configuration;

use std::sync::LazyLock;

use entourage_api::keys::annotation;
use serde_json::Value;

use crate::{
    counters,
    gvk::NativeGvk,
    health::Health,
    json::{at, remove, remove_keys, set, text},
    kind::{NativeKind, Resource, prune_metadata},
    operations::Operation,
    shipped,
};
pub use job::{completions, revise_completions};

/// Every interpreted kind. It lists each version that a server from 1.20 on serves and does not convert to another of the same
/// name: a policy that names such a version selects that version.
///
/// Third-party kinds with rules instead of code are in [`shipped`]: no right is granted and no request is sent because of them
/// alone.
///
/// Other kinds are propagated too, without a rule: their whole status is reported and they are healthy once they exist.
/// Checked, and without need of a rule: Role, RoleBinding, ClusterRoleBinding, NetworkPolicy, LimitRange, StorageClass,
/// PriorityClass, Endpoints (members set nothing in them but defaults, which are the hub's too). None of them has a status that
/// changes while it has no generation: a kind that does needs a rule, or each change of its status looks like a new version
/// ([`content_number`](super::content_number)).
pub const NATIVE: &[&dyn NativeKind] = &[
    &api_service::ApiService,
    &cluster_role::ClusterRole,
    &config_map::ConfigMap,
    &cron_job::CronJob("v1"),
    &cron_job::CronJob("v1beta1"),
    &custom_resource_definition::CustomResourceDefinition,
    &daemon_set::DaemonSet,
    &deployment::Deployment,
    &endpoint_slice::EndpointSlice("v1"),
    &endpoint_slice::EndpointSlice("v1beta1"),
    &horizontal_pod_autoscaler::HorizontalPodAutoscaler("v1"),
    &horizontal_pod_autoscaler::HorizontalPodAutoscaler("v2"),
    &horizontal_pod_autoscaler::HorizontalPodAutoscaler("v2beta2"),
    &ingress::Ingress,
    &job::Job,
    &namespace::Namespace,
    &persistent_volume::PersistentVolume,
    &persistent_volume_claim::PersistentVolumeClaim,
    &pod::Pod,
    &pod_disruption_budget::PodDisruptionBudget("v1"),
    &pod_disruption_budget::PodDisruptionBudget("v1beta1"),
    &replica_set::ReplicaSet,
    &replication_controller::ReplicationController,
    &resource_distribution::ResourceDistribution("v1alpha1"),
    &resource_distribution::ResourceDistribution("v1beta1"),
    &resource_quota::ResourceQuota,
    &secret::Secret,
    &service::Service,
    &service_account::ServiceAccount,
    &service_export::ServiceExport,
    &service_import::ServiceImport,
    &stateful_set::StatefulSet,
    &webhook_configuration::WebhookConfiguration("MutatingWebhookConfiguration"),
    &webhook_configuration::WebhookConfiguration("ValidatingWebhookConfiguration"),
];

/// The interpreted kind of this group, version and kind; versions are exact. `None` for any other.
///
/// Those that have code come before those that have rules ([`shipped`]). Cost: O(log n).
#[must_use]
pub fn native(group: &str, version: &str, kind: &str) -> Option<&'static dyn NativeKind> {
    static KNOWN: LazyLock<Vec<(NativeGvk<'static>, &'static dyn NativeKind)>> = LazyLock::new(|| {
        let shipped = shipped::all().iter().map(|kind| kind as &dyn NativeKind);
        let mut known: Vec<_> = NATIVE
            .iter()
            .copied()
            .chain(shipped)
            .map(|kind| (kind.gvk(), kind))
            .collect();
        known.sort_by_key(|(gvk, _)| *gvk);
        known.dedup_by_key(|(gvk, _)| *gvk);
        known
    });
    let wanted = NativeGvk { group, version, kind };
    let place = KNOWN.binary_search_by(|(gvk, _)| (*gvk).cmp(&wanted)).ok()?;
    KNOWN.get(place).map(|(_, native)| *native)
}

/// True if a native kind has an operation.
#[must_use]
pub fn has(native: &dyn NativeKind, operation: Operation) -> bool {
    native.operations().contains(&operation)
}

/// The replicas that a copy requests, if its kind is scaled by autoscalers and its label leaves them to the member.
#[must_use]
pub fn left_to_member(native: &dyn NativeKind, copy: &Value) -> Option<u32> {
    let is_left = native.is_scaled() && counters::retains_replicas(copy);
    let replicas = is_left.then(|| native.replicas(copy))??;
    u32::try_from(replicas).ok()
}

/// Removes the fields of a template that are never propagated, whatever its kind: all fields that an API server sets, ownership
/// and finalizers (they name objects of the hub), status, and kubectl's last-applied annotation (it contains the whole object,
/// a Secret's content too).
///
/// Source: Karmada reference 1.4; `generateName` and the annotation are ours.
pub fn common_prune(template: &mut Value) {
    remove(template, &["status"]);
    for field in SERVER_SET_METADATA {
        remove(template, &["metadata", field]);
    }
    remove_keys(
        template,
        &["metadata", "annotations"],
        &[annotation::LAST_APPLIED],
    );
}

/// True if an object is never propagated, whatever refers to it: a service-account token is a credential of one
/// cluster's API server. Source: architecture 2.4; Karmada reference B47.
#[must_use]
pub fn not_propagatable(object: &Value) -> bool {
    text(object, &["kind"]) == "Secret" && text(object, &["type"]) == "kubernetes.io/service-account-token"
}

/// The part of an object that its kind's [`aggregate_reads`](NativeKind::aggregate_reads) names.
#[must_use]
pub fn aggregate_reads(native: &dyn NativeKind, object: &Value) -> Value {
    let mut kept = Value::Null;
    for path in native.aggregate_reads() {
        let value = at(object, path);
        if !value.is_null() {
            set(&mut kept, path, value.clone());
        }
    }
    kept
}

const SERVER_SET_METADATA: &[&str] = &[
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "generation",
    "managedFields",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// The path of the pod spec in every workload but a Pod.
const TEMPLATE_SPEC: &[&str] = &["spec", "template", "spec"];

/// The whole status of a live copy, for kinds of which the hub shows all of it (Karmada reference 3.1).
fn whole_status(live: &Value) -> Option<Value> {
    live.get("status").filter(|status| status.is_object()).cloned()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;

    #[test]
    fn no_kind_is_listed_twice_and_each_is_found_by_its_exact_version() {
        let gvks: BTreeSet<_> = NATIVE.iter().map(|kind| kind.gvk()).collect();
        assert_eq!(gvks.len(), NATIVE.len());
        for kind in NATIVE {
            let gvk = kind.gvk();
            assert_eq!(
                native(gvk.group, gvk.version, gvk.kind).map(|found| found.gvk()),
                Some(gvk)
            );
            assert!(native(gvk.group, "v1alpha9", gvk.kind).is_none());
            assert!(!kind.summary().is_empty());
        }
    }

    #[test]
    fn a_kind_asks_for_as_many_replicas_as_it_was_revised_to() {
        let divided: Vec<_> = NATIVE
            .iter()
            .filter(|kind| {
                let mut object = json!({"spec": {}});
                assert!(
                    kind.replicas(&object).is_none_or(|replicas| replicas == 1),
                    "an API server fills in 1"
                );
                assert_eq!(kind.replicas(&json!({})), None);
                kind.revise_replicas(&mut object, 3);
                kind.replicas(&object) == Some(3)
            })
            .map(|kind| kind.gvk().kind)
            .collect();
        assert_eq!(
            divided,
            [
                "Deployment",
                "Job",
                "ReplicaSet",
                "ReplicationController",
                "StatefulSet"
            ]
        );
    }

    #[test]
    fn completions_are_revised_apart_from_replicas() {
        let mut job = json!({"spec": {"parallelism": 2, "completions": 4}});
        revise_completions(&mut job, 3);
        assert_eq!(
            (completions(&job), NativeKind::replicas(&job::Job, &job)),
            (Some(3), Some(2))
        );
        assert_eq!(completions(&json!({})), None);
    }

    #[test]
    fn a_service_account_token_is_never_propagated_and_other_secrets_are() {
        assert!(not_propagatable(
            &json!({"kind": "Secret", "type": "kubernetes.io/service-account-token"})
        ));
        assert!(!not_propagatable(&json!({"kind": "Secret", "type": "Opaque"})));
        assert!(!not_propagatable(
            &json!({"kind": "ConfigMap", "type": "kubernetes.io/service-account-token"})
        ));
    }

    #[test]
    fn an_annotation_map_left_empty_by_pruning_goes_too() {
        let mut object =
            json!({"metadata": {"name": "a", "annotations": {annotation::LAST_APPLIED: "canary"}}});
        common_prune(&mut object);
        assert_eq!(object, json!({"metadata": {"name": "a"}}));
    }
}
