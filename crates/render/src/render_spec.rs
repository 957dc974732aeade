//! The inputs of a rendering as data, and the version of its result.

use std::{collections::BTreeMap, fmt::Write as _};

use serde::Serialize;
use sha2::{Digest, Sha256};

use entourage_interpreter::Interpretation;
use entourage_model::object::{Meta, NamespacedName, Str};

use crate::overrides::Rules;

/// The version of the renderer. A new one re-renders and compares; copies that come out equal are not written.
pub const RENDERER: u32 = 1;

/// How a template becomes a copy on one cluster: data only, no payload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RenderSpec {
    /// Our hub's id: the uid of its kube-system namespace. On a copy it is the proof of ownership.
    pub hub: Str,
    /// The binding the copy belongs to.
    pub binding: NamespacedName,
    /// The binding's permanent id.
    pub permanent_id: Str,
    /// Replicas on this cluster, for kinds that have them; `None` leaves the template's own.
    pub replicas: Option<i32>,
    /// How often a Job's pods must succeed on this cluster; `None` leaves the template's own.
    pub completions: Option<i64>,
    /// What is changed in it, in this order.
    pub overrides: Rules,
    /// Labels that the copy which it replaces hands on.
    pub preserved: BTreeMap<Str, Str>,
    /// Whether an object that is not ours may be taken over (`conflictResolution: Overwrite`).
    pub overwrite: bool,
    /// What people taught us of the kind.
    pub interpretation: Interpretation,
    /// The uid of the copy as we last wrote it: an object with this uid is ours even if somebody took our marks off.
    pub written_uid: Option<Str>,
}

/// The version of a copy's source: what was rendered, from which template content, by which renderer.
///
/// `<uid>.<generation or resourceVersion>.<hash>[.<overrides>]`; the hash covers labels, annotations and the recipe, the last
/// part the rules of override policies, where there are any. It never covers
/// the object's content (architecture 2.5: no digest of a Secret is stored anywhere): content is told apart by
/// uid and generation, or what stands in for it, or by uid and resourceVersion where the kind has neither.
///
/// Cost: O(labels and annotations).
#[must_use]
pub fn source_version(template: &Meta, render_spec: &RenderSpec) -> String {
    let mut hash = Sha256::new();
    let mut add = |text: &str| {
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text.as_bytes());
    };
    for (key, value) in template.labels.iter().chain(&template.annotations) {
        add(key);
        add(value);
    }
    add(&render_spec.binding.name);
    add(&render_spec.permanent_id);
    add(if render_spec.overwrite {
        "overwrite"
    } else {
        "abort"
    });
    add(&render_spec
        .replicas
        .map_or_else(String::new, |count| count.to_string()));
    if let Some(completions) = render_spec.completions {
        add(&completions.to_string());
    }
    for (key, value) in &render_spec.preserved {
        add(key);
        add(value);
    }
    if let Some(version) = render_spec.interpretation.rendering() {
        add(version);
    }
    add(&RENDERER.to_string());
    let mut text = format!("{}.", template.uid);
    match template.content_generation() {
        Some(generation) => write!(text, "g{generation}."),
        None => write!(text, "v{}.", template.resource_version),
    }
    .unwrap_or_default();
    for byte in &hash.finalize()[..5] {
        write!(text, "{byte:02x}").unwrap_or_default();
    }
    if !render_spec.overrides.is_empty() {
        let mut hash = Sha256::new();
        for rule in render_spec.overrides.iter() {
            hash.update(rule.version());
        }
        text.push('.');
        for byte in &hash.finalize()[..5] {
            write!(text, "{byte:02x}").unwrap_or_default();
        }
    }
    text
}

/// Which rules of override policies a source version was rendered with, to be compared with another; `None` for none.
#[must_use]
pub fn overrides_of(source: &str) -> Option<&str> {
    source.splitn(4, '.').nth(3)
}
