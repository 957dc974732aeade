//! OpenAPI documents: v3 per group version, v2 for older clients.
//!
//! Nothing is made at start: a document is made at its first request, and kept until the kinds change.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha512};

use crate::{
    discovery, json,
    resource::{Kinds, Resource},
    store::Store,
};

mod definitions;
mod enums;
mod gnostic;
mod listings;
mod operations;
mod parameters;
mod paths;
pub(crate) mod protobuf;

use definitions::{Definitions, Flavor};
use parameters::Parameters;

/// The documents that were made, and the kinds they were made of.
#[derive(Debug, Default)]
pub(crate) struct Documents(Mutex<Made>);

#[derive(Debug, Default)]
struct Made {
    kinds: Option<Arc<Kinds>>,
    documents: BTreeMap<Which, Document>,
    since: Option<Timestamp>,
}

/// A document and its ETag.
pub(crate) type Document = (Bytes, Arc<str>);

/// The key of a document.
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

    /// Version 2, in JSON or in protocol buffers.
    pub(crate) fn version_2(&self, kinds: &Arc<Kinds>, protobuf: bool) -> Document {
        self.get(
            kinds,
            &if protobuf {
                Which::V2Protobuf
            } else {
                Which::V2Json
            },
        )
    }

    /// Version 3 of a path such as `apis/apps/v1`.
    pub(crate) fn version_3(&self, kinds: &Arc<Kinds>, path: &str) -> Document {
        self.get(kinds, &Which::V3(path.to_owned()))
    }

    /// Discovery in one piece, with its ETag: of `/api` (`core`) or `/apis`.
    pub(crate) fn discovery(&self, kinds: &Arc<Kinds>, core: bool) -> Document {
        self.get(kinds, &Which::Discovery(core))
    }

    /// The time of the first request for documents of these kinds.
    pub(crate) fn since(&self, kinds: &Arc<Kinds>) -> Timestamp {
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

/// Paths of the version 3 documents, with the hash of each.
pub(crate) fn index(store: &Store, kinds: &Kinds) -> Map<String, Value> {
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
        if is_own(kinds, &group) {
            paths.push(format!("apis/{group}"));
        }
    }
    let entry = |path: String| {
        let hash = hash(store, kinds, &path)?;
        let url = format!("/openapi/v3/{path}?hash={hash}");
        Some((path, json!({"serverRelativeURL": url})))
    };
    paths.into_iter().filter_map(entry).collect()
}

/// The hash of a version 3 document, without making it: built-in kinds never change, custom ones with their CRD. `None`: there is
/// no such document.
pub(crate) fn hash(store: &Store, kinds: &Kinds, path: &str) -> Option<String> {
    let mut seed = format!("1.36 {path}");
    let words: Vec<&str> = path.split('/').collect();
    let (group, version) = match words.as_slice() {
        ["api" | "apis" | "version"] | ["openid", "v1", "jwks"] | [".well-known", "openid-configuration"] => {
            ("", "")
        }
        ["apis", group] if is_own(kinds, group) => ("", ""),
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
                let crd = store.get("apiextensions.k8s.io/customresourcedefinitions", &name);
                seed += &format!(" {name} {}", crd.map_or(0, |crd| crd.revision));
            }
        }
        if !any {
            return None;
        }
    }
    Some(hex(seed.as_bytes()))
}

/// True if a group is one of the server's own, which has a document beside those of its versions.
fn is_own(kinds: &Kinds, group: &str) -> bool {
    kinds.all().any(|one| one.group == group && one.custom.is_none())
}

fn hex(bytes: &[u8]) -> String {
    Sha512::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02X}"))
        .collect()
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
    let versions = vec![(group.to_owned(), version.to_owned())];
    let mut definitions = Definitions::new(Flavor::V3, versions);
    let (mut paths, _) = contents(Flavor::V3, &mut definitions, resources.into_iter());
    if let Some(discovery) = listings::Discovery::of(&words).filter(|_| !custom) {
        paths.insert(format!("/{path}/"), discovery.item());
        definitions.add_root(&discovery.answer);
    }
    let definitions = definitions.into_value();
    json!({
        "openapi": "3.0.0", "info": {"title": title, "version": number}, "paths": paths,
        "components": {"schemas": definitions, "securitySchemes": {"BearerToken": bearer()}},
    })
}

/// The version 2 document: everything that is served.
fn version_2(kinds: &Kinds) -> Value {
    let mut definitions = Definitions::new(Flavor::V2, versions());
    let (mut paths, parameters) = contents(Flavor::V2, &mut definitions, kinds.all());
    let definitions = definitions.into_value();
    let version = json!({"get": {"description": "version of the server", "operationId": "getCodeVersion",
        "responses": {"200": {"description": "OK"}}}});
    paths.insert("/version/".to_owned(), version);
    json!({
        "swagger": "2.0", "info": {"title": "Kubernetes", "version": "1.36"},
        "paths": paths, "definitions": definitions, "parameters": parameters,
        "securityDefinitions": {"BearerToken": bearer()}, "security": [{"BearerToken": []}],
    })
}

fn bearer() -> Value {
    json!({"type": "apiKey", "name": "authorization", "in": "header", "description": "Bearer Token authentication"})
}

/// The group versions whose requests take options for deletions, served or not.
fn versions() -> Vec<(String, String)> {
    let lines = include_str!("openapi/versions.txt").lines();
    let groups = lines.filter(|line| !line.starts_with('#')).map(|line| {
        let (group, versions) = line.split_once(' ').unwrap_or((line, ""));
        (group.trim_matches('-'), versions.split(' '))
    });
    groups
        .flat_map(|(group, versions)| versions.map(move |version| (group.to_owned(), version.to_owned())))
        .collect()
}

/// The paths of resources, and the parameters that they share.
fn contents<'a>(
    flavor: Flavor,
    definitions: &mut Definitions,
    resources: impl Iterator<Item = &'a Arc<Resource>>,
) -> (Map<String, Value>, Map<String, Value>) {
    let mut parameters = Parameters::new(flavor);
    let mut all = Map::new();
    for resource in resources {
        definitions.add(resource);
        paths::add(
            &mut all,
            &mut paths::Parts {
                flavor,
                definitions,
                parameters: &mut parameters,
            },
            resource,
        );
    }
    (all, parameters.shared)
}
