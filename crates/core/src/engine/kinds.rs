//! The kinds in use: those that a policy names, and those of objects that are propagated.
//!
//! - A kind is in use once a policy, a reference or a binding names it. It is no longer in use when no policy names it any more
//!   and none of its objects is propagated, claimed or referred to: its watches end within about a minute.
//! - The policies of a namespace put no more than [`super::Config::kinds_per_namespace`] kinds in use that are not built into
//!   Kubernetes; a policy that names more reports it. The order of arrival decides which ones are in use. Kinds that bindings
//!   and references name are not counted.

use entourage_api::policy::PropagationPolicy;

use crate::{
    cache::ResourceState,
    engine::routes::Changed,
    fleet::{Fleet, exports::is_export},
    graph::selected_kinds,
    interpreter,
    memory::distributions::workload_kinds,
    object::{Gvk, NamespacedName, ResourceId, Str, Time},
    observation::Watch,
    plan::Key,
    scope,
};

/// The interval of the search for kinds that are no longer in use, in milliseconds.
const SWEEP: i64 = 60_000;

impl Fleet {
    /// A policy has changed, or appeared, or was deleted. Cost: O(its selectors); O(policies) when a kind is put in use because
    /// there is room for it.
    pub(super) fn name_kinds(
        &mut self,
        name: &NamespacedName,
        before: Option<&PropagationPolicy>,
        after: Option<&PropagationPolicy>,
        dirty: &mut Vec<Key>,
    ) {
        let (before, after) = (before.map(selected_kinds), after.map(selected_kinds));
        let (before, after) = (before.unwrap_or_default(), after.unwrap_or_default());
        for gvk in before.difference(&after) {
            if let Some(next) = self.graph.named_kinds.remove(&name.namespace, gvk) {
                self.use_kind(&next);
                self.route(Changed::Listing(&Watch::Templates(next)), dirty);
            }
        }
        for gvk in after.difference(&before) {
            let is_counted = !name.namespace.is_empty()
                && interpreter::native(&gvk.group, &gvk.version, &gvk.kind).is_none();
            let limit = is_counted.then_some(self.config.kinds_per_namespace);
            if self.graph.named_kinds.add(&name.namespace, gvk, limit) {
                self.use_kind(gvk);
            }
        }
    }

    /// Ends the watches of kinds that are no longer in use. Cost: once a minute O(kinds + objects of kinds that no policy
    /// names), else O(1).
    pub(super) fn sweep_kinds(&mut self, now: Time, dirty: &mut Vec<Key>) {
        let swept = *self.graph.named_kinds.swept.get_or_insert(now);
        if now < swept.plus(SWEEP) || !self.is_base_synced() || !self.memory.remembers_former {
            return;
        }
        self.graph.named_kinds.swept = Some(now);
        let unused: Vec<Gvk> = self
            .graph
            .kinds
            .iter()
            .filter(|gvk| self.is_unused(gvk))
            .cloned()
            .collect();
        for gvk in unused {
            self.end_kind(&gvk, now, dirty);
        }
    }

    /// True if no policy names the kind, and none of its objects is propagated, claimed or referred to, as far as the watches
    /// of the hub and the members report: without proof, a kind counts as in use.
    fn is_unused(&self, gvk: &Gvk) -> bool {
        if self.graph.named_kinds.is_named(gvk)
            || self.is_counted_by_workload(gvk)
            || self.is_selected_by_labels(gvk)
            || (self.config.share_services && is_export(gvk))
        {
            return false;
        }
        let templates = self.templates(gvk);
        if !self.cache.watches.is_synced(&templates) && !self.cache.watches.is_unserved(&templates) {
            return false;
        }
        let mut of_kind = self
            .cache
            .resources
            .range(ResourceId::new(gvk.clone(), "", "")..)
            .take_while(|(id, _)| id.gvk == *gvk)
            .peekable();
        if of_kind.peek().is_none() && self.cache.watches.is_no_such_kind(&templates) {
            return true;
        }
        let is_answered = |cluster: &Str| {
            let copies = self.copies(cluster, gvk);
            self.cache.watches.is_synced(&copies) || self.cache.watches.is_unserved(&copies)
        };
        self.cache.members.keys().all(is_answered)
            && of_kind.all(|(id, resource)| !is_used(resource) && !self.graph.links.of(id).holds())
    }

    /// True if the targets of a distribution depend on workloads of this kind.
    fn is_counted_by_workload(&self, gvk: &Gvk) -> bool {
        !self.memory.distributions.by_workload.is_empty() && workload_kinds().contains(gvk)
    }

    /// True if a template refers to objects of this kind by their labels: there may be none yet.
    fn is_selected_by_labels(&self, gvk: &Gvk) -> bool {
        let mut from = self.graph.selectors.range((gvk.clone(), Str::from(""))..);
        from.next().is_some_and(|((selected, _), _)| selected == gvk)
    }

    fn end_kind(&mut self, gvk: &Gvk, now: Time, dirty: &mut Vec<Key>) {
        let templates = self.templates(gvk);
        // If the same objects are listed again later, they are news.
        self.went_back(&templates);
        self.forget_held(&templates, now, dirty);
        let first = ResourceId::new(gvk.clone(), "", "");
        let of_kind = self.cache.resources.range(first.clone()..).map(|(id, _)| id);
        let of_kind: Vec<ResourceId> = of_kind.take_while(|id| id.gvk == *gvk).cloned().collect();
        for id in of_kind {
            self.forget_if_empty(&id, now);
        }
        if self
            .cache
            .resources
            .range(first..)
            .next()
            .is_some_and(|(id, _)| id.gvk == *gvk)
        {
            // Something still refers to an object of it; the objects that were forgotten are listed again.
            self.cache.watches.restart(templates);
            return;
        }
        let copies = self.cache.members.keys().map(|cluster| self.copies(cluster, gvk));
        let watches: Vec<Watch> = copies.chain([templates]).collect();
        for watch in watches {
            self.cache.watches.forget(&watch);
        }
        self.graph.read_again.remove(gvk);
        self.graph.kinds.remove(gvk);
    }
}

/// True if some state of an object is still needed.
fn is_used(resource: &ResourceState) -> bool {
    let claimed = resource.template.as_ref().is_some_and(|template| {
        scope::has_claim_metadata(&template.meta) || template.meta.deleting.is_some()
    });
    let on_members = resource.copies.values().any(|state| {
        state.live.is_some()
            || state.copied.is_some()
            || state.record.is_some()
            || state.in_flight
            || state.pending.is_some()
    });
    claimed || on_members || resource.binding.is_some() || resource.vanished.is_some()
}
