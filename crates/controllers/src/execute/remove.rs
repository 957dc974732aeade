//! Removes one copy on one member: exactly the object that the core observed, or none.

use std::sync::Arc;

use entourage_core::{
    delivery::render::{self, wipe},
    object::{ResourceId, Str, is_held},
    observation::{Observation, Removed, Subject},
    plan::{Preconditions, RemovalMode},
};
use serde_json::Value;
use tracing::debug;

use super::{Executor, Outcome, outcome_of};
use crate::{
    client::{Form, path::Path},
    error::{Class, Failure},
    failure_kind::FailureKind,
    member::Member,
};

/// The number of times that a copy which changes while it is released is read again.
const ROUNDS: usize = 3;

impl Executor {
    /// Executes one removal. Its outcome is sent to the core, which decides when to retry; a copy that changed meanwhile is
    /// observed in its current state, and the key is planned again at once.
    pub(super) async fn remove(
        &self,
        id: ResourceId,
        cluster: Str,
        preconditions: Preconditions,
        mode: RemovalMode,
        member: Option<&Arc<Member>>,
    ) -> Outcome {
        let result = match (member, mode) {
            (None, _) => Ok(Removed::Unreachable(
                "there is no connection to the member".into(),
            )),
            (Some(member), RemovalMode::Delete) => delete(&id, &preconditions, self.form(&id), member).await,
            (Some(member), RemovalMode::Release | RemovalMode::HandOver) => {
                let to = (self.form(&id), &**member);
                release(&id, (&preconditions, mode), (&self.hub_id, &cluster), to).await
            }
        };
        match result {
            Ok(removed) => {
                if matches!(removed, Removed::Rejected(_) | Removed::Unreachable(_)) {
                    debug!(object = %id, cluster = %cluster, "a copy could not be removed");
                }
                self.tell(Observation::Removed(cluster, id, removed)).await;
                Outcome::Done
            }
            Err(End::Abandoned) => outcome_of(&Failure::Abandoned),
            Err(End::Held(live)) => {
                self.see_copy(&cluster, &id, live).await;
                self.tell(Observation::Removed(cluster, id, Removed::Accepted))
                    .await;
                Outcome::Done
            }
            Err(End::Changed(live)) => {
                self.see_copy(&cluster, &id, live).await;
                Outcome::Failed {
                    failure_kind: FailureKind::Conflict,
                    asked: None,
                }
            }
        }
    }

    /// The form in which a copy is requested: what the cache keeps of its kind.
    fn form(&self, id: &ResourceId) -> Form {
        if self.interpreters.of(&id.gvk).is_copied_whole(&id.gvk) {
            Form::Whole
        } else {
            Form::Metadata
        }
    }

    async fn see_copy(&self, cluster: &Str, id: &ResourceId, mut live: Value) {
        let interpretation = self.interpreters.of(&id.gvk);
        let copy = self
            .interpreters
            .copy(&interpretation, cluster, &id.gvk, &live)
            .await;
        wipe(&mut live);
        self.tell(Observation::Seen(Subject::Copy(
            cluster.clone(),
            id.clone(),
            copy,
        )))
        .await;
    }
}

impl Executor {
    /// Checks whether a copy exists on a member, after a write whose outcome is unknown.
    pub(super) async fn confirm(
        &self,
        id: ResourceId,
        cluster: Str,
        member: Option<&Arc<Member>>,
    ) -> Outcome {
        let removed = match member {
            None => Removed::Unreachable("there is no connection to the member".into()),
            Some(member) => match member.api.get(&Path::object(&id), self.form(&id)).await {
                Ok(live) => {
                    let interpretation = self.interpreters.of(&id.gvk);
                    let copy = self
                        .interpreters
                        .copy(&interpretation, &cluster, &id.gvk, &live)
                        .await;
                    if copy.meta.hub.as_deref() == Some(&*self.hub_id) {
                        self.tell(Observation::Seen(Subject::Copy(cluster, id, copy)))
                            .await;
                        return Outcome::Done;
                    }
                    Removed::Gone
                }
                Err(failure) => failed(failure, &id, member).await,
            },
        };
        self.tell(Observation::Removed(cluster, id, removed)).await;
        Outcome::Done
    }
}

