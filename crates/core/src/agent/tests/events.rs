//! The Events about Works: each on a transition, none after a restart.

use super::*;
use crate::{
    event_reasons,
    interpreter::{
        operations::{Contract, Operation},
        question::{InterpretError, Until},
    },
};

/// The Events since the last call, sorted: the reason, of a warning behind `!`.
fn recorded(world: &mut World) -> Vec<String> {
    let mut all: Vec<String> = world
        .events
        .drain(..)
        .map(|event| {
            let regarding = &event.regarding;
            assert!(
                event_reasons::is_listed(event.reason, event.warning, &regarding.kind),
                "{event:?}"
            );
            assert_eq!(
                (&*regarding.namespace, &*regarding.name, &*regarding.uid),
                (NAMESPACE, "w", "w")
            );
            format!("{}{}", if event.warning { "!" } else { "" }, event.reason)
        })
        .collect();
    all.sort();
    all
}

/// The Work in a later generation, which is its version, too.
fn change(world: &mut World, generation: i64, edit: impl FnOnce(&mut Value)) {
    world.see_work(|work| {
        work["metadata"]["generation"] = json!(generation);
        work["metadata"]["resourceVersion"] = json!((10 * generation).to_string());
        edit(work);
    });
}

#[test]
fn an_event_is_recorded_when_a_condition_turns_and_the_hub_accepted_it() {
    let mut world = World::new();
    world.list(Watch::Works, &[work(1, 2)], 2);
    world.list(world.agent.copies_of(&config_map().gvk), &[], 2);
    world.applies(None, true, 5);
    assert_eq!(recorded(&mut world), [""; 0], "it is not reported yet");
    world.accepts(3);
    assert_eq!(recorded(&mut world), ["SyncSucceed"]);
    change(&mut world, 3, |_| {});
    world.applies(Some("data.k"), false, 8);
    world.accepts(31);
    assert_eq!(recorded(&mut world), [""; 0], "another version is no transition");
    change(&mut world, 4, |_| {});
    world.fails("no room", false);
    world.accepts(41);
    assert_eq!(recorded(&mut world), ["!SyncFailed"]);
    change(&mut world, 5, |work| {
        work["spec"]["suspendDispatching"] = json!(true)
    });
    world.accepts(51);
    assert_eq!(recorded(&mut world), ["WorkDispatching"]);
    change(&mut world, 6, |_| {});
    world.applies(None, false, 9);
    world.accepts(61);
    assert_eq!(recorded(&mut world), ["SyncSucceed", "WorkDispatching"]);
}

#[test]
fn an_event_is_recorded_when_the_status_is_reported_first_and_when_the_health_is_another() {
    let id = ResourceId::new(Gvk::new("apps/v1", "Deployment"), "shop", "web");
    let object = |version: u64, available: u64| {
        let mut object = object(version);
        object["apiVersion"] = json!("apps/v1");
        object["kind"] = json!("Deployment");
        object["metadata"]["name"] = json!("web");
        object["metadata"]["generation"] = json!(1);
        object["spec"] = json!({"replicas": 1});
        object["status"] = json!({"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "availableReplicas": available});
        object
    };
    let copy = |version: u64, available: u64| {
        observation::copy(&Interpretation::default(), &id.gvk, &object(version, available))
    };
    let mut stored = work(1, 2);
    stored["spec"]["workload"]["manifests"] = json!([{"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop"}}]);
    let mut world = World::new();
    world.list(Watch::Works, &[stored], 2);
    world.list(world.agent.copies_of(&id.gvk), &[], 2);
    let Some(Step::Apply(order)) = world.plan().step else {
        panic!("{}", world.step());
    };
    let done = Applied::Done {
        copy: Box::new(copy(5, 0)),
        resource: "deployments".into(),
        differed: None,
        created: true,
    };
    world.end(Outcome::Applied(order.source, vec![(0, id.clone(), done)]));
    world.accepts(3);
    let first = ["InterpretHealthSucceed", "ReflectStatusSucceed", "SyncSucceed"];
    assert_eq!(recorded(&mut world), first);
    for (version, available, wanted) in [(6, 1, vec!["InterpretHealthSucceed"]), (7, 2, vec![])] {
        world.now = world.now.plus(10_000);
        let copy = copy(version, available);
        world.see(Observation::Seen(Subject::Copy("m1".into(), id.clone(), copy)));
        world.accepts(version);
        assert_eq!(recorded(&mut world), wanted);
    }
}

#[test]
fn an_interpretation_that_begins_to_fail_is_recorded_once() {
    let mut world = World::settled();
    world.events.clear();
    let failing = |version: u64, operation: Operation, until: Until| {
        let mut copy = copy(version);
        copy.failed_operations = Box::new([InterpretError {
            layer: "ResourceInterpreterCustomization \"c\"".into(),
            contract: Contract::Interpreter,
            operation,
            why: "line 3".into(),
            until,
        }]);
        copy
    };
    for (copy, wanted) in [
        (
            failing(20, Operation::Health, Until::Changed),
            vec!["!InterpretHealthFailed"],
        ),
        (failing(21, Operation::Health, Until::Changed), vec![]),
        (
            failing(22, Operation::Reflect, Until::Answered),
            vec!["!ReflectStatusFailed"],
        ),
        (copy(23), vec![]),
        // That of another layer is used.
        (
            failing(24, Operation::Reflect, Until::SkippedByFailurePolicy),
            vec![],
        ),
    ] {
        world.see(Observation::Seen(Subject::Copy("m1".into(), config_map(), copy)));
        let message = world.events.first().map(|event| event.message.clone());
        assert_eq!(recorded(&mut world), wanted);
        assert!(message.is_none_or(|message| message.ends_with("failed: line 3")));
    }
}
