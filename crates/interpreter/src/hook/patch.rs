//! Applies a JSON patch (RFC 6902) of an untrusted server, within limits.
//!
//! Errors name the operation and the cause, and quote nothing of it: a patch has content of the object.

use serde::Deserialize;
use serde_json::Value;

/// The maximum number of operations of a patch.
const MOST: usize = 1000;

/// The maximum number of steps of a pointer, and the maximum depth of a value that is added: the result stays readable for
/// parsers with a maximum depth of 128, and is dropped without exhausting the stack.
const DEEPEST: usize = 60;

/// The maximum length of a pointer, in bytes.
const LONGEST: usize = 4096;

/// The maximum total size of copied values, in nodes: copies of copies double it each time.
const COPIED: usize = 1 << 20;

#[derive(Deserialize)]
struct Step {
    op: String,
    path: String,
    from: Option<String>,
    /// `null` is a value; if absent there is none.
    #[serde(default, deserialize_with = "present")]
    value: Option<Value>,
}

fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// Returns the document with the patch applied, all of it or nothing.
///
/// Cost: O(operations × depth), and that of the values compared, copied and moved in lists.
///
/// # Errors
/// The number of the invalid operation, counted from 0, and the cause; without content.
pub(super) fn apply(document: &Value, patch: &[u8]) -> Result<Value, String> {
    let steps: Vec<Value> =
        serde_json::from_slice(patch).map_err(|_| "the patch is not a list of operations".to_owned())?;
    if steps.len() > MOST {
        return Err(format!("the patch has more than {MOST} operations"));
    }
    let (mut document, mut copied) = (document.clone(), 0);
    for (position, step) in steps.into_iter().enumerate() {
        let wrong = |why: &str| format!("operation {position} of the patch: {why}");
        let step: Step = serde_json::from_value(step)
            .map_err(|_| wrong("it has no op or path, or one that is not a string"))?;
        carry_out(&mut document, step, &mut copied).map_err(wrong)?;
    }
    Ok(document)
}

fn carry_out(document: &mut Value, step: Step, copied: &mut usize) -> Result<(), &'static str> {
    let path = pointer(&step.path)?;
    let from = || pointer(step.from.as_deref().ok_or("it has no from")?);
    match step.op.as_str() {
        "add" => add(document, &path, shallow(step.value)?),
        "remove" => remove(document, &path).map(drop),
        "replace" => {
            *find(document, &path)? = shallow(step.value)?;
            Ok(())
        }
        "move" => {
            let from = from()?;
            if path.len() > from.len() && path.starts_with(&from) {
                return Err("nothing can be moved into itself");
            }
            let value = shallow(Some(remove(document, &from)?))?;
            add(document, &path, value)
        }
        "copy" => {
            let value = find(document, &from()?)?;
            *copied += nodes(value);
            if *copied > COPIED {
                return Err("too much is copied");
            }
            let value = shallow(Some(value.clone()))?;
            add(document, &path, value)
        }
        "test" => {
            let wanted = step.value.ok_or("it has no value")?;
            if *find(document, &path)? == wanted {
                Ok(())
            } else {
                Err("the test fails")
            }
        }
        _ => Err("its op is none of add, remove, replace, move, copy and test"),
    }
}

fn add(document: &mut Value, path: &[String], value: Value) -> Result<(), &'static str> {
    let Some((last, parents)) = path.split_last() else {
        *document = value;
        return Ok(());
    };
    match find(document, parents)? {
        Value::Object(map) => {
            map.insert(last.clone(), value);
            Ok(())
        }
        Value::Array(items) => {
            let at = if last == "-" {
                items.len()
            } else {
                index(last, items.len() + 1)?
            };
            items.insert(at, value);
            Ok(())
        }
        _ => Err("there is neither an object nor a list above its path"),
    }
}

fn remove(document: &mut Value, path: &[String]) -> Result<Value, &'static str> {
    let (last, parents) = path
        .split_last()
        .ok_or("the object as a whole cannot be removed")?;
    match find(document, parents)? {
        Value::Object(map) => map.remove(last).ok_or(NOTHING),
        Value::Array(items) => {
            let at = index(last, items.len())?;
            Ok(items.remove(at))
        }
        _ => Err(NOTHING),
    }
}

const NOTHING: &str = "there is nothing at its path";

fn find<'a>(document: &'a mut Value, path: &[String]) -> Result<&'a mut Value, &'static str> {
    let mut at = document;
    for step in path {
        at = match at {
            Value::Object(map) => map.get_mut(step),
            Value::Array(items) => {
                let position = index(step, items.len())?;
                items.get_mut(position)
            }
            _ => None,
        }
        .ok_or(NOTHING)?;
    }
    Ok(at)
}

