//! WorkloadRebalancers: workloads placed afresh once, what is reported of it, and what is left alone afterwards.

use entourage_core::{object::Str, observation::Watch};
use serde_json::{Value, json};

use super::{
    binding, config_map, deployment, policy_of,
    world::{Random, World},
};

const MYAPP: &str = "myapp-deployment";

/// Replicas divided by equal weights.
fn divided(name: &str) -> Value {
    let mut policy = policy_of(name, "apps/v1", "Deployment", name, &[]);
    policy["spec"]["placement"] = json!({
        "clusterAffinity": {"exclude": ["member9"]},
        "replicaScheduling": {
            "replicaSchedulingType": "Divided",
            "weightPreference": {"staticWeightList": [{"targetCluster": {}, "weight": 1}]},
        },
    });
    policy
}

fn workload(name: &str, replicas: i64) -> Value {
    let mut object = deployment(name, &[]);
    object["spec"]["replicas"] = json!(replicas);
    object
}

fn named(kind: &str, name: &str) -> Value {
    let api_version = match kind {
        "Deployment" => "apps/v1",
        "ClusterRole" => "rbac.authorization.k8s.io/v1",
        _ => "v1",
    };
    let mut workload = json!({"apiVersion": api_version, "kind": kind, "name": name});
    if kind != "ClusterRole" {
        workload["namespace"] = json!("default");
    }
    workload
}

fn rebalancer(name: &str, workloads: &[Value]) -> Value {
    json!({
        "apiVersion": "apps.karmada.io/v1alpha1", "kind": "WorkloadRebalancer",
        "metadata": {"name": name}, "spec": {"workloads": workloads},
    })
}

/// Two clusters that have nine replicas, and a third one that came later.
fn grown() -> World {
    let mut world = World::new(&["member1", "member2"]);
    assert!(world.settle());
    world.apply(workload("myapp", 9));
    world.apply(divided("myapp"));
    assert!(world.settle());
    join(&mut world, "member3");
    assert_eq!(replicas(&world)[2], 0);
    world
}

fn join(world: &mut World, member: &str) {
    world.members.insert(member.into(), Default::default());
    world.apply(json!({
        "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": member},
        "spec": {"syncMode": "Push", "apiEndpoint": "https://x"},
    }));
    world.set_down(member, false);
    pass(world, 5_000);
}

fn pass(world: &mut World, millis: i64) {
    assert!(world.settle());
    world.now = world.now.plus(millis);
    assert!(world.settle());
}

/// The number of replicas of myapp on each member.
fn replicas(world: &World) -> Vec<i64> {
    let on = |member: &Str| {
        let copy = world.on(member, "Deployment", "myapp");
        copy.map_or(0, |copy| copy["spec"]["replicas"].as_i64().expect("replicas"))
    };
    world.members.keys().map(on).collect()
}

fn status<'a>(world: &'a World, name: &str) -> &'a Value {
    let object = world.hub_object("WorkloadRebalancer", name);
    &object.expect("a rebalancer")["status"]
}

/// (kind, name, result, reason) of each workload.
fn reported(world: &World, name: &str) -> Vec<[String; 4]> {
    let all = status(world, name)["observedWorkloads"].as_array().cloned();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let reported = |each: Value| {
        let workload = &each["workload"];
        [
            &workload["kind"],
            &workload["name"],
            &each["result"],
            &each["reason"],
        ]
        .map(text)
    };
    all.unwrap_or_default().into_iter().map(reported).collect()
}

fn created(world: &World, name: &str) -> Value {
    let object = world.hub_object("WorkloadRebalancer", name);
    object.expect("a rebalancer")["metadata"]["creationTimestamp"].clone()
}

fn asked(world: &World) -> &Value {
    &binding(world, MYAPP)["spec"]["rescheduleTriggeredAt"]
}

fn edit_binding(world: &mut World, asked: Value) {
    let mut object = binding(world, MYAPP).clone();
    object["spec"]["rescheduleTriggeredAt"] = asked;
    world.apply(object);
    assert!(world.settle());
}

/// Nothing is written for two minutes.
fn nothing_is_written(world: &mut World) {
    let wrote = world.writes.len();
    assert!(world.settle_for(120_000));
    assert_eq!(world.writes[wrote..], [] as [String; 0]);
}

