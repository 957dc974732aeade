//! A workload that waits on its new cluster until the data of its claims is there.

use entourage_core::{object::Gvk, observation::Watch};
use serde_json::{Value, json};

use crate::{
    binding, condition, deployment,
    failover::{BINDING, MEMBERS, clusters, evicted, no_execute, policy, purging, report, taint, time},
    volumes::{bind, claim, workload},
    world::World,
};

const RESTORED_AT: &str = "entourage.dev/data-restored-at";

fn waiting(mut policy: Value) -> Value {
    policy["metadata"]["annotations"] = json!({"entourage.dev/wait-for-data": "true"});
    policy
}

/// A workload with a claim that is bound, healthy on member1.
fn settled(policy: &Value) -> World {
    let mut world = World::new(&MEMBERS);
    assert!(world.settle());
    world.apply(claim());
    world.apply(workload(&["data"]));
    world.apply(policy.clone());
    assert!(world.settle());
    assert_eq!(
        world.holders("Deployment", "web"),
        ["member1"],
        "at first there is no data to wait for"
    );
    bind(&mut world, "member1");
    report(&mut world, "member1", 1);
    assert!(world.settle());
    world
}

fn evict(world: &mut World, from: &str) {
    let taints = no_execute(world);
    taint(world, from, &taints);
    assert!(world.settle_for(600_000));
}

/// As a backup tool does when it has filled the claim.
fn restored(world: &mut World, member: &str, at: &Value) {
    world.meddle(member, "PersistentVolumeClaim", "data", |mut claim| {
        claim["metadata"]["annotations"][RESTORED_AT] = at.clone();
        Some(claim)
    });
    assert!(world.settle_for(120_000));
}

fn reported(world: &World) -> (Value, Value) {
    let ready = condition(world, BINDING, "DependenciesReady");
    (ready["status"].clone(), ready["message"].clone())
}

#[test]
fn a_workload_waits_for_its_data_and_the_old_copy_stays_as_long() {
    for restart in [false, true] {
        let mut world = settled(&waiting(policy()));
        evict(&mut world, "member1");
        if restart {
            world.restart();
            assert!(world.settle_for(120_000));
        }
        assert_eq!(clusters(&world), ["member2"]);
        assert_eq!(world.holders("Deployment", "web"), ["member1"]);
        assert_eq!(
            world.holders("PersistentVolumeClaim", "data"),
            ["member1", "member2"]
        );
        let message = "not on member2: the data of PersistentVolumeClaim default/data (set the annotation \
            entourage.dev/data-restored-at of the claim there when it is)";
        assert_eq!(reported(&world), (json!("False"), json!(message)));
        let now = time(world.now);
        restored(&mut world, "member2", &now);
        assert_eq!(world.holders("Deployment", "web"), ["member1", "member2"]);
        assert_eq!(reported(&world).0, "True");
        report(&mut world, "member2", 1);
        assert!(world.settle());
        assert_eq!(world.holders("Deployment", "web"), ["member2"]);
        let claim = world
            .on("member2", "PersistentVolumeClaim", "data")
            .expect("claim");
        assert_eq!(
            claim["metadata"]["annotations"][RESTORED_AT], now,
            "what others set stays"
        );
        let wrote = world.writes.len();
        world.restart();
        assert!(world.settle_for(120_000));
        assert_eq!(world.writes.len(), wrote, "{:#?}", &world.writes[wrote..]);
    }
}

#[test]
fn a_wait_for_data_is_reported_soon() {
    for mode in ["Gracefully", "Directly"] {
        let mut world = settled(&waiting(purging(mode)));
        let taints = no_execute(&world);
        taint(&mut world, "member1", &taints);
        assert!(world.settle_for(3_000));
        assert_eq!(reported(&world).0, "False", "{mode}");
        let now = time(world.now);
        restored(&mut world, "member2", &now);
        report(&mut world, "member2", 1);
        assert!(world.settle_for(3_000));
        assert_eq!(reported(&world).0, "True", "{mode}");
    }
}

