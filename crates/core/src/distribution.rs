//! ResourceDistribution: one ConfigMap or Secret, kept in sync in many namespaces.
//!
//! The unit of work is one copy: a distribution in one [`Place`]. Each place that a distribution targets, or that has a copy of
//! it, has a [`TargetStatus`], which follows from observations alone; plans, counters and the status are computed from target
//! statuses. Invariants:
//!
//! - A target status is evaluated again when one of its inputs changes, and then the key of the place is planned: a namespace
//!   event costs the distributions that can match, never all of them.
//! - A copy is deleted only if distributions, namespaces and the objects of its name are synced, its owner is the distribution
//!   by uid, and it is not targeted. Targets that no longer match anything delete nothing by themselves. The
//!   objects that it was decided from are read once more right before: see [`crate::plan::Evidence`].
//! - No content is stored: a distribution is identified by a hash of its content.
//!
//! Source: seeds 000 to 002, ResourceDistribution reference 3 and 6.

pub mod apply_task;
pub mod generator;
#[cfg(test)]
mod golden;
#[cfg(test)]
mod outcomes;
mod plan;
#[cfg(test)]
mod properties;
mod report;
mod status;
#[cfg(test)]
mod writer;

pub(crate) use plan::{plan_copy, plan_end};
pub use report::{Report, reports};
pub(crate) use status::plan as plan_status;

pub use crate::{
    distributed::{hash, observed, render, targets, template},
    kinds::{DISTRIBUTION as KIND, DISTRIBUTION_API as API_VERSION, distribution as gvk},
    places::{Place, Step, TargetStatus},
    plan::{Order, WithdrawalOrder},
};
