//! The state of each list-and-watch: one record per watch, in one table.
//!
//! Invariants: each change of a record is made by [`WatchTable::change`], so the number of demanded watches that are not synced
//! is a counter; and a watch in the default state has no record.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    object::{Gvk, Str, Time},
    observation::{Server, Watch},
};

/// The answer of a server about the kind of a watch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Served {
    /// It serves the kind, as far as is known.
    #[default]
    Yes,
    /// It does not serve the kind in this version now.
    NotInThisVersion,
    /// It serves the kind in no version, and nothing defines it: there are no objects of it.
    NoSuchKind,
}

/// The state of one list-and-watch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct WatchState {
    /// It listed at least once.
    listed: bool,
    /// It is listed and healthy now.
    synced: bool,
    /// Its list is being read.
    listing: bool,
    /// The revision of its last list, or of its last event since.
    reached: Option<u64>,
    /// The error of a watch that failed and never listed, or whose kind or version is not served.
    unlistable: Option<String>,
    /// For watches of copies that do not list: the time since when, while the member answers, and the first error.
    lost: Option<(Time, String)>,
    /// The error of a server that refuses it to our account.
    refused: Option<String>,
    served: Served,
    /// For watches of copies that are refused or not served: no record mentions a copy.
    never_written: bool,
}

/// The effect of a failure of a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Loss {
    /// The watch of copies listed, or had not failed yet, until now.
    pub(crate) begins: bool,
    /// The watch never listed, and this is its first failure.
    pub(crate) is_first: bool,
}

/// All watches.
#[derive(Clone, Debug, Default)]
pub(crate) struct WatchTable {
    states: BTreeMap<Watch, WatchState>,
    demanded: BTreeSet<Watch>,
    /// The number of changes of `demanded`.
    changes: u64,
    /// Watches that were forgotten since the shell last took them, whether they are demanded again or not.
    ended: BTreeSet<Watch>,
    /// The number of demanded watches of the hub that are not synced, of those that block others.
    unsynced_on_hub: usize,
    /// The same by member; no entry for zero.
    unsynced_on: BTreeMap<Str, usize>,
}

impl FromIterator<Watch> for WatchTable {
    fn from_iter<I: IntoIterator<Item = Watch>>(watches: I) -> Self {
        let mut table = Self::default();
        for watch in watches {
            table.demand(watch);
        }
        table.changes = 0;
        table
    }
}

// --- reading; cost of each: O(log watches)

impl WatchTable {
    /// The list-and-watches that are demanded.
    pub(crate) const fn demanded(&self) -> &BTreeSet<Watch> {
        &self.demanded
    }

    /// The number of changes of [`Self::demanded`]. Cost: O(1).
    pub(crate) const fn changes(&self) -> u64 {
        self.changes
    }

    /// True if the watch is demanded.
    pub(crate) fn is_demanded(&self, watch: &Watch) -> bool {
        self.demanded.contains(watch)
    }

    /// True if the watch listed at least once.
    pub(crate) fn is_listed(&self, watch: &Watch) -> bool {
        self.has(watch, |state| state.listed)
    }

    /// True if the watch is listed and healthy now.
    pub(crate) fn is_synced(&self, watch: &Watch) -> bool {
        self.has(watch, |state| state.synced)
    }

    /// True while the list of the watch is read.
    pub(crate) fn is_listing(&self, watch: &Watch) -> bool {
        self.has(watch, |state| state.listing)
    }

    /// The error of a watch that failed and never listed, or whose kind or version is not served.
    pub(crate) fn unlistable(&self, watch: &Watch) -> Option<&String> {
        self.states.get(watch)?.unlistable.as_ref()
    }

    /// True if the watch is [unlistable](Self::unlistable).
    pub(crate) fn is_unlistable(&self, watch: &Watch) -> bool {
        self.unlistable(watch).is_some()
    }

