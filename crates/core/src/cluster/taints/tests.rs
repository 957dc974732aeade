//! Golden cases: a stored Cluster and policies, and the taints that are written. Then tests that a table cannot express.

use std::{collections::BTreeSet, sync::Arc};

use entourage_api::{cluster::ClusterSpec, keys::taint};
use serde::Deserialize;

use super::*;
use crate::{
    config::Config,
    fleet::taints::is_same_of_others,
    golden,
    observation::{ObjectRef, Observation, Subject, Watch},
};

/// A case. Policies have a name, the year of their creation, and a spec.
#[derive(Deserialize)]
struct Case {
    #[serde(default)]
    labels: Value,
    #[serde(default)]
    conditions: Value,
    #[serde(default)]
    taints: Value,
    #[serde(default)]
    policies: Vec<Value>,
}

const NOW: Time = Time(1_790_000_000_000);

fn list(value: &Value) -> Vec<Value> {
    value.as_array().cloned().unwrap_or_default()
}

/// A hub with one Cluster and these policies, all of them synced.
fn index(case: &Case) -> Fleet {
    let mut fleet = Fleet::new(Config::new("hub"));
    for policy in &case.policies {
        let meta = json!({
            "name": policy["name"], "uid": policy["name"], "resourceVersion": "2",
            "creationTimestamp": format!("{}-01-01T00:00:00Z", policy["made"].as_i64().unwrap_or(2026)),
            "deletionTimestamp": policy["deleted"],
        });
        let policy = json!({"apiVersion": "policy.karmada.io/v1alpha1", "kind": "ClusterTaintPolicy",
            "metadata": meta, "spec": policy["spec"]});
        let policy = serde_json::from_value(policy).expect("policy");
        fleet.observe(Observation::Seen(Subject::TaintPolicy(Arc::new(policy))), NOW);
    }
    let watch = Watch::TaintPolicies;
    let names = fleet.cache.taint_policies.keys().cloned();
    let present: BTreeSet<_> = names.map(ObjectRef::TaintPolicy).collect();
    let revision = 3;
    fleet.observe(
        Observation::Listed {
            watch,
            present,
            revision,
        },
        NOW,
    );
    let conditions: Vec<Value> = list(&case.conditions)
        .iter()
        .map(|each| {
            json!({"type": each[0], "status": each[1], "reason": each[2].as_str().unwrap_or("Because"), "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z"})
        })
        .collect();
    let cluster = json!({"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster",
        "metadata": {"name": "m1", "uid": "u", "resourceVersion": "1", "labels": case.labels},
        "spec": {"syncMode": "Push", "taints": list(&case.taints)}, "status": {"conditions": conditions}});
    let cluster = serde_json::from_value(cluster).expect("cluster");
    fleet.observe(Observation::Seen(Subject::Cluster(Arc::new(cluster))), NOW);
    fleet
}

/// The list that is written and the message of the event; or `nothing`.
fn outcome(case: &Case) -> Value {
    let fleet = index(case);
    let Some(plan) = keep(&fleet, &"m1".into(), &fleet.cache.members["m1"], NOW) else {
        return json!("nothing");
    };
    let mut all = json!({});
    for change in plan.changes {
        match change {
            Change::Hub {
                verb: Verb::Merge(body),
                ..
            } => {
                assert_eq!(body["metadata"], json!({"uid": "u", "resourceVersion": "1"}));
                all["taints"] = body["spec"]["taints"].clone();
            }
            Change::Emit(event) => {
                assert!(!event.warning && event.reason == "TaintClusterSucceed");
                all["event"] = json!(event.message);
            }
            other => panic!("{other:?}"),
        }
    }
    all
}

#[test]
fn every_golden_case_gives_what_it_says() {
    golden::run("taints", 20, |case: &Case| golden::wanted(&outcome(case)));
}

