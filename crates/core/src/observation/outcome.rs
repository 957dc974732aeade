//! What became of an attempt to write or to end a copy.

use super::Copy;
use crate::{
    distributed::observed::ObservedObject, interpreter::question::InterpretError, object::Str, places::Step,
};

/// What became of one attempt to write a copy.
#[derive(Clone, Debug, PartialEq)]
pub enum Delivered {
    /// Written, or found equal: the copy as it is now, and the source version it was rendered from.
    Applied {
        /// The copy as the member answered.
        copy: Copy,
        /// The version of the template that was rendered, in the form of [`crate::delivery::source_version`].
        source: String,
        /// Where the copy that was read differed from what was then written, as a path without values; `None` when
        /// nothing had to be written, or nothing was read before.
        differed: Option<String>,
    },
    /// An object that is not ours stands there and the policy says Abort.
    Foreign,
    /// The source does not exist any more, or must never travel; nothing was written.
    NoSource(String),
    /// A rule of an override policy cannot be applied to the object: which, why, and what to do. Nothing was written.
    BadOverride(String),
    /// What people taught us of the kind does not tell what the copy looks like. Nothing was written.
    Uninterpreted(InterpretError),
    /// The member refused the object: its answer, without any of the object's content.
    Rejected(String),
    /// The member answered with an error that may pass, such as a webhook of its own that cannot be called: its words,
    /// without any of the object's content. The outcome is unknown.
    Failed(String),
    /// The member could not be reached: why, in the words of the transport. The outcome is unknown.
    Unreachable(String),
    /// Nothing was sent, for a reason of our own (leadership was lost, we stop): it is planned again.
    Abandoned,
}

/// What became of one attempt to remove or release a copy.
#[derive(Clone, Debug, PartialEq)]
pub enum Removed {
    /// The DELETE was accepted; the copy is gone when the watch says so.
    Accepted,
    /// 404, another uid, or not ours any more: there is nothing of ours left.
    Gone,
    /// Our marks were taken off; the object stays.
    Released,
    /// The member refused.
    Rejected(String),
    /// The member could not be reached, or the outcome is unknown.
    Unreachable(String),
}

/// What became of one attempt to write a copy of a distribution, or to take one away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wrote {
    /// Written, or found equal.
    Applied {
        /// The copy as it is now.
        part: ObservedObject,
        /// The number of what it holds; see [`crate::distribution::observed::Spec::content`].
        content: u64,
        /// Where the copy that was read differed from what was then written, as a path without values; `None` when nothing had
        /// to be written, or nothing was read before.
        differed: Option<String>,
        /// Whether it was not there before.
        created: bool,
    },
    /// Looked at, and found to be otherwise; it was not to be written.
    Unequal {
        /// The copy as it is.
        part: ObservedObject,
        /// The number of what it was compared with.
        content: u64,
    },
    /// It did not work.
    Failed {
        /// What did not.
        step: Step,
        /// For a person, without any content.
        message: String,
    },
    /// There is nothing of ours left.
    Gone {
        /// The uid of what was there.
        uid: Str,
    },
    /// Nothing was sent, or what stands there is told by itself: it is planned again.
    Abandoned,
}
