//! Ownership of an object on a member: metadata that was copied or restored with an object proves nothing.

use entourage_api::names;
use entourage_core::{
    adoption::{
        Decision, Transfer,
        karmada::{self, Karmada},
    },
    object::{Gvk, Meta, ResourceId},
    observation::Watch,
};
use serde_json::{Value, json};

use crate::{
    config_map, deployment, example, policy, policy_of, settled,
    world::{World, id},
};

const COPIED: &str = "entourage.dev/copied-objects";

/// As `kubectl get -o yaml` of one member, applied to another one.
fn copy(world: &mut World, from: &str, to: &str, kind: &str, name: &str) -> Value {
    let object = world.on(from, kind, name).expect("it is there").clone();
    put(world, to, kind, name, object)
}

fn put(world: &mut World, to: &str, kind: &str, name: &str, mut object: Value) -> Value {
    for field in ["uid", "resourceVersion", "creationTimestamp"] {
        object["metadata"]
            .as_object_mut()
            .expect("metadata")
            .remove(field);
    }
    world.meddle(to, kind, name, |_| Some(object));
    world.on(to, kind, name).expect("it was put there").clone()
}

fn reported(world: &World, cluster: &str) -> Value {
    let cluster = world.hub_object("Cluster", cluster).expect("Cluster");
    let text = cluster["metadata"]["annotations"][COPIED].as_str();
    text.map_or(Value::Null, |text| serde_json::from_str(text).expect("JSON"))
}

#[test]
fn an_object_copied_from_another_member_is_never_touched_and_is_reported() {
    let mut world = settled();
    let deployment = copy(&mut world, "member1", "member3", "Deployment", "myapp");
    let config = copy(&mut world, "member2", "member3", "ConfigMap", "my-config");
    assert!(world.settle());
    for restart in [false, true] {
        if restart {
            world.restart();
        }
        assert!(world.settle());
        assert_eq!(world.on("member3", "Deployment", "myapp"), Some(&deployment));
        assert_eq!(world.on("member3", "ConfigMap", "my-config"), Some(&config));
        let report = reported(&world, "member3");
        assert_eq!(report["count"], 2);
        assert_eq!(
            report["objects"],
            json!([
                "v1 ConfigMap default/my-config",
                "apps/v1 Deployment default/myapp"
            ])
        );
        assert_eq!(world.process.engine.stats().copied, 2);
    }
    let wrote = world.writes.len();
    world.restart();
    assert!(world.settle_for(120_000));
    assert_eq!(world.writes.len(), wrote, "{:#?}", &world.writes[wrote..]);
    for (kind, name) in [("Deployment", "myapp"), ("ConfigMap", "my-config")] {
        world.meddle("member3", kind, name, |_| None);
    }
    assert!(world.settle());
    assert_eq!(reported(&world, "member3"), Value::Null);
}

#[test]
fn a_copy_of_a_former_hub_is_taken_up_at_once_when_its_marks_become_ours() {
    let mut world = settled();
    let set = |world: &mut World, hub: &Value| {
        world.meddle("member1", "ConfigMap", "my-config", |mut object| {
            object["metadata"]["labels"]["entourage.dev/hub"] = hub.clone();
            Some(object)
        });
    };
    let copy = world
        .on("member1", "ConfigMap", "my-config")
        .expect("copy")
        .clone();
    set(&mut world, &json!("former"));
    world.apply(config_map("my-config", "two"));
    // Long enough for the longest pause between two attempts.
    assert!(world.settle_for(400_000));
    let left = world.on("member1", "ConfigMap", "my-config").expect("copy");
    assert_eq!(left["data"], copy["data"], "another hub's");
    let binding = world.hub_object("ResourceBinding", "my-config-configmap");
    let status = binding.expect("binding")["status"].to_string();
    assert!(
        status.contains("by hub former") && status.contains("entourage adopt --former-hub former"),
        "{status}"
    );
    set(&mut world, &copy["metadata"]["labels"]["entourage.dev/hub"]);
    assert!(world.settle_for(1_000));
    let adopted = world.on("member1", "ConfigMap", "my-config").expect("copy");
    assert_eq!(adopted["data"]["key"], "two");
    assert_eq!(adopted["metadata"]["uid"], copy["metadata"]["uid"]);
}

