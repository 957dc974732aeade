//! Workload affinity and anti-affinity: who shares clusters, who avoids whom, in bursts, after changes, and in failover.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{
    binding, condition, deployment,
    failover::{no_execute, report_of, taint},
    policy_of,
    world::{Random, World},
};

const MEMBERS: [&str; 3] = ["member1", "member2", "member3"];

fn world() -> World {
    let mut world = World::new(&MEMBERS);
    assert!(world.settle());
    world
}

/// A workload with labels, and a policy that schedules it to one cluster by the groups of `app` and `team`.
fn workload(name: &str, labels: &Value) -> Value {
    let mut object = deployment(name, &[]);
    object["metadata"]["labels"] = labels.clone();
    object
}

fn policy(name: &str, clusters: &[&str]) -> Value {
    let mut policy = policy_of(name, "apps/v1", "Deployment", name, &[]);
    policy["spec"]["placement"] = json!({
        "clusterAffinity": {"clusterNames": clusters},
        "spreadConstraints": [{"spreadByField": "cluster", "maxGroups": 1}],
        "workloadAffinity": {"affinity": {"groupByLabelKey": "team"}, "antiAffinity": {"groupByLabelKey": "app"}},
    });
    policy
}

fn propagate(world: &mut World, name: &str, labels: &Value, clusters: &[&str]) {
    world.apply(workload(name, labels));
    world.apply(policy(name, clusters));
}

fn relabel(world: &mut World, name: &str, labels: &Value) {
    let mut object = world.hub_object("Deployment", name).expect("template").clone();
    for (key, value) in labels.as_object().expect("labels") {
        object["metadata"]["labels"][key] = value.clone();
    }
    world.replace(object);
}

fn clusters(world: &World, name: &str) -> Vec<String> {
    let all = binding(world, &format!("{name}-deployment"))["spec"]["clusters"].as_array();
    let name = |target: &Value| target["name"].as_str().unwrap_or_default().to_owned();
    all.into_iter().flatten().map(name).collect()
}

fn scheduled(world: &World, name: &str) -> (String, String) {
    let scheduled = condition(world, &format!("{name}-deployment"), "Scheduled");
    let text = |field: &str| scheduled[field].as_str().unwrap_or_default().to_owned();
    (text("reason"), text("message"))
}

#[test]
fn a_burst_of_workloads_that_avoid_each_other_gets_a_cluster_each() {
    let mut world = world();
    let two = ["member1", "member2"];
    for name in ["db-a", "db-b", "db-c"] {
        propagate(&mut world, name, &json!({"app": "db"}), &two);
    }
    assert!(world.settle());
    let all = ["db-a", "db-b", "db-c"].map(|name| (name, clusters(&world, name)));
    let used: BTreeSet<&String> = all.iter().flat_map(|(_, clusters)| clusters).collect();
    assert_eq!(used.len(), 2, "{all:?}");
    let (waiting, _) = all
        .iter()
        .find(|(_, clusters)| clusters.is_empty())
        .expect("one waits");
    let (reason, message) = scheduled(&world, waiting);
    assert_eq!(reason, "NoClusterFit");
    assert!(
        message.contains("0 of 3 clusters fit: 1 not selected by clusterAffinity, 2 with another workload of anti-affinity group app=db"),
        "{message}"
    );
    assert_eq!(
        binding(&world, &format!("{waiting}-deployment"))["spec"]["workloadAffinityGroups"],
        json!({"antiAffinityGroup": "app=db"})
    );
    // The first one ends, and the one that waits takes its place: nobody else moves.
    let (first, left) = all
        .iter()
        .find(|(_, clusters)| !clusters.is_empty())
        .expect("placed");
    world.delete("Deployment", first);
    assert!(world.settle());
    assert_eq!(clusters(&world, waiting), *left);
    for (name, before) in all.iter().filter(|(name, _)| name != first && name != waiting) {
        assert_eq!(clusters(&world, name), *before);
    }
    assert_eq!(scheduled(&world, waiting).0, "Success");
}

#[test]
fn a_binding_that_is_deleted_keeps_its_cluster_until_it_is_made_again() {
    let mut world = world();
    propagate(&mut world, "db-a", &json!({"app": "db"}), &["member1"]);
    assert!(world.settle());
    propagate(&mut world, "db-b", &json!({"app": "db"}), &["member1"]);
    assert!(world.settle());
    for patience in [0, 1_000] {
        world.delete("ResourceBinding", "db-a-deployment");
        assert!(world.settle_for(patience));
        assert!(world.settle());
        assert_eq!(clusters(&world, "db-a"), ["member1"]);
        assert_eq!(clusters(&world, "db-b"), [""; 0]);
    }
    world.delete("ResourceBinding", "db-a-deployment");
    world.delete("Deployment", "db-a");
    assert!(world.settle());
    assert_eq!(clusters(&world, "db-b"), ["member1"]);
}

