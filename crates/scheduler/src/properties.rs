//! Invariants of the scheduler over generated clusters and placements.

use entourage_api::{
    cluster::{ApiEnablement, ApiResource, Cluster, ClusterStatus},
    policy::{
        ClusterAffinity, ClusterAffinityTerm, OverflowAffinity, Placement, ReplicaSchedulingStrategy,
        SpreadConstraint, SpreadField, StaticClusterWeight,
    },
    work::TargetCluster,
};
use k8s_openapi::api::core::v1::{Taint, Toleration};
use proptest::{collection::vec, prelude::*, sample::subsequence};

use super::{Candidate, ClusterChange, Outcome, Request, affinity, schedule};
use entourage_model::object::{Gvk, StrMap};

/// `f` is never among the clusters.
const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

#[derive(Clone, Debug)]
struct Member {
    name: String,
    labels: StrMap,
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
    (
        taints,
        serves,
        ("[xy]?", "[xy]?"),
        any::<bool>(),
        prop::bool::weighted(0.2),
    )
        .prop_map(move |(taints, serves, (tier, region), ready, deleting)| {
            let mut cluster = Cluster::default();
            cluster.spec.region = region;
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
        })
}

/// At least two groups by a label.
fn by_tier() -> SpreadConstraint {
    SpreadConstraint {
        spread_by_label: "tier".into(),
        min_groups: 2,
        ..Default::default()
    }
}

