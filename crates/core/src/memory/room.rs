//! The room of members: the capacity that each Cluster reports, what was scheduled and is not in these reports yet, and the
//! bindings that wait for room.
//!
//! A result by room is reserved from the moment it is planned, so that the next binding of a burst does not get the same room
//! again. The reservation ends with the first report that can contain its pods, and after a minute in any case.
//!
//! What other processes scheduled is reserved, too: while this one stands by, what the leader stores; at its start, what was scheduled in
//! the last minute and is not ready by its stored status. When it begins to lead, all of that counts as scheduled at that time: it may not
//! be delivered yet, and the last report of a member may be as old as the former leader.
//!
//! A set of components counts as one replica, with the demand of all of them.

use std::{
    borrow::Cow,
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use entourage_api::work::TargetCluster;

use crate::{
    object::{ResourceId, Str, Time},
    plan::RoomUse,
    scheduler::estimate::{Capacity, Demand},
};

/// The time, in milliseconds, after which a report of a member contains the pods of what was scheduled: they are created, and the
/// next report is due.
const SETTLES: i64 = 15_000;

/// The longest time, in milliseconds, that room is reserved: a report that does not change does not come.
const LONGEST: i64 = 60_000;

/// The time, in milliseconds, from a result on in which a takeover renews its reservation.
const RENEWED: i64 = 2 * LONGEST;

/// The interval, in milliseconds, at which bindings that wait for room are tried again, whatever is reported: all of them at the same
/// time, so that the one with the highest priority comes first.
const RETRY: i64 = 15_000;

/// The time, in milliseconds, after a try in which more room does not lead to the next: [`RETRY`] does.
const PAUSE: i64 = 10_000;

/// The room of all members.
#[derive(Debug, Default)]
pub(crate) struct Rooms {
    /// The capacities that are reported, with what is reserved.
    capacities: BTreeMap<Str, Capacity>,
    /// The recent results by room, by binding and cluster.
    recent: BTreeMap<ResourceId, BTreeMap<Str, Recent>>,
    /// The bindings with recent results, by cluster.
    by_cluster: BTreeMap<Str, BTreeSet<ResourceId>>,
    /// The times when recent results of bindings end at the latest.
    ends: BTreeSet<(Time, ResourceId)>,
    /// The time when each capacity was reported.
    reported: BTreeMap<Str, Time>,
    /// The bindings that wait for room.
    waiting: BTreeMap<ResourceId, Wait>,
}

/// A binding that waits for room.
#[derive(Clone, Debug)]
struct Wait {
    /// The demand of a replica, or of a set.
    demand: Demand,
    /// The time of the last try.
    tried: Time,
    priority: i32,
}

/// A recent result of one binding on one cluster.
#[derive(Clone, Debug)]
struct Recent {
    /// The replicas that the report of the cluster contains.
    base: i32,
    /// The replicas that are scheduled to it.
    replicas: i32,
    /// The demand of a replica, or of a set; that of the difference is reserved.
    demand: Arc<Demand>,
    /// The time of the result; a takeover renews it.
    since: Time,
    /// The time of the result, before any takeover.
    first: Time,
}

impl Recent {
    /// The number of replicas for which room is reserved.
    fn reserved(&self) -> i32 {
        self.replicas.saturating_sub(self.base).max(0)
    }
}

impl Rooms {
    /// The capacities of the members that report one.
    pub(crate) const fn capacities(&self) -> &BTreeMap<Str, Capacity> {
        &self.capacities
    }

    /// The time when the capacity of a member last changed, if that was observed.
    pub(crate) fn reported_at(&self, cluster: &str) -> Option<Time> {
        self.reported.get(cluster).copied()
    }

    /// The replicas of a binding that the capacities contain. `stored` is its stored result. Cost: O(1) without recent results, else
    /// O(clusters).
    pub(crate) fn accounted<'a>(
        &self,
        id: &ResourceId,
        stored: &'a [TargetCluster],
    ) -> Cow<'a, [TargetCluster]> {
        let Some(recent) = self.recent.get(id) else {
            return Cow::Borrowed(stored);
        };
        let others = stored
            .iter()
            .filter(|target| !recent.contains_key(target.name.as_str()));
        let bases = recent.iter().map(|(cluster, each)| target(cluster, each.base));
        let mut all: Vec<TargetCluster> = others.cloned().chain(bases).collect();
        all.sort();
        Cow::Owned(all)
    }

    /// As [`Self::accounted`], for a set: only where it runs, since pods that wait for a node are in no report. `running` are the stored
    /// clusters where it runs. Cost: O(clusters × log).
    pub(crate) fn accounted_of_set(&self, id: &ResourceId, running: &[TargetCluster]) -> Vec<TargetCluster> {
        let sets = running.iter().map(|each| TargetCluster {
            replicas: 1,
            components: Vec::new(),
            ..each.clone()
        });
        let sets: Vec<TargetCluster> = sets.collect();
        let mut accounted = self.accounted(id, &sets).into_owned();
        accounted.retain(|each| TargetCluster::find(running, &each.name).is_some());
        accounted
    }

    /// As [`Self::reserved_by`], if all of it was reserved with this demand: that of another set is no room for it. Else none, so that
    /// there is too little room rather than too much. Cost: O(clusters).
    pub(crate) fn reserved_with(&self, id: &ResourceId, demand: &Demand) -> Vec<TargetCluster> {
        let mut recent = self.recent.get(id).into_iter().flatten();
        if recent.all(|(_, each)| *each.demand == *demand) {
            self.reserved_by(id)
        } else {
            Vec::new()
        }
    }

    /// The replicas for which a binding has reserved room, sorted by cluster. Cost: O(clusters).
    pub(crate) fn reserved_by(&self, id: &ResourceId) -> Vec<TargetCluster> {
        let recent = self.recent.get(id).into_iter().flatten();
        recent
            .map(|(cluster, each)| target(cluster, each.reserved()))
            .collect()
    }

    /// A Cluster reports its capacity, or none any more. Returns the bindings to try again: those that wait, and that a member has
    /// more room for than before (for a set: room, and had none), the highest priority first. One that was tried just now is among them if
    /// one of a lower priority is. The first report that is observed ends nothing: it may be older than this process. Cost: O(recent
    /// results there + waiting bindings × log).
    pub(crate) fn reported(
        &mut self,
        cluster: &Str,
        capacity: Option<Capacity>,
        now: Time,
    ) -> Vec<ResourceId> {
        let is_known = self.reported.contains_key(cluster);
        for id in self.by_cluster.get(cluster).cloned().unwrap_or_default() {
            let since = self
                .recent
                .get(&id)
                .and_then(|all| all.get(cluster))
                .map(|each| each.since);
            if is_known && since.is_some_and(|since| since.plus(SETTLES) <= now) {
                self.end(&id, cluster);
            }
        }
        if is_known || capacity.is_some() {
            self.reported.insert(cluster.clone(), now);
        }
        let before = self.capacities.remove(cluster).unwrap_or_default();
        let Some(mut capacity) = capacity else {
            return Vec::new();
        };
        let ids = self.by_cluster.get(cluster).into_iter().flatten();
        for recent in ids.filter_map(|id| self.recent.get(id)?.get(cluster)) {
            capacity.reserve(&recent.demand, i64::from(recent.reserved()));
        }
        let gains = |Wait { demand, .. }: &Wait| {
            if demand.is_set() {
                return capacity.holds_one(demand) && !before.holds_one(demand);
            }
            let replicas = capacity.replicas(demand, 0);
            replicas > 0 && replicas > before.replicas(demand, 0)
        };
        let mut due: Vec<(&ResourceId, &Wait)> =
            self.waiting.iter().filter(|(_, wait)| gains(wait)).collect();
        let paused = due.iter().filter(|(_, wait)| wait.tried.plus(PAUSE) <= now);
        let lowest = paused.map(|(_, wait)| wait.priority).min();
        due.retain(|(_, wait)| {
            wait.tried.plus(PAUSE) <= now || lowest.is_some_and(|lowest| lowest < wait.priority)
        });
        due.sort_by_key(|(_, wait)| Reverse(wait.priority));
        let due = due.into_iter().map(|(id, _)| id.clone()).collect();
        self.capacities.insert(cluster.clone(), capacity);
        due
    }

    /// A Cluster was deleted. Cost: O(recent results there).
    pub(crate) fn forget_member(&mut self, cluster: &Str) {
        for id in self.by_cluster.get(cluster).cloned().unwrap_or_default() {
            self.end(&id, cluster);
        }
        self.capacities.remove(cluster);
        self.reported.remove(cluster);
    }

    /// Notes the plan of a binding; `used` is `None` if it was not scheduled by room. `stored` is its stored result. Returns the
    /// time to try again, if it waits for room. Cost: O(log bindings), and O(clusters) where the result changes.
    pub(crate) fn planned(
        &mut self,
        id: &ResourceId,
        used: Option<&RoomUse>,
        stored: &[TargetCluster],
        now: Time,
    ) -> Option<Time> {
        self.expire(now);
        let Some(RoomUse {
            demand,
            clusters,
            priority,
        }) = used
        else {
            self.waiting.remove(id);
            return None;
        };
        let Some(clusters) = clusters else {
            let wait = Wait {
                demand: demand.clone(),
                tried: now,
                priority: *priority,
            };
            self.waiting.insert(id.clone(), wait);
            return Some(next_try(now));
        };
        self.waiting.remove(id);
        if **clusters != *stored || self.recent.contains_key(id) {
            self.take(id, demand, clusters, stored, now);
        }
        None
    }

    /// True if a recent result of a binding is known. Cost: O(log bindings).
    pub(crate) fn is_recent(&self, id: &ResourceId) -> bool {
        self.recent.contains_key(id)
    }

    /// Another process stored a result by room just now. `before` are the clusters whose pods the reports may contain. Cost: O(log
    /// bindings), and O(clusters) where they differ.
    pub(crate) fn followed(
        &mut self,
        id: &ResourceId,
        demand: &Demand,
        (before, after): (&[TargetCluster], &[TargetCluster]),
        now: Time,
    ) {
        self.expire(now);
        if before != after {
            self.take(id, demand, after, before, now);
        }
    }

    /// This process begins to lead: what was scheduled lately counts as scheduled now, and what runs of it by `running` is contained in the
    /// reports. `running` is `None` of a binding that is gone: nothing of it is reserved. However often the leader changes, nothing is
    /// renewed for longer than [`RENEWED`]. Cost: O(recent results × log).
    pub(crate) fn take_over(
        &mut self,
        running: impl Fn(&ResourceId) -> Option<Vec<TargetCluster>>,
        now: Time,
    ) {
        self.expire(now);
        let gone = self.recent.keys().filter(|id| running(id).is_none());
        for id in gone.cloned().collect::<Vec<_>>() {
            let clusters = self.recent.get(&id).into_iter().flat_map(BTreeMap::keys);
            for cluster in clusters.cloned().collect::<Vec<_>>() {
                self.end(&id, &cluster);
            }
        }
        self.ends.clear();
        for (id, all) in &mut self.recent {
            let running = running(id).unwrap_or_default();
            for (cluster, each) in all.iter_mut() {
                let reserved = each.reserved();
                each.base = each.base.max(replicas(&running, cluster).min(each.replicas));
                if now < each.first.plus(RENEWED) {
                    each.since = now;
                }
                if let Some(capacity) = self.capacities.get_mut(cluster) {
                    capacity.release(&each.demand, i64::from(reserved - each.reserved()));
                }
                self.ends.insert((each.since.plus(LONGEST), id.clone()));
            }
        }
    }

    /// True if what was scheduled at a time is reserved, unless a report contains it.
    pub(crate) fn is_reserved_since(scheduled: Time, now: Time) -> bool {
        now < scheduled.plus(LONGEST)
    }

    /// Reserves the room of a result.
    fn take(
        &mut self,
        id: &ResourceId,
        demand: &Demand,
        clusters: &[TargetCluster],
        stored: &[TargetCluster],
        now: Time,
    ) {
        let before = self.recent.get(id).cloned().unwrap_or_default();
        let targets = clusters.iter().chain(stored);
        let mut names: Vec<&str> = targets.map(|each| each.name.as_str()).collect();
        names.extend(before.keys().map(|name| &**name));
        names.sort_unstable();
        names.dedup();
        let demand = Arc::new(demand.clone());
        let mut taken: BTreeMap<Str, Recent> = BTreeMap::new();
        for name in names {
            let held = before.get_key_value(name);
            let base = held.map_or_else(|| replicas(stored, name), |(_, each)| each.base);
            let after = replicas(clusters, name);
            if held.is_some_and(|(_, each)| each.replicas == after) {
                continue;
            }
            if let Some((cluster, _)) = held {
                self.end(id, cluster);
            }
            if after == base {
                continue;
            }
            let result = Recent {
                base,
                replicas: after,
                demand: Arc::clone(&demand),
                since: now,
                first: now,
            };
            if let Some(capacity) = self.capacities.get_mut(name) {
                capacity.reserve(&demand, i64::from(result.reserved()));
            }
            let known = self.capacities.get_key_value(name).map(|(known, _)| known);
            let name = known.map_or_else(|| Str::from(name), Clone::clone);
            let there = self.by_cluster.entry(name.clone()).or_default();
            there.insert(id.clone());
            taken.insert(name, result);
        }
        if !taken.is_empty() {
            self.ends.insert((now.plus(LONGEST), id.clone()));
            self.recent.entry(id.clone()).or_default().extend(taken);
        }
    }

    /// Ends the results that are recent no more. Cost: O(those); O(1) for none.
    pub(crate) fn expire(&mut self, now: Time) {
        while let Some((until, _)) = self.ends.first()
            && *until <= now
            && let Some((_, id)) = self.ends.pop_first()
        {
            let all = self.recent.get(&id).into_iter().flatten();
            let over = all.filter(|(_, each)| each.since.plus(LONGEST) <= now);
            let over: Vec<Str> = over.map(|(cluster, _)| cluster.clone()).collect();
            for cluster in over {
                self.end(&id, &cluster);
            }
        }
    }

    fn end(&mut self, id: &ResourceId, cluster: &Str) {
        let Some(all) = self.recent.get_mut(id) else {
            return;
        };
        let Some(ended) = all.remove(cluster) else { return };
        let is_last_of_then = !all.values().any(|each| each.since == ended.since);
        if all.is_empty() {
            self.recent.remove(id);
        }
        if is_last_of_then {
            self.ends.remove(&(ended.since.plus(LONGEST), id.clone()));
        }
        if let Some(ids) = self.by_cluster.get_mut(cluster) {
            ids.remove(id);
            if ids.is_empty() {
                self.by_cluster.remove(cluster);
            }
        }
        if let Some(capacity) = self.capacities.get_mut(cluster) {
            capacity.release(&ended.demand, i64::from(ended.reserved()));
        }
    }
}