#[test]
fn workloads_of_a_group_go_where_the_first_one_is() {
    let mut world = world();
    propagate(&mut world, "web", &json!({"team": "a"}), &["member2"]);
    assert!(world.settle());
    assert_eq!(clusters(&world, "web"), ["member2"]);
    propagate(&mut world, "api", &json!({"team": "a"}), &MEMBERS);
    propagate(&mut world, "other", &json!({"team": "b"}), &MEMBERS);
    propagate(&mut world, "none", &json!({}), &MEMBERS);
    propagate(&mut world, "far", &json!({"team": "a"}), &["member3"]);
    assert!(world.settle());
    assert_eq!(clusters(&world, "api"), ["member2"]);
    assert_eq!(clusters(&world, "other"), ["member1"]);
    assert_eq!(clusters(&world, "none"), ["member1"]);
    let (reason, message) = scheduled(&world, "far");
    assert_eq!(reason, "NoClusterFit");
    assert!(
        message.contains("1 without the other workloads of affinity group team=a"),
        "{message}"
    );
    // Nobody of the group is scheduled any more: the next one is free.
    world.delete("Deployment", "web");
    world.delete("Deployment", "api");
    assert!(world.settle());
    assert_eq!(clusters(&world, "far"), ["member3"]);
}

#[test]
fn both_rules_hold_together_and_a_restart_changes_nothing() {
    let mut world = world();
    propagate(&mut world, "web", &json!({"team": "a", "app": "x"}), &["member1"]);
    assert!(world.settle());
    propagate(&mut world, "api", &json!({"team": "a", "app": "y"}), &MEMBERS);
    propagate(&mut world, "twin", &json!({"team": "a", "app": "x"}), &MEMBERS);
    propagate(&mut world, "solo", &json!({"app": "x"}), &MEMBERS);
    assert!(world.settle());
    assert_eq!(clusters(&world, "api"), ["member1"]);
    assert_eq!(
        clusters(&world, "twin"),
        [""; 0],
        "there it would meet web, elsewhere it is alone"
    );
    let (_, message) = scheduled(&world, "twin");
    assert!(
        message.contains("2 without the other workloads of affinity group team=a, 1 with another workload of anti-affinity group app=x"),
        "{message}"
    );
    assert_eq!(clusters(&world, "solo"), ["member2"]);
    assert_eq!(world.writes_of_a_restart(60_000), [""; 0]);
}

#[test]
fn another_label_is_another_group() {
    let mut world = world();
    for name in ["db-a", "db-b"] {
        propagate(&mut world, name, &json!({"app": "db"}), &["member1"]);
    }
    assert!(world.settle());
    let placed = if clusters(&world, "db-a").is_empty() {
        "db-b"
    } else {
        "db-a"
    };
    let waiting = if placed == "db-a" { "db-b" } else { "db-a" };
    assert_eq!(clusters(&world, waiting), [""; 0]);
    // The one that is placed leaves the group: it stays where it is, and the other one may join it.
    relabel(&mut world, placed, &json!({"app": "cache"}));
    assert!(world.settle());
    assert_eq!(clusters(&world, placed), ["member1"]);
    assert_eq!(clusters(&world, waiting), ["member1"]);
    // Back in the group: what runs is not driven away, and a fresh result moves it.
    relabel(&mut world, placed, &json!({"app": "db"}));
    world.apply(policy(placed, &["member1", "member2"]));
    assert!(world.settle());
    assert_eq!(clusters(&world, placed), ["member1"]);
    assert_eq!(
        binding(&world, &format!("{placed}-deployment"))["spec"]["workloadAffinityGroups"]["antiAffinityGroup"],
        "app=db"
    );
    let mut object = binding(&world, &format!("{placed}-deployment")).clone();
    object["spec"]["rescheduleTriggeredAt"] =
        serde_json::to_value(entourage_core::object::Time(world.now.0 + 5_000).to_k8s()).expect("time");
    world.apply(object);
    assert!(world.settle());
    assert_eq!(clusters(&world, placed), ["member2"]);
    assert_eq!(clusters(&world, waiting), ["member1"]);
}

