//! ResourceQuotas of FederatedResourceQuotas. The core decides the order of requests, as for the shell.

use entourage_core::{
    apply_task::Request as Ask,
    object::{NamespacedName, ResourceId, Str},
    observation::{Observation, QuotaOutcome, Server},
    plan::{Preconditions, QuotaOrder},
    quotas::apply_task,
};

use super::distributed::{self, Response, refused, run};
use crate::environment::{Environment, Request};

/// Applies a ResourceQuota on a member.
pub(super) fn assign(servers: &mut impl Environment, order: &QuotaOrder) -> Vec<Observation> {
    let id = apply_task::id(&order.quota);
    let server = Server::Member(order.cluster.clone());
    let respond = |request: &Ask| respond(servers, request, &server, &id);
    let outcome = run(apply_task::assign(order), respond, drop);
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
    let id = apply_task::id(&quota);
    let respond = |request: &Ask| respond(servers, request, &server, &id);
    let outcome = run(apply_task::unassign(preconditions), respond, drop);
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
