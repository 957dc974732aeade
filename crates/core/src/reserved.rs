//! Objects that are never propagated: kinds and namespaces of the system and of the control plane itself.

use crate::object::Gvk;

/// True if a kind is never a template: it belongs to the control plane, or reports what happened on one cluster (Event). Source:
/// Karmada reference 1.1.
pub(crate) fn is_skipped_kind(gvk: &Gvk) -> bool {
    const GROUPS: [&str; 4] = [
        "cluster.karmada.io",
        "config.karmada.io",
        "policy.karmada.io",
        "work.karmada.io",
    ];
    GROUPS.contains(&&*gvk.group) || is_event(gvk)
}

pub(crate) fn is_event(gvk: &Gvk) -> bool {
    &*gvk.kind == "Event" && ["", "events.k8s.io"].contains(&&*gvk.group)
}

/// True if no object is propagated out of this namespace: `kube-*`, `karmada-system`, `karmada-cluster` and `karmada-es-*`
/// belong to the system. [`crate::config::Config::is_reserved`] includes those of this installation, too. Source: Karmada
/// reference 1.1.
pub(crate) fn is_skipped_namespace(namespace: &str) -> bool {
    const NAMES: [&str; 2] = ["karmada-system", "karmada-cluster"];
    const PREFIXES: [&str; 2] = ["kube-", "karmada-es-"];
    NAMES.contains(&namespace) || PREFIXES.iter().any(|prefix| namespace.starts_with(prefix))
}
