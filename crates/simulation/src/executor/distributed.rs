//! Copies of distributions. The core decides the order of requests, as for the shell.

use entourage_core::{
    apply_task::{Answer, Applied, ApplyTask, Fetched, Next, Request as Ask, RequestError},
    distribution::{
        Order, Place, Step, apply_task, observed::ObservedObject, render::DistributionRenderSpec,
    },
    object::{ResourceId, Str},
    observation::{Observation, Server, Subject, Wrote},
    plan::{Preconditions, RemovalMode},
    rendered::wipe,
};
use serde_json::{Value, json};

use crate::{
    environment::{Environment, Fault, Request, Write},
    writes,
};

/// The response of a server: an object, or the class of its error with the message.
pub(super) type Response = Result<Value, (RequestError, String)>;

/// Applies the copy of a distribution.
pub(super) fn apply(servers: &mut impl Environment, order: &Order) -> Vec<Observation> {
    let mut seen = Vec::new();
    let wrote = applied(servers, order, &mut seen);
    let (name, place) = (order.distribution.clone(), order.place.clone());
    seen.push(Observation::Distributed(name, place, wrote));
    seen
}

fn applied(servers: &mut impl Environment, order: &Order, seen: &mut Vec<Observation>) -> Wrote {
    let failed = |message: String| Wrote::Failed {
        step: Step::Get,
        message,
    };
    if let Some(fault) = servers.fault(Request::Distribute(&order.place.server())) {
        return failed(fault.to_string());
    }
    let Some(mut fetched) = servers.object(&Server::Hub, &apply_task::source(order)).cloned() else {
        return failed("what is distributed does not exist on the hub".into());
    };
    let (subject, content) = apply_task::content(order, &fetched);
    seen.push(Observation::Seen(subject));
    let wrote = match content {
        Ok(content) => {
            let task = apply_task::bring(order, content);
            told(servers, task, &order.render_spec, (&order.place, &order.id), seen)
        }
        Err(wrote) => wrote,
    };
    wipe(&mut fetched);
    wrote
}

/// Deletes or releases the copy of a distribution.
pub(super) fn withdraw(
    servers: &mut impl Environment,
    (distribution, uid): (Str, &Str),
    place: Place,
    id: &ResourceId,
    (preconditions, mode): (&Preconditions, RemovalMode),
) -> Vec<Observation> {
    let mut seen = Vec::new();
    let hub = servers.engine().config.hub.clone();
    let render_spec = apply_task::withdrawal_spec(&distribution, uid, &place, &hub);
    let wrote = match servers.fault(Request::Distribute(&place.server())) {
        Some(fault) => Wrote::Failed {
            step: Step::Delete,
            message: fault.to_string(),
        },
        None => {
            let task = apply_task::withdraw(&render_spec, preconditions, mode);
            told(servers, task, &render_spec, (&place, id), &mut seen)
        }
    };
    seen.push(Observation::Distributed(distribution, place, wrote));
    seen
}

fn told<A: Applied>(
    servers: &mut impl Environment,
    task: (ApplyTask<A>, Next<A::Outcome>),
    render_spec: &DistributionRenderSpec,
    (place, id): (&Place, &ResourceId),
    seen: &mut Vec<Observation>,
) -> A::Outcome {
    let server = place.server();
    let see = |live: Fetched| {
        let part = ObservedObject::of(&live.0);
        let subject = Subject::Distributed(place.cluster.clone(), id.clone(), part);
        seen.push(Observation::Seen(subject));
    };
    let respond = |request: &Ask| respond(servers, request, Some(render_spec), &server, id);
    run(task, respond, see)
}

/// Responds to the requests of a task until it has ended.
pub(super) fn run<A: Applied>(
    (mut task, mut next): (ApplyTask<A>, Next<A::Outcome>),
    mut respond: impl FnMut(&Ask) -> Response,
    mut see: impl FnMut(Fetched),
) -> A::Outcome {
    loop {
        let request = match next {
            Next::Ask(request) => request,
            Next::End(outcome) => return outcome,
        };
        let turn = task.answered(match respond(&request) {
            Ok(object) => Answer::Object(Fetched(object)),
            Err((no, words)) => Answer::Failed(no, words),
        });
        if let Some(live) = turn.seen {
            see(live);
        }
        next = turn.next;
    }
}

/// Responds as the server of a place; `render_spec` is that of the copy of a distribution.
pub(super) fn respond(
    servers: &mut impl Environment,
    request: &Ask,
    render_spec: Option<&DistributionRenderSpec>,
    server: &Server,
    id: &ResourceId,
) -> Response {
    let live = servers.object(server, id).cloned();
    let is_exactly = |live: &Value, wanted: &Value| {
        ["uid", "resourceVersion"]
            .iter()
            .all(|field| live["metadata"][field] == wanted[field])
    };
    let changed = || (RequestError::Changed, "it changed".to_owned());
    match (request, live) {
        (Ask::Render, _) => Err((RequestError::Refused, "the core renders it".into())),
        (Ask::Read | Ask::Look, Some(live)) => Ok(live),
        (Ask::Create(_), Some(_)) => Err((RequestError::Exists, "it exists".into())),
        (Ask::Create(copy), None) => {
            refused(servers.fault(Request::Write(server, id, copy.object(), None)))?;
            servers.wrote(server, Write::Create, id);
            Ok(writes::create(servers, server, id, copy.object().clone()))
        }
        (_, None) => Err((RequestError::Gone, "it does not exist".into())),
        (Ask::Replace(copy), Some(live)) => {
            if !is_exactly(&live, &copy.object()["metadata"]) {
                return Err(changed());
            }
            refused(servers.fault(Request::Write(server, id, copy.object(), Some(&live))))?;
            servers.wrote(server, Write::Change, id);
            let next = writes::with_status_of(copy.object().clone(), &live);
            Ok(writes::replace(servers, server, id, next))
        }
        (Ask::Delete(preconditions), Some(live)) => {
            let wanted =
                json!({"uid": &*preconditions.uid, "resourceVersion": &*preconditions.resource_version});
            if !is_exactly(&live, &wanted) {
                return Err(changed());
            }
            if let Some(render_spec) = render_spec {
                refused(servers.fault(Request::Withdraw(server, id, render_spec, &live)))?;
            }
            servers.wrote(server, Write::Delete, id);
            writes::delete(servers, server, id);
            let gone = json!({"kind": "Status", "status": "Success"});
            Ok(servers.object(server, id).cloned().unwrap_or(gone))
        }
    }
}

pub(super) fn refused(fault: Option<Fault>) -> Result<(), (RequestError, String)> {
    match fault {
        None => Ok(()),
        Some(Fault::Changed) => Err((RequestError::Changed, Fault::Changed.to_string())),
        Some(fault) => Err((RequestError::Refused, fault.to_string())),
    }
}
