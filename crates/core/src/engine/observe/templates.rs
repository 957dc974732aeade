//! Templates: their cached state, and the effects of their appearance and deletion.

use std::collections::BTreeSet;

use super::Dirty;
use crate::{
    cache::Deletion,
    engine::routes::Changed,
    fleet::{Fleet, activation, consent::outside},
    interpreter::{operations::Operation, question::InterpretError},
    object::{ResourceId, Time},
    observation::Template,
    scope::claim_of,
};

impl Fleet {
    /// A template was observed. Cost: O(copies + clusters wanted), plus that of [`Self::refer`] and [`Self::with_selected`],
    /// plus O(referrers) when the template appears, and that of [`Self::reselect`] when its labels change.
    pub(super) fn template_seen(
        &mut self,
        id: &ResourceId,
        mut template: Template,
        now: Time,
        dirty: &mut Dirty,
    ) {
        self.use_kind(&id.gvk);
        let interpretation = self.graph.interpreter.of(&id.gvk);
        self.keep_answers(id, &mut template);
        self.restore_failed_results(id, &mut template);
        let resource = self.get_or_create(id);
        // Read by the earlier interpreter: it is read again.
        if resource.freshness.is_outdated(&template.meta.resource_version)
            || interpretation != template.interpretation
        {
            return;
        }
        // Cached from before the server's revisions went back: its current state is news, and not a user's touch.
        let outdated = resource.freshness.is_unknown();
        // The echo of the cached version: the response to a write came before its watch event. The result of a hook may differ
        // although the object does not.
        let is_echo = |held: &Template| {
            held.meta.is_same_version(&template.meta)
                && held.interpretation == interpretation
                && (!interpretation.is_hooked() || *held == template)
        };
        if !outdated && resource.template.as_ref().is_some_and(is_echo) {
            return;
        }
        resource.freshness.set(template.meta.revision());
        resource.absent = false;
        resource.not_propagatable = false;
        resource.unreadable = None;
        if template.meta.deleting.is_none() {
            resource.orphaning = None;
        } else if template.meta.has_finalizer("orphan") {
            resource.orphaning = Some(template.meta.uid.clone());
        }
        let (named, selections) = (template.references.clone(), template.selections.clone());
        let outside = outside(id, &template);
        let claim = claim_of(&template.meta);
        let deleting = template.meta.deleting.is_some();
        let status = template.status.clone();
        let revision = template.meta.revision();
        let touched = resource
            .template
            .as_ref()
            .filter(|_| !outdated)
            .is_some_and(|held| activation::is_touched(&held.meta, &template.meta));
        let relabelled = resource
            .template
            .as_ref()
            .is_none_or(|held| held.meta.labels != template.meta.labels);
        let unasked = |template: &Template| {
            let references = template.lacks(Operation::References);
            references.is_some_and(InterpretError::is_unasked)
        };
        let is_unasked = unasked(&template);
        let before = resource.template.replace(template);
        let was_there = before.is_some();
        // Its referrers waited for its dependencies.
        let is_first_answer = !is_unasked && before.as_ref().is_some_and(unasked);
        let restated = before.as_ref().is_some_and(|held| held.status != status);
        if restated {
            resource.template_status_written = Some(now);
        }
        let appeared = before
            .as_ref()
            .is_none_or(|held| held.meta.deleting.is_some() != deleting);
        let claim_before = before.as_ref().and_then(|held| claim_of(&held.meta));
        if claim != claim_before {
            resource.touched = None;
        } else if touched {
            resource.touched = Some(revision);
        }
        if restated {
            self.status_seen(id, &status.unwrap_or_default(), now);
        }
        if is_first_answer {
            for referrer in &self.graph.links.of(id).referrers {
                self.route(Changed::Waits(referrer), dirty);
            }
        }
        if appeared {
            self.route(Changed::Presence(id), dirty);
        }
        // The claim of a policy decides whether a hook is called for the references of its dependencies.
        if appeared || claim != claim_before && !self.graph.interpreter.hooks().is_empty() {
            self.route(Changed::PropagatedDependencies(id), dirty);
        }
        self.claim_changed(id, claim_before, claim, dirty);
        self.names_outside(id, outside);
        self.scaling_changed(id, before.as_ref(), dirty);
        self.own_list_changed(id, before.as_ref().map(|held| &held.meta), dirty);
        let selected_before = before.map(|held| held.selections).unwrap_or_default();
        self.selects(id, &selected_before, &selections);
        let references = self.with_selected(id, named, &selections);
        self.refer(id, references, now, dirty);
        if relabelled {
            self.reselect(id, now, dirty);
        }
        // A template that appears has no clusters yet: its binding has them.
        if relabelled && was_there {
            self.dirty_overrides_of(id, now, dirty);
        }
        if relabelled || appeared {
            self.workload_changed(id, now, dirty);
        }
        self.claim_not_refused(id, dirty);
        self.route(Changed::Claim(id), dirty);
        self.route(Changed::Template(id), dirty);
    }

