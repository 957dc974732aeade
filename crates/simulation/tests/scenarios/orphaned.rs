//! Templates deleted with `--cascade=orphan`: nothing on members is touched, until the template is back or the binding is
//! deleted.

use std::collections::BTreeMap;

use entourage_core::{
    object::{Gvk, ResourceId},
    observation::Observation,
    plan::Key,
};
use serde_json::{Value, json};

use crate::{binding, condition, config_map, deployment, policy, settled, world::World};

fn id(api_version: &str, kind: &str, name: &str) -> ResourceId {
    ResourceId::new(Gvk::new(api_version, kind), "default", name)
}

fn held(world: &World) -> Vec<BTreeMap<ResourceId, Value>> {
    world
        .members
        .values()
        .map(|objects| (**objects).clone())
        .collect()
}

/// The example, its workload deleted with `--cascade=orphan`.
fn orphaned() -> World {
    let mut world = settled();
    let before = held(&world);
    world.delete_orphaning("Deployment", "myapp");
    assert!(world.settle_for(600_000));
    assert_eq!(held(&world), before);
    world
}

fn is_released(world: &World, member: &str, kind: &str, name: &str) -> bool {
    let meta = &world.on(member, kind, name).expect("copy")["metadata"];
    let text = meta.to_string();
    !text.contains("karmada.io") && !text.contains("entourage.dev")
}

fn writes_on_members(world: &World, since: usize) -> Vec<String> {
    let all = world.writes[since..].iter();
    all.filter(|each| !each.starts_with("hub")).cloned().collect()
}

#[test]
fn an_orphaned_workload_stays_on_its_members_and_its_binding_says_so() {
    let world = orphaned();
    let bound = binding(&world, "myapp-deployment");
    assert_eq!(bound["metadata"]["ownerReferences"], json!([]));
    let reported = condition(&world, "myapp-deployment", "Orphaned");
    assert_eq!(
        (&reported["status"], &reported["reason"]),
        (&json!("True"), &json!("TemplateOrphaned"))
    );
    assert_eq!(reported["observedGeneration"], bound["metadata"]["generation"]);
    let says = reported["message"].as_str().expect("message");
    assert!(
        says.contains("its 2 copies on member1, member2 are kept"),
        "{says}"
    );
    let types: Vec<&Value> = bound["status"]["conditions"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|each| &each["type"])
        .collect();
    assert_eq!(types, [&json!("Orphaned")], "what spoke of the template is over");
    let events = world
        .events
        .iter()
        .filter(|each| each.starts_with("TemplateOrphaned"));
    assert_eq!(events.count(), 1);
    let attached = binding(&world, "my-config-configmap");
    assert_eq!(attached["spec"]["requiredBy"][0]["name"], "myapp-deployment");
}

#[test]
fn an_orphaned_workload_costs_no_write_after_a_restart_and_no_event() {
    let mut world = orphaned();
    let (wrote, reported) = (world.writes.len(), world.events.len());
    world.restart();
    assert!(world.settle_for(600_000));
    assert_eq!(world.writes[wrote..], [""; 0]);
    assert_eq!(world.events.len(), reported);
}

#[test]
fn what_an_orphaned_workload_needs_is_still_brought_up_to_date() {
    for restart in [false, true] {
        let mut world = orphaned();
        if restart {
            world.restart();
            assert!(world.settle());
        }
        world.apply(config_map("my-config", "two"));
        assert!(world.settle_for(600_000));
        for member in ["member1", "member2"] {
            let copy = world.on(member, "ConfigMap", "my-config").expect("copy");
            assert_eq!(copy["data"]["key"], "two", "restart: {restart}");
        }
    }
}

#[test]
fn a_copy_of_an_orphaned_workload_that_is_changed_by_hand_stays_so() {
    let mut world = orphaned();
    world.meddle("member1", "Deployment", "myapp", |mut copy| {
        copy["spec"]["replicas"] = json!(7);
        Some(copy)
    });
    assert!(world.settle_for(600_000));
    let copy = world.on("member1", "Deployment", "myapp").expect("copy");
    assert_eq!(copy["spec"]["replicas"], 7);
}

