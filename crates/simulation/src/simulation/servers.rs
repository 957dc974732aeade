//! The objects that a watch covers, and the watches that are notified of a change.

use serde_json::Value;

use super::Simulation;
use crate::{environment::Environment, watches};
use entourage_core::{
    kinds::CLUSTER_API,
    object::ResourceId,
    observation::{Observation, Server, Subject, Watch, kind_read_by},
};

/// True if an object is a ResourceBinding or a ClusterResourceBinding.
pub(super) fn is_binding(id: &ResourceId) -> bool {
    &*id.gvk.group == "work.karmada.io"
        && matches!(&*id.gvk.kind, "ResourceBinding" | "ClusterResourceBinding")
}

/// True if an object is a Cluster.
pub(super) fn is_cluster(id: &ResourceId) -> bool {
    id.gvk.api_version() == CLUSTER_API && &*id.gvk.kind == "Cluster"
}

/// The id of a listed object; the items of a list may omit their kind.
pub(super) fn identity_in(watch: &Watch, object: &Value) -> Option<ResourceId> {
    let meta = &object["metadata"];
    let name = meta["name"].as_str().filter(|name| !name.is_empty())?;
    let namespace = meta["namespace"].as_str().unwrap_or_default();
    Some(ResourceId::new(kind_read_by(watch), namespace, name))
}

impl Simulation {
    /// Notifies the open watches of the hub that an object was created or changed.
    pub(super) fn hub_changed(&mut self, id: &ResourceId) {
        self.changed(&Server::Hub, id, None);
    }

    /// Notifies the open watches of a server of a change of an object. Cost: O(open watches) on the hub, O(1) on a member.
    pub(super) fn changed(&mut self, server: &Server, id: &ResourceId, before: Option<&Value>) {
        let hub = self.engine.config.hub.clone();
        let after = self.object(server, id);
        let event = |watch: &Watch| {
            let project = |object: &Value| self.project(watch, object);
            watches::event(watch, (&hub, id), [before, after], self.versions.last(), project)
        };
        let events: Vec<Observation> = match server {
            Server::Hub => {
                let of_hub = self.open.iter().filter(|watch| watch.server() == Server::Hub);
                // A simulation calls no hooks.
                let told = of_hub.filter(|watch| !matches!(watch, Watch::Hooks(_)));
                told.filter_map(event).collect()
            }
            Server::Member(cluster) => {
                let all = watches::of_member(cluster, id);
                let open = all.iter().filter(|watch| self.open.contains(*watch));
                open.filter_map(event).collect()
            }
        };
        for event in events {
            self.observe(event);
        }
    }

    /// An object as a watch serves it.
    pub(super) fn project(&self, watch: &Watch, object: &Value) -> Option<Subject> {
        watches::project(&self.engine, watch, &self.engine.interpretation_of(watch), object)
    }
}
