//! Scheduling by room: what members report of their nodes and pods, where replicas go by it, bursts, and who waits.

use entourage_core::{observation::Watch, plan::Key};
use serde_json::{Value, json};

use super::{
    binding, condition, config_map, deployment, policy_of,
    world::{World, id},
};

/// A node that offers so many CPUs.
pub(crate) fn node(cpu: i64) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"},
        "status": {
            "allocatable": {"cpu": cpu.to_string(), "memory": "64Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    })
}

/// A pod that requests one CPU, scheduled to a node or not.
fn pod(name: &str, node: Option<&str>) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"nodeName": node, "containers": [{"name": "a", "resources": {"requests": {"cpu": "1"}}}]},
    })
}

/// Members with one node each.
pub(crate) fn world(members: &[(&str, i64)]) -> World {
    let names: Vec<&str> = members.iter().map(|(name, _)| *name).collect();
    let mut world = World::measuring(&names);
    for (name, cpu) in members {
        world.meddle(name, "Node", "n", |_| Some(node(*cpu)));
    }
    assert!(world.settle());
    world
}

/// The next probe of a member, once it is due.
pub(crate) fn probe(world: &mut World, member: &str) {
    world.set_down(member, false);
    assert!(world.settle());
}

pub(crate) fn workload(name: &str, replicas: i64) -> Value {
    let mut object = deployment(name, &[]);
    object["spec"]["replicas"] = json!(replicas);
    object["spec"]["template"]["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "1"}});
    object
}

pub(crate) fn policy(name: &str, preference: &Value) -> Value {
    let mut policy = policy_of(name, "apps/v1", "Deployment", name, &[]);
    let mut strategy = json!({"replicaSchedulingType": "Divided"});
    for (key, value) in preference.as_object().expect("fields") {
        strategy[key] = value.clone();
    }
    policy["spec"]["placement"] = json!({"replicaScheduling": strategy});
    policy
}

pub(crate) fn aggregated() -> Value {
    json!({"replicaDivisionPreference": "Aggregated"})
}

pub(crate) fn dynamic() -> Value {
    json!({
        "replicaDivisionPreference": "Weighted",
        "weightPreference": {"dynamicWeight": "AvailableReplicas"},
    })
}

fn propagate(world: &mut World, name: &str, replicas: i64, preference: &Value) {
    world.apply(workload(name, replicas));
    world.apply(policy(name, preference));
    assert!(world.settle());
}

pub(crate) fn shares(world: &World, name: &str) -> Vec<(String, i64)> {
    let clusters = binding(world, &format!("{name}-deployment"))["spec"]["clusters"].as_array();
    let share = |target: &Value| {
        let cluster = target["name"].as_str().unwrap_or_default().to_owned();
        (cluster, target["replicas"].as_i64().unwrap_or(0))
    };
    clusters.into_iter().flatten().map(share).collect()
}

pub(crate) fn named(all: &[(&str, i64)]) -> Vec<(String, i64)> {
    all.iter()
        .map(|(name, replicas)| ((*name).to_owned(), *replicas))
        .collect()
}

fn summary<'a>(world: &'a World, member: &str) -> &'a Value {
    &world.hub_object("Cluster", member).expect("Cluster")["status"]["resourceSummary"]
}

#[test]
fn a_cluster_reports_its_nodes_and_what_their_pods_leave() {
    let mut world = world(&[("member1", 4)]);
    let cluster = world.hub_object("Cluster", "member1").expect("Cluster");
    assert_eq!(
        cluster["status"]["nodeSummary"],
        json!({"totalNum": 1, "readyNum": 1})
    );
    world.meddle("member1", "Pod", "a", |_| Some(pod("a", Some("n"))));
    world.meddle("member1", "Pod", "b", |_| Some(pod("b", None)));
    probe(&mut world, "member1");
    assert_eq!(
        *summary(&world, "member1"),
        json!({
            "allocatable": {"cpu": "4", "memory": "64Gi", "pods": "110"},
            "allocated": {"cpu": "1", "pods": "1"},
            "allocating": {"cpu": "1", "pods": "1"},
        })
    );
    world.meddle("member1", "Pod", "b", |_| None);
    world.meddle("member1", "Node", "n", |held| {
        let mut held = held;
        held["spec"]["unschedulable"] = json!(true);
        Some(held)
    });
    probe(&mut world, "member1");
    let left = summary(&world, "member1");
    assert!(
        left["allocatable"]
            .as_object()
            .is_none_or(serde_json::Map::is_empty),
        "{left}"
    );
    assert!(
        left["allocating"]
            .as_object()
            .is_none_or(serde_json::Map::is_empty),
        "{left}"
    );
}

