//! Which objects a template needs: one table of paths in a pod spec, or in an object of a kind without one, and its
//! reading.
//!
//! The table decides about every field of a pod spec that names another object: it is either in [`REFERENCES`]
//! or, with the reason, in [`NON_REFERENCES`]. A test walks the schema of a pod spec and fails for a field that
//! looks like a name of an object and is in neither.

mod selection;
mod table;
#[cfg(test)]
mod tests;

use std::{borrow::Cow, collections::BTreeMap, sync::LazyLock};

use serde::{Serialize, ser::SerializeStruct as _};
use serde_json::Value;

use super::{NativeGvk, NativeKind};
use crate::object::{Gvk, Id, Str};
pub use selection::{DependencySelection, SELECTIONS, SelectionRow, selections};
pub use table::{EVERYWHERE, Everywhere, NON_REFERENCES, REFERENCES};

/// An object that a template needs, by its name. Ordered by group, version, kind, namespace and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DependencyReference {
    /// The object; its name is never empty.
    pub id: Id,
    /// Whether the workload starts without it: true only if every mention says so.
    pub optional: bool,
}

impl Serialize for DependencyReference {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("DependencyReference", 5)?;
        fields.serialize_field("apiVersion", &self.id.gvk.api_version())?;
        fields.serialize_field("kind", &*self.id.gvk.kind)?;
        fields.serialize_field("namespace", &*self.id.namespace)?;
        fields.serialize_field("name", &*self.id.name)?;
        fields.serialize_field("optional", &self.optional)?;
        fields.end()
    }
}

/// Where a path starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Within {
    /// At the pod spec itself.
    PodSpec,
    /// At each entry of each of [`CONTAINER_LISTS`].
    Container,
    /// At an object of this group and kind, in any version.
    Object(&'static str, &'static str),
}

/// The lists of containers in a pod spec. All three may name objects.
pub const CONTAINER_LISTS: [&str; 3] = ["containers", "initContainers", "ephemeralContainers"];

/// A path that holds the name of an object of the same namespace.
#[derive(Clone, Copy, Debug)]
pub struct ReferenceRow {
    /// Where the path starts.
    pub within: Within,
    /// The path, segments joined by dots, `[]` after the name of an array. Its end is the name.
    pub path: &'static str,
    /// Group, version and kind of the named object.
    pub gvk: NativeGvk<'static>,
    /// What stands before the value in the object's name; usually nothing.
    pub prefix: &'static str,
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

/// The full paths from the pod spec, or from the object: one, or one for each list of containers.
#[must_use]
pub fn full_paths(within: Within, path: &str) -> Vec<String> {
    match within {
        Within::PodSpec | Within::Object(..) => vec![path.to_owned()],
        Within::Container => CONTAINER_LISTS
            .iter()
            .map(|list| format!("{list}[].{path}"))
            .collect(),
    }
}

/// Whether objects of this kind may refer to others: it has a pod spec, or rows of its own.
#[must_use]
pub fn refers(native: &dyn NativeKind) -> bool {
    let gvk = native.gvk();
    native.pod_spec_path().is_some()
        || REFERENCES.iter().any(|row| is_of(row.within, gvk))
        || SELECTIONS.iter().any(|row| is_of(row.within, gvk))
}

/// Everything that an object of this kind needs, sorted by kind, namespace and name, each object once.
///
/// Left out: empty names, objects that every cluster makes itself ([`EVERYWHERE`]), and claims that the workload
/// makes itself (a StatefulSet's volumeClaimTemplates). Kinds without a pod spec and without rows need nothing.
///
/// Source: Karmada reference 3.1. Cost: O(size of the object's spec).
#[must_use]
pub fn references(native: &dyn NativeKind, namespace: &str, object: &Value) -> Vec<DependencyReference> {
    let gvk = native.gvk();
    let spec = native.pod_template_spec(object);
    let own_claims = native.own_claims(object);
    let mut found: BTreeMap<(NativeGvk<'_>, Cow<'_, str>), bool> = BTreeMap::new();
    for row in REFERENCES {
        let start = match row.within {
            Within::Object(..) => Some(object).filter(|_| is_of(row.within, gvk)),
            Within::PodSpec | Within::Container => spec,
        };
        let Some(start) = start else { continue };
        each_name(start, row, &mut |holder, name| {
            let optional = row.optional.is_some_and(|flag| holder[flag] == true);
            let own = row.gvk.kind == "PersistentVolumeClaim" && own_claims.contains(name);
            if !name.is_empty() && !own && !is_everywhere(row.gvk, name) {
                let name = match row.prefix {
                    "" => Cow::Borrowed(name),
                    prefix => Cow::Owned(format!("{prefix}{name}")),
                };
                found
                    .entry((row.gvk, name))
                    .and_modify(|all| *all &= optional)
                    .or_insert(optional);
            }
        });
    }
    let namespace: Str = namespace.into();
    let reference = |((gvk, name), optional): ((NativeGvk<'_>, Cow<'_, str>), bool)| DependencyReference {
        id: Id {
            gvk: shared(gvk),
            namespace: namespace.clone(),
            name: name.as_ref().into(),
        },
        optional,
    };
    found.into_iter().map(reference).collect()
}

/// The kind of a row, its strings shared by all references of that kind: there are as many as templates times names.
fn shared(gvk: NativeGvk<'_>) -> Gvk {
    static KINDS: LazyLock<Vec<Gvk>> =
        LazyLock::new(|| REFERENCES.iter().map(|row| owned(row.gvk)).collect());
    let is_it =
        |each: &&Gvk| *each.kind == *gvk.kind && *each.group == *gvk.group && *each.version == *gvk.version;
    KINDS.iter().find(is_it).cloned().unwrap_or_else(|| owned(gvk))
}

fn owned(gvk: NativeGvk<'_>) -> Gvk {
    Gvk {
        group: gvk.group.into(),
        version: gvk.version.into(),
        kind: gvk.kind.into(),
    }
}

fn is_of(within: Within, gvk: NativeGvk<'_>) -> bool {
    matches!(within, Within::Object(group, kind) if group == gvk.group && kind == gvk.kind)
}

fn is_everywhere(gvk: NativeGvk<'_>, name: &str) -> bool {
    EVERYWHERE.iter().any(|each| each.gvk == gvk && each.name == name)
}

/// Calls `visit` with each name at the row's path and the object that holds it.
fn each_name<'a>(start: &'a Value, row: &ReferenceRow, visit: &mut dyn FnMut(&'a Value, &'a str)) {
    match row.within {
        Within::PodSpec | Within::Object(..) => walk(start, row.path, visit),
        Within::Container => {
            for list in CONTAINER_LISTS {
                for container in start[list].as_array().into_iter().flatten() {
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
