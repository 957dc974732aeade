//! CustomResourceDefinitions themselves: what is filled in, what is refused, and how their deletion begins.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::{
    crd::names,
    kinds::kind_def::{KindDef, METADATA},
    object::{Object, finalizers},
    resource::{Rules, Surroundings},
    schema::declared::{list, object, text},
    status::{FieldError, Result},
};

mod columns;
mod defaulted;
mod errors;
mod openapi;
mod structural;
mod versions;

pub(super) static DEF: KindDef = KindDef {
    short: &["crd", "crds"],
    categories: &["api-extensions"],
    subresources: &["status"],
    rules: Some(|| Arc::new(Crd)),
    ..KindDef::of::<
        k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    >()
};

/// The rules of a CustomResourceDefinition.
#[derive(Debug)]
pub(crate) struct Crd;

impl Rules for Crd {
    fn defaults(&self, crd: &mut Object) {
        let storage = versions::storage(crd);
        if let Some(Value::Object(status)) = crd.get_mut("status")
            && list(status, "storedVersions").next().is_none()
            && let Some(storage) = storage
        {
            status.insert("storedVersions".to_owned(), json!([storage]));
        }
        let Some(Value::Object(spec)) = crd.get_mut("spec") else {
            return;
        };
        if let Value::Object(names) = spec.entry("names").or_insert_with(|| json!({})) {
            let kind = text(names, "kind").unwrap_or_default().to_owned();
            if !kind.is_empty() {
                fill(names, "singular", kind.to_lowercase().into());
                fill(names, "listKind", format!("{kind}List").into());
            }
        }
        fill(spec, "conversion", json!({"strategy": "None"}));
        if spec.get("preserveUnknownFields") == Some(&Value::Bool(false)) {
            spec.remove("preserveUnknownFields");
        }
        if let Some(Value::Array(versions)) = spec.get_mut("versions") {
            versions.iter_mut().for_each(|version| {
                if let Some(schema) = version
                    .get_mut("schema")
                    .and_then(|schema| schema.get_mut("openAPIV3Schema"))
                {
                    drop_null_defaults(schema);
                }
            });
        }
    }

    fn has_status(&self) -> bool {
        true
    }

    fn kept_by_status(&self) -> &'static [&'static str] {
        METADATA
    }

    fn has_generation(&self) -> bool {
        true
    }

    fn unconditional_update(&self) -> bool {
        false
    }

    fn prepare_create(&self, crd: &mut Object, _: &dyn Surroundings) -> Result<()> {
        let stored = versions::storage(crd).map_or(Value::Null, |version| json!([version]));
        let status = json!({"conditions": null, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": stored});
        crd.insert("status".to_owned(), status);
        Ok(())
    }

    fn prepare_update(
        &self,
        subresource: &str,
        new: &mut Object,
        _: &Object,
        _: &dyn Surroundings,
    ) -> Result<()> {
        if subresource == "status" {
            return Ok(());
        }
        let Some(storage) = versions::storage(new) else {
            return Ok(());
        };
        let stored = new
            .get_mut("status")
            .and_then(Value::as_object_mut)
            .map(|status| status.entry("storedVersions").or_insert_with(|| json!([])));
        if let Some(Value::Array(stored)) = stored
            && !stored.iter().any(|version| version.as_str() == Some(&storage))
        {
            stored.push(storage.into());
        }
        Ok(())
    }

    fn validate(&self, crd: &Object) -> Vec<FieldError> {
        errors::of(crd)
    }

    fn validate_update(&self, subresource: &str, new: &Object, old: &Object) -> Vec<FieldError> {
        if subresource == "status" {
            return Vec::new();
        }
        errors::of_update(new, old)
    }

    fn warnings(&self, crd: &Object, old: Option<&Object>) -> Vec<String> {
        let formats = |crd: &Object| {
            let mut formats = Vec::new();
            for version in list_in(crd, "versions") {
                if let Some(schema) = openapi::schema_of(version) {
                    unknown_formats(schema, &mut formats);
                }
            }
            formats
        };
        // Of an update only what it brings in.
        let before = old.map(formats).unwrap_or_default();
        formats(crd)
            .iter()
            .filter(|format| !before.contains(format))
            .map(|format| format!("unrecognized format {format:?}"))
            .collect()
    }

    fn begin_delete(&self, crd: &mut Object, now: &str) -> bool {
        names::begin_delete(crd, now);
        true
    }

    fn may_go(&self, crd: &Object) -> bool {
        finalizers(crd).next().is_none()
    }
}

/// The objects of a list of the spec.
fn list_in<'a>(crd: &'a Object, name: &str) -> Vec<&'a Map<String, Value>> {
    object(crd, "spec")
        .map(|spec| list(spec, name).filter_map(Value::as_object).collect())
        .unwrap_or_default()
}

fn fill(fields: &mut Map<String, Value>, name: &str, value: Value) {
    let absent = match fields.get(name) {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.is_empty(),
        _ => false,
    };
    if absent {
        fields.insert(name.to_owned(), value);
    }
}

/// A null default is none.
fn drop_null_defaults(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if fields.get("default") == Some(&Value::Null) {
                fields.remove("default");
            }
            for (name, value) in fields.iter_mut() {
                match (name.as_str(), value) {
                    ("properties", Value::Object(fields)) => fields.values_mut().for_each(drop_null_defaults),
                    ("items" | "additionalProperties" | "allOf" | "anyOf" | "oneOf" | "not", value) => {
                        drop_null_defaults(value);
                    }
                    _ => {}
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(drop_null_defaults),
        _ => {}
    }
}

/// Formats that no one checks, each once.
fn unknown_formats(schema: &Map<String, Value>, found: &mut Vec<String>) {
    if let Some(format) = text(schema, "format").filter(|format| !format.is_empty())
        && text(schema, "type").is_some()
        && !crate::schema::formats::is_known(format)
        && !found.iter().any(|known| known == format)
    {
        found.push(format.to_owned());
    }
    openapi::children(schema, &mut |_, child| unknown_formats(child, found));
}
