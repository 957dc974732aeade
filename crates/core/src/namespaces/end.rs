//! A namespace that the hub deleted: it is deleted on a member, too, if this hub created it there and it is empty; else it is
//! released, and an event names the objects in it.
//!
//! A deletion of a namespace deletes all objects in it, so it needs more proof than that of a copy. Invariants:
//!
//! - The namespace itself records that this hub created it on this cluster, and that it is the object that was created
//!   (the proof of identity): annotations are restored and copied with an object, its uid is not. No other hub has a record on it.
//! - No copy that a binding manages may still exist in it: copies are removed in their own order.
//! - The hub returned 404 for it, and all objects in the namespace were listed after that. A kind that cannot be listed may have
//!   objects. That is done again right before the deletion, however long it waited: an object created in the namespace between
//!   that list and the deletion cannot be detected, because it does not change the namespace's version.
//! - It counts once as a deletion for [`crate::governor`]. So does a release, which also checks the hub first: a hub that was
//!   restored lacks namespaces that are to stay as they are.

use std::collections::BTreeSet;

use entourage_api::keys::event;

use super::content::Contents;
use crate::{
    fleet::{Fleet, namespaces::id_of},
    governor,
    object::{ResourceId, Str, Time},
    observation::Watch,
    places::Place,
    plan::{Change, Event, Plan, Preconditions, Regarding, RemovalMode, SyncRequirement},
};

/// The reason why a namespace of a member in Pull mode is kept.
const BY_AGENT: &str =
    "what else it contains cannot be known from the hub, and its agent would delete all of it";

/// The number of checks, with back-off, whether remaining objects are gone, or a failed request succeeds: some minutes in all.
const LOOKS: u32 = 9;

/// The reason why a namespace is kept whose record names another object, or none.
const UNPROVEN: &str = "it is not certain that it is the one that was created for the hub: it was restored or copied there, or \
                        created by an earlier version";

/// The longest delay between two checks, in milliseconds.
const LONGEST: i64 = 60_000;

/// Plans a namespace of a member that the hub does not have. Cost: O(kinds in use × log), and O(objects in the namespace).
pub(super) fn plan(fleet: &Fleet, name: &Str, cluster: &Str, now: Time) -> Plan {
    let hub = &fleet.config.hub;
    let Some(seen) = fleet.cache.namespaces.on(cluster, name) else {
        return Plan::nothing();
    };
    let leaves = |cluster: &Str| {
        fleet
            .cache
            .members
            .get(cluster)
            .is_none_or(|member| member.meta.deleting.is_some())
    };
    if seen.deleting
        || !seen.is_of(hub, cluster)
        || **name == *"default"
        || fleet.config.is_reserved(name)
        || !fleet.cache.namespaces.is_listed(cluster)
        || leaves(cluster)
    {
        return Plan::nothing();
    }
    if !fleet.is_base_synced() {
        return Plan::wait_for(SyncRequirement::Base, "the hub is not synced yet");
    }
    if !fleet.cache.watches.is_synced(&Watch::Namespaces) {
        return Plan::wait("the hub's namespaces are not synced");
    }
    if let Some(id) = fleet.stands_in(cluster, name) {
        return Plan::wait(format!("{id} may still be there"));
    }
    let preconditions = Preconditions {
        uid: seen.uid.clone(),
        resource_version: seen.resource_version.clone(),
    };
    let ending = fleet.cache.namespaces.ending(cluster, name);
    let found = ending.and_then(|ending| ending.observed_contents.as_ref());
    let due = found.map(|found| found.at.plus(LONGEST.min(500 << found.looks.min(16))));
    let is_on_hub = found.is_some_and(|found| found.contents == Contents::OnHub);
    if let Some(due) = due.filter(|due| is_on_hub && now < *due) {
        return Plan::wait_until(due, "the hub has it, or had it a moment ago");
    }
    let counts = ending.is_some_and(|ending| ending.explained);
    let counts = (counts, ending.is_some_and(|ending| ending.counted));
    let at = (name, cluster);
    let end = |mode, why: &str| {
        governor::hold(fleet, cluster, counts, now)
            .unwrap_or_else(|| end(fleet, at, preconditions, mode, why))
    };
    if fleet.is_pull(cluster) {
        return end(RemovalMode::Release, BY_AGENT);
    }
    if !seen.is_proven(hub, cluster) {
        return end(RemovalMode::Release, UNPROVEN);
    }
    if seen.has_records_of_others(hub) {
        return end(RemovalMode::Release, "another hub manages it, too");
    }
    let (Some(found), Some(due)) = (found, due) else {
        return look(fleet, at);
    };
    let why = match &found.contents {
        Contents::Nothing => return end(RemovalMode::Delete, "the hub deleted it, and nothing is in it"),
        Contents::Held(words) => return end(RemovalMode::Release, &format!("it contains {words}")),
        Contents::Unknown(words) => return end(RemovalMode::Release, &not_known(words)),
        Contents::OnHub => return look(fleet, at),
        Contents::Leaving(words) => format!("it contains {words}, which should be deleted soon"),
        Contents::NoResponse(words) => not_known(words),
    };
    if found.looks >= LOOKS {
        return end(RemovalMode::Release, &why);
    }
    if now < due {
        return Plan::wait_until(due, why);
    }
    look(fleet, at)
}

