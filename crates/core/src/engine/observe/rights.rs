//! Refusals of servers to our account.

use super::Dirty;
use crate::{
    engine::routes::Changed,
    fleet::{Fleet, claims::lacks_claim},
    object::{Gvk, ResourceId, Str, Time},
    observation::Watch,
};

impl Fleet {
    /// A kind is refused or not served on a member: the search for anything that mentions a copy there is made once, and not
    /// for every binding that waits for it. Cost: O(objects of the kind).
    pub(super) fn search_records(&mut self, watch: &Watch) {
        if let Watch::Copies(cluster, gvk) = watch
            && !self.has_any_records(cluster, gvk)
        {
            self.cache.watches.has_no_records(watch);
        }
    }

    /// A record mentions a copy, or is about to. Cost: O(log watches).
    pub(super) fn note_records(&mut self, cluster: &Str, gvk: &Gvk) {
        let copies = self.copies(cluster, gvk);
        self.cache.watches.has_records(&copies);
    }

    /// The hub refuses the claim of a template: its policy reports that. Cost: O(policies), and O(log templates) if it was
    /// refused with the same message before.
    pub(super) fn claim_refused(&mut self, id: ResourceId, why: String, dirty: &mut Dirty) {
        if self.cache.unclaimed.get(&id) == Some(&why) {
            return;
        }
        self.route(Changed::Listing(&Watch::Templates(id.gvk.clone())), dirty);
        self.cache.unclaimed.insert(id, why);
    }

    /// A template was observed, or is deleted: it may have got the claim that was refused, or need none. The claim of another
    /// policy does not count. Cost: O(policies) if it was refused, else O(log templates).
    pub(super) fn claim_not_refused(&mut self, id: &ResourceId, dirty: &mut Dirty) {
        if self.cache.unclaimed.contains_key(id) && lacks_claim(self, id).is_none() {
            self.cache.unclaimed.remove(id);
            self.route(Changed::Listing(&Watch::Templates(id.gvk.clone())), dirty);
        }
    }

    /// A watch was refused. Cost: as [`Self::lost`].
    pub(super) fn was_refused(&mut self, watch: &Watch, why: String, now: Time, dirty: &mut Dirty) {
        self.lost(watch, why.clone(), now, dirty);
        if !self.cache.watches.is_demanded(watch) {
            return;
        }
        let is_first = self.cache.watches.refused(watch).is_none();
        self.cache.watches.is_refused(watch, why);
        if is_first && *watch == Watch::Works {
            self.works_listed(dirty);
        }
        if is_first && *watch == Watch::Leases {
            self.leases_changed(dirty);
        }
        if is_first && *watch == Watch::PriorityClasses {
            self.route(Changed::PriorityClass(None), dirty);
        }
        self.search_records(watch);
        if let Watch::Copies(cluster, gvk) = watch {
            self.route(Changed::Rights(cluster, gvk), dirty);
        }
        if let Watch::QuotaCopies(cluster) = watch {
            self.quotas_on(cluster, dirty);
        }
        if let Watch::Endpoints(cluster, _) = watch
            && is_first
        {
            self.route(Changed::Cluster(cluster), dirty);
        }
    }

    /// A watch reported something else than a refusal: that counts. A member whose namespaces are listed accepts our account:
    /// from then on its refusals and unserved kinds count. Cost: O(objects of such kinds) then, else O(1).
    pub(super) fn not_refused(&mut self, watch: &Watch, dirty: &mut Dirty) {
        let was_refused = self.cache.watches.is_not_refused(watch);
        if *watch == Watch::PriorityClasses && was_refused {
            self.route(Changed::PriorityClass(None), dirty);
        }
        if let Watch::Copies(cluster, gvk) = watch
            && was_refused
        {
            self.route(Changed::Rights(cluster, gvk), dirty);
        }
        if let Watch::Endpoints(cluster, _) = watch
            && was_refused
        {
            self.route(Changed::Cluster(cluster), dirty);
        }
        let Watch::MemberNamespaces(cluster) = watch else {
            return;
        };
        let refused: Vec<Gvk> = self.cache.watches.refused_on(cluster).cloned().collect();
        for gvk in refused {
            self.route(Changed::Rights(cluster, &gvk), dirty);
        }
    }
}
