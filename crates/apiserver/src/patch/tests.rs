//! Cases that the recorded exchanges lack: limits, odd input, and laws.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{PatchKind, patched};
use crate::schema::Schema;

fn json_patch(target: &Value, operations: &Value) -> Result<Value, u16> {
    let body = operations.to_string();
    patched(
        PatchKind::Json,
        &Schema::default(),
        target.clone(),
        body.as_bytes(),
    )
    .map_err(|status| status.code)
}

fn strategic(target: &Value, patch: &Value) -> Result<Value, String> {
    let schema = crate::kinds::definition("io.k8s.api.apps.v1.Deployment");
    let body = patch.to_string();
    patched(PatchKind::Strategic, &schema, target.clone(), body.as_bytes()).map_err(|status| status.message)
}

fn pod(containers: &Value) -> Value {
    json!({"spec": {"template": {"spec": {"containers": containers}}}})
}

#[test]
fn a_json_patch_does_what_its_operations_say() {
    let target = json!({"a": [1, 2, 3], "b": {"c/d": 1, "e~f": 2}});
    let cases = [
        (
            json!([{"op": "add", "path": "/a/-", "value": 4}]),
            Some(json!([1, 2, 3, 4])),
        ),
        (
            json!([{"op": "add", "path": "/a/3", "value": 4}]),
            Some(json!([1, 2, 3, 4])),
        ),
        (
            json!([{"op": "add", "path": "/a/-4", "value": 0}]),
            Some(json!([0, 1, 2, 3])),
        ),
        (json!([{"op": "add", "path": "/a/-5", "value": 0}]), None),
        (json!([{"op": "add", "path": "/a/4", "value": 0}]), None),
        (json!([{"op": "add", "path": "/a/x", "value": 0}]), None),
        (json!([{"op": "remove", "path": "/a/-3"}]), Some(json!([2, 3]))),
        (json!([{"op": "remove", "path": "/a/3"}]), None),
        (json!([{"op": "replace", "path": "/a/3", "value": 0}]), None),
        (
            json!([{"op": "test", "path": "/b/c~1d", "value": 1}]),
            Some(json!([1, 2, 3])),
        ),
        (json!([{"op": "test", "path": "/b/e~0f", "value": 3}]), None),
        (json!([{"op": "move", "from": "/a", "path": "/a/0"}]), None),
        (
            json!([{"op": "copy", "from": "/a/0", "path": "/a/1"}]),
            Some(json!([1, 1, 2, 3])),
        ),
        (json!([{"op": "add", "path": "", "value": {}}]), None),
        (json!([null]), None),
        (json!([{"op": "replace", "path": "", "value": "x"}]), None),
        (
            json!([{"op": "replace", "path": "", "value": {"a": [0]}}]),
            Some(json!([0])),
        ),
    ];
    for (operations, want) in cases {
        let got = json_patch(&target, &operations)
            .ok()
            .map(|value| value["a"].clone());
        assert_eq!(got, want, "{operations}");
    }
}

#[test]
fn members_of_an_operation_are_texts() {
    for (operation, error) in [
        (
            json!({"op": "add", "path": 5}),
            "number into Go struct field jsonPatchOp.path",
        ),
        (
            json!({"op": "move", "path": "/a", "from": []}),
            "array into Go struct field jsonPatchOp.from",
        ),
        (json!({"op": true}), "bool into Go struct field jsonPatchOp.op"),
    ] {
        let body = json!([operation]).to_string();
        let status =
            patched(PatchKind::Json, &Schema::default(), json!({}), body.as_bytes()).expect_err("refused");
        assert_eq!(status.code, 400);
        assert_eq!(
            status.message,
            format!("error decoding patch: json: cannot unmarshal {error} of type string")
        );
    }
}

#[test]
fn copies_that_double_are_stopped() {
    let operations: Vec<Value> = (0..64)
        .map(|_| json!({"op": "copy", "from": "/a", "path": "/a/-"}))
        .collect();
    assert_eq!(
        json_patch(&json!({"a": ["x".repeat(100)]}), &json!(operations)),
        Err(422)
    );
}

