//! OpenAPI documents: v3 per group version, v2 for older clients.
//!
//! Nothing is made at start: a document is made when it is first asked for, and kept until the kinds change.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use http::{HeaderValue, Method, Response, StatusCode, header, request::Parts};
use jiff::{Timestamp, ToSpan as _};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha512};

use crate::{
    cluster::{Body, Inner},
    discovery,
    endpoint::Query,
    http::{self as door, json},
    kinds::Kinds,
    resource::Resource,
};

mod definitions;
mod gnostic;
mod paths;
pub mod protobuf;

use definitions::{Definitions, Flavor};

/// Media types of version 2 in protocol buffers: as it is asked for (two spellings), and as it is answered.
const PROTOBUF_V2: [&str; 2] = [
    "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
    "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
];

/// The documents that were made, and the kinds they were made of.
#[derive(Debug, Default)]
pub struct Documents(Mutex<Made>);

#[derive(Debug, Default)]
struct Made {
    kinds: Option<Arc<Kinds>>,
    documents: BTreeMap<Which, Document>,
    since: Option<Timestamp>,
}

/// A document and its ETag.
pub(crate) type Document = (Bytes, Arc<str>);

/// Which document.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Which {
    V2Json,
    V2Protobuf,
    /// By its path: `apis/apps/v1`.
    V3(String),
    /// Discovery of `/api` (`true`) or `/apis` in one piece.
    Discovery(bool),
}

impl Documents {
    /// A document of the kinds that are served now; made without holding the lock.
    fn get(&self, kinds: &Arc<Kinds>, which: &Which) -> Document {
        if let Some(document) = self.kept(kinds).documents.get(which) {
            return document.clone();
        }
        let text = Bytes::from(made(kinds, which));
        let etag = Arc::from(format!("\"{}\"", hex(&text)));
        let document = (text, etag);
        let mut kept = self.kept(kinds);
        kept.documents.insert(which.clone(), document.clone());
        document
    }

    fn kept(&self, kinds: &Arc<Kinds>) -> std::sync::MutexGuard<'_, Made> {
        let mut made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !made.kinds.as_ref().is_some_and(|known| Arc::ptr_eq(known, kinds)) {
            made.kinds = Some(kinds.clone());
            made.documents.clear();
            made.since = Some(Timestamp::now());
        }
        made
    }

    fn since(&self, kinds: &Arc<Kinds>) -> Timestamp {
        self.kept(kinds).since.unwrap_or_default()
    }
}

fn made(kinds: &Kinds, which: &Which) -> Vec<u8> {
    match which {
        Which::V2Json => json::compact(&version_2(kinds)),
        Which::V2Protobuf => gnostic::document(&version_2(kinds)),
        Which::V3(path) => json::compact(&version_3(kinds, path)),
        Which::Discovery(core) => json::compact(&discovery::aggregated(kinds, *core)),
    }
}

/// The answer of a path below `/openapi`; `None` for every other path.
pub(crate) fn answer(cluster: &Inner, parts: &Parts, query: &Query) -> Option<Response<Body>> {
    let rest = parts.uri.path().strip_prefix("/openapi/")?;
    if !matches!(parts.method, Method::GET | Method::HEAD) {
        return Some(door::respond(405, "text/plain; charset=utf-8", ""));
    }
    let kinds = cluster.kinds();
    match rest {
        "v2" => Some(answer_2(cluster, parts, &kinds)),
        "v3" => {
            let text = json::compact(&json!({"paths": index(cluster, &kinds)}));
            let mut response = door::respond(200, "text/plain; charset=utf-8", text);
            dated(&mut response, cluster.documents.since(&kinds));
            Some(response)
        }
        _ => answer_3(cluster, parts, query, &kinds, rest.strip_prefix("v3/")?),
    }
}

fn answer_2(cluster: &Inner, parts: &Parts, kinds: &Arc<Kinds>) -> Response<Body> {
    const VARY: &str = "Accept-Encoding, Accept";
    let accepted = accepted(parts, &[&["application/json"], &PROTOBUF_V2]);
    let Some(which) = accepted.map(|at| if at == 0 { Which::V2Json } else { Which::V2Protobuf }) else {
        return refused(VARY);
    };
    let media = if which == Which::V2Json {
        "application/json"
    } else {
        PROTOBUF_V2[1]
    };
    let (document, etag) = cluster.documents.get(kinds, &which);
    let mut response = tagged(parts, media, &etag, VARY, document);
    dated(&mut response, cluster.documents.since(kinds));
    response
}

fn answer_3(
    cluster: &Inner,
    parts: &Parts,
    query: &Query,
    kinds: &Arc<Kinds>,
    path: &str,
) -> Option<Response<Body>> {
    let hash = hash(cluster, kinds, path)?;
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
    let (document, _) = cluster.documents.get(kinds, &Which::V3(path.to_owned()));
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

/// Which of the offers the request accepts, the first one for anything.
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
    let mut response = door::respond(406, "text/plain; charset=utf-8", "");
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

/// Discovery in one piece, with its ETag: of `/api` (`core`) or `/apis`.
pub(crate) fn discovered(cluster: &Inner, kinds: &Arc<Kinds>, core: bool) -> Document {
    cluster.documents.get(kinds, &Which::Discovery(core))
}

fn hex(bytes: &[u8]) -> String {
    Sha512::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02X}"))
        .collect()
}

