//! The reasons for which a plan that failed is retried, and the delays.

/// The reason why a key is retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// The object changed concurrently. Its current state has been observed.
    Conflict,
    /// 429 or 5xx.
    Busy,
    /// No response from the hub; a member without a response is reported to the core.
    NoResponse,
    /// Only a user can fix it.
    Refused,
    /// The task that executed the plan ended without an outcome.
    Lost,
}

impl FailureKind {
    /// The first and the longest delay in milliseconds.
    pub(crate) const fn range(self) -> (i64, i64) {
        match self {
            Self::Conflict => (4, 1_000),
            Self::Busy | Self::NoResponse => (100, 30_000),
            Self::Refused | Self::Lost => (1_000, 60_000),
        }
    }
}
