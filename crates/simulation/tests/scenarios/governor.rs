//! Deletions that no edit explains: few go on, many pause until somebody releases them.

use entourage_core::{
    object::{Gvk, ResourceId},
    observation::Watch,
};
use serde_json::{Value, json};

use crate::{
    config_map, deployment,
    distributions::{distribution, key, named, namespace},
    example, policy, policy_of, settled,
    world::{World, id},
};

const MANY: usize = 200;

fn name(n: usize) -> String {
    format!("cm{n:03}")
}

/// A policy for all ConfigMaps, and many of them on member1; far enough ago that no edit of those days explains anything.
fn filled(mut world: World, count: usize) -> World {
    let mut policy = policy_of("all", "v1", "ConfigMap", "", &["member1"]);
    policy["spec"]["resourceSelectors"] = json!([{"apiVersion": "v1", "kind": "ConfigMap"}]);
    policy["spec"]["propagateDeps"] = json!(false);
    world.apply(policy);
    for n in 0..count {
        world.apply(config_map(&name(n), "a"));
    }
    assert!(world.settle());
    assert_eq!(held(&world), count);
    world
}

fn held(world: &World) -> usize {
    let of_it = |key: &&ResourceId| &*key.gvk.kind == "ConfigMap" && key.name.starts_with("cm");
    world.members["member1"].keys().filter(of_it).count()
}

/// The hub without some of its ConfigMaps, as a backup has it that is older than them: nobody learns of it.
fn lose(world: &mut World, from: usize) {
    world.hub.retain(|key, _| {
        &*key.gvk.kind != "ConfigMap" || !key.name.starts_with("cm") || *key.name < *name(from)
    });
}

fn paused(world: &World) -> Value {
    paused_on(world, "member1")
}

fn paused_on(world: &World, member: &str) -> Value {
    let cluster = world.hub_object("Cluster", member).expect("cluster");
    let mut all = cluster["status"]["conditions"].as_array().into_iter().flatten();
    all.find(|each| each["type"] == "RemovalsPaused")
        .cloned()
        .unwrap_or_default()
}

fn assert_paused(world: &World, reason: &str, says: &str) {
    let paused = paused(world);
    assert_eq!(
        (&paused["status"], &paused["reason"]),
        (&json!("True"), &json!(reason)),
        "{paused}"
    );
    let message = paused["message"].as_str().expect("message");
    assert!(message.contains(says), "{message}");
    assert!(message.contains("entourage resume member1"), "{message}");
}

#[test]
fn templates_that_a_restored_hub_lacks_pause_the_deletion_of_their_copies_until_it_is_released() {
    let mut world = filled(settled(), MANY);
    lose(&mut world, 0);
    world.restart();
    assert!(world.settle_for(600_000));
    assert_eq!(held(&world), MANY - 20);
    assert_paused(
        &world,
        "UnexplainedRemovals",
        "20 copies were deleted from member1 within a minute",
    );
    assert_paused(&world, "UnexplainedRemovals", "180 deletions wait");
    assert_eq!(
        world
            .events
            .iter()
            .filter(|each| each.contains("RemovalsPaused"))
            .count(),
        1
    );
    // The pause outlives the process, and nothing is written because of it.
    let writes = world.writes.len();
    world.restart();
    assert!(world.settle_for(600_000));
    assert_eq!(held(&world), MANY - 20);
    assert_eq!(world.writes.len(), writes, "{:?}", &world.writes[writes..]);
    world.release_removals();
    assert!(world.settle_for(600_000));
    assert_eq!(held(&world), 0);
    let over = paused(&world);
    assert_eq!(
        (&over["status"], &over["reason"]),
        (&json!("False"), &json!("RemovalsResumed"))
    );
    assert_eq!(world.holders("ConfigMap", "my-config"), ["member1", "member2"]);
}

#[test]
fn a_release_holds_over_a_restart_and_releases_no_later_pause() {
    let mut world = filled(settled(), MANY);
    lose(&mut world, 100);
    world.restart();
    assert!(world.settle_for(600_000));
    assert_eq!(held(&world), MANY - 20);
    world.release_removals();
    world.crash_in = Some(30);
    assert!(!world.settle_for(600_000));
    world.restart();
    assert!(world.settle_for(600_000));
    assert_eq!(held(&world), 100);
    world.now = world.now.plus(3_600_000);
    lose(&mut world, 0);
    world.restart();
    assert!(world.settle_for(600_000));
    assert_eq!(held(&world), 80);
    assert_paused(&world, "UnexplainedRemovals", "80 deletions wait");
}

