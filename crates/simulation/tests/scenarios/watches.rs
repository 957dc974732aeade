//! Watches that fail, kinds that are not served, versions of kinds, and bindings that another client wrote.

use entourage_core::{
    object::Gvk,
    observation::{Observation, Watch},
};
use serde_json::{Value, json};

use crate::{
    condition, config_map, deployment,
    policies::{cluster_policy, widget, with, world},
    policy_of,
    world::World,
};

fn widgets(version: &str) -> Value {
    policy_of(
        "p",
        &format!("example.com/{version}"),
        "Widget",
        "w",
        &["member1"],
    )
}

#[test]
fn a_policy_that_moves_to_another_version_of_a_kind_moves_nothing() {
    let mut world = world();
    world.apply(widget("w"));
    world.apply(widgets("v1beta1"));
    assert!(world.settle());
    assert_eq!(world.holders("Widget", "w"), ["member1"]);
    world.apply(widgets("v1"));
    assert!(world.settle());
}

#[test]
fn two_policies_that_name_two_versions_of_a_kind_mean_the_same_objects() {
    let mut world = world();
    world.apply(widget("w"));
    let mut other = widgets("v1beta1");
    other["metadata"]["name"] = json!("q");
    world.apply(widgets("v1"));
    world.apply(other);
    assert!(world.settle());
}

#[test]
fn a_kind_that_the_hub_does_not_serve_stops_no_removal_of_others() {
    let mut world = world();
    world.apply(deployment("one", &[]));
    world.apply(policy_of("p", "apps/v1", "Deployment", "one", &["member1"]));
    assert!(world.settle());
    let gvk = Gvk::new("batch/v1beta1", "CronJob");
    world.shut.insert(Watch::Templates(gvk.clone()));
    world.apply(policy_of("q", "batch/v1beta1", "CronJob", "any", &["member1"]));
    assert!(world.settle());
    world.unserve(Watch::Templates(gvk), None);
    assert!(world.settle());
    world.delete("Deployment", "one");
    assert!(world.settle_for(600_000));
    assert!(world.holders("Deployment", "one").is_empty());
}

/// A third-party kind that is known to refer to others, and on which nobody gave rights: nothing of it can be anywhere.
#[test]
fn a_kind_that_refers_and_was_never_allowed_stops_no_removal_of_others() {
    let mut world = world();
    world.apply(deployment("one", &["red"]));
    world.apply(config_map("red", "a"));
    world.apply(policy_of("p", "apps/v1", "Deployment", "one", &["member1"]));
    world
        .forbidden
        .insert(Watch::Templates(Gvk::new("apps.kruise.io/v1alpha1", "CloneSet")));
    world.apply(policy_of(
        "q",
        "apps.kruise.io/v1alpha1",
        "CloneSet",
        "any",
        &["member1"],
    ));
    assert!(world.settle());
    assert_eq!(world.holders("ConfigMap", "red"), ["member1"]);
    world.restart();
    assert!(world.settle());
    world.delete("Deployment", "one");
    assert!(world.settle_for(600_000));
    assert!(world.holders("Deployment", "one").is_empty());
    assert!(world.holders("ConfigMap", "red").is_empty());
}

/// The same kind, once something of it was placed: who can tell what that refers to now?
#[test]
fn a_kind_that_refers_and_is_not_allowed_any_more_stops_removals() {
    let mut world = world();
    world.apply(config_map("red", "a"));
    let kind = "apps.kruise.io/v1alpha1";
    let mut clones = deployment("clones", &["red"]);
    clones["apiVersion"] = json!(kind);
    clones["kind"] = json!("CloneSet");
    world.apply(clones);
    world.apply(policy_of("p", kind, "CloneSet", "clones", &["member1"]));
    world.apply(policy_of("q", "v1", "ConfigMap", "red", &["member1"]));
    assert!(world.settle());
    assert_eq!(world.holders("ConfigMap", "red"), ["member1"]);
    let watch = Watch::Templates(Gvk::new(kind, "CloneSet"));
    world.lose(watch.clone());
    world.forbidden.insert(watch);
    world.delete("ConfigMap", "red");
    assert!(world.settle_for(600_000));
    assert_eq!(world.holders("ConfigMap", "red"), ["member1"]);
}

#[test]
fn a_version_that_the_hub_does_not_serve_stops_no_removal_of_others() {
    let mut world = world();
    world.apply(deployment("one", &[]));
    world.apply(policy_of("p", "apps/v1", "Deployment", "one", &["member1"]));
    assert!(world.settle());
    let old = Watch::Templates(Gvk::new("batch/v1beta1", "CronJob"));
    world.shut.insert(old.clone());
    world.apply(policy_of("q", "batch/v1beta1", "CronJob", "any", &["member1"]));
    assert!(world.settle());
    world.unserve(old, Some("v1"));
    assert!(world.settle());
    world.delete("Deployment", "one");
    assert!(world.settle_for(600_000));
    assert!(world.holders("Deployment", "one").is_empty());
}

