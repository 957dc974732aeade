//! From a request to the one function that answers it: which resource, which verb, which subresource.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use crate::{
    auth::{self, User},
    cluster::Inner,
    delete, kinds, list, registry,
    resource::{Object, Resource},
    status::{Result, Status},
    store::Entry,
    watch,
};

pub mod query;

pub use query::Query;

/// A request for a resource, routed: the path leads to something that is served.
#[derive(Clone, Debug)]
pub struct Call {
    /// HTTP method.
    pub method: http::Method,
    /// Resource of the path.
    pub resource: Arc<Resource>,
    /// Namespace of the path, empty for all or none.
    pub namespace: String,
    /// Name of the path, empty for the collection.
    pub name: String,
    /// Subresource of the path, empty for the object.
    pub subresource: String,
    /// Query parameters.
    pub query: Query,
    /// Who asks.
    pub user: User,
    /// User-Agent, whose first word names the field manager when nothing else does.
    pub agent: String,
    /// Content-Type as sent.
    pub content_type: Option<String>,
    /// The whole body.
    pub body: Bytes,
}

impl Call {
    /// The media type of the body as it was written, without parameters; empty when none was named.
    #[must_use]
    pub fn media_type(&self) -> &str {
        let text = self.content_type.as_deref().unwrap_or_default();
        text.split(';').next().unwrap_or_default().trim()
    }
}

/// One object of an answer: as stored, or made for the answer.
#[derive(Clone, Debug)]
pub enum Item {
    /// As stored; apiVersion and kind are the resource's.
    Stored(Arc<Entry>),
    /// Complete, with apiVersion and kind.
    Made(Object),
}

/// What a request is answered, before it is negotiated and written.
#[derive(Debug)]
pub enum Reply {
    /// An object of the resource.
    Object {
        /// 200 or 201 (202 for a deletion that takes time is never sent).
        code: u16,
        /// The object.
        item: Item,
        /// Texts for the Warning header.
        warnings: Vec<String>,
    },
    /// A list of the resource.
    List {
        /// The objects.
        items: Vec<Item>,
        /// `metadata.resourceVersion`.
        revision: u64,
        /// `metadata.continue`, empty at the end.
        next: String,
        /// `metadata.remainingItemCount`.
        remaining: Option<usize>,
    },
    /// A watch that has begun.
    Watch(Box<watch::Watch>),
    /// Another object: a Status of success, a Scale, a review, a TokenRequest.
    Other {
        /// HTTP status.
        code: u16,
        /// The object.
        value: Value,
        /// Texts for the Warning header.
        warnings: Vec<String>,
    },
}

/// Answers a routed call. What the answer shows would survive a crash when it is given.
pub async fn answer(cluster: &Arc<Inner>, call: &Call) -> Result<Reply> {
    if call.subresource.is_empty() && allowed(call) && !auth::review::is_review(&call.resource) {
        crate::admission::webhooks::ask(cluster, call, async |call: &Call| done(cluster, call).await).await?;
    }
    let reply = done(cluster, call).await?;
    if !matches!(reply, Reply::Watch(_)) {
        let committed = cluster.store.committed(cluster.store.revision()).await;
        committed.map_err(|broken| Status::internal(&broken.to_string()))?;
    }
    Ok(reply)
}

async fn done(cluster: &Arc<Inner>, call: &Call) -> Result<Reply> {
    use http::Method;
    let collection = call.name.is_empty();
    if !call.subresource.is_empty() && !call.resource.has(&call.subresource) {
        return Err(Status::no_such_path());
    }
    if call.method == Method::POST {
        if auth::review::is_review(&call.resource) {
            return auth::review::answer(cluster, call);
        }
        if call.subresource == "token" {
            return auth::review::token_request(cluster, call);
        }
        match call.subresource.as_str() {
            "binding" => return kinds::pods::binding::bind(cluster, call),
            "eviction" => return kinds::pods::eviction::evict(cluster, call),
            _ => {}
        }
    }
    if kinds::pods::node::is_connection(call) {
        return kinds::pods::node::answer(cluster, call);
    }
    if !allowed(call) {
        return Err(Status::method_not_allowed());
    }
    if call.subresource == "scale" {
        return registry::scale::answer(cluster, call);
    }
    match (&call.method, collection) {
        (&Method::GET, true) if call.query.flag("watch") => watch::start(cluster, call)
            .await
            .map(|watch| Reply::Watch(Box::new(watch))),
        (&Method::GET, true) => list::list(cluster, call).await,
        (&Method::GET, false) => registry::get(cluster, call).await,
        (&Method::POST, true) => registry::create(cluster, call),
        (&Method::PUT, false) => registry::update(cluster, call),
        (&Method::PATCH, false) => registry::patch(cluster, call),
        (&Method::DELETE, false) => delete::delete(cluster, call),
        (&Method::DELETE, true) => delete::collection(cluster, call).await,
        _ => Err(Status::method_not_allowed()),
    }
}

/// Whether the path takes the method: what the resource can do on itself, and what its subresources can.
fn allowed(call: &Call) -> bool {
    use http::Method;
    let resource = &*call.resource;
    let everywhere = resource.namespaced && call.namespace.is_empty();
    if !call.subresource.is_empty() {
        return match call.subresource.as_str() {
            "status" | "scale" => matches!(call.method, Method::GET | Method::PUT | Method::PATCH),
            "finalize" => call.method == Method::PUT,
            // What else they can is known to those who answer them.
            _ => call.method != Method::DELETE,
        };
    }
    let verb = match (&call.method, call.name.is_empty()) {
        (&Method::POST, true) if !everywhere => "create",
        (&Method::DELETE, true) if !everywhere => "deletecollection",
        (&Method::DELETE, false) => "delete",
        (&Method::PUT, false) => "update",
        (&Method::PATCH, false) => "patch",
        (&Method::GET, true) => "list",
        (&Method::GET, false) => "get",
        _ => return false,
    };
    resource.verbs.contains(&verb)
}