#[test]
fn a_list_that_lacks_many_templates_pauses_the_deletion_of_their_copies() {
    let mut world = filled(settled(), MANY);
    lose(&mut world, 0);
    let watch =
        entourage_core::observation::Watch::Templates(entourage_core::object::Gvk::new("v1", "ConfigMap"));
    world.lose(watch);
    world.shut.clear();
    assert!(world.settle_for(600_000));
    assert_eq!(held(&world), MANY - 20);
    assert_paused(&world, "UnexplainedRemovals", "180 deletions wait");
}

#[test]
fn what_a_user_deletes_or_moves_is_not_limited() {
    let mut world = filled(settled(), MANY);
    let mut policy = world
        .hub_object("PropagationPolicy", "all")
        .expect("policy")
        .clone();
    policy["spec"]["placement"]["clusterAffinity"]["clusterNames"] = json!(["member2"]);
    world.replace(policy.clone());
    assert!(world.settle_for(600_000));
    assert_eq!(held(&world), 0);
    policy["spec"]["placement"]["clusterAffinity"]["clusterNames"] = json!(["member1"]);
    let resource_version =
        world.hub_object("PropagationPolicy", "all").expect("policy")["metadata"]["resourceVersion"].clone();
    policy["metadata"]["resourceVersion"] = resource_version;
    world.replace(policy);
    assert!(world.settle_for(600_000));
    assert_eq!(held(&world), MANY);
    for n in 0..MANY {
        world.delete("ConfigMap", &name(n));
    }
    assert!(world.settle_for(600_000));
    assert_eq!(held(&world), 0);
    assert!(paused(&world).is_null());
}

#[test]
fn what_a_user_deletes_while_the_member_is_down_for_hours_is_not_limited() {
    let mut world = filled(settled(), 50);
    world.set_down("member1", true);
    for n in 0..50 {
        world.delete("ConfigMap", &name(n));
    }
    assert!(world.settle_for(600_000));
    world.now = world.now.plus(12 * 3_600_000);
    world.set_down("member1", false);
    assert!(world.settle_for(600_000));
    assert_eq!(held(&world), 0);
    assert!(paused(&world).is_null());
}

#[test]
fn what_the_edit_of_a_workload_leaves_unneeded_is_not_limited() {
    let mut world = settled();
    let names: Vec<String> = (0..50).map(name).collect();
    for each in &names {
        world.apply(config_map(each, "a"));
    }
    let all: Vec<&str> = std::iter::once("my-config")
        .chain(names.iter().map(String::as_str))
        .collect();
    let [app, ..] = example();
    let mut large = app.clone();
    large["spec"] = crate::deployment("myapp", &all)["spec"].clone();
    world.apply(large);
    assert!(world.settle_for(600_000));
    assert_eq!(held(&world), 50);
    world.apply(app);
    assert!(world.settle_for(600_000));
    assert_eq!(held(&world), 0);
    assert!(paused(&world).is_null());
}

#[test]
fn a_hub_that_looks_empty_has_nothing_deleted() {
    let mut world = filled(World::new(&["member1", "member2"]), 30);
    lose(&mut world, 0);
    world.restart();
    assert!(world.settle_for(600_000));
    assert_eq!(held(&world), 30);
    assert_paused(&world, "HubLooksEmpty", "30 deletions wait");
    // What a user does now goes on.
    world.apply(config_map("cm900", "a"));
    assert!(world.settle_for(600_000));
    assert_eq!(held(&world), 31);
    world.delete("ConfigMap", "cm900");
    assert!(world.settle_for(600_000));
    assert_eq!(held(&world), 30);
    world.release_removals();
    assert!(world.settle_for(600_000));
    assert_eq!(held(&world), 0);
}