#[test]
fn a_kind_that_works_is_not_left_for_a_version_that_is_not_served() {
    let mut world = world();
    let gvk = Gvk::new("example.com/v1", "Widget");
    world.shut.insert(Watch::Templates(gvk.clone()));
    world.apply(widgets("v1"));
    assert!(world.settle());
    // The policy came before the definition.
    world.unserve(Watch::Templates(gvk.clone()), None);
    world.shut.clear();
    world.apply(widget("w"));
    assert!(world.settle());
    assert_eq!(world.holders("Widget", "w"), ["member1"]);
    let mut other = widgets("v2");
    other["metadata"]["name"] = json!("q");
    world.apply(other);
    assert!(world.settle());
    let watched =
        |watch: &Watch| matches!(watch, Watch::Templates(each) if *each == gvk && &*each.version == "v1");
    assert!(world.process.engine.demand().iter().any(watched));
}

#[test]
fn a_definition_that_comes_back_with_another_version_is_found() {
    let mut world = world();
    let gvk = Gvk::new("example.com/v1", "Widget");
    world.shut.insert(Watch::Templates(gvk.clone()));
    world.apply(widgets("v1"));
    let mut other = widgets("v1alpha1");
    other["metadata"]["name"] = json!("q");
    world.apply(other);
    assert!(world.settle());
    world.unserve(Watch::Templates(gvk.clone()), None);
    assert!(world.settle());
    world.unserve(Watch::Templates(gvk), Some("v1alpha1"));
    let mut made = widget("w");
    made["apiVersion"] = json!("example.com/v1alpha1");
    world.apply(made);
    assert!(world.settle());
    assert_eq!(world.holders("Widget", "w"), ["member1"]);
}

#[test]
fn a_place_whose_member_ceases_to_serve_the_kind_says_so() {
    for other in [None, Some("v2")] {
        let mut world = world();
        world.apply(widget("w"));
        world.apply(widgets("v1"));
        assert!(world.settle());
        world.meddle("member1", "Widget", "w", |_| None);
        world.unserve(
            Watch::Copies("member1".into(), Gvk::new("example.com/v1", "Widget")),
            other,
        );
        assert!(world.settle_for(600_000));
        let reported = condition(&world, "w-widget", "FullyApplied");
        assert_eq!(reported["reason"], "FullyAppliedFailed", "{reported}");
        let message = reported["message"].as_str().unwrap_or_default();
        assert!(message.contains("not served"), "{reported}");
    }
}

#[test]
fn a_policy_whose_kind_the_hub_ceases_to_serve_says_so() {
    let mut world = world();
    world.apply(widget("w"));
    world.apply(widgets("v1"));
    assert!(world.settle());
    world.delete("Widget", "w");
    world.unserve(Watch::Templates(Gvk::new("example.com/v1", "Widget")), None);
    assert!(world.settle_for(600_000));
    let policy = world.hub_object("PropagationPolicy", "p").expect("policy");
    let matched = policy["status"]["conditions"][0].clone();
    assert_eq!(matched["reason"], "InvalidSelector", "{matched}");
    let message = matched["message"].as_str().unwrap_or_default();
    assert!(message.contains("cannot be listed"), "{matched}");
}

#[test]
fn a_kind_that_the_hub_ceases_to_serve_leaves_nothing_behind() {
    let mut world = world();
    world.apply(widget("w"));
    world.apply(widgets("v1"));
    assert!(world.settle());
    // The definition was deleted, and its objects with it.
    world.delete("Widget", "w");
    world.unserve(Watch::Templates(Gvk::new("example.com/v1", "Widget")), None);
    assert!(world.settle_for(600_000));
    let copies = world.holders("Widget", "w").len();
    let bound = world.hub_object("ResourceBinding", "w-widget").is_some();
    world.delete("PropagationPolicy", "p");
    assert!(world.settle_for(600_000));
    let policy = world.hub_object("PropagationPolicy", "p").is_some();
    assert_eq!(
        (copies, bound, policy),
        (0, false, false),
        "copies, binding, policy"
    );
}

