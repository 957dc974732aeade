//! Distributions on the hub: copies follow what is reported, nothing foreign is touched, nothing is written for nothing, and
//! nothing is deleted that is not known to be in the wrong place.

use std::collections::BTreeMap;

use entourage_api::keys::{annotation, finalizer};
use entourage_core::{
    object::{Gvk, Meta, ResourceId},
    observation::{Observation, Subject, Watch},
};
use serde_json::{Value, json};

use crate::world::{Random, World, id};

pub(crate) fn namespace(name: &str, labels: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
}

/// Distributes the ConfigMap "settings".
pub(crate) fn distribution(name: &str, value: &str, targets: &Value) -> Value {
    distribution_of(name, &settings(value), targets)
}

pub(crate) fn distribution_of(name: &str, resource: &Value, targets: &Value) -> Value {
    json!({
        "apiVersion": "apps.kruise.io/v1alpha1", "kind": "ResourceDistribution", "metadata": {"name": name},
        "spec": {"resource": resource, "targets": targets},
    })
}

pub(crate) fn settings(value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"key": value}})
}

pub(crate) fn in_namespace(object: &Value, namespace: &str) -> Value {
    let mut object = object.clone();
    object["metadata"]["namespace"] = json!(namespace);
    object
}

pub(crate) fn named(names: &[&str]) -> Value {
    let list: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
    json!({"includedNamespaces": {"list": list}})
}

pub(crate) fn labelled(team: &str) -> Value {
    json!({"namespaceLabelSelector": {"matchLabels": {"team": team}}})
}

pub(crate) fn edit(world: &mut World, kind: &str, name: &str, change: impl FnOnce(&mut Value)) {
    let mut object = world.hub_object(kind, name).expect("object").clone();
    change(&mut object);
    world.replace(object);
}

/// The data of the ConfigMaps of the name, by namespace of the hub.
pub(crate) fn held(world: &World) -> BTreeMap<&str, &str> {
    let of_it = world.hub.iter();
    let of_it = of_it.filter(|(id, _)| &*id.gvk.kind == "ConfigMap" && &*id.name == "settings");
    of_it
        .map(|(id, object)| (&*id.namespace, object["data"]["key"].as_str().unwrap_or("")))
        .collect()
}

pub(crate) fn key(namespace: &str) -> ResourceId {
    id("ConfigMap", namespace, "settings")
}

pub(crate) fn status<'a>(world: &'a World, name: &str) -> &'a Value {
    let object = world.hub_object("ResourceDistribution", name);
    &object.expect("distribution")["status"]
}

fn counts(world: &World, name: &str) -> [i64; 3] {
    ["desired", "succeeded", "failed"].map(|field| status(world, name)[field].as_i64().expect(field))
}

/// The conditions that are True.
fn troubles(world: &World, name: &str) -> Vec<String> {
    let conditions = status(world, name)["conditions"].as_array().expect("conditions");
    assert_eq!(conditions.len(), 6);
    let troubles = conditions.iter().filter(|each| each["status"] == "True");
    troubles
        .map(|each| each["type"].as_str().expect("type").to_owned())
        .collect()
}

fn since(world: &World, wrote: usize) -> Vec<String> {
    world.writes[wrote..].to_vec()
}

/// A change of a user's object in a namespace of the hub.
pub(crate) fn meddle(world: &mut World, namespace: &str, change: impl FnOnce(&mut Value)) {
    let mut object = world.hub[&key(namespace)].clone();
    change(&mut object);
    world.replace(object);
}

/// Three namespaces of team x, one of team y, and a distribution to team x.
fn example() -> World {
    let mut world = World::distributing(&[]);
    for (name, team) in [("a", "x"), ("b", "x"), ("c", "x"), ("other", "y")] {
        world.apply(namespace(name, &json!({"team": team})));
    }
    world.apply(distribution("d", "one", &labelled("x")));
    assert!(world.settle());
    world
}

