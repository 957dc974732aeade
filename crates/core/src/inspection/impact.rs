//! The objects that a change or the deletion of an object touches, object by object and cluster by cluster.

mod cluster;
mod configuration;
mod template;

use serde::Serialize;

use super::{explanation::ObjectName, why};
use crate::{
    distribution,
    fleet::Fleet,
    kinds::CLUSTER_API,
    object::{NamespacedName, ResourceId, Str, Time},
    scope::{CLUSTER_POLICY, POLICY, POLICY_API},
};

/// The relation of a touched object to the one that changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Relation {
    /// It is a copy of the object.
    Copy,
    /// It refers to the object.
    Referrer,
    /// The object refers to it.
    Dependency,
    /// It is a template that a policy claims.
    Template,
    /// It is a copy of a ResourceDistribution.
    Distribution,
    /// It leaves the cluster, and other clusters take it.
    Moves,
    /// It leaves the cluster, and its other clusters keep it.
    Leaves,
    /// It has to leave the cluster, and no other one fits.
    Stranded,
}

impl Relation {
    /// Its name in the output.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Copy => "copy",
            Self::Referrer => "referrer",
            Self::Dependency => "dependency",
            Self::Template => "template",
            Self::Distribution => "distribution",
            Self::Moves => "moves",
            Self::Leaves => "leaves",
            Self::Stranded => "stranded",
        }
    }
}

/// One object that is touched.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Touched {
    /// The cluster; `None` on the hub.
    pub cluster: Option<Str>,
    /// Its relation.
    pub relation: Relation,
    /// The object.
    pub object: ObjectName,
    /// The effect of a change; empty if a change does not touch it.
    pub on_change: String,
    /// The effect of the deletion; empty if the deletion does not touch it.
    pub on_deletion: String,
}

/// The objects that an object touches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Impact {
    /// The object.
    pub object: ObjectName,
    /// The touched objects, by cluster, relation and name.
    pub touched: Vec<Touched>,
}

/// The objects that a change or the deletion of an object touches now.
///
/// Cost: O(referrers × their clusters + dependencies × clusters) for a template; O(all templates × clusters) for a policy, and that
/// of scheduling each workload of a Cluster.
#[must_use]
pub fn impact(fleet: &Fleet, id: &ResourceId, now: Time) -> Impact {
    let name = NamespacedName::new(&id.namespace, &id.name);
    let kind = &*id.gvk.kind;
    let is_policy = id.gvk.api_version() == POLICY_API;
    let mut touched = if is_policy && [POLICY.kind, CLUSTER_POLICY.kind].contains(&kind) {
        configuration::policy(fleet, &name, now)
    } else if is_policy && kind.ends_with("OverridePolicy") {
        configuration::overrides(fleet, &name)
    } else if id.gvk.api_version() == CLUSTER_API && kind == "Cluster" {
        cluster::of(fleet, &id.name, now)
    } else if id.gvk == distribution::gvk() {
        configuration::distribution(fleet, &id.name)
    } else {
        template::of(fleet, &why::watched(fleet, id), now)
    };
    touched.sort();
    touched.dedup();
    Impact {
        object: id.into(),
        touched,
    }
}
