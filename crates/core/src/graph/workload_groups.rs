//! Workload groups: which bindings share clusters, or avoid each other, by the value of a label of their templates.
//!
//! A group is one of a namespace, as in Karmada: a label of one namespace does not keep the workloads of another from a cluster.

use std::collections::{BTreeMap, BTreeSet};

use entourage_api::work::{ResourceBindingSpec, WorkloadAffinityGroups};

use crate::object::{ResourceId, Str};

/// The rule that the members of a group follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum GroupRule {
    /// They share clusters.
    Affinity,
    /// They avoid each other.
    AntiAffinity,
}

/// The groups of a binding, and its clusters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Membership {
    pub(crate) groups: WorkloadAffinityGroups,
    /// The clusters that it is scheduled to.
    pub(crate) clusters: BTreeSet<Str>,
    /// The clusters that it is being evicted from: it still runs there.
    pub(crate) leaving: BTreeSet<Str>,
}

/// The members of all groups.
#[derive(Clone, Debug, Default)]
pub(crate) struct WorkloadGroups {
    /// The members with their groups and clusters.
    of: BTreeMap<ResourceId, Membership>,
    /// Group → members: the reverse direction.
    members: BTreeMap<(GroupRule, Str, Str), BTreeSet<ResourceId>>,
}

impl GroupRule {
    /// Both rules.
    pub(crate) const ALL: [Self; 2] = [Self::Affinity, Self::AntiAffinity];

    /// The group that a binding has by this rule; `None` if it has none.
    pub(crate) fn group(self, groups: &WorkloadAffinityGroups) -> Option<&str> {
        let name = match self {
            Self::Affinity => &groups.affinity_group,
            Self::AntiAffinity => &groups.anti_affinity_group,
        };
        (!name.is_empty()).then_some(name)
    }
}

impl Membership {
    /// The membership by the spec of a binding; `None` if it has no group. Cost: O(clusters).
    pub(crate) fn of(spec: &ResourceBindingSpec) -> Option<Self> {
        let groups = spec.workload_affinity_groups.as_ref()?;
        GroupRule::ALL.iter().find_map(|rule| rule.group(groups))?;
        let evicted = spec.graceful_eviction_tasks.iter();
        Some(Self {
            groups: groups.clone(),
            clusters: spec
                .clusters
                .iter()
                .map(|each| each.name.as_str().into())
                .collect(),
            leaving: evicted.map(|task| task.from_cluster.as_str().into()).collect(),
        })
    }
}

impl WorkloadGroups {
    /// The membership of a binding. Cost: O(log members).
    pub(crate) fn of(&self, id: &ResourceId) -> Option<&Membership> {
        self.of.get(id)
    }

    /// All members.
    pub(crate) fn ids(&self) -> impl Iterator<Item = &ResourceId> {
        self.of.keys()
    }

    /// The members of a group. Cost: O(log groups) to start.
    pub(crate) fn members(
        &self,
        rule: GroupRule,
        namespace: &Str,
        name: &str,
    ) -> impl Iterator<Item = &ResourceId> {
        let group = (rule, namespace.clone(), Str::from(name));
        self.members.get(&group).into_iter().flatten()
    }

    /// Sets the membership of a binding, `None` for none. Cost: O(log members).
    pub(crate) fn set(&mut self, id: &ResourceId, membership: Option<Membership>) {
        if let Some(before) = self.of.remove(id) {
            for group in groups(id, &before) {
                if let Some(members) = self.members.get_mut(&group) {
                    members.remove(id);
                    if members.is_empty() {
                        self.members.remove(&group);
                    }
                }
            }
        }
        if let Some(membership) = membership {
            for group in groups(id, &membership) {
                self.members.entry(group).or_default().insert(id.clone());
            }
            self.of.insert(id.clone(), membership);
        }
    }
}

fn groups(id: &ResourceId, membership: &Membership) -> impl Iterator<Item = (GroupRule, Str, Str)> {
    GroupRule::ALL.into_iter().filter_map(|rule| {
        let name = rule.group(&membership.groups)?;
        Some((rule, id.namespace.clone(), Str::from(name)))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::object::Gvk;

    proptest! {
        /// Both directions agree, and no group without members is kept.
        #[test]
        fn both_directions_agree_after_any_order_of_changes(
            changes in prop::collection::vec((0..4_u8, prop::option::of(("[ab]?", "[ab]?"))), 1..30),
        ) {
            let id = |at: u8| ResourceId::new(Gvk::new("apps/v1", "Deployment"), "ns", &format!("d{at}"));
            let mut table = WorkloadGroups::default();
            for (at, groups) in changes {
                let membership = groups.map(|(affinity_group, anti_affinity_group)| Membership {
                    groups: WorkloadAffinityGroups { affinity_group, anti_affinity_group },
                    ..Membership::default()
                });
                table.set(&id(at), membership);
                for (rule, name) in GroupRule::ALL.into_iter().flat_map(|rule| ["a", "b"].map(|name| (rule, name))) {
                    let found: Vec<&ResourceId> = table.members(rule, &"ns".into(), name).collect();
                    let all = table.of.iter().filter(|(_, each)| rule.group(&each.groups) == Some(name));
                    prop_assert_eq!(found, all.map(|(id, _)| id).collect::<Vec<_>>());
                }
                prop_assert!(!table.members.values().any(BTreeSet::is_empty));
            }
        }
    }
}