#[test]
fn workloads_that_share_a_cluster_move_together_when_it_fails() {
    let mut world = world();
    for name in ["web", "api"] {
        propagate(&mut world, name, &json!({"team": "a"}), &MEMBERS);
    }
    assert!(world.settle());
    for name in ["web", "api"] {
        assert_eq!(clusters(&world, name), ["member1"]);
        report_of(&mut world, "member1", name, 1);
    }
    assert!(world.settle());
    let broken = no_execute(&world);
    taint(&mut world, "member1", &broken);
    assert!(world.settle());
    assert_eq!(clusters(&world, "web"), ["member2"]);
    assert_eq!(clusters(&world, "api"), ["member2"]);
}

/// The policy of a workload that returns home.
fn returning(name: &str, wait: &str, clusters: &[&str]) -> Value {
    let mut policy = policy(name, clusters);
    policy["metadata"]["annotations"] = json!({"entourage.dev/fail-back": wait});
    policy
}

/// The copies of workloads on a member become healthy.
fn healthy_on(world: &mut World, member: &str, names: &[&str]) {
    for name in names {
        report_of(world, member, name, 1);
    }
    assert!(world.settle());
}

#[test]
fn nobody_goes_home_to_another_workload_of_its_anti_affinity_group() {
    let mut world = world();
    world.apply(workload("db-a", &json!({"app": "db"})));
    world.apply(returning("db-a", "10m", &MEMBERS));
    assert!(world.settle());
    healthy_on(&mut world, "member1", &["db-a"]);
    let broken = no_execute(&world);
    taint(&mut world, "member1", &broken);
    assert!(world.settle());
    healthy_on(&mut world, "member2", &["db-a"]);
    assert_eq!(clusters(&world, "db-a"), ["member2"]);
    taint(&mut world, "member1", &json!([]));
    propagate(&mut world, "db-b", &json!({"app": "db"}), &["member1"]);
    assert!(world.settle());
    assert_eq!(clusters(&world, "db-b"), ["member1"]);
    assert!(world.settle_for(3_600_000));
    assert_eq!(clusters(&world, "db-a"), ["member2"]);
    // Home is free again.
    world.delete("Deployment", "db-b");
    assert!(world.settle_for(3_600_000));
    assert_eq!(clusters(&world, "db-a"), ["member1"]);
}

#[test]
fn nobody_goes_home_or_back_without_the_others_of_its_affinity_group() {
    let mut world = world();
    for name in ["web", "api"] {
        world.apply(workload(name, &json!({"team": "a"})));
    }
    world.apply(returning("web", "0s", &MEMBERS));
    world.apply(policy("api", &MEMBERS));
    assert!(world.settle());
    healthy_on(&mut world, "member1", &["web", "api"]);
    let broken = no_execute(&world);
    taint(&mut world, "member1", &broken);
    assert!(world.settle());
    // The cluster recovers before the replacement of one of them is healthy: that one may not return alone.
    healthy_on(&mut world, "member2", &["api"]);
    taint(&mut world, "member1", &json!([]));
    assert!(world.settle());
    let all = |world: &World| ["web", "api"].map(|name| clusters(world, name));
    assert_eq!(all(&world), [["member2"], ["member2"]]);
    // Nor may one go home alone.
    healthy_on(&mut world, "member2", &["web"]);
    assert!(world.settle_for(3_600_000));
    assert_eq!(all(&world), [["member2"], ["member2"]]);
    // Without the other one it may.
    world.delete("Deployment", "api");
    assert!(world.settle_for(3_600_000));
    assert_eq!(clusters(&world, "web"), ["member1"]);
}

/// The policy of a workload whose application fails over after 30 s.
fn failing_over(name: &str, clusters: &[&str]) -> Value {
    let mut policy = policy(name, clusters);
    policy["spec"]["failover"] = json!({"application": {
        "decisionConditions": {"tolerationSeconds": 30}, "purgeMode": "Gracefully", "gracePeriodSeconds": 60,
    }});
    policy
}

