//! Decoding of a body to an object of its kind: types are checked, unknown fields dropped and reported, empty fields left out.
//!
//! Custom resources are read by [`crate::crd`], with the same readers of JSON and YAML.

use serde_json::{Map, Value};

use crate::{
    object::Object,
    patch::PatchKind,
    read::{Node, yaml},
    resource::Resource,
    status::{About, FieldError, Result, Status},
};

pub(crate) mod custom;
pub mod envelope;
mod go;
mod shown;
mod time;
mod typed;

use envelope::{Gvk, unrecognized};
pub(crate) use time::read as read_time;
use typed::{Typed, Voice};

/// The treatment of unknown and duplicate fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum FieldValidation {
    /// Dropped silently.
    Ignore,
    /// Dropped with a warning each.
    #[default]
    Warn,
    /// Refused.
    Strict,
}

/// The format of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Media {
    /// JSON.
    Json,
    /// YAML, or JSON, which is YAML.
    Yaml,
}

/// An object and the warnings about it.
#[derive(Clone)]
pub struct Decoded {
    /// The object in the resource's version, with apiVersion and kind, without what is empty, defaults not yet filled in.
    pub object: Object,
    /// Texts for the Warning header.
    pub warnings: Vec<String>,
}

crate::hidden::without_content!(Decoded);

/// The maximum number of reported problems of a patch.
const MOST_OF_PATCH: usize = 100;

/// Reads a body of a POST or PUT of a resource. Built-in kinds and custom resources differ in what they take. O(body).
pub fn body(resource: &Resource, bytes: &[u8], media: Media, validation: FieldValidation) -> Result<Decoded> {
    if resource.custom.is_some() {
        return crate::decode::custom::body(resource, bytes, media, validation);
    }
    let read = envelope::read(bytes, media).map_err(|error| unrecognized(resource, bytes, &error))?;
    let found = Gvk::of(&read.node).map_err(|error| unrecognized(resource, bytes, &error))?;
    let gvk = found.or_of(resource);
    let refused = |error: &str| envelope::unhandled(&gvk, resource, error);
    let Typed { object, problems } =
        as_kind(resource, &gvk, read.node, Voice::Json).map_err(|error| refused(&error))?;
    let problems: Vec<String> = read.problems.into_iter().chain(problems).collect();
    if validation == FieldValidation::Strict && !problems.is_empty() {
        return Err(refused(&format!(
            "strict decoding error: {}",
            problems.join(", ")
        )));
    }
    if gvk.api_version() != resource.api_version() && !is_former_eviction(&gvk) {
        return Err(envelope::other_version(&gvk.api_version(), resource));
    }
    Ok(Decoded {
        object: named(resource, object),
        warnings: warnings(&problems, validation),
    })
}

/// True for an Eviction of clients before 1.22, which differs from today's only in its version.
fn is_former_eviction(gvk: &Gvk) -> bool {
    gvk.kind == "Eviction" && gvk.api_version() == "policy/v1beta1"
}

/// Reads a value that is JSON already: an object made inside, or the result of a merge patch.
pub fn value(resource: &Resource, value: Value, validation: FieldValidation) -> Result<Decoded> {
    let whole = value.clone();
    patched(resource, value, (PatchKind::Merge, b""), validation, &|| {
        whole.clone()
    })
}

/// Reads the result of a patch; its body is quoted by some errors, and by others the `whole` result, which is made only for
/// them. O(value + patch).
pub fn patched(
    resource: &Resource,
    value: Value,
    (kind, patch): (PatchKind, &[u8]),
    validation: FieldValidation,
    whole: &dyn Fn() -> Value,
) -> Result<Decoded> {
    let odd = problems_of_patch(kind, patch);
    let refused = |error: &str| {
        let text = match kind {
            PatchKind::Strategic => shown::go_map(patch),
            PatchKind::Json | PatchKind::Merge if resource.custom.is_some() => whole().to_string(),
            PatchKind::Json | PatchKind::Merge => {
                shown::patched(resource.schema.get(), &whole(), (kind, patch))
            }
        };
        refused_patch(text, error)
    };
    let strict = |problems: &[String]| match problems {
        [_, ..] if validation == FieldValidation::Strict => Err(refused(&format!(
            "strict decoding error: {}",
            problems.join(", ")
        ))),
        _ => Ok(()),
    };
    if resource.custom.is_some() {
        let mut decoded = crate::decode::custom::value(resource, value, validation, whole)?;
        strict(&odd)?;
        decoded.warnings.splice(0..0, warnings(&odd, validation));
        return Ok(decoded);
    }
    let voice = match kind {
        PatchKind::Strategic => Voice::Converter,
        PatchKind::Json | PatchKind::Merge => Voice::Json,
    };
    let node = Node::from(value);
    let gvk = Gvk::of(&node).map_err(|error| refused(&error))?.or_of(resource);
    let Typed { object, problems } = as_kind(resource, &gvk, node, voice).map_err(|error| refused(&error))?;
    let problems: Vec<String> = odd.into_iter().chain(problems).collect();
    strict(&problems)?;
    Ok(Decoded {
        object: named(resource, object),
        warnings: warnings(&problems, validation),
    })
}

