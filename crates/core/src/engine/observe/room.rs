//! The room that results of other processes use: it is reserved as that of own ones.

use entourage_api::work::{ResourceBinding, TargetCluster};

use crate::{
    fleet::Fleet,
    memory::room::Rooms,
    object::{ResourceId, Time},
    scheduler::{self, estimate::Demand},
    stored_binding::{recent, sets::as_sets},
};

impl Fleet {
    /// A binding was observed, after another state of it or for the first time. What this process itself planned is reserved already, and
    /// is not reserved twice; a write of a former leader may arrive late.
    /// Cost: O(clusters), and that of `Rooms::followed` for a result by room that this process did not plan.
    pub(super) fn room_followed(
        &mut self,
        id: &ResourceId,
        before: Option<&ResourceBinding>,
        stored: &ResourceBinding,
        now: Time,
    ) {
        let is_own = self.leading && before.is_none() && self.memory.rooms.is_recent(id);
        let after = stored.spec.clusters.as_slice();
        let is_same = before.is_some_and(|before| before.spec.clusters == after);
        if is_own || is_same || !is_by_room(stored) {
            return;
        }
        let running = match before {
            Some(_) => Vec::new(),
            None => {
                let scheduled = recent::scheduled_at(stored, now);
                if !scheduled.is_some_and(|time| Rooms::is_reserved_since(time, now)) {
                    return;
                }
                recent::running(stored)
            }
        };
        let before = before.map_or(running.as_slice(), |before| before.spec.clusters.as_slice());
        let before = as_sets(before, after);
        let demand = Demand::of_binding(&stored.spec);
        self.memory.rooms.followed(id, &demand, (&*before, after), now);
    }

    /// This process begins to lead. Cost: that of `Rooms::take_over`.
    pub(super) fn room_taken_over(&mut self, now: Time) {
        let resources = &self.cache.resources;
        let running = |id: &ResourceId| {
            let binding = resources.get(id).and_then(|resource| resource.binding.as_ref());
            binding.map(|binding| recent::running(&binding.object))
        };
        self.memory.rooms.take_over(running, now);
    }
}

/// True if the stored clusters were chosen by their room.
fn is_by_room(stored: &ResourceBinding) -> bool {
    let is_set = |target: &TargetCluster| target.replicas == 0 && !target.components.is_empty();
    let placement = stored.spec.placement.as_ref();
    placement.is_some_and(scheduler::is_by_room) || stored.spec.clusters.iter().any(is_set)
}
