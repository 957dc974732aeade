//! The kinds that are watched: those in use, up to the limit of each namespace.

use entourage_core::observation::{Observation, Watch};
use serde_json::{Value, json};

use crate::{config_map, customizations::quiet, deployment, policy, settled, world::World};

/// A policy that names these kinds of `example.com/v1`.
fn naming(name: &str, kinds: &[&str]) -> Value {
    let selectors: Vec<_> = kinds
        .iter()
        .map(|kind| json!({"apiVersion": "example.com/v1", "kind": kind}))
        .collect();
    json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy", "metadata": {"name": name},
        "spec": {"resourceSelectors": selectors, "placement": {"clusterAffinity": {"clusterNames": ["member1"]}}},
    })
}

/// The watches of kinds of `example.com`: server and kind.
fn watched(world: &World) -> Vec<String> {
    let all = world
        .process
        .engine
        .demand()
        .iter()
        .filter_map(|watch| match watch {
            Watch::Templates(gvk) if &*gvk.group == "example.com" => Some(format!("hub {}", gvk.kind)),
            Watch::Copies(member, gvk) if &*gvk.group == "example.com" => {
                Some(format!("{member} {}", gvk.kind))
            }
            _ => None,
        });
    all.collect()
}

/// Two minutes go by.
fn wait(world: &mut World) {
    for _ in 0..2 {
        world.now = world.now.plus(61_000);
        world.tell_again(Observation::Tick);
        assert!(world.settle());
    }
}

fn unserve(world: &mut World, kind: &str) {
    let gvk = entourage_core::object::Gvk::new("example.com/v1", kind);
    for watch in [
        Watch::Templates(gvk.clone()),
        Watch::Copies("member1".into(), gvk),
    ] {
        world.unserve(watch, None);
    }
}

#[test]
fn the_watches_of_a_kind_end_when_no_policy_names_it_any_more_and_begin_again() {
    for is_served in [true, false] {
        let mut world = World::new(&["member1"]);
        world.apply(naming("p", &["Dream", "Shop"]));
        assert!(world.settle());
        if !is_served {
            unserve(&mut world, "Dream");
        }
        assert!(world.settle());
        assert_eq!(
            watched(&world),
            ["hub Dream", "hub Shop", "member1 Dream", "member1 Shop"]
        );
        wait(&mut world);
        assert_eq!(watched(&world).len(), 4, "a policy names them");

        world.apply(naming("p", &["Shop"]));
        assert!(world.settle());
        wait(&mut world);
        assert_eq!(watched(&world), ["hub Shop", "member1 Shop"]);
        world.delete("PropagationPolicy", "p");
        assert!(world.settle());
        wait(&mut world);
        assert_eq!(watched(&world), [] as [String; 0]);
        world.apply(naming("p", &["Shop"]));
        assert!(world.settle());
        assert_eq!(watched(&world), ["hub Shop", "member1 Shop"]);
    }
}

#[test]
fn a_kind_of_which_something_is_propagated_is_watched_until_that_ends() {
    let mut world = World::new(&["member1"]);
    let shop = json!({"apiVersion": "example.com/v1", "kind": "Shop", "metadata": {"name": "corner"}});
    world.apply(shop);
    world.apply(json!({"apiVersion": "example.com/v1", "kind": "Shop", "metadata": {"name": "other"}}));
    let mut policy = naming("p", &["Shop"]);
    policy["spec"]["resourceSelectors"][0]["name"] = json!("corner");
    world.apply(policy.clone());
    assert!(world.settle());
    assert_eq!(world.holders("Shop", "corner"), ["member1"]);
    world.delete("PropagationPolicy", "p");
    assert!(world.settle());
    wait(&mut world);
    assert_eq!(watched(&world), ["hub Shop", "member1 Shop"], "its binding stays");
    assert_eq!(world.holders("Shop", "corner"), ["member1"]);
    world.delete("Shop", "corner");
    assert!(world.settle());
    assert!(world.holders("Shop", "corner").is_empty());
    wait(&mut world);
    assert_eq!(
        watched(&world),
        [] as [String; 0],
        "the other shop was never claimed"
    );

    // Named again: what stood there all the time is found, as it is.
    policy["spec"]["resourceSelectors"][0]["name"] = json!("other");
    world.apply(policy);
    assert!(world.settle());
    assert_eq!(world.holders("Shop", "other"), ["member1"]);
    quiet(&mut world);
}

#[test]
fn the_kinds_of_dependencies_are_watched_while_something_refers_to_them() {
    let mut world = settled();
    let secrets = |world: &World| {
        let watches = world.process.engine.demand().iter();
        watches
            .filter(|watch| matches!(watch, Watch::Templates(gvk) if &*gvk.kind == "ConfigMap"))
            .count()
    };
    wait(&mut world);
    assert_eq!(secrets(&world), 1);
    world.apply(deployment("myapp", &[]));
    assert!(world.settle());
    wait(&mut world);
    assert_eq!(secrets(&world), 0);
    world.apply(config_map("my-config", "two"));
    world.apply(deployment("myapp", &["my-config"]));
    world.apply(policy(&["member1", "member2"]));
    assert!(world.settle());
    assert_eq!(world.holders("ConfigMap", "my-config"), ["member1", "member2"]);
    quiet(&mut world);
}

#[test]
fn the_policies_of_a_namespace_have_no_more_kinds_looked_for_than_they_may_and_say_so() {
    let mut world = World::new(&["member1"]);
    world.process.engine.config_mut().kinds_per_namespace = 2;
    assert!(world.settle());
    world.apply(naming("a", &["Dream", "Shop"]));
    assert!(world.settle());
    world.apply(naming("b", &["Stall", "Shop"]));
    assert!(world.settle());
    assert_eq!(
        watched(&world),
        ["hub Dream", "hub Shop", "member1 Dream", "member1 Shop"]
    );
    let matched = |world: &World, name: &str| {
        let policy = world.hub_object("PropagationPolicy", name).expect("a policy");
        let all = policy["status"]["conditions"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        all.into_iter()
            .find(|each| each["type"] == "Matched")
            .unwrap_or_default()
    };
    let reported = matched(&world, "b");
    assert_eq!(
        (&reported["status"], &reported["reason"]),
        (&json!("False"), &json!("TooManyKinds")),
        "{reported}"
    );
    let message = reported["message"].as_str().expect("words");
    assert!(
        message.starts_with("1 of its 2 kinds are not propagated, example.com/v1 Stall for one"),
        "{message}"
    );
    assert_ne!(matched(&world, "a")["reason"], "TooManyKinds");

    // There is room again.
    world.apply(naming("a", &["Shop"]));
    assert!(world.settle());
    wait(&mut world);
    assert_eq!(
        watched(&world),
        ["hub Shop", "hub Stall", "member1 Shop", "member1 Stall"]
    );
    assert_ne!(matched(&world, "b")["reason"], "TooManyKinds");
    // Kinds that Kubernetes knows are not counted.
    let mut many = naming("c", &[]);
    many["spec"]["resourceSelectors"] = json!([
        {"apiVersion": "v1", "kind": "ConfigMap"}, {"apiVersion": "apps/v1", "kind": "Deployment"},
    ]);
    world.apply(many);
    world.apply(config_map("my-config", "one"));
    assert!(world.settle());
    assert_eq!(world.holders("ConfigMap", "my-config"), ["member1"]);
}