#[test]
fn a_member_that_does_not_permit_it_reports_no_capacity_and_counts_as_full() {
    let mut world = World::measuring(&["member1"]);
    world.forbidden.insert(Watch::Nodes("member1".into()));
    assert!(world.settle());
    assert_eq!(*summary(&world, "member1"), Value::Null);
    let reported = capacity_watched(&world, "member1");
    assert_eq!(reported["reason"], "RightsMissing", "{reported}");
    let message = reported["message"].as_str().expect("message");
    assert!(
        message.contains("list and watch nodes and pods of member1: "),
        "{message}"
    );
    propagate(&mut world, "web", 2, &aggregated());
    let scheduled = condition(&world, "web-deployment", "Scheduled");
    assert_eq!(scheduled["reason"], "Unschedulable", "{scheduled}");
    let message = scheduled["message"].as_str().expect("message");
    assert!(
        message.contains("1 that fit report no status.resourceSummary and count as full"),
        "{message}"
    );
    world.forbidden.clear();
    world.meddle("member1", "Node", "n", |_| Some(node(4)));
    assert!(world.settle());
    probe(&mut world, "member1");
    assert!(world.settle());
    assert_eq!(shares(&world, "web"), named(&[("member1", 2)]));
    assert_eq!(*capacity_watched(&world, "member1"), Value::Null);
}

fn capacity_watched<'a>(world: &'a World, member: &str) -> &'a Value {
    let cluster = world.hub_object("Cluster", member).expect("Cluster");
    let mut all = cluster["status"]["conditions"].as_array().into_iter().flatten();
    all.find(|each| each["type"] == "CapacityWatched")
        .unwrap_or(&Value::Null)
}

#[test]
fn replicas_are_divided_by_room_or_kept_together_where_there_is_enough() {
    let mut world = world(&[("member1", 4), ("member2", 8)]);
    propagate(&mut world, "web", 6, &dynamic());
    assert_eq!(shares(&world, "web"), named(&[("member1", 2), ("member2", 4)]));
    propagate(&mut world, "api", 4, &aggregated());
    assert_eq!(shares(&world, "api"), named(&[("member2", 4)]));
    let copy = world.on("member2", "Deployment", "api").expect("copy");
    assert_eq!(copy["spec"]["replicas"], 4);
}

#[test]
fn a_burst_gets_no_more_than_there_is() {
    let mut world = world(&[("member1", 10), ("member2", 10)]);
    for name in ["a", "b", "c", "d"] {
        world.apply(policy(name, &aggregated()));
        world.apply(workload(name, 6));
    }
    assert!(world.settle_for(5_000));
    let mut sums = [0, 0];
    let mut waiting = Vec::new();
    for name in ["a", "b", "c", "d"] {
        let shares = shares(&world, name);
        for (cluster, share) in &shares {
            sums[usize::from(cluster == "member2")] += share;
        }
        if shares.is_empty() {
            waiting.push(name);
        }
    }
    assert!(sums.iter().all(|sum| *sum <= 10), "{sums:?}");
    assert_eq!((sums[0] + sums[1], waiting.len()), (18, 1));
    let scheduled = condition(&world, &format!("{}-deployment", waiting[0]), "Scheduled");
    assert_eq!(
        (&scheduled["status"], &scheduled["reason"]),
        (&json!("False"), &json!("Unschedulable"))
    );
    let message = scheduled["message"].as_str().expect("message");
    assert!(
        message.contains("Clusters available replicas 2 are not enough to schedule. 6 are needed"),
        "{message}"
    );
}

/// The member's Deployment controller reports so many ready pods.
fn report_ready(world: &mut World, member: &str, name: &str, ready: i64) {
    world.meddle(member, "Deployment", name, |held| {
        let mut held = held;
        held["status"] = json!({
            "observedGeneration": held["metadata"]["generation"], "replicas": ready, "updatedReplicas": ready,
            "readyReplicas": ready, "availableReplicas": ready,
        });
        Some(held)
    });
    assert!(world.settle_for(3_000));
}

