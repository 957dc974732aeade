//! The choice of the failing member, and the result for each of its workloads.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Instant,
};

use anyhow::{Context as _, Result, ensure};
use entourage_core::object::ResourceId;

use super::{
    Before, facts,
    hub::{Binding, joined},
    report::{Moved, Report, millis},
};
use crate::{command::failover::Stays, observe::Observer};

/// The failing member: the one that is named, or the one with the most workloads; of several the first.
pub(super) fn victim(
    named: Option<&str>,
    bindings: &BTreeMap<ResourceId, Binding>,
    members: usize,
) -> Result<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for binding in bindings.values().filter(|each| each.is_workload()) {
        for cluster in binding.clusters().into_keys() {
            *counts.entry(cluster).or_default() += 1;
        }
    }
    if let Some(name) = named {
        ensure!(
            counts.contains_key(name),
            "no workload is scheduled to {name:?}, so nothing would move; {} of {members} members have workloads: {}",
            counts.len(),
            joined(&counts.into_keys().collect())
        );
        return Ok(name.to_owned());
    }
    let most = counts.values().max().copied().unwrap_or_default();
    let mut first = counts.into_iter().filter(|(_, count)| *count == most);
    let (name, _) = first.next().context("no workload is scheduled to any member")?;
    Ok(name)
}

/// Succeeds if a workload of a failed member is where it must be; the error names the reason.
pub(super) fn arrived(binding: &Binding, victim: &str, stays: bool, observer: &Observer) -> Result<()> {
    let (id, clusters) = (&binding.id, binding.clusters());
    if clusters.contains_key(victim) {
        ensure!(
            stays || binding.blocked().is_some(),
            "{id} did not leave {victim}, and has the condition EvictionBlocked neither"
        );
        return Ok(());
    }
    for (cluster, replicas) in clusters {
        let copy = observer.copy(&cluster, id);
        let copy = copy.with_context(|| format!("{id} is not on {cluster} yet"))?;
        ensure!(
            replicas == 0 || copy.replicas == replicas,
            "{id} has {} of {replicas} replicas on {cluster}",
            copy.replicas
        );
        ensure!(
            !binding.is_unhealthy_on(&cluster),
            "{id} is not healthy on {cluster} yet"
        );
    }
    Ok(())
}

/// Reports the result for each workload of the failed member.
pub(super) fn report_moves(
    before: &Before,
    of_it: &[&Binding],
    now: &BTreeMap<ResourceId, Binding>,
    killed: Instant,
    report: &mut Report,
) {
    let (victim, seen) = (report.cluster.clone(), before.observer.sightings());
    let mut claims = BTreeSet::new();
    for binding in of_it {
        let (id, had) = (&binding.id, binding.clusters());
        let Some(is) = now.get(id) else { continue };
        let mut to = is.clusters();
        if to.contains_key(&victim) {
            match is.blocked() {
                Some(why) => report.blocked.push(Stays {
                    object: id.to_string(),
                    why: why.to_owned(),
                }),
                None => report.tolerate.push(id.to_string()),
            }
            continue;
        }
        to.retain(|cluster, replicas| had.get(cluster).is_none_or(|before| before < replicas));
        let none = BTreeSet::new();
        let needed = before.needs.get(id).unwrap_or(&none);
        let clusters: BTreeSet<String> = to.keys().cloned().collect();
        let arrival = |objects: &BTreeSet<ResourceId>, of: &BTreeSet<String>| {
            millis(facts::arrival(&seen, objects, of, killed))
        };
        let fresh: BTreeSet<String> = clusters
            .iter()
            .filter(|each| !had.contains_key(*each))
            .cloned()
            .collect();
        report.moved.push(Moved {
            object: id.to_string(),
            from: victim.clone(),
            to,
            dependencies: needed.iter().map(ResourceId::to_string).collect(),
            dependencies_after_ms: arrival(needed, &clusters),
            replacement_after_ms: arrival(&BTreeSet::from([id.clone()]), &fresh),
            gap_ms: facts::gap(&seen, id, &victim, killed).map(millis),
        });
        let is_claim = |id: &&ResourceId| &*id.gvk.kind == "PersistentVolumeClaim";
        let bound = |id: &&ResourceId| before.observer.copy(&victim, id).is_some_and(|copy| copy.bound);
        claims.extend(
            needed
                .iter()
                .filter(is_claim)
                .filter(bound)
                .map(ResourceId::to_string),
        );
    }
    report.data = claims.into_iter().collect();
}
