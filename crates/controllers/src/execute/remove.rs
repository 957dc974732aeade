//! Removes one copy on one member, or checks whether it exists: send the requests of its task, report.

use std::sync::Arc;

use entourage_core::{
    apply_task::Request,
    delivery::removal_task::{self, Outcome as End},
    object::{ResourceId, Str},
    observation::{Observation, Removed},
    plan::{Preconditions, RemovalMode},
};
use tracing::debug;

use super::{
    Executor, Outcome, outcome_of,
    send::{Sort, Target, form_of_copy},
};
use crate::{error::Failure, failure_kind::FailureKind, member::Member};

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
        let end = match member {
            None => End::Removed(unconnected()),
            Some(member) => {
                let task = removal_task::remove((&self.hub_id, &cluster), &preconditions, mode);
                self.run(task, &self.removed(&id, &cluster, member)).await
            }
        };
        let removed = match end {
            End::Removed(removed) => removed,
            End::Changed => {
                return Outcome::Failed {
                    failure_kind: FailureKind::Conflict,
                    asked: None,
                };
            }
            End::Abandoned => return outcome_of(&Failure::Abandoned),
        };
        if matches!(
            removed,
            Removed::Rejected(_) | Removed::Failed(_) | Removed::Unreachable(_)
        ) {
            debug!(object = %id, cluster = %cluster, "a copy could not be removed");
        }
        self.tell(Observation::Removed(cluster, id, removed)).await;
        Outcome::Done
    }

    /// Checks whether a copy exists on a member, after a write whose outcome is unknown.
    pub(super) async fn confirm(
        &self,
        id: ResourceId,
        cluster: Str,
        member: Option<&Arc<Member>>,
    ) -> Outcome {
        let removed = match member {
            None => unconnected(),
            Some(member) => {
                let target = self.removed(&id, &cluster, member);
                match removal_task::confirmed(&self.hub_id, target.send(Request::Look).await) {
                    Ok(live) => {
                        self.see_live(&target, live).await;
                        return Outcome::Done;
                    }
                    Err(removed) => removed,
                }
            }
        };
        self.tell(Observation::Removed(cluster, id, removed)).await;
        Outcome::Done
    }

    /// A copy to be removed. It is requested in the form that the cache keeps of its kind.
    fn removed<'a>(&self, id: &'a ResourceId, cluster: &'a Str, member: &'a Member) -> Target<'a> {
        Target {
            api: &member.api,
            cluster: Some(cluster),
            id,
            form: form_of_copy(&self.interpreters.of(&id.gvk), &id.gvk),
            sort: Sort::Removed,
        }
    }
}

fn unconnected() -> Removed {
    Removed::Unreachable("there is no connection to the member".into())
}
