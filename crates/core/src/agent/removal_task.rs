//! Removes one object of a Work that is being deleted: the decision from its metadata, and what is particular to it in the order of
//! requests of [`crate::apply_task`].
//!
//! The object is looked at first: only one that names this very Work, and no other hub than its manifest, is deleted, and only that
//! version of it. A namespace is never deleted.

use serde_json::Value;

use super::{RemovalObject, Removed};
use crate::{
    apply_task::{Answer, Applied, ApplyTask, Compared, End, Fetched, NO_OBJECT, Next, RequestError, Stage},
    manifest::{self, WorkOwner},
    object::Meta,
    plan::{Preconditions, RemovalMode},
    rendered::Rendered,
};

/// The decision about the object that was looked at.
#[derive(Debug, PartialEq, Eq)]
pub enum Decision {
    /// It is removed.
    Remove(Preconditions, RemovalMode),
    /// Nothing is sent.
    End(Removed),
}

/// Decides from the response to a GET of the object's metadata.
#[must_use]
pub fn decide(owner: &WorkOwner, object: &RemovalObject, preserves: bool, answer: &Answer) -> Decision {
    let live = match answer {
        Answer::Object(live) => &live.0,
        Answer::Failed(RequestError::Gone, _) => return Decision::End(Removed::Done(None)),
        Answer::Failed(_, message) => return Decision::End(Removed::Failed(message.clone())),
        Answer::Rendered(_) => return Decision::End(Removed::Failed(NO_OBJECT.into())),
    };
    let meta = Meta::of(live);
    if meta.uid.is_empty() {
        return Decision::End(Removed::Failed(NO_OBJECT.into()));
    }
    if !owner.owns(&meta, &object.hub) {
        let note = format!("kept: it is not managed by Work {}", owner.work);
        return Decision::End(Removed::Done(Some(note)));
    }
    // What others put into a namespace is not known: it would be deleted with it.
    let is_kept = preserves || object.id.gvk.is_namespace();
    if meta.deleting.is_some() && !is_kept {
        return Decision::End(Removed::Held);
    }
    let known = Preconditions {
        uid: meta.uid,
        resource_version: meta.resource_version,
    };
    let mode = if is_kept {
        RemovalMode::Release
    } else {
        RemovalMode::Delete
    };
    Decision::Remove(known, mode)
}

/// Returns the task that deletes or releases an object, and its first step.
#[must_use]
pub fn remove<'a>(
    owner: &'a WorkOwner,
    object: &'a RemovalObject,
    known: &Preconditions,
    mode: RemovalMode,
) -> (ApplyTask<Removal<'a>>, Next<Removed>) {
    ApplyTask::remove(Removal(owner, &object.hub), known, mode)
}

/// An object to be removed.
pub struct Removal<'a>(&'a WorkOwner, &'a str);

impl Applied for Removal<'_> {
    type Outcome = Removed;

    /// It is not applied.
    fn compared(&self, _rendered: &Rendered, _live: &Value) -> Compared<Removed> {
        Compared::End(Removed::Done(None))
    }

    fn released(&self, live: &Value) -> Option<Value> {
        manifest::release(self.0, self.1, live)
    }

    fn outcome(&self, _stage: Stage, end: End) -> (Option<Fetched>, Removed) {
        let removed = match end {
            End::Gone => Removed::Done(None),
            End::Released(_, true) => Removed::Done(Some("kept, without ownership metadata".into())),
            End::Released(_, false) => Removed::Done(Some("kept: it is not managed by this Work".into())),
            End::Held(_) => Removed::Held,
            End::Kept(_, None) => Removed::Failed("it changed meanwhile".into()),
            End::Kept(_, Some(message)) | End::Failed(_, message) => Removed::Failed(message),
            End::KeepsChanging => Removed::Failed("it keeps changing on the cluster".into()),
            // It is not applied.
            End::Applied { .. } | End::NotRendered(_) => Removed::Failed(NO_OBJECT.into()),
        };
        (None, removed)
    }
}
