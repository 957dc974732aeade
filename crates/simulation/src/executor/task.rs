//! Runs apply tasks: renders copies, and responds to requests as their server. The core decides their order, as for the shell.

use entourage_core::{
    apply_task::{Answer, Applied, ApplyTask, Fetched, Next, Request as Ask, RequestError},
    delivery::apply_task::Order,
    distribution::{observed::ObservedObject, render::DistributionRenderSpec},
    object::{ResourceId, Str},
    observation::{self, Copy, Observation, Server, Subject, Watch},
    plan::{Preconditions, RemovalMode},
};
use serde_json::{Map, Value, json};

use super::namespaces;
use crate::{
    environment::{Environment, Fault, Request, Write},
    objects::is_exactly,
    writes,
};

/// The object that a task is about.
pub(super) struct Target<'a> {
    pub(super) server: Server,
    pub(super) id: &'a ResourceId,
    pub(super) sort: Sort<'a>,
}

/// The sort of object: what its requests take beyond a response.
pub(super) enum Sort<'a> {
    /// A copy of a binding that is applied, of this template.
    Delivered(&'a Order, &'a Value),
    /// A copy of a binding that is removed.
    Removed(RemovalMode),
    /// The copy of a distribution.
    Distributed(&'a DistributionRenderSpec),
    /// A ResourceQuota of a quota.
    Quota,
}

/// The response of a server: an object, or the class of its error with the message.
type Response = Result<Value, (RequestError, String)>;

/// Responds until the task has ended; returns its outcome and what its responses show. `fault` is the outcome of its first
/// request, if that does not succeed.
pub(super) fn run<A: Applied>(
    servers: &mut impl Environment,
    (mut task, mut next): (ApplyTask<A>, Next<A::Outcome>),
    target: &Target<'_>,
    mut fault: Option<Fault>,
) -> (Vec<Observation>, A::Outcome) {
    let mut seen = Vec::new();
    loop {
        let request = match next {
            Next::Ask(request) => request,
            Next::End(outcome) => return (seen, outcome),
        };
        let answer = match (request, &target.sort) {
            (Ask::Render, Sort::Delivered(order, template)) => {
                let Order {
                    id,
                    cluster,
                    render_spec,
                    ..
                } = order;
                Answer::Rendered(servers.render(render_spec, id, cluster, template, task.live()))
            }
            (request, _) => answer(match fault.take() {
                Some(fault) => Err(class(&fault)),
                None => target.respond(servers, &request),
            }),
        };
        let turn = task.answered(answer);
        seen.extend(turn.seen.map(|live| target.see(servers, &live)));
        next = turn.next;
    }
}

