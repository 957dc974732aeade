//! Namespaces of members.

use std::collections::{BTreeMap, BTreeSet};

use entourage_core::{
    namespaces::{
        self,
        content::{Contents, Look},
    },
    object::{Gvk, ResourceId, Str},
    observation::{Observation, Server},
    plan::{Event, Preconditions, RemovalMode},
};
use serde_json::Value;

use super::Outcome;
use crate::{
    environment::{Environment, Request, Write},
    objects::merge,
};

/// The id of a namespace.
#[must_use]
pub fn namespace(name: &str) -> ResourceId {
    ResourceId::new(Gvk::new("v1", "Namespace"), "", name)
}

/// Creates a namespace of a member, or merges missing labels and annotations into it.
pub(super) fn apply(
    servers: &mut impl Environment,
    cluster: &Str,
    name: &Str,
    labels: &BTreeMap<Str, Str>,
    annotations: &BTreeMap<Str, Str>,
) -> Outcome {
    if servers.fault(Request::Namespace(cluster)).is_some() {
        return Outcome::failed([]);
    }
    let (server, id) = (Server::Member(cluster.clone()), namespace(name));
    let (hub, now) = (servers.engine().config.hub.clone(), servers.now());
    let next = match servers.object(&server, &id).cloned() {
        None => {
            let body = namespaces::created((&hub, cluster), name, labels, annotations);
            let made = servers.versions().created(&id, body, now);
            proven(servers, cluster, made)
        }
        Some(held) => {
            let Some(patch) = namespaces::patch(&held, &hub, labels, annotations) else {
                return Outcome::default();
            };
            let mut next = held.clone();
            merge(&mut next, &patch);
            servers.versions().replaced(&id, &held, next)
        }
    };
    servers.wrote(&server, Write::Namespace, &id);
    servers.store(&server, &id, Some(next));
    Outcome::default()
}

/// A namespace that was just created, with the record of its uid.
pub(super) fn proven(servers: &impl Environment, cluster: &Str, mut made: Value) -> Value {
    if let Some(uid) = made["metadata"]["uid"]
        .as_str()
        .filter(|_| servers.proves_namespaces())
    {
        let patch = namespaces::proven((&servers.engine().config.hub, cluster), uid);
        merge(&mut made, &patch);
    }
    made
}

/// Finds out what a namespace contains.
pub(super) fn look_into(
    servers: &mut impl Environment,
    cluster: &Str,
    name: &Str,
    copies: &BTreeSet<Str>,
) -> Outcome {
    if servers.fault(Request::Namespace(cluster)).is_some() {
        return Outcome::failed([]);
    }
    let contents = contents(servers, cluster, name, copies);
    servers.looked_into(cluster);
    Outcome::done([Observation::LookedInto(cluster.clone(), name.clone(), contents)])
}

fn contents(servers: &impl Environment, cluster: &Str, name: &Str, copies: &BTreeSet<Str>) -> Contents {
    if servers.object(&Server::Hub, &namespace(name)).is_some() {
        return Contents::OnHub;
    }
    let mut look = Look::new(&servers.engine().config.hub, copies);
    for (id, object) in servers.objects(&Server::Member(cluster.clone())) {
        if id.namespace == *name {
            look.add((&id.gvk.group, &id.gvk.kind), object);
        }
    }
    match look.contents() {
        held @ Contents::Held(_) => held,
        contents => servers.unlisted().unwrap_or(contents),
    }
}

/// Deletes a namespace that is still empty, with the objects that Kubernetes created in it, or releases it.
pub(super) fn end(
    servers: &mut impl Environment,
    cluster: &Str,
    name: &Str,
    preconditions: &Preconditions,
    (mode, copies): (RemovalMode, &BTreeSet<Str>),
    event: Option<Box<Event>>,
) -> Outcome {
    if servers
        .fault(Request::EndNamespace(cluster, name, preconditions, mode))
        .is_some()
    {
        return Outcome::failed([]);
    }
    let contents = contents(servers, cluster, name, copies);
    let is_in_the_way = match mode {
        RemovalMode::Delete => contents != Contents::Nothing,
        _ => contents == Contents::OnHub,
    };
    if is_in_the_way {
        return Outcome::done([Observation::LookedInto(cluster.clone(), name.clone(), contents)]);
    }
    let (server, id) = (Server::Member(cluster.clone()), namespace(name));
    let held = servers.object(&server, &id).cloned().filter(|held| {
        held["metadata"]["uid"] == *preconditions.uid
            && held["metadata"]["resourceVersion"] == *preconditions.resource_version
    });
    if let Some(held) = held {
        servers.wrote(&server, Write::EndNamespace(mode), &id);
        if mode == RemovalMode::Delete {
            let inside = servers.objects(&server).map(|(id, _)| id);
            let inside: Vec<ResourceId> = inside.filter(|each| each.namespace == *name).collect();
            for each in std::iter::once(id).chain(inside) {
                servers.store(&server, &each, None);
            }
        } else {
            let mut next = held.clone();
            merge(
                &mut next,
                &namespaces::released(preconditions, &servers.engine().config.hub),
            );
            let next = servers.versions().replaced(&id, &held, next);
            servers.store(&server, &id, Some(next));
            if let Some(event) = event {
                servers.emit(&event);
            }
        }
    }
    Outcome::done([Observation::NamespaceEnded(cluster.clone(), name.clone())])
}
