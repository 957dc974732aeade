//! Fail-back: a workload that a taint drove out of a cluster goes back there, where its policy says so.

use serde_json::{Value, json};

use crate::{
    binding,
    failover::{
        BINDING, MEMBERS, application, clusters, evicted, no_execute, policy, report, settled, taint, write,
    },
    world::World,
};

fn returning(mut policy: Value, wait: &str) -> Value {
    policy["metadata"]["annotations"] = json!({"entourage.dev/fail-back": wait});
    policy
}

/// Off member1, with a replacement that is healthy and nothing left behind.
fn away(policy: &Value) -> World {
    let mut world = settled(policy);
    leave(&mut world, "member1", "member2");
    world
}

fn leave(world: &mut World, from: &str, to: &str) {
    let taints = no_execute(world);
    taint(world, from, &taints);
    assert!(world.settle());
    assert_eq!(clusters(world), [to]);
    report(world, to, 1);
    assert!(world.settle());
    assert!(evicted(world).is_empty());
    assert_eq!(world.holders("Deployment", "web"), [to]);
}

fn homes(world: &World) -> Value {
    let annotations = &binding(world, BINDING)["metadata"]["annotations"];
    let text = annotations["entourage.dev/home-clusters"].as_str();
    text.map_or(Value::Null, |text| serde_json::from_str(text).expect("JSON"))
}

#[test]
fn a_workload_stays_where_it_went_unless_its_policy_says_otherwise() {
    let mut world = away(&policy());
    assert_eq!(homes(&world), Value::Null);
    taint(&mut world, "member1", &json!([]));
    assert!(world.settle_for(3_600_000));
    assert_eq!(clusters(&world), ["member2"]);
}

#[test]
fn a_workload_goes_home_and_its_replacement_stays_until_it_is_healthy_there() {
    for restart in [false, true] {
        let mut world = away(&returning(policy(), "0s"));
        assert_eq!(
            homes(&world),
            json!({"member1": {"by": ["member2"], "replicas": 1}})
        );
        if restart {
            world.restart();
            assert!(world.settle());
        }
        let wrote = world.writes.len();
        taint(&mut world, "member1", &json!([]));
        assert!(world.settle());
        assert_eq!(clusters(&world), ["member1"]);
        assert_eq!(evicted(&world), ["member2"]);
        assert_eq!(world.holders("Deployment", "web"), ["member1", "member2"]);
        assert_eq!(world.holders("ConfigMap", "settings"), ["member1", "member2"]);
        let arrived = write(&world, wrote, "member1 POST ConfigMap");
        assert!(arrived < write(&world, wrote, "member1 POST Deployment"));
        report(&mut world, "member1", 1);
        assert!(world.settle());
        assert_eq!(world.holders("Deployment", "web"), ["member1"]);
        assert_eq!(world.holders("ConfigMap", "settings"), ["member1"]);
        assert!(evicted(&world).is_empty());
        assert_eq!(homes(&world), Value::Null);
        let wrote = world.writes.len();
        world.restart();
        assert!(world.settle_for(120_000));
        assert_eq!(world.writes.len(), wrote, "{:#?}", &world.writes[wrote..]);
    }
}

#[test]
fn home_must_have_been_ready_for_as_long_as_the_policy_says() {
    let mut world = away(&returning(policy(), "10m"));
    world.set_down("member1", true);
    assert!(world.settle_for(60_000));
    taint(&mut world, "member1", &json!([]));
    assert!(world.settle_for(3_600_000));
    assert_eq!(clusters(&world), ["member2"], "it does not answer");
    world.set_down("member1", false);
    assert!(world.settle_for(500_000));
    assert_eq!(clusters(&world), ["member2"], "not for long enough yet");
    assert!(world.settle_for(700_000));
    assert_eq!(clusters(&world), ["member1"]);
}

#[test]
fn a_replacement_does_not_become_home() {
    let mut world = away(&returning(policy(), "0s"));
    leave(&mut world, "member2", "member3");
    assert_eq!(
        homes(&world),
        json!({"member1": {"by": ["member3"], "replicas": 1}})
    );
    taint(&mut world, "member2", &json!([]));
    assert!(world.settle());
    assert_eq!(clusters(&world), ["member3"]);
    taint(&mut world, "member1", &json!([]));
    assert!(world.settle());
    assert_eq!(clusters(&world), ["member1"]);
    assert_eq!(evicted(&world), ["member3"]);
}

#[test]
fn nothing_moves_while_home_takes_no_new_workloads() {
    let mut world = away(&returning(policy(), "0s"));
    taint(
        &mut world,
        "member1",
        &json!([{"key": "cordoned", "effect": "NoSchedule"}]),
    );
    let wrote = world.writes.len();
    assert!(world.settle_for(600_000));
    assert_eq!(clusters(&world), ["member2"]);
    let moved = |each: &&String| each.contains("Deployment");
    assert_eq!(world.writes[wrote..].iter().filter(moved).count(), 0);
    taint(&mut world, "member1", &json!([]));
    assert!(world.settle());
    assert_eq!(clusters(&world), ["member1"]);
}

