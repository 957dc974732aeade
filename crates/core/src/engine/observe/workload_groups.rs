//! Workload groups: the members that are planned again when another one changes.

use super::Dirty;
use crate::{engine::routes::Changed, fleet::Fleet, graph::Membership, object::ResourceId};

impl Fleet {
    /// The stored groups or clusters of a binding may have changed. Cost: O(log members) without a group; O(members of its groups ×
    /// their clusters) where they did.
    pub(super) fn grouped(&mut self, id: &ResourceId, dirty: &mut Dirty) {
        let resource = self.cache.resources.get(id);
        let binding = resource.and_then(|resource| resource.binding.as_ref());
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
}
