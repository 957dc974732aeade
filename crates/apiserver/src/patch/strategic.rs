//! Strategic merge: lists merge by the keys that the kind's type declares, and directives express the rest.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::{
    json::printed,
    schema::{Schema, Type},
    status::{Result, Status},
};

/// `replace`, `delete` or `merge` for the map, or the list, in which it is.
const DIRECTIVE: &str = "$patch";

/// The only fields that may stay.
const RETAIN_KEYS: &str = "$retainKeys";

/// Items of a list of scalars that go; the list's name follows.
const DELETE_FROM: &str = "$deleteFromPrimitiveList/";

/// The order of a list's items; the list's name follows.
const ORDER: &str = "$setElementOrder/";

/// Merges `patch` into `target`. O(both, by the logarithm of the longest list).
pub(super) fn merge(
    schema: Option<&Schema>,
    mut target: Map<String, Value>,
    mut patch: Map<String, Value>,
) -> Result<Map<String, Value>> {
    if let Some(directive) = patch.remove(DIRECTIVE) {
        return match directive.as_str() {
            Some("replace") => Ok(patch),
            Some("delete") => Ok(Map::new()),
            _ => {
                let text = printed(&directive);
                patch.insert(DIRECTIVE.to_owned(), directive);
                Err(unknown_directive(&text, patch))
            }
        };
    }
    retain(&mut target, &mut patch)?;
    order_lists(schema, &mut target, &mut patch)?;
    for (name, value) in patch {
        let (name, deletes) = match name.strip_prefix(DELETE_FROM) {
            Some(list) => (list.to_owned(), true),
            None => (name, false),
        };
        if value.is_null() {
            target.remove(&name);
            continue;
        }
        let field = schema
            .and_then(|schema| schema.field(&name))
            .map(|field| &**field);
        let merged = match (target.remove(&name), value) {
            (Some(Value::Object(here)), Value::Object(patch))
                if !deletes && field.is_none_or(|field| !field.replaced) =>
            {
                Value::Object(merge(field, here, patch)?)
            }
            (Some(Value::Array(here)), Value::Array(patch)) => {
                Value::Array(merge_lists(field, here, patch, deletes)?)
            }
            // There is nothing to delete from.
            (None, _) if deletes => continue,
            (Some(here), _) if deletes => here,
            (_, mut value) => {
                super::without_nulls(&mut value);
                if !plain(&mut value) {
                    continue;
                }
                value
            }
        };
        target.insert(name, merged);
    }
    Ok(target)
}

/// Takes the directives out of a value that is new; `false`: all of it is for something that is not there.
fn plain(value: &mut Value) -> bool {
    match value {
        Value::Object(map) => {
            if map.contains_key(DIRECTIVE) {
                return false;
            }
            map.retain(|name, value| {
                name != RETAIN_KEYS
                    && !name.starts_with(DELETE_FROM)
                    && !name.starts_with(ORDER)
                    && plain(value)
            });
        }
        Value::Array(items) => items.retain_mut(plain),
        _ => {}
    }
    true
}

/// Follows `$retainKeys`: other fields go, and may not be in the patch.
fn retain(target: &mut Map<String, Value>, patch: &mut Map<String, Value>) -> Result<()> {
    let Some(keys) = patch.remove(RETAIN_KEYS) else {
        return Ok(());
    };
    let broken = || Status::bad_request("invalid patch format of retainKeys");
    let Value::Array(keys) = keys else {
        return Err(broken());
    };
    let keys: BTreeSet<&str> = keys.iter().filter_map(Value::as_str).collect();
    let strange = patch.iter().any(|(name, value)| {
        !value.is_null()
            && !name.starts_with(DELETE_FROM)
            && !name.starts_with(ORDER)
            && !keys.contains(name.as_str())
    });
    if strange {
        return Err(broken());
    }
    target.retain(|name, _| keys.contains(name.as_str()));
    Ok(())
}

