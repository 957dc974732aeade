//! A scripted API server in process, for the tests of this crate, and the tests of [`Api`] itself.

use std::collections::VecDeque;

use entourage_core::object::{Gvk, ResourceId};
use futures::{StreamExt as _, stream};
use http_body::Frame;
use http_body_util::{BodyExt as _, Full, StreamBody, combinators::UnsyncBoxBody};
use serde_json::{Value, json};
use std::convert::Infallible;
use tokio::sync::watch;

use super::*;
use crate::limiter::Bounds;

type Bytes_ = UnsyncBoxBody<Bytes, Infallible>;

/// A request as the server saw it.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// Method, path and query, e.g. `GET /api/v1/secrets?limit=500`.
    pub(crate) line: String,
    /// The Accept header.
    pub(crate) accept: String,
    /// The span that the request belongs to.
    pub(crate) traceparent: String,
    /// The body as JSON.
    pub(crate) body: Value,
}

/// The reply of the server.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// Status code and body.
    Json(u16, Value),
    /// 200 and JSON lines; then the stream stays open, or ends.
    Lines(Vec<Value>, bool),
    /// 200 and JSON lines with this pause before each.
    Slowly(Vec<Value>, Duration),
    /// The connection breaks.
    Broken,
    /// No reply, forever.
    Silence,
}

/// A `Status` as API servers return errors.
pub(crate) fn status(code: u16, reason: &str) -> Reply {
    Reply::Json(
        code,
        json!({"kind": "Status", "reason": reason, "message": format!("{reason} it is"), "code": code}),
    )
}

/// A 404 about an object of a resource, as an API server returns it.
pub(crate) fn gone(resource: &str) -> Reply {
    let details = json!({"kind": resource, "name": "a"});
    let body = json!({"kind": "Status", "code": 404, "reason": "NotFound", "details": details});
    Reply::Json(404, body)
}

/// A healthy server that serves no API but that of definitions, of which it has none.
pub(crate) fn served_nothing(line: &str) -> Reply {
    if line == "GET /apis" {
        return Reply::Json(200, json!({"kind": "APIGroupList", "groups": []}));
    }
    if line.starts_with("GET /apis/apiextensions.k8s.io/v1/customresourcedefinitions?") {
        return Reply::Json(
            200,
            json!({"kind": "List", "metadata": {"resourceVersion": "1"}, "items": []}),
        );
    }
    status(404, "NotFound")
}

/// The requests so far.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<Asked>>>);

impl Log {
    pub(crate) fn all(&self) -> Vec<Asked> {
        self.0.lock().unwrap().clone()
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.all().into_iter().map(|asked| asked.line).collect()
    }
}

/// A client whose requests a function replies to.
pub(crate) fn client(reply: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> (kube::Client, Log) {
    let (log, reply) = (Log::default(), Arc::new(reply));
    let seen = log.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let (seen, reply) = (seen.clone(), reply.clone());
        async move {
            let (parts, body) = request.into_parts();
            let bytes = body
                .collect()
                .await
                .map_err(|error| error.to_string())?
                .to_bytes();
            let header = |name: &str| {
                parts
                    .headers
                    .get(name)
                    .and_then(|value| value.to_str().ok())
                    .unwrap_or_default()
            };
            let asked = Asked {
                line: format!("{} {}", parts.method, parts.uri),
                accept: header(header::ACCEPT.as_str()).to_owned(),
                traceparent: header(crate::traces::TRACEPARENT).to_owned(),
                body: serde_json::from_slice(&bytes).unwrap_or_default(),
            };
            let answer = reply(&asked);
            seen.0.lock().unwrap().push(asked);
            let (code, body): (u16, Bytes_) = match answer {
                Reply::Json(code, value) => (code, Full::from(value.to_string()).boxed_unsync()),
                Reply::Lines(lines, open) => {
                    let frames = lines
                        .into_iter()
                        .map(|line| Ok(Frame::data(Bytes::from(format!("{line}\n")))));
                    let rest = if open {
                        stream::pending().left_stream()
                    } else {
                        stream::empty().right_stream()
                    };
                    (
                        200,
                        StreamBody::new(stream::iter(frames).chain(rest)).boxed_unsync(),
                    )
                }
                Reply::Slowly(lines, pause) => {
                    let frames = stream::iter(lines).then(move |line| async move {
                        tokio::time::sleep(pause).await;
                        Ok(Frame::data(Bytes::from(format!("{line}\n"))))
                    });
                    (200, StreamBody::new(frames).boxed_unsync())
                }
                Reply::Broken => return Err("connection reset".to_owned()),
                Reply::Silence => std::future::pending().await,
            };
            Response::builder()
                .status(code)
                .body(body)
                .map_err(|error| error.to_string())
        }
    });
    (kube::Client::new(service, "default"), log)
}

