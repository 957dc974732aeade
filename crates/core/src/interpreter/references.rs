//! Which objects a workload needs: one table of paths in a pod spec, and its reading.
//!
//! The table decides about every field of a pod spec that names another object: it is either in [`REFERENCES`]
//! or, with the reason, in [`NON_REFERENCES`]. A test walks the schema of a pod spec and fails for a field that
//! looks like a name of an object and is in neither.

mod table;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::NativeKind;
pub use table::{EVERYWHERE, Everywhere, NON_REFERENCES, REFERENCES};

/// A kind of object that a pod spec can name. Ordered by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum DependencyKind {
    /// v1 ConfigMap.
    ConfigMap,
    /// v1 PersistentVolumeClaim.
    PersistentVolumeClaim,
    /// v1 Secret.
    Secret,
    /// v1 ServiceAccount.
    ServiceAccount,
}

impl DependencyKind {
    /// Every kind, in order.
    pub const ALL: &[Self] = &[
        Self::ConfigMap,
        Self::PersistentVolumeClaim,
        Self::Secret,
        Self::ServiceAccount,
    ];

    /// The `apiVersion` as written in a manifest.
    #[must_use]
    pub const fn api_version(self) -> &'static str {
        "v1"
    }

    /// The kind as written in a manifest.
    #[must_use]
    pub const fn kind(self) -> &'static str {
        match self {
            Self::ConfigMap => "ConfigMap",
            Self::PersistentVolumeClaim => "PersistentVolumeClaim",
            Self::Secret => "Secret",
            Self::ServiceAccount => "ServiceAccount",
        }
    }
}

/// An object that a workload needs, in the workload's own namespace: a pod spec cannot name another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct DependencyReference {
    /// Kind of the object.
    pub kind: DependencyKind,
    /// Namespace of the object.
    pub namespace: String,
    /// Name of the object; never empty.
    pub name: String,
    /// Whether the workload starts without it: true only if every mention says so.
    pub optional: bool,
}

/// Where in a pod spec a path starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Within {
    /// At the pod spec itself.
    PodSpec,
    /// At each entry of each of [`CONTAINER_LISTS`].
    Container,
}

/// The lists of containers in a pod spec. All three may name objects.
pub const CONTAINER_LISTS: [&str; 3] = ["containers", "initContainers", "ephemeralContainers"];

/// A path in a pod spec that holds the name of an object.
#[derive(Clone, Copy, Debug)]
pub struct ReferenceRow {
    /// Where the path starts.
    pub within: Within,
    /// The path, segments joined by dots, `[]` after the name of an array. Its end is the name.
    pub path: &'static str,
    /// The kind of the named object.
    pub kind: DependencyKind,
    /// The field beside the name that makes the reference optional when `true`, if the schema has one.
    pub optional: Option<&'static str>,
    /// What uses the object, in a few words.
    pub summary: &'static str,
    /// Where the rule comes from.
    pub source: &'static str,
}

/// A field of a pod spec that names something which we do not carry along.
#[derive(Clone, Copy, Debug)]
pub struct NonReference {
    /// Where the path starts.
    pub within: Within,
    /// The path, as in [`ReferenceRow::path`]; it covers everything below it too.
    pub path: &'static str,
    /// Why it does not travel.
    pub reason: &'static str,
}

/// The full paths from the pod spec: one, or one for each list of containers.
#[must_use]
pub fn full_paths(within: Within, path: &str) -> Vec<String> {
    match within {
        Within::PodSpec => vec![path.to_owned()],
        Within::Container => CONTAINER_LISTS
            .iter()
            .map(|list| format!("{list}[].{path}"))
            .collect(),
    }
}

/// Everything that a workload of this kind needs, sorted by kind, namespace and name, each object once.
///
/// Left out: empty names, objects that every cluster makes itself ([`EVERYWHERE`]), and claims that the workload
/// makes itself (a StatefulSet's volumeClaimTemplates). Kinds without a pod spec need nothing.
///
/// Source: Karmada reference 3.1. Cost: O(size of the pod spec).
#[must_use]
pub fn references(native: &dyn NativeKind, namespace: &str, object: &Value) -> Vec<DependencyReference> {
    let Some(spec) = native.pod_template_spec(object) else {
        return Vec::new();
    };
    let own_claims = native.own_claims(object);
    let mut found: BTreeMap<(DependencyKind, &str), bool> = BTreeMap::new();
    for row in REFERENCES {
        each_name(spec, row, &mut |holder, name| {
            let optional = row.optional.is_some_and(|flag| holder[flag] == true);
            let own = row.kind == DependencyKind::PersistentVolumeClaim && own_claims.contains(name);
            if !name.is_empty() && !own && !is_everywhere(row.kind, name) {
                found
                    .entry((row.kind, name))
                    .and_modify(|all| *all &= optional)
                    .or_insert(optional);
            }
        });
    }
    let reference = |((kind, name), optional): ((DependencyKind, &str), bool)| DependencyReference {
        kind,
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        optional,
    };
    found.into_iter().map(reference).collect()
}

fn is_everywhere(kind: DependencyKind, name: &str) -> bool {
    EVERYWHERE
        .iter()
        .any(|each| each.kind == kind && each.name == name)
}

/// Calls `visit` with each name at the row's path and the object that holds it.
fn each_name<'a>(spec: &'a Value, row: &ReferenceRow, visit: &mut dyn FnMut(&'a Value, &'a str)) {
    match row.within {
        Within::PodSpec => walk(spec, row.path, visit),
        Within::Container => {
            for list in CONTAINER_LISTS {
                for container in spec[list].as_array().into_iter().flatten() {
                    walk(container, row.path, visit);
                }
            }
        }
    }
}

fn walk<'a>(value: &'a Value, path: &str, visit: &mut dyn FnMut(&'a Value, &'a str)) {
    let Some((segment, rest)) = path.split_once('.') else {
        if let Some(name) = value[path].as_str() {
            visit(value, name);
        }
        return;
    };
    match segment.strip_suffix("[]") {
        Some(list) => value[list]
            .as_array()
            .into_iter()
            .flatten()
            .for_each(|each| walk(each, rest, visit)),
        None => walk(&value[segment], rest, visit),
    }
}
