//! Something that changes the copies of a distribution back, or deletes them, each time they are put right.

use serde_json::{Value, json};

use crate::{
    distributions::{
        distribution, edit, held, in_namespace, key, labelled, meddle, namespace, settings, status,
    },
    world::World,
};

/// One namespace with its copy.
fn example() -> World {
    let mut world = World::distributing(&[]);
    world.apply(namespace("a", &json!({"team": "x"})));
    world.apply(distribution("d", "one", &labelled("x")));
    assert!(world.settle());
    world
}

fn inject(world: &mut World) {
    meddle(world, "a", |copy| {
        copy["metadata"]["annotations"]["injector.example.com/done"] = json!("true");
        copy["data"]["ca.crt"] = json!("injected");
    });
}

fn is_right(world: &World) -> bool {
    let copy = world.hub.get(&key("a"));
    copy.is_some_and(|copy| copy["data"] == json!({"key": "one"}))
}

/// Meddles whenever the copy is right, for so many milliseconds; answers how often.
fn contended(world: &mut World, lasts: i64, mut meddles: impl FnMut(&mut World)) -> usize {
    let until = world.now.plus(lasts);
    let mut rounds = 0;
    while world.now < until && rounds < 100 {
        if is_right(world) {
            meddles(world);
            rounds += 1;
        }
        let before = world.now;
        assert!(world.settle_for(500));
        if world.now == before {
            world.now = before.plus(500);
        }
    }
    rounds
}

fn failure(world: &World) -> &Value {
    &status(world, "d")["conditions"][2]
}

fn reason(world: &World) -> &str {
    failure(world)["reason"].as_str().unwrap_or_default()
}

#[test]
fn what_keeps_changing_a_copy_back_is_reported_and_fought_ever_more_rarely_until_it_ends() {
    let mut world = example();
    inject(&mut world);
    assert!(world.settle_for(0));
    assert!(is_right(&world), "a single change is put right at once");
    assert_eq!(failure(&world)["status"], "False");
    assert!(world.settle_for(60_000));
    let wrote = world.writes.len();

    let rounds = contended(&mut world, 600_000, inject);
    assert!((10..=18).contains(&rounds), "{rounds} rounds in ten minutes");
    let writes = &world.writes[wrote..];
    let statuses = writes
        .iter()
        .filter(|write| write.contains("ResourceDistribution"));
    assert_eq!(statuses.count(), 1, "it is reported once: {writes:#?}");
    assert_eq!(failure(&world)["status"], "True");
    assert!(
        reason(&world).contains("namespace a: another writer keeps changing data"),
        "{}",
        reason(&world)
    );
    assert_eq!(failure(&world)["failedNamespaces"], json!(["a"]));
    assert_eq!(status(&world, "d")["failed"], 1);
    let reported = world.events.iter().filter(|each| each.contains("keeps changing"));
    assert_eq!(reported.count(), 1, "{:#?}", world.events);

    assert!(world.settle_for(120_000));
    assert!(is_right(&world), "it is never given up");
    assert_eq!(failure(&world)["status"], "True", "it may come back");
    let wrote = world.writes.len();
    assert!(world.settle_for(600_000));
    assert_eq!(failure(&world)["status"], "False", "{}", reason(&world));
    assert_eq!(status(&world, "d")["succeeded"], 1);
    let copies = world.writes[wrote..]
        .iter()
        .filter(|write| write.contains("ConfigMap"));
    assert_eq!(copies.count(), 0, "what is right is not written");
    inject(&mut world);
    assert!(world.settle_for(0));
    assert!(is_right(&world), "it is forgotten");
}

#[test]
fn what_keeps_deleting_a_copy_is_reported_and_the_copy_made_again_ever_more_rarely() {
    let mut world = example();
    let rounds = contended(&mut world, 600_000, |world| world.delete_at(&key("a")));
    assert!((10..=19).contains(&rounds), "{rounds} rounds in ten minutes");
    assert!(
        reason(&world).contains("another writer keeps deleting it"),
        "{}",
        reason(&world)
    );
    assert!(world.settle_for(120_000));
    assert!(is_right(&world), "it is never given up");
}

