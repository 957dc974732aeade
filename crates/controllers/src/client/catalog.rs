//! Discovery of an API server, for all kinds at once: its cost does not depend on the number of kinds that policies name.
//!
//! One request for each of `/api` and `/apis` if the server has aggregated discovery (Kubernetes 1.27), else one more per group
//! version; one for the metadata of the CustomResourceDefinitions; and one for each definition that is not served. The result
//! for a kind is a [`Served`].

use std::collections::{BTreeMap, BTreeSet};

use entourage_core::object::{Gvk, Str};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use serde_json::Value;

use super::{
    Api, Call, Form,
    path::{self, Path},
    read,
    served::Served,
};
use crate::{
    error::{Class, Failure},
    metrics::Verb,
};

const AGGREGATED: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
/// The account is not allowed to.
const FORBIDDEN: u16 = 403;
/// The maximum number of concurrent requests.
const AT_A_TIME: usize = 4;

/// The APIs that a server served at the time of discovery.
#[derive(Debug, Default)]
pub struct Catalog {
    /// By group and kind: the versions, the preferred one first, and the plural there.
    served: BTreeMap<(Str, Str), Vec<(Str, Str)>>,
    /// Groups of which a version did not respond: their kinds are unknown.
    unavailable: BTreeSet<Str>,
    definitions: Definitions,
}

/// The CustomResourceDefinitions of a server.
#[derive(Debug, Default)]
struct Definitions {
    /// Group and kind of those that are not served; `None` if our account may not list them.
    unserved: Option<BTreeSet<(Str, Str)>>,
    /// The resourceVersion of their list.
    revision: Option<String>,
}

impl Catalog {
    /// The served version of a kind; `None` if it is unknown. Cost: O(log kinds that the server serves).
    #[must_use]
    pub fn find(&self, gvk: &Gvk) -> Option<Served> {
        let key = (gvk.group.clone(), gvk.kind.clone());
        if let Some(versions) = self.served.get(&key) {
            let wanted = versions.iter().find(|(version, _)| *version == gvk.version);
            let (version, _) = wanted.or_else(|| versions.first())?;
            return Some(Served::In(version.clone()));
        }
        if self.unavailable.contains(&gvk.group) {
            return None;
        }
        let is_defined = self
            .definitions
            .unserved
            .as_ref()
            .is_none_or(|all| all.contains(&key));
        Some(if gvk.group.is_empty() || is_defined {
            Served::Withheld
        } else {
            Served::Nowhere
        })
    }

    /// The plural of a kind in a served version, or `None`.
    #[must_use]
    pub fn plural(&self, gvk: &Gvk) -> Option<&str> {
        let versions = self.served.get(&(gvk.group.clone(), gvk.kind.clone()))?;
        let found = versions.iter().find(|(version, _)| *version == gvk.version)?;
        Some(&found.1)
    }

    /// The revision from which changes of the definitions can be watched; `None` if our account may not list them.
    #[must_use]
    pub fn revision(&self) -> Option<&str> {
        self.definitions.revision.as_deref()
    }

    fn serves(&mut self, group: &str, version: &str, resources: impl Iterator<Item = (Str, Str)>) {
        for (plural, kind) in resources.filter(|(plural, _)| !plural.contains('/')) {
            let versions = self.served.entry((group.into(), kind)).or_default();
            versions.push((version.into(), plural));
        }
    }

    fn aggregated(&mut self, answer: &Value) {
        for group in list(&answer["items"]) {
            let name = group["metadata"]["name"].as_str().unwrap_or_default();
            for version in list(&group["versions"]) {
                let resources = list(&version["resources"]).iter().filter_map(|each| {
                    let kind = each["responseKind"]["kind"].as_str()?;
                    Some((each["resource"].as_str()?.into(), kind.into()))
                });
                self.serves(name, version["version"].as_str().unwrap_or_default(), resources);
                if version["freshness"] == "Stale" {
                    self.unavailable.insert(name.into());
                }
            }
        }
    }

    /// The definitions, by plural and group, whose kind is not served.
    fn unserved<'a>(&self, names: &'a [String]) -> Vec<&'a String> {
        let plurals: BTreeSet<(&str, &str)> = self
            .served
            .iter()
            .flat_map(|((group, _), versions)| versions.iter().map(|(_, plural)| (&**group, &**plural)))
            .collect();
        let is_served = |name: &&String| {
            name.split_once('.')
                .is_some_and(|(plural, group)| plurals.contains(&(group, plural)))
        };
        names.iter().filter(|name| !is_served(name)).collect()
    }
}

