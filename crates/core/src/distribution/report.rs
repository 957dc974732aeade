//! Counts for metrics.

use super::TargetStatus;
use crate::{
    index::Index,
    object::{Str, Time},
};

/// How one distribution stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The distribution.
    pub name: Str,
    /// Places that are meant.
    pub desired: usize,
    /// Places that hold it.
    pub succeeded: usize,
    /// Places that do not, for a reason that a person must look at.
    pub failed: usize,
    /// Those of them where an object of somebody else has the name.
    pub conflicts: usize,
    /// For how long something has been under way, in milliseconds.
    pub lag: i64,
}

/// All distributions, by name. Cost: O(distributions); for metrics only.
#[must_use]
pub fn reports(index: &Index, now: Time) -> Vec<Report> {
    let all = index.distributions.held.iter();
    all.map(|(name, held)| {
        let failed = held
            .by_verdict
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
