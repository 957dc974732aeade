//! Autoscalers and the workloads that they scale: the relations of their templates, and the keys that follow from both.

use super::Dirty;
use crate::{
    fleet::{
        Fleet,
        autoscaling::{autoscaler, is_scaled_kind, marked_by},
    },
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

    /// The workloads whose label depends on an autoscaler. Cost: O(their number); O(1) while no label is set.
    pub(in crate::engine) fn dirty_scale_targets(&self, id: &ResourceId, dirty: &mut Dirty) {
        if !self.config.mark_scale_targets || id.gvk != autoscaler() {
            return;
        }
        let template = self.resource(id).and_then(|resource| resource.template.as_ref());
        let target = template.and_then(|template| template.scales.as_deref());
        let all = target.into_iter().chain(self.graph.scaling.marked(id));
        dirty.extend(all.cloned().map(Key::Template));
    }

    /// The keys that follow the replicas of copies. Cost: O(1).
    pub(in crate::engine) fn dirty_scaled(&self, id: &ResourceId, dirty: &mut Dirty) {
        if self.config.sync_replicas && is_scaled_kind(&id.gvk) {
            dirty.extend([Key::Binding(id.clone()), Key::TemplateStatus(id.clone())]);
        }
    }
}
