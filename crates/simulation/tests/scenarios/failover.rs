//! Failover: a workload leaves a cluster whose NoExecute taint it does not tolerate, its dependencies arrive before it on the
//! replacement, and stay on the old cluster as long as it does.

use entourage_core::{
    object::{Gvk, ResourceId, Time},
    plan::Key,
};
use serde_json::{Value, json};

use crate::{binding, condition, config_map, deployment, policy_of, world::World};

pub(crate) const MEMBERS: [&str; 3] = ["member1", "member2", "member3"];
pub(crate) const BINDING: &str = "web-deployment";

pub(crate) fn policy() -> Value {
    let mut policy = policy_of("web", "apps/v1", "Deployment", "web", &MEMBERS);
    policy["spec"]["placement"]["spreadConstraints"] =
        json!([{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}]);
    policy
}

pub(crate) fn purging(mode: &str) -> Value {
    let mut policy = policy();
    policy["spec"]["failover"] = json!({"cluster": {"purgeMode": mode}});
    policy
}

pub(crate) fn application(mode: &str, seconds: i64) -> Value {
    let mut policy = policy();
    policy["spec"]["failover"] = json!({"application": {
        "decisionConditions": {"tolerationSeconds": 30}, "purgeMode": mode, "gracePeriodSeconds": seconds,
    }});
    policy
}

/// A workload with a ConfigMap on member1, healthy there.
pub(crate) fn settled(policy: &Value) -> World {
    let mut world = World::new(&MEMBERS);
    assert!(world.settle());
    world.apply(config_map("settings", "one"));
    world.apply(deployment("web", &["settings"]));
    world.apply(policy.clone());
    assert!(world.settle());
    assert_eq!(clusters(&world), ["member1"]);
    report(&mut world, "member1", 1);
    assert!(world.settle());
    world
}

/// The report of a member's controllers on the workload: so many replicas of one are ready.
pub(crate) fn report(world: &mut World, member: &str, ready: i64) {
    report_of(world, member, "web", ready);
}

pub(crate) fn report_of(world: &mut World, member: &str, name: &str, ready: i64) {
    world.meddle(member, "Deployment", name, |mut object| {
        object["status"] = json!({
            "observedGeneration": object["metadata"]["generation"], "replicas": 1, "updatedReplicas": 1,
            "readyReplicas": ready, "availableReplicas": ready,
        });
        Some(object)
    });
}

pub(crate) fn taint(world: &mut World, member: &str, taints: &Value) {
    let mut object = world.hub_object("Cluster", member).cloned().expect("cluster");
    object["spec"]["taints"] = taints.clone();
    world.replace(object);
}

pub(crate) fn no_execute(world: &World) -> Value {
    json!([{"key": "broken", "effect": "NoExecute", "timeAdded": time(world.now)}])
}

pub(crate) fn time(time: Time) -> Value {
    serde_json::to_value(time.to_k8s()).expect("time")
}

pub(crate) fn clusters(world: &World) -> Vec<&str> {
    names(&binding(world, BINDING)["spec"]["clusters"], "name")
}

pub(crate) fn evicted(world: &World) -> Vec<&str> {
    names(
        &binding(world, BINDING)["spec"]["gracefulEvictionTasks"],
        "fromCluster",
    )
}

pub(crate) fn names<'a>(list: &'a Value, field: &str) -> Vec<&'a str> {
    let all = list.as_array().into_iter().flatten();
    all.filter_map(|each| each[field].as_str()).collect()
}

pub(crate) fn write(world: &World, since: usize, text: &str) -> usize {
    let writes = &world.writes[since..];
    let found = writes.iter().position(|each| each.contains(text));
    found.unwrap_or_else(|| panic!("no write of {text:?} in {writes:#?}"))
}

#[test]
fn a_workload_leaves_a_tainted_cluster_when_its_replacement_is_healthy() {
    let mut world = settled(&policy());
    let wrote = world.writes.len();
    let taints = no_execute(&world);
    taint(&mut world, "member1", &taints);
    assert!(world.settle());
    assert_eq!(clusters(&world), ["member2"]);
    let tasks = &binding(&world, BINDING)["spec"]["gracefulEvictionTasks"];
    let reported = json!([{
        "fromCluster": "member1", "purgeMode": "Gracefully", "replicas": 1, "reason": "TaintUntolerated",
        "message": "the taint {broken:NoExecute} of member1 is not tolerated", "producer": "TaintManager",
        "creationTimestamp": tasks[0]["creationTimestamp"], "clustersBeforeFailover": ["member1"],
    }]);
    assert_eq!(*tasks, reported);
    assert_eq!(world.holders("Deployment", "web"), ["member1", "member2"]);
    assert_eq!(world.holders("ConfigMap", "settings"), ["member1", "member2"]);
    let attached = binding(&world, "settings-configmap");
    assert_eq!(
        names(&attached["spec"]["requiredBy"][0]["clusters"], "name"),
        ["member1", "member2"]
    );
    let evicting = condition(&world, BINDING, "Evicting");
    assert_eq!(
        (&evicting["status"], &evicting["message"]),
        (
            &json!("True"),
            &json!(
                "Evicted from member1 (the taint {broken:NoExecute} of member1 is not tolerated); the copy there is \
                 kept: \
                 waits until the copy on member2 is healthy"
            )
        )
    );
    let config = write(&world, wrote, "member2 POST ConfigMap");
    assert!(config < write(&world, wrote, "member2 POST Deployment"));
    let begun = world
        .events
        .iter()
        .filter(|each| each.starts_with("EvictWorkloadFromClusterSucceed"));
    assert_eq!(begun.count(), 2, "{:#?}", world.events);

    report(&mut world, "member2", 1);
    assert!(world.settle());
    assert_eq!(world.holders("Deployment", "web"), ["member2"]);
    assert_eq!(world.holders("ConfigMap", "settings"), ["member2"]);
    assert!(evicted(&world).is_empty());
    assert!(condition(&world, BINDING, "Evicting").is_null());
    let workload = write(&world, wrote, "member1 Delete Deployment");
    assert!(workload < write(&world, wrote, "member1 Delete ConfigMap"));

    let wrote = world.writes.len();
    world.restart();
    assert!(world.settle_for(3_600_000));
    assert_eq!(world.writes[wrote..], [""; 0]);
}

