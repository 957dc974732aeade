//! Writes on the hub.

use entourage_core::{
    execution_namespaces::HOLDS_WORKS,
    kinds::{self, CLUSTER_API},
    object::{Gvk, NamespacedName, ResourceId, Str},
    observation::{ObjectRef, Observation, Server, work_gvk},
    plan::{Event, HubObject, Preconditions, Verb, WorkOrder},
    scope, works,
};
use serde_json::{Value, json};

use super::Outcome;
use crate::{
    environment::{Environment, Request, Write},
    objects::{is_held, merge},
};

/// The id of a typed object of the hub.
#[must_use]
pub fn id_of(object: &HubObject) -> ResourceId {
    let of = |api_version: &str, kind: &str, name: &NamespacedName| {
        ResourceId::new(Gvk::new(api_version, kind), &name.namespace, &name.name)
    };
    match object {
        HubObject::Policy(name) => of(scope::POLICY_API, scope::policy(name).kind, name),
        HubObject::Binding(name) => of(scope::BINDING_API, scope::binding(&name.namespace).kind, name),
        HubObject::Cluster(name) => of(CLUSTER_API, "Cluster", &NamespacedName::new("", name)),
        HubObject::Template(id) => id.clone(),
        HubObject::Distribution(name) => ResourceId::new(kinds::distribution(), "", name),
        HubObject::Rebalancer(name) => ResourceId::new(kinds::rebalancer(), "", name),
        HubObject::Quota(name) => ResourceId::new(kinds::quota(), &name.namespace, &name.name),
        HubObject::Work(name) => ResourceId::new(work_gvk(), &name.namespace, &name.name),
        HubObject::Namespace(name) => ResourceId::new(Gvk::new("v1", "Namespace"), "", name),
    }
}

pub(super) fn write(servers: &mut impl Environment, object: &HubObject, verb: Verb) -> Outcome {
    let id = id_of(object);
    let held = servers.object(&Server::Hub, &id).cloned();
    if let (HubObject::Template(id), Verb::Merge(_)) = (object, &verb)
        && let Some(fault) = servers.fault(Request::Claim(id))
    {
        return Outcome::done([Observation::Unclaimed(id.clone(), fault.to_string())]);
    }
    if let Verb::Create(body) = verb {
        // 403, for a namespace that is being deleted: the shell backs off, here that is the end of it.
        if servers.fault(Request::Create(&id)).is_some() {
            return Outcome::default();
        }
        if held.is_some() {
            return Outcome::failed([]);
        }
        let now = servers.now();
        let created = servers.versions().created(&id, body, now);
        servers.wrote(&Server::Hub, Write::Create, &id);
        servers.store(&Server::Hub, &id, Some(created));
        return Outcome::default();
    }
    // The look after a write that meets nothing finds nothing, too.
    let Some(held) = held else {
        return Outcome::failed([Observation::Gone {
            which: which(object),
            uid: None,
            revision: None,
        }]);
    };
    // Every write of a planner names the version that it is about: one that does not is refused here, so that it is found.
    let is_exactly = |meta: &Value| {
        let is_version = meta["resourceVersion"] == held["metadata"]["resourceVersion"];
        is_version && (meta["uid"].is_null() || meta["uid"] == held["metadata"]["uid"])
    };
    let next = match verb {
        Verb::Create(_) => return Outcome::default(),
        Verb::Delete {
            uid,
            resource_version,
        } => {
            if !is_exactly(&json!({"uid": &*uid, "resourceVersion": &*resource_version})) {
                return Outcome::failed([]);
            }
            servers.wrote(&Server::Hub, Write::Delete, &id);
            delete(servers, &id);
            return Outcome::default();
        }
        Verb::Replace(body) | Verb::ReplaceStatus(body) | Verb::Merge(body) | Verb::MergeStatus(body)
            if !is_exactly(&body["metadata"]) =>
        {
            return Outcome::failed([]);
        }
        Verb::Replace(body) => with_status_of(body, &held),
        Verb::Merge(body) => {
            let mut next = held.clone();
            merge(&mut next, &body);
            with_status_of(next, &held)
        }
        Verb::ReplaceStatus(mut body) => {
            let mut next = held.clone();
            next["status"] = body["status"].take();
            next
        }
        Verb::MergeStatus(body) => {
            let mut next = held.clone();
            merge(&mut next["status"], &body["status"]);
            next
        }
    };
    let next = servers.versions().replaced(&id, &held, next);
    servers.wrote(&Server::Hub, Write::Change, &id);
    if next["metadata"]["deletionTimestamp"].is_string() && !is_held(&next) {
        end(servers, &id, &held);
    } else {
        servers.store(&Server::Hub, &id, Some(next));
    }
    Outcome::default()
}

