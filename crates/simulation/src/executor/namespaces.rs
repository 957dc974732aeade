//! Namespaces of members.

use std::collections::BTreeSet;

use entourage_core::{
    interpreter::Interpretation,
    namespaces::{
        self,
        content::{Contents, Look},
    },
    object::{Gvk, ResourceId, Str, StrMap},
    observation::{ObjectRef, Observation, Server, Watch, project},
    plan::{Event, Preconditions, RemovalMode},
};
use serde_json::Value;

use super::Outcome;
use crate::{
    environment::{Environment, Request, Write},
    notifications,
    objects::{is_exactly, merge},
    writes,
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
    labels: &StrMap,
    annotations: &StrMap,
) -> Outcome {
    if servers.fault(Request::Namespace(cluster)).is_some() {
        return Outcome::failed([]);
    }
    let (server, id) = (Server::Member(cluster.clone()), namespace(name));
    let hub = servers.engine().config.hub.clone();
    let live = match servers.object(&server, &id).cloned() {
        None => {
            servers.wrote(&server, Write::Namespace, &id);
            let body = namespaces::created((&hub, cluster), name, labels, annotations);
            let made = writes::create(servers, &server, &id, body);
            prove(servers, cluster, &id, made)
        }
        Some(mut live) => match namespaces::patch(&live, &hub, labels, annotations) {
            Some(patch) => {
                servers.wrote(&server, Write::Namespace, &id);
                merge(&mut live, &patch);
                writes::replace(servers, &server, &id, live)
            }
            None => live,
        },
    };
    let watch = Watch::MemberNamespaces(cluster.clone());
    let seen = notifications::project(servers, servers.process(), &watch, &live);
    Outcome::done(seen.map(Observation::Seen).into_iter().collect::<Vec<_>>())
}

/// Records on a namespace that was just created that it is this object, and returns the result.
pub(super) fn prove(servers: &mut impl Environment, cluster: &Str, id: &ResourceId, made: Value) -> Value {
    let uid = made["metadata"]["uid"]
        .as_str()
        .filter(|_| servers.proves_namespaces());
    let Some(uid) = uid else { return made };
    let patch = namespaces::proven((&servers.engine().config.hub, cluster), uid);
    let mut next = made;
    merge(&mut next, &patch);
    writes::replace(servers, &Server::Member(cluster.clone()), id, next)
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
    let objects = servers.servers().objects(&Server::Member(cluster.clone()));
    for (id, object) in objects.into_iter().flat_map(|all| all.iter()) {
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
        // Its cluster leaves.
        RemovalMode::HandOver => false,
        RemovalMode::Release => contents == Contents::OnHub,
    };
    if is_in_the_way {
        return Outcome::done([Observation::LookedInto(cluster.clone(), name.clone(), contents)]);
    }
    let (server, id) = (Server::Member(cluster.clone()), namespace(name));
    let held = servers.object(&server, &id).cloned();
    if let Some(held) = held.filter(|held| is_exactly(held, preconditions)) {
        servers.wrote(&server, Write::EndNamespace(mode), &id);
        if mode == RemovalMode::Delete {
            let objects = servers.servers().objects(&server);
            let inside = objects.into_iter().flat_map(|all| all.keys());
            let inside: Vec<ResourceId> = inside.filter(|each| each.namespace == *name).cloned().collect();
            for each in std::iter::once(id).chain(inside) {
                writes::store(servers, &server, &each, None);
            }
        } else if mode == RemovalMode::HandOver {
            // What the API of a member in Pull mode serves is its Work, which goes; the namespace stays with the agent.
            writes::store(servers, &server, &id, None);
        } else {
            let mut next = held;
            let hub = &servers.engine().config.hub;
            merge(&mut next, &namespaces::released(preconditions, hub));
            writes::replace(servers, &server, &id, next);
            if let Some(event) = event {
                servers.emit(&event);
            }
        }
    }
    // What the response, or a GET after a conflict, shows: the watch may be behind.
    let shown = match servers.object(&server, &namespace(name)) {
        None => Some(Observation::Gone {
            which: ObjectRef::Namespace(Some(cluster.clone()), name.clone()),
            uid: Some(preconditions.uid.clone()),
            revision: None,
        }),
        Some(live) => {
            let watch = Watch::MemberNamespaces(cluster.clone());
            project(&watch, &Interpretation::default(), live).map(Observation::Seen)
        }
    };
    let ended = Observation::NamespaceEnded(cluster.clone(), name.clone());
    Outcome::done(shown.into_iter().chain([ended]).collect::<Vec<_>>())
}
