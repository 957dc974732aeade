//! Autoscalers on members, with `--controllers=*,hpaScaleTargetMarker,deploymentReplicasSyncer`.

use entourage_api::keys::{annotation, label};
use serde_json::{Value, json};

use crate::{
    deployment,
    failover::{no_execute, taint},
    policy_of,
    pull::pass,
    world::{Random, World},
};

pub(crate) const BOTH: &[&str] = &["member1", "member2"];

/// Longer than the steps of autoscalers are collected, in milliseconds.
pub(crate) const REST: i64 = 45_000;

/// Works until nothing is left to do, the steps that are being collected included.
pub(crate) fn rest(world: &mut World) {
    assert!(world.settle_for(REST));
}

/// A world in which both controllers are on.
pub(crate) fn scaling(members: &[&str]) -> World {
    let mut world = World::new(members);
    let config = world.process.engine.config_mut();
    (config.mark_scale_targets, config.sync_replicas) = (true, true);
    world.restart();
    world
}

pub(crate) fn autoscaler(target: &str) -> Value {
    json!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "by-load"},
        "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": target},
                 "minReplicas": 1, "maxReplicas": 50},
    })
}

pub(crate) fn autoscaler_policy() -> Value {
    policy_of(
        "scaling",
        "autoscaling/v2",
        "HorizontalPodAutoscaler",
        "by-load",
        BOTH,
    )
}

/// A policy that divides the replicas of a Deployment by these weights of the members, in their order.
pub(crate) fn dividing(name: &str, weights: &[i64]) -> Value {
    let members: Vec<String> = (1..=weights.len()).map(|at| format!("member{at}")).collect();
    let names: Vec<&str> = members.iter().map(String::as_str).collect();
    let mut policy = policy_of(name, "apps/v1", "Deployment", name, &names);
    let rules = names.iter().zip(weights);
    let rules: Vec<Value> = rules
        .map(|(name, weight)| json!({"targetCluster": {"clusterNames": [name]}, "weight": weight}))
        .collect();
    policy["spec"]["placement"]["replicaScheduling"] = json!({
        "replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted",
        "weightPreference": {"staticWeightList": rules},
    });
    policy
}

pub(crate) fn workload(name: &str, replicas: i64) -> Value {
    let mut workload = deployment(name, &[]);
    workload["spec"]["replicas"] = json!(replicas);
    workload
}

/// A Deployment of `replicas` divided by weights, and its autoscaler on member1 and member2.
pub(crate) fn scaled(replicas: i64, weights: &[i64]) -> World {
    let members: Vec<String> = (1..=weights.len()).map(|at| format!("member{at}")).collect();
    let names: Vec<&str> = members.iter().map(String::as_str).collect();
    let mut world = scaling(&names);
    for object in [
        workload("web", replicas),
        dividing("web", weights),
        autoscaler("web"),
        autoscaler_policy(),
    ] {
        world.apply(object);
    }
    rest(&mut world);
    world
}

pub(crate) fn template<'a>(world: &'a World, name: &str) -> &'a Value {
    world.hub_object("Deployment", name).expect("a template")
}

/// The label, and the name in the annotation.
pub(crate) fn marks(world: &World, name: &str) -> (Value, Value) {
    let meta = &template(world, name)["metadata"];
    (
        meta["labels"][label::RETAIN_REPLICAS].clone(),
        meta["annotations"][annotation::SCALED_BY].clone(),
    )
}

pub(crate) fn set(by: &str) -> (Value, Value) {
    (json!("true"), json!(by))
}

pub(crate) const NONE: (Value, Value) = (Value::Null, Value::Null);

pub(crate) fn replicas(object: &Value) -> i64 {
    object["spec"]["replicas"].as_i64().expect("replicas")
}

pub(crate) fn on(world: &World, member: &str) -> i64 {
    replicas(world.on(member, "Deployment", "web").expect("a copy"))
}

/// An autoscaler of a member sets the replicas there.
pub(crate) fn scale(world: &mut World, member: &str, to: i64) {
    world.meddle(member, "Deployment", "web", |mut live| {
        live["spec"]["replicas"] = json!(to);
        Some(live)
    });
}

pub(crate) fn generation(world: &World) -> i64 {
    let generation = &template(world, "web")["metadata"]["generation"];
    generation.as_i64().expect("a generation")
}

