//! The index of override policies by kind, namespace and name: those that may apply to a template.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    cache::Member,
    object::{Gvk, Meta, NamespacedName, ResourceId, Str, StrMap, Time},
    overrides::{Candidates, Policy, Rules, select},
    scheduler::Candidate,
};

/// The objects that a selector may select: a kind (none: every kind), a namespace (empty: every namespace, or cluster-scoped),
/// a name (empty: every name). Labels are compared later: an override may change them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Reach {
    pub(crate) gvk: Option<Gvk>,
    pub(crate) namespace: Str,
    pub(crate) name: Str,
}

/// A cached override policy.
#[derive(Clone, Debug)]
struct PolicyOverrides {
    meta: Meta,
    policy: Policy,
    /// The time of its last observed change, else that of the first one of the objects that it may apply to; `None` before
    /// that: what a process finds at its start was reported by the previous one.
    changed: Option<Time>,
}

/// The override policies, and the objects that they may apply to.
#[derive(Clone, Debug, Default)]
pub(crate) struct OverrideIndex {
    policies: BTreeMap<NamespacedName, PolicyOverrides>,
    reaches: BTreeMap<Reach, BTreeSet<NamespacedName>>,
    /// The number of policies that select clusters by labels or fields.
    looking: usize,
}

impl OverrideIndex {
    /// The names of all; those without a namespace are ClusterOverridePolicies.
    pub(crate) fn names(&self) -> impl Iterator<Item = &NamespacedName> {
        self.policies.keys()
    }

    /// True if the policy exists.
    pub(crate) fn contains(&self, name: &NamespacedName) -> bool {
        self.policies.contains_key(name)
    }

    /// Its metadata.
    pub(crate) fn meta(&self, name: &NamespacedName) -> Option<&Meta> {
        self.policies.get(name).map(|held| &held.meta)
    }

    /// The policy, and the objects that it may apply to. Cost: O(its selectors).
    pub(crate) fn get(&self, name: &NamespacedName) -> Option<(&Policy, BTreeSet<Reach>)> {
        let held = self.policies.get(name)?;
        Some((&held.policy, reaches(name, &held.policy)))
    }

    /// The time since when its effect may have to be reported.
    pub(crate) fn changed(&self, name: &NamespacedName) -> Option<Time> {
        self.policies.get(name)?.changed
    }

    /// The policy, or an object that it may apply to, has changed. A change of the policy itself begins anew: see [`Self::insert`].
    pub(crate) fn changes(&mut self, name: &NamespacedName, now: Time) {
        if let Some(held) = self.policies.get_mut(name) {
            held.changed.get_or_insert(now);
        }
    }

    /// True if a change of a Cluster may change the overrides that apply there.
    pub(crate) fn look_at_clusters(&self) -> bool {
        self.looking > 0
    }

    /// Inserts a policy. Returns its reach before and now; empty if the policy is the same as before.
    ///
    /// Cost: O(size of the policy).
    pub(crate) fn insert(&mut self, name: &NamespacedName, meta: Meta, policy: Policy) -> BTreeSet<Reach> {
        if let Some(held) = self.policies.get_mut(name)
            && held.policy == policy
        {
            held.meta = meta;
            return BTreeSet::new();
        }
        let mut reached = self.remove(name);
        for reach in reaches(name, &policy) {
            self.reaches
                .entry(reach.clone())
                .or_default()
                .insert(name.clone());
            reached.insert(reach);
        }
        self.looking += usize::from(policy.looks_at_clusters());
        let changed = None;
        self.policies.insert(
            name.clone(),
            PolicyOverrides {
                meta,
                policy,
                changed,
            },
        );
        reached
    }

    /// Removes a policy. Returns its reach. Cost: O(its selectors).
    pub(crate) fn remove(&mut self, name: &NamespacedName) -> BTreeSet<Reach> {
        let Some(held) = self.policies.remove(name) else {
            return BTreeSet::new();
        };
        self.looking -= usize::from(held.policy.looks_at_clusters());
        let reached = reaches(name, &held.policy);
        for reach in &reached {
            if let Some(names) = self.reaches.get_mut(reach) {
                names.remove(name);
                if names.is_empty() {
                    self.reaches.remove(reach);
                }
            }
        }
        reached
    }

    /// The policies that may apply to a template. Cost: O(log policies + those).
    pub(crate) fn that_may_apply_to(&self, id: &ResourceId) -> BTreeSet<&NamespacedName> {
        let mut names = BTreeSet::new();
        if self.policies.is_empty() {
            return names;
        }
        for namespace in BTreeSet::from([&*id.namespace, ""]) {
            for (gvk, name) in [(None, ""), (Some(&id.gvk), ""), (Some(&id.gvk), &*id.name)] {
                let reach = Reach {
                    gvk: gvk.cloned(),
                    namespace: namespace.into(),
                    name: name.into(),
                };
                names.extend(self.reaches.get(&reach).into_iter().flatten());
            }
        }
        names
    }

