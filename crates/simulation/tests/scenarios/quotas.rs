//! FederatedResourceQuotas: their ResourceQuotas on members, what is reported of them, and workloads that would exceed one.

use entourage_api::keys::finalizer;
use entourage_core::{object::NamespacedName, observation::Watch, plan::Key, refusal};
use serde_json::{Value, json};

use super::{
    binding, condition, deployment, policy_of,
    world::{Random, World},
};

const QUOTA: &str = "ResourceQuota";

fn quota(overall: &Value, assignments: &[(&str, &Value)]) -> Value {
    let assignments: Vec<Value> = assignments
        .iter()
        .map(|(cluster, hard)| json!({"clusterName": cluster, "hard": hard}))
        .collect();
    json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "FederatedResourceQuota", "metadata": {"name": "team"},
        "spec": {"overall": overall, "staticAssignments": assignments},
    })
}

/// Three clusters with the namespace of the quota.
fn world() -> World {
    let mut world = World::new(&["member1", "member2", "member3"]);
    for member in ["member1", "member2", "member3"] {
        give_namespace(&mut world, member);
    }
    assert!(world.settle());
    world
}

fn give_namespace(world: &mut World, member: &str) {
    world.meddle(member, "Namespace", "default", |_| {
        Some(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}))
    });
}

/// The quota controller of a member reports what is used.
fn report(world: &mut World, member: &str, used: &Value) {
    world.meddle(member, QUOTA, "team", |held| {
        let mut held = held;
        held["status"] = json!({"hard": held["spec"]["hard"], "used": used});
        Some(held)
    });
    settle(world);
}

fn settle(world: &mut World) {
    assert!(world.settle_for(10_000));
}

fn hard(world: &World, member: &str) -> Value {
    let held = world.on(member, QUOTA, "team");
    held.map_or(Value::Null, |held| held["spec"]["hard"].clone())
}

fn object(world: &World) -> &Value {
    world.hub_object("FederatedResourceQuota", "team").expect("quota")
}

fn events(world: &World) -> Vec<&str> {
    let all = world.events.iter().map(String::as_str);
    all.filter(|event| event.contains("FederatedResourceQuota"))
        .collect()
}

fn assigned() -> World {
    let mut world = world();
    let overall = json!({"cpu": "10", "memory": "10Gi"});
    world.apply(quota(
        &overall,
        &[
            ("member2", &json!({"cpu": "6"})),
            ("member1", &json!({"cpu": "4", "memory": "4Gi"})),
        ],
    ));
    settle(&mut world);
    world
}

#[test]
fn each_assignment_is_a_resource_quota_on_its_cluster_whose_use_is_reported() {
    let mut world = assigned();
    assert_eq!(hard(&world, "member1"), json!({"cpu": "4", "memory": "4Gi"}));
    assert_eq!(hard(&world, "member2"), json!({"cpu": "6"}));
    assert_eq!(hard(&world, "member3"), Value::Null);
    report(&mut world, "member1", &json!({"cpu": "1500m", "memory": "1Gi"}));
    report(&mut world, "member2", &json!({"cpu": "2"}));
    assert_eq!(
        object(&world)["status"],
        json!({
            "overall": {"cpu": "10", "memory": "10Gi"},
            "overallUsed": {"cpu": "3500m", "memory": "1Gi"},
            "aggregatedStatus": [
                {"clusterName": "member1", "hard": {"cpu": "4", "memory": "4Gi"}, "used": {"cpu": "1500m", "memory": "1Gi"}},
                {"clusterName": "member2", "hard": {"cpu": "6"}, "used": {"cpu": "2"}},
            ],
        })
    );
    let reasons: Vec<bool> = [
        "SyncFederatedResourceQuotaSucceed",
        "OverallStatusSucceed",
        "QuotaStatusSucceed",
    ]
    .iter()
    .map(|reason| {
        events(&world)
            .iter()
            .filter(|event| event.contains(reason))
            .count()
            == 1
    })
    .collect();
    assert_eq!(reasons, [true; 3], "{:#?}", events(&world));
}

