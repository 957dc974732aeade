//! Which list-and-watches must run: demand-driven, by the kinds in use and the members that exist.

use super::Index;
use crate::{
    detector::matching,
    object::{Gvk, Id, Str},
    observation::Watch,
    plan::Key,
};

impl Index {
    /// A kind is in use: a policy selects it, a binding is for it, or a reference names it. Kinds stay in use until the
    /// process ends; the control plane's own kinds are never watched as templates.
    ///
    /// Cost: O(members) the first time, else O(log kinds).
    pub(super) fn use_kind(&mut self, gvk: &Gvk) {
        if gvk.kind.is_empty() || matching::is_skipped_kind(gvk) {
            return;
        }
        if !self.kinds.insert(gvk.clone()) {
            return;
        }
        self.demand_changes += 1;
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
        self.demand_changes += 1;
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
            self.unserved.remove(&watch);
            self.traceless.remove(&watch);
            self.kindless.remove(&watch);
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
        let watched = |id: &Id| Id {
            gvk: self.watched(&id.gvk),
            ..id.clone()
        };
        match key {
            Key::Template(id) => Key::Template(watched(id)),
            Key::TemplateStatus(id) => Key::TemplateStatus(watched(id)),
            Key::Binding(id) => Key::Binding(watched(id)),
            Key::BindingStatus(id) => Key::BindingStatus(watched(id)),
            Key::Copy(id, cluster) => Key::Copy(watched(id), cluster.clone()),
            Key::Policy(_) | Key::Cluster(_) | Key::Namespace(..) => key.clone(),
        }
    }

    /// A member exists. Cost: O(kinds in use) the first time, else O(log watches).
    pub(super) fn use_member(&mut self, cluster: &Str) {
        // Its kinds were taken up with it, or are taken up one by one.
        if !self.demand.insert(Watch::MemberNamespaces(cluster.clone())) {
            return;
        }
        self.demand_changes += 1;
        for gvk in &self.kinds {
            self.demand.insert(Watch::Copies(cluster.clone(), gvk.clone()));
        }
    }

    /// A member is gone, with everything that was known of its copies. Cost: O(watches).
    pub(super) fn forget_member(&mut self, cluster: &Str) {
        let of_it = |watch: &Watch| matches!(watch, Watch::Copies(name, _) | Watch::MemberNamespaces(name) if name == cluster);
        self.namespaces.forget_member(cluster);
        self.demand_changes += 1;
        self.demand.retain(|watch| !of_it(watch));
        self.listed.retain(|watch| !of_it(watch));
        self.synced.retain(|watch| !of_it(watch));
        self.unlistable.retain(|watch, _| !of_it(watch));
        self.unserved.retain(|watch| !of_it(watch));
        self.traceless.retain(|watch| !of_it(watch));
        self.kindless.retain(|watch| !of_it(watch));
    }
}
