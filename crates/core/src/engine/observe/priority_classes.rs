//! PriorityClasses: a change of one plans the workloads again whose policies name it.

use super::Dirty;
use crate::{
    cache::{Deletion, Held},
    engine::routes::Changed,
    fleet::Fleet,
    object::{Str, Time},
    observation::{ObjectRef, PriorityClass},
};

impl Fleet {
    /// A PriorityClass was observed. Cost: O(policies + templates claimed by those that name it), when its value differs.
    pub(super) fn priority_class_seen(&mut self, name: &Str, class: PriorityClass, dirty: &mut Dirty) {
        let which = ObjectRef::PriorityClass(name.clone());
        let before = self.cache.priority_classes.get(name);
        let held = before.map(|held| Held::of(&held.meta, &class.meta));
        let is_changed = before.is_none_or(|held| held.value != class.value);
        if self
            .cache
            .revisions
            .see(&which, held, class.meta.revision())
            .is_none()
        {
            return;
        }
        self.cache.priority_classes.insert(name.clone(), class);
        if is_changed {
            self.route(Changed::PriorityClass(Some(name)), dirty);
        }
    }

    /// A PriorityClass was deleted. Cost: as [`Self::priority_class_seen`].
    pub(super) fn priority_class_gone(
        &mut self,
        name: &Str,
        deletion: &Deletion,
        now: Time,
        dirty: &mut Dirty,
    ) {
        let Some(held) = self.cache.priority_classes.get(name) else {
            return;
        };
        let which = ObjectRef::PriorityClass(name.clone());
        let held_as = (&*held.meta.uid, held.meta.revision());
        if self.cache.revisions.end(which, held_as, deletion, now).is_none() {
            return;
        }
        self.cache.priority_classes.remove(name);
        self.route(Changed::PriorityClass(Some(name)), dirty);
    }
}