#[test]
fn a_settled_quota_writes_nothing_also_after_a_restart() {
    let mut world = assigned();
    report(&mut world, "member1", &json!({"cpu": "1"}));
    let (wrote, reported) = (world.writes.len(), world.events.len());
    assert!(world.settle_for(120_000));
    world.restart();
    assert!(world.settle_for(120_000));
    assert_eq!(world.writes.len(), wrote, "{:#?}", &world.writes[wrote..]);
    assert_eq!(world.events.len(), reported, "{:#?}", &world.events[reported..]);
}

#[test]
fn an_assignment_that_ends_and_a_deleted_quota_take_their_resource_quotas_along() {
    let mut world = assigned();
    world.apply(quota(
        &json!({"cpu": "10"}),
        &[
            ("member2", &json!({"cpu": "5"})),
            ("member3", &json!({"cpu": "1"})),
        ],
    ));
    settle(&mut world);
    assert_eq!(world.holders(QUOTA, "team"), ["member2", "member3"]);
    assert_eq!(hard(&world, "member2"), json!({"cpu": "5"}));
    let listed = object(&world)["status"]["aggregatedStatus"]
        .as_array()
        .expect("list")
        .len();
    assert_eq!(listed, 2);
    // While we were down.
    world.delete("FederatedResourceQuota", "team");
    world.restart();
    settle(&mut world);
    assert!(world.holders(QUOTA, "team").is_empty());
    assert!(world.hub_object("FederatedResourceQuota", "team").is_none());
}

#[test]
fn without_assignments_a_quota_has_no_finalizer_any_more() {
    let mut world = assigned();
    assert_eq!(
        object(&world)["metadata"]["finalizers"],
        json!(["entourage.dev/federated-quota"])
    );
    world.apply(quota(&json!({"cpu": "10"}), &[]));
    settle(&mut world);
    assert!(world.holders(QUOTA, "team").is_empty());
    assert!(
        object(&world)["metadata"]["finalizers"]
            .as_array()
            .is_none_or(Vec::is_empty)
    );
    assert_eq!(object(&world)["status"]["aggregatedStatus"], Value::Null);
}

#[test]
fn a_resource_quota_of_another_is_never_changed_nor_deleted() {
    let mut world = world();
    let foreign = json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "team", "labels": {"whose": "theirs"}},
        "spec": {"hard": {"cpu": "1"}},
    });
    // One copied from another cluster, with its metadata.
    let copied = json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {
            "name": "team", "labels": {"entourage.dev/federated-quota": world.process.engine.config.hub.to_string()},
            "annotations": {"entourage.dev/federated-quota-for": "member9/default/team"}},
        "spec": {"hard": {"cpu": "1"}},
    });
    world.meddle("member1", QUOTA, "team", |_| Some(foreign));
    world.meddle("member2", QUOTA, "team", |_| Some(copied));
    let half = json!({"cpu": "2"});
    world.apply(quota(
        &json!({"cpu": "4"}),
        &[("member1", &half), ("member2", &half)],
    ));
    settle(&mut world);
    for member in ["member1", "member2"] {
        assert_eq!(hard(&world, member), json!({"cpu": "1"}));
    }
    let failed: Vec<&str> = events(&world)
        .into_iter()
        .filter(|event| event.contains("SyncFederatedResourceQuotaFailed"))
        .collect();
    assert!(
        failed.len() == 1 && failed[0].contains("already exists on member1"),
        "{failed:#?}"
    );
    world.delete("FederatedResourceQuota", "team");
    settle(&mut world);
    assert_eq!(world.holders(QUOTA, "team"), ["member1", "member2"]);
    assert!(world.hub_object("FederatedResourceQuota", "team").is_none());
}

