//! What a server refuses to our account.

use super::Dirty;
use crate::{
    index::{Index, claims::lacks_claim, routes::Changed},
    object::{Gvk, ResourceId, Time},
    observation::Watch,
};

impl Index {
    /// The hub refuses the claim of a template: its policy says so. Cost: O(policies), and O(log templates) when it refused it
    /// in the same words before.
    pub(super) fn claim_refused(&mut self, id: ResourceId, why: String, dirty: &mut Dirty) {
        if self.unclaimed.get(&id) == Some(&why) {
            return;
        }
        self.route(Changed::Listing(&Watch::Templates(id.gvk.clone())), dirty);
        self.unclaimed.insert(id, why);
    }

    /// A template was seen, or is gone: it may have got the claim that was refused, or need none. Another policy's is not the
    /// one. Cost: O(policies) when it was refused, else O(log templates).
    pub(super) fn claim_not_refused(&mut self, id: &ResourceId, dirty: &mut Dirty) {
        if self.unclaimed.contains_key(id) && lacks_claim(self, id).is_none() {
            self.unclaimed.remove(id);
            self.route(Changed::Listing(&Watch::Templates(id.gvk.clone())), dirty);
        }
    }

    /// Cost: as [`Self::lost`].
    pub(super) fn was_refused(&mut self, watch: &Watch, why: String, now: Time, dirty: &mut Dirty) {
        self.lost(watch, why.clone(), now, dirty);
        if !self.watches.is_demanded(watch) {
            return;
        }
        self.watches.is_refused(watch, why);
        self.look_for_traces(watch);
        if let Watch::Copies(cluster, gvk) = watch {
            self.route(Changed::Rights(cluster, gvk), dirty);
        }
    }

    /// A watch told something else: that counts. A member whose namespaces are listed welcomes our account: from then on
    /// it means something what is refused to it, or not served. Cost: O(objects of such kinds) then, else O(1).
    pub(super) fn not_refused(&mut self, watch: &Watch, dirty: &mut Dirty) {
        let was_refused = self.watches.is_not_refused(watch);
        if let Watch::Copies(cluster, gvk) = watch
            && was_refused
        {
            self.route(Changed::Rights(cluster, gvk), dirty);
        }
        let Watch::MemberNamespaces(cluster) = watch else {
            return;
        };
        let refused: Vec<Gvk> = self.watches.refused_on(cluster).cloned().collect();
        for gvk in refused {
            self.route(Changed::Rights(cluster, &gvk), dirty);
        }
    }
}
