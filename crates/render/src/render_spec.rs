//! The parameters of rendering a copy, as data, and the version of the result.

use std::fmt::Write as _;

use serde::Serialize;
use sha2::{Digest, Sha256};

use entourage_api::keys::label;
use entourage_interpreter::Interpretation;
use entourage_model::object::{Meta, NamespacedName, Str, StrMap};

use crate::overrides::Rules;

/// The version of the renderer. A new one renders and compares all copies again; equal copies are not written.
pub const RENDERER: u32 = 1;

/// The parameters of rendering a template for one cluster: data only, no payload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RenderSpec {
    /// The hub's id: the uid of its kube-system namespace. On a copy it is the proof of ownership.
    pub hub: Str,
    /// The binding the copy belongs to.
    pub binding: NamespacedName,
    /// The binding's permanent id.
    pub permanent_id: Str,
    /// Replicas on this cluster, for kinds that have them; `None` leaves the template's own.
    pub replicas: Option<i32>,
    /// The replicas that the copy gets at least, whatever is retained of the live one. It is no part of the version of the source: once
    /// the copy was written from that, the member decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_least: Option<i32>,
    /// The raise of the share, if the scheduler raised it: another raise to the same number is another source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raise: Option<i64>,
    /// True if the copy leaves its replicas to the member also where the template lacks the label for that: another writer of the hub
    /// took it off, and it is about to be set again.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub keeps_replicas: bool,
    /// The number of a Job's pods that must succeed on this cluster; `None` leaves the template's own.
    pub completions: Option<i64>,
    /// The override rules, in their order.
    pub overrides: Rules,
    /// Labels that are preserved from the replaced copy.
    pub preserved: StrMap,
    /// True if an object that is not managed may be taken over (`conflictResolution: Overwrite`).
    pub overwrite: bool,
    /// The interpretation of the kind.
    pub interpretation: Interpretation,
    /// The uid of the copy as last written: an object with this uid is managed even if another writer removed its ownership
    /// metadata.
    pub written_uid: Option<Str>,
}

impl RenderSpec {
    /// True if the copy of a template with these labels gets the label that leaves its replicas to the member.
    pub(crate) fn adds_label(&self, labels: &StrMap) -> bool {
        self.keeps_replicas && !labels.contains_key(label::RETAIN_REPLICAS)
    }
}

/// The version of a copy's source: the rendered template content, the parameters and the renderer.
///
/// `<uid>.<generation or resourceVersion>.<hash>[.<overrides>]`; the hash covers labels, annotations and the [`RenderSpec`],
/// the last part the rules of override policies, if there are any. It never covers the object's content (architecture 2.5: no
/// digest of a Secret is stored anywhere): content is identified by uid and generation, or the substitute of a generation, or
/// by uid and resourceVersion if the kind has neither.
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
    if let Some(raise) = render_spec.raise {
        add(&format!("raise {raise}"));
    }
    if render_spec.adds_label(&template.labels) {
        add("keeps replicas");
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

/// The part of a source version that identifies the rules of override policies, or `None` if there are none.
#[must_use]
pub fn overrides_of(source: &str) -> Option<&str> {
    source.splitn(4, '.').nth(3)
}