/// The number of writes of the copy on a member since then.
pub(crate) fn writes_to(world: &World, since: usize, member: &str) -> usize {
    let put = format!("{member} PUT ");
    let is_of_it = |write: &&String| write.starts_with(&put) && write.contains("Deployment");
    world.writes[since..].iter().filter(is_of_it).count()
}

/// The events about autoscalers that contain these words.
pub(crate) fn reported(world: &World, words: &str) -> usize {
    let is_of_it = |event: &&String| {
        (event.starts_with("FollowAutoscalersFailed") || event.starts_with("refused: "))
            && event.contains(words)
    };
    world.events.iter().filter(is_of_it).count()
}

/// The clusters of the binding with their replicas.
pub(crate) fn shares(world: &World) -> Vec<(String, i64)> {
    let binding = crate::binding(world, "web-deployment");
    let clusters = binding["spec"]["clusters"].as_array().expect("clusters");
    let share = |each: &Value| {
        let name = each["name"].as_str().unwrap_or_default().to_owned();
        (name, each["replicas"].as_i64().unwrap_or_default())
    };
    clusters.iter().map(share).collect()
}

pub(crate) fn shares_are(world: &World, wanted: &[(&str, i64)]) {
    let found = shares(world);
    let found: Vec<(&str, i64)> = found
        .iter()
        .map(|(name, count)| (name.as_str(), *count))
        .collect();
    assert_eq!(found, wanted);
}

pub(crate) fn assert_quiet(world: &mut World) {
    let wrote = world.writes.len();
    assert!(world.settle_for(60_000));
    world.restart();
    assert!(world.settle_for(60_000));
    assert_eq!(world.writes[wrote..], [""; 0]);
}

#[test]
fn a_workload_is_labelled_as_long_as_an_autoscaler_that_is_propagated_scales_it() {
    let mut world = scaling(BOTH);
    world.apply(workload("web", 2));
    world.apply(dividing("web", &[1, 1]));
    world.apply(autoscaler("web"));
    rest(&mut world);
    assert_eq!(marks(&world, "web"), NONE, "it is not propagated");

    world.apply(autoscaler_policy());
    rest(&mut world);
    assert_eq!(marks(&world, "web"), set("by-load"));
    let copy = world.on("member1", "Deployment", "web").expect("a copy");
    assert!(copy["metadata"]["annotations"][annotation::SCALED_BY].is_null());
    assert_eq!(copy["metadata"]["labels"][label::RETAIN_REPLICAS], "true");
    assert_quiet(&mut world);

    // The policy ends, the copies stay: the autoscaler still scales on the members.
    world.delete("PropagationPolicy", "scaling");
    rest(&mut world);
    assert_eq!(world.holders("HorizontalPodAutoscaler", "by-load"), BOTH);
    assert_eq!(marks(&world, "web"), set("by-load"));

    world.delete("HorizontalPodAutoscaler", "by-load");
    assert!(world.settle_for(60_000));
    assert_eq!(marks(&world, "web"), NONE);
    assert_quiet(&mut world);
}

#[test]
fn the_label_follows_the_autoscaler_to_another_workload() {
    let mut world = scaled(2, &[1, 1]);
    world.apply(workload("api", 2));
    world.apply(dividing("api", &[1, 1]));
    rest(&mut world);
    assert_eq!(
        (marks(&world, "web"), marks(&world, "api")),
        (set("by-load"), NONE)
    );
    world.apply(autoscaler("api"));
    rest(&mut world);
    assert_eq!(
        (marks(&world, "web"), marks(&world, "api")),
        (NONE, set("by-load"))
    );
    assert_quiet(&mut world);
}

#[test]
fn the_label_stays_while_a_member_that_does_not_respond_may_have_the_autoscaler() {
    let mut world = scaled(2, &[1, 1]);
    world.set_down("member2", true);
    world.delete("HorizontalPodAutoscaler", "by-load");
    assert!(world.settle_for(60_000));
    assert_eq!(marks(&world, "web"), set("by-load"));
    assert!(reported(&world, "may still scale it on member2, which does not respond") > 0);
    world.restart();
    assert!(world.settle_for(60_000));
    assert_eq!(marks(&world, "web"), set("by-load"));
    world.set_down("member2", false);
    assert!(world.settle_for(60_000));
    assert_eq!(marks(&world, "web"), NONE);
    assert_quiet(&mut world);
}

