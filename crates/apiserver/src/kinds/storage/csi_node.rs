//! CSINodes: the drivers of a Node.

use serde_json::Value;

use super::csi_driver::driver_name;
use crate::{
    kinds::kind_def::KindDef,
    object::tree::{below, items, made, text},
    printer::{AGE, NAME, Printer, integer},
};

pub(super) static DEF: KindDef = KindDef {
    defaults: |node| {
        let spec = made(node, "spec");
        spec.entry("drivers").or_insert(Value::Null);
    },
    errors: |node, errors| {
        let mut seen = std::collections::BTreeSet::new();
        for (path, driver) in items(below(node, "spec"), "drivers", "spec") {
            let name = text(driver, "name");
            errors.all_invalid(&format!("{path}.name"), name, driver_name(name));
            errors.needs(driver, &path, "nodeID");
            if !seen.insert(name) {
                errors.duplicate(format!("{path}.name"), name);
            }
        }
    },
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
