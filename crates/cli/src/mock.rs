//! An in-memory API server with the features that the commands' tests need: objects by path, merge patches that may name the
//! version they change, server-side apply with conflicts of whole objects, lists by field selector `metadata.name`, watches that replay the
//! events after they were opened.

use std::{
    collections::{BTreeMap, BTreeSet},
    convert::Infallible,
    sync::{Arc, Mutex, MutexGuard},
};

use bytes::Bytes;
use futures::{StreamExt as _, stream};
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full, StreamBody, combinators::UnsyncBoxBody};
use kube::{Client, client::Body, core::Status};
use serde_json::{Value, json};
use tokio::sync::broadcast;
use tower::service_fn;

type Answer = Response<UnsyncBoxBody<Bytes, Infallible>>;

/// A reaction of the server to a call: the method, the path, and the objects by path.
pub(crate) type Reaction = Box<dyn Fn(&str, &str, &mut BTreeMap<String, Value>) + Send>;

/// The server. Clones share everything.
#[derive(Clone)]
pub(crate) struct Server {
    state: Arc<Mutex<State>>,
    events: broadcast::Sender<(String, Value)>,
}

struct State {
    objects: BTreeMap<String, Value>,
    missing: BTreeSet<&'static str>,
    forbidden: BTreeSet<(&'static str, &'static str)>,
    writes: Vec<String>,
    revision: u64,
    reaction: Reaction,
}

impl Server {
    /// A server whose kube-system namespace has this uid.
    pub(crate) fn new(id: &str) -> Self {
        let system =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system", "uid": id}});
        let state = State {
            objects: BTreeMap::from([("/api/v1/namespaces/kube-system".to_owned(), system)]),
            missing: BTreeSet::new(),
            forbidden: BTreeSet::new(),
            writes: Vec::new(),
            revision: 1,
            reaction: Box::new(|_, _, _| {}),
        };
        Self {
            state: Arc::new(Mutex::new(state)),
            events: broadcast::channel(64).0,
        }
    }

    /// Adds a reaction to calls.
    pub(crate) fn reacting(
        self,
        reaction: impl Fn(&str, &str, &mut BTreeMap<String, Value>) + Send + 'static,
    ) -> Self {
        self.lock().reaction = Box::new(reaction);
        self
    }

    /// Makes the server not serve paths with this prefix.
    pub(crate) fn without(self, path: &'static str) -> Self {
        self.lock().missing.insert(path);
        self
    }

    /// Makes the server forbid a method on paths with this prefix, in the words of RBAC.
    pub(crate) fn forbidding(self, method: &'static str, path: &'static str) -> Self {
        self.lock().forbidden.insert((method, path));
        self
    }

    /// Makes the server serve all paths again.
    pub(crate) fn serving(&self) {
        self.lock().missing.clear();
    }

    pub(crate) fn client(&self) -> Client {
        let server = self.clone();
        let service = service_fn(move |request: Request<Body>| {
            let server = server.clone();
            async move { Ok::<_, Infallible>(server.answer(request).await) }
        });
        Client::new(service, "default")
    }

    pub(crate) fn object(&self, path: &str) -> Option<Value> {
        self.lock().objects.get(path).cloned()
    }

    /// All objects by path.
    pub(crate) fn objects(&self) -> BTreeMap<String, Value> {
        self.lock().objects.clone()
    }

    pub(crate) fn put(&self, path: &str, object: Value) {
        self.lock().objects.insert(path.to_owned(), object);
    }

    /// Removes an object, as somebody else would.
    pub(crate) fn remove(&self, path: &str) {
        self.lock().objects.remove(path);
    }

