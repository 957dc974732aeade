//! WorkloadRebalancers: workloads that are rescheduled once.
//!
//! A rebalancer triggers with the time of its creation. The planner of bindings, their one writer, copies that to
//! `spec.rescheduleTriggeredAt`, and reschedules in the same write. The planner here reports the results, and deletes the
//! rebalancer when its TTL is over. Invariants:
//!
//! - A rebalancer triggers a workload until its status has a result for it. From then on it does not change the binding,
//!   whatever other writers do to it.
//! - `Successful`: the binding has the time of the trigger, or a later one. That stays, also when the workload is removed from
//!   the spec.
//! - `Failed`: there is no binding, and none is about to be created, with the hub synced. That is final for the observed spec; a
//!   change of the spec evaluates it again.
//! - Nothing waits for a rebalancer. A hub that does not serve the kind has none.

use entourage_api::apps::{self, ObservedWorkload, WorkloadRebalancerStatus, WorkloadReference};
use serde_json::json;

pub use crate::kinds::{REBALANCER as KIND, REBALANCER_API as API_VERSION, rebalancer as gvk};
use crate::{
    fleet::{Fleet, wanted::is_coming},
    memory::rebalancers::{MANY, RebalancerState, id_of},
    object::{Str, Time},
    plan::{Change, HubObject, Plan, SyncRequirement, Verb},
};

/// The time, in milliseconds, after a rebalancer appeared until a workload without a binding is reported as such: the workload
/// may have been applied together with it.
const FIRST_LOOK: i64 = 2_000;

/// The time that a status waits while a result is pending, in milliseconds.
const PROGRESS: i64 = 5_000;

/// See [`MANY`]; in milliseconds.
const LOOK: i64 = 1_000;

/// Plans the status of a rebalancer, and its deletion. Cost: O(workloads × log workloads).
#[must_use]
pub fn plan(fleet: &Fleet, name: &Str, now: Time) -> Plan {
    let Some(held) = fleet.memory.rebalancers.get(name) else {
        return Plan::nothing();
    };
    if held.meta().deleting.is_some() {
        return Plan::nothing();
    }
    let (results, waits) = results(fleet, held, now);
    let stored = held.object().status.clone().unwrap_or_default();
    let mut wanted = WorkloadRebalancerStatus {
        observed_workloads: results,
        observed_generation: held.generation(),
        finish_time: stored.finish_time.clone().filter(|_| waits.is_none()),
    };
    match waits {
        None if wanted == stored && stored.finish_time.is_some() => end(name, held, now),
        None => {
            wanted.finish_time = Some(now.to_k8s());
            report(name, held, &wanted, "every workload was processed")
        }
        Some(waits) if wanted == stored => waits,
        Some(waits) => {
            let until = held.changed().plus(PROGRESS);
            if now < until {
                return sooner(waits, until);
            }
            report(name, held, &wanted, "some workloads were processed")
        }
    }
}

/// The result of each workload, sorted as in Karmada; and the plan to wait for pending ones.
fn results(fleet: &Fleet, held: &RebalancerState, now: Time) -> (Vec<ObservedWorkload>, Option<Plan>) {
    let mut waits: Option<Plan> = None;
    let mut results: Vec<ObservedWorkload> = held.earlier().cloned().collect();
    for workload in held.workloads() {
        let came = match held.final_result(workload) {
            Some(result) => Came::Final(result.clone()),
            None => outcome(fleet, held, workload, now),
        };
        results.push(match came {
            Came::Final(result) => result,
            Came::Waits(plan) => {
                waits = Some(match waits {
                    Some(first) => both(first, plan),
                    None => plan,
                });
                result_of(workload, "", "")
            }
        });
    }
    results.sort_by(|one, other| order(&one.workload).cmp(&order(&other.workload)));
    let waits = waits.map(|plan| match held.asks() >= MANY {
        true => sooner(plan, now.plus(LOOK)),
        false => plan,
    });
    (results, waits)
}

enum Came {
    Final(ObservedWorkload),
    /// There is no result yet.
    Waits(Plan),
}

