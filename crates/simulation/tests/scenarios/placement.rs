//! A placement over time: replicas divided and scaled, groups of clusters, a choice asked for afresh,
//! another scheduler.

use entourage_core::{object::Time, plan::Key};
use serde_json::{Value, json};

use super::{binding, condition, deployment, policy_of, world::World};

fn placed(placement: &Value) -> Value {
    let mut policy = policy_of("policy", "apps/v1", "Deployment", "myapp", &[]);
    policy["spec"]["placement"] = placement.clone();
    policy
}

fn workload(replicas: i64) -> Value {
    let mut object = deployment("myapp", &[]);
    object["spec"]["replicas"] = json!(replicas);
    object
}

fn divided() -> Value {
    json!({
        "clusterAffinity": {"exclude": ["member9"]},
        "replicaScheduling": {
            "replicaSchedulingType": "Divided",
            "weightPreference": {"staticWeightList": [
                {"targetCluster": {"clusterNames": ["member2"]}, "weight": 2},
                {"targetCluster": {}, "weight": 1},
            ]},
        },
    })
}

fn groups() -> Value {
    json!({"clusterAffinities": [
        {"affinityName": "primary", "clusterNames": ["member1"]},
        {"affinityName": "backup", "clusterNames": ["member2"]},
    ]})
}

fn world(members: &[&str], objects: &[Value]) -> World {
    let mut world = World::new(members);
    assert!(world.settle());
    for object in objects {
        world.apply(object.clone());
    }
    assert!(world.settle());
    world
}

fn taint(world: &mut World, member: &str, taints: &Value) {
    world.apply(json!({
        "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": member},
        "spec": {"syncMode": "Push", "apiEndpoint": "https://x", "taints": taints},
    }));
    assert!(world.settle());
}

fn join(world: &mut World, member: &str) {
    world.members.insert(member.into(), Default::default());
    taint(world, member, &json!([]));
    world.set_down(member, false);
    assert!(world.settle());
}

fn edit_binding(world: &mut World, change: impl FnOnce(&mut Value)) {
    let mut object = binding(world, "myapp-deployment").clone();
    change(&mut object["spec"]);
    world.apply(object);
    assert!(world.settle());
}

fn reschedule(world: &mut World) -> Value {
    let asked = serde_json::to_value(Time(world.now.0 + 5_000).to_k8s()).expect("time");
    edit_binding(world, |spec| spec["rescheduleTriggeredAt"] = asked.clone());
    asked
}

/// (cluster, replicas in the binding, replicas of the copy).
fn shares(world: &World) -> Vec<(&str, i64, i64)> {
    let clusters = binding(world, "myapp-deployment")["spec"]["clusters"].as_array();
    let share = |target: &'_ Value| (target["name"].clone(), target["replicas"].as_i64().unwrap_or(0));
    let reported: Vec<(Value, i64)> = clusters.into_iter().flatten().map(share).collect();
    let held: Vec<&str> = world.holders("Deployment", "myapp");
    assert_eq!(
        held,
        reported
            .iter()
            .map(|(name, _)| name.as_str().unwrap_or_default())
            .collect::<Vec<_>>()
    );
    held.into_iter()
        .zip(reported)
        .map(|(name, (_, replicas))| {
            let copy = world.on(name, "Deployment", "myapp").expect("copy");
            (
                name,
                replicas,
                copy["spec"]["replicas"].as_i64().expect("replicas"),
            )
        })
        .collect()
}

#[test]
fn divided_replicas_are_on_the_copies_and_follow_the_template() {
    let mut world = world(&["member1", "member2"], &[workload(9), placed(&divided())]);
    assert_eq!(shares(&world), [("member1", 3, 3), ("member2", 6, 6)]);
    assert_eq!(binding(&world, "myapp-deployment")["spec"]["replicas"], 9);
    world.apply(workload(3));
    assert!(world.settle());
    assert_eq!(shares(&world), [("member1", 1, 1), ("member2", 2, 2)]);
    world.apply(workload(1));
    assert!(world.settle());
    assert_eq!(
        shares(&world),
        [("member2", 1, 1)],
        "a cluster without a replica has no copy"
    );
    world.apply(workload(0));
    assert!(world.settle());
    assert_eq!(
        shares(&world),
        [("member2", 0, 0)],
        "scaled to nothing, the copy stays"
    );
}

