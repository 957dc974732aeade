//! The results of a rebalancer, and their times.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::*;
use crate::{
    config::Config,
    object::{Gvk, ResourceId},
    observation::{Observation, Watch, project, which},
    plan::Key,
};

const CREATED: Time = Time(1_700_000_000_000);
/// The time at which nothing is waited for any more.
const LATE: Time = CREATED.plus(PROGRESS).plus(FIRST_LOOK);

fn see(fleet: &mut Fleet, watch: &Watch, object: &Value, now: Time) -> Vec<Key> {
    let subject = project(watch, &Default::default(), object).expect("readable");
    fleet.observe(Observation::Seen(subject), now)
}

fn list(fleet: &mut Fleet, watch: &Watch, objects: &[Value]) -> Vec<Key> {
    for object in objects {
        see(fleet, watch, object, CREATED);
    }
    let present: BTreeSet<_> = objects.iter().filter_map(|each| which(watch, each)).collect();
    let listed = Observation::Listed {
        watch: watch.clone(),
        present,
        revision: 1,
    };
    fleet.observe(listed, CREATED)
}

/// A fleet with a synced hub, except for these watches.
fn knowing(but: &[Watch]) -> Fleet {
    let mut fleet = Fleet::new(Config::new("hub"));
    let demanded: Vec<Watch> = fleet.demand().iter().cloned().collect();
    for watch in demanded.iter().filter(|watch| !but.contains(watch)) {
        list(&mut fleet, watch, &[]);
    }
    fleet
}

fn reference(kind: &str, namespace: &str, name: &str) -> Value {
    let api_version = if kind == "Deployment" { "apps/v1" } else { "v1" };
    json!({"apiVersion": api_version, "kind": kind, "namespace": namespace, "name": name})
}

/// A rebalancer in this version, which is its generation, too.
fn rebalancer(version: i64, workloads: &[Value], status: &Value) -> Value {
    json!({
        "apiVersion": API_VERSION, "kind": KIND,
        "metadata": {
            "name": "r", "uid": "u", "resourceVersion": version.to_string(), "generation": version,
            "creationTimestamp": CREATED.to_k8s(),
        },
        "spec": {"workloads": workloads, "ttlSecondsAfterFinished": 60},
        "status": status,
    })
}

fn binding(name: &str, asked: Option<Time>) -> Value {
    json!({
        "apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding",
        "metadata": {"namespace": "ns", "name": name, "uid": name, "resourceVersion": "1", "generation": 1},
        "spec": {
            "resource": {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "ns", "name": name},
            "rescheduleTriggeredAt": asked.map(Time::to_k8s),
        },
    })
}

fn planned(fleet: &Fleet, now: Time) -> Plan {
    plan(fleet, &"r".into(), now)
}

/// The status that is written; null if none is.
fn written(fleet: &Fleet, now: Time) -> Value {
    match planned(fleet, now).changes.as_slice() {
        [
            Change::Hub {
                verb: Verb::MergeStatus(body),
                ..
            },
        ] => body["status"].clone(),
        [] => Value::Null,
        other => panic!("{other:?}"),
    }
}

#[test]
fn workloads_are_reported_once_each_in_the_order_of_karmada() {
    let mut fleet = knowing(&[]);
    let all = [
        reference("Deployment", "b", "a"),
        reference("Deployment", "a", "z"),
        reference("Secret", "a", "a"),
        reference("ConfigMap", "z", "z"),
        reference("Deployment", "a", "z"),
    ];
    see(
        &mut fleet,
        &Watch::Rebalancers,
        &rebalancer(1, &all, &Value::Null),
        CREATED,
    );
    let status = written(&fleet, LATE);
    let observed = status["observedWorkloads"].as_array().expect("a list");
    let workloads: Vec<&Value> = observed.iter().map(|each| &each["workload"]).collect();
    assert_eq!(workloads, [&all[1], &all[0], &all[3], &all[2]]);
    assert_eq!(status["observedGeneration"], 1);
    assert_eq!(status["finishTime"], json!(LATE.to_k8s()));
}