fn watch() -> Watch {
    Watch::Distributed(None, Gvk::new("v1", "ConfigMap"), "settings".into())
}

#[test]
fn the_copies_stand_where_they_are_meant_and_the_status_says_so() {
    let world = example();
    assert_eq!(
        held(&world),
        BTreeMap::from([("a", "one"), ("b", "one"), ("c", "one")])
    );
    assert_eq!(counts(&world, "d"), [3, 3, 0]);
    assert!(troubles(&world, "d").is_empty());
    assert_eq!(status(&world, "d")["observedGeneration"], 1);
    let reported = world
        .events
        .iter()
        .filter(|each| each.starts_with("Distributed "));
    assert_eq!(reported.count(), 1, "{:?}", world.events);
    let distribution = world
        .hub_object("ResourceDistribution", "d")
        .expect("distribution");
    let owner = &world.hub[&key("a")]["metadata"]["ownerReferences"][0];
    assert_eq!(owner["uid"], distribution["metadata"]["uid"]);
    assert_eq!(distribution["metadata"]["finalizers"], Value::Null);
}

#[test]
fn a_named_namespace_that_does_not_exist_is_not_counted_beside_all_namespaces() {
    let mut world = example();
    let mut all = named(&["a", "gone"]);
    world.apply(distribution("d", "one", &all));
    assert!(world.settle());
    assert_eq!(counts(&world, "d"), [2, 1, 1], "alone it fails");
    all["allNamespaces"] = json!(true);
    world.apply(distribution("d", "one", &all));
    assert!(world.settle());
    let [desired, succeeded, failed] = counts(&world, "d");
    assert_eq!((desired, failed), (succeeded, 0), "{:#}", status(&world, "d"));
    assert!(troubles(&world, "d").is_empty());
    world.apply(namespace("gone", &json!({})));
    assert!(world.settle());
    assert_eq!(counts(&world, "d"), [desired + 1, desired + 1, 0]);
}

#[test]
fn nothing_is_written_when_nothing_changed_and_after_a_restart() {
    let mut world = example();
    let wrote = world.writes.len();
    assert!(world.settle_for(1_200_000));
    world.restart();
    assert!(world.settle_for(1_200_000));
    assert!(since(&world, wrote).is_empty(), "{:#?}", since(&world, wrote));
}

#[test]
fn a_distribution_that_is_edited_goes_on_being_watched_and_its_copies_follow() {
    let mut world = example();
    for value in ["two", "three"] {
        world.apply(distribution("d", value, &labelled("x")));
        assert!(world.settle());
        assert_eq!(
            held(&world),
            BTreeMap::from([("a", value), ("b", value), ("c", value)])
        );
    }
    // What happens to a copy is still seen.
    meddle(&mut world, "a", |copy| copy["data"]["key"] = json!("edited"));
    assert!(world.settle_for(120_000));
    assert_eq!(held(&world)["a"], "three");
    assert!(world.process.engine.is_synced());
}

#[test]
fn an_update_is_one_write_a_namespace_and_few_of_the_status() {
    let mut world = World::distributing(&[]);
    for n in 0..200 {
        world.apply(namespace(&format!("n{n:03}"), &json!({"team": "x"})));
    }
    world.apply(distribution("d", "one", &labelled("x")));
    assert!(world.settle_for(60_000));
    let writes = |world: &World, since: usize| {
        let of_status = |each: &&String| each.contains("ResourceDistribution");
        let all = &world.writes[since..];
        (all.iter().filter(of_status).count(), all.len())
    };
    let (of_status, all) = writes(&world, 0);
    assert!(of_status <= 3 && all - of_status == 200, "{of_status} of {all}");
    let wrote = world.writes.len();
    world.apply(distribution("d", "two", &labelled("x")));
    assert!(world.settle_for(60_000));
    let (of_status, all) = writes(&world, wrote);
    assert!(of_status <= 3 && all - of_status == 200, "{of_status} of {all}");
    assert!(held(&world).values().all(|value| *value == "two"));
}