#[test]
fn a_label_that_a_user_set_is_never_taken_off_nor_turned_on() {
    for value in ["true", "false"] {
        let mut world = scaling(BOTH);
        let mut own = workload("web", 2);
        own["metadata"]["labels"][label::RETAIN_REPLICAS] = json!(value);
        for object in [
            own,
            dividing("web", &[1, 1]),
            autoscaler("web"),
            autoscaler_policy(),
        ] {
            world.apply(object);
        }
        rest(&mut world);
        let users = (json!(value), Value::Null);
        assert_eq!(marks(&world, "web"), users);
        world.delete("HorizontalPodAutoscaler", "by-load");
        assert!(world.settle_for(60_000));
        assert_eq!(marks(&world, "web"), users);
    }
}

#[test]
fn a_crash_after_any_change_ends_with_the_label_where_it_belongs() {
    let mut crashes = 0;
    for crash_in in 1..40 {
        let mut world = scaling(BOTH);
        for object in [
            workload("web", 2),
            dividing("web", &[1, 1]),
            autoscaler("web"),
            autoscaler_policy(),
        ] {
            world.apply(object);
        }
        world.crash_in = Some(crash_in);
        if world.settle() {
            break;
        }
        crashes += 1;
        world.restart();
        rest(&mut world);
        assert_eq!(marks(&world, "web"), set("by-load"), "crash {crash_in}");
        world.delete("HorizontalPodAutoscaler", "by-load");
        world.crash_in = Some(crash_in);
        if !world.settle_for(60_000) {
            world.restart();
            assert!(world.settle_for(60_000));
        }
        assert_eq!(marks(&world, "web"), NONE, "crash {crash_in}");
    }
    assert!(crashes > 5, "{crashes}");
}

#[test]
fn the_replicas_of_a_template_are_what_its_members_have_and_nothing_moves_because_of_that() {
    let mut world = scaled(2, &[1, 1]);
    assert_quiet(&mut world);
    scale(&mut world, "member1", 7);
    scale(&mut world, "member2", 3);
    rest(&mut world);
    assert_eq!(replicas(template(&world, "web")), 10);
    shares_are(&world, &[("member1", 7), ("member2", 3)]);
    assert_eq!((on(&world, "member1"), on(&world, "member2")), (7, 3));
    assert_quiet(&mut world);

    // The same sum in another division costs no write of the template.
    let before = template(&world, "web").clone();
    scale(&mut world, "member1", 6);
    scale(&mut world, "member2", 4);
    rest(&mut world);
    shares_are(&world, &[("member1", 6), ("member2", 4)]);
    assert_eq!(
        template(&world, "web")["metadata"]["generation"],
        before["metadata"]["generation"]
    );
    assert_quiet(&mut world);

    // Without the autoscaler each member keeps what it has.
    world.delete("HorizontalPodAutoscaler", "by-load");
    assert!(world.settle_for(60_000));
    assert_eq!(marks(&world, "web"), NONE);
    assert_eq!((on(&world, "member1"), on(&world, "member2")), (6, 4));
    assert_quiet(&mut world);
}

#[test]
fn no_number_of_an_autoscaler_takes_a_cluster_away() {
    // By its weights member2 would have none of two, or of three replicas.
    let mut world = scaled(20, &[9, 1]);
    shares_are(&world, &[("member1", 18), ("member2", 2)]);
    for (one, two) in [(1, 1), (2, 1), (1, 30)] {
        scale(&mut world, "member1", one);
        scale(&mut world, "member2", two);
        rest(&mut world);
        assert_eq!(
            replicas(template(&world, "web")),
            one + two,
            "{:#?} {:?}",
            &world.writes[world.writes.len().saturating_sub(30)..],
            world.events
        );
        shares_are(&world, &[("member1", one), ("member2", two)]);
        assert_eq!((on(&world, "member1"), on(&world, "member2")), (one, two));
    }
    assert_quiet(&mut world);
}

