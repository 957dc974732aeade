//! Copies of distributions. The core decides the order of requests, as for the shell.

use entourage_core::{
    distribution::{Order, Place, Step, apply_task},
    object::{ResourceId, Str},
    observation::{Observation, Server, Wrote},
    plan::{Preconditions, RemovalMode},
    rendered::wipe,
};

use super::task::{Sort, Target, run};
use crate::environment::{Environment, Request};

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
        may_exist: false,
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
            let target = Target {
                server: order.place.server(),
                id: &order.id,
                sort: Sort::Distributed(&order.render_spec),
            };
            let (shown, wrote) = run(servers, apply_task::apply(order, content), &target, None);
            seen.extend(shown);
            wrote
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
    let hub = servers.engine().config.hub.clone();
    let render_spec = apply_task::withdrawal_spec(&distribution, uid, &place, &hub);
    let fault = servers.fault(Request::Distribute(&place.server()));
    let target = Target {
        server: place.server(),
        id,
        sort: Sort::Distributed(&render_spec),
    };
    let task = apply_task::withdraw(&render_spec, preconditions, mode);
    let (mut seen, wrote) = run(servers, task, &target, fault);
    seen.push(Observation::Distributed(distribution, place, wrote));
    seen
}
