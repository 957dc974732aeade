//! CSINodes: the drivers of a Node.

use serde_json::Value;

use super::csi_driver::named_driver;
use crate::{
    kinds::{kind_def::KindDef, pod_spec::internal},
    names,
    object::{
        Object,
        tree::{Errors, IMMUTABLE, below, items, list, made, number, same, text},
    },
    printer::{AGE, NAME, Printer, integer},
};

/// The longest name of a node at a driver.
const LONGEST_ID: usize = 192;

pub(super) static DEF: KindDef = KindDef {
    returns_object: true,
    defaults: |node| {
        let spec = made(node, "spec");
        spec.entry("drivers").or_insert(Value::Null);
    },
    errors,
    changes: Some(|new, old, all| {
        errors(new, all);
        let drivers = |node| {
            list(below(node, "spec"), "drivers")
                .iter()
                .filter_map(Value::as_object)
        };
        for before in drivers(old) {
            for after in drivers(new).filter(|one| text(one, "name") == text(before, "name")) {
                let kept = ["nodeID", "topologyKeys"];
                if kept.iter().any(|key| !same(before.get(*key), after.get(*key))) {
                    all.invalid_text("spec.drivers", internal::shown("CSINodeDriver", after), IMMUTABLE);
                }
            }
        }
    }),
    printer: Printer::new(
        &[
            NAME,
            integer(
                "Drivers",
                "Drivers indicates the number of CSI drivers registered on the node",
            ),
            AGE,
        ],
        |node| vec![node.name(), node.count("spec.drivers").into(), node.age()],
    ),
    ..KindDef::of::<k8s_openapi::api::storage::v1::CSINode>()
};

fn errors(node: &Object, errors: &mut Errors) {
    let mut seen = Vec::new();
    for (path, driver) in items(below(node, "spec"), "drivers", "spec") {
        let (name, id) = (text(driver, "name"), text(driver, "nodeID"));
        named_driver(name, &format!("{path}.name"), errors);
        errors.needs(driver, &path, "nodeID");
        if id.len() > LONGEST_ID {
            let detail = format!("must be {LONGEST_ID} characters or less");
            errors.invalid(format!("{path}.nodeID"), id, &detail);
        }
        let count = number(below(driver, "allocatable"), "count");
        if let Some(count) = count.filter(|count| *count < 0) {
            let detail = crate::object::tree::NOT_NEGATIVE;
            errors.invalid(format!("{path}.allocatable.count"), count, detail);
        }
        if seen.contains(&name) {
            errors.duplicate(format!("{path}.name"), name);
        }
        seen.push(name);
        let keys: Vec<&str> = list(driver, "topologyKeys")
            .iter()
            .filter_map(Value::as_str)
            .collect();
        for (at, key) in keys.iter().enumerate() {
            if keys[..at].contains(key) {
                errors.duplicate(&path, *key);
            }
            if key.is_empty() {
                errors.required(&path, "");
            }
            errors.all_invalid(&path, *key, names::qualified_name(key));
        }
    }
}