#[test]
fn a_namespace_that_comes_goes_or_changes_its_labels_costs_one_write() {
    let mut world = example();
    for (step, wanted) in ["a b c new", "a b c", "a b c other", "a b other"]
        .iter()
        .enumerate()
    {
        let wrote = world.writes.len();
        match step {
            0 => world.apply(namespace("new", &json!({"team": "x"}))),
            1 => world.end_namespace("new"),
            2 => edit(&mut world, "Namespace", "other", |each| {
                each["metadata"]["labels"]["team"] = json!("x")
            }),
            _ => edit(&mut world, "Namespace", "c", |each| {
                each["metadata"]["labels"] = json!({})
            }),
        }
        assert!(world.settle_for(60_000));
        assert_eq!(held(&world).into_keys().collect::<Vec<_>>().join(" "), *wanted);
        let copies = world.writes[wrote..]
            .iter()
            .filter(|each| each.contains("ConfigMap"));
        assert!(copies.count() <= 1, "{:#?}", since(&world, wrote));
    }
}

#[test]
fn an_object_of_somebody_else_is_a_conflict_that_heals_when_it_goes() {
    let mut world = World::distributing(&[]);
    for name in ["a", "b"] {
        world.apply(namespace(name, &json!({"team": "x"})));
    }
    world.apply(in_namespace(&settings("theirs"), "a"));
    world.apply(distribution("d", "ours", &labelled("x")));
    assert!(world.settle());
    assert_eq!(held(&world), BTreeMap::from([("a", "theirs"), ("b", "ours")]));
    assert_eq!(counts(&world, "d"), [2, 1, 1]);
    assert_eq!(troubles(&world, "d"), ["ConflictOccurred"]);
    assert_eq!(
        status(&world, "d")["conflictingNamespaces"],
        json!([{"name": "a", "reason": "NotControlled"}])
    );
    world.delete_at(&key("a"));
    assert!(world.settle());
    assert_eq!(held(&world)["a"], "ours");
    assert_eq!(counts(&world, "d"), [2, 2, 0]);
    assert!(troubles(&world, "d").is_empty());
    assert!(status(&world, "d")["conflictingNamespaces"].is_null());
}

#[test]
fn two_distributions_of_one_name_do_not_fight() {
    let mut world = example();
    let wrote = world.writes.len();
    world.apply(distribution("e", "two", &labelled("x")));
    assert!(world.settle_for(600_000));
    assert_eq!(counts(&world, "e"), [3, 0, 3]);
    let copies = world.writes[wrote..]
        .iter()
        .filter(|each| each.contains("ConfigMap"));
    assert_eq!(copies.count(), 0, "{:#?}", since(&world, wrote));
    // What the first one leaves, the second one takes.
    world.delete("ResourceDistribution", "d");
    assert!(world.settle_for(600_000));
    assert_eq!(
        held(&world),
        BTreeMap::from([("a", "two"), ("b", "two"), ("c", "two")])
    );
}

fn with_policy(mut distribution: Value, policy: &str) -> Value {
    distribution["spec"]["writePolicy"] = json!(policy);
    distribution
}

#[test]
fn strict_writes_nothing_while_one_namespace_is_in_conflict() {
    let mut world = World::distributing(&[]);
    for name in ["a", "b", "c"] {
        world.apply(namespace(name, &json!({"team": "x"})));
    }
    world.apply(in_namespace(&settings("theirs"), "c"));
    world.apply(with_policy(distribution("d", "ours", &labelled("x")), "strict"));
    assert!(world.settle());
    assert_eq!(held(&world), BTreeMap::from([("c", "theirs")]));
    assert_eq!(counts(&world, "d"), [3, 0, 3]);
    world.delete_at(&key("c"));
    assert!(world.settle());
    assert_eq!(
        held(&world),
        BTreeMap::from([("a", "ours"), ("b", "ours"), ("c", "ours")])
    );
}

