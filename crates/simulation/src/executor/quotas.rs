//! ResourceQuotas of FederatedResourceQuotas. The core decides the order of requests, as for the shell.

use entourage_core::{
    apply_task::{ApplyTask, Next},
    object::{NamespacedName, ResourceId, Str},
    observation::{Observation, QuotaOutcome, Server},
    plan::{Preconditions, QuotaOrder},
    quotas::apply_task::{self, Assignment},
};

use super::task::{Sort, Target, run};
use crate::environment::{Environment, Request};

/// Applies a ResourceQuota on a member.
pub(super) fn assign(servers: &mut impl Environment, order: &QuotaOrder) -> Vec<Observation> {
    let id = apply_task::id(&order.quota);
    let outcome = outcome(servers, apply_task::assign(order), &order.cluster, &id);
    reported(order.quota.clone(), order.cluster.clone(), outcome)
}

/// Deletes a ResourceQuota on a member.
pub(super) fn unassign(
    servers: &mut impl Environment,
    quota: NamespacedName,
    cluster: Str,
    preconditions: &Preconditions,
) -> Vec<Observation> {
    let id = apply_task::id(&quota);
    let outcome = outcome(servers, apply_task::unassign(preconditions), &cluster, &id);
    reported(quota, cluster, outcome)
}

fn outcome(
    servers: &mut impl Environment,
    task: (ApplyTask<Assignment<'_>>, Next<QuotaOutcome>),
    cluster: &Str,
    id: &ResourceId,
) -> QuotaOutcome {
    let server = Server::Member(cluster.clone());
    let fault = servers.fault(Request::Distribute(&server));
    let sort = Sort::Quota;
    run(servers, task, &Target { server, id, sort }, fault).1
}

fn reported(quota: NamespacedName, cluster: Str, outcome: QuotaOutcome) -> Vec<Observation> {
    vec![Observation::QuotaAssigned(quota, cluster, Box::new(outcome))]
}
