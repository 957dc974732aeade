//! A routed request for a resource, and its response before that is negotiated and written.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use crate::{auth::User, object::Object, query::Query, resource::Resource, store::Entry};

/// A request for a resource, routed: the path leads to something that is served.
#[derive(Clone)]
pub(crate) struct Call {
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
    /// The user of the request.
    pub user: User,
    /// User-Agent, whose first word names the field manager when nothing else does.
    pub agent: String,
    /// Content-Type as sent.
    pub content_type: Option<String>,
    /// The whole body.
    pub body: Bytes,
}

/// Debug output omits the body: it may be a Secret.
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
    pub(crate) fn media_type(&self) -> &str {
        let text = self.content_type.as_deref().unwrap_or_default();
        text.split(';').next().unwrap_or_default().trim()
    }
}

/// One object of an answer: as stored, or made for the answer.
#[derive(Clone)]
pub(crate) enum Item {
    /// As stored; apiVersion and kind are the resource's.
    Stored(Arc<Entry>),
    /// Complete, with apiVersion and kind.
    Made(Object),
}

/// The response to a request, before it is negotiated and written.
pub(crate) enum Reply {
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

impl Reply {
    /// The object, with the code 200.
    pub(crate) fn ok(item: Item, warnings: Vec<String>) -> Self {
        Self::Object {
            code: 200,
            item,
            warnings,
        }
    }
}

crate::hidden::without_content!(Item, Reply);
