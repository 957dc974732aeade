//! The faults of a scenario that the world finds: a run that never ends, an object that cannot be read, a name that nothing has.

use serde_json::json;

use crate::{
    config_map,
    policies::{namespace, world},
    world::{Random, World},
};

#[test]
#[should_panic(expected = "it never settles")]
fn a_plan_that_always_fails_never_settles() {
    let mut world = world();
    // The process takes it for ready, but it does not respond.
    world.down.insert("member1".into());
    world.apply(namespace("shop", &json!({})));
    world.settle();
}

#[test]
#[should_panic(expected = "not readable by")]
fn an_object_that_cannot_be_read_is_found() {
    let mut world = world();
    world.apply(json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy", "metadata": {"name": "bad"},
        "spec": {"resourceSelectors": "all"},
    }));
}

#[test]
#[should_panic(expected = "there is no member member7")]
fn a_member_that_does_not_exist_cannot_be_down() {
    world().set_down("member7", true);
}

#[test]
#[should_panic(expected = "does not exist")]
fn an_object_that_does_not_exist_cannot_be_replaced() {
    World::new(&[]).replace(config_map("red", "a"));
}

#[test]
#[should_panic(expected = "does not exist on member1")]
fn an_object_that_does_not_exist_cannot_be_edited() {
    world().meddle("member1", "ConfigMap", "red", |mut copy| {
        copy["data"]["key"] = json!("edited");
        Some(copy)
    });
}

#[test]
fn a_choice_among_many_takes_two_bytes() {
    let mut random = Random::from(&[3, 2, 1, 200][..]);
    let choices = [256, 1_000, 256].map(|bound| random.below(bound));
    assert_eq!(choices, [3, 258, 200]);
}
