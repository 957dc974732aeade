//! The dependencies of a template, by the tables of references, or by the rules of its kind.

mod selection;
#[cfg(test)]
mod tests;

use serde_json::Value;

pub use crate::mentions::{
    CONTAINER_LISTS, DependencyReference, EVERYWHERE, Everywhere, NON_REFERENCES, NonReference, REFERENCES,
    ReferenceRow, Within, full_paths,
};
use crate::{
    declarative::Declared,
    kind::NativeKind,
    mentions::{Mentions, each_name, is_of},
};
pub use selection::{DependencySelection, SELECTIONS, SelectionRow, selections};

/// True if objects of this kind may refer to others: it has pods, or rows or rules of its own.
#[must_use]
pub fn refers(native: &dyn NativeKind) -> bool {
    let gvk = native.gvk();
    native.pod_spec_path().is_some()
        || native.declared().is_some_and(Declared::refers)
        || REFERENCES.iter().any(|row| is_of(row.within, gvk))
        || SELECTIONS.iter().any(|row| is_of(row.within, gvk))
}

/// All dependencies of an object of this kind, sorted by kind, namespace and name, each object once.
///
/// Excluded are empty names, objects that every cluster creates itself ([`EVERYWHERE`]) or for this one
/// ([`NativeKind::is_made_there`]), and claims that the workload creates itself (a StatefulSet's volumeClaimTemplates). Kinds
/// without a pod spec and without rows or rules have none.
///
/// Source: Karmada reference 3.1. Cost: O(size of the object's spec).
#[must_use]
pub fn references(native: &dyn NativeKind, namespace: &str, object: &Value) -> Vec<DependencyReference> {
    if let Some(declared) = native.declared() {
        return declared.references(namespace, object);
    }
    let gvk = native.gvk();
    let mut mentions = Mentions::default();
    if let Some(spec) = native.pod_template_spec(object) {
        mentions.pod_spec(namespace, spec, &native.own_claims(object));
    }
    for row in REFERENCES.iter().filter(|row| is_of(row.within, gvk)) {
        each_name(object, row, &mut |holder, name| {
            if !native.is_made_there(object, name) {
                mentions.read(namespace, row, holder, name);
            }
        });
    }
    mentions.references()
}