#[test]
fn a_cluster_that_joins_moves_no_divided_replica_before_it_is_asked_for() {
    let mut world = world(&["member1", "member2"], &[workload(8), placed(&divided())]);
    let before = shares(&world)
        .iter()
        .map(|each| (each.0.to_owned(), each.1))
        .collect::<Vec<_>>();
    join(&mut world, "member3");
    assert_eq!(world.holders("Deployment", "myapp"), ["member1", "member2"]);
    assert_eq!(
        shares(&world)
            .iter()
            .map(|each| (each.0.to_owned(), each.1))
            .collect::<Vec<_>>(),
        before
    );
    let asked = reschedule(&mut world);
    assert_eq!(
        shares(&world),
        [("member1", 2, 2), ("member2", 4, 4), ("member3", 2, 2)]
    );
    assert_eq!(
        binding(&world, "myapp-deployment")["status"]["lastScheduledTime"],
        asked
    );
    let wrote = world.writes.len();
    world.restart();
    assert!(world.settle());
    assert_eq!(world.writes[wrote..], [] as [String; 0]);
}

#[test]
fn the_group_in_use_is_kept_until_a_choice_is_asked_for_afresh() {
    let mut world = World::new(&["member1", "member2"]);
    assert!(world.settle());
    taint(
        &mut world,
        "member1",
        &json!([{"key": "a", "effect": "NoSchedule"}]),
    );
    world.apply(workload(2));
    world.apply(placed(&groups()));
    assert!(world.settle());
    let observed = |world: &World| {
        binding(world, "myapp-deployment")["status"]["schedulerObservingAffinityName"].clone()
    };
    assert_eq!(
        (world.holders("Deployment", "myapp"), observed(&world)),
        (vec!["member2"], json!("backup"))
    );
    taint(&mut world, "member1", &json!([]));
    world.restart();
    assert!(world.settle());
    assert_eq!(
        (world.holders("Deployment", "myapp"), observed(&world)),
        (vec!["member2"], json!("backup"))
    );
    let reported = condition(&world, "myapp-deployment", "Scheduled")["message"]
        .as_str()
        .expect("message");
    assert!(
        reported.starts_with("Scheduled to member2 (2). clusterAffinities[0] fits again"),
        "{reported}"
    );
    world.delete("ResourceBinding", "myapp-deployment");
    assert!(world.settle());
    assert_eq!(
        (world.holders("Deployment", "myapp"), observed(&world)),
        (vec!["member2"], json!("backup"))
    );
    reschedule(&mut world);
    assert_eq!(
        (world.holders("Deployment", "myapp"), observed(&world)),
        (vec!["member1"], json!("primary"))
    );
}

#[test]
fn a_choice_asked_for_by_a_wrong_clock_is_made_once_and_disables_no_later_one() {
    let mut world = world(&["member1"], &[workload(2), placed(&divided())]);
    let answered = |world: &World| binding(world, "myapp-deployment")["status"]["lastScheduledTime"].clone();
    for (asked, joins) in [
        ("2099-01-01T00:00:00Z", "member2"),
        ("2098-01-01T00:00:00Z", "member3"),
    ] {
        join(&mut world, joins);
        let before = world.holders("Deployment", "myapp").len();
        edit_binding(&mut world, |spec| spec["rescheduleTriggeredAt"] = json!(asked));
        assert_eq!(answered(&world), asked);
        let wrote = world.writes.len();
        world.restart();
        assert!(world.settle());
        assert_eq!(world.writes[wrote..], [] as [String; 0], "{asked}, had {before}");
    }
    let asked = reschedule(&mut world);
    assert_eq!(
        answered(&world),
        asked,
        "an answer is never earlier than its question"
    );
}

