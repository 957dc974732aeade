//! The evaluation of a template on a document.

use std::cmp::Ordering;

use serde_json::Value;

use super::{Filter, Node, Slice};

/// The results of each action, in order; those of a range once for each of its elements.
pub(super) fn template(actions: &[Vec<Node>], document: &Value) -> Result<Vec<Vec<Value>>, String> {
    let mut results = Vec::new();
    block(actions, 0, Some(document), false, &mut results)?;
    Ok(results)
}

/// Evaluates the actions from `at` on, up to the end of the range that they are in. Without a document only that end is searched for.
/// Returns the position after it.
fn block(
    actions: &[Vec<Node>],
    mut at: usize,
    document: Option<&Value>,
    is_in_range: bool,
    results: &mut Vec<Vec<Value>>,
) -> Result<usize, String> {
    while let Some(action) = actions.get(at) {
        at += 1;
        match action.first() {
            Some(Node::Word(word)) if word == "end" => {
                if is_in_range {
                    return Ok(at);
                }
                return Err("not in range, nothing to end".to_owned());
            }
            Some(Node::Word(word)) if word == "range" => {
                let elements = match document {
                    Some(document) => walk(&action[1..], vec![document.clone()])?,
                    None => Vec::new(),
                };
                let begin = at;
                for element in &elements {
                    at = block(actions, begin, Some(element), true, results)?;
                }
                if elements.is_empty() {
                    at = block(actions, begin, None, true, &mut Vec::new())?;
                }
            }
            _ => {
                if let Some(document) = document {
                    results.push(walk(action, vec![document.clone()])?);
                }
            }
        }
    }
    Ok(at)
}

fn walk(nodes: &[Node], input: Vec<Value>) -> Result<Vec<Value>, String> {
    nodes.iter().try_fold(input, |input, node| step(node, &input))
}

fn step(node: &Node, input: &[Value]) -> Result<Vec<Value>, String> {
    let each = |of: &dyn Fn(&Value) -> Result<Vec<Value>, String>| -> Result<Vec<Value>, String> {
        let all: Vec<Vec<Value>> = input.iter().map(of).collect::<Result<_, _>>()?;
        Ok(all.concat())
    };
    match node {
        Node::Text(text) => Ok(vec![Value::from(text.as_str())]),
        Node::Number(number) => each(&|_| Ok(vec![Value::Number(number.clone())])),
        Node::Bool(value) => each(&|_| Ok(vec![Value::Bool(*value)])),
        Node::Field(name) => each(&|value| Ok(value.get(name).cloned().into_iter().collect())),
        Node::Wildcard => each(&|value| Ok(children(value))),
        Node::Recursive => each(&|value| Ok(descendants(value))),
        Node::Slice(slice) => each(&|value| sliced(slice, value)),
        Node::Filter(filter) => each(&|value| filtered(filter, value)),
        Node::Union(parts) => {
            let parts = parts.iter().map(|part| walk(part, input.to_vec()));
            let all: Vec<Vec<Value>> = parts.collect::<Result<_, _>>()?;
            Ok(all.concat())
        }
        Node::Word(word) => Err(format!("unrecognized identifier {word}")),
    }
}

fn children(value: &Value) -> Vec<Value> {
    match value {
        Value::Array(items) => items.clone(),
        Value::Object(fields) => fields.values().cloned().collect(),
        _ => Vec::new(),
    }
}

/// The value, if it contains others, and all that contain others in it.
fn descendants(value: &Value) -> Vec<Value> {
    let children = children(value);
    if children.is_empty() {
        return Vec::new();
    }
    let mut all = vec![value.clone()];
    all.extend(children.iter().flat_map(descendants));
    all
}

fn sliced(slice: &Slice, value: &Value) -> Result<Vec<Value>, String> {
    let items = match value {
        Value::Null => return Ok(Vec::new()),
        Value::Array(items) => items,
        other => return Err(format!("{} is not array or slice", kind(other))),
    };
    let length = i64::try_from(items.len()).unwrap_or(i64::MAX);
    let mut start = slice.start.unwrap_or_default();
    if start < 0 {
        start += length;
    }
    let mut end = slice.end.unwrap_or(length);
    if end < 0 || (end == 0 && slice.is_index) {
        end += length;
    }
    if start == end {
        return Ok(Vec::new());
    }
    let out_of_bounds = |index: i64| format!("array index out of bounds: index {index}, length {length}");
    if !(0..length).contains(&start) {
        return Err(out_of_bounds(start));
    }
    if !(0..=length).contains(&end) {
        return Err(out_of_bounds(end - 1));
    }
    if start > end {
        return Err(format!(
            "starting index {start} is greater than ending index {end}"
        ));
    }
    let step = usize::try_from(slice.step.unwrap_or(1)).ok();
    let step = step.filter(|step| *step > 0).ok_or("step must be > 0")?;
    let position = |index: i64| usize::try_from(index).unwrap_or_default();
    let chosen = &items[position(start)..position(end)];
    Ok(chosen.iter().step_by(step).cloned().collect())
}

fn filtered(filter: &Filter, value: &Value) -> Result<Vec<Value>, String> {
    let Value::Array(items) = value else {
        return Err(format!(
            "{} is not array or slice and cannot be filtered",
            kind(value)
        ));
    };
    let mut passed = Vec::new();
    for item in items {
        let left = walk(&filter.left, vec![item.clone()])?;
        let Some((operator, right)) = &filter.comparison else {
            passed.extend((!left.is_empty()).then(|| item.clone()));
            continue;
        };
        let right = walk(right, vec![item.clone()])?;
        let (left, right) = match (left.as_slice(), right.as_slice()) {
            ([], _) | (_, []) => continue,
            ([left], [right]) => (left, right),
            _ => return Err("can only compare one element at a time".to_owned()),
        };
        if compare(left, operator, right)? {
            passed.push(item.clone());
        }
    }
    Ok(passed)
}

fn compare(left: &Value, operator: &str, right: &Value) -> Result<bool, String> {
    let ordering = match (left, right) {
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        (Value::Bool(left), Value::Bool(right)) => Some(left.cmp(right)),
        (Value::Number(left), Value::Number(right)) => match (left.as_i64(), right.as_i64()) {
            (Some(left), Some(right)) => Some(left.cmp(&right)),
            _ => left.as_f64().partial_cmp(&right.as_f64()),
        },
        _ => None,
    };
    let Some(ordering) = ordering else {
        return Err("incompatible types for comparison".to_owned());
    };
    Ok(match operator {
        "==" => ordering == Ordering::Equal,
        "!=" => ordering != Ordering::Equal,
        "<" => ordering == Ordering::Less,
        "<=" => ordering != Ordering::Greater,
        ">" => ordering == Ordering::Greater,
        ">=" => ordering != Ordering::Less,
        _ => return Err(format!("unrecognized filter operator {operator}")),
    })
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "list",
        Value::Object(_) => "object",
    }
}