#[test]
fn a_taint_of_ours_explains_no_removal_and_one_of_a_user_does() {
    let of_cluster = |case: &Case| {
        let mut fleet = index(case);
        let watch = Watch::Clusters;
        let present = BTreeSet::from([ObjectRef::Cluster("m1".into())]);
        fleet.observe(
            Observation::Listed {
                watch,
                present,
                revision: 1,
            },
            NOW,
        );
        fleet
    };
    let case = Case {
        labels: Value::Null,
        conditions: json!([["Ready", "False"]]),
        taints: json!([]),
        policies: Vec::new(),
    };
    for (key, origin) in [(taint::NOT_READY, "Other"), ("a", "Edit")] {
        let mut fleet = of_cluster(&case);
        let mut cluster = (*fleet.cache.members["m1"].object).clone();
        cluster.metadata.resource_version = Some("5".into());
        cluster.spec.taints = vec![new(key, NO_SCHEDULE, "", None)];
        fleet.observe(Observation::Seen(Subject::Cluster(Arc::new(cluster))), NOW);
        assert_eq!(format!("{:?}", fleet.memory.origin), origin, "{key}");
    }
}

#[test]
fn before_the_policies_are_listed_none_counts() {
    let case = Case {
        labels: Value::Null,
        conditions: json!([["Ready", "True"]]),
        taints: json!([]),
        policies: vec![
            json!({"name": "p", "spec": {"taints": [{"key": "a", "effect": "NoSchedule"}],
            "addOnConditions": [{"conditionType": "Ready", "operator": "In", "statusValues": ["True"]}]}}),
        ],
    };
    let mut fleet = index(&case);
    assert!(keep(&fleet, &"m1".into(), &fleet.cache.members["m1"], NOW).is_some());
    fleet.cache.watches.forget(&Watch::TaintPolicies);
    assert!(keep(&fleet, &"m1".into(), &fleet.cache.members["m1"], NOW).is_none());
}

#[test]
fn what_is_ours_in_a_spec_is_no_edit_and_the_rest_is() {
    let case = Case {
        labels: Value::Null,
        conditions: Value::Null,
        taints: Value::Null,
        policies: vec![json!({"name": "p", "spec": {"taints": [{"key": "named", "effect": "NoExecute"}]}})],
    };
    let fleet = index(&case);
    let spec = |taints: Value, region: &str| -> ClusterSpec {
        serde_json::from_value(json!({"syncMode": "Push", "region": region, "taints": taints})).expect("spec")
    };
    let taint = |key: &str, effect: &str| json!({"key": key, "effect": effect});
    let dated = json!({"key": "a", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"});
    let table = [
        ("nothing", json!([]), json!([]), "", true),
        (
            "not-ready",
            json!([]),
            json!([taint(taint::NOT_READY, "NoSchedule")]),
            "",
            true,
        ),
        (
            "unreachable",
            json!([taint(taint::UNREACHABLE, "NoSchedule")]),
            json!([]),
            "",
            true,
        ),
        (
            "with another effect",
            json!([]),
            json!([taint(taint::NOT_READY, "NoExecute")]),
            "",
            false,
        ),
        (
            "one that a policy names",
            json!([]),
            json!([taint("named", "NoExecute")]),
            "",
            true,
        ),
        (
            "with another effect than the policy",
            json!([]),
            json!([taint("named", "NoSchedule")]),
            "",
            false,
        ),
        (
            "a time",
            json!([taint("a", "NoExecute")]),
            json!([dated]),
            "",
            true,
        ),
        (
            "another taint",
            json!([]),
            json!([taint("a", "NoExecute")]),
            "",
            false,
        ),
        (
            "another value",
            json!([taint("a", "NoExecute")]),
            json!([{"key": "a", "effect": "NoExecute", "value": "v"}]),
            "",
            false,
        ),
        (
            "another field",
            json!([]),
            json!([taint(taint::NOT_READY, "NoSchedule")]),
            "north",
            false,
        ),
    ];
    for (what, held, seen, region, same) in table {
        let same_now = is_same_of_others(&fleet, &spec(held, ""), &spec(seen, region));
        assert_eq!(same_now, same, "{what}");
    }
}