    /// The time since when a watch of copies does not list although its member answers, and the first error.
    pub(crate) fn lost(&self, watch: &Watch) -> Option<&(Time, String)> {
        self.states.get(watch)?.lost.as_ref()
    }

    /// The error of a server that refuses the watch to our account.
    pub(crate) fn refused(&self, watch: &Watch) -> Option<&String> {
        self.states.get(watch)?.refused.as_ref()
    }

    /// True if the server does not serve the kind in the version of the watch.
    pub(crate) fn is_unserved(&self, watch: &Watch) -> bool {
        self.has(watch, |state| state.served != Served::Yes)
    }

    /// True if the server serves the kind in no version and nothing defines it: there are no objects of it.
    pub(crate) fn is_no_such_kind(&self, watch: &Watch) -> bool {
        self.has(watch, |state| state.served == Served::NoSuchKind)
    }

    /// True if the watch of copies is refused or not served, and no record has mentioned a copy since that began.
    pub(crate) fn is_never_written(&self, watch: &Watch) -> bool {
        self.has(watch, |state| state.never_written)
    }

    /// True if every demanded watch of the hub, and of the members that `counts` accepts, is synced or cannot be. Cost:
    /// O(members with a watch that is not synced).
    pub(crate) fn all_synced(&self, counts: impl Fn(&Str) -> bool) -> bool {
        self.unsynced_on_hub == 0 && !self.unsynced_on.keys().any(counts)
    }

    /// The watches that [`Self::all_synced`] misses. Cost: O(watches).
    pub(crate) fn unsynced(&self) -> impl Iterator<Item = &Watch> {
        self.demanded.iter().filter(|watch| self.is_unsettled(watch))
    }

    /// The kinds of the copies that a member refuses to our account or does not serve. Cost: O(watches).
    pub(crate) fn refused_on<'a>(&'a self, cluster: &'a Str) -> impl Iterator<Item = &'a Gvk> {
        self.states.iter().filter_map(move |(watch, state)| match watch {
            Watch::Copies(name, gvk)
                if name == cluster && (state.refused.is_some() || state.served != Served::Yes) =>
            {
                Some(gvk)
            }
            _ => None,
        })
    }

    fn has(&self, watch: &Watch, is: impl Fn(&WatchState) -> bool) -> bool {
        self.states.get(watch).is_some_and(is)
    }
}

// --- events of a watch; cost of each: O(log watches)

impl WatchTable {
    /// A list begins. Returns the revision that the watch had reached before, if both are known.
    pub(crate) fn list_begins(&mut self, watch: &Watch, revision: Option<u64>) -> Option<u64> {
        self.change(watch, |state| {
            state.listing = true;
            revision.and_then(|revision| state.reached.replace(revision))
        })
    }

    /// The watch has reached a revision.
    pub(crate) fn reached(&mut self, watch: &Watch, revision: u64) {
        match self.states.get_mut(watch) {
            Some(state) => state.reached = state.reached.max(Some(revision)),
            None => self.change(watch, |state| state.reached = Some(revision)),
        }
    }

    /// A list is complete. Returns two flags: this list is the first one; the watch was synced before.
    pub(crate) fn list_ends(&mut self, watch: &Watch) -> (bool, bool) {
        self.change(watch, |state| {
            let before = (!state.listed, state.synced);
            (state.listed, state.synced, state.served) = (true, true, Served::Yes);
            (state.unlistable, state.lost) = (None, None);
            before
        })
    }

    /// The events of the watch have been observed.
    pub(crate) fn was_taken_in(&mut self, watch: &Watch) {
        self.change(watch, |state| state.listing = false);
    }

    /// The watch failed.
    pub(crate) fn fails(&mut self, watch: &Watch, why: String, now: Time) -> Loss {
        let of_copies = matches!(watch, Watch::Copies(..));
        self.change(watch, |state| {
            (state.synced, state.served) = (false, Served::Yes);
            let begins = of_copies && state.lost.is_none();
            if begins {
                state.lost = Some((now, why.clone()));
            }
            let is_first = !state.listed && state.unlistable.replace(why).is_none();
            Loss { begins, is_first }
        })
    }