#[test]
fn a_workload_stays_where_no_other_cluster_fits_and_says_so() {
    let mut policy = policy();
    policy["spec"]["placement"]["clusterAffinity"] = json!({"clusterNames": ["member1"]});
    let mut world = settled(&policy);
    let taints = no_execute(&world);
    taint(&mut world, "member1", &taints);
    assert!(world.settle_for(3_600_000));
    assert_eq!(clusters(&world), ["member1"]);
    assert!(evicted(&world).is_empty());
    assert_eq!(world.holders("Deployment", "web"), ["member1"]);
    assert_eq!(world.holders("ConfigMap", "settings"), ["member1"]);
    let blocked = condition(&world, BINDING, "EvictionBlocked");
    assert_eq!(blocked["status"], "True");
    assert_eq!(
        blocked["message"],
        "It is to be evicted from member1 (taint {broken:NoExecute} is not tolerated), and stays, because no replacement can \
         be scheduled: 0 of 3 clusters fit: 2 not selected by clusterAffinity, 1 that it is being evicted from"
    );
    let failed = |world: &World| {
        let events = world.events.iter();
        events
            .filter(|each| each.starts_with("EvictWorkloadFromClusterFailed"))
            .count()
    };
    assert_eq!(failed(&world), 1, "{:#?}", world.events);
    let wrote = world.writes.len();
    world.restart();
    assert!(world.settle_for(3_600_000));
    assert_eq!(world.writes[wrote..], [""; 0]);
    taint(&mut world, "member1", &json!([]));
    assert!(world.settle());
    assert!(condition(&world, BINDING, "EvictionBlocked").is_null());
    assert_eq!(failed(&world), 1);
}