#[test]
fn a_resource_quota_that_is_edited_or_deleted_by_hand_is_restored() {
    let mut world = assigned();
    world.meddle("member1", QUOTA, "team", |held| {
        let mut held = held;
        held["spec"] = json!({"hard": {"cpu": "400"}, "scopes": ["BestEffort"]});
        held["metadata"]["labels"]["theirs"] = json!("stays");
        Some(held)
    });
    world.meddle("member2", QUOTA, "team", |_| None);
    settle(&mut world);
    assert_eq!(
        world.on("member1", QUOTA, "team").expect("quota")["spec"],
        json!({"hard": {"cpu": "4", "memory": "4Gi"}})
    );
    assert_eq!(
        world.on("member1", QUOTA, "team").expect("quota")["metadata"]["labels"]["theirs"],
        "stays"
    );
    assert_eq!(hard(&world, "member2"), json!({"cpu": "6"}));
}

#[test]
fn a_cluster_that_joins_gets_its_resource_quota_when_it_has_the_namespace_and_loses_it_when_it_leaves() {
    let mut world = world();
    let half = json!({"cpu": "2"});
    world.apply(quota(
        &json!({"cpu": "4"}),
        &[("member1", &half), ("member4", &half)],
    ));
    settle(&mut world);
    assert_eq!(
        object(&world)["status"]["aggregatedStatus"]
            .as_array()
            .expect("list")
            .len(),
        1
    );
    world.members.insert("member4".into(), Default::default());
    world.apply(json!({
        "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": "member4"},
        "spec": {"syncMode": "Push", "apiEndpoint": "https://x"},
    }));
    world.set_down("member4", false);
    settle(&mut world);
    assert!(world.on("member4", QUOTA, "team").is_none());
    give_namespace(&mut world, "member4");
    settle(&mut world);
    assert_eq!(hard(&world, "member4"), half);
    world.delete("Cluster", "member4");
    settle(&mut world);
    assert!(world.on("member4", QUOTA, "team").is_none());
    assert!(world.hub_object("Cluster", "member4").is_none());
    assert_eq!(
        object(&world)["status"]["aggregatedStatus"]
            .as_array()
            .expect("list")
            .len(),
        1
    );
}

#[test]
fn a_quota_waits_for_a_cluster_of_which_nothing_is_known() {
    let mut world = assigned();
    world.set_down("member1", true);
    world.delete("FederatedResourceQuota", "team");
    world.shut.insert(Watch::QuotaCopies("member1".into()));
    world.restart();
    settle(&mut world);
    assert!(world.hub_object("FederatedResourceQuota", "team").is_some());
    assert_eq!(world.holders(QUOTA, "team"), ["member1"]);
    world.shut.clear();
    world.set_down("member1", false);
    settle(&mut world);
    assert!(world.holders(QUOTA, "team").is_empty());
    assert!(world.hub_object("FederatedResourceQuota", "team").is_none());
}

#[test]
fn a_status_that_the_hub_refuses_is_reported_on_the_quota() {
    let mut world = assigned();
    let key = Key::Quota(NamespacedName::new("default", "team"));
    let refused =
        |world: &World| refusal::event(&world.process.engine, &key, "no rights").expect("the quota is known");
    assert_eq!(
        refused(&world).reason,
        "CollectFederatedResourceQuotaStatusFailed"
    );
    world.apply(quota(&json!({"cpu": "10"}), &[]));
    settle(&mut world);
    let event = refused(&world);
    assert_eq!(event.reason, "CollectFederatedResourceQuotaOverallStatusFailed");
    assert!(
        event.message.contains("its status: no rights"),
        "{}",
        event.message
    );
}

#[test]
fn an_assignment_that_is_taken_off_while_the_controllers_are_down_leaves_nothing_after_any_crash() {
    let mut at = 1;
    loop {
        let mut world = world();
        world.apply(quota(&json!({"cpu": "4"}), &[("member1", &json!({"cpu": "2"}))]));
        world.crash_in = Some(at);
        let crashed = !world.settle_for(10_000);
        world.crash_in = None;
        world.apply(quota(&json!({"cpu": "4"}), &[]));
        if crashed {
            world.restart();
        }
        settle(&mut world);
        assert!(world.holders(QUOTA, "team").is_empty(), "after {at} changes");
        if !crashed {
            break;
        }
        at += 1;
    }
    assert!(at > 3, "{at}");
}