#[test]
fn overwrite_takes_over_what_nobody_controls_and_nothing_else() {
    let mut world = World::distributing(&[]);
    for name in ["a", "b"] {
        world.apply(namespace(name, &json!({"team": "x"})));
        let mut theirs = in_namespace(&settings("theirs"), name);
        theirs["metadata"]["labels"] = json!({"app": "kept"});
        if name == "b" {
            theirs["metadata"]["ownerReferences"] = json!([
                {"apiVersion": "apps/v1", "kind": "Deployment", "name": "w", "uid": "w", "controller": true}
            ]);
        }
        world.apply(theirs);
    }
    world.apply(with_policy(
        distribution("d", "ours", &labelled("x")),
        "overwrite",
    ));
    assert!(world.settle());
    assert_eq!(held(&world), BTreeMap::from([("a", "ours"), ("b", "theirs")]));
    assert_eq!(world.hub[&key("a")]["metadata"]["labels"]["app"], "kept");
    assert_eq!(troubles(&world, "d"), ["ConflictOccurred"]);
    assert_eq!(
        status(&world, "d")["conflictingNamespaces"][0]["owner"],
        "Deployment w"
    );
}

#[test]
fn a_hand_edit_is_put_right_and_a_copy_deleted_by_hand_is_made_again() {
    let mut world = example();
    meddle(&mut world, "a", |copy| copy["data"]["key"] = json!("edited"));
    world.delete_at(&key("b"));
    assert!(world.settle_for(60_000));
    assert_eq!(
        held(&world),
        BTreeMap::from([("a", "one"), ("b", "one"), ("c", "one")])
    );
}

#[test]
fn what_an_injector_was_asked_for_stays_when_the_content_changes() {
    let mut world = World::distributing(&[]);
    world.apply(namespace("a", &json!({"team": "x"})));
    let asking = |value: &str| {
        let mut resource = settings(value);
        resource["metadata"]["labels"] = json!({"config.openshift.io/inject-trusted-cabundle": "true"});
        distribution_of("d", &resource, &labelled("x"))
    };
    world.apply(asking("one"));
    assert!(world.settle());
    meddle(&mut world, "a", |copy| {
        copy["data"]["ca-bundle.crt"] = json!("injected")
    });
    assert!(world.settle());
    let wanted = |value: &str| json!({"key": value, "ca-bundle.crt": "injected"});
    assert_eq!(world.hub[&key("a")]["data"], wanted("one"));
    world.apply(asking("two"));
    assert!(world.settle());
    assert_eq!(world.hub[&key("a")]["data"], wanted("two"));
}

#[test]
fn targets_that_cease_to_mean_anything_delete_nothing_until_somebody_confirms_even_after_a_restart() {
    for restarts in [false, true] {
        let mut world = example();
        world.apply(distribution("d", "one", &labelled("nobody")));
        assert!(world.settle_for(60_000));
        if restarts {
            world.restart();
            assert!(world.settle_for(60_000));
        }
        assert_eq!(held(&world).len(), 3);
        let reported = status(&world, "d")["description"].as_str().expect("description");
        assert!(reported.contains("3 copies are kept"), "{reported}");
        assert_eq!(status(&world, "d")["observedGeneration"], 1);
        edit(&mut world, "ResourceDistribution", "d", |each| {
            each["metadata"]["annotations"] = json!({annotation::ALLOW_EMPTY_TARGETS: "true"})
        });
        assert!(world.settle_for(60_000));
        assert!(held(&world).is_empty());
        assert_eq!(status(&world, "d")["observedGeneration"], 2);
    }
}