/// Plans a namespace of a cluster in Pull mode that leaves: its Work is deleted, and the namespace is kept, as the agent would delete
/// all that is in it. `None` for any other.
pub(super) fn of_leaving_agent(fleet: &Fleet, name: &Str, cluster: &Str) -> Option<Plan> {
    let member = fleet.cache.members.get(cluster)?;
    if member.meta.deleting.is_none() || !fleet.is_pull(cluster) {
        return None;
    }
    let seen = fleet.cache.namespaces.on(cluster, name);
    let Some(seen) = seen.filter(|seen| !seen.deleting && fleet.is_left_with(seen, cluster)) else {
        return Some(Plan::nothing());
    };
    if !fleet.is_base_synced() {
        let why = "the hub is not synced yet";
        return Some(Plan::wait_for(SyncRequirement::Base, why));
    }
    let change = Change::EndNamespace {
        cluster: cluster.clone(),
        name: name.clone(),
        preconditions: Preconditions {
            uid: seen.uid.clone(),
            resource_version: seen.resource_version.clone(),
        },
        copies: BTreeSet::new(),
        // Whether the hub has it does not matter.
        mode: RemovalMode::HandOver,
        event: None,
    };
    Some(Plan::one(
        change,
        "the cluster leaves, and its agent keeps the namespace",
    ))
}

fn not_known(words: &str) -> String {
    format!("its content is unknown: {words}")
}

fn look(fleet: &Fleet, (name, cluster): (&Str, &Str)) -> Plan {
    let change = Change::LookInto {
        cluster: cluster.clone(),
        name: name.clone(),
        copies: fleet.distributed_into(cluster, name),
    };
    Plan::one(change, "the hub deleted it: what is in it must be known")
}

fn end(
    fleet: &Fleet,
    (name, cluster): (&Str, &Str),
    preconditions: Preconditions,
    mode: RemovalMode,
    why: &str,
) -> Plan {
    let change = Change::EndNamespace {
        cluster: cluster.clone(),
        name: name.clone(),
        preconditions,
        copies: fleet.distributed_into(cluster, name),
        mode,
        event: (mode == RemovalMode::Release).then(|| Box::new(kept(fleet, (name, cluster), why))),
    };
    Plan::one(change, why)
}

fn kept(fleet: &Fleet, (name, cluster): (&Str, &Str), why: &str) -> Event {
    let member = fleet.cache.members.get(cluster);
    Event {
        regarding: Regarding {
            api_version: "cluster.karmada.io/v1alpha1".into(),
            kind: "Cluster".into(),
            namespace: "".into(),
            name: cluster.clone(),
            uid: member.map(|member| member.meta.uid.clone()).unwrap_or_default(),
        },
        warning: true,
        reason: event::NAMESPACE_KEPT,
        message: format!(
            "Namespace {name} was deleted on the hub and is kept on {cluster}: {why}. It is no longer managed; \
             delete it there when its content is no longer needed"
        ),
    }
}

impl Fleet {
    /// An object that may still exist in a namespace of a member and that a binding manages, or `None`; the namespace itself
    /// counts, too. Cost: O(kinds in use × log + objects in the namespace).
    fn stands_in(&self, cluster: &Str, name: &Str) -> Option<ResourceId> {
        let itself = id_of(name);
        let accounted = |id: &ResourceId| {
            self.resource(id)
                .is_some_and(|resource| resource.last_binding().is_some())
                && self.may_exist(id, cluster)
        };
        if accounted(&itself) {
            return Some(itself);
        }
        self.graph.kinds.iter().find_map(|gvk| {
            let of_it = self
                .cache
                .resources
                .range(ResourceId::new(gvk.clone(), name, "")..);
            let mut of_it = of_it.take_while(|(id, _)| id.gvk == *gvk && id.namespace == *name);
            of_it.find(|(id, _)| accounted(id)).map(|(id, _)| id.clone())
        })
    }

    /// The uids of copies of distributions in a namespace of a member, as currently observed. Cost: O(distributions with a copy
    /// there × log).
    fn distributed_into(&self, cluster: &Str, name: &Str) -> BTreeSet<Str> {
        let place = Place {
            cluster: Some(cluster.clone()),
            namespace: name.clone(),
        };
        let all = &self.memory.distributions;
        let of_it = all.at.get(&place).into_iter().flatten();
        of_it
            .filter_map(|distribution| Some(self.copy_of(distribution, &place)?.uid.clone()))
            .collect()
    }
}
