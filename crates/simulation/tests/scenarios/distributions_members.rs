//! Distributions to namespaces of members: members that come, leave, or do not answer, and the end that waits for the last
//! copy.

use std::collections::BTreeSet;

use entourage_api::keys::{finalizer, label};
use entourage_core::{
    distribution::Place,
    object::{Gvk, ResourceId},
    observation::{Observation, Watch},
    plan::{Change, Key},
};
use serde_json::{Value, json};

use crate::{
    distributions::{distribution, edit, held, key, named, namespace, settings, status},
    distributions_stuck::rename,
    world::{World, id},
};

/// The namespace "app" is on the hub and on two members; the distribution means it on the members that are given.
fn world() -> World {
    let mut world = World::distributing(&["m1", "m2"]);
    world.apply(namespace("app", &json!({"team": "x"})));
    assert!(world.settle());
    for member in ["m1", "m2"] {
        let place = id("Namespace", "", "app");
        world.meddle_at(member, &place, |_| Some(namespace("app", &json!({"team": "x"}))));
    }
    assert!(world.settle());
    world
}

fn to_members(value: &str, members: &[&str]) -> Value {
    let mut targets = named(&["app"]);
    targets["clusters"] = json!({"clusterNames": members});
    distribution("d", value, &targets)
}

fn example() -> World {
    let mut world = world();
    world.apply(to_members("one", &["m1", "m2"]));
    assert!(world.settle());
    world
}

/// The servers that have the copies: members, and "hub".
fn places(world: &World) -> BTreeSet<&str> {
    let on_members = world.members.iter();
    let on_members = on_members.filter(|(_, member)| member.contains_key(&key("app")));
    let on_hub = held(world).into_keys().map(|_| "hub");
    on_members.map(|(name, _)| &**name).chain(on_hub).collect()
}

fn places_are(world: &World, wanted: &[&str]) {
    assert_eq!(places(world), wanted.iter().copied().collect());
}

fn has_finalizer(world: &World) -> bool {
    let object = world.hub_object("ResourceDistribution", "d");
    let finalizers = &object.expect("distribution")["metadata"]["finalizers"];
    finalizers
        .as_array()
        .into_iter()
        .flatten()
        .any(|each| *each == *finalizer::DISTRIBUTION)
}

/// The namespace of the first member.
fn place() -> Place {
    Place {
        cluster: Some("m1".into()),
        namespace: "app".into(),
    }
}

/// The copy there.
fn copy() -> Key {
    Key::Distributed("d".into(), place())
}

fn is_write(change: &Change) -> bool {
    matches!(change, Change::Distribute(_))
}

#[test]
fn the_copies_stand_on_members_and_the_status_tells_of_each() {
    let mut world = example();
    places_are(&world, &["m1", "m2"]);
    assert!(has_finalizer(&world));
    let clusters = status(&world, "d")["clusters"]
        .as_array()
        .expect("clusters")
        .len();
    assert_eq!(
        (clusters, status(&world, "d")["succeeded"].as_i64()),
        (2, Some(2))
    );
    let meta = &world.members["m1"][&key("app")]["metadata"];
    assert!(meta["ownerReferences"].is_null());
    assert_eq!(meta["labels"][label::DISTRIBUTED_BY], "hub-id");
    let wrote = world.writes.len();
    world.restart();
    assert!(world.settle_for(600_000));
    assert_eq!(world.writes.len(), wrote, "{:#?}", &world.writes[wrote..]);
}

#[test]
fn a_member_that_lists_later_than_others_makes_no_report_too_early() {
    for slow in [
        Watch::Clusters,
        Watch::MemberNamespaces("m1".into()),
        Watch::Distributed(Some("m1".into()), Gvk::new("v1", "ConfigMap"), "settings".into()),
    ] {
        let mut world = example();
        let wrote = world.writes.len();
        world.restart();
        world.shut.insert(slow.clone());
        assert!(world.settle_for(60_000));
        assert_eq!(
            world.writes.len(),
            wrote,
            "{slow:?}: {:#?}",
            &world.writes[wrote..]
        );
        world.shut.clear();
        assert!(world.settle_for(60_000));
        assert_eq!(
            world.writes.len(),
            wrote,
            "{slow:?}: {:#?}",
            &world.writes[wrote..]
        );
    }
}