/// A cluster, or none, and the same with one part of another; or that other, or none.
fn changed((before, other, part): (Option<Member>, Member, u8)) -> (Option<Member>, Option<Member>) {
    let Some(mut after) = before.clone() else {
        return (before, Some(other));
    };
    match part {
        0 => after.labels = other.labels,
        1 => after.cluster.spec.region = other.cluster.spec.region,
        2 => after.cluster.spec.taints = other.cluster.spec.taints,
        3 => after.cluster.status = other.cluster.status,
        4 => (after.ready, after.deleting) = (other.ready, other.deleting),
        5 => after = other,
        _ => return (before, None),
    }
    (before, Some(after))
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
                .enumerate()
                .map(|(position, affinity)| ClusterAffinityTerm {
                    affinity_name: position.to_string(),
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
            current,
            ..Request::first(placement, &gvk, Some(2))
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
            Outcome::Failed { reason, message, .. } => prop_assert!(!reason.is_empty() && !message.is_empty()),
        }
    }

    #[test]
    fn placing_again_what_is_placed_changes_nothing(
        members in members(), placement in placement(), current in names(),
    ) {
        let first = outcome(&placement, &targets(&current), &members);
        let Outcome::Placed { clusters, affinity, .. } = &first else { return Ok(()) };
        let gvk = Gvk::new("apps/v1", "Deployment");
        let candidates: Vec<Candidate<'_>> = members.iter().map(Member::candidate).collect();
        let again = Request {
            current: clusters,
            affinity: Some(affinity),
            ..Request::first(&placement, &gvk, Some(2))
        };
        let second = schedule(&again, &candidates);
        let Outcome::Placed { clusters: after, affinity: in_use, .. } = &second else { panic!("{second:?}") };
        prop_assert_eq!((clusters, affinity), (after, in_use));
        prop_assert_eq!(&second, &schedule(&Request { current: after, ..again }, &candidates));
        // It does not change before the group is recorded either.
        let unrecorded = outcome(&placement, clusters, &members);
        prop_assert_eq!(chosen(&first), chosen(&unrecorded));
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
            prop_assert!(member.is_some_and(|member| !member.deleting || current.contains(&member.name)));
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

    /// A current target that was scheduled without problems is kept when taints are added, a cluster turns not ready or
    /// discovery loses the kind.
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

    /// A result under constraints meets them, and is stable; from other targets as many of them stay as in any valid result.
    #[test]
    fn constraints_hold_and_what_they_chose_is_chosen_again(
        members in vec(spread_member(), 0..9),
        constraints in constraints(),
        current in subsequence(SPREAD_NAMES.to_vec(), 0..=4),
    ) {
        let members = named(members);
        let placement = Placement { spread_constraints: constraints.clone(), ..Default::default() };
        let current = targets(&current.into_iter().map(String::from).collect::<Vec<_>>());
        let first = outcome(&placement, &current, &members);
        let allowed = subsets_that_hold(&members, &constraints);
        let Outcome::Placed { clusters, .. } = &first else {
            prop_assert!(allowed.is_empty(), "{first:?}, although {:?} would do", allowed[0]);
            return Ok(());
        };
        let names: Vec<&str> = clusters.iter().map(|target| target.name.as_str()).collect();
        prop_assert!(allowed.contains(&names), "{names:?}");
        prop_assert!(
            !allowed.iter().any(|other| other.len() > names.len() && names.iter().all(|name| other.contains(name))),
            "{names:?} could take more"
        );
        prop_assert_eq!(&first, &outcome(&placement, clusters, &members));
        let present: Vec<&str> = current.iter().map(|target| target.name.as_str()).collect();
        if allowed.contains(&present) {
            prop_assert!(present.iter().all(|name| names.contains(name)), "{present:?} became {names:?}");
        }
    }

    /// A change of a Cluster that counts as irrelevant is.
    #[test]
    fn a_change_that_may_change_nothing_changes_nothing(
        members in members(),
        (name, before, after) in subsequence(&NAMES[..5], 1).prop_flat_map(|name| {
            let versions = (prop::option::weighted(0.8, member(name[0])), member(name[0]), 0..7_u8);
            (Just(name[0]), versions.prop_map(changed))
        }).prop_map(|(name, (before, after))| (name, before, after)),
        mut placement in placement(),
        weights in vec((affinity(), 1..5_i64), 0..3),
        constraints in prop_oneof![Just(Vec::new()), constraints(), Just(vec![by_tier()])],
        overflow in vec(affinity(), 0..3),
        current in names(),
    ) {
        if let Some(term) = placement.cluster_affinities.first_mut().filter(|_| !overflow.is_empty()) {
            placement.replica_scheduling = Some(aggregated());
            term.affinity.cluster_names.push("f".into());
            term.overflow_affinities = overflow_groups(overflow);
        } else if !weights.is_empty() {
            placement.replica_scheduling = Some(divided(weights));
        }
        placement.spread_constraints = constraints;
        let with = |version: &Option<Member>| {
            let others = members.iter().filter(|member| member.name != name);
            let all: Vec<Member> = others.chain(version).cloned().collect();
            outcome(&placement, &targets(&current), &all)
        };
        let gvk = Gvk::new("apps/v1", "Deployment");
        let change = ClusterChange::new(before.as_ref().map(Member::candidate), after.as_ref().map(Member::candidate));
        let first = with(&before);
        let is_counted = change.is_count_changed() && matches!(first, Outcome::Failed { .. });
        let is_target = current.iter().any(|each| each == name);
        if !is_counted && !change.may_change(&placement, &gvk, is_target) {
            prop_assert_eq!(first, with(&after));
        }
    }

    /// Bounds that leave exactly what some of the clusters have: these show that there is a choice.
    #[test]
    fn a_choice_that_exists_is_found_among_many(
        members in vec(("[a-f]", vec("[a-f]", 1..=2), "[a-f]"), 16),
        some in subsequence((0..16).collect::<Vec<usize>>(), 2..=5),
    ) {
        let outcome = as_bounded_by(members, &some);
        prop_assert!(matches!(outcome, Outcome::Placed { .. }), "{outcome:?}");
    }

    /// Divided replicas add up, no cluster has a copy without one, and the result is stable until the request changes.
    #[test]
    fn divided_replicas_add_up_and_stay(
        (members, fewer) in members().prop_flat_map(|all| {
            let count = all.len();
            (Just(all.clone()), subsequence(all, 0..=count))
        }),
        mut placement in placement(),
        weights in vec((affinity(), 1..5_i64), 0..3),
        replicas in 0..20_i32,
        uid in "[ab]",
    ) {
        placement.replica_scheduling = Some(divided(weights));
        let gvk = Gvk::new("apps/v1", "Deployment");
        let candidates: Vec<Candidate<'_>> = members.iter().map(Member::candidate).collect();
        let request = Request { uid: &uid, ..Request::first(&placement, &gvk, Some(replicas)) };
        let applied = serde_json::to_string(&placement).unwrap();
        let few: Vec<Candidate<'_>> = fewer.iter().map(Member::candidate).collect();
        let Outcome::Placed { clusters, affinity, .. } = schedule(&request, &few) else { return Ok(()) };
        prop_assert_eq!(clusters.iter().map(|target| target.replicas).sum::<i32>(), replicas);
        prop_assert!(replicas == 0 || clusters.iter().all(|target| target.replicas > 0));
        // Clusters have joined since.
        let settled = Request { current: &clusters, applied: &applied, affinity: Some(&affinity), ..request };
        match schedule(&settled, &candidates) {
            Outcome::Placed { clusters: after, .. } => prop_assert_eq!(&after, &clusters),
            failed => prop_assert!(false, "{failed:?}"),
        }
        // One more, on the same clusters: no cluster loses any.
        let scaled = Request { replicas: Some(replicas + 1), ..settled };
        if let Outcome::Placed { clusters: after, .. } = schedule(&scaled, &few) {
            let of = |all: &[TargetCluster], name: &str| {
                all.iter().find(|target| target.name == name).map_or(0, |target| target.replicas)
            };
            prop_assert_eq!(after.iter().map(|target| target.replicas).sum::<i32>(), replicas + 1);
            prop_assert!(clusters.iter().all(|target| target.replicas <= of(&after, &target.name)));
        }
    }

    /// A result exists if any group fits, whatever the group in use.
    #[test]
    fn no_group_in_use_is_a_dead_end(members in members(), placement in placement(), group in "[01]?") {
        let gvk = Gvk::new("apps/v1", "Deployment");
        let candidates: Vec<Candidate<'_>> = members.iter().map(Member::candidate).collect();
        let first = Request::first(&placement, &gvk, Some(2));
        let later = Request { affinity: Some(&group), ..first };
        let is_placed = |outcome: &Outcome| matches!(outcome, Outcome::Placed { .. });
        prop_assert_eq!(is_placed(&schedule(&first, &candidates)), is_placed(&schedule(&later, &candidates)));
    }

    /// A fresh result does not depend on the present targets.
    #[test]
    fn a_fresh_choice_forgets_the_present_targets(
        members in members(), placement in placement(), current in names(), group in "[01]?",
    ) {
        let gvk = Gvk::new("apps/v1", "Deployment");
        let candidates: Vec<Candidate<'_>> = members.iter().map(Member::candidate).collect();
        let current = targets(&current);
        let first = Request::first(&placement, &gvk, Some(2));
        let fresh = Request { current: &current, affinity: Some(&group), fresh: true, ..first };
        match (schedule(&first, &candidates), schedule(&fresh, &candidates)) {
            // If no group fits they stay, except those that no group selects.
            (
                Outcome::Failed { reason: one, message: first, .. },
                Outcome::Failed { reason: other, message: fresh, .. },
            ) => prop_assert_eq!((one, first), (other, fresh)),
            (first, fresh) => prop_assert_eq!(first, fresh),
        }
    }

    /// If no group fits, a present target is removed exactly if its cluster is known and no group selects it.
    #[test]
    fn a_failed_choice_leaves_the_targets_that_no_group_selects_and_no_others(
        members in members(), placement in placement(), current in names(), group in prop::option::of("[01]?"), fresh: bool,
    ) {
        let gvk = Gvk::new("apps/v1", "Deployment");
        let candidates: Vec<Candidate<'_>> = members.iter().map(Member::candidate).collect();
        let current = targets(&current);
        let request = Request {
            current: &current,
            affinity: group.as_deref(),
            fresh,
            ..Request::first(&placement, &gvk, Some(2))
        };
        let Outcome::Failed { unselected, .. } = schedule(&request, &candidates) else { return Ok(()) };
        for target in &current {
            let known = candidates.iter().find(|each| each.name == target.name);
            let is_selected = |each: &Candidate<'_>| {
                let terms = &placement.cluster_affinities;
                let single = placement.cluster_affinity.as_ref();
                match terms.is_empty() {
                    true => single.is_none_or(|affinity| affinity::selects(affinity, each)),
                    false => terms.iter().any(|term| affinity::selects(&term.affinity, each)),
                }
            };
            let is_left = unselected.iter().any(|name| **name == *target.name);
            prop_assert_eq!(is_left, known.is_some_and(|each| !is_selected(each)), "{}", target.name);
        }
        prop_assert!(unselected.len() <= current.len());
    }
}

