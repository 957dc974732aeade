//! The version of a member and the APIs it serves.
//!
//! One request if the server has aggregated discovery (Kubernetes 1.27), else one per group version.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{
    client::{Api, Call, Form, path::Path},
    error::Failure,
    metrics::Verb,
};

const AGGREGATED: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";

/// Plural and kind.
type Resource = (String, String);

/// The member's version, e.g. `v1.36.2`.
pub(super) async fn version(api: &Api) -> Result<String, Failure> {
    let answer = api.get(&Path::raw("/version", "version"), Form::Whole).await?;
    Ok(text(&answer["gitVersion"]))
}

/// All group versions with their resources, without subresources; sorted. Fails if they cannot be read completely.
pub(super) async fn apis(api: &Api) -> Result<Vec<(String, Vec<Resource>)>, Failure> {
    let mut found = BTreeMap::new();
    let mut versions = Vec::new();
    for root in ["/api", "/apis"] {
        let path = Path::raw(root, "discovery");
        let call = Call {
            verb: Verb::Get,
            path: &path,
            accept: AGGREGATED,
            body: None,
            deadline: None,
        };
        let answer = api.object(call).await?;
        if answer["kind"] == "APIGroupDiscoveryList" {
            aggregated(&answer, &mut found);
        } else {
            versions.extend(group_versions(&answer));
        }
    }
    for version in versions {
        let root = if version.contains('/') { "/apis" } else { "/api" };
        let path = Path::raw(format!("{root}/{version}"), "discovery");
        match api.get(&path, Form::Whole).await {
            Ok(answer) => {
                found.insert(version, resources(&answer));
            }
            // An aggregated API that is gone or whose server is down must not hide the others.
            Err(failure) if matches!(failure.code(), 404 | 503) => {}
            // Any other failure says nothing about the served APIs: the earlier result is kept.
            Err(failure) => return Err(failure),
        }
    }
    Ok(found
        .into_iter()
        .map(|(version, mut each)| {
            each.sort();
            (version, each)
        })
        .collect())
}

fn aggregated(answer: &Value, found: &mut BTreeMap<String, Vec<Resource>>) {
    for group in list(&answer["items"]) {
        let name = text(&group["metadata"]["name"]);
        for version in list(&group["versions"]) {
            let version_name = text(&version["version"]);
            let group_version = if name.is_empty() {
                version_name
            } else {
                format!("{name}/{version_name}")
            };
            let resources = list(&version["resources"])
                .iter()
                .map(|each| (text(&each["resource"]), text(&each["responseKind"]["kind"])))
                .collect();
            found.insert(group_version, resources);
        }
    }
}

fn group_versions(answer: &Value) -> Vec<String> {
    if answer["kind"] == "APIVersions" {
        return list(&answer["versions"]).iter().map(text).collect();
    }
    let groups = list(&answer["groups"]).iter();
    groups
        .flat_map(|group| {
            list(&group["versions"])
                .iter()
                .map(|each| text(&each["groupVersion"]))
        })
        .collect()
}

fn resources(answer: &Value) -> Vec<Resource> {
    list(&answer["resources"])
        .iter()
        .map(|each| (text(&each["name"]), text(&each["kind"])))
        .filter(|(name, _)| !name.contains('/'))
        .collect()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn both_forms_of_discovery_say_the_same() {
        let mut found = BTreeMap::new();
        aggregated(
            &json!({"items": [{"metadata": {"name": "apps"}, "versions": [{"version": "v1", "resources": [
                {"resource": "deployments", "responseKind": {"kind": "Deployment"}, "subresources": [{}]}]}]}]}),
            &mut found,
        );
        let listed = resources(&json!({"resources": [
            {"name": "deployments", "kind": "Deployment"}, {"name": "deployments/status", "kind": "Deployment"}]}));
        assert_eq!(found, [("apps/v1".to_owned(), listed)].into());
        let groups = json!({"kind": "APIGroupList", "groups": [{"versions": [{"groupVersion": "apps/v1"}]}]});
        assert_eq!(group_versions(&groups), ["apps/v1"]);
        assert_eq!(
            group_versions(&json!({"kind": "APIVersions", "versions": ["v1"]})),
            ["v1"]
        );
    }
}
