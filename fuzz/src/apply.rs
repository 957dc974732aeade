//! Server-side apply and updates by several managers: who owns what, and that nothing of others is lost.

use std::{
    collections::BTreeSet,
    sync::{Arc, LazyLock},
};

use arbitrary::{Result, Unstructured};
use entourage_apiserver::{
    Object,
    apply::{
        self, Manager,
        compare::{compare, fields},
        entries::{self, Managed, Operation, Owner},
        shape::{Form, Shape},
    },
    decode::{self, FieldValidation},
    meta,
    resource::Resource,
    status::Status,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Case, make, patch};

/// Requests of several managers to one object, one after another.
#[derive(Debug, Serialize, Deserialize)]
pub struct Apply {
    /// Plural of the kind; `things` are custom resources.
    pub kind: String,
    /// The requests.
    pub steps: Vec<Step>,
}

/// A request of a manager.
#[derive(Debug, Serialize, Deserialize)]
pub struct Step {
    /// The name of the manager.
    pub manager: String,
    /// The kind of write.
    pub how: WriteMode,
    /// The body; type and name are filled in.
    pub object: Value,
}

/// The kinds of write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WriteMode {
    /// PUT.
    Update,
    /// Apply that gives way to others.
    Apply,
    /// Apply that takes from others.
    Force,
}

/// A custom resource with every sort of list and map.
static THINGS: LazyLock<Option<Arc<Resource>>> = LazyLock::new(|| {
    let leaf = json!({"type": "object", "properties": {"name": {"type": "string"}, "n": {"type": "integer", "default": 1},
        "p": {"type": "string", "nullable": true}}});
    let list =
        |kind: &str| json!({"type": "array", "x-kubernetes-list-type": kind, "items": {"type": "string"}});
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "set": list("set"), "atomic": list("atomic"),
        "map": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name", "n"], "items": leaf},
        "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": {"type": "string"}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        "any": {"x-kubernetes-preserve-unknown-fields": true},
        "either": {"x-kubernetes-int-or-string": true},
        "labels": {"type": "object", "additionalProperties": leaf},
        "template": {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true},
        "size": {"type": "number", "default": 2, "nullable": true}}}}});
    super::schema::resource(&schema)
});

/// The resource of a plural, built in or not.
fn resource(kind: &str) -> Option<Arc<Resource>> {
    match kind {
        "things" => THINGS.clone(),
        kind => patch::resource(kind),
    }
}

impl Case for Apply {
    fn make(u: &mut Unstructured<'_>) -> Result<Self> {
        let kind = match u.int_in_range(0..=2)? {
            0 => "things",
            _ => u.choose(patch::KINDS)?.2,
        };
        let resource = resource(kind).ok_or(arbitrary::Error::IncorrectFormat)?;
        let mut steps: Vec<Step> = Vec::new();
        for _ in 0..u.int_in_range(1..=4)? {
            let mut object = match steps.last() {
                Some(last) if u.arbitrary()? => last.object.clone(),
                _ => make::of(u, resource.schema.get(), 9)?,
            };
            if u.arbitrary()? {
                make::tweak(u, &mut object)?;
            }
            steps.push(Step {
                manager: make::one_of(u, &["a", "b", "kubectl", ""])?,
                how: *u.choose(&[
                    WriteMode::Update,
                    WriteMode::Apply,
                    WriteMode::Apply,
                    WriteMode::Force,
                ])?,
                object,
            });
        }
        Ok(Self {
            kind: kind.to_owned(),
            steps,
        })
    }

    fn check(&self) {
        let Some(resource) = resource(&self.kind) else {
            return;
        };
        let mut live: Option<Object> = None;
        for step in self.steps.iter().take(6) {
            let Value::Object(body) = &step.object else {
                continue;
            };
            let mut body = body.clone();
            body.insert("apiVersion".to_owned(), resource.api_version().into());
            body.insert("kind".to_owned(), resource.kind.clone().into());
            if let Value::Object(metadata) = body.entry("metadata").or_insert_with(|| json!({})) {
                metadata.insert("name".to_owned(), "x".into());
                if resource.namespaced {
                    metadata.insert("namespace".to_owned(), "n".into());
                }
            }
            if !has_keys(
                &Shape::object(resource.schema.get()),
                &Value::Object(body.clone()),
            ) {
                continue;
            }
            let next = match step.how {
                WriteMode::Update => updated(&resource, live.as_ref(), body, step),
                WriteMode::Apply | WriteMode::Force => applied(&resource, live.as_ref(), &body, step),
            };
            live = next.or(live);
        }
    }
}