/// The next time at which what waits for room is tried again, whatever is reported.
pub(crate) fn next_try(now: Time) -> Time {
    Time((now.0.div_euclid(RETRY) + 1) * RETRY)
}

fn target(cluster: &Str, replicas: i32) -> TargetCluster {
    TargetCluster {
        name: cluster.to_string(),
        replicas,
        components: Vec::new(),
    }
}

fn replicas(targets: &[TargetCluster], cluster: &str) -> i32 {
    TargetCluster::find(targets, cluster).map_or(0, TargetCluster::units)
}

#[cfg(test)]
mod tests {
    use entourage_api::{
        cluster::Cluster,
        work::{Component, TargetComponent},
    };
    use serde_json::json;

    use super::*;
    use crate::object::Gvk;

    fn capacity(pods: i64) -> Option<Capacity> {
        let cluster: Cluster = serde_json::from_value(json!({
            "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": "m"},
            "spec": {"syncMode": "Push"},
            "status": {"resourceSummary": {"allocatable": {"pods": pods.to_string()}}},
        }))
        .unwrap();
        Capacity::of(&cluster)
    }

    fn id(name: &str) -> ResourceId {
        ResourceId::new(Gvk::new("apps/v1", "Deployment"), "shop", name)
    }

    fn placed(all: &[(&str, i32)]) -> Vec<TargetCluster> {
        all.iter()
            .map(|(name, replicas)| target(&Str::from(*name), *replicas))
            .collect()
    }

    fn result(all: &[(&str, i32)]) -> RoomUse {
        RoomUse {
            demand: Demand::default(),
            clusters: Some(placed(all)),
            priority: 0,
        }
    }

    fn waits() -> RoomUse {
        waits_with(0)
    }

    fn waits_with(priority: i32) -> RoomUse {
        RoomUse {
            demand: Demand::default(),
            clusters: None,
            priority,
        }
    }

    fn free(rooms: &Rooms, cluster: &str) -> i64 {
        rooms.capacities()[cluster].replicas(&Demand::default(), 0)
    }

    fn rooms(pods: i64) -> Rooms {
        let mut rooms = Rooms::default();
        for cluster in ["a", "b"] {
            assert_eq!(rooms.reported(&cluster.into(), capacity(pods), Time(0)), []);
        }
        rooms
    }

    #[test]
    fn a_result_is_reserved_until_a_report_can_contain_it() {
        let mut rooms = rooms(10);
        rooms.planned(&id("x"), Some(&result(&[("a", 4), ("b", 2)])), &[], Time(0));
        assert_eq!((free(&rooms, "a"), free(&rooms, "b")), (6, 8));
        assert_eq!(rooms.reserved_by(&id("x")), placed(&[("a", 4), ("b", 2)]));
        assert_eq!(
            *rooms.accounted(&id("x"), &placed(&[("a", 4), ("b", 2)])),
            placed(&[("a", 0), ("b", 0)])
        );
        // A report that may be older than the pods.
        rooms.reported(&"a".into(), capacity(9), Time(SETTLES - 1));
        assert_eq!(free(&rooms, "a"), 5);
        rooms.reported(&"a".into(), capacity(6), Time(SETTLES));
        assert_eq!((free(&rooms, "a"), free(&rooms, "b")), (6, 8));
        assert_eq!(
            *rooms.accounted(&id("x"), &placed(&[("a", 4), ("b", 2)])),
            placed(&[("a", 4), ("b", 0)])
        );
        // No report comes from b.
        rooms.planned(&id("y"), None, &[], Time(LONGEST));
        assert_eq!(free(&rooms, "b"), 10);
        assert!(rooms.recent.is_empty() && rooms.by_cluster.is_empty() && rooms.ends.is_empty());
    }

    #[test]
    fn what_another_process_scheduled_is_reserved_until_a_report_of_later() {
        let mut rooms = Rooms::default();
        let (one, five) = (placed(&[("a", 1)]), placed(&[("a", 5)]));
        let follow = |rooms: &mut Rooms, all: (&[TargetCluster], &[TargetCluster]), now: i64| {
            rooms.followed(&id("x"), &Demand::default(), all, Time(now));
        };
        follow(&mut rooms, (&one, &five), 0);
        // The first report that is observed may be older than the result, however late it is observed.
        rooms.reported(&"a".into(), capacity(10), Time(SETTLES));
        assert_eq!(free(&rooms, "a"), 6);
        follow(&mut rooms, (&five, &five), SETTLES);
        assert_eq!(free(&rooms, "a"), 6);
        follow(&mut rooms, (&five, &placed(&[("a", 3)])), SETTLES + 1);
        assert_eq!(free(&rooms, "a"), 8, "the base is what the report contains");
        // It may not be delivered yet.
        rooms.take_over(|_| Some(Vec::new()), Time(20_000));
        rooms.planned(
            &id("x"),
            Some(&result(&[("a", 3)])),
            &placed(&[("a", 3)]),
            Time(20_001),
        );
        rooms.reported(&"a".into(), capacity(10), Time(19_999 + SETTLES));
        assert_eq!(free(&rooms, "a"), 8);
        rooms.reported(&"a".into(), capacity(8), Time(20_000 + SETTLES));
        assert_eq!(free(&rooms, "a"), 8);
        assert!(rooms.recent.is_empty() && rooms.by_cluster.is_empty() && rooms.ends.is_empty());
        // Without a report it ends, too, whether anything is planned or not.
        follow(&mut rooms, (&[], &five), 40_000);
        assert_eq!(free(&rooms, "a"), 3);
        follow(&mut rooms, (&[], &[]), 40_000 + LONGEST);
        assert_eq!(free(&rooms, "a"), 8);
        assert!(rooms.recent.is_empty() && rooms.by_cluster.is_empty() && rooms.ends.is_empty());
    }

    #[test]
    fn at_a_takeover_the_reports_contain_what_is_ready() {
        let mut rooms = rooms(10);
        rooms.planned(
            &id("x"),
            Some(&result(&[("a", 4)])),
            &placed(&[("a", 1)]),
            Time(0),
        );
        for (ready, left, base) in [(0, 7, 1), (1, 7, 1), (3, 9, 3), (2, 9, 3), (7, 10, 4)] {
            rooms.take_over(|_| Some(placed(&[("a", ready)])), Time(1));
            assert_eq!(free(&rooms, "a"), left, "{ready} are ready");
            let accounted = rooms.accounted(&id("x"), &placed(&[("a", 4)])).into_owned();
            assert_eq!(accounted, placed(&[("a", base)]), "{ready} are ready");
        }
        rooms.expire(Time(1 + LONGEST));
        assert_eq!(free(&rooms, "a"), 10);
        assert!(rooms.recent.is_empty() && rooms.by_cluster.is_empty() && rooms.ends.is_empty());
    }

    #[test]
    fn takeovers_in_a_row_renew_nothing_for_ever_nor_what_is_gone() {
        let mut rooms = rooms(10);
        rooms.planned(&id("x"), Some(&result(&[("a", 4)])), &[], Time(0));
        // The last one that renews is at 110 s.
        for takeover in 1..=17_i64 {
            rooms.take_over(|_| Some(Vec::new()), Time(takeover * 10_000));
            let want = if takeover < 17 { 6 } else { 10 };
            assert_eq!(free(&rooms, "a"), want, "takeover {takeover}");
        }
        assert!(rooms.recent.is_empty() && rooms.by_cluster.is_empty() && rooms.ends.is_empty());
        rooms.planned(&id("x"), Some(&result(&[("a", 4), ("b", 1)])), &[], Time(200_000));
        rooms.take_over(|_| None, Time(200_001));
        assert_eq!((free(&rooms, "a"), free(&rooms, "b")), (10, 10));
        assert!(rooms.recent.is_empty() && rooms.by_cluster.is_empty() && rooms.ends.is_empty());
    }

    #[test]
    fn a_set_of_components_is_reserved_once_with_all_of_them() {
        let mut rooms = rooms(10);
        let component = |name: &str, replicas: i32| Component {
            name: name.into(),
            replicas,
            replica_requirements: None,
        };
        let components = [component("head", 1), component("worker", 3)];
        let target = TargetCluster {
            name: "a".into(),
            components: vec![TargetComponent {
                name: "head".into(),
                replicas: 1,
            }],
            ..TargetCluster::default()
        };
        let used = RoomUse {
            demand: Demand::of_set(&components),
            clusters: Some(vec![target.clone()]),
            priority: 0,
        };
        rooms.planned(&id("x"), Some(&used), &[], Time(0));
        assert_eq!((free(&rooms, "a"), free(&rooms, "b")), (6, 10));
        assert_eq!(rooms.reserved_by(&id("x")), placed(&[("a", 1)]));
        // With the demand of today, and none of another one; its pods are in no report.
        let larger = Demand::of_set(&[component("head", 1), component("worker", 4)]);
        assert_eq!(rooms.reserved_with(&id("x"), &used.demand), placed(&[("a", 1)]));
        assert_eq!(rooms.reserved_with(&id("x"), &larger), []);
        let there = std::slice::from_ref(&target);
        assert_eq!(rooms.accounted_of_set(&id("x"), there), placed(&[("a", 0)]));
        assert_eq!(rooms.accounted_of_set(&id("x"), &[]), []);
        assert_eq!(rooms.accounted_of_set(&id("y"), there), placed(&[("a", 1)]));
        rooms.planned(&id("x"), Some(&used), &[target], Time(1));
        assert_eq!(free(&rooms, "a"), 6);
        rooms.reported(&"a".into(), capacity(6), Time(SETTLES));
        assert_eq!(free(&rooms, "a"), 6);
        assert!(rooms.recent.is_empty());
    }

    #[test]
    fn the_same_result_again_reserves_nothing_more_and_another_replaces_it() {
        let mut rooms = rooms(10);
        let stored = placed(&[("a", 2)]);
        for _ in 0..2 {
            rooms.planned(&id("x"), Some(&result(&[("a", 5)])), &stored, Time(0));
            assert_eq!(free(&rooms, "a"), 7);
        }
        // It is stored, and scaled.
        let stored = placed(&[("a", 5)]);
        rooms.planned(&id("x"), Some(&result(&[("a", 6), ("b", 1)])), &stored, Time(1));
        assert_eq!((free(&rooms, "a"), free(&rooms, "b")), (6, 9));
        // Fewer than the report contains: nothing is reserved, and what is freed is not free yet.
        rooms.planned(&id("x"), Some(&result(&[("a", 1)])), &stored, Time(2));
        assert_eq!((free(&rooms, "a"), free(&rooms, "b")), (10, 10));
        assert_eq!(
            *rooms.accounted(&id("x"), &placed(&[("a", 1)])),
            placed(&[("a", 2)])
        );
        rooms.forget_member(&"a".into());
        assert!(rooms.recent.is_empty() && rooms.ends.is_empty());
    }

    #[test]
    fn bindings_that_wait_are_tried_again_where_there_is_more_room() {
        let mut rooms = rooms(1);
        assert_eq!(
            rooms.planned(&id("x"), Some(&waits()), &[], Time(0)),
            Some(Time(RETRY))
        );
        rooms.planned(&id("y"), Some(&result(&[("a", 1)])), &[], Time(0));
        let (early, later) = (Time(PAUSE - 1), Time(PAUSE));
        assert_eq!(
            rooms.reported(&"a".into(), capacity(3), early),
            [],
            "it was tried just now"
        );
        assert_eq!(
            rooms.reported(&"a".into(), capacity(3), later),
            [],
            "no more than before"
        );
        assert_eq!(
            rooms.reported(&"a".into(), capacity(2), later),
            [],
            "less than before"
        );
        assert_eq!(rooms.reported(&"a".into(), capacity(4), later), [id("x")]);
        rooms.planned(&id("x"), Some(&result(&[("a", 1)])), &[], later);
        assert_eq!(rooms.reported(&"a".into(), capacity(9), Time(3 * PAUSE)), []);
    }

    #[test]
    fn a_set_that_waits_is_tried_again_where_one_fits_that_did_not() {
        let mut rooms = rooms(1);
        let set = Demand::of_set(&[Component {
            name: "worker".into(),
            replicas: 3,
            replica_requirements: None,
        }]);
        let used = RoomUse {
            demand: set,
            ..waits()
        };
        rooms.planned(&id("x"), Some(&used), &[], Time(0));
        for (pods, want) in [(2, false), (3, true), (7, false), (2, false), (9, true)] {
            let due = rooms.reported(&"a".into(), capacity(pods), Time(PAUSE));
            assert_eq!(!due.is_empty(), want, "{pods}");
        }
    }

    #[test]
    fn of_those_that_wait_the_highest_priority_is_tried_first_and_all_at_the_same_times() {
        let mut rooms = rooms(0);
        for (name, priority, tried) in [
            ("a", 0, 0),
            ("b", 7, 1),
            ("c", -5, 2),
            ("d", 7, PAUSE - 1),
            ("e", -9, PAUSE),
        ] {
            let next = rooms.planned(&id(name), Some(&waits_with(priority)), &[], Time(tried));
            assert_eq!(next, Some(Time(RETRY)));
        }
        // d was tried just now, but comes before those that would get its room; e would not.
        let order = ["b", "d", "a", "c"].map(id);
        assert_eq!(rooms.reported(&"a".into(), capacity(1), Time(PAUSE + 2)), order);
        let next = rooms.planned(&id("a"), Some(&waits()), &[], Time(RETRY));
        assert_eq!(next, Some(Time(2 * RETRY)));
    }
}
