//! The descheduler: replicas whose pods no node takes move to other members.

use entourage_core::config::Estimators;
use serde_json::{Value, json};

use super::{
    pull::pass,
    room::{dynamic, named, node, policy, shares, workload},
    world::World,
};

/// The time after which a pod that no node takes is stuck.
const THRESHOLD: i64 = 300_000;

/// Two members with room for eight replicas each, and a workload of four whose replicas are divided.
fn world() -> World {
    let mut world = World::measuring(&["member1", "member2"]);
    world.process.engine.config_mut().deschedule_after = Some(THRESHOLD);
    for member in ["member1", "member2"] {
        world.meddle(member, "Node", "n", |_| Some(node(8)));
    }
    assert!(world.settle());
    world.apply(workload("web", 4));
    world.apply(policy("web", &dynamic()));
    assert!(world.settle());
    assert_eq!(shares(&world, "web"), named(&[("member1", 2), ("member2", 2)]));
    for member in ["member1", "member2"] {
        report(&mut world, member, 2, 2);
    }
    assert!(world.settle());
    world
}

/// The member's Deployment controller reports its pods, and those that are ready.
fn report(world: &mut World, member: &str, replicas: i64, ready: i64) {
    report_all(world, member, (replicas, replicas, ready));
}

/// As [`report`], with the number of pods of the present template.
fn report_all(world: &mut World, member: &str, (replicas, updated, ready): (i64, i64, i64)) {
    world.meddle(member, "Deployment", "web", |held| {
        let mut held = held;
        held["status"] = json!({
            "observedGeneration": held["metadata"]["generation"], "replicas": replicas, "updatedReplicas": updated,
            "readyReplicas": ready, "availableReplicas": ready,
        });
        Some(held)
    });
}

/// A pod of the workload that no node takes from now on.
fn unscheduled(world: &World, name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name, "namespace": "default", "labels": {"pod-template-hash": "5d4"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-5d4", "controller": true, "uid": "r"}],
        },
        "spec": {"containers": [{"name": "a", "resources": {"requests": {"cpu": "1"}}}]},
        "status": {"phase": "Pending", "conditions": [{
            "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "lastTransitionTime": world.now.to_k8s(),
        }]},
    })
}

/// No node of the member takes one of the two pods of the workload.
fn get_stuck(world: &mut World, member: &str) {
    report(world, member, 2, 1);
    wait_for_a_node(world, member, &["a"]);
}

/// No node of the member takes these pods.
fn wait_for_a_node(world: &mut World, member: &str, pods: &[&str]) {
    for name in pods {
        let name = format!("web-5d4-{name}");
        let pod = unscheduled(world, &name);
        world.meddle(member, "Pod", &name, |_| Some(pod));
    }
    pass(world, 1_000);
}

fn is_untouched(world: &World) -> bool {
    shares(world, "web") == named(&[("member1", 2), ("member2", 2)])
}

fn descheduled(world: &World) -> usize {
    let events = world.events.iter();
    events
        .filter(|event| event.starts_with("DescheduleBindingSucceed"))
        .count()
}

#[test]
fn a_replica_that_no_node_takes_moves_when_its_time_is_over() {
    let mut world = world();
    get_stuck(&mut world, "member1");
    pass(&mut world, THRESHOLD - 10_000);
    assert_eq!(shares(&world, "web"), named(&[("member1", 2), ("member2", 2)]));
    pass(&mut world, 20_000);
    assert_eq!(shares(&world, "web"), named(&[("member1", 1), ("member2", 3)]));
    assert_eq!(
        descheduled(&world),
        2,
        "on the template and on the binding: {:#?}",
        world.events
    );
    // The pod that is left behind for a moment moves nothing more, nor does a restart.
    report(&mut world, "member1", 1, 1);
    world.restart();
    pass(&mut world, 2 * THRESHOLD);
    assert_eq!(descheduled(&world), 2, "{:#?}", world.events);
    assert_eq!(shares(&world, "web"), named(&[("member1", 1), ("member2", 3)]));
}

