//! Namespaces that the hub deletes: where they are deleted, where they stay, and what is reported then.

use entourage_core::{
    namespaces::content::Contents,
    observation::{ObjectRef, Observation},
};
use serde_json::{Value, json};

use crate::{
    config_map,
    distributions::{distribution, named},
    policies::{cluster_policy, namespace, with, world},
    world::{World, id},
};

/// A world whose members each have the namespace shop, which we made there, and what stands in it on member1.
fn shops(inside: &[Value]) -> World {
    let mut world = world();
    world.apply(namespace("shop", &json!({"team": "a"})));
    assert!(world.settle());
    for object in inside {
        let kind = object["kind"].as_str().expect("kind");
        let name = object["metadata"]["name"].as_str().expect("name");
        let key = id(kind, "shop", name);
        let object = object.clone();
        world.meddle_at("member1", &key, |_| Some(object));
    }
    world
}

fn inside(api_version: &str, kind: &str, name: &str) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": "shop"}})
}

fn is_reported_once(world: &World, words: &str) {
    let reported = world.events.iter().filter(|each| each.contains("NamespaceKept"));
    let reported: Vec<&String> = reported.collect();
    assert_eq!(reported.len(), 1, "{reported:?}");
    assert!(reported[0].contains(words), "{reported:?}");
}

#[test]
fn a_namespace_that_the_hub_deletes_goes_with_what_kubernetes_put_into_it() {
    let own = [
        inside("v1", "ServiceAccount", "default"),
        inside("v1", "ConfigMap", "kube-root-ca.crt"),
    ];
    for restart in [false, true] {
        let mut world = shops(&own);
        world.delete("Namespace", "shop");
        if restart {
            world.restart();
        }
        assert!(world.settle());
        assert_eq!(world.holders("Namespace", "shop"), [""; 0], "restart: {restart}");
        assert!(
            !world.members["member1"]
                .keys()
                .any(|key| &*key.namespace == "shop")
        );
        let writes = world.writes.len();
        world.restart();
        assert!(world.settle());
        assert_eq!(world.writes.len(), writes);
    }
}

#[test]
fn a_namespace_that_holds_something_is_released_and_reported() {
    let mut world = shops(&[inside("v1", "PersistentVolumeClaim", "data")]);
    world.delete("Namespace", "shop");
    assert!(world.settle());
    assert_eq!(world.holders("Namespace", "shop"), ["member1"]);
    let live = world.on("member1", "Namespace", "shop").expect("it stays");
    let annotations = live["metadata"]["annotations"].to_string();
    assert!(!annotations.contains("entourage.dev"), "{annotations}");
    assert_eq!(live["metadata"]["labels"]["team"], "a", "what users set stays");
    is_reported_once(&world, "PersistentVolumeClaim data");
}

#[test]
fn a_namespace_of_several_hubs_stays() {
    let mut world = shops(&[]);
    world.meddle("member1", "Namespace", "shop", |mut live| {
        live["metadata"]["annotations"]["managed-by.entourage.dev/other"] = json!("{}");
        Some(live)
    });
    assert!(world.settle());
    world.delete("Namespace", "shop");
    assert!(world.settle());
    assert_eq!(world.holders("Namespace", "shop"), ["member1"]);
}

#[test]
fn a_namespace_copied_to_another_member_is_not_deleted_there() {
    let mut world = shops(&[]);
    world.meddle("member1", "Namespace", "shop", |mut live| {
        live["metadata"]["annotations"]["entourage.dev/created-by"] = json!("hub-id/member2");
        Some(live)
    });
    assert!(world.settle());
    world.delete("Namespace", "shop");
    assert!(world.settle());
    assert_eq!(world.holders("Namespace", "shop"), ["member1"]);
}

#[test]
fn a_namespace_waits_for_the_copies_in_it() {
    let mut world = shops(&[]);
    let mut object = config_map("settings", "a");
    object["metadata"]["namespace"] = json!("shop");
    world.apply(object);
    let selectors = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "settings"}]);
    world.apply(cluster_policy("settings", &selectors, &["member1"]));
    assert!(world.settle());
    let key = id("ConfigMap", "shop", "settings");
    assert!(world.at("member1", &key).is_some());
    world.refuses_removal = true;
    world.delete_at(&key);
    world.delete("Namespace", "shop");
    assert!(world.settle());
    assert_eq!(
        world.holders("Namespace", "shop"),
        ["member1"],
        "a copy is still in it"
    );
    world.refuses_removal = false;
    assert!(world.settle_for(300_000));
    assert_eq!(world.holders("Namespace", "shop"), [""; 0]);
}

