//! Hooks: webhooks that interpret objects of some kinds. A change of them has exactly the objects of these kinds read again.

use std::sync::Arc;

use super::Dirty;
use crate::{
    cache::{Deletion, Held},
    fleet::Fleet,
    interpreter::hook::Contract,
    object::{Gvk, Str, Time},
    observation::{Configured, ObjectRef, Watch},
};

impl Fleet {
    /// The hooks of a configuration were observed. Cost: O(kinds in use × rules of all hooks), and for kinds whose interpreter
    /// changed as [`Self::interpreter_changed`].
    pub(super) fn hooks_seen(&mut self, name: &Str, configured: Arc<Configured>, dirty: &mut Dirty) {
        let which = ObjectRef::Hooks(configured.contract, name.clone());
        let key = (configured.contract, name.clone());
        let held = self.cache.hooks.get(&key).map(|held| &held.meta);
        let held = held.map(|held| Held::of(held, &configured.meta));
        if self
            .cache
            .revisions
            .see(&which, held, configured.meta.revision())
            .is_none()
        {
            return;
        }
        self.cache.hooks.insert(key, configured);
        self.review_hooks(dirty);
    }

    /// A configuration was deleted. Cost: as [`Self::hooks_seen`].
    pub(super) fn hooks_gone(
        &mut self,
        contract: Contract,
        name: &Str,
        deletion: &Deletion,
        now: Time,
        dirty: &mut Dirty,
    ) {
        let key = (contract, name.clone());
        let Some(held) = self.cache.hooks.get(&key) else {
            return;
        };
        let which = ObjectRef::Hooks(contract, name.clone());
        let held_as = (&*held.meta.uid, held.meta.revision());
        if self.cache.revisions.end(which, held_as, deletion, now).is_none() {
            return;
        }
        self.cache.hooks.remove(&key);
        self.review_hooks(dirty);
    }

    /// The hub does not serve the kind, so there are no objects of it: an installation may omit it.
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
        let all = self.cache.hooks.values().flat_map(|each| &each.hooks).cloned();
        self.graph.interpreter.hooked(all.collect());
        let interpretation = self.graph.interpreter.kinds().cloned();
        let kinds: Vec<Gvk> = self.graph.kinds.iter().cloned().chain(interpretation).collect();
        for gvk in kinds {
            if self.graph.interpreter.review(&gvk) {
                self.interpreter_changed(&gvk, dirty);
            }
        }
    }
}
