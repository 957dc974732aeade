//! The API servers of a run: the hub and its members, with one clock and one sequence of versions.

use std::collections::BTreeMap;

use entourage_core::{
    object::{ResourceId, Str, Time},
    observation::Server,
};
use serde_json::Value;

use crate::objects::{Objects, Versions};

/// The servers of a run.
#[derive(Clone, Default)]
pub struct Servers {
    /// The objects of the hub.
    pub hub: Objects,
    /// The objects of each member.
    pub members: BTreeMap<Str, Objects>,
    /// The source of uids and versions.
    pub versions: Versions,
    /// The time.
    pub now: Time,
}

impl Servers {
    /// The objects of a server; `None` for a member that does not exist.
    #[must_use]
    pub fn objects(&self, server: &Server) -> Option<&Objects> {
        match server {
            Server::Hub => Some(&self.hub),
            Server::Member(cluster) => self.members.get(cluster),
        }
    }

    /// An object of a server.
    #[must_use]
    pub fn object(&self, server: &Server, id: &ResourceId) -> Option<&Value> {
        self.objects(server)?.get(id)
    }

    /// Stores an object, or removes it, which is a version of its own; returns the object before. A member that does not exist
    /// stores nothing.
    pub fn store(&mut self, server: &Server, id: &ResourceId, object: Option<Value>) -> Option<Value> {
        let objects = match server {
            Server::Hub => &mut self.hub,
            Server::Member(cluster) => self.members.get_mut(cluster)?,
        };
        if let Some(object) = object {
            return objects.insert(id.clone(), object);
        }
        self.versions.advance();
        objects.remove(id)
    }
}
