//! Taints of Clusters: ours follow from Ready as it is stored, those of ClusterTaintPolicies from any condition; nothing follows
//! from the hub's own trouble.

use entourage_core::observation::Watch;
use serde_json::{Value, json};

use crate::{config_map, deployment, policy, settled, world::World};

const NOT_READY: &str = "cluster.karmada.io/not-ready:NoSchedule";
const UNREACHABLE: &str = "cluster.karmada.io/unreachable:NoSchedule";

fn cluster<'a>(world: &'a World, name: &str) -> &'a Value {
    world.hub_object("Cluster", name).expect("Cluster")
}

/// The taints of a Cluster as key:effect, in their order.
fn taints(world: &World, name: &str) -> Vec<String> {
    let all = cluster(world, name)["spec"]["taints"].as_array().cloned();
    let text = |taint: &Value, field: &str| taint[field].as_str().unwrap_or_default().to_owned();
    let all = all.unwrap_or_default().into_iter();
    all.map(|taint| format!("{}:{}", text(&taint, "key"), text(&taint, "effect")))
        .collect()
}

/// Status and reason of Ready.
fn ready(world: &World, name: &str) -> String {
    let all = cluster(world, name)["status"]["conditions"].as_array().cloned();
    let all = all.unwrap_or_default().into_iter();
    let found = all.filter(|each| each["type"] == "Ready");
    let text = |each: &Value, field: &str| each[field].as_str().unwrap_or_default().to_owned();
    found
        .map(|each| format!("{} {}", text(&each, "status"), text(&each, "reason")))
        .collect()
}

fn events(world: &World, name: &str) -> Vec<String> {
    let start = format!("TaintClusterSucceed Cluster {name}: ");
    let reported = world.events.iter();
    reported
        .filter_map(|event| event.strip_prefix(&start).map(str::to_owned))
        .collect()
}

/// As a user sets them.
fn taint(world: &mut World, name: &str, taints: Value) {
    let mut changed = cluster(world, name).clone();
    changed["spec"]["taints"] = taints;
    world.replace(changed);
}

fn on(type_: &str, operator: &str, values: &[&str]) -> Value {
    json!([{"conditionType": type_, "operator": operator, "statusValues": values}])
}

/// A NoExecute taint for Clusters that are not ready.
fn taint_policy(name: &str, targets: Value) -> Value {
    let mut policy = json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "ClusterTaintPolicy", "metadata": {"name": name},
        "spec": {
            "addOnConditions": on("Ready", "NotIn", &["True"]),
            "removeOnConditions": on("Ready", "In", &["True"]),
            "taints": [{"key": "dead", "effect": "NoExecute", "value": "yes"}],
        },
    });
    if !targets.is_null() {
        policy["spec"]["targetClusters"] = targets;
    }
    policy
}

/// So many milliseconds pass, also when nothing is to be done in them.
fn pass(world: &mut World, millis: i64) {
    let until = world.now.plus(millis);
    assert!(world.settle_for(millis));
    world.now = world.now.max(until);
}

/// Nothing is written from here on, by this process or by one that starts.
fn assert_quiet(world: &mut World) {
    let wrote = world.writes.len();
    assert!(world.settle_for(120_000));
    world.restart();
    assert!(world.settle_for(120_000));
    assert_eq!(world.writes[wrote..], [""; 0]);
}

#[test]
fn a_member_that_goes_down_is_tainted_after_the_threshold_and_freed_when_it_is_back() {
    let mut world = settled();
    taint(
        &mut world,
        "member2",
        json!([{"key": "b", "effect": "NoSchedule"}, {"key": "a", "effect": "PreferNoSchedule"}]),
    );
    assert!(world.settle());
    world.set_down("member2", true);
    pass(&mut world, 29_000);
    assert_eq!(ready(&world, "member2"), "True ClusterReady");
    assert_eq!(taints(&world, "member2"), ["b:NoSchedule", "a:PreferNoSchedule"]);
    pass(&mut world, 10_000);
    assert_eq!(ready(&world, "member2"), "False ClusterNotReachable");
    assert_eq!(
        taints(&world, "member2"),
        ["b:NoSchedule", "a:PreferNoSchedule", NOT_READY]
    );
    assert_eq!(taints(&world, "member1"), [""; 0]);
    assert_eq!(
        events(&world, "member2"),
        [format!("Added the taint {NOT_READY} (Ready is False).")]
    );
    assert_eq!(world.holders("Deployment", "myapp"), ["member1", "member2"]);
    assert_quiet(&mut world);
    world.set_down("member2", false);
    assert!(world.settle());
    assert_eq!(ready(&world, "member2"), "True ClusterReady");
    assert_eq!(taints(&world, "member2"), ["b:NoSchedule", "a:PreferNoSchedule"]);
    assert_eq!(
        events(&world, "member2")[1..],
        [format!("Removed the taint {NOT_READY} (Ready is True).")]
    );
    assert_eq!(world.holders("Deployment", "myapp"), ["member1", "member2"]);
    assert_quiet(&mut world);
}

