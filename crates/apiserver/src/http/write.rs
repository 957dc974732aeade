//! Writing answers: the form that was accepted, spliced from stored bytes where nothing has to be changed.

use std::{io, sync::Arc};

use bytes::Bytes;
use futures::stream;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use http_body::Frame as Piece;
use http_body_util::{BodyExt as _, Full, StreamBody};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{
    accept::{Accepted, Format, Transform},
    pieces::{Splicing, Zipped, head, splice},
    protobuf, yaml,
};
use crate::{
    call::{Item, Reply},
    http::Body,
    json,
    object::Object,
    openapi::protobuf::MEDIA,
    query::Query,
    resource::{Resource, stored},
    status::{Result, Status},
    table::{self, Include},
};

/// The size from which on a response is compressed, if the request accepts that.
const COMPRESSED: usize = 128 << 10;

/// The parameters of a request that decide the form of its response.
#[derive(Clone, Copy, Debug)]
pub(super) struct Form<'a> {
    pub(super) accepted: Accepted,
    pub(super) pretty: bool,
    pub(super) gzip: bool,
    pub(super) query: &'a Query,
}

impl<'a> Form<'a> {
    /// `pretty` by the query, the media type, or a person's user agent; gzip by `Accept-Encoding`.
    pub(super) fn of(headers: &HeaderMap, query: &'a Query, accepted: Accepted) -> Self {
        let text = |name| {
            headers
                .get(name)
                .and_then(|value: &HeaderValue| value.to_str().ok())
                .unwrap_or_default()
        };
        let agent = text(header::USER_AGENT);
        let by_agent = ["curl", "Wget", "Mozilla/5.0"]
            .iter()
            .any(|one| agent.starts_with(one));
        let pretty = match query.get("pretty") {
            Some(value) => matches!(value, "1" | "t" | "T" | "true" | "TRUE" | "True"),
            None => accepted.pretty || by_agent,
        };
        Self {
            accepted,
            pretty,
            gzip: takes_gzip(headers),
            query,
        }
    }

