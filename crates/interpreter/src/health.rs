//! Health of a copy.

use serde::Serialize;

/// How a copy is doing. Source: Karmada reference 0 (`aggregatedStatus[].health`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Health {
    /// It does what its spec asks for; kinds without a rule are healthy once they exist.
    Healthy,
    /// It does not, or not yet.
    Unhealthy,
    /// Its status cannot be read.
    #[default]
    Unknown,
}
