//! ServiceAccounts.

use serde_json::Value;

use crate::{
    kinds::kind_def::KindDef,
    object::tree::{at, each},
    printer::{AGE, NAME, Printer},
};

/// ServiceAccount: its references to Secrets keep only the name.
pub(super) static DEF: KindDef = KindDef {
    short: &["sa"],
    subresources: &["token"],
    revalidates: true,
    returns_object: true,
    created: |account| each(account, "secrets", |secret| secret.retain(|key, _| key == "name")),
    updated: |_, new, _| each(new, "secrets", |secret| secret.retain(|key, _| key == "name")),
    warnings: |account, _| {
        const MOUNTABLE: &str = "kubernetes.io/enforce-mountable-secrets";
        let annotations = at(account, &["metadata", "annotations"]);
        let warning = annotations.get(MOUNTABLE).map(|_: &Value| {
            format!(
                "metadata.annotations[{MOUNTABLE}]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets"
            )
        });
        warning.into_iter().collect()
    },
    printer: Printer::of(&[NAME, AGE]),
    ..KindDef::of::<k8s_openapi::api::core::v1::ServiceAccount>()
};