/// The pods of `web` are in no report yet. The process that schedules `api` did not schedule `web`.
#[test]
fn what_was_scheduled_before_a_restart_or_a_takeover_keeps_its_room_until_it_is_ready() {
    for is_takeover in [false, true] {
        for (ready, want) in [(0, "member2"), (6, "member1")] {
            let mut world = world(&[("member1", 10), ("member2", 10)]);
            if is_takeover {
                world.stand_by();
            }
            world.apply(workload("web", 6));
            world.apply(policy("web", &aggregated()));
            assert!(world.settle_for(3_000));
            assert_eq!(shares(&world, "web"), named(&[("member1", 6)]));
            report_ready(&mut world, "member1", "web", ready);
            if is_takeover {
                world.take_over();
            } else {
                world.restart();
            }
            world.apply(workload("api", 6));
            world.apply(policy("api", &aggregated()));
            assert!(world.settle_for(3_000));
            assert_eq!(
                shares(&world, "api"),
                named(&[(want, 6)]),
                "{is_takeover} {ready}"
            );
            // Nothing is reserved for longer than a minute.
            super::pull::pass(&mut world, 65_000);
            world.apply(workload("late", 10));
            world.apply(policy("late", &aggregated()));
            assert!(world.settle_for(3_000));
            assert_eq!(shares(&world, "late"), named(&[("member1", 10)]));
        }
    }
}

/// The former leader sent the result before it died: it is stored after the takeover.
#[test]
fn a_late_result_of_the_former_leader_is_reserved() {
    let mut world = world(&[("member1", 10), ("member2", 8)]);
    propagate(&mut world, "web", 40, &aggregated());
    assert_eq!(shares(&world, "web"), []);
    super::pull::pass(&mut world, 65_000);
    world.stand_by();
    world.take_over();
    assert!(world.settle_for(1_000));
    // Scaled down in the meantime, and scheduled.
    world.apply(workload("web", 6));
    let mut late = binding(&world, "web-deployment").clone();
    late["spec"]["replicas"] = json!(6);
    late["spec"]["clusters"] = json!([{"name": "member1", "replicas": 6}]);
    world.apply(late);
    world.apply(workload("api", 6));
    world.apply(policy("api", &aggregated()));
    assert!(world.settle_for(3_000));
    assert_eq!(shares(&world, "web"), named(&[("member1", 6)]));
    assert_eq!(shares(&world, "api"), named(&[("member2", 6)]));
}

#[test]
fn who_waits_for_room_gets_it_when_it_comes_and_nobody_else_moves() {
    let mut world = world(&[("member1", 4), ("member2", 2)]);
    propagate(&mut world, "web", 4, &aggregated());
    assert_eq!(shares(&world, "web"), named(&[("member1", 4)]));
    for number in 0..4 {
        let name = format!("web-{number}");
        world.meddle("member1", "Pod", &name, |_| Some(pod(&name, Some("n"))));
    }
    probe(&mut world, "member1");
    propagate(&mut world, "api", 3, &aggregated());
    assert_eq!(shares(&world, "api"), []);
    world.meddle("member2", "Node", "n", |held| {
        let mut held = held;
        held["status"]["allocatable"]["cpu"] = json!("16");
        Some(held)
    });
    probe(&mut world, "member2");
    assert!(world.settle());
    assert_eq!(shares(&world, "api"), named(&[("member2", 3)]));
    assert_eq!(condition(&world, "api-deployment", "Scheduled")["status"], "True");
    assert_eq!(shares(&world, "web"), named(&[("member1", 4)]));
}

#[test]
fn scaling_moves_nothing_that_is_placed() {
    let mut world = world(&[("member1", 4), ("member2", 20)]);
    propagate(&mut world, "web", 6, &dynamic());
    assert_eq!(shares(&world, "web"), named(&[("member1", 1), ("member2", 5)]));
    world.apply(workload("web", 12));
    assert!(world.settle());
    assert_eq!(shares(&world, "web"), named(&[("member1", 2), ("member2", 10)]));
    world.apply(workload("web", 6));
    assert!(world.settle());
    assert_eq!(shares(&world, "web"), named(&[("member1", 1), ("member2", 5)]));
    // More than there is: what is placed stays.
    world.apply(workload("web", 100));
    assert!(world.settle());
    assert_eq!(shares(&world, "web"), named(&[("member1", 1), ("member2", 5)]));
    assert_eq!(
        condition(&world, "web-deployment", "Scheduled")["reason"],
        "Unschedulable"
    );
}