#[test]
fn a_limited_toleration_ends_so_long_after_the_taint_was_added() {
    let mut policy = policy();
    policy["spec"]["placement"]["clusterTolerations"] = json!([
        {"key": "broken", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
        {"key": "cluster.karmada.io/not-ready", "operator": "Exists"},
    ]);
    let mut world = settled(&policy);
    let taints = no_execute(&world);
    taint(&mut world, "member1", &taints);
    let added = world.now;
    assert!(world.settle_for(290_000));
    world.now = added.plus(290_000);
    world.restart();
    assert!(world.settle_for(1_000));
    assert_eq!(clusters(&world), ["member1"]);
    assert!(world.settle_for(20_000));
    assert_eq!(clusters(&world), ["member2"]);
    assert_eq!(evicted(&world), ["member1"]);
}

#[test]
fn with_the_gate_off_nothing_is_evicted() {
    let mut world = settled(&policy());
    world.process.engine.config_mut().failover = false;
    let taints = no_execute(&world);
    taint(&mut world, "member1", &taints);
    assert!(world.settle_for(3_600_000));
    assert_eq!(clusters(&world), ["member1"]);
    assert!(evicted(&world).is_empty());
}

#[test]
fn the_grace_period_ends_but_never_with_the_last_healthy_copy() {
    let mut world = settled(&policy());
    let taints = no_execute(&world);
    taint(&mut world, "member1", &taints);
    assert!(world.settle_for(3_600_000));
    assert_eq!(world.holders("Deployment", "web"), ["member1", "member2"]);
    let reported = condition(&world, BINDING, "Evicting")["message"]
        .as_str()
        .unwrap_or_default();
    assert!(reported.contains("the last healthy copy"), "{reported}");
    report(&mut world, "member1", 0);
    assert!(world.settle());
    assert_eq!(world.holders("Deployment", "web"), ["member2"]);
    assert_eq!(world.holders("ConfigMap", "settings"), ["member2"]);
    assert!(evicted(&world).is_empty());
}

#[test]
fn what_is_purged_directly_is_deleted_before_its_replacement_is_made() {
    let mut world = settled(&purging("Directly"));
    let wrote = world.writes.len();
    let taints = no_execute(&world);
    taint(&mut world, "member1", &taints);
    assert!(world.settle());
    assert_eq!(world.holders("Deployment", "web"), ["member2"]);
    assert_eq!(world.holders("ConfigMap", "settings"), ["member2"]);
    let gone = write(&world, wrote, "member1 Delete Deployment");
    assert!(gone < write(&world, wrote, "member2 POST Deployment"));
    assert!(gone < write(&world, wrote, "member1 Delete ConfigMap"));
    assert!(evicted(&world).is_empty());
}

#[test]
fn a_copy_that_is_never_purged_waits_for_a_users_word() {
    let mut world = settled(&application("Never", 600));
    report(&mut world, "member1", 0);
    assert!(world.settle_for(60_000));
    assert_eq!(clusters(&world), ["member2"]);
    report(&mut world, "member2", 1);
    assert!(world.settle_for(3_600_000));
    assert_eq!(world.holders("Deployment", "web"), ["member1", "member2"]);
    assert_eq!(world.holders("ConfigMap", "settings"), ["member1", "member2"]);
    let mut object = binding(&world, BINDING).clone();
    let task = &mut object["spec"]["gracefulEvictionTasks"][0];
    assert_eq!(task["suppressDeletion"], json!(true));
    assert_eq!(task["purgeMode"], "Never");
    task["suppressDeletion"] = json!(false);
    world.replace(object);
    assert!(world.settle());
    assert_eq!(world.holders("Deployment", "web"), ["member2"]);
    assert_eq!(world.holders("ConfigMap", "settings"), ["member2"]);
    assert!(evicted(&world).is_empty());
}

#[test]
fn a_cluster_that_recovers_in_time_gets_its_workload_back() {
    let mut world = settled(&policy());
    let taints = no_execute(&world);
    taint(&mut world, "member1", &taints);
    assert!(world.settle());
    assert_eq!(clusters(&world), ["member2"]);
    taint(&mut world, "member1", &json!([]));
    assert!(world.settle());
    assert_eq!(clusters(&world), ["member1"]);
    assert!(evicted(&world).is_empty());
    assert_eq!(world.holders("Deployment", "web"), ["member1"]);
    assert_eq!(world.holders("ConfigMap", "settings"), ["member1"]);
    let deleted = world.writes.iter().any(|each| each.contains("member1 Delete"));
    assert!(!deleted, "{:#?}", world.writes);
}

#[test]
fn a_copy_that_is_given_back_while_it_is_being_removed_replaces_nothing() {
    let mut world = settled(&policy());
    let taints = no_execute(&world);
    taint(&mut world, "member1", &taints);
    assert!(world.settle());
    report(&mut world, "member2", 1);
    let workload = ResourceId::new(Gvk::new("apps/v1", "Deployment"), "default", "web");
    let removal = world.begin(&Key::Copy(workload, "member1".into()));
    assert!(removal.removes(), "the replacement is healthy");
    // The cluster recovers, the replacement fails, and the old copy looks healthy still.
    taint(&mut world, "member1", &json!([]));
    report(&mut world, "member2", 0);
    assert!(world.settle());
    assert_eq!(world.holders("Deployment", "web"), ["member1", "member2"]);
    assert!(world.land(removal));
    assert_eq!(world.holders("Deployment", "web"), ["member2"]);
    report(&mut world, "member2", 1);
    assert!(world.settle());
    assert_eq!(world.holders("Deployment", "web"), clusters(&world));
    assert!(evicted(&world).is_empty());
}

#[test]
fn the_last_healthy_copy_stays_also_after_a_removal_that_did_not_come_about() {
    for unanswered in [false, true] {
        let mut world = settled(&policy());
        let taints = no_execute(&world);
        taint(&mut world, "member1", &taints);
        assert!(world.settle_for(3_600_000));
        report(&mut world, "member2", 1);
        let workload = ResourceId::new(Gvk::new("apps/v1", "Deployment"), "default", "web");
        let removal = world.begin(&Key::Copy(workload, "member1".into()));
        assert!(removal.removes(), "the replacement is healthy");
        // It fails again, and the old copy changes, or its member is not observed, before the removal comes about.
        report(&mut world, "member2", 0);
        if unanswered {
            world.unanswered_removals = 1;
        } else {
            report(&mut world, "member1", 2);
        }
        assert!(world.land(removal));
        assert!(world.settle_for(600_000));
        assert_eq!(
            world.holders("Deployment", "web"),
            ["member1", "member2"],
            "unanswered: {unanswered}"
        );
        // The cluster recovers while the replacement is not healthy: the workload goes back.
        taint(&mut world, "member1", &json!([]));
        assert!(world.settle());
        assert_eq!(clusters(&world), ["member1"], "unanswered: {unanswered}");
    }
}

#[test]
fn a_dead_cluster_is_left_and_cleaned_up_when_it_is_back() {
    let mut world = settled(&policy());
    world.set_down("member1", true);
    let taints = no_execute(&world);
    taint(&mut world, "member1", &taints);
    assert!(world.settle_for(60_000));
    assert_eq!(clusters(&world), ["member2"]);
    assert_eq!(evicted(&world), ["member1"]);
    report(&mut world, "member2", 1);
    assert!(world.settle_for(3_600_000));
    // Its copies may still run there: the task accounts for them, over a restart too.
    assert_eq!(evicted(&world), ["member1"]);
    world.restart();
    assert!(world.settle_for(60_000));
    assert_eq!(evicted(&world), ["member1"]);
    assert_eq!(world.holders("ConfigMap", "settings"), ["member1", "member2"]);
    taint(&mut world, "member1", &json!([]));
    world.set_down("member1", false);
    assert!(world.settle_for(60_000));
    assert_eq!(clusters(&world), ["member2"]);
    assert!(evicted(&world).is_empty());
    assert_eq!(world.holders("Deployment", "web"), ["member2"]);
    assert_eq!(world.holders("ConfigMap", "settings"), ["member2"]);
}

#[test]
fn a_dead_cluster_that_is_given_up_ends_its_tasks() {
    let mut world = settled(&policy());
    world.set_down("member1", true);
    let taints = no_execute(&world);
    taint(&mut world, "member1", &taints);
    assert!(world.settle_for(60_000));
    assert_eq!(evicted(&world), ["member1"]);
    let mut object = world.hub_object("Cluster", "member1").cloned().expect("cluster");
    object["metadata"]["finalizers"] = json!([]);
    world.replace(object);
    world.delete("Cluster", "member1");
    assert!(world.settle_for(60_000));
    assert!(evicted(&world).is_empty());
    assert_eq!(clusters(&world), ["member2"]);
}

#[test]
fn divided_replicas_are_neither_lost_nor_doubled() {
    let mut policy = policy();
    policy["spec"]["placement"] = json!({
        "clusterAffinity": {"clusterNames": MEMBERS},
        "replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted"},
    });
    let mut world = World::new(&MEMBERS);
    assert!(world.settle());
    let mut workload = deployment("web", &["settings"]);
    workload["spec"]["replicas"] = json!(6);
    for object in [config_map("settings", "one"), workload, policy] {
        world.apply(object);
    }
    assert!(world.settle());
    let sum = |world: &World| -> i64 {
        let all = binding(world, BINDING)["spec"]["clusters"].as_array().cloned();
        let all = all.into_iter().flatten();
        all.map(|target| target["replicas"].as_i64().unwrap_or(0)).sum()
    };
    assert_eq!((clusters(&world).len(), sum(&world)), (3, 6));
    let taints = no_execute(&world);
    taint(&mut world, "member2", &taints);
    assert!(world.settle());
    assert_eq!(clusters(&world), ["member1", "member3"]);
    assert_eq!(sum(&world), 6);
    assert_eq!(evicted(&world), ["member2"]);
    // The old copy is not touched until the others are healthy.
    assert_eq!(
        world
            .on("member2", "Deployment", "web")
            .map(|copy| &copy["spec"]["replicas"]),
        Some(&json!(2))
    );
}

