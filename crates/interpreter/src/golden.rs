//! The golden cases: `testdata/interpreter/<kind>/<case>.yaml`, of shipped kinds `testdata/interpreter/<group>/<kind>/<case>.yaml`.
//! `UPDATE_GOLDEN=1` rewrites `want`; read the difference before you commit it.

use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    NATIVE, NativeKind, common_prune, difference, native, not_propagatable,
    references::references,
    requirements::{components, requirements},
    shipped,
};
use entourage_golden as golden;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Case {
    /// The template as the hub serves it.
    pub(super) object: Value,
    /// The copy as a member serves it.
    pub(super) live: Option<Value>,
    /// The reflected statuses to aggregate.
    members: Option<Vec<Member>>,
    /// The result of every operation: `rendered` as changes of `object`, `retained` as changes of the rendered object.
    #[serde(default)]
    pub(super) want: Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Member {
    cluster: String,
    status: Option<Value>,
}

/// The cases of a kind, in order.
pub(super) fn cases(kind: &str) -> Vec<Case> {
    cases_in(&kind.to_lowercase())
}

/// The cases of a shipped kind.
pub(super) fn shipped_cases(group: &str, kind: &str) -> Vec<Case> {
    cases_in(&format!("{group}/{}", kind.to_lowercase()))
}

fn cases_in(folder: &str) -> Vec<Case> {
    let files = golden::files(&format!("interpreter/{folder}"));
    files.iter().map(|file| golden::read(file)).collect()
}

fn answers(case: &Case) -> Value {
    let Case {
        object,
        live,
        members,
        ..
    } = case;
    let api_version = object["apiVersion"].as_str().unwrap();
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let native = native(group, version, object["kind"].as_str().unwrap()).unwrap();

    let mut rendered = object.clone();
    common_prune(&mut rendered);
    native.prune(&mut rendered);
    let mut answers = json!({
        "notPropagatable": not_propagatable(object),
        "references": references(native, object["metadata"]["namespace"].as_str().unwrap_or_default(), object),
        "replicas": native.replicas(object),
        "rendered": golden::changes(object, &rendered),
        "needsLive": native.needs_live(&rendered),
    });
    if native.declared().is_some() {
        // Rules neither prune nor prevent propagation: the object is sent as the user wrote it.
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
        let map = answers.as_object_mut().unwrap();
        map.retain(|answer, _| !["notPropagatable", "rendered"].contains(&answer.as_str()));
        answers["requirements"] = json!(requirements(native, namespace, object));
        answers["components"] = json!(components(native, object));
    }
    if let Some(live) = live {
        answers["health"] = json!(native.health(live));
        answers["reflected"] = json!(native.reflect(live));
        let mut retained = rendered.clone();
        native.retain(&mut retained, live);
        if native.declared().is_none() {
            answers["difference"] = json!(difference(&retained, live));
        }
        if retained != rendered {
            answers["retained"] = golden::changes(&rendered, &retained);
        }
    }
    if let Some(members) = members {
        let items: Vec<_> = members
            .iter()
            .map(|each| (each.cluster.as_str(), each.status.as_ref()))
            .collect();
        let aggregated = native.aggregate(object, &items);
        assert_stable(native, object, &items, aggregated.as_ref());
        answers["aggregated"] = json!(aggregated);
    }
    answers
}

/// Asserts that aggregation on top of its own result changes nothing: a stable system writes nothing.
fn assert_stable(
    native: &dyn NativeKind,
    template: &Value,
    items: &[(&str, Option<&Value>)],
    aggregated: Option<&Value>,
) {
    let Some(status) = aggregated else { return };
    let mut next = template.clone();
    next["status"] = status.clone();
    assert_eq!(native.aggregate(&next, items), None, "not stable: {template}");
}

#[test]
fn every_golden_case_is_answered_as_written() {
    golden::run("interpreter", 250, |case: &Case| golden::wanted(&answers(case)));
}

#[test]
fn every_kind_has_cases() {
    for kind in NATIVE {
        let kind = kind.gvk().kind;
        assert!(cases(kind).len() >= 3, "{kind} has fewer than 3 golden cases");
    }
    for kind in shipped::all() {
        let gvk = kind.gvk();
        assert!(
            !shipped_cases(gvk.group, gvk.kind).is_empty(),
            "{gvk:?} has no golden case"
        );
    }
}
