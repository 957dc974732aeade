//! Which list-and-watches must run: demand-driven, by the kinds in use and the members that exist.

use super::Index;
use crate::{
    interpreter,
    object::{Gvk, Str},
    observation::Watch,
};

impl Index {
    /// A kind is in use: a policy selects it, a binding is for it, or a reference names it. Kinds stay in use until the
    /// process ends; kinds that this version does not interpret are never watched.
    ///
    /// Cost: O(members) the first time, else O(log kinds).
    pub(super) fn use_kind(&mut self, gvk: &Gvk) {
        if self.kinds.contains(gvk) || interpreter::native(&gvk.group, &gvk.version, &gvk.kind).is_none() {
            return;
        }
        self.kinds.insert(gvk.clone());
        self.demand.insert(Watch::Templates(gvk.clone()));
        for cluster in self.members.keys() {
            self.demand.insert(Watch::Copies(cluster.clone(), gvk.clone()));
        }
    }

    /// A member exists. Cost: O(kinds in use).
    pub(super) fn use_member(&mut self, cluster: &Str) {
        for gvk in &self.kinds {
            self.demand.insert(Watch::Copies(cluster.clone(), gvk.clone()));
        }
    }

    /// A member is gone, with everything that was known of its copies. Cost: O(watches).
    pub(super) fn forget_member(&mut self, cluster: &Str) {
        let of_it = |watch: &Watch| matches!(watch, Watch::Copies(name, _) if name == cluster);
        self.demand.retain(|watch| !of_it(watch));
        self.listed.retain(|watch| !of_it(watch));
        self.synced.retain(|watch| !of_it(watch));
        self.unlistable.retain(|watch, _| !of_it(watch));
    }
}
