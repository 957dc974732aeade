//! An object of every kind in a namespace that the controllers may propagate, and the status that a member reports of it.

use entourage_e2e::harness::manifests;
use serde_json::{Value, json};

use super::rights_life::NAME;

/// An object of every kind in a namespace that is granted.
pub(super) fn templates() -> Vec<Value> {
    let pod = json!({"volumes": [{"name": "s", "secret": {"secretName": NAME}}]});
    let workloads = [
        "Deployment",
        "StatefulSet",
        "DaemonSet",
        "ReplicaSet",
        "Job",
        "Pod",
    ];
    let mut all: Vec<Value> = workloads
        .map(|kind| manifests::workload(kind, NAME, &pod))
        .to_vec();
    all.extend([manifests::config_map(NAME, "one"), manifests::secret(NAME, "one")]);
    let once = json!({"restartPolicy": "Never", "containers": [{"name": "main", "image": "nginx"}]});
    let labels = json!({"app": NAME});
    for (api, kind, more) in [
        (
            "v1",
            "ReplicationController",
            json!({"spec": {"replicas": 1, "selector": labels, "template": {"metadata": {"labels": labels},
                "spec": {"containers": [{"name": "main", "image": "nginx"}]}}}}),
        ),
        ("v1", "ServiceAccount", json!({})),
        (
            "v1",
            "PersistentVolumeClaim",
            json!({"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}),
        ),
        (
            "v1",
            "Service",
            json!({"spec": {"type": "LoadBalancer", "selector": labels, "ports": [{"port": 80}]}}),
        ),
        ("v1", "ResourceQuota", json!({"spec": {"hard": {"pods": "100"}}})),
        (
            "batch/v1",
            "CronJob",
            json!({"spec": {"schedule": "*/5 * * * *", "jobTemplate": {"spec": {"template": {"spec": once}}}}}),
        ),
        (
            "autoscaling/v2",
            "HorizontalPodAutoscaler",
            json!({"spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": NAME}, "maxReplicas": 5}}),
        ),
        (
            "policy/v1",
            "PodDisruptionBudget",
            json!({"spec": {"minAvailable": 1, "selector": {"matchLabels": labels}}}),
        ),
        (
            "networking.k8s.io/v1",
            "Ingress",
            json!({"spec": {"defaultBackend": {"service": {"name": NAME, "port": {"number": 80}}}}}),
        ),
        (
            "discovery.k8s.io/v1",
            "EndpointSlice",
            json!({"addressType": "IPv4", "ports": [], "endpoints": []}),
        ),
        ("multicluster.x-k8s.io/v1alpha1", "ServiceExport", json!({})),
        (
            "multicluster.x-k8s.io/v1alpha1",
            "ServiceImport",
            json!({"spec": {"type": "ClusterSetIP", "ports": [{"port": 80, "protocol": "TCP"}]}}),
        ),
    ] {
        let mut object = json!({"apiVersion": api, "kind": kind, "metadata": {"name": NAME}});
        for (field, value) in more.as_object().into_iter().flatten() {
            object[field] = value.clone();
        }
        all.push(object);
    }
    all
}

/// The status of each kind that has one, as the controllers of a member would report it.
pub(super) fn reports(number: usize) -> Vec<(&'static str, Value)> {
    let replicas = json!({"observedGeneration": 1, "replicas": number, "readyReplicas": number, "availableReplicas": number});
    let balancer = json!({"loadBalancer": {"ingress": [{"ip": format!("192.0.2.{number}")}]}});
    vec![
        ("Deployment", replicas.clone()),
        ("StatefulSet", replicas.clone()),
        ("ReplicaSet", replicas.clone()),
        ("ReplicationController", replicas),
        (
            "DaemonSet",
            json!({"observedGeneration": 1, "currentNumberScheduled": number, "desiredNumberScheduled": number,
                "numberMisscheduled": 0, "numberReady": number}),
        ),
        (
            "Job",
            json!({"active": number, "startTime": "2026-01-01T00:00:00Z"}),
        ),
        (
            "CronJob",
            json!({"lastScheduleTime": format!("2026-01-01T00:0{}:00Z", number % 10)}),
        ),
        (
            "Pod",
            json!({"phase": if number % 2 == 1 { "Running" } else { "Pending" }}),
        ),
        (
            "PersistentVolumeClaim",
            json!({"phase": if number % 2 == 1 { "Bound" } else { "Pending" }}),
        ),
        (
            "PersistentVolume",
            json!({"phase": if number % 2 == 1 { "Available" } else { "Released" }}),
        ),
        ("Service", balancer.clone()),
        ("Ingress", balancer),
        (
            "HorizontalPodAutoscaler",
            json!({"currentReplicas": number, "desiredReplicas": number}),
        ),
        (
            "PodDisruptionBudget",
            json!({"currentHealthy": number, "desiredHealthy": 1, "disruptionsAllowed": 0, "expectedPods": number}),
        ),
    ]
}
