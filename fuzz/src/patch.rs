//! JSON patch, merge patch and strategic merge, and the decoding of what they come to.

use std::{
    collections::BTreeSet,
    sync::{Arc, LazyLock},
};

use arbitrary::{Result, Unstructured};
use entourage_apiserver::{
    decode::{self, FieldValidation},
    kinds,
    patch::{PatchKind, patched},
    resource::{Kinds, Resource},
    schema::{Schema, builtin},
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{Case, make};

/// Built-in kinds with lists of all sorts.
pub const KINDS: &[(&str, &str, &str)] = &[
    ("apps", "v1", "deployments"),
    ("", "v1", "configmaps"),
    ("", "v1", "pods"),
    ("", "v1", "services"),
    ("", "v1", "nodes"),
    ("", "v1", "secrets"),
    ("", "v1", "serviceaccounts"),
    ("batch", "v1", "jobs"),
    ("networking.k8s.io", "v1", "ingresses"),
    ("rbac.authorization.k8s.io", "v1", "clusterroles"),
    ("autoscaling", "v2", "horizontalpodautoscalers"),
    ("events.k8s.io", "v1", "events"),
    ("apiextensions.k8s.io", "v1", "customresourcedefinitions"),
    (
        "admissionregistration.k8s.io",
        "v1",
        "validatingadmissionpolicies",
    ),
];

static BUILTIN: LazyLock<Kinds> = LazyLock::new(kinds::builtin);

/// The built-in resource of a plural.
pub fn resource(plural: &str) -> Option<Arc<Resource>> {
    let (group, version, plural) = KINDS.iter().find(|(.., known)| *known == plural)?;
    BUILTIN.find(group, version, plural).cloned()
}

/// A patch of an object of a built-in kind.
#[derive(Debug, Serialize, Deserialize)]
pub struct Patch {
    /// Plural of the kind.
    pub kind: String,
    /// The form of the patch.
    pub form: Form,
    /// The object that is patched.
    pub target: Value,
    /// The body.
    pub patch: Value,
}

/// The kinds of patch.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum Form {
    /// RFC 6902.
    Json,
    /// RFC 7396.
    Merge,
    /// Lists by keys.
    Strategic,
}

impl Case for Patch {
    fn make(u: &mut Unstructured<'_>) -> Result<Self> {
        let (.., kind) = u.choose(KINDS)?;
        let resource = resource(kind).ok_or(arbitrary::Error::IncorrectFormat)?;
        let schema = resource.schema.get();
        let form = *u.choose(&[Form::Json, Form::Merge, Form::Strategic, Form::Strategic])?;
        let target = match make::of(u, schema, 9)? {
            target @ Value::Object(_) => target,
            _ => json!({}),
        };
        let patch = match form {
            Form::Json => operations(u, &target)?,
            Form::Merge | Form::Strategic => {
                let mut patch = if u.arbitrary()? {
                    target.clone()
                } else {
                    make::of(u, schema, 9)?
                };
                make::tweak(u, &mut patch)?;
                if matches!(form, Form::Strategic) {
                    direct(u, &mut patch)?;
                }
                patch
            }
        };
        Ok(Self {
            kind: (*kind).to_owned(),
            form,
            target,
            patch,
        })
    }

    fn check(&self) {
        let Some(resource) = resource(&self.kind) else {
            return;
        };
        if !self.target.is_object() {
            return;
        }
        let (kind, nothing) = match self.form {
            Form::Json => (PatchKind::Json, json!([])),
            Form::Merge => (PatchKind::Merge, json!({})),
            Form::Strategic => (PatchKind::Strategic, json!({})),
        };
        let with = |target: &Value, patch: &Value| {
            patched(
                kind,
                resource.schema.get(),
                target.clone(),
                patch.to_string().as_bytes(),
            )
        };
        assert_eq!(
            with(&self.target, &nothing).ok().as_ref(),
            Some(&self.target),
            "nothing to do"
        );
        let result = with(&self.target, &self.patch);
        match &result {
            Ok(after) => decoded(&resource, after, kind, &self.patch),
            Err(status) => assert!(matches!(status.code, 400 | 413 | 422 | 500), "{status:?}"),
        }
        match self.form {
            Form::Json => step_by_step(&self.target, &self.patch, result.ok(), &with),
            Form::Merge => merged(&self.target, &self.patch, result.ok(), &with),
            Form::Strategic => {
                let same = with(&self.target, &self.target);
                assert!(
                    same.is_ok() || has_directives(&self.target) || mixed(&self.target),
                    "{same:?}"
                );
                let is_usual =
                    |value: &Value| !has_directives(value) && is_keyed(resource.schema.get(), value);
                if let Ok(after) = result
                    && is_usual(&self.target)
                    && is_usual(&self.patch)
                    && !null_in_list(&self.patch, false)
                {
                    assert_eq!(
                        with(&after, &self.patch).ok(),
                        Some(after),
                        "the same patch again"
                    );
                }
            }
        }
    }
}

