//! The origin of an observation: what explains that something is not wanted any more.

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
