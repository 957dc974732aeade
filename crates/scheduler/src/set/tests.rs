//! Sets of components: which workloads are, the cluster that is chosen, and what is said where none has room.

use std::collections::BTreeMap;

use entourage_api::{cluster::Cluster, keys::reason, policy::Placement, work::TargetCluster};
use entourage_model::object::{Gvk, Str, StrMap};
use serde_json::{Value, json};

use super::*;
use crate::{
    Candidate, Outcome, Request, Room,
    estimate::{Capacity, Demand},
    schedule,
};

/// A cluster: its name, its free CPUs if it reports any, and the classes of its nodes with their CPUs and number.
pub(super) type Member<'a> = (&'a str, Option<i64>, &'a [(i64, i64)]);

/// The CPUs of one replica of each component, and the number of replicas.
pub(super) type Pods<'a> = &'a [(i64, i32)];

/// A request for a set.
pub(super) struct Case<'a> {
    pub(super) components: Pods<'a>,
    pub(super) members: &'a [Member<'a>],
    pub(super) current: &'a [&'a str],
    pub(super) fresh: bool,
    pub(super) placement: Value,
}

/// Of the spread constraints: exactly one cluster.
pub(super) fn one_cluster() -> Value {
    json!({"spreadConstraints": [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}]})
}

pub(super) fn components(all: Pods<'_>) -> Vec<Component> {
    let one = |(place, (cpu, replicas)): (usize, &(i64, i32))| {
        json!({
            "name": format!("part-{place}"), "replicas": replicas,
            "replicaRequirements": {"resourceRequest": {"cpu": cpu.to_string()}},
        })
    };
    let all = all.iter().enumerate().map(one);
    all.map(|each| serde_json::from_value(each).unwrap()).collect()
}

pub(super) fn cluster((_, cpu, classes): &Member<'_>) -> Cluster {
    let numbered = || classes.iter().enumerate();
    let models: Vec<Value> = numbered()
        .map(|(grade, (cpu, _))| {
            let range = json!({"name": "cpu", "min": cpu.to_string(), "max": (cpu + 1).to_string()});
            json!({"grade": grade, "ranges": [range]})
        })
        .collect();
    let counts: Vec<Value> = numbered()
        .map(|(grade, (_, count))| json!({"grade": grade, "count": count}))
        .collect();
    let summary = cpu.map(
        |cpu| json!({"allocatable": {"cpu": cpu.to_string(), "pods": "110"}, "allocatableModelings": counts}),
    );
    serde_json::from_value(json!({
        "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": "m"},
        "spec": {"syncMode": "Push", "resourceModels": models},
        "status": {"resourceSummary": summary},
    }))
    .unwrap()
}

impl Case<'_> {
    pub(super) fn outcome(&self) -> Outcome {
        let placement: Placement = serde_json::from_value(self.placement.clone()).unwrap();
        let components = components(self.components);
        let clusters: Vec<(&str, Cluster)> = self
            .members
            .iter()
            .map(|member| (member.0, cluster(member)))
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
        let current: Vec<TargetCluster> = self.current.iter().map(|name| whole(name, &components)).collect();
        let gvk = Gvk::new("flink.apache.org/v1beta1", "FlinkDeployment");
        let demand = Demand::of_set(&components);
        schedule(
            &Request {
                components: &components,
                current: &current,
                fresh: self.fresh,
                room: Some(Room {
                    demand: &demand,
                    capacities: &capacities,
                    accounted: &current,
                    reserved: &[],
                    estimates: None,
                }),
                ..Request::first(&placement, &gvk, None)
            },
            &candidates,
        )
    }

    /// The names of the chosen clusters; none if it failed. Each has the whole set.
    pub(super) fn chosen(&self) -> Vec<String> {
        let Outcome::Placed { clusters, .. } = self.outcome() else {
            return Vec::new();
        };
        let components = components(self.components);
        for target in &clusters {
            assert_eq!(*target, whole(&target.name, &components));
        }
        clusters.into_iter().map(|target| target.name).collect()
    }
}

fn whole(cluster: &str, components: &[Component]) -> TargetCluster {
    let each = components.iter().map(|component| TargetComponent {
        name: component.name.clone(),
        replicas: component.replicas,
    });
    TargetCluster {
        name: cluster.into(),
        replicas: 0,
        components: each.collect(),
    }
}