/// Six replicas, divided by three, whose copies are purged directly; all are healthy.
fn divided() -> World {
    let mut policy = purging("Directly");
    policy["spec"]["placement"] = json!({
        "clusterAffinity": {"clusterNames": MEMBERS},
        "replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted"},
    });
    let mut world = World::new(&MEMBERS);
    assert!(world.settle());
    world.apply(config_map("settings", "one"));
    world.apply(scaled(6, "one"));
    world.apply(policy);
    assert!(world.settle());
    assert_eq!(MEMBERS.map(|member| replicas_on(&world, member)), [2, 2, 2]);
    world
}

fn scaled(replicas: i64, image: &str) -> Value {
    let mut workload = deployment("web", &["settings"]);
    workload["spec"]["replicas"] = json!(replicas);
    workload["spec"]["template"]["spec"]["containers"][0]["image"] = json!(image);
    workload
}

fn replicas_on(world: &World, member: &str) -> i64 {
    let copy = world.on(member, "Deployment", "web");
    copy.and_then(|copy| copy["spec"]["replicas"].as_i64())
        .unwrap_or_default()
}

#[test]
fn divided_replicas_that_are_purged_directly_start_elsewhere_when_they_are_gone() {
    for is_orphaned in [false, true] {
        let mut world = divided();
        if is_orphaned {
            world.delete("PropagationPolicy", "web");
            assert!(world.settle());
        }
        let wrote = world.writes.len();
        let taints = no_execute(&world);
        taint(&mut world, "member2", &taints);
        assert!(world.settle());
        assert_eq!(MEMBERS.map(|member| replicas_on(&world, member)), [3, 0, 3]);
        let gone = write(&world, wrote, "member2 Delete Deployment");
        for other in ["member1", "member3"] {
            let grown = write(&world, wrote, &format!("{other} PUT Deployment"));
            assert!(gone < grown, "{other}: {:#?}", &world.writes[wrote..]);
        }
        // Back again, it gets nothing that is placed.
        taint(&mut world, "member2", &json!([]));
        assert!(world.settle());
        assert_eq!(MEMBERS.map(|member| replicas_on(&world, member)), [3, 0, 3]);
    }
}

#[test]
fn a_cluster_that_joins_while_a_purge_waits_moves_no_replicas() {
    let mut world = divided();
    world.apply(scaled(6, "one"));
    let cordon = json!([{"key": "full", "effect": "NoSchedule"}]);
    world.set_down("member2", true);
    assert!(world.settle_for(120_000));
    let taints = no_execute(&world);
    taint(&mut world, "member3", &taints);
    assert!(world.settle_for(120_000));
    taint(&mut world, "member3", &cordon);
    let taints = no_execute(&world);
    taint(&mut world, "member2", &taints);
    assert!(world.settle_for(120_000));
    let before = MEMBERS.map(|member| replicas_on(&world, member));
    assert_eq!(clusters(&world), ["member1"]);
    taint(&mut world, "member3", &json!([]));
    assert!(world.settle_for(120_000));
    assert_eq!(clusters(&world), ["member1"]);
    assert_eq!(MEMBERS.map(|member| replicas_on(&world, member)), before);
    let wrote = world.writes.len();
    world.restart();
    assert!(world.settle_for(120_000));
    assert_eq!(world.writes[wrote..], [""; 0], "a restart changes nothing");
    assert_eq!(MEMBERS.map(|member| replicas_on(&world, member)), before);
}

#[test]
fn while_a_purge_waits_for_a_dead_member_edits_are_delivered_and_replicas_do_not_exceed_the_sum() {
    let mut world = divided();
    world.set_down("member2", true);
    assert!(world.settle_for(120_000));
    let taints = no_execute(&world);
    taint(&mut world, "member2", &taints);
    assert!(world.settle_for(120_000));
    assert_eq!(clusters(&world), ["member1", "member3"]);
    assert_eq!(MEMBERS.map(|member| replicas_on(&world, member)), [2, 2, 2]);
    let evicting = condition(&world, BINDING, "Evicting");
    let reported = evicting["message"].as_str().expect("message");
    assert!(
        reported.contains(
            "the copy there is handled when the cluster responds; its replicas start elsewhere when it is gone"
        ),
        "{reported}"
    );
    world.apply(scaled(6, "two"));
    assert!(world.settle());
    for member in ["member1", "member3"] {
        let copy = world.on(member, "Deployment", "web").expect("copy");
        assert_eq!(copy["spec"]["template"]["spec"]["containers"][0]["image"], "two");
    }
    // What is asked for beyond those that wait starts.
    world.apply(scaled(9, "two"));
    assert!(world.settle());
    let all = ["member1", "member3"].map(|member| replicas_on(&world, member));
    assert_eq!(all.iter().sum::<i64>(), 7, "{all:?}");
    world.set_down("member2", false);
    assert!(world.settle_for(120_000));
    let all = MEMBERS.map(|member| replicas_on(&world, member));
    assert_eq!((all.iter().sum::<i64>(), all[1]), (9, 0), "{all:?}");
}

#[test]
fn a_workload_on_all_clusters_leaves_only_the_tainted_one() {
    let mut policy = policy();
    policy["spec"]["placement"]["spreadConstraints"] = json!([]);
    let mut world = World::new(&MEMBERS);
    assert!(world.settle());
    for object in [
        config_map("settings", "one"),
        deployment("web", &["settings"]),
        policy,
    ] {
        world.apply(object);
    }
    assert!(world.settle());
    for member in MEMBERS {
        report(&mut world, member, 1);
    }
    assert!(world.settle());
    let taints = no_execute(&world);
    taint(&mut world, "member1", &taints);
    assert!(world.settle());
    assert_eq!(clusters(&world), ["member2", "member3"]);
    assert_eq!(world.holders("Deployment", "web"), ["member2", "member3"]);
    assert!(evicted(&world).is_empty());
    taint(&mut world, "member1", &json!([]));
    assert!(world.settle());
    assert_eq!(clusters(&world), MEMBERS);
}

