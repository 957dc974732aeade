//! Policies: what they select decides which templates are planned again.

use std::{collections::BTreeSet, sync::Arc};

use entourage_api::{keys::label, policy::PropagationPolicy};

use super::{Deletion, Dirty, named};
use crate::{
    index::{Index, Policy, is_old, meta_of},
    object::{Gvk, Named, Time},
    observation::Which,
    plan::Key,
};

impl Index {
    /// Cost: O(templates of the selected kinds in the policy's namespace), when what it selects or says changed.
    pub(super) fn policy_seen(&mut self, policy: Arc<PropagationPolicy>, now: Time, dirty: &mut Dirty) {
        let meta = meta_of(&policy.metadata);
        let name = named(&policy.metadata);
        let before = self.policies.get(&name);
        let gone = self
            .gone_floors
            .get(&Which::Policy(name.clone()))
            .copied()
            .unwrap_or_default();
        let floor = before.map_or(gone, |held| held.meta.revision());
        if is_old(&meta.resource_version, floor)
            || before.is_some_and(|held| held.meta.is_same_version(&meta))
        {
            return;
        }
        let unchanged = before.is_some_and(|held| {
            held.meta.uid == meta.uid
                && held.meta.generation == meta.generation
                && held.meta.deleting.is_some() == meta.deleting.is_some()
                && held.meta.label(label::PROPAGATION_POLICY_ID) == meta.label(label::PROPAGATION_POLICY_ID)
        });
        let since = before.map_or(now, |held| held.since);
        let mut kinds = before
            .map(|held| selected_kinds(&held.object))
            .unwrap_or_default();
        for gvk in &kinds {
            if let Some(names) = self.selecting.get_mut(&(name.namespace.clone(), gvk.clone())) {
                names.remove(&name.name);
            }
        }
        for gvk in selected_kinds(&policy) {
            self.use_kind(&gvk);
            self.selecting
                .entry((name.namespace.clone(), gvk.clone()))
                .or_default()
                .insert(name.name.clone());
            kinds.insert(gvk);
        }
        self.policies.insert(
            name.clone(),
            Policy {
                meta,
                object: policy,
                since,
            },
        );
        dirty.push(Key::Policy(name.clone()));
        if !unchanged {
            for gvk in &kinds {
                self.dirty_templates(gvk, &name.namespace, dirty);
            }
            self.dirty_claimed(&name, dirty);
        }
    }

    pub(super) fn policy_gone(&mut self, name: &Named, deletion: &Deletion, dirty: &mut Dirty) {
        let Some(held) = self.policies.get(name) else {
            return;
        };
        if deletion.is_not_of(&held.meta.uid, held.meta.revision()) {
            return;
        }
        self.gone_floors
            .insert(Which::Policy(name.clone()), deletion.floor(held.meta.revision()));
        for gvk in selected_kinds(&held.object) {
            if let Some(names) = self.selecting.get_mut(&(name.namespace.clone(), gvk)) {
                names.remove(&name.name);
            }
        }
        self.policies.remove(name);
        self.dirty_claimed(name, dirty);
    }
}

fn selected_kinds(policy: &PropagationPolicy) -> BTreeSet<Gvk> {
    policy
        .spec
        .resource_selectors
        .iter()
        .map(|each| Gvk::new(&each.api_version, &each.kind))
        .collect()
}
