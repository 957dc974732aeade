//! The report whether an override policy changes any copy. Its kind has no status, as in Karmada: an Event informs its author once.

use crate::{
    cache::Member,
    fleet::{Fleet, wanted::is_committed},
    graph::Reach,
    object::{Gvk, Meta, NamespacedName, ResourceId, Str, Time},
    overrides::Policy,
    plan::{Change, Plan, SyncRequirement},
    scheduler::Candidate,
    scope,
};

/// The time, in milliseconds, after a change of a policy until it is reported to change no copy: its resources may be applied
/// together with it, and are scheduled after that.
const FIRST_LOOK: i64 = 2_000;

/// Plans the Event about an override policy.
///
/// Cost: O(members + objects that it may select × their clusters), up to the first copy that it changes.
pub(crate) fn plan(fleet: &Fleet, name: &NamespacedName, now: Time) -> Plan {
    let (Some((policy, reaches)), Some(changed)) = (
        fleet.graph.override_index.get(name),
        fleet.graph.override_index.changed(name),
    ) else {
        return Plan::nothing();
    };
    if fleet
        .graph
        .override_index
        .meta(name)
        .is_some_and(|meta| meta.deleting.is_some())
    {
        return Plan::nothing();
    }
    let until = changed.plus(FIRST_LOOK);
    if now < until {
        return Plan::wait_until(until, "what it is for may be on its way");
    }
    let needed = [SyncRequirement::Base, SyncRequirement::Overrides];
    if let Some(proof) = needed.into_iter().find(|proof| !fleet.has(proof)) {
        return Plan::wait_for(proof, "the copies that it changes are not synced");
    }
    match why_none(fleet, name, policy, reaches.iter()) {
        None => Plan::nothing(),
        Some(why) => {
            let message = format!("{} {name} changes no copy: {why}", scope::override_policy(name));
            Plan::one(Change::Refuse(message), "it changes no copy")
        }
    }
}

/// The reason why a policy changes no copy now; `None` if it changes one, or does not exist. Cost: as [`plan`].
pub(crate) fn without(fleet: &Fleet, name: &NamespacedName) -> Option<String> {
    let (policy, reaches) = fleet.graph.override_index.get(name)?;
    why_none(fleet, name, policy, reaches.iter())
}

fn why_none<'a>(
    fleet: &Fleet,
    name: &NamespacedName,
    policy: &Policy,
    reaches: impl Iterator<Item = &'a Reach>,
) -> Option<String> {
    if policy.is_empty() {
        return Some(NO_RULE.to_owned());
    }
    let aimed: Vec<(&Str, &Member)> = fleet
        .cache
        .members
        .iter()
        .filter(|(cluster, member)| policy.aims_at(&candidate(cluster, member)))
        .collect();
    let Some((_, first)) = aimed.first() else {
        return Some(NO_CLUSTER.to_owned());
    };
    let applies = |id: &ResourceId, meta: &Meta, member: &Member| {
        let rules = fleet.graph.override_index.rules(id, &meta.labels, Some(member));
        rules.iter().any(|rule| rule.policy() == name)
    };
    let mut elsewhere = 0;
    for reach in reaches {
        for id in fleet.reached(reach) {
            let Some(resource) = fleet.resource(id) else {
                continue;
            };
            let (Some(template), Some(binding)) = (&resource.template, &resource.binding) else {
                continue;
            };
            let is_there = |cluster: &str| is_committed(binding, cluster);
            let mut here = aimed.iter().filter(|(cluster, _)| is_there(cluster));
            if here.any(|(_, member)| applies(id, &template.meta, member)) {
                return None;
            }
            let is_somewhere = fleet.cache.members.keys().any(|cluster| is_there(cluster));
            elsewhere += usize::from(is_somewhere && applies(id, &template.meta, first));
        }
        // Namespaces are created on every member.
        let mut namespaces = fleet.cache.namespaces.hub.iter().filter(|(namespace, _)| {
            reach.namespace.is_empty() && (reach.name.is_empty() || reach.name == **namespace)
        });
        if reach.gvk.as_ref().is_none_or(Gvk::is_namespace)
            && namespaces.any(|(namespace, meta)| {
                let id = ResourceId::new(Gvk::new("v1", "Namespace"), "", namespace);
                aimed.iter().any(|(_, member)| applies(&id, meta, member))
            })
        {
            return None;
        }
    }
    Some(if elsewhere == 0 {
        NO_OBJECT.to_owned()
    } else {
        not_there(elsewhere)
    })
}

fn candidate<'a>(cluster: &'a Str, member: &'a Member) -> Candidate<'a> {
    Candidate {
        name: cluster,
        labels: &member.meta.labels,
        cluster: &member.object,
        ready: true,
        deleting: false,
    }
}

/// The reason for a policy without overriders.
pub const NO_RULE: &str = "it has no overriders; add some to spec.overrideRules";

/// The reason for a policy whose rules target no existing cluster.
pub const NO_CLUSTER: &str =
    "spec.overrideRules[].targetCluster selects no cluster of this hub; correct it, or join the cluster";

/// The reason for a policy that selects no propagated resource.
pub const NO_OBJECT: &str =
    "no propagated resource matches spec.resourceSelectors; correct them, or propagate the named resources";

/// The reason for a policy whose resources are on other clusters than those of its rules.
#[must_use]
pub fn not_there(objects: usize) -> String {
    let (resources, are) = if objects == 1 {
        ("resource matches", "it is")
    } else {
        ("resources match", "they are")
    };
    format!(
        "{objects} {resources} spec.resourceSelectors, and {are} not scheduled to any cluster that \
         spec.overrideRules[].targetCluster selects"
    )
}
