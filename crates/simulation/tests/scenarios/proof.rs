//! Changes that wait for proof: unknown state delays a change, and never loses it, in whatever order lists come.

use entourage_core::{
    object::Gvk,
    observation::{Observation, Watch},
};
use serde_json::{Value, json};

use crate::{
    condition, config_map, deployment,
    policies::{claim, widget, with, world},
    policy_of,
    world::{World, id},
};

const BASE: [Watch; 5] = [
    Watch::Policies,
    Watch::ClusterPolicies,
    Watch::Bindings,
    Watch::ClusterBindings,
    Watch::Clusters,
];

fn templates(api_version: &str, kind: &str) -> Watch {
    Watch::Templates(Gvk::new(api_version, kind))
}

fn matched(world: &World, policy: &str) -> Value {
    let stored = world.hub_object("PropagationPolicy", policy).expect("policy");
    let all = stored["status"]["conditions"].as_array();
    all.and_then(|all| all.iter().find(|each| each["type"] == "Matched"))
        .cloned()
        .unwrap_or_default()
}

/// Every order of what is given.
pub(crate) fn orders<T: Clone>(all: &[T]) -> Vec<Vec<T>> {
    if all.is_empty() {
        return vec![Vec::new()];
    }
    let mut found = Vec::new();
    for at in 0..all.len() {
        let mut rest = all.to_vec();
        let first = rest.remove(at);
        for mut order in orders(&rest) {
            order.insert(0, first.clone());
            found.push(order);
        }
    }
    found
}

#[test]
fn a_move_that_waits_for_a_kind_to_be_listed_goes_on_when_it_is() {
    let mut world = world();
    world.apply(config_map("red", "a"));
    world.apply(policy_of("p", "v1", "ConfigMap", "red", &["member1"]));
    assert!(world.settle());
    let jobs = templates("batch/v1", "CronJob");
    world.shut.insert(jobs.clone());
    world.apply(policy_of("q", "batch/v1", "CronJob", "any", &["member1"]));
    world.apply(policy_of("p", "v1", "ConfigMap", "red", &["member2"]));
    assert!(world.settle());
    assert_eq!(world.holders("ConfigMap", "red"), ["member1"]);
    world.shut.remove(&jobs);
    assert!(world.settle());
    assert_eq!(world.holders("ConfigMap", "red"), ["member2"]);
}

#[test]
fn a_policy_that_is_deleted_in_an_outage_goes_in_whatever_order_the_watches_come_back() {
    for order in orders(&BASE) {
        let mut world = world();
        world.apply(config_map("red", "a"));
        let mut other = policy_of("q", "v1", "ConfigMap", "red", &["member2"]);
        other["spec"]["priority"] = json!(-1);
        world.apply(policy_of("p", "v1", "ConfigMap", "red", &["member1"]));
        world.apply(other);
        assert!(world.settle());
        for watch in BASE {
            world.lose(watch);
        }
        world.delete("PropagationPolicy", "p");
        for watch in &order {
            world.shut.remove(watch);
            assert!(world.settle());
        }
        let stands = world.hub_object("PropagationPolicy", "p").is_some();
        let claimed = claim(&world, "ConfigMap", "red");
        let holders = world.holders("ConfigMap", "red");
        assert_eq!(
            (stands, claimed, holders),
            (false, ("PropagationPolicy", "q"), vec!["member2"]),
            "{order:?}"
        );
    }
}

#[test]
fn a_policy_that_ceases_to_select_a_template_in_an_outage_lets_it_go_after_it() {
    let mut world = world();
    world.apply(config_map("red", "a"));
    world.apply(policy_of("p", "v1", "ConfigMap", "red", &["member1"]));
    assert!(world.settle());
    world.lose(Watch::ClusterBindings);
    world.apply(policy_of("p", "v1", "ConfigMap", "green", &["member1"]));
    assert!(world.settle());
    world.shut.clear();
    assert!(world.settle());
    assert_eq!(claim(&world, "ConfigMap", "red"), ("", ""));
}