    /// The server does not serve the kind in this version.
    pub(crate) fn is_not_served(&mut self, watch: &Watch, why: String) {
        self.change(watch, |state| {
            (state.synced, state.served) = (false, Served::NotInThisVersion);
            (state.unlistable, state.lost) = (Some(why), None);
        });
    }

    /// The server serves the kind in no version, and nothing defines it.
    pub(crate) fn has_no_such_kind(&mut self, watch: &Watch) {
        self.change(watch, |state| state.served = Served::NoSuchKind);
    }

    /// The server refuses the watch to our account.
    pub(crate) fn is_refused(&mut self, watch: &Watch, why: String) {
        self.change(watch, |state| state.refused = Some(why));
    }

    /// The server refuses the watch no more. Returns true if it did.
    pub(crate) fn is_not_refused(&mut self, watch: &Watch) -> bool {
        self.refused(watch).is_some() && self.change(watch, |state| state.refused.take().is_some())
    }

    /// No record mentions a copy under the watch.
    pub(crate) fn has_no_records(&mut self, watch: &Watch) {
        self.change(watch, |state| state.never_written = true);
    }

    /// A record mentions a copy under the watch, or is about to.
    pub(crate) fn has_records(&mut self, watch: &Watch) {
        if self.is_never_written(watch) {
            self.change(watch, |state| state.never_written = false);
        }
    }

    /// The events of the watch prove nothing until it lists again.
    pub(crate) fn unsync(&mut self, watch: &Watch) {
        self.change(watch, |state| state.synced = false);
    }

    /// The events of a server's watches ahead of a revision prove nothing until they list again. Cost: O(watches).
    pub(crate) fn unsync_ahead(&mut self, server: &Server, revision: u64) {
        let is_ahead = |(watch, state): &(&Watch, &WatchState)| {
            watch.server() == *server && state.reached.is_some_and(|reached| reached > revision)
        };
        let ahead = self.states.iter().filter(is_ahead).map(|(watch, _)| watch);
        for watch in ahead.cloned().collect::<Vec<_>>() {
            self.unsync(&watch);
        }
    }

    /// A member responds, or no longer does: the time of its lost watches begins anew. Cost: O(watches).
    pub(crate) fn give_time(&mut self, cluster: &Str, now: Time) {
        for (watch, state) in &mut self.states {
            if let (Watch::Copies(name, _), Some((since, _))) = (watch, &mut state.lost)
                && name == cluster
            {
                *since = now;
            }
        }
    }
}

// --- demand; cost of each: O(log watches) unless stated otherwise

impl WatchTable {
    /// The watch is demanded. Returns true if it was not before.
    pub(crate) fn demand(&mut self, watch: Watch) -> bool {
        if self.demanded.contains(&watch) {
            return false;
        }
        self.changes += 1;
        let lacks = self.is_unsettled(&watch);
        self.count(&watch, false, lacks);
        self.demanded.insert(watch)
    }

    /// The watch is no longer demanded. Its state is forgotten: it lists afresh if it is demanded again, even before the shell
    /// has ended it.
    pub(crate) fn forget(&mut self, watch: &Watch) {
        self.end(watch);
        self.change(watch, |state| *state = WatchState::default());
    }

    /// The watch reads its objects differently from now on: it ends, and lists again. Its revision is kept, so that a server
    /// that was restored meanwhile is noticed.
    pub(crate) fn restart(&mut self, watch: Watch) {
        self.end(&watch);
        self.change(&watch, |state| {
            (state.listed, state.synced) = (false, false);
            (state.unlistable, state.lost) = (None, None);
        });
        self.demand(watch);
    }

