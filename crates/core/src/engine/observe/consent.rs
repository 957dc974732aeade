//! Changes of the consent of namespaces: see [`crate::fleet::consent`].

use std::collections::BTreeSet;

use entourage_api::keys::annotation;

use super::Dirty;
use crate::{
    engine::routes::Changed,
    fleet::Fleet,
    object::{Meta, ResourceId, Str, Time},
};

impl Fleet {
    /// Records the other namespaces that a template refers to. Cost: O(namespaces that are referred to from others), usually none.
    pub(super) fn names_outside(&mut self, id: &ResourceId, outside: BTreeSet<Str>) {
        if outside.is_empty() && self.graph.cross_namespace_referrers.is_empty() {
            return;
        }
        self.graph
            .cross_namespace_referrers
            .retain(|namespace, referrers| {
                if !outside.contains(namespace) {
                    referrers.remove(id);
                }
                !referrers.is_empty()
            });
        for namespace in outside {
            self.graph
                .cross_namespace_referrers
                .entry(namespace)
                .or_default()
                .insert(id.clone());
        }
    }

    /// A namespace was created or deleted, or its consent changed. Cost: O(templates that refer to it × their references), and
    /// that of [`Self::refer`] for each whose dependencies may change.
    pub(super) fn consent_changed(
        &mut self,
        namespace: &str,
        before: Option<&Meta>,
        now: Time,
        dirty: &mut Dirty,
    ) {
        let of = |meta: Option<&Meta>| {
            let value = meta.and_then(|meta| meta.annotation(annotation::REFERENCES_FROM));
            value.map(str::to_owned)
        };
        let after = of(self.cache.namespaces.hub.get(namespace));
        if of(before) == after {
            return;
        }
        for id in self
            .graph
            .cross_namespace_referrers
            .get(namespace)
            .cloned()
            .unwrap_or_default()
        {
            let template = self
                .cache
                .resources
                .get(&id)
                .and_then(|resource| resource.template.as_ref());
            let Some((named, selections)) =
                template.map(|template| (template.references.clone(), template.selections.clone()))
            else {
                continue;
            };
            let references = self.with_selected(&id, named, &selections);
            self.refer(&id, references, now, dirty);
            self.release_stale_dependencies(&id, now, dirty);
            self.route(Changed::Needs(&id), dirty);
        }
    }
}
