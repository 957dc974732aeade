//! Group, version and kind, as the tables of kinds name them.

/// Group, version and kind as plain strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NativeGvk<'a> {
    /// API group; empty for the core group.
    pub group: &'a str,
    /// API version within the group.
    pub version: &'a str,
    /// Kind, in its singular camel-case form.
    pub kind: &'a str,
}
