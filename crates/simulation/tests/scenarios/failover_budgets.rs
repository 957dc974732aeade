//! Budgets of evictions: workloads leave a cluster one by one, whatever the reason, and a slot that was not used is not lost.

use entourage_core::failover::budget::Budget;
use serde_json::{Value, json};

use crate::{
    binding, condition, deployment,
    failover::{MEMBERS, names, no_execute, policy, report_of, taint},
    world::World,
};

const BUDGETED: [&str; 5] = ["one", "two", "three", "four", "five"];

/// Five workloads on member1, which may leave a member one by one every two seconds.
fn budgeted(tolerations: &Value) -> World {
    let mut world = World::new(&MEMBERS);
    world.process.engine.config_mut().eviction_budget = Budget {
        fleet: None,
        region: None,
        member: Some(2_000),
    };
    assert!(world.settle());
    for name in BUDGETED {
        world.apply(deployment(name, &[]));
        world.apply(policy_for(name, tolerations));
    }
    assert!(world.settle());
    assert_eq!(scheduled_to(&world, "member2"), 0);
    world
}

fn policy_for(name: &str, tolerations: &Value) -> Value {
    let mut policy = policy();
    policy["metadata"]["name"] = json!(name);
    policy["spec"]["resourceSelectors"][0]["name"] = json!(name);
    policy["spec"]["placement"]["clusterTolerations"] = tolerations.clone();
    policy
}

/// The number of them that are scheduled to a member.
fn scheduled_to(world: &World, member: &str) -> usize {
    let moved = |name: &&&str| {
        let spec = &binding(world, &format!("{name}-deployment"))["spec"];
        names(&spec["clusters"], "name") == [member]
    };
    BUDGETED.iter().filter(moved).count()
}

/// All of them move there, and no sooner than the budget says.
fn assert_budgeted(world: &mut World, to: &str) {
    let began = world.now;
    let mut seen = Vec::new();
    while scheduled_to(world, to) < BUDGETED.len() && world.now < began.plus(60_000) {
        assert!(world.settle_for(100));
        world.now = world.now.plus(100);
        seen.push((scheduled_to(world, to), world.now.0 - began.0));
    }
    for (count, after) in seen {
        let budget = usize::try_from(after / 2_000).unwrap_or_default() + 1;
        assert!(count <= budget, "{count} after {after} ms");
    }
    let took = world.now.0 - began.0;
    assert_eq!(scheduled_to(world, to), BUDGETED.len());
    assert!((8_000..9_000).contains(&took), "{took}");
}

#[test]
fn evictions_keep_to_their_budget() {
    let mut world = budgeted(&json!([]));
    let taints = no_execute(&world);
    taint(&mut world, "member1", &taints);
    assert_budgeted(&mut world, "member2");
}

#[test]
fn policies_that_tolerate_a_taint_no_more_keep_to_the_budget_too() {
    let mut world = budgeted(&json!([{"key": "broken", "operator": "Exists", "effect": "NoExecute"}]));
    let taints = no_execute(&world);
    taint(&mut world, "member1", &taints);
    assert!(world.settle());
    assert_eq!(scheduled_to(&world, "member2"), 0, "it is tolerated");
    for name in BUDGETED {
        world.apply(policy_for(name, &json!([])));
    }
    assert_budgeted(&mut world, "member2");
}

#[test]
fn what_has_no_other_cluster_uses_up_no_budget() {
    let mut world = budgeted(&json!([]));
    // Planned before the others, by name.
    for name in ["a", "b", "c", "d"] {
        world.apply(deployment(name, &[]));
        let mut policy = policy_for(name, &json!([]));
        policy["spec"]["placement"]["clusterAffinity"] = json!({"clusterNames": ["member1"]});
        world.apply(policy);
    }
    assert!(world.settle());
    let taints = no_execute(&world);
    taint(&mut world, "member1", &taints);
    assert_budgeted(&mut world, "member2");
    for name in ["a", "b", "c", "d"] {
        let name = format!("{name}-deployment");
        assert_eq!(condition(&world, &name, "EvictionBlocked")["status"], "True");
    }
}

#[test]
fn going_home_keeps_to_the_budget_too() {
    for drains in [false, true] {
        go_home(drains);
    }
}

/// `drains`: the cluster that they went to is to be left as well when home is open again.
fn go_home(drains: bool) {
    let mut world = budgeted(&json!([]));
    fail_back_after(&mut world, "0s");
    assert!(world.settle());
    let taints = no_execute(&world);
    taint(&mut world, "member1", &taints);
    assert_budgeted(&mut world, "member2");
    for name in BUDGETED {
        report_of(&mut world, "member2", name, 1);
    }
    assert!(world.settle());
    assert!(world.settle_for(60_000));
    if drains {
        let taints = no_execute(&world);
        taint(&mut world, "member2", &taints);
    }
    taint(&mut world, "member1", &json!([]));
    assert_budgeted(&mut world, "member1");
}

fn fail_back_after(world: &mut World, wait: &str) {
    for name in BUDGETED {
        let stored = world.hub_object("PropagationPolicy", name).cloned();
        let mut policy = stored.expect("policy");
        policy["metadata"]["annotations"] = json!({"entourage.dev/fail-back": wait});
        world.replace(policy);
    }
}

