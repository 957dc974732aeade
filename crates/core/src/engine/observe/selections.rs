//! References by label: a template that a selector matches counts as if it were referred to by name.
//!
//! A template that no longer matches is treated like one that is no longer referred to. A template that is deleted no longer
//! matches once a GET has proved its absence: so no event alone removes a copy.

use super::Dirty;
use crate::{
    cache::ResourceState,
    engine::routes::Changed,
    fleet::Fleet,
    interpreter::references::{DependencyReference, DependencySelection},
    object::{Gvk, ResourceId, Str, Time},
};

impl Fleet {
    /// Records the selections of a template. Cost: O(selections).
    pub(super) fn selects(
        &mut self,
        id: &ResourceId,
        before: &[DependencySelection],
        after: &[DependencySelection],
    ) {
        if before == after {
            return;
        }
        for selection in before {
            let key = (selection.gvk.clone(), selection.namespace.clone());
            if let Some(ids) = self.graph.selectors.get_mut(&key) {
                ids.remove(id);
                if ids.is_empty() {
                    self.graph.selectors.remove(&key);
                }
            }
        }
        for selection in after {
            self.use_kind(&selection.gvk);
            let key = (selection.gvk.clone(), selection.namespace.clone());
            self.graph.selectors.entry(key).or_default().insert(id.clone());
        }
    }

    /// The references of the template `referrer`: `named`, and every template that its selectors match; sorted. Without objects
    /// in namespaces that do not consent.
    ///
    /// Cost: O(named), with selectors O(templates of the selected kinds in their namespaces × their references).
    pub(super) fn with_selected(
        &self,
        referrer: &ResourceId,
        mut named: Vec<DependencyReference>,
        selections: &[DependencySelection],
    ) -> Vec<DependencyReference> {
        let held = &self.graph.links.of(referrer).direct;
        let was_matched = |id: &ResourceId| held.iter().any(|each| each.id == *id);
        named.retain(|each| self.may_take(referrer, &each.id.gvk, &each.id.namespace));
        let may_take = |each: &&DependencySelection| self.may_take(referrer, &each.gvk, &each.namespace);
        for selection in selections.iter().filter(may_take) {
            for (id, resource) in self.of_kind_in(&selection.gvk, &selection.namespace) {
                let unproved = resource.template.is_none() && !resource.absent && was_matched(id);
                if unproved || is_selected(std::slice::from_ref(selection), id, resource) {
                    add(&mut named, id);
                }
            }
        }
        named
    }

    /// A template that selectors may match appeared, has other labels, or is proven absent.
    ///
    /// Cost: O(templates with a selector for its kind and namespace × their references), and that of [`Self::refer`] for each
    /// whose match changed.
    pub(super) fn reselect(&mut self, id: &ResourceId, now: Time, dirty: &mut Dirty) {
        let key = (id.gvk.clone(), id.namespace.clone());
        let Some(referrers) = self.graph.selectors.get(&key).cloned() else {
            return;
        };
        for referrer in referrers {
            let (Some(selecting), Some(resource)) =
                (self.cache.resources.get(&referrer), self.cache.resources.get(id))
            else {
                continue;
            };
            let Some(template) = &selecting.template else {
                continue;
            };
            let is_named = template.references.iter().any(|each| each.id == *id);
            let is_wanted = self.may_take(&referrer, &id.gvk, &id.namespace)
                && (is_named || is_selected(&template.selections, id, resource));
            let direct = self.graph.links.of(&referrer).direct.clone();
            let mut references = direct.to_vec();
            if is_wanted {
                add(&mut references, id);
            } else {
                references.retain(|each| each.id != *id);
            }
            if *references != *direct {
                self.refer(&referrer, references, now, dirty);
                self.release_stale_dependencies(&referrer, now, dirty);
                self.route(Changed::Needs(&referrer), dirty);
            }
        }
    }

    fn of_kind_in<'a>(
        &'a self,
        gvk: &Gvk,
        namespace: &Str,
    ) -> impl Iterator<Item = (&'a ResourceId, &'a ResourceState)> {
        let first = ResourceId {
            gvk: gvk.clone(),
            namespace: namespace.clone(),
            name: "".into(),
        };
        let (gvk, namespace) = (gvk.clone(), namespace.clone());
        self.cache
            .resources
            .range(first..)
            .map(|(id, resource)| (id, &**resource))
            .take_while(move |(id, _)| id.gvk == gvk && id.namespace == namespace)
    }
}

/// True if a selection matches a template that exists.
fn is_selected(selections: &[DependencySelection], id: &ResourceId, resource: &ResourceState) -> bool {
    let labels = resource.template.as_ref().map(|template| &template.meta.labels);
    labels.is_some_and(|labels| selections.iter().any(|selection| selection.selects(id, labels)))
}

/// Inserts a reference in order; an existing one stays as it is.
fn add(references: &mut Vec<DependencyReference>, id: &ResourceId) {
    if let Err(place) = references.binary_search_by(|each| each.id.cmp(id)) {
        references.insert(
            place,
            DependencyReference {
                id: id.clone(),
                optional: true,
            },
        );
    }
}
