//! What must be planned again when something changed.

use entourage_api::policy::{Preemption, PropagationSpec};

use super::Dirty;
use crate::{
    detector::matching,
    index::{Index, referred},
    object::{Gvk, Id, Named, Str},
    plan::Key,
    twin::claim_of,
};

impl Index {
    /// Everything of one entity. Cost: O(copies).
    pub(super) fn dirty_entity(&self, id: &Id, dirty: &mut Dirty) {
        dirty.push(Key::Binding(id.clone()));
        let Some(entity) = self.entities.get(id) else {
            return;
        };
        for cluster in entity.copies.keys() {
            dirty.push(Key::Copy(id.clone(), cluster.clone()));
        }
        if entity.binding.is_some() {
            dirty.push(Key::BindingStatus(id.clone()));
            dirty.push(Key::TemplateStatus(id.clone()));
        }
    }

    /// What depends on how the copies of a workload fare: its eviction tasks, the copies that are to be deleted or wait for
    /// that, and an application that fails. Cost: O(1) without either; O(copies).
    pub(super) fn dirty_failover(&self, id: &Id, dirty: &mut Dirty) {
        let Some(entity) = self.entities.get(id) else {
            return;
        };
        let Some(spec) = entity.binding.as_ref().map(|binding| &binding.object.spec) else {
            return;
        };
        let watches = spec
            .failover
            .as_ref()
            .is_some_and(|failover| failover.application.is_some());
        if spec.graceful_eviction_tasks.is_empty() && !watches {
            return;
        }
        dirty.push(Key::Binding(id.clone()));
        dirty.push(Key::BindingStatus(id.clone()));
        if !spec.graceful_eviction_tasks.is_empty() {
            let clusters = entity.copies.keys().cloned();
            dirty.extend(clusters.map(|cluster| Key::Copy(id.clone(), cluster)));
        }
    }

    /// What waits for a template to appear. Cost: O(referrers × copies waiting).
    pub(super) fn dirty_referrers(&self, id: &Id, dirty: &mut Dirty) {
        let Some(entity) = self.entities.get(id) else {
            return;
        };
        for referrer in &entity.referrers {
            dirty.push(Key::BindingStatus(referrer.clone()));
            self.dirty_waiting(referrer, dirty);
        }
    }

    /// The copies of a template that are still to be released for the first time. Cost: O(copies).
    pub(super) fn dirty_waiting(&self, id: &Id, dirty: &mut Dirty) {
        let Some(waiting) = self.entities.get(id) else {
            return;
        };
        for (cluster, state) in &waiting.copies {
            if state.live.is_none() {
                dirty.push(Key::Copy(id.clone(), cluster.clone()));
            }
        }
    }

    /// What a template takes along. Cost: O(references × clusters).
    pub(super) fn dirty_dependencies(&self, id: &Id, dirty: &mut Dirty) {
        let Some(entity) = self.entities.get(id) else {
            return;
        };
        for reference in entity.references.iter() {
            let dependency = referred(reference);
            self.dirty_entity(&dependency, dirty);
        }
    }

    /// What depends on whether a copy stands on a member: its referrers' first release there, and the removal of what it
    /// refers to. Cost: O(referrers + references).
    pub(super) fn dirty_neighbours(&self, id: &Id, cluster: &Str, dirty: &mut Dirty) {
        let Some(entity) = self.entities.get(id) else {
            return;
        };
        for referrer in &entity.referrers {
            let waits = self
                .entities
                .get(referrer)
                .and_then(|each| each.copies.get(cluster))
                .is_some_and(|state| state.live.is_none());
            if waits {
                dirty.push(Key::Copy(referrer.clone(), cluster.clone()));
            }
            dirty.push(Key::BindingStatus(referrer.clone()));
        }
        for reference in entity.references.iter() {
            dirty.push(Key::Copy(referred(reference), cluster.clone()));
        }
        for dependency in &entity.left_behind {
            dirty.push(Key::Copy(dependency.clone(), cluster.clone()));
            dirty.push(Key::Binding(dependency.clone()));
        }
    }

    /// The templates that a policy selects. Cost: O(1) for a selector with a name and a namespace, else O(templates of
    /// the kind, in the selector's namespace where it names one).
    pub(super) fn dirty_selected(&self, policy: &Named, spec: &PropagationSpec, dirty: &mut Dirty) {
        for selector in &spec.resource_selectors {
            let gvk = Gvk::new(&selector.api_version, &selector.kind);
            let namespace = if policy.namespace.is_empty() {
                selector.namespace.as_str()
            } else {
                &*policy.namespace
            };
            if !selector.name.is_empty() && !namespace.is_empty() {
                let id = Id::new(gvk, namespace, &selector.name);
                if self.entities.contains_key(&id) {
                    dirty.push(Key::Template(id));
                }
                continue;
            }
            let first = Id::new(gvk.clone(), namespace, "");
            for (id, entity) in self.entities.range(first..) {
                if id.gvk != gvk || (!namespace.is_empty() && *id.namespace != *namespace) {
                    break;
                }
                let Some(template) = &entity.template else {
                    continue;
                };
                // A claim is sticky: what another policy holds concerns this one only if it preempts.
                let is_held = claim_of(&template.meta)
                    .is_some_and(|claim| claim != *policy && self.policies.contains_key(&claim));
                if (!is_held || spec.preemption == Preemption::Always)
                    && matching::selects(spec, &policy.namespace, id, &template.meta.labels).is_some()
                {
                    dirty.push(Key::Template(id.clone()));
                }
            }
        }
    }

    pub(super) fn dirty_claimed(&self, policy: &Named, dirty: &mut Dirty) {
        for id in self.claimed.get(policy).into_iter().flatten() {
            dirty.push(Key::Template(id.clone()));
            dirty.push(Key::Binding(id.clone()));
        }
        dirty.push(Key::Policy(policy.clone()));
    }

    pub(super) fn dirty_scheduled(&self, dirty: &mut Dirty) {
        for (id, entity) in &self.entities {
            if entity
                .binding
                .as_ref()
                .is_some_and(|binding| binding.object.spec.placement.is_some())
            {
                dirty.push(Key::Binding(id.clone()));
                dirty.push(Key::BindingStatus(id.clone()));
            }
        }
    }

    pub(super) fn dirty_copies_on(&self, cluster: &Str, dirty: &mut Dirty) {
        for (id, entity) in &self.entities {
            if entity.copies.contains_key(cluster) {
                dirty.push(Key::Copy(id.clone(), cluster.clone()));
            }
        }
    }
}