#[test]
fn applications_that_share_a_cluster_move_together_when_all_of_them_fail_there() {
    for suspended in [false, true] {
        let mut world = world();
        for name in ["web", "api"] {
            world.apply(workload(name, &json!({"team": "a"})));
            world.apply(failing_over(name, &MEMBERS));
        }
        assert!(world.settle());
        healthy_on(&mut world, "member1", &["web", "api"]);
        if suspended {
            let mut object = binding(&world, "api-deployment").clone();
            object["spec"]["suspension"] = json!({"scheduling": true});
            world.apply(object);
        }
        report_of(&mut world, "member1", "web", 0);
        assert!(world.settle_for(50_000));
        let all = |world: &World| ["web", "api"].map(|name| clusters(world, name));
        assert_eq!(
            all(&world),
            [["member1"], ["member1"]],
            "one alone stays beside the other"
        );
        report_of(&mut world, "member1", "api", 0);
        assert!(world.settle_for(20_000));
        assert_eq!(all(&world), [["member1"], ["member1"]]);
        assert!(world.settle_for(35_000));
        let to = if suspended { "member1" } else { "member2" };
        assert_eq!(all(&world), [[to], [to]]);
    }
}

#[test]
fn who_waits_beside_a_workload_is_scheduled_when_that_has_to_leave() {
    for is_application in [false, true] {
        let mut world = world();
        world.apply(workload("web", &json!({"team": "a"})));
        world.apply(failing_over("web", &["member1"]));
        assert!(world.settle());
        healthy_on(&mut world, "member1", &["web"]);
        propagate(&mut world, "api", &json!({"team": "a"}), &["member2"]);
        assert!(world.settle_for(3_600_000));
        assert_eq!(clusters(&world, "api"), [""; 0]);
        // No other cluster fits: it stays where it is, and holds nobody back.
        if is_application {
            report_of(&mut world, "member1", "web", 0);
        } else {
            let broken = no_execute(&world);
            taint(&mut world, "member1", &broken);
        }
        assert!(world.settle_for(40_000));
        assert_eq!(clusters(&world, "web"), ["member1"]);
        assert_eq!(clusters(&world, "api"), ["member2"]);
    }
}

/// Whatever order templates, policies and labels come in, and wherever the process crashes, no two workloads of an anti-affinity group
/// are on one cluster, all workloads of an affinity group are on one, who has none has no cluster that is open to it, and a restart
/// writes nothing.
#[test]
fn groups_hold_in_any_order_of_events() {
    for seed in 0..24 {
        let mut random = Random::new(seed);
        let mut world = world();
        let names = ["a", "b", "c", "d", "e", "f"];
        let mut there = BTreeSet::new();
        for _ in 0..12 {
            let name = names[random.below(names.len())];
            if there.contains(name) && random.below(3) == 0 {
                world.delete("Deployment", name);
                there.remove(name);
            } else if there.insert(name) {
                // The labels of a name do not change: what is placed stays when a label does.
                let at = names.iter().position(|each| *each == name).unwrap_or(0);
                let (app, team) = (["x", "y"][at % 2], ["p", "q", "r"][at / 2]);
                let labels = json!({"app": app, "team": team});
                propagate(&mut world, name, &labels, &MEMBERS[..=at % 3]);
            }
            if random.below(2) == 0 {
                let patience = i64::try_from(random.below(3)).unwrap_or(0) * 500;
                assert!(world.settle_for(patience));
            }
        }
        if random.below(2) == 0 {
            world.restart();
        }
        assert!(world.settle());
        assert_eq!(world.writes_of_a_restart(60_000), [""; 0], "seed {seed}");
        let labels = |name: &str| {
            let object = world.hub_object("Deployment", name).expect("template");
            object["metadata"]["labels"].clone()
        };
        for one in &there {
            if clusters(&world, one).is_empty() {
                assert_eq!(scheduled(&world, one).0, "NoClusterFit", "seed {seed}: {one}");
                let at = names.iter().position(|each| each == one).unwrap_or(0);
                for member in &MEMBERS[..=at % 3] {
                    let keeps_away = |other: &&str| {
                        let (mine, theirs, on) = (labels(one), labels(other), clusters(&world, other));
                        let is_there = on.iter().any(|cluster| cluster == member);
                        (mine["app"] == theirs["app"] && is_there)
                            || (mine["team"] == theirs["team"] && !on.is_empty() && !is_there)
                    };
                    let mut others = there.iter().filter(|other| *other != one);
                    assert!(others.any(keeps_away), "seed {seed}: {one} may have {member}");
                }
            }
            for other in there.iter().filter(|other| *other > one) {
                let (left, right) = (clusters(&world, one), clusters(&world, other));
                if left.is_empty() || right.is_empty() {
                    continue;
                }
                let (one, other) = (labels(one), labels(other));
                if one["app"] == other["app"] {
                    assert_ne!(left, right, "seed {seed}: {one} {other}");
                }
                if one["team"] == other["team"] {
                    assert_eq!(left, right, "seed {seed}: {one} {other}");
                }
            }
        }
    }
}
