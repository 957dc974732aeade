//! A cluster that a user takes out of the affinity loses the workload, also when no other fits; one that only does not fit keeps
//! it.

use serde_json::{Value, json};

use super::{binding, condition, config_map, deployment, policy_of, world::World};

/// The policy of the workload with this placement.
fn placed(placement: &Value) -> Value {
    let mut policy = policy_of("policy", "apps/v1", "Deployment", "myapp", &[]);
    policy["spec"]["placement"] = placement.clone();
    policy
}

fn by_label() -> Value {
    json!({"clusterAffinity": {"labelSelector": {"matchLabels": {"tier": "prod"}}}})
}

fn change_cluster(world: &mut World, member: &str, change: impl FnOnce(&mut Value)) {
    let mut object = world.hub_object("Cluster", member).cloned().expect("Cluster");
    change(&mut object);
    world.replace(object);
    assert!(world.settle());
}

fn label(world: &mut World, member: &str, tier: &Value) {
    change_cluster(world, member, |object| {
        object["metadata"]["labels"] = match tier {
            Value::Null => json!({}),
            tier => json!({"tier": tier}),
        }
    });
}

/// A workload with a dependency, on the clusters that the placement selects; members 1 and 2 have the label.
fn running(placement: &Value) -> World {
    let mut world = World::new(&["member1", "member2", "member3"]);
    assert!(world.settle());
    label(&mut world, "member1", &json!("prod"));
    label(&mut world, "member2", &json!("prod"));
    world.apply(config_map("my-config", "one"));
    world.apply(deployment("myapp", &["my-config"]));
    world.apply(placed(placement));
    assert!(world.settle());
    world
}

/// The clusters of the workload and of its dependency; both are in the same clusters.
fn holders(world: &World) -> Vec<&str> {
    let held = world.holders("Deployment", "myapp");
    assert_eq!(held, world.holders("ConfigMap", "my-config"));
    held
}

fn targets(world: &World) -> Vec<&str> {
    let clusters = binding(world, "myapp-deployment")["spec"]["clusters"].as_array();
    let names = clusters
        .into_iter()
        .flatten()
        .map(|target| target["name"].as_str());
    names.flatten().collect()
}

fn reported(world: &World) -> (&str, &str) {
    let scheduled = condition(world, "myapp-deployment", "Scheduled");
    let text = |field: &str| scheduled[field].as_str().unwrap_or_default();
    (text("reason"), text("message"))
}

fn recorded(world: &World) -> Value {
    binding(world, "myapp-deployment")["metadata"]["annotations"]["entourage.dev/unselected-clusters"].clone()
}

fn assert_at_rest(world: &mut World) {
    let wrote = world.writes.len();
    world.restart();
    assert!(world.settle());
    assert_eq!(world.writes[wrote..], [] as [String; 0]);
}

#[test]
fn a_cluster_whose_label_is_removed_loses_the_workload_although_no_other_fits() {
    let mut world = running(&by_label());
    assert_eq!(holders(&world), ["member1", "member2"]);
    label(&mut world, "member1", &Value::Null);
    assert_eq!(holders(&world), ["member2"], "another fits");
    label(&mut world, "member2", &json!("test"));
    assert_eq!(holders(&world), [] as [&str; 0]);
    assert_eq!(targets(&world), [] as [&str; 0]);
    assert_eq!(
        reported(&world),
        (
            "NoClusterFit",
            "0 of 3 clusters fit: 3 not selected by clusterAffinity; it leaves member2: the placement no longer selects it"
        )
    );
    assert_eq!(recorded(&world), "member2");
    assert_at_rest(&mut world);
    label(&mut world, "member3", &json!("prod"));
    assert_eq!(holders(&world), ["member3"]);
    assert_eq!(reported(&world).0, "Success");
    assert_eq!(recorded(&world), Value::Null);
}

