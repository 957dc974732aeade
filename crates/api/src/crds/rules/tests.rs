//! The validation rules of the definitions, against the cases of `testdata/rules.yaml`.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::{Value, json};

use super::*;
use crate::crds::crds;

/// One case of `testdata/rules.yaml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    crd: String,
    #[serde(default = "named_p")]
    metadata: Value,
    spec: Value,
    was: Option<Value>,
    refused: Option<String>,
}

fn named_p() -> Value {
    json!({ "name": "p" })
}

#[test]
fn each_rule_refuses_what_it_should_and_nothing_else() {
    let cases: Vec<Case> = serde_saphyr::from_str(include_str!("../../../testdata/rules.yaml")).unwrap();
    let mut seen = BTreeSet::new();
    for case in cases {
        let object = |spec: &Value| json!({ "metadata": case.metadata, "spec": spec });
        let was = case.was.as_ref().map(object);
        let refusals = match kube_cel::validate(&schema(&case.crd), &object(&case.spec), was.as_ref()) {
            Ok(()) => Vec::new(),
            Err(errors) => errors.into_vec(),
        };
        let messages: Vec<String> = refusals.into_iter().map(|refusal| refusal.message).collect();
        match (&case.refused, messages.as_slice()) {
            (None, []) => {}
            (Some(start), [message]) if message.starts_with(start) => {
                seen.insert(message.clone());
            }
            (expected, _) => panic!("{}: expected {expected:?}, got {messages:?}", case.name),
        }
    }
    let all: BTreeSet<String> = RULES.iter().map(|rule| rule.message.to_owned()).collect();
    assert_eq!(seen, all, "a rule without a case that it refuses");
}

#[test]
fn every_rule_finds_its_place() {
    for rule in RULES {
        let pointer: String = rule
            .path
            .iter()
            .map(|step| {
                if *step == "[]" {
                    "/items".to_owned()
                } else {
                    format!("/properties/{step}")
                }
            })
            .collect();
        let rules = schema(rule.crd)
            .pointer(&format!("{pointer}/x-kubernetes-validations"))
            .cloned()
            .unwrap_or_default();
        let found = |one: &Value| one["rule"] == rule.rule && one["message"] == rule.message;
        assert!(
            rules.as_array().is_some_and(|all| all.iter().any(found)),
            "{}",
            rule.message
        );
    }
}

/// The schema of the only version of a definition.
fn schema(crd: &str) -> Value {
    let crd = crds(None)
        .into_iter()
        .find(|one| one.metadata.name.as_deref() == Some(crd))
        .unwrap();
    serde_json::to_value(&crd.spec.versions[0].schema).unwrap()["openAPIV3Schema"].take()
}