#[test]
fn it_gets_no_further_replicas_for_a_while() {
    let mut world = world();
    get_stuck(&mut world, "member1");
    pass(&mut world, THRESHOLD + 10_000);
    world.meddle("member1", "Pod", "web-5d4-a", |_| None);
    report(&mut world, "member1", 1, 1);
    world.apply(workload("web", 6));
    pass(&mut world, 1_000);
    // The one that is stuck no more stays; what is new goes elsewhere.
    assert_eq!(shares(&world, "web"), named(&[("member1", 1), ("member2", 5)]));
}

#[test]
fn without_room_elsewhere_it_stays_and_moves_when_there_is_some() {
    let mut world = world();
    world.meddle("member2", "Node", "n", |_| Some(node(0)));
    world.set_down("member2", false);
    pass(&mut world, 20_000);
    get_stuck(&mut world, "member1");
    pass(&mut world, THRESHOLD + 10_000);
    assert_eq!(shares(&world, "web"), named(&[("member1", 2), ("member2", 2)]));
    assert_eq!(descheduled(&world), 0);
    world.meddle("member2", "Node", "n", |_| Some(node(8)));
    world.set_down("member2", false);
    pass(&mut world, 90_000);
    assert_eq!(shares(&world, "web"), named(&[("member1", 1), ("member2", 3)]));
}

#[test]
fn what_is_ready_or_being_rolled_out_does_not_move() {
    let cases = [
        ("all are ready", (2, 2, 2)),
        ("a rollout with surge", (3, 1, 2)),
        ("a rollout with surge, and one is not ready", (3, 1, 1)),
        ("a rollout without surge", (2, 1, 1)),
        ("an autoscaler of the member", (1, 1, 0)),
    ];
    for (case, status) in cases {
        let mut world = world();
        get_stuck(&mut world, "member1");
        report_all(&mut world, "member1", status);
        pass(&mut world, THRESHOLD + 120_000);
        assert!(is_untouched(&world), "{case}");
    }
}

#[test]
fn what_an_autoscaler_on_the_member_scales_does_not_move() {
    let mut world = world();
    let mut labelled = world.hub_object("Deployment", "web").expect("template").clone();
    labelled["metadata"]["labels"]["resourcetemplate.karmada.io/retain-replicas"] = json!("true");
    world.replace(labelled);
    assert!(world.settle());
    get_stuck(&mut world, "member1");
    pass(&mut world, THRESHOLD + 120_000);
    assert!(is_untouched(&world));
}

#[test]
fn as_many_move_as_there_is_room_for_and_the_others_when_there_is_more() {
    let mut world = world();
    world.meddle("member2", "Node", "n", |_| Some(node(1)));
    world.set_down("member2", false);
    pass(&mut world, 20_000);
    report(&mut world, "member1", 2, 0);
    wait_for_a_node(&mut world, "member1", &["a", "b"]);
    pass(&mut world, THRESHOLD + 10_000);
    assert_eq!(shares(&world, "web"), named(&[("member1", 1), ("member2", 3)]));
    report(&mut world, "member1", 1, 0);
    world.meddle("member1", "Pod", "web-5d4-a", |_| None);
    world.meddle("member2", "Node", "n", |_| Some(node(8)));
    world.set_down("member2", false);
    pass(&mut world, THRESHOLD + 120_000);
    assert_eq!(shares(&world, "web"), named(&[("member2", 4)]));
}

