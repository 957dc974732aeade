//! The outcome of an attempt to write a copy, and the time of the next one.

use std::collections::BTreeSet;

use entourage_api::keys::finalizer;
use serde_json::{Value, json};

use crate::{
    config::Config,
    distribution::{API_VERSION, KIND, Place, Step, TargetStatus, gvk, observed::ObservedObject},
    engine::plan as plan_key,
    fleet::Fleet,
    memory::distributions::TargetState,
    object::{Gvk, Str, Time},
    observation::{Observation, Watch, Wrote, project, which},
    plan::{Change, Evidence, EvidenceObject, EvidenceState, Key, Plan},
};

const NOW: Time = Time(1_700_000_000_000);

fn list(fleet: &mut Fleet, watch: &Watch, objects: &[Value]) {
    let mut present = BTreeSet::new();
    for object in objects {
        present.extend(which(watch, object));
        let seen = project(watch, &Default::default(), object).expect("readable");
        fleet.observe(Observation::Seen(seen), NOW);
    }
    let watch = watch.clone();
    let listed = Observation::Listed {
        watch,
        present,
        revision: 9,
    };
    fleet.observe(listed, NOW);
}

fn copy() -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"namespace": "a", "name": "settings", "uid": "copy", "resourceVersion": "7", "ownerReferences": [
            {"apiVersion": API_VERSION, "kind": KIND, "name": "settings", "uid": "u", "controller": true},
        ]},
    })
}

fn namespace(name: &str) -> Value {
    json!({"metadata": {"name": name, "uid": name, "resourceVersion": "5"}})
}

fn distribution(targets: &Value) -> Value {
    json!({
        "apiVersion": API_VERSION, "kind": KIND,
        "metadata": {"name": "settings", "uid": "u", "resourceVersion": "3", "generation": 1},
        "spec": {
            "resource": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}},
            "targets": targets,
            "writePolicy": "strict",
        },
    })
}

/// A strict distribution to all namespaces, which are a and b, with these existing objects.
fn index(standing: &[Value]) -> Fleet {
    index_to(&json!({"allNamespaces": true}), standing)
}

fn index_to(targets: &Value, standing: &[Value]) -> Fleet {
    let mut config = Config::new("hub");
    config.distribute = true;
    let mut fleet = Fleet::new(config);
    list(&mut fleet, &Watch::Clusters, &[]);
    list(&mut fleet, &Watch::ClusterPolicies, &[]);
    list(&mut fleet, &Watch::Namespaces, &[namespace("a"), namespace("b")]);
    list(&mut fleet, &Watch::Templates(gvk()), &[]);
    list(&mut fleet, &Watch::Distributions, &[distribution(targets)]);
    let copies = Watch::Distributed(None, Gvk::new("v1", "ConfigMap"), "settings".into());
    list(&mut fleet, &copies, standing);
    fleet
}

/// An unmanaged object exists in b.
fn shut() -> Fleet {
    let theirs = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"namespace": "b", "name": "settings", "uid": "theirs", "resourceVersion": "6"},
    });
    index(&[copy(), theirs])
}

fn name() -> Str {
    "settings".into()
}

fn a() -> Place {
    let namespace = "a".into();
    Place {
        cluster: None,
        namespace,
    }
}

fn observe(fleet: &mut Fleet, wrote: Wrote) -> Vec<Key> {
    fleet.observe(Observation::Distributed(name(), a(), wrote), NOW)
}

fn plan(fleet: &Fleet) -> Plan {
    plan_key(fleet, &Key::Distributed(name(), a()), NOW)
}

fn asks(plan: &Plan) -> bool {
    plan.changes
        .iter()
        .any(|change| matches!(change, Change::Distribute(_) | Change::Withdraw(_)))
}

fn target_state(fleet: &Fleet) -> &TargetState {
    &fleet.memory.distributions.held[&name()].target_states[&a()]
}

/// The current content number of the distribution.
fn current(fleet: &Fleet) -> u64 {
    let held = &fleet.memory.distributions.held[&name()];
    held.object.spec.as_ref().expect("readable").content
}

fn unequal(content: u64) -> Wrote {
    Wrote::Unequal {
        part: ObservedObject::of(&copy()),
        content,
    }
}

fn corrected(fleet: &Fleet) -> Wrote {
    Wrote::Applied {
        part: ObservedObject::of(&copy()),
        content: current(fleet),
        differed: Some("data".into()),
        created: false,
    }
}

fn written(fleet: &Fleet) -> Wrote {
    Wrote::Applied {
        part: ObservedObject::of(&copy()),
        content: current(fleet),
        differed: None,
        created: false,
    }
}

/// Corrected often enough that drift is reported.
fn drift_backoff(fleet: &mut Fleet) {
    let first = written(fleet);
    observe(fleet, first);
    for _ in 0..3 {
        let again = corrected(fleet);
        observe(fleet, again);
    }
    assert!(target_state(fleet).is_contended);
}

#[test]
fn what_was_compared_with_what_is_not_known_of_the_distribution_is_not_read_again_at_once() {
    let mut fleet = shut();
    assert!(asks(&plan(&fleet)), "it is looked at");
    let other = current(&fleet) + 1;
    observe(&mut fleet, unequal(other));
    let next = plan(&fleet);
    assert!(!asks(&next), "{next:?}");
    assert_eq!(next.again_at, Some(NOW.plus(1_000)));
    let same = current(&fleet);
    observe(&mut fleet, unequal(same));
    assert_eq!(
        fleet.target_status(&name(), &a(), NOW),
        Some(TargetStatus::Blocked)
    );
}

