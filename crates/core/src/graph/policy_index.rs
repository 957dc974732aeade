//! The index of policies by kind, namespace, and name or one label of each selector: those that may select a template.
//!
//! A selector is in one bucket: under its name; else under one label that it requires; else under its kind alone. So a template
//! is compared only with policies that are likely to select it.

use std::collections::{BTreeMap, BTreeSet};

use entourage_api::policy::{PropagationSpec, ResourceSelector};

use crate::object::{Gvk, NamespacedName, ResourceId, Str, StrMap};

/// The bucket of a selector. The namespace is empty if a ClusterPropagationPolicy selects every namespace, or a cluster-scoped template.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Bucket {
    NamespacedName(Gvk, Str, Str),
    Labelled(Gvk, Str, Str, Str),
    Kind(Gvk, Str),
}

/// The index.
#[derive(Clone, Debug, Default)]
pub(crate) struct PolicyIndex {
    buckets: BTreeMap<Bucket, BTreeSet<NamespacedName>>,
}

impl PolicyIndex {
    /// Inserts a policy. Cost: O(selectors).
    pub(crate) fn insert(&mut self, name: &NamespacedName, spec: &PropagationSpec) {
        for selector in &spec.resource_selectors {
            if let Some(bucket) = bucket(name, selector) {
                self.buckets.entry(bucket).or_default().insert(name.clone());
            }
        }
    }

    /// Removes a policy. Cost: O(selectors).
    pub(crate) fn remove(&mut self, name: &NamespacedName, spec: &PropagationSpec) {
        for selector in &spec.resource_selectors {
            let Some(bucket) = bucket(name, selector) else {
                continue;
            };
            if let Some(names) = self.buckets.get_mut(&bucket) {
                names.remove(name);
                if names.is_empty() {
                    self.buckets.remove(&bucket);
                }
            }
        }
    }

    /// The policies that may select this template. Cost: O(labels + candidates).
    pub(crate) fn candidates(&self, id: &ResourceId, labels: &StrMap) -> BTreeSet<&NamespacedName> {
        let mut found = BTreeSet::new();
        let anywhere: Str = "".into();
        let namespaces = [
            Some(&id.namespace),
            (!id.namespace.is_empty()).then_some(&anywhere),
        ];
        for namespace in namespaces.into_iter().flatten() {
            let (gvk, namespace) = (|| id.gvk.clone(), || namespace.clone());
            let mut look = |bucket: &Bucket| found.extend(self.buckets.get(bucket).into_iter().flatten());
            look(&Bucket::NamespacedName(gvk(), namespace(), id.name.clone()));
            look(&Bucket::Kind(gvk(), namespace()));
            for (key, value) in labels {
                look(&Bucket::Labelled(gvk(), namespace(), key.clone(), value.clone()));
            }
        }
        found
    }
}

/// Returns `None` for a selector that can select nothing.
fn bucket(policy: &NamespacedName, selector: &ResourceSelector) -> Option<Bucket> {
    let gvk = Gvk::new(&selector.api_version, &selector.kind);
    let namespace: Str = if policy.namespace.is_empty() {
        selector.namespace.as_str().into()
    } else if selector.namespace.is_empty() || *selector.namespace == *policy.namespace {
        policy.namespace.clone()
    } else {
        return None;
    };
    if !selector.name.is_empty() {
        return Some(Bucket::NamespacedName(
            gvk,
            namespace,
            selector.name.as_str().into(),
        ));
    }
    let demanded = selector
        .label_selector
        .iter()
        .flat_map(|wanted| wanted.match_labels.iter().flatten())
        .next();
    Some(match demanded {
        Some((key, value)) => Bucket::Labelled(gvk, namespace, key.as_str().into(), value.as_str().into()),
        None => Bucket::Kind(gvk, namespace),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::matching;

    fn spec(selectors: &serde_json::Value) -> PropagationSpec {
        serde_json::from_value(json!({ "resourceSelectors": selectors })).unwrap()
    }

    fn arb_selector() -> impl Strategy<Value = serde_json::Value> {
        (0..3_usize, 0..3_usize, 0..3_usize, 0..4_usize).prop_map(|(kind, namespace, name, labels)| {
            let text = |all: [&str; 3], at: usize| serde_json::Value::from(all[at]);
            let mut selector = json!({"apiVersion": "v1", "kind": text(["A", "B", "C"], kind)});
            if namespace > 0 {
                selector["namespace"] = text(["", "x", "y"], namespace);
            }
            if name > 0 {
                selector["name"] = text(["", "one", "two"], name);
            }
            if labels > 0 {
                selector["labelSelector"] = [
                    json!(null),
                    json!({"matchLabels": {"tier": "web"}}),
                    json!({"matchExpressions": [{"key": "tier", "operator": "Exists"}]}),
                    json!({}),
                ][labels]
                    .clone();
            }
            selector
        })
    }

    proptest! {
        /// Every policy that selects a template is a candidate for it, and a removal leaves nothing behind.
        #[test]
        fn every_policy_that_selects_a_template_is_a_candidate(
            policies in prop::collection::vec((0..3_usize, prop::collection::vec(arb_selector(), 1..3)), 1..6),
            kind in 0..3_usize, namespace in 0..3_usize, name in 0..2_usize, labelled in any::<bool>(),
        ) {
            let mut index = PolicyIndex::default();
            let all: Vec<(NamespacedName, PropagationSpec)> = policies.iter().enumerate()
                .map(|(n, (at, selectors))| (NamespacedName::new(["", "x", "y"][*at], &format!("p{n}")), spec(&json!(selectors))))
                .collect();
            for (name, spec) in &all {
                index.insert(name, spec);
            }
            let id = ResourceId::new(Gvk::new("v1", ["A", "B", "C"][kind]), ["", "x", "y"][namespace], ["one", "two"][name]);
            let labels: StrMap = labelled.then(|| ("tier".into(), "web".into())).into_iter().collect();
            let candidates = index.candidates(&id, &labels);
            for (name, spec) in &all {
                if matching::selects(spec, &name.namespace, &id, &labels).is_some() {
                    prop_assert!(candidates.contains(name));
                }
            }
            for (name, spec) in &all {
                index.remove(name, spec);
            }
            prop_assert!(index.buckets.is_empty());
        }
    }
}
