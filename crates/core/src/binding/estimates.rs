//! The questions to estimators that a scheduling decision waits for.

use std::collections::BTreeSet;

use crate::{
    fleet::Fleet,
    memory::estimates::Estimates,
    object::{ResourceId, Str, Time},
    observation::Template,
    plan::{Change, EstimateOrder, Plan},
};

/// Asks the estimators of these clusters, those that others have asked already excepted, and waits for the answers. `again_at` is
/// the time to plan the binding again whatever they are. Cost: O(clusters × log).
pub(super) fn wait(
    fleet: &Fleet,
    id: &ResourceId,
    template: &Template,
    unestimated: &BTreeSet<Str>,
    again_at: Option<Time>,
    now: Time,
) -> Plan {
    let Some(settings) = fleet.config.estimators else {
        return Plan::nothing();
    };
    let estimates = &fleet.memory.estimates;
    let requirements = Estimates::key_of(template.requirements.as_deref());
    let is_new = |cluster: &&Str| !estimates.is_open(&requirements, cluster, settings.timeout, now);
    let clusters: Vec<Str> = unestimated.iter().filter(is_new).cloned().collect();
    let until = estimates.waits_until(id, &requirements, settings.timeout, now);
    let mut plan = Plan::wait_until(
        again_at.map_or(until, |time| time.min(until)),
        format!("the room of {} clusters is estimated first", unestimated.len()),
    );
    if !clusters.is_empty() {
        plan.changes.push(Change::Estimate(Box::new(EstimateOrder {
            key: requirements.clone(),
            requirements: template.requirements.clone(),
            clusters,
        })));
    }
    plan.waits_for_estimates = Some(requirements);
    plan
}
