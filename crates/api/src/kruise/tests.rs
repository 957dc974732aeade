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

#[test]
fn every_field_of_ours_and_of_v1beta1_survives_unchanged() {
    let object = json!({
        "apiVersion": "apps.kruise.io/v1alpha1",
        "kind": "ResourceDistribution",
        "metadata": { "name": "settings" },
        "spec": {
            "resourceFrom": { "kind": "ConfigMap", "namespace": "base", "name": "settings" },
            "targets": {
                "all": [{ "exception": "a" }],
                "clusters": { "clusterNames": ["member1"] },
                "namespaceSelector": { "matchLabels": { "team": "x" }, "matchExpressions": [
                    { "key": "old", "operator": "DoesNotExist" }] },
                "namespaces": [{ "name": "b" }],
                "workloadLabelSelector": { "app": "nginx", "tier": "web" },
            },
            "writePolicy": "strict",
            "deletionPolicy": "Orphan",
        },
        "status": {
            "desired": 3, "succeeded": 1, "failed": 2, "observedGeneration": 1,
            "conditions": [{ "type": "ConflictOccurred", "status": "True", "reason": "taken", "count": 2,
                "failedNamespace": ["b", "c"], "failedNamespaces": ["b", "c"] }],
            "description": "2 of 3 namespaces are taken",
            "distributed": { "kind": "ConfigMap", "name": "settings" },
            "conflictingNamespaces": [
                { "name": "b", "cluster": "member1", "owner": "Service web", "reason": "NotControlled" }, { "name": "c" }],
            "clusters": [{ "name": "member1", "desired": 3, "succeeded": 1, "failed": 2, "reason": "taken" }],
        },
    });
    let read: ResourceDistribution = serde_json::from_value(object.clone()).unwrap();
    assert_eq!(serde_json::to_value(&read).unwrap(), object);
    assert_eq!(read.spec.write_policy, Some(WritePolicy::Strict));
    assert_eq!(read.spec.deletion_policy, Some(DeletionPolicy::Orphan));
}

#[test]
fn absence_and_an_empty_list_of_exceptions_are_two_things() {
    let targets = |value: Value| -> DistributionTargets { serde_json::from_value(value).unwrap() };
    assert_eq!(targets(json!({})).all, None);
    assert_eq!(targets(json!({ "all": [] })).all, Some(Vec::new()));
    assert_eq!(
        serde_json::to_value(targets(json!({ "all": [] }))).unwrap(),
        json!({ "all": [] })
    );
}

#[test]
fn labels_alone_are_a_selector_too_and_come_back_as_they_were_written() {
    let flat = json!({ "environment": "test", "group": "seven" });
    let mixed = json!({ "environment": "test", "matchLabels": { "group": "seven" } });
    let nested = json!({ "matchLabels": { "environment": "test", "group": "seven" } });
    let meant: LabelSelector = serde_json::from_value(nested.clone()).unwrap();
    for written in [flat, mixed, nested] {
        let read: FlatSelector = serde_json::from_value(written.clone()).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), written);
        assert_eq!(read.to_selector().as_ref(), Ok(&meant), "{written}");
    }
}

#[test]
fn a_flat_selector_that_contradicts_itself_or_holds_no_labels_says_so() {
    for (written, words) in [
        (json!({ "matchLabel": { "a": "b" } }), "\"matchLabel\" is neither"),
        (
            json!({ "a": "b", "matchLabels": { "a": "c" } }),
            "label \"a\" is given twice",
        ),
    ] {
        let read: FlatSelector = serde_json::from_value(written).unwrap();
        let message = read.to_selector().unwrap_err();
        assert!(message.starts_with(words), "{message}");
    }
    let same: FlatSelector =
        serde_json::from_value(json!({ "a": "b", "matchLabels": { "a": "b" } })).unwrap();
    assert!(same.to_selector().is_ok());
}

#[test]
fn the_selector_is_found_under_either_name() {
    let targets = |value: Value| -> DistributionTargets { serde_json::from_value(value).unwrap() };
    let (one, other) = (
        json!({ "matchLabels": { "a": "b" } }),
        json!({ "matchLabels": { "a": "c" } }),
    );
    let read: FlatSelector = serde_json::from_value(one.clone()).unwrap();
    for given in [
        json!({ "namespaceLabelSelector": one }),
        json!({ "namespaceSelector": one }),
        json!({ "namespaceLabelSelector": one, "namespaceSelector": one }),
    ] {
        assert_eq!(targets(given).selector(), Ok(Some(&read)));
    }
    let both = targets(json!({ "namespaceLabelSelector": one, "namespaceSelector": other }));
    assert!(both.selector().unwrap_err().contains("give one"));
    assert_eq!(targets(json!({})).selector(), Ok(None));
}
