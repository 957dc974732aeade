//! The dispatch of a request: its resource, verb and subresource select the one function that answers it.

use crate::{
    call::{Call, Item, Reply},
    delete, list,
    registry::{self, Context},
    status::{Result, Status},
    store::Revision,
    watch,
};

mod binding;
mod components;
mod eviction;
mod node;
mod review;

pub(crate) use review::is_review;

/// The answer to a routed call.
pub(crate) enum Answer {
    /// At once.
    Reply(Reply),
    /// A watch that has begun.
    Watch(Box<watch::Watch>),
}

/// Answers a routed call. What the answer shows would survive a crash when it is given.
pub(crate) async fn answer(cluster: &dyn Context, call: &Call) -> Result<Answer> {
    if call.method != http::Method::GET
        && let Some(broken) = cluster.store().broken()
    {
        // It would be seen by others until the process ends, and be gone then.
        return Err(Status::internal(&broken.to_string()));
    }
    let reply = done(cluster, call).await;
    let shown = match &reply {
        Ok(Answer::Reply(reply)) => shows(reply, &call.method),
        // It waits for itself.
        Ok(Answer::Watch(_)) => None,
        Err(status) => error_shows(status),
    };
    if let Some(shown) = shown {
        let revision = shown.unwrap_or_else(|| cluster.store().revision());
        let committed = cluster.store().committed(revision).await;
        committed.map_err(|broken| Status::internal(&broken.to_string()))?;
    }
    reply
}

/// The state of the store in an answer: none, that of a revision, or (`Some(None)`) the latest.
type Shows = Option<Option<Revision>>;

fn shows(reply: &Reply, method: &http::Method) -> Shows {
    match reply {
        // A write may have done more than its answer shows.
        _ if method != http::Method::GET => Some(None),
        Reply::Object {
            item: Item::Stored(entry),
            ..
        } => Some(Some(entry.revision)),
        Reply::List { revision, .. } => Some(Some(*revision)),
        Reply::Object { .. } | Reply::Other { .. } => Some(None),
    }
}

/// The state of the store in an error: `NotFound` and `AlreadyExists` show it; errors in a request do not.
fn error_shows(status: &Status) -> Shows {
    matches!(status.code, 404 | 409).then_some(None)
}

async fn done(cluster: &dyn Context, call: &Call) -> Result<Answer> {
    if let Some(reply) = aside(cluster, call) {
        return reply.map(Answer::Reply);
    }
    if call.subresource != "scale"
        && call.method == http::Method::GET
        && call.name.is_empty()
        && call.query.flag("watch")
    {
        let watch = watch::start(cluster.store(), call).await?;
        return Ok(Answer::Watch(Box::new(watch)));
    }
    verb(cluster, call).await.map(Answer::Reply)
}

/// The answer of a call that is none of the eight verbs: a question, a subresource of its own, or nothing that is served.
fn aside(cluster: &dyn Context, call: &Call) -> Option<Result<Reply>> {
    if !call.subresource.is_empty() && !call.resource.has(&call.subresource) {
        return Some(Err(Status::no_such_path()));
    }
    if call.method == http::Method::POST {
        if is_review(&call.resource) {
            return Some(review::answer(cluster, call));
        }
        match call.subresource.as_str() {
            "token" => return Some(review::token_request(cluster, call)),
            "binding" => return Some(binding::bind(cluster, call)),
            "eviction" => return Some(eviction::evict(cluster, call)),
            _ => {}
        }
    }
    if node::is_connection(call) {
        return Some(node::answer(cluster.store(), call));
    }
    (!allowed(call)).then(|| Err(Status::method_not_allowed()))
}

async fn verb(cluster: &dyn Context, call: &Call) -> Result<Reply> {
    use http::Method;
    if call.subresource == "scale" {
        return registry::scale::answer(cluster, call).await;
    }
    if components::is_asked(call) {
        return components::answer(cluster, call);
    }
    match (&call.method, call.name.is_empty()) {
        (&Method::GET, true) => list::list(cluster.store(), call).await,
        (&Method::GET, false) => registry::get(cluster.store(), call).await,
        (&Method::POST, true) => registry::create(cluster, call).await,
        (&Method::PUT, false) => registry::update(cluster, call).await,
        (&Method::PATCH, false) => registry::patch(cluster, call).await,
        (&Method::DELETE, false) => delete::delete(cluster, call).await,
        (&Method::DELETE, true) => delete::collection(cluster, call).await,
        _ => Err(Status::method_not_allowed()),
    }
}

/// True if the path has the method: those of the resource, and those of its subresources.
fn allowed(call: &Call) -> bool {
    use http::Method;
    let resource = &*call.resource;
    let everywhere = resource.namespaced && call.namespace.is_empty();
    if !call.subresource.is_empty() {
        return match call.subresource.as_str() {
            "status" | "scale" => matches!(call.method, Method::GET | Method::PUT | Method::PATCH),
            "finalize" => call.method == Method::PUT,
            // Other methods are up to the functions that answer them.
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
    use std::sync::Arc;

    use bytes::Bytes;

    use super::*;
    use crate::{auth::User, object::Object, query::Query, store::Entry};

    #[tokio::test]
    async fn a_file_that_cannot_be_written_takes_no_writes_and_still_shows_what_is_in_it() {
        let dir = std::env::temp_dir().join(format!("entourage-broken-{}", crate::random::new_uid()));
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
            answer(&**inner, &call)
                .await
                .map(drop)
                .map_err(|status| status.code)
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
        assert_eq!(shows(&stored, &http::Method::GET), Some(Some(7)));
        assert_eq!(shows(&stored, &http::Method::PUT), Some(None));
        assert_eq!(
            shows(&object(Item::Made(Object::new())), &http::Method::GET),
            Some(None)
        );
        assert_eq!(shows(&list, &http::Method::GET), Some(Some(9)));
        // The list of what was deleted is that of before.
        assert_eq!(shows(&list, &http::Method::DELETE), Some(None));
        let missing = Status::no_such_path();
        assert_eq!(error_shows(&missing), Some(None));
        assert_eq!(error_shows(&Status::bad_request("no")), None);
    }
}