#[test]
fn an_attempt_that_came_to_nothing_is_not_made_again_at_once() {
    is_not_made_again_at_once(index(&[]));
    // Not targeted in a.
    let in_b = json!({"includedNamespaces": {"list": [{"name": "b"}]}});
    is_not_made_again_at_once(index_to(&in_b, &[copy()]));
}

/// The objects that the removal of a copy in a was decided from, and whether they were absent.
fn evidence(fleet: &Fleet) -> Vec<(EvidenceObject, bool)> {
    let plan = plan(fleet);
    let [Change::Withdraw(order)] = &plan.changes[..] else {
        panic!("{plan:?}");
    };
    let of = |each: &Evidence| (each.object.clone(), each.state == EvidenceState::Absent);
    order.evidence.iter().map(of).collect()
}

#[test]
fn a_removal_names_what_it_was_decided_from_unless_that_cannot_be_undone() {
    let elsewhere = json!({"allNamespaces": true, "excludedNamespaces": {"list": [{"name": "a"}]}});
    let mut fleet = index_to(&elsewhere, &[copy()]);
    let of = |is_absent| {
        [
            (EvidenceObject::Distribution(name()), false),
            (EvidenceObject::Namespace(a()), is_absent),
        ]
    };
    assert_eq!(evidence(&fleet), of(false));
    list(&mut fleet, &Watch::Namespaces, &[namespace("b")]);
    assert_eq!(
        evidence(&fleet),
        of(true),
        "its watch may be behind that of the copies"
    );
    let mut ending = distribution(&elsewhere);
    ending["metadata"]["resourceVersion"] = json!("4");
    ending["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    ending["metadata"]["finalizers"] = json!([finalizer::DISTRIBUTION]);
    list(&mut fleet, &Watch::Distributions, &[ending]);
    assert_eq!(evidence(&fleet), []);
}

fn is_not_made_again_at_once(mut fleet: Fleet) {
    assert!(asks(&plan(&fleet)));
    observe(&mut fleet, Wrote::Abandoned);
    let next = plan(&fleet);
    assert!(!asks(&next), "{next:?}");
    assert_eq!(next.again_at, Some(NOW.plus(1_000)));
    let later = plan_key(&fleet, &Key::Distributed(name(), a()), NOW.plus(1_000));
    assert!(asks(&later), "{later:?}");
}

#[test]
fn what_differs_from_another_content_ends_a_fight_and_writing_it_is_no_correction() {
    let mut fleet = index(&[copy()]);
    drift_backoff(&mut fleet);
    let other = current(&fleet) + 1;
    observe(&mut fleet, unequal(other));
    assert_eq!(
        (
            target_state(&fleet).drift_backoff.is_none(),
            target_state(&fleet).is_contended
        ),
        (true, false)
    );
    let same = current(&fleet);
    observe(&mut fleet, unequal(same));
    let again = corrected(&fleet);
    observe(&mut fleet, again);
    assert!(
        target_state(&fleet).drift_backoff.is_none(),
        "it was not as it should be before"
    );
    let again = corrected(&fleet);
    observe(&mut fleet, again);
    assert!(target_state(&fleet).drift_backoff.is_some());
}

#[test]
fn a_failure_that_becomes_a_fight_is_reported_anew() {
    let mut fleet = index(&[copy()]);
    let first = written(&fleet);
    observe(&mut fleet, first);
    for _ in 0..2 {
        let again = corrected(&fleet);
        observe(&mut fleet, again);
    }
    let mut edited = copy();
    edited["metadata"]["resourceVersion"] = json!("8");
    let watch = Watch::Distributed(None, Gvk::new("v1", "ConfigMap"), name());
    let seen = project(&watch, &Default::default(), &edited).expect("readable");
    fleet.observe(Observation::Seen(seen), NOW);
    let failed = Wrote::Failed {
        step: Step::Update,
        message: "denied".into(),
        may_exist: false,
    };
    let status = Key::DistributionStatus(name());
    assert!(observe(&mut fleet, failed.clone()).contains(&status));
    assert!(!observe(&mut fleet, failed).contains(&status), "it says the same");
    assert_eq!(
        target_state(&fleet).target_status,
        Some(TargetStatus::Failed(Step::Update))
    );
    edited["metadata"]["resourceVersion"] = json!("9");
    let again = Wrote::Applied {
        part: ObservedObject::of(&edited),
        content: current(&fleet),
        differed: Some("data".into()),
        created: false,
    };
    assert!(observe(&mut fleet, again).contains(&status));
    assert_eq!(
        target_state(&fleet).target_status,
        Some(TargetStatus::Failed(Step::Update))
    );
    let why = target_state(&fleet).failure_message().unwrap_or_default();
    assert!(why.contains("keeps changing data"), "{why}");
}

#[test]
fn a_copy_that_is_fought_over_counts_as_failed_also_while_nothing_is_written() {
    let mut fleet = shut();
    drift_backoff(&mut fleet);
    let target_status = fleet.target_status(&name(), &a(), NOW);
    assert_eq!(target_status, Some(TargetStatus::Failed(Step::Update)));
}
