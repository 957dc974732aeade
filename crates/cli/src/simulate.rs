//! Simulation of files: alone, or against a hub and its members, which are read and never written.
//!
//! - [`live`]: simulation against a hub, with its dry run of the files.
//! - [`offline`]: simulation without servers.
//! - [`strict`]: strict decoding, as by a hub.
//! - [`interpreters`]: the interpreters of a hub's customizations.

use std::{collections::BTreeSet, sync::Arc};

use entourage_core::{
    config::Config,
    object::{Gvk, ResourceId},
};
use entourage_simulation::{Note, Progress, Simulation};
use serde_json::{Value, json};

pub mod interpreters;
pub mod live;
pub mod offline;
pub mod strict;

/// A simulation that has ended.
pub struct Simulated {
    /// The simulation.
    pub simulation: Simulation,
    /// True if nothing was left to do at its end.
    pub is_settled: bool,
    /// The kinds that the hub serves and that could not be listed there.
    pub unread: BTreeSet<Gvk>,
    /// Remarks for the user: assumptions, and errors of reading.
    pub remarks: Vec<String>,
    /// Warnings beside those of the controllers' conditions.
    pub warnings: Vec<Note>,
}

/// The assumed flags of the hub's controllers that affect the result.
#[derive(Clone, Debug)]
pub struct Assumed {
    /// True if dependencies are propagated.
    pub propagate_deps: bool,
    /// True if the ResourceDistribution feature is enabled.
    pub distribute: bool,
    /// True if the components of a workload are scheduled as one set.
    pub multiple_pod_templates: bool,
    /// True if workloads are not scheduled beyond the quotas of their namespace.
    pub enforce_quotas: bool,
    /// True if workloads are evicted from clusters that fail.
    pub failover: bool,
    /// The reserved namespaces besides the system's.
    pub reserved: Vec<String>,
}

impl Default for Assumed {
    fn default() -> Self {
        Self {
            propagate_deps: true,
            distribute: false,
            multiple_pod_templates: false,
            enforce_quotas: false,
            failover: true,
            reserved: Vec::new(),
        }
    }
}

/// A simulation that continues at the present time.
fn begin(hub_id: &str, assumed: &Assumed) -> Simulation {
    Simulation::new(settings(hub_id, assumed), entourage_controllers::clock::now())
}

/// The assumed settings of the controllers.
fn settings(hub_id: &str, assumed: &Assumed) -> Config {
    let mut config = Config::new(hub_id);
    config.scripts = Some(Arc::new(entourage_lua::Lua::default()));
    config.propagate_deps = assumed.propagate_deps;
    config.limit_deletions = false;
    config.distribute = assumed.distribute;
    config.multiple_pod_templates = assumed.multiple_pod_templates;
    config.enforce_quotas = assumed.enforce_quotas;
    config.failover = assumed.failover;
    config.reserved = assumed.reserved.iter().map(|name| name.as_str().into()).collect();
    config
}

/// Adds a remark if the simulation did not settle.
fn add_remarks(progress: &Progress, remarks: &mut Vec<String>) {
    if *progress == Progress::Unsettled {
        remarks.push(
            "it was aborted: the plan does not converge, which is a defect; the result so far follows".into(),
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