/// The problems of a patch that its result does not show: repeated fields, unknown members of an operation.
fn problems_of_patch(kind: PatchKind, patch: &[u8]) -> Vec<String> {
    let Ok(node) = Node::parse(patch) else {
        return Vec::new();
    };
    let twice = node
        .duplicates()
        .into_iter()
        .map(|path| format!("duplicate field {path:?}"));
    match (kind, &node) {
        (PatchKind::Merge | PatchKind::Strategic, _) => twice.collect(),
        (PatchKind::Json, Node::Array(operations)) => {
            let unknown = operations.iter().enumerate().flat_map(|(index, operation)| {
                let members = match operation {
                    Node::Object(members) => members.as_slice(),
                    _ => &[],
                };
                members
                    .iter()
                    .filter(|(name, _)| !matches!(name.as_str(), "op" | "path" | "from" | "value"))
                    .map(move |(name, _)| format!("json patch unknown field \"[{index}].{name}\""))
            });
            let twice = twice.map(|problem| format!("json patch {problem}"));
            unknown.chain(twice).take(MOST_OF_PATCH).collect()
        }
        _ => Vec::new(),
    }
}

/// Reads the configuration of a server-side apply as it was written, since only that is owned. O(body).
pub fn applied(resource: &Resource, bytes: &[u8], validation: FieldValidation) -> Result<Decoded> {
    let broken = |error: &str| Status::bad_request(format!("error decoding YAML: {error}"));
    let document =
        yaml::parse(bytes).map_err(|error| broken(&format!("error converting YAML to JSON: {error}")))?;
    let object = match document.node {
        Node::Null => Map::new(),
        node @ Node::Object(_) => match node.into_value() {
            Value::Object(object) => object,
            _ => Map::new(),
        },
        other => {
            return Err(broken(&format!(
                "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
                other.type_name()
            )));
        }
    };
    if validation == FieldValidation::Strict && !document.duplicates.is_empty() {
        return Err(Status::bad_request(format!(
            "error strict decoding YAML: error converting YAML to JSON: {}",
            envelope::duplicates(&document.duplicates)
        )));
    }
    let object = if resource.custom.is_some() {
        crate::decode::custom::applied(resource, Value::Object(object))?
    } else {
        object
    };
    let warnings = match validation {
        FieldValidation::Warn => document.duplicates,
        FieldValidation::Ignore | FieldValidation::Strict => Vec::new(),
    };
    Ok(Decoded { object, warnings })
}

/// An object of a built-in kind as its type writes it: after a merge that knows no types. Custom resources stay as they are.
///
/// # Errors
/// The value that the type does not take.
pub fn settled(resource: &Resource, object: Object) -> std::result::Result<Object, String> {
    if resource.custom.is_some() {
        return Ok(object);
    }
    typed::decode(
        resource.schema.get(),
        Node::from(Value::Object(object)),
        Voice::Converter,
    )
    .map(|typed| named(resource, typed.object))
}

/// The object as it comes back from the store: lists that are sent even when they are empty are null then, but for
/// CRDs, which are stored as JSON. O(object).
pub fn stored(resource: &Resource, object: &mut Object) {
    if resource.custom.is_some() || resource.collection == crate::crd::COLLECTION {
        return;
    }
    let mut value = Value::Object(std::mem::take(object));
    typed::without_empty_lists(resource.schema.get(), &mut value);
    if let Value::Object(settled) = value {
        *object = settled;
    }
}

/// Reads a value as the kind that it names, and returns it as the resource's.
fn as_kind(resource: &Resource, gvk: &Gvk, node: Node, voice: Voice) -> std::result::Result<Typed, String> {
    if gvk.kind == resource.kind && gvk.api_version() == resource.api_version() {
        return typed::decode(resource.schema.get(), node, voice);
    }
    let Some(def) = crate::kinds::find(&gvk.group, &gvk.version, &gvk.kind) else {
        return Err(gvk.unregistered());
    };
    let mut typed = typed::decode(&def.root.schema(), node, voice)?;
    if gvk.kind != resource.kind || gvk.internal() != Gvk::of_resource(resource).internal() {
        return Err(format!(
            "converting ({}.{}) to ({}.{}): unknown conversion",
            gvk.version,
            gvk.kind,
            Gvk::of_resource(resource).internal(),
            resource.kind
        ));
    }
    def.rules().to_stored(&mut typed.object);
    resource.rules.show_stored(&mut typed.object);
    Ok(typed)
}

/// A built-in kind in another of its versions.
pub fn in_version(resource: &Resource, api_version: &str) -> Option<Resource> {
    let version = api_version.rsplit('/').next()?;
    let group = api_version.strip_suffix(version)?.trim_end_matches('/');
    crate::kinds::find(group, version, &resource.kind).map(|def| def.resource())
}

fn named(resource: &Resource, mut object: Object) -> Object {
    object.insert("apiVersion".to_owned(), resource.api_version().into());
    object.insert("kind".to_owned(), resource.kind.clone().into());
    object
}

/// Problems as warnings: one per line of a problem, without the heading that several lines share.
pub(crate) fn warnings(problems: &[String], validation: FieldValidation) -> Vec<String> {
    if validation != FieldValidation::Warn {
        return Vec::new();
    }
    problems
        .iter()
        .flat_map(|problem| problem.lines())
        .map(str::trim)
        .filter(|line| *line != envelope::YAML_HEADING)
        .map(str::to_owned)
        .collect()
}

/// 422 for a patch whose result cannot be read.
pub(crate) fn refused_patch(shown: String, error: &str) -> Box<Status> {
    let about = About {
        group: "",
        resource: "",
        name: "",
    };
    Status::invalid(about, &[FieldError::invalid("patch", shown, error)])
}

#[cfg(test)]
mod tests;