#[test]
fn a_cluster_that_never_was_tainted_has_no_list_when_the_last_taint_goes() {
    let mut world = settled();
    let before = cluster(&world, "member2")["spec"].clone();
    world.set_down("member2", true);
    assert!(world.settle_for(60_000));
    assert_eq!(taints(&world, "member2"), [NOT_READY]);
    world.set_down("member2", false);
    assert!(world.settle());
    assert_eq!(cluster(&world, "member2")["spec"], before);
    world.assert_generations_are_taken_in();
}

#[test]
fn the_taint_is_never_there_before_the_condition_and_a_crash_in_between_is_made_good() {
    for crash in 1..=3 {
        let mut world = settled();
        world.set_down("member2", true);
        world.crash_in = Some(crash);
        let _ = world.settle_for(60_000);
        if taints(&world, "member2") == [NOT_READY] {
            assert!(ready(&world, "member2").starts_with("False"));
        }
        world.restart();
        assert!(world.settle_for(60_000));
        assert_eq!(taints(&world, "member2"), [NOT_READY], "{crash}");
        assert_quiet(&mut world);
    }
}

#[test]
fn what_a_user_takes_off_or_puts_on_by_hand_is_what_the_condition_says_a_moment_later() {
    let mut world = settled();
    world.set_down("member2", true);
    assert!(world.settle_for(60_000));
    taint(&mut world, "member2", json!([]));
    assert!(world.settle());
    assert_eq!(taints(&world, "member2"), [NOT_READY]);
    taint(
        &mut world,
        "member1",
        json!([{"key": "cluster.karmada.io/unreachable", "effect": "NoSchedule"}]),
    );
    assert!(world.settle());
    assert_eq!(taints(&world, "member1"), [""; 0]);
    assert_quiet(&mut world);
}

#[test]
fn a_users_no_execute_taint_gets_the_time_from_which_it_is_tolerated_and_keeps_it() {
    let mut world = settled();
    let given = json!([{"key": "drain", "effect": "NoExecute"}, {"key": "keep", "effect": "NoSchedule"}]);
    taint(&mut world, "member1", given);
    assert!(world.settle());
    let stored = cluster(&world, "member1")["spec"]["taints"].clone();
    let added = stored[0]["timeAdded"].as_str().expect("a time").to_owned();
    assert_eq!(
        stored,
        json!([{"key": "drain", "effect": "NoExecute", "timeAdded": added}, {"key": "keep", "effect": "NoSchedule"}])
    );
    assert_eq!(events(&world, "member1"), [""; 0], "who put it there knows");
    assert_quiet(&mut world);
    assert_eq!(cluster(&world, "member1")["spec"]["taints"], stored);
}

#[test]
fn a_policy_taints_what_its_conditions_say_and_takes_it_off_again() {
    let mut world = settled();
    world.apply(taint_policy("dead", json!({"clusterNames": ["member2"]})));
    assert!(world.settle());
    assert_eq!(taints(&world, "member2"), [""; 0]);
    world.set_down("member2", true);
    world.set_down("member3", true);
    assert!(world.settle_for(60_000));
    assert_eq!(taints(&world, "member2"), [NOT_READY, "dead:NoExecute"]);
    assert_eq!(
        taints(&world, "member3"),
        [NOT_READY],
        "the policy is about another"
    );
    let dead = cluster(&world, "member2")["spec"]["taints"][1].clone();
    assert!(dead["value"] == "yes" && dead["timeAdded"].is_string(), "{dead}");
    assert!(
        events(&world, "member2")
            .concat()
            .contains("Added the taint dead:NoExecute (ClusterTaintPolicy dead)"),
        "{:?}",
        world.events
    );
    assert_quiet(&mut world);
    world.set_down("member2", false);
    assert!(world.settle());
    assert_eq!(taints(&world, "member2"), [""; 0]);
    assert_quiet(&mut world);
}