    /// An interpret error never replaces an earlier response about the same version. Cost: O(references), if a response is missing.
    fn keep_answers(&self, id: &ResourceId, template: &mut Template) {
        if template.failed_operations.is_empty() {
            return;
        }
        let held = self
            .cache
            .resources
            .get(id)
            .and_then(|resource| resource.template.as_ref());
        let is_same = |held: &&Template| {
            held.interpretation == template.interpretation && held.meta.is_same_version(&template.meta)
        };
        let Some(held) = held.filter(is_same) else {
            return;
        };
        for operation in [Operation::References, Operation::Replicas, Operation::Components] {
            if template.lacks(operation).is_none() || held.lacks(operation).is_some() {
                continue;
            }
            match operation {
                Operation::References => {
                    template.references.clone_from(&held.references);
                    template.selections.clone_from(&held.selections);
                }
                Operation::Replicas => {
                    (template.replicas, template.completions) = (held.replicas, held.completions);
                    template.requirements.clone_from(&held.requirements);
                }
                _ => template.components.clone_from(&held.components),
            }
            template
                .failed_operations
                .retain(|each| each.operation != operation);
        }
    }

    /// The keys that waited to know whether the template still exists, because its binding is deleted, can be planned.
    pub(super) fn template_found(&mut self, id: &ResourceId) {
        let resource = self.get_or_create(id);
        let ending = resource
            .binding
            .as_ref()
            .filter(|binding| binding.meta.deleting.is_some());
        resource.confirmed = ending.map(|binding| binding.meta.uid.clone());
    }

    /// A template was deleted. Its references count until a GET has proved its absence: no event alone removes anything.
    ///
    /// Cost: as [`Self::template_seen`].
    pub(super) fn template_gone(
        &mut self,
        id: &ResourceId,
        deletion: &Deletion,
        now: Time,
        dirty: &mut Dirty,
    ) {
        let Some(resource) = self.cache.resources.get_mut(id) else {
            return;
        };
        let Some(held) = &resource.template else {
            resource.freshness.raise(deletion.revision);
            return;
        };
        if !resource.freshness.is_end_of(&held.meta.uid, deletion) {
            return;
        }
        resource.freshness.end(deletion);
        let before = resource.template.take();
        self.names_outside(id, BTreeSet::new());
        let claim = before.as_ref().and_then(|held| claim_of(&held.meta));
        self.scaling_changed(id, before.as_ref(), dirty);
        self.own_list_changed(id, before.as_ref().map(|held| &held.meta), dirty);
        self.selects(id, &before.map(|held| held.selections).unwrap_or_default(), &[]);
        self.claim_changed(id, claim, None, dirty);
        self.claim_not_refused(id, dirty);
        self.route(Changed::Presence(id), dirty);
        // Its dependencies may no longer be needed.
        self.route(Changed::PropagatedDependencies(id), dirty);
        self.route(Changed::Template(id), dirty);
        self.workload_changed(id, now, dirty);
        self.forget_if_empty(id, now);
    }

    /// Sets the dependencies of a template that is not cached: its last ones if it is orphaned, as observed by this process or,
    /// after a start, as stored in its binding; else none, once its absence is proven. Cost: as [`Self::refer`]; O(1) while a
    /// template is cached.
    pub(super) fn refers_as_orphaned(&mut self, id: &ResourceId, now: Time, dirty: &mut Dirty) {
        let Some(resource) = self
            .cache
            .resources
            .get(id)
            .filter(|resource| resource.template.is_none())
        else {
            return;
        };
        match &resource.binding {
            Some(binding) if resource.may_be_orphaned() => {
                // The effect on the dependencies when its binding is deleted is recorded on theirs.
                self.route(Changed::PropagatedDependencies(id), dirty);
                if self.graph.links.of(id).direct.is_empty() {
                    let (named, selections) = binding.stored_dependencies(id);
                    let references = self.with_selected(id, named, &selections);
                    self.refer(id, references, now, dirty);
                }
            }
            _ if resource.absent => self.refers_no_more(id, now, dirty),
            _ => {}
        }
    }

    /// A point GET returned 404. While a template is cached this is no news: either its deletion is about to be reported, or it
    /// was recreated since.
    ///
    /// Cost: that of [`Self::refers_no_more`] and [`Self::reselect`], and O(copies).
    pub(super) fn absent(&mut self, id: &ResourceId, now: Time, dirty: &mut Dirty) {
        let resource = self.get_or_create(id);
        if resource.template.is_some() {
            return;
        }
        resource.absent = true;
        resource.unreadable = None;
        self.route(Changed::Presence(id), dirty);
        self.refers_as_orphaned(id, now, dirty);
        self.reselect(id, now, dirty);
        self.route(Changed::Template(id), dirty);
    }
}
