//! Divisions by room, with the figures of Karmada's tests, and what they say.

use std::collections::BTreeMap;

use entourage_api::{cluster::Cluster, keys::reason, policy::Placement, work::TargetCluster};
use entourage_model::object::{Gvk, Str, StrMap};
use serde_json::{Value, json};

use crate::{
    Candidate, Outcome, Request, Room,
    estimate::{Capacity, Demand},
    schedule,
};

/// A request: replicas, present targets, and the free pods of each cluster; `None` for a cluster that reports no capacity.
pub(super) struct Case<'a> {
    pub(super) strategy: Value,
    pub(super) replicas: i32,
    pub(super) current: &'a [(&'a str, i32)],
    pub(super) free: &'a [(&'a str, Option<i64>)],
    pub(super) spread: Value,
    pub(super) fresh: bool,
}

impl Case<'_> {
    pub(super) fn outcome(&self) -> Outcome {
        self.outcome_in(&json!([]))
    }

    /// The outcome with the given `clusterAffinities`.
    pub(super) fn outcome_in(&self, groups: &Value) -> Outcome {
        self.outcome_with(groups, &[])
    }

    /// The outcome with the given `clusterAffinities`, and replicas that are stuck.
    pub(super) fn outcome_with(&self, groups: &Value, stuck: &[(&str, i32)]) -> Outcome {
        let placement: Placement = serde_json::from_value(json!({
            "replicaScheduling": self.strategy, "spreadConstraints": self.spread, "clusterAffinities": groups,
        }))
        .unwrap();
        let clusters: Vec<(&str, Cluster)> = self
            .free
            .iter()
            .map(|(name, pods)| (*name, cluster(*pods)))
            .collect();
        let capacities: BTreeMap<Str, Capacity> = clusters
            .iter()
            .filter_map(|(name, cluster)| Some(((*name).into(), Capacity::of(cluster)?)))
            .collect();
        let labels = StrMap::new();
        let candidates: Vec<Candidate<'_>> = clusters
            .iter()
            .map(|(name, cluster)| Candidate {
                name,
                labels: &labels,
                cluster,
                ready: true,
                deleting: false,
            })
            .collect();
        let (current, stuck) = (targets(self.current), targets(stuck));
        let applied = serde_json::to_string(&placement).unwrap();
        let (gvk, demand) = (Gvk::new("apps/v1", "Deployment"), Demand::default());
        schedule(
            &Request {
                current: &current,
                fresh: self.fresh,
                applied: if stuck.is_empty() { "" } else { &applied },
                stuck: &stuck,
                room: Some(Room {
                    demand: &demand,
                    capacities: &capacities,
                    accounted: &current,
                    reserved: &[],
                    estimates: None,
                }),
                ..Request::first(&placement, &gvk, Some(self.replicas))
            },
            &candidates,
        )
    }

    pub(super) fn shares(&self) -> Option<Vec<(String, i32)>> {
        self.shares_in(&json!([]))
    }

    pub(super) fn shares_in(&self, groups: &Value) -> Option<Vec<(String, i32)>> {
        shares_of(self.outcome_in(groups))
    }
}

pub(super) fn shares_of(outcome: Outcome) -> Option<Vec<(String, i32)>> {
    let Outcome::Placed { clusters, .. } = outcome else {
        return None;
    };
    let shares = clusters.into_iter().map(|target| (target.name, target.replicas));
    Some(shares.collect())
}

pub(super) fn cluster(pods: Option<i64>) -> Cluster {
    let summary = pods.map(|pods| json!({"allocatable": {"pods": pods.to_string()}}));
    serde_json::from_value(json!({
        "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": "m"},
        "spec": {"syncMode": "Push"},
        "status": {
            "resourceSummary": summary,
            "apiEnablements": [{"groupVersion": "apps/v1", "resources": [{"name": "deployments", "kind": "Deployment"}]}],
        },
    }))
    .unwrap()
}

pub(super) fn targets(all: &[(&str, i32)]) -> Vec<TargetCluster> {
    all.iter()
        .map(|(name, replicas)| TargetCluster {
            name: (*name).into(),
            replicas: *replicas,
            ..Default::default()
        })
        .collect()
}

pub(super) fn dynamic() -> Value {
    json!({
        "replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted",
        "weightPreference": {"dynamicWeight": "AvailableReplicas"},
    })
}

pub(super) fn aggregated() -> Value {
    json!({"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"})
}

fn shares(
    strategy: Value,
    replicas: i32,
    current: &[(&str, i32)],
    free: &[(&str, i64)],
) -> Option<Vec<(String, i32)>> {
    let free: Vec<(&str, Option<i64>)> = free.iter().map(|(name, pods)| (*name, Some(*pods))).collect();
    let case = Case {
        strategy,
        replicas,
        current,
        free: &free,
        spread: json!([]),
        fresh: false,
    };
    case.shares()
}

pub(super) fn named(shares: &[(&str, i32)]) -> Option<Vec<(String, i32)>> {
    Some(
        shares
            .iter()
            .map(|(name, replicas)| ((*name).to_owned(), *replicas))
            .collect(),
    )
}