/// A Karmada with the Work and the binding of `my-config` on member1, and its copy there.
fn karmada() -> (Karmada, Value) {
    let binding = json!({"resourcebinding.karmada.io/namespace": "default", "resourcebinding.karmada.io/name": "my-config-configmap"});
    let ids = json!({"work.karmada.io/permanent-id": "w", "resourcebinding.karmada.io/permanent-id": "b"});
    let work = names::work_name("default", "my-config", "ConfigMap");
    let mut copy = config_map("my-config", "one");
    copy["metadata"]["labels"] = ids.clone();
    copy["metadata"]["labels"]["karmada.io/managed"] = json!("true");
    copy["metadata"]["annotations"] = binding.clone();
    for (key, value) in [
        ("work.karmada.io/namespace", "karmada-es-member1"),
        ("work.karmada.io/name", work.as_str()),
        (
            "resourcetemplate.karmada.io/managed-labels",
            "karmada.io/managed,resourcebinding.karmada.io/permanent-id,work.karmada.io/permanent-id",
        ),
    ] {
        copy["metadata"]["annotations"][key] = json!(value);
    }
    let mut manifest = copy.clone();
    manifest["metadata"]["namespace"] = json!("default");
    let mut karmada = Karmada {
        id: "karmada".into(),
        ..Karmada::default()
    };
    karmada.add_work(
        &json!({"metadata": {"namespace": "karmada-es-member1", "name": work, "labels": ids,
        "annotations": binding}, "spec": {"workload": {"manifests": [manifest]}}}),
    );
    karmada.add_binding(
        &json!({"metadata": {"namespace": "default", "name": "my-config-configmap",
        "labels": {"resourcebinding.karmada.io/permanent-id": "b"}}}),
    );
    (karmada, copy)
}

#[test]
fn a_copy_of_a_karmada_is_taken_up_by_one_label_and_goes_back_as_it_was() {
    let (karmada, copy) = karmada();
    let transfer = Transfer {
        former: "karmada".into(),
        hub: "hub-id".into(),
        cluster: "member1".into(),
        namespaces: Default::default(),
    };
    let id = ResourceId::new(Gvk::new("v1", "ConfigMap"), "default", "my-config");
    let mut world = World::new(&["member1", "member2"]);
    let copy = put(&mut world, "member1", "ConfigMap", "my-config", copy);
    for object in example() {
        world.apply(object);
    }
    assert!(world.settle_for(400_000));
    let left = world.on("member1", "ConfigMap", "my-config");
    assert_eq!(left, Some(&copy), "nothing is taken over by its names");
    let binding = world.hub_object("ResourceBinding", "my-config-configmap");
    let status = binding.expect("binding")["status"].to_string();
    assert!(status.contains("entourage adopt --from-karmada"), "{status}");

    let merge = |world: &mut World, patch: &Value| {
        world.meddle("member1", "ConfigMap", "my-config", |mut object| {
            for field in ["labels", "annotations"] {
                for (key, value) in patch["metadata"][field].as_object().expect(field) {
                    object["metadata"][field][key] = value.clone();
                }
            }
            Some(object)
        });
    };
    let patch = karmada::patch(&karmada, &transfer, &Meta::of(&copy));
    merge(&mut world, &patch);
    assert!(world.settle_for(1_000));
    world.apply(config_map("my-config", "two"));
    assert!(world.settle_for(1_000));
    let adopted = world
        .on("member1", "ConfigMap", "my-config")
        .expect("copy")
        .clone();
    let (now, then) = (&adopted["metadata"], &copy["metadata"]);
    assert_eq!(
        (&now["uid"], &adopted["data"]["key"]),
        (&then["uid"], &json!("two"))
    );
    // The controllers replace the ids of Karmada, which are among the labels that it lists as its own; not the record.
    assert_eq!(now["labels"]["work.karmada.io/permanent-id"], Value::Null);
    assert_ne!(now["labels"]["resourcebinding.karmada.io/permanent-id"], "b");
    assert_eq!(now["annotations"]["entourage.dev/adopted-from"], "karmada/w/b");

    let live = Meta::of(&adopted);
    let decision = karmada::decide_return(&karmada, &transfer, &id, &live);
    assert_eq!(decision, Some(Decision::Return));
    let patch = karmada::return_patch(&live);
    for (key, value) in patch["metadata"]["labels"].as_object().expect("labels") {
        assert_eq!(*value, then["labels"][key], "{key}");
    }
}

