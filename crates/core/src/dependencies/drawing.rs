//! A drawing of the dependency graph: references, missing objects, and the clusters of each object.
//!
//! - [`Drawing::of`]: from the objects of a hub, or of files after a simulation.
//! - [`text`], [`mermaid`], [`dot`]: its formats. All output is sorted by name, so that two drawings can be compared.

use std::collections::{BTreeMap, BTreeSet};

use entourage_api::work::{ResourceBindingSpec, ResourceBindingStatus};
use serde::{Deserialize as _, Serialize};
use serde_json::{Value, json};

use crate::{
    cache::referred,
    fleet::consents,
    interpreter::{Interpretation, operations::Operation},
    object::{Gvk, Meta, ResourceId, Str},
    observation,
    reserved::{is_skipped_kind, is_skipped_namespace},
};

pub mod dot;
pub mod mermaid;
pub mod text;

/// An object in the drawing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// True if it exists on the hub.
    pub exists: bool,
    /// The clusters that it is scheduled to, with true where its copy is applied.
    pub clusters: BTreeMap<String, bool>,
}

/// The objects and their references.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Drawing {
    /// Every object that refers to another, is referred to, or is scheduled.
    pub nodes: BTreeMap<ResourceId, Node>,
    /// Referrer → dependency → true if it is optional.
    pub edges: BTreeMap<ResourceId, BTreeMap<ResourceId, bool>>,
    /// Remarks for a user about objects that are not drawn because their dependencies are unknown.
    pub remarks: BTreeSet<String>,
}

impl Drawing {
    /// Builds a drawing from the objects of a hub: templates and bindings, and namespaces where objects refer to another one. An
    /// object may be metadata alone if its kind has no references. Dependencies by label are drawn only if they are among the
    /// objects; dependencies in a namespace that does not permit their propagation are not drawn. `interpretation` returns the
    /// interpretation of a kind.
    ///
    /// Cost: O(objects + references), for each selector O(objects of its kind in its namespace), and that of the
    /// interpretations.
    pub fn of<'a>(
        objects: impl Iterator<Item = (&'a ResourceId, &'a Value)> + Clone,
        interpretation: impl Fn(&Gvk) -> Interpretation,
    ) -> Self {
        let mut all = Self::default();
        let known: BTreeMap<&ResourceId, &Value> = objects.clone().collect();
        for (id, object) in objects {
            if &*id.gvk.group == "work.karmada.io" {
                all.place(object);
                continue;
            }
            let template = observation::template(&interpretation(&id.gvk), id, object);
            if let Some(failed_operation) = template.lacks(Operation::References) {
                all.remarks.insert(format!(
                    "{id}: {failed_operation}; its last known dependencies stay in force and are not drawn"
                ));
            }
            let may_take = |gvk: &Gvk, namespace: &Str| may_take(&known, id, gvk, namespace);
            for reference in template.references {
                let to = referred(&reference);
                if may_take(&to.gvk, &to.namespace) {
                    all.edge(id, to, reference.optional);
                }
            }
            for selection in template.selections {
                if !may_take(&selection.gvk, &selection.namespace) {
                    continue;
                }
                let first = ResourceId::new(selection.gvk.clone(), &selection.namespace, "");
                let in_reach = known
                    .range::<&ResourceId, _>(&first..)
                    .take_while(|(id, _)| id.gvk == selection.gvk && id.namespace == selection.namespace);
                for (needed, object) in in_reach {
                    let meta = observation::template_meta(&needed.gvk, object);
                    if selection.selects(needed, &meta.labels) {
                        all.edge(id, (*needed).clone(), true);
                    }
                }
            }
        }
        for (id, node) in &mut all.nodes {
            node.exists = known.contains_key(id);
        }
        all
    }

    /// A dependency by name and by label is as optional as the named one.
    fn edge(&mut self, from: &ResourceId, to: ResourceId, optional: bool) {
        self.nodes.entry(from.clone()).or_default();
        self.nodes.entry(to.clone()).or_default();
        let needed = self.edges.entry(from.clone()).or_default();
        needed.entry(to).or_insert(optional);
    }

    /// Records the clusters that a binding schedules its template to.
    fn place(&mut self, binding: &Value) {
        let Ok(spec) = ResourceBindingSpec::deserialize(&binding["spec"]) else {
            return;
        };
        let status = ResourceBindingStatus::deserialize(&binding["status"]).unwrap_or_default();
        let resource = &spec.resource;
        let gvk = Gvk::new(&resource.api_version, &resource.kind);
        let node = self
            .nodes
            .entry(ResourceId::new(gvk, &resource.namespace, &resource.name))
            .or_default();
        let required = spec.required_by.iter().flat_map(|each| &each.clusters);
        for target in spec.clusters.iter().chain(required) {
            let copy = status
                .aggregated_status
                .iter()
                .find(|item| item.cluster_name == target.name);
            node.clusters
                .insert(target.name.clone(), copy.is_some_and(|item| item.applied));
        }
    }

    /// Keeps the objects that match, their transitive dependencies, and their transitive dependents.
    #[must_use]
    pub fn around(mut self, fits: impl Fn(&ResourceId) -> bool) -> Self {
        let mut back: BTreeMap<&ResourceId, BTreeSet<&ResourceId>> = BTreeMap::new();
        for (from, needed) in &self.edges {
            for to in needed.keys() {
                back.entry(to).or_default().insert(from);
            }
        }
        let focus: BTreeSet<&ResourceId> = self.nodes.keys().filter(|id| fits(id)).collect();
        let forth = |id: &ResourceId| self.edges.get(id).into_iter().flat_map(BTreeMap::keys).collect();
        let needed = reached(&focus, forth);
        let referrers = reached(&focus, |id| back.get(id).into_iter().flatten().copied().collect());
        let kept: BTreeSet<ResourceId> = needed.union(&referrers).map(|id| (*id).clone()).collect();
        self.nodes.retain(|id, _| kept.contains(id));
        self.edges.retain(|id, _| kept.contains(id));
        for needed in self.edges.values_mut() {
            needed.retain(|id, _| kept.contains(id));
        }
        self
    }

    /// True if `id` is referred to and does not exist.
    #[must_use]
    pub fn is_missing(&self, id: &ResourceId) -> bool {
        self.nodes.get(id).is_some_and(|node| !node.exists)
    }

    /// The whole drawing as JSON: `nodes` and `edges`, each object named as in [`key`].
    #[must_use]
    pub fn json(&self) -> Value {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Edge {
            from: String,
            to: String,
            optional: bool,
            missing: bool,
        }
        let nodes: Vec<Value> = self
            .nodes
            .iter()
            .map(|(id, node)| {
                let clusters: Vec<Value> = node
                    .clusters
                    .iter()
                    .map(|(name, applied)| json!({"name": name, "applied": applied}))
                    .collect();
                json!({
                    "id": key(id), "apiVersion": id.gvk.api_version(), "kind": &*id.gvk.kind,
                    "namespace": &*id.namespace, "name": &*id.name, "exists": node.exists, "clusters": clusters,
                })
            })
            .collect();
        let edges: Vec<Edge> = self
            .edges
            .iter()
            .flat_map(|(from, needed)| needed.iter().map(move |(to, optional)| (from, to, *optional)))
            .map(|(from, to, optional)| Edge {
                from: key(from),
                to: key(to),
                optional,
                missing: self.is_missing(to),
            })
            .collect();
        json!({"nodes": nodes, "edges": edges})
    }
}

