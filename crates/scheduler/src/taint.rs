//! Taints of clusters and their tolerations. Source: the Kubernetes API reference for Taint and Toleration.

use entourage_api::keys::taint;
use k8s_openapi::api::core::v1::{Taint, Toleration};

use crate::{cluster::ready, request::Candidate};

/// The effect that also evicts scheduled bindings.
pub const NO_EXECUTE: &str = "NoExecute";

/// The effects that prevent scheduling of new bindings; PreferNoSchedule does not.
const REPELLING: [&str; 2] = ["NoSchedule", NO_EXECUTE];

/// True if a taint prevents scheduling of new bindings that do not tolerate it.
pub fn keeps_away(taint: &Taint) -> bool {
    REPELLING.contains(&taint.effect.as_str())
}

/// The first taint of the cluster that prevents scheduling and is not tolerated, as `{key=value:effect}`.
pub(super) fn untolerated(candidate: &Candidate<'_>, tolerations: &[Toleration]) -> Option<String> {
    // Source: Karmada reference, cluster taints by condition: False is not ready, Unknown is unreachable.
    let not_ready = || Taint {
        key: match ready(candidate.cluster) {
            Some("Unknown") => taint::UNREACHABLE.into(),
            _ => taint::NOT_READY.into(),
        },
        effect: "NoSchedule".into(),
        value: None,
        time_added: None,
    };
    let own = candidate
        .cluster
        .spec
        .taints
        .iter()
        .filter(|taint| keeps_away(taint));
    let implied = (!candidate.ready).then(not_ready);
    own.chain(&implied)
        .find(|taint| !tolerations.iter().any(|each| tolerates(each, taint)))
        .map(display)
}

/// True if two lists of taints prevent scheduling of the same bindings, and evict the same ones at the same time: the time at
/// which a taint was added matters only for NoExecute.
pub(super) fn is_same(old: &[Taint], new: &[Taint]) -> bool {
    old.len() == new.len()
        && old.iter().zip(new).all(|(old, new)| {
            old.key == new.key
                && old.effect == new.effect
                && value(&old.value) == value(&new.value)
                && (old.effect != NO_EXECUTE || old.time_added == new.time_added)
        })
}

/// Succeeds if the toleration is valid.
pub(super) fn check(toleration: &Toleration) -> Result<(), String> {
    let has_key = !value(&toleration.key).is_empty();
    let has_value = !value(&toleration.value).is_empty();
    match value(&toleration.operator) {
        "Exists" if has_value => Err("the operator Exists takes no value".into()),
        "Exists" => Ok(()),
        "" | "Equal" if !has_key => Err("without a key the operator must be Exists".into()),
        "" | "Equal" => Ok(()),
        other => Err(format!(
            "{other:?} is not an operator: the operators are Equal and Exists"
        )),
    }?;
    match value(&toleration.effect) {
        "" | "NoSchedule" | "PreferNoSchedule" | "NoExecute" => Ok(()),
        other => Err(format!(
            "{other:?} is not an effect: the effects are NoSchedule, PreferNoSchedule and NoExecute"
        )),
    }
}

/// True if the toleration matches. `tolerationSeconds` is ignored: it limits how long a scheduled binding stays, not whether it
/// is scheduled.
pub fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let effect = value(&toleration.effect);
    let key = value(&toleration.key);
    let is_meant = (effect.is_empty() || effect == taint.effect) && (key.is_empty() || key == taint.key);
    is_meant
        && match value(&toleration.operator) {
            "Exists" => true,
            "" | "Equal" => !key.is_empty() && value(&toleration.value) == value(&taint.value),
            _ => false,
        }
}

/// `{key=value:effect}`.
pub fn display(taint: &Taint) -> String {
    match value(&taint.value) {
        "" => format!("{{{}:{}}}", taint.key, taint.effect),
        value => format!("{{{}={value}:{}}}", taint.key, taint.effect),
    }
}

fn value(text: &Option<String>) -> &str {
    text.as_deref().unwrap_or_default()
}
