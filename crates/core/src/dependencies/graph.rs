//! The dependency graph as a graph: closure, cycles and drawing. The hot paths use the reverse directions in [`crate::graph`] instead.

use std::collections::{BTreeMap, BTreeSet};

use petgraph::{
    graph::{DiGraph, NodeIndex},
    visit::Dfs,
};

use crate::{cache::referred, fleet::Fleet, object::ResourceId};

/// Referrer → dependency, for all references of all templates.
#[derive(Debug, Default)]
pub struct DependencyGraph {
    graph: DiGraph<ResourceId, ()>,
    nodes: BTreeMap<ResourceId, NodeIndex>,
}

impl DependencyGraph {
    /// Builds the graph of all templates in the fleet. Cost: O(templates + references).
    #[must_use]
    pub fn of(fleet: &Fleet) -> Self {
        let mut all = Self::default();
        for (id, _) in fleet.resources() {
            for reference in fleet.links(id).direct.iter() {
                all.add(id, &referred(reference));
            }
        }
        all
    }

    /// Adds an edge.
    pub fn add(&mut self, referrer: &ResourceId, dependency: &ResourceId) {
        let (from, to) = (self.node(referrer), self.node(dependency));
        self.graph.update_edge(from, to, ());
    }

    /// The transitive dependencies of an object, without the object. Cost: O(their number and references).
    #[must_use]
    pub fn closure(&self, id: &ResourceId) -> BTreeSet<ResourceId> {
        let Some(start) = self.nodes.get(id) else {
            return BTreeSet::new();
        };
        let mut reached = BTreeSet::new();
        let mut walk = Dfs::new(&self.graph, *start);
        while let Some(node) = walk.next(&self.graph) {
            reached.insert(self.graph[node].clone());
        }
        reached.remove(id);
        reached
    }

    /// The groups of objects that refer to each other in a cycle. Cost: O(graph).
    #[must_use]
    pub fn cycles(&self) -> Vec<BTreeSet<ResourceId>> {
        petgraph::algo::tarjan_scc(&self.graph)
            .into_iter()
            .filter(|group| group.len() > 1)
            .map(|group| group.into_iter().map(|node| self.graph[node].clone()).collect())
            .collect()
    }

    fn node(&mut self, id: &ResourceId) -> NodeIndex {
        if let Some(node) = self.nodes.get(id) {
            return *node;
        }
        let node = self.graph.add_node(id.clone());
        self.nodes.insert(id.clone(), node);
        node
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::Gvk;

    fn id(name: &str) -> ResourceId {
        ResourceId::new(Gvk::new("v1", "ConfigMap"), "default", name)
    }

    #[test]
    fn the_closure_follows_references_and_survives_a_cycle() {
        let mut graph = DependencyGraph::default();
        graph.add(&id("a"), &id("b"));
        graph.add(&id("b"), &id("c"));
        graph.add(&id("c"), &id("b"));
        assert_eq!(graph.closure(&id("a")), [id("b"), id("c")].into());
        assert_eq!(graph.cycles(), [BTreeSet::from([id("b"), id("c")])]);
        assert!(graph.closure(&id("stranger")).is_empty());
    }
}
