//! Laws of the scheduler over generated clusters and placements.

use std::collections::BTreeMap;

use entourage_api::{
    cluster::{ApiEnablement, ApiResource, Cluster, ClusterStatus},
    policy::{ClusterAffinity, ClusterAffinityTerm, Placement},
    work::TargetCluster,
};
use k8s_openapi::api::core::v1::{Taint, Toleration};
use proptest::{collection::vec, prelude::*, sample::subsequence};

use super::{Candidate, Outcome, Request, schedule};
use crate::object::{Gvk, Str};

/// `f` is never among the clusters.
const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

#[derive(Clone, Debug)]
struct Member {
    name: String,
    labels: BTreeMap<Str, Str>,
    cluster: Cluster,
    ready: bool,
    deleting: bool,
}

impl Member {
    fn candidate(&self) -> Candidate<'_> {
        Candidate {
            name: &self.name,
            labels: &self.labels,
            cluster: &self.cluster,
            ready: self.ready,
            deleting: self.deleting,
        }
    }
}

fn members() -> impl Strategy<Value = Vec<Member>> {
    subsequence(&NAMES[..5], 0..=5).prop_flat_map(|names| names.into_iter().map(member).collect::<Vec<_>>())
}

fn member(name: &'static str) -> impl Strategy<Value = Member> {
    let taints = subsequence(vec!["NoSchedule", "NoExecute", "PreferNoSchedule"], 0..=2);
    let serves = subsequence(vec!["Deployment", "Job"], 0..=2);
    (taints, serves, "[xy]?", any::<bool>(), prop::bool::weighted(0.2)).prop_map(
        move |(taints, serves, tier, ready, deleting)| {
            let mut cluster = Cluster::default();
            cluster.spec.region = tier.clone();
            cluster.spec.taints = taints
                .into_iter()
                .map(|effect| Taint {
                    key: "maintenance".into(),
                    effect: effect.into(),
                    ..Default::default()
                })
                .collect();
            let resources = serves
                .iter()
                .map(|kind| ApiResource {
                    name: String::new(),
                    kind: (*kind).into(),
                })
                .collect();
            cluster.status = Some(ClusterStatus {
                api_enablements: vec![ApiEnablement {
                    group_version: "apps/v1".into(),
                    resources,
                }],
                ..Default::default()
            });
            let labels = [("tier".into(), tier.as_str().into())].into();
            Member {
                name: name.into(),
                labels,
                cluster,
                ready,
                deleting,
            }
        },
    )
}

fn names() -> impl Strategy<Value = Vec<String>> {
    subsequence(&NAMES[..], 0..=6).prop_map(|names| names.into_iter().map(String::from).collect())
}

fn affinity() -> impl Strategy<Value = ClusterAffinity> {
    (
        names(),
        subsequence(&NAMES[..], 0..=2),
        prop::option::weighted(0.3, "[xy]"),
    )
        .prop_map(|(cluster_names, exclude, tier)| ClusterAffinity {
            cluster_names,
            exclude: exclude.into_iter().map(String::from).collect(),
            label_selector: tier.map(|tier| {
                serde_json::from_value(serde_json::json!({"matchLabels": {"tier": tier}})).unwrap()
            }),
            field_selector: None,
        })
}

fn placement() -> impl Strategy<Value = Placement> {
    let tolerations = vec(
        prop_oneof![Just("maintenance"), Just("cluster.karmada.io/not-ready")].prop_map(|key| Toleration {
            key: Some(key.into()),
            operator: Some("Exists".into()),
            ..Default::default()
        }),
        0..=2,
    );
    (vec(affinity(), 0..=2), any::<bool>(), tolerations).prop_map(|(affinities, is_single, tolerations)| {
        let mut placement = Placement {
            cluster_tolerations: tolerations,
            ..Default::default()
        };
        if is_single {
            placement.cluster_affinity = affinities.into_iter().next();
        } else {
            placement.cluster_affinities = affinities
                .into_iter()
                .map(|affinity| ClusterAffinityTerm {
                    affinity,
                    ..Default::default()
                })
                .collect();
        }
        placement
    })
}

fn targets(names: &[String]) -> Vec<TargetCluster> {
    names
        .iter()
        .map(|name| TargetCluster {
            name: name.clone(),
            ..Default::default()
        })
        .collect()
}