    /// Method and path of every write since the last call.
    pub(crate) fn take_writes(&self) -> Vec<String> {
        std::mem::take(&mut self.lock().writes)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    async fn answer(&self, request: Request<Body>) -> Answer {
        let (parts, body) = request.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let body: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        let (path, query) = (
            parts.uri.path().to_owned(),
            parts.uri.query().unwrap_or_default().to_owned(),
        );
        if query.contains("watch=true") {
            return self.watch(&path);
        }
        let before = self.lock().objects.clone();
        let content = parts.headers.get(http::header::CONTENT_TYPE);
        let applies =
            content.is_some_and(|content| content.as_bytes().starts_with(b"application/apply-patch"));
        let method = if applies { "APPLY" } else { parts.method.as_str() };
        let (code, answer) = self.lock().answer(method, &path, &query, body);
        self.publish(&before);
        response(code, &answer)
    }

    /// Sends watchers the differences from `before`.
    fn publish(&self, before: &BTreeMap<String, Value>) {
        let after = self.lock().objects.clone();
        for (path, object) in &after {
            if before.get(path) != Some(object) {
                let kind = if before.contains_key(path) {
                    "MODIFIED"
                } else {
                    "ADDED"
                };
                drop(
                    self.events
                        .send((path.clone(), json!({"type": kind, "object": object}))),
                );
            }
        }
        for (path, object) in before {
            if !after.contains_key(path) {
                drop(
                    self.events
                        .send((path.clone(), json!({"type": "DELETED", "object": object}))),
                );
            }
        }
    }

    fn watch(&self, path: &str) -> Answer {
        let collection = format!("{path}/");
        let lines = stream::unfold(self.events.subscribe(), |mut events| async move {
            events.recv().await.ok().map(|event| (event, events))
        })
        .filter_map(move |(path, event)| {
            let line = path
                .starts_with(&collection)
                .then(|| Bytes::from(format!("{event}\n")));
            async move { line.map(|line| Ok(http_body::Frame::data(line))) }
        });
        Response::new(StreamBody::new(lines).boxed_unsync())
    }
}

impl State {
    fn answer(&mut self, method: &str, path: &str, query: &str, mut body: Value) -> (u16, Value) {
        if self.missing.iter().any(|missing| path.starts_with(missing)) {
            return failure(404, "NotFound");
        }
        let is_forbidden = |(verb, prefix): &(&str, &str)| method == *verb && path.starts_with(prefix);
        if self.forbidden.iter().any(is_forbidden) {
            let message = format!("{path} is forbidden: User \"jane\" cannot {method} resource");
            let status = json!({"kind": "Status", "status": "Failure", "code": 403, "reason": "Forbidden", "message": message});
            return (403, status);
        }
        if method != "GET" && !query.contains("dryRun=All") {
            self.writes.push(format!("{method} {path}"));
        }
        if path == "/apis/authentication.k8s.io/v1/tokenreviews" {
            self.writes.pop();
            let ok = body["spec"]["token"]
                .as_str()
                .is_some_and(|token| token.starts_with("good"));
            let user = json!({"username": "system:serviceaccount:karmada-cluster:entourage-hub"});
            body["status"] = json!({"authenticated": ok, "user": user});
            return (201, body);
        }
        if path.ends_with("/token") {
            body["status"] =
                json!({"token": "good-requested", "expirationTimestamp": "2099-01-01T00:00:00Z"});
            return (201, body);
        }
        self.revision += 1;
        match method {
            "GET" => {
                let answer = self.read(path, query);
                (self.reaction)(method, path, &mut self.objects);
                answer
            }
            "POST" => {
                if let Some(prefix) = body["metadata"]["generateName"].as_str() {
                    body["metadata"]["name"] = json!(format!("{prefix}{}", self.revision));
                }
                let path = format!("{path}/{}", body["metadata"]["name"].as_str().unwrap_or_default());
                if self.objects.contains_key(&path) {
                    return failure(409, "AlreadyExists");
                }
                body["metadata"]["uid"] = json!(format!("uid-{}", self.revision));
                body["metadata"]["resourceVersion"] = json!(self.revision.to_string());
                self.objects.insert(path.clone(), body.clone());
                (self.reaction)(method, &path, &mut self.objects);
                (201, body)
            }
            "PUT" => {
                let Some(object) = self.objects.get_mut(path) else {
                    return failure(404, "NotFound");
                };
                if body["metadata"]["resourceVersion"] != object["metadata"]["resourceVersion"] {
                    return failure(409, "Conflict");
                }
                body["metadata"]["resourceVersion"] = json!(self.revision.to_string());
                *object = body.clone();
                (self.reaction)(method, path, &mut self.objects);
                (200, body)
            }
            "PATCH" => {
                let Some(object) = self.objects.get_mut(path) else {
                    return failure(404, "NotFound");
                };
                let version = &body["metadata"]["resourceVersion"];
                if version.is_string() && *version != object["metadata"]["resourceVersion"] {
                    return failure(409, "Conflict");
                }
                merge(object, &body);
                object["metadata"]["resourceVersion"] = json!(self.revision.to_string());
                let answer = object.clone();
                let done = answer["metadata"]["deletionTimestamp"].is_string()
                    && answer["metadata"]["finalizers"]
                        .as_array()
                        .is_none_or(Vec::is_empty);
                if done {
                    self.objects.remove(path);
                }
                (self.reaction)(method, path, &mut self.objects);
                (200, answer)
            }
            "APPLY" => self.apply(path, query, &body),
            "DELETE" => {
                let Some(object) = self.objects.get_mut(path) else {
                    return failure(404, "NotFound");
                };
                if object["metadata"]["finalizers"]
                    .as_array()
                    .is_none_or(Vec::is_empty)
                {
                    self.objects.remove(path);
                } else {
                    object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
                }
                (self.reaction)(method, path, &mut self.objects);
                (200, serde_json::to_value(Status::success()).unwrap())
            }
            other => panic!("{other} {path}"),
        }
    }

