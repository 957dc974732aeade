//! Discovery: `/api`, `/apis` and aggregated discovery, the lists of served resources.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::resource::{Kinds, Resource, by_priority};

/// Built-in groups by their priority, as upstream orders them; groups of CRDs follow by name.
const GROUPS: &[&str] = &[
    "",
    "apps",
    "events.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
    "discovery.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "resource.k8s.io",
];

/// True if a group is built in: the error for an unknown path below it is a Status.
#[must_use]
pub(crate) fn is_builtin(group: &str) -> bool {
    GROUPS.contains(&group)
}

/// A subresource: its verbs and the kind of its bodies; an empty group: that of the resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sub {
    /// Verbs, sorted.
    pub verbs: &'static [&'static str],
    /// Group of the kind, where it is another one than the resource's.
    pub group: &'static str,
    /// Version of the kind, where it is another one than the resource's.
    pub version: &'static str,
    /// Kind.
    pub kind: String,
}

const CHANGE: &[&str] = &["get", "patch", "update"];
const CREATE: &[&str] = &["create"];
const CONNECT: &[&str] = &["create", "get"];

/// A subresource in discovery.
#[must_use]
pub(crate) fn subresource(resource: &Resource, name: &str) -> Sub {
    let own = |verbs| Sub {
        verbs,
        group: "",
        version: "",
        kind: resource.kind.clone(),
    };
    let named = |verbs, group, version, kind: &str| Sub {
        verbs,
        group,
        version,
        kind: kind.to_owned(),
    };
    match name {
        "attach" => named(CONNECT, "", "", "PodAttachOptions"),
        "binding" => named(CREATE, "", "", "Binding"),
        "eviction" => named(CREATE, "policy", "v1", "Eviction"),
        "exec" => named(CONNECT, "", "", "PodExecOptions"),
        "finalize" => own(&["update"]),
        "log" => own(&["get"]),
        "portforward" => named(CONNECT, "", "", "PodPortForwardOptions"),
        "proxy" => {
            let verbs = &["create", "delete", "get", "patch", "update"];
            named(verbs, "", "", &format!("{}ProxyOptions", resource.kind))
        }
        "scale" => named(CHANGE, "autoscaling", "v1", "Scale"),
        "token" => named(CREATE, "authentication.k8s.io", "v1", "TokenRequest"),
        _ => own(CHANGE),
    }
}

/// The groups beside the core group, in order.
#[must_use]
pub(crate) fn groups(kinds: &Kinds) -> Vec<(String, Vec<String>)> {
    let mut groups: Vec<_> = kinds
        .groups()
        .iter()
        .filter(|(group, versions)| !group.is_empty() && !versions.is_empty())
        .map(|(group, versions)| (group.clone(), ordered(group, versions)))
        .collect();
    let rank = |group: &str| {
        GROUPS
            .iter()
            .position(|one| *one == group)
            .unwrap_or(GROUPS.len())
    };
    groups.sort_by(|a, b| rank(&a.0).cmp(&rank(&b.0)).then_with(|| a.0.cmp(&b.0)));
    groups
}

/// Versions of a group, the preferred one first.
fn ordered(group: &str, versions: &[String]) -> Vec<String> {
    let mut versions = versions.to_vec();
    if !is_builtin(group) {
        versions.sort_by(|a, b| by_priority(a, b));
    }
    versions
}

/// `/api`. `server` is the address for clients.
#[must_use]
pub(crate) fn api(server: &str) -> Value {
    json!({"kind": "APIVersions", "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": server}]})
}

