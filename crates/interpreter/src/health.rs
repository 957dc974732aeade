//! The health of a copy.

use serde::Serialize;

/// The health of a copy. Source: Karmada reference 0 (`aggregatedStatus[].health`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Health {
    /// It is in the state that its spec requests; kinds without a rule are healthy once they exist.
    Healthy,
    /// It is not, or not yet.
    Unhealthy,
    /// Its status cannot be read.
    #[default]
    Unknown,
}
