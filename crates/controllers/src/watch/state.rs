//! The state of a watch: its last report, and the reason of its end.

use entourage_core::object::Str;

/// The last report of a watch to the control loop.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reported {
    /// It lists, or nothing yet.
    Works,
    /// It fails.
    Lost,
    /// The server refuses it to our account.
    Refused,
    /// The server serves another version of the kind.
    Other(Str),
    /// The server serves no version of the kind now, and may store objects of it.
    Withheld,
    /// The server serves no version of the kind, and has no objects of it.
    NoSuchKind,
}

/// The reason why a watch ended.
pub(super) enum End {
    /// The resourceVersion cannot be watched from, or the server reports an error: list again.
    Relist,
    /// It can be resumed from here.
    Resume(String),
    /// It broke: it can be resumed from here if the server has come as far.
    Broken(String),
    /// The control loop has ended.
    Stop,
}
