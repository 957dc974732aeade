//! Values made of choices: free ones, and ones that look like what a schema asks for.

use std::sync::Arc;

use arbitrary::{Result, Unstructured};
use entourage_apiserver::schema::{ListKind, Schema, Type, builtin};
use serde_json::{Map, Value, json};

/// Strings that mean something to some part of the server.
const WORDS: &[&str] = &[
    "a",
    "b",
    "c",
    "d",
    "app",
    "x",
    "name",
    "metadata",
    "spec",
    "status",
    "labels",
    "annotations",
    "kind",
    "apiVersion",
    "",
    "0",
    "1",
    "-1",
    "80",
    "01",
    "1.5",
    "100m",
    "1Gi",
    "1e3",
    "80%",
    "true",
    "null",
    "default",
    "kube-system",
    "v1",
    "$patch",
    "delete",
    "replace",
    "merge",
    "$retainKeys",
    "$setElementOrder/containers",
    "$deleteFromPrimitiveList/finalizers",
    "a/b",
    "a.b/c",
    "a~1b",
    "~",
    "-",
    "A_B",
    "é",
    "\u{0}",
    "😀",
    " ",
    "\n",
    "TCP",
    "Always",
    "Recreate",
    "RollingUpdate",
    "ClusterIP",
    "None",
    "10.0.0.1",
    "::1",
    "2026-01-01T00:00:00Z",
    "2026-01-01T00:00:00.000001+01:00",
    "YQ==",
    "f:a",
    ".",
    "kubectl.kubernetes.io/last-applied-configuration",
    "kubernetes",
    "foregroundDeletion",
    "*",
    "get",
    "9223372036854775807",
];

/// Fields on the way to where the rules are.
const FAVOURITES: &[&str] = &[
    "metadata",
    "spec",
    "template",
    "containers",
    "ports",
    "env",
    "volumes",
    "data",
    "labels",
    "annotations",
    "finalizers",
    "ownerReferences",
    "managedFields",
    "selector",
    "matchLabels",
    "matchExpressions",
    "rules",
    "subjects",
    "conditions",
    "status",
    "tolerations",
    "strategy",
    "rollingUpdate",
    "volumeMounts",
    "versions",
    "schema",
];

/// One of a few words, seldom any text.
pub fn word(u: &mut Unstructured<'_>) -> Result<String> {
    if u.ratio(1, 12)? {
        return text(u, 24);
    }
    Ok((*u.choose(WORDS)?).to_owned())
}

/// Any text of at most so many characters.
pub fn text(u: &mut Unstructured<'_>, most: usize) -> Result<String> {
    let length = u.int_in_range(0..=most)?;
    let mut text = String::new();
    for _ in 0..length {
        let byte: u8 = u.arbitrary()?;
        match byte {
            0..=0x7f => text.push(char::from(byte)),
            _ => text.push(u.arbitrary()?),
        }
    }
    Ok(text)
}

/// One of these, as it is.
pub fn one_of(u: &mut Unstructured<'_>, words: &[&str]) -> Result<String> {
    Ok((*u.choose(words)?).to_owned())
}

fn number(u: &mut Unstructured<'_>) -> Result<Value> {
    Ok(match u.int_in_range(0..=9)? {
        0..=4 => json!(u.int_in_range(-2..=9)?),
        5 => json!(u.arbitrary::<i64>()?),
        6 => json!(u64::MAX),
        7 => json!(u.choose(&[0.5, -0.0, 1.0, 1e21, 1e300, 9_007_199_254_740_993.0, 5e-324])?),
        8 => json!(i64::from(i32::MAX) + 1),
        // Not finite: null.
        _ => json!(u.arbitrary::<f64>()?),
    })
}

/// JSON of any kind, at most `depth` deep.
pub fn any(u: &mut Unstructured<'_>, depth: usize) -> Result<Value> {
    let least = if depth == 0 { 3 } else { 0 };
    Ok(match u.int_in_range(least..=7)? {
        0 | 1 => Value::Object(map(u, depth)?),
        2 => {
            let length = u.int_in_range(0..=3)?;
            Value::Array((0..length).map(|_| any(u, depth - 1)).collect::<Result<_>>()?)
        }
        3 => Value::Null,
        4 => json!(u.arbitrary::<bool>()?),
        5 => number(u)?,
        _ => word(u)?.into(),
    })
}

/// Any map, at most `depth` deep.
pub fn map(u: &mut Unstructured<'_>, depth: usize) -> Result<Map<String, Value>> {
    let length = u.int_in_range(0..=3)?;
    (0..length)
        .map(|_| Ok((word(u)?, any(u, depth.saturating_sub(1))?)))
        .collect()
}

/// A value that mostly is as `schema` has it, at most `depth` deep.
pub fn of(u: &mut Unstructured<'_>, schema: &Arc<Schema>, depth: usize) -> Result<Value> {
    let schema = &builtin::resolve(schema);
    match u.int_in_range(0..=63)? {
        60 | 61 => return any(u, depth.min(3)),
        62 => return Ok(Value::Null),
        _ => {}
    }
    Ok(match schema.kind {
        Type::Object => Value::Object(fields(u, schema, &[], depth)?),
        Type::Array => {
            let length = if depth == 0 { 0 } else { u.int_in_range(0..=3)? };
            let keys = match &schema.list {
                ListKind::Map(keys) => keys.clone(),
                _ => schema
                    .patch_merge_key
                    .iter()
                    .filter(|key| !key.is_empty())
                    .cloned()
                    .collect(),
            };
            let item = |u: &mut Unstructured<'_>| match &schema.items {
                Some(items) if !keys.is_empty() && u.int_in_range(0..=15)? > 0 => {
                    fields(u, items, &keys, depth - 1).map(Value::Object)
                }
                Some(items) => of(u, items, depth - 1),
                None => any(u, 1),
            };
            Value::Array((0..length).map(|_| item(u)).collect::<Result<_>>()?)
        }
        Type::String => string(u, schema)?,
        Type::Integer | Type::Number => number(u)?,
        Type::Boolean => json!(u.arbitrary::<bool>()?),
        Type::IntOrString if u.arbitrary()? => number(u)?,
        Type::IntOrString => word(u)?.into(),
        Type::Any => any(u, depth.min(3))?,
    })
}