/// The steps of a pointer, unescaped (RFC 6901).
fn pointer(text: &str) -> Result<Vec<String>, &'static str> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let rest = text
        .strip_prefix('/')
        .ok_or("its path does not begin with a slash")?;
    if text.len() > LONGEST || rest.bytes().filter(|byte| *byte == b'/').count() >= DEEPEST {
        return Err("its path is too long");
    }
    let step = |step: &str| step.replace("~1", "/").replace("~0", "~");
    Ok(rest.split('/').map(step).collect())
}

/// An index in a list of length `len`, written without a sign or leading zeros (RFC 6901, section 4).
fn index(step: &str, len: usize) -> Result<usize, &'static str> {
    let number = step
        .parse()
        .ok()
        .filter(|number: &usize| number.to_string() == step);
    let at = number.ok_or("its path has no number where there is a list")?;
    if at < len {
        Ok(at)
    } else {
        Err("the list is not that long")
    }
}

fn shallow(value: Option<Value>) -> Result<Value, &'static str> {
    let value = value.ok_or("it has no value")?;
    if depth(&value) > DEEPEST {
        return Err("its value is nested too deeply");
    }
    Ok(value)
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// The size of a value: its nodes, with 64 bytes of text counted as one.
fn nodes(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(nodes).sum::<usize>(),
        Value::Object(map) => {
            1 + map
                .iter()
                .map(|(key, each)| key.len() / 64 + nodes(each))
                .sum::<usize>()
        }
        Value::String(text) => 1 + text.len() / 64,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn outcome(document: &Value, patch: &Value) -> Result<Value, String> {
        apply(document, patch.to_string().as_bytes())
    }

    /// Document, patch and result; a text is a part of the error.
    #[rustfmt::skip]
    fn table() -> Vec<(Value, Value, Value)> {
        let of = |document: Value, patch: Value, wanted: Value| (document, patch, wanted);
        vec![
            // RFC 6902, appendix A, in its order.
            of(json!({"foo": "bar"}), json!([{"op": "add", "path": "/baz", "value": "qux"}]), json!({"baz": "qux", "foo": "bar"})),
            of(json!({"foo": ["bar", "baz"]}), json!([{"op": "add", "path": "/foo/1", "value": "qux"}]), json!({"foo": ["bar", "qux", "baz"]})),
            of(json!({"baz": "qux", "foo": "bar"}), json!([{"op": "remove", "path": "/baz"}]), json!({"foo": "bar"})),
            of(json!({"foo": ["bar", "qux", "baz"]}), json!([{"op": "remove", "path": "/foo/1"}]), json!({"foo": ["bar", "baz"]})),
            of(json!({"baz": "qux", "foo": "bar"}), json!([{"op": "replace", "path": "/baz", "value": "boo"}]), json!({"baz": "boo", "foo": "bar"})),
            of(
                json!({"foo": {"bar": "baz", "waldo": "fred"}, "qux": {"corge": "grault"}}),
                json!([{"op": "move", "from": "/foo/waldo", "path": "/qux/thud"}]),
                json!({"foo": {"bar": "baz"}, "qux": {"corge": "grault", "thud": "fred"}}),
            ),
            of(
                json!({"foo": ["all", "grass", "cows", "eat"]}),
                json!([{"op": "move", "from": "/foo/1", "path": "/foo/3"}]),
                json!({"foo": ["all", "cows", "eat", "grass"]}),
            ),
            of(
                json!({"baz": "qux", "foo": ["a", 2, "c"]}),
                json!([{"op": "test", "path": "/baz", "value": "qux"}, {"op": "test", "path": "/foo/1", "value": 2}]),
                json!({"baz": "qux", "foo": ["a", 2, "c"]}),
            ),
            of(json!({"baz": "qux"}), json!([{"op": "test", "path": "/baz", "value": "bar"}]), json!("test fails")),
            of(json!({"foo": "bar"}), json!([{"op": "add", "path": "/child", "value": {"grandchild": {}}}]), json!({"foo": "bar", "child": {"grandchild": {}}})),
            of(json!({"foo": "bar"}), json!([{"op": "add", "path": "/baz", "value": "qux", "xyz": 123}]), json!({"foo": "bar", "baz": "qux"})),
            of(json!({"foo": "bar"}), json!([{"op": "add", "path": "/baz/bat", "value": "qux"}]), json!("nothing at")),
            of(json!({"/": 9, "~1": 10}), json!([{"op": "test", "path": "/~01", "value": 10}]), json!({"/": 9, "~1": 10})),
            of(json!({"/": 9, "~1": 10}), json!([{"op": "test", "path": "/~01", "value": "10"}]), json!("test fails")),
            of(json!({"foo": ["bar"]}), json!([{"op": "add", "path": "/foo/-", "value": ["abc"]}]), json!({"foo": ["bar", ["abc"]]})),
            // And cases that it does not cover.
            of(json!({"a": {"b": [1]}}), json!([{"op": "copy", "from": "/a/b", "path": "/c"}]), json!({"a": {"b": [1]}, "c": [1]})),
            of(json!({"a": 1}), json!([{"op": "add", "path": "/b", "value": null}]), json!({"a": 1, "b": null})),
            of(json!({"a": 1}), json!([{"op": "add", "path": "/b"}]), json!("no value")),
            of(json!({"a": 1}), json!([{"op": "replace", "path": "/b", "value": 1}]), json!("nothing at")),
            of(json!({"a": 1}), json!([{"op": "remove", "path": ""}]), json!("as a whole")),
            of(json!({"a": {}}), json!([{"op": "move", "from": "/a", "path": "/a/b"}]), json!("into itself")),
            of(json!({"a": 1}), json!([{"op": "move", "path": "/b"}]), json!("no from")),
            of(json!({"a": [1]}), json!([{"op": "remove", "path": "/a/-1"}]), json!("no number")),
            of(json!({"a": [1]}), json!([{"op": "remove", "path": "/a/01"}]), json!("no number")),
            of(json!({"a": [1]}), json!([{"op": "remove", "path": "/a/1"}]), json!("not that long")),
            of(json!({"a": [1]}), json!([{"op": "add", "path": "/a/2", "value": 1}]), json!("not that long")),
            of(json!({"a": 1}), json!([{"op": "merge", "path": "/a"}]), json!("none of add")),
            of(json!({"a": 1}), json!([{"op": "add", "path": "a", "value": 1}]), json!("a slash")),
            of(json!({"a": 1}), json!([{"op": "add", "path": 5, "value": 1}]), json!("operation 0 of the patch: it has no op or path")),
            of(json!({"a": 1}), json!([{"op": "add", "path": "/b", "value": 1}, 7]), json!("operation 1 of the patch: it has no op")),
            of(json!({"a": 1}), json!({"a": 2}), json!("not a list of operations")),
        ]
    }

    #[test]
    fn patches_do_what_the_standard_says() {
        for (document, patch, wanted) in table() {
            match (outcome(&document, &patch), wanted) {
                (Err(got), Value::String(part)) => assert!(got.contains(&part), "{patch}: {got}"),
                (got, wanted) => assert_eq!(got, Ok(wanted), "{patch}"),
            }
        }
    }

    #[test]
    fn what_grows_without_end_is_refused() {
        let one = json!({"op": "add", "path": "/a", "value": 1});
        assert!(outcome(&json!({}), &json!(vec![one.clone(); MOST])).is_ok());
        let error = outcome(&json!({}), &json!(vec![one; MOST + 1])).unwrap_err();
        assert!(error.contains("more than 1000"), "{error}");
        // 2 to the power of 40 leaves.
        let doubling: Vec<_> = (0..40)
            .map(|_| json!({"op": "copy", "from": "/a", "path": "/a/-"}))
            .collect();
        let error = outcome(&json!({"a": ["x"]}), &json!(doubling)).unwrap_err();
        assert!(error.contains("copied") || error.contains("deeply"), "{error}");
        let wide: Vec<_> = (0..40)
            .flat_map(|_| {
                [
                    json!({"op": "copy", "from": "/a", "path": "/b"}),
                    json!({"op": "add", "path": "/a", "value": {}}),
                    json!({"op": "copy", "from": "/b", "path": "/a/l"}),
                    json!({"op": "move", "from": "/b", "path": "/a/r"}),
                ]
            })
            .collect();
        let error = outcome(&json!({"a": "x".repeat(1000)}), &json!(wide)).unwrap_err();
        assert!(error.contains("copied"), "{error}");
        // Each move puts the value one level deeper.
        let deeper: Vec<_> = (0..300)
            .flat_map(|_| {
                [
                    json!({"op": "move", "from": "/a", "path": "/b"}),
                    json!({"op": "add", "path": "/a", "value": {}}),
                    json!({"op": "move", "from": "/b", "path": "/a/a"}),
                ]
            })
            .collect();
        let error = outcome(&json!({"a": 1}), &json!(deeper)).unwrap_err();
        assert!(error.contains("deeply"), "{error}");
        let far = json!([{"op": "add", "path": "/a".repeat(61), "value": 1}]);
        assert!(outcome(&json!({}), &far).unwrap_err().contains("too long"));
    }
}