#[test]
fn while_something_is_not_known_as_it_is_nothing_is_deleted() {
    for lost in [Watch::Namespaces, Watch::Distributions, watch()] {
        for restarts in [false, true] {
            let mut world = example();
            if lost == Watch::Distributions && restarts {
                // Without distributions nothing is known at all.
                continue;
            }
            world.apply(distribution("d", "one", &named(&["b"])));
            if restarts {
                world.restart();
                world.shut.insert(lost.clone());
                world.process.engine.observe(
                    Observation::Lost {
                        watch: lost.clone(),
                        why: "cannot be listed".into(),
                    },
                    world.now,
                );
            } else {
                world.lose(lost.clone());
            }
            assert!(world.settle_for(60_000));
            assert_eq!(held(&world).len(), 3, "{lost:?} {restarts}");
            world.shut.clear();
            assert!(world.settle_for(60_000));
            assert_eq!(
                held(&world),
                BTreeMap::from([("b", "one")]),
                "{lost:?} {restarts}"
            );
        }
    }
}

#[test]
fn a_distribution_that_is_seen_before_the_namespaces_deletes_and_reports_nothing_too_early() {
    for slow in [Watch::Namespaces, watch()] {
        let mut world = example();
        let wrote = world.writes.len();
        world.restart();
        world.shut.insert(slow.clone());
        assert!(world.settle_for(60_000));
        assert!(
            since(&world, wrote).is_empty(),
            "{slow:?}: {:#?}",
            since(&world, wrote)
        );
        world.shut.clear();
        assert!(world.settle_for(60_000));
        assert!(
            since(&world, wrote).is_empty(),
            "{slow:?}: {:#?}",
            since(&world, wrote)
        );
    }
}

#[test]
fn stale_and_reordered_events_change_nothing() {
    let mut world = example();
    let old: Vec<Value> = world.hub.values().cloned().collect();
    world.apply(distribution("d", "two", &named(&["a", "b"])));
    edit(&mut world, "Namespace", "other", |each| {
        each["metadata"]["labels"]["team"] = json!("z")
    });
    world.delete_at(&key("b"));
    assert!(world.settle());
    let wrote = world.writes.len();
    for _ in 0..2 {
        for object in old.iter().rev() {
            let watch = match object["kind"].as_str() {
                Some("Namespace") => Watch::Namespaces,
                Some("ResourceDistribution") => Watch::Distributions,
                Some("ConfigMap") => watch(),
                _ => continue,
            };
            let subject =
                entourage_core::observation::project(&watch, &Default::default(), object).expect("readable");
            world.tell_again(Observation::Seen(subject));
        }
        assert!(world.settle_for(60_000));
        assert!(since(&world, wrote).is_empty(), "{:#?}", since(&world, wrote));
    }
    assert_eq!(held(&world), BTreeMap::from([("a", "two"), ("b", "two")]));
}

/// A backup of the hub, much that happens after it, and the hub is as it was.
fn disturbed() -> World {
    let mut world = example();
    let backup = world.backup();
    world.apply(distribution("d", "two", &labelled("y")));
    world.apply(distribution("later", "three", &named(&["a"])));
    world.apply(namespace("new", &json!({"team": "x"})));
    meddle(&mut world, "a", |copy| copy["data"]["key"] = json!("edited"));
    assert!(world.settle_for(60_000));
    world.restore(&backup);
    world
}

#[test]
fn a_hub_that_is_restored_loses_no_copy_in_whatever_order_its_lists_come() {
    for seed in 0..60 {
        let mut world = disturbed();
        let wrote = world.writes.len();
        world.chaos = Some(Random::new(seed));
        assert!(world.settle_for(600_000));
        assert_eq!(
            held(&world),
            BTreeMap::from([("a", "one"), ("b", "one"), ("c", "one")]),
            "seed {seed}"
        );
        // What was made by an old word of the distribution may go again; nothing is written over and over.
        let writes = since(&world, wrote);
        let is_wrong = |each: &String| each.contains("DELETE") && !each.contains("other/settings");
        assert!(!writes.iter().any(is_wrong), "seed {seed}: {writes:#?}");
        assert!(writes.len() < 30, "seed {seed}: {writes:#?}");
    }
}

