//! The facts about a hub that are read once, before anything is watched.

use std::time::Duration;

use entourage_core::object::{Gvk, Str};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::{
    client::{Api, Call, Form, path::Path},
    metrics::Verb,
};

/// The uid of the hub's kube-system namespace: it identifies the copies of this hub. Retries until the hub responds; `None` on
/// stop.
pub(crate) async fn id(hub: &Api, stop: &CancellationToken) -> Option<Str> {
    let path = Path::namespace(Some("kube-system"));
    let mut pause = Duration::from_millis(100);
    loop {
        let answer = tokio::select! {
            () = stop.cancelled() => return None,
            answer = hub.get(&path, Form::Metadata) => answer,
        };
        match answer {
            Ok(object) => match object["metadata"]["uid"].as_str() {
                Some(uid) if !uid.is_empty() => return Some(uid.into()),
                _ => warn!("the hub's namespace kube-system has no uid"),
            },
            Err(failure) => {
                let gvk = Gvk::new("v1", "Namespace");
                warn!(
                    error = failure.text(&gvk),
                    "the hub's namespace kube-system cannot be read; asking again"
                );
            }
        }
        tokio::select! {
            () = stop.cancelled() => return None,
            () = tokio::time::sleep(pause) => {}
        }
        pause = (pause * 2).min(Duration::from_secs(5));
    }
}

/// True if the hub has Nodes: then it runs workload controllers, and they own the status of workloads. A hub that does not list
/// them counts as having none.
pub(crate) async fn has_nodes(hub: &Api) -> bool {
    let call = Call {
        verb: Verb::List,
        path: &Path::raw("/api/v1/nodes?limit=1", "nodes"),
        accept: Form::Metadata.accept_list(),
        body: None,
        deadline: None,
    };
    let found = match hub.object(call).await {
        Ok(list) => list["items"].as_array().is_some_and(|items| !items.is_empty()),
        Err(failure) => {
            debug!(
                error = failure.text(&Gvk::new("v1", "Node")),
                "cannot determine whether the hub has Nodes"
            );
            false
        }
    };
    if found {
        warn!(
            "the hub has Nodes, so its own controllers write the status of workloads: the status of templates is left alone. A hub \
             runs no workload controllers (docs/concepts.md, \"The status of a template\")"
        );
    }
    found
}