#[test]
fn it_goes_to_one_cluster_with_room_for_all_components_together_and_stays() {
    // A head with 2 CPUs, and 3 workers with 1: 5 together.
    let set: Pods<'_> = &[(2, 1), (1, 3)];
    let members: &[Member<'_>] = &[
        ("a", Some(4), &[]),
        ("b", Some(5), &[]),
        ("c", Some(20), &[]),
        ("d", None, &[]),
        ("e", Some(21), &[]),
    ];
    let cases: [(Pods<'_>, &[&str], bool, Vec<&str>); 10] = [
        // Room for 4 sets twice: the first by name.
        (set, &[], false, vec!["c"]),
        // What is placed stays, whatever the room.
        (set, &["a"], false, vec!["a"]),
        (set, &["d"], false, vec!["d"]),
        // Its own pods are room for it: 4 of the others, and one that is there.
        (set, &["e"], true, vec!["e"]),
        (set, &["d"], true, vec!["c"]),
        // It fits in no cluster; where it is, it stays.
        (&[(30, 1)], &[], false, vec![]),
        (&[(30, 1)], &["b"], false, vec!["b"]),
        // It sleeps: any cluster will do.
        (&[(2, 0), (1, 0)], &[], false, vec!["a"]),
        // More than there are pods.
        (&[(0, 111)], &[], false, vec![]),
        (&[(0, 110)], &[], false, vec!["a"]),
    ];
    for (components, current, fresh, want) in cases {
        let case = Case {
            components,
            members,
            current,
            fresh,
            placement: one_cluster(),
        };
        assert_eq!(case.chosen(), want, "{components:?} {current:?} {fresh}");
    }
}

#[test]
fn a_set_that_sleeps_needs_no_report() {
    let cases: [(&[Member<'_>], &[&str], &str); 3] = [
        (&[("d", None, &[])], &[], "d"),
        (
            &[("b", Some(0), &[]), ("c", Some(9), &[]), ("d", None, &[])],
            &[],
            "b",
        ),
        (&[("b", Some(9), &[]), ("d", None, &[])], &["d"], "d"),
    ];
    for (members, current, want) in cases {
        let case = Case {
            components: &[(2, 0), (1, 0)],
            members,
            current,
            fresh: false,
            placement: one_cluster(),
        };
        assert_eq!(case.chosen(), [want], "{members:?}");
    }
}

/// Nodes by their number and their CPUs.
type Nodes<'a> = &'a [(i64, i64)];

#[test]
fn each_pod_needs_a_node() {
    let cases: [(Pods<'_>, Nodes<'_>, bool); 13] = [
        // 4 nodes with 2 CPUs each.
        (&[(2, 4)], &[(2, 4)], true),
        (&[(2, 5)], &[(2, 4)], false),
        (&[(1, 8)], &[(2, 4)], true),
        (&[(1, 9)], &[(2, 4)], false),
        (&[(3, 1)], &[(2, 4)], false),
        // The head takes a node of its own, and the workers the rest.
        (&[(2, 1), (1, 6)], &[(2, 4)], true),
        (&[(1, 6), (2, 1)], &[(2, 4)], true),
        (&[(2, 1), (1, 7)], &[(2, 4)], false),
        // The large pods get the large nodes.
        (&[(1, 2), (4, 1)], &[(1, 2), (4, 1)], true),
        (&[(1, 2), (4, 1)], &[(2, 1), (4, 1)], true),
        (&[(1, 3), (4, 1)], &[(2, 1), (4, 1)], false),
        (&[(3, 2)], &[(4, 1), (5, 1)], true),
        (&[(3, 3)], &[(4, 1), (5, 1)], false),
    ];
    for (set, nodes, fits) in cases {
        let case = Case {
            components: set,
            members: &[("a", Some(100), nodes)],
            current: &[],
            fresh: false,
            placement: one_cluster(),
        };
        assert_eq!(!case.chosen().is_empty(), fits, "{set:?} {nodes:?}");
    }
}

#[test]
fn where_none_has_room_it_says_so() {
    let case = Case {
        components: &[(2, 1), (1, 3)],
        members: &[("a", Some(4), &[]), ("b", None, &[])],
        current: &[],
        fresh: false,
        placement: one_cluster(),
    };
    let Outcome::Failed { reason, message, .. } = case.outcome() else {
        panic!("placed without room")
    };
    assert_eq!(reason, reason::UNSCHEDULABLE);
    assert_eq!(
        message,
        "2 of 2 clusters fit; none has room for all components together (4 pods): scale down, add nodes, or let more clusters fit; 1 \
         that fit report no status.resourceSummary and count as full"
    );
}

#[test]
fn of_several_groups_the_first_with_room_is_used() {
    let mut placement = one_cluster();
    placement["clusterAffinities"] = json!([
        {"affinityName": "own", "clusterNames": ["a"]},
        {"affinityName": "cloud", "clusterNames": ["b", "c"]},
    ]);
    for (cpu, want) in [(5, "a"), (4, "c")] {
        let case = Case {
            components: &[(2, 1), (1, 3)],
            members: &[("a", Some(cpu), &[]), ("b", Some(9), &[]), ("c", Some(10), &[])],
            current: &[],
            fresh: false,
            placement: placement.clone(),
        };
        assert_eq!(case.chosen(), [want], "{cpu}");
    }
}

#[test]
fn it_is_a_set_only_on_one_cluster_and_without_replicas() {
    let two = components(&[(1, 1), (1, 1)]);
    let one = || json!([{"spreadByField": "cluster", "maxGroups": 1}]);
    let cases: [(Value, Option<i32>, &[Component], bool); 10] = [
        (one_cluster()["spreadConstraints"].clone(), None, &two, true),
        (one(), None, &two[..1], true),
        (
            json!([{"spreadByField": "region"}, {"maxGroups": 1}]),
            None,
            &two,
            true,
        ),
        (one(), None, &[], false),
        (one(), Some(1), &two, false),
        (
            json!([{"spreadByField": "cluster", "maxGroups": 2}]),
            None,
            &two,
            false,
        ),
        (json!([{"spreadByField": "cluster"}]), None, &two, false),
        (
            json!([{"spreadByField": "region", "maxGroups": 1}]),
            None,
            &two,
            false,
        ),
        (
            json!([{"spreadByLabel": "team", "maxGroups": 1}]),
            None,
            &two,
            false,
        ),
        (json!([]), None, &two, false),
    ];
    for (constraints, replicas, components, want) in cases {
        let placement: Placement = serde_json::from_value(json!({"spreadConstraints": constraints})).unwrap();
        assert_eq!(
            is_set(&placement, replicas, components),
            want,
            "{constraints} {replicas:?}"
        );
    }
}
