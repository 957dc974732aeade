//! The schema of a CRD, compiled from its `openAPIV3Schema`: the one tree that pruning, defaulting, validation and apply walk.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Map, Value};

use super::cel;
use crate::schema::{ListKind, Rules, Schema, Type, builtin::Root};

/// The maximum nesting depth of a schema. Deeper parts permit anything; CRDs that deep are refused on admission.
pub(crate) const DEEPEST: usize = 100;

/// The schema of a whole custom resource: as declared, with the fields that every object has. O(schema).
#[must_use]
pub(crate) fn of_resource(declared: &Value) -> Schema {
    let mut schema = understand(declared, 0);
    schema.embedded = true;
    schema.kind = Type::Object;
    with_object_fields(&mut schema);
    schema
}

/// The schema of one node. O(schema).
#[must_use]
pub(crate) fn understand(declared: &Value, depth: usize) -> Schema {
    let Some(props) = declared.as_object().filter(|_| depth < DEEPEST) else {
        return Schema::default();
    };
    let below = |value: &Value| Arc::new(understand(value, depth + 1));
    let flag = |name: &str| props.get(name).and_then(Value::as_bool).unwrap_or(false);
    let properties: BTreeMap<String, Arc<Schema>> = object(props, "properties")
        .map(|fields| {
            fields
                .iter()
                .map(|(name, value)| (name.clone(), below(value)))
                .collect()
        })
        .unwrap_or_default();
    let mut schema = Schema {
        kind: kind(props),
        nullable: flag("nullable"),
        format: text(props, "format").map(str::to_owned),
        description: text(props, "description").map(str::to_owned),
        properties,
        additional: match props.get("additionalProperties") {
            Some(Value::Bool(true)) => Some(Arc::new(Schema::default())),
            Some(value @ Value::Object(_)) => Some(below(value)),
            _ => None,
        },
        closed: props.get("additionalProperties") == Some(&Value::Bool(false)),
        items: props.get("items").filter(|items| items.is_object()).map(below),
        required: texts(props, "required"),
        default: props.get("default").filter(|value| !value.is_null()).map(default),
        list: list_kind(props),
        atomic: text(props, "x-kubernetes-map-type") == Some("atomic"),
        preserve_unknown: flag("x-kubernetes-preserve-unknown-fields"),
        embedded: flag("x-kubernetes-embedded-resource"),
        ..Schema::default()
    };
    if schema.embedded {
        with_object_fields(&mut schema);
    }
    schema.rules = rules(props, depth).map(Arc::new);
    schema.checked = schema
        .rules
        .as_ref()
        .is_some_and(|rules| !rules.validations.is_empty())
        || schema.properties.values().any(|field| field.checked)
        || schema.items.as_ref().is_some_and(|items| items.checked)
        || schema.additional.as_ref().is_some_and(|values| values.checked);
    schema
}

/// Adds apiVersion, kind and metadata, if the CRD does not declare them; its rules for names are kept.
fn with_object_fields(schema: &mut Schema) {
    let string = || {
        Arc::new(Schema {
            kind: Type::String,
            ..Schema::default()
        })
    };
    for field in ["apiVersion", "kind"] {
        schema.properties.entry(field.to_owned()).or_insert_with(string);
    }
    let mut metadata = Schema::clone(&Root::METADATA.schema());
    if let Some(declared) = schema.properties.get("metadata") {
        for (name, field) in &declared.properties {
            metadata.properties.insert(name.clone(), field.clone());
        }
        metadata.rules.clone_from(&declared.rules);
        metadata.checked = declared.checked;
    }
    schema
        .properties
        .insert("metadata".to_owned(), Arc::new(metadata));
}

fn kind(props: &Map<String, Value>) -> Type {
    if props.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true)) {
        return Type::IntOrString;
    }
    match text(props, "type") {
        Some("object") => Type::Object,
        Some("array") => Type::Array,
        Some("string") => Type::String,
        Some("integer") => Type::Integer,
        Some("number") => Type::Number,
        Some("boolean") => Type::Boolean,
        _ => Type::Any,
    }
}