#[test]
fn what_comes_into_a_namespace_after_it_was_looked_into_keeps_it() {
    let mut world = shops(&[]);
    let key = id("PersistentVolumeClaim", "shop", "data");
    let claim = inside("v1", "PersistentVolumeClaim", "data");
    world.comes_after_a_look = Some((key.clone(), claim));
    world.delete("Namespace", "shop");
    assert!(world.settle());
    let kept = world.holders("Namespace", "shop");
    assert_eq!(kept.len(), 1, "where the claim came");
    assert!(world.at(kept[0], &key).is_some());
    is_reported_once(&world, "PersistentVolumeClaim data");
}

#[test]
fn a_namespace_that_cannot_be_looked_into_stays_and_that_is_reported() {
    let why = "widgets.example.com cannot be listed";
    for contents in [Contents::Unknown(why.into()), Contents::NoResponse(why.into())] {
        let mut world = shops(&[]);
        world.set_down("member2", true);
        let lasts = matches!(contents, Contents::NoResponse(_));
        world.unlisted = Some(contents);
        world.delete("Namespace", "shop");
        assert!(world.settle());
        assert_eq!(world.holders("Namespace", "shop"), ["member1", "member2"]);
        let reported = world.events.iter().any(|each| each.contains("NamespaceKept"));
        assert_eq!(reported, !lasts, "what may answer again is asked again");
        assert!(world.settle_for(600_000));
        assert_eq!(world.holders("Namespace", "shop"), ["member1", "member2"]);
        is_reported_once(&world, why);
        world.unlisted = None;
        assert!(world.settle_for(600_000));
        let live = world.on("member1", "Namespace", "shop").expect("released");
        assert!(
            !live["metadata"]["annotations"]
                .to_string()
                .contains("entourage.dev")
        );
    }
}

#[test]
fn what_does_not_answer_for_a_moment_does_not_keep_a_namespace() {
    let mut world = shops(&[]);
    world.unlisted = Some(Contents::NoResponse("a server is down".into()));
    world.delete("Namespace", "shop");
    assert!(world.settle());
    assert_eq!(world.holders("Namespace", "shop"), ["member1", "member2"]);
    world.unlisted = None;
    assert!(world.settle_for(300_000));
    assert_eq!(world.holders("Namespace", "shop"), [""; 0]);
}

#[test]
fn what_leaves_a_namespace_is_waited_for() {
    for leaves in [true, false] {
        let mut pod = inside("v1", "Pod", "web-1");
        pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        let mut world = shops(&[pod]);
        world.delete("Namespace", "shop");
        assert!(world.settle());
        assert_eq!(world.holders("Namespace", "shop"), ["member1"]);
        assert!(!world.events.iter().any(|each| each.contains("NamespaceKept")));
        if leaves {
            let key = id("Pod", "shop", "web-1");
            world.meddle_at("member1", &key, |_| None);
            assert!(world.settle_for(300_000));
            assert_eq!(world.holders("Namespace", "shop"), [""; 0]);
        } else {
            assert!(world.settle_for(600_000));
            assert_eq!(world.holders("Namespace", "shop"), ["member1"]);
            is_reported_once(&world, "Pod web-1");
        }
    }
}

#[test]
fn a_namespace_that_comes_back_on_the_hub_stays() {
    let mut world = shops(&[]);
    world.set_down("member1", true);
    world.delete("Namespace", "shop");
    assert!(world.settle());
    assert_eq!(world.holders("Namespace", "shop"), ["member1"]);
    world.apply(namespace("shop", &json!({"team": "b"})));
    world.set_down("member1", false);
    assert!(world.settle_for(300_000));
    assert_eq!(world.holders("Namespace", "shop"), ["member1", "member2"]);
    let deleted = |write: &&String| write.contains("member1 Delete");
    assert_eq!(world.writes.iter().filter(deleted).count(), 0);
}

