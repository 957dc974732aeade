//! Invariants that hold for any policy.

use std::sync::Arc;

use entourage_api::policy::OverrideSpec;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Policy, Rule, apply, apply_to_metadata, records};
use entourage_model::object::{Gvk, Meta, NamespacedName, ResourceId, StrMap};

const PATHS: &[&str] = &[
    "",
    "/",
    "/metadata",
    "/metadata/name",
    "/metadata/labels",
    "/metadata/labels/app",
    "/metadata/labels/a~1b",
    "/metadata/annotations/a",
    "/metadata/annotations/karmada.io~1managed",
    "/spec",
    "/spec/replicas",
    "/spec/list/-",
    "/spec/list/0",
    "/spec/list/-1",
    "/spec/list/9",
    "/data/a",
    "/data/conf",
    "/kind",
    "/status",
    "spec",
    "/metadata/labels/app/x",
];

fn object() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "d", "labels": {"app": "web"}, "annotations": {"a": "{\"b\": 1}"}},
        "spec": {"replicas": 1, "list": [1], "containers": [{"name": "c", "image": "reg.example/a:1", "args": ["x"]}]},
        "data": {"a": "b", "conf": "b: 1\nc: [2]\n"},
    })
}

fn id() -> ResourceId {
    ResourceId::new(Gvk::new("v1", "Pod"), "d", "p")
}

fn rules(overriders: &Value) -> Vec<Arc<Rule>> {
    let spec: OverrideSpec =
        serde_json::from_value(json!({"overrideRules": [{"overriders": overriders}]})).unwrap();
    let policy = Policy::new(&NamespacedName::new("d", "o"), &Meta::default(), &spec);
    policy.rules.iter().map(|rule| rule.to_others.clone()).collect()
}

fn path() -> impl Strategy<Value = &'static str> {
    prop::sample::select(PATHS)
}

fn operator() -> impl Strategy<Value = &'static str> {
    prop::sample::select(&["add", "remove", "replace"][..])
}

fn value() -> impl Strategy<Value = Value> {
    let values = [json!("x"), json!(1), json!(null), json!({"k": "v"}), json!(["w"])];
    prop::sample::select(values.to_vec())
}

fn plaintext() -> impl Strategy<Value = Value> {
    (path(), operator(), value())
        .prop_map(|(path, operator, value)| json!({"path": path, "operator": operator, "value": value}))
}

fn strings() -> impl Strategy<Value = Value> {
    (
        operator(),
        prop::sample::select(&["app", "a", "tier", "entourage.dev/hub"][..]),
        "[a-z]{0,3}",
    )
        .prop_map(|(operator, key, value)| json!({"operator": operator, "value": {key: value}}))
}

fn field() -> impl Strategy<Value = Value> {
    (path(), prop::sample::select(&["json", "yaml"][..]), operator(), value()).prop_map(|(path, form, operator, value)| {
        json!({"fieldPath": path, form: [{"subPath": "/b", "operator": operator, "value": value}]})
    })
}

fn image() -> impl Strategy<Value = Value> {
    (
        prop::sample::select(&["Registry", "Repository", "Tag"][..]),
        operator(),
        "[a-z0-9.:@/-]{0,8}",
        prop::option::of(path()),
    )
        .prop_map(|(component, operator, value, path)| {
            let mut image = json!({"component": component, "operator": operator, "value": value});
            if let Some(path) = path {
                image["predicate"] = json!({"path": path});
            }
            image
        })
}

fn overriders() -> impl Strategy<Value = Value> {
    let list = |one: BoxedStrategy<Value>| prop::collection::vec(one, 0..3);
    (
        list(plaintext().boxed()),
        list(strings().boxed()),
        list(strings().boxed()),
        list(field().boxed()),
        list(image().boxed()),
    )
        .prop_map(|(plaintext, labels, annotations, fields, images)| {
            json!({
                "plaintext": plaintext, "labelsOverrider": labels, "annotationsOverrider": annotations,
                "fieldOverrider": fields, "imageOverrider": images,
            })
        })
}

fn strings_of(value: &Value) -> StrMap {
    let map = value.as_object().into_iter().flatten();
    map.map(|(key, value)| (key.as_str().into(), value.as_str().unwrap().into()))
        .collect()
}

