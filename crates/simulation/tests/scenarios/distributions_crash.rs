//! A crash after any change leads to the end that there would have been without it: no copy too few, none too many, nothing
//! of others touched.

use serde_json::{Value, json};

use crate::{
    distributions::{by_reference, distribution, edit, in_namespace, labelled, named, namespace, settings},
    world::{World, id},
};

/// Does something after a crash at each of its changes, and compares the ends.
fn check(what: &str, begin: impl Fn() -> World, act: impl Fn(&mut World)) {
    let mut undisturbed = begin();
    let before = undisturbed.writes.len();
    act(&mut undisturbed);
    assert!(undisturbed.settle_for(60_000));
    let total = undisturbed.writes.len() - before;
    assert!(total > 0, "{what} changes nothing");
    for k in 1..=total {
        let mut world = begin();
        act(&mut world);
        world.crash_in = Some(k);
        let survived = world.settle_for(60_000);
        assert!(!survived, "{what}: {k} of {total}");
        world.restart();
        assert!(world.settle_for(60_000));
        let (want, got) = (undisturbed.outline(), world.outline());
        for key in want.keys().chain(got.keys()) {
            assert_eq!(want.get(key), got.get(key), "{what}: crash after {k}: {key}");
        }
    }
}

/// Four namespaces of team x, in one of which stands an object of somebody else, and two of team y.
fn empty() -> World {
    let mut world = World::distributing(&[]);
    for (name, team) in [
        ("a", "x"),
        ("b", "x"),
        ("c", "x"),
        ("taken", "x"),
        ("e", "y"),
        ("f", "y"),
    ] {
        world.apply(namespace(name, &json!({"team": team})));
    }
    world.apply(in_namespace(&settings("theirs"), "taken"));
    assert!(world.settle());
    world
}

fn with(object: Value) -> impl Fn() -> World {
    move || {
        let mut world = empty();
        world.apply(object.clone());
        assert!(world.settle_for(60_000));
        world
    }
}

fn with_field(mut object: Value, field: &str, value: &str) -> Value {
    object["spec"][field] = json!(value);
    object
}

#[test]
fn a_crash_while_a_distribution_is_made_leads_to_the_same_end() {
    let one = distribution("d", "one", &labelled("x"));
    check("create", empty, |world| world.apply(one.clone()));
    for (field, value) in [
        ("writePolicy", "strict"),
        ("writePolicy", "overwrite"),
        ("deletionPolicy", "Orphan"),
    ] {
        check(value, empty, |world| {
            world.apply(with_field(one.clone(), field, value))
        });
    }
}

#[test]
fn a_crash_while_copies_are_updated_leads_to_the_same_end() {
    let begin = with(distribution("d", "one", &labelled("x")));
    check("update", &begin, |world| {
        world.apply(distribution("d", "two", &labelled("x")))
    });
    check("update by reference", by_reference, |world| {
        crate::distributions::meddle(world, "home", |source| source["data"]["key"] = json!("two"));
    });
}

#[test]
fn a_crash_while_targets_move_leads_to_the_same_end() {
    let begin = with(distribution("d", "one", &labelled("x")));
    check("retarget", &begin, |world| {
        world.apply(distribution("d", "one", &labelled("y")))
    });
    check("retarget and update", &begin, |world| {
        world.apply(distribution("d", "two", &named(&["a", "e", "absent"])))
    });
    check("labels", &begin, |world| {
        for name in ["a", "b"] {
            edit(world, "Namespace", name, |each| {
                each["metadata"]["labels"]["team"] = json!("y")
            });
        }
    });
    check("emptied", &begin, |world| {
        world.apply(distribution("d", "one", &labelled("nobody")))
    });
}

#[test]
fn a_crash_while_a_distribution_ends_leads_to_the_same_end() {
    // Without Orphan only the garbage collector acts.
    let object = with_field(
        distribution("d", "one", &labelled("x")),
        "deletionPolicy",
        "Orphan",
    );
    check("delete", with(object), |world| {
        world.delete("ResourceDistribution", "d")
    });
}

/// Two members with the namespaces "app" and "web".
fn members() -> World {
    let mut world = World::distributing(&["m1", "m2"]);
    assert!(world.settle());
    for member in ["m1", "m2"] {
        for name in ["app", "web"] {
            let place = id("Namespace", "", name);
            world.meddle_at(member, &place, |_| Some(namespace(name, &json!({}))));
        }
    }
    assert!(world.settle());
    world
}

fn to_members(value: &str, members: &[&str], names: &[&str]) -> Value {
    let mut targets = named(names);
    targets["clusters"] = json!({"clusterNames": members});
    distribution("d", value, &targets)
}

#[test]
fn a_crash_while_copies_on_members_change_leads_to_the_same_end() {
    let all = to_members("one", &["m1", "m2"], &["app", "web"]);
    check("create on members", members, |world| world.apply(all.clone()));
    for policy in ["Delete", "Orphan"] {
        let begin = || {
            let mut world = members();
            world.apply(with_field(all.clone(), "deletionPolicy", policy));
            assert!(world.settle_for(60_000));
            world
        };
        check("update on members", begin, |world| {
            world.apply(to_members("two", &["m1", "m2"], &["app", "web"]))
        });
        check("retarget on members", begin, |world| {
            world.apply(to_members("two", &["m2"], &["web"]))
        });
        check("from members to the hub", begin, |world| {
            world.apply(namespace("app", &json!({})));
            world.apply(distribution("d", "two", &named(&["app"])));
        });
        check("delete on members", begin, |world| {
            world.delete("ResourceDistribution", "d")
        });
    }
}
