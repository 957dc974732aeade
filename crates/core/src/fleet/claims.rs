//! Claims: which policy holds a template, which selects it, and which should hold it.

use std::collections::BTreeSet;

use entourage_api::{keys::label, policy::Preemption};

use crate::{
    cache::Policy,
    fleet::Fleet,
    matching,
    object::{Meta, NamespacedName, ResourceId},
    scope::{self, claim_of},
};

/// The policy whose claim on a template is valid: named by its annotations, with the same permanent id, not being
/// deleted, and still selecting it. Cost: O(selectors of the policy).
pub(crate) fn claimed_by<'a>(
    fleet: &'a Fleet,
    id: &ResourceId,
    template: &Meta,
) -> Option<(&'a NamespacedName, &'a Policy)> {
    let claim = claim_of(template)?;
    let (name, policy) = fleet.cache.policies.get_key_value(&claim)?;
    let id_label = scope::policy(name).id_label;
    let permanent_id = policy.meta.label(id_label)?;
    let valid = template.label(id_label) == Some(permanent_id)
        && policy.meta.deleting.is_none()
        && matching::selects(&policy.object.spec, &name.namespace, id, &template.labels).is_some();
    valid.then_some((name, policy))
}

/// Whether an object carries the claim of a policy that is gone, or is being deleted; `None` while that is not known.
/// Cost: O(log policies).
pub(crate) fn is_claim_over(fleet: &Fleet, meta: &Meta) -> Option<bool> {
    let Some(name) = scope::claim_of(meta) else {
        return Some(false);
    };
    match fleet.cache.policies.get(&name) {
        Some(policy) => Some(policy.meta.deleting.is_some()),
        None => fleet.is_base_synced().then_some(true),
    }
}

/// The names in a policy's `dependentOverrides` that no OverridePolicy of its namespace has (for a
/// ClusterPropagationPolicy: no ClusterOverridePolicy). While there are any, no binding is made or changed by the policy
/// (karmada reference 1.1). Cost: O(names).
pub(crate) fn missing_overrides<'a>(
    fleet: &Fleet,
    name: &NamespacedName,
    policy: &'a Policy,
) -> Vec<&'a str> {
    let named = policy.object.spec.dependent_overrides.iter();
    named
        .map(String::as_str)
        .filter(|each| {
            !fleet
                .graph
                .override_index
                .contains(&NamespacedName::new(&name.namespace, each))
        })
        .collect()
}

/// The policies that select a template, leaving policies and templates of the system aside.
fn candidates<'a>(
    fleet: &'a Fleet,
    id: &'a ResourceId,
    meta: &'a Meta,
) -> impl Iterator<Item = (&'a NamespacedName, &'a Policy)> {
    let names = if fleet.config.is_skipped(id) {
        BTreeSet::new()
    } else {
        fleet.graph.policy_index.candidates(id, &meta.labels)
    };
    names
        .into_iter()
        .filter_map(|name| fleet.cache.policies.get_key_value(name))
        .filter(|(_, policy)| policy.meta.deleting.is_none())
}

/// Whether any policy selects a template, so that one claims it now or in a moment: none claims what something else says that
/// it has claimed, see [`crate::detector`]. Cost: O(candidate policies).
pub(crate) fn is_selected(fleet: &Fleet, id: &ResourceId, template: &Meta) -> bool {
    template.label(label::CLAIMED_BY).is_none() && best(fleet, id, template).is_some()
}

/// The policy that selects a template best. Cost: O(candidate policies).
pub(crate) fn best<'a>(
    fleet: &'a Fleet,
    id: &ResourceId,
    meta: &Meta,
) -> Option<(&'a NamespacedName, &'a Policy)> {
    let all: Vec<_> = candidates(fleet, id, meta)
        .map(|(name, _)| name.clone())
        .collect();
    let specs = all
        .iter()
        .filter_map(|name| fleet.cache.policies.get_key_value(name))
        .map(|(name, policy)| (name, &policy.object.spec));
    let best = matching::best(specs, id, &meta.labels)?;
    fleet.cache.policies.get_key_value(best)
}

/// The policy that takes a template over from the one that holds it: it says `preemption: Always`, and is a
/// PropagationPolicy where the holder is a ClusterPropagationPolicy, or a twin of the holder with a higher priority.
/// Between equal priorities the holder keeps it. Computed from what is there now, so a priority that was lowered while
/// nobody watched counts as well (karmada reference 1.1). Cost: O(candidate policies).
pub(crate) fn preemptor<'a>(
    fleet: &'a Fleet,
    id: &ResourceId,
    meta: &Meta,
    (holder, held): (&NamespacedName, &Policy),
) -> Option<(&'a NamespacedName, &'a Policy)> {
    let is_own = |name: &NamespacedName| !name.namespace.is_empty();
    let stronger: Vec<NamespacedName> = candidates(fleet, id, meta)
        .filter(|(name, policy)| {
            let spec = &policy.object.spec;
            *name != holder
                && spec.preemption == Preemption::Always
                && policy.meta.label(scope::policy(name).id_label).is_some()
                && match (is_own(name), is_own(holder)) {
                    (true, false) => true,
                    (false, true) => false,
                    _ => spec.priority > held.object.spec.priority,
                }
        })
        .map(|(name, _)| name.clone())
        .collect();
    let specs = stronger
        .iter()
        .filter_map(|name| fleet.cache.policies.get_key_value(name))
        .map(|(name, policy)| (name, &policy.object.spec));
    let best = matching::best(specs, id, &meta.labels)?;
    fleet.cache.policies.get_key_value(best)
}

/// The policy that should hold a template and does not, see [`crate::detector`]. Cost: O(candidate policies).
pub(crate) fn lacks_claim<'a>(fleet: &'a Fleet, id: &ResourceId) -> Option<&'a NamespacedName> {
    let template = fleet
        .resource(id)
        .and_then(|resource| resource.template.as_ref())?;
    let meta = &template.meta;
    if meta.deleting.is_some() || meta.label(label::CLAIMED_BY).is_some() {
        return None;
    }
    let wanted = match claimed_by(fleet, id, meta) {
        Some(holder) => preemptor(fleet, id, meta, holder),
        None => best(fleet, id, meta),
    };
    wanted.map(|(name, _)| name)
}
