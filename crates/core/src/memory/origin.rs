//! The origin of an observation: it explains why something is no longer wanted.

/// The origin of an observation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A user's edit that a watch reported.
    Edit,
    /// A list.
    List,
    /// Everything else: responses, members, time.
    #[default]
    Other,
}
