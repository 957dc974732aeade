//! Scheduling: filter the clusters, select among those that pass, divide the replicas among the selected ones.
//!
//! The filters are a table, [`FILTERS`]. The replicas that a cluster has room for are an estimate, [`estimate`]. A placement with a feature that this version does not support is refused with a
//! message, never ignored. The outcome depends only on the [`Request`] and on the clusters; scheduling again with the outcome
//! as current state has the same outcome. Source: Karmada reference 1.2 (placement) and 1.3 (scheduler).

pub mod affinity;
mod assign;
pub mod check;
mod cluster;
mod divide;
pub mod estimate;
mod explain;
pub mod filter;
mod fitness;
#[cfg(test)]
mod golden;
#[cfg(test)]
mod properties;
mod relevance;
mod request;
mod room;
mod schedule;
mod set;
mod spread;
pub mod taint;
#[cfg(test)]
mod tests;

pub use divide::{apportion, weight};
pub use filter::{FILTERS, Filter, FilterReason};
pub use fitness::{Fitness, fitness};
pub use relevance::{ClusterChange, relevant_change, reports_other_room};
pub use request::{Candidate, Estimates, Group, Outcome, Request, Room, Round, Scheduled};
pub use room::is_by_room;
pub use schedule::{schedule, schedule_by_estimates};
pub use set::{is_one_cluster, is_set};
