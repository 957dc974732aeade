//! Applies or removes one copy of a distribution: what is particular to it in the order of requests of [`crate::apply_task`].
//!
//! No object is replaced or deleted that does not belong to the distribution, except for one without a controller where the
//! distribution adopts it. A refused update is compared: the object may be immutable, or of another type, which only a read
//! shows.

use serde_json::Value;

use super::{
    Order, Place, Step,
    observed::ObservedObject,
    render::{self, DistributionRenderSpec, Standing},
};
use crate::{
    apply_task::{Applied, ApplyTask, Compared, End, Fetched, Next, RequestError, Stage},
    object::Str,
    observation::Wrote,
    plan::{Preconditions, RemovalMode},
    rendered::Rendered,
};

mod fetched;
#[cfg(test)]
mod tests;

pub use fetched::{Content, content, source};

/// The render data by which copies of a distribution in a place are recognised when one is removed.
#[must_use]
pub fn withdrawal_spec(distribution: &Str, uid: &Str, place: &Place, hub: &Str) -> DistributionRenderSpec {
    DistributionRenderSpec {
        distribution: distribution.clone(),
        uid: uid.clone(),
        namespace: place.namespace.clone(),
        mark: render::mark(place, hub),
        take_over: false,
    }
}

/// A copy to be applied, with its content.
pub struct DistributedCopy<'a>(&'a Order, Content<'a>);

/// A copy to be removed.
pub struct Withdrawal<'a>(&'a DistributionRenderSpec, &'a Preconditions);

/// Returns the task that applies a copy, and its first step.
#[must_use]
pub fn apply<'a>(order: &'a Order, content: Content<'a>) -> (ApplyTask<DistributedCopy<'a>>, Next<Wrote>) {
    let read_first = !order.may_write || order.read_first && order.live.is_some();
    ApplyTask::apply(DistributedCopy(order, content), order.live.as_ref(), read_first)
}

/// Returns the task that deletes or releases a copy, and its first step.
#[must_use]
pub fn withdraw<'a>(
    render_spec: &'a DistributionRenderSpec,
    preconditions: &'a Preconditions,
    mode: RemovalMode,
) -> (ApplyTask<Withdrawal<'a>>, Next<Wrote>) {
    ApplyTask::remove(Withdrawal(render_spec, preconditions), preconditions, mode)
}

impl Applied for DistributedCopy<'_> {
    type Outcome = Wrote;

    const SEES_OTHERS: bool = true;

    fn rendered(&self, live: Option<&Value>) -> Option<Rendered> {
        Some(render::render(&self.0.render_spec, self.1.resource(), live))
    }

    fn may_create(&self) -> bool {
        self.0.may_write
    }

    fn left_alone(&self, live: &Value) -> Option<Wrote> {
        if !live["metadata"]["deletionTimestamp"].is_null() {
            return Some(Wrote::Abandoned);
        }
        match render::standing(&self.0.render_spec, live) {
            Standing::Ours => None,
            Standing::Free if self.0.render_spec.take_over => None,
            Standing::Free | Standing::Held(_) => Some(Wrote::Failed {
                step: Step::Create,
                message: "an object that is not managed by it already exists there".into(),
                may_exist: false,
            }),
        }
    }

    fn compared(&self, rendered: &Rendered, live: &Value) -> Compared<Wrote> {
        let Some(path) = render::difference(rendered, live) else {
            return Compared::Equal;
        };
        if !self.0.may_write {
            return Compared::End(Wrote::Unequal {
                part: ObservedObject::of(live),
                content: self.1.number,
            });
        }
        match render::must_be_recreated(rendered, live) {
            None => Compared::Differs(path),
            Some(_) if self.0.may_recreate => Compared::Immutable(path),
            Some(why) => Compared::End(Wrote::Failed {
                step: Step::Update,
                message: format!(
                    "{why}, and the distribution's annotation keeps it from being deleted and made again"
                ),
                may_exist: false,
            }),
        }
    }

    fn class(&self, stage: Stage, no: RequestError) -> RequestError {
        match (stage, no) {
            (Stage::Updating, RequestError::Refused) => RequestError::Changed,
            _ => no,
        }
    }

    fn outcome(&self, stage: Stage, end: End) -> (Option<Fetched>, Wrote) {
        let wrote = match end {
            End::Applied {
                object,
                differed,
                created,
            } => Wrote::Applied {
                part: ObservedObject::of(&object.0),
                content: self.1.number,
                differed,
                created,
            },
            End::Gone => match &self.0.live {
                Some(Preconditions { uid, .. }) => Wrote::Gone { uid: uid.clone() },
                None => Wrote::Abandoned,
            },
            end => {
                // A DELETE before it is created again is part of the update.
                let step = match stage {
                    Stage::Creating => Step::Create,
                    Stage::Reading => Step::Get,
                    _ => Step::Update,
                };
                return incomplete(step, end);
            }
        };
        (None, wrote)
    }
}

impl Applied for Withdrawal<'_> {
    type Outcome = Wrote;

    const SEES_OTHERS: bool = true;

    /// It is not applied.
    fn compared(&self, _rendered: &Rendered, _live: &Value) -> Compared<Wrote> {
        Compared::End(Wrote::Abandoned)
    }

    fn released(&self, live: &Value) -> Option<Value> {
        render::release(self.0, live)
    }

    fn outcome(&self, _stage: Stage, end: End) -> (Option<Fetched>, Wrote) {
        if let End::Gone = end {
            let uid = self.1.uid.clone();
            return (None, Wrote::Gone { uid });
        }
        incomplete(Step::Delete, end)
    }
}

/// The outcome of an end that is neither "applied" nor "gone".
fn incomplete(step: Step, end: End) -> (Option<Fetched>, Wrote) {
    let may_exist = step == Step::Create
        && matches!(
            &end,
            End::Failed(RequestError::NoResponse | RequestError::Other, _)
        );
    let message = match end {
        End::Kept(_, Some(message)) => message,
        // The planner decides from its state.
        End::Held(live) | End::Kept(live, None) | End::Released(live, _) => {
            return (Some(live), Wrote::Abandoned);
        }
        End::Failed(RequestError::Abandoned, _) | End::Applied { .. } | End::Gone | End::NotRendered(_) => {
            return (None, Wrote::Abandoned);
        }
        End::Failed(_, message) => message,
        End::KeepsChanging => "the object keeps changing".into(),
    };
    let failed = Wrote::Failed {
        step,
        message,
        may_exist,
    };
    (None, failed)
}
