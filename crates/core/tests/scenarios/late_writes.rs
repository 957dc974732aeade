//! Writes that a member carries out late: after the process that sent them is gone, or has decided otherwise.

use entourage_core::{
    object::{Gvk, Id},
    plan::{Change, Key},
};
use serde_json::json;

use crate::{
    binding,
    failover::{BINDING, clusters, evicted, no_execute, policy, settled, taint},
    world::World,
};

fn web(member: &str) -> Key {
    Key::Copy(deployment(), member.into())
}

fn deployment() -> Id {
    Id::new(Gvk::new("apps/v1", "Deployment"), "default", "web")
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
        for (is_silent, wait) in [
            (false, 0),
            (false, 1_000),
            (true, 0),
            (true, 1_000),
            (true, 60_000),
        ] {
            let mut world = moving();
            let delivery = world.settle_until_delivery(&web("member2"));
            end(&mut world);
            taint(&mut world, "member1", &json!([]));
            if is_silent {
                world.set_down("member2", true);
                assert!(world.settle_for(wait));
                world.set_down("member2", false);
            } else {
                assert!(world.settle_for(wait));
            }
            world.carry_out_late(delivery);
            let holders = world.holders("ConfigMap", "settings");
            assert_eq!(holders, ["member1", "member2"], "{is_silent} {wait}");
            assert!(world.settle());
            is_back_on_member1(&world);
        }
    }
}

#[test]
fn an_answer_that_was_held_up_says_nothing_of_what_else_was() {
    let mut world = moving();
    let delivery = world.settle_until_delivery(&web("member2"));
    world.restart();
    taint(&mut world, "member1", &json!([]));
    let is_asked = |change: &Change| matches!(change, Change::Confirm { .. });
    let look = world.settle_until(&web("member2"), is_asked);
    world.now = world.now.plus(5_000);
    assert!(world.land(look));
    assert!(world.settle_for(0));
    world.carry_out_late(delivery);
    assert_eq!(world.holders("ConfigMap", "settings"), ["member1", "member2"]);
    assert!(world.settle());
    is_back_on_member1(&world);
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

#[test]
fn nothing_is_sent_to_a_cluster_that_the_binding_is_about_to_leave() {
    let mut world = moving();
    let is_sent = |change: &Change| matches!(change, Change::Deliver { .. });
    world.work_until(&web("member2"), is_sent);
    taint(&mut world, "member1", &json!([]));
    let is_written = |change: &Change| matches!(change, Change::Hub { .. });
    let write = world.settle_until(&Key::Binding(deployment()), is_written);
    assert!(!world.planned(&web("member2")).changes.iter().any(is_sent));
    assert!(world.land(write));
    assert!(world.settle());
    is_back_on_member1(&world);
}

#[test]
fn a_cluster_that_the_binding_does_not_leave_after_all_is_sent_to() {
    let mut world = moving();
    let is_sent = |change: &Change| matches!(change, Change::Deliver { .. });
    world.work_until(&web("member2"), is_sent);
    taint(&mut world, "member1", &json!([]));
    let is_written = |change: &Change| matches!(change, Change::Hub { .. });
    let write = world.settle_until(&Key::Binding(deployment()), is_written);
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