#[test]
fn a_removal_that_waited_for_a_watch_goes_on_when_that_lists_again() {
    let mut world = world();
    world.apply(config_map("red", "a"));
    world.apply(deployment("one", &[]));
    world.apply(policy_of("p", "apps/v1", "Deployment", "one", &["member1"]));
    world.apply(policy_of("q", "v1", "ConfigMap", "red", &["member1"]));
    assert!(world.settle());
    let watch = Watch::Templates(Gvk::new("apps/v1", "Deployment"));
    world.lose(watch.clone());
    world.delete("ConfigMap", "red");
    assert!(world.settle());
    world.shut.remove(&watch);
    assert!(world.settle_for(600_000));
    let bound = world.hub_object("ResourceBinding", "red-configmap").is_some();
    assert_eq!((world.holders("ConfigMap", "red").len(), bound), (0, false));
}

/// The kinds that are not listed, as the Cluster reports them; `None` if it reports none.
fn not_watched(world: &World) -> Option<Value> {
    let cluster = world.hub_object("Cluster", "member1").expect("cluster");
    let conditions = cluster["status"]["conditions"].as_array().expect("conditions");
    let reported = conditions.iter().find(|each| each["type"] == "CopiesWatched");
    reported.cloned()
}

#[test]
fn a_member_that_does_not_list_a_kind_for_long_says_so_once_until_it_does() {
    let mut world = world();
    world.apply(widget("w"));
    world.apply(widgets("v1"));
    assert!(world.settle());
    let watch = Watch::Copies("member1".into(), Gvk::new("example.com/v1", "Widget"));
    let wrote = world.writes.len();
    world.lose(watch.clone());
    assert!(world.settle_for(20_000));
    world.shut.remove(&watch);
    assert!(world.settle_for(60_000));
    assert_eq!(world.writes[wrote..], [] as [&str; 0], "that was soon over");
    world.lose(watch.clone());
    assert!(world.settle_for(600_000));
    let reported = not_watched(&world).expect("it is reported");
    assert_eq!(
        (&reported["status"], &reported["reason"]),
        (&json!("False"), &json!("ListFails"))
    );
    let message = reported["message"].as_str().expect("text");
    assert!(
        message.contains("example.com/v1 Widget (cannot be listed)"),
        "{message}"
    );
    assert_eq!(
        condition(&world, "w-widget", "FullyApplied")["status"],
        "True",
        "as it was seen last"
    );
    world.restart();
    assert!(world.settle_for(5_000));
    assert!(not_watched(&world).is_some(), "a restart takes nothing back");
    world.shut.remove(&watch);
    assert!(world.settle_for(60_000));
    assert_eq!(not_watched(&world), None);
    assert_eq!(world.writes.len(), wrote + 2, "{:?}", &world.writes[wrote..]);
}

#[test]
fn a_member_that_did_not_answer_has_time_to_list_what_it_holds() {
    let mut world = world();
    world.apply(widget("w"));
    world.apply(widgets("v1"));
    assert!(world.settle());
    let watch = Watch::Copies("member1".into(), Gvk::new("example.com/v1", "Widget"));
    world.set_down("member1", true);
    world.lose(watch);
    assert!(world.settle_for(600_000));
    assert_eq!(not_watched(&world), None, "that it does not answer says enough");
    world.set_down("member1", false);
    assert!(world.settle_for(20_000));
    assert_eq!(not_watched(&world), None);
    assert!(world.settle_for(600_000));
    assert!(not_watched(&world).is_some());
}

#[test]
fn a_policy_that_ends_while_its_kind_is_not_listed_goes_when_it_is() {
    let mut world = world();
    world.apply(deployment("one", &[]));
    world.apply(policy_of("p", "apps/v1", "Deployment", "two", &["member1"]));
    assert!(world.settle());
    let watch = Watch::Templates(Gvk::new("apps/v1", "Deployment"));
    world.lose(watch.clone());
    world.delete("PropagationPolicy", "p");
    assert!(world.settle());
    world.shut.remove(&watch);
    assert!(world.settle_for(600_000));
    assert!(world.hub_object("PropagationPolicy", "p").is_none());
}

#[test]
fn a_member_that_ceases_to_serve_a_kind_keeps_no_binding() {
    let mut world = world();
    world.apply(widget("w"));
    world.apply(widgets("v1"));
    assert!(world.settle());
    world.meddle("member1", "Widget", "w", |_| None);
    world.unserve(
        Watch::Copies("member1".into(), Gvk::new("example.com/v1", "Widget")),
        None,
    );
    assert!(world.settle());
    world.delete("Widget", "w");
    world.delete("PropagationPolicy", "p");
    assert!(world.settle_for(600_000));
    let bound = world.hub_object("ResourceBinding", "w-widget").is_some();
    let policy = world.hub_object("PropagationPolicy", "p").is_some();
    assert_eq!((bound, policy), (false, false), "binding, policy");
}