#[test]
fn a_workload_is_placed_afresh_in_one_write_of_its_binding_and_one_of_the_status() {
    let mut world = grown();
    let wrote = world.writes.len();
    world.apply(rebalancer("all", &[named("Deployment", "myapp")]));
    assert!(world.settle());
    assert_eq!(replicas(&world), [3, 3, 3]);
    assert_eq!(*asked(&world), created(&world, "all"));
    assert_eq!(
        reported(&world, "all"),
        [["Deployment", "myapp", "Successful", ""]]
    );
    assert_eq!(status(&world, "all")["observedGeneration"], 1);
    assert!(status(&world, "all")["finishTime"].is_string());
    let reported = &status(&world, "all")["observedWorkloads"][0];
    assert_eq!(
        reported["reason"],
        Value::Null,
        "what has no reason says none: {reported}"
    );
    let writes = |of: &str| {
        let writes = world.writes[wrote..].iter();
        writes.filter(|write| write.contains(of)).count()
    };
    assert_eq!(writes("WorkloadRebalancer"), 1, "{:#?}", &world.writes[wrote..]);
    let chosen = &binding(&world, MYAPP)["status"]["lastScheduledTime"];
    assert!(
        chosen.as_str() >= created(&world, "all").as_str(),
        "{chosen} answers"
    );
    nothing_is_written(&mut world);
    world.restart();
    nothing_is_written(&mut world);
}

#[test]
fn a_process_that_stands_by_writes_nothing_of_a_rebalancer_and_goes_on_with_it_when_it_leads() {
    let mut world = grown();
    world.stand_by();
    world.apply(rebalancer("all", &[named("Deployment", "myapp")]));
    // The leader dies before it did anything.
    world.take_over();
    assert!(world.settle());
    assert_eq!(replicas(&world), [3, 3, 3]);
    assert_eq!(
        reported(&world, "all"),
        [["Deployment", "myapp", "Successful", ""]]
    );
    world.stand_by();
    world.take_over();
    nothing_is_written(&mut world);
    // One that has finished and is to go.
    let mut object = rebalancer("all", &[named("Deployment", "myapp")]);
    object["spec"]["ttlSecondsAfterFinished"] = json!(30);
    world.apply(object);
    assert!(world.settle_for(5_000));
    world.stand_by();
    world.take_over();
    assert!(world.settle_for(60_000));
    assert!(world.hub_object("WorkloadRebalancer", "all").is_none());
}

#[test]
fn a_crash_after_any_change_leads_to_the_same_end() {
    let run = |crash_in: Option<usize>| {
        let mut world = grown();
        let wrote = world.writes.len();
        world.apply(rebalancer(
            "all",
            &[named("Deployment", "myapp"), named("Deployment", "gone")],
        ));
        world.crash_in = crash_in;
        if !world.settle() {
            world.restart();
            assert!(world.settle());
        }
        (world.writes.len() - wrote, world)
    };
    let (total, undisturbed) = run(None);
    assert!(total >= 5, "{total}");
    for k in 1..=total {
        let (_, world) = run(Some(k));
        assert_eq!(replicas(&world), [3, 3, 3], "crash after {k}");
        assert_eq!(
            reported(&world, "all"),
            reported(&undisturbed, "all"),
            "crash after {k}"
        );
        assert_eq!(*asked(&world), created(&world, "all"), "crash after {k}");
    }
}

#[test]
fn what_has_no_binding_has_failed_for_good_until_the_spec_changes() {
    let mut world = grown();
    let all = [named("Deployment", "myapp"), named("Deployment", "later")];
    // Nobody propagates it.
    world.apply(config_map("alone", "one"));
    world.apply(rebalancer(
        "all",
        &[&all[..], &[named("ConfigMap", "alone")]].concat(),
    ));
    assert!(world.settle());
    let not_found = "ReferencedBindingNotFound";
    let before = [
        ["Deployment", "later", "Failed", not_found],
        ["Deployment", "myapp", "Successful", ""],
        ["ConfigMap", "alone", "Failed", not_found],
    ];
    assert_eq!(reported(&world, "all"), before);
    let finished = status(&world, "all")["finishTime"].clone();
    assert!(finished.is_string());
    pass(&mut world, 5_000);
    world.apply(workload("later", 3));
    world.apply(divided("later"));
    assert!(world.settle());
    assert_eq!(reported(&world, "all"), before);
    assert_eq!(
        binding(&world, "later-deployment")["spec"]["rescheduleTriggeredAt"],
        Value::Null,
        "what has finished asks for nothing"
    );
    world.apply(rebalancer("all", &all));
    assert!(world.settle());
    let after = [
        ["Deployment", "later", "Successful", ""],
        ["Deployment", "myapp", "Successful", ""],
    ];
    assert_eq!(
        reported(&world, "all"),
        after,
        "what failed and is not named any more leaves"
    );
    assert_eq!(status(&world, "all")["observedGeneration"], 2);
    assert_ne!(
        status(&world, "all")["finishTime"],
        finished,
        "it finished once more"
    );
    nothing_is_written(&mut world);
}

