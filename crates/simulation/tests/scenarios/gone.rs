//! Conclusions that something is gone, and what they must never cost: kinds that cease to be served and come back, clusters
//! that leave, holds that are over, answers that say less than they seem to.

use entourage_api::keys::{ON_UNJOIN_REMOVE, annotation};
use entourage_core::{
    object::{Gvk, ResourceId},
    observation::{Observation, Probe, Watch},
    plan::Key,
};
use serde_json::{Value, json};

use crate::{
    condition, config_map, deployment,
    policies::{widget, world},
    policy_of, settled,
    world::{World, id},
};

fn widgets(members: &[&str]) -> Value {
    policy_of("p", "example.com/v1", "Widget", "w", members)
}

fn templates() -> Watch {
    Watch::Templates(Gvk::new("example.com/v1", "Widget"))
}

fn copies(member: &str) -> Watch {
    Watch::Copies(member.into(), Gvk::new("example.com/v1", "Widget"))
}

/// A Widget and its copy on the first member.
fn propagated() -> World {
    let mut world = world();
    world.apply(widget("w"));
    world.apply(widgets(&["member1"]));
    assert!(world.settle());
    assert_eq!(world.holders("Widget", "w"), ["member1"]);
    world
}

fn size_on(world: &World, member: &str) -> Value {
    world.on(member, "Widget", "w").expect("copy")["spec"]["size"].clone()
}

#[test]
fn a_kind_that_the_hub_serves_again_unchanged_is_taken_up_where_it_was() {
    // One that acts meanwhile, and one that does not lead.
    for acts in [true, false] {
        let mut world = propagated();
        world.unserve(templates(), None);
        if acts {
            assert!(world.settle());
        }
        world.shut.remove(&templates());
        assert!(world.settle());
        assert_eq!(world.holders("Widget", "w"), ["member1"], "acts: {acts}");
        assert!(
            !world.writes.iter().any(|each| each.contains("DELETE")),
            "acts: {acts}"
        );
        let mut edited = widget("w");
        edited["spec"]["size"] = json!(2);
        world.apply(edited);
        assert!(world.settle());
        assert_eq!(size_on(&world, "member1"), 2, "acts: {acts}");
    }
}

#[test]
fn a_template_whose_binding_ended_meanwhile_is_found_when_its_kind_is_served_again() {
    let mut world = propagated();
    let held = world.hub_object("Widget", "w").cloned().expect("template");
    // The server answers as if nothing were left, and shows the same objects later.
    world.hub.remove(&id("Widget", "default", "w"));
    world.unserve(templates(), None);
    assert!(world.settle_for(600_000));
    assert!(world.holders("Widget", "w").is_empty());
    world.hub.insert(id("Widget", "default", "w"), held);
    world.shut.remove(&templates());
    assert!(world.settle_for(600_000));
    assert_eq!(world.holders("Widget", "w"), ["member1"]);
}

#[test]
fn copies_that_a_member_serves_again_unchanged_are_known_again() {
    let mut world = propagated();
    world.unserve(copies("member1"), None);
    assert!(world.settle());
    world.shut.remove(&copies("member1"));
    assert!(world.settle());
    let id = ResourceId::new(Gvk::new("example.com/v1", "Widget"), "default", "w");
    let resource = world.process.engine.resource(&id).expect("resource");
    assert!(resource.copies.get("member1").unwrap().live.is_some());
    world.delete("Widget", "w");
    assert!(world.settle_for(600_000));
    assert!(world.holders("Widget", "w").is_empty());
}

#[test]
fn what_is_defined_and_served_in_no_version_loses_nothing() {
    let mut world = propagated();
    let wrote = world.writes.len();
    world.unserve(copies("member1"), Some("v1"));
    world.unserve(templates(), Some("v1"));
    assert!(world.settle_for(600_000));
    let taken =
        |each: &&String| each.contains("DELETE") || each.contains("Delete") || each.contains("Release");
    assert_eq!(world.writes[wrote..].iter().find(taken), None);
    world.shut.clear();
    let mut edited = widget("w");
    edited["spec"]["size"] = json!(2);
    world.apply(edited);
    assert!(world.settle());
    assert_eq!(size_on(&world, "member1"), 2);
}

