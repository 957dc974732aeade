//! The API servers: the hub's and those of the members.

use crate::object::Str;

/// An API server.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Server {
    /// The API server of the control plane.
    Hub,
    /// A member cluster, by the name of its Cluster object.
    Member(Str),
}
