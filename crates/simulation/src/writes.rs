//! The writes of a server: what a POST, a PUT or PATCH, and a DELETE make of its objects. Each is reported to the watches.

use entourage_core::{object::ResourceId, observation::Server, rendered::wipe};
use serde_json::{Value, json};

use crate::{environment::Environment, notifications::changed, objects::is_held};

/// Stores an object, or removes it, and tells the watches.
pub fn store(servers: &mut impl Environment, server: &Server, id: &ResourceId, object: Option<Value>) {
    let mut before = servers.servers_mut().store(server, id, object);
    changed(servers, server, id, before.as_ref());
    before.iter_mut().for_each(wipe);
}

/// A POST; returns the object.
pub fn create(servers: &mut impl Environment, server: &Server, id: &ResourceId, body: Value) -> Value {
    let all = servers.servers_mut();
    let made = all.versions.created(id, body, all.now);
    store(servers, server, id, Some(made.clone()));
    made
}

/// A PUT or PATCH that makes `next` of an object; returns the object. One that is being deleted ends with its last finalizer. If
/// nothing differs nothing is reported.
pub fn replace(servers: &mut impl Environment, server: &Server, id: &ResourceId, next: Value) -> Value {
    let Some(held) = servers.object(server, id).cloned() else {
        return next;
    };
    let next = servers.servers_mut().versions.replaced(id, &held, next);
    if next["metadata"]["deletionTimestamp"].is_string() && !is_held(&next) {
        end(servers, server, id, &held);
    } else if next != held {
        store(servers, server, id, Some(next.clone()));
    }
    next
}

/// The object that a PUT of `body` makes of `held`, whose status has a subresource of its own: it is kept.
#[must_use]
pub fn with_status_of(mut body: Value, held: &Value) -> Value {
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

/// A DELETE: at once, or when the last finalizer is removed.
pub fn delete(servers: &mut impl Environment, server: &Server, id: &ResourceId) {
    let Some(held) = servers.object(server, id).cloned() else {
        return;
    };
    if !is_held(&held) {
        end(servers, server, id, &held);
    } else if held["metadata"]["deletionTimestamp"].is_null() {
        let all = servers.servers_mut();
        let mut next = held;
        next["metadata"]["deletionTimestamp"] = json!(all.now.to_k8s());
        next["metadata"]["resourceVersion"] = json!(all.versions.advance().to_string());
        store(servers, server, id, Some(next));
    }
}

/// Removes an object, and on the hub the objects that it owns.
fn end(servers: &mut impl Environment, server: &Server, id: &ResourceId, held: &Value) {
    store(servers, server, id, None);
    if *server == Server::Hub && servers.collects(held) {
        collect(servers, &held["metadata"]["uid"]);
    }
}

/// The garbage collector of the hub: deletes the objects that an object owned. Cost: O(objects of the hub).
pub fn collect(servers: &mut impl Environment, uid: &Value) {
    let is_owned = |object: &Value| {
        let owners = object["metadata"]["ownerReferences"].as_array();
        owners.is_some_and(|all| all.iter().any(|owner| owner["uid"] == *uid))
    };
    let hub = servers.servers().hub.iter();
    let owned: Vec<ResourceId> = hub
        .filter(|(_, object)| is_owned(object))
        .map(|(id, _)| id.clone())
        .collect();
    for id in owned {
        delete(servers, &Server::Hub, &id);
    }
}
