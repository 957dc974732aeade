//! Label selectors: validation and matching.
//!
//! Source: the Kubernetes API reference for LabelSelector and for the syntax of label keys and values.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

use crate::object::StrMap;

/// The longest name part of a label key, and the longest label value.
const LONGEST_NAME: usize = 63;

/// The longest prefix of a label key, and the longest part of it between two dots.
const LONGEST_PREFIX: usize = 253;

/// True if every requirement of the selector holds for these labels. An empty selector matches all labels; one that [`check`]
/// refuses matches none. An absent key satisfies `NotIn` and `DoesNotExist`.
#[must_use]
pub fn matches(selector: &LabelSelector, labels: &StrMap) -> bool {
    check(selector).is_ok()
        && selector
            .match_labels
            .iter()
            .flatten()
            .all(|(key, value)| is_labelled(labels, key, value))
        && selector
            .match_expressions
            .iter()
            .flatten()
            .all(|requirement| holds(requirement, labels))
}

/// Succeeds if an API server accepts the selector.
///
/// # Errors
/// The invalid requirement and the cause, such as `matchExpressions[0] "zone" In: give at least one value`.
pub fn check(selector: &LabelSelector) -> Result<(), String> {
    for (key, value) in selector.match_labels.iter().flatten() {
        let at = |why: String| format!("matchLabels {key:?}: {why}");
        check_key(key).map_err(at)?;
        check_value(value).map_err(at)?;
    }
    for (position, requirement) in selector.match_expressions.iter().flatten().enumerate() {
        check_requirement(requirement).map_err(|why| {
            format!(
                "matchExpressions[{position}] {:?} {}: {why}",
                requirement.key, requirement.operator
            )
        })?;
    }
    Ok(())
}

fn is_labelled(labels: &StrMap, key: &str, value: &str) -> bool {
    labels.get(key).is_some_and(|found| **found == *value)
}

fn holds(requirement: &LabelSelectorRequirement, labels: &StrMap) -> bool {
    let found = labels.get(requirement.key.as_str());
    let is_listed = || {
        let values = requirement.values.iter().flatten();
        found.is_some_and(|found| values.into_iter().any(|value| **found == **value))
    };
    match requirement.operator.as_str() {
        "In" => is_listed(),
        "NotIn" => !is_listed(),
        "Exists" => found.is_some(),
        "DoesNotExist" => found.is_none(),
        _ => false,
    }
}

fn check_requirement(requirement: &LabelSelectorRequirement) -> Result<(), String> {
    check_key(&requirement.key)?;
    let values = requirement.values.as_deref().unwrap_or_default();
    match requirement.operator.as_str() {
        "In" | "NotIn" if values.is_empty() => Err("give at least one value".into()),
        "In" | "NotIn" => values
            .iter()
            .try_for_each(|value| check_value(value).map_err(|why| format!("{value:?}: {why}"))),
        "Exists" | "DoesNotExist" if !values.is_empty() => Err("this operator takes no values".into()),
        "Exists" | "DoesNotExist" => Ok(()),
        _ => Err("the operators are In, NotIn, Exists and DoesNotExist".into()),
    }
}

/// Succeeds if a text is a valid label key.
///
/// # Errors
/// The form of a valid key.
pub fn check_key(key: &str) -> Result<(), String> {
    let (prefix, name) = key
        .split_once('/')
        .map_or((None, key), |(prefix, name)| (Some(prefix), name));
    if let Some(prefix) = prefix
        && !is_dns_subdomain(prefix)
    {
        return Err(format!(
            "the part of a label key before the slash is a DNS name of at most {LONGEST_PREFIX} characters"
        ));
    }
    if !is_label_name(name) {
        return Err(format!(
            "the name in a label key is 1 to {LONGEST_NAME} letters, digits, '-', '_' and '.', and begins and ends \
             with a letter or digit"
        ));
    }
    Ok(())
}

/// Succeeds if a text is a valid label value.
///
/// # Errors
/// The form of a valid value; the error does not contain the text.
pub fn check_value(value: &str) -> Result<(), String> {
    if value.is_empty() || is_label_name(value) {
        return Ok(());
    }
    Err(format!(
        "a label value is at most {LONGEST_NAME} letters, digits, '-', '_' and '.', and begins and ends with a letter \
         or digit"
    ))
}

fn is_label_name(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() <= LONGEST_NAME
        && bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
        && bytes
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
}

/// True if a text is a valid name of most objects.
pub fn is_dns_subdomain(text: &str) -> bool {
    let is_edge = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    text.len() <= LONGEST_PREFIX
        && text.split('.').all(|part| {
            let bytes = part.as_bytes();
            bytes.first().is_some_and(is_edge)
                && bytes.last().is_some_and(is_edge)
                && bytes.iter().all(|byte| is_edge(byte) || *byte == b'-')
        })
}

#[cfg(test)]
mod tests;