#[test]
fn a_workload_is_not_reported_to_have_no_binding_before_the_hub_is_known() {
    let gone = rebalancer(1, &[reference("Deployment", "ns", "a")], &Value::Null);
    for lacks in [
        Watch::Bindings,
        Watch::ClusterBindings,
        Watch::Policies,
        Watch::Clusters,
    ] {
        let mut fleet = knowing(std::slice::from_ref(&lacks));
        see(&mut fleet, &Watch::Rebalancers, &gone, CREATED);
        let waits = fleet.plan(&Key::Rebalancer("r".into()), CREATED);
        assert_eq!(waits.awaits.as_deref(), Some(&SyncRequirement::Base), "{lacks:?}");
        let woken = list(&mut fleet, &lacks, &[]);
        assert!(woken.contains(&Key::Rebalancer("r".into())), "{lacks:?}");
        let status = written(&fleet, LATE);
        assert_eq!(status["observedWorkloads"][0]["result"], "Failed", "{lacks:?}");
    }
}

#[test]
fn the_templates_of_a_kind_in_use_are_looked_at_before_one_is_reported_to_have_no_binding() {
    let mut fleet = knowing(&[]);
    let policy = json!({
        "metadata": {"namespace": "ns", "name": "p", "uid": "p", "resourceVersion": "1", "generation": 1},
        "spec": {"resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}], "placement": {}},
    });
    see(&mut fleet, &Watch::Policies, &policy, CREATED);
    let all = [reference("Deployment", "ns", "a")];
    see(
        &mut fleet,
        &Watch::Rebalancers,
        &rebalancer(1, &all, &Value::Null),
        CREATED,
    );
    let deployments = Gvk::new("apps/v1", "Deployment");
    let waits = planned(&fleet, CREATED);
    assert_eq!(
        waits.awaits.as_deref(),
        Some(&SyncRequirement::Templates(deployments.clone()))
    );
    list(&mut fleet, &Watch::Templates(deployments), &[]);
    assert_eq!(written(&fleet, LATE)["observedWorkloads"][0]["result"], "Failed");
}

#[test]
fn a_binding_with_this_question_or_a_later_one_is_asked_and_one_with_an_earlier_one_is_not() {
    for (asked, result) in [
        (Some(CREATED.plus(-1_000)), None),
        (None, None),
        (Some(CREATED), Some("Successful")),
        (Some(CREATED.plus(60_000)), Some("Successful")),
    ] {
        let mut fleet = knowing(&[]);
        see(&mut fleet, &Watch::Bindings, &binding("a", asked), CREATED);
        let all = [reference("Deployment", "ns", "a")];
        see(
            &mut fleet,
            &Watch::Rebalancers,
            &rebalancer(1, &all, &Value::Null),
            CREATED,
        );
        let status = written(&fleet, CREATED);
        assert_eq!(
            status["observedWorkloads"][0]["result"].as_str(),
            result,
            "{asked:?}"
        );
    }
}

#[test]
fn what_is_under_way_is_reported_after_a_while_and_taken_back_to_be_finished() {
    let mut fleet = knowing(&[]);
    see(
        &mut fleet,
        &Watch::Bindings,
        &binding("done", Some(CREATED)),
        CREATED,
    );
    see(&mut fleet, &Watch::Bindings, &binding("waits", None), CREATED);
    let done = reference("Deployment", "ns", "done");
    let all = [done.clone(), reference("Deployment", "ns", "waits")];
    let finished = json!({
        "observedGeneration": 1, "finishTime": CREATED.to_k8s(),
        "observedWorkloads": [{"workload": done, "result": "Successful"}],
    });
    see(
        &mut fleet,
        &Watch::Rebalancers,
        &rebalancer(2, &all, &finished),
        CREATED,
    );
    let early = planned(&fleet, CREATED);
    assert_eq!(
        (early.changes.len(), early.again_at),
        (0, Some(CREATED.plus(PROGRESS)))
    );
    let status = written(&fleet, CREATED.plus(PROGRESS));
    assert_eq!(status["finishTime"], Value::Null);
    assert_eq!(
        status.as_object().map(|all| all.contains_key("finishTime")),
        Some(true)
    );
    assert_eq!(status["observedWorkloads"][0]["result"], "Successful");
    assert_eq!(status["observedWorkloads"][1]["result"], Value::Null);
}

#[test]
fn what_has_finished_asks_for_nothing_and_ends_as_the_very_object_that_was_seen() {
    let mut fleet = knowing(&[]);
    let done = reference("Deployment", "ns", "a");
    let id = ResourceId::new(Gvk::new("apps/v1", "Deployment"), "ns", "a");
    let object = rebalancer(1, std::slice::from_ref(&done), &Value::Null);
    see(&mut fleet, &Watch::Rebalancers, &object, CREATED);
    assert_eq!(fleet.memory.rebalancers.asked_at(&id), Some(CREATED));
    let mut finished = rebalancer(
        1,
        std::slice::from_ref(&done),
        &json!({
            "observedGeneration": 1, "finishTime": CREATED.to_k8s(),
            "observedWorkloads": [{"workload": done, "result": "Failed", "reason": "ReferencedBindingNotFound"}],
        }),
    );
    finished["metadata"]["resourceVersion"] = json!("2");
    see(&mut fleet, &Watch::Rebalancers, &finished, CREATED);
    assert_eq!(fleet.memory.rebalancers.asked_at(&id), None);
    let until = CREATED.plus(60_000);
    assert_eq!(planned(&fleet, CREATED).again_at, Some(until));
    let wanted = Verb::Delete {
        uid: "u".into(),
        resource_version: "2".into(),
    };
    let [Change::Hub { verb, .. }] = &planned(&fleet, until).changes[..] else {
        panic!("it ends");
    };
    assert_eq!(*verb, wanted);
    // Its spec changes: a failed workload is tried once more.
    see(
        &mut fleet,
        &Watch::Rebalancers,
        &rebalancer(3, &[done], &finished["status"]),
        CREATED,
    );
    assert_eq!(fleet.memory.rebalancers.asked_at(&id), Some(CREATED));
}

#[test]
fn what_is_being_deleted_asks_for_nothing_and_says_nothing() {
    let mut fleet = knowing(&[]);
    let mut object = rebalancer(1, &[reference("Deployment", "ns", "a")], &Value::Null);
    object["metadata"]["deletionTimestamp"] = json!(CREATED.to_k8s());
    object["metadata"]["finalizers"] = json!(["somebody.else/holds"]);
    see(&mut fleet, &Watch::Rebalancers, &object, CREATED);
    assert_eq!(planned(&fleet, LATE), Plan::nothing());
    let id = ResourceId::new(Gvk::new("apps/v1", "Deployment"), "ns", "a");
    assert_eq!(fleet.memory.rebalancers.asked_at(&id), None);
}

#[test]
fn one_with_few_workloads_is_planned_when_one_of_them_changes_and_one_with_many_every_second() {
    for (count, woken) in [(MANY - 1, true), (MANY, false)] {
        let mut fleet = knowing(&[]);
        let all: Vec<Value> = (0..count)
            .map(|at| reference("Deployment", "ns", &format!("a{at}")))
            .collect();
        see(
            &mut fleet,
            &Watch::Rebalancers,
            &rebalancer(1, &all, &Value::Null),
            CREATED,
        );
        let keys = see(
            &mut fleet,
            &Watch::Bindings,
            &binding("a0", Some(CREATED)),
            CREATED,
        );
        assert_eq!(keys.contains(&Key::Rebalancer("r".into())), woken, "{count}");
        let again_at = planned(&fleet, CREATED).again_at;
        assert_eq!(again_at == Some(CREATED.plus(LOOK)), !woken, "{count}");
    }
}
