//! The workload groups of templates: where their members are, as stored and as plans are about to store it.

use std::collections::BTreeSet;

use entourage_api::{policy::Placement, work::WorkloadAffinityGroups};

use crate::{
    cache::Binding,
    fleet::Fleet,
    graph::{GroupRule, Membership},
    object::{Meta, ResourceId, Str},
};

/// The groups and clusters of a member, as they count for the other members.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Standing {
    /// Its groups, after a write that is pending.
    groups: WorkloadAffinityGroups,
    /// Its clusters, after a write that is pending.
    has: BTreeSet<Str>,
    /// The clusters where it may run: before and after that write, and while it is being evicted.
    uses: BTreeSet<Str>,
}

impl Standing {
    /// The clusters that count by a rule.
    fn counts(&self, rule: GroupRule) -> &BTreeSet<Str> {
        match rule {
            GroupRule::Affinity => &self.has,
            GroupRule::AntiAffinity => &self.uses,
        }
    }
}

/// The clusters of the other members of a template's groups.
#[derive(Clone, Debug, Default)]
pub(crate) struct Companions {
    /// The affinity group, with the clusters that each of the others has, of those that are scheduled.
    pub(crate) beside: Option<(String, BTreeSet<Str>)>,
    /// The anti-affinity group, with the clusters that the others use.
    pub(crate) apart: Option<(String, BTreeSet<Str>)>,
}

impl Companions {
    /// True if a workload may be scheduled to a cluster where it is not yet. Cost: O(log clusters).
    pub(crate) fn permit(&self, cluster: &str) -> bool {
        let has = |(_, clusters): &(String, BTreeSet<Str>)| clusters.contains(cluster);
        self.beside.as_ref().is_none_or(has) && !self.apart.as_ref().is_some_and(has)
    }
}

/// The groups of a template by a placement: `key=value` of the labels that it names; `None` if the template has none of them.
pub(crate) fn groups_of(placement: &Placement, meta: &Meta) -> Option<WorkloadAffinityGroups> {
    let wanted = placement.workload_affinity.as_ref()?;
    let group = |term: &Option<entourage_api::policy::WorkloadAffinityTerm>| {
        let key = &term.as_ref()?.group_by_label_key;
        meta.label(key).map(|value| format!("{key}={value}"))
    };
    let (affinity, anti_affinity) = (group(&wanted.affinity), group(&wanted.anti_affinity));
    if affinity.is_none() && anti_affinity.is_none() {
        return None;
    }
    Some(WorkloadAffinityGroups {
        affinity_group: affinity.unwrap_or_default(),
        anti_affinity_group: anti_affinity.unwrap_or_default(),
    })
}

impl Fleet {
    /// The groups and clusters of a binding, as they count for the other members. Cost: O(its clusters).
    pub(crate) fn standing(&self, id: &ResourceId) -> Standing {
        let stored = self.graph.workload_groups.of(id);
        let planned = self.memory.planned_groups.of(id);
        let Some(last) = planned.or(stored) else {
            return Standing::default();
        };
        let all = stored.into_iter().chain(planned);
        let used = all.flat_map(|each: &Membership| each.clusters.iter().chain(&each.leaving));
        Standing {
            groups: last.groups.clone(),
            has: last.clusters.clone(),
            uses: used.cloned().collect(),
        }
    }

    /// The other members of a group, with what they count as, by name. Cost: O(members × their clusters).
    fn others(&self, id: &ResourceId, rule: GroupRule, group: &str) -> Vec<(ResourceId, Standing)> {
        let stored = self.graph.workload_groups.members(rule, &id.namespace, group);
        let planned = self.memory.planned_groups.members(rule, &id.namespace, group);
        let all: BTreeSet<&ResourceId> = stored.chain(planned).filter(|other| *other != id).collect();
        let counted = all.into_iter().map(|other| (other.clone(), self.standing(other)));
        counted
            .filter(|(_, standing)| rule.group(&standing.groups) == Some(group))
            .collect()
    }

    /// The affinity group of a binding, with its namespace; `None` without one. Cost: O(its clusters).
    pub(crate) fn affinity_group(&self, id: &ResourceId) -> Option<(Str, String)> {
        let standing = self.standing(id);
        let group = GroupRule::Affinity.group(&standing.groups)?;
        Some((id.namespace.clone(), group.to_owned()))
    }