#[test]
fn another_placement_or_a_word_withdrawn_ends_the_way_back() {
    let mut moved = returning(policy(), "0s");
    moved["spec"]["placement"]["clusterAffinity"]["clusterNames"] = json!(["member1", "member2"]);
    for moves in [true, false] {
        let mut world = away(&returning(policy(), "0s"));
        if moves {
            world.apply(moved.clone());
        } else {
            let mut held = world
                .hub_object("PropagationPolicy", "web")
                .expect("policy")
                .clone();
            held["metadata"]["annotations"] = json!({});
            world.replace(held);
        }
        assert!(world.settle());
        assert_eq!(homes(&world), Value::Null);
        taint(&mut world, "member1", &json!([]));
        assert!(world.settle());
        assert_eq!(clusters(&world), ["member2"]);
    }
}

#[test]
fn a_cluster_where_the_application_failed_is_no_home() {
    let mut world = settled(&returning(application("Gracefully", 600), "0s"));
    report(&mut world, "member1", 0);
    assert!(world.settle_for(60_000));
    assert_eq!(clusters(&world), ["member2"]);
    assert_eq!(homes(&world), Value::Null);
}

#[test]
fn divided_replicas_go_home_and_none_is_lost() {
    let mut divided = returning(policy(), "0s");
    divided["spec"]["placement"] = json!({
        "clusterAffinity": {"clusterNames": ["member1", "member2"]},
        "replicaScheduling": {
            "replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted",
            "weightPreference": {"staticWeightList": [
                {"targetCluster": {"clusterNames": ["member1"]}, "weight": 1},
                {"targetCluster": {"clusterNames": ["member2"]}, "weight": 1},
            ]},
        },
    });
    let mut world = World::new(&MEMBERS);
    assert!(world.settle());
    world.apply(crate::config_map("settings", "one"));
    let mut web = crate::deployment("web", &["settings"]);
    web["spec"]["replicas"] = json!(4);
    world.apply(web);
    world.apply(divided);
    assert!(world.settle());
    let replicas = |world: &World| -> Vec<(String, i64)> {
        let all = binding(world, BINDING)["spec"]["clusters"].as_array();
        let each = |target: &Value| {
            let name = target["name"].as_str().unwrap_or_default().to_owned();
            (name, target["replicas"].as_i64().unwrap_or_default())
        };
        all.into_iter().flatten().map(each).collect()
    };
    let both = [("member1".to_owned(), 2), ("member2".to_owned(), 2)];
    assert_eq!(replicas(&world), both);
    let report = |world: &mut World, member: &str, count: i64| {
        world.meddle(member, "Deployment", "web", |mut object| {
            object["status"] = json!({
                "observedGeneration": object["metadata"]["generation"], "replicas": count,
                "updatedReplicas": count, "readyReplicas": count, "availableReplicas": count,
            });
            Some(object)
        });
        assert!(world.settle());
    };
    for member in ["member1", "member2"] {
        report(&mut world, member, 2);
    }
    let taints = no_execute(&world);
    taint(&mut world, "member1", &taints);
    assert!(world.settle());
    assert_eq!(replicas(&world), [("member2".to_owned(), 4)]);
    report(&mut world, "member2", 4);
    assert_eq!(world.holders("Deployment", "web"), ["member2"]);
    taint(&mut world, "member1", &json!([]));
    assert!(world.settle());
    assert_eq!(replicas(&world), both);
    assert!(evicted(&world).is_empty());
}

#[test]
fn the_way_home_survives_a_crash_after_any_write() {
    let mut crashes = 0;
    for after in 1.. {
        let mut world = away(&returning(policy(), "0s"));
        taint(&mut world, "member1", &json!([]));
        world.crash_in = Some(after);
        let mut crashed = false;
        for step in 0..2 {
            if step == 1 {
                report(&mut world, "member1", 1);
            }
            if !world.settle() {
                crashed = true;
                world.restart();
                assert!(world.settle());
            }
        }
        assert_eq!(clusters(&world), ["member1"], "after {after}");
        assert_eq!(world.holders("Deployment", "web"), ["member1"], "after {after}");
        assert_eq!(
            world.holders("ConfigMap", "settings"),
            ["member1"],
            "after {after}"
        );
        if !crashed {
            break;
        }
        crashes += 1;
    }
    assert!(crashes > 4, "{crashes}");
}