#[test]
fn a_hub_does_not_look_empty_because_a_member_is_slow_to_list_what_stays() {
    let mut world = filled(World::new(&["member1", "member2"]), 30);
    world.apply(deployment("myapp", &[]));
    world.apply(policy(&["member1"]));
    assert!(world.settle());
    lose(&mut world, 0);
    let slow = Watch::Copies("member1".into(), Gvk::new("apps/v1", "Deployment"));
    world.shut.insert(slow.clone());
    world.restart();
    assert!(world.settle_for(30_000));
    assert_eq!(held(&world), 10);
    assert_paused(&world, "UnexplainedRemovals", "10 deletions wait");
    world.shut.remove(&slow);
    assert!(world.settle_for(600_000));
    assert_eq!(held(&world), 10);
}

fn of_left(key: &ResourceId) -> bool {
    &*key.namespace == "left" || &*key.name == "left"
}

/// Many ConfigMaps of which the hub loses those from this number on while nobody watches, and a namespace of member1 that ends
/// meanwhile: its end there is planned before all else is listed.
fn left(from: usize) -> World {
    let mut world = filled(World::new(&["member1", "member2"]), 30);
    world.apply(namespace("left", &json!({})));
    let mut there = config_map("there", "a");
    there["metadata"]["namespace"] = json!("left");
    world.apply(there);
    let mut there = policy_of("there", "v1", "ConfigMap", "there", &["member1"]);
    there["metadata"]["namespace"] = json!("left");
    world.apply(there);
    assert!(world.settle());
    assert!(is_left(&world));
    world.hub.retain(|key, _| !of_left(key));
    let held = world.members.get_mut("member1").expect("member1");
    held.retain(|key, _| &*key.namespace != "left");
    lose(&mut world, from);
    world
}

fn is_left(world: &World) -> bool {
    world.members["member1"].keys().any(of_left)
}

#[test]
fn a_hub_does_not_look_empty_before_its_objects_are_listed() {
    let mut world = left(25);
    let slow = Watch::Templates(Gvk::new("v1", "ConfigMap"));
    world.shut.insert(slow.clone());
    world.restart();
    assert!(world.settle_for(10_000));
    assert_eq!(held(&world), 30);
    assert!(is_left(&world), "not before the proof is complete");
    world.shut.remove(&slow);
    assert!(world.settle_for(600_000));
    assert_eq!(held(&world), 25);
    assert!(!is_left(&world));
    assert!(paused(&world).is_null(), "{}", paused(&world));
}

#[test]
fn a_hub_does_not_look_empty_because_its_objects_cannot_be_listed_for_a_while() {
    let mut world = left(25);
    let fails = Watch::Templates(Gvk::new("v1", "ConfigMap"));
    world.shut.insert(fails.clone());
    world.restart();
    assert!(world.settle_for(10_000));
    world.lose(fails);
    assert!(world.settle_for(60_000));
    assert_eq!(held(&world), 30);
    assert_ne!(paused(&world)["reason"], "HubLooksEmpty", "{}", paused(&world));
    world.shut.clear();
    assert!(world.settle_for(600_000));
    assert_eq!(held(&world), 25);
    assert_ne!(paused(&world)["status"], "True", "{}", paused(&world));
}

#[test]
fn a_hub_that_is_empty_looks_so_also_if_the_copies_are_listed_late() {
    let mut world = left(0);
    let slow = Watch::Copies("member1".into(), Gvk::new("v1", "ConfigMap"));
    world.shut.insert(slow.clone());
    world.restart();
    assert!(world.settle_for(10_000));
    assert!(is_left(&world), "not before the proof is complete");
    world.shut.remove(&slow);
    assert!(world.settle_for(600_000));
    assert_eq!(held(&world), 30);
    assert!(is_left(&world));
    assert_eq!(paused(&world)["reason"], "HubLooksEmpty", "{}", paused(&world));
}

