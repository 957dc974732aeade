//! Applies one object of a Work: what is particular to it in the order of requests of [`crate::apply_task`].

use serde_json::Value;

use super::{Applied as AppliedObject, ObjectOrder};
use crate::{
    apply_task::{Applied, ApplyTask, Compared, End, Fetched, Next, RequestError, Stage},
    delivery::render::{self, Refusal, Standing},
    interpreter::Interpretation,
    manifest::{self, WorkOwner},
    rendered::Rendered,
};

/// An object of a Work, with its manifest. No `Debug`: it may be a Secret.
pub struct Manifest<'a> {
    /// The Work.
    pub owner: &'a WorkOwner,
    /// The object.
    pub order: &'a ObjectOrder,
    /// The interpretation of its kind.
    pub interpretation: &'a Interpretation,
    /// The manifest.
    pub manifest: &'a Value,
}

/// The outcome of a task.
pub enum Outcome {
    /// Written, or found equal: the object as it is now, the path at which it differed, and true if it was created.
    Applied(Fetched, Option<String>, bool),
    /// It was not applied.
    NotApplied(AppliedObject),
}

impl Manifest<'_> {
    /// The object to send, with what is retained of the live one.
    ///
    /// # Errors
    /// The reason why it cannot be rendered.
    pub fn render(&self, live: Option<&Value>) -> Result<Rendered, Refusal> {
        manifest::render(
            self.owner,
            self.interpretation,
            &self.order.id,
            self.manifest,
            live,
        )
    }
}

/// Returns the task that applies an object, and its first step.
#[must_use]
pub fn apply<'a>(object: &'a Manifest<'a>) -> (ApplyTask<&'a Manifest<'a>>, Next<Outcome>) {
    ApplyTask::apply(object, None, object.order.may_exist)
}

impl Applied for &Manifest<'_> {
    type Outcome = Outcome;

    fn left_alone(&self, live: &Value) -> Option<Outcome> {
        let id = &self.order.id;
        if !live["metadata"]["deletionTimestamp"].is_null() {
            return Some(failed(
                format!("{id} is being deleted on the cluster; it is created again when it is gone"),
                true,
            ));
        }
        match manifest::standing(self.owner, self.manifest, live, self.order.applied.as_deref()) {
            Standing::Ours | Standing::Adoptable => None,
            Standing::Foreign => {
                let WorkOwner { cluster, work } = self.owner;
                let (hub, own) = (manifest::hub_of(live), manifest::hub_of(self.manifest));
                let remedy = if hub.is_empty() || own.is_empty() || hub == own {
                    "delete it there, or have it taken over with conflictResolution Overwrite in its policy"
                        .to_owned()
                } else {
                    format!(
                        "hub {hub} manages it; if the hub of the Work replaces that one, `entourage adopt --former-hub {hub} \
                         --member {cluster}=FILE` takes over its copies"
                    )
                };
                let message =
                    format!("{id} already exists on {cluster} and is not managed by Work {work}: {remedy}");
                Some(failed(message, false))
            }
        }
    }

    fn compared(&self, rendered: &Rendered, live: &Value) -> Compared<Outcome> {
        render::difference(rendered, live).map_or(Compared::Equal, Compared::Differs)
    }

    fn class(&self, stage: Stage, no: RequestError) -> RequestError {
        // A POST proves what is missing.
        match (stage, no) {
            (Stage::Creating, no) => no,
            (_, RequestError::Missing) => RequestError::Gone,
            (_, no) => no,
        }
    }

    fn outcome(&self, _stage: Stage, end: End) -> (Option<Fetched>, Outcome) {
        let outcome = match end {
            End::Applied {
                object,
                differed,
                created,
            } => Outcome::Applied(object, differed, created),
            End::NotRendered(refusal) => failed(refusal.to_string(), false),
            End::Failed(no, message) => failed(message, no != RequestError::Refused),
            End::KeepsChanging => failed("the object keeps changing on the cluster".into(), true),
            // It is not removed.
            End::Gone | End::Held(_) | End::Kept(..) | End::Released(..) => {
                failed("nothing was sent".into(), true)
            }
        };
        (None, outcome)
    }
}

const fn failed(message: String, passes: bool) -> Outcome {
    Outcome::NotApplied(AppliedObject::Failed { message, passes })
}
