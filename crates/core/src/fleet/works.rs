//! Works of the hub as observed: which one mirrors a copy, and whether a user suspended it.

use entourage_api::{cluster::SyncMode, names};

use crate::{
    cache::HeldWork,
    fleet::Fleet,
    object::{NamespacedName, ResourceId, Str},
    observation::Watch,
};

/// The purpose of the Works of a Cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Each is a view of a copy that this control plane delivers itself: the data of Secrets is left out.
    View,
}

impl Fleet {
    /// The purpose of the Works of a Cluster; `None` if it has none of ours.
    pub(crate) fn work_purpose(&self, cluster: &str) -> Option<Purpose> {
        let member = self.cache.members.get(cluster)?;
        let is_view = self.config.mirror_works
            && member.object.spec.sync_mode == SyncMode::Push
            && member.meta.deleting.is_none();
        is_view.then_some(Purpose::View)
    }

    /// The Work with the name of a copy's. Cost: O(log Works).
    pub(crate) fn work(&self, id: &ResourceId, cluster: &str) -> Option<&HeldWork> {
        self.cache.works.get(&work_of(id, cluster))
    }

    /// True if an execution namespace holds a Work of this hub. Cost: O(Works there).
    pub(crate) fn holds_works(&self, cluster: &str) -> bool {
        let namespace = names::execution_namespace(cluster);
        let of_it = self.cache.works.range(NamespacedName::new(&namespace, "")..);
        let mut of_it = of_it.take_while(|(name, _)| *name.namespace == *namespace);
        of_it.any(|(_, held)| held.work.is_of(&self.config.hub))
    }

    /// True if Works may suspend copies and are not listed yet: nothing is delivered before. A hub that does not let our account
    /// list them keeps nothing back.
    pub(crate) fn awaits_works(&self) -> bool {
        let watches = &self.cache.watches;
        self.config.mirror_works
            && !watches.is_listed(&Watch::Works)
            && watches.refused(&Watch::Works).is_none()
    }

    /// True if a user suspended a copy on a cluster by its Work. Cost: O(log Works); O(1) if Works are off.
    pub(crate) fn is_suspended_by_work(&self, id: &ResourceId, cluster: &str) -> bool {
        if self.cache.works.is_empty() {
            return false;
        }
        let held = self.work(id, cluster).map(|held| &held.work);
        held.is_some_and(|work| work.is_of(&self.config.hub) && work.is_suspended_by_user())
    }
}

/// The namespace and name of a copy's Work.
pub(crate) fn work_of(id: &ResourceId, cluster: &str) -> NamespacedName {
    let name: Str = names::work_name(&id.namespace, &id.name, &id.gvk.kind).into();
    NamespacedName::new(&names::execution_namespace(cluster), &name)
}
