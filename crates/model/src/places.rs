//! The targets of distributions: places (a namespace of a server), the status of the copy in each, and the conditions made of
//! these.

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

/// A request for a copy, as the six conditions name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Step {
    /// Read it, or its source.
    Get,
    /// Create it.
    Create,
    /// Update it.
    Update,
    /// Delete it.
    Delete,
}

/// The status of a distribution in one target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TargetStatus {
    /// The copy exists and is current.
    Done,
    /// The copy must be written or read.
    Pending,
    /// The copy is not written because of a conflict in another target (writePolicy strict).
    Blocked,
    /// The copy is no longer wanted, and is being deleted.
    Leaving,
    /// The copy is no longer wanted, and is kept until a user confirms its deletion.
    Kept,
    /// The namespace does not exist, or is being deleted.
    NoNamespace,
    /// An object of this name already exists and is not managed.
    Conflict,
    /// The last attempt failed.
    Failed(Step),
}

impl TargetStatus {
    /// True if the place is a target of the distribution.
    #[must_use]
    pub const fn is_meant(self) -> bool {
        !matches!(self, Self::Leaving | Self::Kept | Self::Failed(Step::Delete))
    }

    /// True if a request is pending that is not blocked.
    #[must_use]
    pub const fn is_under_way(self) -> bool {
        matches!(self, Self::Pending | Self::Leaving)
    }
}

/// True if the owner of a namespace forbids distributions.
#[must_use]
pub fn is_denied(namespace: &Meta) -> bool {
    namespace.annotation(annotation::DISTRIBUTION) == Some(DENY)
}

/// True if a namespace is a system namespace by its name, with any setup of the control plane.
pub fn is_system(namespace: &str) -> bool {
    const NAMES: [&str; 4] = ["kube-system", "kube-public", "karmada-system", "karmada-cluster"];
    NAMES.contains(&namespace) || namespace.starts_with("karmada-es-")
}

/// The six conditions in their order, and the statuses that make each True. Source: ResourceDistribution reference 1.
pub const CONDITIONS: [(&str, &[TargetStatus]); 6] = [
    ("GetResourceFailed", &[TargetStatus::Failed(Step::Get)]),
    ("CreateResourceFailed", &[TargetStatus::Failed(Step::Create)]),
    ("UpdateResourceFailed", &[TargetStatus::Failed(Step::Update)]),
    ("DeleteResourceFailed", &[TargetStatus::Failed(Step::Delete)]),
    (CONFLICT, &[TargetStatus::Conflict]),
    ("NamespaceNotExists", &[TargetStatus::NoNamespace]),
];

/// The type of the condition for an object that already exists and is not managed.
pub const CONFLICT: &str = "ConflictOccurred";

/// The text of a condition that is False.
pub const SUCCEEDED: &str = "Succeeded";

/// The types of the six conditions in their order.
pub fn condition_types() -> impl Iterator<Item = &'static str> {
    CONDITIONS.iter().map(|(type_, _)| *type_)
}