#[test]
fn what_is_purged_directly_waits_too() {
    let mut world = settled(&waiting(purging("Directly")));
    evict(&mut world, "member1");
    assert_eq!(world.holders("Deployment", "web"), [""; 0]);
    assert!(evicted(&world).is_empty());
    assert_eq!(reported(&world).0, "False");
    let now = time(world.now);
    restored(&mut world, "member2", &now);
    assert_eq!(world.holders("Deployment", "web"), ["member2"]);
}

#[test]
fn data_that_was_restored_for_an_earlier_move_does_not_count() {
    let mut world = settled(&waiting(policy()));
    evict(&mut world, "member1");
    let now = time(world.now);
    restored(&mut world, "member2", &now);
    report(&mut world, "member2", 1);
    assert!(world.settle());
    bind(&mut world, "member2");
    taint(&mut world, "member1", &json!([]));
    world.now = world.now.plus(60_000);
    // It goes on, comes back, and finds the claim that was filled before.
    for (from, to) in [("member2", "member1"), ("member1", "member2")] {
        evict(&mut world, from);
        assert_eq!(clusters(&world), [to]);
        assert_eq!(world.holders("Deployment", "web"), [from], "{to} has old data");
        let now = time(world.now);
        restored(&mut world, to, &now);
        report(&mut world, to, 1);
        assert!(world.settle());
        assert_eq!(world.holders("Deployment", "web"), [to]);
        taint(&mut world, from, &json!([]));
        assert!(world.settle());
        world.now = world.now.plus(60_000);
    }
}

#[test]
fn what_somebody_put_there_is_taken_for_filled() {
    let mut world = settled(&waiting(policy()));
    let mut theirs = claim();
    theirs["spec"]["volumeName"] = json!("restored");
    world.meddle("member2", "PersistentVolumeClaim", "data", |_| Some(theirs));
    evict(&mut world, "member1");
    assert_eq!(world.holders("Deployment", "web"), ["member1", "member2"]);
}

#[test]
fn a_policy_that_no_longer_asks_for_it_lets_the_workload_go() {
    let mut world = settled(&waiting(policy()));
    evict(&mut world, "member1");
    assert_eq!(world.holders("Deployment", "web"), ["member1"]);
    let mut held = world
        .hub_object("PropagationPolicy", "web")
        .expect("policy")
        .clone();
    held["metadata"]["annotations"] = json!({});
    world.replace(held);
    assert!(world.settle());
    assert_eq!(world.holders("Deployment", "web"), ["member1", "member2"]);
    assert_eq!(reported(&world).0, "True");
}

#[test]
fn a_workload_without_claims_waits_for_nothing() {
    let mut world = settled(&waiting(policy()));
    world.apply(deployment("web", &[]));
    assert!(world.settle());
    report(&mut world, "member1", 1);
    assert!(world.settle());
    evict(&mut world, "member1");
    assert_eq!(world.holders("Deployment", "web"), ["member1", "member2"]);
}

#[test]
fn the_wait_for_data_survives_a_crash_after_any_write() {
    let mut crashes = 0;
    for after in 1.. {
        let mut world = settled(&waiting(purging("Directly")));
        let taints = no_execute(&world);
        taint(&mut world, "member1", &taints);
        world.crash_in = Some(after);
        let crashed = !world.settle_for(120_000);
        if crashed {
            world.restart();
            assert!(world.settle_for(120_000));
        }
        world.crash_in = None;
        assert_eq!(clusters(&world), ["member2"], "after {after}");
        assert_eq!(world.holders("Deployment", "web"), [""; 0], "after {after}");
        let stored = &binding(&world, BINDING)["metadata"]["annotations"]["entourage.dev/awaits-data"];
        assert!(stored.is_string(), "after {after}");
        if !crashed {
            break;
        }
        crashes += 1;
    }
    assert!(crashes > 3, "{crashes}");
}