#[test]
fn a_member_that_never_served_a_kind_keeps_no_binding() {
    for restart in [false, true] {
        let mut world = world();
        world.unserve(copies("member2"), Some("v1"));
        world.apply(widget("w"));
        world.apply(widgets(&["member1", "member2"]));
        assert!(world.settle());
        world.unserve(copies("member2"), Some("v1"));
        assert!(world.settle());
        assert_eq!(world.holders("Widget", "w"), ["member1"]);
        if restart {
            world.restart();
            assert!(world.settle());
            world.unserve(copies("member2"), Some("v1"));
        }
        world.delete("Widget", "w");
        assert!(world.settle_for(600_000));
        assert!(world.holders("Widget", "w").is_empty());
        let bound = world.hub_object("ResourceBinding", "w-widget").is_some();
        assert!(!bound, "restart: {restart}");
    }
}

#[test]
fn a_copy_that_stood_before_its_kind_was_withheld_keeps_the_binding() {
    for restart in [false, true] {
        let mut world = propagated();
        world.unserve(copies("member1"), Some("v1"));
        if restart {
            world.restart();
            assert!(world.settle());
            world.unserve(copies("member1"), Some("v1"));
        }
        world.delete("Widget", "w");
        assert!(world.settle_for(600_000));
        let bound = world.hub_object("ResourceBinding", "w-widget").is_some();
        assert!(
            bound && world.on("member1", "Widget", "w").is_some(),
            "restart: {restart}"
        );
        world.shut.clear();
        assert!(world.settle_for(600_000));
        let bound = world.hub_object("ResourceBinding", "w-widget").is_some();
        assert!(
            !bound && world.on("member1", "Widget", "w").is_none(),
            "restart: {restart}"
        );
    }
}

#[test]
fn a_cluster_that_leaves_by_an_old_word_of_the_hub_loses_nothing() {
    let mut world = propagated();
    world.set_down("member1", true);
    let mut cluster = world.hub_object("Cluster", "member1").cloned().expect("cluster");
    cluster["metadata"]["annotations"][annotation::ON_UNJOIN] = json!(ON_UNJOIN_REMOVE);
    world.replace(cluster);
    world.delete("Cluster", "member1");
    assert!(world.settle());
    // Whether it is so still is not known: somebody may have joined it anew.
    world.lose(Watch::Clusters);
    world.set_down("member1", false);
    assert!(world.settle());
    assert_eq!(world.holders("Widget", "w"), ["member1"]);
    world.shut.clear();
    assert!(world.settle());
    assert!(world.holders("Widget", "w").is_empty());
    assert!(world.hub_object("Cluster", "member1").is_none());
}

#[test]
fn what_a_referrer_named_long_ago_is_not_held_by_its_end() {
    let mut world = world();
    world.apply(config_map("old", "a"));
    world.apply(config_map("new", "a"));
    world.apply(deployment("one", &["old"]));
    world.apply(policy_of("p", "apps/v1", "Deployment", "one", &["member1"]));
    assert!(world.settle());
    assert_eq!(world.holders("ConfigMap", "old"), ["member1"]);
    world.lose(Watch::ClusterPolicies);
    world.apply(deployment("one", &["new"]));
    assert!(world.settle_for(600_000));
    world.delete("Deployment", "one");
    assert!(world.settle_for(600_000));
    world.shut.clear();
    assert!(world.settle_for(600_000));
    for name in ["old", "new"] {
        assert!(world.holders("ConfigMap", name).is_empty(), "{name}");
        let bound = world.hub_object("ResourceBinding", &format!("{name}-configmap"));
        assert!(bound.is_none(), "{name}");
    }
}

#[test]
fn a_member_that_begins_or_ceases_to_answer_has_the_statuses_of_templates_planned() {
    let mut world = settled();
    let probe = Probe {
        healthy: false,
        ..Probe::default()
    };
    let seen = Observation::Probed("member1".into(), probe);
    let dirty = world.process.engine.observe(seen, world.now);
    let id = ResourceId::new(Gvk::new("apps/v1", "Deployment"), "default", "myapp");
    assert!(dirty.contains(&Key::TemplateStatus(id)), "{dirty:?}");
}

