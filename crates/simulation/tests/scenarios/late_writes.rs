//! Writes that a member carries out late: after the process that sent them is gone, or has decided otherwise.

use entourage_core::{
    object::{Gvk, ResourceId},
    observation::Watch,
    plan::{Change, Key},
};
use serde_json::{Value, json};

use crate::{
    binding, condition, config_map,
    failover::{BINDING, clusters, evicted, no_execute, policy, settled, taint},
    world::{World, flight::Flight},
};

fn web(member: &str) -> Key {
    Key::Copy(deployment(), member.into())
}

fn deployment() -> ResourceId {
    ResourceId::new(Gvk::new("apps/v1", "Deployment"), "default", "web")
}

/// A workload leaves member1, which is tainted, for member2, and a second process stands by.
fn moving() -> World {
    let mut world = settled(&policy());
    world.stand_by();
    let taints = no_execute(&world);
    taint(&mut world, "member1", &taints);
    world
}

fn is_back_on_member1(world: &World) {
    assert_eq!(clusters(world), ["member1"]);
    assert!(evicted(world).is_empty());
    for kind in [("Deployment", "web"), ("ConfigMap", "settings")] {
        assert_eq!(world.holders(kind.0, kind.1), ["member1"]);
    }
}

#[test]
fn what_a_former_leader_sent_finds_what_it_needs_however_late_it_lands() {
    let ends: [fn(&mut World); 2] = [World::restart, World::take_over];
    for end in ends {
        // Whether the member does not answer for a while, and how long after that it lands.
        for (is_unresponsive, wait) in [(false, 0), (false, 1_000), (true, 0), (true, 1_000)] {
            let mut world = moving();
            let delivery = world.settle_until_delivery(&web("member2"));
            end(&mut world);
            taint(&mut world, "member1", &json!([]));
            if is_unresponsive {
                world.set_down("member2", true);
                assert!(world.settle_for(60_000));
                world.set_down("member2", false);
            }
            assert!(world.settle_for(wait));
            world.carry_out_late(delivery);
            let holders = world.holders("ConfigMap", "settings");
            assert_eq!(holders, ["member1", "member2"], "{is_unresponsive} {wait}");
            assert!(world.settle());
            is_back_on_member1(&world);
        }
    }
}

fn is_look(change: &Change) -> bool {
    matches!(change, Change::GetCopy { .. })
}

/// Another process leads, the workload goes back, and the new leader looks for the copy; what the former one sent is under way.
fn looking() -> (World, Flight, Flight) {
    let mut world = moving();
    let delivery = world.settle_until_delivery(&web("member2"));
    world.take_over();
    taint(&mut world, "member1", &json!([]));
    let look = world.settle_until(&web("member2"), is_look);
    (world, delivery, look)
}

#[test]
fn an_answer_that_was_held_up_says_nothing_of_what_else_was() {
    for held_up in [500, 5_000] {
        let (mut world, delivery, look) = looking();
        world.now = world.now.plus(held_up);
        assert!(world.land(look));
        assert!(world.settle_for(0));
        world.carry_out_late(delivery);
        assert_eq!(world.holders("ConfigMap", "settings"), ["member1", "member2"]);
        assert!(world.settle());
        is_back_on_member1(&world);
    }
}

#[test]
fn a_list_that_comes_before_a_held_up_answer_does_not_make_it_count() {
    let (mut world, delivery, look) = looking();
    let copies = Watch::Copies("member2".into(), deployment().gvk);
    // The first list is the member's first answer; the second one comes when a look that was sent then would count.
    for _ in 0..2 {
        world.lose(copies.clone());
        world.shut.clear();
        assert!(world.settle_for(1_000));
        world.now = world.now.plus(5_000);
    }
    assert!(world.land(look));
    assert!(world.planned(&web("member2")).changes.iter().any(is_look));
    world.carry_out_late(delivery);
    assert_eq!(world.holders("ConfigMap", "settings"), ["member1", "member2"]);
    assert!(world.settle());
    is_back_on_member1(&world);
}

#[test]
fn a_member_that_answers_slowly_is_believed_the_second_time() {
    let (mut world, _, look) = looking();
    world.now = world.now.plus(4_000);
    assert!(world.land(look));
    let look = world.settle_until(&web("member2"), is_look);
    world.now = world.now.plus(4_000);
    assert!(world.land(look));
    assert!(world.settle_for(0));
    is_back_on_member1(&world);
}

