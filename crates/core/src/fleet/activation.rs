//! Lazy activation: the spec of a lazy policy takes effect with the next change that a user makes to a template.
//!
//! Karmada keeps this in its queue and forgets it in a crash (karmada reference 1.1). Here it is stored: the content of the
//! template that the policy found when it claimed it ([`annotation::WAITS`], on the template), and the content for which it was
//! last applied ([`annotation::ACTIVATED`], on the binding). A template whose content differs from both was touched. The
//! content that the policy found counts until the template is touched: the binding records that, beside the content, so that a
//! change that is reverted is a second touch. Watches of two kinds keep no order, so a touch may be observed before the change
//! of the policy that came first; therefore the binding records the revision of the touch as well, and a policy that is older
//! than it applies (Karmada loses that change). The metadata of a kind without a generation shows no content: for such a
//! template only observed changes count, so one made while no process watched does not; the binding records its
//! resourceVersion.

use std::fmt::Write as _;

use entourage_api::{keys::annotation, policy::ActivationPreference};
use sha2::{Digest as _, Sha256};

use crate::{
    cache::{Binding, Policy, ResourceState},
    fleet::autoscaling::is_own_write,
    interpreter::{self, NativeKind},
    object::{Meta, ResourceId, revision},
};

/// True if the policy is lazy.
pub(crate) fn is_lazy(policy: &Policy) -> bool {
    policy.object.spec.activation_preference == Some(ActivationPreference::Lazy)
}

/// True if the current spec of a policy applies to a template that it claims. Until then the binding stays as it is.
///
/// Cost: O(labels and annotations of the template), for a lazy policy only.
pub(crate) fn applies(policy: &Policy, resource: &ResourceState, template: &Meta) -> bool {
    if !is_lazy(policy) {
        return true;
    }
    let own = resource
        .last_binding()
        .filter(|binding| binding.object.spec.placement.is_some());
    let found = template.annotation(annotation::WAITS);
    match (own, content(template)) {
        (Some(binding), Some(content)) => Record::on(binding).is_some_and(|record| {
            let is_changed = record.applied != content && !is_own(resource, template, record.applied);
            let touched = is_changed || record.revision.is_some_and(|touch| policy.edited.0 < touch);
            touched && (found != Some(&content) || record.found == found)
        }),
        (Some(binding), None) => resource
            .touched
            .is_some_and(|touched| touched > applied_revision(binding) || touched > policy.edited.0),
        (None, Some(content)) => found.is_none_or(|found| found != content),
        (None, None) => found.is_none() || resource.touched.is_some(),
    }
}

/// The annotation of a template that a lazy policy claims although it existed before the policy, or is already propagated: the
/// content that it will have after that write. `None` if there is nothing to wait for.
pub(crate) fn waits(
    policy: &Policy,
    id: &ResourceId,
    resource: &ResourceState,
    template: &Meta,
) -> Option<String> {
    let is_bound = resource
        .last_binding()
        .is_some_and(|binding| binding.object.spec.placement.is_some());
    if !is_lazy(policy) || !(is_bound || template.created < policy.meta.created) {
        return None;
    }
    let native = interpreter::native(&id.gvk.group, &id.gvk.version, &id.gvk.kind);
    let bumps = native.is_some_and(NativeKind::annotations_count_as_content);
    let mut after = template.clone();
    after.generation = after.generation.map(|held| held + i64::from(bumps));
    Some(content(&after).unwrap_or_else(|| "seen".into()))
}

/// The annotation of the binding of a template that a lazy policy claims: the content for which it was applied. While it is
/// held back (`applied` is false) that stays as it is, and the current content counts if none is recorded.
pub(crate) fn record(
    policy: &Policy,
    resource: &ResourceState,
    template: &Meta,
    applied: bool,
) -> Option<String> {
    if !is_lazy(policy) {
        return None;
    }
    let last = resource.last_binding();
    if !applied && let Some(noted) = last.and_then(|binding| binding.annotation(annotation::ACTIVATED)) {
        return Some(noted.to_owned());
    }
    let Some(content) = content(template) else {
        let version = match last {
            Some(binding) if !applied => &*binding.object.spec.resource.resource_version,
            _ => &*template.resource_version,
        };
        return Some(format!("v{version}"));
    };
    // The content that the policy found counts no longer once the template has been touched.
    let found = template.annotation(annotation::WAITS);
    let consumed = found.filter(|found| applied || *found != content);
    let noted = last
        .and_then(Record::on)
        .filter(|record| record.applied == content || is_own(resource, template, record.applied));
    let touch = noted
        .and_then(|record| record.revision)
        .unwrap_or_else(|| template.revision());
    let mut text = content;
    if applied {
        let _ = write!(text, " v{touch}");
    }
    if let Some(found) = consumed {
        let _ = write!(text, " {found}");
    }
    Some(text)
}