#[test]
fn a_hub_that_is_restored_leads_to_the_same_end_as_a_restart() {
    let (mut world, mut restarted) = (disturbed(), disturbed());
    restarted.restart();
    for each in [&mut world, &mut restarted] {
        assert!(each.settle_for(60_000));
        assert_eq!(
            held(each),
            BTreeMap::from([("a", "one"), ("b", "one"), ("c", "one")])
        );
        // A generation that is counted twice.
        each.apply(distribution("d", "afterwards", &labelled("x")));
        each.apply(namespace("new", &json!({"team": "x"})));
        assert!(each.settle_for(60_000));
        assert_eq!(held(each).len(), 4);
        assert!(held(each).values().all(|value| *value == "afterwards"));
        assert_eq!(counts(each, "d"), [4, 4, 0]);
    }
    assert_eq!(world.outline(), restarted.outline());
}

fn workload(name: &str, namespace: &str, app: &str) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": app}}, "spec": {"replicas": 1}})
}

/// A distribution of what stands in the namespace "home".
pub(crate) fn by_reference() -> World {
    let mut world = World::distributing(&[]);
    for name in ["a", "b", "home"] {
        world.apply(namespace(name, &json!({"team": "x"})));
    }
    let mut source = in_namespace(&settings("one"), "home");
    source["metadata"]["annotations"] = json!({annotation::DISTRIBUTION_ALLOWED: "d"});
    world.apply(source);
    let mut object = distribution("d", "", &labelled("x"));
    object["spec"] = json!({
        "resourceFrom": {"kind": "ConfigMap", "namespace": "home", "name": "settings"},
        "targets": labelled("x"),
    });
    world.apply(object);
    assert!(world.settle());
    world
}

#[test]
fn what_stands_by_itself_is_distributed_as_long_as_its_owner_consents_and_copies_stay_after_that() {
    let mut world = by_reference();
    assert_eq!(
        held(&world),
        BTreeMap::from([("a", "one"), ("b", "one"), ("home", "one")])
    );
    assert_eq!(counts(&world, "d"), [2, 2, 0]);
    meddle(&mut world, "home", |source| source["data"]["key"] = json!("two"));
    assert!(world.settle());
    assert_eq!(
        held(&world),
        BTreeMap::from([("a", "two"), ("b", "two"), ("home", "two")])
    );
    meddle(&mut world, "home", |source| {
        source["metadata"]["annotations"] = json!({});
        source["data"]["key"] = json!("three");
    });
    assert!(world.settle_for(600_000));
    assert_eq!(
        held(&world),
        BTreeMap::from([("a", "two"), ("b", "two"), ("home", "three")])
    );
    assert_eq!(troubles(&world, "d"), ["GetResourceFailed"]);
    world.delete_at(&key("home"));
    assert!(world.settle_for(600_000));
    assert_eq!(held(&world), BTreeMap::from([("a", "two"), ("b", "two")]));
}