#[test]
fn a_users_replicas_are_set_back_once_and_reach_no_member() {
    let mut world = scaled(2, &[1, 1]);
    scale(&mut world, "member1", 7);
    rest(&mut world);
    assert_eq!(replicas(template(&world, "web")), 8);
    let mut edited = template(&world, "web").clone();
    edited["spec"]["replicas"] = json!(100);
    let wrote = world.writes.len();
    let before = generation(&world);
    world.replace(edited);
    rest(&mut world);
    assert_eq!(replicas(template(&world, "web")), 8);
    assert_eq!((on(&world, "member1"), on(&world, "member2")), (7, 1));
    assert_eq!(
        generation(&world),
        before + 2,
        "the user's write, and one of ours"
    );
    // Each copy carries the generation.
    for member in BOTH {
        let count = writes_to(&world, wrote, member);
        assert!(
            (1..=2).contains(&count),
            "{member}: {:#?}",
            &world.writes[wrote..]
        );
    }
    assert_quiet(&mut world);
}

#[test]
fn replicas_follow_only_a_label_and_a_placement_that_divides() {
    for (labelled, divided) in [(true, false), (false, true)] {
        let mut world = scaling(BOTH);
        let mut own = workload("web", 2);
        if labelled {
            own["metadata"]["labels"][label::RETAIN_REPLICAS] = json!("true");
        }
        let policy = match divided {
            true => dividing("web", &[1, 1]),
            false => policy_of("web", "apps/v1", "Deployment", "web", BOTH),
        };
        world.apply(own);
        world.apply(policy);
        rest(&mut world);
        scale(&mut world, "member1", 9);
        assert!(world.settle_for(60_000));
        assert_eq!(replicas(template(&world, "web")), 2, "{labelled} {divided}");
    }
}

#[test]
fn a_cluster_that_does_not_respond_makes_no_sum_smaller() {
    let mut world = scaled(2, &[1, 1]);
    scale(&mut world, "member1", 7);
    scale(&mut world, "member2", 3);
    rest(&mut world);
    world.set_down("member2", true);
    scale(&mut world, "member1", 2);
    rest(&mut world);
    assert_eq!(replicas(template(&world, "web")), 10);
    world.restart();
    rest(&mut world);
    assert_eq!(replicas(template(&world, "web")), 10);
    world.set_down("member2", false);
    assert!(world.settle_for(60_000));
    assert_eq!(replicas(template(&world, "web")), 5);
    shares_are(&world, &[("member1", 2), ("member2", 3)]);
    assert_quiet(&mut world);
}

#[test]
fn a_cluster_that_joins_the_placement_gets_its_share_and_then_counts() {
    let mut world = scaled(2, &[1, 1, 1]);
    let mut narrow = dividing("web", &[1, 1]);
    narrow["spec"]["placement"]["clusterAffinity"]["clusterNames"] = json!(BOTH);
    world.apply(narrow);
    assert!(world.settle_for(60_000));
    scale(&mut world, "member1", 6);
    scale(&mut world, "member2", 6);
    rest(&mut world);
    assert_eq!(replicas(template(&world, "web")), 12);
    world.apply(dividing("web", &[1, 1, 1]));
    assert!(world.settle_for(60_000));
    // The new one is made with its share of what there is; the others keep what they have.
    assert_eq!(
        (
            on(&world, "member1"),
            on(&world, "member2"),
            on(&world, "member3")
        ),
        (6, 6, 4)
    );
    assert_eq!(replicas(template(&world, "web")), 16);
    assert_quiet(&mut world);
}

/// Whatever autoscalers do and whoever does not respond: with all members the template has the sum and the binding what each has;
/// while one is down the template is not written; and no member's number is changed by anybody else.
#[test]
fn the_sum_holds_after_any_course_of_scaling_and_outages() {
    for seed in 0..30 {
        let mut rng = Random::new(seed);
        let weights: Vec<i64> = (0..3)
            .map(|_| 1 + i64::try_from(rng.below(9)).unwrap_or(0))
            .collect();
        let mut world = scaled(30, &weights);
        let members = ["member1", "member2", "member3"];
        let mut down: Option<&str> = None;
        for step in 0..12 {
            let case = format!("seed {seed}, step {step}");
            let held = members.map(|member| on(&world, member));
            let before = replicas(template(&world, "web"));
            let mut wanted = held;
            match (rng.below(4), down) {
                (0, None) => {
                    let member = members[rng.below(3)];
                    world.set_down(member, true);
                    down = Some(member);
                }
                (0, Some(member)) => {
                    world.set_down(member, false);
                    down = None;
                }
                _ => {
                    let at = rng.below(3);
                    if down != Some(members[at]) {
                        wanted[at] = 1 + i64::try_from(rng.below(40)).unwrap_or(0);
                        scale(&mut world, members[at], wanted[at]);
                    }
                }
            }
            if rng.below(6) == 0 {
                world.restart();
            }
            assert!(world.settle_for(REST), "{case}");
            assert_eq!(members.map(|member| on(&world, member)), wanted, "{case}");
            let after = replicas(template(&world, "web"));
            match down {
                Some(_) => assert_eq!(after, before, "{case}"),
                None => {
                    assert_eq!(after, wanted.iter().sum::<i64>(), "{case}");
                    let given = members.iter().copied().zip(wanted).collect::<Vec<_>>();
                    shares_are(&world, &given);
                }
            }
        }
    }
}

