//! The list-and-watches that must run: demand-driven, by the kinds in use and the members that exist.

use entourage_api::cluster::SyncMode;

use crate::{
    fleet::Fleet,
    object::{Gvk, Str},
    observation::Watch,
    reserved::is_skipped_kind,
};

impl Fleet {
    /// Puts a kind in use: a policy selects it, a binding is for it, or a reference names it; until [`super::kinds`] determines
    /// that it is no longer in use. The control plane's own kinds are never watched as templates.
    ///
    /// Cost: O(members) the first time, else O(log kinds).
    pub(super) fn use_kind(&mut self, gvk: &Gvk) {
        if gvk.kind.is_empty() || is_skipped_kind(gvk) {
            return;
        }
        if !self.graph.kinds.insert(gvk.clone()) {
            return;
        }
        self.graph.interpreter.review(gvk);
        self.cache.watches.demand(Watch::Templates(gvk.clone()));
        for cluster in self.cache.members.keys() {
            self.cache
                .watches
                .demand(Watch::Copies(cluster.clone(), gvk.clone()));
        }
    }

    /// Watches a kind in another version, on the hub and on members. Returns true if that is a change. Cost: O(watches) if it is.
    pub(super) fn use_version(&mut self, gvk: &Gvk, version: &Str) -> bool {
        let Some(old) = self
            .graph
            .kinds
            .get(gvk)
            .filter(|old| old.version != *version)
            .cloned()
        else {
            return false;
        };
        let new = Gvk {
            version: version.clone(),
            ..old.clone()
        };
        self.graph.kinds.replace(new.clone());
        self.graph.interpreter.review(&new);
        let of_it = |watch: &Watch| match watch {
            Watch::Templates(held) | Watch::Copies(_, held) => *held == old,
            _ => false,
        };
        let replaced = self.cache.watches.demanded().iter().filter(|watch| of_it(watch));
        for watch in replaced.cloned().collect::<Vec<_>>() {
            let by = match &watch {
                Watch::Copies(cluster, _) => Watch::Copies(cluster.clone(), new.clone()),
                _ => Watch::Templates(new.clone()),
            };
            self.cache.watches.replace(&watch, by);
        }
        true
    }

    /// A member exists. Cost: O(kinds in use) the first time, else O(log watches).
    pub(super) fn use_member(&mut self, cluster: &Str) {
        // The watches of its kinds were begun with it, or are begun one by one.
        if !self
            .cache
            .watches
            .demand(Watch::MemberNamespaces(cluster.clone()))
        {
            return;
        }
        for gvk in &self.graph.kinds {
            self.cache
                .watches
                .demand(Watch::Copies(cluster.clone(), gvk.clone()));
        }
        if self.memory.quotas.looks_at_members() {
            self.cache.watches.demand(Watch::QuotaCopies(cluster.clone()));
        }
        let is_pull = self
            .cache
            .members
            .get(cluster)
            .map(|member| &member.object.spec.sync_mode)
            == Some(&SyncMode::Pull);
        if self.config.model_resources && !is_pull {
            self.cache.watches.demand(Watch::Nodes(cluster.clone()));
            self.cache.watches.demand(Watch::Pods(cluster.clone()));
        }
    }
}