#[test]
fn a_hub_that_was_rolled_back_has_nothing_deleted() {
    let mut world = settled();
    world.apply(config_map("red", "a"));
    world.apply(policy_of("p", "v1", "ConfigMap", "red", &["member1"]));
    assert!(world.settle());
    let backup = world.backup();
    for n in 0..20 {
        world.apply(config_map("red", &format!("b{n}")));
    }
    world.apply(policy_of("p", "v1", "ConfigMap", "red", &["member2"]));
    assert!(world.settle());
    assert_eq!(world.holders("ConfigMap", "red"), ["member2"]);
    world.restore_hub(&backup);
    assert!(world.settle_for(120_000));
    assert_eq!(world.holders("ConfigMap", "red"), ["member1", "member2"]);
    assert_eq!(paused_on(&world, "member2")["reason"], "HubRolledBack");
    world.release_removals();
    assert!(world.settle_for(120_000));
    assert_eq!(world.holders("ConfigMap", "red"), ["member1"]);
}

#[test]
fn a_tenth_of_what_a_large_member_holds_may_go() {
    let mut world = filled(settled(), 400);
    lose(&mut world, 300);
    world.restart();
    assert!(world.settle_for(600_000));
    // 400 ConfigMaps and what the example has there.
    assert_eq!(held(&world), 400 - 40);
    assert_paused(&world, "UnexplainedRemovals", "at most 40");
}

#[test]
fn the_status_of_workloads_is_left_alone_on_a_hub_that_writes_it_itself() {
    let mut world = settled();
    let key = id("Deployment", "default", "myapp");
    let mut times = 0;
    for n in 0..10 {
        let mut other = world.hub[&key].clone();
        other["status"] = json!({"observedGeneration": 1, "replicas": 40 + n});
        world.replace(other.clone());
        assert!(world.settle());
        if world.hub[&key]["status"] == other["status"] {
            break;
        }
        times += 1;
    }
    assert_eq!(times, 3, "it is put right as often, and then no more");
    let notices = world.process.engine.take_notices();
    assert_eq!(notices.len(), 1, "{notices:?}");
    assert!(notices[0].contains("Deployment default/myapp"), "{notices:?}");
    // A hub with Nodes is known for it from the beginning.
    let mut world = settled();
    world.process.engine.config_mut().hub_has_nodes = true;
    let mut other = world.hub[&key].clone();
    other["status"] = json!({"replicas": 40});
    world.replace(other);
    assert!(world.settle());
    assert_eq!(world.hub[&key]["status"]["replicas"], 40);
}

#[test]
fn a_budget_for_all_deletions_limits_those_of_a_user_too() {
    let mut world = filled(settled(), MANY);
    world.process.engine.config_mut().removal_budget = Some(50);
    for n in 0..MANY {
        world.delete("ConfigMap", &name(n));
    }
    assert!(world.settle_for(600_000));
    assert_eq!(held(&world), MANY - 50);
    assert_paused(&world, "RemovalBudgetExceeded", "150 deletions wait");
    world.release_removals();
    assert!(world.settle_for(600_000));
    assert_eq!(held(&world), 0);
}

/// A distribution to many namespaces of member1.
fn distributed() -> World {
    let mut world = World::distributing(&["member1"]);
    for n in 0..MANY {
        let space = namespace(&name(n), &json!({}));
        world.apply(space.clone());
        assert!(world.settle());
        let place = id("Namespace", "", &name(n));
        world.meddle_at("member1", &place, |_| Some(space));
    }
    world.apply(distributed_to(MANY));
    assert!(world.settle());
    assert_eq!(copies(&world), MANY);
    world
}

/// The distribution that means so many of the namespaces.
fn distributed_to(count: usize) -> Value {
    let names: Vec<String> = (0..count).map(name).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut targets = named(&names);
    targets["clusters"] = json!({"clusterNames": ["member1"]});
    distribution("d", "one", &targets)
}

fn copies(world: &World) -> usize {
    let objects = &world.members["member1"];
    (0..MANY)
        .filter(|n| objects.contains_key(&key(&name(*n))))
        .count()
}

#[test]
fn copies_of_a_distribution_that_a_restored_hub_means_no_more_pause_until_they_are_released() {
    let mut world = distributed();
    world.restart();
    // Nobody saw this edit.
    world.apply(distributed_to(1));
    assert!(world.settle_for(600_000));
    assert_eq!(copies(&world), MANY - 20);
    assert_paused(&world, "UnexplainedRemovals", "179 deletions wait");
    // What is wanted goes on meanwhile, and so does what a user ends.
    let wrote = world.writes.len();
    world.restart();
    assert!(world.settle_for(600_000));
    assert_eq!(copies(&world), MANY - 20);
    assert_eq!(world.writes[wrote..], [""; 0]);
    world.release_removals();
    assert!(world.settle_for(600_000));
    assert_eq!(copies(&world), 1);
}

