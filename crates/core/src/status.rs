//! Status: how a binding's template fares on its members, and what the template's own status says of it.
//!
//! A status is one write when all members that answer have answered, or when the last answer is `status_delay` old; at
//! most one in `status_interval` under churn (architecture 2.11). Events are made on the transition of a condition.

mod events;
pub mod template;

use std::collections::BTreeMap;

use entourage_api::{
    keys::{condition, reason},
    work::{AggregatedStatusItem, ResourceBindingStatus, ResourceHealth},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::{
    binding, condition as conditions, delivery, detector,
    index::{Binding, CopyState, Entity, Index, referred},
    interpreter::Health,
    object::{Id, Str, Time},
    observation::{Template, Watch, is_interpreted},
    plan::{Change, HubObject, Plan, Verb},
    scheduler::Outcome,
};

/// The longest a status waits for members that are still being written to, in milliseconds.
const LONGEST_WAIT: i64 = 30_000;

/// How long a workload whose dependency is missing waits for its members' first answers, in milliseconds.
const FIRST_ANSWERS: i64 = 1_000;

/// Plans the status of a binding. Cost: O(its copies + references × clusters).
#[must_use]
pub fn plan_binding(index: &Index, id: &Id, now: Time) -> Plan {
    let Some(entity) = index.entity(id) else {
        return Plan::nothing();
    };
    let (Some(stored), Some(template)) = (&entity.binding, &entity.template) else {
        return Plan::nothing();
    };
    if !index.is_kind_listed(&id.gvk)
        || stored.meta.deleting.is_some()
        || crate::index::is_kept_by_others(&stored.meta)
    {
        return Plan::nothing();
    }
    let places = places(index, id, entity);
    // At start the members' lists come later than the hub's: what they hold must not look lost.
    if places.iter().any(|place| place.unknown) {
        return Plan::wait("a member's list is on its way");
    }
    let before = stored.object.status.clone().unwrap_or_default();
    let mut status = before.clone();
    if entity
        .references
        .iter()
        .any(|reference| !index.is_kind_listed(&referred(reference).gvk))
    {
        return Plan::wait("what it refers to is not known yet");
    }
    let unsure: Vec<Change> = unsure(index, entity).map(Change::Need).collect();
    if !unsure.is_empty() {
        let why = vec!["whether a dependency is missing must be known for certain".into()];
        return Plan {
            changes: unsure,
            again_at: None,
            why,
        };
    }
    let dependencies = dependencies_ready(index, entity, &places);
    fill(
        index,
        id,
        (stored, template),
        &places,
        &dependencies,
        &mut status,
        now,
    );
    if status == before {
        return Plan::nothing();
    }
    if let Some(until) = too_early(index, entity, &places, &dependencies, now) {
        return Plan::wait_until(until, "members are still answering");
    }
    let mut object = (*stored.object).clone();
    let events = events::events(id, (stored, template), &before, &status);
    object.status = Some(status);
    let verb = Verb::ReplaceStatus(serde_json::to_value(&object).unwrap_or_default());
    let mut plan = Plan::one(
        Change::Hub {
            object: HubObject::Binding(stored.name.clone()),
            verb,
        },
        "the status differs",
    );
    plan.changes.extend(events.into_iter().map(Change::Emit));
    plan
}

/// One place of a binding.
struct Place<'a> {
    cluster: &'a Str,
    state: &'a CopyState,
    wanted: bool,
    current: bool,
    /// Why what the member holds cannot be listed, although it answers.
    unlistable: Option<&'a String>,
    /// The member answers, but what it holds is not listed yet.
    unknown: bool,
    answers: bool,
}

impl Place<'_> {
    /// Whether an answer is still to come.
    fn is_pending(&self) -> bool {
        self.wanted
            && self.answers
            && !self.current
            && self.state.problem.is_none()
            && self.unlistable.is_none()
    }

    fn applied(&self) -> bool {
        self.state.problem.is_none()
            && self.state.record.is_some()
            && (self.state.live.is_some() || !self.answers)
    }

    fn message(&self) -> String {
        if let (Some(why), None) = (self.unlistable, &self.state.problem) {
            return format!(
                "what {} holds cannot be listed ({why}); check the rights of the joined account",
                self.cluster
            );
        }
        match &self.state.problem {
            Some(problem) => problem.message.clone(),
            None if self.applied() => String::new(),
            None if !self.answers => format!(
                "{} does not answer; it is delivered when it does (see the Ready condition of the Cluster)",
                self.cluster
            ),
            None => "not delivered yet".into(),
        }
    }
}

fn places<'a>(index: &'a Index, id: &Id, entity: &'a Entity) -> Vec<Place<'a>> {
    entity
        .copies
        .iter()
        .filter_map(|(cluster, state)| {
            let wanted = delivery::plan::wants(index, entity, cluster) && index.members.contains_key(cluster);
            let answers = index.answers(cluster);
            if !wanted && !index.may_exist(id, cluster) {
                return None;
            }
            let watch = Watch::Copies(cluster.clone(), id.gvk.clone());
            let unlistable = index.unlistable.get(&watch);
            let unknown = !index.was_probed(cluster)
                || (answers && unlistable.is_none() && !index.listed.contains(&watch));
            let current = delivery::plan::is_current(index, id, cluster);
            Some(Place {
                unlistable: unlistable.filter(|_| answers),
                cluster,
                state,
                wanted,
                current,
                unknown,
                answers,
            })
        })
        .collect()
}