/// Follows `$setElementOrder`: merges the lists that it is about, and takes them out of the patch.
fn order_lists(
    schema: Option<&Schema>,
    target: &mut Map<String, Value>,
    patch: &mut Map<String, Value>,
) -> Result<()> {
    let directives: Vec<String> = patch
        .keys()
        .filter(|name| name.starts_with(ORDER))
        .cloned()
        .collect();
    for directive in directives {
        let name = directive[ORDER.len()..].to_owned();
        let order = list(patch.remove(&directive))?.unwrap_or_default();
        let here = list(target.get(&name).cloned())?;
        let new = list(patch.get(&name).cloned())?;
        let field = schema
            .and_then(|schema| schema.field(&name))
            .map(|field| &**field);
        let key = field
            .and_then(|field| field.patch_merge_key.as_deref())
            .unwrap_or_default();
        follows(new.as_deref().unwrap_or_default(), &order, key)?;
        let before = here.clone().unwrap_or_default();
        let merged = match (here, new) {
            (None, None) => continue,
            (Some(here), None) => here,
            (None, Some(mut new)) => {
                new.retain_mut(plain);
                new
            }
            (Some(here), Some(new)) => merge_lists(field, here, new, false)?,
        };
        target.insert(name.clone(), Value::Array(ordered(merged, &order, &before, key)?));
        patch.remove(&name);
    }
    Ok(())
}

fn list(value: Option<Value>) -> Result<Option<Vec<Value>>> {
    match value {
        None => Ok(None),
        Some(Value::Array(items)) => Ok(Some(items)),
        Some(other) => {
            let found = match other {
                Value::Null => "<nil>",
                Value::Bool(_) => "bool",
                Value::Number(number) if number.is_f64() => "float64",
                Value::Number(_) => "int64",
                Value::String(_) => "string",
                _ => "map[string]interface {}",
            };
            let text = format!("expected a []interface {{}}, but received a {found}");
            Err(Status::unforeseen(text))
        }
    }
}

/// True if the items of the patch are in the order that it sets, each of them.
fn follows(patch: &[Value], order: &[Value], key: &str) -> Result<()> {
    if patch.is_empty() || order.is_empty() {
        return Ok(());
    }
    let mut wanted = order.iter();
    for item in patch.iter().filter(|item| item.get(DIRECTIVE).is_none()) {
        let item_key = key_of(item, key)?;
        let mut found = false;
        for other in wanted.by_ref() {
            if key_of(other, key)? == item_key {
                found = true;
                break;
            }
        }
        if !found {
            let shown = |items: &[Value]| printed(&Value::Array(items.to_vec()));
            return Err(Status::unforeseen(format!(
                "The order in patch list:\n{}\n doesn't match $setElementOrder list:\n{}\n",
                shown(patch),
                shown(order)
            )));
        }
    }
    Ok(())
}

/// Merges two lists by the merge key of their field; without one the patch takes the place.
fn merge_lists(
    schema: Option<&Schema>,
    mut here: Vec<Value>,
    patch: Vec<Value>,
    deletes: bool,
) -> Result<Vec<Value>> {
    let Some(key) = schema.and_then(|schema| schema.patch_merge_key.as_deref()) else {
        return Ok(patch);
    };
    if here.is_empty() && patch.is_empty() {
        return Ok(here);
    }
    let kinds: BTreeSet<Type> = here.iter().chain(&patch).map(kind).collect();
    if kinds.contains(&Type::Array) {
        return Err(rejected());
    }
    if kinds.len() > 1 {
        let shown = printed(&Value::Array(vec![Value::Array(here), Value::Array(patch)]));
        return Err(Status::unforeseen(format!(
            "list element types are not identical: {shown}"
        )));
    }
    if !kinds.contains(&Type::Object) {
        return Ok(scalars(here, &patch, deletes));
    }
    if key.is_empty() {
        return Err(Status::unforeseen(
            "cannot merge lists without merge key for type struct",
        ));
    }
    let item_schema = schema.and_then(|schema| schema.items.as_deref());
    let (mut new, mut replace, mut gone) = (Vec::new(), false, BTreeSet::new());
    for item in patch {
        match item.get(DIRECTIVE) {
            None => new.push(item),
            Some(directive) => match directive.as_str() {
                Some("delete") => {
                    gone.insert(key_of(&item, key)?);
                }
                Some("replace") => replace = true,
                Some("merge") => {
                    return Err(Status::unforeseen(
                        "merging lists cannot yet be specified in the patch",
                    ));
                }
                _ => {
                    let text = printed(directive);
                    let map = item.as_object().cloned().unwrap_or_default();
                    return Err(unknown_directive(&text, map));
                }
            },
        }
    }
    if replace {
        return Ok(new);
    }
    here.retain(|item| key_of(item, key).map_or(true, |key| !gone.contains(&key)));
    let before: Vec<Value> = here.iter().map(|item| only_key(item, key)).collect();
    let order: Vec<Value> = new.iter().map(|item| only_key(item, key)).collect();
    let mut index: BTreeMap<String, usize> = BTreeMap::new();
    for (at, item) in here.iter().enumerate() {
        if let Ok(key) = key_of(item, key) {
            index.entry(key).or_insert(at);
        }
    }
    for mut item in new {
        let item_key = key_of(&item, key)?;
        let Some(at) = index.get(&item_key) else {
            index.insert(item_key, here.len());
            plain(&mut item);
            here.push(item);
            continue;
        };
        if let (Value::Object(old), Value::Object(patch)) = (here[*at].take(), item) {
            here[*at] = Value::Object(merge(item_schema, old, patch)?);
        }
    }
    ordered(here, &order, &before, key)
}