#[test]
fn copies_of_a_distribution_that_a_user_moves_or_deletes_are_not_limited() {
    let mut world = distributed();
    world.apply(distributed_to(1));
    assert!(world.settle_for(600_000));
    assert_eq!(copies(&world), 1);
    world.apply(distributed_to(MANY));
    assert!(world.settle_for(600_000));
    assert_eq!(copies(&world), MANY);
    world.restart();
    world.delete("ResourceDistribution", "d");
    assert!(world.settle_for(600_000));
    assert_eq!(
        copies(&world),
        0,
        "also while nobody saw it: the hub still says that it ends"
    );
    assert!(paused(&world).is_null());
}

#[test]
fn while_a_list_of_the_hub_lacks_the_clusters_say_that_nothing_is_deleted() {
    for lost in [
        Watch::Policies,
        Watch::Templates(entourage_core::object::Gvk::new("apps/v1", "Deployment")),
    ] {
        for restart in [false, true] {
            // Who never listed the policies does not know whether anything is to be deleted.
            if restart && lost == Watch::Policies {
                continue;
            }
            let mut world = filled(settled(), 30);
            world.lose(lost.clone());
            assert!(world.settle_for(600_000));
            assert!(paused(&world).is_null(), "nothing is to be deleted");
            world.delete("ConfigMap", &name(0));
            if restart {
                world.restart();
            }
            assert!(world.settle_for(600_000));
            assert_eq!(held(&world), 30);
            let reported = paused(&world);
            assert_eq!(
                (&reported["status"], &reported["reason"]),
                (&json!("True"), &json!("HubNotSynced")),
                "{lost:?}: {reported}"
            );
            let kind = if lost == Watch::Policies {
                "while PropagationPolicy cannot be listed"
            } else {
                "while Deployment cannot be listed"
            };
            assert!(
                reported["message"]
                    .as_str()
                    .is_some_and(|says| says.contains(kind)),
                "{reported}"
            );
            let wrote = world.writes.len();
            world.restart();
            assert!(world.settle_for(600_000));
            assert_eq!(world.writes[wrote..], [""; 0], "reported once");
            world.shut.clear();
            assert!(world.settle_for(600_000));
            assert_eq!(held(&world), 29, "it was no pause");
            assert!(paused(&world).is_null(), "{}", paused(&world));
            // Nor was its end a release.
            lose(&mut world, 1);
            for n in 1..60 {
                world.apply(config_map(&name(n), "a"));
            }
            assert!(world.settle_for(600_000));
            assert_eq!(held(&world), 59);
            lose(&mut world, 20);
            world.restart();
            assert!(world.settle_for(600_000));
            assert_eq!(held(&world), 59 - 20);
            assert_paused(&world, "UnexplainedRemovals", "20 deletions wait");
        }
    }
}

#[test]
fn what_is_reported_of_lists_that_lack_names_those_that_lack_now_and_ends_with_the_deletion_that_waited() {
    let deployments = Watch::Templates(entourage_core::object::Gvk::new("apps/v1", "Deployment"));
    let mut world = filled(settled(), 30);
    world.lose(Watch::Policies);
    world.lose(deployments);
    world.delete("ConfigMap", &name(0));
    assert!(world.settle_for(600_000));
    let says = |world: &World, words: &str| {
        let reported = paused(world);
        assert!(
            reported["message"]
                .as_str()
                .is_some_and(|says| says.contains(words)),
            "{words}: {reported}"
        );
    };
    says(&world, "PropagationPolicy, Deployment");
    world.shut.remove(&Watch::Policies);
    assert!(world.settle_for(600_000));
    says(&world, "while Deployment");
    // It is wanted again: nothing is to be deleted any more.
    world.apply(config_map(&name(0), "b"));
    assert!(world.settle_for(600_000));
    assert_eq!(held(&world), 30);
    assert!(paused(&world).is_null(), "{}", paused(&world));
}