/// Checks that the result of a patch is decoded or refused, and that decoding it again changes nothing.
fn decoded(resource: &Resource, after: &Value, kind: PatchKind, patch: &Value) {
    let body = patch.to_string();
    for validation in [FieldValidation::Strict, FieldValidation::Warn] {
        let Ok(once) = decode::patched(
            resource,
            after.clone(),
            (kind, body.as_bytes()),
            validation,
            &|| after.clone(),
        ) else {
            continue;
        };
        let again = decode::value(
            resource,
            Value::Object(once.object.clone()),
            FieldValidation::Strict,
        );
        assert_eq!(
            again.ok().map(|decoded| decoded.object),
            Some(once.object),
            "decoded again"
        );
    }
}

type With<'a> = &'a dyn Fn(&Value, &Value) -> entourage_apiserver::status::Result<Value>;

/// The operations of a JSON patch one after another come to what they come to together, and then hold.
fn step_by_step(target: &Value, patch: &Value, together: Option<Value>, with: With<'_>) {
    let Value::Array(operations) = patch else { return };
    let mut one = Some(target.clone());
    for operation in operations {
        one = one.and_then(|target| with(&target, &json!([operation])).ok());
    }
    assert_eq!(one, together, "one by one");
    let Some(after) = together else { return };
    let test = json!([{"op": "test", "path": "", "value": after}]);
    assert_eq!(
        with(&after, &test).ok().as_ref(),
        Some(&after),
        "a test of what is there"
    );
    let there_and_back = json!([{"op": "add", "path": "/new", "value": 1}, {"op": "remove", "path": "/new"}]);
    if after.is_object() && after.get("new").is_none() {
        assert_eq!(
            with(&after, &there_and_back).ok().as_ref(),
            Some(&after),
            "there and back"
        );
    }
}

/// The laws of RFC 7396.
fn merged(target: &Value, patch: &Value, result: Option<Value>, with: With<'_>) {
    assert_eq!(
        result.is_some(),
        patch.is_object(),
        "only maps are merge patches here"
    );
    let Some(after) = result else { return };
    // Nulls in lists go or stay by what was there before, a deviation of Kubernetes that the RFC does not have.
    if !null_in_list(patch, false) {
        assert_eq!(after, rfc7396(target.clone(), patch), "the RFC's own algorithm");
        assert_eq!(
            with(&after, patch).ok().as_ref(),
            Some(&after),
            "the same patch again"
        );
    }
    if !has_null(&after) {
        let difference = difference(target, &after);
        assert_eq!(
            with(target, &difference).ok(),
            Some(after),
            "a difference leads there"
        );
    }
}

fn rfc7396(target: Value, patch: &Value) -> Value {
    let Value::Object(patch) = patch else {
        return patch.clone();
    };
    let mut target = match target {
        Value::Object(target) => target,
        _ => Map::new(),
    };
    for (name, value) in patch {
        let here = target.remove(name);
        if !value.is_null() {
            target.insert(name.clone(), rfc7396(here.unwrap_or(Value::Null), value));
        }
    }
    Value::Object(target)
}

/// A merge patch from one value to another without nulls.
fn difference(from: &Value, to: &Value) -> Value {
    let (Value::Object(old), Value::Object(new)) = (from, to) else {
        return to.clone();
    };
    let gone = old
        .keys()
        .filter(|name| !new.contains_key(*name))
        .map(|name| (name.clone(), Value::Null));
    let changed = new.iter().filter(|(name, value)| old.get(*name) != Some(value));
    let changed = changed.map(|(name, value)| match old.get(name) {
        Some(here) => (name.clone(), difference(here, value)),
        None => (name.clone(), value.clone()),
    });
    Value::Object(gone.chain(changed).collect())
}

/// True if there is a null.
pub fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.iter().any(has_null),
        Value::Object(fields) => fields.values().any(has_null),
        _ => false,
    }
}