#[test]
fn what_keeps_making_a_copy_immutable_has_it_made_again_ever_more_rarely() {
    let mut world = example();
    let rounds = contended(&mut world, 600_000, |world| {
        meddle(world, "a", |copy| {
            copy["immutable"] = json!(true);
            copy["data"]["key"] = json!("theirs");
        });
    });
    assert!((10..=19).contains(&rounds), "{rounds} rounds in ten minutes");
    assert!(
        reason(&world).contains("another writer keeps changing"),
        "{}",
        reason(&world)
    );
}

#[test]
fn a_new_content_ends_the_wait_of_a_fight() {
    let mut world = example();
    contended(&mut world, 120_000, inject);
    assert!(!is_right(&world) && failure(&world)["status"] == "True");
    world.apply(distribution("d", "two", &labelled("x")));
    assert!(world.settle_for(0));
    assert_eq!(held(&world)["a"], "two", "it does not wait");
    assert!(world.settle_for(5_000));
    assert_eq!(failure(&world)["status"], "False", "{}", reason(&world));
}

#[test]
fn copies_that_stand_beside_one_that_is_fought_over_are_not_taken_back_by_a_conflict_that_comes_later() {
    let mut world = World::distributing(&[]);
    world.apply(namespace("a", &json!({"team": "x"})));
    let mut strict = distribution("d", "one", &labelled("x"));
    strict["spec"]["writePolicy"] = json!("strict");
    world.apply(strict);
    assert!(world.settle());
    contended(&mut world, 120_000, inject);
    assert_eq!(failure(&world)["status"], "True");
    world.apply(namespace("b", &json!({"team": "x"})));
    contended(&mut world, 300_000, inject);
    assert_eq!(failure(&world)["status"], "True");
    world.apply(namespace("c", &json!({})));
    world.apply(in_namespace(&settings("theirs"), "c"));
    edit(&mut world, "Namespace", "c", |live| {
        live["metadata"]["labels"] = json!({"team": "x"})
    });
    assert!(world.settle_for(60_000));
    assert_eq!(held(&world).get("b"), Some(&"one"));
    assert_eq!(held(&world).get("c"), Some(&"theirs"));
}

#[test]
fn what_comes_back_every_few_minutes_is_reported_without_a_break() {
    let mut world = example();
    let round = |world: &mut World| {
        inject(world);
        let next = world.now.plus(240_000);
        assert!(world.settle_for(200_000));
        assert!(is_right(world) && world.now < next);
        world.now = next;
        assert!(world.settle_for(0));
    };
    for _ in 0..3 {
        round(&mut world);
    }
    let wrote = world.writes.len();
    for _ in 0..5 {
        assert_eq!(failure(&world)["status"], "True");
        round(&mut world);
    }
    let mut writes = world.writes[wrote..].iter();
    assert_eq!(writes.find(|write| write.contains("ResourceDistribution")), None);
    assert!(world.settle_for(600_000));
    assert_eq!(failure(&world)["status"], "False", "{}", reason(&world));
}

#[test]
fn a_namespace_that_leaves_and_comes_again_and_again_is_no_fight() {
    let mut world = example();
    for _ in 0..6 {
        for labels in [json!({}), json!({"team": "x"})] {
            edit(&mut world, "Namespace", "a", |live| {
                live["metadata"]["labels"] = labels.clone()
            });
            assert!(world.settle_for(0));
        }
        assert!(is_right(&world), "it does not wait");
        world.end_namespace("a");
        assert!(world.settle_for(0));
        world.apply(namespace("a", &json!({"team": "x"})));
        assert!(world.settle_for(0));
        assert!(is_right(&world), "it does not wait");
    }
    assert!(world.settle());
    assert_eq!(failure(&world)["status"], "False", "{}", reason(&world));
}
