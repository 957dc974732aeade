//! The results that were stored lately, for the answers of estimators: an answer counts the pods that were on the nodes when the question was asked,
//! and is corrected by what it need not have counted.
//!
//! A result is *pending* from its plan until it is stored; from then on its pods start. All of it is kept for longer than any answer
//! counts, and nothing is kept unless estimators are asked. Where it is not exact, too much counts as taken by others: what is planned
//! and never stored until its next plan, what a later result takes back, and the increases of a whole second.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use entourage_api::work::{ResourceBindingSpec, TargetCluster};

use super::estimates;
use crate::{
    object::{ResourceId, Str, Time},
    plan::RoomUse,
    scheduler::estimate::{Amounts, Demand},
    stored_binding::sets::as_sets,
};

#[cfg(test)]
mod tests;

/// The time, in milliseconds, after which the pods of a stored result are on the nodes of a member, where its estimator counts them.
const STARTS: i64 = 5_000;

/// The time, in milliseconds, after which the pods that a stored result takes away are on the nodes no more: the usual time to end, and
/// that to begin with it.
const ENDS: i64 = 35_000;

/// The time, in milliseconds, for which stored results are kept: until no answer to a question from before them counts.
const KEPT: i64 = estimates::KEPT + estimates::question(estimates::LONGEST_TIMEOUT) + ENDS;

/// The interval, in milliseconds, whose increases on a cluster are kept as one.
const STEP: i64 = 1_000;

/// The number of changes that are kept for one binding on one cluster; the increase of an older one counts as that of others.
const MOST: usize = 8;

/// The results that were stored lately, and those that are about to be stored.
#[derive(Debug, Default)]
pub(crate) struct Placed {
    bindings: BTreeMap<ResourceId, BTreeMap<Str, Share>>,
    clusters: BTreeMap<Str, Sum>,
    /// The changes of stored results, oldest first.
    changes: VecDeque<(Time, ResourceId, Str)>,
}

/// The share of a binding on a cluster.
#[derive(Debug, Default)]
struct Share {
    /// The replicas that are planned beyond the stored ones, and the demand of each.
    pending: i64,
    demand: Arc<Demand>,
    /// The changes of its stored replicas, oldest first.
    changes: Vec<Change>,
}

/// A change of the stored replicas of a binding on a cluster.
#[derive(Debug)]
struct Change {
    at: Time,
    /// The replicas before it.
    before: i32,
    /// The replicas that it added, and the demand of each.
    grown: i64,
    demand: Arc<Demand>,
}

/// The requests of all bindings on a cluster.
#[derive(Debug, Default)]
struct Sum {
    /// Those of pending replicas.
    pending: Amounts,
    /// Those of all increases that were stored.
    grown: Amounts,
    /// The same before the increases of an interval, by its end.
    before: BTreeMap<Time, Amounts>,
}

/// The replicas that count of a binding on a cluster, and of all others there, at the time when its estimator was asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counted {
    /// Its stored replicas.
    pub(crate) own: i64,
    /// The most replicas that it had lately, whose pods may still have been there: the cluster has room for as many.
    pub(crate) had: i64,
    /// The requests of others whose pods need not have been there.
    pub(crate) others: Amounts,
}

impl Placed {
    /// The replicas that count of a binding on a cluster whose estimator was asked at a time. `stored` is its stored result.
    ///
    /// Its own replicas count from their result on, although they start later: counted too early, they give it too much room, which
    /// the report of the cluster bounds; counted too late, a workload that is scaled up would leave its clusters. Cost: O(log + resources).
    pub(crate) fn counted_at(
        &self,
        id: &ResourceId,
        cluster: &Str,
        stored: &[TargetCluster],
        asked: Time,
    ) -> Counted {
        let from = asked.plus(-STARTS);
        let share = self.bindings.get(id).and_then(|all| all.get(cluster));
        let mut others = self
            .clusters
            .get(cluster)
            .map_or_else(Amounts::new, |sum| sum.since(from));
        if let Some(share) = share {
            share.demand.add_to(&mut others, -share.pending);
        }
        let changes = share.map_or(&[][..], |share| &share.changes);
        for change in changes.iter().filter(|change| from <= end_of(change.at)) {
            change.demand.add_to(&mut others, -change.grown);
        }
        let later = changes.iter().find(|change| asked < change.at);
        let own = later.map_or_else(|| replicas(stored, cluster), |change| change.before);
        let ending = changes
            .iter()
            .filter(|change| change.at <= asked && asked < change.at.plus(ENDS));
        let had = ending.map(|change| change.before).fold(own, i32::max);
        Counted {
            own: i64::from(own.max(0)),
            had: i64::from(had.max(0)),
            others,
        }
    }

    /// Notes the plan of a binding; `used` is `None` if it is not scheduled by room. `stored` is its stored result. Cost: O(log bindings)
    /// if nothing changes, else O(clusters × log).
    pub(crate) fn planned(&mut self, id: &ResourceId, used: Option<&RoomUse>, stored: &[TargetCluster]) {
        self.withdraw(id);
        let result = used.and_then(|used| Some((&used.demand, used.clusters.as_deref()?)));
        let Some((demand, clusters)) = result.filter(|(_, clusters)| *clusters != stored) else {
            return;
        };
        let demand = Arc::new(demand.clone());
        for target in clusters {
            let more = i64::from(target.units()) - i64::from(replicas(stored, &target.name));
            if more <= 0 {
                continue;
            }
            let cluster = Str::from(target.name.as_str());
            let sum = self.clusters.entry(cluster.clone()).or_default();
            demand.add_to(&mut sum.pending, more);
            let shares = self.bindings.entry(id.clone()).or_default();
            let share = shares.entry(cluster).or_default();
            (share.pending, share.demand) = (more, Arc::clone(&demand));
        }
    }

