//! ResourceDistribution: one ConfigMap or Secret in many namespaces, kept in step.
//!
//! The unit of work is one copy: a distribution in one [`Place`]. Each place that a distribution means, or where a copy of
//! it stands, has a [`Verdict`], which follows from what was observed alone; plans, counters and the status are made of
//! verdicts. Invariants:
//!
//! - A verdict is judged anew when something that it looks at changed, and then the key of the place is planned: a namespace
//!   event costs the distributions that can match, never all of them.
//! - A copy is deleted only when distributions, namespaces and the objects of its name are known as they are now, its owner
//!   is the distribution by uid, and it is not meant. Targets that cease to mean anything delete nothing by themselves.
//! - No content is held: a distribution is known by a number that changes with its content.
//!
//! Source: seeds 000 to 002, ResourceDistribution reference 3 and 6.

pub mod errand;
pub mod generator;
#[cfg(test)]
mod golden;
pub mod hash;
pub(crate) mod held;
mod judge;
mod marks;
mod normal;
pub mod observed;
#[cfg(test)]
mod outcomes;
mod plan;
#[cfg(test)]
mod properties;
pub mod render;
mod report;
mod status;
pub mod targets;
pub mod template;
#[cfg(test)]
mod writer;

use entourage_api::keys::{DENY, annotation};
use serde::Serialize;

pub use plan::Order;
pub(crate) use plan::{plan_copy, plan_end};
pub use report::{Report, reports};
pub(crate) use status::{SUCCEEDED, condition_types, plan as plan_status};

use crate::{
    index::Config,
    object::{Gvk, Meta, Str},
    observation::Server,
};

/// The kind, in the version that is stored.
pub const API_VERSION: &str = "apps.kruise.io/v1alpha1";
/// The kind.
pub const KIND: &str = "ResourceDistribution";

/// The kind as the core names kinds.
#[must_use]
pub fn gvk() -> Gvk {
    Gvk::new(API_VERSION, KIND)
}

/// A namespace of the hub or of a member.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Place {
    /// The member; `None` for the hub.
    pub cluster: Option<Str>,
    /// The namespace.
    pub namespace: Str,
}

impl Place {
    /// The API server.
    #[must_use]
    pub fn server(&self) -> Server {
        self.cluster.clone().map_or(Server::Hub, Server::Member)
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.cluster {
            None => f.write_str(&self.namespace),
            Some(cluster) => write!(f, "{cluster}/{}", self.namespace),
        }
    }
}

/// One thing that is done to a copy, as the six conditions name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Step {
    /// Read it, or what it is made of.
    Get,
    /// Make it.
    Create,
    /// Change it.
    Update,
    /// Take it away.
    Delete,
}

/// How a distribution stands in one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// The copy is there and as it should be.
    Done,
    /// It is to be written, or looked at.
    Pending,
    /// It would be written, but for a conflict elsewhere (writePolicy strict).
    Blocked,
    /// It stands there, is not meant there, and goes.
    Leaving,
    /// It stands there, is not meant there, and is kept until somebody confirms that it shall go.
    Kept,
    /// The namespace does not exist, or ends.
    NoNamespace,
    /// An object of somebody else stands there.
    Conflict,
    /// The last attempt failed.
    Failed(Step),
}

impl Verdict {
    /// Whether the place is one of those that the distribution means.
    #[must_use]
    pub const fn is_meant(self) -> bool {
        !matches!(self, Self::Leaving | Self::Kept | Self::Failed(Step::Delete))
    }

    /// Whether something is to be done that nothing stands in the way of.
    #[must_use]
    pub const fn is_under_way(self) -> bool {
        matches!(self, Self::Pending | Self::Leaving)
    }
}

/// Whether the owner of a namespace keeps distributions out of it.
#[must_use]
pub(crate) fn is_denied(namespace: &Meta) -> bool {
    namespace.annotation(annotation::DISTRIBUTION) == Some(DENY)
}

/// Whether nothing is ever distributed into a namespace: it belongs to the system. Source: seed 000, "targets will always
/// ignore the kube-system and kube-public namespaces"; the control plane's own, reference 6.3.
#[must_use]
pub fn is_protected(config: &Config, namespace: &str) -> bool {
    is_system(namespace) || config.reserved.contains(namespace)
}

/// Whether a namespace belongs to the system by its name, however the control plane is set up.
pub(crate) fn is_system(namespace: &str) -> bool {
    const NAMES: [&str; 4] = ["kube-system", "kube-public", "karmada-system", "karmada-cluster"];
    NAMES.contains(&namespace) || namespace.starts_with("karmada-es-")
}
