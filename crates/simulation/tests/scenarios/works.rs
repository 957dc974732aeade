//! Works as views of copies, with `--work-objects=mirror`.

use entourage_api::names;
use entourage_core::{object::ResourceId, observation::Watch};
use serde_json::{Value, json};

use crate::{
    config_map, deployment, example, policy, policy_of,
    world::{World, id},
};

const CANARY: &str = "canary-9f2c";

/// A world in which copies are mirrored.
fn mirroring(members: &[&str]) -> World {
    let mut world = World::new(members);
    world.process.engine.config_mut().mirror_works = true;
    world.restart();
    world
}

fn settled() -> World {
    let mut world = mirroring(&["member1", "member2"]);
    for object in example() {
        world.apply(object);
    }
    assert!(world.settle());
    world
}

fn key(member: &str, kind: &str, name: &str) -> ResourceId {
    let work = names::work_name("default", name, kind);
    id("Work", &names::execution_namespace(member), &work)
}

fn work<'a>(world: &'a World, member: &str, kind: &str, name: &str) -> Option<&'a Value> {
    world.hub.get(&key(member, kind, name))
}

fn condition<'a>(work: &'a Value, type_: &str) -> &'a Value {
    let all = work["status"]["conditions"].as_array();
    let found = all.and_then(|all| all.iter().find(|each| each["type"] == type_));
    found.unwrap_or(&Value::Null)
}

fn suspend(world: &mut World, member: &str, suspended: bool) {
    let mut object = work(world, member, "Deployment", "myapp")
        .expect("a Work")
        .clone();
    object["spec"]["suspendDispatching"] = json!(suspended);
    world.replace(object);
}

fn replicas(world: &World, member: &str) -> Value {
    world.on(member, "Deployment", "myapp").expect("a copy")["spec"]["replicas"].clone()
}

#[test]
fn each_copy_has_a_work_with_its_manifest_and_its_state() {
    let world = settled();
    for member in ["member1", "member2"] {
        let shown = work(&world, member, "Deployment", "myapp").expect("a Work");
        let manifest = &shown["spec"]["workload"]["manifests"][0];
        let copy = world.on(member, "Deployment", "myapp").expect("a copy");
        assert_eq!(manifest["spec"], copy["spec"]);
        assert_eq!(manifest["metadata"]["labels"], copy["metadata"]["labels"]);
        let id = "resourcebinding.karmada.io/permanent-id";
        let binding = world
            .hub_object("ResourceBinding", "myapp-deployment")
            .expect("it");
        assert_eq!(shown["metadata"]["labels"][id], binding["metadata"]["labels"][id]);
        assert_eq!(condition(shown, "Applied")["status"], "True");
        assert_eq!(condition(shown, "Applied")["reason"], "AppliedSuccessful");
        assert_eq!(condition(shown, "Dispatching")["status"], "True");
        let identifier = &shown["status"]["manifestStatuses"][0]["identifier"];
        assert_eq!(identifier["resource"], "deployments");
        assert!(work(&world, member, "ConfigMap", "my-config").is_some());
    }
}

#[test]
fn nothing_is_written_to_works_when_nothing_changes_and_after_a_restart() {
    let mut world = settled();
    let wrote = world.writes.len();
    assert!(world.settle_for(120_000));
    world.restart();
    assert!(world.settle());
    assert_eq!(world.writes[wrote..], [""; 0]);
}

#[test]
fn the_work_of_a_secret_has_no_data() {
    let mut world = mirroring(&["member1"]);
    world.apply(json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": {"name": "login"}, "data": {"password": CANARY},
    }));
    world.apply(policy_of("login", "v1", "Secret", "login", &["member1"]));
    assert!(world.settle());
    assert!(
        world
            .on("member1", "Secret", "login")
            .expect("a copy")
            .to_string()
            .contains(CANARY)
    );
    let shown = work(&world, "member1", "Secret", "login").expect("a Work");
    assert!(!shown.to_string().contains(CANARY), "{shown}");
    assert_eq!(shown["spec"]["workload"]["manifests"][0]["type"], "Opaque");
}