    /// The watch is replaced by that of another version of its kind.
    pub(crate) fn replace(&mut self, watch: &Watch, by: Watch) {
        self.undemand(watch);
        self.forget_all_but_revision(watch);
        self.demand(by);
    }

    /// A member was removed: its watches end. Their revisions are kept: another member of the same name may count from the
    /// start. Cost: O(watches).
    pub(crate) fn forget_member(&mut self, cluster: &Str) {
        let server = Server::Member(cluster.clone());
        let recorded = self.states.keys().chain(&self.demanded);
        let of_it: BTreeSet<Watch> = recorded
            .filter(|watch| watch.server() == server)
            .cloned()
            .collect();
        for watch in of_it {
            self.end(&watch);
            self.forget_all_but_revision(&watch);
        }
    }

    /// The watches that ended since the last call. Cost: O(1).
    pub(crate) fn take_ended(&mut self) -> BTreeSet<Watch> {
        std::mem::take(&mut self.ended)
    }

    fn end(&mut self, watch: &Watch) {
        if self.undemand(watch) {
            self.ended.insert(watch.clone());
        }
    }

    fn undemand(&mut self, watch: &Watch) -> bool {
        let lacked = self.lacks(watch);
        let was_demanded = self.demanded.remove(watch);
        self.changes += u64::from(was_demanded);
        self.count(watch, lacked, false);
        was_demanded
    }

    fn forget_all_but_revision(&mut self, watch: &Watch) {
        self.change(watch, |state| {
            let reached = state.reached;
            *state = WatchState {
                reached,
                ..WatchState::default()
            };
        });
    }
}

// --- the only access to a record

impl WatchTable {
    fn change<T>(&mut self, watch: &Watch, change: impl FnOnce(&mut WatchState) -> T) -> T {
        let lacked = self.lacks(watch);
        let mut none = WatchState::default();
        let state = self.states.get_mut(watch);
        let is_recorded = state.is_some();
        let state = state.unwrap_or(&mut none);
        let result = change(state);
        match (is_recorded, *state == WatchState::default()) {
            (true, true) => {
                self.states.remove(watch);
            }
            (false, false) => {
                self.states.insert(watch.clone(), none);
            }
            _ => {}
        }
        let lacks = self.lacks(watch);
        self.count(watch, lacked, lacks);
        result
    }

    /// True if the watch is demanded, not synced, and blocks others.
    fn lacks(&self, watch: &Watch) -> bool {
        self.demanded.contains(watch) && self.is_unsettled(watch)
    }

    /// True if others wait for the watch to sync. Nothing waits for a kind that may be absent and cannot be listed, nor for
    /// WorkloadRebalancers, which only request a repetition, nor for PriorityClasses, which only determine an order, nor for the
    /// nodes, pods and quotas of members, nor for the parts of Services of other clusters.
    fn is_unsettled(&self, watch: &Watch) -> bool {
        let may_be_absent = match watch {
            Watch::Rebalancers
            | Watch::PriorityClasses
            | Watch::Nodes(_)
            | Watch::Pods(_)
            | Watch::QuotaCopies(_)
            | Watch::ServiceParts(_)
            | Watch::Endpoints(..) => return false,
            Watch::Copies(..)
            | Watch::MemberNamespaces(_)
            | Watch::Distributed(..)
            | Watch::Templates(_)
            | Watch::Namespaces
            | Watch::TaintPolicies
            | Watch::Quotas
            | Watch::Works
            | Watch::Leases
            | Watch::Distributions => true,
            _ => false,
        };
        let is_settled = |state: &WatchState| {
            let is_absent = state.unlistable.is_some() || state.served == Served::NoSuchKind;
            state.synced || (may_be_absent && is_absent)
        };
        !self.has(watch, is_settled)
    }

