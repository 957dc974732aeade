//! ServiceAccounts.

use serde_json::Value;

use super::kind::Kind;
use crate::object::tree::{at, each};

/// ServiceAccount: its references to Secrets keep only the name.
pub(super) static SERVICE_ACCOUNT: Kind = Kind {
    kind: "ServiceAccount",
    revalidates: true,
    returns_object: true,
    created: |account| each(account, "secrets", |secret| secret.retain(|key, _| key == "name")),
    updated: |_, new, _| each(new, "secrets", |secret| secret.retain(|key, _| key == "name")),
    warnings: |account| {
        const MOUNTABLE: &str = "kubernetes.io/enforce-mountable-secrets";
        let annotations = at(account, &["metadata", "annotations"]);
        let warning = annotations.get(MOUNTABLE).map(|_: &Value| {
            format!(
                "metadata.annotations[{MOUNTABLE}]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets"
            )
        });
        warning.into_iter().collect()
    },
    ..Kind::PLAIN
};
