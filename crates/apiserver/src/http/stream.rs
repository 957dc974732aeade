//! Watches on the wire: one line for each event, in the requested form.

use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt as _;
use http::{HeaderValue, Response, header};
use http_body::Frame as Piece;
use http_body_util::{BodyExt as _, StreamBody};
use serde_json::{Map, Value, json};

use super::{
    accept::{Accepted, Format, Transform},
    pieces::{head, splice},
    protobuf,
    write::{Form, meta_version, whole},
};
use crate::{
    call::Item,
    http::Body,
    json,
    object::Object,
    query::Query,
    resource::stored,
    server::Server,
    status::Status,
    table,
    watch::{Frame, Watch},
};

/// The writer of the events of one watch.
struct Lines {
    cluster: Arc<Server>,
    accepted: Accepted,
    query: Query,
    /// True if the columns of the Table were sent.
    columns: bool,
    /// The start of each stored object: kind and apiVersion.
    head: Vec<u8>,
}

/// The answer that a watch is.
pub(super) fn watched(cluster: &Arc<Server>, form: &Form<'_>, watch: Watch) -> Response<Body> {
    let lines = Lines {
        cluster: cluster.clone(),
        accepted: form.accepted,
        query: form.query.clone(),
        columns: false,
        head: head(&watch.resource),
    };
    let stream = futures::stream::unfold((watch, lines), |(mut watch, mut lines)| async move {
        let frames = watch.next(&lines.cluster.store).await?;
        let mut text = Vec::new();
        for frame in frames {
            lines.write(&mut text, &watch, frame);
        }
        Some((Ok(Piece::data(Bytes::from(text))), (watch, lines)))
    });
    let mut response = Response::new(StreamBody::new(stream.boxed()).boxed_unsync());
    let media = match form.accepted.format {
        Format::Protobuf => "application/vnd.kubernetes.protobuf;stream=watch",
        _ => "application/json",
    };
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static(media));
    response
}

impl Lines {
    fn write(&mut self, text: &mut Vec<u8>, watch: &Watch, frame: Frame) {
        let (kind, object) = match frame {
            Frame::Object(kind, item) => {
                if let Item::Stored(entry) = &item
                    && stored::is_shown_as_stored(&watch.resource, entry)
                    && (self.accepted.transform.is_none() || watch.resource.printer.standing_in.is_empty())
                    && self.spliced(text, kind, &entry.object)
                {
                    return;
                }
                (kind, self.object(watch, whole(&watch.resource, item)))
            }
            Frame::Bookmark(revision, initial) => {
                ("BOOKMARK", self.object(watch, bookmark(watch, revision, initial)))
            }
            Frame::Error(status) => ("ERROR", status.to_value()),
        };
        if self.accepted.format == Format::Protobuf {
            let refusal = || Status::internal("the object has no form in protobuf").to_value();
            let event = protobuf::event(kind, &object).or_else(|| protobuf::event("ERROR", &refusal()));
            text.extend(event.unwrap_or_default());
            return;
        }
        begin(text, kind);
        text.extend(json::compact(&object));
        text.extend(b"}\n");
    }

