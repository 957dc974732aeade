//! The form of objects in errors about patches.

use serde_json::{Map, Value};

use crate::{
    json::printed,
    patch::PatchKind,
    read::Node,
    schema::{Schema, builtin::in_order},
};

/// The result of a patch as one line of JSON: the fields of what the patch looked into are sorted, all others in the order of
/// their types. O(value).
pub(super) fn patched(schema: &Schema, value: &Value, (kind, patch): (PatchKind, &[u8])) -> String {
    let patch = Node::parse(patch).map(Node::into_value).unwrap_or_default();
    let opened = match (kind, patch) {
        (PatchKind::Json, Value::Array(operations)) => parents(&operations),
        (PatchKind::Merge, patch @ Value::Object(_)) => patch,
        _ => Value::Object(Map::new()),
    };
    let mut text = String::new();
    write(Some(schema), value, Some(&opened), &mut text);
    text
}

/// A tree of the objects and lists on the paths of a JSON patch.
fn parents(operations: &[Value]) -> Value {
    let mut tree = Value::Object(Map::new());
    for name in ["path", "from"] {
        for path in operations.iter().filter_map(|one| one.get(name)?.as_str()) {
            let steps: Vec<&str> = path.split('/').skip(1).collect();
            let mut at = &mut tree;
            for step in steps.split_last().map_or(&[][..], |(_, parents)| parents) {
                let Value::Object(below) = at else { break };
                at = below
                    .entry(step.replace("~1", "/").replace("~0", "~"))
                    .or_insert_with(|| Value::Object(Map::new()));
            }
        }
    }
    tree
}

/// `opened`: what the patch has here.
fn write(schema: Option<&Schema>, value: &Value, opened: Option<&Value>, text: &mut String) {
    match value {
        Value::Object(object) => {
            let order = match (opened, schema.and_then(|schema| schema.definition.as_deref())) {
                (Some(Value::Object(_)), _) | (_, None) => Vec::new(),
                (_, Some(definition)) => in_order(definition),
            };
            let place = |key: &str| order.iter().position(|name| *name == key).unwrap_or(order.len());
            let mut fields: Vec<_> = object.iter().collect();
            fields.sort_by_key(|(key, _)| place(key));
            text.push('{');
            for (at, (key, value)) in fields.into_iter().enumerate() {
                if at > 0 {
                    text.push(',');
                }
                text.push_str(&Value::from(key.as_str()).to_string());
                text.push(':');
                let schema = schema.and_then(|schema| schema.field(key));
                let opened = opened.and_then(|opened| opened.get(key));
                write(schema.map(|schema| &**schema), value, opened, text);
            }
            text.push('}');
        }
        Value::Array(items) => {
            let schema = schema.and_then(|schema| schema.items.as_deref());
            text.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    text.push(',');
                }
                let opened = opened.and_then(|opened| opened.get(at).or_else(|| opened.get(at.to_string())));
                write(schema, item, opened, text);
            }
            text.push(']');
        }
        other => text.push_str(&other.to_string()),
    }
}

/// A patch as Go prints a map: `map[spec:map[replicas:x]]`.
pub(super) fn go_map(patch: &[u8]) -> String {
    Node::parse(patch).map_or_else(
        |_| String::from_utf8_lossy(patch).into_owned(),
        |node| printed(&node.into_value()),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_a_patch_looks_into_is_sorted() {
        let kinds = crate::kinds::builtin();
        let resource = kinds.find("apps", "v1", "deployments").expect("served");
        let object = json!({"kind": "Deployment", "metadata": {"name": "d", "labels": {"a": "1"}},
            "spec": {"template": {"spec": {"restartPolicy": "Always", "containers": [{"name": "c", "image": "i"}]}},
                "minReadySeconds": 1, "selector": {}, "replicas": 1}});
        let metadata = r#""metadata":{"name":"d","labels":{"a":"1"}}"#;
        let template =
            r#""template":{"spec":{"containers":[{"name":"c","image":"i"}],"restartPolicy":"Always"}}"#;
        for (kind, patch, expected) in [
            (
                PatchKind::Merge,
                r#"{"metadata":{"labels":"x"}}"#,
                format!(
                    r#""metadata":{{"labels":{{"a":"1"}},"name":"d"}},"spec":{{"replicas":1,"selector":{{}},{template},"minReadySeconds":1}}"#
                ),
            ),
            (
                PatchKind::Merge,
                r#"{"spec":{"replicas":"1"}}"#,
                format!(
                    r#"{metadata},"spec":{{"minReadySeconds":1,"replicas":1,"selector":{{}},{template}}}"#
                ),
            ),
            (
                PatchKind::Json,
                r#"[{"op":"add","path":"/spec/template/spec/containers/0/image","value":1}]"#,
                format!(
                    r#"{metadata},"spec":{{"minReadySeconds":1,"replicas":1,"selector":{{}},"template":{{"spec":{{"containers":[{{"image":"i","name":"c"}}],"restartPolicy":"Always"}}}}}}"#
                ),
            ),
        ] {
            let shown = patched(resource.schema.get(), &object, (kind, patch.as_bytes()));
            assert_eq!(shown, format!(r#"{{"kind":"Deployment",{expected}}}"#), "{patch}");
        }
    }
}