fn fill(
    index: &Index,
    id: &Id,
    (stored, template): (&Binding, &Template),
    places: &[Place<'_>],
    dependencies: &Dependencies,
    status: &mut ResourceBindingStatus,
    now: Time,
) {
    let held = std::mem::take(&mut status.aggregated_status);
    status.aggregated_status = places
        .iter()
        .map(|place| {
            item(
                id,
                place,
                held.iter().find(|item| item.cluster_name == **place.cluster),
            )
        })
        .collect();
    let generation = stored.meta.generation;
    let set = |all: &mut Vec<Condition>, type_: &str, good: bool, reason: &str, message: String| {
        conditions::set(
            all,
            Condition {
                type_: type_.into(),
                status: if good { "True" } else { "False" }.into(),
                reason: reason.into(),
                message,
                observed_generation: generation,
                last_transition_time: now.to_k8s(),
            },
        )
    };
    let spec = &stored.object.spec;
    match (&spec.placement, detector::claimed_by(index, id, &template.meta)) {
        (Some(placement), Some(_)) => {
            let outcome = binding::schedule(index, id, template, placement, &spec.clusters);
            match outcome {
                Outcome::Placed { note, clusters } => {
                    let message = if note.is_empty() {
                        "Clusters were chosen.".into()
                    } else {
                        note
                    };
                    set(
                        &mut status.conditions,
                        condition::SCHEDULED,
                        true,
                        reason::SUCCESS,
                        message,
                    );
                    if clusters == spec.clusters
                        && (status.scheduler_observed_generation == 0 || status.last_scheduled_time.is_none())
                    {
                        status.last_scheduled_time = Some(now.to_k8s());
                    }
                }
                Outcome::Failed { reason, message } => {
                    set(
                        &mut status.conditions,
                        condition::SCHEDULED,
                        false,
                        reason,
                        message,
                    );
                }
            }
            status.scheduler_observed_generation = generation.unwrap_or_default();
        }
        (Some(_), None) => {}
        (None, _) => {
            conditions::remove(&mut status.conditions, condition::SCHEDULED);
            status.scheduler_observed_generation = 0;
            status.last_scheduled_time = None;
        }
    }
    let lacking: Vec<String> = places
        .iter()
        .filter(|place| place.wanted && !place.applied())
        .map(|place| format!("{}: {}", place.cluster, place.message()))
        .collect();
    let on_its_way = places
        .iter()
        .filter(|place| place.wanted && !place.applied())
        .all(Place::is_pending);
    let places = places.iter().any(|place| place.wanted);
    if !places {
        conditions::remove(&mut status.conditions, condition::FULLY_APPLIED);
    } else if lacking.is_empty() {
        let message = "Every cluster holds its copy.".into();
        set(
            &mut status.conditions,
            condition::FULLY_APPLIED,
            true,
            reason::FULLY_APPLIED_SUCCESS,
            message,
        );
    } else {
        // On its way is no failure.
        let reason = if on_its_way {
            reason::DELIVERING
        } else {
            reason::FULLY_APPLIED_FAILED
        };
        set(
            &mut status.conditions,
            condition::FULLY_APPLIED,
            false,
            reason,
            lacking.join("; "),
        );
    }
    match dependencies {
        Dependencies::Ready if !places => {
            conditions::remove(&mut status.conditions, condition::DEPENDENCIES_READY)
        }
        Dependencies::NotFollowed => {
            conditions::remove(&mut status.conditions, condition::DEPENDENCIES_READY)
        }
        Dependencies::Ready => {
            let message = "Everything it refers to is where it is.".into();
            set(
                &mut status.conditions,
                condition::DEPENDENCIES_READY,
                true,
                reason::DEPENDENCIES_DELIVERED,
                message,
            );
        }
        Dependencies::Missing(message) => {
            let message = message.clone();
            set(
                &mut status.conditions,
                condition::DEPENDENCIES_READY,
                false,
                reason::DEPENDENCY_MISSING,
                message,
            );
        }
        // The workload waits for them: that is no news before it is over.
        Dependencies::NotDelivered { trouble: false, .. } if on_its_way => {}
        Dependencies::NotDelivered { message, .. } => {
            let message = message.clone();
            set(
                &mut status.conditions,
                condition::DEPENDENCIES_READY,
                false,
                reason::NOT_DELIVERED,
                message,
            );
        }
    }
}

/// The entry of a place; what a member that cannot be asked reported last stays.
fn item(id: &Id, place: &Place<'_>, held: Option<&AggregatedStatusItem>) -> AggregatedStatusItem {
    let held = held.filter(|_| !place.answers && place.state.live.is_none());
    let live = place.state.live.as_ref();
    let applied = place.applied();
    let health = match live.and_then(|live| live.health) {
        Some(Health::Healthy) => ResourceHealth::Healthy,
        Some(Health::Unhealthy) => ResourceHealth::Unhealthy,
        Some(Health::Unknown) => ResourceHealth::Unknown,
        None if live.is_some() && applied && !is_interpreted(&id.gvk) => ResourceHealth::Healthy,
        None => held
            .and_then(|held| held.health)
            .unwrap_or(ResourceHealth::Unknown),
    };
    AggregatedStatusItem {
        cluster_name: place.cluster.to_string(),
        status: live.map_or_else(
            || held.and_then(|held| held.status.clone()),
            |live| live.status.clone(),
        ),
        applied,
        applied_message: place.message(),
        health: Some(health),
        copy: place.state.record.clone(),
    }
}

// --- dependencies

/// What the watch does not show and nobody asked for yet: it may be missing, or a token Secret, which watches exclude.
fn unsure<'a>(index: &'a Index, entity: &'a Entity) -> impl Iterator<Item = Id> + 'a {
    let following = index.is_following(entity);
    entity
        .references
        .iter()
        .filter(move |_| following)
        .map(referred)
        .filter(|id| {
            index
                .entity(id)
                .is_some_and(|each| each.template.is_none() && !each.absent && !each.never_travels)
        })
}

enum Dependencies {
    /// The binding takes nothing along.
    NotFollowed,
    Ready,
    Missing(String),
    NotDelivered {
        message: String,
        /// Something went wrong; else it is merely on its way.
        trouble: bool,
    },
}

fn dependencies_ready(index: &Index, entity: &Entity, places: &[Place<'_>]) -> Dependencies {
    if !index.is_following(entity) {
        return Dependencies::NotFollowed;
    }
    let mut missing = Vec::new();
    let mut lacking: BTreeMap<&Str, Vec<String>> = BTreeMap::new();
    let mut trouble = false;
    for reference in &entity.references {
        let id = referred(reference);
        let needed = index.entity(&id);
        if needed.is_some_and(|each| each.never_travels) {
            missing.push(format!(
                "{id} is a service-account token, which never travels: create it on the members"
            ));
            continue;
        }
        let Some(needed) = needed.filter(|each| each.template.is_some()) else {
            if !reference.optional {
                missing.push(format!(
                    "{id} does not exist on the hub: create it, or drop the reference"
                ));
            }
            continue;
        };
        for place in places.iter().filter(|place| place.wanted) {
            let state = needed.copies.get(place.cluster);
            let stands = state.is_some_and(|state| {
                state.problem.is_none() && state.record.is_some() && (state.live.is_some() || !place.answers)
            });
            if !stands {
                let problem = state.and_then(|state| state.problem.as_ref());
                trouble |= problem.is_some();
                let why = problem.map_or_else(|| format!("{id}"), |problem| problem.message.clone());
                lacking.entry(place.cluster).or_default().push(why);
            }
        }
    }
    if !missing.is_empty() {
        return Dependencies::Missing(missing.join("; "));
    }
    if lacking.is_empty() {
        return Dependencies::Ready;
    }
    let listed: Vec<String> = lacking
        .iter()
        .map(|(cluster, all)| format!("not on {cluster}: {}", all.join(", ")))
        .collect();
    Dependencies::NotDelivered {
        message: listed.join("; "),
        trouble,
    }
}

// --- when

/// Until when a write waits for answers that are about to come.
fn too_early(
    index: &Index,
    entity: &Entity,
    places: &[Place<'_>],
    dependencies: &Dependencies,
    now: Time,
) -> Option<Time> {
    let config = &index.config;
    let again = entity
        .status_written
        .map(|written| written.plus(config.status_interval))
        .filter(|until| now < *until);
    let on_its_way = matches!(dependencies, Dependencies::NotDelivered { trouble: false, .. });
    if !on_its_way && !places.iter().any(Place::is_pending) {
        // Members come first: when all have answered the hub is told a moment later, and once.
        let settled = entity.answers.map(|(_, last)| last.plus(config.status_delay / 2));
        return again.max(settled.filter(|until| now < *until));
    }
    let since = places
        .iter()
        .filter_map(|place| place.state.wanted_since)
        .min()
        .unwrap_or(now);
    let longest = since.plus(LONGEST_WAIT).max(
        entity
            .status_written
            .unwrap_or_default()
            .plus(config.status_delay),
    );
    let until = match entity.answers {
        // A loaded member answers late: the others may take as long again as the first did.
        Some((first, last)) if entity.status_written.is_none() => {
            last.plus(config.status_delay.max(first.0 - since.0))
        }
        Some((_, last)) => last.plus(config.status_delay),
        // Somebody may be waiting to be told; members that answer do so soon.
        None if matches!(dependencies, Dependencies::Missing(_)) => since.plus(FIRST_ANSWERS),
        None => longest,
    };
    let until = until.min(longest).max(again.unwrap_or_default());
    (now < until).then_some(until)
}
