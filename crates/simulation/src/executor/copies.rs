//! Copies of templates on members.

use entourage_core::{
    delivery::{RenderSpec, render, source_version},
    interpreter::not_propagatable,
    object::{ResourceId, Str},
    observation::{self, Copy, Delivered, Observation, Removed, Server, Subject, Watch},
    plan::{Preconditions, RemovalMode},
};
use serde_json::{Map, Value, json};

use super::{Outcome, namespaces};
use crate::{
    environment::{Environment, Fault, Request, Write},
    writes,
};

/// Renders a template and applies the copy; `live` are the preconditions of an update for which it need not be read.
pub(super) fn deliver(
    servers: &mut impl Environment,
    id: &ResourceId,
    cluster: &Str,
    render_spec: &RenderSpec,
    live: Option<&Preconditions>,
) -> Vec<Observation> {
    let outcome = applied(servers, id, cluster, render_spec, live);
    let absent = matches!(outcome, Delivered::NoSource(_)).then(|| match servers.object(&Server::Hub, id) {
        Some(object) if not_propagatable(object) => Observation::NotPropagatable(id.clone()),
        _ => Observation::Absent(id.clone()),
    });
    let delivered = Observation::Delivered(cluster.clone(), id.clone(), outcome);
    absent.into_iter().chain([delivered]).collect()
}

fn applied(
    servers: &mut impl Environment,
    id: &ResourceId,
    cluster: &Str,
    render_spec: &RenderSpec,
    live: Option<&Preconditions>,
) -> Delivered {
    if let Some(fault) = servers.fault(Request::Deliver(cluster, id)) {
        return failed(fault);
    }
    let Some(source) = servers.object(&Server::Hub, id).cloned() else {
        return Delivered::NoSource("it does not exist on the hub".into());
    };
    let server = Server::Member(cluster.clone());
    let held = servers.object(&server, id).cloned();
    if let Some(held) = &held
        && render::standing(render_spec, cluster, held) == render::Standing::Foreign
    {
        return Delivered::Foreign;
    }
    // A copy that changed since is read.
    let live = live.filter(|live| {
        let is = |field: &str, value: &Str| {
            held.as_ref()
                .is_some_and(|held| held["metadata"][field] == **value)
        };
        is("uid", &live.uid) && is("resourceVersion", &live.resource_version)
    });
    let exactly =
        live.map(|live| json!({"metadata": {"uid": &*live.uid, "resourceVersion": &*live.resource_version}}));
    let current = exactly.as_ref().or(held.as_ref());
    let rendered = match servers.render(render_spec, id, cluster, &source, current) {
        Ok(rendered) => rendered,
        Err(refusal) => return refused(refusal),
    };
    let read = held.as_ref().filter(|_| live.is_none());
    let differed = read.and_then(|held| render::difference(&rendered, held));
    let next = match (&held, &differed) {
        (Some(held), None) if live.is_none() => held.clone(),
        _ => {
            let request = Request::Write(&server, id, rendered.object(), held.as_ref());
            if let Some(fault) = servers.fault(request) {
                return failed(fault);
            }
            write(servers, (&server, cluster), id, rendered.object(), held.as_ref())
        }
    };
    servers.seen_with(cluster, id, &source, render_spec.replicas);
    let watch = Watch::Copies(cluster.clone(), id.gvk.clone());
    let heard = servers.heard(&render_spec.interpretation, &watch, &next);
    Delivered::Applied {
        copy: observation::copy(&heard, &id.gvk, &next),
        source: source_version(&observation::template_meta(&id.gvk, &source), render_spec),
        differed,
    }
}

/// Creates or replaces a copy, and returns it as the server stored it.
fn write(
    servers: &mut impl Environment,
    (server, cluster): (&Server, &Str),
    id: &ResourceId,
    copy: &Value,
    held: Option<&Value>,
) -> Value {
    if !id.namespace.is_empty() && servers.lacks_namespace(cluster, &id.namespace) {
        namespaces::apply(
            servers,
            cluster,
            &id.namespace,
            &Default::default(),
            &Default::default(),
        );
    }
    let Some(held) = held else {
        servers.wrote(server, Write::Create, id);
        let made = writes::create(servers, server, id, copy.clone());
        return if id.gvk.is_namespace() {
            namespaces::prove(servers, cluster, id, made)
        } else {
            made
        };
    };
    let next = writes::with_status_of(copy.clone(), held);
    servers.wrote(server, Write::Change, id);
    writes::replace(servers, server, id, next)
}

