//! Selection of the rules that apply to a copy, and their order.

use std::sync::Arc;

use entourage_api::policy::ResourceSelector;

use super::{Policy, Rule, Rules, apply_to_metadata};
use entourage_model::{
    object::{NamespacedName, ResourceId, StrMap},
    selector,
};
use entourage_scheduler::Candidate;

/// The policies that may apply to an object: those that select its kind or every kind.
#[derive(Clone, Debug, Default)]
pub struct Candidates<'a> {
    /// ClusterOverridePolicies, in any order.
    pub cluster_wide: Vec<(&'a NamespacedName, &'a Policy)>,
    /// OverridePolicies of the object's namespace, in any order; those of another namespace are ignored.
    pub of_namespace: Vec<(&'a NamespacedName, &'a Policy)>,
}

/// The specificity of a selector. Of two policies the more specific one is applied later and wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Specificity {
    All,
    Labels,
    Name,
}

/// The rules that apply to the copy of an object on a cluster, in the order in which they are applied.
///
/// OverridePolicies are matched with the labels that the ClusterOverridePolicies leave on the object, as in Karmada.
///
/// Cost: O(candidates × their selectors and rules).
#[must_use]
pub fn select(
    candidates: &Candidates<'_>,
    id: &ResourceId,
    labels: &StrMap,
    cluster: &Candidate<'_>,
) -> Rules {
    let mut rules = of_scope(&candidates.cluster_wide, id, labels, cluster);
    if id.namespace.is_empty() || candidates.of_namespace.is_empty() {
        return rules.into();
    }
    let (mut labels, mut annotations) = (labels.clone(), StrMap::new());
    // A rule that cannot be applied fails the copy: then it does not matter which other rules would apply.
    let _ = apply_to_metadata(&rules, cluster.name, &mut labels, &mut annotations);
    let own: Vec<_> = candidates
        .of_namespace
        .iter()
        .copied()
        .filter(|(name, _)| name.namespace == id.namespace)
        .collect();
    rules.extend(of_scope(&own, id, &labels, cluster));
    rules.into()
}

fn of_scope(
    policies: &[(&NamespacedName, &Policy)],
    id: &ResourceId,
    labels: &StrMap,
    cluster: &Candidate<'_>,
) -> Vec<Arc<Rule>> {
    let mut matching: Vec<(Specificity, &NamespacedName, &Policy)> = policies
        .iter()
        .filter_map(|(name, policy)| Some((specificity(policy, id, labels)?, *name, *policy)))
        .collect();
    matching.sort_by_key(|(specificity, name, _)| (*specificity, *name));
    matching
        .iter()
        .flat_map(|(_, _, policy)| &policy.rules)
        .filter(|aimed| aimed.is_for(cluster))
        .map(|aimed| aimed.rule_for(id).clone())
        .collect()
}

/// The specificity with which a policy selects an object; `None` if it does not.
fn specificity(policy: &Policy, id: &ResourceId, labels: &StrMap) -> Option<Specificity> {
    if policy.selectors.is_empty() {
        return Some(Specificity::All);
    }
    policy
        .selectors
        .iter()
        .filter(|selector| is_of_kind(selector, id))
        .filter(|selector| selector.namespace.is_empty() || *selector.namespace == *id.namespace)
        .filter_map(|selector| match &selector.label_selector {
            _ if !selector.name.is_empty() => (*selector.name == *id.name).then_some(Specificity::Name),
            None => Some(Specificity::All),
            Some(wanted) => selector::matches(wanted, labels).then_some(Specificity::Labels),
        })
        .max()
}

fn is_of_kind(selector: &ResourceSelector, id: &ResourceId) -> bool {
    let (group, _) = selector
        .api_version
        .split_once('/')
        .unwrap_or(("", &selector.api_version));
    *id.gvk.kind == *selector.kind && *id.gvk.group == *group
}
