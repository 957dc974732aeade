//! Quotas: a decision that would exceed a quota of the namespace is not made, and the present clusters are kept.

use std::collections::BTreeSet;

use entourage_api::{keys::reason, policy::Placement, work::ResourceBinding};

use super::{Decision, failed, records::Records};
use crate::{
    fleet::Fleet,
    object::{ResourceId, Time},
    observation::Template,
    scheduler::Outcome,
    stored_binding::eviction_from,
};

/// Returns the decision, or that the present clusters are kept, with their replicas, because the decision would exceed a quota:
/// evictions that are stored go on, and no other begins. Cost: that of [`Fleet::over_quota`].
pub(super) fn limited(
    fleet: &Fleet,
    (id, template): (&ResourceId, &Template),
    (placement, held): (&Placement, &ResourceBinding),
    decision: Decision,
    now: Time,
) -> Decision {
    let Outcome::Placed { clusters, .. } = &decision.outcome else {
        return decision;
    };
    let present = held.spec.clusters.as_slice();
    let Some(message) = fleet.over_quota(id, template, (clusters, present)) else {
        return decision;
    };
    let mut tasks = decision.tasks;
    tasks.retain(|task| eviction_from(&held.spec, &task.from_cluster).is_some());
    let failed = failed(held, placement, now).into_iter().collect();
    let records = Records::of(
        fleet,
        (held, placement),
        (failed, Vec::new()),
        (&tasks, present),
        now,
    );
    Decision {
        blocked: if decision.leaves.is_empty() {
            decision.blocked
        } else {
            message.clone()
        },
        outcome: Outcome::Failed {
            reason: reason::QUOTA_EXCEEDED,
            message,
            unselected: Vec::new(),
        },
        tasks,
        records,
        leaves: BTreeSet::new(),
        unestimated: BTreeSet::new(),
        tried: BTreeSet::new(),
        asked: decision.asked,
        again_at: decision.again_at,
    }
}
