//! Applies one copy of a binding: what is particular to it in the order of requests of [`crate::apply_task`].
//!
//! The sender renders it, because webhooks take part. A copy that is gone is created, whichever 404 says so: a POST proves what
//! is missing.

use serde_json::Value;

use super::{
    RenderSpec,
    render::{self, Refusal, Standing},
};
use crate::{
    apply_task::{Applied, ApplyTask, Compared, End, Fetched, Next, RequestError, Stage},
    object::{ResourceId, Str},
    observation::{Delivered, Holder},
    plan::Preconditions,
    rendered::Rendered,
};

#[cfg(test)]
mod tests;

/// The fields of a [`Change::Deliver`](crate::plan::Change::Deliver).
pub struct Order {
    /// The template's id, which is the copy's id.
    pub id: ResourceId,
    /// The member.
    pub cluster: Str,
    /// The data it is rendered with.
    pub render_spec: RenderSpec,
    /// The copy as last observed; `None` creates it.
    pub live: Option<Preconditions>,
    /// True if the live copy must be read before it is written.
    pub read_first: bool,
}

/// The outcome of a task.
pub enum Outcome {
    /// Written, or found equal: the copy as it is now, and the path at which it differed when it was read.
    Applied(Fetched, Option<String>),
    /// The copy cannot be rendered.
    NotRendered(Refusal),
    /// It was not applied.
    NotApplied(Delivered),
}

/// Returns the task that applies a copy, and its first step.
#[must_use]
pub fn apply(order: &Order) -> (ApplyTask<&Order>, Next<Outcome>) {
    let read_first = order.read_first && order.live.is_some();
    ApplyTask::apply(order, order.live.as_ref(), read_first)
}

impl Applied for &Order {
    type Outcome = Outcome;

    fn left_alone(&self, live: &Value) -> Option<Outcome> {
        match render::standing(&self.render_spec, &self.cluster, live) {
            Standing::Ours | Standing::Adoptable => None,
            Standing::Foreign => {
                let holder = Holder::of(live, &self.cluster);
                Some(Outcome::NotApplied(Delivered::Foreign(holder)))
            }
        }
    }

    fn compared(&self, rendered: &Rendered, live: &Value) -> Compared<Outcome> {
        render::difference(rendered, live).map_or(Compared::Equal, Compared::Differs)
    }

    fn class(&self, _stage: Stage, no: RequestError) -> RequestError {
        if no == RequestError::Missing {
            RequestError::Gone
        } else {
            no
        }
    }

    fn outcome(&self, _stage: Stage, end: End) -> (Option<Fetched>, Outcome) {
        let outcome = match end {
            End::Applied { object, differed, .. } => Outcome::Applied(object, differed),
            End::NotRendered(refusal) => Outcome::NotRendered(refusal),
            End::Failed(no, message) => Outcome::NotApplied(match no {
                RequestError::Gone | RequestError::Missing | RequestError::Refused => {
                    Delivered::Rejected(message)
                }
                RequestError::Exists | RequestError::Changed | RequestError::Other => {
                    Delivered::Failed(message)
                }
                RequestError::NoResponse => Delivered::Unreachable(message),
                RequestError::Abandoned => Delivered::Abandoned,
            }),
            End::KeepsChanging => {
                Outcome::NotApplied(Delivered::Failed("the copy keeps changing on the member".into()))
            }
            // It is not removed.
            End::Gone | End::Held(_) | End::Kept(..) | End::Released(..) => {
                Outcome::NotApplied(Delivered::Abandoned)
            }
        };
        (None, outcome)
    }
}