#[test]
fn a_new_template_takes_the_copies_over_and_rewrites_nothing_that_is_equal() {
    for restart in [false, true] {
        let mut world = orphaned();
        let (before, wrote) = (held(&world), world.writes.len());
        if restart {
            world.restart();
            assert!(world.settle());
        }
        world.apply(deployment("myapp", &["my-config"]));
        assert!(world.settle_for(600_000));
        let template = world.hub_object("Deployment", "myapp").expect("template");
        let bound = binding(&world, "myapp-deployment");
        let owners = bound["metadata"]["ownerReferences"].as_array().expect("owners");
        assert_eq!(owners.len(), 1);
        assert_eq!(owners[0]["uid"], template["metadata"]["uid"]);
        assert!(condition(&world, "myapp-deployment", "Orphaned").is_null());
        let applied = condition(&world, "myapp-deployment", "FullyApplied");
        assert_eq!(applied["status"], "True", "{applied}");
        // The annotation that names the template's uid, and nothing else.
        let wrote = writes_on_members(&world, wrote);
        assert_eq!(
            wrote
                .iter()
                .filter(|each| each.contains("PUT Deployment"))
                .count(),
            2,
            "{wrote:?}"
        );
        assert_eq!(wrote.len(), 2, "restart: {restart}: {wrote:?}");
        for (before, after) in before.iter().zip(held(&world)) {
            for (key, before) in before {
                let after = &after[key];
                assert_eq!(before["metadata"]["uid"], after["metadata"]["uid"]);
                assert_eq!(before["spec"], after["spec"]);
            }
        }
    }
}

#[test]
fn what_differs_in_the_new_template_is_written() {
    let mut world = orphaned();
    let mut next = deployment("myapp", &["my-config"]);
    next["spec"]["template"]["spec"]["containers"][0]["image"] = json!("nginx:2");
    world.apply(next);
    assert!(world.settle_for(600_000));
    for member in ["member1", "member2"] {
        let copy = world.on(member, "Deployment", "myapp").expect("copy");
        assert_eq!(
            copy["spec"]["template"]["spec"]["containers"][0]["image"],
            "nginx:2"
        );
    }
    // From now on it is a template as any other.
    world.delete("Deployment", "myapp");
    assert!(world.settle_for(600_000));
    assert!(world.members.values().all(|member| member.is_empty()));
}

#[test]
fn deleting_an_orphaned_binding_releases_the_copies_and_what_they_need() {
    for restart in [false, true] {
        let mut world = orphaned();
        if restart {
            world.restart();
            assert!(world.settle());
        }
        world.delete("ResourceBinding", "myapp-deployment");
        assert!(world.settle_for(600_000));
        for name in ["myapp-deployment", "my-config-configmap"] {
            assert!(world.hub_object("ResourceBinding", name).is_none(), "{name}");
        }
        for member in ["member1", "member2"] {
            assert!(is_released(&world, member, "Deployment", "myapp"));
            assert!(is_released(&world, member, "ConfigMap", "my-config"));
        }
        let wrote = world.writes.len();
        world.restart();
        assert!(world.settle_for(600_000));
        assert_eq!(world.writes[wrote..], [""; 0]);
    }
}

#[test]
fn no_copy_goes_while_the_binding_is_known_as_it_was() {
    let mut world = settled();
    world.hold_back("ResourceBinding");
    world.delete_orphaning("Deployment", "myapp");
    world.tell_again(Observation::Absent(id("apps/v1", "Deployment", "myapp")));
    for (kind, api_version, name) in [
        ("Deployment", "apps/v1", "myapp"),
        ("ConfigMap", "v1", "my-config"),
    ] {
        for member in ["member1", "member2"] {
            let key = Key::Copy(id(api_version, kind, name), member.into());
            let plan = world.process.engine.preview(&key, world.now);
            assert!(plan.changes.is_empty(), "{plan:?}");
        }
    }
    world.tell_all_late();
    let before = held(&world);
    assert!(world.settle_for(600_000));
    assert_eq!(held(&world), before);
    assert_eq!(
        condition(&world, "myapp-deployment", "Orphaned")["status"],
        "True"
    );
    assert_eq!(
        writes_on_members(&world, 0)
            .iter()
            .filter(|each| each.contains("Delete"))
            .count(),
        0
    );
}

