//! The kinds of objects that may exist in a namespace of a member.
//!
//! They are the kinds that the server serves, and those of its CustomResourceDefinitions: objects of a kind that is not served
//! are stored, and are deleted with their namespace. Objects of an aggregated API whose APIService is gone are not detected.

use std::collections::BTreeSet;

use entourage_core::namespaces::content::is_passing;
use futures::{StreamExt, stream};
use serde_json::Value;

use super::look::{AT_A_TIME, Blind, blind_for_all, blind_for_one, page, tried};
use crate::{
    client::{Api, Form, catalog, path::Path, read},
    error::Class,
};

/// Every API server has it, and it must not be missed: a discovery result without it is invalid.
const CLAIMS: &str = "persistentvolumeclaims";

/// The root of the core group.
const CORE: &str = "/api/v1";

/// A resource whose objects may be in a namespace.
#[derive(Debug)]
pub(super) struct Resource {
    pub(super) group: String,
    pub(super) plural: String,
    pub(super) kind: String,
    pub(super) root: String,
}

/// Group and plural of the served resources.
type Served = BTreeSet<(String, String)>;

/// All namespaced resources that can be deleted, each in the preferred version of its group, or in one of those that have it.
/// Cost: a request for each group version, and one for each page of the definitions and each that is not served.
pub(super) async fn resources(api: &Api) -> Vec<Result<Resource, Blind>> {
    let mut roots = vec![(String::new(), CORE.to_owned())];
    let path = Path::raw("/apis", "discovery");
    match tried(|| api.discovery(&path, "APIGroupList")).await {
        Ok(groups) => {
            let all = catalog::preferred_first(&groups).into_iter();
            roots.extend(all.map(|(group, version)| {
                let root = format!("/apis/{group}/{version}");
                (group, root)
            }));
        }
        Err(failure) => return vec![Err(blind_for_all(failure, "/apis cannot be read"))],
    }
    let paths = roots.iter().map(|(_, root)| Path::raw(root.clone(), "discovery"));
    let paths: Vec<Path> = paths.collect();
    let answers: Vec<_> = stream::iter(paths)
        .map(|path| async move { tried(|| api.discovery(&path, "APIResourceList")).await })
        .buffered(AT_A_TIME)
        .collect()
        .await;
    let (mut all, mut known, mut served) = (Vec::new(), BTreeSet::new(), Served::new());
    if roots.len() == 1 {
        let words = "/apis tells of no group, not even that of definitions".to_owned();
        all.push(Err(Blind::NoResponse(words)));
    }
    for ((group, root), answer) in roots.into_iter().zip(answers) {
        let answer = match answer {
            Ok(answer) => answer,
            Err(failure) => {
                let blind = if root == CORE {
                    blind_for_all
                } else {
                    blind_for_one
                };
                all.push(Err(blind(failure, &format!("{root} cannot be read"))));
                continue;
            }
        };
        for each in answer["resources"].as_array().into_iter().flatten() {
            let plural = each["name"].as_str().unwrap_or_default();
            let can = |verb: &str| {
                let verbs = each["verbs"].as_array();
                verbs.is_some_and(|verbs| verbs.iter().any(|each| each == verb))
            };
            served.insert((group.clone(), plural.to_owned()));
            if each["namespaced"] != Value::Bool(true)
                || plural.contains('/')
                || is_passing(&group, plural)
                || !(can("delete") || can("deletecollection"))
                || !known.insert((group.clone(), plural.to_owned()))
            {
                continue;
            }
            all.push(if can("list") {
                Ok(Resource {
                    group: group.clone(),
                    plural: plural.to_owned(),
                    kind: each["kind"].as_str().unwrap_or_default().to_owned(),
                    root: root.clone(),
                })
            } else {
                Err(Blind::Refused(format!("{plural} of {root} have no list")))
            });
        }
    }
    if !known.contains(&(String::new(), CLAIMS.to_owned())) {
        let words = format!("{CORE} does not tell of {CLAIMS}");
        all.push(Err(Blind::NoResponse(words)));
    }
    all.extend(withheld(api, &served).await.into_iter().map(Err));
    all
}

/// The namespaced kinds that are defined and not served: objects of them may be stored.
async fn withheld(api: &Api, served: &Served) -> Vec<Blind> {
    let names = match definitions(api).await {
        Ok(names) => names,
        Err(blind) => return vec![blind],
    };
    let is_served = |name: &String| {
        let (plural, group) = name.split_once('.').unwrap_or((name, ""));
        served.contains(&(group.to_owned(), plural.to_owned()))
    };
    stream::iter(names.into_iter().filter(|name| !is_served(name)))
        .map(|name| async move {
            let path = Path::definitions(Some(&name));
            match tried(|| api.get(&path, Form::Whole)).await {
                Ok(definition) if definition["spec"]["scope"] == "Cluster" => None,
                Ok(_) => Some(Blind::NoResponse(format!("{name} is defined and not served"))),
                // It was deleted since the names were listed.
                Err(failure) if failure.class() == Class::Missing && failure.is_about(&path.resource) => None,
                Err(failure) => Some(blind_for_one(
                    failure,
                    &format!("definition {name} cannot be read"),
                )),
            }
        })
        .buffered(AT_A_TIME)
        .filter_map(async |each| each)
        .collect()
        .await
}

/// The names of all CustomResourceDefinitions.
async fn definitions(api: &Api) -> Result<Vec<String>, Blind> {
    let what = "customresourcedefinitions cannot be listed";
    let (mut names, mut next) = (Vec::new(), String::new());
    loop {
        let mut path = Path::definitions(None).query("limit", "500");
        if !next.is_empty() {
            path = path.query("continue", &next);
        }
        let bytes = tried(|| page(api, &path)).await;
        let bytes = bytes.map_err(|failure| blind_for_one(failure, what))?;
        let page = read::list(&bytes, &mut |item| {
            names.extend(item["metadata"]["name"].as_str().map(str::to_owned));
        });
        let page = page.ok().filter(|page| !page.resource_version.is_empty());
        let page = page.ok_or_else(|| Blind::NoResponse(format!("{what}: the answer is not a list")))?;
        if page.next.is_empty() {
            return Ok(names);
        }
        next = page.next;
    }
}