/// `/apis`.
#[must_use]
pub(crate) fn apis(kinds: &Kinds) -> Value {
    let groups: Vec<Value> = groups(kinds)
        .iter()
        .map(|(group, versions)| group_value(group, versions))
        .collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// `/apis/GROUP`; `None` when it is not served.
#[must_use]
pub(crate) fn group(kinds: &Kinds, name: &str) -> Option<Value> {
    let (group, versions) = groups(kinds).into_iter().find(|(group, _)| group == name)?;
    let mut value = group_value(&group, &versions);
    value["kind"] = "APIGroup".into();
    value["apiVersion"] = "v1".into();
    Some(value)
}

fn group_value(group: &str, versions: &[String]) -> Value {
    let one = |version: &String| json!({"groupVersion": format!("{group}/{version}"), "version": version});
    let all: Vec<Value> = versions.iter().map(one).collect();
    json!({"name": group, "preferredVersion": all.first(), "versions": all})
}

/// `/apis/GROUP/VERSION` and `/api/v1`; `None` when it is not served.
#[must_use]
pub(crate) fn version(kinds: &Kinds, group: &str, version: &str) -> Option<Value> {
    let mut resources = Vec::new();
    for resource in kinds.in_version(group, version) {
        let mut value = json!({
            "name": resource.plural, "singularName": resource.singular, "namespaced": resource.namespaced,
            "kind": resource.kind, "verbs": verbs(resource),
        });
        names(&mut value, resource);
        if resource.verbs.contains(&"get") && resource.kind != "ComponentStatus" {
            value["storageVersionHash"] = storage_hash(kinds, resource).into();
        }
        resources.push(value);
        for name in kinds.subresources(resource) {
            let sub = subresource(resource, name);
            let mut value = json!({
                "name": format!("{}/{name}", resource.plural), "singularName": "", "namespaced": resource.namespaced,
                "kind": sub.kind, "verbs": sub.verbs,
            });
            if !sub.group.is_empty() {
                value["group"] = sub.group.into();
                value["version"] = sub.version.into();
            }
            resources.push(value);
        }
    }
    if resources.is_empty() {
        return None;
    }
    let group_version = if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    };
    let mut list = json!({"kind": "APIResourceList", "groupVersion": group_version, "resources": resources});
    if !group.is_empty() {
        list["apiVersion"] = "v1".into();
    }
    Some(list)
}

/// `APIGroupDiscoveryList`: of the core group, or of all the others.
#[must_use]
pub(crate) fn aggregated(kinds: &Kinds, core: bool) -> Value {
    let groups = if core {
        vec![(String::new(), vec!["v1".to_owned()])]
    } else {
        groups(kinds)
    };
    let items: Vec<Value> = groups
        .iter()
        .map(|(group, versions)| {
            let versions: Vec<Value> = versions
                .iter()
                .map(|version| {
                    let resources: Vec<Value> = kinds
                        .in_version(group, version)
                        .map(|one| aggregated_resource(kinds, one))
                        .collect();
                    json!({"version": version, "resources": resources, "freshness": "Current"})
                })
                .collect();
            let metadata = if group.is_empty() {
                json!({})
            } else {
                json!({"name": group})
            };
            json!({"metadata": metadata, "versions": versions})
        })
        .collect();
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items})
}

fn aggregated_resource(kinds: &Kinds, resource: &Resource) -> Value {
    // Built-in groups leave out what is their own.
    let kind = |group: &str, version: &str, kind: &str| {
        let own = group.is_empty() && resource.custom.is_some();
        let (group, version) = if own {
            (resource.group.as_str(), resource.version.as_str())
        } else {
            (group, version)
        };
        json!({"group": group, "version": version, "kind": kind})
    };
    let mut value = json!({
        "resource": resource.plural, "responseKind": kind("", "", &resource.kind),
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": resource.singular, "verbs": verbs(resource),
    });
    names(&mut value, resource);
    let subresources: Vec<Value> = kinds
        .subresources(resource)
        .map(|name| {
            let sub = subresource(resource, name);
            json!({"subresource": name, "responseKind": kind(sub.group, sub.version, &sub.kind), "verbs": sub.verbs})
        })
        .collect();
    if !subresources.is_empty() {
        value["subresources"] = subresources.into();
    }
    value
}

