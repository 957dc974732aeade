//! Writes on the hub.

use entourage_core::{
    autoscaling,
    execution_namespaces::HOLDS_WORKS,
    kinds::{self, CLUSTER_API},
    object::{Gvk, NamespacedName, ResourceId, Str},
    observation::{Observation, Server, Watch, which, work_gvk},
    plan::{Event, HubObject, Preconditions, Verb, WorkOrder},
    scope, works,
};
use serde_json::{Value, json};

use super::Outcome;
use crate::{
    environment::{Environment, Request, Write},
    notifications,
    objects::{is_exactly, merge},
    writes,
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
        HubObject::ServicePart(part, name) => ResourceId::new(part.gvk(), &name.namespace, &name.name),
    }
}

/// Sends one write, and observes the response. After a conflict the object is read, and the plan ends.
pub(super) fn write(servers: &mut impl Environment, object: &HubObject, verb: Verb) -> Outcome {
    let id = id_of(object);
    if let (HubObject::Template(id), Verb::Merge(patch)) = (object, &verb)
        && !autoscaling::is_write(patch)
        && let Some(fault) = servers.fault(Request::Claim(id))
    {
        return Outcome::done([Observation::Unclaimed(id.clone(), fault.to_string())]);
    }
    // 403, for a namespace that is being deleted: the shell backs off, here that is the end of it.
    if matches!(verb, Verb::Create(_)) && servers.fault(Request::Create(&id)).is_some() {
        return Outcome::default();
    }
    let uid = match &verb {
        Verb::Delete { uid, .. } => Some(uid.clone()),
        _ => None,
    };
    let sent = send(servers, &id, verb);
    let failed = sent.is_err();
    let watch = watch_of(object);
    let standing = || servers.object(&Server::Hub, &id).cloned();
    let seen = match sent.unwrap_or_else(|Conflict| standing()) {
        Some(answer) => {
            notifications::project(servers, servers.process(), &watch, &answer).map(Observation::Seen)
        }
        None => {
            let named = json!({"metadata": {"namespace": &*id.namespace, "name": &*id.name}});
            which(&watch, &named).map(|which| Observation::Gone {
                which,
                uid: uid.filter(|_| !failed),
                revision: None,
            })
        }
    };
    let seen = seen.into_iter().collect();
    Outcome { seen, failed }
}

/// The response to a write that names another version than the stored one, or another object.
struct Conflict;

/// Responds as the hub: with the object, or with none if it is gone.
fn send(servers: &mut impl Environment, id: &ResourceId, verb: Verb) -> Result<Option<Value>, Conflict> {
    let held = servers.object(&Server::Hub, id).cloned();
    // Every write of a planner names the version that it is about: one that does not is refused here, so that it is found.
    let named = |meta: &Value| {
        let is_it = |held: &Value| {
            let held = &held["metadata"];
            let is_version = meta["resourceVersion"] == held["resourceVersion"];
            is_version && (meta["uid"].is_null() || meta["uid"] == held["uid"])
        };
        held.clone().filter(is_it).ok_or(Conflict)
    };
    let next = match verb {
        Verb::Create(_) if held.is_some() => return Err(Conflict),
        Verb::Create(body) => {
            servers.wrote(&Server::Hub, Write::Create, id);
            return Ok(Some(writes::create(servers, &Server::Hub, id, body)));
        }
        Verb::Delete {
            uid,
            resource_version,
        } => {
            let preconditions = Preconditions {
                uid,
                resource_version,
            };
            if !held.as_ref().is_some_and(|held| is_exactly(held, &preconditions)) {
                return Err(Conflict);
            }
            servers.wrote(&Server::Hub, Write::Delete, id);
            writes::delete(servers, &Server::Hub, id);
            return Ok(servers.object(&Server::Hub, id).cloned());
        }
        Verb::Replace(body) => {
            let held = named(&body["metadata"])?;
            writes::with_status_of(body, &held)
        }
        Verb::Merge(body) => {
            let held = named(&body["metadata"])?;
            let mut next = held.clone();
            merge(&mut next, &body);
            writes::with_status_of(next, &held)
        }
        Verb::ReplaceStatus(mut body) => {
            let mut next = named(&body["metadata"])?;
            next["status"] = body["status"].take();
            next
        }
        Verb::MergeStatus(body) => {
            let mut next = named(&body["metadata"])?;
            merge(&mut next["status"], &body["status"]);
            next
        }
    };
    servers.wrote(&Server::Hub, Write::Change, id);
    Ok(Some(writes::replace(servers, &Server::Hub, id, next)))
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
    if servers.servers().hub.keys().any(is_work_in_it) {
        servers.refuse(HOLDS_WORKS);
        return Outcome::default();
    }
    let outcome = write(servers, &HubObject::Namespace(name), Verb::delete(preconditions));
    if !outcome.failed {
        servers.emit(event);
    }
    outcome
}

/// The watch as which an object is observed.
fn watch_of(object: &HubObject) -> Watch {
    match object {
        HubObject::Policy(name) if name.namespace.is_empty() => Watch::ClusterPolicies,
        HubObject::Policy(_) => Watch::Policies,
        HubObject::Binding(name) if name.namespace.is_empty() => Watch::ClusterBindings,
        HubObject::Binding(_) => Watch::Bindings,
        HubObject::Cluster(_) => Watch::Clusters,
        HubObject::Distribution(_) => Watch::Distributions,
        HubObject::Rebalancer(_) => Watch::Rebalancers,
        HubObject::Quota(_) => Watch::Quotas,
        HubObject::Work(_) => Watch::Works,
        HubObject::Namespace(_) => Watch::Namespaces,
        HubObject::ServicePart(part, _) => Watch::ServiceParts(*part),
        HubObject::Template(id) => Watch::Templates(id.gvk.clone()),
    }
}
