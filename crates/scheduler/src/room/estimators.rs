//! Estimators: how their answers bound the room, and which of them are to be asked.

use std::collections::BTreeMap;

use entourage_api::{
    cluster::{Cluster, SyncMode},
    policy::Placement,
};
use entourage_model::object::{Gvk, Str, StrMap};
use serde_json::{Value, json};

use super::tests::{aggregated, cluster, dynamic, named, shares_of, targets};
use crate::{
    Candidate, Estimates, Request, Room, Scheduled,
    estimate::{Capacity, Demand, Estimate},
    schedule_by_estimates,
};

/// The clusters m1 to m3 with these free pods, of which m3 is in Pull mode.
struct Case<'a> {
    strategy: Value,
    replicas: i32,
    current: &'a [(&'a str, i32)],
    stuck: &'a [(&'a str, i32)],
    free: [Option<i64>; 3],
    in_pull_mode: bool,
    fresh: bool,
}

impl Default for Case<'_> {
    fn default() -> Self {
        Self {
            strategy: dynamic(),
            replicas: 12,
            current: &[],
            stuck: &[],
            free: [Some(6), Some(8), Some(10)],
            in_pull_mode: true,
            fresh: false,
        }
    }
}

impl Case<'_> {
    /// `None` asks no estimators.
    fn scheduled(&self, answers: Option<&[(&str, Option<i64>)]>) -> Scheduled {
        let placement: Placement =
            serde_json::from_value(json!({"replicaScheduling": self.strategy})).unwrap();
        let mut clusters: Vec<(&str, Cluster)> = ["m1", "m2", "m3"]
            .into_iter()
            .zip(self.free.map(cluster))
            .collect();
        clusters[2].1.spec.sync_mode = SyncMode::Pull;
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
        let (current, stuck) = (targets(self.current), targets(self.stuck));
        let applied = serde_json::to_string(&placement).unwrap();
        let (gvk, demand) = (Gvk::new("apps/v1", "Deployment"), Demand::default());
        let own = |name: &str| {
            let held = self.current.iter().find(|(each, _)| *each == name);
            held.map_or(0, |(_, replicas)| i64::from(*replicas))
        };
        let all = answers.unwrap_or_default().iter();
        let answers_by_name: BTreeMap<Str, Option<Estimate>> = all
            .map(|&(name, answer)| {
                let estimate = answer.map(|replicas| Estimate {
                    replicas,
                    own: own(name),
                    ..Estimate::default()
                });
                (name.into(), estimate)
            })
            .collect();
        let estimates = Estimates {
            answers: &answers_by_name,
            in_pull_mode: self.in_pull_mode,
        };
        let request = Request {
            current: &current,
            applied: &applied,
            stuck: &stuck,
            fresh: self.fresh,
            room: Some(Room {
                demand: &demand,
                capacities: &capacities,
                accounted: &current,
                reserved: &[],
                estimates: answers.map(|_| estimates),
            }),
            ..Request::first(&placement, &gvk, Some(self.replicas))
        };
        schedule_by_estimates(&request, &candidates)
    }

    fn asked(&self, answers: Option<&[(&str, Option<i64>)]>) -> Vec<String> {
        let asked = self.scheduled(answers).unestimated.into_iter();
        asked.map(|name| name.to_string()).collect()
    }
}

#[test]
fn the_room_is_the_least_of_report_and_estimate_and_without_an_answer_that_of_the_report() {
    let by_room = |strategy: &Value, answers: &[(&str, Option<i64>)]| {
        let case = Case {
            strategy: strategy.clone(),
            ..Case::default()
        };
        shares_of(case.scheduled(Some(answers)).outcome)
    };
    let (none, all) = (None, Some(i64::from(i32::MAX)));
    for (strategy, answers, want) in [
        (
            dynamic(),
            [none, none, none],
            Some(vec![("m1", 3), ("m2", 4), ("m3", 5)]),
        ),
        (
            dynamic(),
            [all, all, all],
            Some(vec![("m1", 3), ("m2", 4), ("m3", 5)]),
        ),
        (dynamic(), [Some(0), none, none], Some(vec![("m2", 5), ("m3", 7)])),
        (
            dynamic(),
            [Some(2), Some(2), none],
            Some(vec![("m1", 1), ("m2", 2), ("m3", 9)]),
        ),
        (dynamic(), [Some(1), Some(2), Some(8)], None),
        (aggregated(), [none, none, none], Some(vec![("m2", 5), ("m3", 7)])),
        (
            aggregated(),
            [none, none, Some(1)],
            Some(vec![("m1", 5), ("m2", 7)]),
        ),
        (aggregated(), [Some(100), Some(4), Some(1)], None),
    ] {
        let answers: Vec<_> = ["m1", "m2", "m3"].into_iter().zip(answers).collect();
        let want = want.as_deref().and_then(named);
        assert_eq!(by_room(&strategy, &answers), want, "{strategy} {answers:?}");
    }
}