#[test]
fn what_went_well_stays_in_the_status_when_the_spec_does_not_name_it_any_more() {
    let mut world = grown();
    world.apply(workload("other", 3));
    world.apply(divided("other"));
    pass(&mut world, 5_000);
    world.apply(rebalancer("all", &[named("Deployment", "myapp")]));
    assert!(world.settle());
    let before = asked(&world).clone();
    world.apply(rebalancer("all", &[named("Deployment", "other")]));
    assert!(world.settle());
    let after = [
        ["Deployment", "myapp", "Successful", ""],
        ["Deployment", "other", "Successful", ""],
    ];
    assert_eq!(reported(&world, "all"), after);
    assert_eq!(*asked(&world), before);
    let other = &binding(&world, "other-deployment")["spec"]["rescheduleTriggeredAt"];
    assert_eq!(*other, created(&world, "all"));
}

#[test]
fn one_that_is_applied_before_its_workload_waits_a_moment_for_it() {
    let mut world = World::new(&["member1", "member2"]);
    assert!(world.settle());
    world.apply(rebalancer("all", &[named("Deployment", "myapp")]));
    assert!(world.settle_for(1_000));
    assert_eq!(reported(&world, "all"), [] as [[String; 4]; 0]);
    world.apply(workload("myapp", 8));
    world.apply(divided("myapp"));
    assert!(world.settle());
    assert_eq!(
        reported(&world, "all"),
        [["Deployment", "myapp", "Successful", ""]]
    );
    assert_eq!(replicas(&world), [4, 4]);
}

#[test]
fn one_that_waits_for_a_binding_that_is_about_to_be_made_says_what_it_knows_and_is_not_finished() {
    let mut world = grown();
    let mut waits = divided("waits");
    waits["spec"]["dependentOverrides"] = json!(["first"]);
    world.apply(waits);
    world.apply(workload("waits", 3));
    pass(&mut world, 5_000);
    let all = [named("Deployment", "myapp"), named("Deployment", "waits")];
    let mut object = rebalancer("all", &all);
    object["spec"]["ttlSecondsAfterFinished"] = json!(60);
    world.apply(object);
    assert!(world.settle());
    let half = [
        ["Deployment", "myapp", "Successful", ""],
        ["Deployment", "waits", "", ""],
    ];
    assert_eq!(reported(&world, "all"), half);
    assert_eq!(status(&world, "all")["finishTime"], Value::Null);
    nothing_is_written(&mut world);
    world.restart();
    nothing_is_written(&mut world);
    world.apply(json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "OverridePolicy", "metadata": {"name": "first"},
        "spec": {"overrideRules": []},
    }));
    assert!(world.settle());
    assert_eq!(
        reported(&world, "all")[1],
        ["Deployment", "waits", "Successful", ""]
    );
    assert!(status(&world, "all")["finishTime"].is_string());
}

#[test]
fn one_that_finished_is_deleted_when_its_time_is_over_and_not_before() {
    let mut world = grown();
    let mut object = rebalancer("all", &[named("Deployment", "myapp")]);
    object["spec"]["ttlSecondsAfterFinished"] = json!(30);
    world.apply(object);
    assert!(world.settle());
    assert_eq!(reported(&world, "all").len(), 1);
    // It is looked at again with a memory that begins now.
    world.restart();
    let wrote = world.writes.len();
    assert!(world.settle_for(5_000));
    assert_eq!(world.writes[wrote..], [] as [String; 0]);
    assert!(world.settle_for(40_000));
    assert!(world.hub_object("WorkloadRebalancer", "all").is_none());
    assert_eq!(world.writes[wrote..], ["hub DELETE WorkloadRebalancer /all"]);
    assert_eq!(replicas(&world), [3, 3, 3], "what was done stays done");
    nothing_is_written(&mut world);
}