/// A document with its ETag, or 304 when the client has it already.
pub(crate) fn tagged(
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
        let mut response = door::respond(304, media, Bytes::new());
        response.headers_mut().remove(header::CONTENT_TYPE);
        response
    } else {
        door::respond(200, media, document)
    };
    let headers = response.headers_mut();
    if let Ok(etag) = HeaderValue::from_str(etag) {
        headers.insert(header::ETAG, etag);
    }
    headers.insert(header::VARY, HeaderValue::from_static(vary));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public"));
    response
}

/// Paths of the version 3 documents, with the hash of each.
fn index(cluster: &Inner, kinds: &Kinds) -> Map<String, Value> {
    let mut paths = vec![
        ".well-known/openid-configuration".to_owned(),
        "api".to_owned(),
        "api/v1".to_owned(),
        "apis".to_owned(),
        "openid/v1/jwks".to_owned(),
        "version".to_owned(),
    ];
    for (group, versions) in discovery::groups(kinds) {
        paths.extend(versions.iter().map(|version| format!("apis/{group}/{version}")));
        if discovery::is_builtin(&group) {
            paths.push(format!("apis/{group}"));
        }
    }
    let entry = |path: String| {
        let hash = hash(cluster, kinds, &path)?;
        let url = format!("/openapi/v3/{path}?hash={hash}");
        Some((path, json!({"serverRelativeURL": url})))
    };
    paths.into_iter().filter_map(entry).collect()
}

/// The hash of a version 3 document, without making it: built-in kinds never change, custom ones with their CRD. `None`: there is
/// no such document.
fn hash(cluster: &Inner, kinds: &Kinds, path: &str) -> Option<String> {
    let mut seed = format!("1.36 {path}");
    let words: Vec<&str> = path.split('/').collect();
    let (group, version) = match words.as_slice() {
        ["api" | "apis" | "version"] | ["openid", "v1", "jwks"] | [".well-known", "openid-configuration"] => {
            ("", "")
        }
        ["apis", group] if discovery::is_builtin(group) => ("", ""),
        ["api", version] => ("", *version),
        ["apis", group, version] => (*group, *version),
        _ => return None,
    };
    if !version.is_empty() {
        let mut any = false;
        for resource in kinds.in_version(group, version) {
            any = true;
            if resource.custom.is_some() {
                let name = format!("{}.{}", resource.plural, resource.group);
                let crd = cluster
                    .store
                    .get("apiextensions.k8s.io/customresourcedefinitions", &name);
                seed += &format!(" {name} {}", crd.map_or(0, |crd| crd.revision));
            }
        }
        if !any {
            return None;
        }
    }
    Some(hex(seed.as_bytes()))
}

/// The version 3 document of a path: the kinds of its group version, or nothing but its discovery.
fn version_3(kinds: &Kinds, path: &str) -> Value {
    let words: Vec<&str> = path.split('/').collect();
    let (group, version) = match words.as_slice() {
        ["api", version] => ("", *version),
        ["apis", group, version] => (*group, *version),
        _ => ("", ""),
    };
    let resources: Vec<&Arc<Resource>> = kinds.in_version(group, version).collect();
    let custom = resources.iter().any(|resource| resource.custom.is_some());
    let (title, number) = if custom {
        ("Kubernetes CRD Swagger", "v0.1.0")
    } else {
        ("Kubernetes", "1.36")
    };
    let (paths, definitions) = contents(Flavor::V3, resources.into_iter());
    let mut paths = paths;
    if !custom {
        let get = json!({"get": {"description": "what is served here", "responses": {"200": {"description": "OK"}}}});
        paths.insert(format!("/{path}/"), get);
    }
    json!({
        "openapi": "3.0.0", "info": {"title": title, "version": number}, "paths": paths,
        "components": {"schemas": definitions, "securitySchemes": {"BearerToken": bearer()}},
    })
}

/// The version 2 document: everything that is served.
fn version_2(kinds: &Kinds) -> Value {
    let (mut paths, definitions) = contents(Flavor::V2, kinds.all());
    let version = json!({"get": {"description": "version of the server", "operationId": "getCodeVersion",
        "responses": {"200": {"description": "OK"}}}});
    paths.insert("/version/".to_owned(), version);
    json!({
        "swagger": "2.0", "info": {"title": "Kubernetes", "version": "1.36"},
        "paths": paths, "definitions": definitions, "parameters": {},
        "securityDefinitions": {"BearerToken": bearer()}, "security": [{"BearerToken": []}],
    })
}

fn bearer() -> Value {
    json!({"type": "apiKey", "name": "authorization", "in": "header", "description": "Bearer Token authentication"})
}

fn contents<'a>(
    flavor: Flavor,
    resources: impl Iterator<Item = &'a Arc<Resource>>,
) -> (Map<String, Value>, Value) {
    let mut definitions = Definitions::new(flavor);
    let mut all = Map::new();
    for resource in resources {
        definitions.add(resource);
        paths::add(&mut all, flavor, resource);
    }
    (all, definitions.into_value())
}