#[test]
fn a_distribution_that_is_deleted_leaves_its_copies_or_takes_them_along_as_it_says() {
    for policy in ["Delete", "Orphan"] {
        let mut world = World::distributing(&[]);
        for name in ["a", "b"] {
            world.apply(namespace(name, &json!({"team": "x"})));
        }
        let mut object = distribution("d", "one", &labelled("x"));
        object["spec"]["deletionPolicy"] = json!(policy);
        world.apply(object);
        // Another one wants the name.
        world.apply(distribution("e", "two", &named(&["a"])));
        assert!(world.settle());
        let finalizers =
            &world.hub_object("ResourceDistribution", "d").expect("it")["metadata"]["finalizers"];
        assert_eq!(
            finalizers == &json!([finalizer::DISTRIBUTION]),
            policy == "Orphan"
        );
        world.delete("ResourceDistribution", "d");
        assert!(world.settle_for(60_000));
        assert!(world.hub_object("ResourceDistribution", "d").is_none());
        if policy == "Delete" {
            assert_eq!(held(&world), BTreeMap::from([("a", "two")]));
            assert_eq!(counts(&world, "e"), [1, 1, 0]);
        } else {
            assert_eq!(held(&world), BTreeMap::from([("a", "one"), ("b", "one")]));
            assert!(
                world.hub[&key("b")]["metadata"]["ownerReferences"]
                    .as_array()
                    .is_none_or(Vec::is_empty)
            );
            // What was left is nobody's, and in the other one's way.
            assert_eq!(counts(&world, "e"), [1, 0, 1]);
            assert_eq!(troubles(&world, "e"), ["ConflictOccurred"]);
        }
    }
}

#[test]
fn the_cost_of_a_namespace_event_grows_neither_with_namespaces_nor_with_distributions_that_cannot_mean_it() {
    let mut keys = Vec::new();
    for (namespaces, distributions) in [(10, 1), (400, 1), (10, 60)] {
        let mut world = World::distributing(&[]);
        for n in 0..namespaces {
            world.apply(namespace(&format!("n{n:03}"), &json!({"team": "x"})));
        }
        world.apply(distribution("d", "one", &labelled("x")));
        for n in 1..distributions {
            let mut resource = settings("one");
            resource["metadata"]["name"] = json!(format!("settings-{n}"));
            world.apply(distribution_of(
                &format!("d{n}"),
                &resource,
                &labelled(&format!("team-{n}")),
            ));
        }
        assert!(world.settle_for(60_000));
        let object = json!({"metadata": {"name": "new", "uid": "new", "resourceVersion": "1000000",
            "labels": {"team": "x"}}});
        let seen = Subject::Namespace("new".into(), Meta::of(&object));
        keys.push(
            world
                .process
                .engine
                .observe(Observation::Seen(seen), world.now)
                .len(),
        );
    }
    assert!(
        keys[0] <= 3 && keys.iter().all(|count| *count == keys[0]),
        "{keys:?}"
    );
}

#[test]
fn a_conflict_that_comes_after_a_strict_one_was_complete_takes_nothing_back() {
    let mut world = World::distributing(&[]);
    for name in ["a", "b"] {
        world.apply(namespace(name, &json!({"team": "x"})));
    }
    world.apply(with_policy(distribution("d", "one", &labelled("x")), "strict"));
    assert!(world.settle());
    world.apply(namespace("c", &json!({})));
    world.apply(in_namespace(&settings("theirs"), "c"));
    edit(&mut world, "Namespace", "c", |each| {
        each["metadata"]["labels"] = json!({"team": "x"})
    });
    assert!(world.settle_for(60_000));
    assert_eq!(
        held(&world),
        BTreeMap::from([("a", "one"), ("b", "one"), ("c", "theirs")])
    );
    // Neither is anything written.
    world.apply(with_policy(distribution("d", "two", &labelled("x")), "strict"));
    assert!(world.settle_for(60_000));
    assert_eq!(
        held(&world),
        BTreeMap::from([("a", "one"), ("b", "one"), ("c", "theirs")])
    );
    world.delete_at(&key("c"));
    assert!(world.settle_for(60_000));
    assert!(held(&world).values().all(|value| *value == "two"));
}

#[test]
fn a_copy_whose_removal_failed_once_is_not_removed_when_it_is_meant_again() {
    let mut world = example();
    world.refuses_removal = true;
    edit(&mut world, "Namespace", "a", |each| {
        each["metadata"]["labels"] = json!({})
    });
    assert!(world.settle_for(5_000));
    assert_eq!(troubles(&world, "d"), ["DeleteResourceFailed"]);
    world.refuses_removal = false;
    let wrote = world.writes.len();
    // Content and targets change at once.
    world.apply(distribution("d", "two", &named(&["a", "b", "c"])));
    assert!(world.settle_for(600_000));
    let removed = world.writes[wrote..]
        .iter()
        .filter(|each| each.contains("DELETE"));
    assert_eq!(removed.count(), 0, "{:#?}", since(&world, wrote));
    assert_eq!(
        held(&world),
        BTreeMap::from([("a", "two"), ("b", "two"), ("c", "two")])
    );
}