#[test]
fn a_member_that_is_not_meant_any_more_loses_its_copy() {
    let mut world = example();
    world.apply(to_members("two", &["m2"]));
    assert!(world.settle());
    places_are(&world, &["m2"]);
    let clusters = status(&world, "d")["clusters"].as_array().expect("clusters");
    assert_eq!((clusters.len(), &clusters[0]["name"]), (1, &json!("m2")));
}

#[test]
fn a_member_that_does_not_answer_keeps_the_distribution_until_its_copy_is_gone() {
    for restarts in [false, true] {
        let mut world = example();
        world.set_down("m1", true);
        assert!(world.settle());
        world.delete("ResourceDistribution", "d");
        assert!(world.settle_for(60_000));
        if restarts {
            world.restart();
            assert!(world.settle_for(60_000));
        }
        places_are(&world, &["m1"]);
        assert!(has_finalizer(&world));
        world.set_down("m1", false);
        assert!(world.settle_for(600_000));
        places_are(&world, &[]);
        assert!(world.hub_object("ResourceDistribution", "d").is_none());
    }
}

#[test]
fn a_distribution_that_ends_while_a_copy_is_written_waits_for_the_copy() {
    let mut world = world();
    world.apply(to_members("one", &["m1"]));
    let flight = world.settle_until(&copy(), is_write);
    world.delete("ResourceDistribution", "d");
    assert!(world.settle());
    assert!(has_finalizer(&world), "the copy may exist any time now");
    assert!(world.land(flight));
    assert!(world.settle());
    places_are(&world, &[]);
    assert!(world.hub_object("ResourceDistribution", "d").is_none());
}

#[test]
fn a_distribution_that_ends_after_a_write_with_an_unknown_outcome_waits_until_a_watch_has_reported() {
    let mut world = world();
    world.apply(to_members("one", &["m1"]));
    world.work_until(&copy(), is_write);
    let begun = Observation::Distributing("d".into(), place());
    let lost = copy().broken_off().expect("it is a copy");
    for observation in [begun, lost] {
        world.process.observe(observation, world.now);
    }
    world.delete("ResourceDistribution", "d");
    assert!(world.settle_for(5_000));
    assert!(has_finalizer(&world), "a watch may still report the copy");
    assert!(world.settle_for(20_000));
    places_are(&world, &[]);
    assert!(world.hub_object("ResourceDistribution", "d").is_none());
}

#[test]
fn a_member_that_leaves_holds_up_nothing() {
    for down in [false, true] {
        let mut world = example();
        world.set_down("m1", down);
        assert!(world.settle());
        world.delete("Cluster", "m1");
        assert!(world.settle_for(60_000));
        if let Some(cluster) = world.hub_object("Cluster", "m1").cloned() {
            // Taken out by force.
            let mut cluster = cluster;
            cluster["metadata"]["finalizers"] = json!([]);
            world.force_end(&cluster);
        }
        assert!(world.settle_for(600_000));
        assert_eq!(status(&world, "d")["desired"], 1);
        let clusters = status(&world, "d")["clusters"].as_array().expect("clusters");
        assert_eq!(
            (clusters.len(), &clusters[0]["name"]),
            (1, &json!("m2")),
            "{down}"
        );
        world.delete("ResourceDistribution", "d");
        assert!(world.settle_for(600_000));
        assert!(world.hub_object("ResourceDistribution", "d").is_none(), "{down}");
        assert!(!places(&world).contains("m2"));
    }
}