    /// The members of an affinity group, as stored. Cost: O(log groups) to start.
    pub(crate) fn affinity_members(
        &self,
        (namespace, group): &(Str, String),
    ) -> impl Iterator<Item = &ResourceId> {
        self.graph
            .workload_groups
            .members(GroupRule::Affinity, namespace, group)
    }

    /// True if the status of a binding, as stored, says that nothing fits.
    fn is_refused(&self, id: &ResourceId) -> bool {
        let resource = self.cache.resources.get(id);
        let binding = resource.and_then(|resource| resource.binding.as_ref());
        binding.is_some_and(Binding::is_refused)
    }

    /// The clusters of the other members of a template's groups. `is_left` is true for a cluster that a member has to leave, with
    /// which it holds nobody back. Cost: O(members × their clusters); O(1) without a group.
    pub(crate) fn companions(
        &self,
        id: &ResourceId,
        groups: Option<&WorkloadAffinityGroups>,
        is_left: impl Fn(&ResourceId, &Str) -> bool,
    ) -> Companions {
        let Some(groups) = groups else {
            return Companions::default();
        };
        let beside = GroupRule::Affinity.group(groups).and_then(|group| {
            let others = self.others(id, GroupRule::Affinity, group);
            let stays = others.into_iter().map(|(other, standing)| -> BTreeSet<Str> {
                let stays = standing
                    .has
                    .into_iter()
                    .filter(|cluster| !is_left(&other, cluster));
                stays.collect()
            });
            let shared = stays
                .filter(|clusters| !clusters.is_empty())
                .reduce(|one, other| &one & &other);
            Some((group.to_owned(), shared?))
        });
        let apart = GroupRule::AntiAffinity.group(groups).map(|group| {
            let others = self.others(id, GroupRule::AntiAffinity, group);
            let used = others.into_iter().flat_map(|(_, standing)| standing.uses);
            (group.to_owned(), used.collect())
        });
        Companions { beside, apart }
    }

    /// The members of a binding's groups whose result its change can change: those without a valid result, because their reasons may
    /// differ, and those that may get clusters which were closed to them. Cost: O(members × clusters).
    pub(crate) fn companions_to_plan(
        &self,
        id: &ResourceId,
        (before, after): (&Standing, &Standing),
    ) -> BTreeSet<ResourceId> {
        let mut all = BTreeSet::new();
        let none = BTreeSet::new();
        for rule in GroupRule::ALL {
            let groups = [before, after].map(|each| rule.group(&each.groups));
            let clusters = [before, after].map(|each| each.counts(rule));
            let steps = match groups {
                [one, other] if one == other => vec![(one, clusters[0], clusters[1])],
                [one, other] => vec![(one, clusters[0], &none), (other, &none, clusters[1])],
            };
            for (group, was, is) in steps {
                let Some(group) = group.filter(|_| was != is) else {
                    continue;
                };
                let opened = opened(rule, was, is);
                let others = self.others(id, rule, group).into_iter();
                let concerned = others.filter(|(member, other)| match &opened {
                    Opened::All => true,
                    _ if other.has.is_empty() || self.is_refused(member) => true,
                    Opened::These(clusters) => clusters.iter().any(|cluster| !other.has.contains(*cluster)),
                });
                all.extend(concerned.map(|(other, _)| other));
            }
        }
        all
    }
}

/// The clusters that a change of one member opens to the others.
enum Opened<'a> {
    These(Vec<&'a Str>),
    /// It leaves the group, or has no cluster any more: it confines nobody.
    All,
}

fn opened<'a>(rule: GroupRule, was: &'a BTreeSet<Str>, is: &'a BTreeSet<Str>) -> Opened<'a> {
    match rule {
        GroupRule::AntiAffinity => Opened::These(was.difference(is).collect()),
        // The first member that is scheduled confines the others, and opens nothing.
        GroupRule::Affinity if was.is_empty() => Opened::These(Vec::new()),
        GroupRule::Affinity if is.is_empty() => Opened::All,
        GroupRule::Affinity => Opened::These(is.difference(was).collect()),
    }
}