#[test]
fn a_resource_quota_is_written_only_when_the_status_accounts_for_it() {
    let mut world = world();
    let mut given = quota(&json!({"cpu": "4"}), &[("member1", &json!({"cpu": "2"}))]);
    // The ResourceQuotas of member1 are known because of another one.
    let mut other = given.clone();
    other["metadata"]["name"] = json!("other");
    world.apply(other);
    settle(&mut world);
    given["metadata"]["finalizers"] = json!([finalizer::QUOTA]);
    world.apply(given);
    let key = Key::QuotaCopy(NamespacedName::new("default", "team"), "member1".into());
    let now = world.now;
    let plan = world.process.engine.plan(&key, now);
    assert_eq!(plan.changes, [], "{plan:?}");
    settle(&mut world);
    assert_eq!(world.holders(QUOTA, "team"), ["member1"]);
}

#[test]
fn nothing_is_deleted_because_of_a_quota_that_is_not_synced() {
    let mut world = assigned();
    world.set_down("member1", true);
    world.apply(quota(&json!({"cpu": "4"}), &[]));
    settle(&mut world);
    world.lose(Watch::Quotas);
    world.apply(quota(&json!({"cpu": "4"}), &[("member1", &json!({"cpu": "2"}))]));
    world.set_down("member1", false);
    settle(&mut world);
    assert_eq!(world.holders(QUOTA, "team"), ["member1"]);
    world.shut.clear();
    settle(&mut world);
    assert_eq!(world.holders(QUOTA, "team"), ["member1"]);
}

/// A crash after any change leads to the same end.
#[test]
fn a_crash_after_any_change_of_a_quota_leads_to_the_same_end() {
    let run = |crash: Option<usize>| {
        let mut world = world();
        world.crash_in = crash;
        let mut crashed = false;
        let mut settled = |world: &mut World| {
            while !world.settle_for(10_000) {
                crashed = true;
                world.restart();
            }
        };
        let half = json!({"cpu": "2"});
        world.apply(quota(
            &json!({"cpu": "4"}),
            &[("member1", &half), ("member2", &half)],
        ));
        settled(&mut world);
        world.apply(quota(&json!({"cpu": "4"}), &[("member2", &json!({"cpu": "1"}))]));
        settled(&mut world);
        let middle = world.outline();
        world.delete("FederatedResourceQuota", "team");
        settled(&mut world);
        (middle, world.outline(), crashed)
    };
    let (middle, end, _) = run(None);
    let mut at = 1;
    loop {
        let (crashed_middle, crashed_end, crashed) = run(Some(at));
        assert_eq!(crashed_middle, middle, "after {at} changes");
        assert_eq!(crashed_end, end, "after {at} changes");
        if !crashed {
            break;
        }
        at += 1;
    }
    assert!(at > 5, "{at}");
}

// --- enforcement

fn enforcing() -> World {
    let mut world = world();
    world.process.engine.config_mut().enforce_quotas = true;
    world.restart();
    settle(&mut world);
    world
}

fn workload(name: &str, replicas: i64, cpu: &str) -> Value {
    let mut object = deployment(name, &[]);
    object["spec"]["replicas"] = json!(replicas);
    object["spec"]["template"]["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": cpu}});
    object
}

fn duplicated(name: &str, clusters: &[&str]) -> Value {
    policy_of(name, "apps/v1", "Deployment", name, clusters)
}

fn scheduled(world: &World, name: &str) -> Value {
    binding(world, &format!("{name}-deployment"))["spec"]["clusters"].clone()
}

fn why(world: &World, name: &str) -> (String, String) {
    let condition = condition(world, &format!("{name}-deployment"), "Scheduled");
    let text = |field: &str| condition[field].as_str().unwrap_or_default().to_owned();
    (text("reason"), text("message"))
}

fn used(world: &World) -> &Value {
    &object(world)["status"]["overallUsed"]
}