proptest! {
    #[test]
    fn what_an_object_is_stays_and_labels_come_out_the_same_without_the_object(overriders in overriders()) {
        let rules = rules(&overriders);
        let mut changed = object();
        let Ok(()) = apply(&rules, &id(), "m", &mut changed) else { return Ok(()) };
        let before = object();
        for field in ["/apiVersion", "/kind", "/metadata/name", "/metadata/namespace", "/status"] {
            prop_assert_eq!(changed.pointer(field), before.pointer(field));
        }
        let (mut labels, mut annotations) =
            (strings_of(&object()["metadata"]["labels"]), strings_of(&object()["metadata"]["annotations"]));
        apply_to_metadata(&rules, "m", &mut labels, &mut annotations).unwrap();
        prop_assert_eq!(labels, strings_of(&changed["metadata"]["labels"]));
        prop_assert_eq!(annotations, strings_of(&changed["metadata"]["annotations"]));
    }

    #[test]
    fn the_record_reads_back_as_what_was_applied(overriders in overriders()) {
        let records = records(&rules(&overriders), &id());
        let read: Value = serde_json::from_str(&records[0].1).unwrap();
        let whole: entourage_api::policy::Overriders = serde_json::from_value(overriders).unwrap();
        prop_assert_eq!(&read, &json!([{"policyName": "o", "overriders": whole}]));
    }

    #[test]
    fn what_sets_or_removes_does_the_same_twice(labels in prop::collection::vec(strings(), 0..4), value in value()) {
        let rules = rules(&json!({
            "labelsOverrider": labels,
            "imageOverrider": [{"component": "Registry", "operator": "replace", "value": "mirror.example"}],
            "plaintext": [{"path": "/spec/replicas", "operator": "replace", "value": value}],
            "fieldOverrider": [{"fieldPath": "/data/conf", "yaml": [{"subPath": "/b", "operator": "add", "value": value}]}],
            "argsOverrider": [{"containerName": "c", "operator": "remove", "value": ["x"]}],
        }));
        let mut once = object();
        let Ok(()) = apply(&rules, &id(), "m", &mut once) else { return Ok(()) };
        let mut twice = once.clone();
        apply(&rules, &id(), "m", &mut twice).unwrap();
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn any_text_as_image_or_document_is_read_or_refused(text in ".{0,40}") {
        let rules = rules(&json!({
            "imageOverrider": [{"component": "Tag", "operator": "add", "value": "-x"}],
            "fieldOverrider": [{"fieldPath": "/data/conf", "yaml": [{"subPath": "/b", "operator": "add", "value": 1}]}],
        }));
        let mut object = object();
        object["spec"]["containers"][0]["image"] = json!(text);
        object["data"]["conf"] = json!(text);
        let _ = apply(&rules, &id(), "m", &mut object);
    }
}

#[test]
fn without_rules_nothing_changes_and_nothing_is_recorded() {
    let mut same = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}});
    let before = same.clone();
    apply(&[], &id(), "m", &mut same).unwrap();
    assert_eq!(same, before);
    assert!(records(&[], &id()).is_empty());
}

#[test]
fn a_change_of_the_name_that_leaves_it_is_none() {
    let rules = rules(&json!({
        "imageOverrider": [{"component": "Tag", "operator": "remove", "value": "", "predicate": {"path": "/metadata/name"}}],
        "labelsOverrider": [{"operator": "add", "value": {"a": "b"}}],
    }));
    apply(&rules, &id(), "m", &mut object()).unwrap();
    let (mut labels, mut annotations) = Default::default();
    apply_to_metadata(&rules, "m", &mut labels, &mut annotations).unwrap();
    assert_eq!(labels.len(), 1);
}

#[test]
fn a_record_that_would_be_too_long_names_the_policy_only() {
    let rules = rules(
        &json!({"labelsOverrider": [{"operator": "add", "value": {"a": "x".repeat(super::RECORD_LIMIT)}}]}),
    );
    assert_eq!(
        &*records(&rules, &id())[0].1,
        r#"[{"policyName":"o","overriders":{}}]"#
    );
}

#[test]
fn a_rule_shows_no_values_and_changes_its_version_with_them() {
    let with =
        |value: &str| rules(&json!({"plaintext": [{"path": "/data/a", "operator": "add", "value": value}]}));
    let (one, other) = (with("canary"), with("other"));
    assert!(!format!("{one:?}{}", serde_json::to_string(&one).unwrap()).contains("canary"));
    assert_ne!(one[0].version(), other[0].version());
    assert_eq!(one[0].version(), with("canary")[0].version());
}

/// A digest of a value that can be guessed reveals the value. A change is detected by the policy's generation instead.
#[test]
fn the_version_of_a_rule_for_a_secret_follows_the_policy_and_not_the_value() {
    let meta = |uid: &str, generation: i64, revision: &str| Meta {
        uid: uid.into(),
        generation: Some(generation),
        resource_version: revision.into(),
        labels: [("tier".into(), revision.into())].into(),
        ..Meta::default()
    };
    let versions = |meta: &Meta, value: &str| {
        let plaintext = json!([{"path": "/data/a", "operator": "add", "value": value}]);
        let rule = json!({"overriders": {"plaintext": plaintext}});
        let spec: OverrideSpec = serde_json::from_value(json!({"overrideRules": [rule, rule]})).unwrap();
        let policy = Policy::new(&NamespacedName::new("d", "o"), meta, &spec);
        let of = |kind: &str| -> Vec<_> {
            let id = ResourceId::new(Gvk::new("v1", kind), "d", "o");
            policy
                .rules
                .iter()
                .map(|rule| rule.rule_for(&id).version())
                .collect()
        };
        (of("Secret"), of("ConfigMap"))
    };
    let first = versions(&meta("u", 1, "10"), "x");
    assert_ne!(first.0[0], first.0[1], "each rule has its own");
    assert_eq!(first, versions(&meta("u", 1, "11"), "x"), "a label of the policy");
    assert_eq!(first.0, versions(&meta("u", 1, "10"), "y").0);
    assert_ne!(first.1, versions(&meta("u", 1, "10"), "y").1);
    for later in [meta("u", 2, "12"), meta("v", 1, "13")] {
        let later = versions(&later, "x");
        assert!(
            later.0.iter().all(|version| !first.0.contains(version)),
            "{later:?}"
        );
        assert_eq!(later.1, first.1, "what says the same elsewhere is the same");
    }
}