#[test]
fn estimators_are_asked_where_a_result_that_grows_depends_on_them() {
    let case = Case::default;
    let none: &[(&str, Option<i64>)] = &[];
    let standing = [("m1", 4), ("m2", 8)];
    for (case, answers, want) in [
        (case(), None, vec![]),
        (case(), Some(none), vec!["m1", "m2", "m3"]),
        (case(), Some(&[("m1", Some(1)), ("m2", None)][..]), vec!["m3"]),
        (
            Case {
                in_pull_mode: false,
                ..case()
            },
            Some(none),
            vec!["m1", "m2"],
        ),
        // No room by their reports.
        (
            Case {
                free: [None, Some(0), Some(20)],
                ..case()
            },
            Some(none),
            vec!["m3"],
        ),
        // Too little of it, whatever they say.
        (
            Case {
                free: [Some(1), Some(1), Some(1)],
                ..case()
            },
            Some(none),
            vec![],
        ),
        (
            Case {
                current: &standing,
                ..case()
            },
            Some(none),
            vec![],
        ),
        (
            Case {
                current: &standing,
                replicas: 6,
                ..case()
            },
            Some(none),
            vec![],
        ),
        (
            Case {
                current: &standing,
                replicas: 13,
                ..case()
            },
            Some(none),
            vec!["m1", "m2", "m3"],
        ),
        (
            Case {
                current: &standing,
                fresh: true,
                ..case()
            },
            Some(none),
            vec!["m1", "m2", "m3"],
        ),
        (
            Case {
                current: &standing,
                stuck: &[("m1", 2)],
                ..case()
            },
            Some(none),
            vec!["m2", "m3"],
        ),
        (
            Case {
                strategy: json!({"replicaSchedulingType": "Divided"}),
                ..case()
            },
            Some(none),
            vec![],
        ),
        (
            Case {
                strategy: json!({"replicaSchedulingType": "Duplicated"}),
                ..case()
            },
            Some(none),
            vec![],
        ),
        (
            Case {
                replicas: 0,
                ..case()
            },
            Some(none),
            vec![],
        ),
    ] {
        let asked = case.asked(answers);
        let situation = (&case.current, case.replicas, case.free, case.fresh, answers);
        assert_eq!(asked, want, "{} {situation:?}", case.strategy);
    }
}

/// Five replicas are on m1, and its report contains none of them; its nodes had room for ten.
#[test]
fn a_scale_up_stays_in_its_group_where_the_estimate_contains_what_is_reserved() {
    let demand = Demand::default();
    let placement: Placement = serde_json::from_value(json!({
        "replicaScheduling": dynamic(),
        "clusterAffinities": [
            {"affinityName": "first", "clusterNames": ["m1"]},
            {"affinityName": "second", "clusterNames": ["m2"]},
        ],
    }))
    .unwrap();
    let clusters = [("m1", cluster(Some(10))), ("m2", cluster(Some(20)))];
    let mut capacities: BTreeMap<Str, Capacity> = clusters
        .iter()
        .map(|(name, cluster)| ((*name).into(), Capacity::of(cluster).unwrap()))
        .collect();
    capacities.get_mut("m1").unwrap().reserve(&demand, 5);
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
    let five = targets(&[("m1", 5)]);
    let accounted = targets(&[("m1", 0)]);
    let gvk = Gvk::new("apps/v1", "Deployment");
    // The estimate, and the replicas of the workload that it contains.
    for (replicas, own, want) in [(5, 5, ("m1", 8)), (10, 0, ("m1", 8)), (2, 5, ("m2", 8))] {
        let estimate = |replicas, own| {
            Some(Estimate {
                replicas,
                own,
                ..Estimate::default()
            })
        };
        let answers: BTreeMap<Str, Option<Estimate>> = [
            ("m1".into(), estimate(replicas, own)),
            ("m2".into(), estimate(20, 0)),
        ]
        .into();
        let request = Request {
            current: &five,
            affinity: Some("first"),
            room: Some(Room {
                demand: &demand,
                capacities: &capacities,
                accounted: &accounted,
                reserved: &five,
                estimates: Some(Estimates {
                    answers: &answers,
                    in_pull_mode: true,
                }),
            }),
            ..Request::first(&placement, &gvk, Some(8))
        };
        let shares = shares_of(schedule_by_estimates(&request, &candidates).outcome);
        assert_eq!(shares, named(&[want]), "{replicas} {own}");
    }
}
