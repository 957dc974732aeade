//! The CA bundle of kinds that name a webhook, which a controller of the cluster injects.

use serde_json::Value;

use crate::json::{at, set, text};

/// Retains the live CA at `path` if the template has none: cert-manager and the like fill it in on the member, with
/// the CA of that member, and the webhook cannot be called without it. A CA that the user wrote is the user's.
pub(super) fn retain(desired: &mut Value, live: &Value, path: &[&str]) {
    let Some((_, parent)) = path.split_last() else {
        return;
    };
    let injected = text(live, path);
    if at(desired, parent).is_object() && PLACEHOLDERS.contains(&text(desired, path)) && !injected.is_empty()
    {
        set(desired, path, injected.into());
    }
}

/// None, and the encoded line break that manifests hold where a CA is to be injected.
const PLACEHOLDERS: &[&str] = &["", "Cg=="];
