//! ClusterTaintPolicies: a change of one plans every Cluster again.

use std::sync::Arc;

use entourage_api::policy::ClusterTaintPolicy;

use super::Dirty;
use crate::{
    cache::{Deletion, Held, TaintPolicy, meta_of},
    engine::routes::Changed,
    fleet::Fleet,
    object::{Str, Time},
    observation::ObjectRef,
};

impl Fleet {
    /// A ClusterTaintPolicy was observed. Cost: O(Clusters).
    pub(super) fn taint_policy_seen(&mut self, object: &Arc<ClusterTaintPolicy>, dirty: &mut Dirty) {
        let meta = meta_of(&object.metadata);
        let name: Str = object.metadata.name.as_deref().unwrap_or_default().into();
        let which = ObjectRef::TaintPolicy(name.clone());
        let held = self.cache.taint_policies.get(&name).map(|held| &held.meta);
        let held = held.map(|held| Held::of(held, &meta));
        if self.cache.revisions.see(&which, held, meta.revision()).is_none() {
            return;
        }
        let object = object.clone();
        self.cache
            .taint_policies
            .insert(name, TaintPolicy { meta, object });
        self.route(Changed::TaintPolicies, dirty);
    }

    /// A ClusterTaintPolicy was deleted: its taints on Clusters stay; its rules do not overrule others any more. Cost: O(Clusters).
    pub(super) fn taint_policy_gone(
        &mut self,
        name: &Str,
        deletion: &Deletion,
        now: Time,
        dirty: &mut Dirty,
    ) {
        let Some(held) = self.cache.taint_policies.get(name) else {
            return;
        };
        let which = ObjectRef::TaintPolicy(name.clone());
        let held_as = (&*held.meta.uid, held.meta.revision());
        if self.cache.revisions.end(which, held_as, deletion, now).is_none() {
            return;
        }
        self.cache.taint_policies.remove(name);
        self.route(Changed::TaintPolicies, dirty);
    }
}