impl Api {
    /// Discovers the APIs of the server. Cost: see the module.
    ///
    /// # Errors
    /// [`Failure`], also if the server does not respond as API servers do: then nothing is known.
    pub async fn catalog(&self) -> Result<Catalog, Failure> {
        let mut catalog = Catalog::default();
        let mut versions: Vec<(String, String)> = Vec::new();
        for root in ["/api", "/apis"] {
            let path = Path::raw(root, "discovery");
            let answer = self.object(get(&path, AGGREGATED)).await?;
            match answer["kind"].as_str() {
                Some("APIGroupDiscoveryList") => catalog.aggregated(&answer),
                Some("APIVersions") => versions.push((String::new(), "v1".to_owned())),
                Some("APIGroupList") => versions.extend(preferred_first(&answer)),
                _ => return Err(Failure::Garbled(format!("the answer to {root} is not discovery"))),
            }
        }
        let answers: Vec<_> = stream::iter(versions)
            .map(|(group, version)| async move {
                let gvk = Gvk {
                    group: group.as_str().into(),
                    version: version.as_str().into(),
                    kind: "".into(),
                };
                let answer = self.get(&Path::group_version(&gvk), Form::Whole).await;
                (group, version, answer)
            })
            .buffered(AT_A_TIME)
            .collect()
            .await;
        for (group, version, answer) in answers {
            match answer {
                Ok(answer) if answer["kind"] == "APIResourceList" => {
                    let resources = list(&answer["resources"]).iter().filter_map(|each| {
                        Some((each["name"].as_str()?.into(), each["kind"].as_str()?.into()))
                    });
                    catalog.serves(&group, &version, resources);
                }
                Err(failure) if !matches!(failure.code(), 404 | 503) => return Err(failure),
                // Listed and not responding: it starts or stops being served just now, or its server is down.
                _ => {
                    catalog.unavailable.insert(group.as_str().into());
                }
            }
        }
        catalog.definitions = self.defined(&catalog).await?;
        Ok(catalog)
    }

    async fn defined(&self, catalog: &Catalog) -> Result<Definitions, Failure> {
        if self.is_reported() {
            return Ok(Definitions::default());
        }
        let (mut names, mut next, mut revision) = (Vec::new(), String::new(), None);
        loop {
            let mut path = Path::definitions(None).query("limit", "500");
            if !next.is_empty() {
                path = path.query("continue", &next);
            }
            let call = Call {
                verb: Verb::List,
                ..get(&path, Form::Metadata.accept_list())
            };
            let bytes = match self.bytes(call).await {
                Err(failure) if failure.code() == FORBIDDEN => return Ok(Definitions::default()),
                bytes => bytes?,
            };
            let meta = read::list(&bytes, &mut |item| {
                names.extend(item["metadata"]["name"].as_str().map(str::to_owned));
            })
            .map_err(|error| Failure::garbled(&error))?;
            if meta.resource_version.is_empty() {
                return Err(Failure::Garbled(
                    "the answer is not a list of definitions".to_owned(),
                ));
            }
            revision.get_or_insert(meta.resource_version);
            if meta.next.is_empty() {
                break;
            }
            next = meta.next;
        }
        let unserved: Vec<String> = catalog.unserved(&names).into_iter().cloned().collect();
        let kinds: Option<Vec<_>> = match stream::iter(unserved)
            .map(|name| self.definition(name))
            .buffered(AT_A_TIME)
            .try_collect::<Vec<_>>()
            .await
        {
            Ok(kinds) => Some(kinds),
            Err(failure) if failure.code() == FORBIDDEN => None,
            Err(failure) => return Err(failure),
        };
        Ok(Definitions {
            unserved: kinds.map(|kinds| kinds.into_iter().flatten().collect()),
            revision,
        })
    }

