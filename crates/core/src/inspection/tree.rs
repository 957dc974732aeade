//! A workload, its dependencies, theirs, and the clusters of each, with the states of their copies.

use std::collections::BTreeSet;

use serde::Serialize;

use super::{
    explanation::{ObjectName, Presence},
    why,
};
use crate::{
    cache::{ResourceState, referred},
    fleet::Fleet,
    object::{ResourceId, Str, Time},
};

/// An object of the tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Node {
    /// The object.
    pub object: ObjectName,
    /// True if the hub has it; `None` if that is not known, because nothing that is propagated needs objects of its kind.
    pub exists: Option<bool>,
    /// True if its referrer works without it.
    pub optional: bool,
    /// Its clusters.
    pub clusters: Vec<NodeCluster>,
    /// True if it is above with its dependencies, which are left out here.
    pub repeated: bool,
    /// Its dependencies.
    pub dependencies: Vec<Self>,
}

/// A cluster of an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeCluster {
    /// The cluster.
    pub cluster: Str,
    /// The state of the copy.
    pub presence: Presence,
    /// The recorded message about it; empty if there is none.
    pub message: String,
}

impl Node {
    /// True if it is in one of its clusters.
    #[must_use]
    pub fn is_there(&self) -> bool {
        self.clusters.iter().any(|each| each.presence.is_there())
    }
}

/// The tree of an object; `exists` is true if the hub has it. An object that is reached again is listed without its dependencies.
///
/// Cost: O((dependencies + their references) × clusters).
#[must_use]
pub fn tree(fleet: &Fleet, id: &ResourceId, exists: bool, now: Time) -> Node {
    let mut seen = BTreeSet::new();
    let id = why::watched(fleet, id);
    Node {
        exists: Some(exists),
        ..node(fleet, &id, false, &mut seen, now)
    }
}

fn node(fleet: &Fleet, id: &ResourceId, optional: bool, seen: &mut BTreeSet<ResourceId>, now: Time) -> Node {
    let is_here = fleet.resource(id).and_then(ResourceState::standing).is_some();
    let exists = (is_here || fleet.is_kind_listed(&id.gvk)).then_some(is_here);
    let places = why::places(fleet, id, now).into_iter();
    let clusters = places.map(|(cluster, presence, message)| NodeCluster {
        cluster,
        presence,
        message,
    });
    let clusters = clusters.collect();
    let direct = &fleet.links(id).direct;
    let repeated = !seen.insert(id.clone()) && !direct.is_empty();
    let mut dependencies = Vec::new();
    if !repeated {
        for reference in direct.iter() {
            let dependency = referred(reference);
            dependencies.push(node(fleet, &dependency, reference.optional, seen, now));
        }
    }
    Node {
        object: id.into(),
        exists,
        optional,
        clusters,
        repeated,
        dependencies,
    }
}