const SPREAD_NAMES: [&str; 9] = ["m0", "m1", "m2", "m3", "m4", "m5", "m6", "m7", "m8"];

/// A region and one or two zones, or neither.
fn spread_member() -> impl Strategy<Value = (String, Vec<String>, String)> {
    ("[rs]?", vec("[xyz]", 0..=2), "[pq]?")
}

fn named(members: Vec<(String, Vec<String>, String)>) -> Vec<Member> {
    let all = members.into_iter().enumerate();
    all.map(|(number, (region, zones, rack))| {
        let mut cluster = Cluster::default();
        cluster.spec.region = region;
        cluster.spec.zones = zones;
        let labels = [("rack".into(), rack.as_str().into())].into_iter();
        Member {
            name: format!("m{number}"),
            labels: labels.filter(|_| !rack.is_empty()).collect(),
            cluster,
            ready: true,
            deleting: false,
        }
    })
    .collect()
}

fn constraints() -> impl Strategy<Value = Vec<SpreadConstraint>> {
    let bounds = (0..=3_i64, prop_oneof![Just(0), 1..=3_i64]);
    vec(bounds, 4).prop_flat_map(|bounds| {
        let fields = [
            Some(SpreadField::Cluster),
            Some(SpreadField::Region),
            Some(SpreadField::Zone),
            None,
        ];
        let all: Vec<SpreadConstraint> = fields
            .into_iter()
            .zip(bounds)
            .map(|(field, (min, max))| SpreadConstraint {
                spread_by_field: field,
                spread_by_label: if field.is_none() {
                    "rack".into()
                } else {
                    String::new()
                },
                min_groups: if max == 0 { min } else { min.min(max) },
                max_groups: max,
            })
            .collect();
        subsequence(all, 1..=3)
    })
}