#[test]
fn a_hub_with_nodes_has_its_templates_follow_as_any_other() {
    let mut world = scaling(BOTH);
    world.process.engine.config_mut().hub_has_nodes = true;
    world.restart();
    for object in [
        workload("web", 2),
        dividing("web", &[1, 1]),
        autoscaler("web"),
        autoscaler_policy(),
    ] {
        world.apply(object);
    }
    rest(&mut world);
    scale(&mut world, "member1", 7);
    rest(&mut world);
    assert_eq!(replicas(template(&world, "web")), 8);
    shares_are(&world, &[("member1", 7), ("member2", 1)]);
    assert_quiet(&mut world);
}

#[test]
fn the_label_goes_only_when_the_template_has_what_its_members_have() {
    for is_orphaned in [false, true] {
        let mut world = scaled(2, &[1, 1]);
        scale(&mut world, "member1", 7);
        rest(&mut world);
        if is_orphaned {
            world.delete("PropagationPolicy", "web");
            rest(&mut world);
        }
        // While that is collected, the autoscaler is deleted.
        scale(&mut world, "member1", 9);
        scale(&mut world, "member2", 3);
        world.delete("HorizontalPodAutoscaler", "by-load");
        assert!(world.settle_for(90_000));
        assert_eq!(marks(&world, "web"), NONE, "{is_orphaned}");
        assert_eq!(replicas(template(&world, "web")), 12, "{is_orphaned}");
        assert_eq!(
            (on(&world, "member1"), on(&world, "member2")),
            (9, 3),
            "{is_orphaned}"
        );
        assert_quiet(&mut world);
    }
}

#[test]
fn the_steps_of_an_autoscaler_cost_the_other_members_few_writes() {
    let mut world = scaled(2, &[1, 1]);
    let (wrote, before) = (world.writes.len(), generation(&world));
    for to in 2..12 {
        scale(&mut world, "member1", to);
        pass(&mut world, 2_000);
        assert_eq!(on(&world, "member1"), to);
    }
    rest(&mut world);
    assert_eq!(replicas(template(&world, "web")), 12);
    assert!(generation(&world) <= before + 2);
    assert!(
        writes_to(&world, wrote, "member2") <= 2,
        "{:#?}",
        &world.writes[wrote..]
    );
    assert_quiet(&mut world);
}

#[test]
fn the_label_for_an_autoscaler_that_members_keep_stays_and_is_a_users() {
    for from_the_beginning in [true, false] {
        let mut world = scaling(BOTH);
        let mut keeping = autoscaler_policy();
        keeping["spec"]["preserveResourcesOnDeletion"] = json!(true);
        world.apply(workload("web", 2));
        world.apply(dividing("web", &[1, 1]));
        world.apply(autoscaler("web"));
        if !from_the_beginning {
            world.apply(autoscaler_policy());
            rest(&mut world);
            assert_eq!(marks(&world, "web"), set("by-load"));
        }
        world.apply(keeping);
        rest(&mut world);
        let users = (json!("true"), Value::Null);
        assert_eq!(marks(&world, "web"), users, "{from_the_beginning}");
        assert_eq!(reported(&world, "is yours from now on") > 0, !from_the_beginning);
        world.delete("HorizontalPodAutoscaler", "by-load");
        assert!(world.settle_for(60_000));
        assert_eq!(world.holders("HorizontalPodAutoscaler", "by-load"), BOTH);
        scale(&mut world, "member1", 5);
        rest(&mut world);
        assert_eq!(on(&world, "member1"), 5);
        assert_eq!(marks(&world, "web"), users, "{from_the_beginning}");
        assert_quiet(&mut world);
    }
}

