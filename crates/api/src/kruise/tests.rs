//! Distributions as they are written and read.

use serde_json::json;

use super::*;

#[test]
fn a_distribution_and_its_status_survive_unchanged() {
    let object = json!({
        "apiVersion": "apps.kruise.io/v1alpha1",
        "kind": "ResourceDistribution",
        "metadata": { "name": "pull-secret" },
        "spec": {
            "resource": {
                "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "registry" },
                "type": "Opaque", "stringData": { "password": "hunter2" },
            },
            "targets": {
                "includedNamespaces": { "list": [{ "name": "a" }, { "name": "b" }] },
                "excludedNamespaces": { "list": [{ "name": "c" }] },
                "namespaceLabelSelector": { "matchLabels": { "team": "x" } },
                "allNamespaces": true,
            },
        },
        "status": {
            "desired": 3, "succeeded": 2, "failed": 1, "observedGeneration": 4,
            "conditions": [
                { "type": "GetResourceFailed", "status": "False", "reason": "Succeeded",
                  "lastTransitionTime": "2026-01-02T03:04:05Z" },
                { "type": "ConflictOccurred", "status": "True", "failedNamespace": ["b"] },
            ],
        },
    });
    let read: ResourceDistribution = serde_json::from_value(object.clone()).unwrap();
    assert_eq!(serde_json::to_value(&read).unwrap(), object);
    assert!(!format!("{read:?}").contains("hunter2"));
}

#[test]
fn targets_may_name_nothing() {
    let targets: DistributionTargets = serde_json::from_value(json!({})).unwrap();
    assert_eq!(targets, DistributionTargets::default());
    assert_eq!(serde_json::to_value(&targets).unwrap(), json!({}));
}
