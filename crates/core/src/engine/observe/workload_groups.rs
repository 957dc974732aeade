//! Workload groups: the members that are planned again when another one changes.

use super::Dirty;
use crate::{engine::routes::Changed, fleet::Fleet, graph::Membership, object::ResourceId};

impl Fleet {
    /// The stored groups or clusters of a binding may have changed. One that vanished counts until it is created again, or until
    /// nothing is left of it: its copies may still be there. Cost: O(log members) without a group; O(members of its groups ×
    /// their clusters) where they did.
    pub(super) fn grouped(&mut self, id: &ResourceId, dirty: &mut Dirty) {
        let resource = self.cache.resources.get(id);
        let binding = resource
            .filter(|resource| resource.binding.is_some() || !resource.has_nothing_left())
            .and_then(|resource| resource.last_binding());
        let is_gone = binding.is_none();
        let stored = binding.and_then(|binding| Membership::of(&binding.object.spec));
        let planned = self.memory.planned_groups.of(id);
        let is_settled = planned.is_some() && (is_gone || planned == stored.as_ref());
        if self.graph.workload_groups.of(id) == stored.as_ref() && !is_settled {
            return;
        }
        let before = self.standing(id);
        self.graph.workload_groups.set(id, stored);
        if is_settled {
            self.memory.planned_groups.set(id, None);
        }
        let after = self.standing(id);
        for other in self.companions_to_plan(id, (&before, &after)) {
            self.route(Changed::Companions(&other), dirty);
        }
    }
    /// As [`Self::grouped`], for all members of cluster-scoped or of namespaced groups. Cost: that of it, for each member.
    pub(super) fn regrouped(&mut self, cluster_scoped: bool) {
        let of_scope = |id: &&ResourceId| id.namespace.is_empty() == cluster_scoped;
        let ids: Vec<ResourceId> = self
            .graph
            .workload_groups
            .ids()
            .filter(of_scope)
            .cloned()
            .collect();
        let mut raised = std::mem::take(&mut self.memory.raised);
        for id in ids {
            self.grouped(&id, &mut raised);
        }
        self.memory.raised = raised;
    }
}