#[test]
fn a_removal_that_failed_once_does_not_get_round_the_guard_of_empty_targets() {
    let mut world = example();
    world.refuses_removal = true;
    let label = |world: &mut World, team: &str| {
        edit(world, "Namespace", "a", |each| {
            each["metadata"]["labels"] = json!({"team": team})
        })
    };
    label(&mut world, "y");
    assert!(world.settle_for(5_000));
    label(&mut world, "x");
    assert!(world.settle_for(5_000));
    world.refuses_removal = false;
    world.apply(distribution("d", "one", &labelled("nobody")));
    assert!(world.settle_for(600_000));
    assert_eq!(held(&world).len(), 3);
}

#[test]
fn a_distribution_that_is_deleted_and_made_again_at_once_is_carried_out() {
    let mut world = example();
    world.delete("ResourceDistribution", "d");
    world.apply(distribution("d", "again", &labelled("x")));
    assert!(world.settle_for(120_000));
    assert_eq!(
        held(&world),
        BTreeMap::from([("a", "again"), ("b", "again"), ("c", "again")])
    );
    assert_eq!(counts(&world, "d"), [3, 3, 0]);
}

#[test]
fn a_namespace_that_the_last_selected_workload_left_keeps_its_copy_for_a_while() {
    let mut world = World::distributing(&[]);
    for name in ["a", "b"] {
        world.apply(namespace(name, &json!({})));
        world.apply(workload("w", name, "web"));
    }
    let targets = json!({"workloadLabelSelector": {"matchLabels": {"app": "web"}}});
    world.apply(distribution("d", "one", &targets));
    assert!(world.settle());
    assert_eq!(held(&world).into_keys().collect::<Vec<_>>(), ["a", "b"]);
    world.delete_at(&id("Deployment", "a", "w"));
    assert!(world.settle_for(10_000));
    assert_eq!(held(&world).len(), 2);
    // A change of the distribution that says nothing of workloads does not cut the time short.
    world.apply(distribution("d", "two", &targets));
    assert!(world.settle_for(5_000));
    assert_eq!(held(&world).len(), 2);
    assert!(world.settle_for(60_000));
    assert_eq!(held(&world), BTreeMap::from([("b", "two")]));
    assert_eq!(counts(&world, "d"), [1, 1, 0]);
    // One that is replaced takes nothing away.
    let wrote = world.writes.len();
    world.delete_at(&id("Deployment", "b", "w"));
    assert!(world.settle_for(10_000));
    world.apply(workload("v", "b", "web"));
    assert!(world.settle_for(60_000));
    assert!(since(&world, wrote).is_empty(), "{:#?}", since(&world, wrote));
}

#[test]
fn the_report_on_a_conflict_follows_whose_the_object_is() {
    let mut world = World::distributing(&[]);
    world.apply(namespace("a", &json!({"team": "x"})));
    world.apply(in_namespace(&settings("theirs"), "a"));
    world.apply(distribution("d", "ours", &labelled("x")));
    assert!(world.settle());
    assert!(status(&world, "d")["conflictingNamespaces"][0]["owner"].is_null());
    world.apply(with_policy(
        distribution("e", "taken", &labelled("x")),
        "overwrite",
    ));
    assert!(world.settle());
    let conflict = &status(&world, "d")["conflictingNamespaces"][0];
    assert_eq!(conflict["owner"], "ResourceDistribution e");
    assert_eq!(conflict["reason"], "ControlledByOther");
}