    /// Server-side apply by `fieldManager`: an object that another manager wrote is in conflict when it would change.
    fn apply(&mut self, path: &str, query: &str, body: &Value) -> (u16, Value) {
        let parameter = query
            .split('&')
            .find_map(|pair| pair.strip_prefix("fieldManager="));
        let manager = parameter.unwrap_or_default();
        let live = self.objects.get(path).cloned();
        let mut next = live.clone().unwrap_or_else(|| json!({}));
        merge(&mut next, body);
        if live.as_ref() == Some(&next) {
            return (200, next);
        }
        let mut managers = next["metadata"]["managedFields"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let others: Vec<_> = managers
            .iter()
            .filter(|entry| entry["manager"] != manager)
            .collect();
        if !others.is_empty() && !query.contains("force=true") {
            let cause = |entry: &&Value| {
                json!({"reason": "FieldManagerConflict", "field": ".",
                "message": format!("conflict with {} using v1", entry["manager"])})
            };
            let causes: Vec<_> = others.iter().map(cause).collect();
            let (code, mut status) = failure(409, "Conflict");
            status["details"] = json!({"causes": causes});
            return (code, status);
        }
        if others.len() == managers.len() {
            managers.push(json!({"manager": manager, "operation": "Apply"}));
        }
        let version = self.revision.to_string();
        next["metadata"]["managedFields"] = json!(managers);
        if live.is_none() {
            next["metadata"]["uid"] = json!(format!("uid-{version}"));
        }
        next["metadata"]["resourceVersion"] = json!(version);
        if !query.contains("dryRun=All") {
            self.objects.insert(path.to_owned(), next.clone());
            (self.reaction)("APPLY", path, &mut self.objects);
        }
        (200, next)
    }

    fn read(&self, path: &str, query: &str) -> (u16, Value) {
        if let Some(object) = self.objects.get(path) {
            return (200, object.clone());
        }
        // After the version, a collection's path has an odd number of segments, an object's an even one.
        let segments = path.split('/').count() - if path.starts_with("/api/") { 3 } else { 4 };
        if segments.is_multiple_of(2) {
            return failure(404, "NotFound");
        }
        let wanted = query
            .split("metadata.name%3D")
            .nth(1)
            .map(|rest| rest.split('&').next().unwrap_or(rest));
        let collection = format!("{path}/");
        let plural = path.rsplit('/').next().unwrap_or_default();
        let items: Vec<_> = self
            .objects
            .iter()
            .filter(|(path, _)| path.starts_with(&collection) || path.contains(&format!("/{plural}/")))
            .map(|(_, object)| object)
            .filter(|object| wanted.is_none_or(|name| object["metadata"]["name"] == name))
            .collect();
        (
            200,
            json!({"metadata": {"resourceVersion": self.revision.to_string()}, "items": items}),
        )
    }
}

fn response(code: u16, body: &Value) -> Answer {
    let body = Full::new(Bytes::from(serde_json::to_vec(body).unwrap())).boxed_unsync();
    Response::builder().status(code).body(body).unwrap()
}

fn failure(code: u16, reason: &str) -> (u16, Value) {
    let status = Status::failure(&format!("mock: {reason}"), reason).with_code(code);
    (code, serde_json::to_value(status).unwrap())
}

fn merge(into: &mut Value, patch: &Value) {
    let Some(patch) = patch.as_object() else {
        *into = patch.clone();
        return;
    };
    if !into.is_object() {
        *into = json!({});
    }
    for (key, value) in patch {
        if value.is_null() {
            into.as_object_mut().unwrap().remove(key);
        } else {
            merge(&mut into[key.as_str()], value);
        }
    }
}

/// A client of a server that answers to `METHOD /path?query` with a code and a body.
pub(crate) fn scripted(answer: impl Fn(&str) -> (u16, String) + Send + Sync + 'static) -> Client {
    let answer = Arc::new(answer);
    let service = service_fn(move |request: Request<Body>| {
        let (code, body) = answer(&format!("{} {}", request.method(), request.uri()));
        let response = Response::builder()
            .status(code)
            .body(Full::new(Bytes::from(body)));
        async move { response }
    });
    Client::new(service, "default")
}