    fn count(&mut self, watch: &Watch, lacked: bool, lacks: bool) {
        if lacked == lacks {
            return;
        }
        match watch.server() {
            Server::Hub if lacks => self.unsynced_on_hub += 1,
            Server::Hub => self.unsynced_on_hub -= 1,
            Server::Member(cluster) if lacks => *self.unsynced_on.entry(cluster).or_default() += 1,
            Server::Member(cluster) => {
                if let Some(count) = self.unsynced_on.get_mut(&cluster) {
                    *count -= 1;
                    if *count == 0 {
                        self.unsynced_on.remove(&cluster);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time(0);

    fn copies(cluster: &str) -> Watch {
        Watch::Copies(cluster.into(), Gvk::new("v1", "ConfigMap"))
    }

    fn all_synced(table: &WatchTable) -> bool {
        table.all_synced(|_| true)
    }

    #[test]
    fn all_are_synced_when_each_that_others_wait_for_is_listed_or_cannot_be() {
        let mut table: WatchTable = [
            Watch::Policies,
            Watch::Namespaces,
            Watch::Rebalancers,
            copies("m1"),
        ]
        .into_iter()
        .collect();
        assert!(!all_synced(&table));
        table.list_ends(&Watch::Policies);
        table.fails(&Watch::Namespaces, "refused".into(), NOW);
        // A member that does not respond does not count.
        assert!(!all_synced(&table) && table.all_synced(|cluster| **cluster != *"m1"));
        table.list_ends(&copies("m1"));
        assert!(all_synced(&table));
        // One that failed after its list is not synced; nothing waits for one that never listed and may be absent.
        table.fails(&copies("m1"), "closed".into(), NOW);
        assert!(!all_synced(&table));
        table.is_not_served(&copies("m1"), "not found".into());
        assert!(all_synced(&table));
        table.fails(&Watch::Policies, "closed".into(), NOW);
        assert!(!all_synced(&table));
        table.forget(&Watch::Policies);
        assert!(all_synced(&table));
        assert_eq!(table.take_ended(), [Watch::Policies].into());
    }

    #[test]
    fn the_revision_of_a_watch_outlives_its_member() {
        let mut table: WatchTable = [copies("m1")].into_iter().collect();
        assert_eq!(table.list_begins(&copies("m1"), Some(7)), None);
        table.list_ends(&copies("m1"));
        table.forget_member(&"m1".into());
        assert!(!table.is_demanded(&copies("m1")) && !table.is_listed(&copies("m1")));
        assert!(all_synced(&table));
        table.demand(copies("m1"));
        assert!(!all_synced(&table));
        assert_eq!(table.list_begins(&copies("m1"), Some(3)), Some(7));
    }

    /// The counters agree with a count of the records, whatever happens.
    #[test]
    fn counters_agree_with_the_records_after_any_order_of_changes() {
        let watches = [
            Watch::Policies,
            Watch::Namespaces,
            Watch::Rebalancers,
            copies("m1"),
            copies("m2"),
        ];
        let mut table = WatchTable::default();
        let mut random = 1_u64;
        for _ in 0..5_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let watch = &watches[usize::try_from(random >> 33).unwrap() % watches.len()];
            match (random >> 40) % 10 {
                0 => drop(table.demand(watch.clone())),
                1 => table.forget(watch),
                2 => table.restart(watch.clone()),
                3 => drop(table.list_begins(watch, Some(random >> 50))),
                4 | 5 => drop(table.list_ends(watch)),
                6 => drop(table.fails(watch, "closed".into(), NOW)),
                7 => table.is_not_served(watch, "not found".into()),
                8 => table.forget_member(&"m1".into()),
                _ => table.unsync_ahead(&watch.server(), 1 << 13),
            }
            let lacking = watches.iter().filter(|watch| table.lacks(watch)).count();
            let counted = table.unsynced_on_hub + table.unsynced_on.values().sum::<usize>();
            assert_eq!(counted, lacking);
            assert!(!table.states.values().any(|state| *state == WatchState::default()));
            assert!(!table.unsynced_on.values().any(|count| *count == 0));
        }
    }
}
