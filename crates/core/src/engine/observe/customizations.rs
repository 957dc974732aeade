//! Customizations: the interpreters that users define for a kind. A change of one has exactly the objects of that kind read again.

use std::sync::Arc;

use entourage_api::{config::ResourceInterpreterCustomization, keys::annotation};

use super::Dirty;
use crate::{
    cache::{Deletion, Held, meta_of},
    engine::routes::Changed,
    fleet::{Fleet, consent::outside},
    interpreter::{
        Interpretation, Interpreter, customized::Customized, operations::Operation, question::InterpretError,
    },
    object::{Gvk, ResourceId, Str, Time},
    observation::{Copy, ObjectRef, Template, Watch},
    plan::Key,
};

/// The pause in milliseconds after which a hook without a response is called again for a template's status.
const AGGREGATE_AGAIN: i64 = 10_000;

impl Fleet {
    /// A customization was observed. Cost: O(customizations), and when it changed O(the length of the scripts for its kind +
    /// the objects of that kind + members).
    pub(super) fn customization_seen(
        &mut self,
        object: &Arc<ResourceInterpreterCustomization>,
        dirty: &mut Dirty,
    ) {
        let meta = meta_of(&object.metadata);
        let name: Str = object.metadata.name.as_deref().unwrap_or_default().into();
        let which = ObjectRef::Customization(name.clone());
        let before = self.cache.customizations.get(&name).cloned();
        let held = before.as_ref().map(|held| meta_of(&held.metadata));
        let held = held.as_ref().map(|held| Held::of(held, &meta));
        if self.cache.revisions.see(&which, held, meta.revision()).is_none() {
            return;
        }
        self.cache.customizations.insert(name, object.clone());
        let target = target(object);
        if let Some(former) = before.map(|held| self::target(&held))
            && (former != target || former.version != target.version)
        {
            self.learn(&former, dirty);
        }
        self.learn(&target, dirty);
    }

    /// A customization was deleted. Cost: as [`Self::customization_seen`].
    pub(super) fn customization_gone(
        &mut self,
        name: &Str,
        deletion: &Deletion,
        now: Time,
        dirty: &mut Dirty,
    ) {
        let Some(held) = self.cache.customizations.get(name) else {
            return;
        };
        let meta = meta_of(&held.metadata);
        let which = ObjectRef::Customization(name.clone());
        let held_as = (&*meta.uid, meta.revision());
        if self.cache.revisions.end(which, held_as, deletion, now).is_none() {
            return;
        }
        let target = target(held);
        self.cache.customizations.remove(name);
        self.learn(&target, dirty);
    }

    /// Merges the interpreters of a kind. If the result changed, the kind's objects are read again: until they are, their
    /// earlier interpretation proves nothing.
    fn learn(&mut self, gvk: &Gvk, dirty: &mut Dirty) {
        let of_it = self.cache.customizations.values().filter(|each| {
            let target = &each.spec.target;
            target.api_version == gvk.api_version() && *target.kind == *gvk.kind
        });
        let customized = Customized::of(of_it.map(|each| &**each), self.config.scripts.as_deref());
        if self.graph.interpreter.customize(gvk, customized) {
            self.interpreter_changed(gvk, dirty);
        }
    }

    /// The interpreter of a kind has changed: its objects are listed and read again. Cost: O(objects of the kind + members).
    pub(super) fn interpreter_changed(&mut self, gvk: &Gvk, dirty: &mut Dirty) {
        let is_watched = self
            .graph
            .kinds
            .get(gvk)
            .is_some_and(|held| held.version == gvk.version);
        if !is_watched {
            return;
        }
        let members = self
            .cache
            .members
            .keys()
            .map(|cluster| Watch::Copies(cluster.clone(), gvk.clone()));
        let watches: Vec<Watch> = members.chain([Watch::Templates(gvk.clone())]).collect();
        for watch in watches {
            if self.cache.watches.is_demanded(&watch) {
                self.cache.watches.restart(watch);
            }
        }
        self.graph.read_again.insert(gvk.clone());
        let refers = self.graph.interpreter.of(gvk).refers(gvk);
        let first = super::lists::first(gvk);
        for (_, resource) in self
            .cache
            .resources
            .range_mut(first..)
            .take_while(|(id, _)| id.gvk == *gvk)
        {
            for binding in resource
                .binding
                .iter_mut()
                .chain(resource.vanished.as_deref_mut())
            {
                binding.refers = refers;
            }
            (
                resource.unaggregated,
                resource.aggregated,
                resource.aggregate_again,
            ) = (None, None, None);
        }
        self.route(Changed::Kind(gvk), dirty);
    }

    /// The interpreters of all kinds now.
    #[must_use]
    pub fn interpreter(&self) -> &Interpreter {
        &self.graph.interpreter
    }

    /// The interpretation of a kind now.
    #[must_use]
    pub fn interpretation(&self, gvk: &Gvk) -> Interpretation {
        self.graph.interpreter.of(gvk)
    }

    /// The interpretation of the kind of a watch.
    #[must_use]
    pub fn interpretation_of(&self, watch: &Watch) -> Interpretation {
        match watch {
            Watch::Templates(gvk) | Watch::Copies(_, gvk) => self.interpretation(gvk),
            _ => Interpretation::default(),
        }
    }