#[test]
fn what_bindings_request_on_all_clusters_is_the_overall_use() {
    let mut world = world();
    world.apply(quota(&json!({"cpu": "10", "memory": "1Gi"}), &[]));
    settle(&mut world);
    assert_eq!(*used(&world), json!({"cpu": "0", "memory": "0"}));
    world.apply(workload("a", 2, "500m"));
    world.apply(duplicated("a", &["member1", "member2", "member3"]));
    settle(&mut world);
    assert_eq!(*used(&world), json!({"cpu": "3", "memory": "0"}));
    // It is reported, and not enforced.
    world.apply(workload("a", 20, "500m"));
    settle(&mut world);
    assert_eq!(*used(&world), json!({"cpu": "30", "memory": "0"}));
    world.delete("Deployment", "a");
    settle(&mut world);
    assert_eq!(*used(&world), json!({"cpu": "0", "memory": "0"}));
}

#[test]
fn a_workload_beyond_the_quota_waits_until_there_is_enough() {
    let mut world = enforcing();
    world.apply(quota(&json!({"cpu": "4"}), &[]));
    for name in ["a", "b"] {
        world.apply(workload(name, 3, "1"));
        world.apply(duplicated(name, &["member1"]));
    }
    settle(&mut world);
    let (first, second) = match scheduled(&world, "a").is_null() {
        true => ("b", "a"),
        false => ("a", "b"),
    };
    assert_eq!(
        scheduled(&world, first),
        json!([{"name": "member1", "replicas": 3}])
    );
    assert_eq!(
        scheduled(&world, second),
        Value::Null,
        "both were planned at once"
    );
    let exceeded =
        "FederatedResourceQuota(default/team) exceeded for resource cpu: requested sum 6, limit 4."
            .to_owned();
    assert_eq!(why(&world, second), ("QuotaExceeded".to_owned(), exceeded));
    assert_eq!(*used(&world), json!({"cpu": "3"}));
    assert!(world.on("member1", "Deployment", second).is_none());
    // A restart changes nothing.
    let wrote = world.writes.len();
    world.restart();
    assert!(world.settle_for(120_000));
    assert_eq!(world.writes.len(), wrote, "{:#?}", &world.writes[wrote..]);
    // Less is used: it is scheduled.
    world.apply(workload(first, 1, "1"));
    settle(&mut world);
    assert_eq!(
        scheduled(&world, second),
        json!([{"name": "member1", "replicas": 3}])
    );
    assert_eq!(why(&world, second).0, "Success");
    assert_eq!(*used(&world), json!({"cpu": "4"}));
}

#[test]
fn a_larger_quota_or_none_lets_it_go_on() {
    for larger in [true, false] {
        let mut world = enforcing();
        world.apply(quota(&json!({"cpu": "2"}), &[]));
        world.apply(workload("a", 3, "1"));
        world.apply(duplicated("a", &["member1"]));
        settle(&mut world);
        assert_eq!(
            (scheduled(&world, "a"), &*why(&world, "a").0),
            (Value::Null, "QuotaExceeded")
        );
        if larger {
            world.apply(quota(&json!({"cpu": "3"}), &[]));
        } else {
            world.delete("FederatedResourceQuota", "team");
        }
        settle(&mut world);
        assert_eq!(
            scheduled(&world, "a"),
            json!([{"name": "member1", "replicas": 3}])
        );
    }
}

