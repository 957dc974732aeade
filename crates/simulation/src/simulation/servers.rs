//! The objects that a watch covers, and the watches that are notified of a change.

use entourage_api::keys::label;
use serde_json::Value;

use super::{Simulation, distributing};
use entourage_core::{
    interpreter,
    kinds::CLUSTER_API,
    object::{ResourceId, Str},
    observation::{Observation, Server, Watch, kind_read_by, project, which},
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

/// True if a watch covers an object of its server.
pub(super) fn covers(watch: &Watch, hub: &str, id: &ResourceId, object: &Value) -> bool {
    id.gvk == kind_read_by(watch)
        && match watch {
            Watch::Templates(_) => !interpreter::never_travels(object),
            Watch::Copies(..) => object["metadata"]["labels"][label::HUB] == *hub,
            Watch::Distributed(_, _, name) => id.name == *name,
            // A simulation calls no hooks.
            Watch::Hooks(_) => false,
            _ => true,
        }
}

impl Simulation {
    /// Notifies the open watches of the hub that an object was created or changed.
    pub(super) fn hub_changed(&mut self, id: &ResourceId) {
        let Some(object) = self.hub.get(id) else { return };
        let hub = self.engine.config.hub.clone();
        let seen: Vec<_> = self
            .open
            .iter()
            .filter(|watch| watch.server() == Server::Hub && covers(watch, &hub, id, object))
            .filter_map(|watch| project(watch, &self.engine.taught_to(watch), object))
            .collect();
        for subject in seen {
            self.observe(Observation::Seen(subject));
        }
    }

    /// Notifies the open watches of the hub that an object is gone.
    pub(super) fn hub_gone(&mut self, id: &ResourceId, held: &Value) {
        let hub = self.engine.config.hub.clone();
        let watches: Vec<Watch> = self
            .open
            .iter()
            .filter(|watch| watch.server() == Server::Hub && covers(watch, &hub, id, held))
            .cloned()
            .collect();
        for watch in watches {
            self.gone(&watch, held);
        }
    }

    /// Notifies the watch of a member's copies of a change of an object.
    pub(super) fn copy_changed(&mut self, cluster: &Str, id: &ResourceId, before: Option<&Value>) {
        let copies = Watch::Copies(cluster.clone(), id.gvk.clone());
        let namespaces = Watch::MemberNamespaces(cluster.clone());
        for watch in [copies, namespaces, distributing::watch_of(cluster, id)] {
            self.tell_of_copy(&watch, cluster, id, before);
        }
    }

    fn tell_of_copy(&mut self, watch: &Watch, cluster: &Str, id: &ResourceId, before: Option<&Value>) {
        if !self.open.contains(watch) {
            return;
        }
        let hub = self.engine.config.hub.clone();
        let now = self
            .members
            .get(cluster)
            .and_then(|member| member.objects.get(id));
        if let Some(object) = now.filter(|object| covers(watch, &hub, id, object)) {
            if let Some(subject) = project(watch, &self.engine.taught_to(watch), object) {
                self.observe(Observation::Seen(subject));
            }
        } else if let Some(before) = before.filter(|object| covers(watch, &hub, id, object)) {
            self.gone(watch, before);
        }
    }

    fn gone(&mut self, watch: &Watch, held: &Value) {
        let Some(which) = which(watch, held) else { return };
        let uid = held["metadata"]["uid"].as_str().map(Into::into);
        let revision = Some(self.versions.advance());
        self.observe(Observation::Gone { which, uid, revision });
    }
}
