//! Requests about Works to the hub, and the translation of its errors.

use std::{fmt::Write as _, sync::PoisonError};

use bytes::Bytes;
use entourage_api::keys::label;
use entourage_core::{observation::work_gvk, pulled, rendered::wipe};
use futures::{StreamExt as _, stream};
use http::{Method, Request, Response, header};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use kube::client::Body;
use serde_json::{Value, json};
use tower::BoxError;

use super::{Namespaces, Pull, Reply, bytes, route::Target, status};
use crate::client::{lines::Lines, path::Path, read};

/// The number of Works per page: each is in memory as a whole.
const PAGE: usize = 100;

/// A response of the hub: one object, or an error that is translated.
pub(super) enum Answer {
    /// A Work, or a `Status` of success.
    Object(Value),
    /// An error, by its code and `Status`.
    Failed(u16, Value, Option<header::HeaderValue>),
}

impl Pull {
    /// Sends a request about one Work, and reads the response. The body is wiped.
    pub(super) async fn ask(
        &self,
        method: Method,
        path: &Path,
        body: Option<(&'static str, Value)>,
    ) -> Result<Answer, BoxError> {
        let mut request = Request::builder()
            .method(method)
            .uri(&path.uri)
            .header(header::ACCEPT, "application/json");
        let body = match body {
            Some((media, mut object)) => {
                request = request.header(header::CONTENT_TYPE, media);
                let bytes = serde_json::to_vec(&object)?;
                wipe(&mut object);
                Body::from(bytes)
            }
            None => Body::empty(),
        };
        let answer = self.hub.send(request.body(body)?).await?;
        read_answer(answer).await
    }

    /// A page of the Works of a kind as a list of its objects.
    pub(super) async fn list(&self, target: &Target, whole: bool) -> Result<Reply, BoxError> {
        let answer = self.hub.send(get(&self.selected(target))?).await?;
        if !answer.status().is_success() {
            return failed(read_answer(answer).await?, target);
        }
        let page = answer.into_body().collect().await?.to_bytes();
        let (mut items, mut unread) = (Vec::new(), None);
        let meta = read::list(&page, &mut |work| {
            let name = name_of(&work);
            let Some(object) = carried(target, work, whole) else {
                unread = Some(name);
                return;
            };
            if let Some(mut object) = object {
                if !items.is_empty() {
                    items.push(b',');
                }
                items.extend(serde_json::to_vec(&object).unwrap_or_default());
                wipe(&mut object);
            }
        })
        // serde's words may quote the page.
        .map_err(|_| "the response of the hub is not a list")?;
        if let Some(name) = unread {
            return Ok(other(target, &name));
        }
        let kind = if whole {
            "List"
        } else {
            "PartialObjectMetadataList"
        };
        let meta = json!({"resourceVersion": meta.resource_version, "continue": meta.next});
        let mut list =
            format!(r#"{{"kind":"{kind}","apiVersion":"v1","metadata":{meta},"items":["#).into_bytes();
        list.append(&mut items);
        list.extend(b"]}");
        Ok(bytes(200, list))
    }

    /// A watch of the Works of a kind as one of its objects.
    pub(super) async fn watch(&self, target: Target, whole: bool) -> Result<Reply, BoxError> {
        let answer = self.hub.send(get(&self.selected(&target))?).await?;
        if !answer.status().is_success() {
            return failed(read_answer(answer).await?, &target);
        }
        let follow = Follow {
            body: answer.into_body(),
            lines: Lines::default(),
            target,
            whole,
            namespaces: self.namespaces.clone(),
        };
        let frames = stream::unfold(Some(follow), |follow| async {
            let mut follow = follow?;
            match follow.next().await {
                Some(Ok(data)) => Some((Ok(Frame::data(data)), Some(follow))),
                Some(Err(error)) => Some((Err(error), None)),
                None => None,
            }
        });
        Ok(Response::new(StreamBody::new(frames.boxed()).boxed_unsync()))
    }

    /// The address of the Works of a kind, with the query of the request.
    fn selected(&self, target: &Target) -> Path {
        let namespace = entourage_api::names::execution_namespace(&self.cluster);
        let mut path = Path::works(&namespace);
        let mut selector = format!("{}={}", label::WORK_KIND, pulled::kind_label(&target.id.gvk));
        for (name, value) in &target.query {
            match name.as_str() {
                "labelSelector" => {
                    // Formatting into a String does not fail.
                    let _ = write!(selector, ",{value}");
                }
                // Names are those of the objects: see `carried`.
                "fieldSelector" => {}
                "limit" => {
                    let limit = value.parse().map_or(PAGE, |limit: usize| limit.min(PAGE));
                    path = path.query(name, &limit.to_string());
                }
                _ => path = path.query(name, value),
            }
        }
        path.query("labelSelector", &selector)
    }
}

/// The namespace and name of a Work.
fn name_of(work: &Value) -> String {
    let text = |field: &str| work["metadata"][field].as_str().unwrap_or_default();
    format!("{}/{}", text("namespace"), text("name"))
}

/// The message about a Work that cannot be read as its object: no proof that the object is gone.
fn unreadable(target: &Target, work: &str) -> String {
    let kind = &target.id.gvk.kind;
    format!(
        "the Work {work} does not carry the one {kind} that follows from its name: it must be corrected or deleted first"
    )
}

/// The response if a Work cannot be read as an object of this kind, or as the one of its name.
pub(super) fn other(target: &Target, work: &str) -> Reply {
    let about = Some((&*target.plural, &*target.id.name));
    status(422, "Invalid", &unreadable(target, work), about)
}

/// The object that a Work carries, if it is in this namespace, and of the name that a selector asks for; `None` if the Work cannot be
/// read as an object of this kind.
fn carried(target: &Target, work: Value, whole: bool) -> Option<Option<Value>> {
    let mut object = pulled::object(&target.id.gvk, work, whole)?;
    let name = target
        .query
        .get("fieldSelector")
        .and_then(|fields| fields.strip_prefix("metadata.name="));
    let meta = &object["metadata"];
    let is_meant = name.is_none_or(|name| meta["name"] == name)
        && (target.id.namespace.is_empty() || meta["namespace"] == *target.id.namespace);
    if is_meant {
        return Some(Some(object));
    }
    wipe(&mut object);
    Some(None)
}

/// A watch that is translated line by line.
struct Follow {
    body: Body,
    lines: Lines,
    target: Target,
    whole: bool,
    namespaces: Namespaces,
}

impl Follow {
    /// The next events; `None` if the hub ended the watch.
    async fn next(&mut self) -> Option<Result<Bytes, BoxError>> {
        loop {
            let mut events = Vec::new();
            while let Some(line) = self.lines.next() {
                match translated(line, (&self.target, &self.namespaces), self.whole) {
                    Ok(mut event) => events.append(&mut event),
                    Err(error) => return Some(Err(error)),
                }
            }
            if !events.is_empty() {
                return Some(Ok(events.into()));
            }
            if self.lines.is_too_long() {
                return Some(Err("an event is too long".into()));
            }
            match self.body.frame().await? {
                Ok(frame) => {
                    if let Ok(data) = frame.into_data() {
                        self.lines.push(&data);
                    }
                }
                Err(error) => return Some(Err(error.into())),
            }
        }
    }
}

/// An event about a Work as one about its object; empty if it is about another one.
fn translated(
    line: &[u8],
    (target, namespaces): (&Target, &Namespaces),
    whole: bool,
) -> Result<Vec<u8>, BoxError> {
    // serde's words may quote the line.
    let (kind, object) = read::event(line).map_err(|_| "an event of the hub cannot be read")?;
    let name = name_of(&object);
    let (mut kind, mut object) = (kind, object);
    if !matches!(kind.as_str(), "BOOKMARK" | "ERROR") {
        match carried(target, object, whole) {
            Some(Some(held)) => object = held,
            Some(None) => return Ok(Vec::new()),
            // A Work that is gone shows nothing.
            None if kind == "DELETED" => return Ok(Vec::new()),
            None => {
                let words = unreadable(target, &name);
                object = json!({"kind": "Status", "code": 422, "reason": "Invalid", "message": words});
                "ERROR".clone_into(&mut kind);
            }
        }
    }
    let object = match kind.as_str() {
        "BOOKMARK" => json!({"metadata": {"resourceVersion": object["metadata"]["resourceVersion"]}}),
        _ => object,
    };
    if target.id.gvk.is_namespace() && kind == "DELETED" {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let mut known = namespaces.lock().unwrap_or_else(PoisonError::into_inner);
        known.remove(name);
    }
    let mut event = json!({"type": kind, "object": object});
    let mut line = serde_json::to_vec(&event)?;
    wipe(&mut event);
    line.push(b'\n');
    Ok(line)
}

/// An error of the hub about a Work as one about its object.
pub(super) fn failed(answer: Answer, target: &Target) -> Result<Reply, BoxError> {
    let (code, mut answer, retry_after) = match answer {
        Answer::Failed(code, status, retry_after) => (code, status, retry_after),
        Answer::Object(_) => return Err("the response of the hub has no error".into()),
    };
    let kind = answer["details"]["kind"].as_str().unwrap_or_default();
    let is_about_work = kind == "works" || kind == &*work_gvk().kind;
    if kind == "namespaces" {
        let words = "the execution namespace of the cluster does not exist on the hub yet";
        return Ok(status(503, "ServiceUnavailable", words, None));
    }
    if is_about_work {
        answer["details"]["kind"] = json!(target.plural);
        answer["details"]["name"] = json!(&*target.id.name);
        if code == 404 {
            answer["message"] = json!(format!("{} {:?} not found", target.plural, &*target.id.name));
        }
    }
    let mut reply = super::reply(code, &answer);
    if let Some(value) = retry_after {
        reply.headers_mut().insert(header::RETRY_AFTER, value);
    }
    Ok(reply)
}

fn get(path: &Path) -> http::Result<Request<Body>> {
    Request::get(&path.uri)
        .header(header::ACCEPT, "application/json")
        .body(Body::empty())
}

async fn read_answer(answer: Response<Body>) -> Result<Answer, BoxError> {
    let (parts, body) = answer.into_parts();
    let bytes = body.collect().await?.to_bytes();
    if parts.status.is_success() {
        // serde's words may quote the body.
        let object = read::object(&bytes).map_err(|_| "the response of the hub is not an object")?;
        return Ok(Answer::Object(object));
    }
    let status = read::object(&bytes).unwrap_or_default();
    let retry_after = parts.headers.get(header::RETRY_AFTER).cloned();
    Ok(Answer::Failed(parts.status.as_u16(), status, retry_after))
}