    /// The stored result of a binding was observed. `before` is the one before it; without one it is new only if it was planned here.
    /// What is pending stays so as far as it is not stored: the binding is planned again. Cost: O(clusters × log) where it changes.
    pub(crate) fn stored(
        &mut self,
        id: &ResourceId,
        before: Option<&ResourceBindingSpec>,
        after: &ResourceBindingSpec,
        now: Time,
    ) {
        self.expire(now);
        let before = match before {
            Some(before) => before.clusters.as_slice(),
            None if self.bindings.contains_key(id) => &[],
            None => return,
        };
        let after_all = after.clusters.as_slice();
        let before = as_sets(before, after_all);
        if *before == *after_all {
            return;
        }
        let demand = Arc::new(Demand::of_binding(after));
        let targets = before.iter().chain(after_all);
        let names: BTreeSet<&str> = targets.map(|target| target.name.as_str()).collect();
        for name in names {
            let (before, after) = (replicas(&before, name), replicas(after_all, name));
            if before == after {
                continue;
            }
            let cluster = Str::from(name);
            let grown = i64::from(after).saturating_sub(i64::from(before)).max(0);
            let sum = self.clusters.entry(cluster.clone()).or_default();
            let shares = self.bindings.entry(id.clone()).or_default();
            let share = shares.entry(cluster.clone()).or_default();
            let is_stored = share.pending.min(grown);
            share.demand.add_to(&mut sum.pending, -is_stored);
            share.pending -= is_stored;
            sum.grow(&demand, grown, now);
            share.changes.push(Change {
                at: now,
                before,
                grown,
                demand: Arc::clone(&demand),
            });
            let dropped = share.changes.len().saturating_sub(MOST);
            share.changes.drain(..dropped);
            self.changes.push_back((now, id.clone(), cluster));
        }
    }

    /// A Cluster was deleted. Cost: O(bindings that were scheduled lately × log).
    pub(crate) fn forget_member(&mut self, cluster: &Str) {
        self.clusters.remove(cluster);
        self.bindings.retain(|_, shares| {
            shares.remove(cluster);
            !shares.is_empty()
        });
    }

    /// Records that the planned result of a binding is not about to be stored.
    fn withdraw(&mut self, id: &ResourceId) {
        let Some(shares) = self.bindings.get_mut(id) else {
            return;
        };
        shares.retain(|cluster, share| {
            if share.pending > 0
                && let Some(sum) = self.clusters.get_mut(cluster)
            {
                share.demand.add_to(&mut sum.pending, -share.pending);
                share.pending = 0;
                if sum.is_over() {
                    self.clusters.remove(cluster);
                }
            }
            !share.changes.is_empty()
        });
        if shares.is_empty() {
            self.bindings.remove(id);
        }
    }

    /// Drops what is kept for long enough. Cost: O(that × log); O(1) for none.
    fn expire(&mut self, now: Time) {
        let is_over = |at: Time| at.plus(KEPT) <= now;
        while let Some((at, ..)) = self.changes.front()
            && is_over(*at)
            && let Some((_, id, cluster)) = self.changes.pop_front()
        {
            if let Some(sum) = self.clusters.get_mut(&cluster) {
                sum.before.retain(|end, _| !is_over(end.plus(1 - STEP)));
                if sum.is_over() {
                    self.clusters.remove(&cluster);
                }
            }
            let Some(shares) = self.bindings.get_mut(&id) else {
                continue;
            };
            if let Some(share) = shares.get_mut(&cluster) {
                share.changes.retain(|change| !is_over(change.at));
                if share.changes.is_empty() && share.pending == 0 {
                    shares.remove(&cluster);
                }
            }
            if shares.is_empty() {
                self.bindings.remove(&id);
            }
        }
    }
}

impl Sum {
    /// The requests that are pending, or were stored from a time on.
    fn since(&self, from: Time) -> Amounts {
        let mut all = self.pending.clone();
        let Some((_, before)) = self.before.range(from..).next() else {
            return all;
        };
        for (name, amount) in &self.grown {
            let more = amount.saturating_sub(before.get(name).copied().unwrap_or(0));
            let held = all.entry(name.clone()).or_default();
            *held = held.saturating_add(more);
        }
        all
    }

    /// More replicas are stored.
    fn grow(&mut self, demand: &Demand, replicas: i64, now: Time) {
        if replicas > 0 {
            let grown = &self.grown;
            self.before.entry(end_of(now)).or_insert_with(|| grown.clone());
            demand.add_to(&mut self.grown, replicas);
        }
    }

    /// True if nothing is pending, or kept.
    fn is_over(&self) -> bool {
        self.before.is_empty() && self.pending.values().all(|amount| *amount <= 0)
    }
}

/// The last millisecond of the interval of a time.
fn end_of(at: Time) -> Time {
    Time((at.0.div_euclid(STEP) + 1) * STEP - 1)
}

fn replicas(targets: &[TargetCluster], cluster: &str) -> i32 {
    TargetCluster::find(targets, cluster).map_or(0, TargetCluster::units)
}
