//! Policies: what they select decides which templates are planned again.

use std::sync::Arc;

use entourage_api::{keys::annotation, policy::PropagationPolicy};

use super::{Deletion, Dirty, named};
use crate::{
    index::{Index, Policy, is_old, meta_of, routes::Changed},
    object::{NamespacedName, Time},
    observation::ObjectRef,
    scope,
    stored_binding::WISHES,
};

impl Index {
    /// Cost: O(templates that it may select or that it claims), when what it selects or says changed; where it selects by
    /// labels or kind, the templates of that kind are compared.
    pub(super) fn policy_seen(&mut self, policy: &Arc<PropagationPolicy>, now: Time, dirty: &mut Dirty) {
        let meta = meta_of(&policy.metadata);
        let name = named(&policy.metadata);
        let before = self.policies.get(&name);
        let which = ObjectRef::Policy(name.clone());
        let min_resource_version = self.revisions.of(&which, before.map(|held| held.meta.revision()));
        let is_echo = min_resource_version > 0 && before.is_some_and(|held| held.meta.is_same_version(&meta));
        if is_echo || is_old(&meta.resource_version, min_resource_version) {
            return;
        }
        let id_label = scope::policy(&name).id_label;
        // A generation that was counted twice says nothing.
        let unchanged = before.filter(|_| min_resource_version > 0).filter(|held| {
            held.meta.uid == meta.uid
                && held.meta.generation == meta.generation
                && held.meta.deleting.is_some() == meta.deleting.is_some()
                && held.meta.label(id_label) == meta.label(id_label)
                && WISHES
                    .iter()
                    .chain(&[annotation::VOLUME_RETENTION])
                    .all(|key| held.meta.annotation(key) == meta.annotation(key))
        });
        // Nothing is claimed for a policy before it has its permanent id.
        let selects = meta.label(id_label).is_some();
        let since = before.map_or(now, |held| held.since);
        let edited = unchanged.map_or((meta.revision(), now), |held| held.edited);
        let unchanged = unchanged.is_some();
        let old = before.map(|held| held.object.clone());
        if let Some(old) = &old {
            self.policy_index.remove(&name, &old.spec);
        }
        self.policy_index.insert(&name, &policy.spec);
        self.name_kinds(&name, old.as_deref(), Some(policy), dirty);
        self.revisions.seen(&which);
        self.policies.insert(
            name.clone(),
            Policy {
                meta,
                object: policy.clone(),
                since,
                edited,
            },
        );
        self.route(Changed::Policy(&name), dirty);
        if !unchanged {
            if selects {
                self.route(Changed::Selection(&name, &policy.spec), dirty);
            }
            self.route(Changed::Claimed(&name), dirty);
        }
    }

    pub(super) fn policy_gone(
        &mut self,
        name: &NamespacedName,
        deletion: &Deletion,
        now: Time,
        dirty: &mut Dirty,
    ) {
        let Some(held) = self.policies.get(name) else {
            return;
        };
        let which = ObjectRef::Policy(name.clone());
        let min_resource_version = self.revisions.of(&which, Some(held.meta.revision()));
        if deletion.is_not_of(&held.meta.uid, min_resource_version) {
            return;
        }
        self.revisions
            .gone(which, deletion.min_resource_version(min_resource_version), now);
        let object = held.object.clone();
        self.policy_index.remove(name, &object.spec);
        self.policies.remove(name);
        self.name_kinds(name, Some(&object), None, dirty);
        self.route(Changed::Claimed(name), dirty);
    }
}
