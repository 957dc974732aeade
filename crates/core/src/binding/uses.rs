//! The resources that a scheduling decision uses or waits for: the room of members, and the quotas of its namespace; and its
//! priority among those that wait.

use entourage_api::{
    keys::reason,
    policy::{Placement, PropagationSpec},
    work::{ResourceBinding, ResourceBindingSpec, SchedulePriority},
};

use crate::{
    fleet::Fleet,
    plan::RoomUse,
    scheduler::{self, Outcome, estimate::Demand},
};

/// The room that a decision uses or waits for, if it was made by room.
pub(super) fn room_use(
    fleet: &Fleet,
    outcome: &Outcome,
    placement: &Placement,
    binding: &ResourceBinding,
) -> Option<Box<RoomUse>> {
    let spec = &binding.spec;
    // There are components only where there are no replicas.
    let is_set = fleet.config.multiple_pod_templates && scheduler::is_set(placement, None, &spec.components);
    if !is_set && !scheduler::is_by_room(placement) {
        return None;
    }
    let clusters = match outcome {
        Outcome::Placed { clusters, .. } => Some(clusters.clone()),
        Outcome::Failed { reason, .. } if *reason == reason::UNSCHEDULABLE => None,
        Outcome::Failed { .. } => return None,
    };
    let demand = if is_set {
        Demand::of_set(&spec.components)
    } else {
        Demand::of(spec.replica_requirements.as_ref())
    };
    let priority = spec.schedule_priority.as_ref();
    Some(Box::new(RoomUse {
        demand,
        clusters,
        priority: priority.map_or(0, |each| each.priority),
    }))
}

/// True if it waits until the quotas of its namespace leave more.
pub(super) fn exceeds_quota(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Failed { reason, .. } if *reason == reason::QUOTA_EXCEEDED)
}

/// Fills in the priority that the policy asks for; while it is not known, the stored one is kept.
pub(super) fn prioritize(fleet: &Fleet, policy: &PropagationSpec, spec: &mut ResourceBindingSpec) {
    match fleet.priority_by(policy) {
        None => spec.schedule_priority = None,
        Some(asked) => {
            let stored = spec.schedule_priority.as_ref().map(|stored| stored.priority);
            spec.schedule_priority = asked.value(stored).map(|priority| SchedulePriority { priority });
        }
    }
}
