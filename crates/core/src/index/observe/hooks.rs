//! Hooks: webhooks that are asked how objects of some kinds are understood. A change of them has exactly the objects of the
//! kinds that they are about read again.

use std::sync::Arc;

use super::{Deletion, Dirty};
use crate::{
    index::{Index, is_old},
    interpreter::hook::Contract,
    object::{Gvk, Str, Time},
    observation::{Configured, ObjectRef, Watch},
};

impl Index {
    /// Cost: O(kinds in use × rules of all hooks), and for kinds of which something else is taught now as
    /// [`Self::taught_anew`].
    pub(super) fn hooks_seen(&mut self, name: &Str, configured: Arc<Configured>, dirty: &mut Dirty) {
        let which = ObjectRef::Hooks(configured.contract, name.clone());
        let key = (configured.contract, name.clone());
        let held = self.hooks.get(&key).map(|held| &held.meta);
        let min_resource_version = self.revisions.of(&which, held.map(|meta| meta.revision()));
        let is_echo =
            min_resource_version > 0 && held.is_some_and(|held| held.is_same_version(&configured.meta));
        if is_echo || is_old(&configured.meta.resource_version, min_resource_version) {
            return;
        }
        self.revisions.seen(&which);
        self.hooks.insert(key, configured);
        self.review_hooks(dirty);
    }

    /// Cost: as [`Self::hooks_seen`].
    pub(super) fn hooks_gone(
        &mut self,
        contract: Contract,
        name: &Str,
        deletion: &Deletion,
        now: Time,
        dirty: &mut Dirty,
    ) {
        let key = (contract, name.clone());
        let Some(held) = self.hooks.get(&key) else {
            return;
        };
        let which = ObjectRef::Hooks(contract, name.clone());
        let min_resource_version = self.revisions.of(&which, Some(held.meta.revision()));
        if deletion.is_not_of(&held.meta.uid, min_resource_version) {
            return;
        }
        self.revisions
            .gone(which, deletion.min_resource_version(min_resource_version), now);
        self.hooks.remove(&key);
        self.review_hooks(dirty);
    }

    /// The hub does not know the kind, so there is nothing of it: an installation may leave it out.
    pub(super) fn says_nothing(&mut self, watch: &Watch, now: Time, dirty: &mut Dirty) {
        for which in self.held(watch) {
            let deletion = Deletion {
                uid: None,
                revision: None,
            };
            self.gone(&which, &deletion, now, dirty);
        }
        self.was_listed(watch, &Default::default(), 0, now, dirty);
    }

    fn review_hooks(&mut self, dirty: &mut Dirty) {
        let all = self.hooks.values().flat_map(|each| &each.hooks).cloned();
        self.interpreter.hooked(all.collect());
        let interpretation = self.interpreter.kinds().cloned();
        let kinds: Vec<Gvk> = self.kinds.iter().cloned().chain(interpretation).collect();
        for gvk in kinds {
            if self.interpreter.review(&gvk) {
                self.taught_anew(&gvk, dirty);
            }
        }
    }
}
