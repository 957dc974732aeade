//! The record on a copy of the rules that were applied to it: two annotations, as Karmada writes them.

use std::sync::Arc;

use entourage_api::{
    keys::annotation,
    policy::{Overriders, PatchOperation},
};
use serde::Serialize;
use serde_json::Value;

use super::Rule;
use entourage_model::object::{ResourceId, Str};

/// The longest text of one annotation, in bytes; an API server accepts 256 KiB for all annotations of an object together. A
/// longer record names the policies only.
pub const RECORD_LIMIT: usize = 64 * 1024;

/// One entry of an annotation, with its fields in Karmada's order.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry<'a> {
    policy_name: &'a str,
    overriders: &'a Overriders,
}

/// The annotations of a copy that record the applied rules: key and JSON, none if no rule was applied. Entries are sorted by
/// the policy's name. On a Secret the values of plaintext and field overriders are null: no annotation contains values of a
/// Secret.
///
/// Cost: O(size of the rules).
#[must_use]
pub fn records(rules: &[Arc<Rule>], id: &ResourceId) -> Vec<(&'static str, Str)> {
    let scopes = [
        (annotation::APPLIED_CLUSTER_OVERRIDES, true),
        (annotation::APPLIED_OVERRIDES, false),
    ];
    let mut records = Vec::new();
    for (key, cluster_wide) in scopes {
        let mut rules: Vec<&Rule> = rules
            .iter()
            .map(|rule| &**rule)
            .filter(|rule| rule.is_cluster_wide() == cluster_wide)
            .collect();
        if rules.is_empty() {
            continue;
        }
        rules.sort_by(|one, other| one.policy.name.cmp(&other.policy.name));
        let shown = |rule: &&Rule| match may_hold_secret(id) {
            true => rule.record_for_secrets.clone(),
            false => rule.record.clone(),
        };
        let mut entries: Vec<String> = rules.iter().map(shown).collect();
        if entries.iter().map(String::len).sum::<usize>() > RECORD_LIMIT {
            let named = |rule: &&Rule| entry(&rule.policy.name, &Overriders::default());
            entries = rules.iter().map(named).collect();
        }
        records.push((key, format!("[{}]", entries.join(",")).into()));
    }
    records
}

/// True if an object is a Secret.
pub(super) fn is_secret(id: &ResourceId) -> bool {
    id.gvk.group.is_empty() && *id.gvk.kind == *"Secret"
}

/// True if an object may contain a Secret's values. A distribution may contain a Secret.
fn may_hold_secret(id: &ResourceId) -> bool {
    is_secret(id) || *id.gvk.kind == *entourage_model::kinds::DISTRIBUTION
}

/// The JSON of one entry. Like Karmada's it is escaped for HTML.
pub(super) fn entry(policy_name: &str, overriders: &Overriders) -> String {
    let entry = Entry {
        policy_name,
        overriders,
    };
    let mut text = serde_json::to_string(&entry).unwrap_or_default();
    // In JSON these characters occur within strings only.
    for (plain, escaped) in [
        ('<', "\\u003c"),
        ('>', "\\u003e"),
        ('&', "\\u0026"),
        ('\u{2028}', "\\u2028"),
        ('\u{2029}', "\\u2029"),
    ] {
        if text.contains(plain) {
            text = text.replace(plain, escaped);
        }
    }
    text
}

/// The overriders without the values that they set.
pub(super) fn without_values(overriders: &Overriders) -> Overriders {
    let mut bare = overriders.clone();
    for each in &mut bare.plaintext {
        each.value = Value::Null;
    }
    let operations = |each: &mut PatchOperation| each.value = Value::Null;
    for each in &mut bare.field_overrider {
        each.json.iter_mut().chain(&mut each.yaml).for_each(operations);
    }
    bare
}
