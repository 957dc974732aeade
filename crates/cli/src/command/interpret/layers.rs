//! The interpreters of a kind for each operation. None is called.

use std::io::Write;

use anyhow::Result;
use entourage_core::{
    interpreter::{
        hook::{Hook, Subject},
        layer_order::{Layer, Role, layers_of},
    },
    object::Gvk,
};
use serde_json::Value;

use super::{check::OPERATIONS, given::Given};

/// Prints the layers of each operation for the kind of an object.
pub(super) fn run(given: &Given, gvk: &Gvk, object: &Value, out: &mut impl Write) -> Result<()> {
    let (resource, is_namespaced) = given.place(gvk, object);
    let subject = Subject {
        group: &gvk.group,
        version: &gvk.version,
        kind: &gvk.kind,
        resource: &resource,
        is_namespaced,
    };
    let customizations = given.customizations();
    let hooks: Vec<Hook> = given.hooks().cloned().collect();
    writeln!(out, "{} {}:", gvk.api_version(), gvk.kind)?;
    for (operation, title) in OPERATIONS {
        let all = layers_of(&subject, operation, &customizations, &hooks);
        writeln!(out, "    {:<23} {}", format!("{title}:"), words(&all))?;
    }
    Ok(())
}

fn words(all: &[Layer]) -> String {
    if all.is_empty() {
        return "none".to_owned();
    }
    let mut words = String::new();
    for layer in all {
        words.push_str(match layer.role {
            Role::Answers => "",
            Role::Adds => ", and ",
            Role::StandsIn => "; if it does not respond ",
        });
        words.push_str(&layer.name);
    }
    words
}
