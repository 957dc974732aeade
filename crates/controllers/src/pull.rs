//! The API of a member in Pull mode: its copies, read and written as Works of the hub.
//!
//! A [`kube::Client`] whose requests go to no server of the member: each is translated into requests about Works in the execution
//! namespace, with the client of the hub, and the responses back (`entourage_core::pulled` has both translations). So nothing
//! above knows that the member is in Pull mode, and uid, resourceVersion, preconditions, deletion by finalizers and watches are
//! those of the Works. What is not a copy is answered from the Cluster: its id, version and APIs, as its agent reports them.
//!
//! | request | becomes |
//! |---|---|
//! | GET, POST, PUT, PATCH, DELETE of an object | the same of its Work; PUT and PATCH are a merge patch, which keeps what others added |
//! | PUT or PATCH of an object without ownership metadata | the Work preserves its object, and is deleted |
//! | DELETE of a Namespace | the same: an agent would delete all that is in it |
//! | POST of an object into a namespace without a Work | 404 for the namespace: an agent creates none by itself |
//! | list and watch of a kind | list and watch of the Works with the label of the kind |
//!
//! A Work of a Secret holds its data. It is wiped here after each use, and nothing here has a `Debug` that could show it.

mod objects;
mod route;
mod works;

use std::{
    collections::BTreeSet,
    convert::Infallible,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use entourage_api::cluster::{ApiEnablement, Cluster};
use entourage_core::object::{Gvk, Str};
use http::{Request, Response, Uri, header};
use http_body_util::{BodyExt as _, Full, combinators::UnsyncBoxBody};
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::watch;
use tower::BoxError;

use crate::error::not_reported;
use route::{Route, Target, route};

/// The body of a response.
type Reply = Response<UnsyncBoxBody<Bytes, BoxError>>;

/// The facts of a member in Pull mode, from its Cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Facts {
    /// The identity of the physical cluster: `spec.id`, or the uid of the Cluster if the agent has not set it.
    pub(crate) id: String,
    /// Its version; empty until the agent reports it.
    pub(crate) version: String,
    /// The APIs that it serves.
    pub(crate) apis: Vec<ApiEnablement>,
}

impl Facts {
    /// Reads a Cluster.
    pub(crate) fn of(cluster: &Cluster) -> Self {
        let id = match cluster.spec.id.as_str() {
            "" => cluster.metadata.uid.clone().unwrap_or_default(),
            id => id.to_owned(),
        };
        let status = cluster.status.clone().unwrap_or_default();
        Self {
            id,
            version: status.kubernetes_version,
            apis: status.api_enablements,
        }
    }

    /// True if the agent has reported.
    pub(crate) const fn is_reported(&self) -> bool {
        !self.version.is_empty()
    }
}

/// The namespaces that were found to have a Work, each looked for once until its Work is deleted.
type Namespaces = Arc<Mutex<BTreeSet<Str>>>;

/// A member in Pull mode.
struct Pull {
    hub: kube::Client,
    cluster: Str,
    facts: watch::Receiver<Facts>,
    namespaces: Namespaces,
}

/// Returns the client of a member in Pull mode, over the client of the hub.
pub(crate) fn client(hub: kube::Client, cluster: &Str, facts: watch::Receiver<Facts>) -> kube::Client {
    let pull = Arc::new(Pull {
        hub,
        cluster: cluster.clone(),
        facts,
        namespaces: Namespaces::default(),
    });
    let service = tower::service_fn(move |request: Request<Body>| {
        let pull = pull.clone();
        async move { pull.answer(request).await }
    });
    kube::Client::new(service, "default")
}

impl Pull {
    /// Answers one request. An error means that the hub gave no response that can be read.
    async fn answer(&self, request: Request<Body>) -> Result<Reply, BoxError> {
        let (parts, body) = request.into_parts();
        let target = match self.reported(&parts.uri, parts.extensions.get()) {
            Ok(reply) => return Ok(reply),
            Err(target) => target,
        };
        let accept = parts.headers.get(header::ACCEPT);
        let accept = accept.and_then(|value| value.to_str().ok()).unwrap_or_default();
        let whole = !accept.contains("as=PartialObjectMetadata");
        self.objects(&parts.method, &target, whole, body).await
    }

    /// The response by the facts of the Cluster; or the objects that the request is about. `gvk`: their kind, if it is known.
    fn reported(&self, uri: &Uri, gvk: Option<&Gvk>) -> Result<Reply, Box<Target>> {
        let facts = self.facts.borrow();
        Ok(match route(uri, &facts) {
            Route::Ready if facts.is_reported() => text(200, "ok"),
            Route::Ready => status(
                503,
                "ServiceUnavailable",
                "the agent has not reported the version of the cluster yet",
                None,
            ),
            Route::Version => reply(200, &json!({"gitVersion": facts.version})),
            Route::Discovery(answer) => reply(200, &answer),
            // Its uid is the identity of a cluster.
            Route::Identity => reply(
                200,
                &json!({"apiVersion": "v1", "kind": "Namespace",
                    "metadata": {"name": "kube-system", "uid": facts.id, "resourceVersion": "1"}}),
            ),
            Route::Objects(target) => return Err(Box::new(target)),
            Route::Unreported(resource) => {
                let what = gvk.map_or(resource, |gvk| format!("{} {}", gvk.api_version(), gvk.kind));
                status(404, "NotFound", &not_reported(&what, &self.cluster), None)
            }
            Route::Nothing => status(
                404,
                "NotFound",
                "the server could not find the requested resource",
                None,
            ),
        })
    }
}

/// A response of one JSON object.
fn reply(code: u16, object: &Value) -> Reply {
    text(code, &object.to_string())
}

fn text(code: u16, text: &str) -> Reply {
    bytes(code, text.to_owned().into_bytes())
}

fn bytes(code: u16, bytes: Vec<u8>) -> Reply {
    let body = Full::from(bytes)
        .map_err(|never: Infallible| match never {})
        .boxed_unsync();
    let mut reply = Response::new(body);
    // The codes are those of this module and of servers.
    *reply.status_mut() = http::StatusCode::from_u16(code).unwrap_or(http::StatusCode::BAD_GATEWAY);
    reply
}

/// A `Status`; `about` is the resource and the name that it is about.
fn status(code: u16, reason: &str, message: &str, about: Option<(&str, &str)>) -> Reply {
    let mut status = json!({
        "apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message,
    });
    if let Some((kind, name)) = about {
        status["details"] = json!({"kind": kind, "name": name});
    }
    reply(code, &status)
}

#[cfg(test)]
mod tests;