/// The outcome of a removal that is not complete.
enum End {
    /// The copy has another version than the one to be removed.
    Changed(Value),
    /// The DELETE was accepted, and a finalizer keeps the copy.
    Held(Value),
    /// Nothing was sent.
    Abandoned,
}

async fn delete(
    id: &ResourceId,
    preconditions: &Preconditions,
    form: Form,
    member: &Member,
) -> Result<Removed, End> {
    let path = Path::object(id);
    match member
        .api
        .delete(&path, &preconditions.uid, &preconditions.resource_version)
        .await
    {
        // A Status, or for some kinds the last state of the object, if it is gone; the object if a finalizer keeps it.
        Ok(mut answer) => {
            if answer["kind"] == "Status" || !is_held(&answer["metadata"]) {
                wipe(&mut answer);
                return Ok(Removed::Gone);
            }
            Err(End::Held(answer))
        }
        Err(failure) if failure.class() == Class::Abandoned => Err(End::Abandoned),
        Err(failure) if failure.class() == Class::Conflict => match member.api.get(&path, form).await {
            Ok(live) if is_other(&live, preconditions) => Ok(Removed::Gone),
            Ok(live) => Err(End::Changed(live)),
            Err(failure) => Ok(failed(failure, id, member).await),
        },
        Err(failure) => Ok(failed(failure, id, member).await),
    }
}

async fn release(
    id: &ResourceId,
    (preconditions, mode): (&Preconditions, RemovalMode),
    (hub, cluster): (&str, &str),
    (form, member): (Form, &Member),
) -> Result<Removed, End> {
    let path = Path::object(id);
    for _ in 0..ROUNDS {
        let mut live = match member.api.get(&path, Form::Whole).await {
            Ok(live) => live,
            Err(failure) => return Ok(failed(failure, id, member).await),
        };
        let released = if is_other(&live, preconditions) {
            None
        } else if mode == RemovalMode::HandOver {
            render::hand_over(&live, hub, cluster)
        } else {
            render::release(&live, hub, cluster)
        };
        wipe(&mut live);
        let Some(mut released) = released else {
            return Ok(Removed::Gone);
        };
        let result = member.api.replace(&path, &released, form).await;
        wipe(&mut released);
        match result {
            Ok(mut answer) => {
                wipe(&mut answer);
                return Ok(Removed::Released);
            }
            Err(failure) if failure.class() == Class::Conflict => {}
            Err(failure) if failure.class() == Class::Abandoned => return Err(End::Abandoned),
            Err(failure) => return Ok(failed(failure, id, member).await),
        }
    }
    Ok(Removed::Unreachable(
        "the copy keeps changing on the member".into(),
    ))
}

fn is_other(live: &Value, preconditions: &Preconditions) -> bool {
    live["metadata"]["uid"].as_str() != Some(&*preconditions.uid)
}

/// The outcome of a failure for a copy. Only a 404 that proves it means that the copy is gone: a copy that is wrongly taken for
/// gone is never checked again.
async fn failed(failure: Failure, id: &ResourceId, member: &Member) -> Removed {
    match failure.class() {
        Class::Missing => match member.api.is_gone(id, &failure).await {
            Ok(true) => Removed::Gone,
            Ok(false) => Removed::Unreachable(failure.text(&id.gvk)),
            Err(failure) => Removed::Unreachable(failure.text(&id.gvk)),
        },
        Class::Refused => Removed::Rejected(failure.text(&id.gvk)),
        _ => Removed::Unreachable(failure.text(&id.gvk)),
    }
}