#[test]
fn no_patch_makes_a_value_that_is_too_deep_to_walk() {
    let mut nested = json!({});
    for _ in 0..60 {
        nested = json!({"x": nested});
    }
    let deep = "/x".repeat(60);
    let operations: Vec<Value> = (0..100)
        .flat_map(|_| {
            [
                json!({"op": "add", "path": "/n", "value": nested}),
                json!({"op": "move", "from": "/o", "path": format!("/n{deep}")}),
                json!({"op": "move", "from": "/n", "path": "/o"}),
            ]
        })
        .collect();
    assert_eq!(json_patch(&json!({"o": {}}), &json!(operations)), Err(422));
}

#[test]
fn inserting_in_front_of_a_long_list_for_ever_is_refused() {
    let operations: Vec<Value> = (0..10_000)
        .map(|_| json!({"op": "add", "path": "/a/0", "value": 0}))
        .collect();
    assert_eq!(
        json_patch(&json!({"a": vec![0; 100_000]}), &json!(operations)),
        Err(422)
    );
    assert!(json_patch(&json!({"a": []}), &json!(operations[..1000])).is_ok());
}

#[test]
fn a_merge_patch_takes_nulls_out_of_what_is_new() {
    let body = br#"{"a": {"b": null, "c": [{"d": null}, null]}, "e": [1], "f": {"g": null}}"#;
    let target = json!({"e": {"x": 1}, "f": {"g": 1, "h": 2}});
    let got = patched(PatchKind::Merge, &Schema::default(), target, body);
    assert_eq!(
        got.ok(),
        Some(json!({"a": {"c": [{}, null]}, "e": [1], "f": {"h": 2}}))
    );
}

#[test]
fn strategic_merge_follows_its_directives() {
    let target = pod(&json!([{"name": "a", "image": "1"}, {"name": "b"}, {"name": "c"}]));
    let names = |patch: Value| {
        strategic(&target, &pod(&patch)).map(|value| {
            let list = value["spec"]["template"]["spec"]["containers"]
                .as_array()
                .cloned();
            list.unwrap_or_default()
                .iter()
                .filter_map(|item| item["name"].as_str().map(str::to_owned))
                .collect::<Vec<_>>()
                .join("")
        })
    };
    assert_eq!(names(json!([{"name": "d"}])), Ok("dabc".to_owned()));
    assert_eq!(names(json!([{"name": "c"}, {"name": "a"}])), Ok("bca".to_owned()));
    assert_eq!(
        names(json!([{"name": "a", "$patch": "delete"}, {"name": "c", "$patch": "delete"}])),
        Ok("b".to_owned())
    );
    assert_eq!(
        names(json!([{"$patch": "replace"}, {"name": "z"}])),
        Ok("z".to_owned())
    );
    assert_eq!(
        names(json!([{"name": "a"}, "x"])),
        Err("list element types are not identical: [[map[image:1 name:a] map[name:b] map[name:c]] [map[name:a] x]]".to_owned())
    );
    assert_eq!(
        names(json!([{"name": "a", "$patch": "frob"}])),
        Err("unknown patch type: frob in map: map[$patch:frob name:a]".to_owned())
    );
}

#[test]
fn directives_about_what_is_not_there_leave_no_trace() {
    let patch = json!({"metadata": {"labels": {"$patch": "replace", "a": "b"}},
        "spec": {"template": {"spec": {"$setElementOrder/containers": [{"name": "a"}],
            "containers": [{"name": "a", "ports": [{"containerPort": 1, "$patch": "delete"}]}],
            "$deleteFromPrimitiveList/x": [1]}}}});
    let got = strategic(&json!({}), &patch);
    assert_eq!(
        got,
        Ok(pod(&json!([{"name": "a", "ports": []}]))
            .as_object()
            .map_or(Value::Null, |spec| {
                let mut whole = spec.clone();
                whole.insert("metadata".to_owned(), json!({}));
                Value::Object(whole)
            }))
    );
}