#[test]
fn a_work_that_a_user_suspends_holds_its_cluster_back() {
    let mut world = settled();
    suspend(&mut world, "member1", true);
    assert!(world.settle());
    let mut scaled = deployment("myapp", &["my-config"]);
    scaled["spec"]["replicas"] = json!(5);
    world.apply(scaled);
    assert!(world.settle());
    world.restart();
    assert!(world.settle());
    assert_eq!(
        (replicas(&world, "member1"), replicas(&world, "member2")),
        (json!(1), json!(5))
    );
    let shown = work(&world, "member1", "Deployment", "myapp").expect("a Work");
    assert_eq!(shown["spec"]["suspendDispatching"], true);
    assert_eq!(condition(shown, "Dispatching")["status"], "False");
    let reported = world
        .events
        .iter()
        .filter(|event| event.starts_with("WorkDispatching Work "));
    assert_eq!(reported.count(), 1, "{:#?}", world.events);
    suspend(&mut world, "member1", false);
    assert!(world.settle());
    assert_eq!(replicas(&world, "member1"), json!(5));
    let shown = work(&world, "member1", "Deployment", "myapp").expect("a Work");
    assert_eq!(condition(shown, "Dispatching")["status"], "True");
}

#[test]
fn a_binding_that_is_suspended_shows_in_its_works_until_it_goes_on() {
    let mut world = settled();
    let mut suspended = policy(&["member1", "member2"]);
    suspended["spec"]["suspension"] = json!({"dispatchingOnClusters": {"clusterNames": ["member2"]}});
    world.apply(suspended);
    assert!(world.settle());
    let is_suspended = |world: &World, member| {
        let shown = work(world, member, "Deployment", "myapp").expect("a Work");
        shown["spec"]["suspendDispatching"] == true
    };
    assert!(!is_suspended(&world, "member1") && is_suspended(&world, "member2"));
    world.apply(policy(&["member1", "member2"]));
    assert!(world.settle());
    assert!(!is_suspended(&world, "member1") && !is_suspended(&world, "member2"));
}

#[test]
fn a_work_goes_with_its_copy_and_one_of_others_stays() {
    let mut world = settled();
    let theirs = json!({
        "apiVersion": "work.karmada.io/v1alpha1", "kind": "Work",
        "metadata": {"name": "theirs", "namespace": "karmada-es-member2"}, "spec": {},
    });
    world.apply(theirs);
    world.apply(policy(&["member1"]));
    assert!(world.settle());
    assert_eq!(world.holders("Deployment", "myapp"), ["member1"]);
    assert_eq!(work(&world, "member2", "Deployment", "myapp"), None);
    assert_eq!(work(&world, "member2", "ConfigMap", "my-config"), None);
    assert!(work(&world, "member1", "Deployment", "myapp").is_some());
    world.delete("Deployment", "myapp");
    assert!(world.settle());
    assert_eq!(work(&world, "member1", "Deployment", "myapp"), None);
    let theirs = id("Work", "karmada-es-member2", "theirs");
    assert!(world.hub.contains_key(&theirs));
}

#[test]
fn a_work_that_somebody_deletes_is_made_again_and_its_copy_stays() {
    let mut world = settled();
    let uid = |world: &World| {
        world.on("member1", "Deployment", "myapp").expect("a copy")["metadata"]["uid"].clone()
    };
    let before = uid(&world);
    world.delete_at(&key("member1", "Deployment", "myapp"));
    assert!(world.settle());
    assert!(work(&world, "member1", "Deployment", "myapp").is_some());
    assert_eq!(uid(&world), before);
}

#[test]
fn a_work_that_karmada_left_is_taken_over_and_keeps_the_finalizers_of_others() {
    let mut world = mirroring(&["member1", "member2"]);
    for object in example() {
        world.apply(object);
    }
    assert!(world.settle());
    let id = "resourcebinding.karmada.io/permanent-id";
    let mut left = work(&world, "member1", "Deployment", "myapp")
        .expect("a Work")
        .clone();
    let permanent_id = left["metadata"]["labels"][id].clone();
    left["metadata"]["labels"] = json!({id: permanent_id});
    left["metadata"]["annotations"] = json!({});
    left["metadata"]["finalizers"] = json!(["karmada.io/execution-controller", "example.com/backup"]);
    world.replace(left);
    assert!(world.settle());
    let shown = work(&world, "member1", "Deployment", "myapp").expect("a Work");
    assert!(shown["metadata"]["labels"]["entourage.dev/hub"].is_string());
    assert_eq!(shown["metadata"]["finalizers"], json!(["example.com/backup"]));
}

