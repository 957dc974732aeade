//! Problems of copies: what is reported of one ends with its cause, as a restart would have it.

use entourage_core::{
    object::{Gvk, ResourceId},
    plan::Key,
};
use serde_json::json;

use crate::{
    binding, condition, config_map, deployment,
    overrides::{of_config, override_policy, sets},
    policy, settled,
    world::World,
};

/// The messages of FullyApplied of the ConfigMap and of DependenciesReady of the workload.
fn reported(world: &World) -> (String, String) {
    let reported = |name: &str, type_: &str| {
        let condition = condition(world, name, type_);
        let text = |field: &str| condition[field].as_str().unwrap_or_default();
        format!("{} {}: {}", text("status"), text("reason"), text("message"))
    };
    (
        reported("my-config-configmap", "FullyApplied"),
        reported("myapp-deployment", "DependenciesReady"),
    )
}

/// The same is reported after a restart, and nothing is written for it.
fn assert_restart_agrees(world: &mut World) {
    let (before, wrote) = (reported(world), world.writes.len());
    world.restart();
    assert!(world.settle());
    assert_eq!(reported(world), before);
    assert_eq!(world.writes[wrote..], [""; 0]);
}

fn is_bad(object: &serde_json::Value) -> bool {
    object["data"]["key"] == "bad" || object["spec"]["replicas"] == 5
}

#[test]
fn an_override_that_a_member_refused_leaves_no_trace_once_it_is_deleted() {
    for mute in [false, true] {
        let mut world = settled();
        let (before, outline) = (reported(&world), world.outline());
        world.refuses = Some(is_bad);
        world.mute = mute;
        world.apply(of_config(override_policy(
            "config",
            &sets("member1", "/data/key", "bad"),
        )));
        assert!(world.settle());
        assert!(reported(&world).0.starts_with("False"), "{:?}", reported(&world));
        assert!(
            reported(&world).1.starts_with("False NotDelivered"),
            "{:?}",
            reported(&world)
        );
        world.mute = false;
        let wrote = world.writes.len();
        world.delete("OverridePolicy", "config");
        assert!(world.settle());
        assert_eq!(reported(&world), before, "mute: {mute}");
        assert_eq!(world.outline(), outline);
        let on_members: Vec<_> = world.writes[wrote..]
            .iter()
            .filter(|each| each.starts_with("member"))
            .collect();
        assert_eq!(on_members, [""; 0], "the copy was right all the time");
        assert_restart_agrees(&mut world);
    }
}

#[test]
fn a_write_without_an_answer_is_looked_into_although_nothing_is_left_to_write() {
    let mut world = settled();
    world.mute = true;
    world.apply(of_config(override_policy(
        "config",
        &sets("member1", "/data/key", "unanswered"),
    )));
    assert!(world.settle());
    world.delete("OverridePolicy", "config");
    assert!(world.settle_for(0));
    let config = ResourceId::new(Gvk::new("v1", "ConfigMap"), "default", "my-config");
    let plan = world.planned(&Key::Copy(config, "member1".into()));
    assert!(plan.changes.is_empty(), "{plan:?}");
    assert!(plan.again_at.is_some(), "{plan:?}");
}

#[test]
fn a_label_that_an_override_needs_and_that_is_put_back_ends_what_was_reported() {
    let mut world = World::new(&["member1"]);
    let mut workload = deployment("myapp", &[]);
    workload["metadata"]["labels"]["tier"] = json!("front");
    world.apply(workload);
    world.apply(policy(&["member1"]));
    let mut tiers = override_policy("tiers", &sets("member1", "/metadata/labels/tier", "back"));
    tiers["spec"]["resourceSelectors"] = json!([{"apiVersion": "apps/v1", "kind": "Deployment"}]);
    world.apply(tiers);
    assert!(world.settle());
    let applied = |world: &World| condition(world, "myapp-deployment", "FullyApplied")["status"].clone();
    assert_eq!(applied(&world), "True");
    let relabel = |world: &mut World, value: serde_json::Value| {
        let mut template = world.hub_object("Deployment", "myapp").expect("template").clone();
        template["metadata"]["labels"]["tier"] = value.clone();
        if value.is_null() {
            template["metadata"]["labels"]
                .as_object_mut()
                .expect("labels")
                .remove("tier");
        }
        world.replace(template);
        assert!(world.settle());
    };
    relabel(&mut world, json!(null));
    assert_eq!(applied(&world), "False");
    relabel(&mut world, json!("front"));
    assert_eq!(applied(&world), "True");
}

