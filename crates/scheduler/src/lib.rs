//! The scheduler: it filters the clusters, chooses among those that pass, and divides the replicas among the chosen ones.
//!
//! The filters are a table, [`FILTERS`]. What a placement asks for and this version does not do is refused with a
//! message, never ignored. The outcome depends on what a [`Request`] holds and on the clusters, on nothing else; asked
//! again with what came out, the same comes out. Source: Karmada reference 1.2 (placement) and 1.3 (scheduler).

pub mod affinity;
mod assign;
pub mod check;
mod cluster;
mod divide;
mod explain;
pub mod filter;
#[cfg(test)]
mod golden;
#[cfg(test)]
mod properties;
mod relevance;
mod request;
mod schedule;
mod spread;
pub mod taint;
#[cfg(test)]
mod tests;

pub use divide::{apportion, weight};
pub use filter::{FILTERS, Filter, FilterReason};
pub use relevance::{may_change, relevant_change};
pub use request::{Candidate, Outcome, Request, Round};
pub use schedule::schedule;
