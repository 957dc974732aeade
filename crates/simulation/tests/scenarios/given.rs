//! The objects that most scenarios are made of.

use serde_json::{Value, json};

pub(crate) fn policy_of(
    name: &str,
    api_version: &str,
    kind: &str,
    selects: &str,
    clusters: &[&str],
) -> Value {
    json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy", "metadata": {"name": name},
        "spec": {
            "propagateDeps": true,
            "resourceSelectors": [{"apiVersion": api_version, "kind": kind, "name": selects}],
            "placement": {
                "clusterAffinity": {"clusterNames": clusters},
                "replicaScheduling": {"replicaSchedulingType": "Duplicated"},
            },
            "conflictResolution": "Abort",
        },
    })
}

pub(crate) fn deployment(name: &str, config_maps: &[&str]) -> Value {
    let volumes: Vec<Value> = config_maps
        .iter()
        .map(|each| json!({"name": each, "configMap": {"name": each}}))
        .collect();
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "nginx", "image": "nginx"}], "volumes": volumes},
            },
        },
    })
}

pub(crate) fn config_map(name: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"key": value}})
}
