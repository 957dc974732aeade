//! Copies of distributions. The core decides the order of requests, as for the shell.

use entourage_core::{
    distribution::{Order, Step, WithdrawalOrder, apply_task},
    interpreter::Interpretation,
    observation::{Observation, Server, Wrote, project},
    plan::Evidence,
    rendered::wipe,
};
use serde_json::Value;

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

/// Deletes or releases the copy of a distribution, unless an object that this was decided from has changed.
pub(super) fn withdraw(servers: &mut impl Environment, order: WithdrawalOrder) -> Vec<Observation> {
    let hub = servers.engine().config.hub.clone();
    let render_spec = apply_task::withdrawal_spec(&order.distribution, &order.uid, &order.place, &hub);
    let fault = servers.fault(Request::Distribute(&order.place.server()));
    let outdated = order
        .evidence
        .iter()
        .find(|each| !each.holds(live(servers, each)));
    let (mut seen, wrote) = match outdated {
        Some(evidence) if fault.is_none() => (changed(servers, evidence), Wrote::Abandoned),
        _ => {
            let target = Target {
                server: order.place.server(),
                id: &order.id,
                sort: Sort::Distributed(&render_spec),
            };
            let task = apply_task::withdraw(&render_spec, &order.preconditions, order.mode);
            run(servers, task, &target, fault)
        }
    };
    seen.push(Observation::Distributed(order.distribution, order.place, wrote));
    seen
}

fn live<'a>(servers: &'a impl Environment, evidence: &Evidence) -> Option<&'a Value> {
    servers.object(&evidence.server(), &evidence.id())
}

/// The current state of an object that has changed; none if it is gone: its watch tells.
fn changed(servers: &impl Environment, evidence: &Evidence) -> Vec<Observation> {
    let subject =
        live(servers, evidence).and_then(|live| project(&evidence.watch(), &Interpretation::default(), live));
    subject.map(Observation::Seen).into_iter().collect()
}