#[test]
fn another_division_takes_no_cluster_away_and_lowers_nothing() {
    let mut world = scaled(20, &[9, 1]);
    scale(&mut world, "member1", 2);
    scale(&mut world, "member2", 1);
    rest(&mut world);
    assert_eq!(replicas(template(&world, "web")), 3);
    // By these weights member2 would have none of three.
    world.apply(dividing("web", &[8, 1]));
    rest(&mut world);
    assert_eq!(world.holders("Deployment", "web"), BOTH);
    assert_eq!((on(&world, "member1"), on(&world, "member2")), (2, 1));
    shares_are(&world, &[("member1", 2), ("member2", 1)]);
    assert_quiet(&mut world);
}

#[test]
fn what_is_evicted_arrives_where_a_copy_is_once() {
    for purge in ["Gracefully", "Directly"] {
        let mut world = scaling(BOTH);
        let mut policy = dividing("web", &[1, 1]);
        policy["spec"]["failover"] = json!({"cluster": {"purgeMode": purge}});
        for object in [workload("web", 2), policy, autoscaler("web"), autoscaler_policy()] {
            world.apply(object);
        }
        rest(&mut world);
        scale(&mut world, "member1", 5);
        scale(&mut world, "member2", 3);
        rest(&mut world);
        let taints = no_execute(&world);
        taint(&mut world, "member1", &taints);
        rest(&mut world);
        shares_are(&world, &[("member2", 8)]);
        assert_eq!(on(&world, "member2"), 8, "{purge}");
        world.restart();
        rest(&mut world);
        assert_eq!(on(&world, "member2"), 8, "{purge}");
        // Then its autoscaler decides.
        scale(&mut world, "member2", 4);
        rest(&mut world);
        assert_eq!(
            on(&world, "member2"),
            4,
            "{purge} {:#?}",
            &world.writes[world.writes.len().saturating_sub(30)..]
        );
        world.restart();
        rest(&mut world);
        assert_eq!(on(&world, "member2"), 4, "{purge}");
    }
}

#[test]
fn an_autoscaler_that_is_retargeted_keeps_the_label_where_a_member_may_not_have_heard_of_it() {
    let mut world = scaled(2, &[1, 1]);
    world.apply(workload("api", 2));
    world.apply(dividing("api", &[1, 1]));
    rest(&mut world);
    world.set_down("member2", true);
    world.apply(autoscaler("api"));
    rest(&mut world);
    assert_eq!(
        (marks(&world, "web"), marks(&world, "api")),
        (set("by-load"), set("by-load"))
    );
    world.restart();
    rest(&mut world);
    assert_eq!(marks(&world, "web"), set("by-load"));
    world.set_down("member2", false);
    assert!(world.settle_for(90_000));
    assert_eq!(
        (marks(&world, "web"), marks(&world, "api")),
        (NONE, set("by-load"))
    );
    assert_quiet(&mut world);
}

#[test]
fn of_two_autoscalers_the_last_one_ends_the_label() {
    let mut world = scaled(2, &[1, 1]);
    let mut other = autoscaler("web");
    other["metadata"]["name"] = json!("a-second");
    world.apply(other);
    world.apply(policy_of(
        "second",
        "autoscaling/v2",
        "HorizontalPodAutoscaler",
        "a-second",
        BOTH,
    ));
    rest(&mut world);
    for (gone, left) in [("a-second", set("by-load")), ("by-load", NONE)] {
        world.delete("HorizontalPodAutoscaler", gone);
        assert!(world.settle_for(60_000));
        assert_eq!(marks(&world, "web"), left, "{gone}");
    }
    assert_quiet(&mut world);
}

