//! The decision on a former hub's object, by what it was made from: a binding, a quota, a distribution, a namespace, a claim.

use entourage_api::{keys::annotation, names::cluster_of_execution_namespace};

use super::{Decision, HubState, Lost, Origin, Transfer};
use crate::{
    config::Config,
    distributed::render::place,
    fleet::namespaces::{is_propagated, travels},
    marks,
    member_namespace::{
        self,
        list::{self, List},
    },
    object::{Meta, NamespacedName, ResourceId, Str, StrMap},
    observation::assignment,
    ownership::names_cluster,
};

pub(super) fn of_binding(state: &HubState, transfer: &Transfer, id: &ResourceId, live: &Meta) -> Decision {
    if !names_cluster(live, &transfer.cluster) {
        return other_cluster(live);
    }
    if !state.templates.contains_key(id) {
        return Decision::NoTemplate;
    }
    let Some(owner) = marks::owner(live) else {
        return Decision::NotPlaced(Origin::Template);
    };
    let is_wanted = |name: &NamespacedName| state.is_wanted(name, id, &transfer.cluster);
    if is_wanted(&owner) {
        return Decision::Adopt;
    }
    let ours = state.bindings.keys().find(|name| is_wanted(name));
    if let Some(ours) = ours {
        return Decision::OtherBinding(owner, ours.clone());
    }
    let of_it = || state.bindings.values().filter(|placed| placed.resource == *id);
    if of_it().next().is_none() {
        Decision::NoBinding
    } else if of_it().any(|placed| state.is_open(placed, &transfer.cluster)) {
        Decision::NotScheduled
    } else {
        Decision::NotPlaced(Origin::Template)
    }
}

/// The decision on an object whose metadata names another cluster, by its execution namespace.
pub(super) fn other_cluster(live: &Meta) -> Decision {
    let namespace = live.annotation(annotation::WORK_NAMESPACE).unwrap_or_default();
    let other = cluster_of_execution_namespace(namespace);
    Decision::OtherCluster(other.unwrap_or(namespace).into())
}

pub(super) fn of_quota(state: &HubState, transfer: &Transfer, id: &ResourceId, live: &Meta) -> Decision {
    let name = NamespacedName::new(&id.namespace, &id.name);
    let made_for = live
        .annotation(annotation::FEDERATED_QUOTA_FOR)
        .unwrap_or_default();
    if made_for != assignment(&transfer.cluster, &name) {
        return Decision::OtherCluster(cluster_of(made_for));
    }
    match state.quotas.get(&name) {
        None => Decision::NoTemplate,
        Some(clusters) if clusters.contains(&transfer.cluster) => Decision::Adopt,
        Some(_) => Decision::NotPlaced(Origin::Quota),
    }
}

pub(super) fn of_distribution(
    state: &HubState,
    transfer: &Transfer,
    id: &ResourceId,
    live: &Meta,
) -> Decision {
    let made_for = live.annotation(annotation::DISTRIBUTED_IN).unwrap_or_default();
    if made_for != place(&transfer.cluster, &id.namespace) {
        return Decision::OtherCluster(cluster_of(made_for));
    }
    let name = live.annotation(annotation::DISTRIBUTED_FROM).unwrap_or_default();
    let Some(distributed) = state.distributions.get(name) else {
        return Decision::NoTemplate;
    };
    let none = StrMap::new();
    let labels = transfer.namespaces.get(&id.namespace).unwrap_or(&none);
    if distributed.is_wanted(id, &transfer.cluster, labels) {
        Decision::Adopt
    } else {
        Decision::NotPlaced(Origin::Distribution)
    }
}

/// A record of the creation that names another cluster stays, and does not hold back the list of what the hub set. What is listed
/// belongs to the hub that adopts the list: it removes what it does not set itself.
pub(super) fn of_namespace(state: &HubState, transfer: &Transfer, id: &ResourceId, live: &Meta) -> Decision {
    let has_list = live.annotation(&list::key(&transfer.former)).is_some();
    let creator = live.annotation(annotation::CREATED_BY).unwrap_or_default();
    if !has_list && !member_namespace::is_of(creator, &transfer.former, &transfer.cluster) {
        let rest = creator.split_once('/').map_or("", |(_, rest)| rest);
        return Decision::OtherCluster(cluster_of(rest));
    }
    let Some(template) = state.namespaces.get(&id.name) else {
        return Decision::NoTemplate;
    };
    if !is_propagated(&Config::new(&transfer.hub), &id.name, template) {
        return Decision::NotPlaced(Origin::Namespace);
    }
    let lost = lost(live, template, &transfer.former);
    if lost == Lost::default() {
        Decision::Adopt
    } else {
        Decision::WouldLose(lost)
    }
}

/// A claim that holds data is managed again where its template returns to, so that only its record counts.
pub(super) fn of_released_claim(
    state: &HubState,
    transfer: &Transfer,
    id: &ResourceId,
    live: &Meta,
) -> Decision {
    let record = live.annotation(annotation::RELEASED_FROM).unwrap_or_default();
    if !member_namespace::is_of(record, &transfer.former, &transfer.cluster) {
        let rest = record.split_once('/').map_or("", |(_, rest)| rest);
        return Decision::OtherCluster(cluster_of(rest));
    }
    if state.templates.contains_key(id) {
        Decision::Adopt
    } else {
        Decision::NoTemplate
    }
}

/// The listed keys that a namespace of a member has, and that the hub's lacks. Those that override policies set count, too: they
/// are not evaluated here.
fn lost(live: &Meta, template: &Meta, former: &str) -> Lost {
    let List { labels, annotations } = List::on(live, former);
    let missing = |keys: Vec<String>, live: &StrMap, template: &StrMap| -> Vec<String> {
        keys.into_iter()
            .filter(|key| travels(key) && live.contains_key(key) && !template.contains_key(key))
            .collect()
    };
    Lost {
        labels: missing(labels, &live.labels, &template.labels),
        annotations: missing(annotations, &live.annotations, &template.annotations),
    }
}

/// The cluster of `cluster/…`.
fn cluster_of(place: &str) -> Str {
    place.split('/').next().unwrap_or_default().into()
}