#[test]
fn the_copy_of_a_member_in_pull_mode_is_no_view_whatever_its_cluster_says() {
    let marks: [fn(&mut Value); 2] = [
        |meta| meta["labels"]["entourage.dev/work-kind"] = json!("Deployment.apps"),
        |meta| meta["finalizers"] = json!(["karmada.io/execution-controller"]),
    ];
    for mark in marks {
        let mut world = settled();
        let mut copy = work(&world, "member1", "Deployment", "myapp")
            .expect("a Work")
            .clone();
        mark(&mut copy["metadata"]);
        world.replace(copy);
        world.restart();
        assert!(world.settle());
        let before = work(&world, "member1", "Deployment", "myapp").cloned();
        // Its copy changes, and then is on this cluster no more.
        world.apply(deployment("myapp", &[]));
        assert!(world.settle());
        world.apply(policy(&["member2"]));
        assert!(world.settle());
        assert!(world.on("member1", "Deployment", "myapp").is_none());
        assert_eq!(work(&world, "member1", "Deployment", "myapp").cloned(), before);
    }
}

#[test]
fn a_cluster_that_leaves_takes_its_works_and_their_namespace_along() {
    let mut world = mirroring(&["member1", "member2"]);
    world.apply(config_map("my-config", "one"));
    world.apply(policy_of(
        "config",
        "v1",
        "ConfigMap",
        "my-config",
        &["member1", "member2"],
    ));
    assert!(world.settle());
    assert!(work(&world, "member1", "ConfigMap", "my-config").is_some());
    world.delete("Cluster", "member1");
    assert!(world.settle());
    let is_there = |key: &&ResourceId| &*key.namespace == "karmada-es-member1";
    assert_eq!(world.hub.keys().find(is_there), None);
    assert_eq!(world.hub_object("Namespace", "karmada-es-member1"), None);
    assert_eq!(world.hub_object("Cluster", "member1"), None);
    assert!(work(&world, "member2", "ConfigMap", "my-config").is_some());
}

#[test]
fn a_crash_after_any_write_leads_to_the_same_works() {
    let undisturbed = settled();
    for k in 1..=undisturbed.writes.len() {
        let mut world = mirroring(&["member1", "member2"]);
        for object in example() {
            world.apply(object);
        }
        world.crash_in = Some(k);
        if !world.settle() {
            world.restart();
            assert!(world.settle());
        }
        for (key, expected) in undisturbed.hub.iter().filter(|(key, _)| &*key.gvk.kind == "Work") {
            let found = world
                .hub
                .get(key)
                .unwrap_or_else(|| panic!("crash after {k}: no {key:?}"));
            let reported = &found["status"]["manifestStatuses"];
            assert_eq!(
                *reported, expected["status"]["manifestStatuses"],
                "crash after {k}"
            );
            assert_eq!(
                condition(found, "Applied")["status"],
                "True",
                "crash after {k}: {key:?}"
            );
        }
    }
}

#[test]
fn a_work_of_that_name_that_is_somebody_elses_is_left_alone() {
    let mut world = mirroring(&["member1"]);
    let key = key("member1", "ConfigMap", "my-config");
    let theirs = json!({
        "apiVersion": "work.karmada.io/v1alpha1", "kind": "Work",
        "metadata": {"name": &*key.name, "namespace": &*key.namespace}, "spec": {"workload": {"manifests": [config_map_of("default")]}},
    });
    world.apply(theirs.clone());
    world.apply(config_map("my-config", "one"));
    world.apply(policy_of("config", "v1", "ConfigMap", "my-config", &["member1"]));
    assert!(world.settle());
    assert_eq!(world.holders("ConfigMap", "my-config"), ["member1"]);
    let stays = |world: &World| {
        let found = work(world, "member1", "ConfigMap", "my-config").expect("theirs");
        assert_eq!(found["spec"], theirs["spec"]);
        assert!(
            found["metadata"]["labels"].is_null() && found["status"].is_null(),
            "{found}"
        );
    };
    stays(&world);
    world.delete("ConfigMap", "my-config");
    assert!(world.settle());
    stays(&world);
}

#[test]
fn a_work_stays_while_its_copy_may_still_be_on_the_member() {
    let mut world = settled();
    world.set_down("member1", true);
    world.apply(policy(&["member2"]));
    assert!(world.settle());
    assert!(work(&world, "member1", "Deployment", "myapp").is_some());
    world.set_down("member1", false);
    assert!(world.settle());
    assert_eq!(world.on("member1", "Deployment", "myapp"), None);
    assert_eq!(work(&world, "member1", "Deployment", "myapp"), None);
}

