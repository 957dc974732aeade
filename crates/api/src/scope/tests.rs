//! Cluster-scoped counterparts as they are written, read and defined.

use serde_json::{Value, json};

use super::*;
use crate::policy::{ClusterPropagationPolicy, PropagationPolicy};
use crate::work::{ClusterResourceBinding, ResourceBinding};

fn policy(kind: &str) -> Value {
    json!({
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": kind,
        "metadata": { "name": "p" },
        "spec": {
            "resourceSelectors": [{ "apiVersion": "v1", "kind": "Namespace", "name": "shop" }],
            "priority": 3,
            "preemption": "Never",
            "schedulerName": "default-scheduler",
            "conflictResolution": "Abort",
        },
    })
}

#[test]
fn a_twin_is_written_as_it_was_read() {
    let scope: ClusterPropagationPolicy = serde_json::from_value(policy("ClusterPropagationPolicy")).unwrap();
    assert_eq!(scope.spec.priority, 3);
    assert_eq!(
        serde_json::to_value(&scope).unwrap(),
        policy("ClusterPropagationPolicy")
    );
}

#[test]
fn a_twin_is_held_as_its_namespaced_kind_without_a_namespace() {
    let held: PropagationPolicy = serde_json::from_value(policy("ClusterPropagationPolicy")).unwrap();
    assert_eq!(held.metadata.namespace, None);
    let scope = ClusterScoped(held);
    assert_eq!(
        serde_json::to_value(&scope).unwrap(),
        policy("ClusterPropagationPolicy")
    );
}

#[test]
fn a_twin_has_the_path_of_a_cluster_scoped_resource() {
    assert_eq!(
        ClusterResourceBinding::url_path(&(), None),
        "/apis/work.karmada.io/v1alpha2/clusterresourcebindings"
    );
    let resource = ClusterPropagationPolicy::api_resource();
    assert_eq!(resource.kind, "ClusterPropagationPolicy");
    assert_eq!(resource.plural, "clusterpropagationpolicies");
    assert_eq!(resource.api_version, "policy.karmada.io/v1alpha1");
}

#[test]
fn the_definition_of_a_twin_differs_in_names_and_scope_only() {
    fn schemas<T: CustomResourceExt>() -> Value {
        let mut versions = serde_json::to_value(T::crd().spec.versions).unwrap();
        for version in versions.as_array_mut().unwrap() {
            version["schema"]["openAPIV3Schema"]["description"] = Value::Null;
        }
        versions
    }
    assert_eq!(
        schemas::<PropagationPolicy>(),
        schemas::<ClusterPropagationPolicy>()
    );
    assert_eq!(schemas::<ResourceBinding>(), schemas::<ClusterResourceBinding>());

    let crd = ClusterResourceBinding::crd();
    assert_eq!(crd.spec.scope, "Cluster");
    assert_eq!(
        crd.metadata.name.as_deref(),
        Some(ClusterResourceBinding::crd_name())
    );
    assert_eq!(crd.spec.names.singular.as_deref(), Some("clusterresourcebinding"));
    assert_eq!(crd.spec.names.short_names, Some(vec!["crb".to_owned()]));
}