    /// Writes an event from stored bytes, if they contain the requested form as it is sent. Returns true if they do.
    fn spliced(&self, text: &mut Vec<u8>, kind: &str, stored: &[u8]) -> bool {
        if self.accepted.format == Format::Protobuf {
            return false;
        }
        match self.accepted.transform {
            None => {
                begin(text, kind);
                splice(text, &self.head, stored);
            }
            Some((Transform::Partial | Transform::PartialList, beta)) => {
                let Some(metadata) = stored::metadata(stored) else {
                    return false;
                };
                begin(text, kind);
                text.extend(b"{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"");
                text.extend(meta_version(beta).as_bytes());
                text.extend(b"\",\"metadata\":");
                text.extend(metadata);
                text.push(b'}');
            }
            Some(_) => return false,
        }
        text.extend(b"}\n");
        true
    }

    fn object(&mut self, watch: &Watch, object: Object) -> Value {
        match self.accepted.transform {
            Some((Transform::Table, _)) => {
                let form = Form {
                    accepted: self.accepted,
                    pretty: false,
                    gzip: false,
                    query: &self.query,
                };
                let version = object
                    .get("metadata")
                    .and_then(|metadata| metadata.get("resourceVersion"))
                    .cloned();
                let first = !std::mem::replace(&mut self.columns, true);
                let metadata = json!({"resourceVersion": version});
                let table = form.table(
                    self.cluster.timestamp(),
                    &watch.resource,
                    std::iter::once(object),
                    &metadata,
                    first,
                );
                table.unwrap_or_else(|status| status.to_value())
            }
            Some((Transform::Partial | Transform::PartialList, beta)) => {
                table::partial(&watch.resource, &object, meta_version(beta))
            }
            _ => Value::Object(object),
        }
    }
}

/// Writes the start of an event.
fn begin(text: &mut Vec<u8>, kind: &str) {
    text.extend(b"{\"type\":\"");
    text.extend(kind.as_bytes());
    text.extend(b"\",\"object\":");
}

/// The object of a bookmark.
fn bookmark(watch: &Watch, revision: u64, initial: bool) -> Object {
    let mut metadata = json!({"resourceVersion": revision.to_string()});
    if initial {
        metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
    }
    let mut object = Map::new();
    object.insert("kind".to_owned(), watch.resource.kind.clone().into());
    object.insert("apiVersion".to_owned(), watch.resource.api_version().into());
    object.insert("metadata".to_owned(), metadata);
    object
}

#[cfg(test)]
mod tests {
    use http_body_util::{BodyExt as _, Full};

    use super::*;
    use crate::cluster::Cluster;

    async fn ask(cluster: &Cluster, method: &str, path: &str, accept: &str, body: &str) -> Response<Body> {
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header("authorization", "Bearer admin")
            .header("content-type", "application/json")
            .header("accept", accept)
            .body(Full::new(Bytes::from(body.to_owned())))
            .expect("a request");
        super::super::answer(cluster.inner(), request).await
    }

    async fn read(response: Response<Body>) -> Value {
        let text = response.into_body().collect().await.expect("a body").to_bytes();
        serde_json::from_slice(&text).expect("JSON")
    }

    #[tokio::test]
    async fn an_event_shows_what_its_write_answered_in_every_form() {
        let cluster = Cluster::bare(crate::server::tests_support::admins());
        let path = "/api/v1/namespaces/default/configmaps";
        let from = cluster.inner().store.revision();
        let body = r#"{"metadata":{"name":"a","labels":{"x":"y"}},"data":{"k":"v"}}"#;
        let made = read(ask(&cluster, "POST", path, "", body).await).await;
        let item = format!("{path}/a");
        let changed = body.replace("\"v\"", "\"w\"");
        let changed = read(ask(&cluster, "PUT", &item, "", &changed).await).await;
        let moved = body.replace("\"y\"", "\"z\"");
        read(ask(&cluster, "PUT", &item, "", &moved).await).await;
        read(ask(&cluster, "DELETE", &item, "", "").await).await;
        for (selector, last) in [("x%3Dy", from + 3), ("x", from + 4)] {
            let watch =
                format!("{path}?watch=1&timeoutSeconds=1&resourceVersion={from}&labelSelector={selector}");
            let mut texts = Vec::new();
            for accept in ["", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"] {
                let mut body = ask(&cluster, "GET", &watch, accept, "").await.into_body();
                let frame = body.frame().await.expect("events").expect("sound");
                let text = frame.into_data().expect("text");
                let lines: Vec<Value> = text
                    .split(|&byte| byte == b'\n')
                    .filter(|line| !line.is_empty())
                    .map(|line| serde_json::from_slice(line).expect("JSON"))
                    .collect();
                texts.push(lines);
            }
            let [whole, partial] = texts.as_slice() else {
                unreachable!("two forms were asked for")
            };
            assert_eq!(whole[0], json!({"type": "ADDED", "object": made}));
            assert_eq!(whole[1], json!({"type": "MODIFIED", "object": changed}));
            let end = whole.last().expect("an end");
            assert_eq!(end["type"], "DELETED");
            assert_eq!(end["object"]["kind"], "ConfigMap");
            assert_eq!(end["object"]["metadata"]["resourceVersion"], last.to_string());
            for (whole, partial) in whole.iter().zip(partial) {
                assert_eq!(whole["type"], partial["type"]);
                assert_eq!(whole["object"]["metadata"], partial["object"]["metadata"]);
                assert_eq!(partial["object"]["kind"], "PartialObjectMetadata");
            }
        }
    }
}
