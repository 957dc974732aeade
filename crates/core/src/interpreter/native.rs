//! The interpreted kinds: one table, one file a kind with all its operations.
//!
//! An operation that a kind lacks keeps the trait's default, which says what "not available" means.

mod api_service;
mod ca_bundle;
mod cluster_role;
mod config_map;
pub(super) mod counters;
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
mod service_import;
mod stateful_set;
mod webhook_configuration;

use std::{collections::BTreeSet, sync::LazyLock};

use entourage_api::keys::annotation;
use serde::Serialize;
use serde_json::Value;

use super::{
    declarative::Declared,
    json::{at, remove, remove_keys, set, text},
    shipped,
};
pub use job::{completions, revise_completions};

/// Every interpreted kind. A version stands here that some server from 1.20 on serves and does not convert to another of
/// the same name: a policy that names it means it.
///
/// Third-party kinds with rules instead of code are in [`shipped`]: nothing is granted or asked for because of them alone.
///
/// Other kinds travel too, without a rule: their whole status is reported and they are healthy once they exist. Checked
/// and in no need of a rule: Role, RoleBinding, ClusterRoleBinding, NetworkPolicy, LimitRange, StorageClass, PriorityClass,
/// Endpoints (nothing of them is set by a member but defaults, which are the hub's too). None of them has a status that
/// changes while it has no generation: a kind that does needs a rule, or each word of its status looks like a new version
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

/// Group, version and kind as plain strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NativeGvk<'a> {
    /// API group; empty for the core group.
    pub group: &'a str,
    /// API version within the group.
    pub version: &'a str,
    /// Kind, in its singular camel-case form.
    pub kind: &'a str,
}

/// How a copy is doing. Source: Karmada reference 0 (`aggregatedStatus[].health`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Health {
    /// It does what its spec asks for; kinds without a rule are healthy once they exist.
    Healthy,
    /// It does not, or not yet.
    Unhealthy,
    /// Its status cannot be read.
    #[default]
    Unknown,
}

/// A kind understood without configuration. Every function takes the whole object as an API server serves it.
pub trait NativeKind: Sync {
    /// Group, version and kind.
    fn gvk(&self) -> NativeGvk<'static>;

    /// What the kind is to us, in one line.
    fn summary(&self) -> &'static str;

    /// Whether a copy holds data that nothing else holds, so that it is not deleted but for a user's own word. Default: no.
    fn holds_data(&self, _live: &Value) -> bool {
        false
    }