#[test]
fn of_several_questions_the_last_one_stays_whatever_the_order_in_which_they_are_seen() {
    let mut world = grown();
    world.apply(rebalancer("first", &[named("Deployment", "myapp")]));
    world.now = world.now.plus(5_000);
    world.apply(rebalancer("second", &[named("Deployment", "myapp")]));
    assert!(world.settle());
    let second = created(&world, "second");
    assert!(second.as_str() > created(&world, "first").as_str());
    assert_eq!(*asked(&world), second);
    for name in ["first", "second"] {
        assert_eq!(
            reported(&world, name),
            [["Deployment", "myapp", "Successful", ""]]
        );
    }
    // Asked for by a user: a rebalancer that was made earlier does not take that back.
    edit_binding(&mut world, json!("2099-01-01T00:00:00Z"));
    world.apply(rebalancer("third", &[named("Deployment", "myapp")]));
    assert!(world.settle());
    assert_eq!(*asked(&world), "2099-01-01T00:00:00Z");
    assert_eq!(
        reported(&world, "third"),
        [["Deployment", "myapp", "Successful", ""]]
    );
    nothing_is_written(&mut world);
}

#[test]
fn a_rebalancer_that_finished_leaves_the_binding_to_its_users() {
    let mut world = grown();
    world.apply(rebalancer("all", &[named("Deployment", "myapp")]));
    assert!(world.settle());
    for edit in [Value::Null, json!("2001-01-01T00:00:00Z")] {
        edit_binding(&mut world, edit.clone());
        assert_eq!(*asked(&world), edit);
        world.restart();
        nothing_is_written(&mut world);
        assert_eq!(*asked(&world), edit);
    }
}

#[test]
fn a_binding_that_is_deleted_before_it_was_asked_is_made_again_and_placed_afresh() {
    let mut world = grown();
    world.delete("ResourceBinding", MYAPP);
    world.apply(rebalancer("all", &[named("Deployment", "myapp")]));
    assert!(world.settle());
    assert_eq!(replicas(&world), [3, 3, 3]);
    assert_eq!(
        reported(&world, "all"),
        [["Deployment", "myapp", "Successful", ""]]
    );
}

#[test]
fn what_is_cluster_scoped_or_only_taken_along_is_asked_for_too() {
    let mut world = World::new(&["member1"]);
    assert!(world.settle());
    world.apply(json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "reader"},
        "rules": [],
    }));
    let selector = ["rbac.authorization.k8s.io/v1", "ClusterRole", "reader"];
    let mut policy = policy_of("roles", selector[0], selector[1], selector[2], &["member1"]);
    policy["kind"] = json!("ClusterPropagationPolicy");
    world.apply(policy);
    for object in super::example() {
        world.apply(object);
    }
    assert!(world.settle());
    world.apply(rebalancer(
        "all",
        &[named("ClusterRole", "reader"), named("ConfigMap", "my-config")],
    ));
    assert!(world.settle());
    let all = [
        ["ClusterRole", "reader", "Successful", ""],
        ["ConfigMap", "my-config", "Successful", ""],
    ];
    let mut reported = reported(&world, "all");
    reported.sort();
    assert_eq!(reported, all);
    let created = created(&world, "all");
    let role = world.hub_object("ClusterResourceBinding", "reader-clusterrole");
    assert_eq!(role.expect("bound")["spec"]["rescheduleTriggeredAt"], created);
    let taken_along = binding(&world, "my-config-configmap");
    assert_eq!(taken_along["spec"]["rescheduleTriggeredAt"], created);
    nothing_is_written(&mut world);
}

#[test]
fn a_binding_that_another_component_keeps_is_left_alone_and_that_is_reported() {
    let mut world = grown();
    let mut kept = binding(&world, MYAPP).clone();
    kept["metadata"]["labels"]["binding.karmada.io/managed-by"] = json!("other");
    world.replace(kept.clone());
    assert!(world.settle());
    world.apply(rebalancer("all", &[named("Deployment", "myapp")]));
    assert!(world.settle());
    let reason = "BindingManagedByOthers";
    assert_eq!(
        reported(&world, "all"),
        [["Deployment", "myapp", "Failed", reason]]
    );
    assert_eq!(*asked(&world), Value::Null);
}

