//! Results derived from the observations of a drill: gaps, times of arrival, and copies without a dependency. No I/O.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use entourage_core::object::ResourceId;

use crate::observe::{Copy, Sighting};

/// Each time that a running copy began to lack a dependency: the copy, the cluster, and the dependency. The changes of a
/// cluster are taken in the order in which the cluster made them. Cost: O(sightings × references of a workload).
pub(super) fn lacks(
    sightings: &[Sighting],
    needs: &BTreeMap<ResourceId, BTreeSet<ResourceId>>,
    killed: Instant,
) -> Vec<String> {
    let mut there: BTreeMap<&str, BTreeMap<&ResourceId, Copy>> = BTreeMap::new();
    let mut reported: BTreeSet<(&str, &ResourceId, &ResourceId)> = BTreeSet::new();
    let mut found = Vec::new();
    // The objects before the observation were listed kind by kind: the state is complete only after all of them.
    let (before, after): (Vec<&Sighting>, Vec<&Sighting>) =
        sightings.iter().partition(|sighting| sighting.initial);
    for sighting in before {
        set(&mut there, sighting);
    }
    for sighting in after {
        set(&mut there, sighting);
        let cluster = sighting.cluster.as_str();
        let Some(held) = there.get(cluster) else { continue };
        for (workload, needed) in needs {
            if !held.get(workload).is_some_and(|copy| copy.managed) {
                continue;
            }
            for each in needed.iter().filter(|each| !held.contains_key(each)) {
                if reported.insert((cluster, workload, each)) {
                    let when = offset(sighting.at, killed);
                    found.push(format!("{workload} was on {cluster} without {each} ({when})"));
                }
            }
        }
    }
    found
}

fn set<'a>(there: &mut BTreeMap<&'a str, BTreeMap<&'a ResourceId, Copy>>, sighting: &'a Sighting) {
    let held = there.entry(&sighting.cluster).or_default();
    match sighting.copy {
        Some(copy) => held.insert(&sighting.id, copy),
        None => held.remove(&sighting.id),
    };
}

/// The time after the kill of a cluster during which the others held fewer replicas than all of them before; `None`: they still
/// do.
pub(super) fn gap(
    sightings: &[Sighting],
    workload: &ResourceId,
    victim: &str,
    killed: Instant,
) -> Option<Duration> {
    let mut of_it: Vec<&Sighting> = sightings.iter().filter(|each| each.id == *workload).collect();
    of_it.sort_by_key(|each| each.at);
    let mut held: BTreeMap<&str, i64> = BTreeMap::new();
    let (before, after): (Vec<&Sighting>, Vec<&Sighting>) = of_it
        .into_iter()
        .partition(|each| each.initial || each.at <= killed);
    for each in before {
        held.insert(&each.cluster, replicas(each));
    }
    let wanted: i64 = held.values().sum();
    held.remove(victim);
    let mut lacking_since = (held.values().sum::<i64>() < wanted).then_some(killed);
    let mut gap = Duration::ZERO;
    for each in after.into_iter().filter(|each| each.cluster != victim) {
        held.insert(&each.cluster, replicas(each));
        let lacks = held.values().sum::<i64>() < wanted;
        match lacking_since {
            Some(since) if !lacks => {
                gap += each.at.duration_since(since);
                lacking_since = None;
            }
            None if lacks => lacking_since = Some(each.at),
            _ => {}
        }
    }
    lacking_since.is_none().then_some(gap)
}

fn replicas(sighting: &Sighting) -> i64 {
    sighting.copy.map_or(0, |copy| copy.replicas)
}

/// The time after the kill at which the last of these objects came to one of these clusters; zero: they were there before.
pub(super) fn arrival(
    sightings: &[Sighting],
    objects: &BTreeSet<ResourceId>,
    clusters: &BTreeSet<String>,
    killed: Instant,
) -> Duration {
    let mut first: BTreeMap<(&str, &ResourceId), Duration> = BTreeMap::new();
    for each in sightings {
        if each.copy.is_some() && objects.contains(&each.id) && clusters.contains(&each.cluster) {
            let after = if each.initial {
                Duration::ZERO
            } else {
                each.at.saturating_duration_since(killed)
            };
            first.entry((&each.cluster, &each.id)).or_insert(after);
        }
    }
    first.into_values().max().unwrap_or_default()
}

fn offset(at: Instant, killed: Instant) -> String {
    match at.checked_duration_since(killed) {
        Some(after) => format!("{} ms after the cut", after.as_millis()),
        None => format!("{} ms before the cut", killed.duration_since(at).as_millis()),
    }
}

#[cfg(test)]
mod tests;
