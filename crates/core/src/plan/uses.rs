//! The use of the room of members, and of the estimates of it, by the plan of a binding.

use std::collections::BTreeSet;

use entourage_api::work::{ResourceBindingSpec, TargetCluster};

use crate::{
    object::{ResourceId, Str},
    scheduler::estimate::Demand,
};

/// The use of the room of members by a binding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoomUse {
    /// The demand of one replica, or of a set of components.
    pub demand: Demand,
    /// The scheduling result, sorted by name; `None` if the room is too little.
    pub clusters: Option<Vec<TargetCluster>>,
    /// The priority of the binding: of those that wait, the highest is tried first.
    pub priority: i32,
}

/// The use of the estimates of room by a binding.
#[derive(Clone, Debug, PartialEq)]
pub struct EstimateUse {
    /// The requirements of a replica, as [`super::EstimateOrder::key`].
    pub key: Str,
    /// True if its own part waits; otherwise only a move that is not made yet depends on the answers.
    pub waits: bool,
    /// The clusters whose room it may use.
    pub clusters: BTreeSet<Str>,
    /// The priority of the binding: those of lower ones that would use this room wait until it does not.
    pub priority: i32,
    /// The binding of a higher priority that it waits behind.
    pub behind: Option<ResourceId>,
    /// The spec that it would store without the answers, if it waits: it counts for quotas and workload groups as if it was stored.
    pub wanted: Option<ResourceBindingSpec>,
}
