//! Distributions that a policy takes to members: they are carried out there, and one planner writes their status.

use entourage_api::keys::label;
use serde_json::{Value, json};

use crate::{
    distributions::{distribution, held, labelled, namespace},
    policies::cluster_policy,
    world::World,
};

const KIND: &str = "ResourceDistribution";

fn status(world: &World) -> &Value {
    &world.hub_object(KIND, "settings").expect("distribution")["status"]
}

/// The status that a controller on the member reports of it.
fn report(world: &mut World, member: &str, succeeded: i64, conflict: &[&str]) {
    let failed = conflict.len() as i64;
    let of = |type_: &str, failed: &[&str]| {
        let status = if failed.is_empty() { "False" } else { "True" };
        json!({"type": type_, "status": status, "reason": "Succeeded", "failedNamespace": failed,
            "lastTransitionTime": "2026-01-01T00:00:00Z"})
    };
    world.meddle(member, KIND, "settings", |mut live| {
        let generation = live["metadata"]["generation"].clone();
        live["status"] = json!({
            "desired": succeeded + failed, "succeeded": succeeded, "failed": failed, "observedGeneration": generation,
            "conditions": [
                of("GetResourceFailed", &[]), of("CreateResourceFailed", &[]), of("UpdateResourceFailed", &[]),
                of("DeleteResourceFailed", &[]), of("ConflictOccurred", conflict), of("NamespaceNotExists", &[]),
            ],
        });
        Some(live)
    });
}

#[test]
fn a_distribution_that_something_else_claims_is_carried_out_here_though_a_policy_selects_it() {
    let mut world = World::distributing(&["member1"]);
    let selectors = json!([{"apiVersion": "apps.kruise.io/v1alpha1", "kind": KIND, "name": "settings"}]);
    world.apply(cluster_policy("all", &selectors, &["member1"]));
    world.apply(namespace("red", &json!({"team": "a"})));
    let mut object = distribution("settings", "one", &labelled("a"));
    object["metadata"]["labels"] = json!({label::CLAIMED_BY: "another"});
    world.apply(object);
    assert!(world.settle_for(60_000));
    assert_eq!(held(&world).into_keys().collect::<Vec<_>>(), ["red"]);
    assert_eq!(world.holders(KIND, "settings"), [] as [&str; 0]);
}

#[test]
fn a_distribution_that_a_policy_takes_is_not_carried_out_here_and_reports_what_members_report() {
    let mut world = World::distributing(&["member1", "member2"]);
    let selectors = json!([{"apiVersion": "apps.kruise.io/v1alpha1", "kind": KIND, "name": "settings"}]);
    world.apply(cluster_policy("all", &selectors, &["member1", "member2"]));
    world.apply(namespace("red", &json!({"team": "a"})));
    assert!(world.settle());
    world.apply(distribution("settings", "one", &labelled("a")));
    assert!(world.settle_for(60_000));
    assert_eq!(world.holders(KIND, "settings"), ["member1", "member2"]);
    assert!(held(&world).is_empty(), "it was never carried out here");

    report(&mut world, "member1", 2, &[]);
    report(&mut world, "member2", 1, &["shop"]);
    assert!(world.settle_for(60_000));
    let reported = status(&world);
    assert_eq!(
        (&reported["desired"], &reported["succeeded"], &reported["failed"]),
        (&json!(4), &json!(3), &json!(1))
    );
    assert_eq!(reported["conditions"].as_array().map(Vec::len), Some(6));
    assert_eq!(reported["conditions"][0]["status"], "False");
    assert_eq!(
        reported["conditions"][4]["failedNamespace"],
        json!(["member2/shop"])
    );
    assert_eq!(
        reported["description"],
        "Propagated to 2 clusters: present in 3/4 namespaces there"
    );

    let wrote = world.writes.len();
    assert!(world.settle_for(600_000));
    world.restart();
    assert!(world.settle_for(600_000));
    assert_eq!(world.writes.len(), wrote, "{:#?}", &world.writes[wrote..]);

    // Let go, the hub carries it out and reports on its own namespaces.
    world.delete("ClusterPropagationPolicy", "all");
    assert!(world.settle_for(60_000));
    assert_eq!(held(&world).into_keys().collect::<Vec<_>>(), ["red"]);
    assert_eq!(status(&world)["description"], "Present in 1/1 namespaces");
    report(&mut world, "member2", 2, &[]);
    assert!(world.settle_for(60_000));
    assert_eq!(status(&world)["desired"], 1);
    let wrote = world.writes.len();
    world.restart();
    assert!(world.settle_for(600_000));
    assert_eq!(world.writes.len(), wrote, "{:#?}", &world.writes[wrote..]);
}
