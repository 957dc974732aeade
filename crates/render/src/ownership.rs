//! The ownership test of an object on a member: the one predicate, shared by the planners and the executors.
//!
//! Metadata alone proves nothing: it is copied with the object when an object is duplicated or restored. An object is managed
//! in a cluster only if its metadata names this hub and *this* cluster, and either it is the very object that was recorded
//! there, or it names the binding of its template, and that binding, as stored, accounts for the cluster.
//! the binding of its template, and that binding, as stored, accounts for the cluster.

pub mod metadata;

use entourage_api::{
    keys::{annotation, label},
    names,
};

use entourage_model::{
    marks,
    object::{Meta, NamespacedName},
};

/// The claims in the metadata of an object on a member, compared with the hub, cluster and binding in question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// True if it names this hub.
    pub hub: bool,
    /// True if it names the execution namespace of the cluster it is in.
    pub cluster: bool,
    /// True if it names the binding of its template.
    pub binding: bool,
}

impl Claim {
    /// The claim of an object in `cluster`.
    #[must_use]
    pub fn of(live: &Meta, hub: &str, cluster: &str, binding: &NamespacedName) -> Self {
        Self {
            hub: live.label(label::HUB) == Some(hub),
            cluster: names_cluster(live, cluster),
            binding: marks::owner(live).as_ref() == Some(binding),
        }
    }

    /// True if the object is managed by this hub. `is_recorded`: its uid is the one recorded for this cluster; `is_accounted`:
    /// the stored binding accounts for this cluster.
    #[must_use]
    pub fn is_managed(self, is_recorded: bool, is_accounted: bool) -> bool {
        self.hub && self.cluster && (is_recorded || (self.binding && is_accounted))
    }
}

/// True if the metadata of an object names the execution namespace of this cluster.
#[must_use]
pub fn names_cluster(live: &Meta, cluster: &str) -> bool {
    let namespace = live.annotation(annotation::WORK_NAMESPACE);
    namespace.and_then(names::cluster_of_execution_namespace) == Some(cluster)
}

/// The value of the annotation that remains on a released claim: its hub, cluster and binding.
pub(crate) fn trace(hub: &str, cluster: &str, binding: &NamespacedName) -> String {
    format!("{hub}/{cluster}/{}/{}", binding.namespace, binding.name)
}

/// True if a claim was released by this hub in this cluster, from this binding: false for a duplicate of it elsewhere.
pub(crate) fn was_released_from(live: &Meta, hub: &str, cluster: &str, binding: &NamespacedName) -> bool {
    live.annotation(annotation::RELEASED_FROM) == Some(&trace(hub, cluster, binding))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_managed_only_where_its_metadata_and_a_record_say_so() {
        let all = Claim {
            hub: true,
            cluster: true,
            binding: true,
        };
        assert!(all.is_managed(true, true));
        assert!(all.is_managed(true, false));
        assert!(all.is_managed(false, true));
        assert!(!all.is_managed(false, false), "nothing accounts for it");
        let elsewhere = Claim {
            cluster: false,
            ..all
        };
        assert!(!elsewhere.is_managed(true, true), "it names another cluster");
        let of_another_hub = Claim { hub: false, ..all };
        assert!(!of_another_hub.is_managed(true, true));
        let of_another_binding = Claim {
            binding: false,
            ..all
        };
        assert!(!of_another_binding.is_managed(false, true));
        assert!(
            of_another_binding.is_managed(true, true),
            "it is the recorded object"
        );
    }
}