#[test]
fn a_choice_asked_for_afresh_is_made_once() {
    let mut world = world(&[("member1", 12)]);
    propagate(&mut world, "web", 12, &dynamic());
    assert_eq!(shares(&world, "web"), named(&[("member1", 12)]));
    // A second member joins: nothing moves by itself.
    world.members.insert("member2".into(), Default::default());
    world.meddle("member2", "Node", "n", |_| Some(node(12)));
    world.apply(json!({
        "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": "member2"},
        "spec": {"id": "id-member2", "syncMode": "Push", "apiEndpoint": "https://x"},
    }));
    assert!(world.settle());
    probe(&mut world, "member2");
    assert_eq!(shares(&world, "web"), named(&[("member1", 12)]));
    let mut object = binding(&world, "web-deployment").clone();
    object["spec"]["rescheduleTriggeredAt"] =
        serde_json::to_value(entourage_core::object::Time(world.now.0 + 5_000).to_k8s()).expect("time");
    world.apply(object);
    assert!(world.settle());
    let divided = shares(&world, "web");
    assert_eq!(divided.iter().map(|(_, share)| share).sum::<i64>(), 12);
    assert_eq!(divided.len(), 2, "{divided:?}");
    let status = &binding(&world, "web-deployment")["status"];
    assert_eq!(
        status["lastScheduledTime"],
        binding(&world, "web-deployment")["spec"]["rescheduleTriggeredAt"]
    );
    probe(&mut world, "member1");
    assert_eq!(shares(&world, "web"), divided);
}

#[test]
fn replicas_overflow_in_order_and_come_back_first() {
    let mut world = world(&[("member1", 4), ("member2", 3), ("member3", 20)]);
    world.apply(workload("web", 4));
    let mut overflowing = policy("web", &dynamic());
    overflowing["spec"]["placement"]["clusterAffinities"] = json!([{
        "affinityName": "own", "clusterNames": ["member1"],
        "overflowAffinities": [
            {"affinityName": "near", "clusterNames": ["member2"]},
            {"affinityName": "cloud", "clusterNames": ["member3"]},
        ],
    }]);
    world.apply(overflowing);
    assert!(world.settle());
    for (replicas, want) in [
        (4, named(&[("member1", 4)])),
        (6, named(&[("member1", 4), ("member2", 2)])),
        (12, named(&[("member1", 4), ("member2", 3), ("member3", 5)])),
        (8, named(&[("member1", 4), ("member2", 3), ("member3", 1)])),
        (5, named(&[("member1", 4), ("member2", 1)])),
        (2, named(&[("member1", 2)])),
    ] {
        world.apply(workload("web", replicas));
        assert!(world.settle());
        assert_eq!(shares(&world, "web"), want, "{replicas}");
        assert_eq!(condition(&world, "web-deployment", "Scheduled")["status"], "True");
        let holders: Vec<String> = want.into_iter().map(|(cluster, _)| cluster).collect();
        assert_eq!(world.holders("Deployment", "web"), holders);
    }
    assert_eq!(
        binding(&world, "web-deployment")["status"]["schedulerObservingAffinityName"],
        "own"
    );
}

pub(crate) fn priority_class(name: &str, value: i32) -> Value {
    json!({
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value,
    })
}

/// A workload of four replicas, scheduled by room with the priority of a class.
pub(crate) fn propagate_with(world: &mut World, name: &str, class: &str) {
    let mut policy = policy(name, &aggregated());
    policy["spec"]["schedulePriority"] =
        json!({"priorityClassSource": "KubePriorityClass", "priorityClassName": class});
    world.apply(policy);
    world.apply(workload(name, 4));
}

fn priority(world: &World, name: &str) -> Value {
    binding(world, &format!("{name}-deployment"))["spec"]["schedulePriority"]["priority"].clone()
}

#[test]
fn of_a_burst_and_of_those_that_wait_the_highest_priority_gets_the_room() {
    let mut world = world(&[("member1", 5)]);
    for (class, value) in [("low", -3), ("high", 1_000)] {
        world.apply(priority_class(class, value));
    }
    propagate_with(&mut world, "a", "low");
    world.apply(policy("b", &aggregated()));
    world.apply(workload("b", 4));
    propagate_with(&mut world, "c", "high");
    assert!(world.settle_for(5_000));
    assert_eq!(["a", "b", "c"].map(|name| shares(&world, name).len()), [0, 0, 1]);
    assert_eq!(
        ["a", "b", "c"].map(|name| priority(&world, name)),
        [json!(-3), Value::Null, json!(1_000)]
    );
    // The pods of c are there, and there is room for one more workload.
    for number in 0..4 {
        let name = format!("c-{number}");
        world.meddle("member1", "Pod", &name, |_| Some(pod(&name, Some("n"))));
    }
    probe(&mut world, "member1");
    world.meddle("member1", "Node", "n", |held| {
        let mut held = held;
        held["status"]["allocatable"]["cpu"] = json!("9");
        Some(held)
    });
    probe(&mut world, "member1");
    assert!(world.settle());
    assert_eq!(["a", "b", "c"].map(|name| shares(&world, name).len()), [0, 1, 1]);
    assert_eq!(
        condition(&world, "a-deployment", "Scheduled")["reason"],
        "Unschedulable"
    );
}

