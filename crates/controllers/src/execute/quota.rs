//! Sends the requests that apply or delete the ResourceQuota of a FederatedResourceQuota on a member.

use std::sync::Arc;

use entourage_core::{
    apply_task::{ApplyTask, Next},
    object::{NamespacedName, Str},
    observation::{Observation, QuotaOutcome},
    plan::{Preconditions, QuotaOrder},
    quotas::apply_task::{self, Assignment},
};

use super::{
    Executor, Outcome,
    send::{Sort, Target},
};
use crate::{client::Form, member::Member};

impl Executor {
    /// Executes one `Change::AssignQuota`. Its outcome is sent to the core, which decides when to retry.
    pub(super) async fn assign_quota(&self, order: QuotaOrder, member: Option<&Arc<Member>>) -> Outcome {
        let task = apply_task::assign(&order);
        self.run_quota(task, &order.quota, &order.cluster, member).await
    }

    /// Executes one `Change::UnassignQuota`.
    pub(super) async fn unassign_quota(
        &self,
        quota: NamespacedName,
        cluster: Str,
        preconditions: Preconditions,
        member: Option<&Arc<Member>>,
    ) -> Outcome {
        let task = apply_task::unassign(&preconditions);
        self.run_quota(task, &quota, &cluster, member).await
    }

    async fn run_quota(
        &self,
        task: (ApplyTask<Assignment<'_>>, Next<QuotaOutcome>),
        quota: &NamespacedName,
        cluster: &Str,
        member: Option<&Arc<Member>>,
    ) -> Outcome {
        let outcome = match member {
            None => QuotaOutcome::Failed("there is no connection to the member".into()),
            Some(member) => {
                // Whole objects in all responses: their limits are compared.
                let target = Target {
                    api: &member.api,
                    cluster: Some(cluster),
                    id: &apply_task::id(quota),
                    form: Form::Whole,
                    sort: Sort::Quota,
                };
                self.run(task, &target).await
            }
        };
        let (quota, cluster) = (quota.clone(), cluster.clone());
        self.tell(Observation::QuotaAssigned(quota, cluster, Box::new(outcome)))
            .await;
        Outcome::Done
    }
}
