//! Manifests of the main job.

use serde_json::{Value, json};

/// The example of the documentation, as users have it.
pub const SAMPLES: [(&str, &str); 3] = [
    (
        "deployment",
        include_str!("../../../config/samples/myapp/deployment.yaml"),
    ),
    (
        "policy",
        include_str!("../../../config/samples/myapp/policy.yaml"),
    ),
    (
        "configmap",
        include_str!("../../../config/samples/myapp/configmap.yaml"),
    ),
];

/// Its objects: the Deployment `myapp`, the policy `myapp-propagation` for member1 and member2, and `my-config`.
///
/// # Panics
/// When a sample is no YAML.
#[must_use]
pub fn example() -> [Value; 3] {
    SAMPLES.map(|(name, text)| {
        serde_saphyr::from_str(text)
            .unwrap_or_else(|error| panic!("config/samples/myapp/{name}.yaml: {error}"))
    })
}

/// The example's policy, for other clusters.
#[must_use]
pub fn policy(clusters: &[&str]) -> Value {
    let mut policy = policy_for("myapp-propagation", "Deployment", "myapp", clusters);
    policy["spec"]["propagateDeps"] = json!(true);
    policy
}

/// A policy for one object; `propagateDeps` is off.
#[must_use]
pub fn policy_for(name: &str, kind_name: &str, selects: &str, clusters: &[&str]) -> Value {
    json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy", "metadata": {"name": name},
        "spec": {
            "propagateDeps": false,
            "resourceSelectors": [
                {"apiVersion": super::kind(kind_name).api_version, "kind": kind_name, "name": selects}
            ],
            "placement": {
                "clusterAffinity": {"clusterNames": clusters},
                "replicaScheduling": {"replicaSchedulingType": "Duplicated"},
            },
        },
    })
}

/// A Deployment that mounts ConfigMaps.
#[must_use]
pub fn deployment(name: &str, config_maps: &[&str]) -> Value {
    let volumes: Vec<Value> = config_maps
        .iter()
        .map(|each| json!({"name": each, "configMap": {"name": each}}))
        .collect();
    workload("Deployment", name, &json!({"volumes": volumes}))
}

/// A workload of any kind whose pods have `pod` besides one container.
///
/// # Panics
/// For a kind that is no workload.
#[must_use]
pub fn workload(kind_name: &str, name: &str, pod: &Value) -> Value {
    let mut pod_spec = json!({"containers": [{"name": "main", "image": "nginx"}]});
    for (key, value) in pod.as_object().into_iter().flatten() {
        pod_spec[key] = value.clone();
    }
    let labels = json!({"app": name});
    let template = json!({"metadata": {"labels": labels}, "spec": pod_spec});
    let selector = json!({"matchLabels": labels});
    let spec = match kind_name {
        "Deployment" | "ReplicaSet" => json!({"replicas": 1, "selector": selector, "template": template}),
        "StatefulSet" => {
            json!({"replicas": 1, "serviceName": name, "selector": selector, "template": template})
        }
        "DaemonSet" => json!({"selector": selector, "template": template}),
        "Job" => {
            let mut template = template;
            template["spec"]["restartPolicy"] = json!("Never");
            json!({"template": template})
        }
        "Pod" => template["spec"].clone(),
        other => panic!("{other} is no workload"),
    };
    json!({
        "apiVersion": super::kind(kind_name).api_version, "kind": kind_name,
        "metadata": {"name": name, "labels": labels}, "spec": spec,
    })
}

/// A ConfigMap with one key, `key`.
#[must_use]
pub fn config_map(name: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"key": value}})
}

/// An opaque Secret with one key, `key`.
#[must_use]
pub fn secret(name: &str, value: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "type": "Opaque",
        "stringData": {"key": value},
    })
}