#[test]
fn a_member_that_answers_again_gets_what_changed_meanwhile() {
    let mut world = example();
    world.set_down("m1", true);
    assert!(world.settle());
    world.apply(to_members("two", &["m1", "m2"]));
    assert!(world.settle_for(60_000));
    assert_eq!(world.members["m2"][&key("app")]["data"]["key"], "two");
    assert_eq!(status(&world, "d")["succeeded"], 1);
    world.set_down("m1", false);
    assert!(world.settle_for(5_000));
    assert_eq!(world.members["m1"][&key("app")]["data"]["key"], "two");
    assert_eq!(status(&world, "d")["succeeded"], 2);
}

#[test]
fn what_others_have_on_a_member_is_a_conflict_and_stays_to_the_end() {
    let mut world = world();
    let mut theirs = settings("theirs");
    theirs["metadata"]["namespace"] = json!("app");
    world.meddle_at("m1", &key("app"), |_| Some(theirs));
    world.apply(to_members("one", &["m1", "m2"]));
    assert!(world.settle());
    assert_eq!(
        status(&world, "d")["conflictingNamespaces"],
        json!([{"cluster": "m1", "name": "app", "reason": "NotControlled"}])
    );
    world.delete("ResourceDistribution", "d");
    assert!(world.settle());
    places_are(&world, &["m1"]);
    assert!(world.hub_object("ResourceDistribution", "d").is_none());
}

#[test]
fn copies_on_members_that_are_to_stay_lose_their_marks_before_the_distribution_goes() {
    let mut world = world();
    let mut object = to_members("one", &["m1", "m2"]);
    object["spec"]["deletionPolicy"] = json!("Orphan");
    world.apply(object);
    assert!(world.settle());
    world.set_down("m2", true);
    world.delete("ResourceDistribution", "d");
    assert!(world.settle_for(60_000));
    assert!(has_finalizer(&world));
    world.set_down("m2", false);
    assert!(world.settle_for(600_000));
    assert!(world.hub_object("ResourceDistribution", "d").is_none());
    places_are(&world, &["m1", "m2"]);
    for member in ["m1", "m2"] {
        let labels = &world.members[member][&key("app")]["metadata"]["labels"];
        assert!(labels[label::DISTRIBUTED_BY].is_null(), "{member}");
    }
}

#[test]
fn a_namespace_of_a_member_whose_owner_forbids_it_holds_no_copy() {
    let mut world = example();
    let place = id("Namespace", "", "app");
    world.meddle_at("m1", &place, |mut each| {
        each["metadata"]["annotations"] = json!({entourage_api::keys::annotation::DISTRIBUTION: "deny"});
        Some(each)
    });
    assert!(world.settle());
    places_are(&world, &["m2"]);
    edit(&mut world, "Namespace", "app", |_| {});
    assert_eq!(status(&world, "d")["desired"], 1);
}

#[test]
fn targets_that_move_between_the_hub_and_members_leave_no_copy_behind() {
    for restarts in [false, true] {
        let mut world = example();
        world.apply(distribution("d", "two", &named(&["app"])));
        if restarts {
            world.restart();
        }
        assert!(world.settle_for(60_000));
        places_are(&world, &["hub"]);
        assert!(!has_finalizer(&world) && status(&world, "d")["clusters"].is_null());
        let watched = |watch: &Watch| matches!(watch, Watch::Distributed(Some(_), ..));
        assert!(!world.process.engine.demand().iter().any(watched));
        world.apply(to_members("three", &["m1"]));
        if restarts {
            world.restart();
        }
        assert!(world.settle_for(60_000));
        places_are(&world, &["m1"]);
        world.delete("ResourceDistribution", "d");
        assert!(world.settle_for(60_000));
        places_are(&world, &[]);
        assert!(world.hub_object("ResourceDistribution", "d").is_none());
    }
}