#[test]
fn an_application_that_stays_unhealthy_is_moved_also_over_a_restart() {
    let mut world = settled(&application("Gracefully", 120));
    report(&mut world, "member1", 0);
    assert!(world.settle_for(20_000));
    assert_eq!(clusters(&world), ["member1"]);
    world.now = world.now.plus(20_000);
    world.restart();
    assert!(world.settle_for(15_000));
    assert_eq!(clusters(&world), ["member2"]);
    let tasks = &binding(&world, BINDING)["spec"]["gracefulEvictionTasks"];
    assert_eq!(tasks[0]["reason"], "ApplicationFailure");
    assert_eq!(tasks[0]["gracePeriodSeconds"], 120);
    assert_eq!(
        tasks[0]["producer"],
        "resource-binding-application-failover-controller"
    );
    report(&mut world, "member2", 1);
    assert!(world.settle());
    assert_eq!(world.holders("Deployment", "web"), ["member2"]);
    assert!(evicted(&world).is_empty());
}

#[test]
fn an_application_that_failed_on_a_cluster_does_not_return_there_while_another_one_fits() {
    let mut policy = application("Gracefully", 60);
    policy["spec"]["placement"]["spreadConstraints"] = json!([]);
    let mut world = World::new(&MEMBERS);
    assert!(world.settle());
    world.apply(deployment("web", &[]));
    world.apply(policy);
    assert!(world.settle());
    assert_eq!(clusters(&world), MEMBERS);
    for member in MEMBERS {
        report(&mut world, member, i64::from(member != "member2"));
    }
    assert!(world.settle_for(600_000));
    assert_eq!(clusters(&world), ["member1", "member3"]);
    assert_eq!(world.holders("Deployment", "web"), ["member1", "member3"]);
    assert!(evicted(&world).is_empty(), "its task is over");
    let wrote = world.writes.len();
    world.restart();
    assert!(world.settle_for(3_600_000));
    assert_eq!(world.writes[wrote..], [""; 0]);
    // A new version may do well there.
    let mut next = deployment("web", &[]);
    next["spec"]["template"]["spec"]["containers"][0]["image"] = json!("nginx:2");
    world.apply(next);
    assert!(world.settle_for(20_000));
    assert_eq!(clusters(&world), MEMBERS);
}

#[test]
fn a_version_that_never_ran_on_a_cluster_did_not_fail_there() {
    let mut policy = application("Gracefully", 600);
    policy["spec"]["placement"]["spreadConstraints"] = json!([]);
    let mut world = World::new(&MEMBERS);
    assert!(world.settle());
    world.apply(deployment("web", &[]));
    world.apply(policy);
    assert!(world.settle());
    for member in MEMBERS {
        report(&mut world, member, i64::from(member == "member1"));
    }
    assert!(world.settle_for(60_000));
    assert_eq!(clusters(&world), ["member1"]);
    // The next version comes before the failed one has left.
    world.set_down("member1", true);
    let mut next = deployment("web", &[]);
    next["spec"]["template"]["spec"]["containers"][0]["image"] = json!("nginx:2");
    world.apply(next);
    world.set_down("member1", false);
    // Its status still is that of the former version until its controller has seen the next one.
    assert!(world.settle());
    report(&mut world, "member1", 1);
    assert!(world.settle_for(600_000));
    assert_eq!(clusters(&world), MEMBERS);
}

#[test]
fn a_replacement_that_is_not_needed_any_more_is_where_a_workload_goes_before_it_goes_nowhere() {
    let mut policy = policy();
    policy["spec"]["placement"]["clusterAffinity"] = json!({"clusterNames": ["member1", "member2"]});
    let mut world = settled(&policy);
    let broken = no_execute(&world);
    taint(&mut world, "member1", &broken);
    assert!(world.settle());
    report(&mut world, "member2", 0);
    assert!(world.settle());
    world.set_down("member2", true);
    assert!(world.settle_for(120_000));
    taint(&mut world, "member1", &json!([]));
    assert!(world.settle_for(120_000));
    assert_eq!(
        (clusters(&world), evicted(&world)),
        (vec!["member1"], vec!["member2"])
    );
    world.set_down("member1", true);
    assert!(world.settle_for(120_000));
    let broken = no_execute(&world);
    taint(&mut world, "member1", &broken);
    world.set_down("member2", false);
    report(&mut world, "member2", 1);
    assert!(world.settle_for(120_000));
    assert_eq!(
        (clusters(&world), evicted(&world)),
        (vec!["member2"], vec!["member1"])
    );
    world.set_down("member1", false);
    assert!(world.settle_for(120_000));
    assert_eq!(world.holders("Deployment", "web"), ["member2"]);
    assert!(evicted(&world).is_empty());
}

#[test]
fn an_application_that_failed_everywhere_is_tried_again_where_it_failed_first() {
    let mut world = settled(&application("Gracefully", 60));
    for (from, to) in [
        ("member1", "member2"),
        ("member2", "member3"),
        ("member3", "member1"),
    ] {
        report(&mut world, from, 0);
        assert!(world.settle_for(31_000));
        assert_eq!(clusters(&world), [to]);
        report(&mut world, to, 1);
        assert!(world.settle_for(20_000));
        assert_eq!(world.holders("Deployment", "web"), [to]);
    }
}

#[test]
fn an_application_that_recovers_in_time_stays() {
    let mut world = settled(&application("Gracefully", 120));
    for _ in 0..5 {
        report(&mut world, "member1", 0);
        assert!(world.settle_for(20_000));
        world.now = world.now.plus(5_000);
        report(&mut world, "member1", 1);
        assert!(world.settle_for(20_000));
        world.now = world.now.plus(20_000);
    }
    assert_eq!(clusters(&world), ["member1"]);
}

#[test]
fn the_grace_period_of_a_failed_application_ends() {
    let mut world = settled(&application("Gracefully", 120));
    report(&mut world, "member1", 0);
    assert!(world.settle_for(40_000));
    assert_eq!(world.holders("Deployment", "web"), ["member1", "member2"]);
    assert!(world.settle_for(130_000));
    assert_eq!(world.holders("Deployment", "web"), ["member2"]);
}

