//! The golden cases in `testdata/karmada`: one file per case, `want` last. `UPDATE_GOLDEN=1` rewrites `want`.
//!
//! A case is an object of member `m1`, the Works and bindings that Karmada has, and the templates and bindings of the hub. It
//! expects the decision, the changes that adopt the object, the decision on giving it back, and the changes that do.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Karmada, decide, decide_return, patch, return_patch};
use crate::{
    adoption::{Decision, HubState, Transfer},
    golden,
    object::{Meta, ResourceId},
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    copy: Value,
    #[serde(default)]
    karmada: Objects,
    #[serde(default)]
    hub: Objects,
    /// Compared as text.
    #[serde(default, rename = "want")]
    _want: serde::de::IgnoredAny,
}

/// The objects of a control plane.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Objects {
    #[serde(default)]
    works: Vec<Value>,
    #[serde(default)]
    templates: Vec<Value>,
    #[serde(default)]
    bindings: Vec<Value>,
}

#[test]
fn every_case_comes_out_as_its_file_says() {
    golden::run("karmada", 6, |case: &Case| golden::wanted(&outcome(case)));
}

fn outcome(case: &Case) -> Value {
    let mut karmada = Karmada {
        id: "karmada-id".into(),
        ..Karmada::default()
    };
    case.karmada.works.iter().for_each(|work| karmada.add_work(work));
    for binding in &case.karmada.bindings {
        karmada.add_binding(binding);
    }
    let mut state = HubState::default();
    for template in &case.hub.templates {
        let uid = template["metadata"]["uid"].as_str().unwrap();
        let id = ResourceId::of(template).unwrap();
        state.templates.insert(id, uid.into());
    }
    for binding in &case.hub.bindings {
        state.add_binding(binding);
    }
    let transfer = Transfer {
        former: karmada.id.clone(),
        hub: "hub-id".into(),
        cluster: "m1".into(),
        namespaces: std::collections::BTreeMap::new(),
    };
    let (id, live) = (ResourceId::of(&case.copy).unwrap(), Meta::of(&case.copy));
    let mut wanted = Map::new();
    let decision = decide(&state, &karmada, &transfer, &id, &live);
    wanted.insert("decision".to_owned(), words(decision.as_ref()));
    if decision == Some(Decision::Adopt) {
        let patch = patch(&karmada, &transfer, &live);
        wanted.insert("adopted".to_owned(), changes(&case.copy, &patch));
    }
    let decision = decide_return(&karmada, &transfer, &id, &live);
    wanted.insert("back".to_owned(), words(decision.as_ref()));
    if decision == Some(Decision::Return) {
        wanted.insert("returned".to_owned(), changes(&case.copy, &return_patch(&live)));
    }
    Value::Object(wanted)
}

fn words(decision: Option<&Decision>) -> Value {
    json!(decision.map(ToString::to_string))
}

/// The changes by a merge patch.
fn changes(before: &Value, patch: &Value) -> Value {
    let mut after = before.clone();
    merge(&mut after, patch);
    golden::changes(before, &after)
}

fn merge(into: &mut Value, patch: &Value) {
    let Some(fields) = patch.as_object() else {
        *into = patch.clone();
        return;
    };
    for (key, value) in fields {
        if value.is_null() {
            into.as_object_mut().unwrap().remove(key);
        } else {
            merge(&mut into[key.as_str()], value);
        }
    }
}