/// Scalars once each: those of the patch first, in its order, as far as the list's order lets them; or without them.
fn scalars(here: Vec<Value>, patch: &[Value], deletes: bool) -> Vec<Value> {
    let text = |value: &Value| value.to_string();
    if deletes {
        let gone: BTreeSet<String> = patch.iter().map(text).collect();
        return here
            .into_iter()
            .filter(|item| !gone.contains(&text(item)))
            .collect();
    }
    let mut seen = BTreeSet::new();
    let both = here
        .iter()
        .chain(patch)
        .filter(|item| seen.insert(text(item)))
        .cloned()
        .collect();
    ordered(both, patch, &here, "").unwrap_or(here)
}

/// The items in `order`; items that are not in it are between them as they were `before`, behind them otherwise.
fn ordered(items: Vec<Value>, order: &[Value], before: &[Value], key: &str) -> Result<Vec<Value>> {
    let index = |list: &[Value]| -> Result<BTreeMap<String, usize>> {
        let mut index = BTreeMap::new();
        for (at, item) in list.iter().enumerate() {
            index.entry(key_of(item, key)?).or_insert(at);
        }
        Ok(index)
    };
    let (order, before) = (index(order)?, index(before)?);
    let (mut set, mut others) = (Vec::new(), Vec::new());
    for item in items {
        let key = key_of(&item, key)?;
        let was = before.get(&key).copied();
        match order.get(&key) {
            Some(at) => set.push((*at, was, item)),
            None => others.push((was, item)),
        }
    }
    set.sort_by_key(|(at, _, _)| *at);
    others.sort_by_key(|(was, _)| *was);
    let mut all = Vec::with_capacity(set.len() + others.len());
    let mut others = others.into_iter().peekable();
    for (_, was, item) in set {
        while let Some((_, item)) =
            others.next_if(|(other, _)| matches!((other, was), (Some(other), Some(was)) if *other < was))
        {
            all.push(item);
        }
        all.push(item);
    }
    all.extend(others.map(|(_, item)| item));
    Ok(all)
}

fn kind(value: &Value) -> Type {
    match value {
        Value::Null => Type::Any,
        Value::Bool(_) => Type::Boolean,
        Value::Number(_) => Type::Number,
        Value::String(_) => Type::String,
        Value::Array(_) => Type::Array,
        Value::Object(_) => Type::Object,
    }
}

/// The identity of an item: the value of its merge key, or the scalar itself.
fn key_of(item: &Value, key: &str) -> Result<String> {
    if key.is_empty() {
        return Ok(item.to_string());
    }
    item.get(key).map(Value::to_string).ok_or_else(|| {
        Status::unforeseen(format!(
            "map: {} does not contain declared merge key: {key}",
            printed(item)
        ))
    })
}

fn only_key(item: &Value, key: &str) -> Value {
    let value = item.get(key).cloned();
    Value::Object(value.map(|value| (key.to_owned(), value)).into_iter().collect())
}

fn unknown_directive(directive: &str, patch: Map<String, Value>) -> Box<Status> {
    Status::unforeseen(format!(
        "unknown patch type: {directive} in map: {}",
        printed(&Value::Object(patch))
    ))
}

fn rejected() -> Box<Status> {
    Status::new(
        422,
        "Invalid",
        "the server rejected our request due to an error in our request",
    )
    .with_details(Map::new())
}
