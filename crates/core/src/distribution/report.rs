//! Counts for metrics.

use super::TargetStatus;
use crate::{
    fleet::Fleet,
    object::{Str, Time},
};

/// The state of one distribution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The distribution.
    pub name: Str,
    /// The number of target places.
    pub desired: usize,
    /// The number of places with an up-to-date copy.
    pub succeeded: usize,
    /// The number of places without, for a reason that a user must look at.
    pub failed: usize,
    /// The number of those where an object not owned by the distribution has the name.
    pub conflicts: usize,
    /// The time since the oldest pending change, in milliseconds.
    pub lag: i64,
}

/// All distributions, by name. Cost: O(distributions); for metrics only.
#[must_use]
pub fn reports(fleet: &Fleet, now: Time) -> Vec<Report> {
    let all = fleet.memory.distributions.held.iter();
    all.map(|(name, held)| {
        let failed = held
            .by_target_status
            .iter()
            .filter(|(target_status, _)| {
                matches!(
                    target_status,
                    TargetStatus::Failed(_)
                        | TargetStatus::NoNamespace
                        | TargetStatus::Blocked
                        | TargetStatus::Conflict
                )
            })
            .map(|(_, places)| places.len())
            .sum();
        Report {
            name: name.clone(),
            desired: held.meant(),
            succeeded: held.count(TargetStatus::Done),
            failed,
            conflicts: held.count(TargetStatus::Conflict),
            lag: held.under_way_since.map_or(0, |since| now.0 - since.0),
        }
    })
    .collect()
}
