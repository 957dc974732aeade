//! Laws of field sets and of apply, and what the recorded exchanges lack.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{
    Manager, apply,
    compare::{compare, fields},
    set::FieldSet,
    shape::Shape,
    track,
};
use crate::{
    object::{Object, metadata},
    resource::{LazySchema, Resource, Rules},
};

#[derive(Debug)]
struct Plain;

impl Rules for Plain {}

fn resource(kind: &str, definition: &'static str) -> Resource {
    let (group, version) = match definition.split('.').collect::<Vec<_>>()[..] {
        [.., "core", version, _] => ("", version),
        [.., group, version, _] => (group, version),
        _ => ("", "v1"),
    };
    Resource {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: kind.to_owned(),
        list_kind: format!("{kind}List"),
        plural: String::new(),
        singular: String::new(),
        short_names: Vec::new(),
        categories: Vec::new(),
        namespaced: true,
        verbs: Vec::new(),
        subresources: Vec::new(),
        collection: String::new(),
        schema: LazySchema::new(move || crate::kinds::definition(definition)),
        rules: Arc::new(Plain),
        printer: crate::printer::Printer::DEFAULT,
        pod_spec: &[],
        custom: None,
    }
}

fn config_maps() -> Resource {
    resource("ConfigMap", "io.k8s.api.core.v1.ConfigMap")
}

fn by(name: &str) -> Manager<'_> {
    Manager {
        name,
        subresource: "",
        now: "2026-01-01T00:00:00Z",
    }
}

fn object(value: Value) -> Object {
    match value {
        Value::Object(object) => object,
        _ => Object::new(),
    }
}

fn config_map(data: &Value) -> Object {
    object(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data}))
}

fn managers(object: &Object) -> Vec<String> {
    let entries = metadata(object)["managedFields"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    entries
        .iter()
        .map(|entry| {
            format!(
                "{} {}",
                entry["manager"].as_str().unwrap_or_default(),
                entry["fieldsV1"]
            )
        })
        .collect()
}

#[test]
fn eleven_updaters_become_ten() {
    let resource = config_maps();
    let mut state: Option<Object> = None;
    for at in 0..11 {
        let mut new = state.clone().unwrap_or_else(|| config_map(&json!({})));
        new["data"][format!("k{at}")] = at.to_string().into();
        let (name, now) = (format!("m{at:02}"), format!("2026-01-01T00:00:{at:02}Z"));
        let manager = Manager {
            now: &now,
            ..by(&name)
        };
        track(&resource, state.as_ref(), &mut new, manager);
        state = Some(new);
    }
    let managers = managers(&state.unwrap_or_default());
    assert_eq!(managers.len(), 10);
    assert_eq!(
        managers[0],
        r#"ancient-changes {"f:data":{".":{},"f:k0":{},"f:k1":{}}}"#
    );
}

#[test]
fn kubectl_takes_over_what_client_side_apply_set() {
    let resource = config_maps();
    let mut live = config_map(&json!({"a": "1"}));
    let last = Value::Object(live.clone()).to_string();
    live["metadata"]["annotations"] = json!({"kubectl.kubernetes.io/last-applied-configuration": last});
    track(&resource, None, &mut live, by("kubectl-client-side-apply"));
    let wanted = config_map(&json!({"a": "2"}));
    let other = apply(&resource, Some(&live), &wanted, by("other"), false);
    assert_eq!(other.err().map(|status| status.code), Some(409));
    let taken = apply(&resource, Some(&live), &wanted, by("kubectl"), false);
    assert_eq!(
        taken.ok().map(|object| object["data"].clone()),
        Some(json!({"a": "2"}))
    );
}

#[test]
fn what_was_there_before_the_first_apply_keeps_an_owner() {
    let resource = config_maps();
    let live = object(json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "a", "uid": "u"}, "data": {"a": "1"}}));
    let applied = apply(
        &resource,
        Some(&live),
        &config_map(&json!({"b": "2"})),
        by("m"),
        false,
    );
    let managers = applied.map(|object| managers(&object));
    assert_eq!(
        managers.ok(),
        Some(vec![
            r#"m {"f:data":{"f:b":{}}}"#.to_owned(),
            r#"before-first-apply {"f:data":{".":{},"f:a":{}}}"#.to_owned(),
        ])
    );
}

#[test]
fn wrong_types_are_reported_as_go_writes_them() {
    let resource = resource("Deployment", "io.k8s.api.apps.v1.Deployment");
    let cases = [
        (
            json!({"replicas": "3"}),
            ".spec.replicas: expected numeric (int or float), got string",
        ),
        (json!({"paused": 1}), ".spec.paused: expected boolean, got &{1}"),
        (
            json!({"template": {"spec": {"containers": "x"}}}),
            ".spec.template.spec.containers: expected list, got &{x}",
        ),
        (
            json!({"template": [1]}),
            ".spec.template: expected map, got &{[1]}",
        ),
        (
            json!({"template": {"spec": {"nodeName": {"a": [1]}}}}),
            ".spec.template.spec.nodeName: expected string, got &value.valueUnstructured{Value:map[string]interface {}{\"a\":[]interface {}{1}}}",
        ),
        (
            json!({"replicas": true, "x": 1}),
            "errors:\n  .spec.replicas: expected numeric (int or float), got bool\n  .spec.x: field not declared in schema",
        ),
    ];
    for (spec, want) in cases {
        let wanted = object(
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": spec}),
        );
        let got = apply(&resource, None, &wanted, by("m"), false).map_err(|status| status.message);
        let want = format!("failed to create typed patch object (/a; apps/v1, Kind=Deployment): {want}");
        assert_eq!(got.err(), Some(want));
    }
}

