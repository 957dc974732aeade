//! Which policy selects a template, and which of several wins.
//!
//! Source: Karmada reference 1.1 (priority among matches) and 6.2 (what admission refuses).

use std::collections::BTreeMap;

use entourage_api::policy::{PropagationSpec, ResourceSelector};

use crate::{
    interpreter::{NATIVE, native},
    object::{Gvk, Id, Named, Str},
    selector,
};

/// How exactly a selector means a template; the greater one wins between policies of one priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Specificity {
    /// By its kind alone.
    Kind,
    /// By its labels.
    Labels,
    /// By its name.
    Name,
}

/// How exactly a PropagationPolicy of `policy_namespace` selects a template with these labels: its best matching
/// selector counts. `None` if it does not select it. A selector with a name ignores its labelSelector.
#[must_use]
pub fn selects(
    spec: &PropagationSpec,
    policy_namespace: &str,
    id: &Id,
    labels: &BTreeMap<Str, Str>,
) -> Option<Specificity> {
    if *id.namespace != *policy_namespace {
        return None;
    }
    spec.resource_selectors
        .iter()
        .filter(|selector| selector.namespace.is_empty() || selector.namespace == policy_namespace)
        .filter(|selector| is_of_kind(selector, &id.gvk))
        .filter_map(|selector| specificity(selector, &id.name, labels))
        .max()
}

/// The policy among `candidates` that a template belongs to, or `None` if none selects it. The order: higher
/// `spec.priority`, then greater [`Specificity`], then smaller name.
pub fn best<'a>(
    candidates: impl Iterator<Item = (&'a Named, &'a PropagationSpec)>,
    id: &Id,
    labels: &BTreeMap<Str, Str>,
) -> Option<&'a Named> {
    candidates
        .filter_map(|(policy, spec)| {
            let specificity = selects(spec, &policy.namespace, id, labels)?;
            Some((spec.priority, specificity, policy))
        })
        .max_by(|one, other| {
            // The names are compared the other way round: the smaller one wins.
            (one.0, one.1)
                .cmp(&(other.0, other.1))
                .then_with(|| other.2.cmp(one.2))
        })
        .map(|(_, _, policy)| policy)
}

/// Whether what a PropagationPolicy of `policy_namespace` selects can be propagated.
///
/// # Errors
/// Which selector cannot be used, why, and what to write instead.
pub fn check(spec: &PropagationSpec, policy_namespace: &str) -> Result<(), String> {
    if spec.resource_selectors.is_empty() {
        return Err(
            "spec.resourceSelectors is empty: nothing is selected; name the kinds to propagate".into(),
        );
    }
    for (position, selector) in spec.resource_selectors.iter().enumerate() {
        check_selector(selector, policy_namespace)
            .map_err(|why| format!("spec.resourceSelectors[{position}]{why}"))?;
    }
    Ok(())
}

/// Whether nothing is propagated out of this namespace: `kube-*`, `karmada-system`, `karmada-cluster` and
/// `karmada-es-*` belong to the system. Source: Karmada reference 1.1.
#[must_use]
pub fn is_skipped_namespace(namespace: &str) -> bool {
    const NAMES: [&str; 2] = ["karmada-system", "karmada-cluster"];
    const PREFIXES: [&str; 2] = ["kube-", "karmada-es-"];
    NAMES.contains(&namespace) || PREFIXES.iter().any(|prefix| namespace.starts_with(prefix))
}

fn is_of_kind(selector: &ResourceSelector, gvk: &Gvk) -> bool {
    let (group, version) = split(&selector.api_version);
    *gvk.kind == *selector.kind && *gvk.group == *group && *gvk.version == *version
}

fn specificity(selector: &ResourceSelector, name: &str, labels: &BTreeMap<Str, Str>) -> Option<Specificity> {
    if !selector.name.is_empty() {
        return (selector.name == name).then_some(Specificity::Name);
    }
    match &selector.label_selector {
        None => Some(Specificity::Kind),
        Some(wanted) => selector::matches(wanted, labels).then_some(Specificity::Labels),
    }
}

fn check_selector(selector: &ResourceSelector, policy_namespace: &str) -> Result<(), String> {
    if !selector.namespace.is_empty() && selector.namespace != policy_namespace {
        return Err(format!(
            ".namespace: {:?} is not the policy's own; a PropagationPolicy selects only in its namespace {:?}: \
             leave the field out, or make a policy there",
            selector.namespace, policy_namespace
        ));
    }
    let (group, version) = split(&selector.api_version);
    if native(group, version, &selector.kind).is_none() {
        return Err(format!(
            ": {} {} is not propagated by this version; the kinds that are: {}",
            or_nothing(&selector.api_version),
            or_nothing(&selector.kind),
            supported()
        ));
    }
    match &selector.label_selector {
        Some(wanted) if selector.name.is_empty() => {
            selector::check(wanted).map_err(|why| format!(".labelSelector: {why}"))
        }
        _ => Ok(()),
    }
}

/// Group and version of an `apiVersion`.
fn split(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}

fn or_nothing(text: &str) -> &str {
    if text.is_empty() { "\"\"" } else { text }
}

fn supported() -> String {
    let kinds: Vec<String> = NATIVE
        .iter()
        .map(|native| {
            let gvk = native.gvk();
            let slash = if gvk.group.is_empty() { "" } else { "/" };
            format!("{}{slash}{} {}", gvk.group, gvk.version, gvk.kind)
        })
        .collect();
    kinds.join(", ")
}

#[cfg(test)]
mod tests;
