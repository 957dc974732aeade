//! Scheduling: the placement of a template, and the clusters it is scheduled to.

mod own;

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use entourage_api::{
    keys::annotation,
    policy::Placement,
    work::{Component, ResourceBinding, TargetCluster},
};
pub(crate) use own::{Own, own_part};

use crate::{
    config::Estimators,
    fleet::{Fleet, autoscaling::is_followed, workload_groups::Companions},
    memory,
    object::{ResourceId, Str, Time},
    observation::Template,
    scheduler::{
        self, Candidate, Estimates, Fitness, Group, Request, Room, Scheduled,
        estimate::{Demand, Estimate},
    },
    stored_binding::{is_reschedule_asked, recent},
};

/// Schedules a claimed template, and returns the reason when there is no cluster; also the clusters whose room is to be estimated before
/// the outcome is used. When no cluster fits, the last valid result is
/// kept (a workload is not removed because nothing better was found), except the clusters that the placement no longer selects:
/// a user took them out. Callers use [`crate::failover::decide`].
///
/// `held` is the stored binding, with its earlier scheduling result. The other arguments are the time, the current clusters, and
/// the clusters that it is being evicted from, those of other workloads of its groups, the stuck replicas, and the result of [`by_room`].
pub(crate) fn schedule(
    fleet: &Fleet,
    id: &ResourceId,
    template: &Template,
    placement: &Placement,
    held: &ResourceBinding,
    situation: Situation<'_>,
    now: Time,
) -> Scheduled {
    let by_room = situation.4;
    let of = (id, template, placement, held);
    let mut scheduled = with_request(fleet, of, situation, now, scheduler::schedule_by_estimates);
    let estimated = by_room.and_then(|room| room.estimated.as_ref());
    if estimated.is_some_and(|estimated| estimated.has_waited) {
        scheduled.unestimated.clear();
    }
    scheduled
}