#[test]
fn a_copied_object_stays_when_its_original_is_moved_or_deleted() {
    let mut world = settled();
    let copied = copy(&mut world, "member1", "member3", "Deployment", "myapp");
    assert!(world.settle());
    world.apply(policy(&["member2"]));
    assert!(world.settle());
    assert_eq!(world.holders("Deployment", "myapp"), ["member2", "member3"]);
    world.delete("Deployment", "myapp");
    assert!(world.settle());
    assert_eq!(world.on("member3", "Deployment", "myapp"), Some(&copied));
    assert_eq!(world.holders("Deployment", "myapp"), ["member3"]);
    assert!(
        world.hub_object("ResourceBinding", "myapp-deployment").is_none(),
        "nothing waits for it"
    );
}

#[test]
fn an_object_restored_where_the_binding_does_not_account_for_it_stays() {
    for restart in [false, true] {
        let mut world = settled();
        let backup = world.on("member1", "Deployment", "myapp").expect("copy").clone();
        world.apply(policy(&["member2"]));
        assert!(world.settle());
        let restored = put(&mut world, "member1", "Deployment", "myapp", backup);
        if restart {
            world.restart();
        }
        assert!(world.settle());
        assert_eq!(
            world.on("member1", "Deployment", "myapp"),
            Some(&restored),
            "restart {restart}"
        );
        assert_eq!(reported(&world, "member1")["count"], 1);
        // The binding accounts for it again: from then on it is managed, and moved as such.
        world.apply(policy(&["member1", "member2"]));
        assert!(world.settle());
        assert_eq!(reported(&world, "member1"), Value::Null);
        world.apply(policy(&["member2"]));
        assert!(world.settle());
        assert_eq!(world.holders("Deployment", "myapp"), ["member2"]);
    }
}

#[test]
fn what_a_restored_workload_needs_is_not_taken_from_under_it() {
    for (restart, failed) in [(false, false), (true, false), (true, true)] {
        let mut world = settled();
        world.apply(deployment("other", &["my-config"]));
        world.apply(policy_of("other", "apps/v1", "Deployment", "other", &["member1"]));
        let backup = world.on("member1", "Deployment", "myapp").expect("copy").clone();
        world.apply(policy(&["member2"]));
        assert!(world.settle());
        let restored = put(&mut world, "member1", "Deployment", "myapp", backup);
        assert!(world.settle());
        let list = Watch::Copies("member1".into(), Gvk::new("apps/v1", "Deployment"));
        if restart {
            world.restart();
            // What else stands on the member is known before what runs there is.
            world.shut.insert(list.clone());
            assert!(world.settle());
            if failed {
                world.lose(list.clone());
            }
        }
        world.delete("Deployment", "other");
        assert!(world.settle_for(120_000));
        world.shut.remove(&list);
        assert!(world.settle_for(120_000));
        let reported = format!("restart {restart}, failed {failed}");
        assert_eq!(
            world.on("member1", "Deployment", "myapp"),
            Some(&restored),
            "{reported}"
        );
        assert_eq!(world.holders("Deployment", "other"), [""; 0], "{reported}");
        assert_eq!(
            world.holders("ConfigMap", "my-config"),
            ["member1", "member2"],
            "{reported}"
        );
        // Nobody needs it there once whoever restored the workload has ended it.
        world.meddle("member1", "Deployment", "myapp", |_| None);
        assert!(world.settle_for(120_000));
        assert_eq!(world.holders("ConfigMap", "my-config"), ["member2"], "{reported}");
    }
}

#[test]
fn what_runs_while_its_binding_is_made_again_keeps_what_it_needs_although_we_crash() {
    let mut crashed = 0;
    for after in 1..20 {
        let mut world = settled();
        world.delete("ResourceBinding", "myapp-deployment");
        world.apply(policy(&["member2"]));
        world.crash_in = Some(after);
        if world.settle() {
            break;
        }
        crashed += 1;
        world.restart();
        let list = Watch::Copies("member1".into(), Gvk::new("apps/v1", "Deployment"));
        world.shut.insert(list.clone());
        assert!(world.settle_for(120_000));
        world.shut.remove(&list);
        assert!(world.settle_for(120_000));
        let stands = world.on("member1", "Deployment", "myapp").is_some();
        let needed = world.on("member1", "ConfigMap", "my-config").is_some();
        assert_eq!(stands, needed, "after {after} changes");
        assert!(world.on("member2", "Deployment", "myapp").is_some());
    }
    assert!(crashed > 2, "{crashed}");
}

