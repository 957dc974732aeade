//! The questions to estimators that a scheduling decision waits for, and those that it only asks.

use std::collections::BTreeSet;

use entourage_api::work::{ResourceBinding, TargetCluster};

use super::desired::Next;
use crate::{
    config::Estimators,
    fleet::Fleet,
    memory::estimates::{AGAIN, Estimates, question},
    object::{ResourceId, Str, Time},
    observation::Template,
    plan::{Change, EstimateOrder, EstimateUse, Plan},
    stored_binding::sets::as_sets,
};

/// The plan of a binding that waits before it is written: for the answers of estimators, or for a binding of a higher priority that waits
/// for answers about the same room. `None` if it does not wait. `stored` are its stored clusters, and `wanted` is what it would store
/// without the answers.
///
/// The estimators that others have asked are not asked again. `again_at` is the time to plan the binding again whatever they answer.
/// Cost: O(clusters × log), and O(size of the spec) if it waits.
pub(super) fn wait(
    fleet: &Fleet,
    id: &ResourceId,
    template: &Template,
    (next, wanted): (&Next, &ResourceBinding),
    stored: &[TargetCluster],
    now: Time,
) -> Option<Plan> {
    let settings = fleet.config.estimators?;
    let estimates = &fleet.memory.estimates;
    let until = estimates.waits_until(id, settings.timeout, now);
    let mut clusters = growing(next, stored);
    let priority = next.room.as_ref().map_or(0, |room| room.priority);
    let first = if next.unestimated.is_empty() && !clusters.is_empty() && now < until {
        estimates.goes_first(id, (&clusters, priority), settings.timeout, now)
    } else {
        None
    };
    if next.unestimated.is_empty() && first.is_none() {
        return None;
    }
    clusters.extend(next.unestimated.iter().cloned());
    let asked: BTreeSet<Str> = next.unestimated.union(&next.tried).cloned().collect();
    let (key, order, again_at) = asks(fleet, settings, (id, template), &asked, now);
    let times = next.again_at.into_iter().chain(again_at);
    let until = times.chain(first.map(|(_, time)| time)).fold(until, Time::min);
    let why = match first {
        Some((first, _)) => {
            format!("{first} has a higher priority, and waits for the room of the same clusters")
        }
        None => format!(
            "the room of {} clusters is estimated first",
            next.unestimated.len()
        ),
    };
    Some(Plan {
        changes: order.into_iter().collect(),
        leaves: Some(next.leaves.clone()),
        estimates: Some(Box::new(EstimateUse {
            key,
            waits: true,
            clusters,
            priority,
            behind: first.map(|(first, _)| first.clone()),
            wanted: Some(wanted.spec.clone()),
        })),
        ..Plan::wait_until(until, why)
    })
}

/// The plan, and questions to the estimators that a further move depends on: the plan does not wait for the answers, and the binding is
/// planned again with them. Cost: O(clusters × log), and O(size of the requirements) if there are any.
pub(super) fn ask(
    fleet: &Fleet,
    (id, template): (&ResourceId, &Template),
    tried: &BTreeSet<Str>,
    mut plan: Plan,
    now: Time,
) -> Plan {
    let Some(settings) = fleet.config.estimators else {
        return plan;
    };
    if tried.is_empty() || plan.awaits.is_some() {
        return plan;
    }
    let (key, order, again_at) = asks(fleet, settings, (id, template), tried, now);
    // Before a write that may fail.
    if let Some(order) = order {
        plan.changes.insert(0, order);
    }
    // Who could not be asked is asked again.
    plan.again_at = plan.again_at.into_iter().chain(again_at).min();
    plan.estimates = Some(Box::new(EstimateUse {
        key,
        waits: false,
        clusters: BTreeSet::new(),
        priority: 0,
        behind: None,
        wanted: None,
    }));
    plan
}

/// The key of the requirements, the question to those of the estimators that are not asked already, and the time to ask again whom it
/// leaves out.
fn asks(
    fleet: &Fleet,
    settings: Estimators,
    (id, template): (&ResourceId, &Template),
    clusters: &BTreeSet<Str>,
    now: Time,
) -> (Str, Option<Change>, Option<Time>) {
    let estimates = &fleet.memory.estimates;
    let (key, set) = Estimates::question_about(id, template);
    let mut again_at = None;
    let mut new = Vec::new();
    for cluster in clusters {
        let time = match estimates.asked_until(&key, cluster, now) {
            Some(time) => time,
            None if new.len() < estimates.places() => {
                new.push(cluster.clone());
                now.plus(question(settings.timeout))
            }
            None => now.plus(AGAIN),
        };
        again_at = again_at.into_iter().chain([time]).min();
    }
    let order = (!new.is_empty()).then(|| {
        Change::Estimate(Box::new(EstimateOrder {
            key: key.clone(),
            asked: now,
            requirements: template.requirements.clone().filter(|_| set.is_none()),
            set,
            clusters: new,
        }))
    });
    (key, order, again_at)
}

/// The clusters that get more replicas than they have, of a result by room. Cost: O(clusters × log).
fn growing(next: &Next, stored: &[TargetCluster]) -> BTreeSet<Str> {
    let result = next.room.as_ref().and_then(|room| room.clusters.as_ref());
    let result = result.map_or(&[][..], Vec::as_slice);
    let stored = as_sets(stored, result);
    let grows = |target: &&TargetCluster| {
        let held = TargetCluster::find(&stored, &target.name);
        held.is_none_or(|held| held.units() < target.units())
    };
    let growing = result.iter().filter(grows);
    growing.map(|target| target.name.as_str().into()).collect()
}
