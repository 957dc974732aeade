//! References of an object: the table of paths in a pod spec, or in an object of a kind without one, and their collection.
//!
//! The table covers every field of a pod spec that names another object: it is either in [`REFERENCES`] or, with the reason, in
//! [`NON_REFERENCES`]. A test walks the schema of a pod spec and fails for a field that looks like a name of an object and is in
//! neither.

mod table;

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
};

use entourage_model::object::{Gvk, ResourceId, Str};
use serde::{Serialize, ser::SerializeStruct as _};
use serde_json::Value;

use crate::gvk::NativeGvk;
pub use table::{EVERYWHERE, Everywhere, NON_REFERENCES, REFERENCES};

/// A dependency of a template, by its name. Ordered by group, version, kind, namespace and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DependencyReference {
    /// The object; its name is never empty.
    pub id: ResourceId,
    /// True if the workload starts without it: only if every reference is optional.
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

/// The start of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Within {
    /// At the pod spec itself.
    PodSpec,
    /// At each entry of each of [`CONTAINER_LISTS`].
    Container,
    /// At an object of this group and kind, in any version.
    Object(&'static str, &'static str),
}

/// The lists of containers in a pod spec. All three may refer to objects.
pub const CONTAINER_LISTS: [&str; 3] = ["containers", "initContainers", "ephemeralContainers"];

/// A path to the name of an object in the same namespace.
#[derive(Clone, Copy, Debug)]
pub struct ReferenceRow {
    /// The start of the path.
    pub within: Within,
    /// The path, segments joined by dots, `[]` after the name of an array. Its end is the name.
    pub path: &'static str,
    /// Group, version and kind of the named object.
    pub gvk: NativeGvk<'static>,
    /// The prefix of the object's name before the value; usually empty.
    pub prefix: &'static str,
    /// The field beside the name that makes the reference optional when `true`, if the schema has one.
    pub optional: Option<&'static str>,
    /// The use of the object, in a few words.
    pub summary: &'static str,
    /// The source of the rule.
    pub source: &'static str,
}

/// A field of a pod spec that names an object which is not propagated.
#[derive(Clone, Copy, Debug)]
pub struct NonReference {
    /// The start of the path.
    pub within: Within,
    /// The path, as in [`ReferenceRow::path`]; it includes all paths below it.
    pub path: &'static str,
    /// The reason why it is not propagated.
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

/// The collected references, each object once.
#[derive(Debug, Default)]
pub(crate) struct Mentions<'a>(BTreeMap<(NativeGvk<'a>, &'a str, Cow<'a, str>), bool>);

impl<'a> Mentions<'a> {
    /// Collects the references of a pod spec; its pods are in this namespace.
    pub(crate) fn pod_spec(&mut self, namespace: &'a str, spec: &'a Value, own_claims: &BTreeSet<&str>) {
        for row in REFERENCES
            .iter()
            .filter(|row| !matches!(row.within, Within::Object(..)))
        {
            self.row(namespace, spec, row, own_claims);
        }
    }

    /// Collects the references of a container outside of a pod spec.
    pub(crate) fn container(&mut self, namespace: &'a str, container: &'a Value) {
        for row in REFERENCES.iter().filter(|row| row.within == Within::Container) {
            walk(container, row.path, &mut |holder, name| {
                self.read(namespace, row, holder, name)
            });
        }
    }

    /// Adds one object, unless every cluster creates it itself. The name is not empty.
    pub(crate) fn add(&mut self, gvk: NativeGvk<'a>, namespace: &'a str, name: Cow<'a, str>, optional: bool) {
        if is_everywhere(gvk, &name) {
            return;
        }
        let mention = self.0.entry((gvk, namespace, name));
        mention.and_modify(|all| *all &= optional).or_insert(optional);
    }

    /// The collected references, sorted, each object once, in the version in which it was named first.
    pub(crate) fn references(self) -> Vec<DependencyReference> {
        let mut last: Option<(&str, Str)> = None;
        let reference =
            |((gvk, namespace, name), optional): ((NativeGvk<'a>, &'a str, Cow<'a, str>), bool)| {
                let shared_namespace = match &last {
                    Some((text, shared)) if *text == namespace => shared.clone(),
                    _ => namespace.into(),
                };
                last = Some((namespace, shared_namespace.clone()));
                DependencyReference {
                    id: ResourceId {
                        gvk: shared(gvk),
                        namespace: shared_namespace,
                        name: name.as_ref().into(),
                    },
                    optional,
                }
            };
        let mut all: Vec<_> = self.0.into_iter().map(reference).collect();
        all.sort_by(|one, other| one.id.cmp(&other.id));
        all.dedup_by(|later, kept| {
            let is_same = later.id == kept.id;
            kept.optional &= later.optional || !is_same;
            is_same
        });
        all
    }

    fn row(
        &mut self,
        namespace: &'a str,
        start: &'a Value,
        row: &'static ReferenceRow,
        own_claims: &BTreeSet<&str>,
    ) {
        each_name(start, row, &mut |holder, name| {
            if row.gvk.kind != "PersistentVolumeClaim" || !own_claims.contains(name) {
                self.read(namespace, row, holder, name);
            }
        });
    }

    /// Collects the name at a row's path in an object, unless it is empty.
    pub(crate) fn read(
        &mut self,
        namespace: &'a str,
        row: &'static ReferenceRow,
        holder: &'a Value,
        name: &'a str,
    ) {
        if name.is_empty() {
            return;
        }
        let optional = row.optional.is_some_and(|flag| holder[flag] == true);
        // With a prefix it is another object: those that every cluster creates have none.
        let name = match row.prefix {
            "" => Cow::Borrowed(name),
            prefix => Cow::Owned(format!("{prefix}{name}")),
        };
        self.add(row.gvk, namespace, name, optional);
    }
}

/// The kind of a row, with strings shared by all references of that kind: there are as many as templates times names.
fn shared(gvk: NativeGvk<'_>) -> Gvk {
    static KINDS: LazyLock<Vec<Gvk>> =
        LazyLock::new(|| REFERENCES.iter().map(|row| owned(row.gvk)).collect());
    let is_it =
        |each: &&Gvk| *each.kind == *gvk.kind && *each.group == *gvk.group && *each.version == *gvk.version;
    KINDS.iter().find(is_it).cloned().unwrap_or_else(|| owned(gvk))
}

pub(crate) fn owned(gvk: NativeGvk<'_>) -> Gvk {
    Gvk {
        group: gvk.group.into(),
        version: gvk.version.into(),
        kind: gvk.kind.into(),
    }
}

pub(crate) fn is_of(within: Within, gvk: NativeGvk<'_>) -> bool {
    matches!(within, Within::Object(group, kind) if group == gvk.group && kind == gvk.kind)
}

fn is_everywhere(gvk: NativeGvk<'_>, name: &str) -> bool {
    EVERYWHERE.iter().any(|each| each.gvk == gvk && each.name == name)
}

/// Calls `visit` with each name at the row's path and its parent object.
pub(crate) fn each_name<'a>(start: &'a Value, row: &ReferenceRow, visit: &mut dyn FnMut(&'a Value, &'a str)) {
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

pub(crate) fn walk<'a>(value: &'a Value, path: &str, visit: &mut dyn FnMut(&'a Value, &'a str)) {
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
