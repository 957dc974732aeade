//! Workloads with several components, scheduled as one set with the gate MultiplePodTemplatesScheduling.

use entourage_core::{
    config::Estimators,
    interpreter::question::{Answer, Question},
};
use serde_json::{Value, json};

use super::{
    binding, condition,
    failover::{no_execute, taint, time},
    half_working::{hooks, shop},
    policy_of,
    room::probe,
    world::World,
};

/// Members with one node each, and the gate.
fn world(members: &[(&str, i64)]) -> World {
    let mut world = super::room::world(members);
    world.process.engine.config_mut().multiple_pod_templates = true;
    world
}

/// A head, and so many workers, with a CPU each.
fn rays(name: &str, workers: i64) -> Value {
    let pod = json!({"spec": {"containers": [{"name": "ray", "resources": {"requests": {"cpu": "1"}}}]}});
    json!({"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": name}, "spec": {
        "headGroupSpec": {"template": pod},
        "workerGroupSpecs": [{"groupName": "worker", "replicas": workers, "template": pod}],
    }})
}

/// To one cluster.
fn policy(name: &str) -> Value {
    let mut policy = policy_of(name, "ray.io/v1", "RayCluster", name, &[]);
    policy["spec"]["placement"] =
        json!({"spreadConstraints": [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}]});
    policy
}

fn propagate(world: &mut World, name: &str, workers: i64) {
    world.apply(rays(name, workers));
    world.apply(policy(name));
}

fn scheduled(world: &World, name: &str) -> Value {
    binding(world, &format!("{name}-raycluster"))["spec"]["clusters"].clone()
}

/// The result: all of it on one cluster.
fn whole(cluster: &str, workers: i64) -> Value {
    let components = json!([{"name": "head", "replicas": 1}, {"name": "worker", "replicas": workers}]);
    json!([{"name": cluster, "components": components}])
}

fn reason(world: &World, name: &str) -> Value {
    condition(world, &format!("{name}-raycluster"), "Scheduled")["reason"].clone()
}

#[test]
fn a_set_goes_to_a_cluster_with_room_for_all_of_it_and_stays_there_as_it_grows() {
    let mut world = world(&[("member1", 4), ("member2", 8)]);
    propagate(&mut world, "rays", 4);
    assert!(world.settle());
    assert_eq!(scheduled(&world, "rays"), whole("member2", 4));
    assert_eq!(world.holders("RayCluster", "rays"), ["member2"]);
    assert_eq!(
        condition(&world, "rays-raycluster", "Scheduled")["message"],
        "Scheduled to member2."
    );
    world.restart();
    let wrote = world.writes.len();
    assert!(world.settle_for(120_000));
    assert_eq!(world.writes.len(), wrote, "a restart writes nothing");
    world.apply(rays("rays", 20));
    assert!(world.settle());
    assert_eq!(scheduled(&world, "rays"), whole("member2", 20));
    assert_eq!(reason(&world, "rays"), "Success");
    // Without the gate it stays, too.
    world.process.engine.config_mut().multiple_pod_templates = false;
    world.restart();
    assert!(world.settle());
    assert_eq!(scheduled(&world, "rays"), json!([{"name": "member2"}]));
    assert_eq!(world.holders("RayCluster", "rays"), ["member2"]);
}

/// Five pods with a CPU each.
fn says(_: &str, question: Question<'_>) -> Result<Answer, &'static str> {
    let Question::Components(_) = question else {
        return Err("not asked for");
    };
    let component = json!({
        "name": "till", "replicas": 5, "replicaRequirements": {"resourceRequest": {"cpu": "1"}},
    });
    Ok(Answer::Components(vec![
        serde_json::from_value(component).expect("a component"),
    ]))
}

#[test]
fn a_set_whose_components_only_a_hook_knows_is_not_scheduled_before_it_answers() {
    for is_on in [true, false] {
        let mut world = world(&[("member1", 4), ("member2", 8)]);
        world.process.engine.config_mut().multiple_pod_templates = is_on;
        world.apply(hooks(&["Shop"], &["InterpretComponent"]));
        assert!(world.settle());
        world.hooked.says = Some(|_, _| Err("connection refused"));
        world.apply(shop(&[]));
        let mut policy = policy_of("shops", "example.com/v1", "Shop", "corner", &[]);
        policy["spec"]["placement"] =
            json!({"spreadConstraints": [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}]});
        world.apply(policy);
        assert!(world.settle());
        if !is_on {
            assert_eq!(world.holders("Shop", "corner"), ["member1"]);
            continue;
        }
        assert!(world.hub_object("ResourceBinding", "corner-shop").is_none());
        let why = "corner is not scheduled, because its components are scheduled as one set, by their room";
        assert!(
            world.events.iter().any(|event| event.contains(why)),
            "{:#?}",
            world.events
        );
        world.hooked.says = Some(says);
        world.hear_again();
        assert!(world.settle_for(60_000));
        let want = json!([{"name": "member2", "components": [{"name": "till", "replicas": 5}]}]);
        assert_eq!(binding(&world, "corner-shop")["spec"]["clusters"], want);
    }
}

