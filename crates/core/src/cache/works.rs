//! A Work as observed.

use crate::{object::Time, observation::Work};

/// A Work as observed, with the time of its last change.
#[derive(Clone, Debug)]
pub(crate) struct HeldWork {
    pub(crate) work: Work,
    /// The time when this process observed its last change.
    pub(crate) since: Time,
}