/// An [`Api`] over [`client`].
pub(crate) fn api(server: Server, reply: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> (Api, Log) {
    let (client, log) = client(reply);
    (Api::new(client, options(server)), log)
}

/// An [`Api`] that replies to the given requests in this order, and breaks the connection on any other.
pub(crate) fn script(server: Server, script: Vec<(&'static str, Reply)>) -> (Api, Log) {
    let script = Mutex::new(VecDeque::from(script));
    api(server, move |asked| {
        let mut script = script.lock().unwrap();
        match script.front() {
            Some((line, _)) if *line == asked.line => {
                script.pop_front().map_or(Reply::Broken, |(_, reply)| reply)
            }
            _ => Reply::Broken,
        }
    })
}

/// Options for a server, with limits that no test reaches.
pub(crate) fn options(server: Server) -> ApiOptions {
    ApiOptions {
        server,
        deadline: Duration::from_secs(10),
        capacity: Capacity::new(Bounds::default()),
        metrics: Metrics::new(),
        suspect: Arc::new(Notify::new()),
        is_reported: false,
        may_write: always(),
    }
}

/// The metrics of a client.
pub(crate) fn metrics(api: &Api) -> &Metrics {
    &api.0.options.metrics
}

/// Leadership that never ends.
pub(crate) fn always() -> Leadership {
    watch::channel(true).1.into()
}

fn path() -> Path {
    Path::object(&ResourceId::new(Gvk::new("v1", "ConfigMap"), "ns", "a"))
}

#[tokio::test]
async fn an_object_comes_without_managed_fields() {
    let (api, log) = script(
        Server::Hub,
        vec![(
            "GET /api/v1/namespaces/ns/configmaps/a",
            Reply::Json(200, json!({"metadata": {"name": "a", "managedFields": []}})),
        )],
    );
    let object = api.get(&path(), Form::Metadata).await.unwrap();
    assert_eq!(object, json!({"metadata": {"name": "a"}}));
    assert!(log.all()[0].accept.contains("as=PartialObjectMetadata;"));
}

#[tokio::test]
async fn a_delete_names_exactly_one_object() {
    let (api, log) = api(Server::Hub, |_| Reply::Json(200, json!({"kind": "Status"})));
    api.delete(&path(), "u", "7", Form::Metadata).await.unwrap();
    assert_eq!(
        log.all()[0].body["preconditions"],
        json!({"uid": "u", "resourceVersion": "7"})
    );
    assert_eq!(log.all()[0].body["propagationPolicy"], "Background");
    assert!(
        log.all()[0].accept.contains("as=PartialObjectMetadata;"),
        "a Secret that a finalizer holds is not returned"
    );
}

#[tokio::test(start_paused = true)]
async fn no_response_ends_at_the_deadline_and_raises_suspicion() {
    let (api, _) = api(Server::Hub, |_| Reply::Silence);
    let failure = api.get(&path(), Form::Whole).await.unwrap_err();
    assert!(failure.has_no_response());
    assert!(api.limit() < Bounds::default().start);
    api.0.options.suspect.notified().await;
}

#[tokio::test]
async fn a_broken_connection_is_no_response_and_retry_after_is_read() {
    let (broken, _) = api(Server::Hub, |_| Reply::Broken);
    assert!(
        broken
            .get(&path(), Form::Whole)
            .await
            .unwrap_err()
            .has_no_response()
    );
    let busy = json!({"kind": "Status", "code": 429, "details": {"retryAfterSeconds": 3}});
    let (busy, _) = api(Server::Hub, move |_| Reply::Json(429, busy.clone()));
    let failure = busy.get(&path(), Form::Whole).await.unwrap_err();
    assert_eq!(
        (failure.class(), failure.retry_after()),
        (Class::Busy, Some(Duration::from_secs(3)))
    );
}

#[tokio::test]
async fn an_answer_that_is_too_large_is_not_read_to_its_end() {
    let text = "x".repeat(LARGEST);
    let (large, _) = api(Server::Hub, move |_| Reply::Json(200, json!({"data": text})));
    let failure = large.get(&path(), Form::Whole).await.unwrap_err();
    assert!(
        failure.text(&Gvk::new("v1", "Pod")).contains("larger"),
        "{failure:?}"
    );
    let text = "x".repeat(LARGEST_ERROR);
    let (large, _) = api(Server::Hub, move |_| Reply::Json(403, json!({"message": text})));
    assert_eq!(large.get(&path(), Form::Whole).await.unwrap_err().code(), 403);
}

#[tokio::test(start_paused = true)]
async fn a_path_that_asks_to_be_left_alone_is_not_asked_until_then_and_others_are() {
    let busy = json!({"kind": "Status", "code": 429, "details": {"retryAfterSeconds": 3}});
    let (server, log) = api(Server::Hub, move |asked| match asked.line.ends_with("/a") {
        true => Reply::Json(429, busy.clone()),
        false => Reply::Json(200, json!({})),
    });
    let other = Path::object(&ResourceId::new(Gvk::new("v1", "ConfigMap"), "ns", "b"));
    server.get(&path(), Form::Whole).await.unwrap_err();
    let limit = server.limit();
    let failure = server.get(&path(), Form::Whole).await.unwrap_err();
    assert_eq!(failure.class(), Class::Busy);
    assert!(
        failure
            .retry_after()
            .is_some_and(|after| after > Duration::from_secs(2))
    );
    server.get(&other, Form::Whole).await.unwrap();
    assert_eq!(log.all().len(), 2);
    assert_eq!(
        server.limit(),
        limit,
        "what was not sent says nothing of the server"
    );
    tokio::time::sleep(Duration::from_secs(3)).await;
    server.get(&path(), Form::Whole).await.unwrap_err();
    assert_eq!(log.all().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_not_answered_is_given_up_soon_and_one_that_makes_progress_is_not() {
    let (unresponsive, _) = api(Server::Hub, |_| Reply::Silence);
    let list = |path| Call {
        verb: Verb::List,
        path,
        accept: Form::Metadata.accept_list(),
        body: None,
        deadline: None,
    };
    let (pods, began) = (
        Path::watched(&entourage_core::observation::Watch::Bindings),
        Instant::now(),
    );
    for wanted in [5, 15, 35, 75] {
        assert!(
            unresponsive
                .bytes(list(&pods))
                .await
                .unwrap_err()
                .has_no_response()
        );
        assert_eq!(began.elapsed().as_secs(), wanted);
    }
    let lines: Vec<Value> = (0..30).map(|number| json!({"item": number})).collect();
    let (slow, _) = api(Server::Hub, move |_| {
        Reply::Slowly(lines.clone(), Duration::from_secs(4))
    });
    let began = Instant::now();
    assert!(slow.bytes(list(&pods)).await.is_ok());
    assert!(
        began.elapsed() >= Duration::from_secs(100),
        "{:?}",
        began.elapsed()
    );
}

#[tokio::test]
async fn who_does_not_lead_writes_nothing() {
    let (client, log) = client(|_| Reply::Json(200, json!({})));
    let (leading, may_write) = watch::channel(true);
    let api = Api::new(
        client,
        ApiOptions {
            is_reported: false,
            may_write: may_write.into(),
            ..options(Server::Hub)
        },
    );
    api.create(&path(), &json!({}), Form::Whole).await.unwrap();
    leading.send_replace(false);
    let failure = api.create(&path(), &json!({}), Form::Whole).await.unwrap_err();
    assert_eq!(failure.class(), Class::Abandoned);
    assert!(api.delete(&path(), "u", "1", Form::Whole).await.is_err());
    api.get(&path(), Form::Whole).await.unwrap();
    assert_eq!(log.all().len(), 2);
}