    /// Where the pod spec lies in the object; `None` for a kind without one.
    fn pod_spec_path(&self) -> Option<&'static [&'static str]> {
        None
    }

    /// Whether the status of its copies is reported to the hub. Default: that of workloads is.
    fn reports_status(&self) -> bool {
        self.pod_spec_path().is_some()
    }

    /// The pod spec in the object; `None` if the kind has none or it is not an object.
    fn pod_template_spec<'a>(&self, object: &'a Value) -> Option<&'a Value> {
        Some(at(object, self.pod_spec_path()?)).filter(|spec| spec.is_object())
    }

    /// The rules that say what the object names, for a kind that has rules instead of code.
    fn declared(&self) -> Option<&Declared> {
        None
    }

    /// Names of claims that the workload makes itself and which are therefore no references. Default: none.
    fn own_claims<'a>(&self, _object: &'a Value) -> BTreeSet<&'a str> {
        BTreeSet::new()
    }

    /// Whether an object that this one names is made for it by controllers of the cluster where it is, and is therefore no
    /// reference. Asked of rows of its own, not of those of a pod spec. Default: none is.
    fn is_made_there(&self, _object: &Value, _name: &str) -> bool {
        false
    }

    /// How many replicas the object asks for (1 where an API server would fill that in); `None` for a kind that
    /// is not divided into replicas.
    fn replicas(&self, _object: &Value) -> Option<i64> {
        None
    }

    /// Makes the object ask for this many replicas. Default: nothing changes.
    fn revise_replicas(&self, _object: &mut Value, _replicas: i64) {}

    /// Whether an API server raises `metadata.generation` for a change of annotations, as it does for one of the spec.
    fn annotations_count_as_content(&self) -> bool {
        false
    }

    /// Labels that the hub's own machinery put on a template and that do not travel.
    fn hub_only_labels(&self, _template: &Value) -> &'static [&'static str] {
        &[]
    }

    /// Annotations that the hub's own machinery put on a template and that do not travel.
    fn hub_only_annotations(&self) -> &'static [&'static str] {
        &[]
    }

    /// Removes what the hub's own machinery set in the template: what is sent to a member must be what the user
    /// wrote. Runs after [`common_prune`].
    fn prune(&self, template: &mut Value) {
        prune_metadata(
            template,
            self.hub_only_labels(template),
            self.hub_only_annotations(),
        );
    }

    /// Whether [`retain`](Self::retain) does anything for this rendered object, so that an update needs the live
    /// copy first. Looks at `metadata.labels` only: an object with nothing but that is enough to ask.
    fn needs_live(&self, _desired: &Value) -> bool {
        false
    }

    /// Takes over into the rendered object what belongs to the member: fields that its API server or controllers
    /// set and that a PUT without them would be refused for, or fight over. Never touches metadata.
    fn retain(&self, _desired: &mut Value, _live: &Value) {}

    /// What of a live copy's status is reported to the hub; `None` for a kind without status, or when there is
    /// none yet.
    fn reflect(&self, _live: &Value) -> Option<Value> {
        None
    }

    /// How a live copy is doing. Default: it exists, so it is healthy (Karmada reference 1.6).
    fn health(&self, _live: &Value) -> Health {
        Health::Healthy
    }

    /// Whether [`reflect`](Self::reflect) answers a status of any size, so that a binding may have no room for it.
    fn reflects_all(&self) -> bool {
        false
    }

    /// Paths in the template that [`aggregate`](Self::aggregate) looks at, besides its generation, replicas and status.
    fn aggregate_reads(&self) -> &'static [&'static [&'static str]] {
        &[]
    }

    /// The template's status as a whole, from what each cluster reported (name of the cluster, reflected status
    /// or `None` when it has not reported). `template` is asked for its generation and its status as stored.
    /// `None` when the status would not change, and for kinds without one. Answers an object that an API server
    /// accepts as the next status after the stored one.
    fn aggregate(&self, _template: &Value, _items: &[(&str, Option<&Value>)]) -> Option<Value> {
        None
    }
}

/// Removes from a template what no object of any kind takes to a member: everything an API server sets itself,
/// ownership and finalizers (they name things of the hub), status, and kubectl's last-applied annotation (it holds
/// the whole object, a Secret's content too).
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

/// Whether an object must stay where it is, whatever refers to it: a service-account token is a credential of one
/// cluster's API server. Source: architecture 2.4; Karmada reference B47.
#[must_use]
pub fn never_travels(object: &Value) -> bool {
    text(object, &["kind"]) == "Secret" && text(object, &["type"]) == "kubernetes.io/service-account-token"
}

/// What of an object its kind's [`aggregate_reads`](NativeKind::aggregate_reads) names, and nothing else of it.
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

/// The default of [`NativeKind::prune`], for kinds that remove more than that.
fn prune_metadata(template: &mut Value, labels: &[&str], annotations: &[&str]) {
    remove_keys(template, &["metadata", "labels"], labels);
    remove_keys(template, &["metadata", "annotations"], annotations);
}

/// Where the pod spec lies in every workload but a Pod.
const TEMPLATE_SPEC: &[&str] = &["spec", "template", "spec"];

/// The whole status of a live copy, for kinds of which the hub shows all of it (Karmada reference 3.1).
fn whole_status(live: &Value) -> Option<Value> {
    live.get("status").filter(|status| status.is_object()).cloned()
}

#[cfg(test)]
mod tests {
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
    fn a_service_account_token_never_travels_and_other_secrets_do() {
        assert!(never_travels(
            &json!({"kind": "Secret", "type": "kubernetes.io/service-account-token"})
        ));
        assert!(!never_travels(&json!({"kind": "Secret", "type": "Opaque"})));
        assert!(!never_travels(
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