    /// Fills in the results of failed operations of a template's interpretation from earlier ones: the cached result, or after
    /// a start the one that is stored in its binding, even if it is propagated only as a dependency. A missing response never
    /// removes anything. Cost: O(references).
    pub(super) fn restore_failed_results(&self, id: &ResourceId, template: &mut Template) {
        if template.failed_operations.is_empty() {
            return;
        }
        let lacks = |operation| template.lacks(operation).is_some();
        let references = lacks(Operation::References);
        let unasked = |operation| template.lacks(operation).is_some_and(InterpretError::is_unasked);
        let known = template.replicas.is_some() && unasked(Operation::Replicas);
        let replicas = lacks(Operation::Replicas) && !known;
        let components = lacks(Operation::Components);
        let resource = self.cache.resources.get(id);
        let held = resource.and_then(|resource| resource.template.as_ref());
        let binding = resource.and_then(|resource| resource.last_binding());
        // A result from before the interpreter was known does not count, if there ever was another one.
        let earlier = held.filter(|held| !held.interpretation.version().is_empty() || binding.is_none());
        if references {
            let known = std::mem::take(&mut template.references);
            let selected = std::mem::take(&mut template.selections);
            let remembered = binding.filter(|binding| binding.annotation(annotation::DEPENDENCIES).is_some());
            // If no result was ever stored, the one without the interpreter is the best that is known.
            let earlier = earlier.or(held.filter(|_| remembered.is_none()));
            (template.references, template.selections) = match (earlier, remembered) {
                (Some(held), _) if !held.references.is_empty() || !held.selections.is_empty() => {
                    (held.references.clone(), held.selections.clone())
                }
                (_, Some(binding)) => binding.stored_dependencies(id),
                _ => Default::default(),
            };
            // Also the results of other layers, if they only add to it.
            for selection in selected {
                if !template.selections.contains(&selection) {
                    template.selections.push(selection);
                }
            }
            for reference in known {
                if let Err(place) = template
                    .references
                    .binary_search_by(|each| each.id.cmp(&reference.id))
                {
                    template.references.insert(place, reference);
                }
            }
        }
        if components {
            let stored = || binding.map(|binding| &*binding.object.spec.components);
            let held = held.and_then(|held| held.components.clone());
            template.components = held.or_else(|| stored().filter(|all| !all.is_empty()).map(Arc::from));
        }
        if replicas {
            match (earlier, binding) {
                (Some(held), _) if held.replicas.is_some() => {
                    template.replicas = held.replicas;
                    template.requirements = held.requirements.clone();
                }
                (_, Some(binding)) => {
                    let spec = &binding.object.spec;
                    template.replicas = spec.placement.is_some().then_some(spec.replicas);
                    template.requirements = spec.replica_requirements.clone().map(Arc::new);
                }
                _ => {}
            }
        }
    }

    /// Records the result of the aggregation of a template's status. Cost: O(log templates).
    pub(super) fn aggregated(
        &mut self,
        id: &ResourceId,
        asked: u64,
        failed_operation: Option<InterpretError>,
        now: Time,
        dirty: &mut Dirty,
    ) {
        let Some(resource) = self.cache.resources.get_mut(id) else {
            return;
        };
        resource.aggregated = Some(asked);
        let is_passing = failed_operation.as_ref().is_some_and(InterpretError::is_passing);
        resource.aggregate_again = is_passing.then(|| now.plus(AGGREGATE_AGAIN));
        if is_passing {
            dirty.push(Key::TemplateStatus(id.clone()));
        }
        if resource.unaggregated != failed_operation {
            resource.unaggregated = failed_operation;
            self.route(Changed::Dependencies(id), dirty);
        }
    }

    /// As [`Self::restore_failed_results`], when the binding is observed after its template.
    pub(super) fn restore_failed_results_from_binding(
        &mut self,
        id: &ResourceId,
        now: Time,
        dirty: &mut Dirty,
    ) {
        let held = self
            .cache
            .resources
            .get(id)
            .and_then(|resource| resource.template.as_ref());
        let Some(mut template) = held.filter(|held| !held.failed_operations.is_empty()).cloned() else {
            return;
        };
        self.restore_failed_results(id, &mut template);
        let (named, selections) = (template.references.clone(), template.selections.clone());
        let outside = outside(id, &template);
        let before = self.get_or_create(id).template.replace(template);
        self.names_outside(id, outside);
        self.selects(
            id,
            &before.map(|held| held.selections).unwrap_or_default(),
            &selections,
        );
        let references = self.with_selected(id, named, &selections);
        self.refer(id, references, now, dirty);
    }

    /// As [`Self::restore_failed_results`], for a copy. A copy that was read by the earlier interpreter keeps its results.
    pub(super) fn restore_failed_results_of_copy(&self, cluster: &Str, id: &ResourceId, copy: &mut Copy) {
        let stale = copy.interpretation != self.graph.interpreter.of(&id.gvk);
        let lacks = copy.lacks(Operation::Reflect).is_some();
        // A hook without a response for a while makes nothing unhealthy.
        let lacks_health = copy
            .lacks(Operation::Health)
            .is_some_and(InterpretError::is_passing);
        if !stale && !lacks && !lacks_health {
            return;
        }
        let Some(resource) = self.cache.resources.get(id) else {
            return;
        };
        let held = resource.copies.get(cluster).and_then(|state| state.live.as_ref());
        match held {
            Some(held) if stale => (copy.status, copy.health) = (held.status.clone(), held.health),
            Some(held) if held.interpretation == copy.interpretation => {
                if lacks {
                    copy.status = held.status.clone();
                }
                if lacks_health {
                    copy.health = held.health;
                }
            }
            None if stale => {
                let binding = resource.last_binding();
                let item = binding.and_then(|binding| binding.status_on(cluster));
                copy.status = item.and_then(|item| item.status.clone());
            }
            // The stored status of the binding stays: [`crate::status`].
            _ => {}
        }
    }
}

fn target(customization: &ResourceInterpreterCustomization) -> Gvk {
    let target = &customization.spec.target;
    Gvk::new(&target.api_version, &target.kind)
}
