//! Copies of distributions. The core decides the order of requests, as for the shell.

use entourage_core::{
    distribution::{
        Order, Place, Step,
        apply_task::{self, Answer, ApplyTask, Next, No, Request as Ask},
        render::DistributionRenderSpec,
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
pub(super) type Response = Result<Value, (No, String)>;

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
            let task = ApplyTask::bring(order, content);
            run(servers, task, &order.render_spec, (&order.place, &order.id), seen)
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
    let render_spec = apply_task::recipe_to_withdraw(&distribution, uid, &place, &hub);
    let wrote = match servers.fault(Request::Distribute(&place.server())) {
        Some(fault) => Wrote::Failed {
            step: Step::Delete,
            message: fault.to_string(),
        },
        None => {
            let task = ApplyTask::withdraw(&render_spec, preconditions, mode);
            run(servers, task, &render_spec, (&place, id), &mut seen)
        }
    };
    seen.push(Observation::Distributed(distribution, place, wrote));
    seen
}

fn run(
    servers: &mut impl Environment,
    (mut task, mut request): (ApplyTask<'_>, Ask),
    render_spec: &DistributionRenderSpec,
    (place, id): (&Place, &ResourceId),
    seen: &mut Vec<Observation>,
) -> Wrote {
    loop {
        let mut response = respond(servers, &request, Some(render_spec), &place.server(), id);
        let turn = task.answered(&match &response {
            Ok(object) => Answer::Object(object),
            Err((no, words)) => Answer::No(*no, words.clone()),
        });
        if let Ok(object) = &mut response {
            wipe(object);
        }
        if let Some(part) = turn.seen {
            let subject = Subject::Distributed(place.cluster.clone(), id.clone(), part);
            seen.push(Observation::Seen(subject));
        }
        match turn.next {
            Next::Ask(next) => request = next,
            Next::End(wrote) => return wrote,
        }
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
    let changed = || (No::Changed, "it changed".to_owned());
    match (request, live) {
        (Ask::Read | Ask::Look, Some(live)) => Ok(live),
        (Ask::Create(_), Some(_)) => Err((No::Exists, "it exists".into())),
        (Ask::Create(copy), None) => {
            refused(servers.fault(Request::Write(server, id, copy.object(), None)))?;
            servers.wrote(server, Write::Create, id);
            Ok(writes::create(servers, server, id, copy.object().clone()))
        }
        (_, None) => Err((No::Gone, "it does not exist".into())),
        (Ask::Replace(copy), Some(live)) => {
            if !is_exactly(&live, &copy.object()["metadata"]) {
                return Err(changed());
            }
            refused(servers.fault(Request::Write(server, id, copy.object(), Some(&live))))?;
            servers.wrote(server, Write::Change, id);
            Ok(writes::replace(servers, server, id, copy.object().clone()))
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

pub(super) fn refused(fault: Option<Fault>) -> Result<(), (No, String)> {
    match fault {
        None => Ok(()),
        Some(Fault::Changed) => Err((No::Changed, Fault::Changed.to_string())),
        Some(fault) => Err((No::Refused, fault.to_string())),
    }
}
