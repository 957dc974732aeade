//! The stored objects of a Karmada: identifiers and versions. Nothing of the manifests in its Works is kept.

use std::collections::{BTreeMap, BTreeSet};

use entourage_api::{keys::label, names};
use serde_json::Value;

use super::id_label;
use crate::{
    marks,
    object::{Gvk, Meta, NamespacedName, ResourceId, Str},
    scope,
};

/// The objects of a Karmada's API server that decisions need.
#[derive(Clone, Debug, Default)]
pub struct Karmada {
    /// Its id: the uid of the namespace kube-system of its API server.
    pub id: Str,
    /// Its Works.
    pub works: BTreeMap<NamespacedName, Work>,
    /// The execution namespaces of the Works that contain an object.
    pub held_in: BTreeMap<ResourceId, BTreeSet<Str>>,
    /// Its bindings.
    pub bindings: BTreeMap<NamespacedName, KarmadaBinding>,
    /// Its policies.
    pub policies: BTreeMap<NamespacedName, KarmadaPolicy>,
    /// Its member clusters.
    pub clusters: BTreeMap<Str, KarmadaCluster>,
}

/// An object as stored: what a write to it names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stored {
    /// Its uid.
    pub uid: Str,
    /// Its resourceVersion.
    pub resource_version: Str,
    /// Its finalizers.
    pub finalizers: Vec<Str>,
    /// True if it is being deleted.
    pub is_deleting: bool,
}

impl Stored {
    fn of(meta: &Meta) -> Self {
        Self {
            uid: meta.uid.clone(),
            resource_version: meta.resource_version.clone(),
            finalizers: meta.finalizers.clone(),
            is_deleting: meta.deleting.is_some(),
        }
    }
}

/// A Work, without the content of its manifests.
#[derive(Clone, Debug, Default)]
pub struct Work {
    /// The object.
    pub stored: Stored,
    /// Its permanent id; empty if it has none.
    pub id: Str,
    /// The binding that it was made for; `None` for one that a user made, and those of namespaces and quotas.
    pub binding: Option<NamespacedName>,
    /// The permanent id of that binding, as the Work names it.
    pub binding_id: Str,
    /// The objects in it.
    pub objects: BTreeSet<ResourceId>,
    /// True if each of its manifests is one of these objects, and there is one.
    pub is_complete: bool,
    /// True if its objects stay on the member when it is deleted.
    pub preserves: bool,
}

/// A ResourceBinding, or a ClusterResourceBinding: that one has no namespace.
#[derive(Clone, Debug, Default)]
pub struct KarmadaBinding {
    /// The object.
    pub stored: Stored,
    /// Its permanent id; empty if it has none.
    pub id: Str,
    /// The permanent ids of the policies that claim it.
    pub policies: BTreeSet<Str>,
}

/// A PropagationPolicy, or a ClusterPropagationPolicy: that one has no namespace.
#[derive(Clone, Debug, Default)]
pub struct KarmadaPolicy {
    /// The object.
    pub stored: Stored,
    /// Its permanent id; empty if it has none.
    pub id: Str,
}

/// A member cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KarmadaCluster {
    /// The uid of the cluster's namespace kube-system; empty if Karmada does not know it.
    pub id: Str,
    /// True if an agent in the cluster applies its Works.
    pub is_pulled: bool,
    /// True if it is being deleted: Karmada then deletes its Works.
    pub is_deleting: bool,
}

impl Karmada {
    /// Adds a Work as stored. The caller wipes it: its manifests may be Secrets.
    pub fn add_work(&mut self, work: &Value) {
        let meta = Meta::of(work);
        let binding = marks::owner(&meta);
        let binding_id = binding.as_ref().and_then(|binding| meta.label(id_label(binding)));
        let manifests = work["spec"]["workload"]["manifests"].as_array();
        let count = manifests.map_or(0, Vec::len);
        let objects: BTreeSet<ResourceId> = manifests
            .into_iter()
            .flatten()
            .filter_map(ResourceId::of)
            .collect();
        let added = Work {
            stored: Stored::of(&meta),
            id: text(meta.label(label::WORK_ID)),
            binding_id: text(binding_id),
            is_complete: count > 0 && objects.len() == count,
            objects,
            preserves: work["spec"]["preserveResourcesOnDeletion"] == true,
            binding,
        };
        let name = name_of(work);
        for id in &added.objects {
            let namespaces = self.held_in.entry(id.clone()).or_default();
            namespaces.insert(name.namespace.clone());
        }
        self.works.insert(name, added);
    }

    /// Removes all Works, before they are read anew.
    pub fn clear_works(&mut self) {
        self.works.clear();
        self.held_in.clear();
    }

    /// True if a Work for the cluster contains an object.
    pub(super) fn has_on(&self, cluster: &str, id: &ResourceId) -> bool {
        let namespaces = self.held_in.get(id);
        namespaces.is_some_and(|all| all.contains(&*names::execution_namespace(cluster)))
    }

    /// Adds a ResourceBinding or ClusterResourceBinding as stored.
    pub fn add_binding(&mut self, binding: &Value) {
        let (name, meta) = (name_of(binding), Meta::of(binding));
        let ids = [label::PROPAGATION_POLICY_ID, label::CLUSTER_PROPAGATION_POLICY_ID];
        let added = KarmadaBinding {
            stored: Stored::of(&meta),
            id: text(meta.label(id_label(&name))),
            policies: ids
                .iter()
                .filter_map(|key| meta.label(key))
                .map(Str::from)
                .collect(),
        };
        self.bindings.insert(name, added);
    }

    /// Adds a PropagationPolicy or ClusterPropagationPolicy as stored.
    pub fn add_policy(&mut self, policy: &Value) {
        let (name, meta) = (name_of(policy), Meta::of(policy));
        let kind = if name.namespace.is_empty() {
            scope::CLUSTER_POLICY
        } else {
            scope::POLICY
        };
        let added = KarmadaPolicy {
            stored: Stored::of(&meta),
            id: text(meta.label(kind.id_label)),
        };
        self.policies.insert(name, added);
    }

    /// Adds a Cluster as stored.
    pub fn add_cluster(&mut self, cluster: &Value) {
        let added = KarmadaCluster {
            id: text(cluster["spec"]["id"].as_str()),
            is_pulled: cluster["spec"]["syncMode"] == "Pull",
            is_deleting: !cluster["metadata"]["deletionTimestamp"].is_null(),
        };
        self.clusters.insert(name_of(cluster).name, added);
    }

    /// The kinds of the objects in its Works, each in one of the versions.
    #[must_use]
    pub fn kinds(&self) -> BTreeSet<Gvk> {
        let objects = self.works.values().flat_map(|work| &work.objects);
        objects.map(|id| id.gvk.clone()).collect()
    }

    /// The clusters that its Works are for.
    #[must_use]
    pub fn clusters_of_works(&self) -> BTreeSet<&str> {
        let namespaces = self.works.keys().map(|name| &*name.namespace);
        namespaces
            .filter_map(names::cluster_of_execution_namespace)
            .collect()
    }
}

fn name_of(object: &Value) -> NamespacedName {
    let part = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    NamespacedName::new(part("namespace"), part("name"))
}

fn text(value: Option<&str>) -> Str {
    value.unwrap_or_default().into()
}