#[test]
fn moves_that_a_rebalancer_asks_for_do_not_trip_the_removal_brake() {
    let names: Vec<String> = (0..40).map(|at| format!("app{at}")).collect();
    let mut world = World::new(&["member1", "member2"]);
    assert!(world.settle());
    world.set_down("member1", true);
    assert!(world.settle_for(60_000));
    for name in &names {
        world.apply(deployment(name, &[]));
        let mut policy = policy_of(name, "apps/v1", "Deployment", name, &[]);
        policy["spec"]["placement"] = json!({"clusterAffinities": [
            {"affinityName": "primary", "clusterNames": ["member1"]},
            {"affinityName": "backup", "clusterNames": ["member2"]},
        ]});
        world.apply(policy);
    }
    assert!(world.settle());
    assert_eq!(world.holders("Deployment", "app0"), ["member2"]);
    world.set_down("member1", false);
    pass(&mut world, 5_000);
    // What a restart finds to be different is explained by no edit; this is.
    world.restart();
    assert!(world.settle());
    let all: Vec<Value> = names.iter().map(|name| named("Deployment", name)).collect();
    world.apply(rebalancer("all", &all));
    assert!(world.settle());
    for name in &names {
        assert_eq!(world.holders("Deployment", name), ["member1"], "{name}");
    }
    assert!(
        reported(&world, "all").iter().all(|each| each[2] == "Successful"),
        "{:#?}",
        reported(&world, "all")
    );
}

#[test]
fn many_workloads_cost_few_writes_of_the_status() {
    let names: Vec<String> = (0..100).map(|at| format!("app{at:03}")).collect();
    let mut world = World::new(&["member1"]);
    assert!(world.settle());
    for name in &names {
        world.apply(workload(name, 1));
        world.apply(divided(name));
    }
    pass(&mut world, 5_000);
    let wrote = world.writes.len();
    // Bindings are written while the rebalancer is looked at.
    world.chaos = Some(Random::new(7));
    let all: Vec<Value> = names.iter().map(|name| named("Deployment", name)).collect();
    world.apply(rebalancer("all", &all));
    assert!(world.settle());
    let reported = reported(&world, "all");
    assert!(reported.len() == 100 && reported.iter().all(|each| each[2] == "Successful"));
    assert!(reported.is_sorted());
    let writes = world.writes[wrote..].iter();
    let of_it = writes
        .filter(|write| write.contains("WorkloadRebalancer"))
        .count();
    assert_eq!(of_it, 1);
}

#[test]
fn a_hub_without_the_kind_or_that_refuses_it_holds_nothing_up() {
    let ways: [fn(&mut World); 3] = [
        |world| world.unserve(Watch::Rebalancers, None),
        |world| world.lose(Watch::Rebalancers),
        |world| assert!(world.forbidden.insert(Watch::Rebalancers)),
    ];
    for (at, way) in ways.into_iter().enumerate() {
        let mut world = World::new(&["member1", "member2"]);
        world.shut.insert(Watch::Rebalancers);
        way(&mut world);
        for object in super::example() {
            world.apply(object);
        }
        assert!(world.settle());
        assert!(world.process.engine.is_synced(), "{at}");
        assert_eq!(world.holders("Deployment", "myapp"), ["member1", "member2"]);
        world.delete("Deployment", "myapp");
        assert!(world.settle());
        assert_eq!(world.holders("Deployment", "myapp"), [] as [&str; 0], "{at}");
        assert_eq!(world.holders("ConfigMap", "my-config"), [] as [&str; 0], "{at}");
    }
}

#[test]
fn a_rebalancer_of_a_hub_that_ceases_to_serve_the_kind_asks_for_nothing_any_more() {
    let mut world = grown();
    world.apply(rebalancer("all", &[named("Deployment", "gone")]));
    assert!(world.settle_for(1_000));
    world.unserve(Watch::Rebalancers, None);
    let wrote = world.writes.len();
    assert!(world.settle_for(60_000));
    assert_eq!(world.writes[wrote..], [] as [String; 0]);
}