#[test]
fn a_first_division_follows_the_room() {
    for (strategy, free, want) in [
        (dynamic(), [6, 8, 10], Some(vec![("a", 3), ("b", 4), ("c", 5)])),
        (dynamic(), [18, 12, 6], Some(vec![("a", 6), ("b", 4), ("c", 2)])),
        (dynamic(), [20, 12, 6], Some(vec![("a", 7), ("b", 4), ("c", 1)])),
        (dynamic(), [6, 12, 6], Some(vec![("a", 3), ("b", 6), ("c", 3)])),
        (dynamic(), [3, 3, 3], None),
        (aggregated(), [6, 8, 10], Some(vec![("b", 5), ("c", 7)])),
        (aggregated(), [12, 8, 10], Some(vec![("a", 12)])),
        (aggregated(), [6, 12, 6], Some(vec![("b", 12)])),
        (aggregated(), [6, 6, 6], Some(vec![("a", 6), ("b", 6)])),
        (aggregated(), [3, 3, 3], None),
    ] {
        let free = [("a", free[0]), ("b", free[1]), ("c", free[2])];
        let want = want.as_deref().and_then(named);
        assert_eq!(
            shares(strategy.clone(), 12, &[], &free),
            want,
            "{strategy} {free:?}"
        );
    }
}

#[test]
fn scaling_down_takes_from_what_is_placed() {
    let placed = [("a", 2), ("b", 4), ("c", 6)];
    let full = [("a", 1), ("b", 1), ("c", 1)];
    assert_eq!(
        shares(dynamic(), 6, &placed, &full),
        named(&[("a", 1), ("b", 2), ("c", 3)])
    );
    let placed = [("a", 4), ("b", 8)];
    assert_eq!(shares(aggregated(), 6, &placed, &full), named(&[("b", 6)]));
    assert_eq!(
        shares(aggregated(), 8, &placed, &[("a", 100), ("b", 100)]),
        named(&[("b", 8)])
    );
}

#[test]
fn scaling_up_moves_nothing_and_divides_what_is_new() {
    let placed = [("a", 2), ("b", 4), ("c", 6)];
    for (strategy, placed, free, want) in [
        (
            dynamic(),
            &placed[..],
            vec![10, 10, 10],
            Some(vec![("a", 6), ("b", 8), ("c", 10)]),
        ),
        (dynamic(), &placed[..], vec![1, 1, 1], None),
        (
            aggregated(),
            &[("a", 4), ("b", 8)][..],
            vec![4, 6, 8],
            Some(vec![("a", 6), ("b", 12), ("c", 6)]),
        ),
        (
            aggregated(),
            &[("a", 4), ("b", 8)][..],
            vec![6, 6, 20],
            Some(vec![("a", 10), ("b", 14)]),
        ),
        (aggregated(), &[("a", 4), ("b", 8)][..], vec![1, 1, 1], None),
    ] {
        let free: Vec<(&str, i64)> = ["a", "b", "c"].into_iter().zip(free).collect();
        let want = want.as_deref().and_then(named);
        assert_eq!(
            shares(strategy.clone(), 24, placed, &free),
            want,
            "{strategy} {free:?}"
        );
    }
}

#[test]
fn replicas_of_a_cluster_that_is_gone_are_divided_among_the_others() {
    let free = [("a", 4), ("c", 8), ("d", 12)];
    assert_eq!(
        shares(aggregated(), 24, &[("a", 4), ("b", 8)], &free),
        named(&[("a", 7), ("c", 6), ("d", 11)])
    );
    assert_eq!(
        shares(dynamic(), 12, &[("a", 6), ("c", 6)], &[("a", 3), ("b", 3)]),
        named(&[("a", 9), ("b", 3)])
    );
}

#[test]
fn a_fresh_division_counts_the_room_of_what_is_placed() {
    let case = |strategy: Value, fresh| Case {
        strategy,
        replicas: 12,
        current: &[("a", 12)],
        free: &[("a", Some(0)), ("b", Some(12))],
        spread: json!([]),
        fresh,
    };
    assert_eq!(case(dynamic(), false).shares(), named(&[("a", 12)]));
    assert_eq!(case(dynamic(), true).shares(), named(&[("a", 6), ("b", 6)]));
    assert_eq!(case(aggregated(), true).shares(), named(&[("a", 12)]));
}

#[test]
fn too_little_room_is_reported_with_the_numbers() {
    let case = Case {
        strategy: aggregated(),
        replicas: 12,
        current: &[("a", 2)],
        free: &[("a", Some(3)), ("b", Some(4)), ("c", None)],
        spread: json!([]),
        fresh: false,
    };
    let Outcome::Failed { reason, message, .. } = case.outcome() else {
        panic!("placed");
    };
    assert_eq!(reason, reason::UNSCHEDULABLE);
    assert_eq!(
        message,
        "3 of 3 clusters fit; Clusters available replicas 7 are not enough to schedule. 10 more are needed: scale down, add \
         nodes, or let more clusters fit; 1 that fit report no status.resourceSummary and count as full"
    );
}

#[test]
fn the_groups_that_a_constraint_asks_for_get_a_replica_each() {
    let case = |replicas, current| Case {
        strategy: aggregated(),
        replicas,
        current,
        free: &[("a", Some(100)), ("b", Some(50)), ("c", Some(1))],
        spread: json!([{"spreadByField": "cluster", "minGroups": 2, "maxGroups": 2}]),
        fresh: false,
    };
    assert_eq!(case(10, &[]).shares(), named(&[("a", 9), ("b", 1)]));
    assert_eq!(
        case(12, &[("a", 9), ("b", 1)]).shares(),
        named(&[("a", 11), ("b", 1)])
    );
    // One replica cannot be on two clusters.
    assert_eq!(case(1, &[]).shares(), None);
    // The policy has asked for it since: one moves.
    assert_eq!(case(10, &[("a", 10)]).shares(), named(&[("a", 9), ("b", 1)]));
}

#[test]
fn fixed_weights_are_ignored_where_room_decides() {
    let mut strategy = dynamic();
    strategy["weightPreference"]["staticWeightList"] =
        json!([{"targetCluster": {"clusterNames": ["a"]}, "weight": 1}]);
    assert_eq!(
        shares(strategy, 4, &[], &[("a", 10), ("b", 10)]),
        named(&[("a", 2), ("b", 2)])
    );
}
