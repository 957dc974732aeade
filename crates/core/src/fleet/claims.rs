//! Claims: the policy that has claimed a template, those that select it, and the one that should claim it.

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

/// True if an object carries the claim of a policy that is deleted or being deleted; `None` while that is not known. Cost:
/// O(log policies).
pub(crate) fn is_claim_over(fleet: &Fleet, claimant: Option<NamespacedName>) -> Option<bool> {
    let Some(name) = claimant else {
        return Some(false);
    };
    match fleet.cache.policies.get(&name) {
        Some(policy) => Some(policy.meta.deleting.is_some()),
        None => fleet.is_base_synced().then_some(true),
    }
}

/// The names in a policy's `dependentOverrides` without an OverridePolicy in its namespace (for a ClusterPropagationPolicy:
/// without a ClusterOverridePolicy). While there are any, no binding is created or changed for the policy (karmada reference
/// 1.1). Cost: O(names).
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

/// The policies that may select a template, without templates of the system and policies that are being deleted.
pub(crate) fn candidates<'a>(
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

/// True if any policy selects a template, so that it is claimed now or soon; no policy claims an object that another component
/// has claimed, see [`crate::detector`]. Cost: O(candidate policies).
pub(crate) fn is_selected(fleet: &Fleet, id: &ResourceId, template: &Meta) -> bool {
    template.label(label::CLAIMED_BY).is_none() && best(fleet, id, template).is_some()
}

/// The policy with the best match for a template. Cost: O(candidate policies).
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

/// The policy that preempts the one that has claimed a template: it has `preemption: Always`, and is a PropagationPolicy while
/// the other one is a ClusterPropagationPolicy, or is of the same kind with a higher priority. At equal priority the claim
/// stays. Computed from the current state, so a priority that was lowered while no process watched counts as well (karmada
/// reference 1.1). Cost: O(candidate policies).
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

/// The policy that should have claimed a template and has not, see [`crate::detector`]. Cost: O(candidate policies).
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