fn outcome(fleet: &Fleet, held: &RebalancerState, workload: &WorkloadReference, now: Time) -> Came {
    let id = id_of(workload);
    let stored = fleet.resource(&id).and_then(|resource| resource.binding.as_ref());
    if let Some(stored) = stored {
        let asked = stored.object.spec.reschedule_triggered_at.as_ref();
        return if asked.is_some_and(|asked| Time::from_k8s(asked) >= held.asks_at()) {
            Came::Final(result_of(workload, apps::SUCCESSFUL, ""))
        } else if stored.is_kept_by_others() {
            Came::Final(result_of(workload, apps::FAILED, apps::BINDING_MANAGED_BY_OTHERS))
        } else {
            Came::Waits(Plan::wait(format!("the binding of {id} is about to be written")))
        };
    }
    let needed = [SyncRequirement::Base, SyncRequirement::Templates(id.gvk.clone())];
    if let Some(proof) = needed.into_iter().find(|proof| !fleet.has(proof)) {
        let why = format!("whether {id} has a binding is not known");
        return Came::Waits(Plan::wait_for(proof, why));
    }
    if is_coming(fleet, &id) {
        return Came::Waits(Plan::wait(format!("{id} is about to get a binding")));
    }
    let until = held.since().plus(FIRST_LOOK);
    if now < until {
        let why = format!("{id} has no binding: it may be on its way");
        return Came::Waits(Plan::wait_until(until, why));
    }
    Came::Final(result_of(
        workload,
        apps::FAILED,
        apps::REFERENCED_BINDING_NOT_FOUND,
    ))
}

fn result_of(workload: &WorkloadReference, result: &str, reason: &str) -> ObservedWorkload {
    ObservedWorkload {
        workload: workload.clone(),
        result: result.into(),
        reason: reason.into(),
    }
}

/// The sort key of the status of a rebalancer.
fn order(workload: &WorkloadReference) -> [&str; 4] {
    [
        &workload.api_version,
        &workload.kind,
        &workload.namespace,
        &workload.name,
    ]
}

/// Merges two plans that wait: they have one reason and one sync requirement at a time.
fn both(first: Plan, other: Plan) -> Plan {
    let again_at = first.again_at.into_iter().chain(other.again_at).min();
    Plan {
        again_at,
        awaits: first.awaits.or(other.awaits),
        ..first
    }
}

fn sooner(waits: Plan, until: Time) -> Plan {
    let again_at = waits.again_at.map_or(until, |time| time.min(until));
    Plan {
        again_at: Some(again_at),
        ..waits
    }
}

fn report(name: &Str, held: &RebalancerState, status: &WorkloadRebalancerStatus, why: &str) -> Plan {
    let meta = held.meta();
    let body = json!({
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": &**name, "uid": &*meta.uid, "resourceVersion": &*meta.resource_version},
        "status": {
            "observedWorkloads": status.observed_workloads,
            "observedGeneration": status.observed_generation,
            // Null removes it: a new workload makes a finished rebalancer pending again.
            "finishTime": status.finish_time,
        },
    });
    write(name, Verb::MergeStatus(body), why)
}

/// Deletes a finished rebalancer when its TTL is over.
fn end(name: &Str, held: &RebalancerState, now: Time) -> Plan {
    let object = held.object();
    let finished = object
        .status
        .as_ref()
        .and_then(|status| status.finish_time.as_ref());
    let (Some(seconds), Some(finished)) = (object.spec.ttl_seconds_after_finished, finished) else {
        return Plan::nothing();
    };
    let until = Time::from_k8s(finished).plus(i64::from(seconds) * 1_000);
    if now < until {
        return Plan::wait_until(until, "it finished, and stays until its time is over");
    }
    let meta = held.meta();
    let verb = Verb::Delete {
        uid: meta.uid.clone(),
        resource_version: meta.resource_version.clone(),
    };
    write(name, verb, "it finished, and its time is over")
}

fn write(name: &Str, verb: Verb, why: &str) -> Plan {
    let object = HubObject::Rebalancer(name.clone());
    Plan::one(Change::Hub { object, verb }, why)
}

#[cfg(test)]
mod tests;