#[test]
fn of_a_burst_of_sets_those_without_room_wait_for_it() {
    let mut world = world(&[("member1", 8), ("member2", 6)]);
    for name in ["a", "b", "c"] {
        propagate(&mut world, name, 4);
        assert!(world.settle_for(1_000));
    }
    assert_eq!(scheduled(&world, "a"), whole("member1", 4));
    assert_eq!(scheduled(&world, "b"), whole("member2", 4));
    assert_eq!(
        (scheduled(&world, "c"), reason(&world, "c")),
        (Value::Null, json!("Unschedulable"))
    );
    let message = &condition(&world, "c-raycluster", "Scheduled")["message"];
    assert!(
        message
            .to_string()
            .contains("none has room for all components together (5 pods)"),
        "{message}"
    );
    world.meddle("member1", "Node", "n", |held| {
        let mut held = held;
        held["status"]["allocatable"]["cpu"] = json!("16");
        Some(held)
    });
    probe(&mut world, "member1");
    assert!(world.settle());
    assert_eq!(scheduled(&world, "c"), whole("member1", 4));
    assert_eq!(scheduled(&world, "a"), whole("member1", 4), "nobody else moves");
}

#[test]
fn an_eviction_for_which_no_other_cluster_has_room_starts_when_one_has() {
    let mut world = world(&[("member1", 8), ("member2", 4)]);
    propagate(&mut world, "rays", 4);
    assert!(world.settle());
    assert_eq!(scheduled(&world, "rays"), whole("member1", 4));
    let taints = no_execute(&world);
    taint(&mut world, "member1", &taints);
    assert!(world.settle());
    assert_eq!(scheduled(&world, "rays"), whole("member1", 4));
    assert_eq!(
        condition(&world, "rays-raycluster", "EvictionBlocked")["status"],
        "True"
    );
    world.meddle("member2", "Node", "n", |held| {
        let mut held = held;
        held["status"]["allocatable"]["cpu"] = json!("16");
        Some(held)
    });
    probe(&mut world, "member2");
    super::pull::pass(&mut world, 15_000);
    assert!(world.settle());
    assert_eq!(scheduled(&world, "rays"), whole("member2", 4));
}

#[test]
fn without_the_gate_or_to_several_clusters_a_set_goes_there_whatever_the_room() {
    let mut world = world(&[("member1", 4), ("member2", 8)]);
    world.apply(rays("rays", 40));
    world.apply(policy_of(
        "rays",
        "ray.io/v1",
        "RayCluster",
        "rays",
        &["member1", "member2"],
    ));
    assert!(world.settle());
    let both = json!([{"name": "member1"}, {"name": "member2"}]);
    assert_eq!(scheduled(&world, "rays"), both);
    world.process.engine.config_mut().multiple_pod_templates = false;
    propagate(&mut world, "other", 40);
    assert!(world.settle());
    assert_eq!(scheduled(&world, "other"), json!([{"name": "member1"}]));
    assert_eq!(scheduled(&world, "rays"), both);
}

/// Its pods wait for nodes: they are no room for it.
#[test]
fn a_set_that_outgrew_its_cluster_goes_to_another_one_by_a_fresh_result() {
    let mut world = world(&[("member1", 8), ("member2", 6)]);
    propagate(&mut world, "rays", 4);
    assert!(world.settle());
    assert_eq!(scheduled(&world, "rays"), whole("member1", 4));
    world.meddle("member2", "Node", "n", |held| {
        let mut held = held;
        held["status"]["allocatable"]["cpu"] = json!("30");
        Some(held)
    });
    probe(&mut world, "member2");
    super::pull::pass(&mut world, 65_000);
    world.apply(rays("rays", 20));
    assert!(world.settle());
    assert_eq!(scheduled(&world, "rays"), whole("member1", 20));
    let mut object = binding(&world, "rays-raycluster").clone();
    object["spec"]["rescheduleTriggeredAt"] = time(world.now.plus(5_000));
    world.apply(object);
    assert!(world.settle());
    assert_eq!(scheduled(&world, "rays"), whole("member2", 20));
}

