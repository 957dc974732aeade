//! Events: each step of a workload is recorded once, on a transition, and every one is in the table of reasons
//! (`entourage_core::event_reasons`: the world checks it).

use entourage_core::{
    object::{Gvk, ResourceId},
    plan::{Event, Key},
    refusal,
};
use serde_json::json;

use crate::{config_map, deployment, policy, settled, world::World};

/// The reasons of the events about an object, sorted.
fn reasons<'a>(world: &'a World, about: &str) -> Vec<&'a str> {
    let about = format!(" {about}: ");
    let reported = world.events.iter().filter(|event| event.contains(&about));
    let mut reasons: Vec<&str> = reported.filter_map(|event| event.split(' ').next()).collect();
    reasons.sort_unstable();
    reasons
}

#[test]
fn each_step_of_a_workload_is_reported_once_in_at_most_six_events() {
    let mut world = settled();
    for (member, ready) in [("member1", 0), ("member2", 0), ("member1", 1), ("member2", 1)] {
        world.meddle(member, "Deployment", "myapp", |mut live| {
            let generation = live["metadata"]["generation"].clone();
            live["status"] = json!({"observedGeneration": generation, "replicas": 1, "readyReplicas": ready});
            Some(live)
        });
        assert!(world.settle());
    }
    assert_eq!(
        reasons(&world, "Deployment myapp"),
        [
            "AggregateStatusSucceed",
            "ApplyPolicySucceed",
            "GetDependenciesSucceed",
            "ScheduleBindingSucceed",
            "SyncWorkSucceed"
        ]
    );
    assert_eq!(
        reasons(&world, "ResourceBinding myapp-deployment"),
        ["SyncScheduleResultToDependenciesSucceed"]
    );
    assert_eq!(reasons(&world, "ConfigMap my-config"), [""; 0]);
    assert_eq!(reasons(&world, "ResourceBinding my-config-configmap"), [""; 0]);
    let message = world
        .events
        .iter()
        .find(|event| event.starts_with("SyncWorkSucceed"));
    assert_eq!(
        message.map(String::as_str),
        Some("SyncWorkSucceed Deployment myapp: Applied on 2/2 clusters.")
    );
}

#[test]
fn neither_a_restart_nor_an_edit_that_turns_nothing_tells_anything() {
    let mut world = settled();
    let reported = world.events.len();
    world.restart();
    assert!(world.settle());
    assert_eq!(world.events[reported..], [""; 0]);
    let mut scaled = deployment("myapp", &["my-config"]);
    scaled["spec"]["replicas"] = json!(5);
    world.apply(scaled);
    world.apply(config_map("my-config", "two"));
    assert!(world.settle());
    assert_eq!(world.events[reported..], [""; 0]);
}

#[test]
fn a_workload_that_cannot_be_scheduled_tells_it_on_both_objects_and_its_success_on_the_template() {
    let mut world = settled();
    world.events.clear();
    world.apply(policy(&["nope"]));
    assert!(world.settle());
    let failed = |world: &World, about| {
        let reported = reasons(world, about).into_iter();
        reported
            .filter(|reason| *reason == "ScheduleBindingFailed")
            .count()
    };
    assert_eq!(failed(&world, "Deployment myapp"), 1, "{:#?}", world.events);
    assert_eq!(
        failed(&world, "ResourceBinding myapp-deployment"),
        1,
        "{:#?}",
        world.events
    );
    world.events.clear();
    world.apply(policy(&["member1", "member2"]));
    assert!(world.settle());
    let reported = reasons(&world, "Deployment myapp");
    assert!(reported.contains(&"ScheduleBindingSucceed"), "{reported:?}");
}

#[test]
fn successes_are_also_recorded_on_the_binding_where_that_is_requested() {
    let mut world = settled();
    world.process.engine.config_mut().events_on_bindings = true;
    world.apply(policy(&["nope"]));
    assert!(world.settle());
    world.events.clear();
    world.apply(policy(&["member1", "member2"]));
    assert!(world.settle());
    let recorded = reasons(&world, "ResourceBinding myapp-deployment");
    for reason in ["ScheduleBindingSucceed", "SyncWorkSucceed"] {
        let count = recorded.iter().filter(|each| **each == reason).count();
        assert_eq!(count, 1, "{reason}: {:#?}", world.events);
    }
}

#[test]
fn a_copy_that_a_member_refuses_to_remove_is_recorded_once_on_its_binding() {
    let mut world = settled();
    world.refuses_removal = true;
    world.events.clear();
    world.apply(policy(&["member2"]));
    assert!(world.settle());
    let failed = |world: &World| {
        let recorded = reasons(world, "ResourceBinding myapp-deployment").into_iter();
        recorded.filter(|reason| *reason == "CleanupWorkFailed").count()
    };
    assert_eq!(failed(&world), 1, "{:#?}", world.events);
    world.restart();
    assert!(world.settle());
    assert_eq!(failed(&world), 1, "{:#?}", world.events);
    let message = world
        .events
        .iter()
        .find(|event| event.starts_with("CleanupWorkFailed"));
    assert!(
        message.is_some_and(|text| text.contains("cluster member1")),
        "{message:?}"
    );
}

#[test]
fn a_write_that_the_hub_refuses_is_reported_by_the_reason_of_what_was_written() {
    let world = settled();
    let id = ResourceId::new(Gvk::new("apps/v1", "Deployment"), "default", "myapp");
    let reported = |event: Option<Event>| {
        let event = event.expect("an event");
        assert!(event.warning && &*event.regarding.name == "myapp", "{event:?}");
        event.reason
    };
    let refused = |key: Key| reported(refusal::event(&world.process.engine, &key, "exceeded quota"));
    assert_eq!(refused(Key::Template(id.clone())), "ApplyPolicyFailed");
    assert_eq!(refused(Key::TemplateStatus(id.clone())), "AggregateStatusFailed");
    assert_eq!(refused(Key::Scaling(id.clone())), "FollowAutoscalersFailed");
    assert_eq!(refused(Key::Binding(id.clone())), "SyncWorkFailed");
    let blocked = refusal::decision(
        &world.process.engine,
        &Key::Template(id),
        "a finalizer protects it",
    );
    assert_eq!(reported(blocked), "DeletionBlocked");
}