/// Renders a template and writes the Work of its copy.
pub(super) fn mirror(servers: &mut impl Environment, order: &WorkOrder) -> Outcome {
    let Some(source) = servers.object(&Server::Hub, &order.id).cloned() else {
        return Outcome::default();
    };
    let Ok(rendered) = servers.render(&order.render_spec, &order.id, &order.cluster, &source, None) else {
        return Outcome::default();
    };
    let verb = works::verb(order, rendered.object());
    write(servers, &HubObject::Work(works::name_of(order)), verb)
}

/// Deletes the execution namespace of a Cluster, unless it holds a Work.
pub(super) fn end_execution_namespace(
    servers: &mut impl Environment,
    name: Str,
    preconditions: Preconditions,
    event: &Event,
) -> Outcome {
    let is_work_in_it = |id: &ResourceId| &*id.gvk.kind == "Work" && id.namespace == name;
    let holds_work = servers.objects(&Server::Hub).any(|(id, _)| is_work_in_it(&id));
    if holds_work {
        servers.refuse(HOLDS_WORKS);
        return Outcome::default();
    }
    let outcome = write(servers, &HubObject::Namespace(name), Verb::delete(preconditions));
    if !outcome.failed {
        servers.emit(event);
    }
    outcome
}

/// A DELETE on the hub: at once, or when the last finalizer is removed.
pub fn delete(servers: &mut impl Environment, id: &ResourceId) {
    let Some(held) = servers.object(&Server::Hub, id).cloned() else {
        return;
    };
    let now = servers.now();
    if !is_held(&held) {
        servers.versions().advance();
        end(servers, id, &held);
    } else if held["metadata"]["deletionTimestamp"].is_null() {
        let mut next = held;
        next["metadata"]["deletionTimestamp"] = json!(now.to_k8s());
        next["metadata"]["resourceVersion"] = json!(servers.versions().advance().to_string());
        servers.store(&Server::Hub, id, Some(next));
    }
}

/// Removes an object and the objects that it owns.
fn end(servers: &mut impl Environment, id: &ResourceId, held: &Value) {
    servers.store(&Server::Hub, id, None);
    if servers.collects(held) {
        collect(servers, &held["metadata"]["uid"]);
    }
}

/// The garbage collector: deletes the objects that an object owned.
pub fn collect(servers: &mut impl Environment, uid: &Value) {
    let owned: Vec<ResourceId> = servers
        .objects(&Server::Hub)
        .filter(|(_, object)| {
            let owners = object["metadata"]["ownerReferences"].as_array();
            owners.is_some_and(|all| all.iter().any(|owner| owner["uid"] == *uid))
        })
        .map(|(id, _)| id)
        .collect();
    for id in owned {
        delete(servers, &id);
    }
}

fn which(object: &HubObject) -> ObjectRef {
    match object {
        HubObject::Policy(name) => ObjectRef::Policy(name.clone()),
        HubObject::Binding(name) => ObjectRef::Binding(name.clone()),
        HubObject::Cluster(name) => ObjectRef::Cluster(name.clone()),
        HubObject::Template(id) => ObjectRef::Template(id.clone()),
        HubObject::Distribution(name) => ObjectRef::Distribution(name.clone()),
        HubObject::Rebalancer(name) => ObjectRef::Rebalancer(name.clone()),
        HubObject::Quota(name) => ObjectRef::Quota(name.clone()),
        HubObject::Work(name) => ObjectRef::Work(name.clone()),
        HubObject::Namespace(name) => ObjectRef::Namespace(None, name.clone()),
    }
}

/// Keeps the status of an object in a write of it.
fn with_status_of(mut body: Value, held: &Value) -> Value {
    match held.get("status") {
        Some(status) => body["status"] = status.clone(),
        None => {
            if let Some(map) = body.as_object_mut() {
                map.remove("status");
            }
        }
    }
    body
}
