//! A namespaced kind and its cluster-scoped counterpart: one spec, one planner, and the differences between the two.
//!
//! Policies and bindings are identified by [`NamespacedName`]; one without a namespace is the cluster-scoped counterpart. All
//! differences are in the two tables here. Source: Karmada reference 0.2 to 0.4.

use entourage_api::keys::{annotation, finalizer, label};
use serde_json::{Map, Value, json};

use crate::object::{Meta, NamespacedName, Str};

/// The differences between a PropagationPolicy and a ClusterPropagationPolicy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicyKind {
    /// The kind.
    pub kind: &'static str,
    /// The label with the policy's permanent id: on itself, on the templates it claims and on their bindings.
    pub id_label: &'static str,
    /// The finalizer.
    pub finalizer: &'static str,
}

/// PropagationPolicy.
pub const POLICY: PolicyKind = PolicyKind {
    kind: "PropagationPolicy",
    id_label: label::PROPAGATION_POLICY_ID,
    finalizer: finalizer::PROPAGATION_POLICY,
};

/// ClusterPropagationPolicy.
pub const CLUSTER_POLICY: PolicyKind = PolicyKind {
    kind: "ClusterPropagationPolicy",
    id_label: label::CLUSTER_PROPAGATION_POLICY_ID,
    finalizer: finalizer::CLUSTER_PROPAGATION_POLICY,
};

/// The group and version of both.
pub const POLICY_API: &str = "policy.karmada.io/v1alpha1";

/// The differences between a ResourceBinding and a ClusterResourceBinding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BindingKind {
    /// The kind.
    pub kind: &'static str,
    /// The label with the binding's permanent id: on itself and on its copies.
    pub id_label: &'static str,
    /// The finalizer.
    pub finalizer: &'static str,
}

/// ResourceBinding.
pub const BINDING: BindingKind = BindingKind {
    kind: "ResourceBinding",
    id_label: label::RESOURCE_BINDING_ID,
    finalizer: finalizer::BINDING,
};

/// ClusterResourceBinding.
pub const CLUSTER_BINDING: BindingKind = BindingKind {
    kind: "ClusterResourceBinding",
    id_label: label::CLUSTER_RESOURCE_BINDING_ID,
    finalizer: finalizer::CLUSTER_BINDING,
};

/// The group and version of both.
pub const BINDING_API: &str = "work.karmada.io/v1alpha2";

/// The kind of the policy.
#[must_use]
pub fn policy(name: &NamespacedName) -> &'static PolicyKind {
    if name.namespace.is_empty() {
        &CLUSTER_POLICY
    } else {
        &POLICY
    }
}

/// The kind of the override policy.
#[must_use]
pub fn override_policy(name: &NamespacedName) -> &'static str {
    if name.namespace.is_empty() {
        "ClusterOverridePolicy"
    } else {
        "OverridePolicy"
    }
}

/// The kind of the binding of an object in this namespace.
#[must_use]
pub fn binding(namespace: &str) -> &'static BindingKind {
    if namespace.is_empty() {
        &CLUSTER_BINDING
    } else {
        &BINDING
    }
}

/// The policy that the metadata of an object names as its claimant; a PropagationPolicy before a ClusterPropagationPolicy.
#[must_use]
pub fn claim_of(meta: &Meta) -> Option<NamespacedName> {
    claim_in(|key| meta.annotation(key))
}

/// The policy that annotations, read by key, name as the claimant; see [`claim_of`].
pub fn claim_in<'a>(annotation: impl Fn(&str) -> Option<&'a str>) -> Option<NamespacedName> {
    if let Some(name) = annotation(annotation::PROPAGATION_POLICY_NAME) {
        let namespace = annotation(annotation::PROPAGATION_POLICY_NAMESPACE)?;
        return (!namespace.is_empty()).then(|| NamespacedName::new(namespace, name));
    }
    let name = annotation(annotation::CLUSTER_PROPAGATION_POLICY_NAME)?;
    Some(NamespacedName::new("", name))
}

