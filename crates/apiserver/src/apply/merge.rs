//! Two values made one, and fields taken out of a value.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::{
    element::Element,
    set::FieldSet,
    shape::{Form, Shape, entries, items},
};

/// The value after an apply: all fields of `live` and `applied`; for a field of both, the applied value.
/// O(size of both, by its logarithm).
#[must_use]
pub(super) fn merge(shape: &Shape, live: &Value, applied: &Value) -> Value {
    both(shape, Some(live), Some(applied)).unwrap_or(Value::Null)
}

/// At least one of the two is there. `None`: nothing is left.
fn both(shape: &Shape, live: Option<&Value>, applied: Option<&Value>) -> Option<Value> {
    let (Some(old), Some(new)) = (live, applied) else {
        return applied.or(live).cloned();
    };
    let form = shape.form(new);
    // Null takes the form of the other side.
    if !form.same(&shape.form(old)) && !new.is_null() && !old.is_null() {
        return Some(new.clone());
    }
    match form {
        Form::Map if !(entries(live).is_empty() && entries(applied).is_empty()) => {
            let (old, new) = (entries(live), entries(applied));
            let mut merged = Map::new();
            for (name, value) in old {
                let value = match shape.field(name) {
                    Some((inner, _)) => both(&inner, Some(value), new.get(name)),
                    None => Some(value.clone()),
                };
                merged.extend(value.map(|value| (name.clone(), value)));
            }
            let added = new.iter().filter(|(name, _)| !old.contains_key(*name));
            merged.extend(added.map(|(name, value)| (name.clone(), value.clone())));
            Some(Value::Object(merged))
        }
        Form::List { items: inner, keys } if !(items(live).is_empty() && items(applied).is_empty()) => {
            Some(Value::Array(lists(&inner, &keys, items(live), items(applied))))
        }
        _ => Some(new.clone()),
    }
}

/// Items in the order of `live`, as far as the order of `applied` lets them; new ones where `applied` has them.
fn lists(shape: &Shape, keys: &[String], live: &[Value], applied: &[Value]) -> Vec<Value> {
    let steps = |items: &[Value]| -> Vec<Option<Element>> {
        items.iter().map(|item| shape.element(keys, item).ok()).collect()
    };
    let (old_steps, new_steps) = (steps(live), steps(applied));
    // Items that are there twice are not merged with anything.
    let mut old_of: BTreeMap<&Element, Option<&Value>> = BTreeMap::new();
    for (step, item) in old_steps.iter().zip(live) {
        if let Some(step) = step {
            old_of
                .entry(step)
                .and_modify(|item| *item = None)
                .or_insert(Some(item));
        }
    }
    let new_of: BTreeSet<&Element> = new_steps.iter().flatten().collect();
    let mut shared = new_steps
        .iter()
        .flatten()
        .filter(|step| old_of.contains_key(step));
    let mut next_shared = shared.next();
    let mut done: BTreeSet<&Element> = BTreeSet::new();
    let mut merged = Vec::with_capacity(live.len().max(applied.len()));
    let (mut left, mut right) = (0, 0);
    while left < live.len() || right < applied.len() {
        let new = new_steps.get(right).and_then(Option::as_ref);
        let mut meet = false;
        if left < live.len() {
            let Some(step) = old_steps[left].as_ref().filter(|step| new_of.contains(step)) else {
                merged.push(live[left].clone());
                left += 1;
                continue;
            };
            if right < applied.len() {
                meet = Some(step) == new;
                if !meet && next_shared.is_some_and(|next| next != step) {
                    // It comes later, where the applied order has it.
                    left += 1;
                    continue;
                }
            }
            if meet || done.contains(step) {
                left += 1;
            }
        }
        let Some(item) = applied.get(right) else {
            continue;
        };
        let old = new.and_then(|step| old_of.get(step).copied().flatten());
        merged.extend(both(shape, old, Some(item)));
        done.extend(new);
        right += 1;
        if meet || new.is_some() && next_shared == new {
            next_shared = shared.next();
        }
    }
    merged
}

/// The value without the fields in `gone`; a map or list of which nothing is left becomes null, as does an atomic one
/// with something to take out. O(value, by the logarithm of `gone`).
#[must_use]
pub(super) fn without(shape: &Shape, value: &Value, gone: &FieldSet) -> Value {
    match (shape.form(value), value) {
        (Form::Map, Value::Object(map)) if !map.is_empty() => {
            let mut left = Map::new();
            for (name, value) in map {
                let element = Element::field(name);
                if gone.has(&element) {
                    continue;
                }
                let value = match (gone.below(&element), shape.field(name)) {
                    (Some(gone), Some((inner, _))) => without(&inner, value, gone),
                    _ => value.clone(),
                };
                left.insert(name.clone(), value);
            }
            match left.is_empty() {
                true => Value::Null,
                false => Value::Object(left),
            }
        }
        (Form::List { items: inner, keys }, Value::Array(list)) if !list.is_empty() => {
            let mut left = Vec::with_capacity(list.len());
            for item in list {
                let element = inner.element(&keys, item).ok();
                match element
                    .as_ref()
                    .map(|element| (gone.has(element), gone.below(element)))
                {
                    Some((true, _)) => {}
                    Some((false, Some(gone))) => left.push(without(&inner, item, gone)),
                    _ => left.push(item.clone()),
                }
            }
            match left.is_empty() {
                true => Value::Null,
                false => Value::Array(left),
            }
        }
        (Form::AtomicMap, Value::Object(map)) if !map.is_empty() => Value::Null,
        (Form::AtomicList, Value::Array(list)) if !list.is_empty() => Value::Null,
        _ => value.clone(),
    }
}