/// True if the items of all lists have their keys, and no two the same. Every kind's rules require keys; without them, items
/// cannot be distinguished, and decoding makes empty ones of absent ones. Items with the same keys are one field to an apply.
fn has_keys(shape: &Shape, value: &Value) -> bool {
    match (shape.form(value), value) {
        (Form::List { items, keys }, Value::Array(list)) => {
            let mut seen = BTreeSet::new();
            list.iter().all(|item| {
                let key = |key: &String| match item.get(key) {
                    Some(Value::String(text)) => !text.is_empty(),
                    Some(Value::Number(number)) => number.as_i64().is_some_and(|number| number > 0),
                    Some(_) => false,
                    None => items.field(key).is_some_and(|(field, _)| has_default(&field)),
                };
                let is_new = items
                    .element(&keys, item)
                    .is_ok_and(|element| seen.insert(element));
                is_new && keys.iter().all(key) && has_keys(&items, item)
            })
        }
        (Form::Map, Value::Object(map)) => map
            .iter()
            .all(|(name, value)| shape.field(name).is_none_or(|(field, _)| has_keys(&field, value))),
        _ => true,
    }
}

fn has_default(field: &Shape) -> bool {
    matches!(field, Shape::Node { schema, .. } if schema.default.is_some())
}

fn manager(step: &Step) -> Manager<'_> {
    Manager {
        name: &step.manager,
        subresource: "",
        now: "2026-01-01T00:00:00Z",
    }
}

/// A PUT as the registry does it.
fn updated(resource: &Resource, live: Option<&Object>, body: Object, step: &Step) -> Option<Object> {
    let decoded = decode::value(resource, Value::Object(body), FieldValidation::Ignore).ok()?;
    let mut new = decoded.object;
    resource.rules.defaults(&mut new);
    apply::track(resource, live, &mut new, manager(step));
    if !is_valid(resource, &new) {
        return None;
    }
    let managed = managed(&new);
    let before = new.clone();
    apply::track(resource, Some(&before), &mut new, manager(step));
    assert_eq!(self::managed(&new), managed, "an update that changes nothing");
    Some(new)
}

/// An apply as the registry does it.
fn applied(resource: &Resource, live: Option<&Object>, body: &Object, step: &Step) -> Option<Object> {
    let body = Value::Object(body.clone()).to_string();
    let applied = decode::applied(resource, body.as_bytes(), FieldValidation::Ignore)
        .ok()?
        .object;
    let apply =
        |live: Option<&Object>, force: bool| apply::apply(resource, live, &applied, manager(step), force);
    let force = step.how == WriteMode::Force;
    let after = match apply(live, force) {
        Ok(after) => after,
        Err(status) => {
            assert!(matches!(status.code, 400 | 409 | 422 | 500), "{status:?}");
            if status.code == 409 {
                assert!(!force, "a conflict in spite of force");
                let forced = apply(live, true).err().map(|status| status.code);
                assert_ne!(forced, Some(409), "a conflict in spite of force");
            }
            return None;
        }
    };
    managed(&after);
    if patch::has_null(&Value::Object(applied.clone())) {
        // What null means depends on what is there: no law but that it is no panic.
        return None;
    }
    if let Some(live) = live.filter(|_| !force && step.manager != "kubectl") {
        others_keep_theirs(resource, live, &after, step);
    }
    let mut stored = after;
    resource.rules.defaults(&mut stored);
    if !is_valid(resource, &stored) {
        return None;
    }
    if managed(&stored).is_empty() {
        // Whoever applies next notes that all of it was there before.
        return Some(stored);
    }
    let repeat = |object: &Object| {
        apply(Some(object), force).map(|mut again| {
            resource.rules.defaults(&mut again);
            again
        })
    };
    // A map that an apply empties goes, even if the body has it: it comes with the next one, when it is nobody else's.
    let shape = Shape::object(resource.schema.get());
    let takes_out = live.is_some_and(|live| !compare(&shape, live, &stored).removed.is_empty());
    let settled = match takes_out.then(|| repeat(&stored)) {
        None => stored.clone(),
        Some(Ok(settled)) => settled,
        Some(Err(status)) => {
            let gone = status.code == 409 && all_gone(resource, &stored, &status);
            assert!(gone, "applied again: {status:?}");
            return Some(stored);
        }
    };
    match repeat(&settled) {
        Ok(again) => assert_eq!(Value::Object(again), Value::Object(settled), "applied again"),
        Err(status) => panic!("applied again: {status:?}"),
    }
    Some(stored)
}