#[test]
fn a_fresh_choice_that_cannot_be_made_is_reported_to_be_pending_and_made_in_the_end() {
    let mut world = world(&["member1"], &[workload(2), placed(&json!({}))]);
    let noschedule = json!([{"key": "a", "effect": "NoSchedule"}]);
    taint(&mut world, "member1", &noschedule);
    let asked = reschedule(&mut world);
    assert_eq!(
        world.holders("Deployment", "myapp"),
        ["member1"],
        "nothing better was found"
    );
    let reported = |world: &World| condition(world, "myapp-deployment", "Scheduled").clone();
    assert_eq!(reported(&world)["status"], "False");
    let message = reported(&world)["message"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    assert!(
        message.ends_with("rescheduleTriggeredAt asks for is made as soon as it can be"),
        "{message}"
    );
    join(&mut world, "member2");
    assert_eq!(world.holders("Deployment", "myapp"), ["member2"]);
    assert_eq!(reported(&world)["status"], "True");
    assert_eq!(
        binding(&world, "myapp-deployment")["status"]["lastScheduledTime"],
        asked
    );
}

#[test]
fn a_placement_that_cannot_be_done_leaves_what_was_placed_and_is_tried_again() {
    let mut world = world(&["member1", "member2"], &[workload(9), placed(&divided())]);
    let applied = |world: &World| {
        binding(world, "myapp-deployment")["metadata"]["annotations"]["policy.karmada.io/applied-placement"]
            .clone()
    };
    let before = applied(&world);
    let mut wish = divided();
    wish["spreadConstraints"] = json!([{"spreadByField": "cluster", "minGroups": 3}]);
    world.apply(placed(&wish));
    assert!(world.settle());
    assert_eq!(shares(&world), [("member1", 3, 3), ("member2", 6, 6)]);
    assert_eq!(
        condition(&world, "myapp-deployment", "Scheduled")["reason"],
        "SchedulerError"
    );
    assert_eq!(applied(&world), before, "it tells what is placed");
    join(&mut world, "member3");
    assert_eq!(shares(&world).len(), 3);
    assert_eq!(
        condition(&world, "myapp-deployment", "Scheduled")["status"],
        "True"
    );
    assert_ne!(applied(&world), before);
}

#[test]
fn what_another_scheduler_places_is_delivered_and_its_words_stay() {
    let mut policy = placed(&json!({}));
    policy["spec"]["schedulerName"] = json!("theirs");
    let mut world = world(&["member1", "member2"], &[workload(2), policy]);
    let spec = &binding(&world, "myapp-deployment")["spec"];
    assert_eq!(
        (&spec["clusters"], &spec["schedulerName"]),
        (&Value::Null, &json!("theirs"))
    );
    assert_eq!(*condition(&world, "myapp-deployment", "Scheduled"), Value::Null);
    edit_binding(&mut world, |spec| {
        spec["clusters"] = json!([{"name": "member2", "replicas": 2}])
    });
    assert_eq!(world.holders("Deployment", "myapp"), ["member2"]);
    world.apply(workload(4));
    assert!(world.settle());
    assert_eq!(world.holders("Deployment", "myapp"), ["member2"]);
    assert_eq!(*condition(&world, "myapp-deployment", "Scheduled"), Value::Null);
}

#[test]
fn suspended_scheduling_holds_the_choice() {
    let mut world = world(&["member1", "member2"], &[workload(9), placed(&divided())]);
    edit_binding(&mut world, |spec| {
        spec["suspension"] = json!({"scheduling": true})
    });
    world.apply(workload(3));
    world.apply(placed(&groups()));
    assert!(world.settle());
    assert_eq!(world.holders("Deployment", "myapp"), ["member1", "member2"]);
    edit_binding(&mut world, |spec| spec["suspension"] = Value::Null);
    assert_eq!(world.holders("Deployment", "myapp"), ["member1"]);
}

#[test]
fn a_divided_binding_deleted_by_hand_is_made_again_as_it_was() {
    let mut world = world(&["member1", "member2"], &[workload(8), placed(&divided())]);
    join(&mut world, "member3");
    let wrote = world.writes.len();
    world.delete("ResourceBinding", "myapp-deployment");
    assert!(world.settle());
    assert_eq!(world.holders("Deployment", "myapp"), ["member1", "member2"]);
    assert!(world.writes[wrote..].iter().all(|each| each.starts_with("hub")));
}

#[test]
fn the_binding_tells_what_a_replica_needs() {
    let mut object = workload(2);
    object["spec"]["template"]["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "250m"}});
    object["spec"]["template"]["spec"]["nodeSelector"] = json!({"disk": "ssd"});
    let mut world = world(&["member1"], &[object, placed(&json!({}))]);
    assert_eq!(
        binding(&world, "myapp-deployment")["spec"]["replicaRequirements"],
        json!({
            "nodeClaim": {"nodeSelector": {"disk": "ssd"}},
            "resourceRequest": {"cpu": "250m"},
            "namespace": "default",
        })
    );
    world.apply(workload(2));
    assert!(world.settle());
    assert_eq!(
        binding(&world, "myapp-deployment")["spec"]["replicaRequirements"],
        Value::Null
    );
}

#[test]
fn the_completions_of_a_divided_job_are_divided_too() {
    let mut policy = policy_of("policy", "batch/v1", "Job", "sum", &[]);
    policy["spec"]["placement"] = divided();
    let job = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "sum"},
        "spec": {
            "parallelism": 3, "completions": 10,
            "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "a"}]}},
        },
    });
    let world = world(&["member1", "member2"], &[job, policy]);
    let reported = |member: &str| {
        let spec = &world.on(member, "Job", "sum").expect("copy")["spec"];
        (spec["parallelism"].as_i64(), spec["completions"].as_i64())
    };
    assert_eq!(
        [reported("member1"), reported("member2")],
        [(Some(1), Some(3)), (Some(2), Some(7))]
    );
}