#[test]
fn a_priority_stays_while_the_classes_are_not_listed_and_a_new_one_waits_for_them() {
    let mut world = world(&[("member1", 8)]);
    world.apply(priority_class("high", 7));
    propagate_with(&mut world, "web", "high");
    assert!(world.settle());
    assert_eq!(priority(&world, "web"), json!(7));
    // The first list after a restart fails, as it may.
    world.restart();
    world.shut.insert(Watch::PriorityClasses);
    assert!(world.settle_for(0));
    world.lose(Watch::PriorityClasses);
    propagate_with(&mut world, "new", "high");
    assert!(world.settle());
    assert_eq!(priority(&world, "web"), json!(7));
    assert!(world.hub_object("ResourceBinding", "new-deployment").is_none());
    world.shut.remove(&Watch::PriorityClasses);
    assert!(world.settle());
    assert_eq!(priority(&world, "new"), json!(7));
    // They are refused: that counts.
    world.restart();
    world.forbidden.insert(Watch::PriorityClasses);
    propagate_with(&mut world, "newer", "high");
    assert!(world.settle());
    assert_eq!(
        ["web", "newer"].map(|name| priority(&world, name)),
        [json!(7), json!(0)]
    );
    let scheduled = &condition(&world, "web-deployment", "Scheduled")["message"];
    assert!(
        scheduled.to_string().contains("PriorityClasses cannot be listed"),
        "{scheduled}"
    );
    world.forbidden.clear();
    assert!(world.settle());
    assert_eq!(priority(&world, "newer"), json!(7));
    let scheduled = &condition(&world, "web-deployment", "Scheduled")["message"];
    assert!(!scheduled.to_string().contains("PriorityClasses"), "{scheduled}");
}

#[test]
fn what_a_workload_needs_has_its_rank() {
    let mut world = World::new(&["member1"]);
    for (class, value) in [("low", -3), ("high", 7)] {
        world.apply(priority_class(class, value));
    }
    world.apply(config_map("settings", "one"));
    world.apply(config_map("shared", "one"));
    let rank = |world: &World, name: &str| {
        let key = Key::Binding(id("ConfigMap", "default", name));
        world.process.engine.rank(&key)
    };
    for (name, class, needs) in [
        ("a", "low", vec!["settings", "shared"]),
        ("b", "high", vec!["shared"]),
    ] {
        let mut policy = policy_of(name, "apps/v1", "Deployment", name, &["member1"]);
        policy["spec"]["schedulePriority"] =
            json!({"priorityClassSource": "KubePriorityClass", "priorityClassName": class});
        world.apply(policy);
        world.apply(deployment(name, &needs));
    }
    assert!(world.settle());
    assert_eq!(["settings", "shared"].map(|name| rank(&world, name)), [-3, 7]);
    world.delete("Deployment", "b");
    assert!(world.settle());
    assert_eq!(rank(&world, "shared"), -3);
}

#[test]
fn a_priority_class_that_is_not_there_is_reported_and_counts_once_it_is() {
    let mut world = world(&[("member1", 8)]);
    propagate_with(&mut world, "web", "high");
    assert!(world.settle());
    let reported = |world: &World| {
        let message = &condition(world, "web-deployment", "Scheduled")["message"];
        let policy = world.hub_object("PropagationPolicy", "web").expect("policy");
        let conditions = policy["status"]["conditions"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let effective = conditions.into_iter().find(|each| each["type"] == "Effective");
        let effective = effective.map_or_else(String::new, |each| each["message"].to_string());
        [message.to_string(), effective].map(|words| words.contains("PriorityClass \\\"high\\\" not found"))
    };
    assert_eq!((priority(&world, "web"), reported(&world)), (json!(0), [true; 2]));
    assert_eq!(
        shares(&world, "web"),
        named(&[("member1", 4)]),
        "it is scheduled all the same"
    );
    world.apply(priority_class("high", 7));
    assert!(world.settle());
    assert_eq!(
        (priority(&world, "web"), reported(&world)),
        (json!(7), [false; 2])
    );
    world.delete("PriorityClass", "high");
    assert!(world.settle());
    assert_eq!((priority(&world, "web"), reported(&world)), (json!(0), [true; 2]));
    let mut without = policy("web", &aggregated());
    without["spec"]["schedulePriority"] = Value::Null;
    world.apply(without);
    assert!(world.settle());
    assert_eq!(
        (priority(&world, "web"), reported(&world)),
        (Value::Null, [false; 2])
    );
}
