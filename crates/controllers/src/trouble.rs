//! The reasons for which a plan is retried, each with its back-off.

/// Why a key is retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The object changed under us. What it is now has been observed.
    Conflict,
    /// 429 or 5xx.
    Busy,
    /// No answer from the hub; what a member does not answer is told to the core.
    Silence,
    /// Only a person can change it.
    Refused,
    /// The task that carried out the plan ended without an outcome.
    Lost,
}

impl Trouble {
    /// First and longest wait in milliseconds.
    pub(crate) const fn range(self) -> (i64, i64) {
        match self {
            Self::Conflict => (4, 1_000),
            Self::Busy | Self::Silence => (100, 30_000),
            Self::Refused | Self::Lost => (1_000, 60_000),
        }
    }
}
