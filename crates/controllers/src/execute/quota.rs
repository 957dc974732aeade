//! Sends the requests that apply or delete the ResourceQuota of a FederatedResourceQuota on a member. The core decides the order
//! of requests ([`ApplyTask`]).

use std::sync::Arc;

use entourage_core::{
    distribution::apply_task::{Answer, Request},
    object::{NamespacedName, ResourceId, Str},
    observation::{Observation, QuotaOutcome},
    plan::{Preconditions, QuotaOrder},
    quotas::apply_task::{self, ApplyTask, Next},
};

use super::{
    Executor, Outcome,
    distribute::{refusal, send},
};
use crate::{
    client::{Api, Form, path::Path},
    member::Member,
};

impl Executor {
    /// Executes one `Change::AssignQuota`. Its outcome is sent to the core, which decides when to retry.
    pub(super) async fn assign_quota(&self, order: QuotaOrder, member: Option<&Arc<Member>>) -> Outcome {
        let outcome = match member {
            None => unconnected(),
            Some(member) => apply(&member.api, &order).await,
        };
        self.told_quota(order.quota, order.cluster, outcome).await
    }

    /// Executes one `Change::UnassignQuota`.
    pub(super) async fn unassign_quota(
        &self,
        quota: NamespacedName,
        cluster: Str,
        preconditions: Preconditions,
        member: Option<&Arc<Member>>,
    ) -> Outcome {
        let outcome = match member {
            None => unconnected(),
            Some(member) => {
                let id = apply_task::id(&quota);
                let answer = send(&member.api, &id, &Request::Delete(preconditions.clone())).await;
                let answer = match &answer {
                    Ok(object) => Answer::Object(object),
                    Err(failure) => refusal(failure, &id),
                };
                apply_task::deleted(&answer, &preconditions)
            }
        };
        self.told_quota(quota, cluster, outcome).await
    }

    async fn told_quota(&self, quota: NamespacedName, cluster: Str, outcome: QuotaOutcome) -> Outcome {
        self.tell(Observation::QuotaAssigned(quota, cluster, Box::new(outcome)))
            .await;
        Outcome::Done
    }
}

/// Sends requests until the task has ended.
async fn apply(api: &Api, order: &QuotaOrder) -> QuotaOutcome {
    let id = apply_task::id(&order.quota);
    let (mut task, mut request) = ApplyTask::new(order);
    loop {
        let answer = whole(api, &id, &request).await;
        let next = task.answered(&match &answer {
            Ok(object) => Answer::Object(object),
            Err(failure) => refusal(failure, &id),
        });
        match next {
            Next::Ask(next) => request = next,
            Next::End(outcome) => return outcome,
        }
    }
}

/// As [`send`], with whole objects in the responses: their limits are compared.
async fn whole(
    api: &Api,
    id: &ResourceId,
    request: &Request,
) -> Result<serde_json::Value, crate::error::Failure> {
    match request {
        Request::Create(copy) => {
            api.create(&Path::collection(id), copy.object(), Form::Whole)
                .await
        }
        Request::Replace(copy) => api.replace(&Path::object(id), copy.object(), Form::Whole).await,
        other => send(api, id, other).await,
    }
}

fn unconnected() -> QuotaOutcome {
    QuotaOutcome::Failed("there is no connection to the member".into())
}
