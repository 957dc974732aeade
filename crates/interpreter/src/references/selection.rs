//! Dependencies of a template by label instead of by name: the table, and its evaluation.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::Value;

use entourage_model::{
    object::{Gvk, ResourceId, Str, StrMap},
    selector,
};

use crate::{
    gvk::NativeGvk,
    kind::NativeKind,
    mentions::{Within, is_of, owned, walk},
};

/// All objects of a kind and namespace whose labels match. They are required where the template is, as if it named them; an
/// empty selection is no problem.
#[derive(Clone, Debug, PartialEq)]
pub struct DependencySelection {
    /// Group, version and kind of the objects.
    pub gvk: Gvk,
    /// Namespace of the objects.
    pub namespace: Str,
    /// Their labels.
    pub selector: LabelSelector,
}

impl DependencySelection {
    /// True if it selects this object, with these labels. Cost: O(requirements).
    #[must_use]
    pub fn selects(&self, id: &ResourceId, labels: &StrMap) -> bool {
        self.gvk == id.gvk && self.namespace == id.namespace && selector::matches(&self.selector, labels)
    }
}

/// A path to the value of a label, and the objects of the same namespace that have it.
#[derive(Clone, Copy, Debug)]
pub struct SelectionRow {
    /// The start of the path.
    pub within: Within,
    /// The path, as in [`ReferenceRow::path`](super::ReferenceRow::path).
    pub path: &'static str,
    /// Group, version and kind of the objects.
    pub gvk: NativeGvk<'static>,
    /// The key of the label.
    pub label: &'static str,
    /// The prefix of the label's value before the value at the path; usually empty.
    pub prefix: &'static str,
    /// The use of the objects, in a few words.
    pub summary: &'static str,
    /// The source of the rule.
    pub source: &'static str,
}

/// The paths of all dependencies by label.
pub const SELECTIONS: &[SelectionRow] = &[SelectionRow {
    within: Within::Object("multicluster.x-k8s.io", "ServiceImport"),
    path: "metadata.name",
    gvk: NativeGvk {
        group: "discovery.k8s.io",
        version: "v1",
        kind: "EndpointSlice",
    },
    label: "kubernetes.io/service-name",
    prefix: "derived-",
    summary: "addresses of the imported Service",
    source: "Karmada reference 3.1",
}];

/// All dependencies by label of an object of this kind, in the order of the table.
///
/// Cost: O(rows), for kinds that have any O(size of the object).
#[must_use]
pub fn selections(native: &dyn NativeKind, namespace: &str, object: &Value) -> Vec<DependencySelection> {
    let mut found = Vec::new();
    for row in SELECTIONS.iter().filter(|row| is_of(row.within, native.gvk())) {
        walk(object, row.path, &mut |_, value| {
            if !value.is_empty() {
                let labels = [(row.label.to_owned(), format!("{}{value}", row.prefix))];
                found.push(DependencySelection {
                    gvk: owned(row.gvk),
                    namespace: namespace.into(),
                    selector: LabelSelector {
                        match_labels: Some(labels.into()),
                        match_expressions: None,
                    },
                });
            }
        });
    }
    found
}
