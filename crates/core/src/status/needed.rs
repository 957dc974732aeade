//! The presence of a workload's dependencies on its clusters: the condition `DependenciesReady`.

use std::collections::BTreeMap;

use entourage_api::keys::annotation;

use super::places::Place;
use crate::{
    cache::{ResourceState, referred},
    eviction::data,
    fleet::{
        Fleet,
        exports::is_provided_by,
        secrets::{Withheld, withheld},
    },
    object::{ResourceId, Str, Time},
    observation::Copy,
    plan::SyncRequirement,
    pulled::Applied,
    rights,
};

/// The delay before an object is requested again that our account may not get.
const ASK_AGAIN: i64 = 60_000;

/// A dependency that the watch does not show and that was not requested yet: it may be missing, or a token Secret, which watches
/// exclude.
pub(super) fn unsure<'a>(
    fleet: &'a Fleet,
    of: (&'a ResourceId, &'a ResourceState),
    now: Time,
) -> impl Iterator<Item = ResourceId> + 'a {
    let is_due = move |refused: &(Time, String)| now >= refused.0.plus(ASK_AGAIN);
    unknown(fleet, of)
        .filter(move |(_, each)| each.unreadable.as_deref().is_none_or(is_due))
        .map(|(id, _)| id)
}

/// The time to request objects again that our account could not get. Cost: O(references).
pub(super) fn ask_again(fleet: &Fleet, of: (&ResourceId, &ResourceState), now: Time) -> Option<Time> {
    let refused = unknown(fleet, of).filter_map(|(_, each)| Some(each.unreadable.as_deref()?.0));
    let due = refused.map(|at| at.plus(ASK_AGAIN)).filter(|at| now < *at);
    due.min()
}