/// True if the content of a template is this one but for what this process wrote to it because of autoscalers: that is no touch.
fn is_own(resource: &ResourceState, template: &Meta, applied: &str) -> bool {
    is_own_write(resource, template, |before| {
        content(before).as_deref() == Some(applied)
    })
}

/// The record of a lazy policy on a binding: the content, the revision after a `v`, and the content that it found.
struct Record<'a> {
    /// The content for which the policy was last applied.
    applied: &'a str,
    /// The revision of the template at which that content was first seen: the touch. None while the policy is held back.
    revision: Option<u64>,
    /// The content that the policy had found, if that counts no longer.
    found: Option<&'a str>,
}

impl<'a> Record<'a> {
    fn on(binding: &'a Binding) -> Option<Self> {
        let mut words = binding.annotation(annotation::ACTIVATED)?.split(' ');
        let mut record = Self {
            applied: words.next()?,
            revision: None,
            found: None,
        };
        for word in words {
            // A content begins with a uid, which is hexadecimal.
            match word.strip_prefix('v') {
                Some(number) => record.revision = number.parse().ok(),
                None => record.found = Some(word),
            }
        }
        Some(record)
    }
}

/// The revision of the template, of a kind without a generation, for which the policy was last applied.
fn applied_revision(binding: &Binding) -> u64 {
    let noted = Record::on(binding).and_then(|record| record.applied.strip_prefix('v'));
    revision(noted.unwrap_or(&binding.object.spec.resource.resource_version))
}

/// True if a user changed a template between two versions. If the metadata differs only in labels and annotations of control
/// planes, or in finalizers, that was the change; if it does not differ at all, its data did.
pub(crate) fn is_touched(before: &Meta, after: &Meta) -> bool {
    let same_metadata = before.labels == after.labels
        && before.annotations == after.annotations
        && before.finalizers == after.finalizers;
    before.uid != after.uid || foreign(before) != foreign(after) || same_metadata
}

/// An identifier of the user's content of a template; `None` for a kind without a generation.
fn content(template: &Meta) -> Option<String> {
    let generation = template.content_generation()?;
    let mut hash = Sha256::new();
    for (key, value) in foreign(template) {
        for text in [key, value] {
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text.as_bytes());
        }
    }
    let mut text = format!("{}.g{generation}.", template.uid);
    for byte in &hash.finalize()[..5] {
        let _ = write!(text, "{byte:02x}");
    }
    Some(text)
}

/// Labels and annotations that the control plane does not write (karmada reference 1.1: a change of those of `*.karmada.io` is
/// not a user's change).
fn foreign(meta: &Meta) -> Vec<(&str, &str)> {
    let all = meta.labels.iter().chain(&meta.annotations);
    all.map(|(key, value)| (&**key, &**value))
        .filter(|(key, _)| {
            let domain = key.split_once('/').map_or("", |(domain, _)| domain);
            let ours = domain == "karmada.io" || domain == "entourage.dev" || domain.ends_with(".karmada.io");
            !ours || *key == entourage_api::keys::label::SKIP_AUTO_PROPAGATION
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn meta(generation: Option<i64>, labels: &Value, annotations: &Value) -> Meta {
        Meta::of(&json!({"metadata": {
            "uid": "u", "generation": generation, "labels": labels, "annotations": annotations}}))
    }

    #[test]
    fn a_claim_is_no_touch_and_any_change_of_a_user_is() {
        let before = meta(None, &json!({}), &json!({}));
        let claimed = meta(
            None,
            &json!({}),
            &json!({annotation::CLUSTER_PROPAGATION_POLICY_NAME: "p"}),
        );
        assert!(!is_touched(&before, &claimed));
        let protected = meta(
            None,
            &json!({entourage_api::keys::label::DELETION_PROTECTED: "Always"}),
            &json!({}),
        );
        assert!(!is_touched(&before, &protected));
        assert!(is_touched(&before, &meta(None, &json!({"a": "b"}), &json!({}))));
        assert!(
            is_touched(&claimed, &claimed),
            "its data changed: the metadata looks alike"
        );
    }

    #[test]
    fn content_changes_with_the_generation_and_with_a_users_labels_only() {
        let of = |generation, labels: &Value| content(&meta(Some(generation), labels, &json!({})));
        let plain = of(1, &json!({}));
        assert_eq!(
            plain,
            of(1, &json!({"propagationpolicy.karmada.io/permanent-id": "x"}))
        );
        assert_ne!(plain, of(2, &json!({})));
        assert_ne!(plain, of(1, &json!({"touched": "yes"})));
        assert_eq!(content(&meta(None, &json!({}), &json!({}))), None);
    }
}