#[test]
fn a_namespace_that_a_cluster_policy_placed_ends_unless_its_resources_are_preserved() {
    for preserve in [false, true] {
        let mut world = world();
        let selectors = json!([{"apiVersion": "v1", "kind": "Namespace", "name": "shop"}]);
        let policy = cluster_policy("shop", &selectors, &["member1"]);
        world.apply(with(policy, &json!({ "preserveResourcesOnDeletion": preserve })));
        let labels = json!({"namespace.karmada.io/skip-auto-propagation": "true"});
        world.apply(namespace("shop", &labels));
        assert!(world.settle());
        assert_eq!(world.holders("Namespace", "shop"), ["member1"]);
        world.delete("Namespace", "shop");
        assert!(world.settle());
        let left: &[&str] = if preserve { &["member1"] } else { &[] };
        assert_eq!(world.holders("Namespace", "shop"), left);
        world.restart();
        assert!(world.settle_for(300_000));
        assert_eq!(world.holders("Namespace", "shop"), left);
    }
}

#[test]
fn copies_of_distributions_go_with_their_namespace_and_those_of_another_hub_keep_it() {
    for other in [false, true] {
        let mut world = World::distributing(&["member1", "member2"]);
        world.apply(namespace("shop", &json!({"team": "a"})));
        assert!(world.settle());
        let mut targets = named(&["shop"]);
        targets["clusters"] = json!({"clusterNames": ["member1"]});
        world.apply(distribution("d", "one", &targets));
        assert!(world.settle());
        let key = id("ConfigMap", "shop", "settings");
        assert!(world.at("member1", &key).is_some(), "it is distributed");
        if other {
            let mut theirs = world.at("member1", &key).expect("it is there").clone();
            theirs["metadata"]["name"] = json!("theirs");
            theirs["metadata"]["labels"]["entourage.dev/distributed-by"] = json!("other-hub");
            let key = id("ConfigMap", "shop", "theirs");
            world.meddle_at("member1", &key, |_| Some(theirs));
        }
        world.delete("Namespace", "shop");
        assert!(world.settle());
        let left: &[&str] = if other { &["member1"] } else { &[] };
        assert_eq!(world.holders("Namespace", "shop"), left);
        if other {
            is_reported_once(&world, "ConfigMap theirs");
        }
    }
}

#[test]
fn a_namespace_that_was_deleted_before_a_takeover_ends_after_it() {
    let mut world = shops(&[]);
    world.stand_by();
    assert!(world.settle());
    world.delete("Namespace", "shop");
    // The leader dies before it did anything about it.
    world.take_over();
    assert!(world.settle());
    assert_eq!(world.holders("Namespace", "shop"), [""; 0]);
}

/// One of these names on each member, made for the hub.
fn many(count: usize) -> (World, Vec<String>) {
    let mut world = world();
    let names: Vec<String> = (0..count).map(|n| format!("shop{n:02}")).collect();
    for name in &names {
        world.apply(namespace(name, &json!({"team": "a"})));
    }
    assert!(world.settle());
    (world, names)
}

fn is_paused(world: &World, member: &str) -> bool {
    let cluster = world.hub_object("Cluster", member).expect("cluster");
    let mut all = cluster["status"]["conditions"].as_array().into_iter().flatten();
    all.any(|each| each["type"] == "RemovalsPaused" && each["status"] == "True")
}

/// True if it still has the record that we created it.
fn has_record(world: &World, member: &str, name: &str) -> bool {
    let live = world.on(member, "Namespace", name).expect("it is there");
    live["metadata"]["annotations"]["entourage.dev/created-by"].is_string()
}

#[test]
fn a_namespace_that_was_restored_with_our_record_is_never_deleted() {
    let mut world = shops(&[]);
    let ours = world.on("member1", "Namespace", "shop").expect("ours").clone();
    world.delete("Namespace", "shop");
    assert!(world.settle());
    assert_eq!(world.holders("Namespace", "shop"), [""; 0]);
    let writes = world.writes.len();
    world.meddle("member1", "Namespace", "shop", |_| Some(ours));
    assert!(world.settle_for(600_000));
    assert_eq!(world.holders("Namespace", "shop"), ["member1"]);
    assert_eq!(world.writes[writes..], ["member1 Release namespace shop"]);
    is_reported_once(&world, "it was restored or copied there");
    assert!(!has_record(&world, "member1", "shop"));
}

