//! The copies of a distribution: their targets, the status of each, and the conditions made of these.

use entourage_api::keys::{DENY, annotation};
use serde::Serialize;

use crate::{
    object::{Meta, Str},
    server::Server,
};

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
pub enum TargetStatus {
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

impl TargetStatus {
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
pub fn is_denied(namespace: &Meta) -> bool {
    namespace.annotation(annotation::DISTRIBUTION) == Some(DENY)
}

/// Whether a namespace belongs to the system by its name, however the control plane is set up.
pub fn is_system(namespace: &str) -> bool {
    const NAMES: [&str; 4] = ["kube-system", "kube-public", "karmada-system", "karmada-cluster"];
    NAMES.contains(&namespace) || namespace.starts_with("karmada-es-")
}

/// The six conditions in their order, and the verdicts that make each True. Source: ResourceDistribution reference 1.
pub const CONDITIONS: [(&str, &[TargetStatus]); 6] = [
    ("GetResourceFailed", &[TargetStatus::Failed(Step::Get)]),
    ("CreateResourceFailed", &[TargetStatus::Failed(Step::Create)]),
    ("UpdateResourceFailed", &[TargetStatus::Failed(Step::Update)]),
    ("DeleteResourceFailed", &[TargetStatus::Failed(Step::Delete)]),
    (CONFLICT, &[TargetStatus::Conflict]),
    ("NamespaceNotExists", &[TargetStatus::NoNamespace]),
];

/// The type of the condition that says that an object of somebody else stands there.
pub const CONFLICT: &str = "ConflictOccurred";

/// The text of a condition that is False.
pub const SUCCEEDED: &str = "Succeeded";

/// The types of the six conditions in their order.
pub fn condition_types() -> impl Iterator<Item = &'static str> {
    CONDITIONS.iter().map(|(type_, _)| *type_)
}