    const fn media(&self) -> &'static str {
        match self.accepted.format {
            Format::Json => "application/json",
            Format::Yaml => "application/yaml",
            Format::Protobuf => MEDIA,
        }
    }

    fn bytes(&self, value: &Value) -> Vec<u8> {
        match (self.accepted.format, self.pretty) {
            (Format::Yaml, _) => yaml::document(value).into_bytes(),
            (Format::Json, true) => json::pretty(value),
            (Format::Json | Format::Protobuf, _) => {
                let mut text = json::compact(value);
                text.push(b'\n');
                text
            }
        }
    }

    /// True if stored bytes may be sent as they are.
    fn splices(&self) -> bool {
        self.accepted == Accepted::default() && !self.pretty
    }

    /// A whole value. Fields that are newer than the numbers of protobuf are in JSON, which those clients accept, too.
    pub(super) fn value(&self, code: u16, value: &Value) -> Response<Body> {
        if self.accepted.format != Format::Protobuf {
            return self.whole(code, self.bytes(value));
        }
        match protobuf::from_json(value).filter(|encoded| encoded.is_whole) {
            Some(encoded) => self.whole(code, encoded.bytes),
            None => self.in_json().value(code, value),
        }
    }

    fn in_json(&self) -> Self {
        let accepted = Accepted {
            format: Format::Json,
            ..self.accepted
        };
        Self { accepted, ..*self }
    }

    fn whole(&self, code: u16, text: Vec<u8>) -> Response<Body> {
        if !self.gzip || text.len() < COMPRESSED {
            return respond(code, self.media(), text);
        }
        self.pieces(code, std::iter::once(text))
    }

    /// A text that comes in pieces: small ones are put together, large ones are sent as they are made.
    fn pieces(
        &self,
        code: u16,
        mut pieces: impl Iterator<Item = Vec<u8>> + Send + 'static,
    ) -> Response<Body> {
        let mut begin = Vec::new();
        while begin.len() < COMPRESSED {
            match pieces.next() {
                Some(piece) if begin.is_empty() => begin = piece,
                Some(piece) => begin.extend(piece),
                None => return respond(code, self.media(), begin),
            }
        }
        let all = std::iter::once(begin).chain(pieces);
        let mut response = if self.gzip {
            let mut response = streamed(code, Zipped::new(all));
            response
                .headers_mut()
                .insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            response
                .headers_mut()
                .insert(header::VARY, HeaderValue::from_static("Accept-Encoding"));
            response
        } else {
            streamed(code, all)
        };
        response
            .headers_mut()
            .insert(header::CONTENT_TYPE, HeaderValue::from_static(self.media()));
        response
    }

    /// The answer of an endpoint, but for watches.
    pub(super) fn reply(
        &self,
        now: Timestamp,
        resource: &Arc<Resource>,
        reply: Reply,
    ) -> Result<Response<Body>> {
        match reply {
            Reply::Object { code, item, warnings } => {
                let mut response = self.object(now, resource, code, item)?;
                warn(response.headers_mut(), &warnings);
                Ok(response)
            }
            Reply::Other {
                code,
                value,
                warnings,
            } => {
                let mut response = match &value {
                    Value::Null => streamed(code, std::iter::empty()),
                    Value::Object(object)
                        if value["kind"] != "Status" && self.accepted.transform.is_some() =>
                    {
                        self.value(code, &self.transformed(now, resource, object)?)
                    }
                    value => self.value(code, value),
                };
                warn(response.headers_mut(), &warnings);
                Ok(response)
            }
            Reply::List {
                items,
                revision,
                next,
                remaining,
            } => {
                let list = List {
                    items,
                    revision,
                    next,
                    remaining,
                };
                self.list(now, resource, list)
            }
        }
    }

    fn object(&self, now: Timestamp, resource: &Resource, code: u16, item: Item) -> Result<Response<Body>> {
        if let Item::Stored(entry) = &item
            && self.splices()
            && stored::is_shown_as_stored(resource, entry)
        {
            let mut text = Vec::with_capacity(entry.object.len() + 96);
            splice(&mut text, &head(resource), &entry.object);
            text.push(b'\n');
            return Ok(self.whole(code, text));
        }
        let object = whole(resource, item);
        if self.accepted.transform.is_some() {
            return Ok(self.value(code, &self.transformed(now, resource, &object)?));
        }
        Ok(self.value(code, &Value::Object(object)))
    }

    /// One object as a Table or as its metadata.
    pub(super) fn transformed(&self, now: Timestamp, resource: &Resource, object: &Object) -> Result<Value> {
        let Some((transform, beta)) = self.accepted.transform else {
            return Ok(Value::Object(object.clone()));
        };
        match transform {
            Transform::Table => {
                let version = object
                    .get("metadata")
                    .and_then(|metadata| metadata.get("resourceVersion"));
                let metadata = json!({"resourceVersion": version});
                let mut table =
                    self.table(now, resource, std::iter::once(object.clone()), &metadata, true)?;
                if table::is_scale(object) {
                    table["columnDefinitions"] = table::scale_columns(resource).into();
                }
                Ok(table)
            }
            Transform::Partial => Ok(table::partial(resource, object, meta_version(beta))),
            Transform::PartialList | Transform::Discovery => Err(Status::new(
                406,
                "NotAcceptable",
                format!(
                    "you requested PartialObjectMetadataList, but the requested object is not a list ({})",
                    go_type(resource, &resource.kind, "Unstructured")
                ),
            )),
        }
    }

    /// A Table of objects; `columns`: with the definitions of its columns.
    pub(super) fn table(
        &self,
        now: Timestamp,
        resource: &Resource,
        objects: impl Iterator<Item = Object>,
        metadata: &Value,
        columns: bool,
    ) -> Result<Value> {
        let include = include(self.query)?;
        let version = meta_version(self.accepted.transform.is_some_and(|(_, beta)| beta));
        let now = now.as_second();
        let rows: Vec<Value> = objects
            .map(|object| {
                let mut row = table::row(resource, &object, include, now);
                if include == Include::Metadata && row["object"].is_object() {
                    row["object"]["apiVersion"] = version.into();
                }
                row
            })
            .collect();
        let columns = if columns {
            Value::Array(table::columns(resource))
        } else {
            Value::Null
        };
        Ok(
            json!({"kind": "Table", "apiVersion": version, "metadata": metadata, "columnDefinitions": columns, "rows": rows}),
        )
    }

    fn list(&self, now: Timestamp, resource: &Arc<Resource>, list: List) -> Result<Response<Body>> {
        let custom = resource.custom.is_some();
        let mut metadata = Map::new();
        metadata.insert("resourceVersion".to_owned(), list.revision.to_string().into());
        if !list.next.is_empty() {
            metadata.insert("continue".to_owned(), list.next.into());
        }
        if let Some(remaining) = list.remaining {
            metadata.insert("remainingItemCount".to_owned(), remaining.into());
        }
        let objects = list.items.into_iter();
        match self.accepted.transform {
            None => {}
            Some((Transform::Table, _)) => {
                let objects = objects.map(|item| whole(resource, item));
                return Ok(self.value(
                    200,
                    &self.table(now, resource, objects, &Value::Object(metadata), true)?,
                ));
            }
            Some((Transform::PartialList, beta)) => {
                let version = meta_version(beta);
                let items: Vec<Value> = objects
                    .map(|item| table::partial(resource, &whole(resource, item), version))
                    .collect();
                // A Go list that nothing was appended to.
                let items = (!items.is_empty()).then_some(items);
                let value = json!({"kind": "PartialObjectMetadataList", "apiVersion": version, "metadata": metadata, "items": items});
                return Ok(self.value(200, &value));
            }
            Some(_) => {
                let message = format!(
                    "you requested PartialObjectMetadata, but the requested object is a list ({})",
                    go_type(resource, &resource.list_kind, "UnstructuredList")
                );
                return Err(Status::new(406, "NotAcceptable", message));
            }
        }
        if custom {
            metadata.entry("continue").or_insert_with(|| "".into());
        }
        let mut envelope =
            json!({"kind": resource.list_kind, "apiVersion": resource.api_version(), "metadata": metadata});
        if !self.splices() {
            let items: Vec<Value> = objects
                .map(|item| {
                    let mut object = whole(resource, item);
                    if !custom {
                        object.remove("kind");
                        object.remove("apiVersion");
                    }
                    Value::Object(object)
                })
                .collect();
            envelope["items"] = items.into();
            return Ok(self.value(200, &envelope));
        }
        let mut begin = json::compact(&envelope);
        begin.pop();
        begin.extend(b",\"items\":[");
        let head = if custom { head(resource) } else { Vec::new() };
        let resource = resource.clone();
        let splicing = Splicing {
            begin: Some(begin),
            items: objects,
            head,
            any: false,
            done: false,
            custom,
            resource,
        };
        Ok(self.pieces(200, splicing))
    }
}

