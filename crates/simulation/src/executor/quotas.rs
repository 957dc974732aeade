//! ResourceQuotas of FederatedResourceQuotas. The core decides the order of requests, as for the shell.

use entourage_core::{
    distribution::apply_task::{Answer, No, Request as Ask},
    object::{NamespacedName, ResourceId, Str},
    observation::{Observation, QuotaOutcome, Server},
    plan::{Preconditions, QuotaOrder},
    quotas::apply_task::{self, ApplyTask, Next},
};
use serde_json::{Value, json};

use crate::environment::{Environment, Fault, Request, Write};

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
fn respond(
    servers: &mut impl Environment,
    request: &Ask,
    server: &Server,
    id: &ResourceId,
) -> Result<Value, (No, String)> {
    let refused = |fault: Option<Fault>| match fault {
        None => Ok(()),
        Some(Fault::Changed) => Err((No::Changed, Fault::Changed.to_string())),
        Some(fault) => Err((No::Refused, fault.to_string())),
    };
    refused(servers.fault(Request::Distribute(server)))?;
    let live = servers.object(server, id).cloned();
    let is_exactly = |live: &Value, wanted: &Value| {
        let fields = ["uid", "resourceVersion"];
        fields
            .iter()
            .all(|field| live["metadata"][field] == wanted[field])
    };
    match (request, live) {
        (Ask::Read | Ask::Look, Some(live)) => Ok(live),
        (Ask::Create(_), Some(_)) => Err((No::Exists, "it exists".into())),
        (Ask::Create(object), None) => {
            refused(servers.fault(Request::Write(server, id, object.object(), None)))?;
            let now = servers.now();
            let made = servers.versions().created(id, object.object().clone(), now);
            servers.wrote(server, Write::Create, id);
            servers.store(server, id, Some(made.clone()));
            Ok(made)
        }
        (_, None) => Err((No::Gone, "it does not exist".into())),
        (Ask::Replace(object), Some(live)) => {
            if !is_exactly(&live, &object.object()["metadata"]) {
                return Err((No::Changed, "it changed".into()));
            }
            refused(servers.fault(Request::Write(server, id, object.object(), Some(&live))))?;
            let mut next = object.object().clone();
            next["status"] = live["status"].clone();
            let next = servers.versions().replaced(id, &live, next);
            servers.wrote(server, Write::Change, id);
            servers.store(server, id, Some(next.clone()));
            Ok(next)
        }
        (Ask::Delete(wanted), Some(live)) => {
            let wanted = json!({"uid": &*wanted.uid, "resourceVersion": &*wanted.resource_version});
            if !is_exactly(&live, &wanted) {
                return Err((No::Changed, "it changed".into()));
            }
            servers.wrote(server, Write::Delete, id);
            servers.store(server, id, None);
            Ok(json!({"kind": "Status", "status": "Success"}))
        }
    }
}
