//! Requests that a pod's node or the pods of a Service would answer: there are none here.

use crate::{
    call::{Call, Reply},
    object::tree::{below, text},
    registry::find,
    resource::{about, stored},
    status::{About, Result, Status},
    store::Store,
};

/// Subresources that lead to a pod's node, or to the pods of a Service.
const CONNECTIONS: [&str; 5] = ["attach", "exec", "log", "portforward", "proxy"];

/// True if a call connects to the node of a pod, or to a Service.
pub(crate) fn is_connection(call: &Call) -> bool {
    call.resource.group.is_empty()
        && matches!(call.resource.kind.as_str(), "Pod" | "Service")
        && CONNECTIONS.contains(&call.subresource.as_str())
}

/// Nothing for the log of a pod without a node; an error for everything else, with the reason if its node is here.
pub(crate) fn answer(store: &Store, call: &Call) -> Result<Reply> {
    let entry = find(store, &call.resource, &call.namespace, &call.name)?;
    if call.resource.kind == "Service" {
        return Err(Status::not_found(about(&call.resource, &call.name)));
    }
    let pod = stored::decode(&entry.object);
    match (text(below(&pod, "spec"), "nodeName"), call.subresource.as_str()) {
        ("", "log") => Ok(Reply::Other {
            code: 204,
            value: serde_json::Value::Null,
            warnings: Vec::new(),
        }),
        ("", _) => Err(Status::bad_request(format!(
            "pod {} does not have a host assigned",
            call.name
        ))),
        (node, _) if store.get("nodes", node).is_some() => Err(Status::unforeseen(format!(
            "nothing runs on node {node}: the pod {} has no containers, and so no output",
            call.name
        ))),
        (node, _) => Err(Status::not_found(About {
            group: "",
            resource: "nodes",
            name: node,
        })),
    }
}
