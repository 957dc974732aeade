//! The outcome of an attempt to write a copy, and the time of the next one.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::{
    distribution::{API_VERSION, KIND, Place, Step, TargetStatus, gvk, observed::ObservedObject},
    index::{Config, Index, distributions::TargetState},
    object::{Gvk, Str, Time},
    observation::{Observation, Watch, Wrote, project, which},
    plan as plan_key,
    plan::{Change, Key, Plan},
};

const NOW: Time = Time(1_700_000_000_000);

fn list(index: &mut Index, watch: &Watch, objects: &[Value]) {
    let mut present = BTreeSet::new();
    for object in objects {
        present.extend(which(watch, object));
        let seen = project(watch, &Default::default(), object).expect("readable");
        index.observe(Observation::Seen(seen), NOW);
    }
    let watch = watch.clone();
    let listed = Observation::Listed {
        watch,
        present,
        revision: 9,
    };
    index.observe(listed, NOW);
}

fn copy() -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"namespace": "a", "name": "settings", "uid": "copy", "resourceVersion": "7", "ownerReferences": [
            {"apiVersion": API_VERSION, "kind": KIND, "name": "settings", "uid": "u", "controller": true},
        ]},
    })
}

/// A strict distribution to all namespaces, which are a and b, with these existing objects.
fn index(standing: &[Value]) -> Index {
    index_to(&json!({"allNamespaces": true}), standing)
}

fn index_to(targets: &Value, standing: &[Value]) -> Index {
    let mut config = Config::new("hub");
    config.distribute = true;
    let mut index = Index::new(config);
    let namespace = |name: &str| json!({"metadata": {"name": name, "uid": name, "resourceVersion": "5"}});
    let distribution = json!({
        "apiVersion": API_VERSION, "kind": KIND,
        "metadata": {"name": "settings", "uid": "u", "resourceVersion": "3", "generation": 1},
        "spec": {
            "resource": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}},
            "targets": targets,
            "writePolicy": "strict",
        },
    });
    list(&mut index, &Watch::Clusters, &[]);
    list(&mut index, &Watch::ClusterPolicies, &[]);
    list(&mut index, &Watch::Namespaces, &[namespace("a"), namespace("b")]);
    list(&mut index, &Watch::Templates(gvk()), &[]);
    list(&mut index, &Watch::Distributions, &[distribution]);
    let copies = Watch::Distributed(None, Gvk::new("v1", "ConfigMap"), "settings".into());
    list(&mut index, &copies, standing);
    index
}

/// An unmanaged object exists in b.
fn shut() -> Index {
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

fn observe(index: &mut Index, wrote: Wrote) -> Vec<Key> {
    index.observe(Observation::Distributed(name(), a(), wrote), NOW)
}

fn plan(index: &Index) -> Plan {
    plan_key(index, &Key::Distributed(name(), a()), NOW)
}

fn asks(plan: &Plan) -> bool {
    plan.changes
        .iter()
        .any(|change| matches!(change, Change::Distribute(_) | Change::Withdraw { .. }))
}

fn spot(index: &Index) -> &TargetState {
    &index.distributions.held[&name()].spots[&a()]
}

/// The current content number of the distribution.
fn current(index: &Index) -> u64 {
    let held = &index.distributions.held[&name()];
    held.object.spec.as_ref().expect("readable").content
}

fn unequal(content: u64) -> Wrote {
    Wrote::Unequal {
        part: ObservedObject::of(&copy()),
        content,
    }
}

fn corrected(index: &Index) -> Wrote {
    Wrote::Applied {
        part: ObservedObject::of(&copy()),
        content: current(index),
        differed: Some("data".into()),
        created: false,
    }
}

fn written(index: &Index) -> Wrote {
    Wrote::Applied {
        part: ObservedObject::of(&copy()),
        content: current(index),
        differed: None,
        created: false,
    }
}

/// Corrected often enough that drift is reported.
fn drift_backoff(index: &mut Index) {
    let first = written(index);
    observe(index, first);
    for _ in 0..3 {
        let again = corrected(index);
        observe(index, again);
    }
    assert!(spot(index).is_fought);
}

#[test]
fn what_was_compared_with_what_is_not_known_of_the_distribution_is_not_read_again_at_once() {
    let mut index = shut();
    assert!(asks(&plan(&index)), "it is looked at");
    let other = current(&index) + 1;
    observe(&mut index, unequal(other));
    let next = plan(&index);
    assert!(!asks(&next), "{next:?}");
    assert_eq!(next.again_at, Some(NOW.plus(1_000)));
    let same = current(&index);
    observe(&mut index, unequal(same));
    assert_eq!(
        index.target_status(&name(), &a(), NOW),
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

fn is_not_made_again_at_once(mut index: Index) {
    assert!(asks(&plan(&index)));
    observe(&mut index, Wrote::Abandoned);
    let next = plan(&index);
    assert!(!asks(&next), "{next:?}");
    assert_eq!(next.again_at, Some(NOW.plus(1_000)));
    let later = plan_key(&index, &Key::Distributed(name(), a()), NOW.plus(1_000));
    assert!(asks(&later), "{later:?}");
}

#[test]
fn what_differs_from_another_content_ends_a_fight_and_writing_it_is_no_correction() {
    let mut index = index(&[copy()]);
    drift_backoff(&mut index);
    let other = current(&index) + 1;
    observe(&mut index, unequal(other));
    assert_eq!(
        (spot(&index).drift_backoff.is_none(), spot(&index).is_fought),
        (true, false)
    );
    let same = current(&index);
    observe(&mut index, unequal(same));
    let again = corrected(&index);
    observe(&mut index, again);
    assert!(
        spot(&index).drift_backoff.is_none(),
        "it was not as it should be before"
    );
    let again = corrected(&index);
    observe(&mut index, again);
    assert!(spot(&index).drift_backoff.is_some());
}

#[test]
fn a_failure_that_becomes_a_fight_is_reported_anew() {
    let mut index = index(&[copy()]);
    let first = written(&index);
    observe(&mut index, first);
    for _ in 0..2 {
        let again = corrected(&index);
        observe(&mut index, again);
    }
    let mut edited = copy();
    edited["metadata"]["resourceVersion"] = json!("8");
    let watch = Watch::Distributed(None, Gvk::new("v1", "ConfigMap"), name());
    let seen = project(&watch, &Default::default(), &edited).expect("readable");
    index.observe(Observation::Seen(seen), NOW);
    let failed = Wrote::Failed {
        step: Step::Update,
        message: "denied".into(),
    };
    let status = Key::DistributionStatus(name());
    assert!(observe(&mut index, failed.clone()).contains(&status));
    assert!(!observe(&mut index, failed).contains(&status), "it says the same");
    assert_eq!(
        spot(&index).target_status,
        Some(TargetStatus::Failed(Step::Update))
    );
    edited["metadata"]["resourceVersion"] = json!("9");
    let again = Wrote::Applied {
        part: ObservedObject::of(&edited),
        content: current(&index),
        differed: Some("data".into()),
        created: false,
    };
    assert!(observe(&mut index, again).contains(&status));
    assert_eq!(
        spot(&index).target_status,
        Some(TargetStatus::Failed(Step::Update))
    );
    let why = spot(&index).why_failed().unwrap_or_default();
    assert!(why.contains("keeps changing data"), "{why}");
}

#[test]
fn a_copy_that_is_fought_over_counts_as_failed_also_while_nothing_is_written() {
    let mut index = shut();
    drift_backoff(&mut index);
    let target_status = index.target_status(&name(), &a(), NOW);
    assert_eq!(target_status, Some(TargetStatus::Failed(Step::Update)));
}