#[test]
fn items_keep_the_order_of_the_live_list_unless_the_body_has_another() {
    let resource = resource("Deployment", "io.k8s.api.apps.v1.Deployment");
    let deployment = |names: &str| {
        let containers: Vec<Value> = names
            .chars()
            .map(|name| json!({"name": name.to_string()}))
            .collect();
        object(
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"},
            "spec": {"template": {"spec": {"containers": containers}}}}),
        )
    };
    for (live, applied, want) in [
        ("abc", "x", "abcx"),
        ("abc", "cxa", "bcxa"),
        ("abc", "xb", "axbc"),
        ("abc", "abc", "abc"),
        ("abc", "cba", "cba"),
    ] {
        let merged = apply(
            &resource,
            Some(&deployment(live)),
            &deployment(applied),
            by("m"),
            true,
        );
        let list = merged.map(|object| object["spec"]["template"]["spec"]["containers"].clone());
        let names: String = list
            .unwrap_or_default()
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|item| item["name"].as_str())
            .collect();
        assert_eq!(names, want, "{live} + {applied}");
    }
}

/// JSON of a few levels, with a map on top.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        (0..3i64).prop_map(Value::from),
        "[a-b]?".prop_map(Value::from)
    ];
    let any = leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::Array),
            prop::collection::btree_map("[a-c]", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    });
    prop::collection::btree_map("[a-c]", any, 0..4).prop_map(|map| Value::Object(map.into_iter().collect()))
}

fn set() -> impl Strategy<Value = FieldSet> {
    value().prop_map(|value| fields(&Shape::Free, &value))
}

fn data() -> impl Strategy<Value = Value> {
    prop::collection::btree_map("[a-d]", "[x-z]", 0..4).prop_map(|map| json!(map))
}

proptest! {
    #[test]
    fn sets_come_back_from_what_is_written_of_them(set in set()) {
        prop_assert_eq!(FieldSet::parse(&set.to_value()), Some(set));
    }

    #[test]
    fn sets_are_made_of_what_they_share_and_what_they_do_not(a in set(), b in set()) {
        let (only, both) = (a.difference(&b), a.intersection(&b));
        prop_assert!(only.intersection(&b).is_empty());
        prop_assert_eq!(&both, &b.intersection(&a));
        let mut whole = only;
        whole.union(both);
        prop_assert_eq!(whole, a);
    }

    #[test]
    fn comparing_backwards_swaps_what_came_and_went(a in value(), b in value()) {
        let (Value::Object(a), Value::Object(b)) = (a, b) else { return Ok(()) };
        let (there, back) = (compare(&Shape::Free, &a, &b), compare(&Shape::Free, &b, &a));
        prop_assert_eq!(&there.added, &back.removed);
        prop_assert_eq!(&there.modified, &back.modified);
        prop_assert!(compare(&Shape::Free, &a, &a).is_empty());
    }

    #[test]
    fn an_apply_that_is_repeated_changes_nothing(posted in data(), first in data(), other in data()) {
        let resource = config_maps();
        let mut live = config_map(&posted);
        track(&resource, None, &mut live, by("poster"));
        let step = |live: &Object, data: &Value, name: &str| {
            apply(&resource, Some(live), &config_map(data), by(name), true).unwrap_or_default()
        };
        let live = step(&live, &other, "other");
        let once = step(&live, &first, "m");
        prop_assert_eq!(&step(&once, &first, "m"), &once);
        for (key, value) in first.as_object().into_iter().flatten() {
            prop_assert_eq!(once["data"].get(key), Some(value));
        }
    }

    #[test]
    fn what_only_an_applier_had_goes_when_it_is_no_longer_applied(first in data(), second in data()) {
        let resource = config_maps();
        let step = |live: Option<&Object>, data: &Value| {
            apply(&resource, live, &config_map(data), by("m"), false).unwrap_or_default()
        };
        let live = step(Some(&step(None, &first)), &second);
        let left = live.get("data").cloned().unwrap_or_else(|| json!({}));
        prop_assert_eq!(left, second);
    }

    #[test]
    fn no_body_makes_an_apply_panic(live in value(), applied in value(), managed in value()) {
        let resource = resource("Deployment", "io.k8s.api.apps.v1.Deployment");
        let with = |spec: Value| object(json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "a", "labels": spec, "managedFields": managed}, "spec": {"template": {"spec": {"containers": spec}}}}));
        let mut body = with(applied);
        let mut new = with(live);
        track(&resource, None, &mut new, by("m"));
        let _ = apply(&resource, Some(&new), &body, by("n"), false);
        if let Some(metadata) = body["metadata"].as_object_mut() {
            metadata.remove("managedFields");
        }
        let _ = apply(&resource, Some(&new), &body, by("n"), true);
    }
}