#[test]
fn a_workload_without_its_policy_is_still_evicted() {
    let mut world = settled(&policy());
    world.delete("PropagationPolicy", "web");
    assert!(world.settle());
    assert_eq!(clusters(&world), ["member1"]);
    let taints = no_execute(&world);
    taint(&mut world, "member1", &taints);
    assert!(world.settle());
    assert_eq!(clusters(&world), ["member2"]);
    assert_eq!(evicted(&world), ["member1"]);
}

#[test]
fn a_dependency_that_others_need_stays_on_the_cluster_that_is_left() {
    let mut world = settled(&policy());
    world.apply(deployment("stays", &["settings"]));
    let mut other = policy_of("stays", "apps/v1", "Deployment", "stays", &["member1"]);
    other["spec"]["placement"]["clusterTolerations"] = json!([{"operator": "Exists"}]);
    world.apply(other);
    assert!(world.settle());
    let taints = no_execute(&world);
    taint(&mut world, "member1", &taints);
    assert!(world.settle());
    report(&mut world, "member2", 1);
    assert!(world.settle());
    assert_eq!(world.holders("Deployment", "web"), ["member2"]);
    assert_eq!(world.holders("Deployment", "stays"), ["member1"]);
    assert_eq!(world.holders("ConfigMap", "settings"), ["member1", "member2"]);
}