/// All sets of clusters that meet the constraints, by brute force.
fn subsets_that_hold<'a>(members: &'a [Member], constraints: &[SpreadConstraint]) -> Vec<Vec<&'a str>> {
    let groups = |constraint: &SpreadConstraint, member: &'a Member| -> Vec<&'a str> {
        match constraint.spread_by_field {
            Some(SpreadField::Cluster) => vec![&member.name],
            Some(SpreadField::Region) => vec![&member.cluster.spec.region],
            Some(_) => member.cluster.spec.zones.iter().map(String::as_str).collect(),
            None => member.labels.values().map(|value| &**value).collect(),
        }
    };
    let holds = |chosen: &Vec<&'a Member>| {
        !chosen.is_empty()
            && constraints.iter().all(|constraint| {
                let all: Vec<Vec<&str>> = chosen.iter().map(|member| groups(constraint, member)).collect();
                let distinct: std::collections::BTreeSet<&str> = all.iter().flatten().copied().collect();
                let count = i64::try_from(distinct.len()).unwrap();
                all.iter().all(|of| of.iter().any(|group| !group.is_empty()))
                    && count >= constraint.min_groups
                    && (constraint.max_groups == 0 || count <= constraint.max_groups)
            })
    };
    (0_u32..1 << members.len())
        .map(|set| {
            let chosen = members
                .iter()
                .enumerate()
                .filter(|(place, _)| set & (1 << place) != 0);
            chosen.map(|(_, member)| member).collect::<Vec<_>>()
        })
        .filter(holds)
        .map(|chosen| chosen.into_iter().map(|member| member.name.as_str()).collect())
        .collect()
}

