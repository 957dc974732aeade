//! Requests for OpenAPI documents: the requested form, and ETags for clients that have it already.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Method, Response, StatusCode, header, request::Parts};
use jiff::{Timestamp, ToSpan as _};
use serde_json::json;

use super::{
    Body,
    pieces::Zipped,
    write::{respond, streamed, takes_gzip},
};
use crate::{json, openapi, query::Query, resource::Kinds, server::Server};

/// Media types of version 2 in protocol buffers: as it is requested (two spellings), and as it is answered.
const PROTOBUF_V2: [&str; 2] = [
    "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
    "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
];

/// The answer of a path below `/openapi`; `None` for every other path.
pub(super) fn answer(cluster: &Server, parts: &Parts, query: &Query) -> Option<Response<Body>> {
    let rest = parts.uri.path().strip_prefix("/openapi/")?;
    if !matches!(parts.method, Method::GET | Method::HEAD) {
        return Some(respond(405, "text/plain; charset=utf-8", ""));
    }
    let kinds = cluster.kinds();
    match rest {
        "v2" => Some(answer_2(cluster, parts, &kinds)),
        "v3" => {
            let text = json::compact(&json!({"paths": openapi::index(&cluster.store, &kinds)}));
            let mut response = respond(200, "text/plain; charset=utf-8", text);
            dated(&mut response, cluster.documents.since(&kinds));
            Some(response)
        }
        _ => answer_3(cluster, parts, query, &kinds, rest.strip_prefix("v3/")?),
    }
}

fn answer_2(cluster: &Server, parts: &Parts, kinds: &Arc<Kinds>) -> Response<Body> {
    const VARY: &str = "Accept-Encoding, Accept";
    let accepted = accepted(parts, &[&["application/json"], &PROTOBUF_V2]);
    let Some(at) = accepted else {
        return refused(VARY);
    };
    let media = if at == 0 {
        "application/json"
    } else {
        PROTOBUF_V2[1]
    };
    let (document, etag) = cluster.documents.version_2(kinds, at != 0);
    let mut response = tagged(parts, media, &etag, VARY, document.clone());
    dated(&mut response, cluster.documents.since(kinds));
    if response.status() == StatusCode::OK && takes_gzip(&parts.headers) {
        const PIECE: usize = 64 << 10;
        let pieces = (0..document.len())
            .step_by(PIECE)
            .map(move |at| document[at..document.len().min(at + PIECE)].to_vec());
        *response.body_mut() = streamed(200, Zipped::new(pieces)).into_body();
        let gzip = HeaderValue::from_static("gzip");
        response.headers_mut().insert(header::CONTENT_ENCODING, gzip);
    }
    response
}

fn answer_3(
    cluster: &Server,
    parts: &Parts,
    query: &Query,
    kinds: &Arc<Kinds>,
    path: &str,
) -> Option<Response<Body>> {
    let hash = openapi::hash(&cluster.store, kinds, path)?;
    if accepted(parts, &[&["application/json"]]).is_none() {
        return Some(refused("Accept"));
    }
    let etag = format!("\"{hash}\"");
    let asked = query.get("hash").filter(|asked| !asked.is_empty());
    if asked.is_some_and(|asked| asked != hash) {
        let mut response = tagged(parts, "application/json", &etag, "Accept", Bytes::new());
        *response.status_mut() = StatusCode::MOVED_PERMANENTLY;
        if let Ok(location) = HeaderValue::from_str(&format!("/openapi/v3/{path}?hash={hash}")) {
            response.headers_mut().insert(header::LOCATION, location);
        }
        return Some(response);
    }
    let (document, _) = cluster.documents.version_3(kinds, path);
    let mut response = tagged(parts, "application/json", &etag, "Accept", document);
    dated(&mut response, cluster.documents.since(kinds));
    if asked.is_some() {
        let headers = response.headers_mut();
        headers.insert(
            header::CACHE_CONTROL,
            HeaderValue::from_static("public, immutable"),
        );
        headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        let year = cluster
            .timestamp()
            .checked_add((365 * 24).hours())
            .unwrap_or_default();
        if let Ok(date) = HeaderValue::from_str(&http_date(year)) {
            headers.insert(header::EXPIRES, date);
        }
    }
    Some(response)
}

/// The offer that the request accepts; the first one if it accepts any.
fn accepted(parts: &Parts, offers: &[&[&str]]) -> Option<usize> {
    let header = parts
        .headers
        .get(header::ACCEPT)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    if header.trim().is_empty() {
        return Some(0);
    }
    header
        .split(',')
        .find_map(|part| match part.split(';').next().unwrap_or_default().trim() {
            "*/*" | "application/*" => Some(0),
            media => offers.iter().position(|offer| offer.contains(&media)),
        })
}

fn refused(vary: &'static str) -> Response<Body> {
    let mut response = respond(406, "text/plain; charset=utf-8", "");
    response
        .headers_mut()
        .insert(header::VARY, HeaderValue::from_static(vary));
    response
}

fn dated(response: &mut Response<Body>, since: Timestamp) {
    if let Ok(date) = HeaderValue::from_str(&http_date(since)) {
        response.headers_mut().insert(header::LAST_MODIFIED, date);
    }
}

fn http_date(time: Timestamp) -> String {
    time.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
}

/// A document with its ETag, or 304 when the client has it already.
pub(super) fn tagged(
    parts: &Parts,
    media: &'static str,
    etag: &str,
    vary: &'static str,
    document: impl Into<Bytes>,
) -> Response<Body> {
    let known = parts
        .headers
        .get(header::IF_NONE_MATCH)
        .and_then(|value| value.to_str().ok());
    let mut response = if known == Some(etag) {
        let mut response = respond(304, media, Bytes::new());
        response.headers_mut().remove(header::CONTENT_TYPE);
        response
    } else {
        respond(200, media, document)
    };
    let headers = response.headers_mut();
    if let Ok(etag) = HeaderValue::from_str(etag) {
        headers.insert(header::ETAG, etag);
    }
    headers.insert(header::VARY, HeaderValue::from_static(vary));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public"));
    response
}
