//! Bindings and Works as they are written and read.

use serde_json::{Value, json};

use super::*;

fn round_trip(spec: &Value) -> ResourceBindingSpec {
    let read: ResourceBindingSpec = serde_json::from_value(spec.clone()).unwrap();
    assert_eq!(&serde_json::to_value(&read).unwrap(), spec);
    read
}

/// Source: the attached and the independent binding that Karmada 1.19 writes for a Deployment with a
/// ConfigMap.
#[test]
fn bindings_that_karmada_writes_survive_unchanged() {
    let attached = round_trip(&json!({
        "conflictResolution": "Abort",
        "preserveResourcesOnDeletion": false,
        "requiredBy": [{
            "clusters": [{ "name": "member1", "replicas": 2 }, { "name": "member2", "replicas": 2 }],
            "name": "myapp-deployment",
            "namespace": "default",
        }],
        "resource": {
            "apiVersion": "v1", "kind": "ConfigMap", "name": "myapp-config", "namespace": "default",
            "resourceVersion": "383", "uid": "f5111ba1-a515-488e-b70d-2a1eb523ef90",
        },
    }));
    assert_eq!(attached.placement, None);
    assert_eq!(attached.required_by[0].clusters[1].name, "member2");

    let independent = round_trip(&json!({
        "clusters": [{ "name": "member1", "replicas": 2 }],
        "conflictResolution": "Overwrite",
        "placement": { "clusterAffinity": { "clusterNames": ["member1"] } },
        "propagateDeps": true,
        "replicas": 2,
        "replicaRequirements": {
            "nodeClaim": {
                "hardNodeAffinity": { "nodeSelectorTerms": [
                    { "matchExpressions": [{ "key": "disk", "operator": "In", "values": ["ssd"] }] },
                ] },
                "nodeSelector": { "pool": "a" },
            },
            "resourceRequest": { "cpu": "100m", "memory": "1Gi" },
        },
        "resource": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "myapp", "namespace": "default" },
        "schedulerName": "default-scheduler",
        "suspension": { "dispatchingOnClusters": { "clusterNames": ["member1"] }, "scheduling": true },
        "gracefulEvictionTasks": [{
            "fromCluster": "member9", "purgeMode": "Gracefully", "reason": "TaintUntolerated",
            "producer": "TaintManager", "creationTimestamp": "2026-01-02T03:04:05Z",
            "clustersBeforeFailover": ["member9"],
        }],
        "rescheduleTriggeredAt": "2026-01-02T03:04:05Z",
    }));
    assert!(
        independent
            .suspension
            .unwrap()
            .dispatch
            .dispatching_on_clusters
            .is_some()
    );
}

#[test]
fn a_status_keeps_the_copies_as_they_were_written() {
    let status = json!({
        "schedulerObservedGeneration": 2,
        "lastScheduledTime": "2026-11-20T15:07:25Z",
        "conditions": [{
            "type": "FullyApplied", "status": "True", "reason": "FullyAppliedSuccess",
            "message": "All works have been successfully applied",
            "lastTransitionTime": "2026-11-20T15:07:26Z",
        }],
        "aggregatedStatus": [
            {
                "clusterName": "member1", "applied": true, "health": "Healthy",
                "status": { "replicas": 2, "anything": [null, {}] },
                "copy": { "uid": "c0ffee", "generation": 1, "source": "f5111ba1/383/1a2b3c4d" },
            },
            { "clusterName": "member2", "appliedMessage": "refused" },
        ],
    });
    let read: ResourceBindingStatus = serde_json::from_value(status.clone()).unwrap();
    assert_eq!(serde_json::to_value(&read).unwrap(), status);
}

#[test]
fn an_empty_status_is_written_as_nothing() {
    assert_eq!(
        serde_json::to_value(ResourceBindingStatus::default()).unwrap(),
        json!({})
    );
}

#[test]
fn a_dependency_is_written_as_karmada_writes_it() {
    let text = r#"[{"apiVersion":"v1","kind":"ConfigMap","namespace":"default","name":"myapp-config"}]"#;
    let read: Vec<DependentObjectReference> = serde_json::from_str(text).unwrap();
    assert_eq!(serde_json::to_string(&read).unwrap(), text);
}

#[test]
fn the_first_version_of_the_api_is_still_readable() {
    let spec = json!({
        "resource": {
            "apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "namespace": "default",
            "resourcePerReplicas": { "cpu": "1" }, "replicas": 3,
        },
        "clusters": [{ "name": "member1", "replicas": 3 }],
    });
    let read: legacy::ResourceBindingSpec = serde_json::from_value(spec.clone()).unwrap();
    assert_eq!(serde_json::to_value(&read).unwrap(), spec);
}

#[test]
fn a_work_survives_unchanged_and_never_shows_what_it_carries() {
    let object = json!({
        "apiVersion": "work.karmada.io/v1alpha1",
        "kind": "Work",
        "metadata": { "name": "token-5bdc5c4dcf", "namespace": "karmada-es-member1" },
        "spec": {
            "workload": { "manifests": [{
                "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "token", "namespace": "shop" },
                "data": { "password": "aHVudGVyMg==" },
            }] },
            "suspendDispatching": false,
            "preserveResourcesOnDeletion": true,
        },
        "status": {
            "conditions": [{
                "type": "Applied", "status": "True", "reason": "AppliedSuccessful", "message": "",
                "lastTransitionTime": "2026-11-20T15:07:26Z",
            }],
            "manifestStatuses": [{
                "identifier": {
                    "ordinal": 0, "version": "v1", "kind": "Secret", "resource": "secrets",
                    "namespace": "shop", "name": "token",
                },
                "status": { "any": [1] },
                "health": "Healthy",
            }],
        },
    });
    let read: Work = serde_json::from_value(object.clone()).unwrap();
    assert_eq!(serde_json::to_value(&read).unwrap(), object);
    let shown = format!("{read:?}");
    assert!(shown.contains("v1 Secret shop/token"), "{shown}");
    assert!(!shown.contains("aHVudGVyMg"), "{shown}");
}

#[test]
fn the_entry_of_a_cluster_is_found_in_any_order() {
    let targets = |names: &[&str]| -> Vec<TargetCluster> {
        let each = |name: &&str| TargetCluster {
            name: (*name).into(),
            ..TargetCluster::default()
        };
        names.iter().map(each).collect()
    };
    for order in [["m1", "m2", "m3"], ["m3", "m1", "m2"], ["m2", "m3", "m1"]] {
        let all = targets(&order);
        for name in order {
            let found = TargetCluster::find(&all, name);
            assert_eq!(found.map(|target| target.name.as_str()), Some(name), "{order:?}");
        }
        for missing in ["", "m0", "m4"] {
            assert_eq!(TargetCluster::find(&all, missing), None, "{order:?}");
        }
    }
}