#[test]
fn many_edits_in_a_moment_are_shown_by_few_writes_of_a_work() {
    let mut world = settled();
    let before = world.writes.len();
    for n in 0..10 {
        world.apply(config_map("my-config", &n.to_string()));
        world.settle_for(50);
    }
    assert!(world.settle());
    let of_it = |line: &&String| line.contains("karmada-es-member1");
    let writes = world.writes[before..].iter().filter(of_it).count();
    assert!((1..=4).contains(&writes), "{:#?}", &world.writes[before..]);
    let shown = work(&world, "member1", "ConfigMap", "my-config").expect("a Work");
    assert_eq!(
        shown["spec"]["workload"]["manifests"][0]["data"],
        json!({"key": "9"})
    );
}

#[test]
fn nothing_is_delivered_before_it_is_known_which_works_are_suspended() {
    let mut world = settled();
    suspend(&mut world, "member1", true);
    assert!(world.settle());
    let mut scaled = deployment("myapp", &["my-config"]);
    scaled["spec"]["replicas"] = json!(5);
    world.shut.insert(Watch::Works);
    world.restart();
    world.apply(scaled);
    assert!(world.settle());
    assert_ne!(replicas(&world, "member1"), json!(5));
    assert_ne!(replicas(&world, "member2"), json!(5), "no Work is known");
    world.shut.clear();
    assert!(world.settle());
    assert_ne!(replicas(&world, "member1"), json!(5), "it is suspended");
    assert_eq!(replicas(&world, "member2"), json!(5));
}

#[test]
fn an_edit_of_a_config_map_is_shown_by_its_works() {
    let mut world = settled();
    world.apply(config_map("my-config", "two"));
    assert!(world.settle());
    let shown = work(&world, "member1", "ConfigMap", "my-config").expect("a Work");
    assert_eq!(
        shown["spec"]["workload"]["manifests"][0]["data"],
        json!({"key": "two"})
    );
}

#[test]
fn a_work_tells_the_transitions_of_its_copy_once() {
    let mut world = settled();
    world.meddle("member1", "Deployment", "myapp", |mut live| {
        let generation = live["metadata"]["generation"].clone();
        live["status"] = json!({"observedGeneration": generation, "replicas": 1, "readyReplicas": 1});
        Some(live)
    });
    assert!(world.settle());
    world.restart();
    assert!(world.settle());
    let name = names::work_name("default", "myapp", "Deployment");
    let about = format!(" Work {name}: ");
    let mut reported: Vec<&str> = world
        .events
        .iter()
        .filter(|event| event.contains(&about))
        .filter_map(|event| event.split(' ').next())
        .collect();
    reported.sort_unstable();
    reported.dedup();
    assert_eq!(
        reported,
        ["InterpretHealthSucceed", "ReflectStatusSucceed", "SyncSucceed"]
    );
    let count = |reason: &str| {
        let of_reason = world.events.iter().filter(|event| event.starts_with(reason));
        of_reason.filter(|event| event.contains(&about)).count()
    };
    // One for each of the two members.
    assert_eq!(count("SyncSucceed"), 2, "{:#?}", world.events);
}

#[test]
fn a_copy_that_is_in_conflict_is_reported_on_its_work() {
    let mut world = mirroring(&["member1"]);
    world.meddle("member1", "ConfigMap", "my-config", |_| {
        Some(config_map_of("default"))
    });
    world.apply(config_map("my-config", "one"));
    world.apply(policy_of("config", "v1", "ConfigMap", "my-config", &["member1"]));
    assert!(world.settle());
    let shown = work(&world, "member1", "ConfigMap", "my-config").expect("a Work");
    assert_eq!(condition(shown, "Applied")["status"], "False");
    assert_eq!(condition(shown, "Applied")["reason"], "AppliedFailed");
    let reported = world
        .events
        .iter()
        .filter(|event| event.starts_with("SyncFailed Work "));
    assert_eq!(reported.count(), 1, "{:#?}", world.events);
}

/// A ConfigMap of somebody else.
fn config_map_of(namespace: &str) -> Value {
    let mut object = config_map("my-config", "theirs");
    object["metadata"]["namespace"] = json!(namespace);
    object
}