fn outcome(placement: &Placement, current: &[TargetCluster], members: &[Member]) -> Outcome {
    let gvk = Gvk::new("apps/v1", "Deployment");
    let candidates: Vec<Candidate<'_>> = members.iter().map(Member::candidate).collect();
    schedule(
        &Request {
            placement,
            gvk: &gvk,
            replicas: Some(2),
            current,
        },
        &candidates,
    )
}

fn chosen(outcome: &Outcome) -> Vec<&str> {
    match outcome {
        Outcome::Placed { clusters, .. } => clusters.iter().map(|target| target.name.as_str()).collect(),
        Outcome::Failed { .. } => Vec::new(),
    }
}

proptest! {
    #[test]
    fn the_order_of_the_clusters_decides_nothing(
        (members, shuffled) in members().prop_flat_map(|all| (Just(all.clone()), Just(all).prop_shuffle())),
        placement in placement(),
        current in names(),
    ) {
        let current = targets(&current);
        let outcome = outcome(&placement, &current, &members);
        prop_assert_eq!(&outcome, &self::outcome(&placement, &current, &shuffled));
        prop_assert!(chosen(&outcome).is_sorted());
        match &outcome {
            Outcome::Placed { clusters, .. } => {
                prop_assert!(!clusters.is_empty());
                prop_assert!(clusters.iter().all(|target| target.replicas == 2));
            }
            Outcome::Failed { reason, message } => prop_assert!(!reason.is_empty() && !message.is_empty()),
        }
    }

    #[test]
    fn placing_again_what_is_placed_changes_nothing(
        members in members(), placement in placement(), current in names(),
    ) {
        let first = outcome(&placement, &targets(&current), &members);
        let Outcome::Placed { clusters, .. } = &first else { return Ok(()) };
        prop_assert_eq!(&first, &outcome(&placement, clusters, &members));
    }

    #[test]
    fn nothing_excluded_deleting_or_unknown_is_chosen(
        members in members(), affinity in affinity(), current in names(),
    ) {
        let placement = Placement { cluster_affinity: Some(affinity.clone()), ..Default::default() };
        for name in chosen(&outcome(&placement, &targets(&current), &members)) {
            prop_assert!(!affinity.exclude.iter().any(|excluded| excluded == name));
            prop_assert!(affinity.cluster_names.is_empty() || affinity.cluster_names.iter().any(|each| each == name));
            let member = members.iter().find(|member| member.name == name);
            prop_assert!(member.is_some_and(|member| !member.deleting));
        }
    }

    #[test]
    fn what_is_new_tolerates_every_taint_and_serves_the_kind(members in members(), placement in placement()) {
        for name in chosen(&outcome(&placement, &[], &members)) {
            let member = members.iter().find(|member| member.name == name).unwrap();
            let tolerated = |key: &str| {
                placement.cluster_tolerations.iter().any(|toleration| toleration.key.as_deref() == Some(key))
            };
            prop_assert!(member.ready || tolerated("cluster.karmada.io/not-ready"));
            let mut taints = member.cluster.spec.taints.iter();
            prop_assert!(taints.all(|taint| taint.effect == "PreferNoSchedule" || tolerated("maintenance")));
            let groups = &member.cluster.status.as_ref().unwrap().api_enablements;
            prop_assert!(groups[0].resources.iter().any(|resource| resource.kind == "Deployment"));
        }
    }

    /// Whoever is placed while nothing is wrong stays when taints come, a cluster turns not ready or discovery
    /// loses the kind.
    #[test]
    fn taints_and_missing_apis_drive_no_current_target_away(members in members(), placement in placement()) {
        let healthy: Vec<Member> = members
            .iter()
            .map(|member| {
                let mut member = member.clone();
                member.ready = true;
                member.cluster.spec.taints.clear();
                member.cluster.status = None;
                member
            })
            .collect();
        let before = outcome(&placement, &[], &healthy);
        let Outcome::Placed { clusters, .. } = &before else { return Ok(()) };
        let after = outcome(&placement, clusters, &members);
        prop_assert_eq!(chosen(&before), chosen(&after), "{:?}", after);
    }
}