/// JSON of a few levels.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(true)),
        (0..5i64).prop_map(Value::from),
        "[a-c~/]{0,2}".prop_map(Value::from)
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::btree_map("[a-c~/]{1,2}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// The operations that turn one value into another.
fn difference(path: &str, from: &Value, to: &Value, operations: &mut Vec<Value>) {
    let below = |name: &str| format!("{path}/{}", name.replace('~', "~0").replace('/', "~1"));
    match (from, to) {
        _ if from == to => {}
        (Value::Object(old), Value::Object(new)) => {
            for name in old.keys().filter(|name| !new.contains_key(*name)) {
                operations.push(json!({"op": "remove", "path": below(name)}));
            }
            for (name, value) in new {
                match old.get(name) {
                    Some(old) => difference(&below(name), old, value, operations),
                    None => operations.push(json!({"op": "add", "path": below(name), "value": value})),
                }
            }
        }
        (Value::Array(old), Value::Array(new)) => {
            for _ in new.len()..old.len() {
                operations.push(json!({"op": "remove", "path": format!("{path}/-1")}));
            }
            for (at, value) in new.iter().enumerate() {
                match old.get(at) {
                    Some(old) => difference(&format!("{path}/{at}"), old, value, operations),
                    None => {
                        operations.push(json!({"op": "add", "path": format!("{path}/-"), "value": value}))
                    }
                }
            }
        }
        _ => operations.push(json!({"op": "replace", "path": path, "value": to})),
    }
}

/// The merge patch that turns one map into another.
fn merge_difference(from: &Map<String, Value>, to: &Map<String, Value>) -> Map<String, Value> {
    let gone = from.keys().filter(|name| !to.contains_key(*name));
    let mut patch: Map<String, Value> = gone.map(|name| (name.clone(), Value::Null)).collect();
    for (name, value) in to {
        let value = match (from.get(name), value) {
            (Some(Value::Object(old)), Value::Object(new)) => Value::Object(merge_difference(old, new)),
            (_, new) => new.clone(),
        };
        patch.insert(name.clone(), value);
    }
    patch
}

proptest! {
    #[test]
    fn the_difference_of_two_values_as_a_json_patch_makes_one_the_other(from in value(), to in value()) {
        let (from, to) = (json!({"x": from}), json!({"x": to}));
        let mut operations = Vec::new();
        difference("", &from, &to, &mut operations);
        prop_assert_eq!(json_patch(&from, &json!(operations)), Ok(to));
    }

    #[test]
    fn the_difference_of_two_values_as_a_merge_patch_makes_one_the_other(from in value(), to in value()) {
        let (from, to) = (json!({"x": from}), json!({"x": to}));
        let (Some(old), Some(new)) = (from.as_object(), to.as_object()) else { return Ok(()) };
        let body = Value::Object(merge_difference(old, new)).to_string();
        let got = patched(PatchKind::Merge, &Schema::default(), from.clone(), body.as_bytes());
        prop_assert_eq!(got.ok(), Some(to));
    }

    #[test]
    fn a_strategic_merge_of_an_object_with_itself_changes_nothing(names in prop::collection::btree_set("[a-e]", 0..5), labels in prop::collection::btree_map("[a-c]", "[a-c]", 0..3)) {
        let containers: Vec<Value> = names
            .iter()
            .map(|name| json!({"name": name, "image": "x", "ports": [{"containerPort": 1}], "args": [name]}))
            .collect();
        let mut object = pod(&json!(containers));
        object["metadata"] = json!({"labels": labels, "finalizers": names});
        prop_assert_eq!(strategic(&object, &object), Ok(object));
    }

    #[test]
    fn no_body_makes_a_patch_panic(kind in 0..3usize, target in value(), patch in value(), raw in prop::collection::vec(any::<u8>(), 0..24)) {
        let kind = [PatchKind::Json, PatchKind::Merge, PatchKind::Strategic][kind];
        let schema = crate::kinds::definition("io.k8s.api.apps.v1.Deployment");
        let _ = patched(kind, &schema, target.clone(), patch.to_string().as_bytes());
        let _ = patched(kind, &schema, json!({"x": target}), &raw);
    }
}
