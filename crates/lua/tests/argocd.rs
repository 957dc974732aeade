//! The health checks of `config/argocd/health.yaml`, run in the sandbox on `testdata/argocd/<case>.yaml`. `UPDATE_GOLDEN=1` rewrites
//! `want`.
//!
//! Argo CD runs a check with the object in the global `obj` and takes the table that it returns; here the same text is the body of
//! a function of an interpreter script.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use entourage_golden as golden;
use entourage_interpreter::question::{Answer, Question};
use entourage_lua::Script;
use serde::Deserialize;
use serde_json::{Value, json};

const FILE: &str = "../../config/argocd/health.yaml";
const PREFIX: &str = "resource.customizations.health.";

#[derive(Deserialize)]
struct ConfigMap {
    data: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    object: Value,
    /// The status and the message that Argo CD shows. Compared as text.
    #[serde(default, rename = "want")]
    _want: serde::de::IgnoredAny,
}

/// The checks by group and kind: `policy.karmada.io_PropagationPolicy`.
fn checks() -> BTreeMap<String, String> {
    let file: ConfigMap = golden::read(Path::new(FILE));
    let data = file.data.into_iter();
    data.map(|(key, check)| (key.strip_prefix(PREFIX).unwrap().to_owned(), check))
        .collect()
}

fn key(object: &Value) -> String {
    let group = object["apiVersion"].as_str().unwrap().split('/').next().unwrap();
    format!("{group}_{}", object["kind"].as_str().unwrap())
}

fn health(checks: &BTreeMap<String, String>, object: &Value) -> Value {
    let source = format!(
        "function ReflectStatus(observedObj)\nobj = observedObj\nlocal function check()\n{}\nend\nreturn check()\nend",
        checks[&key(object)]
    );
    let script = Script::compile("health", &source).unwrap();
    match script.answer(Question::Reflect(object)).unwrap() {
        Answer::Status(Some(health)) => health,
        _ => panic!("no health of {}", key(object)),
    }
}

#[test]
fn every_case_has_the_health_that_is_written() {
    let checks = checks();
    golden::run("argocd", 30, |case: &Case| {
        golden::wanted(&health(&checks, &case.object))
    });
}

#[test]
fn the_cases_show_each_kind_healthy_and_not_yet_healthy_and_only_states_of_argo_cd() {
    let checks = checks();
    let mut shown: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in golden::files("argocd") {
        let case: Case = golden::read(&file);
        let health = health(&checks, &case.object);
        let status = health["status"].as_str().unwrap().to_owned();
        assert!(
            ["Healthy", "Progressing", "Degraded", "Suspended"].contains(&&*status),
            "{}: {status}",
            file.display()
        );
        assert!(health["message"].is_string(), "{}", file.display());
        shown.entry(key(&case.object)).or_default().insert(status);
    }
    // The cluster-scoped kinds have the check of their counterpart.
    for (of, same) in [
        (
            "policy.karmada.io_ClusterPropagationPolicy",
            "policy.karmada.io_PropagationPolicy",
        ),
        (
            "work.karmada.io_ClusterResourceBinding",
            "work.karmada.io_ResourceBinding",
        ),
    ] {
        assert_eq!(checks[of], checks[same]);
        let states = shown.remove(of).unwrap_or_default();
        shown.entry(same.to_owned()).or_default().extend(states);
        shown.insert(of.to_owned(), shown[same].clone());
    }
    let wanted = ["Degraded", "Healthy", "Progressing"].map(str::to_owned);
    for check in checks.keys() {
        let states = shown.get(check).unwrap_or_else(|| panic!("no case of {check}"));
        assert!(
            wanted.iter().all(|state| states.contains(state)),
            "{check}: {states:?}"
        );
    }
}

#[test]
fn every_kind_that_is_checked_is_one_of_ours() {
    let ours: BTreeSet<String> = entourage_api::crds::crds(None)
        .iter()
        .map(|crd| format!("{}_{}", crd.spec.group, crd.spec.names.kind))
        .collect();
    let unknown: Vec<String> = checks().into_keys().filter(|key| !ours.contains(key)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
    assert_eq!(json!(checks().len()), json!(8));
}