/// Two leaders one after the other may each have sent something.
#[test]
fn a_takeover_looks_afresh_for_what_was_looked_for_before() {
    let (mut world, _, look) = looking();
    assert!(world.land(look));
    assert!(world.settle_for(0));
    world.stand_by();
    // It saw the copy neither, and leads long after the first look.
    world.now = world.now.plus(60_000);
    world.change_places();
    world.now = world.now.plus(60_000);
    world.change_places();
    let look = world.settle_until(&web("member2"), is_look);
    assert!(world.land(look));
    assert!(world.settle_for(0));
    assert_eq!(world.holders("ConfigMap", "settings"), ["member1", "member2"]);
    assert!(world.settle());
    is_back_on_member1(&world);
}

#[test]
fn a_copy_that_cannot_be_sent_holds_nothing_for_long_after_a_restart() {
    let mut policy = policy();
    policy["spec"]["placement"]["spreadConstraints"] = json!([]);
    policy["spec"]["suspension"] = json!({"dispatchingOnClusters": {"clusterNames": ["member2"]}});
    let mut world = World::new(&["member1", "member2"]);
    world.apply(config_map("settings", "one"));
    world.apply(crate::deployment("web", &["settings"]));
    world.apply(policy);
    world.apply(policy_of_settings(&["member1", "member2"]));
    assert!(world.settle());
    assert_eq!(world.holders("Deployment", "web"), ["member1"]);
    assert_eq!(world.holders("ConfigMap", "settings"), ["member1", "member2"]);
    world.restart();
    assert!(world.settle());
    world.apply(crate::deployment("web", &[]));
    world.apply(policy_of_settings(&["member1"]));
    assert!(world.settle());
    assert_eq!(world.holders("ConfigMap", "settings"), ["member1"]);
}

#[test]
fn a_restart_adds_nobody_who_referred_to_an_object_where_no_copy_was_sent() {
    let suspended = |clusters: &[&str]| {
        let mut policy = policy();
        policy["spec"]["placement"]["spreadConstraints"] = json!([]);
        policy["spec"]["suspension"] = json!({"dispatchingOnClusters": {"clusterNames": clusters}});
        policy
    };
    let mut world = World::new(&["member1", "member2"]);
    world.apply(config_map("settings", "one"));
    world.apply(crate::deployment("web", &["settings"]));
    world.apply(suspended(&["member2"]));
    assert!(world.settle());
    // From now on the copy on member1 stays as it is, and needs what the template does not refer to any more.
    world.apply(suspended(&["member1", "member2"]));
    assert!(world.settle());
    world.apply(crate::deployment("web", &[]));
    assert!(world.settle());
    assert_eq!(world.holders("Deployment", "web"), ["member1"]);
    let needed = &binding(&world, "settings-configmap")["spec"]["requiredBy"][0]["clusters"];
    assert_eq!(*needed, json!([{"name": "member1", "replicas": 1}]));
    let wrote = world.writes.len();
    world.restart();
    assert!(world.settle_for(60_000));
    assert_eq!(world.writes[wrote..], [""; 0]);
}

/// A policy of the ConfigMap's own.
fn policy_of_settings(clusters: &[&str]) -> Value {
    json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy",
        "metadata": {"namespace": "default", "name": "settings"},
        "spec": {
            "resourceSelectors": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "settings"}],
            "placement": {"clusterAffinity": {"clusterNames": clusters}}
        }
    })
}

#[test]
fn a_look_for_a_copy_that_cannot_be_made_changes_no_status() {
    let mut policy = policy();
    policy["spec"]["placement"]["spreadConstraints"] = json!([]);
    let mut world = World::new(&["member1", "member2"]);
    world.apply(config_map("settings", "one"));
    world.apply(crate::deployment("web", &["settings"]));
    world.apply(json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "OverridePolicy",
        "metadata": {"namespace": "default", "name": "wrong"},
        "spec": {
            "resourceSelectors": [{"apiVersion": "v1", "kind": "ConfigMap"}],
            "overrideRules": [{"overriders": {"plaintext": [
                {"path": "/data/none", "operator": "replace", "value": "x"},
            ]}}],
        },
    }));
    world.apply(policy);
    assert!(world.settle());
    let wrote = world.writes.len();
    world.restart();
    let settings = ResourceId::new(Gvk::new("v1", "ConfigMap"), "default", "settings");
    let look = world.settle_until(&Key::Copy(settings, "member2".into()), is_look);
    assert!(world.land(look));
    // Before the copy is planned again.
    let status = world.planned(&Key::BindingStatus(deployment()));
    assert!(status.changes.is_empty(), "{status:?}");
    assert!(world.settle());
    assert_eq!(world.writes[wrote..], [""; 0]);
}