#[test]
fn targets_that_move_to_the_hub_before_the_first_report_leave_no_copy_on_members() {
    for restarts in [false, true] {
        let mut world = world();
        world.apply(to_members("one", &["m1", "m2"]));
        assert!(world.settle_for(0));
        places_are(&world, &["m1", "m2"]);
        // The first report is not there yet.
        edit(&mut world, "ResourceDistribution", "d", |each| {
            each["status"] = json!({})
        });
        world.apply(distribution("d", "two", &named(&["app"])));
        if restarts {
            world.restart();
        }
        assert!(world.settle_for(60_000));
        places_are(&world, &["hub"]);
        assert!(!has_finalizer(&world));
    }
}

#[test]
fn what_is_renamed_past_the_rules_takes_its_copies_on_members_along_when_it_is_deleted() {
    let mut world = example();
    rename(&mut world);
    assert!(world.settle());
    world.restart();
    assert!(world.settle());
    places_are(&world, &["m1", "m2"]);
    world.delete("ResourceDistribution", "d");
    assert!(world.settle());
    places_are(&world, &[]);
    assert!(world.hub_object("ResourceDistribution", "d").is_none());
}

#[test]
fn a_copy_that_was_copied_to_a_member_that_is_not_selected_is_left_alone() {
    for restarts in [false, true] {
        let mut world = world();
        world.apply(to_members("one", &["m1"]));
        assert!(world.settle());
        let mut copied = world.members["m1"][&key("app")].clone();
        for field in ["uid", "resourceVersion", "creationTimestamp"] {
            copied["metadata"]
                .as_object_mut()
                .expect("metadata")
                .remove(field);
        }
        world.meddle_at("m2", &key("app"), |_| Some(copied));
        if restarts {
            world.restart();
        }
        world.apply(to_members("two", &["m1"]));
        assert!(world.settle());
        places_are(&world, &["m1", "m2"]);
        world.delete("ResourceDistribution", "d");
        assert!(world.settle());
        places_are(&world, &["m2"]);
        assert!(world.hub_object("ResourceDistribution", "d").is_none());
    }
}

/// The namespace "other" on m1, with the copy of "app" as `kubectl get -o yaml` shows it, applied there.
fn with_a_copied_copy() -> (World, ResourceId, Value) {
    let mut world = example();
    let place = id("Namespace", "", "other");
    world.meddle_at("m1", &place, |_| Some(namespace("other", &json!({}))));
    let mut copied = world.members["m1"][&key("app")].clone();
    copied["metadata"]["namespace"] = json!("other");
    for field in ["uid", "resourceVersion", "creationTimestamp"] {
        copied["metadata"]
            .as_object_mut()
            .expect("metadata")
            .remove(field);
    }
    world.meddle_at("m1", &key("other"), |_| Some(copied));
    assert!(world.settle());
    let copied = world.members["m1"][&key("other")].clone();
    (world, key("other"), copied)
}

#[test]
fn a_copy_that_somebody_copied_to_another_namespace_is_never_touched() {
    for restarts in [false, true] {
        let (mut world, other, copied) = with_a_copied_copy();
        if restarts {
            world.restart();
        }
        assert!(world.settle_for(60_000));
        world.apply(to_members("two", &["m1", "m2"]));
        assert!(world.settle());
        assert_eq!(world.members["m1"].get(&other), Some(&copied));
        world.delete("ResourceDistribution", "d");
        assert!(world.settle_for(600_000));
        places_are(&world, &[]);
        assert_eq!(world.members["m1"].get(&other), Some(&copied));
    }
}

#[test]
fn a_distribution_that_means_the_namespace_of_a_copied_copy_reports_a_conflict() {
    let (mut world, other, copied) = with_a_copied_copy();
    let mut wanted = to_members("two", &["m1"]);
    wanted["spec"]["targets"]["includedNamespaces"] = json!({"list": [{"name": "app"}, {"name": "other"}]});
    world.apply(wanted);
    assert!(world.settle());
    assert_eq!(world.members["m1"].get(&other), Some(&copied));
    let reported = status(&world, "d").to_string();
    assert!(
        reported.contains("ResourceDistribution d of hub hub-id, made for m1/app"),
        "{reported}"
    );
}
