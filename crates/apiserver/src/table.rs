//! Tables, which `kubectl get` prints.
//!
//! Each built-in kind has a printer: its columns, and the function that makes the cells of an object. Kinds without one show
//! when they were created; custom resources have the columns of their CRD.
//! Source: the printers of kube-apiserver 1.36.

use serde_json::{Map, Value, json};

use k8s_openapi::api::autoscaling::v1::Scale;

use crate::{
    object::Object,
    printer::{AGE, NAME, Printer, View, definitions, integer, words},
    resource::Resource,
    schema::builtin::Root,
};

mod custom;
mod jsonpath;
#[cfg(test)]
mod tests;

/// The part of each object in its row (`includeObject`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum Include {
    /// Its metadata.
    #[default]
    Metadata,
    /// All of it.
    Object,
    /// Nothing.
    None,
}

/// A scale, of whatever kind.
const SCALE: Printer = Printer::of(&[
    words("Name", NAME.about),
    integer(
        "Desired",
        "replicas is the desired number of instances for the scaled object.",
    )
    .at("spec.replicas"),
    integer(
        "Available",
        "replicas is the actual number of observed instances of the scaled object.",
    )
    .at("status.replicas"),
    AGE,
]);

/// `columnDefinitions` of a resource.
#[must_use]
pub(crate) fn columns(resource: &Resource) -> Vec<Value> {
    if let Some(custom) = &resource.custom {
        return custom::columns(&custom.columns);
    }
    let printer = &resource.printer;
    match printer.documented {
        Some(root) => definitions(printer.columns, &root.schema()),
        None => definitions(printer.columns, resource.schema.get()),
    }
}

/// One row, of an object of the resource or of its scale. `now`: seconds since 1970, for ages.
#[must_use]
pub(crate) fn row(resource: &Resource, object: &Object, include: Include, now: i64) -> Value {
    // Printers see the stored form of a kind, whatever version was asked for.
    let mut internal = None;
    if resource.custom.is_none() && !resource.rules.is_stored_form() && !is_scale(object) {
        resource.rules.to_stored(internal.insert(object.clone()));
    }
    let seen = internal.as_ref().unwrap_or(object);
    let view = View { object: seen, now };
    let cells = match &resource.custom {
        custom if is_scale(object) => scale_cells(&view, custom.is_some()),
        Some(custom) => custom::cells(&custom.columns, &view),
        None => resource.printer.cells(&view),
    };
    let shown = if include == Include::Object { object } else { seen };
    let mut row = with_object(resource, cells, shown, include);
    if let Some(conditions) = (resource.printer.conditions)(&view) {
        row.insert("conditions".to_owned(), conditions);
    }
    Value::Object(row)
}

/// The cells of a scale. Those of a custom resource's come from JSON paths: what is not there is null, and zero wanted replicas are
/// not.
fn scale_cells(view: &View<'_>, is_custom: bool) -> Vec<Value> {
    let mut cells = SCALE.cells(view);
    let is_wanted = |spec: &Value| spec.get("replicas").is_some();
    if is_custom && !view.object.get("spec").is_some_and(is_wanted) {
        cells[1] = Value::Null;
    }
    cells
}

/// True if an answer is the scale of an object.
#[must_use]
pub(crate) fn is_scale(object: &Object) -> bool {
    let is = |field: &str, value: &str| object.get(field).and_then(Value::as_str) == Some(value);
    is("kind", "Scale") && is("apiVersion", "autoscaling/v1")
}

/// `columnDefinitions` of a scale; those of a custom resource's come from another printer.
#[must_use]
pub(crate) fn scale_columns(resource: &Resource) -> Vec<Value> {
    let mut columns = definitions(SCALE.columns, &Root::of::<Scale>().schema());
    let differing = [
        ("format", "name"),
        ("description", "Number of desired replicas"),
        ("description", "Number of actual replicas"),
        ("type", "date"),
    ];
    if resource.custom.is_some() {
        for (column, (key, value)) in columns.iter_mut().zip(differing) {
            column[key] = value.into();
        }
    }
    columns
}

/// `PartialObjectMetadata` of an object.
pub(crate) fn partial(resource: &Resource, object: &Object, version: &str) -> Value {
    let mut metadata = object.get("metadata").cloned();
    let standing_in = resource.printer.standing_in;
    if let Some(Value::Object(metadata)) = &mut metadata
        && let Some(Value::Object(annotations)) = metadata.get_mut("annotations")
        && !standing_in.is_empty()
    {
        annotations.retain(|name, _| !standing_in.contains(&name.as_str()));
        if annotations.is_empty() {
            metadata.remove("annotations");
        }
    }
    json!({"kind": "PartialObjectMetadata", "apiVersion": version, "metadata": metadata})
}

fn with_object(
    resource: &Resource,
    cells: Vec<Value>,
    object: &Object,
    include: Include,
) -> Map<String, Value> {
    let object = match include {
        Include::None => Value::Null,
        Include::Object => Value::Object(object.clone()),
        Include::Metadata => partial(resource, object, "meta.k8s.io/v1"),
    };
    Map::from_iter([
        ("cells".to_owned(), Value::Array(cells)),
        ("object".to_owned(), object),
    ])
}
