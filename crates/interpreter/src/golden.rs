//! The golden cases: `testdata/interpreter/<kind>/<case>/`, of shipped kinds `testdata/interpreter/<group>/<kind>/<case>/`,
//! every file one object.
//!
//! | file | what |
//! |---|---|
//! | `object.yaml` | the template as the hub serves it |
//! | `live.yaml` | optional: the copy as a member serves it |
//! | `members.yaml` | optional: a list of `{cluster, status}`, the reflected statuses to aggregate |
//! | `want.yaml` | the result of every operation |
//!
//! `UPDATE_GOLDEN=1` rewrites `want.yaml`; read the difference before you commit it.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use super::{
    NATIVE, NativeKind, common_prune, difference, native, never_travels,
    references::references,
    requirements::{components, requirements},
    shipped,
};
use entourage_golden::is_updating;

pub(super) fn read(path: &Path) -> Option<Value> {
    let text = fs::read_to_string(path).ok()?;
    let options = serde_saphyr::options! { legacy_octal_numbers: true };
    Some(
        serde_saphyr::from_str_with_options(&text, options)
            .unwrap_or_else(|error| panic!("{path:?}: {error}")),
    )
}

/// The folders of a kind's cases, in order.
pub(super) fn cases(kind: &str) -> Vec<PathBuf> {
    cases_in(&kind.to_lowercase())
}

/// The folders of a shipped kind's cases.
pub(super) fn shipped_cases(group: &str, kind: &str) -> Vec<PathBuf> {
    cases_in(&format!("{group}/{}", kind.to_lowercase()))
}

fn cases_in(folder: &str) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/interpreter");
    let entries = fs::read_dir(root.join(folder)).unwrap_or_else(|_| {
        panic!(
            "no golden case of {folder}: write crates/interpreter/testdata/interpreter/{folder}/<case>/object.yaml"
        )
    });
    let mut cases: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    cases.sort();
    cases
}

fn answers(case: &Path) -> Value {
    let object = read(&case.join("object.yaml")).unwrap_or_else(|| panic!("{case:?} has no object.yaml"));
    let api_version = object["apiVersion"].as_str().unwrap();
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let native = native(group, version, object["kind"].as_str().unwrap()).unwrap();

    let mut rendered = object.clone();
    common_prune(&mut rendered);
    native.prune(&mut rendered);
    let mut answers = json!({
        "neverTravels": never_travels(&object),
        "references": references(native, object["metadata"]["namespace"].as_str().unwrap_or_default(), &object),
        "replicas": native.replicas(&object),
        "rendered": rendered,
        "needsLive": native.needs_live(&rendered),
    });
    if native.declared().is_some() {
        // Rules neither prune nor prevent propagation: the object is sent as the user wrote it.
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
        let map = answers.as_object_mut().unwrap();
        map.retain(|answer, _| !["neverTravels", "rendered"].contains(&answer.as_str()));
        answers["requirements"] = json!(requirements(native, namespace, &object));
        answers["components"] = json!(components(native, &object));
    }
    if let Some(live) = read(&case.join("live.yaml")) {
        answers["health"] = json!(native.health(&live));
        answers["reflected"] = json!(native.reflect(&live));
        let mut retained = rendered.clone();
        native.retain(&mut retained, &live);
        if native.declared().is_none() {
            answers["difference"] = json!(difference(&retained, &live));
        }
        if retained != rendered {
            answers["retained"] = retained;
        }
    }
    if let Some(members) = read(&case.join("members.yaml")) {
        let items: Vec<_> = members
            .as_array()
            .unwrap()
            .iter()
            .map(|each| {
                (
                    each["cluster"].as_str().unwrap(),
                    Some(&each["status"]).filter(|status| !status.is_null()),
                )
            })
            .collect();
        let aggregated = native.aggregate(&object, &items);
        assert_stable(native, &object, &items, aggregated.as_ref(), case);
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
    case: &Path,
) {
    let Some(status) = aggregated else { return };
    let mut next = template.clone();
    next["status"] = status.clone();
    assert_eq!(native.aggregate(&next, items), None, "{case:?}: not stable");
}

#[test]
fn every_golden_case_is_answered_as_written() {
    let update = is_updating();
    let mut failures = Vec::new();
    let kinds: BTreeSet<_> = NATIVE.iter().map(|kind| kind.gvk().kind).collect();
    let native = kinds.into_iter().map(|kind| {
        let cases = cases(kind);
        assert!(cases.len() >= 3, "{kind} has fewer than 3 golden cases");
        cases
    });
    let shipped = shipped::all().iter().map(|kind| kind.gvk());
    let shipped: BTreeSet<_> = shipped.map(|gvk| (gvk.group, gvk.kind)).collect();
    let shipped = shipped
        .into_iter()
        .map(|(group, kind)| shipped_cases(group, kind));
    for cases in native.chain(shipped) {
        for case in cases {
            let got = answers(&case);
            let file = case.join("want.yaml");
            if update {
                fs::write(&file, serde_saphyr::to_string(&got).unwrap()).unwrap();
            }
            if read(&file) != Some(got.clone()) {
                failures.push(format!(
                    "{file:?}: got\n{}",
                    serde_saphyr::to_string(&got).unwrap()
                ));
            }
        }
    }
    assert!(
        failures.is_empty(),
        "UPDATE_GOLDEN=1 writes them anew\n{}",
        failures.join("\n")
    );
}
