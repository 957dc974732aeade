//! The objects that a template touches: its copies, its referrers, its dependencies, and the distributions of it.

use super::{Relation, Touched, configuration::copies_of};
use crate::{
    cache::{Binding, referred},
    delivery::volumes,
    dependencies,
    fleet::{
        Fleet,
        needs::{followers, is_required_on},
    },
    inspection::{distributions, why},
    object::{ResourceId, Str, Time},
};

/// The effect on a copy that stays.
const RELEASED: &str = "it is released: kept, without ownership metadata";

pub(super) fn of(fleet: &Fleet, id: &ResourceId, now: Time) -> Vec<Touched> {
    let mut touched = Vec::new();
    let places = why::places(fleet, id, now);
    for (cluster, presence, _) in &places {
        let on_deletion = if !is_there(fleet, id, cluster) {
            "nothing is there that this hub manages"
        } else if is_preserved(fleet, id, cluster) {
            RELEASED
        } else {
            "it is deleted"
        };
        touched.push(Touched {
            cluster: Some(cluster.clone()),
            relation: Relation::Copy,
            object: id.into(),
            on_change: format!("it is updated ({presence} now)"),
            on_deletion: on_deletion.to_owned(),
        });
    }
    touched.extend(referrers(fleet, id));
    touched.extend(
        places
            .iter()
            .flat_map(|(cluster, ..)| dependencies_on(fleet, id, cluster)),
    );
    for (name, view) in distributions(fleet) {
        if view.spec().is_some_and(|spec| spec.source.as_ref() == Some(id)) {
            let on_deletion = "it stays as it is: its source is gone";
            touched.extend(copies_of(name, view, on_deletion));
        }
    }
    touched
}

/// True if a copy is on a cluster, as far as is known.
fn is_there(fleet: &Fleet, id: &ResourceId, cluster: &Str) -> bool {
    let copy = fleet
        .resource(id)
        .and_then(|resource| resource.copies.get(cluster));
    copy.is_some_and(|copy| copy.live.is_some() || copy.record.is_some())
}

/// True if the copy on a cluster outlives its template, or the last one that needs it, because a policy says so.
fn is_preserved(fleet: &Fleet, id: &ResourceId, cluster: &Str) -> bool {
    let resource = fleet.resource(id);
    resource.is_some_and(|resource| dependencies::preserves(fleet, resource, cluster))
}

/// True if a copy that nothing needs any more stays if it holds data.
fn may_hold_data(fleet: &Fleet, id: &ResourceId) -> bool {
    let resource = fleet.resource(id);
    id.gvk.is_claim() && !resource.is_some_and(volumes::is_deletion_asked)
}

/// The objects that refer to it: on the clusters where they need it, or on none.
fn referrers(fleet: &Fleet, id: &ResourceId) -> Vec<Touched> {
    let touched = |referrer: &ResourceId, cluster: Option<Str>, on_deletion: &str| Touched {
        cluster,
        relation: Relation::Referrer,
        object: referrer.into(),
        on_change: "it refers to the changed object".to_owned(),
        on_deletion: on_deletion.to_owned(),
    };
    let mut all = Vec::new();
    for (referrer, _, binding) in followers(fleet, id) {
        let needed = binding.needed_on();
        let lacks = "it refers to an object that is missing: new pods may not start";
        all.extend(
            needed
                .iter()
                .map(|target| touched(referrer, Some(target.name.as_str().into()), lacks)),
        );
    }
    let follows = |referrer: &ResourceId| followers(fleet, id).any(|(each, ..)| each == referrer);
    let others = fleet
        .links(id)
        .referrers
        .iter()
        .filter(|referrer| !follows(referrer));
    all.extend(others.map(|referrer| touched(referrer, None, "it refers to an object that is missing")));
    all
}

/// Its dependencies on one of its clusters.
fn dependencies_on(fleet: &Fleet, id: &ResourceId, cluster: &Str) -> Vec<Touched> {
    let follows = fleet
        .resource(id)
        .is_some_and(|resource| fleet.is_following(resource));
    if !follows {
        return Vec::new();
    }
    let references = fleet.links(id).references.iter();
    let touched = |reference| {
        let dependency = referred(reference);
        if !is_required_on(fleet, &dependency, cluster) || !is_there(fleet, &dependency, cluster) {
            return None;
        }
        let on_deletion = match holder(fleet, id, &dependency, cluster) {
            Some(holder) => format!("it stays: {holder} needs it, too"),
            None if is_preserved(fleet, &dependency, cluster) => RELEASED.to_owned(),
            None if may_hold_data(fleet, &dependency) => {
                "it is released if it holds data, and deleted otherwise".to_owned()
            }
            None => "it is deleted, too: nothing else needs it there".to_owned(),
        };
        Some(Touched {
            cluster: Some(cluster.clone()),
            relation: Relation::Dependency,
            object: (&dependency).into(),
            on_change: String::new(),
            on_deletion,
        })
    };
    references.filter_map(touched).collect()
}

/// Another one that keeps a dependency on a cluster: a referrer, or its own policy.
fn holder(fleet: &Fleet, id: &ResourceId, dependency: &ResourceId, cluster: &Str) -> Option<String> {
    let is_there = |binding: &Binding| binding.needs_on(cluster);
    let mut others = followers(fleet, dependency).filter(|(referrer, ..)| *referrer != id);
    let other = others.find(|(_, _, binding)| is_there(binding));
    let own = || {
        let binding = fleet.resource(dependency)?.binding.as_ref()?;
        let is_own = binding.object.spec.placement.is_some() && binding.is_placed_on(cluster);
        is_own.then(|| "a policy of its own".to_owned())
    };
    other.map(|(referrer, ..)| referrer.to_string()).or_else(own)
}