#[test]
fn a_writer_that_undoes_it_is_corrected_with_back_off_and_reported_once() {
    let mut world = scaled(2, &[1, 1]);
    scale(&mut world, "member1", 7);
    rest(&mut world);
    for round in 1..6 {
        let mut edited = template(&world, "web").clone();
        edited["spec"]["replicas"] = json!(2);
        world.replace(edited);
        rest(&mut world);
        assert_eq!(replicas(template(&world, "web")), 8, "{round}");
        assert_eq!(
            reported(&world, "keeps changing spec.replicas"),
            usize::from(round >= 3),
            "{round}"
        );
    }
    for round in 1..6 {
        let mut edited = template(&world, "web").clone();
        for (field, key) in [
            ("labels", label::RETAIN_REPLICAS),
            ("annotations", annotation::SCALED_BY),
        ] {
            let held = edited["metadata"][field].as_object_mut().expect("metadata");
            held.remove(key).expect("ours");
        }
        world.replace(edited);
        rest(&mut world);
        assert_eq!(marks(&world, "web"), set("by-load"), "{round}");
    }
    assert_eq!(
        reported(
            &world,
            "keeps changing resourcetemplate.karmada.io/retain-replicas"
        ),
        1
    );
    assert_quiet(&mut world);
}

#[test]
fn a_workload_sleeps_where_its_members_scale_it_to_zero_and_wakes_by_another_number() {
    let mut world = scaled(2, &[1, 1]);
    scale(&mut world, "member1", 5);
    scale(&mut world, "member2", 3);
    rest(&mut world);
    scale(&mut world, "member2", 0);
    rest(&mut world);
    assert_eq!(replicas(template(&world, "web")), 5);
    shares_are(&world, &[("member1", 5), ("member2", 0)]);
    assert_quiet(&mut world);
    // All of it, and before what was collected is written.
    scale(&mut world, "member1", 9);
    pass(&mut world, 1_000);
    scale(&mut world, "member1", 0);
    rest(&mut world);
    assert_eq!((on(&world, "member1"), on(&world, "member2")), (0, 0));
    assert_quiet(&mut world);
    // An edit wakes none of them.
    let mut edited = template(&world, "web").clone();
    edited["spec"]["template"]["spec"]["containers"][0]["image"] = json!("nginx:2");
    world.replace(edited);
    rest(&mut world);
    shares_are(&world, &[("member1", 0), ("member2", 0)]);
    assert_eq!((on(&world, "member1"), on(&world, "member2")), (0, 0));
    // One of them alone wakes up.
    scale(&mut world, "member2", 2);
    rest(&mut world);
    assert_eq!((on(&world, "member1"), on(&world, "member2")), (0, 2));
    assert_eq!(replicas(template(&world, "web")), 2);
    scale(&mut world, "member2", 0);
    rest(&mut world);
    let mut edited = template(&world, "web").clone();
    edited["spec"]["replicas"] = json!(6);
    world.replace(edited);
    rest(&mut world);
    assert_eq!((on(&world, "member1"), on(&world, "member2")), (3, 3));
    assert_eq!(replicas(template(&world, "web")), 6);
    assert_quiet(&mut world);
}

#[test]
fn the_label_of_a_workload_that_sleeps_waits_for_a_number() {
    let mut world = scaled(2, &[1, 1]);
    scale(&mut world, "member1", 0);
    scale(&mut world, "member2", 0);
    rest(&mut world);
    world.delete("HorizontalPodAutoscaler", "by-load");
    assert!(world.settle_for(60_000));
    assert_eq!(marks(&world, "web"), set("by-load"));
    assert!(reported(&world, "set spec.replicas to another number") > 0);
    let mut edited = template(&world, "web").clone();
    edited["spec"]["replicas"] = json!(0);
    world.replace(edited);
    assert!(world.settle_for(60_000));
    assert_eq!(marks(&world, "web"), NONE);
    assert_eq!((on(&world, "member1"), on(&world, "member2")), (0, 0));
    assert_quiet(&mut world);
}

#[test]
fn a_member_whose_delivery_is_suspended_makes_no_sum_smaller() {
    let mut world = scaled(2, &[1, 1]);
    scale(&mut world, "member1", 7);
    rest(&mut world);
    let mut suspended = dividing("web", &[1, 1]);
    suspended["spec"]["suspension"] = json!({"dispatchingOnClusters": {"clusterNames": ["member2"]}});
    world.apply(suspended);
    rest(&mut world);
    let mut edited = template(&world, "web").clone();
    edited["spec"]["template"]["spec"]["containers"][0]["image"] = json!("nginx:2");
    world.replace(edited);
    rest(&mut world);
    scale(&mut world, "member1", 2);
    rest(&mut world);
    assert_eq!(
        replicas(template(&world, "web")),
        8,
        "what member2 has says nothing of the new template"
    );
    world.apply(dividing("web", &[1, 1]));
    rest(&mut world);
    assert_eq!(replicas(template(&world, "web")), 3);
    assert_eq!((on(&world, "member1"), on(&world, "member2")), (2, 1));
    assert_quiet(&mut world);
}