/// True if an object carries any metadata of a claim, complete or not.
#[must_use]
pub fn has_claim_metadata(meta: &Meta) -> bool {
    CLAIM_LABELS.iter().any(|key| meta.labels.contains_key(key))
        || CLAIM_ANNOTATIONS
            .iter()
            .any(|key| meta.annotations.contains_key(key))
}

/// The labels of a claim.
pub const CLAIM_LABELS: &[&str] = &[label::PROPAGATION_POLICY_ID, label::CLUSTER_PROPAGATION_POLICY_ID];

/// The annotations of a claim.
pub const CLAIM_ANNOTATIONS: &[&str] = &[
    annotation::PROPAGATION_POLICY_NAMESPACE,
    annotation::PROPAGATION_POLICY_NAME,
    annotation::CLUSTER_PROPAGATION_POLICY_NAME,
    annotation::WAITS,
];

/// Keys and values of labels, or of annotations.
pub type Pairs = Vec<(&'static str, Str)>;

/// The label and the annotations with which a policy of this permanent id claims an object.
#[must_use]
pub fn claim(name: &NamespacedName, permanent_id: &str) -> (Pairs, Pairs) {
    let labels = vec![(policy(name).id_label, permanent_id.into())];
    let annotations = if name.namespace.is_empty() {
        vec![(annotation::CLUSTER_PROPAGATION_POLICY_NAME, name.name.clone())]
    } else {
        vec![
            (annotation::PROPAGATION_POLICY_NAMESPACE, name.namespace.clone()),
            (annotation::PROPAGATION_POLICY_NAME, name.name.clone()),
        ]
    };
    (labels, annotations)
}

/// The metadata of a merge patch that makes `held` carry exactly this claim (`None`: no claim), of either scope.
#[must_use]
pub fn claim_patch(held: &Meta, claimed: Option<(&NamespacedName, &str)>) -> Map<String, Value> {
    let (labels, annotations) = claimed.map_or_else(Default::default, |(name, id)| claim(name, id));
    let part = |all: &[&str], wanted: &[(&'static str, Str)], has: &dyn Fn(&str) -> bool| {
        let mut map: Map<String, Value> = all
            .iter()
            .filter(|key| has(key))
            .map(|key| ((*key).to_owned(), Value::Null))
            .collect();
        map.extend(
            wanted
                .iter()
                .map(|(key, value)| ((*key).to_owned(), json!(&**value))),
        );
        Value::Object(map)
    };
    let labels = part(CLAIM_LABELS, &labels, &|key| held.labels.contains_key(key));
    let annotations = part(CLAIM_ANNOTATIONS, &annotations, &|key| {
        held.annotations.contains_key(key)
    });
    [
        ("labels".to_owned(), labels),
        ("annotations".to_owned(), annotations),
    ]
    .into_iter()
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta(value: &Value) -> Meta {
        Meta::of(&json!({ "metadata": value }))
    }

    #[test]
    fn a_claim_is_read_back_as_it_was_made() {
        for name in [
            NamespacedName::new("shop", "web"),
            NamespacedName::new("", "everywhere"),
        ] {
            let patch = claim_patch(&Meta::default(), Some((&name, "id")));
            let object = meta(&Value::Object(patch));
            assert_eq!(claim_of(&object), Some(name.clone()));
            assert_eq!(object.label(policy(&name).id_label), Some("id"));
        }
    }

    #[test]
    fn a_claim_of_one_twin_takes_the_others_away() {
        let before = claim_patch(
            &Meta::default(),
            Some((&NamespacedName::new("", "everywhere"), "old")),
        );
        let held = meta(&Value::Object(before));
        let patch = claim_patch(&held, Some((&NamespacedName::new("shop", "web"), "new")));
        assert_eq!(
            patch["labels"],
            json!({label::CLUSTER_PROPAGATION_POLICY_ID: null, label::PROPAGATION_POLICY_ID: "new"})
        );
        assert_eq!(
            patch["annotations"][annotation::CLUSTER_PROPAGATION_POLICY_NAME],
            Value::Null
        );
        let none = claim_patch(&held, None);
        assert_eq!(
            none["labels"],
            json!({label::CLUSTER_PROPAGATION_POLICY_ID: null})
        );
    }
}
