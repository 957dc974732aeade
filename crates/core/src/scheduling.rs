//! Scheduling: the placement of a template, and the clusters it is scheduled to.

mod own;

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use entourage_api::{
    keys::annotation,
    policy::Placement,
    work::{ResourceBinding, TargetCluster},
};
pub(crate) use own::{Own, own_part};

use crate::{
    fleet::{Fleet, autoscaling::is_followed, workload_groups::Companions},
    config::Estimators,
    fleet::{Fleet, workload_groups::Companions},
    memory,
    object::{ResourceId, Str, Time},
    observation::Template,
    scheduler::{self, Candidate, Estimates, Group, Request, Room, Scheduled, estimate::Demand},
    stored_binding::is_reschedule_asked,
};

/// Schedules a claimed template, and returns the reason when there is no cluster; also the clusters whose room is to be estimated before
/// the outcome is used. When no cluster fits, the last valid result is
/// kept (a workload is not removed because nothing better was found), except the clusters that the placement no longer selects:
/// a user took them out. Callers use [`crate::failover::decide`].
///
/// `held` is the stored binding, with its earlier scheduling result. The other arguments are the time, the current clusters, and
/// the clusters that it is being evicted from, those of other workloads of its groups, and the stuck replicas.
pub(crate) fn schedule(
    fleet: &Fleet,
    id: &ResourceId,
    template: &Template,
    placement: &Placement,
    held: &ResourceBinding,
    (current, evicted, companions, stuck): (&[TargetCluster], &[Str], &Companions, &[TargetCluster]),
    now: Time,
) -> Scheduled {
    let candidates: Vec<Candidate<'_>> = fleet
        .cache
        .members
        .iter()
        .map(|(name, member)| member.candidate(name))
        .collect();
    let by_room = template
        .replicas
        .filter(|_| scheduler::is_by_room(placement))
        .map(|_| room_of(fleet, id, template, held));
    let estimators = fleet.config.estimators.filter(|_| by_room.is_some());
    let estimated = estimators.map(|settings| estimated(fleet, id, template, settings, now));
    let annotations = held.metadata.annotations.as_ref();
    let applied = annotations.and_then(|all| all.get(annotation::APPLIED_PLACEMENT));
    let status = held.status.as_ref();
    let mut scheduled = scheduler::schedule_by_estimates(
        &Request {
            placement,
            gvk: &id.gvk,
            replicas: template.replicas,
            uid: &template.meta.uid,
            current,
            applied: applied.map_or("", String::as_str),
            affinity: status
                .filter(|status| status.last_scheduled_time.is_some())
                .map(|status| status.scheduler_observing_affinity_name.as_str()),
            fresh: is_reschedule_asked(held, now),
            evicted,
            room: by_room.as_ref().map(|(demand, accounted, reserved)| Room {
                demand,
                capacities: fleet.memory.rooms.capacities(),
                accounted,
                reserved,
                estimates: estimated.as_ref().map(|estimated| Estimates {
                    answers: &estimated.answers,
                    in_pull_mode: estimated.in_pull_mode,
                }),
            }),
            stuck,
            // The first division is by the number of the user.
            followed: !held.spec.clusters.is_empty() && is_followed(fleet, id, template, placement),
            beside: companions.beside.as_ref().map(group),
            apart: companions.apart.as_ref().map(group),
        },
        &candidates,
    );
    if estimated.is_some_and(|estimated| estimated.has_waited) {
        scheduled.unestimated.clear();
    }
    scheduled
}

/// The answers of estimators that count for a template.
struct Estimated {
    answers: BTreeMap<Str, Option<i64>>,
    in_pull_mode: bool,
    /// True if it has waited for them as long as it may: then those that are missing do not count.
    has_waited: bool,
}

fn estimated(
    fleet: &Fleet,
    id: &ResourceId,
    template: &Template,
    settings: Estimators,
    now: Time,
) -> Estimated {
    let requirements = memory::estimates::Estimates::key_of(template.requirements.as_deref());
    let estimates = &fleet.memory.estimates;
    Estimated {
        answers: estimates.answers(id, &requirements, now),
        in_pull_mode: settings.in_pull_mode,
        has_waited: estimates.waits_until(id, &requirements, settings.timeout, now) <= now,
    }
}

fn group((name, clusters): &(String, BTreeSet<Str>)) -> Group<'_> {
    Group { name, clusters }
}

/// The demand of a replica, the replicas that the reports of the members contain, and those that room is reserved for.
fn room_of<'a>(
    fleet: &Fleet,
    id: &ResourceId,
    template: &Template,
    held: &'a ResourceBinding,
) -> (Demand, Cow<'a, [TargetCluster]>, Vec<TargetCluster>) {
    let rooms = &fleet.memory.rooms;
    (
        Demand::of(template.requirements.as_deref()),
        rooms.accounted(id, &held.spec.clusters),
        rooms.reserved_by(id),
    )
}
