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
    store::{Entry, Revision},
    watch,
};

pub mod query;

pub use query::Query;

/// A request for a resource, routed: the path leads to something that is served.
#[derive(Clone)]
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

/// Without the body: it may be a Secret.
impl std::fmt::Debug for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Call")
            .field("method", &self.method)
            .field("resource", &self.resource.plural)
            .field("namespace", &self.namespace)
            .field("name", &self.name)
            .field("subresource", &self.subresource)
            .field("query", &self.query)
            .field("user", &self.user.name)
            .finish_non_exhaustive()
    }
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
#[derive(Clone)]
pub enum Item {
    /// As stored; apiVersion and kind are the resource's.
    Stored(Arc<Entry>),
    /// Complete, with apiVersion and kind.
    Made(Object),
}

/// What a request is answered, before it is negotiated and written.
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

crate::hidden::without_content!(Item, Reply);

/// Answers a routed call. What the answer shows would survive a crash when it is given.
pub async fn answer(cluster: &Arc<Inner>, call: &Call) -> Result<Reply> {
    if call.method != http::Method::GET
        && let Some(broken) = cluster.store.broken()
    {
        // It would be seen by others until the process ends, and be gone then.
        return Err(Status::internal(&broken.to_string()));
    }
    let reply = done(cluster, call).await;
    let shown = match &reply {
        Ok(reply) => reply.shows(&call.method),
        Err(status) => error_shows(status),
    };
    if let Some(shown) = shown {
        let revision = shown.unwrap_or_else(|| cluster.store.revision());
        let committed = cluster.store.committed(revision).await;
        committed.map_err(|broken| Status::internal(&broken.to_string()))?;
    }
    reply
}

/// What of the store an answer shows: nothing, the state of a revision, or (`Some(None)`) the latest.
type Shows = Option<Option<Revision>>;

impl Reply {
    fn shows(&self, method: &http::Method) -> Shows {
        match self {
            // It waits for itself.
            Self::Watch(_) => None,
            // A write may have done more than its answer shows.
            _ if method != http::Method::GET => Some(None),
            Self::Object {
                item: Item::Stored(entry),
                ..
            } => Some(Some(entry.revision)),
            Self::List { revision, .. } => Some(Some(*revision)),
            Self::Object { .. } | Self::Other { .. } => Some(None),
        }
    }
}

/// That something is missing, or there already, is told of the store; what is wrong with a request is not.
fn error_shows(status: &Status) -> Shows {
    matches!(status.code, 404 | 409).then_some(None)
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
        return registry::scale::answer(cluster, call).await;
    }
    match (&call.method, collection) {
        (&Method::GET, true) if call.query.flag("watch") => watch::start(cluster, call)
            .await
            .map(|watch| Reply::Watch(Box::new(watch))),
        (&Method::GET, true) => list::list(cluster, call).await,
        (&Method::GET, false) => registry::get(cluster, call).await,
        (&Method::POST, true) => registry::create(cluster, call).await,
        (&Method::PUT, false) => registry::update(cluster, call).await,
        (&Method::PATCH, false) => registry::patch(cluster, call).await,
        (&Method::DELETE, false) => delete::delete(cluster, call).await,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_file_that_cannot_be_written_takes_no_writes_and_still_shows_what_is_in_it() {
        let dir = std::env::temp_dir().join(format!("entourage-broken-{}", crate::cluster::new_uid()));
        std::fs::create_dir_all(&dir).expect("a directory");
        let cluster = crate::Cluster::open(crate::Options {
            data: Some(dir.join("store")),
            ..crate::Options::default()
        })
        .expect("a store");
        let inner = cluster.inner();
        let asked = async |method: http::Method, name: &str, body: &'static str| {
            let call = Call {
                method,
                resource: inner
                    .kinds()
                    .find("", "v1", "configmaps")
                    .expect("served")
                    .clone(),
                namespace: "default".to_owned(),
                name: name.to_owned(),
                subresource: String::new(),
                query: Query::parse(""),
                user: User::default(),
                agent: String::new(),
                content_type: None,
                body: Bytes::from_static(body.as_bytes()),
            };
            answer(inner, &call).await.map(drop).map_err(|status| status.code)
        };
        let (get, post) = (http::Method::GET, http::Method::POST);
        assert_eq!(
            asked(post.clone(), "", r#"{"metadata":{"name":"a"}}"#).await,
            Ok(())
        );
        let before = inner.store.list("configmaps", "", None, 0).entries.len();
        inner.store.break_now();
        assert_eq!(asked(post, "", r#"{"metadata":{"name":"b"}}"#).await, Err(500));
        assert_eq!(inner.store.list("configmaps", "", None, 0).entries.len(), before);
        assert_eq!(asked(get, "a", "").await, Ok(()));
        drop(cluster);
        std::fs::remove_dir_all(dir).expect("it is ours");
    }

    #[test]
    fn an_answer_waits_for_what_it_shows_and_for_nothing_else() {
        let entry = Arc::new(Entry {
            key: "a".to_owned(),
            revision: 7,
            created: 7,
            object: Bytes::new(),
        });
        let object = |item| Reply::Object {
            code: 200,
            item,
            warnings: Vec::new(),
        };
        let list = Reply::List {
            items: Vec::new(),
            revision: 9,
            next: String::new(),
            remaining: None,
        };
        let stored = object(Item::Stored(entry));
        assert_eq!(stored.shows(&http::Method::GET), Some(Some(7)));
        assert_eq!(stored.shows(&http::Method::PUT), Some(None));
        assert_eq!(
            object(Item::Made(Object::new())).shows(&http::Method::GET),
            Some(None)
        );
        assert_eq!(list.shows(&http::Method::GET), Some(Some(9)));
        // The list of what was deleted is that of before.
        assert_eq!(list.shows(&http::Method::DELETE), Some(None));
        let missing = Status::no_such_path();
        assert_eq!(error_shows(&missing), Some(None));
        assert_eq!(error_shows(&Status::bad_request("no")), None);
    }
}
