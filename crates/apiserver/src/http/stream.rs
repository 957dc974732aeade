//! Watches on the wire: one line for each event, in the form that was asked for.

use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt as _;
use http::{HeaderValue, Response, header};
use http_body::Frame as Piece;
use http_body_util::{BodyExt as _, StreamBody};
use serde_json::{Map, Value, json};

use super::{
    accept::{Accepted, Transform},
    json,
    write::{Form, partial},
};
use crate::{
    cluster::{Body, Inner},
    endpoint::Query,
    resource::Object,
    watch::{Frame, Watch},
};

/// How the events of one watch are written.
struct Lines {
    cluster: Arc<Inner>,
    accepted: Accepted,
    query: Query,
    /// Whether the columns of the Table were sent.
    columns: bool,
}

/// The answer that a watch is.
pub(super) fn watched(cluster: &Arc<Inner>, form: &Form<'_>, watch: Watch) -> Response<Body> {
    let lines = Lines {
        cluster: cluster.clone(),
        accepted: form.accepted,
        query: form.query.clone(),
        columns: false,
    };
    let stream = futures::stream::unfold((watch, lines), |(mut watch, mut lines)| async move {
        let frames = watch.next().await?;
        let mut text = Vec::new();
        for frame in frames {
            lines.write(&mut text, &watch, frame);
        }
        Some((Ok(Piece::data(Bytes::from(text))), (watch, lines)))
    });
    let mut response = Response::new(StreamBody::new(stream.boxed()).boxed_unsync());
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

impl Lines {
    fn write(&mut self, text: &mut Vec<u8>, watch: &Watch, frame: Frame) {
        let (kind, object) = match frame {
            Frame::Object(kind, object) => (kind, self.object(watch, object)),
            Frame::Bookmark(revision, initial) => {
                ("BOOKMARK", self.object(watch, bookmark(watch, revision, initial)))
            }
            Frame::Error(status) => ("ERROR", status.to_value()),
        };
        text.extend(b"{\"type\":\"");
        text.extend(kind.as_bytes());
        text.extend(b"\",\"object\":");
        text.extend(json::compact(&object));
        text.extend(b"}\n");
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
                    &self.cluster,
                    &watch.resource,
                    std::iter::once(object),
                    &metadata,
                    first,
                );
                table.unwrap_or_else(|status| status.to_value())
            }
            Some((Transform::Partial | Transform::PartialList, beta)) => partial(&object, beta),
            _ => Value::Object(object),
        }
    }
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