#[test]
fn a_namespace_whose_record_has_no_uid_is_released() {
    let mut world = shops(&[]);
    world.meddle("member1", "Namespace", "shop", |mut live| {
        live["metadata"]["annotations"]["entourage.dev/created-by"] = json!("hub-id/member1");
        Some(live)
    });
    assert!(world.settle());
    assert!(has_record(&world, "member1", "shop"), "while the hub has it");
    world.delete("Namespace", "shop");
    assert!(world.settle());
    assert_eq!(world.holders("Namespace", "shop"), ["member1"]);
    is_reported_once(&world, "created by an earlier version");
}

#[test]
fn releases_that_nothing_explains_pause_as_deletions_do() {
    let (mut world, names) = many(30);
    for name in &names {
        let key = id("ConfigMap", name, "theirs");
        let mut theirs = config_map("theirs", "a");
        theirs["metadata"]["namespace"] = json!(name);
        world.meddle_at("member1", &key, |_| Some(theirs));
    }
    world.hub.retain(|key, _| !key.name.starts_with("shop"));
    world.restart();
    assert!(world.settle_for(600_000));
    let kept = |world: &World| {
        let kept = names.iter().filter(|name| has_record(world, "member1", name));
        kept.count()
    };
    assert_eq!(kept(&world), 10);
    assert!(is_paused(&world, "member1"));
    world.release_removals();
    assert!(world.settle_for(600_000));
    assert_eq!(kept(&world), 0);
}

#[test]
fn what_the_hub_has_is_not_released() {
    let mut world = shops(&[]);
    world.meddle("member1", "Namespace", "shop", |mut live| {
        live["metadata"]["annotations"]["managed-by.entourage.dev/other"] = json!("{}");
        Some(live)
    });
    assert!(world.settle());
    let writes = world.writes.len();
    // What was reported of the hub is wrong.
    let which = ObjectRef::Namespace(None, "shop".into());
    let (uid, revision) = (None, None);
    world.tell_again(Observation::Gone { which, uid, revision });
    world.settle_for(600_000);
    assert!(has_record(&world, "member1", "shop"));
    assert_eq!(world.writes.len(), writes, "{:?}", &world.writes[writes..]);
}

#[test]
fn that_a_namespace_stays_is_reported_when_it_was_released() {
    let mut world = shops(&[inside("v1", "PersistentVolumeClaim", "data")]);
    world.changed_before_it_ends = 3;
    world.set_down("member2", true);
    world.delete("Namespace", "shop");
    assert!(world.settle());
    assert!(!has_record(&world, "member1", "shop"));
    is_reported_once(&world, "PersistentVolumeClaim data");
}

#[test]
fn a_deletion_that_is_tried_again_counts_once() {
    let mut world = shops(&[]);
    world.set_down("member2", true);
    world.hub.retain(|key, _| &*key.name != "shop");
    world.changed_before_it_ends = 50;
    world.restart();
    assert!(world.settle_for(600_000));
    assert_eq!(world.changed_before_it_ends, 0, "it was tried");
    assert_eq!(world.holders("Namespace", "shop"), ["member2"]);
    assert!(!is_paused(&world, "member1"));
}

#[test]
fn what_was_found_for_an_earlier_deletion_is_not_taken_for_this_one() {
    let mut world = shops(&[]);
    let old = Contents::Held("Pod old".into());
    world.tell_again(Observation::LookedInto("member1".into(), "shop".into(), old));
    assert!(world.settle());
    world.delete("Namespace", "shop");
    assert!(world.settle());
    assert_eq!(world.holders("Namespace", "shop"), [""; 0]);
}

#[test]
fn the_end_of_a_namespace_explains_nothing_of_one_that_comes_later() {
    let mut world = world();
    let names: Vec<String> = (0..30).map(|n| format!("shop{n:02}")).collect();
    for name in &names {
        // It was there before, so it stays.
        world.meddle("member2", "Namespace", name, |_| {
            Some(namespace(name, &json!({})))
        });
        world.apply(namespace(name, &json!({"team": "a"})));
    }
    assert!(world.settle());
    let ours = |name: &String| world.on("member1", "Namespace", name).expect("ours").clone();
    let ours: Vec<Value> = names.iter().map(ours).collect();
    for name in &names {
        world.delete("Namespace", name);
    }
    assert!(world.settle());
    assert_eq!(world.holders("Namespace", "shop07"), ["member2"]);
    assert!(!is_paused(&world, "member1"));
    for (name, ours) in names.iter().zip(ours) {
        world.meddle("member1", "Namespace", name, |_| Some(ours));
    }
    assert!(world.settle_for(600_000));
    assert!(is_paused(&world, "member1"));
}