impl Target<'_> {
    /// Responds as the server.
    fn respond(&self, servers: &mut impl Environment, request: &Ask) -> Response {
        let (server, id) = (&self.server, self.id);
        let live = servers.object(server, id).cloned();
        match (request, live) {
            (Ask::Render, _) => Err((RequestError::Refused, "the core renders it".into())),
            (Ask::Read | Ask::Look, Some(live)) => Ok(live),
            (Ask::Create(_), Some(_)) => Err((RequestError::Exists, "it exists".into())),
            (Ask::Create(copy), None) => {
                attempt(servers, Request::Write(server, id, copy.object(), None))?;
                Ok(self.create(servers, copy.object().clone()))
            }
            (_, None) => Err((RequestError::Gone, "it does not exist".into())),
            (Ask::Replace(copy), Some(live)) => {
                let copy = copy.object();
                if !is_exactly(&live, &preconditions(copy)) {
                    return Err(class(&Fault::Changed));
                }
                let write = if let Sort::Removed(mode) = self.sort {
                    Write::Remove(mode)
                } else {
                    attempt(servers, Request::Write(server, id, copy, Some(&live)))?;
                    Write::Change
                };
                servers.wrote(server, write, id);
                let next = without_empty(writes::with_status_of(copy.clone(), &live));
                Ok(writes::replace(servers, server, id, next))
            }
            (Ask::Delete(preconditions), Some(live)) => {
                if !is_exactly(&live, preconditions) {
                    return Err(class(&Fault::Changed));
                }
                let write = match self.sort {
                    Sort::Removed(mode) => Write::Remove(mode),
                    Sort::Distributed(render_spec) => {
                        attempt(servers, Request::Withdraw(server, id, render_spec, &live))?;
                        Write::Delete
                    }
                    Sort::Delivered(..) | Sort::Quota => Write::Delete,
                };
                servers.wrote(server, write, id);
                writes::delete(servers, server, id);
                let gone = json!({"kind": "Status", "status": "Success"});
                Ok(servers.object(server, id).cloned().unwrap_or(gone))
            }
        }
    }

    /// Creates the object; a copy of a binding in its namespace, which is created if it is missing.
    fn create(&self, servers: &mut impl Environment, body: Value) -> Value {
        let (server, id) = (&self.server, self.id);
        let Sort::Delivered(order, _) = self.sort else {
            servers.wrote(server, Write::Create, id);
            return writes::create(servers, server, id, body);
        };
        let cluster = &order.cluster;
        if !id.namespace.is_empty() && servers.lacks_namespace(cluster, &id.namespace) {
            let (labels, annotations) = Default::default();
            namespaces::apply(servers, cluster, &id.namespace, &labels, &annotations);
        }
        servers.wrote(server, Write::Create, id);
        let made = writes::create(servers, server, id, body);
        if id.gvk.is_namespace() {
            namespaces::prove(servers, cluster, id, made)
        } else {
            made
        }
    }

    /// An object that a response shows.
    fn see(&self, servers: &impl Environment, live: &Fetched) -> Observation {
        Observation::Seen(match (&self.sort, &self.server) {
            (Sort::Delivered(..) | Sort::Removed(_), Server::Member(cluster)) => {
                let copy = copy(servers, self.id, cluster, &live.0);
                Subject::Copy(cluster.clone(), self.id.clone(), copy)
            }
            (_, server) => {
                let cluster = match server {
                    Server::Hub => None,
                    Server::Member(cluster) => Some(cluster.clone()),
                };
                Subject::Distributed(cluster, self.id.clone(), ObservedObject::of(&live.0))
            }
        })
    }
}

/// A copy of a binding as a response shows it.
pub(super) fn copy(servers: &impl Environment, id: &ResourceId, cluster: &Str, live: &Value) -> Copy {
    let watch = Watch::Copies(cluster.clone(), id.gvk.clone());
    let interpretation = servers.engine().interpretation(&id.gvk);
    observation::copy(&servers.observed(&interpretation, &watch, live), &id.gvk, live)
}

/// An object without empty labels and annotations, as a server stores it.
fn without_empty(mut object: Value) -> Value {
    if let Some(meta) = object["metadata"].as_object_mut() {
        meta.retain(|_, value| !value.as_object().is_some_and(Map::is_empty));
    }
    object
}

/// The object that a PUT names.
fn preconditions(body: &Value) -> Preconditions {
    let text = |field: &str| body["metadata"][field].as_str().unwrap_or_default().into();
    Preconditions {
        uid: text("uid"),
        resource_version: text("resourceVersion"),
    }
}

/// Fails as the environment says.
fn attempt(servers: &mut impl Environment, request: Request<'_>) -> Result<(), (RequestError, String)> {
    match servers.fault(request) {
        Some(fault) => Err(class(&fault)),
        None => Ok(()),
    }
}

pub(super) fn answer(response: Response) -> Answer {
    match response {
        Ok(object) => Answer::Object(Fetched(object)),
        Err((no, words)) => Answer::Failed(no, words),
    }
}

/// The class and the message of a fault.
pub(super) fn class(fault: &Fault) -> (RequestError, String) {
    let class = match fault {
        Fault::Unreachable(_) => RequestError::NoResponse,
        Fault::Failed(_) => RequestError::Other,
        Fault::Rejected(_) => RequestError::Refused,
        Fault::Changed => RequestError::Changed,
    };
    (class, fault.to_string())
}