fn aggregated() -> ReplicaSchedulingStrategy {
    serde_json::from_value(serde_json::json!({
        "replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated",
    }))
    .unwrap()
}

fn overflow_groups(affinities: Vec<ClusterAffinity>) -> Vec<OverflowAffinity> {
    let groups = affinities.into_iter().enumerate();
    groups
        .map(|(position, affinity)| OverflowAffinity {
            affinity_name: format!("more-{position}"),
            affinity,
        })
        .collect()
}

fn divided(weights: Vec<(ClusterAffinity, i64)>) -> ReplicaSchedulingStrategy {
    let rules = weights
        .into_iter()
        .map(|(target_cluster, weight)| StaticClusterWeight {
            target_cluster,
            weight,
        });
    serde_json::from_value(serde_json::json!({
        "replicaSchedulingType": "Divided",
        "weightPreference": { "staticWeightList": rules.collect::<Vec<_>>() },
    }))
    .unwrap()
}

/// Groups of a member: its region, zones and rack.
type Groups = (String, Vec<String>, String);

/// The result if the bounds equal the groups of some of the members.
fn as_bounded_by(members: Vec<Groups>, some: &[usize]) -> Outcome {
    let count = |groups: Vec<&String>| {
        groups
            .into_iter()
            .collect::<std::collections::BTreeSet<_>>()
            .len()
    };
    let some: Vec<_> = some.iter().map(|place| &members[*place]).collect();
    let bounds = [
        (Some(SpreadField::Cluster), some.len()),
        (
            Some(SpreadField::Region),
            count(some.iter().map(|each| &each.0).collect()),
        ),
        (
            Some(SpreadField::Zone),
            count(some.iter().flat_map(|each| &each.1).collect()),
        ),
        (None, count(some.iter().map(|each| &each.2).collect())),
    ];
    let exactly = |(field, groups): (Option<SpreadField>, usize)| SpreadConstraint {
        spread_by_field: field,
        spread_by_label: if field.is_none() {
            "rack".into()
        } else {
            String::new()
        },
        min_groups: groups as i64,
        max_groups: groups as i64,
    };
    let placement = Placement {
        spread_constraints: bounds.into_iter().map(exactly).collect(),
        ..Default::default()
    };
    outcome(&placement, &[], &named(members))
}

/// A case that an earlier search gave up on, because it visited the same choices in every order.
#[test]
fn sixteen_members_in_many_groups_are_few_enough_for_a_search() {
    let members = [
        ("a", "a", "a"),
        ("a", "a", "b"),
        ("e", "a", "b"),
        ("e", "c", "c"),
        ("a", "a", "b"),
        ("a", "fc", "a"),
        ("b", "d", "a"),
        ("c", "fd", "e"),
        ("a", "e", "a"),
        ("a", "a", "c"),
        ("b", "bc", "e"),
        ("a", "b", "f"),
        ("c", "bf", "a"),
        ("d", "ef", "e"),
        ("c", "a", "b"),
        ("f", "b", "f"),
    ];
    let groups = |(region, zones, rack): (&str, &str, &str)| {
        let zones = zones.chars().map(String::from).collect();
        (region.to_owned(), zones, rack.to_owned())
    };
    let outcome = as_bounded_by(members.map(groups).into(), &[3, 4, 6, 11, 13]);
    assert!(matches!(outcome, Outcome::Placed { .. }), "{outcome:?}");
}