/// The result of each filter for each cluster, for the request of [`schedule`]. `used` is the group of `clusterAffinities` that its outcome
/// uses. Cost: O(clusters × entries of the placement).
pub(crate) fn fitness(
    fleet: &Fleet,
    id: &ResourceId,
    template: &Template,
    placement: &Placement,
    held: &ResourceBinding,
    (situation, used): (Situation<'_>, Option<&str>),
    now: Time,
) -> Vec<Fitness> {
    let of = (id, template, placement, held);
    with_request(fleet, of, situation, now, |request, candidates| {
        scheduler::fitness(request, candidates, used)
    })
}

/// Makes the request to the scheduler, and uses it.
fn with_request<T>(
    fleet: &Fleet,
    (id, template, placement, held): (&ResourceId, &Template, &Placement, &ResourceBinding),
    (current, evicted, companions, stuck, by_room): Situation<'_>,
    now: Time,
    used: impl FnOnce(&Request<'_>, &[Candidate<'_>]) -> T,
) -> T {
    let candidates: Vec<Candidate<'_>> = fleet
        .cache
        .members
        .iter()
        .map(|(name, member)| member.candidate(name))
        .collect();
    let annotations = held.metadata.annotations.as_ref();
    let applied = annotations.and_then(|all| all.get(annotation::APPLIED_PLACEMENT));
    let status = held.status.as_ref();
    used(
        &Request {
            placement,
            gvk: &id.gvk,
            replicas: template.replicas,
            components: set_of(fleet, template, placement),
            uid: &template.meta.uid,
            current,
            applied: applied.map_or("", String::as_str),
            affinity: status
                .filter(|status| status.last_scheduled_time.is_some())
                .map(|status| status.scheduler_observing_affinity_name.as_str()),
            fresh: is_reschedule_asked(held, now),
            evicted,
            room: by_room.map(|room| Room {
                demand: &room.demand,
                capacities: fleet.memory.rooms.capacities(),
                accounted: &room.accounted,
                reserved: &room.reserved,
                estimates: room.estimated.as_ref().map(|estimated| Estimates {
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
    )
}

/// See [`schedule`].
pub(crate) type Situation<'a> = (
    &'a [TargetCluster],
    &'a [Str],
    &'a Companions,
    &'a [TargetCluster],
    Option<&'a ByRoom<'a>>,
);

/// The data that a division by room needs besides the capacities.
pub(crate) struct ByRoom<'a> {
    /// The demand of a replica, or of a set.
    demand: Demand,
    /// The replicas that the reports of the members contain.
    accounted: Cow<'a, [TargetCluster]>,
    /// Those that room is reserved for.
    reserved: Vec<TargetCluster>,
    /// `None` if estimators are not asked.
    estimated: Option<Estimated>,
}

/// The answers of estimators that count for a template.
struct Estimated {
    answers: BTreeMap<Str, Option<Estimate>>,
    in_pull_mode: bool,
    /// True if it has waited for them as long as it may: then those that are missing do not count.
    has_waited: bool,
}

/// The components of a template that is scheduled as one set, by room; empty for every other template.
fn set_of<'a>(fleet: &Fleet, template: &'a Template, placement: &Placement) -> &'a [Component] {
    let components = template.components.as_deref().unwrap_or_default();
    let is_on = fleet.config.multiple_pod_templates;
    if is_on && scheduler::is_set(placement, template.replicas, components) {
        components
    } else {
        &[]
    }
}

/// The data for [`schedule`]; `None` if the template is not scheduled by room. It is the same for every attempt of one
/// decision. Cost: O(clusters), and with estimators O(size of the requirements + answers × log of what was scheduled lately).
pub(crate) fn by_room<'a>(
    fleet: &Fleet,
    id: &ResourceId,
    template: &Template,
    placement: &Placement,
    held: &'a ResourceBinding,
    now: Time,
) -> Option<ByRoom<'a>> {
    let set = set_of(fleet, template, placement);
    let demand = if set.is_empty() {
        template.replicas.filter(|_| scheduler::is_by_room(placement))?;
        Demand::of(template.requirements.as_deref())
    } else {
        Demand::of_set(set)
    };
    let rooms = &fleet.memory.rooms;
    let stored = held.spec.clusters.as_slice();
    let estimators = fleet.config.estimators;
    let (accounted, reserved) = if set.is_empty() {
        (rooms.accounted(id, stored), rooms.reserved_by(id))
    } else {
        (
            Cow::Owned(rooms.accounted_of_set(id, &recent::running(held))),
            rooms.reserved_with(id, &demand),
        )
    };
    Some(ByRoom {
        demand,
        accounted,
        reserved,
        estimated: estimators.map(|settings| estimated(fleet, id, (template, stored), settings, now)),
    })
}

fn estimated(
    fleet: &Fleet,
    id: &ResourceId,
    (template, stored): (&Template, &[TargetCluster]),
    settings: Estimators,
    now: Time,
) -> Estimated {
    let (requirements, _) = memory::estimates::Estimates::question_about(id, template);
    let (estimates, placed) = (&fleet.memory.estimates, &fleet.memory.placed);
    let reported = |cluster: &Str| fleet.memory.rooms.reported_at(cluster);
    let numbers = estimates.answers(id, &requirements, reported, settings.timeout, now);
    let answers = numbers.into_iter().map(|(cluster, number)| {
        let estimate = number.map(|number| {
            let counted = placed.counted_at(id, &cluster, stored, number.asked);
            Estimate {
                // Where its pods may still be ending, there is room for as many.
                replicas: number.replicas.max(counted.had - counted.own),
                own: counted.own,
                others: counted.others,
            }
        });
        (cluster, estimate)
    });
    Estimated {
        answers: answers.collect(),
        in_pull_mode: settings.in_pull_mode,
        has_waited: estimates.waits_until(id, settings.timeout, now) <= now,
    }
}

fn group((name, clusters): &(String, BTreeSet<Str>)) -> Group<'_> {
    Group { name, clusters }
}
