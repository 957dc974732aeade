//! Policies: a change of one has the selected templates planned again.

use std::sync::Arc;

use entourage_api::{keys::annotation, policy::PropagationPolicy};

use super::{Dirty, named};
use crate::{
    cache::{Deletion, Held, Policy, meta_of},
    engine::routes::Changed,
    fleet::Fleet,
    object::{NamespacedName, Time},
    observation::{ObjectRef, Watch},
    scope,
    stored_binding::FAILOVER_SETTINGS,
};

impl Fleet {
    /// A policy was observed. Cost: O(templates that it may select or that it claims), when its spec changed; if it selects by
    /// labels or kind, the templates of that kind are compared.
    pub(super) fn policy_seen(&mut self, policy: &Arc<PropagationPolicy>, now: Time, dirty: &mut Dirty) {
        let meta = meta_of(&policy.metadata);
        let name = named(&policy.metadata);
        let before = self.cache.policies.get(&name);
        let which = ObjectRef::Policy(name.clone());
        let held = before.map(|held| Held::of(&held.meta, &meta));
        let Some(freshness) = self.cache.revisions.see(&which, held, meta.revision()) else {
            return;
        };
        let id_label = scope::policy(&name).id_label;
        // A generation that was counted twice proves nothing.
        let unchanged = before.filter(|_| !freshness.is_unknown()).filter(|held| {
            held.meta.uid == meta.uid
                && held.meta.generation == meta.generation
                && held.meta.deleting.is_some() == meta.deleting.is_some()
                && held.meta.label(id_label) == meta.label(id_label)
                && FAILOVER_SETTINGS
                    .iter()
                    .chain(&[annotation::VOLUME_RETENTION])
                    .all(|key| held.meta.annotation(key) == meta.annotation(key))
        });
        // No template is claimed for a policy before it has its permanent id.
        let selects = meta.label(id_label).is_some();
        let since = before.map_or(now, |held| held.since);
        let edited = unchanged.map_or((meta.revision(), now), |held| held.edited);
        let unchanged = unchanged.is_some();
        let old = before.map(|held| held.object.clone());
        if let Some(old) = &old {
            self.graph.policy_index.remove(&name, &old.spec);
        }
        self.graph.policy_index.insert(&name, &policy.spec);
        self.name_kinds(&name, old.as_deref(), Some(policy), dirty);
        if policy.spec.schedule_priority.is_some() {
            self.cache.watches.demand(Watch::PriorityClasses);
        }
        self.cache.policies.insert(
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
        let Some(held) = self.cache.policies.get(name) else {
            return;
        };
        let which = ObjectRef::Policy(name.clone());
        let held_as = (&*held.meta.uid, held.meta.revision());
        if self.cache.revisions.end(which, held_as, deletion, now).is_none() {
            return;
        }
        let object = held.object.clone();
        self.graph.policy_index.remove(name, &object.spec);
        self.cache.policies.remove(name);
        self.name_kinds(name, Some(&object), None, dirty);
        self.route(Changed::Claimed(name), dirty);
    }
}