#[test]
fn a_restart_finds_no_copies_where_an_orphaned_binding_has_none() {
    let mut world = World::new(&["member1", "member2"]);
    world.apply(crate::deployment("web", &[]));
    let mut policy = policy();
    policy["spec"]["placement"]["spreadConstraints"] = json!([]);
    world.apply(policy);
    assert!(world.settle());
    world.delete_orphaning("Deployment", "web");
    assert!(world.settle());
    world.meddle("member2", "Deployment", "web", |_| None);
    assert!(world.settle());
    let wrote = world.writes.len();
    world.restart();
    assert!(world.settle_for(60_000));
    assert_eq!(world.writes[wrote..], [""; 0]);
    let message = condition(&world, BINDING, "Orphaned")["message"].clone();
    let message = message.as_str().unwrap_or_default();
    assert!(message.contains("its copy on member1 is kept"), "{message}");
}

#[test]
fn what_a_former_leader_may_be_sending_keeps_what_it_referred_to() {
    let mut world = World::new(&["member1", "member2"]);
    world.apply(config_map("settings", "one"));
    world.apply(crate::deployment("web", &["settings"]));
    let mut policy = policy();
    policy["spec"]["placement"]["spreadConstraints"] = json!([]);
    world.stand_by();
    world.apply(policy);
    // Of the version that refers to the ConfigMap.
    let delivery = world.settle_until_delivery(&web("member2"));
    world.apply(crate::deployment("web", &[]));
    assert!(world.settle());
    assert!(world.on("member1", "Deployment", "web").is_some());
    let leaves = |world: &mut World| {
        let mut policy = self::policy();
        policy["spec"]["placement"] = json!({"clusterAffinity": {"clusterNames": ["member1"]}});
        world.apply(policy);
    };
    world.take_over();
    leaves(&mut world);
    assert!(world.settle_for(1_000));
    let holders = world.holders("ConfigMap", "settings");
    assert!(holders.contains(&"member2"), "{holders:?}");
    drop(delivery);
    assert!(world.settle());
    assert!(world.holders("ConfigMap", "settings").is_empty());
}

#[test]
fn what_a_former_leader_sent_and_never_lands_holds_nothing_for_long() {
    let ends: [fn(&mut World); 2] = [World::restart, World::take_over];
    for end in ends {
        let mut world = moving();
        world.settle_until_delivery(&web("member2"));
        end(&mut world);
        taint(&mut world, "member1", &json!([]));
        assert!(world.settle_for(5_000));
        is_back_on_member1(&world);
    }
}

fn is_sent(change: &Change) -> bool {
    matches!(change, Change::Deliver { .. })
}

/// The workload may be sent to member2, and the write of its binding that takes it back to member1 is under way.
fn going_back() -> (World, Flight) {
    let mut world = moving();
    world.work_until(&web("member2"), is_sent);
    taint(&mut world, "member1", &json!([]));
    let is_written = |change: &Change| matches!(change, Change::Hub { .. });
    let write = world.settle_until(&Key::Binding(deployment()), is_written);
    (world, write)
}

#[test]
fn nothing_is_sent_to_a_cluster_that_the_binding_is_about_to_leave() {
    let (mut world, write) = going_back();
    assert!(!world.planned(&web("member2")).changes.iter().any(is_sent));
    assert!(world.land(write));
    assert!(world.settle());
    is_back_on_member1(&world);
}

#[test]
fn a_cluster_that_the_binding_does_not_leave_after_all_is_sent_to() {
    let (mut world, write) = going_back();
    // The write comes to nothing: somebody else wrote the binding before it, and the taint is back.
    let mut edited = binding(&world, BINDING).clone();
    edited["metadata"]["annotations"]["example.com/note"] = json!("mine");
    world.replace(edited);
    let taints = no_execute(&world);
    taint(&mut world, "member1", &taints);
    assert!(world.settle_for(0));
    assert!(world.on("member2", "Deployment", "web").is_none());
    assert!(world.land(write));
    assert!(world.settle());
    assert_eq!(clusters(&world), ["member2"]);
    assert_eq!(world.holders("Deployment", "web"), ["member1", "member2"]);
}