#[test]
fn a_removal_that_was_refused_is_not_reported_of_a_copy_that_is_wanted_again() {
    let mut world = settled();
    let before = reported(&world);
    world.refuses_removal = true;
    world.apply(policy(&["member2"]));
    assert!(world.settle());
    let refused = |world: &World| {
        binding(world, "myapp-deployment")["status"]
            .to_string()
            .contains("refused to remove")
    };
    assert!(refused(&world));
    world.apply(policy(&["member1", "member2"]));
    assert!(world.settle());
    assert!(
        !refused(&world),
        "{:#}",
        binding(&world, "myapp-deployment")["status"]
    );
    assert_eq!(
        condition(&world, "myapp-deployment", "FullyApplied")["status"],
        "True"
    );
    assert_eq!(reported(&world), before);
    assert_restart_agrees(&mut world);
}

#[test]
fn a_removal_that_a_member_fails_is_reported_with_its_error_and_made_again() {
    let mut world = settled();
    world.failing_removals = usize::MAX;
    world.apply(policy(&["member2"]));
    world.settle_for(5_000);
    let status = binding(&world, "myapp-deployment")["status"].to_string();
    assert!(
        status.contains("member1 failed to remove") && status.contains("overloaded; retrying"),
        "{status}"
    );
    world.failing_removals = 0;
    assert!(world.settle());
    assert_eq!(world.holders("Deployment", "myapp"), ["member2"]);
    assert_restart_agrees(&mut world);
}

#[test]
fn replicas_that_were_refused_and_are_taken_back_leave_no_trace() {
    let mut world = World::new(&["member1"]);
    let replicas = |world: &mut World, count: i64| {
        let mut workload = deployment("myapp", &[]);
        workload["spec"]["replicas"] = json!(count);
        world.apply(workload);
        assert!(world.settle());
    };
    let mut divided = policy(&["member1"]);
    divided["spec"]["placement"]["replicaScheduling"] =
        json!({"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted"});
    world.apply(divided);
    replicas(&mut world, 3);
    world.refuses = Some(is_bad);
    let shares = |world: &mut World, count: i64| {
        let mut bound = binding(world, "myapp-deployment").clone();
        bound["spec"]["clusters"][0]["replicas"] = json!(count);
        // Another scheduler shares out: what it wrote stays.
        bound["spec"]["schedulerName"] = json!("other");
        world.replace(bound);
        assert!(world.settle());
    };
    let mut policy = world
        .hub_object("PropagationPolicy", "myapp-propagation")
        .expect("policy")
        .clone();
    policy["spec"]["schedulerName"] = json!("other");
    world.replace(policy);
    assert!(world.settle());
    let applied = |world: &World| condition(world, "myapp-deployment", "FullyApplied")["status"].clone();
    shares(&mut world, 5);
    assert_eq!(applied(&world), "False");
    shares(&mut world, 3);
    assert_eq!(applied(&world), "True");
}

#[test]
fn a_problem_stays_as_long_as_its_cause() {
    let mut world = settled();
    world.refuses = Some(is_bad);
    world.apply(config_map("my-config", "bad"));
    assert!(world.settle_for(120_000));
    assert!(
        reported(&world).0.starts_with("False FullyAppliedFailed"),
        "{:?}",
        reported(&world)
    );
    world.refuses = None;
    assert!(world.settle_for(120_000));
    assert!(reported(&world).0.starts_with("True"), "{:?}", reported(&world));
}

/// The reason in the stored entry of member1 for the ConfigMap.
fn reason(world: &World) -> Option<&str> {
    let items = &binding(world, "my-config-configmap")["status"]["aggregatedStatus"];
    items[0]["appliedReason"].as_str()
}

#[test]
fn an_entry_of_an_earlier_version_gets_its_reason_with_its_next_write() {
    let mut world = settled();
    world.refuses = Some(is_bad);
    let refused = |value: &str| of_config(override_policy("config", &sets("member1", "/data/key", value)));
    world.apply(refused("bad"));
    assert!(world.settle());
    assert_eq!(reason(&world), Some("Refused"));
    for stored in world.hub.values_mut() {
        let items = stored["status"]["aggregatedStatus"].as_array_mut();
        for item in items.into_iter().flatten() {
            item.as_object_mut().expect("entry").remove("appliedReason");
        }
    }
    assert_restart_agrees(&mut world);
    assert_eq!(reason(&world), None, "nothing is written for it alone");
    let broken = sets("member1", "/data/none/x", "bad");
    world.apply(of_config(override_policy("config", &broken)));
    assert!(world.settle());
    assert_eq!(reason(&world), Some("Override"));
    world.refuses = None;
    world.apply(refused("good"));
    assert!(world.settle());
    assert_eq!(reason(&world), None);
}
