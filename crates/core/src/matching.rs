//! The policies that select a template, and the one of them that claims it.
//!
//! Source: Karmada reference 1.1 (priority among matches) and 6.2 (what admission refuses).

use std::collections::BTreeSet;

use entourage_api::policy::{PropagationSpec, ResourceSelector};

use crate::{
    object::{Gvk, NamespacedName, ResourceId, StrMap},
    reserved::{is_event, is_skipped_kind},
    selector,
};

/// The specificity of a selector for a template; the greater one wins between policies of one priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Specificity {
    /// By its kind alone.
    Kind,
    /// By its labels.
    Labels,
    /// By its name.
    Name,
}

/// The specificity with which a policy of `policy_namespace` selects a template with these labels: its best matching selector
/// counts. `None` if it does not select it. A selector with a name ignores its labelSelector.
///
/// A PropagationPolicy selects in its own namespace only. A ClusterPropagationPolicy (`policy_namespace` is empty)
/// selects cluster-scoped templates, and those of the selector's namespace, or of every one.
#[must_use]
pub fn selects(
    spec: &PropagationSpec,
    policy_namespace: &str,
    id: &ResourceId,
    labels: &StrMap,
) -> Option<Specificity> {
    in_reach(spec, policy_namespace, id)
        .filter_map(|selector| specificity(selector, &id.name, labels))
        .max()
}

/// The specificities with which a policy of `policy_namespace` could select a template, whatever labels it has. Empty if it
/// cannot.
#[must_use]
pub fn may_select(spec: &PropagationSpec, policy_namespace: &str, id: &ResourceId) -> BTreeSet<Specificity> {
    let specificities = in_reach(spec, policy_namespace, id).filter_map(|selector| {
        let by_labels = selector.name.is_empty() && selector.label_selector.is_some();
        if by_labels {
            Some(Specificity::Labels)
        } else {
            specificity(selector, &id.name, &StrMap::new())
        }
    });
    specificities.collect()
}

/// True if a policy of `policy_namespace` has a selector for the kind and the namespace of a template, whatever names and labels it selects.
#[must_use]
pub fn is_in_reach(spec: &PropagationSpec, policy_namespace: &str, id: &ResourceId) -> bool {
    in_reach(spec, policy_namespace, id).next().is_some()
}

/// The selectors for the kind and the namespace of a template.
fn in_reach<'a>(
    spec: &'a PropagationSpec,
    policy_namespace: &str,
    id: &'a ResourceId,
) -> impl Iterator<Item = &'a ResourceSelector> {
    let is_near = policy_namespace.is_empty() || *id.namespace == *policy_namespace;
    spec.resource_selectors
        .iter()
        .filter(move |_| is_near)
        .filter(|selector| selector.namespace.is_empty() || *selector.namespace == *id.namespace)
        .filter(|selector| is_of_kind(selector, &id.gvk))
}

/// The policy among `candidates` that claims a template, or `None` if none selects it. The order: a PropagationPolicy before a
/// ClusterPropagationPolicy, higher `spec.priority`, greater [`Specificity`], smaller name.
pub fn best<'a>(
    candidates: impl Iterator<Item = (&'a NamespacedName, &'a PropagationSpec)>,
    id: &ResourceId,
    labels: &StrMap,
) -> Option<&'a NamespacedName> {
    candidates
        .filter_map(|(policy, spec)| Some((rank((policy, spec), id, labels)?, policy)))
        .max_by(|one, other| {
            // The names are compared in reverse: the smaller one wins.
            one.0.cmp(&other.0).then_with(|| other.1.cmp(one.1))
        })
        .map(|(_, policy)| policy)
}

/// The rank of a policy among those that select a template; `None` if it does not select it.
fn rank(
    (policy, spec): (&NamespacedName, &PropagationSpec),
    id: &ResourceId,
    labels: &StrMap,
) -> Option<(bool, i32, Specificity)> {
    let specificity = selects(spec, &policy.namespace, id, labels)?;
    Some((!policy.namespace.is_empty(), spec.priority, specificity))
}

/// The rule by which a policy comes before another one that selects the same template, see [`best`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precedence {
    /// It is a PropagationPolicy, and the other one a ClusterPropagationPolicy.
    Scope,
    /// Its `spec.priority` is higher.
    Priority,
    /// It selects the template more specifically.
    Specificity,
    /// Its name is smaller.
    Name,
}

/// The rule by which `one` comes before `other`; `None` if it does not, or one of them does not select the template.
#[must_use]
pub fn precedence(
    one: (&NamespacedName, &PropagationSpec),
    other: (&NamespacedName, &PropagationSpec),
    id: &ResourceId,
    labels: &StrMap,
) -> Option<Precedence> {
    let (own, than) = (rank(one, id, labels)?, rank(other, id, labels)?);
    let steps = [
        (own.0.cmp(&than.0), Precedence::Scope),
        (own.1.cmp(&than.1), Precedence::Priority),
        (own.2.cmp(&than.2), Precedence::Specificity),
        (other.0.cmp(one.0), Precedence::Name),
    ];
    let (order, rule) = steps.into_iter().find(|(order, _)| order.is_ne())?;
    order.is_gt().then_some(rule)
}

/// Checks that the resources a policy of `policy_namespace` (empty for a ClusterPropagationPolicy) selects can be propagated.
///
/// # Errors
/// The invalid selector, the cause, and what to write instead.
pub fn check(spec: &PropagationSpec, policy_namespace: &str) -> Result<(), String> {
    if spec.resource_selectors.is_empty() {
        return Err(
            "spec.resourceSelectors is empty: no resource matches; name the kinds to propagate".into(),
        );
    }
    for (position, selector) in spec.resource_selectors.iter().enumerate() {
        check_selector(selector, policy_namespace)
            .map_err(|why| format!("spec.resourceSelectors[{position}]{why}"))?;
    }
    Ok(())
}

fn is_of_kind(selector: &ResourceSelector, gvk: &Gvk) -> bool {
    *gvk == Gvk::new(&selector.api_version, &selector.kind)
}

fn specificity(selector: &ResourceSelector, name: &str, labels: &StrMap) -> Option<Specificity> {
    if !selector.name.is_empty() {
        return (selector.name == name).then_some(Specificity::Name);
    }
    match &selector.label_selector {
        None => Some(Specificity::Kind),
        Some(wanted) => selector::matches(wanted, labels).then_some(Specificity::Labels),
    }
}

fn check_selector(selector: &ResourceSelector, policy_namespace: &str) -> Result<(), String> {
    if !policy_namespace.is_empty()
        && !selector.namespace.is_empty()
        && selector.namespace != policy_namespace
    {
        return Err(format!(
            ".namespace: {:?} is not the policy's own; a PropagationPolicy selects only in its namespace {:?}: \
             leave the field out, or make a policy there",
            selector.namespace, policy_namespace
        ));
    }
    if selector.kind.is_empty() || selector.api_version.is_empty() {
        return Err(": apiVersion and kind must both be given".into());
    }
    let gvk = Gvk::new(&selector.api_version, &selector.kind);
    if is_event(&gvk) {
        return Err(": Events belong to one cluster and are never propagated: remove the selector".into());
    }
    if is_skipped_kind(&gvk) {
        return Err(format!(
            ": {} {} belongs to the control plane and is never propagated: remove the selector",
            selector.api_version, selector.kind
        ));
    }
    match &selector.label_selector {
        Some(wanted) if selector.name.is_empty() => {
            selector::check(wanted).map_err(|why| format!(".labelSelector: {why}"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