fn verbs(resource: &Resource) -> &[&'static str] {
    if resource.custom.is_some() {
        &crate::resource::custom::VERBS
    } else {
        &resource.verbs
    }
}

fn names(value: &mut Value, resource: &Resource) {
    if !resource.short_names.is_empty() {
        value["shortNames"] = resource.short_names.clone().into();
    }
    if !resource.categories.is_empty() {
        value["categories"] = resource.categories.clone().into();
    }
}

/// A hash of the version in which objects are stored: the preferred one, and `v1` of the core group for events.
fn storage_hash(kinds: &Kinds, resource: &Resource) -> String {
    let (group, version) = match resource.group.as_str() {
        "events.k8s.io" => ("", "v1"),
        // Stored so since before v1 was there.
        "apiextensions.k8s.io" => ("apiextensions.k8s.io", "v1beta1"),
        group if resource.custom.is_none() => {
            let preferred = kinds
                .groups()
                .iter()
                .find(|(name, _)| name == group)
                .and_then(|(_, versions)| versions.first());
            (group, preferred.map_or(resource.version.as_str(), String::as_str))
        }
        group => (group, stored_version(resource)),
    };
    let digest = Sha256::digest(format!("{group}/{version}/{}", resource.kind));
    STANDARD.encode(&digest[..8])
}

/// The version in which a custom resource is stored.
fn stored_version(resource: &Resource) -> &str {
    match &resource.custom {
        Some(custom) if !custom.storage.is_empty() => &custom.storage,
        _ => &resource.version,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_group_has_a_place() {
        let kinds = crate::kinds::builtin();
        for (group, _) in kinds.groups() {
            assert!(is_builtin(group), "{group}");
        }
        let names: Vec<String> = groups(&kinds).into_iter().map(|(group, _)| group).collect();
        assert_eq!(names, GROUPS[1..]);
    }

    #[test]
    fn storage_hashes_are_those_of_the_real_server() {
        let kinds = crate::kinds::builtin();
        let hash = |group: &str, version: &str, plural: &str| {
            storage_hash(&kinds, kinds.find(group, version, plural).expect("served"))
        };
        assert_eq!(hash("", "v1", "configmaps"), "qFsyl6wFWjQ=");
        assert_eq!(hash("batch", "v1", "jobs"), "mudhfqk/qZY=");
        assert_eq!(hash("events.k8s.io", "v1", "events"), "r2yiGXH7wu8=");
    }

    #[test]
    fn a_connected_subresource_is_listed_with_its_resource_alone() {
        let mut kinds = crate::kinds::builtin();
        let before = version(&kinds, "batch", "v1");
        for _ in 0..2 {
            kinds.connect(["apps", "v1"], "deployments", "proxy");
        }
        assert_eq!(version(&kinds, "batch", "v1"), before);
        let list = version(&kinds, "apps", "v1").expect("served");
        let all = list["resources"].as_array().expect("a list");
        let proxies: Vec<&Value> = all
            .iter()
            .filter(|one| one["name"].as_str().is_some_and(|name| name.ends_with("/proxy")))
            .collect();
        let verbs = json!(["create", "delete", "get", "patch", "update"]);
        let expected = json!({
            "name": "deployments/proxy", "singularName": "", "namespaced": true, "kind": "DeploymentProxyOptions",
            "verbs": verbs,
        });
        assert_eq!(proxies, [&expected]);
        let one = kinds.find("apps", "v1", "deployments").expect("served");
        let subresources = aggregated_resource(&kinds, one)["subresources"].clone();
        let names: Vec<&Value> = subresources
            .as_array()
            .expect("a list")
            .iter()
            .map(|one| &one["subresource"])
            .collect();
        assert_eq!(names, ["scale", "status", "proxy"]);
    }

    #[test]
    fn a_group_with_two_versions_prefers_the_newer_one() {
        let group = group(&crate::kinds::builtin(), "autoscaling").expect("served");
        assert_eq!(group["preferredVersion"]["version"], "v2");
    }
}