    /// The rules that apply to the copy of a template on a member. Cost: O(log policies + candidates).
    pub(crate) fn rules(&self, id: &ResourceId, labels: &StrMap, member: Option<&Member>) -> Rules {
        let Some(member) = member.filter(|_| !self.policies.is_empty()) else {
            return Rules::default();
        };
        let mut candidates = Candidates::default();
        for name in self.that_may_apply_to(id) {
            if let Some((name, held)) = self.policies.get_key_value(name) {
                let scope = if name.namespace.is_empty() {
                    &mut candidates.cluster_wide
                } else {
                    &mut candidates.of_namespace
                };
                scope.push((name, &held.policy));
            }
        }
        let cluster = member.object.metadata.name.as_deref().unwrap_or_default();
        let candidate = Candidate {
            name: cluster,
            labels: &member.meta.labels,
            cluster: &member.object,
            ready: true,
            deleting: false,
        };
        select(&candidates, id, labels, &candidate)
    }
}

/// The objects that a policy may apply to.
fn reaches(name: &NamespacedName, policy: &Policy) -> BTreeSet<Reach> {
    let own = &name.namespace;
    if policy.selectors.is_empty() {
        return BTreeSet::from([Reach {
            gvk: None,
            namespace: own.clone(),
            name: "".into(),
        }]);
    }
    policy
        .selectors
        .iter()
        .filter(|selector| own.is_empty() || selector.namespace.is_empty() || *selector.namespace == **own)
        .map(|selector| Reach {
            gvk: Some(Gvk::new(&selector.api_version, &selector.kind)),
            namespace: if own.is_empty() {
                selector.namespace.as_str().into()
            } else {
                own.clone()
            },
            name: selector.name.as_str().into(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use entourage_api::{cluster::Cluster, policy::OverrideSpec};
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn arb_selectors() -> impl Strategy<Value = serde_json::Value> {
        let selector = (0..2_usize, 0..3_usize, 0..3_usize, any::<bool>()).prop_map(
            |(kind, namespace, name, labels)| {
                let mut selector = json!({"apiVersion": "v1"});
                selector["kind"] = json!(["A", "B"][kind]);
                selector["namespace"] = json!(["", "x", "y"][namespace]);
                selector["name"] = json!(["", "one", "two"][name]);
                if labels {
                    selector["labelSelector"] = json!({"matchLabels": {"tier": "web"}});
                }
                selector
            },
        );
        prop::collection::vec(selector, 0..3).prop_map(|all| json!(all))
    }

    fn member() -> Member {
        let mut object = Cluster::default();
        object.metadata.name = Some("m".into());
        Member {
            meta: Meta::default(),
            object: Arc::new(object),
            id: None,
            probe: None,
            failing_since: None,
            answering_since: None,
        }
    }

    proptest! {
        /// The index finds the same as a scan of all policies, and a removal leaves nothing behind.
        #[test]
        fn the_rules_are_those_of_all_policies(
            policies in prop::collection::vec((0..3_usize, arb_selectors()), 1..6),
            kind in 0..2_usize, namespace in 0..3_usize, name in 0..2_usize, labelled in any::<bool>(),
        ) {
            let rule = json!([{"overriders": {"plaintext": [{"path": "/a", "operator": "remove"}]}}]);
            let all: Vec<(NamespacedName, Policy)> = policies.iter().enumerate().map(|(n, (at, selectors))| {
                let name = NamespacedName::new(["", "x", "y"][*at], &format!("p{n}"));
                let spec: OverrideSpec =
                    serde_json::from_value(json!({"resourceSelectors": selectors, "overrideRules": rule})).unwrap();
                (name.clone(), Policy::new(&name, &Meta::default(), &spec))
            }).collect();
            let mut index = OverrideIndex::default();
            for (name, policy) in &all {
                index.insert(name, Meta::default(), policy.clone());
            }
            let id = ResourceId::new(Gvk::new("v1", ["A", "B"][kind]), ["", "x", "y"][namespace], ["one", "two"][name]);
            let labels: StrMap = labelled.then(|| ("tier".into(), "web".into())).into_iter().collect();
            let (cluster_wide, of_namespace) =
                all.iter().map(|(name, policy)| (name, policy)).partition(|(name, _)| name.namespace.is_empty());
            let member = member();
            let candidate = Candidate {
                name: "m", labels: &member.meta.labels, cluster: &member.object, ready: true, deleting: false,
            };
            let wanted = select(&Candidates { cluster_wide, of_namespace }, &id, &labels, &candidate);
            prop_assert_eq!(index.rules(&id, &labels, Some(&member)), wanted);
            for (name, _) in &all {
                index.remove(name);
            }
            prop_assert!(index.reaches.is_empty() && index.policies.is_empty());
        }
    }
}
