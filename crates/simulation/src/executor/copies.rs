//! Copies of templates on members. The core decides the order of requests, as for the shell.

use entourage_core::{
    apply_task::{Fetched, RequestError},
    delivery::{
        apply_task::{self, Order, Outcome as End},
        removal_task::{self, Outcome as Removal},
        render::Refusal,
        source_version,
    },
    object::{ResourceId, Str},
    observation::{self, Delivered, Observation, Server, Subject, Watch},
    plan::{Preconditions, RemovalMode},
};

use super::{
    Outcome,
    task::{self, Sort, Target, run},
};
use crate::environment::{Environment, Request};

/// Renders a template and applies the copy.
pub(super) fn deliver(servers: &mut impl Environment, order: &Order) -> Vec<Observation> {
    let mut seen = Vec::new();
    let delivered = delivered(servers, order, &mut seen);
    seen.push(Observation::Delivered(
        order.cluster.clone(),
        order.id.clone(),
        delivered,
    ));
    seen
}

fn delivered(servers: &mut impl Environment, order: &Order, seen: &mut Vec<Observation>) -> Delivered {
    let Order {
        id,
        cluster,
        render_spec,
        ..
    } = order;
    let fault = servers.fault(Request::Deliver(cluster, id));
    let template = servers.object(&Server::Hub, id).cloned();
    let Some(template) = template.map(Fetched) else {
        seen.push(Observation::Absent(id.clone()));
        return Delivered::NoSource("it does not exist on the hub".into());
    };
    let target = Target {
        server: Server::Member(cluster.clone()),
        id,
        sort: Sort::Delivered(order, &template.0),
    };
    let (shown, end) = run(servers, apply_task::apply(order), &target, fault);
    seen.extend(shown);
    match end {
        End::Applied(copy, differed) => {
            servers.seen_with(cluster, id, &template.0, render_spec.replicas);
            let watch = Watch::Copies(cluster.clone(), id.gvk.clone());
            let observed = servers.observed(&render_spec.interpretation, &watch, &copy.0);
            Delivered::Applied {
                copy: observation::copy(&observed, &id.gvk, &copy.0),
                source: source_version(&observation::template_meta(&id.gvk, &template.0), render_spec),
                differed: differed.map(String::into_boxed_str),
            }
        }
        End::NotApplied(delivered) => delivered,
        End::NotRendered(Refusal::Override(bad)) => Delivered::BadOverride(bad.to_string()),
        End::NotRendered(Refusal::NoResponse(why)) => Delivered::Uninterpreted(why),
        End::NotRendered(refusal) => {
            if refusal == Refusal::Token {
                seen.push(Observation::NotPropagatable(id.clone()));
            }
            Delivered::NoSource(refusal.to_string())
        }
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
    let fault = servers.fault(Request::Remove(cluster, id, preconditions));
    let hub = servers.engine().config.hub.clone();
    let target = Target {
        server: Server::Member(cluster.clone()),
        id,
        sort: Sort::Removed(mode),
    };
    let task = removal_task::remove((&hub, cluster), preconditions, mode);
    let (mut seen, end) = run(servers, task, &target, fault);
    match end {
        Removal::Removed(removed) => {
            seen.push(Observation::Removed(cluster.clone(), id.clone(), removed));
            Outcome::done(seen)
        }
        Removal::Changed | Removal::Abandoned => Outcome::failed(seen),
    }
}

/// Reads a copy.
pub(super) fn get(servers: &mut impl Environment, id: ResourceId, cluster: Str) -> Outcome {
    let response = match servers.fault(Request::GetCopy(&cluster)) {
        Some(fault) => Err(task::class(&fault)),
        None => {
            let live = servers.object(&Server::Member(cluster.clone()), &id).cloned();
            live.ok_or_else(|| (RequestError::Gone, "it does not exist".into()))
        }
    };
    let hub = &servers.engine().config.hub;
    Outcome::done([match removal_task::confirmed(hub, task::answer(response)) {
        Ok(live) => {
            let copy = task::copy(servers, &id, &cluster, &live.0);
            Observation::Seen(Subject::Copy(cluster, id, copy))
        }
        Err(removed) => Observation::Removed(cluster, id, removed),
    }])
}