/// True if none of the fields of a conflict exists.
fn all_gone(resource: &Resource, object: &Object, conflict: &Status) -> bool {
    let there = fields(
        &Shape::object(resource.schema.get()),
        &Value::Object(object.clone()),
    )
    .paths();
    let causes = conflict
        .details
        .as_ref()
        .and_then(|details| details.get("causes")?.as_array());
    causes.is_some_and(|causes| {
        causes
            .iter()
            .filter_map(|cause| cause["field"].as_str())
            .all(|field| !there.iter().any(|path| path == field || is_below(path, field)))
    })
}

/// True if the registry would store the object, as far as merging depends on it. Validation of built-in kinds is left out:
/// hardly any object made of choices passes it.
fn is_valid(resource: &Resource, object: &Object) -> bool {
    meta::validate(resource, object).is_empty()
        && (resource.custom.is_none() || resource.rules.validate(object).is_empty())
}

/// Reads managedFields, and checks that they come back as they are.
fn managed(object: &Object) -> Managed {
    let value = object
        .get("metadata")
        .and_then(|metadata| metadata.get("managedFields"));
    let Some(managed) = entries::parse(value) else {
        panic!("managedFields cannot be read: {value:?}")
    };
    assert_eq!(
        entries::to_value(&managed).as_ref(),
        value,
        "managedFields are written as they were read"
    );
    managed
}

/// Checks that the fields of others are unchanged after an apply that did not take them, and that they still own them.
fn others_keep_theirs(resource: &Resource, live: &Object, after: &Object, step: &Step) {
    let (before, now) = (managed(live), managed(after));
    let shape = Shape::object(resource.schema.get());
    let changes = compare(&shape, live, after);
    let filled = fields(&shape, &Value::Object(live.clone())).paths();
    let replaced = changes.modified.paths();
    let is_me = |owner: &Owner| owner.operation == Operation::Apply && owner.manager == step.manager;
    let mine: Vec<String> = before
        .iter()
        .filter(|(owner, _)| is_me(owner))
        .flat_map(|(_, owned)| owned.fields.paths())
        .collect();
    for (owner, owned) in before.iter().filter(|(owner, _)| !is_me(owner)) {
        for changed in [&changes.modified, &changes.removed] {
            let mut lost = owned.fields.intersection(changed).paths();
            // A map goes with the last of what was in it, whoever owns the map; and an item goes with all that is in it.
            lost.retain(|path| !filled.iter().any(|inner| is_below(inner, path)));
            lost.retain(|path| !mine.iter().any(|outer| is_below(path, outer)));
            // What was a map and is a scalar now is another value: nobody owned the field as a whole.
            lost.retain(|path| !replaced.iter().any(|outer| is_below(path, outer)));
            assert!(lost.is_empty(), "{owner:?} lost {lost:?}");
        }
        let left = now
            .get(owner)
            .map(|owned| owned.fields.clone())
            .unwrap_or_default();
        let taken = owned.fields.difference(&changes.removed).difference(&left);
        assert!(taken.is_empty(), "{owner:?} no longer owns {:?}", taken.paths());
    }
}

fn is_below(path: &str, above: &str) -> bool {
    path.strip_prefix(above)
        .is_some_and(|rest| rest.starts_with(['.', '[']))
}