#[test]
fn a_pod_that_is_left_behind_moves_nothing_more() {
    let mut world = world();
    report(&mut world, "member1", 2, 0);
    wait_for_a_node(&mut world, "member1", &["a", "b"]);
    // One of them gets a node before its time is over.
    world.meddle("member1", "Pod", "web-5d4-b", |_| None);
    pass(&mut world, THRESHOLD + 10_000);
    assert_eq!(shares(&world, "web"), named(&[("member1", 1), ("member2", 3)]));
    // Its controller reports one pod, which is not ready yet, and the other is still there.
    report(&mut world, "member1", 1, 0);
    pass(&mut world, THRESHOLD - 30_000);
    assert_eq!(shares(&world, "web"), named(&[("member1", 1), ("member2", 3)]));
}

#[test]
fn nothing_moves_while_the_member_does_not_respond() {
    let mut world = world();
    get_stuck(&mut world, "member1");
    pass(&mut world, THRESHOLD - 30_000);
    world.set_down("member1", true);
    pass(&mut world, 120_000);
    assert!(is_untouched(&world), "its pods may have nodes since");
    world.set_down("member1", false);
    pass(&mut world, 120_000);
    assert_eq!(shares(&world, "web"), named(&[("member1", 1), ("member2", 3)]));
}

#[test]
fn nothing_moves_to_a_target_that_is_not_ready_or_held_back() {
    let mut down = world();
    get_stuck(&mut down, "member1");
    down.set_down("member2", true);
    pass(&mut down, THRESHOLD + 120_000);
    assert!(is_untouched(&down));
    let mut suspended = world();
    let mut policy = policy("web", &dynamic());
    policy["spec"]["suspension"] = json!({"dispatchingOnClusters": {"clusterNames": ["member2"]}});
    suspended.apply(policy);
    assert!(suspended.settle());
    get_stuck(&mut suspended, "member1");
    pass(&mut suspended, THRESHOLD + 120_000);
    assert!(is_untouched(&suspended));
}

#[test]
fn without_a_descheduler_nothing_moves() {
    let mut world = world();
    world.process.engine.config_mut().deschedule_after = None;
    get_stuck(&mut world, "member1");
    pass(&mut world, 2 * THRESHOLD);
    assert!(is_untouched(&world));
}

#[test]
fn a_crash_after_any_write_leads_to_the_same_end() {
    for k in 1..=6 {
        let mut world = world();
        get_stuck(&mut world, "member1");
        world.crash_in = Some(k);
        if !world.settle_for(THRESHOLD + 10_000) {
            world.restart();
            assert!(world.settle_for(10_000));
        }
        assert_eq!(
            shares(&world, "web"),
            named(&[("member1", 1), ("member2", 3)]),
            "crash after {k}"
        );
    }
}

#[test]
fn a_move_that_depends_on_an_estimator_holds_up_nothing_else_and_is_made_with_the_answer() {
    let mut world = world();
    world.process.engine.config_mut().estimators = Some(Estimators {
        timeout: 3_000,
        in_pull_mode: true,
    });
    world.estimators.hanging.insert("member2".into());
    get_stuck(&mut world, "member1");
    pass(&mut world, THRESHOLD + 10_000);
    assert!(is_untouched(&world));
    assert!(world.estimators.asked.iter().all(|asked| asked == "member2"));
    assert!(!world.estimators.asked.is_empty());
    // What else the policy changes is written at once.
    let mut preserving = policy("web", &dynamic());
    preserving["spec"]["preserveResourcesOnDeletion"] = json!(true);
    world.apply(preserving);
    assert!(world.settle_for(200));
    let stored = world
        .hub_object("ResourceBinding", "web-deployment")
        .expect("binding");
    assert_eq!(stored["spec"]["preserveResourcesOnDeletion"], true);
    // The nodes have no room, whatever the sum is; later they have.
    world.estimators.hanging.clear();
    for (room, want) in [
        (0, [("member1", 2), ("member2", 2)]),
        (8, [("member1", 1), ("member2", 3)]),
    ] {
        world.estimators.answers.insert("member2".into(), room);
        pass(&mut world, 150_000);
        assert_eq!(shares(&world, "web"), named(&want), "{room}");
    }
}
