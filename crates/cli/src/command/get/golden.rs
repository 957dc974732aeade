//! The golden cases of `entourage get`: files in `testdata/get`, each a command line after `#`, and its output for
//! `testdata/get/hub.yaml`. `UPDATE_GOLDEN=1` rewrites the output.

use entourage_core::object::Time;

use super::{BINDINGS, GetArgs, OVERRIDES, POLICIES, Resource, Seen, shown};
use crate::{command::Command, golden, manifests, style::Style};

/// 2026-01-01T01:00:00Z: an hour after the objects of the hub were made.
const NOW: Time = Time(1_767_229_200_000);

#[test]
fn every_command_line_comes_out_as_its_file_says() {
    golden::command_lines("get", 10, |command| match command {
        Command::Get(args) => printed(&args),
        other => panic!("not a get: {other:?}"),
    });
}

fn printed(args: &GetArgs) -> String {
    let namespace = &args.select.namespace("default");
    match shown(
        args,
        namespace,
        &seen(args.what, namespace),
        NOW,
        Style::default(),
    ) {
        Ok(text) => text,
        Err(error) => format!("error: {error:#}\n"),
    }
}

/// The hub as it is read for a namespace.
fn seen(what: Resource, namespace: &str) -> Seen {
    let everywhere = namespace.is_empty()
        || matches!(
            what,
            Resource::Clusters | Resource::Policies | Resource::Overrides | Resource::Distributions
        );
    let hub = manifests::read(&[golden::folder("get").join("hub.yaml")]).unwrap();
    let mut seen = Seen::default();
    for object in hub.iter().map(|each| each.value().unwrap()) {
        let kind = object["kind"].as_str().unwrap_or_default();
        let here = everywhere || object["metadata"]["namespace"] == namespace;
        if kind == "Cluster" {
            seen.clusters.push(object);
        } else if kind == "ResourceDistribution" {
            seen.distributions.push(object);
        } else if ["ConfigMap", "Secret"].contains(&kind) && here {
            seen.distributed.push(object);
        } else if POLICIES.contains(&kind) {
            seen.policies.push(object);
        } else if OVERRIDES.contains(&kind) {
            seen.overrides.push(object);
        } else if BINDINGS.contains(&kind) && here {
            seen.bindings.push(object);
        }
    }
    seen
}
