//! Changes of a template's references: see [`crate::graph::closure`].

use std::sync::Arc;

use super::Dirty;
use crate::{
    engine::routes::Changed,
    fleet::Fleet,
    interpreter::references::DependencyReference,
    object::{ResourceId, Time},
};

impl Fleet {
    /// Sets the template's own references, as currently known.
    ///
    /// Cost: O(its closure); when that differs from before, for each of its referrers O(their closure).
    pub(super) fn refer(
        &mut self,
        id: &ResourceId,
        direct: Vec<DependencyReference>,
        now: Time,
        dirty: &mut Dirty,
    ) {
        self.get_or_create(id);
        let differs = *self.graph.links.of(id).direct != *direct;
        if differs {
            self.graph.links.change(id, |links| links.direct = direct.into());
        }
        self.take_along(id, dirty);
        if differs {
            self.refers_otherwise(id, now, dirty);
        }
    }

    /// A template is proven absent: its referrers no longer need its dependencies. Its own references stay known, until its
    /// copies are deleted. Cost: as [`Self::refer`].
    pub(super) fn refers_no_more(&mut self, id: &ResourceId, now: Time, dirty: &mut Dirty) {
        self.get_or_create(id);
        if !self.graph.links.of(id).direct.is_empty() {
            self.graph.links.change(id, |links| links.direct = Arc::default());
            self.refers_otherwise(id, now, dirty);
        }
    }

    /// Computes the closures of a template's referrers again. Cost: O(referrers × their closure).
    fn refers_otherwise(&mut self, id: &ResourceId, now: Time, dirty: &mut Dirty) {
        let referrers: Vec<ResourceId> = self.graph.links.of(id).referrers.iter().cloned().collect();
        for referrer in referrers {
            // A template that is deleted has no dependencies any more; they are removed after it.
            let is_held = self
                .cache
                .resources
                .get(&referrer)
                .is_some_and(|resource| resource.template.is_some() || resource.is_orphaned());
            if is_held && self.take_along(&referrer, dirty) {
                self.release_stale_dependencies(&referrer, now, dirty);
                self.route(Changed::Waits(&referrer), dirty);
                self.route(Changed::Needs(&referrer), dirty);
            }
        }
    }

    /// Updates the references of a template to its closure. Returns true if they changed. Cost: O(its closure).
    fn take_along(&mut self, id: &ResourceId, dirty: &mut Dirty) -> bool {
        self.get_or_create(id);
        let Some(reached) = self.graph.links.reach(id) else {
            return false;
        };
        for dependency in &reached.gained {
            self.use_kind(&dependency.gvk);
        }
        for dependency in reached.lost.iter().chain(&reached.gained) {
            self.get_or_create(dependency);
            self.route(Changed::Template(dependency), dirty);
        }
        true
    }
}
