//! Bodies of custom resources: kind and apiVersion are required, metadata is typed, fields that the schema lacks are dropped.

use serde_json::{Map, Value};

mod metadata;

use crate::{
    decode::{
        self, Decoded, FieldValidation, Media,
        envelope::{self, Gvk},
    },
    object::{Object, field},
    resource::{Custom, Resource},
    schema::prune,
    status::{About, FieldError, Result, Status},
};
pub(crate) use metadata::name_of;

/// The number of unknown fields that are reported, at most.
const MOST: usize = 100;

/// Reads the body of a POST or PUT. O(body).
pub(super) fn body(
    resource: &Resource,
    bytes: &[u8],
    media: Media,
    validation: FieldValidation,
) -> Result<Decoded> {
    let unrecognized = |error: &str| envelope::unrecognized(resource, bytes, error);
    let read = envelope::read(bytes, media).map_err(|error| unrecognized(&error))?;
    let gvk = Gvk::of(&read.node).map_err(|error| unrecognized(&error))?;
    if gvk.kind.is_empty() {
        let body = match media {
            Media::Json => String::from_utf8_lossy(bytes).into_owned(),
            Media::Yaml => read.node.into_value().to_string(),
        };
        return Err(unrecognized(&format!("Object 'Kind' is missing in '{body}'")));
    }
    let unhandled = |error: &str| envelope::unhandled(&gvk, resource, error);
    let mut problems = read.problems;
    let twice = read.node.duplicates();
    problems.extend(twice.iter().map(|path| format!("duplicate field {path:?}")));
    let object = match read.node.into_value() {
        Value::Object(object) => object,
        _ => Object::new(),
    };
    let object = shape(resource, object, validation, &mut problems).map_err(|error| unhandled(&error))?;
    if validation == FieldValidation::Strict && !problems.is_empty() {
        return Err(unhandled(&format!(
            "strict decoding error: {}",
            problems.join(", ")
        )));
    }
    if gvk.api_version() != resource.api_version() {
        return Err(envelope::other_version(&gvk.api_version(), resource));
    }
    right_type(resource, &object)?;
    Ok(reported(object, &problems, validation))
}

/// Reads the result of a patch, which errors quote as a `whole`. O(value).
pub(super) fn value(
    resource: &Resource,
    value: Value,
    validation: FieldValidation,
    whole: &dyn Fn() -> Value,
) -> Result<Decoded> {
    let refused = |error: &str| {
        let about = About {
            group: "",
            resource: "",
            name: "",
        };
        Status::invalid(about, &[FieldError::invalid("patch", whole().to_string(), error)])
    };
    let Value::Object(object) = value else {
        return Err(refused(&format!(
            "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            name_of(&value)
        )));
    };
    let mut problems = Vec::new();
    let object = shape(resource, object, validation, &mut problems).map_err(|error| refused(&error))?;
    if validation == FieldValidation::Strict && !problems.is_empty() {
        return Err(refused(&format!(
            "strict decoding error: {}",
            problems.join(", ")
        )));
    }
    if object.get("apiVersion").is_none_or(|version| version == "") {
        let why = "Object 'apiVersion' is missing in 'object has no apiVersion field'";
        return Err(Status::internal(why));
    }
    let decoded = reported(object, &problems, validation);
    right_type(resource, &decoded.object).map_err(|status| status.with_warnings(decoded.warnings.clone()))?;
    Ok(decoded)
}

/// The configuration of an apply: neither pruned nor given defaults, since only what is written in it is owned. O(value).
pub(super) fn applied(resource: &Resource, mut value: Value) -> Result<Object> {
    prune::normalize_numbers(&mut value);
    match value {
        Value::Object(object) => Ok(object),
        other => Err(Status::bad_request(format!(
            "error decoding YAML: json: cannot unmarshal {} into Go value of type {}",
            name_of(&other),
            resource.kind
        ))),
    }
}

fn reported(object: Object, problems: &[String], validation: FieldValidation) -> Decoded {
    Decoded {
        object,
        warnings: decode::warnings(problems, validation),
    }
}

/// Metadata, pruning, nulls and numbers. Dropped fields are added to `problems`, if these are wanted.
fn shape(
    resource: &Resource,
    mut object: Map<String, Value>,
    validation: FieldValidation,
    problems: &mut Vec<String>,
) -> std::result::Result<Object, String> {
    let none = Custom::default();
    let custom = resource.custom.as_deref().unwrap_or(&none);
    let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
    let (group, version) = text("apiVersion")
        .split_once('/')
        .unwrap_or(("", text("apiVersion")));
    // An object of another kind is not examined; it is refused soon.
    let is_ours = group == resource.group && text("kind") == resource.kind;
    let schema = (version == resource.version).then_some(&*custom.schema);
    let mut unknown = metadata::coerce(&mut object, "metadata")?;
    let mut value = Value::Object(object);
    prune::normalize_numbers(&mut value);
    if is_ours {
        let most = if validation == FieldValidation::Ignore {
            0
        } else {
            MOST
        };
        unknown.extend(prune::prune_telling(&mut value, schema, most));
        if let Some(schema) = schema {
            prune::drop_nulls(&mut value, schema);
            metadata::coerce_embedded(&mut value, schema, "", &mut unknown)
                .map_err(|(path, metadata, error)| format!("{path}: Invalid value: {metadata}: {error}"))?;
        }
    }
    unknown.truncate(MOST);
    problems.extend(unknown.iter().map(|path| format!("unknown field {path:?}")));
    match value {
        Value::Object(object) => Ok(object),
        _ => unreachable!("an object stays one"),
    }
}

/// Checks that the type of the object is that of the path; the error names the object by its own type.
fn right_type(resource: &Resource, object: &Object) -> Result<()> {
    let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
    let mut errors = Vec::new();
    for (name, expected) in [
        ("kind", resource.kind.clone()),
        ("apiVersion", resource.api_version()),
    ] {
        if text(name) != expected {
            errors.push(FieldError::invalid(
                name,
                text(name),
                format!("must be {expected}"),
            ));
        }
    }
    if errors.is_empty() {
        return Ok(());
    }
    let about = About {
        group: &resource.group,
        resource: text("kind"),
        name: field(object, "name"),
    };
    Err(Status::invalid(about, &errors))
}
