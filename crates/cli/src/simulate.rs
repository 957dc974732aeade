//! Simulation of files: alone, or against a hub and its members, which are read and never written.
//!
//! - [`kinds`]: what is served where, and which kinds lie in namespaces.
//! - [`live`]: the requests of a simulation, read from real servers; what the hub would make of a file, from its dry run.
//! - [`offline`]: without servers.
//! - [`strict`]: how a hub decodes objects.
//! - [`interpreters`]: what people taught a hub of kinds.

use std::sync::Arc;

use entourage_core::{config::Config, object::ResourceId};
use entourage_simulation::{Note, Progress, Simulation};
use serde_json::{Value, json};

pub mod interpreters;
pub mod kinds;
pub mod live;
pub mod offline;
pub mod strict;

/// A simulation that has ended.
pub struct Simulated {
    /// The simulation.
    pub simulation: Simulation,
    /// What the person should know about how it was done: assumptions, what could not be read.
    pub remarks: Vec<String>,
    /// Warnings beside those of the controllers' conditions.
    pub warnings: Vec<Note>,
}

/// How the controllers of the hub were started, as far as it changes what they do.
#[derive(Clone, Debug)]
pub struct Assumed {
    /// Whether dependencies travel.
    pub propagate_deps: bool,
    /// Whether ResourceDistributions are carried out.
    pub distribute: bool,
    /// The namespaces that are left alone besides the system's.
    pub reserved: Vec<String>,
}

impl Default for Assumed {
    fn default() -> Self {
        Self {
            propagate_deps: true,
            distribute: false,
            reserved: Vec::new(),
        }
    }
}

/// A simulation that goes on at the present time.
fn begin(hub_id: &str, assumed: &Assumed) -> Simulation {
    let mut config = Config::new(hub_id);
    config.scripts = Some(Arc::new(entourage_lua::Lua::default()));
    config.propagate_deps = assumed.propagate_deps;
    config.limit_deletions = false;
    config.distribute = assumed.distribute;
    config.reserved = assumed.reserved.iter().map(|name| name.as_str().into()).collect();
    Simulation::new(config, entourage_controllers::clock::now())
}

/// Says when it did not settle.
fn add_remarks(progress: &Progress, remarks: &mut Vec<String>) {
    if *progress == Progress::Unsettled {
        remarks.push(
            "it was broken off: something goes on being changed, which is a defect; what follows is how far it came"
                .into(),
        );
    }
}

/// The object with a namespace where its kind has one.
fn placed(mut object: Value, namespaced: bool, namespace: &str) -> Value {
    let meta = &mut object["metadata"];
    if !namespaced {
        if let Some(meta) = meta.as_object_mut() {
            meta.remove("namespace");
        }
    } else if meta["namespace"].as_str().is_none_or(str::is_empty) {
        meta["namespace"] = json!(namespace);
    }
    object
}

/// `Deployment default/web`, for lines about a file's object.
fn title(object: &Value) -> String {
    ResourceId::of(object).map_or_else(String::new, |id| id.to_string())
}
