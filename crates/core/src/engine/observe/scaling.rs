//! Autoscalers and the workloads that they scale: the relations of their templates, and the keys that follow from both.

use std::collections::BTreeSet;

use entourage_api::keys::{annotation, label};

use super::Dirty;
use crate::{
    autoscaling::next_writes,
    engine::routes::Changed,
    fleet::{
        Fleet,
        autoscaling::{autoscaler, is_scaled_kind, label_of, marked_by},
    },
    object::{ResourceId, Time},
    observation::Template,
    plan::{Key, Plan},
};

impl Fleet {
    /// A template changed, appeared, or was deleted: `before` is the earlier one. Cost: O(log templates); O(1) while no label is
    /// set.
    pub(super) fn scaling_changed(&mut self, id: &ResourceId, before: Option<&Template>, dirty: &mut Dirty) {
        self.scaling_seen(id, before);
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
        let marked =
            |template: Option<&Template>| template.map_or_else(Vec::new, |held| marked_by(id, &held.meta));
        let (was, is) = (marked(before), marked(after));
        self.graph.scaling.retarget(id, from.as_ref(), to.as_ref());
        self.graph.scaling.mark(id, &was, &is);
        if from != to {
            dirty.extend(from.map(Key::Scaling));
        }
        if was != is {
            dirty.push(Key::Scaling(id.clone()));
        }
    }

    /// The workloads that autoscalers scale are planned again as soon as something else of one of them, or of an autoscaler of theirs,
    /// is: a row of its own in every route would say the same. The label that a template lacks and is about to get back follows from its
    /// autoscalers: so do its binding and its copies. Cost: O(dirty × log templates + workloads of the autoscalers among them, and the
    /// copies of those without the label); O(dirty) while nothing is scaled, O(1) while both controllers are off.
    pub(super) fn dirty_scaling(&self, dirty: &mut Dirty) {
        if !self.config.mark_scale_targets && !self.config.sync_replicas {
            return;
        }
        let (mut scaled, mut unlabelled) = (BTreeSet::new(), BTreeSet::new());
        for key in dirty.iter() {
            let (Key::Template(id) | Key::TemplateStatus(id) | Key::Binding(id) | Key::Copy(id, _)) = key
            else {
                continue;
            };
            if is_scaled_kind(&id.gvk) {
                if self.is_scaled(id) {
                    scaled.insert(id.clone());
                }
            } else if self.config.mark_scale_targets && id.gvk == autoscaler() {
                let template = self.resource(id).and_then(|resource| resource.template.as_ref());
                let target = template.and_then(|template| template.scales.as_deref());
                // The report of a member says nothing of an autoscaler that is propagated.
                let is_report = matches!(key, Key::Copy(..) | Key::TemplateStatus(_));
                let named = target.into_iter().map(|target| (target, !is_report));
                let marked = self.graph.scaling.marked(id).map(|target| (target, true));
                for (target, may_change) in named.chain(marked) {
                    scaled.insert(target.clone());
                    let is_unlabelled = |held: &Template| held.meta.label(label::RETAIN_REPLICAS).is_none();
                    if may_change && self.has_template(target, is_unlabelled) {
                        unlabelled.insert(target.clone());
                    }
                }
            }
        }
        for id in unlabelled {
            self.route(Changed::Template(&id), dirty);
        }
        dirty.extend(scaled.into_iter().map(Key::Scaling));
    }

    /// The binding of a workload, whose shares follow the replicas of its copies. Cost: O(log templates); no binding is planned for a
    /// workload that nothing scales.
    pub(in crate::engine) fn dirty_scaled(&self, id: &ResourceId, dirty: &mut Dirty) {
        if self.config.sync_replicas && is_scaled_kind(&id.gvk) && self.is_scaled(id) {
            dirty.push(Key::Binding(id.clone()));
        }
    }

    /// True if a workload has the label or the annotation, or an autoscaler names it. Cost: O(log templates + log labels).
    fn is_scaled(&self, id: &ResourceId) -> bool {
        let is_marked = |held: &Template| {
            let meta = &held.meta;
            meta.label(label::RETAIN_REPLICAS).is_some() || meta.annotation(annotation::SCALED_BY).is_some()
        };
        self.has_template(id, is_marked) || self.graph.scaling.scalers(id).next().is_some()
    }

    fn has_template(&self, id: &ResourceId, is_it: impl Fn(&Template) -> bool) -> bool {
        let template = self.resource(id).and_then(|resource| resource.template.as_ref());
        template.is_some_and(is_it)
    }

    /// Records the label and the replicas that are about to be written to a template. Cost: O(1).
    pub(in crate::engine) fn sends_scaling(&mut self, id: &ResourceId, plan: &Plan, now: Time) {
        let Some(resource) = self.cache.resources.get_mut(id) else {
            return;
        };
        let next = plan
            .changes
            .iter()
            .find_map(|change| next_writes(resource, change, now));
        if let Some(next) = next {
            resource.scaling_writes = Some(Box::new(next));
        }
    }

    /// The template of a workload was observed: what was written to it may be there, unless it is another object. Cost: O(1).
    fn scaling_seen(&mut self, id: &ResourceId, before: Option<&Template>) {
        let Some(resource) = self.cache.resources.get_mut(id) else {
            return;
        };
        let uid = |template: &Template| template.meta.uid.clone();
        if before.map(uid) != resource.template.as_ref().map(uid) {
            resource.scaling_writes = None;
        }
        let (Some(template), Some(writes)) = (&resource.template, &mut resource.scaling_writes) else {
            return;
        };
        writes.observe(&template.meta, template.replicas, &label_of(&template.meta));
    }
}
