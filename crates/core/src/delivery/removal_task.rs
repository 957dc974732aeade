//! Removes one copy of a binding: what is particular to it in the order of requests of [`crate::apply_task`].
//!
//! Only a 404 that proves it means that the copy is gone: a copy that is wrongly taken for gone is never checked again.

use entourage_api::keys::label;
use serde_json::Value;

use super::render;
use crate::{
    apply_task::{Answer, Applied, ApplyTask, Compared, End, Fetched, NO_OBJECT, Next, RequestError, Stage},
    observation::Removed,
    plan::{Preconditions, RemovalMode},
    rendered::Rendered,
};

#[cfg(test)]
mod tests;

/// The outcome of a task.
#[derive(Debug)]
pub enum Outcome {
    /// It was removed, or could not be.
    Removed(Removed),
    /// It has another version than the one to be removed: planned again from its state.
    Changed,
    /// Nothing was sent.
    Abandoned,
}

/// A copy to be removed.
pub struct Removal<'a> {
    /// The hub and the cluster that manage it.
    creator: (&'a str, &'a str),
    mode: RemovalMode,
}

/// Returns the task that deletes or releases a copy of a hub on a cluster, and its first step.
#[must_use]
pub fn remove<'a>(
    creator: (&'a str, &'a str),
    preconditions: &Preconditions,
    mode: RemovalMode,
) -> (ApplyTask<Removal<'a>>, Next<Outcome>) {
    ApplyTask::remove(Removal { creator, mode }, preconditions, mode)
}

/// Reads the response to a GET after a write whose outcome is unknown.
///
/// # Errors
/// The outcome if no copy of this hub exists, or if that is unknown.
pub fn confirmed(hub: &str, answer: Answer) -> Result<Fetched, Removed> {
    match answer {
        Answer::Object(live) if live.0["metadata"]["labels"][label::HUB] == *hub => Ok(live),
        Answer::Object(live) if live.0["metadata"]["uid"].is_string() => Err(Removed::Gone),
        Answer::Failed(no, message) => Err(failed(no, message)),
        Answer::Object(_) | Answer::Rendered(_) => Err(Removed::Failed(NO_OBJECT.into())),
    }
}

impl Applied for Removal<'_> {
    type Outcome = Outcome;

    const ROUNDS: usize = 3;

    /// It is not applied.
    fn compared(&self, _rendered: &Rendered, _live: &Value) -> Compared<Outcome> {
        Compared::End(Outcome::Abandoned)
    }

    fn released(&self, live: &Value) -> Option<Value> {
        let (hub, cluster) = self.creator;
        if self.mode == RemovalMode::HandOver {
            render::hand_over(live, hub, cluster)
        } else {
            render::release(live, hub, cluster)
        }
    }

    fn outcome(&self, stage: Stage, end: End) -> (Option<Fetched>, Outcome) {
        let removed = match end {
            End::Held(live) => return (Some(live), Outcome::Removed(Removed::Accepted)),
            End::Kept(live, None) => return (Some(live), Outcome::Changed),
            End::Kept(live, Some(message)) => {
                return (Some(live), Outcome::Removed(Removed::Rejected(message)));
            }
            End::Released(_, true) => Removed::Released,
            End::Gone | End::Released(_, false) => Removed::Gone,
            End::KeepsChanging => Removed::Failed("the copy keeps changing on the member".into()),
            End::Failed(RequestError::Abandoned, _)
                if matches!(stage, Stage::Deleting | Stage::Releasing) =>
            {
                return (None, Outcome::Abandoned);
            }
            End::Failed(no, message) => failed(no, message),
            // It is not applied.
            End::Applied { .. } | End::NotRendered(_) => return (None, Outcome::Abandoned),
        };
        (None, Outcome::Removed(removed))
    }
}

fn failed(no: RequestError, message: String) -> Removed {
    match no {
        RequestError::Gone => Removed::Gone,
        RequestError::Refused => Removed::Rejected(message),
        RequestError::Missing | RequestError::Exists | RequestError::Changed | RequestError::Other => {
            Removed::Failed(message)
        }
        RequestError::NoResponse | RequestError::Abandoned => Removed::Unreachable(message),
    }
}
