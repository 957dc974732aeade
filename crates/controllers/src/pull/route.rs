//! The addresses of an API server, as far as this program sends requests to members, and the answers that need no Work.

use std::collections::{BTreeMap, BTreeSet};

use entourage_core::{
    object::{Gvk, ResourceId, Str},
    rights,
};
use http::Uri;
use serde_json::{Value, json};

use super::Facts;

/// The meaning of an address.
pub(super) enum Route {
    /// `/readyz` or `/healthz`.
    Ready,
    Version,
    /// A response of discovery.
    Discovery(Value),
    /// The namespace whose uid is the identity of the cluster.
    Identity,
    Objects(Target),
    /// Objects of a kind that the agent does not report: the plural and the group version.
    Unreported(String),
    /// No API server has it.
    Nothing,
}

/// An object, or with an empty name a collection of objects.
#[derive(Clone)]
pub(super) struct Target {
    /// The kind, with the namespace and name in the address.
    pub(super) id: ResourceId,
    pub(super) plural: String,
    /// True if the agent reports that the cluster serves the kind. What exists can be read and removed in any case.
    pub(super) is_served: bool,
    /// The query parameters.
    pub(super) query: BTreeMap<String, String>,
}

/// Kinds that are requested of members and may not be propagated: group, plural, kind.
const OTHERS: [(&str, &str, &str); 3] = [
    ("", "namespaces", "Namespace"),
    ("", "resourcequotas", "ResourceQuota"),
    (
        "apiextensions.k8s.io",
        "customresourcedefinitions",
        "CustomResourceDefinition",
    ),
];

/// Reads an address. Cost: O(kinds that the cluster serves).
pub(super) fn route(uri: &Uri, facts: &Facts) -> Route {
    let parts: Vec<String> = uri
        .path()
        .split('/')
        .filter(|part| !part.is_empty())
        .map(decoded)
        .collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let (group, version, rest) = match &*parts {
        ["readyz" | "healthz"] => return Route::Ready,
        ["version"] => return Route::Version,
        ["api"] => return Route::Discovery(json!({"kind": "APIVersions", "versions": ["v1"]})),
        ["apis"] => return Route::Discovery(groups(facts)),
        ["api", version, rest @ ..] => ("", *version, rest),
        ["apis", group, version, rest @ ..] => (*group, *version, rest),
        _ => return Route::Nothing,
    };
    let (namespace, plural, name) = match rest {
        [] => return resources(group, version, facts).map_or(Route::Nothing, Route::Discovery),
        ["namespaces", "kube-system"] => return Route::Identity,
        ["namespaces", namespace, plural] => (*namespace, *plural, ""),
        ["namespaces", namespace, plural, name] => (*namespace, *plural, *name),
        [plural] => ("", *plural, ""),
        [plural, name] => ("", *plural, *name),
        _ => return Route::Nothing,
    };
    let served = served_kind(group, version, plural, facts);
    let is_served = served.is_some();
    let Some(kind) = served.or_else(|| known_kind(group, plural)) else {
        return Route::Unreported(format!("{plural} of {}", group_version(group, version)));
    };
    let gvk = Gvk {
        group: group.into(),
        version: version.into(),
        kind: Str::from(&*kind),
    };
    Route::Objects(Target {
        id: ResourceId::new(gvk, namespace, name),
        plural: plural.to_owned(),
        is_served,
        query: query(uri),
    })
}

fn group_version(group: &str, version: &str) -> String {
    match group {
        "" => version.to_owned(),
        _ => format!("{group}/{version}"),
    }
}

fn served_kind(group: &str, version: &str, plural: &str, facts: &Facts) -> Option<String> {
    let group_version = group_version(group, version);
    let mut of_it = facts
        .apis
        .iter()
        .filter(|each| each.group_version == group_version);
    of_it.find_map(|each| {
        let found = each.resources.iter().find(|resource| resource.name == plural)?;
        Some(found.kind.clone())
    })
}

fn known_kind(group: &str, plural: &str) -> Option<String> {
    let mut others = OTHERS.iter().filter(|each| each.0 == group && each.1 == plural);
    if let Some((.., kind)) = others.next() {
        return Some((*kind).to_owned());
    }
    let mut natives = rights::propagated().iter();
    let native = natives.find(|each| each.group == group && each.resource.plural == plural)?;
    Some(native.kind.to_owned())
}

/// The groups of the cluster, in the order in which the agent lists their versions.
fn groups(facts: &Facts) -> Value {
    let mut groups: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for each in &facts.apis {
        if let Some((group, version)) = each.group_version.split_once('/') {
            groups.entry(group).or_default().push(version);
        }
    }
    let groups: Vec<Value> = groups
        .into_iter()
        .map(|(group, versions)| {
            let of = |version: &str| json!({"groupVersion": format!("{group}/{version}"), "version": version});
            let all: Vec<Value> = versions.iter().map(|version| of(version)).collect();
            json!({"name": group, "versions": all, "preferredVersion": versions.first().map(|first| of(first))})
        })
        .collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// The resources of a group version; `None` if the cluster does not serve it. The core group is served in any case.
fn resources(group: &str, version: &str, facts: &Facts) -> Option<Value> {
    let group_version = group_version(group, version);
    let of_it = facts
        .apis
        .iter()
        .filter(|each| each.group_version == group_version);
    let of_it: BTreeSet<(&str, &str)> = of_it
        .flat_map(|each| &each.resources)
        .map(|each| (each.name.as_str(), each.kind.as_str()))
        .collect();
    if of_it.is_empty() && group_version != "v1" {
        return None;
    }
    let resources: Vec<Value> = of_it
        .into_iter()
        .map(|(name, kind)| json!({"name": name, "kind": kind, "verbs": ["get", "list", "watch"]}))
        .collect();
    Some(json!({"kind": "APIResourceList", "groupVersion": group_version, "resources": resources}))
}

fn query(uri: &Uri) -> BTreeMap<String, String> {
    let pairs = uri.query().unwrap_or_default().split('&');
    pairs
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, value)| (decoded(name), decoded(value)))
        .collect()
}

/// Text without percent-encoding, as [`crate::client::path::Path`] writes it.
fn decoded(text: &str) -> String {
    let (mut plain, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((&first, after)) = rest.split_first() {
        let digits = after.get(..2).filter(|_| first == b'%');
        let byte = digits.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        plain.push(byte.unwrap_or(first));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&plain).into_owned()
}