#[test]
fn a_crash_after_any_change_of_a_scaling_and_a_reschedule_leads_to_the_same_end() {
    let run = |crash_in: Option<usize>| {
        let mut world = world(&["member1", "member2"], &[workload(8), placed(&divided())]);
        join(&mut world, "member3");
        let before = world.writes.len();
        world.crash_in = crash_in;
        world.apply(workload(3));
        let asked = serde_json::to_value(Time(world.now.0 + 5_000).to_k8s()).expect("time");
        let mut object = binding(&world, "myapp-deployment").clone();
        object["spec"]["rescheduleTriggeredAt"] = asked;
        world.apply(object);
        if !world.settle() {
            world.restart();
            assert!(world.settle());
        }
        (world.writes.len() - before, world)
    };
    let (total, undisturbed) = run(None);
    assert_eq!(
        undisturbed.holders("Deployment", "myapp"),
        ["member1", "member2", "member3"].as_slice()[..shares(&undisturbed).len()]
    );
    for k in 1..=total {
        let (_, world) = run(Some(k));
        let (want, got) = (undisturbed.outline(), world.outline());
        for key in want.keys().chain(got.keys()) {
            assert_eq!(want.get(key), got.get(key), "crash after {k}: {key}");
        }
    }
}

#[test]
fn a_cluster_deleted_by_hand_keeps_its_replicas_until_its_copies_are_accounted_for() {
    for restart in [false, true] {
        let mut world = world(&["member1", "member2"], &[workload(9), placed(&divided())]);
        world.set_down("member1", true);
        world.delete("Cluster", "member1");
        if restart {
            world.restart();
        }
        assert!(world.settle_for(120_000));
        // Whether the copy still runs there is not known, so it is not begun elsewhere, too.
        assert_eq!(shares(&world), [("member1", 3, 3), ("member2", 6, 6)]);
        let cluster = world.hub_object("Cluster", "member1").expect("it stays");
        let conditions = cluster["status"]["conditions"].as_array().expect("conditions");
        let reported = |type_: &str| {
            conditions
                .iter()
                .find(|each| each["type"] == type_)
                .expect("reported")
        };
        assert_eq!(reported("Ready")["status"], "False");
        let released = reported("Released");
        assert_eq!(
            (&released["status"], &released["reason"]),
            (&json!("False"), &json!("CopiesUnknown"))
        );
        let message = released["message"].as_str().expect("message");
        assert!(message.contains("entourage unjoin member1 --force"), "{message}");

        world.set_down("member1", false);
        assert!(world.settle_for(120_000));
        assert!(
            world.hub_object("Cluster", "member1").is_none(),
            "restart: {restart}"
        );
        let clusters = &binding(&world, "myapp-deployment")["spec"]["clusters"];
        assert_eq!(*clusters, json!([{"name": "member2", "replicas": 9}]));
        let copy = world.on("member1", "Deployment", "myapp").expect("released");
        assert_eq!(copy["metadata"]["labels"]["entourage.dev/hub"], Value::Null);
    }
}

#[test]
fn a_cluster_that_leaves_gets_nothing_new() {
    let mut world = world(&["member1", "member2"], &[]);
    world.set_down("member1", true);
    world.delete("Cluster", "member1");
    world.apply(workload(9));
    world.apply(placed(&divided()));
    assert!(world.settle_for(120_000));
    assert_eq!(shares(&world), [("member2", 9, 9)]);
}

#[test]
fn a_change_of_a_cluster_plans_only_the_bindings_whose_result_it_can_change() {
    let mut world = World::new(&["member1", "member2"]);
    world.apply(workload(4));
    world.apply(placed(&json!({"clusterAffinity": {"clusterNames": ["member1"]}})));
    world.apply(deployment("other", &[]));
    let mut other = policy_of("other", "apps/v1", "Deployment", "other", &[]);
    other["spec"]["placement"] =
        json!({"clusterAffinity": {"labelSelector": {"matchLabels": {"tier": "1"}}}});
    world.apply(other);
    assert!(world.settle());
    let planned = |world: &mut World, cluster: &str, change: &dyn Fn(&mut Value)| {
        let mut object = world.hub_object("Cluster", cluster).cloned().unwrap();
        change(&mut object);
        world.replace(object);
        let bindings = world.process.queue.iter().filter_map(|key| match key {
            Key::Binding(id) => Some(id.name.to_string()),
            _ => None,
        });
        let bindings: Vec<String> = bindings.collect();
        assert!(world.settle());
        bindings
    };
    let label = |key: &'static str| move |object: &mut Value| object["metadata"]["labels"][key] = json!("1");
    let taint = |object: &mut Value| object["spec"]["taints"] = json!([{"key": "a", "effect": "NoSchedule"}]);
    // A target, and a label that no placement reads.
    assert_eq!(planned(&mut world, "member1", &label("team")), ["other"; 0]);
    // A label that one of them reads; it waits for a cluster.
    assert_eq!(planned(&mut world, "member2", &label("tier")), ["other"]);
    assert_eq!(world.holders("Deployment", "other"), ["member2"]);
    assert_eq!(planned(&mut world, "member1", &taint), ["myapp"]);
}
