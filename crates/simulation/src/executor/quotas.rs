//! ResourceQuotas of FederatedResourceQuotas. The core decides the order of requests, as for the shell.

use entourage_core::{
    distribution::apply_task::{Answer, Request as Ask},
    object::{NamespacedName, ResourceId, Str},
    observation::{Observation, QuotaOutcome, Server},
    plan::{Preconditions, QuotaOrder},
    quotas::apply_task::{self, ApplyTask, Next},
};

use super::distributed::{self, Response, refused};
use crate::environment::{Environment, Request};

/// Applies a ResourceQuota on a member.
pub(super) fn assign(servers: &mut impl Environment, order: &QuotaOrder) -> Vec<Observation> {
    let id = apply_task::id(&order.quota);
    let server = Server::Member(order.cluster.clone());
    let (mut task, mut request) = ApplyTask::new(order);
    let outcome = loop {
        let response = respond(servers, &request, &server, &id);
        let next = task.answered(&match &response {
            Ok(object) => Answer::Object(object),
            Err((no, words)) => Answer::No(*no, words.clone()),
        });
        match next {
            Next::Ask(next) => request = next,
            Next::End(outcome) => break outcome,
        }
    };
    told(order.quota.clone(), order.cluster.clone(), outcome)
}

/// Deletes a ResourceQuota on a member.
pub(super) fn unassign(
    servers: &mut impl Environment,
    quota: NamespacedName,
    cluster: Str,
    preconditions: &Preconditions,
) -> Vec<Observation> {
    let server = Server::Member(cluster.clone());
    let request = Ask::Delete(preconditions.clone());
    let response = respond(servers, &request, &server, &apply_task::id(&quota));
    let answer = match &response {
        Ok(object) => Answer::Object(object),
        Err((no, words)) => Answer::No(*no, words.clone()),
    };
    let outcome = apply_task::deleted(&answer, preconditions);
    told(quota, cluster, outcome)
}

fn told(quota: NamespacedName, cluster: Str, outcome: QuotaOutcome) -> Vec<Observation> {
    vec![Observation::QuotaAssigned(quota, cluster, Box::new(outcome))]
}

/// Responds as a member.
fn respond(servers: &mut impl Environment, request: &Ask, server: &Server, id: &ResourceId) -> Response {
    refused(servers.fault(Request::Distribute(server)))?;
    distributed::respond(servers, request, None, server, id)
}
