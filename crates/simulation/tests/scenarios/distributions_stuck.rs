//! Copies that cannot be brought in line for now: they are reported as what they are, and nobody is asked again and again.

use entourage_api::keys::annotation;
use entourage_core::object::Meta;
use serde_json::{Value, json};

use crate::{
    distributions::{
        distribution, edit, held, in_namespace, key, labelled, meddle, namespace, settings, status,
    },
    world::World,
};

fn world(namespaces: &[&str]) -> World {
    let mut world = World::distributing(&[]);
    for name in namespaces {
        world.apply(namespace(name, &json!({"team": "x"})));
    }
    world
}

fn strict(value: &str) -> Value {
    let mut object = distribution("d", value, &labelled("x"));
    object["spec"]["writePolicy"] = json!("strict");
    object
}

/// Desired, succeeded, failed.
fn counts(world: &World) -> [i64; 3] {
    ["desired", "succeeded", "failed"].map(|field| status(world, "d")[field].as_i64().expect(field))
}

/// A strict one that was complete in a, b and c before somebody's object came into a fourth namespace.
fn shut() -> World {
    let mut world = world(&["a", "b", "c"]);
    world.apply(strict("one"));
    assert!(world.settle());
    world.apply(namespace("d", &json!({})));
    world.apply(in_namespace(&settings("theirs"), "d"));
    edit(&mut world, "Namespace", "d", |each| {
        each["metadata"]["labels"] = json!({"team": "x"})
    });
    assert!(world.settle());
    world
}

#[test]
fn copies_of_a_strict_one_in_conflict_that_are_as_they_should_be_count_as_such_even_after_a_restart() {
    let mut world = shut();
    assert_eq!(counts(&world), [4, 3, 1]);
    let wrote = world.writes.len();
    world.restart();
    assert!(world.settle());
    assert_eq!(counts(&world), [4, 3, 1]);
    assert_eq!(world.writes[wrote..], [] as [&str; 0], "looked at, not written");
}

#[test]
fn a_copy_that_is_changed_while_a_strict_one_is_in_conflict_counts_as_long_as_it_is_right_and_is_not_written()
{
    let mut world = shut();
    let wrote = world.writes.len();
    let of_copies = |world: &World| {
        let writes = world.writes[wrote..].iter();
        writes
            .filter(|each| each.contains("ConfigMap"))
            .cloned()
            .collect::<Vec<_>>()
    };
    meddle(&mut world, "a", |copy| copy["data"]["key"] = json!("edited"));
    meddle(&mut world, "b", |copy| {
        copy["metadata"]["labels"]["app"] = json!("b")
    });
    assert!(world.settle_for(60_000));
    assert_eq!(counts(&world), [4, 2, 2]);
    world.restart();
    assert!(world.settle_for(60_000));
    assert_eq!(counts(&world), [4, 2, 2]);
    meddle(&mut world, "a", |copy| copy["data"]["key"] = json!("one"));
    assert!(world.settle_for(60_000));
    assert_eq!(counts(&world), [4, 3, 1]);
    world.apply(strict("two"));
    assert!(world.settle_for(60_000));
    assert_eq!(counts(&world), [4, 0, 4]);
    world.delete_at(&key("c"));
    assert!(world.settle_for(60_000));
    assert_eq!(of_copies(&world), [] as [&str; 0]);
    // What was known of copies while nothing was written does not keep them from being written.
    world.delete_at(&key("d"));
    assert!(world.settle_for(60_000));
    assert_eq!(counts(&world), [4, 4, 0]);
    assert!(held(&world).values().all(|value| *value == "two"));
}

#[test]
fn a_copy_that_may_not_be_deleted_to_be_made_again_cannot_be_updated_and_is_tried_again_later_and_later() {
    for refuses_as_changed in [false, true] {
        is_tried_again_later_and_later(refuses_as_changed);
    }
}

fn is_tried_again_later_and_later(refuses_as_changed: bool) {
    let mut world = world(&["a"]);
    world.refuses_as_changed = refuses_as_changed;
    world.apply(distribution("d", "one", &labelled("x")));
    assert!(world.settle());
    meddle(&mut world, "a", |copy| copy["immutable"] = json!(true));
    world.refuses_removal = true;
    world.apply(distribution("d", "two", &labelled("x")));
    assert!(world.settle_for(60_000));
    let conditions = status(&world, "d")["conditions"].as_array().expect("conditions");
    let troubles: Vec<&Value> = conditions
        .iter()
        .filter(|each| each["status"] == "True")
        .collect();
    assert_eq!(troubles.len(), 1, "{conditions:#?}");
    assert_eq!(troubles[0]["type"], "UpdateResourceFailed");
    assert!(
        world.asked_to_remove < 10,
        "{} times in a minute",
        world.asked_to_remove
    );
    world.refuses_removal = false;
    assert!(world.settle_for(600_000));
    assert_eq!(held(&world)["a"], "two");
    assert!(Meta::of(&world.hub[&key("a")]).deleting.is_none());
}

#[test]
fn a_copy_whose_removal_is_answered_with_a_conflict_though_it_is_unchanged_is_tried_again_later_and_later() {
    let mut world = world(&["a", "b"]);
    world.apply(distribution("d", "one", &labelled("x")));
    assert!(world.settle());
    (world.refuses_removal, world.refuses_as_changed) = (true, true);
    edit(&mut world, "Namespace", "a", |each| {
        each["metadata"]["labels"] = json!({})
    });
    assert!(world.settle_for(60_000));
    assert!(
        (2..10).contains(&world.asked_to_remove),
        "{} times in a minute",
        world.asked_to_remove
    );
    assert_eq!(held(&world).len(), 2);
    world.refuses_removal = false;
    assert!(world.settle_for(600_000));
    assert_eq!(held(&world).into_keys().collect::<Vec<_>>(), ["b"]);
}