fn string(u: &mut Unstructured<'_>, schema: &Schema) -> Result<Value> {
    let allowed = schema.rules.as_ref().map(|rules| rules.one_of_values.as_slice());
    if let Some(values @ [_, ..]) = allowed {
        return u.choose(values).cloned();
    }
    Ok(match schema.format.as_deref() {
        Some("date-time") => one_of(
            u,
            &[
                "2026-01-01T00:00:00Z",
                "2026-01-01T00:00:00.5Z",
                "x",
                "0001-01-01T00:00:00Z",
            ],
        )?,
        Some("byte") => one_of(u, &["YQ==", "", "!"])?,
        Some("quantity") if u.ratio(1, 4)? => return number(u),
        Some("quantity") => one_of(
            u,
            &[
                "1",
                "100m",
                "1Gi",
                "0.5",
                "1e3",
                "-1",
                "x",
                "1000000000000000000000n",
            ],
        )?,
        _ => word(u)?,
    }
    .into())
}

/// Some fields of an object, among them those that `must` be there.
fn fields(
    u: &mut Unstructured<'_>,
    schema: &Arc<Schema>,
    must: &[String],
    depth: usize,
) -> Result<Map<String, Value>> {
    let schema = &builtin::resolve(schema);
    let mut made = Map::new();
    for name in must {
        let Some(field) = schema.properties.get(name) else {
            continue;
        };
        let key = match field.kind {
            Type::String => one_of(u, &["a", "b", "c"])?.into(),
            _ => json!(u.int_in_range(1..=3)?),
        };
        made.insert(name.clone(), key);
    }
    if depth == 0 || u.is_empty() {
        return Ok(made);
    }
    let known: Vec<(&String, &Arc<Schema>)> = schema.properties.iter().collect();
    let liked: Vec<_> = known
        .iter()
        .copied()
        .filter(|(name, _)| FAVOURITES.contains(&name.as_str()))
        .collect();
    for _ in 0..u.int_in_range(0..=4)? {
        let from = if !liked.is_empty() && u.int_in_range(0..=2)? > 0 {
            &liked
        } else {
            &known
        };
        if from.is_empty() || u.ratio(1, 24)? {
            let name = word(u)?;
            let value = match &schema.additional {
                Some(values) => of(u, values, depth - 1)?,
                None => any(u, depth.min(3))?,
            };
            made.insert(name, value);
            continue;
        }
        let (name, field) = *u.choose(from)?;
        if must.contains(name) {
            continue;
        }
        let value = of(u, field, depth - 1)?;
        made.insert(name.clone(), value);
    }
    Ok(made)
}

/// Changes a few places of a value: other scalars, entries that go, come, or are there twice.
pub fn tweak(u: &mut Unstructured<'_>, value: &mut Value) -> Result<()> {
    for _ in 0..u.int_in_range(0..=3)? {
        tweak_once(u, value)?;
    }
    Ok(())
}

fn tweak_once(u: &mut Unstructured<'_>, value: &mut Value) -> Result<()> {
    let stop = u.ratio(1, 4)?;
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            let names: Vec<String> = fields.keys().cloned().collect();
            let name = u.choose(&names)?;
            if !stop {
                return fields.get_mut(name).map_or(Ok(()), |value| tweak_once(u, value));
            }
            match u.int_in_range(0..=3)? {
                0 => drop(fields.remove(name)),
                1 => drop(fields.insert(name.clone(), Value::Null)),
                2 => drop(fields.insert(word(u)?, any(u, 2)?)),
                _ => drop(fields.insert(name.clone(), any(u, 2)?)),
            }
        }
        Value::Array(items) if !items.is_empty() => {
            let at = u.choose_index(items.len())?;
            if !stop {
                return tweak_once(u, &mut items[at]);
            }
            match u.int_in_range(0..=3)? {
                0 => drop(items.remove(at)),
                1 => items.reverse(),
                2 => items.push(items[at].clone()),
                _ => items.insert(at, any(u, 2)?),
            }
        }
        other => *other = any(u, 2)?,
    }
    Ok(())
}

/// The paths of a value's parts, as JSON patch writes them; at most so many.
pub fn pointers(value: &Value, most: usize) -> Vec<String> {
    let mut found = vec![String::new()];
    let mut at = 0;
    while at < found.len() && found.len() < most {
        let here = found[at].clone();
        at += 1;
        match value.pointer(&here) {
            Some(Value::Object(fields)) => {
                let steps = fields
                    .keys()
                    .map(|name| name.replace('~', "~0").replace('/', "~1"));
                found.extend(steps.map(|step| format!("{here}/{step}")));
            }
            Some(Value::Array(items)) => found.extend((0..items.len()).map(|at| format!("{here}/{at}"))),
            _ => {}
        }
    }
    found
}