#[test]
fn a_policy_that_names_no_cluster_that_exists_takes_the_workload_from_all() {
    let names = |names: &[&str]| json!({"clusterAffinity": {"clusterNames": names}});
    let mut world = running(&names(&["member1", "member2"]));
    world.apply(placed(&names(&["nowhere"])));
    assert!(world.settle());
    assert_eq!(holders(&world), [] as [&str; 0]);
    let (reason, message) = reported(&world);
    assert_eq!(reason, "NoClusterFit");
    assert!(
        message.contains("nowhere not found")
            && message.ends_with("; it leaves member1, member2: the placement no longer selects them"),
        "{message}"
    );
    assert_at_rest(&mut world);
    world.apply(placed(&names(&["member1"])));
    assert!(world.settle());
    assert_eq!(holders(&world), ["member1"]);
}

#[test]
fn what_is_selected_and_does_not_fit_keeps_the_workload() {
    let mut world = running(&by_label());
    label(&mut world, "member2", &Value::Null);
    assert_eq!(holders(&world), ["member1"]);
    // The cluster is a target already; asked anew, it does not fit.
    let ask = |world: &mut World| {
        let mut object = binding(world, "myapp-deployment").clone();
        let asked = entourage_core::object::Time(world.now.0 + 5_000).to_k8s();
        object["spec"]["rescheduleTriggeredAt"] = serde_json::to_value(asked).expect("time");
        world.apply(object);
        assert!(world.settle());
    };
    let taint = json!([{"key": "a", "effect": "NoSchedule"}]);
    change_cluster(&mut world, "member1", |object| object["spec"]["taints"] = taint);
    ask(&mut world);
    assert_eq!(
        (holders(&world), reported(&world).0),
        (vec!["member1"], "NoClusterFit")
    );
    assert!(!reported(&world).1.contains("leaves"), "{}", reported(&world).1);

    change_cluster(&mut world, "member1", |object| {
        object["spec"]["taints"] = json!([])
    });
    assert_eq!(
        (holders(&world), reported(&world).0),
        (vec!["member1"], "Success")
    );
    world.set_down("member1", true);
    assert!(world.settle_for(120_000));
    ask(&mut world);
    assert_eq!(
        (targets(&world), reported(&world).0),
        (vec!["member1"], "NoClusterFit")
    );
    world.set_down("member1", false);
    assert!(world.settle_for(120_000));
    assert_eq!(
        (holders(&world), reported(&world).0),
        (vec!["member1"], "Success")
    );

    let constrained = {
        let mut placement = by_label();
        placement["spreadConstraints"] = json!([{"spreadByField": "cluster", "minGroups": 3}]);
        placement
    };
    world.apply(placed(&constrained));
    assert!(world.settle());
    assert_eq!(
        (holders(&world), reported(&world).0),
        (vec!["member1"], "SchedulerError")
    );
    assert_at_rest(&mut world);
}

#[test]
fn one_target_is_left_and_another_one_that_does_not_fit_stays() {
    let mut placement = by_label();
    placement["spreadConstraints"] = json!([{"spreadByField": "cluster", "minGroups": 2}]);
    let mut world = running(&placement);
    assert_eq!(holders(&world), ["member1", "member2"]);
    label(&mut world, "member1", &Value::Null);
    assert_eq!(holders(&world), ["member2"]);
    assert_eq!(reported(&world).0, "SchedulerError");
    assert!(
        reported(&world)
            .1
            .ends_with("; it leaves member1: the placement no longer selects it"),
        "{}",
        reported(&world).1
    );
    assert_at_rest(&mut world);
}

#[test]
fn a_cluster_is_left_only_if_no_group_of_affinities_selects_it() {
    let groups = |first: &str, second: &str| {
        json!({
            "clusterAffinities": [
                {"affinityName": "primary", "clusterNames": [first]},
                {"affinityName": "backup", "clusterNames": [second]},
            ],
            "spreadConstraints": [{"spreadByField": "cluster", "maxGroups": 1, "minGroups": 1}],
        })
    };
    let mut world = running(&groups("member1", "member2"));
    assert_eq!(holders(&world), ["member1"]);
    let mut impossible = groups("nowhere", "member1");
    impossible["spreadConstraints"] = json!([{"spreadByField": "cluster", "minGroups": 2, "maxGroups": 2}]);
    world.apply(placed(&impossible));
    assert!(world.settle());
    assert_eq!(holders(&world), ["member1"], "the second group selects it");
    impossible["clusterAffinities"][1]["clusterNames"] = json!(["member2"]);
    world.apply(placed(&impossible));
    assert!(world.settle());
    assert_eq!(holders(&world), [] as [&str; 0]);
    assert_at_rest(&mut world);
}