#[test]
fn a_workload_that_grows_beyond_the_quota_keeps_what_it_has() {
    let mut world = enforcing();
    world.apply(quota(&json!({"cpu": "4"}), &[]));
    world.apply(workload("a", 2, "1"));
    world.apply(duplicated("a", &["member1", "member2"]));
    settle(&mut world);
    world.apply(workload("a", 3, "1"));
    settle(&mut world);
    let kept = json!([{"name": "member1", "replicas": 2}, {"name": "member2", "replicas": 2}]);
    assert_eq!(
        (scheduled(&world, "a"), &*why(&world, "a").0),
        (kept, "QuotaExceeded")
    );
    assert_eq!(
        world.on("member1", "Deployment", "a").expect("copy")["spec"]["replicas"],
        2
    );
    // A quota that is lowered takes nothing away, and nothing that needs no more is stopped.
    world.apply(workload("a", 2, "1"));
    world.apply(quota(&json!({"cpu": "1"}), &[]));
    settle(&mut world);
    assert_eq!(why(&world, "a").0, "Success");
    world.apply(workload("a", 1, "1"));
    settle(&mut world);
    assert_eq!(*used(&world), json!({"cpu": "2"}));
    // A wider placement needs more.
    world.apply(duplicated("a", &["member1", "member2", "member3"]));
    settle(&mut world);
    assert_eq!(why(&world, "a").0, "QuotaExceeded");
    assert_eq!(scheduled(&world, "a").as_array().expect("list").len(), 2);
}

#[test]
fn a_move_within_the_quota_is_made() {
    let mut world = enforcing();
    world.apply(quota(&json!({"cpu": "3"}), &[]));
    world.apply(workload("a", 3, "1"));
    world.apply(duplicated("a", &["member1"]));
    settle(&mut world);
    world.apply(duplicated("a", &["member2"]));
    settle(&mut world);
    assert_eq!(world.holders("Deployment", "a"), ["member2"]);
    assert_eq!(*used(&world), json!({"cpu": "3"}));
}

/// Whatever is edited, and whatever is under way meanwhile: what is stored never exceeds the quota.
#[test]
fn a_burst_of_edits_never_exceeds_the_quota() {
    const LIMIT: i64 = 10;
    for seed in 0..12 {
        let mut random = Random::new(seed);
        let mut world = enforcing();
        world.overlaps = seed % 2 == 0;
        world.apply(quota(&json!({"cpu": LIMIT.to_string()}), &[]));
        settle(&mut world);
        let names: Vec<String> = (0..5).map(|at| format!("w{at}")).collect();
        for name in &names {
            world.apply(duplicated(name, &["member1", "member2"]));
        }
        for step in 0..15 {
            for _ in 0..=random.below(2) {
                let name = &names[random.below(names.len())];
                match random.below(5) {
                    0 if world.hub_object("Deployment", name).is_some() => world.delete("Deployment", name),
                    _ => {
                        let replicas = i64::try_from(random.below(4)).expect("small");
                        world.apply(workload(name, replicas, "1"));
                    }
                }
            }
            if random.below(4) == 0 {
                world.restart();
            }
            settle(&mut world);
            let used: i64 = names
                .iter()
                .filter_map(|name| world.hub_object("ResourceBinding", &format!("{name}-deployment")))
                .flat_map(|binding| binding["spec"]["clusters"].as_array().into_iter().flatten())
                .filter_map(|target| target["replicas"].as_i64())
                .sum();
            assert!(used <= LIMIT, "seed {seed}, step {step}: {used}");
            assert_eq!(
                *used_now(&world),
                json!({"cpu": used.to_string()}),
                "seed {seed}, step {step}"
            );
            for name in &names {
                for member in ["member1", "member2"] {
                    let on = world.on(member, "Deployment", name);
                    let runs = on.map_or(0, |copy| copy["spec"]["replicas"].as_i64().unwrap_or_default());
                    let allowed = scheduled_on(&world, name, member);
                    assert_eq!(runs, allowed, "seed {seed}, step {step}: {name} on {member}");
                }
            }
        }
    }
}

fn used_now(world: &World) -> &Value {
    used(world)
}

fn scheduled_on(world: &World, name: &str, member: &str) -> i64 {
    let binding = world.hub_object("ResourceBinding", &format!("{name}-deployment"));
    let clusters = binding.and_then(|binding| binding["spec"]["clusters"].as_array());
    let mut targets = clusters.into_iter().flatten();
    let target = targets.find(|target| target["name"] == member);
    target.map_or(0, |target| target["replicas"].as_i64().unwrap_or_default())
}