#[test]
fn a_kind_that_is_refused_after_it_was_listed_is_reported_where_it_matters() {
    let mut world = propagated();
    world.forbidden.insert(copies("member1"));
    assert!(world.settle_for(120_000));
    let reported = condition(&world, "w-widget", "FullyApplied");
    assert_eq!(reported["status"], "True", "it stands as it should: {reported}");
    let mut edited = widget("w");
    edited["spec"]["size"] = json!(2);
    world.apply(edited);
    assert!(world.settle_for(120_000));
    let reported = condition(&world, "w-widget", "FullyApplied").clone();
    assert_eq!(reported["reason"], "FullyAppliedFailed", "{reported}");
    assert!(
        reported["message"]
            .as_str()
            .is_some_and(|text| text.contains("forbidden")),
        "{reported}"
    );
    world.forbidden.clear();
    assert!(world.settle_for(120_000));
    assert_eq!(size_on(&world, "member1"), 2);
    let reported = condition(&world, "w-widget", "FullyApplied");
    assert_eq!(reported["status"], "True", "{reported}");
}

#[test]
fn a_refusal_has_the_status_planned_where_the_kind_has_a_place() {
    let mut world = propagated();
    let refused = Observation::Refused {
        watch: copies("member1"),
        why: "forbidden".into(),
    };
    let dirty = world.process.engine.observe(refused, world.now);
    let id = ResourceId::new(Gvk::new("example.com/v1", "Widget"), "default", "w");
    assert!(dirty.contains(&Key::BindingStatus(id)), "{dirty:?}");
}

#[test]
fn an_answer_about_an_object_of_another_binding_ends_the_doubt_of_a_write() {
    let mut world = world();
    // Somebody copied a manifest: our label, and the annotations of another binding.
    world.meddle("member1", "ConfigMap", "red", |_| {
        let mut copied = config_map("red", "copied");
        copied["metadata"]["labels"] = json!({"entourage.dev/hub": "hub-id"});
        copied["metadata"]["annotations"] = json!({
            "resourcebinding.karmada.io/namespace": "default",
            "resourcebinding.karmada.io/name": "other-configmap",
        });
        Some(copied)
    });
    world.mute = true;
    world.apply(config_map("red", "a"));
    world.apply(policy_of("p", "v1", "ConfigMap", "red", &["member1"]));
    assert!(world.settle_for(1_000));
    world.delete("ConfigMap", "red");
    assert!(world.settle_for(1_000));
    world.mute = false;
    assert!(world.settle_for(600_000));
    assert!(world.hub_object("ResourceBinding", "red-configmap").is_none());
    assert!(world.on("member1", "ConfigMap", "red").is_some());
}

#[test]
fn a_workload_does_not_come_while_the_removal_of_what_it_needs_is_under_way() {
    for refused in [false, true] {
        let mut world = World::new(&["member1", "member2"]);
        world.apply(config_map("settings", "one"));
        world.apply(deployment("web", &["settings"]));
        world.apply(policy_of("web", "apps/v1", "Deployment", "web", &["member1"]));
        assert!(world.settle());
        // It moves away, and what it needed is about to follow it.
        world.apply(policy_of("web", "apps/v1", "Deployment", "web", &["member2"]));
        let config = ResourceId::new(Gvk::new("v1", "ConfigMap"), "default", "settings");
        let removal = world.settle_until_removal(&Key::Copy(config, "member1".into()));
        assert!(!world.holders("Deployment", "web").contains(&"member1"));
        // It comes back meanwhile.
        world.apply(policy_of(
            "web",
            "apps/v1",
            "Deployment",
            "web",
            &["member1", "member2"],
        ));
        assert!(world.settle());
        assert_eq!(world.holders("Deployment", "web"), ["member2"], "it waits");
        world.refuses_removal = refused;
        assert!(world.land(removal));
        world.refuses_removal = false;
        assert!(world.settle());
        for (kind, name) in [("Deployment", "web"), ("ConfigMap", "settings")] {
            assert_eq!(
                world.holders(kind, name),
                ["member1", "member2"],
                "refused: {refused}"
            );
        }
    }
}
