//! One operation of a JSON patch: add, replace or remove at a JSON pointer (RFC 6901, RFC 6902).
//!
//! Messages name paths, which the policy's author wrote, and never a value.

use entourage_api::policy::OverriderOperator;
use serde_json::Value;

/// The most steps of a pointer, and the greatest depth of a value that is set at its end: the result stays readable for parsers
/// that fail at a depth of 128.
const DEEPEST: usize = 60;

/// The longest pointer, in bytes.
const LONGEST: usize = 4096;

/// Applies one operation to a document. `add` to an object sets, to a list inserts; `-` is the end of a list, and a negative
/// index counts from its end, as in Karmada. `replace` and `remove` need an existing value.
///
/// # Errors
/// The cause and the remedy, for the policy's author; the document is then unchanged.
pub(super) fn apply(
    document: &mut Value,
    pointer: &str,
    operator: OverriderOperator,
    value: &Value,
) -> Result<(), String> {
    let steps = steps(pointer)?;
    if operator != OverriderOperator::Remove && depth(value) > DEEPEST {
        return Err(format!("the value is nested deeper than {DEEPEST} levels"));
    }
    let Some((last, parents)) = steps.split_last() else {
        return match operator {
            OverriderOperator::Remove => Err("the whole document cannot be removed".into()),
            _ => {
                *document = value.clone();
                Ok(())
            }
        };
    };
    let parent = reach(document, parents)?;
    let place = |len: usize| index(last, len).map_err(|why| format!("{pointer}: {why}"));
    match (parent, operator) {
        (Value::Object(map), OverriderOperator::Add) => {
            map.insert(last.clone(), value.clone());
        }
        (Value::Object(map), OverriderOperator::Replace) => {
            *map.get_mut(last).ok_or_else(|| nothing_there(pointer))? = value.clone();
        }
        (Value::Object(map), OverriderOperator::Remove) => {
            map.remove(last).ok_or_else(|| nothing_there(pointer))?;
        }
        (Value::Array(items), OverriderOperator::Add) => {
            let at = if last == "-" {
                items.len()
            } else {
                place(items.len() + 1)?
            };
            items.insert(at, value.clone());
        }
        (Value::Array(items), OverriderOperator::Replace) => {
            let at = place(items.len())?;
            items[at] = value.clone();
        }
        (Value::Array(items), OverriderOperator::Remove) => {
            let at = place(items.len())?;
            items.remove(at);
        }
        _ => {
            return Err(format!(
                "{} is neither an object nor a list",
                shown(parents.iter())
            ));
        }
    }
    Ok(())
}

/// The value at a pointer.
///
/// # Errors
/// As [`apply`].
pub(super) fn find<'a>(document: &'a mut Value, pointer: &str) -> Result<&'a mut Value, String> {
    reach(document, &steps(pointer)?)
}

/// The steps of a pointer, unescaped.
fn steps(pointer: &str) -> Result<Vec<String>, String> {
    if pointer.is_empty() {
        return Ok(Vec::new());
    }
    let Some(rest) = pointer.strip_prefix('/') else {
        return Err(format!(
            "{pointer:?} is not a JSON pointer: begin it with a slash"
        ));
    };
    if pointer.len() > LONGEST {
        return Err(format!("the path is longer than {LONGEST} bytes"));
    }
    let steps: Vec<String> = rest
        .split('/')
        .map(|step| step.replace("~1", "/").replace("~0", "~"))
        .collect();
    if steps.len() > DEEPEST {
        return Err(format!("the path has more than {DEEPEST} steps"));
    }
    Ok(steps)
}

fn reach<'a>(document: &'a mut Value, steps: &[String]) -> Result<&'a mut Value, String> {
    let mut at = document;
    for (position, step) in steps.iter().enumerate() {
        at = match at {
            Value::Object(map) => map.get_mut(step),
            Value::Array(items) => {
                let at = index(step, items.len())
                    .map_err(|why| format!("{}: {why}", shown(steps[..=position].iter())))?;
                items.get_mut(at)
            }
            _ => None,
        }
        .ok_or_else(|| nothing_there(&shown(steps[..=position].iter())))?;
    }
    Ok(at)
}

/// A position in a list of length `len`, written without a plus or leading zeros (RFC 6901, section 4).
fn index(step: &str, len: usize) -> Result<usize, String> {
    let number: i64 = step
        .parse()
        .ok()
        .filter(|number: &i64| number.to_string() == step)
        .ok_or_else(|| format!("{step:?} is not a position in a list"))?;
    let distance = usize::try_from(number.unsigned_abs()).unwrap_or(usize::MAX);
    let at = if number < 0 {
        len.checked_sub(distance)
    } else {
        Some(distance)
    };
    at.filter(|at| *at < len)
        .ok_or_else(|| format!("the list has no position {number}"))
}

