//! The validation rules of the definitions, against the cases of `testdata/rules.yaml`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

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
    spec: Option<Value>,
    webhooks: Option<Value>,
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
        let mut object = json!({ "metadata": case.metadata });
        for (field, value) in [("spec", &case.spec), ("webhooks", &case.webhooks)] {
            if let Some(value) = value {
                object[field] = value.clone();
            }
        }
        let was = case
            .was
            .as_ref()
            .map(|spec| json!({ "metadata": case.metadata, "spec": spec }));
        let refusals = match kube_cel::validate(schema(&case.crd), &object, was.as_ref()) {
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
    let all: BTreeSet<String> = rules().map(|rule| rule.message.to_owned()).collect();
    assert_eq!(seen, all, "a rule without a case that it refuses");
}

#[test]
fn every_rule_finds_its_place() {
    for rule in rules() {
        for (crd, path) in rule
            .crds
            .iter()
            .flat_map(|crd| rule.paths.iter().map(move |path| (crd, path)))
        {
            let pointer: String = path
                .iter()
                .map(|step| match *step {
                    "[]" => "/items".to_owned(),
                    name => format!("/properties/{name}"),
                })
                .collect();
            let rules = schema(crd)
                .pointer(&format!("{pointer}/x-kubernetes-validations"))
                .cloned()
                .unwrap_or_default();
            let found = |one: &Value| one["rule"] == rule.rule && one["message"] == rule.message;
            assert!(
                rules.as_array().is_some_and(|all| all.iter().any(found)),
                "{crd} {pointer}: {}",
                rule.message
            );
        }
    }
}

/// The schema of the first version of a definition.
fn schema(crd: &str) -> &'static Value {
    static SCHEMAS: LazyLock<BTreeMap<String, Value>> = LazyLock::new(|| {
        let schema = |crd: CustomResourceDefinition| {
            let version = serde_json::to_value(&crd.spec.versions[0]).unwrap();
            let schema = version["schema"]["openAPIV3Schema"].clone();
            (crd.metadata.name.unwrap_or_default(), schema)
        };
        crds(None).into_iter().map(schema).collect()
    });
    &SCHEMAS[crd]
}