#[test]
fn what_a_policy_says_of_itself_is_put_right_after_an_outage() {
    let mut world = world();
    world.apply(policy_of("p", "v1", "ConfigMap", "red", &["member1"]));
    assert!(world.settle());
    assert_eq!(matched(&world, "p")["reason"], "NoTemplate");
    world.lose(Watch::ClusterBindings);
    world.apply(config_map("red", "a"));
    assert!(world.settle());
    world.shut.clear();
    assert!(world.settle());
    assert_eq!(matched(&world, "p")["status"], "True");
}

#[test]
fn a_kind_that_fails_at_the_start_delays_no_other_one() {
    let mut world = world();
    world.apply(widget("w"));
    world.apply(policy_of("w", "example.com/v1", "Widget", "w", &["member1"]));
    world.apply(deployment("one", &[]));
    world.apply(policy_of("p", "apps/v1", "Deployment", "", &["member1"]));
    assert!(world.settle());
    world.restart();
    let widgets = templates("example.com/v1", "Widget");
    world.shut.extend([Watch::Bindings, widgets.clone()]);
    world.apply(deployment("two", &[]));
    let mut all = policy_of("p", "apps/v1", "Deployment", "", &["member1"]);
    all["spec"]["resourceSelectors"][0]
        .as_object_mut()
        .expect("selector")
        .remove("name");
    world.apply(all);
    assert!(world.settle());
    world.shut.remove(&Watch::Bindings);
    assert!(world.settle());
    world.lose(widgets);
    assert!(world.settle());
    assert_eq!(world.holders("Deployment", "two"), ["member1"]);
}

#[test]
fn who_held_an_object_before_a_start_is_known_before_anything_is_removed() {
    let mut world = world();
    world.apply(widget("w"));
    world.apply(policy_of("w", "example.com/v1", "Widget", "w", &["member1"]));
    world.apply(config_map("red", "a"));
    world.apply(deployment("one", &["red"]));
    world.apply(policy_of("p", "apps/v1", "Deployment", "one", &["member1"]));
    assert!(world.settle());
    assert_eq!(world.holders("ConfigMap", "red"), ["member1"]);
    world.restart();
    // The copy of the workload cannot be brought in line, so it goes on mounting what the workload does not name any more.
    world.apply(deployment("one", &[]));
    world.apply(json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "OverridePolicy", "metadata": {"name": "bad"},
        "spec": {
            "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}],
            "overrideRules": [{"overriders": {"plaintext": [{"path": "/no/where", "operator": "replace", "value": 1}]}}],
        },
    }));
    world.shut.insert(templates("example.com/v1", "Widget"));
    assert!(world.settle_for(600_000));
    assert_eq!(world.holders("ConfigMap", "red"), ["member1"]);
    world.shut.clear();
    assert!(world.settle_for(600_000));
    assert_eq!(world.holders("ConfigMap", "red"), ["member1"]);
    world.delete("OverridePolicy", "bad");
    assert!(world.settle_for(600_000));
    assert!(world.holders("ConfigMap", "red").is_empty());
}

#[test]
fn a_member_that_left_leaves_no_word_of_its_watches_behind() {
    let mut world = World::new(&["member1", "member2"]);
    world.apply(config_map("red", "a"));
    world.apply(with(
        policy_of("p", "v1", "ConfigMap", "red", &["member1"]),
        &json!({"placement": {}}),
    ));
    let cluster = world.hub_object("Cluster", "member2").cloned().expect("cluster");
    world.hub.remove(&id("Cluster", "", "member2"));
    assert!(world.settle());
    let watch = Watch::Copies("member2".into(), Gvk::new("v1", "ConfigMap"));
    let lost = Observation::Lost {
        watch: watch.clone(),
        why: "it left".into(),
    };
    world.process.engine.observe(lost, world.now);
    world.shut.insert(watch);
    world.apply(cluster);
    world.set_down("member2", false);
    assert!(world.settle_for(600_000));
    let reported = condition(&world, "red-configmap", "FullyApplied").to_string();
    assert!(!reported.contains("it left"), "{reported}");
}