#[test]
fn a_wait_for_home_that_is_shortened_lets_nobody_pass_the_budget() {
    let mut world = budgeted(&json!([]));
    fail_back_after(&mut world, "24h");
    assert!(world.settle());
    let taints = no_execute(&world);
    taint(&mut world, "member1", &taints);
    assert_budgeted(&mut world, "member2");
    for name in BUDGETED {
        report_of(&mut world, "member2", name, 1);
    }
    taint(&mut world, "member1", &json!([]));
    assert!(world.settle_for(60_000));
    assert_eq!(scheduled_to(&world, "member2"), BUDGETED.len());
    fail_back_after(&mut world, "0s");
    assert_budgeted(&mut world, "member1");
}

#[test]
fn a_suspension_that_ends_lets_nobody_pass_the_budget() {
    let mut world = budgeted(&json!([]));
    let suspend = |world: &mut World, suspension: &Value| {
        for name in BUDGETED {
            let mut policy = policy_for(name, &json!([]));
            policy["spec"]["suspension"] = suspension.clone();
            world.apply(policy);
        }
    };
    suspend(&mut world, &json!({"dispatching": true}));
    assert!(world.settle());
    let taints = no_execute(&world);
    taint(&mut world, "member1", &taints);
    assert!(world.settle_for(60_000));
    assert_eq!(scheduled_to(&world, "member2"), 0);
    suspend(&mut world, &json!({}));
    assert_budgeted(&mut world, "member2");
}

#[test]
fn a_taint_that_was_a_mistake_uses_up_no_budget() {
    let mut world = budgeted(&json!([]));
    let taints = no_execute(&world);
    taint(&mut world, "member1", &taints);
    assert!(world.settle_for(100));
    assert_eq!(scheduled_to(&world, "member2"), 1);
    taint(&mut world, "member1", &json!([]));
    assert!(world.settle_for(100));
    let began = world.now;
    world.now = world.now.plus(2_000);
    let taints = no_execute(&world);
    taint(&mut world, "member1", &taints);
    let left = |world: &World| scheduled_to(world, "member2");
    while left(&world) < BUDGETED.len() && world.now < began.plus(60_000) {
        assert!(world.settle_for(100));
        world.now = world.now.plus(100);
    }
    let took = world.now.0 - began.0;
    assert!((2_000..=11_000).contains(&took), "{took}");
}

/// Two clusters each. A cluster that recovers in time costs nothing; what goes home in the same moment does.
#[test]
fn who_goes_home_while_another_cluster_recovers_waits_for_its_turn() {
    const FOUR: [&str; 4] = ["member1", "member2", "member3", "member4"];
    const TWO: [&str; 2] = ["one", "two"];
    let mut world = World::new(&FOUR);
    world.process.engine.config_mut().eviction_budget = Budget {
        member: Some(10_000),
        ..Budget::default()
    };
    assert!(world.settle());
    for name in TWO {
        let mut policy = policy_for(name, &json!([]));
        policy["metadata"]["annotations"] = json!({"entourage.dev/fail-back": "0s"});
        policy["spec"]["placement"]["clusterAffinity"] = json!({"clusterNames": FOUR});
        policy["spec"]["placement"]["spreadConstraints"] =
            json!([{"spreadByField": "cluster", "minGroups": 2, "maxGroups": 2}]);
        world.apply(deployment(name, &[]));
        world.apply(policy);
    }
    let on = |world: &World, name: &str| -> Vec<String> {
        let spec = &binding(world, &format!("{name}-deployment"))["spec"];
        names(&spec["clusters"], "name")
            .into_iter()
            .map(str::to_owned)
            .collect()
    };
    let all = |world: &World, clusters: [&str; 2]| TWO.iter().all(|name| on(world, name) == clusters);
    let healthy = |world: &mut World, members: [&str; 2]| {
        for name in TWO {
            members
                .iter()
                .for_each(|member| report_of(world, member, name, 1));
        }
        assert!(world.settle());
    };
    assert!(world.settle());
    assert!(all(&world, ["member1", "member2"]));
    healthy(&mut world, ["member1", "member2"]);
    // Home is left for good, then the other cluster for a moment.
    let taints = no_execute(&world);
    taint(&mut world, "member1", &taints);
    assert!(world.settle_for(30_000));
    assert!(all(&world, ["member2", "member3"]));
    healthy(&mut world, ["member2", "member3"]);
    assert!(world.settle_for(30_000));
    let taints = no_execute(&world);
    taint(&mut world, "member2", &taints);
    assert!(world.settle_for(30_000));
    assert!(all(&world, ["member3", "member4"]));
    taint(&mut world, "member1", &json!([]));
    taint(&mut world, "member2", &json!([]));
    assert!(world.settle_for(100));
    let home = |world: &World| {
        let home = TWO
            .iter()
            .filter(|name| on(world, name) == ["member1", "member2"]);
        home.count()
    };
    assert_eq!(home(&world), 1, "{:?}", TWO.map(|name| on(&world, name)));
    assert!(world.settle_for(30_000));
    assert_eq!(home(&world), 2, "{:?}", TWO.map(|name| on(&world, name)));
}
