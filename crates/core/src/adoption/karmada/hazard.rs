//! The Works whose objects a Karmada that is started again would delete, or would hold without a template.
//!
//! A deletion that was requested while its controllers were stopped is carried out when they start: of a Work itself, of the binding
//! that it was made for, of its Cluster. A Work that preserves its objects has none of these hazards.

use std::{collections::BTreeMap, fmt};

use entourage_api::names::cluster_of_execution_namespace;

use super::{Karmada, Work};
use crate::object::{NamespacedName, Str};

/// The reason why the objects of a Work are not safe with a Karmada that is started.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hazard {
    /// The Work is being deleted.
    WorkDeleted,
    /// The binding that it was made for is being deleted.
    BindingDeleted(NamespacedName),
    /// Its Cluster is being deleted.
    ClusterDeleted(Str),
    /// The binding that it was made for does not exist: no template leads to the Work.
    NoBinding(NamespacedName),
    /// The binding that it was made for was made again.
    OtherBinding(NamespacedName),
}

impl fmt::Display for Hazard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WorkDeleted => f.write_str("its Work is being deleted in Karmada, which would delete it"),
            Self::BindingDeleted(name) => {
                write!(
                    f,
                    "binding {name} is being deleted in Karmada, which would delete it"
                )
            }
            Self::ClusterDeleted(name) => {
                write!(
                    f,
                    "Cluster {name} is being deleted in Karmada, which would delete it"
                )
            }
            Self::NoBinding(name) => {
                write!(
                    f,
                    "Karmada has no binding {name}: its Work would follow no template"
                )
            }
            Self::OtherBinding(name) => write!(f, "binding {name} was made again in Karmada"),
        }
    }
}

/// The hazard of a Work. Cost: O(log n).
#[must_use]
pub fn hazard(karmada: &Karmada, name: &NamespacedName, work: &Work) -> Option<Hazard> {
    if work.preserves {
        return None;
    }
    if work.stored.is_deleting {
        return Some(Hazard::WorkDeleted);
    }
    let cluster = cluster_of_execution_namespace(&name.namespace).and_then(|name| {
        let (name, cluster) = karmada.clusters.get_key_value(name)?;
        cluster.is_deleting.then(|| name.clone())
    });
    if let Some(cluster) = cluster {
        return Some(Hazard::ClusterDeleted(cluster));
    }
    let owner = work.binding.clone()?;
    match karmada.bindings.get(&owner) {
        None => Some(Hazard::NoBinding(owner)),
        Some(binding) if binding.stored.is_deleting => Some(Hazard::BindingDeleted(owner)),
        Some(binding) if binding.id != work.binding_id => Some(Hazard::OtherBinding(owner)),
        Some(_) => None,
    }
}

/// The Works with a hazard, whoever manages their objects now. Cost: O(Works).
#[must_use]
pub fn hazards(karmada: &Karmada) -> BTreeMap<NamespacedName, Hazard> {
    let works = karmada.works.iter();
    works
        .filter_map(|(name, work)| Some((name.clone(), hazard(karmada, name, work)?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use entourage_api::keys::{annotation, label};
    use serde_json::{Value, json};

    use super::*;

    const NOW: &str = "2026-11-26T00:00:00Z";

    /// A Work, its binding and its Cluster, after a change.
    fn changed(change: impl FnOnce(&mut [Value; 3])) -> Vec<Hazard> {
        let mut objects = [
            json!({"metadata": {"namespace": "karmada-es-m1", "name": "web-1",
                "labels": {label::WORK_ID: "w", label::RESOURCE_BINDING_ID: "b"},
                "annotations": {annotation::RESOURCE_BINDING_NAMESPACE: "shop",
                    annotation::RESOURCE_BINDING_NAME: "web-deployment"}}, "spec": {}}),
            json!({"metadata": {"namespace": "shop", "name": "web-deployment", "labels": {label::RESOURCE_BINDING_ID: "b"}}}),
            json!({"metadata": {"name": "m1"}, "spec": {"syncMode": "Push"}}),
        ];
        change(&mut objects);
        let [work, binding, cluster] = objects;
        let mut karmada = Karmada::default();
        karmada.add_work(&work);
        if !binding.is_null() {
            karmada.add_binding(&binding);
        }
        karmada.add_cluster(&cluster);
        hazards(&karmada).into_values().collect()
    }

    #[test]
    fn what_is_deleted_at_the_next_start_is_a_hazard_unless_the_work_preserves() {
        let binding = || NamespacedName::new("shop", "web-deployment");
        let deleted = |object: &mut Value| object["metadata"]["deletionTimestamp"] = json!(NOW);
        assert!(changed(|_| {}).is_empty());
        assert_eq!(changed(|[work, ..]| deleted(work)), [Hazard::WorkDeleted]);
        let of_binding = changed(|[_, binding, _]| deleted(binding));
        assert_eq!(of_binding, [Hazard::BindingDeleted(binding())]);
        let of_cluster = changed(|[_, _, cluster]| deleted(cluster));
        assert_eq!(of_cluster, [Hazard::ClusterDeleted("m1".into())]);
        assert_eq!(
            changed(|[_, binding, _]| *binding = Value::Null),
            [Hazard::NoBinding(binding())]
        );
        let again = changed(|[_, binding, _]| {
            binding["metadata"]["labels"][label::RESOURCE_BINDING_ID] = json!("b-new");
        });
        assert_eq!(again, [Hazard::OtherBinding(binding())]);
        let preserved = changed(|[work, binding, _]| {
            work["spec"]["preserveResourcesOnDeletion"] = json!(true);
            deleted(work);
            *binding = Value::Null;
        });
        assert!(preserved.is_empty(), "{preserved:?}");
        let own = changed(|[work, binding, _]| {
            work["metadata"]["annotations"] = json!({});
            *binding = Value::Null;
        });
        assert!(own.is_empty(), "a Work of a user has no binding: {own:?}");
    }
}
