//! Which list-and-watches must run: demand-driven, by the kinds in use and the members that exist.

use std::{collections::BTreeSet, ops::Deref};

use super::Index;
use crate::{
    object::{Gvk, ResourceId, Str},
    observation::Watch,
    plan::Key,
    reserved::is_skipped_kind,
};

/// What is demanded, and how often that has changed. Read it as the set that it is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Demand {
    watches: BTreeSet<Watch>,
    changes: u64,
}

impl Demand {
    pub(super) const fn changes(&self) -> u64 {
        self.changes
    }

    /// Answers whether it is new.
    pub(super) fn insert(&mut self, watch: Watch) -> bool {
        let is_new = self.watches.insert(watch);
        self.changes += u64::from(is_new);
        is_new
    }

    /// Answers whether it was there.
    pub(super) fn remove(&mut self, watch: &Watch) -> bool {
        let was_there = self.watches.remove(watch);
        self.changes += u64::from(was_there);
        was_there
    }

    pub(super) fn retain(&mut self, keeps: impl FnMut(&Watch) -> bool) {
        let before = self.watches.len();
        self.watches.retain(keeps);
        self.changes += u64::from(self.watches.len() != before);
    }
}

impl Deref for Demand {
    type Target = BTreeSet<Watch>;

    fn deref(&self) -> &BTreeSet<Watch> {
        &self.watches
    }
}

impl FromIterator<Watch> for Demand {
    fn from_iter<I: IntoIterator<Item = Watch>>(watches: I) -> Self {
        Self {
            watches: watches.into_iter().collect(),
            changes: 0,
        }
    }
}

impl Index {
    /// A kind is in use: a policy selects it, a binding is for it, or a reference names it; until [`super::kinds`] says that it
    /// is not any more. The control plane's own kinds are never watched as templates.
    ///
    /// Cost: O(members) the first time, else O(log kinds).
    pub(super) fn use_kind(&mut self, gvk: &Gvk) {
        if gvk.kind.is_empty() || is_skipped_kind(gvk) {
            return;
        }
        if !self.kinds.insert(gvk.clone()) {
            return;
        }
        self.interpreter.review(gvk);
        self.demand.insert(Watch::Templates(gvk.clone()));
        for cluster in self.members.keys() {
            self.demand.insert(Watch::Copies(cluster.clone(), gvk.clone()));
        }
    }

    /// Watches a kind in another version, on the hub and on members. Answers whether that is a change.
    /// Cost: O(watches) when it is.
    pub(super) fn use_version(&mut self, gvk: &Gvk, version: &Str) -> bool {
        let Some(old) = self.kinds.get(gvk).filter(|old| old.version != *version).cloned() else {
            return false;
        };
        let new = Gvk {
            version: version.clone(),
            ..old.clone()
        };
        self.kinds.replace(new.clone());
        self.interpreter.review(&new);
        let of_it = |watch: &Watch| match watch {
            Watch::Templates(held) | Watch::Copies(_, held) => *held == old,
            _ => false,
        };
        let ended: Vec<Watch> = self.demand.iter().filter(|watch| of_it(watch)).cloned().collect();
        for watch in ended {
            self.demand.remove(&watch);
            self.listed.remove(&watch);
            self.synced.remove(&watch);
            self.unlistable.remove(&watch);
            self.lost.remove(&watch);
            self.unserved.remove(&watch);
            self.never_written.remove(&watch);
            self.no_such_kind.remove(&watch);
            self.demand.insert(match watch {
                Watch::Copies(cluster, _) => Watch::Copies(cluster, new.clone()),
                _ => Watch::Templates(new.clone()),
            });
        }
        true
    }

    /// A kind in the version that is watched.
    pub(crate) fn watched(&self, gvk: &Gvk) -> Gvk {
        self.kinds.get(gvk).unwrap_or(gvk).clone()
    }

    /// The watch of a kind's templates.
    pub(crate) fn templates(&self, gvk: &Gvk) -> Watch {
        Watch::Templates(self.watched(gvk))
    }

    /// The watch of a kind's copies on a member.
    pub(crate) fn copies(&self, cluster: &Str, gvk: &Gvk) -> Watch {
        Watch::Copies(cluster.clone(), self.watched(gvk))
    }

    /// A key with its kind in the version that is watched.
    pub(crate) fn in_use(&self, key: &Key) -> Key {
        let watched = |id: &ResourceId| ResourceId {
            gvk: self.watched(&id.gvk),
            ..id.clone()
        };
        match key {
            Key::Template(id) => Key::Template(watched(id)),
            Key::TemplateStatus(id) => Key::TemplateStatus(watched(id)),
            Key::Binding(id) => Key::Binding(watched(id)),
            Key::BindingStatus(id) => Key::BindingStatus(watched(id)),
            Key::Copy(id, cluster) => Key::Copy(watched(id), cluster.clone()),
            Key::Policy(_)
            | Key::Cluster(_)
            | Key::Namespace(..)
            | Key::Distribution(_)
            | Key::DistributionStatus(_)
            | Key::Distributed(..)
            | Key::Override(_)
            | Key::Rebalancer(_) => key.clone(),
        }
    }

    /// A member exists. Cost: O(kinds in use) the first time, else O(log watches).
    pub(super) fn use_member(&mut self, cluster: &Str) {
        // Its kinds were taken up with it, or are taken up one by one.
        if !self.demand.insert(Watch::MemberNamespaces(cluster.clone())) {
            return;
        }
        for gvk in &self.kinds {
            self.demand.insert(Watch::Copies(cluster.clone(), gvk.clone()));
        }
    }

    /// Somebody wants a watch. Cost: O(log watches).
    pub(super) fn want_watch(&mut self, watch: Watch) {
        self.demand.insert(watch);
    }

    /// Nobody wants a watch any more. What it reached is forgotten, too: it may list afresh later, and must, even if
    /// somebody wants it again before the shell has ended it.
    pub(super) fn forget_watch(&mut self, watch: &Watch) {
        if self.demand.remove(watch) {
            self.ended.insert(watch.clone());
        }
        self.listed.remove(watch);
        self.synced.remove(watch);
        self.unlistable.remove(watch);
        self.lost.remove(watch);
        self.refused.remove(watch);
        self.reached.remove(watch);
    }

    /// A watch reads its objects in another way from now on: it ends, and lists again. How far it had come stays known, so that
    /// a server that was restored meanwhile is noticed. Cost: O(log watches).
    pub(super) fn restart_watch(&mut self, watch: Watch) {
        if self.demand.remove(&watch) {
            self.ended.insert(watch.clone());
        }
        self.listed.remove(&watch);
        self.synced.remove(&watch);
        self.unlistable.remove(&watch);
        self.lost.remove(&watch);
        self.demand.insert(watch);
    }

    /// A member is gone, with everything that was known of its copies. Cost: O(watches).
    pub(super) fn forget_member(&mut self, cluster: &Str) {
        let of_it = |watch: &Watch| watch.server() == crate::observation::Server::Member(cluster.clone());
        self.namespaces.forget_member(cluster);
        self.ended
            .extend(self.demand.iter().filter(|watch| of_it(watch)).cloned());
        self.demand.retain(|watch| !of_it(watch));
        self.listed.retain(|watch| !of_it(watch));
        self.synced.retain(|watch| !of_it(watch));
        self.unlistable.retain(|watch, _| !of_it(watch));
        self.lost.retain(|watch, _| !of_it(watch));
        self.unserved.retain(|watch| !of_it(watch));
        self.never_written.retain(|watch| !of_it(watch));
        self.no_such_kind.retain(|watch| !of_it(watch));
    }
}