#[test]
fn a_stateful_set_follows_as_a_deployment_does() {
    let mut world = scaling(BOTH);
    let mut own = workload("web", 2);
    own["kind"] = json!("StatefulSet");
    let mut policy = dividing("web", &[1, 1]);
    policy["spec"]["resourceSelectors"][0]["kind"] = json!("StatefulSet");
    let mut scaler = autoscaler("web");
    scaler["spec"]["scaleTargetRef"]["kind"] = json!("StatefulSet");
    for object in [own, policy, scaler, autoscaler_policy()] {
        world.apply(object);
    }
    rest(&mut world);
    world.meddle("member1", "StatefulSet", "web", |mut live| {
        live["spec"]["replicas"] = json!(7);
        Some(live)
    });
    rest(&mut world);
    let template = world.hub_object("StatefulSet", "web").expect("a template");
    assert_eq!(replicas(template), 8);
    assert_eq!(
        template["metadata"]["annotations"][annotation::SCALED_BY],
        "by-load"
    );
    assert_quiet(&mut world);
}

#[test]
fn a_template_that_waits_for_its_lazy_policy_is_not_touched_and_its_shares_follow() {
    let mut lazy = dividing("web", &[1, 1]);
    lazy["spec"]["activationPreference"] = json!("Lazy");
    let mut world = scaling(BOTH);
    for object in [
        lazy.clone(),
        workload("web", 2),
        autoscaler("web"),
        autoscaler_policy(),
    ] {
        world.apply(object);
        rest(&mut world);
    }
    assert_eq!(marks(&world, "web"), set("by-load"));
    lazy["spec"]["placement"]["clusterAffinity"]["clusterNames"] = json!(["member1"]);
    world.apply(lazy);
    rest(&mut world);
    let before = template(&world, "web").clone();
    scale(&mut world, "member1", 7);
    world.delete("HorizontalPodAutoscaler", "by-load");
    rest(&mut world);
    // A write would count as the change that the policy waits for.
    assert_eq!(template(&world, "web")["spec"], before["spec"]);
    assert_eq!(marks(&world, "web"), set("by-load"));
    assert_eq!(world.holders("Deployment", "web"), BOTH);
    shares_are(&world, &[("member1", 7), ("member2", 1)]);
    assert_quiet(&mut world);
    // The user's change activates it; what member2 had is not lost.
    let mut edited = template(&world, "web").clone();
    edited["spec"]["template"]["spec"]["containers"][0]["image"] = json!("nginx:2");
    world.replace(edited);
    assert!(world.settle_for(90_000));
    assert_eq!(world.holders("Deployment", "web"), ["member1"]);
    assert_eq!(on(&world, "member1"), 8);
    assert_eq!(replicas(template(&world, "web")), 8);
    assert_eq!(marks(&world, "web"), NONE);
    assert_quiet(&mut world);
}

#[test]
fn a_rebalancer_divides_anew_without_taking_replicas_from_a_member() {
    let mut world = scaled(20, &[9, 1]);
    scale(&mut world, "member1", 1);
    scale(&mut world, "member2", 2);
    rest(&mut world);
    assert_eq!(replicas(template(&world, "web")), 3);
    world.apply(json!({
        "apiVersion": "apps.karmada.io/v1alpha1", "kind": "WorkloadRebalancer", "metadata": {"name": "all"},
        "spec": {"workloads": [
            {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": "web"},
        ]},
    }));
    assert!(world.settle_for(90_000));
    // By their weights they have two and one: the share of member1 arrives, member2 keeps what its autoscaler has made.
    assert_eq!((on(&world, "member1"), on(&world, "member2")), (2, 2));
    assert_eq!(replicas(template(&world, "web")), 4);
    shares_are(&world, &[("member1", 2), ("member2", 2)]);
    assert_quiet(&mut world);
}