#[test]
fn a_binding_of_another_namespace_delivers_nothing() {
    let mut world = world();
    world.apply(config_map("red", "secret"));
    world.apply(deployment("one", &["red"]));
    world.apply(policy_of("p", "apps/v1", "Deployment", "other", &["member1"]));
    world.apply(json!({
        "apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding",
        "metadata": {"name": "mine", "namespace": "attacker"},
        "spec": {
            "resource": {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": "red"},
            "placement": {"clusterAffinity": {"clusterNames": ["member2"]}},
            "clusters": [{"name": "member2"}],
        },
    }));
    assert!(world.settle());
    assert!(world.holders("ConfigMap", "red").is_empty());
}

#[test]
fn a_kind_that_is_listed_for_the_first_time_costs_what_it_affects() {
    let mut world = world();
    for n in 0..100 {
        world.apply(deployment(&format!("d{n}"), &[]));
    }
    let all = with(
        policy_of("p", "apps/v1", "Deployment", "", &["member1", "member2"]),
        &json!({}),
    );
    world.apply(all);
    assert!(world.settle());
    let watch = Watch::Templates(Gvk::new("example.com/v1", "Widget"));
    world.shut.insert(watch.clone());
    world.apply(widgets("v1"));
    assert!(world.settle());
    let dirty = world.process.engine.observe(
        Observation::Listed {
            watch,
            present: Default::default(),
            revision: 1_000_000,
        },
        world.now,
    );
    assert!(dirty.len() < 50, "{} keys", dirty.len());
}

#[test]
fn a_definition_deleted_on_the_hub_takes_everything_with_it() {
    let mut world = world();
    let gvk = Gvk::new("example.com/v1", "Widget");
    world.apply(
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"}, "spec": {"group": "example.com"}}),
    );
    let selectors = json!([{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}]);
    world.apply(cluster_policy("definitions", &selectors, &["member1"]));
    world.apply(widget("w"));
    world.apply(widgets("v1"));
    assert!(world.settle());
    world.delete("Widget", "w");
    world.unserve(Watch::Templates(gvk.clone()), None);
    world.delete("CustomResourceDefinition", "widgets.example.com");
    assert!(world.settle());
    // The API server of the member deletes the objects of a definition with it.
    if world.on("member1", "Widget", "w").is_some() {
        world.meddle("member1", "Widget", "w", |_| None);
    }
    world.unserve(Watch::Copies("member1".into(), gvk), None);
    assert!(world.settle_for(600_000));
    assert!(world.hub_object("ResourceBinding", "w-widget").is_none());
}

#[test]
fn a_version_that_the_hub_does_not_serve_gives_way_to_one_that_it_does() {
    let mut world = world();
    let gone = Watch::Templates(Gvk::new("example.com/v1beta1", "Widget"));
    world.shut.insert(gone.clone());
    world.apply(widget("w"));
    world.apply(widgets("v1beta1"));
    assert!(world.settle());
    world.unserve(gone, Some("v1"));
    assert!(world.settle());
    let mut other = widgets("v1");
    other["metadata"]["name"] = json!("q");
    world.apply(other);
    assert!(world.settle());
    assert_eq!(world.holders("Widget", "w"), ["member1"]);
    let binding = world.hub_object("ResourceBinding", "w-widget").expect("binding");
    assert_eq!(binding["spec"]["resource"]["apiVersion"], "example.com/v1");
    world.delete("Widget", "w");
    assert!(world.settle());
    assert!(world.holders("Widget", "w").is_empty());
}

#[test]
fn how_often_the_demand_changed_tells_whether_it_did() {
    let mut world = World::new(&["member1", "member2"]);
    let mut before = (
        world.process.engine.demand_changes(),
        world.process.engine.demand().clone(),
    );
    let mut changed = Vec::new();
    let steps: [fn(&mut World); 8] = [
        |_| {},
        |world| world.apply(widget("w")),
        |world| world.apply(widgets("v1beta1")),
        |world| world.apply(deployment("one", &["red"])),
        |world| world.apply(policy_of("q", "apps/v1", "Deployment", "one", &["member1"])),
        |world| {
            world.unserve(
                Watch::Templates(Gvk::new("example.com/v1beta1", "Widget")),
                Some("v1"),
            )
        },
        |world| world.set_down("member1", true),
        |world| world.delete("Cluster", "member2"),
    ];
    for step in steps {
        step(&mut world);
        assert!(world.settle());
        let after = (
            world.process.engine.demand_changes(),
            world.process.engine.demand().clone(),
        );
        assert_eq!(after.0 == before.0, after.1 == before.1);
        changed.push(after.0 != before.0);
        before = after;
    }
    assert_eq!(changed, [true, false, true, false, true, true, false, true]);
}
