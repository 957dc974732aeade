//! Policies as they are written and read, and their defaults.

use serde_json::{Value, json};

use super::*;

fn policy(spec: &Value) -> PropagationPolicy {
    serde_json::from_value(json!({
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": { "name": "p", "namespace": "default" },
        "spec": spec,
    }))
    .unwrap()
}

fn selectors() -> Value {
    json!([{ "apiVersion": "apps/v1", "kind": "Deployment", "name": "myapp" }])
}

#[test]
fn a_short_policy_gets_the_defaults_that_a_server_fills_in() {
    let policy = policy(&json!({ "resourceSelectors": selectors(), "propagateDeps": true }));
    assert_eq!(
        serde_json::to_value(&policy.spec).unwrap(),
        json!({
            "resourceSelectors": selectors(),
            "propagateDeps": true,
            "priority": 0,
            "preemption": "Never",
            "schedulerName": "default-scheduler",
            "conflictResolution": "Abort",
        })
    );
    assert_eq!(
        PropagationSpec::default(),
        PropagationSpec {
            resource_selectors: vec![],
            propagate_deps: false,
            ..policy.spec
        }
    );
}

#[test]
fn replicas_are_duplicated_without_a_strategy_and_divided_by_one_that_names_no_type() {
    let type_of = |placement: Value| {
        serde_json::from_value::<Placement>(placement)
            .unwrap()
            .replica_scheduling_type()
    };
    assert_eq!(type_of(json!({})), ReplicaSchedulingType::Duplicated);
    assert_eq!(
        type_of(json!({ "replicaScheduling": {} })),
        ReplicaSchedulingType::Divided
    );
    let duplicated = json!({ "replicaScheduling": { "replicaSchedulingType": "Duplicated" } });
    assert_eq!(type_of(duplicated), ReplicaSchedulingType::Duplicated);
}

#[test]
fn a_placement_is_written_as_karmada_writes_it() {
    let text = r#"{"clusterAffinity":{"clusterNames":["member1","member2"]}}"#;
    let placement: Placement = serde_json::from_str(text).unwrap();
    assert_eq!(serde_json::to_string(&placement).unwrap(), text);

    let text = concat!(
        r#"{"clusterAffinities":[{"affinityName":"near","fieldSelector":{"matchExpressions":"#,
        r#"[{"key":"region","operator":"In","values":["eu"]}]},"exclude":["m3"],"#,
        r#""overflowAffinities":[{"affinityName":"far","clusterNames":["m9"]}]}],"#,
        r#""clusterTolerations":[{"key":"k","operator":"Exists","tolerationSeconds":30}],"#,
        r#""spreadConstraints":[{"spreadByField":"cluster","maxGroups":2,"minGroups":1}],"#,
        r#""replicaScheduling":{"replicaSchedulingType":"Divided","replicaDivisionPreference":"Weighted","#,
        r#""weightPreference":{"staticWeightList":[{"targetCluster":{"clusterNames":["m1"]},"weight":2}]}},"#,
        r#""workloadAffinity":{"antiAffinity":{"groupByLabelKey":"app"}}}"#
    );
    let placement: Placement = serde_json::from_str(text).unwrap();
    assert_eq!(
        placement.cluster_affinities[0].overflow_affinities[0]
            .affinity
            .cluster_names,
        ["m9"]
    );
    assert_eq!(serde_json::to_string(&placement).unwrap(), text);
}

#[test]
fn failover_without_details_gets_its_defaults() {
    let failover: FailoverBehavior =
        serde_json::from_value(json!({ "application": { "decisionConditions": {} }, "cluster": {} }))
            .unwrap();
    assert_eq!(
        serde_json::to_value(&failover).unwrap(),
        json!({
            "application": {
                "decisionConditions": { "tolerationSeconds": 300 },
                "purgeMode": "Gracefully",
            },
            "cluster": { "purgeMode": "Gracefully" },
        })
    );
}

#[test]
fn fields_that_are_not_known_do_not_make_a_policy_unreadable() {
    policy(&json!({ "resourceSelectors": selectors(), "fromTheFuture": { "x": 1 } }));
}

#[test]
fn a_taint_policy_survives_unchanged() {
    let object = json!({
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "ClusterTaintPolicy",
        "metadata": { "name": "not-ready" },
        "spec": {
            "targetClusters": { "clusterNames": ["member1"] },
            "addOnConditions": [{ "conditionType": "Ready", "operator": "NotIn", "statusValues": ["True"] }],
            "removeOnConditions": [{ "conditionType": "Ready", "operator": "In", "statusValues": ["True"] }],
            "taints": [
                { "key": "not-ready", "effect": "NoSchedule" },
                { "key": "not-ready", "effect": "NoExecute", "value": "x" },
            ],
        },
    });
    let read: ClusterTaintPolicy = serde_json::from_value(object.clone()).unwrap();
    assert_eq!(serde_json::to_value(&read).unwrap(), object);
}