#[test]
fn a_replacement_that_is_left_for_home_does_not_become_home() {
    let mut world = away(&returning(policy(), "10m"));
    taint(&mut world, "member1", &json!([]));
    world.set_down("member3", true);
    assert!(world.settle_for(60_000));
    // Home is too new for going back, but better than nowhere.
    let taints = no_execute(&world);
    taint(&mut world, "member2", &taints);
    assert!(world.settle_for(60_000));
    assert_eq!(clusters(&world), ["member1"]);
    report(&mut world, "member1", 1);
    taint(&mut world, "member2", &json!([]));
    assert!(world.settle_for(3_600_000));
    assert_eq!(clusters(&world), ["member1"]);
    assert_eq!(homes(&world), Value::Null);
}

#[test]
fn home_is_not_taken_back_before_its_time_where_the_scheduler_would() {
    let mut everywhere = returning(policy(), "10m");
    everywhere["spec"]["placement"]["spreadConstraints"] = json!([]);
    let mut world = World::new(&MEMBERS);
    assert!(world.settle());
    world.apply(crate::config_map("settings", "one"));
    world.apply(crate::deployment("web", &["settings"]));
    world.apply(everywhere);
    assert!(world.settle());
    for member in MEMBERS {
        report(&mut world, member, 1);
    }
    assert!(world.settle());
    let taints = no_execute(&world);
    taint(&mut world, "member1", &taints);
    assert!(world.settle());
    assert_eq!(world.holders("Deployment", "web"), ["member2", "member3"]);
    world.set_down("member1", true);
    assert!(world.settle_for(60_000));
    world.set_down("member1", false);
    taint(&mut world, "member1", &json!([]));
    assert!(world.settle_for(300_000));
    assert_eq!(
        clusters(&world),
        ["member2", "member3"],
        "not for long enough yet"
    );
    assert!(world.settle_for(700_000));
    assert_eq!(clusters(&world), MEMBERS);
    assert!(evicted(&world).is_empty());
}

#[test]
fn each_of_two_homes_takes_back_what_took_its_own_place() {
    let members = ["member1", "member2", "member3", "member4", "member5"];
    let mut two = returning(policy(), "0s");
    two["spec"]["placement"]["clusterAffinity"]["clusterNames"] = json!(members);
    two["spec"]["placement"]["spreadConstraints"] =
        json!([{"spreadByField": "cluster", "minGroups": 2, "maxGroups": 2}]);
    let mut world = World::new(&members);
    assert!(world.settle());
    world.apply(crate::config_map("settings", "one"));
    world.apply(crate::deployment("web", &["settings"]));
    world.apply(two);
    assert!(world.settle());
    assert_eq!(clusters(&world), ["member1", "member2"]);
    for (from, to) in [("member1", "member3"), ("member2", "member4")] {
        for member in ["member1", "member2", "member3"] {
            if world.on(member, "Deployment", "web").is_some() {
                report(&mut world, member, 1);
            }
        }
        assert!(world.settle());
        let taints = no_execute(&world);
        taint(&mut world, from, &taints);
        assert!(world.settle());
        report(&mut world, to, 1);
        assert!(world.settle());
    }
    assert_eq!(clusters(&world), ["member3", "member4"]);
    taint(&mut world, "member1", &json!([]));
    assert!(world.settle());
    assert_eq!(clusters(&world), ["member1", "member4"]);
    assert_eq!(evicted(&world), ["member3"]);
    report(&mut world, "member1", 1);
    assert!(world.settle());
    taint(&mut world, "member2", &json!([]));
    assert!(world.settle());
    assert_eq!(clusters(&world), ["member1", "member2"]);
    assert_eq!(evicted(&world), ["member4"]);
}

#[test]
fn a_workload_whose_policy_is_gone_goes_home_all_the_same() {
    let mut world = away(&returning(policy(), "0s"));
    world.delete("PropagationPolicy", "web");
    assert!(world.settle());
    taint(&mut world, "member1", &json!([]));
    assert!(world.settle());
    assert_eq!(clusters(&world), ["member1"]);
    assert_eq!(evicted(&world), ["member2"]);
}

#[test]
fn a_binding_that_is_made_again_remembers_where_home_is() {
    for orphaned in [false, true] {
        let mut world = away(&returning(policy(), "0s"));
        if orphaned {
            world.delete("PropagationPolicy", "web");
            assert!(world.settle());
        }
        world.delete("ResourceBinding", BINDING);
        assert!(world.settle());
        assert_eq!(clusters(&world), ["member2"], "orphaned: {orphaned}");
        taint(&mut world, "member1", &json!([]));
        assert!(world.settle());
        assert_eq!(clusters(&world), ["member1"], "orphaned: {orphaned}");
    }
}

#[test]
fn a_suspended_workload_does_not_go_home() {
    let mut world = away(&returning(policy(), "0s"));
    let mut suspended = policy();
    suspended["spec"]["suspension"] = json!({"dispatchingOnClusters": {"clusterNames": ["member1"]}});
    world.apply(suspended);
    assert!(world.settle());
    taint(&mut world, "member1", &json!([]));
    assert!(world.settle());
    assert_eq!(clusters(&world), ["member2"]);
}