/// True if there is a null in a list, at any depth.
pub fn null_in_list(value: &Value, inside: bool) -> bool {
    match value {
        Value::Null => inside,
        Value::Array(items) => items.iter().any(|item| null_in_list(item, true)),
        Value::Object(fields) => fields.values().any(|value| null_in_list(value, inside)),
        _ => false,
    }
}

fn has_directives(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(has_directives),
        Value::Object(fields) => fields
            .iter()
            .any(|(name, value)| name.starts_with('$') || has_directives(value)),
        _ => false,
    }
}

/// True if the items of each list differ in the list's merge key.
fn is_keyed(schema: &Arc<Schema>, value: &Value) -> bool {
    let schema = builtin::resolve(schema);
    match value {
        Value::Array(items) => {
            let keys: Vec<&Value> = match schema.patch_merge_key.as_deref() {
                None => return true,
                Some("") => items.iter().collect(),
                Some(key) => items.iter().filter_map(|item| item.get(key)).collect(),
            };
            let seen: BTreeSet<String> = keys.iter().map(|key| key.to_string()).collect();
            let alike = |key: &&&Value| std::mem::discriminant(**key) == std::mem::discriminant(keys[0]);
            seen.len() == items.len()
                && keys
                    .iter()
                    .all(|key| alike(&key) && !key.is_object() && !key.is_array())
                && items
                    .iter()
                    .all(|item| schema.items.as_ref().is_none_or(|inner| is_keyed(inner, item)))
        }
        Value::Object(fields) => fields
            .iter()
            .all(|(name, value)| schema.field(name).is_none_or(|field| is_keyed(field, value))),
        _ => true,
    }
}

/// True if a list has items of several types, or items that cannot be merged.
fn mixed(value: &Value) -> bool {
    match value {
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => fields.values().any(mixed),
        _ => false,
    }
}

/// Operations at places of the target and at others.
fn operations(u: &mut Unstructured<'_>, target: &Value) -> Result<Value> {
    let places = make::pointers(target, 60);
    let place = |u: &mut Unstructured<'_>| -> Result<String> {
        let mut place = u.choose(&places)?.clone();
        match u.int_in_range(0..=7)? {
            0 => place.push_str("/-"),
            1 => place.push_str(&format!("/{}", make::word(u)?)),
            2 => place = make::text(u, 12)?,
            3 => place.push_str(&format!("/{}", u.int_in_range(-2..=3)?)),
            _ => {}
        }
        Ok(place)
    };
    let mut operations = Vec::new();
    for _ in 0..u.int_in_range(0..=5)? {
        let op = make::one_of(u, &["add", "remove", "replace", "move", "copy", "test", "x"])?;
        let path = place(u)?;
        let value = match target.pointer(&path) {
            Some(value) if op == "test" && u.arbitrary()? => value.clone(),
            _ => make::any(u, 3)?,
        };
        let mut operation = json!({"op": op, "path": path, "value": value, "from": place(u)?});
        if u.ratio(1, 16)? {
            make::tweak(u, &mut operation)?;
        }
        operations.push(operation);
    }
    Ok(Value::Array(operations))
}

/// Puts directives of strategic merge into a patch.
fn direct(u: &mut Unstructured<'_>, value: &mut Value) -> Result<()> {
    if u.is_empty() {
        return Ok(());
    }
    match value {
        Value::Object(fields) => {
            for value in fields.values_mut() {
                direct(u, value)?;
            }
            let names: Vec<String> = fields.keys().cloned().collect();
            match u.int_in_range(0..=15)? {
                0 => drop(fields.insert(
                    "$patch".to_owned(),
                    make::one_of(u, &["delete", "replace", "merge", "x"])?.into(),
                )),
                1 => drop(fields.insert("$retainKeys".to_owned(), json!(names))),
                2 | 3 if !names.is_empty() => {
                    let name = u.choose(&names)?;
                    let mut order = fields.get(name).cloned().unwrap_or_default();
                    make::tweak(u, &mut order)?;
                    let directive = make::one_of(u, &["$setElementOrder/", "$deleteFromPrimitiveList/"])?;
                    fields.insert(format!("{directive}{name}"), order);
                }
                _ => {}
            }
        }
        Value::Array(items) => {
            for item in items {
                direct(u, item)?;
            }
        }
        _ => {}
    }
    Ok(())
}
