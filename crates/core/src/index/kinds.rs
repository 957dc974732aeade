//! Which kinds are in use: those that a policy names, and those of objects that somebody propagates.
//!
//! - A kind that a policy names is in use from then on, one that a reference or a binding names too. It ceases to be when no
//!   policy names it any more and nothing of it is propagated, claimed or referred to: its watches end within about a minute.
//! - The policies of a namespace put no more than [`super::Config::kinds_per_namespace`] kinds in use that Kubernetes itself
//!   does not know; a policy that names more says so. Which ones these are is decided in order of arrival. What bindings
//!   and references name is not counted.

use std::collections::{BTreeMap, BTreeSet};

use entourage_api::policy::PropagationPolicy;

use super::{Index, ResourceState, distributions::workload_kinds, routes::Changed};
use crate::{
    interpreter,
    object::{Gvk, NamespacedName, ResourceId, Str, Time},
    observation::Watch,
    plan::Key,
    scope,
};

/// How often kinds are looked for that are not in use any more, in milliseconds.
const SWEEP: i64 = 60_000;

/// The kinds that policies name.
#[derive(Clone, Debug, Default)]
pub(crate) struct NamedKinds {
    /// How many policies name a kind.
    all: BTreeMap<Gvk, usize>,
    /// By namespace, those that Kubernetes does not know.
    tenants: BTreeMap<Str, Tenant>,
    swept: Option<Time>,
}

#[derive(Clone, Debug, Default)]
struct Tenant {
    /// In use: how many policies of the namespace name it.
    admitted: BTreeMap<Gvk, usize>,
    /// Too many.
    refused: BTreeMap<Gvk, usize>,
}

impl Tenant {
    /// Answers whether the kind is in use.
    fn add(&mut self, gvk: &Gvk, limit: usize) -> bool {
        let is_new = !self.admitted.contains_key(gvk);
        let of_them = match is_new && (self.refused.contains_key(gvk) || self.admitted.len() >= limit) {
            true => &mut self.refused,
            false => &mut self.admitted,
        };
        *of_them.entry(gvk.clone()).or_default() += 1;
        !self.refused.contains_key(gvk)
    }

    /// Answers the kind that is in use now because there is room.
    fn remove(&mut self, gvk: &Gvk) -> Option<Gvk> {
        if !less(&mut self.admitted, gvk) {
            less(&mut self.refused, gvk);
            return None;
        }
        let (next, count) = self.refused.pop_first()?;
        self.admitted.insert(next.clone(), count);
        Some(next)
    }
}

/// One less of a kind; whether that was the last.
fn less(counts: &mut BTreeMap<Gvk, usize>, gvk: &Gvk) -> bool {
    let Some(count) = counts.get_mut(gvk) else {
        return false;
    };
    *count -= 1;
    let is_last = *count == 0;
    if is_last {
        counts.remove(gvk);
    }
    is_last
}

