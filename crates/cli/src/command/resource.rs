//! The kind that a word of the command line names, as kubectl understands it.

use anyhow::{Context as _, Result, bail};
use entourage_core::object::{Gvk, ResourceId};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{APIGroup, APIResource, GroupVersionForDiscovery};
use kube::{Client, api::ApiResource};

use crate::{
    connect::{explain, within},
    kinds::Served,
    suggest::hint,
};

/// Finds the kind on a server: by its kind, plural, singular or short name in any case, with or without its group. `place` names the
/// server in messages.
///
/// # Errors
/// The server cannot be read, or serves no such kind.
pub(super) async fn find(server: &Client, word: &str, place: &str) -> Result<(Gvk, Served)> {
    let failed = || format!("cannot ask {place} which kinds it serves");
    let core = within(server.list_core_api_resources("v1"))
        .await
        .map_err(explain)
        .with_context(failed)?;
    if let Some(found) = pick(word, "", "v1", &core.resources) {
        return Ok(found);
    }
    let mut known = names(&core.resources);
    let groups = within(server.list_api_groups())
        .await
        .map_err(explain)
        .with_context(failed)?;
    for (group, version) in versions(groups.groups) {
        // An aggregated API that does not respond hides its own kinds only.
        let Ok(list) = within(server.list_api_group_resources(&version.group_version)).await else {
            continue;
        };
        if let Some(found) = pick(word, &group, &version.version, &list.resources) {
            return Ok(found);
        }
        known.extend(names(&list.resources));
    }
    let near = hint(word, known.iter().map(String::as_str));
    bail!("{place} serves no kind {word:?}{near}")
}

/// The singular, plural and short names of kinds.
fn names(resources: &[APIResource]) -> Vec<String> {
    let own = resources.iter().filter(|resource| !resource.name.contains('/'));
    own.flat_map(|resource| {
        let short = resource.short_names.iter().flatten().cloned();
        [resource.kind.to_lowercase(), resource.name.clone()]
            .into_iter()
            .chain(short)
    })
    .collect()
}

/// Each version of each group: those that the server prefers first. A kind may be served in another one alone.
fn versions(groups: Vec<APIGroup>) -> Vec<(String, GroupVersionForDiscovery)> {
    let (mut preferred, mut others) = (Vec::new(), Vec::new());
    for group in groups {
        let first = group
            .preferred_version
            .or_else(|| group.versions.first().cloned());
        let rest = group
            .versions
            .into_iter()
            .filter(|version| Some(version) != first.as_ref());
        others.extend(rest.map(|version| (group.name.clone(), version)));
        preferred.extend(first.map(|version| (group.name, version)));
    }
    preferred.append(&mut others);
    preferred
}

fn pick(word: &str, group: &str, version: &str, resources: &[APIResource]) -> Option<(Gvk, Served)> {
    let resource = resources
        .iter()
        .find(|resource| !resource.name.contains('/') && is_named(word, group, resource))?;
    let api_version = if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    };
    let served = Served {
        resource: ApiResource {
            group: group.to_owned(),
            version: version.to_owned(),
            api_version: api_version.clone(),
            kind: resource.kind.clone(),
            plural: resource.name.clone(),
        },
        namespaced: resource.namespaced,
    };
    Some((Gvk::new(&api_version, &resource.kind), served))
}

/// True if `word` is a name of the resource, alone or followed by a dot and its group.
fn is_named(word: &str, group: &str, resource: &APIResource) -> bool {
    let word = word.to_lowercase();
    let name = match word.split_once('.') {
        None => word.as_str(),
        Some((name, of)) if of == group => name,
        Some(_) => return false,
    };
    let short = resource.short_names.iter().flatten();
    let names = [&resource.kind, &resource.name, &resource.singular_name];
    let mut names = names.into_iter().chain(short).filter(|each| !each.is_empty());
    names.any(|each| each.to_lowercase() == name)
}

/// The short names of kinds, as servers have them: files have none.
const SHORT: &[(&str, &str)] = &[
    ("cj", "cronjob"),
    ("cm", "configmap"),
    ("cop", "clusteroverridepolicy"),
    ("cpp", "clusterpropagationpolicy"),
    ("crd", "customresourcedefinition"),
    ("deploy", "deployment"),
    ("ds", "daemonset"),
    ("hpa", "horizontalpodautoscaler"),
    ("ing", "ingress"),
    ("netpol", "networkpolicy"),
    ("ns", "namespace"),
    ("op", "overridepolicy"),
    ("pdb", "poddisruptionbudget"),
    ("pp", "propagationpolicy"),
    ("pvc", "persistentvolumeclaim"),
    ("sa", "serviceaccount"),
    ("sts", "statefulset"),
    ("svc", "service"),
];

/// True if a word names the kind of an object: singular, plural or short, with or without its group.
pub(super) fn is_kind(word: &str, id: &ResourceId) -> bool {
    let word = word.to_lowercase();
    let (name, group) = match word.split_once('.') {
        Some((name, group)) => (name, Some(group)),
        None => (word.as_str(), None),
    };
    let name = SHORT
        .iter()
        .find(|(short, _)| *short == name)
        .map_or(name, |(_, kind)| kind);
    let kind = id.gvk.kind.to_lowercase();
    let plural = match kind.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None if kind.ends_with('s') => format!("{kind}es"),
        None => format!("{kind}s"),
    };
    group.is_none_or(|group| *group == *id.gvk.group) && (name == kind || name == plural)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_versions_that_a_server_prefers_come_first_and_no_other_is_left_out() {
        let version = |group: &str, version: &str| GroupVersionForDiscovery {
            group_version: format!("{group}/{version}"),
            version: version.to_owned(),
        };
        let group = |name: &str, preferred: Option<&str>, all: &[&str]| APIGroup {
            name: name.to_owned(),
            preferred_version: preferred.map(|each| version(name, each)),
            versions: all.iter().map(|each| version(name, each)).collect(),
            ..APIGroup::default()
        };
        let all = versions(vec![
            group("a", Some("v1"), &["v2alpha1", "v1"]),
            group("b", None, &["v1beta1", "v1alpha1"]),
        ]);
        let all: Vec<&str> = all.iter().map(|(_, version)| &*version.group_version).collect();
        assert_eq!(all, ["a/v1", "b/v1beta1", "a/v2alpha1", "b/v1alpha1"]);
    }

    #[test]
    fn a_kind_has_the_names_that_kubectl_knows() {
        let deployments = APIResource {
            name: "deployments".to_owned(),
            kind: "Deployment".to_owned(),
            singular_name: "deployment".to_owned(),
            short_names: Some(vec!["deploy".to_owned()]),
            namespaced: true,
            ..APIResource::default()
        };
        let scale = APIResource {
            name: "deployments/scale".to_owned(),
            kind: "Scale".to_owned(),
            ..APIResource::default()
        };
        let all = [scale, deployments];
        for word in [
            "deploy",
            "Deployment",
            "deployments",
            "deployment.apps",
            "deploy.apps",
        ] {
            let (gvk, served) = pick(word, "apps", "v1", &all).unwrap_or_else(|| panic!("{word}"));
            assert_eq!((&*gvk.api_version(), &*gvk.kind), ("apps/v1", "Deployment"));
            assert!(served.namespaced && served.resource.plural == "deployments");
        }
        for word in [
            "",
            "deploymen",
            "scale",
            "deployment.extensions",
            "deployment.apps.v1",
        ] {
            assert!(pick(word, "apps", "v1", &all).is_none(), "{word}");
        }
    }
}