#[test]
fn delivery_onto_a_copied_object_follows_conflict_resolution() {
    for (resolution, taken) in [("Abort", false), ("Overwrite", true)] {
        let mut world = settled();
        let copied = copy(&mut world, "member1", "member3", "ConfigMap", "my-config");
        assert!(world.settle());
        let mut moved = policy(&["member1", "member3"]);
        moved["spec"]["conflictResolution"] = json!(resolution);
        world.apply(moved);
        assert!(world.settle());
        let there = world.on("member3", "ConfigMap", "my-config").expect("there");
        let namespace = &there["metadata"]["annotations"]["work.karmada.io/namespace"];
        assert_eq!(*namespace == "karmada-es-member3", taken, "{resolution}");
        assert_eq!(there == &copied, !taken, "{resolution}");
        assert_eq!(reported(&world, "member3")["count"] == 1, !taken, "{resolution}");
        let binding = world
            .hub_object("ResourceBinding", "my-config-configmap")
            .expect("binding");
        let items = binding["status"]["aggregatedStatus"].as_array().expect("items");
        let item = items
            .iter()
            .find(|item| item["clusterName"] == "member3")
            .expect("item");
        assert_eq!(item["applied"] == true, taken, "{item}");
    }
}

#[test]
fn the_order_of_lists_does_not_decide_what_is_managed() {
    let mut world = settled();
    world.restart();
    // Copies are listed long before the bindings that account for them.
    let watch = entourage_core::observation::Watch::Bindings;
    world.shut.insert(watch.clone());
    assert!(world.settle());
    world.shut.remove(&watch);
    let wrote = world.writes.len();
    assert!(world.settle());
    assert_eq!(world.writes.len(), wrote, "{:#?}", &world.writes[wrote..]);
    assert_eq!(world.process.engine.stats().copied, 0);
    world.apply(policy(&["member2"]));
    assert!(world.settle());
    assert_eq!(world.holders("Deployment", "myapp"), ["member2"]);
}

#[test]
fn a_member_that_leaves_keeps_what_was_copied_there_as_it_is() {
    let mut world = World::new(&["member1", "member2", "member3"]);
    assert!(world.settle());
    for object in example() {
        world.apply(object);
    }
    world.apply(config_map("other", "x"));
    assert!(world.settle());
    let copied = copy(&mut world, "member1", "member3", "Deployment", "myapp");
    assert!(world.settle());
    let mut cluster = world.hub_object("Cluster", "member3").expect("Cluster").clone();
    cluster["metadata"]["annotations"]["entourage.dev/on-unjoin"] = json!("Remove");
    world.replace(cluster);
    world.delete("Cluster", "member3");
    assert!(world.settle());
    assert!(
        world.hub_object("Cluster", "member3").is_none(),
        "nothing holds it"
    );
    assert_eq!(world.on("member3", "Deployment", "myapp"), Some(&copied));
}

#[test]
fn a_copy_on_an_unresponsive_member_is_accounted_for_although_no_status_records_it() {
    for made_again in [false, true] {
        let mut world = settled();
        world.apply(policy(&["member1"]));
        assert!(world.settle());
        // As another control plane left it, or this one when it ended before it wrote the status.
        let name = id("ResourceBinding", "default", "myapp-deployment");
        let mut stored = world.hub[&name].clone();
        stored["status"]["aggregatedStatus"] = json!([{"clusterName": "member1", "health": "Unknown"}]);
        world.hub.insert(name, stored);
        world.set_down("member1", true);
        world.restart();
        assert!(world.settle_for(120_000));
        if made_again {
            world.delete("ResourceBinding", "myapp-deployment");
        }
        world.apply(policy(&["member2"]));
        assert!(world.settle_for(120_000));
        // What it reported of the member ends with a process that knew more than the binding says.
        world.restart();
        assert!(world.settle_for(120_000));
        world.set_down("member1", false);
        assert!(world.settle_for(120_000));
        assert_eq!(
            world.holders("Deployment", "myapp"),
            ["member2"],
            "made again: {made_again}"
        );
        assert_eq!(reported(&world, "member1"), Value::Null);
        let meta = &world
            .hub_object("ResourceBinding", "myapp-deployment")
            .expect("binding")["metadata"];
        assert!(
            meta["annotations"]["entourage.dev/former-clusters"].is_null(),
            "{meta}"
        );
    }
}