/// The kinds of dependencies by label of an object, with their namespaces.
#[must_use]
pub fn selected_kinds(
    interpretation: &Interpretation,
    id: &ResourceId,
    object: &Value,
) -> BTreeSet<(Gvk, Str)> {
    let selections = observation::template(interpretation, id, object).selections;
    selections
        .into_iter()
        .map(|selection| (selection.gvk, selection.namespace))
        .collect()
}

/// True if an object may propagate dependencies from a namespace, as the controllers decide it.
fn may_take(
    known: &BTreeMap<&ResourceId, &Value>,
    referrer: &ResourceId,
    gvk: &Gvk,
    namespace: &Str,
) -> bool {
    if is_skipped_kind(gvk) {
        return false;
    }
    if referrer.namespace == *namespace {
        return true;
    }
    if is_skipped_namespace(namespace) {
        return false;
    }
    let lets = || {
        let id = ResourceId::new(Gvk::new("v1", "Namespace"), "", namespace);
        let namespace = known.get(&id).map(|object| Meta::of(object));
        namespace.is_some_and(|meta| consents(&meta, &referrer.namespace))
    };
    referrer.namespace.is_empty() || lets()
}

/// The name of an object in the JSON form: `apps/v1/Deployment/default/web`.
#[must_use]
pub fn key(id: &ResourceId) -> String {
    format!(
        "{}/{}/{}/{}",
        id.gvk.api_version(),
        id.gvk.kind,
        id.namespace,
        id.name
    )
}

/// `member1, member2 (not applied)`.
fn places(node: &Node) -> String {
    let words = node.clusters.iter().map(|(name, applied)| {
        if *applied {
            name.clone()
        } else {
            format!("{name} (not applied)")
        }
    });
    words.collect::<Vec<_>>().join(", ")
}

/// All objects reachable from `begin`, including it.
fn reached<'a>(
    begin: &BTreeSet<&'a ResourceId>,
    next: impl Fn(&'a ResourceId) -> Vec<&'a ResourceId>,
) -> BTreeSet<&'a ResourceId> {
    let mut all = begin.clone();
    let mut open: Vec<&ResourceId> = begin.iter().copied().collect();
    while let Some(id) = open.pop() {
        for other in next(id) {
            if all.insert(other) {
                open.push(other);
            }
        }
    }
    all
}

#[cfg(test)]
mod tests;
