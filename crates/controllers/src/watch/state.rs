//! The progress of a watch: what it reported, and why it ended.

use entourage_core::object::Str;

/// What the brain knows of a watch.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// That it lists, or nothing yet.
    Works,
    /// That it fails.
    Lost,
    /// That the server refuses it to our account.
    Refused,
    /// That the server serves another version of the kind.
    Other(Str),
    /// That the server serves no version of the kind now, and may hold objects of it.
    Withheld,
    /// That the server serves no version of the kind, and has no objects of it.
    Kindless,
}

/// Why a watch ended.
pub(super) enum End {
    /// The resourceVersion cannot be watched from, or the server reports an error: list again.
    Relist,
    /// It can be resumed from here.
    Resume(String),
    /// It broke: it can be resumed from here if the server has come as far.
    Broken(String),
    /// The brain is gone.
    Stop,
}
