//! Which list-and-watches must run: demand-driven, by the kinds in use and the members that exist.

use super::Index;
use crate::{
    object::{Gvk, ResourceId, Str},
    observation::Watch,
    plan::Key,
    reserved::is_skipped_kind,
};

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
        self.watches.demand(Watch::Templates(gvk.clone()));
        for cluster in self.members.keys() {
            self.watches.demand(Watch::Copies(cluster.clone(), gvk.clone()));
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
        let replaced = self.watches.demanded().iter().filter(|watch| of_it(watch));
        for watch in replaced.cloned().collect::<Vec<_>>() {
            let by = match &watch {
                Watch::Copies(cluster, _) => Watch::Copies(cluster.clone(), new.clone()),
                _ => Watch::Templates(new.clone()),
            };
            self.watches.replace(&watch, by);
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
        if !self.watches.demand(Watch::MemberNamespaces(cluster.clone())) {
            return;
        }
        for gvk in &self.kinds {
            self.watches.demand(Watch::Copies(cluster.clone(), gvk.clone()));
        }
    }
}
