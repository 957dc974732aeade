//! ClusterTaintPolicies: a change of one plans every Cluster again.

use std::sync::Arc;

use entourage_api::policy::ClusterTaintPolicy;

use super::{Deletion, Dirty};
use crate::{
    index::{Index, TaintPolicy, is_old, meta_of, routes::Changed},
    object::{Str, Time},
    observation::{ObjectRef, Watch},
};

impl Index {
    /// Cost: O(Clusters).
    pub(super) fn taint_policy_seen(&mut self, object: &Arc<ClusterTaintPolicy>, dirty: &mut Dirty) {
        let meta = meta_of(&object.metadata);
        let name: Str = object.metadata.name.as_deref().unwrap_or_default().into();
        let which = ObjectRef::TaintPolicy(name.clone());
        let held = self.taint_policies.get(&name).map(|held| &held.meta);
        let min_resource_version = self.revisions.of(&which, held.map(|held| held.revision()));
        let is_echo = min_resource_version > 0 && held.is_some_and(|held| held.is_same_version(&meta));
        if is_echo || is_old(&meta.resource_version, min_resource_version) {
            return;
        }
        self.revisions.seen(&which);
        let object = object.clone();
        self.taint_policies.insert(name, TaintPolicy { meta, object });
        self.route(Changed::TaintPolicies, dirty);
    }

    /// What it put on Clusters stays; what it says does not overrule others any more. Cost: O(Clusters).
    pub(super) fn taint_policy_gone(
        &mut self,
        name: &Str,
        deletion: &Deletion,
        now: Time,
        dirty: &mut Dirty,
    ) {
        let Some(held) = self.taint_policies.get(name) else {
            return;
        };
        let which = ObjectRef::TaintPolicy(name.clone());
        let min_resource_version = self.revisions.of(&which, Some(held.meta.revision()));
        if deletion.is_not_of(&held.meta.uid, min_resource_version) {
            return;
        }
        self.revisions
            .gone(which, deletion.min_resource_version(min_resource_version), now);
        self.taint_policies.remove(name);
        self.route(Changed::TaintPolicies, dirty);
    }

    /// Whether every ClusterTaintPolicy is known, or the hub does not know the kind.
    pub(crate) fn are_taint_policies_listed(&self) -> bool {
        self.watches.is_listed(&Watch::TaintPolicies)
    }
}
