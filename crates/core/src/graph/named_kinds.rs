//! The kinds that policies select, and the limit on those that the policies of one namespace may put in use.

use std::collections::{BTreeMap, BTreeSet};

use entourage_api::policy::PropagationPolicy;

use crate::object::{Gvk, Str, Time};

/// The kinds that policies name.
#[derive(Clone, Debug, Default)]
pub(crate) struct NamedKinds {
    /// The number of policies that name a kind.
    all: BTreeMap<Gvk, usize>,
    /// By namespace, those that are not built into Kubernetes.
    tenants: BTreeMap<Str, Tenant>,
    /// The time of the last search for kinds that are no longer in use.
    pub(crate) swept: Option<Time>,
}

impl NamedKinds {
    /// A policy of the namespace selects the kind. Returns true if that puts it in use. `limit`: the number of kinds that the
    /// policies of the namespace may put in use, if the kind counts.
    pub(crate) fn add(&mut self, namespace: &Str, gvk: &Gvk, limit: Option<usize>) -> bool {
        *self.all.entry(gvk.clone()).or_default() += 1;
        let Some(limit) = limit else { return true };
        self.tenants.entry(namespace.clone()).or_default().add(gvk, limit)
    }

    /// A policy of the namespace no longer selects the kind. Returns the kind that is put in use because there is room now.
    pub(crate) fn remove(&mut self, namespace: &Str, gvk: &Gvk) -> Option<Gvk> {
        less(&mut self.all, gvk);
        let tenant = self.tenants.get_mut(namespace)?;
        let next = tenant.remove(gvk);
        if tenant.admitted.is_empty() && tenant.refused.is_empty() {
            self.tenants.remove(namespace);
        }
        next
    }

    /// True if a policy selects the kind.
    pub(crate) fn is_named(&self, gvk: &Gvk) -> bool {
        self.all.contains_key(gvk)
    }

    /// True if the kind is not in use because the policies of the namespace select too many.
    pub(crate) fn is_refused(&self, namespace: &str, gvk: &Gvk) -> bool {
        let tenant = self.tenants.get(namespace);
        tenant.is_some_and(|tenant| tenant.refused.contains_key(gvk))
    }
}

#[derive(Clone, Debug, Default)]
struct Tenant {
    /// In use: the number of policies of the namespace that name it.
    admitted: BTreeMap<Gvk, usize>,
    /// Over the limit.
    refused: BTreeMap<Gvk, usize>,
}

impl Tenant {
    /// Returns true if the kind is in use.
    fn add(&mut self, gvk: &Gvk, limit: usize) -> bool {
        let is_new = !self.admitted.contains_key(gvk);
        let of_them = match is_new && (self.refused.contains_key(gvk) || self.admitted.len() >= limit) {
            true => &mut self.refused,
            false => &mut self.admitted,
        };
        *of_them.entry(gvk.clone()).or_default() += 1;
        !self.refused.contains_key(gvk)
    }

    /// Returns the kind that is put in use because there is room now.
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

/// Counts one less of a kind. Returns true if that was the last.
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

/// The kinds that a policy selects.
pub(crate) fn selected_kinds(policy: &PropagationPolicy) -> BTreeSet<Gvk> {
    policy
        .spec
        .resource_selectors
        .iter()
        .map(|each| Gvk::new(&each.api_version, &each.kind))
        .collect()
}