#[test]
fn a_policy_that_comes_or_changes_counts_at_once_and_what_it_put_there_stays_when_it_goes() {
    let mut world = settled();
    world.set_down("member2", true);
    assert!(world.settle_for(60_000));
    world.apply(taint_policy("dead", Value::Null));
    assert!(world.settle());
    assert_eq!(taints(&world, "member2"), [NOT_READY, "dead:NoExecute"]);
    let mut changed = taint_policy("dead", Value::Null);
    changed["spec"]["taints"] = json!([{"key": "gone", "effect": "NoSchedule"}]);
    world.apply(changed);
    assert!(world.settle());
    assert_eq!(
        taints(&world, "member2"),
        [NOT_READY, "dead:NoExecute", "gone:NoSchedule"]
    );
    let wrote = world.writes.len();
    world.delete("ClusterTaintPolicy", "dead");
    assert!(world.settle());
    assert_eq!(world.writes[wrote..], [""; 0]);
    world.set_down("member2", false);
    assert!(world.settle());
    assert_eq!(taints(&world, "member2"), ["dead:NoExecute", "gone:NoSchedule"]);
    assert_quiet(&mut world);
}

#[test]
fn a_policy_can_go_by_any_condition_of_a_cluster() {
    let mut world = settled();
    let mut slow = taint_policy("unwatched", Value::Null);
    slow["spec"]["addOnConditions"] = on("Checked", "In", &["False", "Unknown"]);
    slow["spec"]["removeOnConditions"] = on("Checked", "In", &["True"]);
    world.apply(slow);
    assert!(world.settle());
    assert_eq!(
        taints(&world, "member1"),
        [""; 0],
        "a condition that is not there matches nothing"
    );
    let tell = |world: &mut World, status: &str| {
        let mut reported = cluster(world, "member1").clone();
        let all = reported["status"]["conditions"]
            .as_array_mut()
            .expect("conditions");
        all.retain(|each| each["type"] != "Checked");
        all.push(
            json!({"type": "Checked", "status": status, "reason": "Because", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z"}),
        );
        all.sort_by_key(|each| each["type"].as_str().unwrap_or_default().to_owned());
        world.replace(reported);
        assert!(world.settle());
    };
    tell(&mut world, "False");
    assert_eq!(taints(&world, "member1"), ["dead:NoExecute"]);
    tell(&mut world, "True");
    assert_eq!(taints(&world, "member1"), [""; 0]);
}

#[test]
fn a_hub_that_does_not_know_taint_policies_or_does_not_show_them_stops_nothing() {
    for undefined in [true, false] {
        let mut world = World::new(&["member1", "member2", "member3"]);
        if undefined {
            world.unserve(Watch::TaintPolicies, None);
        } else {
            world.forbidden.insert(Watch::TaintPolicies);
            world.apply(taint_policy("dead", Value::Null));
        }
        for object in crate::example() {
            world.apply(object);
        }
        assert!(world.settle());
        assert!(world.process.engine.is_synced(), "{undefined}");
        assert_eq!(world.holders("Deployment", "myapp"), ["member1", "member2"]);
        world.set_down("member2", true);
        assert!(world.settle_for(60_000));
        assert_eq!(taints(&world, "member2"), [NOT_READY], "{undefined}");
        world.apply(policy(&["member1"]));
        world.apply(config_map("my-config", "two"));
        assert!(world.settle());
        world.set_down("member2", false);
        assert!(world.settle());
        assert_eq!(
            world.holders("Deployment", "myapp"),
            ["member1"],
            "deletions resumed"
        );
        assert_eq!(taints(&world, "member2"), [""; 0]);
    }
}

#[test]
fn a_member_with_an_agent_is_tainted_by_what_the_agent_says() {
    let mut world = settled();
    // Its Lease is another matter.
    world.process.engine.config_mut().cluster_startup_grace = i64::MAX / 4;
    world.restart();
    assert!(world.settle());
    let mut pulling = cluster(&world, "member3").clone();
    pulling["spec"]["syncMode"] = json!("Pull");
    world.replace(pulling);
    assert!(world.settle());
    let tell = |world: &mut World, status: &str| {
        let mut reported = cluster(world, "member3").clone();
        for each in reported["status"]["conditions"]
            .as_array_mut()
            .expect("conditions")
        {
            if each["type"] == "Ready" {
                (each["status"], each["reason"]) = (json!(status), json!("ClusterStatusUnknown"));
            }
        }
        world.replace(reported);
        assert!(world.settle());
    };
    tell(&mut world, "Unknown");
    assert_eq!(taints(&world, "member3"), [UNREACHABLE]);
    tell(&mut world, "False");
    assert_eq!(taints(&world, "member3"), [NOT_READY]);
    assert_quiet(&mut world);
    tell(&mut world, "True");
    assert_eq!(taints(&world, "member3"), [""; 0]);
}

const FIVE: [&str; 5] = ["member1", "member2", "member3", "member4", "member5"];

fn five() -> World {
    let mut world = World::new(&FIVE);
    world.apply(taint_policy("dead", Value::Null));
    world.apply(deployment("myapp", &["my-config"]));
    world.apply(policy(&FIVE));
    world.apply(config_map("my-config", "one"));
    assert!(world.settle());
    world
}

#[test]
fn members_that_stop_answering_together_are_frozen_until_some_answer_again() {
    let mut world = five();
    for member in &FIVE[..4] {
        world.set_down(member, true);
        pass(&mut world, 3_000);
    }
    assert_eq!(
        ready(&world, "member1"),
        "True ClusterReady",
        "for the failure threshold"
    );
    assert!(world.settle_for(60_000));
    for member in &FIVE[..4] {
        assert_eq!(ready(&world, member), "Unknown HubCutOff");
        assert_eq!(taints(&world, member), [""; 0]);
    }
    assert_eq!(ready(&world, "member5"), "True ClusterReady");
    let reported = world
        .events
        .iter()
        .filter(|event| event.starts_with("ClusterNotReady Cluster member1"));
    let reported: Vec<_> = reported.collect();
    assert!(
        reported.len() == 1 && reported[0].contains("of 5 members stopped responding"),
        "{reported:?}"
    );
    assert_quiet(&mut world);
    // One answers: three of five are a majority still.
    world.set_down("member4", false);
    assert!(world.settle_for(60_000));
    assert_eq!(ready(&world, "member4"), "True ClusterReady");
    assert_eq!(ready(&world, "member1"), "Unknown HubCutOff");
    // Two answer: it is over, and who fails still is given the failure threshold.
    world.set_down("member3", false);
    pass(&mut world, 29_000);
    assert_eq!(ready(&world, "member3"), "True ClusterReady");
    assert_eq!(ready(&world, "member1"), "Unknown HubCutOff");
    assert_eq!(taints(&world, "member1"), [""; 0]);
    pass(&mut world, 10_000);
    for member in &FIVE[..2] {
        assert_eq!(ready(&world, member), "False ClusterNotReachable");
        assert_eq!(taints(&world, member), [NOT_READY, "dead:NoExecute"]);
    }
    assert_quiet(&mut world);
    for member in &FIVE[..2] {
        world.set_down(member, false);
    }
    assert!(world.settle_for(60_000));
    for member in FIVE {
        assert_eq!(ready(&world, member), "True ClusterReady");
        assert_eq!(taints(&world, member), [""; 0]);
    }
    assert_eq!(world.holders("Deployment", "myapp"), FIVE);
}

#[test]
fn members_that_go_down_one_by_one_are_down_also_for_a_process_that_starts_then() {
    let mut world = five();
    for member in &FIVE[..4] {
        world.set_down(member, true);
        assert!(world.settle_for(60_000));
    }
    for member in &FIVE[..4] {
        assert_eq!(ready(&world, member), "False ClusterNotReachable", "{member}");
        assert_eq!(taints(&world, member), [NOT_READY, "dead:NoExecute"], "{member}");
    }
    assert_quiet(&mut world);
}

#[test]
fn a_user_taints_by_hand_what_is_frozen() {
    let mut world = five();
    for member in FIVE {
        world.set_down(member, true);
    }
    assert!(world.settle_for(60_000));
    taint(
        &mut world,
        "member1",
        json!([{"key": "gone", "effect": "NoExecute"}]),
    );
    assert!(world.settle_for(60_000));
    assert_eq!(taints(&world, "member1"), ["gone:NoExecute"]);
    assert!(cluster(&world, "member1")["spec"]["taints"][0]["timeAdded"].is_string());
    assert_quiet(&mut world);
}

#[test]
fn a_member_that_is_back_is_ready_after_the_success_threshold_and_a_new_one_at_once() {
    let mut world = World::new(&["member1"]);
    world.process.engine.config_mut().cluster_success_threshold = 20_000;
    assert!(world.settle_for(100));
    assert_eq!(
        ready(&world, "member1"),
        "True ClusterReady",
        "nobody reported anything of it before"
    );
    world.set_down("member1", true);
    assert!(world.settle_for(60_000));
    assert_eq!(ready(&world, "member1"), "False ClusterNotReachable");
    world.set_down("member1", false);
    pass(&mut world, 19_000);
    assert_eq!(ready(&world, "member1"), "False ClusterNotReachable");
    // What fails in between counts from the start.
    world.set_down("member1", true);
    pass(&mut world, 1_000);
    world.set_down("member1", false);
    pass(&mut world, 19_000);
    assert_eq!(ready(&world, "member1"), "False ClusterNotReachable");
    assert_eq!(taints(&world, "member1"), [NOT_READY]);
    pass(&mut world, 2_000);
    assert_eq!(ready(&world, "member1"), "True ClusterReady");
    assert_eq!(taints(&world, "member1"), [""; 0]);
}
