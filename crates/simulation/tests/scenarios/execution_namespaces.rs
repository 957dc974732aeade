//! The execution namespaces of Clusters.

use entourage_core::{plan::Key, refusal};
use serde_json::{Value, json};

use crate::{
    config_map, policy_of,
    world::{World, id},
};

const ES: &str = "karmada-es-member1";

fn reasons(world: &World) -> Vec<&str> {
    let about = world
        .events
        .iter()
        .filter(|event| event.contains("ExecutionSpace"));
    about.filter_map(|event| event.split(' ').next()).collect()
}

fn work() -> Value {
    json!({"apiVersion": "work.karmada.io/v1alpha1", "kind": "Work", "metadata": {"name": "a", "namespace": ES}})
}

#[test]
fn every_cluster_has_its_execution_namespace_and_takes_it_along() {
    let mut world = World::new(&["member1"]);
    assert!(world.settle());
    let labels = &world.hub_object("Namespace", ES).expect("it")["metadata"]["labels"];
    assert_eq!(*labels, json!({"karmada.io/system": "true"}));
    assert_eq!(world.on("member1", "Namespace", ES), None, "no member gets it");
    assert_eq!(reasons(&world), ["CreateExecutionSpaceSucceed"]);
    world.restart();
    assert!(world.settle());
    assert_eq!(reasons(&world), ["CreateExecutionSpaceSucceed"]);
    world.delete("Cluster", "member1");
    assert!(world.settle());
    assert_eq!(world.hub_object("Namespace", ES), None);
    assert_eq!(world.hub_object("Cluster", "member1"), None);
    let reported = ["CreateExecutionSpaceSucceed", "RemoveExecutionSpaceSucceed"];
    assert_eq!(reasons(&world), reported);
}

#[test]
fn an_execution_namespace_that_somebody_deletes_is_created_again() {
    let mut world = World::new(&["member1"]);
    assert!(world.settle());
    world.delete("Namespace", ES);
    assert!(world.settle());
    assert!(world.hub_object("Namespace", ES).is_some());
}

#[test]
fn a_cluster_stays_while_its_execution_namespace_holds_a_work() {
    let mut world = World::new(&["member1"]);
    assert!(world.settle());
    world.apply(work());
    world.delete("Cluster", "member1");
    assert!(world.settle());
    assert!(world.hub_object("Namespace", ES).is_some());
    assert!(world.hub_object("Cluster", "member1").is_some());
    assert!(
        world
            .events
            .iter()
            .any(|event| event.starts_with("refused: it holds a Work"))
    );
    world.delete_at(&id("Work", ES, "a"));
    world.restart();
    assert!(world.settle());
    assert_eq!(world.hub_object("Cluster", "member1"), None);
}

#[test]
fn an_execution_namespace_without_the_label_of_the_system_stays() {
    let mut world = World::new(&["member1"]);
    world.apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ES}}));
    assert!(world.settle());
    assert_eq!(reasons(&world), [""; 0]);
    world.delete("Cluster", "member1");
    assert!(world.settle());
    assert!(world.hub_object("Namespace", ES).is_some());
    assert_eq!(world.hub_object("Cluster", "member1"), None);
}

#[test]
fn an_execution_namespace_without_the_label_stays_while_the_cluster_waits_for_its_copies() {
    let mut world = World::new(&["member1"]);
    world.apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ES}}));
    world.apply(config_map("my-config", "a"));
    world.apply(policy_of("config", "v1", "ConfigMap", "my-config", &["member1"]));
    assert!(world.settle());
    world.set_down("member1", true);
    world.delete("Cluster", "member1");
    assert!(world.settle());
    assert!(world.hub_object("Cluster", "member1").is_some());
    assert!(world.hub_object("Namespace", ES).is_some());
    assert_eq!(reasons(&world), [""; 0]);
}

#[test]
fn an_execution_namespace_is_created_only_for_a_cluster_with_the_finalizer() {
    let mut world = World::new(&["member1"]);
    assert!(world.settle());
    let key = Key::ExecutionNamespace("member1".into());
    let mut cluster = world.hub_object("Cluster", "member1").expect("it").clone();
    cluster["metadata"]["finalizers"] = json!([]);
    world.replace(cluster);
    world.delete("Namespace", ES);
    let now = world.now;
    assert_eq!(world.process.engine.plan(&key, now).changes, []);
    assert!(world.settle());
    assert!(world.hub_object("Namespace", ES).is_some());
}

#[test]
fn a_refusal_of_the_hub_is_reported_on_the_cluster() {
    let mut world = World::new(&["member1"]);
    assert!(world.settle());
    let reported = |world: &World| {
        let key = Key::ExecutionNamespace("member1".into());
        let event = refusal::event(&world.process.engine, &key, "namespaces is forbidden").expect("an event");
        assert!(event.warning && event.message.contains("is forbidden") && event.regarding.kind == "Cluster");
        event.reason
    };
    assert_eq!(reported(&world), "CreateExecutionSpaceFailed");
    world.apply(work());
    world.delete("Cluster", "member1");
    assert!(world.settle());
    assert_eq!(reported(&world), "RemoveExecutionSpaceFailed");
}