/// Without the gate, or by an older Karmada, its cluster alone is stored. Its pods are there, and in the reports.
#[test]
fn a_set_that_was_placed_without_the_gate_is_neither_reserved_nor_asked_about() {
    for is_asking in [false, true] {
        let mut world = world(&[("member1", 8), ("member2", 6)]);
        world.process.engine.config_mut().multiple_pod_templates = false;
        propagate(&mut world, "rays", 4);
        assert!(world.settle());
        assert_eq!(scheduled(&world, "rays"), json!([{"name": "member1"}]));
        world.process.engine.config_mut().multiple_pod_templates = true;
        if is_asking {
            world.process.engine.config_mut().estimators = Some(Estimators {
                timeout: 3_000,
                in_pull_mode: true,
            });
        }
        world.restart();
        assert!(world.settle_for(1_000));
        assert_eq!(scheduled(&world, "rays"), whole("member1", 4));
        assert_eq!(world.estimators.asked, <[&str; 0]>::default());
        if !is_asking {
            propagate(&mut world, "other", 4);
            assert!(world.settle_for(1_000));
            assert_eq!(scheduled(&world, "other"), whole("member1", 4));
        }
    }
}

/// The stored components, written by Karmada or by this process with the gate, of each cluster.
#[test]
fn without_the_gate_or_while_scheduling_is_suspended_stored_components_stay_as_they_are() {
    for is_on in [false, true] {
        let mut world = world(&[("member1", 20)]);
        propagate(&mut world, "rays", 4);
        assert!(world.settle());
        let mut suspended = binding(&world, "rays-raycluster").clone();
        suspended["spec"]["suspension"] = json!({"scheduling": true});
        world.replace(suspended);
        world.process.engine.config_mut().multiple_pod_templates = is_on;
        world.restart();
        assert!(world.settle());
        world.apply(rays("rays", 6));
        assert!(world.settle());
        assert_eq!(scheduled(&world, "rays"), whole("member1", 4), "{is_on}");
        assert_eq!(
            binding(&world, "rays-raycluster")["spec"]["components"][1]["replicas"],
            6
        );
    }
}

#[test]
fn estimators_are_asked_for_sets_once_and_none_is_placed_that_they_refuse() {
    let mut world = world(&[("member1", 20), ("member2", 20), ("member3", 4)]);
    world.process.engine.config_mut().estimators = Some(Estimators {
        timeout: 3_000,
        in_pull_mode: true,
    });
    for (member, sets) in [("member1", 0), ("member2", 1), ("member3", 9)] {
        world.estimators.answers.insert(member.into(), sets);
    }
    propagate(&mut world, "a", 4);
    assert!(world.settle_for(1_000));
    assert_eq!(scheduled(&world, "a"), whole("member2", 4));
    assert_eq!(std::mem::take(&mut world.estimators.asked), ["member1 member2"]);
    // The only set for which there was room is placed.
    propagate(&mut world, "b", 4);
    assert!(world.settle_for(1_000));
    assert_eq!(
        (scheduled(&world, "b"), reason(&world, "b")),
        (Value::Null, json!("Unschedulable"))
    );
    // What stands asks nothing, nor does a set that sleeps.
    world.estimators.asked.clear();
    world.apply(rays("a", 5));
    world.delete("RayCluster", "b");
    assert!(world.settle());
    assert_eq!(scheduled(&world, "a"), whole("member2", 5));
    assert_eq!(world.estimators.asked, <[&str; 0]>::default());
}

#[test]
fn a_quota_counts_all_components() {
    let mut world = world(&[("member1", 20)]);
    world.process.engine.config_mut().enforce_quotas = true;
    world.restart();
    world.apply(json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "FederatedResourceQuota",
        "metadata": {"name": "team"}, "spec": {"overall": {"cpu": "9"}},
    }));
    assert!(world.settle());
    for name in ["a", "b"] {
        propagate(&mut world, name, 4);
        assert!(world.settle());
    }
    assert_eq!(scheduled(&world, "a"), whole("member1", 4));
    assert_eq!(
        (scheduled(&world, "b"), reason(&world, "b")),
        (Value::Null, json!("QuotaExceeded"))
    );
    world.apply(rays("b", 3));
    assert!(world.settle());
    assert_eq!(scheduled(&world, "b"), whole("member1", 3));
}