#[test]
fn a_template_that_only_looks_as_if_it_stood_does_not_get_its_binding_back() {
    let mut world = settled();
    world.hold_back("Deployment");
    world.delete_orphaning("Deployment", "myapp");
    // The binding has no owner any more, and the template is still known as it was.
    assert!(world.settle_for(1_000));
    let bound = binding(&world, "myapp-deployment");
    assert_eq!(bound["metadata"]["ownerReferences"], json!([]));
    world.tell_all_late();
    assert!(world.settle_for(600_000));
    assert_eq!(
        condition(&world, "myapp-deployment", "Orphaned")["status"],
        "True"
    );
}

#[test]
fn an_orphaned_dependency_stays_also_when_its_workload_goes() {
    let mut world = settled();
    let before = held(&world);
    world.delete_orphaning("ConfigMap", "my-config");
    assert!(world.settle_for(600_000));
    assert_eq!(held(&world), before);
    world.delete("Deployment", "myapp");
    assert!(world.settle_for(600_000));
    assert_eq!(world.holders("Deployment", "myapp"), [""; 0]);
    assert_eq!(world.holders("ConfigMap", "my-config"), ["member1", "member2"]);
    world.delete("ResourceBinding", "my-config-configmap");
    assert!(world.settle_for(600_000));
    assert!(
        world
            .hub_object("ResourceBinding", "my-config-configmap")
            .is_none()
    );
    assert!(is_released(&world, "member1", "ConfigMap", "my-config"));
}

#[test]
fn a_dependency_deleted_on_the_hub_goes_from_under_an_orphaned_workload_too() {
    let mut world = orphaned();
    world.delete("ConfigMap", "my-config");
    assert!(world.settle_for(600_000));
    assert_eq!(world.holders("ConfigMap", "my-config"), [""; 0]);
    assert_eq!(world.holders("Deployment", "myapp"), ["member1", "member2"]);
}

#[test]
fn the_policy_of_an_orphaned_workload_can_be_deleted() {
    let mut world = orphaned();
    let before = held(&world);
    world.delete("PropagationPolicy", "myapp-propagation");
    assert!(world.settle_for(600_000));
    assert!(
        world
            .hub_object("PropagationPolicy", "myapp-propagation")
            .is_none()
    );
    assert_eq!(held(&world), before);
    // Whatever a new policy says counts when the template is back.
    world.apply(policy(&["member2", "member3"]));
    assert!(world.settle());
    assert_eq!(held(&world), before);
    world.apply(deployment("myapp", &["my-config"]));
    assert!(world.settle_for(600_000));
    assert_eq!(world.holders("Deployment", "myapp"), ["member2", "member3"]);
    assert_eq!(world.holders("ConfigMap", "my-config"), ["member2", "member3"]);
}

#[test]
fn a_crash_after_any_change_around_an_orphaned_workload_leads_to_the_same_end() {
    type Act = fn(&mut World);
    let acts: [Act; 3] = [
        |world| world.delete_orphaning("Deployment", "myapp"),
        |world| world.apply(deployment("myapp", &["my-config"])),
        |world| world.delete("ResourceBinding", "myapp-deployment"),
    ];
    for (at, act) in acts.into_iter().enumerate() {
        let begin = || if at == 0 { settled() } else { orphaned() };
        let mut undisturbed = begin();
        let wrote = undisturbed.writes.len();
        act(&mut undisturbed);
        assert!(undisturbed.settle());
        let total = undisturbed.writes.len() - wrote;
        assert!(total > 0);
        for k in 1..=total {
            let mut world = begin();
            act(&mut world);
            world.crash_in = Some(k);
            if !world.settle() {
                world.restart();
                assert!(world.settle());
            }
            let (want, got) = (undisturbed.outline(), world.outline());
            for key in want.keys().chain(got.keys()) {
                assert_eq!(want.get(key), got.get(key), "act {at}, crash after {k}: {key}");
            }
        }
    }
}

#[test]
fn a_garbage_collector_that_does_not_know_bindings_yet_costs_nothing() {
    for settles in [true, false] {
        let mut world = settled();
        let before = held(&world);
        world.delete_orphaning_unnoticed("Deployment", "myapp", |world| {
            assert!(!settles || world.settle());
        });
        assert!(world.settle_for(600_000));
        assert_eq!(held(&world), before, "{settles}");
        let bound = binding(&world, "myapp-deployment");
        assert_eq!(bound["metadata"]["ownerReferences"], json!([]), "{settles}");
        let reported = condition(&world, "myapp-deployment", "Orphaned");
        assert_eq!(reported["status"], "True", "{settles}");
    }
}
