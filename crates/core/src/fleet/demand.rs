//! The watch of each kind, in the version in use.

use crate::{
    fleet::Fleet,
    object::{Gvk, ResourceId, Str},
    observation::Watch,
    plan::Key,
};

impl Fleet {
    /// A kind in the version that is watched.
    pub(crate) fn watched(&self, gvk: &Gvk) -> Gvk {
        self.graph.kinds.get(gvk).unwrap_or(gvk).clone()
    }

    /// The watch of a kind's templates.
    pub(crate) fn templates(&self, gvk: &Gvk) -> Watch {
        Watch::Templates(self.watched(gvk))
    }

    /// The watch of a kind's copies on a member.
    pub(crate) fn copies(&self, cluster: &Str, gvk: &Gvk) -> Watch {
        Watch::Copies(cluster.clone(), self.watched(gvk))
    }

    /// A key with its kind in the version that is watched.
    pub(crate) fn in_use(&self, key: &Key) -> Key {
        let watched = |id: &ResourceId| ResourceId {
            gvk: self.watched(&id.gvk),
            ..id.clone()
        };
        match key {
            Key::Template(id) => Key::Template(watched(id)),
            Key::TemplateStatus(id) => Key::TemplateStatus(watched(id)),
            Key::Scaling(id) => Key::Scaling(watched(id)),
            Key::Binding(id) => Key::Binding(watched(id)),
            Key::BindingStatus(id) => Key::BindingStatus(watched(id)),
            Key::Copy(id, cluster) => Key::Copy(watched(id), cluster.clone()),
            Key::Work(id, cluster) => Key::Work(watched(id), cluster.clone()),
            Key::Policy(_)
            | Key::Cluster(_)
            | Key::Namespace(..)
            | Key::Distribution(_)
            | Key::DistributionStatus(_)
            | Key::Distributed(..)
            | Key::Override(_)
            | Key::Rebalancer(_)
            | Key::Quota(_)
            | Key::QuotaCopy(..)
            | Key::Endpoints(..)
            | Key::DerivedService(_)
            | Key::ExecutionNamespace(_) => key.clone(),
        }
    }

    /// The kinds among these that are not in use because the policies of the namespace select too many.
    pub(crate) fn refused_kinds<'a>(
        &self,
        namespace: &str,
        kinds: impl Iterator<Item = &'a Gvk>,
    ) -> Vec<&'a Gvk> {
        kinds
            .filter(|gvk| self.graph.named_kinds.is_refused(namespace, gvk))
            .collect()
    }
}
