//! ServiceAccount.

use serde_json::{Value, json};

use super::{NativeGvk, NativeKind, Operation, Resource, prune_metadata};
use crate::json::{items, remove, set, text};

/// v1 ServiceAccount.
///
/// Retained: `secrets` and `imagePullSecrets` that the member's controllers enter for themselves. Kubernetes up to
/// 1.23 makes a token Secret `<name>-token-*` for each account and enters it, OpenShift the same with
/// `<name>-dockercfg-*`; without the entry they make another, without end. When the template lists no `secrets` at
/// all, all live ones stay (Karmada reference 3.1).
pub(super) struct ServiceAccount;

impl NativeKind for ServiceAccount {
    fn gvk(&self) -> NativeGvk<'static> {
        NativeGvk {
            group: "",
            version: "v1",
            kind: "ServiceAccount",
        }
    }

    fn summary(&self) -> &'static str {
        "dependency: the identity of pods; the registry credentials that it names are propagated with it"
    }

    fn resource(&self) -> Option<Resource> {
        Some(Resource::namespaced("serviceaccounts"))
    }

    fn operations(&self) -> &'static [Operation] {
        &[Operation::References, Operation::Prune, Operation::Retain]
    }

    /// Such entries of the hub's controllers name Secrets that are not propagated. Source: Karmada reference 1.4.
    fn prune(&self, template: &mut Value) {
        prune_metadata(
            template,
            self.hub_only_labels(template),
            self.hub_only_annotations(),
        );
        let name = text(template, &["metadata", "name"]).to_owned();
        for list in ["secrets", "imagePullSecrets"] {
            let Some(entries) = template.get_mut(list).and_then(Value::as_array_mut) else {
                continue;
            };
            let before = entries.len();
            entries.retain(|entry| !is_made_for(&name, text(entry, &["name"])));
            if entries.is_empty() && before > 0 {
                remove(template, &[list]);
            }
        }
    }

    /// A controller of the hub may have entered registry credentials for the account (OpenShift does).
    fn is_made_there(&self, object: &Value, name: &str) -> bool {
        is_made_for(text(object, &["metadata", "name"]), name)
    }

    fn needs_live(&self, _desired: &Value) -> bool {
        true
    }

    fn retain(&self, desired: &mut Value, live: &Value) {
        let name = text(live, &["metadata", "name"]);
        for (list, keep_all) in [("secrets", true), ("imagePullSecrets", false)] {
            let wanted = items(desired, &[list]);
            let keep_all = keep_all && wanted.is_empty();
            let listed = |entry: &Value| wanted.iter().any(|each| each["name"] == entry["name"]);
            let kept = items(live, &[list])
                .iter()
                .filter(|entry| keep_all || is_made_for(name, text(entry, &["name"])) && !listed(entry));
            let all: Vec<Value> = wanted.iter().chain(kept).cloned().collect();
            if all.len() != wanted.len() {
                set(desired, &[list], json!(all));
            }
        }
    }
}

/// True if a controller created a Secret for the account.
fn is_made_for(account: &str, secret: &str) -> bool {
    let made = secret.strip_prefix(account);
    !account.is_empty()
        && made.is_some_and(|rest| rest.starts_with("-token-") || rest.starts_with("-dockercfg-"))
}
