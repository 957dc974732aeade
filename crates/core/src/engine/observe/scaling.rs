//! Autoscalers and the workloads that they scale: the relations of their templates.

use super::Dirty;
use crate::{
    fleet::{Fleet, autoscaling::marked_by},
    object::ResourceId,
    observation::Template,
    plan::Key,
};

impl Fleet {
    /// A template changed, appeared, or was deleted: `before` is the earlier one. Cost: O(log templates); O(1) while no label is
    /// set.
    pub(super) fn scaling_changed(&mut self, id: &ResourceId, before: Option<&Template>, dirty: &mut Dirty) {
        if !self.config.mark_scale_targets {
            return;
        }
        let after = self
            .cache
            .resources
            .get(id)
            .and_then(|resource| resource.template.as_ref());
        let target = |template: Option<&Template>| template.and_then(|held| held.scales.as_deref().cloned());
        let (from, to) = (target(before), target(after));
        let marked = |template: Option<&Template>| template.and_then(|held| marked_by(id, &held.meta));
        let (was, is) = (marked(before), marked(after));
        self.graph.scaling.retarget(id, from.as_ref(), to.as_ref());
        self.graph.scaling.mark(id, was.as_ref(), is.as_ref());
        if from != to {
            dirty.extend(from.map(Key::Template));
        }
    }
}