fn failed(fault: Fault) -> Delivered {
    match fault {
        Fault::Unreachable(why) => Delivered::Unreachable(why),
        Fault::Rejected(why) => Delivered::Rejected(why),
        Fault::Failed(_) | Fault::Changed => Delivered::Failed(fault.to_string()),
    }
}

fn refused(refusal: render::Refusal) -> Delivered {
    match refusal {
        render::Refusal::Override(bad) => Delivered::BadOverride(bad.to_string()),
        render::Refusal::NoResponse(why) => Delivered::Uninterpreted(why),
        refusal => Delivered::NoSource(refusal.to_string()),
    }
}

/// Deletes or releases exactly the copy that the plan names.
pub(super) fn remove(
    servers: &mut impl Environment,
    id: &ResourceId,
    cluster: &Str,
    preconditions: &Preconditions,
    mode: RemovalMode,
) -> Outcome {
    let server = Server::Member(cluster.clone());
    let seen = |copy| Observation::Seen(Subject::Copy(cluster.clone(), id.clone(), copy));
    let removed = |outcome| Outcome::done([Observation::Removed(cluster.clone(), id.clone(), outcome)]);
    match servers.fault(Request::Remove(cluster, id, preconditions)) {
        None => {}
        Some(Fault::Unreachable(why)) => return removed(Removed::Unreachable(why)),
        Some(Fault::Failed(why) | Fault::Rejected(why)) => return removed(Removed::Rejected(why)),
        Some(Fault::Changed) => return Outcome::failed([]),
    }
    let held = servers.object(&server, id).cloned();
    let Some(held) = held.filter(|held| held["metadata"]["uid"] == *preconditions.uid) else {
        return removed(Removed::Gone);
    };
    if held["metadata"]["resourceVersion"] != *preconditions.resource_version {
        return Outcome::failed([seen(read(servers, id, cluster, &held))]);
    }
    let hub = servers.engine().config.hub.clone();
    let released = match mode {
        RemovalMode::Delete => {
            servers.wrote(&server, Write::Remove(mode), id);
            writes::delete(servers, &server, id);
            return match servers.object(&server, id) {
                None => removed(Removed::Gone),
                Some(held) => Outcome::done([
                    seen(read(servers, id, cluster, held)),
                    Observation::Removed(cluster.clone(), id.clone(), Removed::Accepted),
                ]),
            };
        }
        RemovalMode::HandOver => render::hand_over(&held, &hub, cluster),
        RemovalMode::Release => render::release(&held, &hub, cluster),
    };
    // It is not ours any more.
    let Some(mut released) = released else {
        return removed(Removed::Gone);
    };
    without_empty(&mut released);
    servers.wrote(&server, Write::Remove(mode), id);
    writes::replace(servers, &server, id, released);
    removed(Removed::Released)
}

/// A copy as a response shows it.
fn read(servers: &impl Environment, id: &ResourceId, cluster: &Str, held: &Value) -> Copy {
    let watch = Watch::Copies(cluster.clone(), id.gvk.clone());
    let interpretation = servers.engine().interpretation(&id.gvk);
    observation::copy(&servers.heard(&interpretation, &watch, held), &id.gvk, held)
}

/// Removes empty labels and annotations, as a server does.
fn without_empty(object: &mut Value) {
    if let Some(meta) = object["metadata"].as_object_mut() {
        meta.retain(|_, value| !value.as_object().is_some_and(Map::is_empty));
    }
}

/// Reads a copy.
pub(super) fn get(servers: &mut impl Environment, id: ResourceId, cluster: Str) -> Outcome {
    if let Some(fault) = servers.fault(Request::GetCopy(&cluster)) {
        let why = Removed::Unreachable(fault.to_string());
        return Outcome::done([Observation::Removed(cluster, id, why)]);
    }
    let held = servers.object(&Server::Member(cluster.clone()), &id);
    let copy = held.map(|held| read(servers, &id, &cluster, held));
    let hub = &servers.engine().config.hub;
    Outcome::done([match copy.filter(|copy| copy.meta.hub.as_ref() == Some(hub)) {
        Some(copy) => Observation::Seen(Subject::Copy(cluster, id, copy)),
        None => Observation::Removed(cluster, id, Removed::Gone),
    }])
}