    /// The group and kind of a definition; `None` if it was deleted since the names were listed.
    async fn definition(&self, name: String) -> Result<Option<(Str, Str)>, Failure> {
        let path = Path::definitions(Some(&name));
        match self.get(&path, Form::Whole).await {
            Ok(definition) => {
                let spec = &definition["spec"];
                let text = |value: &Value| -> Str { value.as_str().unwrap_or_default().into() };
                Ok(Some((text(&spec["group"]), text(&spec["names"]["kind"]))))
            }
            Err(failure) if failure.class() == Class::Missing && failure.is_about(&path.resource) => Ok(None),
            Err(failure) => Err(failure),
        }
    }
}

/// Records the plural of a kind that a server was found to serve.
pub fn learn(catalog: &Catalog, gvk: &Gvk) {
    if let Some(plural) = catalog.plural(gvk) {
        path::learn(gvk, plural);
    }
}

/// Group and version, of each group the preferred version first.
#[must_use]
pub fn preferred_first(answer: &Value) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for group in list(&answer["groups"]) {
        let name = group["name"].as_str().unwrap_or_default();
        let preferred = group["preferredVersion"]["version"].as_str();
        let rest = list(&group["versions"])
            .iter()
            .filter_map(|each| each["version"].as_str());
        let rest = rest.filter(|version| Some(*version) != preferred);
        let versions = preferred.into_iter().chain(rest);
        all.extend(versions.map(|version| (name.to_owned(), version.to_owned())));
    }
    all
}

const fn get<'a>(path: &'a Path, accept: &'a str) -> Call<'a> {
    Call {
        verb: Verb::Get,
        path,
        accept,
        body: None,
        deadline: None,
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn catalog() -> Catalog {
        let mut catalog = Catalog::default();
        let shops = json!([{"resource": "shops", "responseKind": {"kind": "Shop"}}]);
        catalog.aggregated(&json!({"items": [
            {"metadata": {"name": "example.com"}, "versions": [
                {"version": "v2", "freshness": "Current", "resources": shops},
                {"version": "v1", "freshness": "Current", "resources": shops}]},
            {"metadata": {"name": "down.example.com"}, "versions": [{"version": "v1", "freshness": "Stale", "resources": []}]},
        ]}));
        catalog.definitions.unserved = Some([("example.com".into(), "Stall".into())].into());
        catalog
    }

    #[test]
    fn one_look_answers_for_every_kind() {
        let catalog = catalog();
        let find = |version: &str, kind: &str| catalog.find(&Gvk::new(version, kind));
        assert_eq!(find("example.com/v1", "Shop"), Some(Served::In("v1".into())));
        assert_eq!(
            find("example.com/v7", "Shop"),
            Some(Served::In("v2".into())),
            "the preferred one"
        );
        assert_eq!(
            find("example.com/v1", "Stall"),
            Some(Served::Withheld),
            "defined, and not served"
        );
        assert_eq!(find("example.com/v1", "Dream"), Some(Served::Nowhere));
        assert_eq!(find("nowhere.example.com/v1", "Dream"), Some(Served::Nowhere));
        assert_eq!(
            find("down.example.com/v1", "Dream"),
            None,
            "its server does not respond"
        );
        assert_eq!(
            find("v1", "Dream"),
            Some(Served::Withheld),
            "never concluded of the core group"
        );
        assert_eq!(catalog.plural(&Gvk::new("example.com/v1", "Shop")), Some("shops"));
    }

    #[test]
    fn who_may_not_see_the_definitions_concludes_nothing() {
        let mut catalog = catalog();
        catalog.definitions.unserved = None;
        assert_eq!(
            catalog.find(&Gvk::new("example.com/v1", "Dream")),
            Some(Served::Withheld)
        );
    }

    #[test]
    fn only_definitions_that_are_not_served_are_read() {
        let names = [
            "shops.example.com",
            "stalls.example.com",
            "shops.other.example.com",
        ]
        .map(str::to_owned);
        let unserved = catalog();
        let unserved = unserved.unserved(&names);
        assert_eq!(unserved, ["stalls.example.com", "shops.other.example.com"]);
    }

    #[test]
    fn the_preferred_version_comes_first_on_servers_without_aggregated_discovery() {
        let groups = json!({"kind": "APIGroupList", "groups": [{"name": "example.com",
            "versions": [{"version": "v1"}, {"version": "v2"}], "preferredVersion": {"version": "v2"}}]});
        let pairs: Vec<_> = preferred_first(&groups)
            .into_iter()
            .map(|(_, version)| version)
            .collect();
        assert_eq!(pairs, ["v2", "v1"]);
    }
}