impl Index {
    /// A policy says something else, or begins or ends. Cost: O(its selectors); O(policies) when a kind is put in use because
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
            less(&mut self.named_kinds.all, gvk);
            let tenant = self.named_kinds.tenants.get_mut(&name.namespace);
            if let Some(next) = tenant.and_then(|tenant| tenant.remove(gvk)) {
                self.use_kind(&next);
                self.route(Changed::Listing(&Watch::Templates(next)), dirty);
            }
        }
        for gvk in after.difference(&before) {
            *self.named_kinds.all.entry(gvk.clone()).or_default() += 1;
            let limit = self.config.kinds_per_namespace;
            let is_counted = !name.namespace.is_empty()
                && interpreter::native(&gvk.group, &gvk.version, &gvk.kind).is_none();
            if !is_counted
                || self
                    .named_kinds
                    .tenants
                    .entry(name.namespace.clone())
                    .or_default()
                    .add(gvk, limit)
            {
                self.use_kind(gvk);
            }
        }
        let tenant = self.named_kinds.tenants.get(&name.namespace);
        if tenant.is_some_and(|tenant| tenant.admitted.is_empty() && tenant.refused.is_empty()) {
            self.named_kinds.tenants.remove(&name.namespace);
        }
    }

    /// The kinds among these that are not in use because the policies of the namespace name too many.
    pub(crate) fn refused_kinds<'a>(
        &self,
        namespace: &str,
        kinds: impl Iterator<Item = &'a Gvk>,
    ) -> Vec<&'a Gvk> {
        let Some(tenant) = self.named_kinds.tenants.get(namespace) else {
            return Vec::new();
        };
        kinds.filter(|gvk| tenant.refused.contains_key(gvk)).collect()
    }

    /// Ends the watches of kinds that are not in use any more. Cost: once a minute O(kinds + objects of kinds that no policy
    /// names), else O(1).
    pub(super) fn sweep_kinds(&mut self, now: Time, dirty: &mut Vec<Key>) {
        let swept = *self.named_kinds.swept.get_or_insert(now);
        if now < swept.plus(SWEEP) || !self.is_base_synced() || !self.remembers_former {
            return;
        }
        self.named_kinds.swept = Some(now);
        let unused: Vec<Gvk> = self
            .kinds
            .iter()
            .filter(|gvk| self.is_unused(gvk))
            .cloned()
            .collect();
        for gvk in unused {
            self.end_kind(&gvk, now, dirty);
        }
    }

    /// Whether no policy names the kind, and nothing of it is propagated, claimed or referred to, as far as the hub and the
    /// members tell: what is not known is taken for in use.
    fn is_unused(&self, gvk: &Gvk) -> bool {
        if self.named_kinds.all.contains_key(gvk)
            || self.is_counted_by_workload(gvk)
            || self.is_selected_by_labels(gvk)
        {
            return false;
        }
        let templates = self.templates(gvk);
        if !self.watches.is_synced(&templates) && !self.watches.is_unserved(&templates) {
            return false;
        }
        let mut of_kind = self
            .resources
            .range(ResourceId::new(gvk.clone(), "", "")..)
            .take_while(|(id, _)| id.gvk == *gvk)
            .peekable();
        if of_kind.peek().is_none() && self.watches.is_no_such_kind(&templates) {
            return true;
        }
        let is_told = |cluster: &Str| {
            let copies = self.copies(cluster, gvk);
            self.watches.is_synced(&copies) || self.watches.is_unserved(&copies)
        };
        self.members.keys().all(is_told) && of_kind.all(|(_, resource)| !is_used(resource))
    }

    /// Whether a distribution goes where there are workloads of this kind.
    fn is_counted_by_workload(&self, gvk: &Gvk) -> bool {
        !self.distributions.by_workload.is_empty() && workload_kinds().contains(gvk)
    }

    /// Whether a template takes objects of this kind along by their labels: there may be none yet.
    fn is_selected_by_labels(&self, gvk: &Gvk) -> bool {
        let mut from = self.selectors.range((gvk.clone(), Str::from(""))..);
        from.next().is_some_and(|((selected, _), _)| selected == gvk)
    }

    fn end_kind(&mut self, gvk: &Gvk, now: Time, dirty: &mut Vec<Key>) {
        let templates = self.templates(gvk);
        // Should the very same objects be listed again one day, they are news.
        self.went_back(&templates);
        self.forget_held(&templates, now, dirty);
        let first = ResourceId::new(gvk.clone(), "", "");
        let of_kind = self.resources.range(first.clone()..).map(|(id, _)| id);
        let of_kind: Vec<ResourceId> = of_kind.take_while(|id| id.gvk == *gvk).cloned().collect();
        for id in of_kind {
            self.forget_if_empty(&id, now);
        }
        if self
            .resources
            .range(first..)
            .next()
            .is_some_and(|(id, _)| id.gvk == *gvk)
        {
            // Something still holds an object of it; what was forgotten is listed again.
            self.watches.restart(templates);
            return;
        }
        let copies = self.members.keys().map(|cluster| self.copies(cluster, gvk));
        let watches: Vec<Watch> = copies.chain([templates]).collect();
        for watch in watches {
            self.watches.forget(&watch);
        }
        self.read_again.remove(gvk);
        self.kinds.remove(gvk);
    }
}

/// Whether something of an object is to be known still.
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
    claimed
        || on_members
        || resource.binding.is_some()
        || resource.vanished.is_some()
        || !resource.referrers.is_empty()
        || !resource.stale_referrers.is_empty()
        || !resource.stale_dependencies.is_empty()
}

pub(crate) fn selected_kinds(policy: &PropagationPolicy) -> BTreeSet<Gvk> {
    policy
        .spec
        .resource_selectors
        .iter()
        .map(|each| Gvk::new(&each.api_version, &each.kind))
        .collect()
}