struct List {
    items: Vec<Item>,
    revision: u64,
    next: String,
    remaining: Option<usize>,
}

/// An object with apiVersion and kind.
pub(super) fn whole(resource: &Resource, item: Item) -> Object {
    match item {
        Item::Stored(entry) => stored::shown(resource, &entry.object),
        Item::Made(object) => object,
    }
}

pub(super) const fn meta_version(beta: bool) -> &'static str {
    if beta {
        "meta.k8s.io/v1beta1"
    } else {
        "meta.k8s.io/v1"
    }
}

/// The Go type that a message names.
fn go_type(resource: &Resource, kind: &str, custom: &str) -> String {
    if resource.custom.is_some() {
        return format!("*unstructured.{custom}");
    }
    let package = match resource.group.as_str() {
        "" | "events.k8s.io" => "core",
        group => group.split('.').next().unwrap_or_default(),
    };
    format!("*{package}.{kind}")
}

/// `includeObject` of a request for a Table.
pub(super) fn include(query: &Query) -> Result<Include> {
    match query.get("includeObject") {
        None | Some("" | "Metadata") => Ok(Include::Metadata),
        Some("Object") => Ok(Include::Object),
        Some("None") => Ok(Include::None),
        Some(other) => Err(Status::bad_request(format!(
            "Unable to convert to Table as requested: includeObject: Invalid value: {other:?}: must be 'Metadata', 'Object', 'None', or empty"
        ))),
    }
}

/// An answer of one piece.
pub(crate) fn respond(code: u16, media: &'static str, text: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(
        Full::new(text.into())
            .map_err(|never| match never {})
            .boxed_unsync(),
    );
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static(media));
    response
}

/// True if `Accept-Encoding` names gzip.
pub(super) fn takes_gzip(headers: &HeaderMap) -> bool {
    let accepted = headers.get(header::ACCEPT_ENCODING);
    let text = accepted.and_then(|value| value.to_str().ok()).unwrap_or_default();
    text.split(',').any(|one| one.trim() == "gzip")
}

/// Plain text.
pub(super) fn text(code: u16, text: impl Into<Bytes>) -> Response<Body> {
    let mut response = respond(code, "text/plain; charset=utf-8", text);
    let nosniff = HeaderValue::from_static("nosniff");
    response
        .headers_mut()
        .insert(header::X_CONTENT_TYPE_OPTIONS, nosniff);
    response
}

pub(super) fn streamed(code: u16, pieces: impl Iterator<Item = Vec<u8>> + Send + 'static) -> Response<Body> {
    let frames = pieces.map(|piece| Ok::<_, io::Error>(Piece::data(Bytes::from(piece))));
    let mut response = Response::new(StreamBody::new(stream::iter(frames)).boxed_unsync());
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response
}

/// `Warning` headers, each text once.
pub(super) fn warn(headers: &mut HeaderMap, warnings: &[String]) {
    for (at, warning) in warnings.iter().enumerate() {
        if warnings[..at].contains(warning) {
            continue;
        }
        let mut text = String::from("299 - \"");
        for c in warning.chars().filter(|c| !c.is_control()) {
            if matches!(c, '"' | '\\') {
                text.push('\\');
            }
            text.push(c);
        }
        text.push('"');
        if let Ok(value) = HeaderValue::from_bytes(text.as_bytes()) {
            headers.append(header::WARNING, value);
        }
    }
}

/// The same of a warning that comes before those that are there.
pub(super) fn warn_first(headers: &mut HeaderMap, warning: String) {
    let later: Vec<HeaderValue> = headers.get_all(header::WARNING).iter().cloned().collect();
    headers.remove(header::WARNING);
    warn(headers, &[warning]);
    for value in later {
        headers.append(header::WARNING, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_quoted_and_come_once() {
        let mut headers = HeaderMap::new();
        let text = "unknown field \"spec.foo\"".to_owned();
        warn(&mut headers, &[text.clone(), text, "a\nb".to_owned()]);
        let values: Vec<_> = headers.get_all(header::WARNING).iter().collect();
        assert_eq!(
            values,
            ["299 - \"unknown field \\\"spec.foo\\\"\"", "299 - \"ab\""]
        );
    }
}
