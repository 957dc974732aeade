//! ResourceDistribution: one ConfigMap or Secret in many namespaces, kept in step.
//!
//! The unit of work is one copy: a distribution in one [`Place`]. Each place that a distribution means, or where a copy of
//! it stands, has a [`TargetStatus`], which follows from what was observed alone; plans, counters and the status are made of
//! verdicts. Invariants:
//!
//! - A verdict is judged anew when something that it looks at changed, and then the key of the place is planned: a namespace
//!   event costs the distributions that can match, never all of them.
//! - A copy is deleted only when distributions, namespaces and the objects of its name are known as they are now, its owner
//!   is the distribution by uid, and it is not meant. Targets that cease to mean anything delete nothing by themselves.
//! - No content is held: a distribution is known by a number that changes with its content.
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
    plan::Order,
};