fn unknown<'a>(
    fleet: &'a Fleet,
    (id, resource): (&'a ResourceId, &'a ResourceState),
) -> impl Iterator<Item = (ResourceId, &'a ResourceState)> + 'a {
    let following = fleet.is_following(resource);
    let references = fleet.links(id).references.iter();
    let all = references.filter(move |_| following).map(referred);
    all.filter_map(|id| {
        let each = fleet.resource(&id)?;
        (each.template.is_none() && !each.absent && !each.not_propagatable).then_some((id, each))
    })
}

/// A dependency kind that a member that responds has not listed yet. Cost: O(places × references).
pub(super) fn unlisted_dependencies(
    fleet: &Fleet,
    (id, resource): (&ResourceId, &ResourceState),
    places: &[Place<'_>],
) -> Option<SyncRequirement> {
    if !fleet.is_following(resource) {
        return None;
    }
    let mut wanted = places.iter().filter(|place| place.wanted && place.answers);
    wanted.find_map(|place| {
        let kinds = fleet
            .links(id)
            .references
            .iter()
            .map(|reference| &reference.id.gvk);
        kinds
            .map(|gvk| SyncRequirement::Copies(place.cluster.clone(), gvk.clone()))
            .find(|proof| !fleet.has(proof))
    })
}

/// A hint to the object that has a reference, if it is not the template itself. Cost: O(references of its references).
fn named_in(fleet: &Fleet, referrer: &ResourceId, id: &ResourceId) -> String {
    let names_it = |each: &ResourceId| fleet.links(each).direct.iter().any(|each| each.id == *id);
    let mut between = fleet.links(referrer).references.iter().map(|each| &each.id);
    let namer = between.find(|each| names_it(each));
    match namer {
        Some(namer) if !names_it(referrer) => format!(" in {namer}"),
        _ => String::new(),
    }
}

pub(super) enum Dependencies {
    /// The binding does not propagate dependencies.
    NotFollowed,
    /// All of them exist on every target cluster where delivery is not suspended.
    Ready {
        /// Their number.
        count: usize,
        /// True if delivery is suspended on some target cluster.
        suspended: bool,
    },
    Missing(String),
    NotDelivered {
        message: String,
        /// True if there is a problem; else delivery is in progress.
        failed: bool,
        /// The time since when the first of them is awaited.
        since: Option<Time>,
        /// True if data is awaited, which may take long: the copies are not delivered before.
        data: bool,
    },
}

/// The message when all dependencies exist.
pub(super) fn all_present(count: usize, suspended: bool) -> String {
    let clusters = match suspended {
        false => "every target cluster",
        true => "every target cluster where delivery is not suspended",
    };
    match count {
        0 => "There are no dependencies.".to_owned(),
        1 => format!("1 dependency is present on {clusters}."),
        _ => format!("All {count} dependencies are present on {clusters}."),
    }
}

pub(super) fn dependencies_ready(
    fleet: &Fleet,
    (workload, resource): (&ResourceId, &ResourceState),
    places: &[Place<'_>],
) -> Dependencies {
    if !fleet.is_following(resource) {
        return Dependencies::NotFollowed;
    }
    let mut missing = Vec::new();
    // The flag is true if there is a problem with it.
    let mut lacking: BTreeMap<&Str, Vec<(String, bool)>> = BTreeMap::new();
    let (mut failed, mut data_awaited) = (false, false);
    let (mut since, mut count) = (Vec::new(), 0);
    for reference in fleet.links(workload).references.iter() {
        let id = referred(reference);
        let needed = fleet.resource(&id);
        if needed.is_some_and(|each| each.not_propagatable) {
            missing.push(format!(
                "{id} is a service-account token, which is never propagated: create it on the members"
            ));
            continue;
        }
        let Some(needed) = needed.filter(|each| each.template.is_some()) else {
            if let Some(refused) = needed.and_then(|each| each.unreadable.as_deref()) {
                missing.push(format!(
                    "the controllers may not get {id} on the hub ({}): {}",
                    refused.1,
                    rights::remedy(&id.gvk.group, &id.gvk.kind)
                ));
            } else if !reference.optional {
                missing.push(format!(
                    "{id} does not exist on the hub: create it, or remove the reference{}",
                    named_in(fleet, workload, &id)
                ));
            }
            continue;
        };
        count += 1;
        let wanted = places.iter().filter(|place| place.wanted && !place.suspended);
        for place in wanted.filter(|place| !is_provided_by(fleet, &id, place.cluster)) {
            let withheld = withheld(fleet, &id, place.cluster);
            if let Some(why) = withheld.as_ref().and_then(Withheld::message) {
                failed = true;
                lacking
                    .entry(place.cluster)
                    .or_default()
                    .push((why.to_owned(), true));
                continue;
            }
            let state = needed.copies.get(place.cluster);
            let stands = state.is_some_and(|state| {
                state.problem.is_none()
                    && state.record.is_some()
                    && state.outdated_since.is_none()
                    && (state.live.is_some() || !place.answers)
                    && state.live.as_ref().is_none_or(Copy::is_carried_out)
            });
            if !stands {
                let problem = state.and_then(|state| state.problem.as_ref());
                let live = state.and_then(|state| state.live.as_ref());
                let is_refused = live.is_some_and(|copy| copy.by_agent == Some(Applied::Failed));
                let is_bad = problem.is_some() || is_refused || !place.answers;
                failed |= is_bad;
                since.extend(state.and_then(|state| state.outdated_since.or(state.wanted_since)));
                let why = problem.map_or_else(|| format!("{id}"), |problem| problem.message.clone());
                lacking.entry(place.cluster).or_default().push((why, is_bad));
            } else if data::is_awaited(fleet, (workload, resource), &id, place.cluster) {
                let why = format!(
                    "the data of {id} (set the annotation {} of the claim there when it is)",
                    annotation::DATA_RESTORED_AT
                );
                (failed, data_awaited) = (true, true);
                lacking.entry(place.cluster).or_default().push((why, true));
            }
        }
    }
    let listed = |which: fn(bool) -> bool| {
        lacking.iter().filter_map(move |(cluster, all)| {
            let all = all.iter().filter(|(_, is_bad)| which(*is_bad));
            let all: Vec<&str> = all.map(|(why, _)| why.as_str()).collect();
            (!all.is_empty()).then(|| format!("not on {cluster}: {}", all.join(", ")))
        })
    };
    if !missing.is_empty() {
        // Delivery in progress is not reported.
        missing.extend(listed(|is_bad| is_bad));
        return Dependencies::Missing(missing.join("; "));
    }
    if lacking.is_empty() {
        let suspended = places.iter().any(|place| place.wanted && place.suspended);
        return Dependencies::Ready { count, suspended };
    }
    Dependencies::NotDelivered {
        message: listed(|_| true).collect::<Vec<_>>().join("; "),
        failed,
        since: since.into_iter().min(),
        data: data_awaited,
    }
}