#[test]
fn a_target_whose_cluster_is_unknown_stays_recorded() {
    let mut world = running(&json!({"clusterAffinity": {"clusterNames": ["member1"]}}));
    let mut object = binding(&world, "myapp-deployment").clone();
    object["spec"]["clusters"] =
        json!([{"name": "elsewhere", "replicas": 1}, {"name": "member1", "replicas": 1}]);
    let names = json!({"clusterAffinity": {"clusterNames": ["nowhere"]}});
    world.apply(placed(&names));
    world.apply(object);
    assert!(world.settle());
    assert_eq!(holders(&world), [] as [&str; 0]);
    assert_eq!(targets(&world), ["elsewhere"]);
    assert_eq!(recorded(&world), "member1");
}

#[test]
fn an_eviction_without_a_replacement_ends_where_the_affinity_does() {
    let mut world = running(&json!({"clusterAffinity": {"clusterNames": ["member1"]}}));
    let taint = json!([{"key": "a", "effect": "NoExecute"}]);
    change_cluster(&mut world, "member1", |object| object["spec"]["taints"] = taint);
    assert_eq!(holders(&world), ["member1"]);
    let blocked = |world: &World| condition(world, "myapp-deployment", "EvictionBlocked").clone();
    assert_eq!(blocked(&world)["status"], "True");
    world.apply(placed(&json!({"clusterAffinity": {"clusterNames": ["nowhere"]}})));
    assert!(world.settle());
    assert_eq!(holders(&world), [] as [&str; 0]);
    assert_eq!(blocked(&world), Value::Null);
    assert_at_rest(&mut world);
}

/// The replacement never becomes healthy; then a user takes both clusters out.
#[test]
fn an_eviction_whose_replacement_is_taken_out_does_not_hold_the_old_copy() {
    let mut world = running(&by_label());
    label(&mut world, "member2", &Value::Null);
    let taint = json!([{"key": "a", "effect": "NoExecute"}]);
    change_cluster(&mut world, "member1", |object| object["spec"]["taints"] = taint);
    label(&mut world, "member2", &json!("prod"));
    assert_eq!(targets(&world), ["member2"]);
    let tasks = |world: &World| {
        let tasks = binding(world, "myapp-deployment")["spec"]["gracefulEvictionTasks"].as_array();
        tasks.map_or(0, Vec::len)
    };
    assert_eq!((holders(&world), tasks(&world)), (vec!["member1", "member2"], 1));
    label(&mut world, "member2", &Value::Null);
    assert_eq!(
        (holders(&world), tasks(&world)),
        (vec!["member1"], 1),
        "it is selected"
    );
    label(&mut world, "member1", &Value::Null);
    assert_eq!((holders(&world), tasks(&world)), (vec![], 0));
    assert_at_rest(&mut world);
}

#[test]
fn a_crash_after_any_change_leads_to_the_same_end() {
    let run = |crash_in: Option<usize>| {
        let mut world = running(&by_label());
        label(&mut world, "member1", &Value::Null);
        let before = world.writes.len();
        world.crash_in = crash_in;
        let mut object = world.hub_object("Cluster", "member2").cloned().expect("Cluster");
        object["metadata"]["labels"] = json!({});
        world.replace(object);
        if !world.settle() {
            world.restart();
            assert!(world.settle());
        }
        (world.writes.len() - before, world)
    };
    let (total, undisturbed) = run(None);
    assert_eq!(holders(&undisturbed), [] as [&str; 0]);
    for k in 1..=total {
        let (_, world) = run(Some(k));
        assert_eq!(undisturbed.outline(), world.outline(), "crash after {k}");
    }
}