#[test]
fn groups_of_clusters_are_fallen_through_and_gone_back_to_when_asked() {
    for mode in ["Gracefully", "Directly"] {
        let mut policy = purging(mode);
        policy["spec"]["placement"] = json!({"clusterAffinities": [
            {"affinityName": "first", "clusterNames": ["member1"]},
            {"affinityName": "second", "clusterNames": ["member2"]},
        ]});
        let mut world = settled(&policy);
        let taints = no_execute(&world);
        taint(&mut world, "member1", &taints);
        assert!(world.settle());
        assert_eq!(clusters(&world), ["member2"], "{mode}");
        let group =
            |world: &World| binding(world, BINDING)["status"]["schedulerObservingAffinityName"].clone();
        assert_eq!(group(&world), "second");
        report(&mut world, "member2", 1);
        assert!(world.settle());
        assert_eq!(world.holders("Deployment", "web"), ["member2"]);
        taint(&mut world, "member1", &json!([]));
        assert!(world.settle_for(600_000));
        assert_eq!(
            clusters(&world),
            ["member2"],
            "{mode}: it does not return by itself"
        );
        world.apply(json!({
            "apiVersion": "apps.karmada.io/v1alpha1", "kind": "WorkloadRebalancer", "metadata": {"name": "back"},
            "spec": {"workloads": [
                {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": "web"},
            ]},
        }));
        assert!(world.settle());
        assert_eq!(clusters(&world), ["member1"], "{mode}");
        assert_eq!(group(&world), "first");
    }
}

#[test]
fn what_something_else_needs_on_a_cluster_does_not_wait_for_a_purge_on_another_one() {
    let mut policy = policy_of("settings", "v1", "ConfigMap", "settings", &MEMBERS);
    policy["spec"]["placement"]["spreadConstraints"] =
        json!([{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}]);
    policy["spec"]["failover"] = json!({"cluster": {"purgeMode": "Directly"}});
    let mut world = World::new(&MEMBERS);
    assert!(world.settle());
    world.apply(config_map("settings", "one"));
    world.apply(policy);
    assert!(world.settle());
    assert_eq!(world.holders("ConfigMap", "settings"), ["member1"]);
    world.set_down("member1", true);
    assert!(world.settle_for(120_000));
    let taints = no_execute(&world);
    taint(&mut world, "member1", &taints);
    assert!(world.settle_for(120_000));
    assert_eq!(
        world.holders("ConfigMap", "settings"),
        ["member1"],
        "the purge comes first"
    );
    world.apply(deployment("web", &["settings"]));
    world.apply(policy_of("web", "apps/v1", "Deployment", "web", &["member2"]));
    assert!(world.settle_for(120_000));
    assert_eq!(world.holders("ConfigMap", "settings"), ["member1", "member2"]);
    assert_eq!(world.holders("Deployment", "web"), ["member2"]);
}

#[test]
fn a_purge_that_something_else_holds_up_keeps_no_replacement_waiting() {
    let mut policy = policy_of("settings", "v1", "ConfigMap", "settings", &MEMBERS);
    policy["spec"]["placement"]["spreadConstraints"] =
        json!([{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}]);
    policy["spec"]["failover"] = json!({"cluster": {"purgeMode": "Directly"}});
    let mut world = World::new(&MEMBERS);
    assert!(world.settle());
    let mut other = policy_of("web", "apps/v1", "Deployment", "web", &["member1"]);
    other["spec"]["placement"]["clusterTolerations"] = json!([{"operator": "Exists"}]);
    for object in [
        config_map("settings", "one"),
        deployment("web", &["settings"]),
        policy,
        other,
    ] {
        world.apply(object);
    }
    assert!(world.settle());
    assert_eq!(world.holders("ConfigMap", "settings"), ["member1"]);
    let taints = no_execute(&world);
    taint(&mut world, "member1", &taints);
    assert!(world.settle_for(120_000));
    assert_eq!(world.holders("ConfigMap", "settings"), ["member1", "member2"]);
}

#[test]
fn a_workload_whose_clusters_are_not_ours_to_choose_says_that_it_should_leave() {
    let mut world = settled(&policy());
    let mut object = binding(&world, BINDING).clone();
    object["spec"]["suspension"] = json!({"scheduling": true});
    world.replace(object);
    assert!(world.settle());
    let taints = no_execute(&world);
    taint(&mut world, "member1", &taints);
    assert!(world.settle());
    assert_eq!(clusters(&world), ["member1"]);
    let reported = condition(&world, BINDING, "EvictionBlocked");
    assert!(
        reported["message"]
            .as_str()
            .is_some_and(|says| says.contains("because its scheduling is suspended")),
        "{reported}"
    );
    taint(&mut world, "member1", &json!([]));
    assert!(world.settle());
    assert!(condition(&world, BINDING, "EvictionBlocked").is_null());
    // A toleration that ends is reported when it does, although nothing else happens.
    let mut object = binding(&world, BINDING).clone();
    object["spec"]["placement"]["clusterTolerations"] =
        json!([{"operator": "Exists", "tolerationSeconds": 60}]);
    world.replace(object);
    let mut limited = policy();
    limited["spec"]["placement"]["clusterTolerations"] =
        json!([{"operator": "Exists", "tolerationSeconds": 60}]);
    world.apply(limited);
    assert!(world.settle());
    let taints = no_execute(&world);
    taint(&mut world, "member1", &taints);
    assert!(world.settle());
    assert!(condition(&world, BINDING, "EvictionBlocked").is_null());
    assert!(world.settle_for(61_000));
    assert_eq!(condition(&world, BINDING, "EvictionBlocked")["status"], "True");
    // Who moves it by a task of its own has it dated and dropped all the same.
    let mut object = binding(&world, BINDING).clone();
    object["spec"]["clusters"] = json!([{"name": "member2", "replicas": 1}]);
    object["spec"]["gracefulEvictionTasks"] =
        json!([{"fromCluster": "member1", "reason": "Moved", "producer": "me"}]);
    world.replace(object);
    assert!(world.settle());
    let task = &binding(&world, BINDING)["spec"]["gracefulEvictionTasks"][0];
    assert!(task["creationTimestamp"].is_string(), "{task}");
    report(&mut world, "member2", 1);
    assert!(world.settle());
    assert_eq!(world.holders("Deployment", "web"), ["member2"]);
    assert!(evicted(&world).is_empty());
    assert!(condition(&world, BINDING, "EvictionBlocked").is_null());
}

#[test]
fn a_suspended_workload_is_not_moved() {
    let mut policy = policy();
    policy["spec"]["suspension"] = json!({"dispatching": true});
    let mut world = settled(&self::policy());
    world.apply(policy);
    assert!(world.settle());
    let taints = no_execute(&world);
    taint(&mut world, "member1", &taints);
    assert!(world.settle_for(3_600_000));
    assert_eq!(clusters(&world), ["member1"]);
    assert!(evicted(&world).is_empty());
}

#[test]
fn a_failover_survives_a_crash_after_any_write() {
    let mut crashes = 0;
    for after in 1.. {
        let mut world = settled(&policy());
        let taints = no_execute(&world);
        taint(&mut world, "member1", &taints);
        world.crash_in = Some(after);
        let mut crashed = false;
        for step in 0..2 {
            if step == 1 && world.on("member2", "Deployment", "web").is_some() {
                report(&mut world, "member2", 1);
            }
            if !world.settle() {
                crashed = true;
                world.restart();
                assert!(world.settle());
            }
            if step == 0 {
                assert_eq!(world.holders("Deployment", "web"), ["member1", "member2"]);
                assert_eq!(world.holders("ConfigMap", "settings"), ["member1", "member2"]);
            }
        }
        assert_eq!(clusters(&world), ["member2"], "after {after}");
        assert_eq!(world.holders("Deployment", "web"), ["member2"], "after {after}");
        assert_eq!(
            world.holders("ConfigMap", "settings"),
            ["member2"],
            "after {after}"
        );
        assert!(evicted(&world).is_empty(), "after {after}");
        if !crashed {
            break;
        }
        crashes += 1;
    }
    assert!(crashes > 5, "{crashes}");
}

#[test]
fn a_workload_does_not_return_to_where_its_toleration_is_over() {
    let mut policy = policy();
    policy["spec"]["placement"]["spreadConstraints"] = json!([]);
    policy["spec"]["placement"]["clusterTolerations"] =
        json!([{"key": "broken", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}]);
    let mut world = World::new(&MEMBERS);
    assert!(world.settle());
    for object in [deployment("web", &[]), policy] {
        world.apply(object);
    }
    assert!(world.settle());
    for member in MEMBERS {
        report(&mut world, member, 1);
    }
    let taints = no_execute(&world);
    taint(&mut world, "member1", &taints);
    assert!(world.settle());
    assert_eq!(clusters(&world), MEMBERS);
    assert!(world.settle_for(120_000));
    assert_eq!(clusters(&world), ["member2", "member3"]);
    assert!(evicted(&world).is_empty());
    assert_eq!(world.holders("Deployment", "web"), ["member2", "member3"]);
    let wrote = world.writes.len();
    assert!(world.settle_for(3_600_000));
    assert_eq!(world.writes[wrote..], [""; 0]);
}

#[test]
fn what_a_dead_member_held_is_no_replacement() {
    let mut policy = policy();
    policy["spec"]["placement"]["clusterAffinity"] = json!({"clusterNames": ["member1", "member2"]});
    policy["spec"]["placement"]["spreadConstraints"] = json!([]);
    let mut world = World::new(&MEMBERS);
    assert!(world.settle());
    for object in [deployment("web", &[]), policy] {
        world.apply(object);
    }
    assert!(world.settle());
    for member in ["member1", "member2"] {
        report(&mut world, member, 1);
    }
    assert!(world.settle());
    world.set_down("member2", true);
    assert!(world.settle_for(60_000));
    let taints = no_execute(&world);
    taint(&mut world, "member1", &taints);
    assert!(world.settle_for(3_600_000));
    assert!(world.on("member1", "Deployment", "web").is_some());
    world.set_down("member2", false);
    assert!(world.settle_for(60_000));
    assert!(world.on("member1", "Deployment", "web").is_none());
    assert_eq!(clusters(&world), ["member2"]);
}

#[test]
fn a_binding_that_is_deleted_in_the_middle_takes_no_copy_away() {
    let mut world = settled(&policy());
    let taints = no_execute(&world);
    taint(&mut world, "member1", &taints);
    assert!(world.settle());
    assert_eq!(evicted(&world), ["member1"]);
    world.delete("ResourceBinding", BINDING);
    assert!(world.settle_for(60_000));
    assert_eq!(
        (clusters(&world), evicted(&world)),
        (vec!["member2"], vec!["member1"])
    );
    assert_eq!(world.holders("Deployment", "web"), ["member1", "member2"]);
    assert_eq!(world.holders("ConfigMap", "settings"), ["member1", "member2"]);
    report(&mut world, "member2", 1);
    assert!(world.settle_for(60_000));
    assert_eq!(world.holders("Deployment", "web"), ["member2"]);
    assert!(evicted(&world).is_empty());
}

#[test]
fn a_replacement_that_is_not_needed_any_more_stays_while_no_other_copy_is_healthy() {
    let mut world = settled(&policy());
    let broken = no_execute(&world);
    taint(&mut world, "member1", &broken);
    assert!(world.settle());
    assert_eq!(clusters(&world), ["member2"]);
    // The replacement starts slowly, and its member becomes unresponsive; meanwhile the first cluster recovers.
    report(&mut world, "member2", 0);
    assert!(world.settle());
    world.set_down("member2", true);
    assert!(world.settle_for(120_000));
    taint(&mut world, "member1", &json!([]));
    assert!(world.settle_for(120_000));
    assert_eq!(clusters(&world), ["member1"]);
    assert_eq!(evicted(&world), ["member2"]);
    let reported = condition(&world, BINDING, "Evicting");
    assert!(
        reported["message"]
            .as_str()
            .is_some_and(|says| says.contains("member1, which it replaced, has recovered")),
        "{reported}"
    );
    // By the time that the replacement's member answers, the first one does not.
    world.set_down("member1", true);
    assert!(world.settle_for(120_000));
    world.set_down("member2", false);
    report(&mut world, "member2", 1);
    assert!(world.settle_for(1_200_000));
    assert_eq!(world.holders("Deployment", "web"), ["member1", "member2"]);
    assert_eq!(world.holders("ConfigMap", "settings"), ["member1", "member2"]);
    world.set_down("member1", false);
    assert!(world.settle_for(120_000));
    assert_eq!(world.holders("Deployment", "web"), ["member1"]);
    assert_eq!(world.holders("ConfigMap", "settings"), ["member1"]);
    assert!(evicted(&world).is_empty());
}

#[test]
fn a_status_that_outlived_its_copy_lets_no_workload_return_before_a_purge() {
    let mut world = settled(&purging("Directly"));
    let mut stale = binding(&world, BINDING).clone();
    let mut entry = stale["status"]["aggregatedStatus"][0].clone();
    entry["clusterName"] = json!("member2");
    entry["copy"]["source"] = json!("an earlier version");
    stale["status"]["aggregatedStatus"] = json!([stale["status"]["aggregatedStatus"][0], entry]);
    world.replace(stale);
    world.set_down("member1", true);
    world.set_down("member2", true);
    world.restart();
    let taints = no_execute(&world);
    taint(&mut world, "member1", &taints);
    assert!(world.settle_for(10_000));
    assert_eq!(clusters(&world), ["member2"]);
    world.set_down("member2", false);
    assert!(world.settle_for(10_000));
    assert_eq!(
        world.holders("Deployment", "web"),
        ["member1"],
        "the purge comes first"
    );
    world.set_down("member1", false);
    assert!(world.settle_for(120_000));
    assert_eq!(world.holders("Deployment", "web"), ["member2"]);
}

#[test]
fn a_cluster_that_is_come_back_to_waits_for_a_purge_that_began_before_it_was_left() {
    let mut world = divided();
    world.set_down("member2", true);
    assert!(world.settle_for(120_000));
    let dead = no_execute(&world);
    taint(&mut world, "member2", &dead);
    assert!(world.settle_for(120_000));
    // It leaves the others one after the other, and comes back to the first of them.
    let taints = no_execute(&world);
    taint(&mut world, "member1", &taints);
    assert!(world.settle_for(120_000));
    assert_eq!(clusters(&world), ["member3"]);
    taint(&mut world, "member1", &json!([]));
    let taints = no_execute(&world);
    taint(&mut world, "member3", &taints);
    assert!(world.settle_for(120_000));
    assert_eq!(clusters(&world), ["member1"]);
    assert_eq!(MEMBERS.map(|member| replicas_on(&world, member)), [0, 2, 0]);
    world.set_down("member2", false);
    assert!(world.settle_for(120_000));
    assert_eq!(MEMBERS.map(|member| replicas_on(&world, member)), [6, 0, 0]);
}

#[test]
fn a_copy_that_somebody_deletes_is_made_again_while_a_purge_waits() {
    let mut world = divided();
    world.set_down("member2", true);
    assert!(world.settle_for(120_000));
    let taints = no_execute(&world);
    taint(&mut world, "member2", &taints);
    assert!(world.settle_for(120_000));
    world.meddle("member1", "Deployment", "web", |_| None);
    assert!(world.settle());
    assert_eq!(MEMBERS.map(|member| replicas_on(&world, member)), [2, 2, 2]);
}

#[test]
fn a_status_that_outlived_its_copy_lets_no_workload_return_before_its_dependencies() {
    let mut world = settled(&policy());
    // It left member2 some time ago, and the controllers ended before they stored that.
    let mut stale = binding(&world, BINDING).clone();
    let mut entry = stale["status"]["aggregatedStatus"][0].clone();
    entry["clusterName"] = json!("member2");
    assert!(!entry["copy"].is_null(), "{entry}");
    stale["status"]["aggregatedStatus"] = json!([stale["status"]["aggregatedStatus"][0], entry]);
    world.replace(stale);
    world.restart();
    assert!(world.settle());
    let taints = no_execute(&world);
    taint(&mut world, "member1", &taints);
    world.refuses = Some(|object| object["kind"] == "ConfigMap");
    assert!(world.settle_for(10_000));
    assert_eq!(clusters(&world), ["member2"]);
    assert_eq!(
        world.holders("Deployment", "web"),
        ["member1"],
        "it waits for its ConfigMap"
    );
    world.refuses = None;
    assert!(world.settle());
    assert_eq!(world.holders("Deployment", "web"), ["member1", "member2"]);
}
