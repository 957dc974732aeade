//! The table of filters, and the relevant changes of a Cluster.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use entourage_api::{cluster::Cluster, keys::reason, policy::Placement, work::TargetCluster};
use entourage_model::object::{Gvk, StrMap};

use super::*;

#[test]
fn every_filter_is_listed_once_and_says_what_it_asks() {
    let names: BTreeSet<&str> = FILTERS.iter().map(|filter| filter.name).collect();
    assert_eq!(names.len(), FILTERS.len());
    for filter in FILTERS {
        assert!(
            filter.summary.ends_with('.') && filter.summary.len() > 20,
            "{}",
            filter.name
        );
    }
    assert_eq!(
        FILTERS[0].name, "clusterAffinity",
        "notes count the other filters' victims only"
    );
}

fn member() -> Value {
    json!({
        "apiVersion": "cluster.karmada.io/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": "m", "labels": {"tier": "x"}, "resourceVersion": "1"},
        "spec": {
            "syncMode": "Push", "provider": "p", "region": "r", "zones": ["z"],
            "taints": [{"key": "k", "effect": "NoSchedule"}],
        },
        "status": {
            "kubernetesVersion": "v1.35.0",
            "apiEnablements": [{"groupVersion": "v1", "resources": [{"name": "pods", "kind": "Pod"}]}],
            "conditions": [{
                "type": "Ready", "status": "True", "reason": "ClusterReady", "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }],
        },
    })
}

#[test]
fn only_what_the_scheduler_reads_is_a_relevant_change() {
    let cases = [
        ("/metadata/labels", json!({"tier": "y"}), true),
        ("/metadata/deletionTimestamp", json!("2026-01-01T00:00:00Z"), true),
        ("/metadata/resourceVersion", json!("2"), false),
        ("/metadata/annotations", json!({"a": "b"}), false),
        ("/spec/provider", json!("q"), true),
        ("/spec/region", json!("q"), true),
        ("/spec/zones", json!(["z", "y"]), true),
        ("/spec/zone", json!("ignored, for there are zones"), false),
        ("/spec/taints", json!([]), true),
        ("/spec/taints/0/effect", json!("NoExecute"), true),
        ("/spec/taints/0/value", json!("v"), true),
        ("/spec/taints/0/value", json!(""), false),
        ("/spec/taints/0/timeAdded", json!("2026-01-01T00:00:00Z"), false),
        ("/spec/apiEndpoint", json!("https://10.0.0.1"), false),
        ("/status/kubernetesVersion", json!("v1.36.0"), false),
        ("/status/apiEnablements", json!([]), true),
        ("/status/conditions/0/status", json!("False"), true),
        ("/status/conditions/0/message", json!("/healthz answers"), false),
        ("/status/conditions", json!([]), true),
        ("/status/nodeSummary", json!({"totalNum": 3}), false),
    ];
    let old: Cluster = serde_json::from_value(member()).unwrap();
    assert!(!relevant_change(&old, &old.clone()));
    for (path, value, want) in cases {
        let mut changed = member();
        let (parent, key) = path.rsplit_once('/').unwrap();
        let parent = changed.pointer_mut(parent).unwrap();
        match key.parse::<usize>() {
            Ok(position) => parent[position] = value,
            Err(_) => parent[key] = value,
        }
        let new: Cluster = serde_json::from_value(changed).unwrap();
        assert_eq!(relevant_change(&old, &new), want, "{path}");
        assert_eq!(relevant_change(&new, &old), want, "{path}, backwards");
    }
}

#[test]
fn a_long_list_of_unknown_names_is_cut() {
    let names: Vec<String> = (0..9).map(|number| format!("m{number}")).collect();
    let placement: Placement =
        serde_json::from_value(json!({"clusterAffinity": {"clusterNames": names}})).unwrap();
    let gvk = Gvk::new("v1", "ConfigMap");
    let request = Request::first(&placement, &gvk, None);
    let Outcome::Failed { reason, message, .. } = schedule(&request, &[]) else {
        panic!("placed without clusters")
    };
    assert_eq!(reason, reason::NO_CLUSTER_FIT);
    assert_eq!(
        message,
        "0 of 0 clusters fit: no cluster has joined; m0, m1, m2, m3, m4 and 4 more not found; join them or \
         correct placement.clusterAffinity.clusterNames"
    );
}

/// The shares of two clusters with these weights, no rule for a weight of 0, which have `current`; by the same placement as before, or by another one.
fn shares(weights: [i64; 2], replicas: i32, current: [i32; 2], followed: bool, is_edited: bool) -> Vec<i32> {
    let mut plain = member();
    plain["spec"]["taints"] = json!([]);
    let cluster: Cluster = serde_json::from_value(plain).unwrap();
    let labels = StrMap::default();
    let candidates = ["a", "b"].map(|name| Candidate {
        name,
        labels: &labels,
        cluster: &cluster,
        ready: true,
        deleting: false,
    });
    let rules = ["a", "b"]
        .into_iter()
        .zip(weights)
        .filter(|(_, weight)| *weight > 0);
    let rules: Vec<Value> = rules
        .map(|(name, weight)| json!({"targetCluster": {"clusterNames": [name]}, "weight": weight}))
        .collect();
    let placement: Placement = serde_json::from_value(json!({"replicaScheduling": {
        "replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted",
        "weightPreference": {"staticWeightList": rules},
    }}))
    .unwrap();
    let applied = serde_json::to_string(&placement).unwrap();
    let target = |(name, replicas): (&str, i32)| TargetCluster {
        name: name.into(),
        replicas,
        components: Vec::new(),
    };
    let current: Vec<TargetCluster> = ["a", "b"].into_iter().zip(current).map(target).collect();
    let gvk = Gvk::new("v1", "Pod");
    let request = Request {
        current: &current,
        applied: if is_edited { "" } else { &applied },
        followed,
        ..Request::first(&placement, &gvk, Some(replicas))
    };
    let outcome = schedule(&request, &candidates);
    let Outcome::Placed { clusters, .. } = &outcome else {
        panic!("{outcome:?}")
    };
    let share = |name: &str| TargetCluster::find(clusters, name).map(|target| target.replicas);
    ["a", "b"].into_iter().filter_map(share).collect()
}

#[test]
fn a_division_among_members_that_decide_takes_none_of_them_away() {
    for (weights, replicas, current, is_edited, followed, plain) in [
        ([9, 1], 3, [2, 1], true, vec![2, 1], vec![3]),
        ([9, 1], 1, [1, 0], true, vec![1, 1], vec![1]),
        ([9, 1], 20, [19, 1], true, vec![18, 2], vec![18, 2]),
        ([9, 1], 4, [4, 0], false, vec![4, 0], vec![4]),
        ([9, 1], 3, [2, 1], false, vec![2, 1], vec![2, 1]),
        ([1, 0], 3, [2, 1], true, vec![3], vec![3]),
    ] {
        let case = format!("{weights:?} {replicas} {current:?} {is_edited}");
        assert_eq!(
            shares(weights, replicas, current, true, is_edited),
            followed,
            "{case}"
        );
        assert_eq!(
            shares(weights, replicas, current, false, is_edited),
            plain,
            "{case}"
        );
    }
}

#[test]
fn a_workload_that_sleeps_is_on_each_cluster_of_its_placement_where_members_decide() {
    let mut plain = member();
    plain["spec"]["taints"] = json!([]);
    let cluster: Cluster = serde_json::from_value(plain).unwrap();
    let labels = StrMap::default();
    let candidates = ["a", "b"].map(|name| Candidate {
        name,
        labels: &labels,
        cluster: &cluster,
        ready: true,
        deleting: false,
    });
    let both = json!({"replicaScheduling": {
        "replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted",
        "weightPreference": {"staticWeightList": [{"targetCluster": {"clusterNames": ["a", "b"]}, "weight": 1}]},
    }});
    let overflow = json!({
        "clusterAffinities": [{
            "affinityName": "own", "clusterNames": ["a"],
            "overflowAffinities": [{"affinityName": "far", "clusterNames": ["b"]}],
        }],
        "replicaScheduling": {
            "replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted",
            "weightPreference": {"dynamicWeight": "AvailableReplicas"},
        },
    });
    let gvk = Gvk::new("v1", "Pod");
    for (what, placement, present) in [
        ("a cluster is new", &both, &["a"][..]),
        ("an overflow group has it", &overflow, &["a", "b"]),
    ] {
        let placement: Placement = serde_json::from_value(placement.clone()).unwrap();
        let target = |name: &&str| TargetCluster {
            name: (*name).into(),
            replicas: 0,
            components: Vec::new(),
        };
        let current: Vec<TargetCluster> = present.iter().map(target).collect();
        for (followed, want) in [(true, vec!["a", "b"]), (false, vec!["a"])] {
            let request = Request {
                current: &current,
                followed,
                ..Request::first(&placement, &gvk, Some(0))
            };
            let outcome = schedule(&request, &candidates);
            let Outcome::Placed { clusters, .. } = &outcome else {
                panic!("{what}: {outcome:?}")
            };
            let names: Vec<&str> = clusters.iter().map(|target| target.name.as_str()).collect();
            assert_eq!(names, want, "{what}, followed: {followed}");
            assert!(clusters.iter().all(|target| target.replicas == 0), "{what}");
        }
    }
}