/// A conflict comes into namespace c, which the strict one means from then on.
fn conflict_in_c(world: &mut World) {
    world.apply(in_namespace(&settings("theirs"), "c"));
    edit(world, "Namespace", "c", |each| {
        each["metadata"]["labels"] = json!({"team": "x"})
    });
    assert!(world.settle_for(60_000));
}

#[test]
fn a_copy_that_is_made_again_is_not_taken_back_by_a_conflict() {
    let mut world = world(&["a", "b"]);
    world.apply(namespace("c", &json!({})));
    world.apply(strict("one"));
    assert!(world.settle());
    // One namespace that is named and missing keeps it from being complete again.
    let incomplete = |value: &str| {
        let mut object = strict(value);
        object["spec"]["targets"]["includedNamespaces"] = json!({"list": [{"name": "missing"}]});
        object
    };
    world.apply(incomplete("one"));
    assert!(world.settle());
    world.delete_at(&key("a"));
    meddle(&mut world, "b", |copy| copy["immutable"] = json!(true));
    world.apply(incomplete("two"));
    assert!(world.settle_for(60_000));
    assert_eq!(
        held(&world).into_iter().collect::<Vec<_>>(),
        [("a", "two"), ("b", "two")]
    );
    assert_eq!(counts(&world), [3, 2, 1]);
    // Without what was written last: whoever deletes it to make it again knows that it stood there.
    world.restart();
    assert!(world.settle());
    meddle(&mut world, "b", |copy| copy["immutable"] = json!(true));
    world.apply(incomplete("three"));
    world.restart();
    assert!(world.settle_for(60_000));
    conflict_in_c(&mut world);
    assert_eq!(
        held(&world).into_iter().collect::<Vec<_>>(),
        [("a", "three"), ("b", "three"), ("c", "theirs")]
    );
}

#[test]
fn a_copy_that_becomes_what_is_distributed_stays_and_so_do_others_in_its_namespace() {
    let mut world = world(&["a", "b"]);
    world.apply(distribution("d", "one", &labelled("x")));
    assert!(world.settle());
    let from = |name: &str| json!({"kind": "ConfigMap", "namespace": "a", "name": name});
    let refer = |world: &mut World, name: &str| {
        edit(world, "ResourceDistribution", "d", |each| {
            each["spec"] = json!({"resourceFrom": from(name), "targets": labelled("x")});
        });
        assert!(world.settle_for(600_000));
    };
    for name in ["settings", "other"] {
        refer(&mut world, name);
        assert_eq!(
            held(&world).into_iter().collect::<Vec<_>>(),
            [("a", "one"), ("b", "one")],
            "{name}"
        );
    }
    refer(&mut world, "settings");
    meddle(&mut world, "a", |copy| {
        copy["metadata"]["annotations"][annotation::DISTRIBUTION_ALLOWED] = json!("d");
        copy["data"]["key"] = json!("two");
    });
    assert!(world.settle_for(600_000));
    assert_eq!(
        held(&world).into_iter().collect::<Vec<_>>(),
        [("a", "two"), ("b", "two")]
    );
    assert_eq!(counts(&world), [1, 1, 0]);
    let distribution = world.hub_object("ResourceDistribution", "d").expect("it");
    assert_eq!(
        distribution["status"]["observedGeneration"], distribution["metadata"]["generation"],
        "nothing waits for anybody to confirm it"
    );
    let reported = |each: &&String| each.contains("select no namespace");
    assert_eq!(world.events.iter().find(reported), None);
}

/// Renames what is distributed, as only a hub that knows no rules takes it.
pub(crate) fn rename(world: &mut World) {
    edit(world, "ResourceDistribution", "d", |each| {
        each["spec"]["resource"]["metadata"]["name"] = json!("other");
        each["spec"]["resource"]["data"]["key"] = json!("two");
    });
}

#[test]
fn what_is_renamed_past_the_rules_is_not_distributed_and_its_copies_stay_known_even_after_a_restart() {
    let mut world = world(&["a", "b"]);
    world.apply(distribution("d", "one", &labelled("x")));
    assert!(world.settle());
    assert_eq!(
        status(&world, "d")["distributed"],
        json!({"kind": "ConfigMap", "name": "settings"})
    );
    rename(&mut world);
    for _ in 0..2 {
        assert!(world.settle_for(60_000));
        assert_eq!(held(&world).len(), 2);
        assert!(held(&world).values().all(|value| *value == "one"));
        assert!(world.hub_object("ConfigMap", "other").is_none());
        let reported = status(&world, "d")["description"].as_str().expect("text");
        assert!(
            reported.contains("ConfigMap settings is what it has distributed"),
            "{reported}"
        );
        assert_eq!(status(&world, "d")["conditions"][0]["status"], "True");
        world.restart();
    }
    // What is not meant any more goes all the same, and what is meant waits.
    world.apply(namespace("c", &json!({"team": "x"})));
    edit(&mut world, "Namespace", "a", |each| {
        each["metadata"]["labels"] = json!({})
    });
    assert!(world.settle_for(60_000));
    assert_eq!(held(&world).keys().copied().collect::<Vec<_>>(), ["b"]);
    world.apply(distribution("d", "three", &labelled("x")));
    assert!(world.settle_for(60_000));
    assert_eq!(
        held(&world).into_iter().collect::<Vec<_>>(),
        [("b", "three"), ("c", "three")]
    );
    assert_eq!(counts(&world), [2, 2, 0]);
}
