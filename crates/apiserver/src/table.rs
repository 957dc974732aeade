//! Tables: what `kubectl get` prints.
//!
//! Each built-in kind has a row in one of the tables below: its columns, and the function that makes the cells of an
//! object. Kinds without one show when they were created; custom resources show what their CRD says.
//! Source: the printers of kube-apiserver 1.36.

use serde_json::{Map, Value, json};

use crate::{object::Object, resource::Resource, schema::builtin};

mod admission;
mod column;
mod config;
mod custom;
mod jsonpath;
mod network;
mod nodes;
mod pods;
mod storage;
#[cfg(test)]
mod tests;
mod view;
mod workloads;

use column::{AGE, Column, NAME, date};
use view::View;

/// How much of each object a row carries (`includeObject`).
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

/// How the objects of one kind are printed.
struct Printer {
    group: &'static str,
    kind: &'static str,
    columns: &'static [Column],
    cells: fn(&View<'_>) -> Vec<Value>,
}

/// The kinds with columns of their own.
const PRINTERS: &[&[Printer]] = &[
    pods::PRINTERS,
    workloads::PRINTERS,
    network::PRINTERS,
    config::PRINTERS,
    nodes::PRINTERS,
    storage::PRINTERS,
    admission::PRINTERS,
];

/// What a kind without columns of its own is printed with.
const DEFAULT: Printer = Printer {
    group: "",
    kind: "",
    columns: &[NAME, date("Created At", AGE.about)],
    cells: |object| vec![object.name(), object.text("metadata.creationTimestamp").into()],
};

/// A scale, of whatever kind.
const SCALE: Printer = Printer {
    group: "autoscaling",
    kind: "Scale",
    columns: &[
        column::text("Name", NAME.about),
        column::number(
            "Desired",
            "replicas is the desired number of instances for the scaled object.",
        ),
        column::number(
            "Available",
            "replicas is the actual number of observed instances of the scaled object.",
        ),
        AGE,
    ],
    cells: |scale| {
        let (wanted, present) = (scale.number("spec.replicas"), scale.number("status.replicas"));
        vec![scale.name(), wanted.into(), present.into(), scale.age()]
    },
};

fn printer(resource: &Resource) -> &'static Printer {
    let mut printers = PRINTERS.iter().copied().flatten();
    printers
        .find(|printer| printer.group == resource.group && printer.kind == resource.kind)
        .unwrap_or(&DEFAULT)
}

/// `columnDefinitions` of a resource.
#[must_use]
pub(crate) fn columns(resource: &Resource) -> Vec<Value> {
    if let Some(custom) = &resource.custom {
        return custom::columns(&custom.columns);
    }
    let printer = printer(resource);
    if printer.group == "autoscaling" {
        // Both versions are printed, and documented, as the newer one.
        let newer = builtin::definition("io.k8s.api.autoscaling.v2.HorizontalPodAutoscaler");
        return column::definitions(printer.columns, &newer);
    }
    column::definitions(printer.columns, resource.schema.get())
}

/// One row, of an object of the resource or of its scale. `now`: seconds since 1970, for ages.
#[must_use]
pub(crate) fn row(resource: &Resource, object: &Object, include: Include, now: i64) -> Value {
    let view = View { object, now };
    let cells = match &resource.custom {
        _ if is_scale(object) => (SCALE.cells)(&view),
        Some(custom) => custom::cells(&custom.columns, &view),
        None => (printer(resource).cells)(&view),
    };
    let mut row = with_object(cells, object, include);
    if resource.kind == "Pod"
        && resource.group.is_empty()
        && let Some(conditions) = pods::conditions(&view)
    {
        row.insert("conditions".to_owned(), conditions);
    }
    Value::Object(row)
}

/// Whether an answer is the scale of an object.
#[must_use]
pub(crate) fn is_scale(object: &Object) -> bool {
    let is = |field: &str, value: &str| object.get(field).and_then(Value::as_str) == Some(value);
    is("kind", SCALE.kind) && is("apiVersion", "autoscaling/v1")
}

/// `columnDefinitions` of the scale of an object of `resource`.
#[must_use]
pub(crate) fn scale_columns(resource: &Resource) -> Vec<Value> {
    let custom = resource
        .custom
        .is_some()
        .then(|| builtin::definition("io.k8s.api.autoscaling.v1.Scale"));
    column::definitions(
        SCALE.columns,
        custom.as_ref().unwrap_or_else(|| resource.schema.get()),
    )
}

fn with_object(cells: Vec<Value>, object: &Object, include: Include) -> Map<String, Value> {
    let object = match include {
        Include::None => Value::Null,
        Include::Object => Value::Object(object.clone()),
        Include::Metadata => json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
            "metadata": object.get("metadata")}),
    };
    Map::from_iter([
        ("cells".to_owned(), Value::Array(cells)),
        ("object".to_owned(), object),
    ])
}