fn nothing_there(pointer: &str) -> String {
    format!("{pointer} not found: correct the path, or make it with operator add first")
}

fn shown<'a>(steps: impl Iterator<Item = &'a String>) -> String {
    let mut text = String::new();
    for step in steps {
        text.push('/');
        text.push_str(&step.replace('~', "~0").replace('/', "~1"));
    }
    if text.is_empty() {
        text.push_str("the document");
    }
    text
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn outcome(document: &Value, pointer: &str, operator: &str, value: &Value) -> Result<Value, String> {
        let mut document = document.clone();
        let operator = serde_json::from_value(json!(operator)).unwrap();
        apply(&mut document, pointer, operator, value).map(|()| document)
    }

    #[test]
    fn the_examples_of_the_standard_come_out_as_printed() {
        // RFC 6902, appendix A: those of add, remove and replace.
        let same = [
            (
                json!({"foo": "bar"}),
                "/baz",
                "add",
                json!("qux"),
                json!({"baz": "qux", "foo": "bar"}),
            ),
            (
                json!({"foo": ["bar", "baz"]}),
                "/foo/1",
                "add",
                json!("qux"),
                json!({"foo": ["bar", "qux", "baz"]}),
            ),
            (
                json!({"baz": "qux", "foo": "bar"}),
                "/baz",
                "remove",
                json!(null),
                json!({"foo": "bar"}),
            ),
            (
                json!({"foo": ["bar", "qux", "baz"]}),
                "/foo/1",
                "remove",
                json!(null),
                json!({"foo": ["bar", "baz"]}),
            ),
            (
                json!({"baz": "qux", "foo": "bar"}),
                "/baz",
                "replace",
                json!("boo"),
                json!({"baz": "boo", "foo": "bar"}),
            ),
            (
                json!({"foo": "bar"}),
                "/child",
                "add",
                json!({"grandchild": {}}),
                json!({"foo": "bar", "child": {"grandchild": {}}}),
            ),
            (
                json!({"foo": ["bar"]}),
                "/foo/-",
                "add",
                json!(["abc"]),
                json!({"foo": ["bar", ["abc"]]}),
            ),
            (
                json!({"/": 9, "~1": 10}),
                "/~01",
                "replace",
                json!(11),
                json!({"/": 9, "~1": 11}),
            ),
        ];
        for (document, pointer, operator, value, wanted) in same {
            assert_eq!(
                outcome(&document, pointer, operator, &value),
                Ok(wanted),
                "{pointer}"
            );
        }
        assert!(outcome(&json!({"foo": "bar"}), "/baz/bat", "add", &json!("qux")).is_err());
    }

    #[test]
    fn what_is_not_there_is_refused_by_its_path() {
        for (pointer, operator) in [
            ("/a/b", "remove"),
            ("/a/b", "replace"),
            ("/l/3", "replace"),
            ("/l/-", "remove"),
        ] {
            assert!(outcome(&json!({"a": {}, "l": [1]}), pointer, operator, &json!(1)).is_err());
        }
        let why = outcome(&json!({"a": {}}), "/a/b~1c/d", "add", &json!("canary")).unwrap_err();
        assert!(
            why.contains("/a/b~1c not found:") && !why.contains("canary"),
            "{why}"
        );
        assert!(
            outcome(&json!({}), "a", "add", &json!(1))
                .unwrap_err()
                .contains("slash")
        );
    }

    #[test]
    fn a_negative_position_counts_from_the_end() {
        let list = json!([1, 2, 3]);
        assert_eq!(outcome(&list, "/-1", "remove", &json!(null)), Ok(json!([1, 2])));
        assert_eq!(outcome(&list, "/-1", "add", &json!(4)), Ok(json!([1, 2, 3, 4])));
        assert!(outcome(&list, "/-4", "remove", &json!(null)).is_err());
        assert!(outcome(&list, "/4", "add", &json!(null)).is_err());
    }

    #[test]
    fn a_position_is_written_in_one_way() {
        for step in ["+1", "01", "-0", "-01", "", "1.0", " 1"] {
            let error = outcome(&json!([1, 2, 3]), &format!("/{step}"), "replace", &json!(0)).unwrap_err();
            assert!(error.contains("not a position in a list"), "{error}");
        }
    }

    #[test]
    fn depth_and_length_are_bounded() {
        let mut deep = json!(1);
        for _ in 0..=DEEPEST {
            deep = json!([deep]);
        }
        assert!(outcome(&json!({}), "/a", "add", &deep).is_err());
        assert!(
            outcome(&json!({}), &"/a".repeat(DEEPEST + 1), "add", &json!(1))
                .unwrap_err()
                .contains("steps")
        );
        assert!(outcome(&json!({}), &format!("/{}", "a".repeat(LONGEST)), "add", &json!(1)).is_err());
    }
}