#[test]
fn a_claim_that_is_not_known_after_a_restart_is_waited_for() {
    let claims = || Watch::Templates(Gvk::new("v1", "PersistentVolumeClaim"));
    for failed in [false, true] {
        let mut world = settled(&waiting(policy()));
        evict(&mut world, "member1");
        world.restart();
        world.shut.insert(claims());
        assert!(world.settle());
        if failed {
            world.lose(claims());
        }
        assert!(world.settle_for(600_000));
        assert_eq!(world.holders("Deployment", "web"), ["member1"], "failed {failed}");
        world.shut.remove(&claims());
        assert!(world.settle_for(120_000));
        assert_eq!(world.holders("Deployment", "web"), ["member1"], "failed {failed}");
    }
}

#[test]
fn a_claim_that_does_not_exist_is_not_waited_for() {
    let mut world = settled(&waiting(policy()));
    world.apply(workload(&["data", "nope"]));
    assert!(world.settle());
    report(&mut world, "member1", 1);
    assert!(world.settle());
    evict(&mut world, "member1");
    let now = time(world.now);
    restored(&mut world, "member2", &now);
    assert_eq!(world.holders("Deployment", "web"), ["member1", "member2"]);
}

#[test]
fn a_copy_that_is_given_back_and_a_claim_that_came_later_await_nothing() {
    let mut world = settled(&waiting(policy()));
    evict(&mut world, "member1");
    let now = time(world.now);
    restored(&mut world, "member2", &now);
    taint(&mut world, "member1", &json!([]));
    assert!(world.settle());
    assert_eq!(
        clusters(&world),
        ["member1"],
        "given back: the replacement was not healthy"
    );
    assert_eq!(reported(&world).0, "True");
    evict(&mut world, "member1");
    let now = time(world.now);
    restored(&mut world, "member2", &now);
    report(&mut world, "member2", 1);
    assert!(world.settle());
    let mut second = claim();
    second["metadata"]["name"] = json!("more");
    world.apply(second);
    world.apply(workload(&["data", "more"]));
    assert!(world.settle());
    assert_eq!(reported(&world).0, "True");
}

#[test]
fn a_binding_that_is_made_again_still_waits() {
    for orphaned in [false, true] {
        let mut world = settled(&waiting(purging("Directly")));
        evict(&mut world, "member1");
        if orphaned {
            world.delete("PropagationPolicy", "web");
            assert!(world.settle());
        }
        world.delete("ResourceBinding", BINDING);
        assert!(world.settle_for(120_000));
        assert_eq!(clusters(&world), ["member2"], "orphaned: {orphaned}");
        assert_eq!(
            world.holders("Deployment", "web"),
            [""; 0],
            "orphaned: {orphaned}"
        );
    }
}

#[test]
fn a_time_on_the_hub_says_nothing_of_members() {
    let mut world = settled(&waiting(policy()));
    let mut annotated = world
        .hub_object("PersistentVolumeClaim", "data")
        .expect("claim")
        .clone();
    annotated["metadata"]["annotations"] = json!({RESTORED_AT: "2099-01-01T00:00:00Z"});
    world.replace(annotated);
    assert!(world.settle());
    evict(&mut world, "member1");
    assert_eq!(world.holders("Deployment", "web"), ["member1"]);
}

#[test]
fn a_workload_that_comes_home_waits_for_its_data_there() {
    let mut policy = waiting(purging("Directly"));
    policy["metadata"]["annotations"]["entourage.dev/fail-back"] = json!("0s");
    let mut world = settled(&policy);
    evict(&mut world, "member1");
    let now = time(world.now);
    restored(&mut world, "member2", &now);
    report(&mut world, "member2", 1);
    assert!(world.settle());
    world.now = world.now.plus(60_000);
    taint(&mut world, "member1", &json!([]));
    assert!(world.settle_for(120_000));
    assert_eq!(clusters(&world), ["member1"]);
    assert_eq!(world.holders("Deployment", "web"), ["member2"]);
    let now = time(world.now);
    restored(&mut world, "member1", &now);
    assert_eq!(world.holders("Deployment", "web"), ["member1", "member2"]);
}