fn list_kind(props: &Map<String, Value>) -> ListKind {
    match text(props, "x-kubernetes-list-type") {
        Some("set") => ListKind::Set,
        Some("map") => ListKind::Map(texts(props, "x-kubernetes-list-map-keys")),
        _ => ListKind::Atomic,
    }
}

/// A default as it is filled in: with numbers as those of a body.
fn default(declared: &Value) -> Value {
    let mut default = declared.clone();
    super::prune::normalize_numbers(&mut default);
    default
}

/// The value validations of a node; `None` when it has none.
fn rules(props: &Map<String, Value>, depth: usize) -> Option<Rules> {
    const NAMES: [&str; 16] = [
        "enum",
        "minimum",
        "maximum",
        "multipleOf",
        "minLength",
        "maxLength",
        "pattern",
        "minItems",
        "maxItems",
        "minProperties",
        "maxProperties",
        "allOf",
        "anyOf",
        "oneOf",
        "not",
        "x-kubernetes-validations",
    ];
    if !NAMES.iter().any(|name| props.contains_key(*name)) {
        return None;
    }
    let whole = |name: &str| props.get(name).and_then(Value::as_u64);
    let bound = |name: &str, exclusive: &str| {
        let excluded = props.get(exclusive).and_then(Value::as_bool).unwrap_or(false);
        props
            .get(name)
            .and_then(Value::as_f64)
            .map(|bound| (bound, excluded))
    };
    let branches = |name: &str| -> Vec<Arc<Schema>> {
        list(props, name)
            .map(|branch| Arc::new(understand(branch, depth + 1)))
            .collect()
    };
    Some(Rules {
        one_of_values: list(props, "enum").cloned().collect(),
        minimum: bound("minimum", "exclusiveMinimum"),
        maximum: bound("maximum", "exclusiveMaximum"),
        multiple_of: props.get("multipleOf").and_then(Value::as_f64),
        min_length: whole("minLength"),
        max_length: whole("maxLength"),
        pattern: text(props, "pattern").and_then(|pattern| pattern_of(pattern).ok()),
        min_items: whole("minItems"),
        max_items: whole("maxItems"),
        unique_items: false,
        min_properties: whole("minProperties"),
        max_properties: whole("maxProperties"),
        all_of: branches("allOf"),
        any_of: branches("anyOf"),
        one_of: branches("oneOf"),
        not: props
            .get("not")
            .filter(|not| not.is_object())
            .map(|not| Arc::new(understand(not, depth + 1))),
        validations: list(props, "x-kubernetes-validations")
            .filter_map(cel::Rule::compile)
            .collect(),
    })
}

/// A compiled pattern, bounded in the memory it may take. The dialect is RE2's but for details of Unicode classes.
pub(crate) fn pattern_of(pattern: &str) -> Result<regex::Regex, regex::Error> {
    const MEMORY: usize = 4 << 20;
    regex::RegexBuilder::new(pattern)
        .size_limit(MEMORY)
        .dfa_size_limit(MEMORY)
        .build()
}

pub(crate) fn text<'a>(props: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    props.get(name).and_then(Value::as_str)
}

pub(crate) fn object<'a>(props: &'a Map<String, Value>, name: &str) -> Option<&'a Map<String, Value>> {
    props.get(name).and_then(Value::as_object)
}

/// The items of a list; nothing when it is none.
pub(crate) fn list<'a>(props: &'a Map<String, Value>, name: &str) -> impl Iterator<Item = &'a Value> {
    props.get(name).and_then(Value::as_array).into_iter().flatten()
}

pub(crate) fn texts(props: &Map<String, Value>, name: &str) -> Vec<String> {
    list(props, name)
        .filter_map(|item| item.as_str().map(str::to_owned))
        .collect()
}
