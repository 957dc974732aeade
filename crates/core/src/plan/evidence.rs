//! The objects that a removal was decided from.
//!
//! One watch may report a past state while another is up to date: a copy that is needed now would be removed for what is over
//! (I7). So these objects are read once more right before the removal, and nothing is removed if one of them has changed.
//!
//! Left out, since the decision takes them as the watches show them: workloads that select a namespace (it stays selected for
//! half a minute after the last one is gone), the allow-list of a Secret (its owner withdraws it), and the conflicts elsewhere
//! that keep a strict distribution from being written.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde::Serialize;
use serde_json::Value;

use super::Preconditions;
use crate::{
    object::{Meta, ResourceId, Str},
    observation::{Watch, kind_read_by},
    places::Place,
    server::Server,
};

/// An object that a removal was decided from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Evidence {
    /// The object.
    pub object: EvidenceObject,
    /// Its state as last observed.
    pub state: EvidenceState,
}

/// The object of an [`Evidence`]; it has no namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum EvidenceObject {
    /// The ResourceDistribution of this name.
    Distribution(Str),
    /// The namespace of the hub, or of a member.
    Namespace(Place),
    /// The Cluster of this name.
    Cluster(Str),
}

/// The state of an object that a removal was decided from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum EvidenceState {
    /// It does not exist.
    Absent,
    /// It is exactly this one.
    Exactly(Preconditions),
    /// The hash of its uid, generation, labels, annotations and deletion: its status changes while copies are removed. Of this
    /// process only.
    Content(u64),
}

impl EvidenceState {
    /// The state of an object with a status. Cost: O(size of the metadata).
    #[must_use]
    pub fn of_content(meta: &Meta) -> Self {
        let mut hasher = DefaultHasher::new();
        (&meta.uid, meta.generation, meta.deleting).hash(&mut hasher);
        (&meta.labels, &meta.annotations).hash(&mut hasher);
        Self::Content(hasher.finish())
    }
}

impl Evidence {
    /// The server that has it.
    #[must_use]
    pub fn server(&self) -> Server {
        match &self.object {
            EvidenceObject::Namespace(place) => place.server(),
            EvidenceObject::Distribution(_) | EvidenceObject::Cluster(_) => Server::Hub,
        }
    }

    /// The watch that reports it.
    #[must_use]
    pub fn watch(&self) -> Watch {
        match &self.object {
            EvidenceObject::Distribution(_) => Watch::Distributions,
            EvidenceObject::Cluster(_) => Watch::Clusters,
            EvidenceObject::Namespace(place) => match &place.cluster {
                None => Watch::Namespaces,
                Some(cluster) => Watch::MemberNamespaces(cluster.clone()),
            },
        }
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> ResourceId {
        let name = match &self.object {
            EvidenceObject::Distribution(name) | EvidenceObject::Cluster(name) => name,
            EvidenceObject::Namespace(place) => &place.namespace,
        };
        ResourceId::new(kind_read_by(&self.watch()), "", name)
    }

    /// True if the object, as its server has it now, is as it was observed. Its metadata is enough. Cost: O(its size).
    #[must_use]
    pub fn holds(&self, live: Option<&Value>) -> bool {
        let live = live.map(Meta::of);
        match (&self.state, live) {
            (EvidenceState::Absent, live) => live.is_none(),
            (EvidenceState::Exactly(held), Some(live)) => {
                (live.uid, live.resource_version) == (held.uid.clone(), held.resource_version.clone())
            }
            (EvidenceState::Content(_), Some(live)) => EvidenceState::of_content(&live) == self.state,
            (_, None) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        cache::meta_of,
        observation::{Subject, project},
    };

    fn cluster() -> Value {
        json!({
            "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "spec": {"syncMode": "Push"},
            "metadata": {
                "name": "m1", "uid": "u", "resourceVersion": "5", "generation": 2, "labels": {"zone": "a"},
                "annotations": {"team": "x", "kubectl.kubernetes.io/last-applied-configuration": "{}"},
                "creationTimestamp": "2026-01-01T00:00:00Z",
            },
        })
    }

    #[test]
    fn an_object_with_a_status_is_as_it_was_observed_until_more_than_its_status_changes() {
        let Some(Subject::Cluster(observed)) = project(&Watch::Clusters, &Default::default(), &cluster())
        else {
            panic!("readable");
        };
        let evidence = Evidence {
            object: EvidenceObject::Cluster("m1".into()),
            state: EvidenceState::of_content(&meta_of(&observed.metadata)),
        };
        for (field, value, holds) in [
            ("resourceVersion", json!("6"), true),
            ("finalizers", json!(["a/b"]), true),
            ("managedFields", json!([]), true),
            (
                "annotations",
                json!({"team": "x", "kubectl.kubernetes.io/last-applied-configuration": "{ }"}),
                true,
            ),
            ("annotations", json!({"team": "y"}), false),
            ("labels", json!({"zone": "b"}), false),
            ("generation", json!(3), false),
            ("deletionTimestamp", json!("2026-01-02T00:00:00Z"), false),
            ("uid", json!("v"), false),
        ] {
            let mut live = cluster();
            live["metadata"][field] = value;
            assert_eq!(evidence.holds(Some(&live)), holds, "{field}: {live}");
        }
        assert!(!evidence.holds(None), "it is gone");
    }

    #[test]
    fn a_namespace_is_as_it_was_observed_while_it_has_the_same_version_or_is_still_absent() {
        let of = |state| Evidence {
            object: EvidenceObject::Namespace(Place {
                cluster: None,
                namespace: "a".into(),
            }),
            state,
        };
        let live = |uid: &str, version: &str| json!({"metadata": {"uid": uid, "resourceVersion": version}});
        let exactly = of(EvidenceState::Exactly(Preconditions {
            uid: "u".into(),
            resource_version: "5".into(),
        }));
        let absent = of(EvidenceState::Absent);
        for (evidence, live, holds) in [
            (&exactly, Some(live("u", "5")), true),
            (&exactly, Some(live("u", "6")), false),
            (&exactly, Some(live("v", "5")), false),
            (&exactly, None, false),
            (&absent, None, true),
            (&absent, Some(live("u", "5")), false),
        ] {
            assert_eq!(evidence.holds(live.as_ref()), holds, "{evidence:?}: {live:?}");
        }
    }
}
