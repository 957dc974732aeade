//! The versions in which an API server serves a kind, and the 404s that prove that an object is gone.
//!
//! A 404 that names the object is about the object. Any other one is about the address, and may come from a server that has no
//! information about objects: a proxy, a server that starts, one that stopped serving a version while the objects stay stored.
//! So the absence of a kind's objects is concluded only from complete discovery ([`Served::Nowhere`]): the server's list of
//! groups, every version of the group that it lists, and its list of CustomResourceDefinitions, whose deletion deletes the
//! objects. The core group is never concluded to lack a kind.
//!
//! This does not detect an aggregated API whose APIService was deleted: its server may still store objects.

use std::collections::BTreeSet;

use entourage_core::object::{Gvk, ResourceId, Str};
use serde_json::Value;

use super::{
    Api, Call, Form,
    path::{self, Path},
    read,
};
use crate::{
    error::{Class, Failure},
    metrics::Verb,
};

/// The account is not allowed to.
const FORBIDDEN: u16 = 403;

/// The version in which a server serves a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Served {
    /// This version: the requested one if it is served, else the preferred one.
    In(Str),
    /// No version now, and objects of it may be stored: its definition exists, or our account may not read whether it does.
    Withheld,
    /// No version, and nothing defines it: there are no objects of it.
    Nowhere,
}

impl Api {
    /// True if a failed request for an object proves that the object is gone. Cost: that of [`Self::served`] for a 404 that does
    /// not name an object, else nothing.
    ///
    /// # Errors
    /// As [`Self::served`].
    pub async fn is_gone(&self, id: &ResourceId, failure: &Failure) -> Result<bool, Failure> {
        if failure.class() != Class::Missing {
            return Ok(false);
        }
        let named = failure.is_about(&path::plural(&id.gvk));
        Ok(named || self.served(&id.gvk).await? == Served::Nowhere)
    }

    /// Asks for the plural of a kind, and records it. A kind whose plural is known keeps it if the server does not respond: then the
    /// next request shows whether it is right.
    ///
    /// # Errors
    /// [`Failure`]; [`Failure::not_served`] if the server does not serve this version of the kind.
    pub async fn learn_plural(&self, gvk: &Gvk) -> Result<(), Failure> {
        let answer = match self.get(&Path::group_version(gvk), Form::Whole).await {
            Err(_) if path::is_known(gvk) => return Ok(()),
            Err(failure) if failure.class() == Class::Missing => return Err(self.not_served(gvk)),
            answer => answer?,
        };
        let resources = answer["resources"].as_array().into_iter().flatten();
        let plural = resources
            .filter(|each| each["kind"] == *gvk.kind)
            .filter_map(|each| each["name"].as_str())
            .find(|name| !name.contains('/'));
        let Some(plural) = plural else {
            return Err(self.not_served(gvk));
        };
        path::learn(gvk, plural);
        Ok(())
    }

    /// The served version of a kind. Cost: a request for the groups, one for each version of the group, and if the kind is in
    /// none of them one for the definitions and one for each of the group.
    ///
    /// # Errors
    /// [`Failure`], also if the server does not respond as API servers do: then nothing is known. An API server whose aggregated
    /// APIs are down reports that with another failure than "not found".
    pub async fn served(&self, gvk: &Gvk) -> Result<Served, Failure> {
        let mut asked = BTreeSet::new();
        let mut malformed = None;
        for version in self.versions(gvk).await? {
            if !asked.insert(version.clone()) {
                continue;
            }
            let of_version = Gvk {
                version: version.clone(),
                ..gvk.clone()
            };
            match self
                .discovery(&Path::group_version(&of_version), "APIResourceList")
                .await
            {
                Ok(answer) => {
                    let mut resources = answer["resources"].as_array().into_iter().flatten();
                    if resources.any(|each| each["kind"] == *gvk.kind) {
                        return Ok(Served::In(version));
                    }
                }
                // Listed and not found: it starts or stops being served just now. Another version may have it.
                Err(failure @ Failure::Garbled(_)) => malformed = Some(failure),
                Err(failure) => return Err(failure),
            }
        }
        if let Some(failure) = malformed {
            return Err(failure);
        }
        if self.is_reported() || gvk.group.is_empty() || self.may_be_defined(gvk).await? {
            return Ok(Served::Withheld);
        }
        Ok(Served::Nowhere)
    }

    /// The failure if the server does not serve this version of a kind.
    fn not_served(&self, gvk: &Gvk) -> Failure {
        match self.is_reported() {
            true => Failure::not_reported(gvk, self.name()),
            false => Failure::not_served(gvk),
        }
    }

    /// The failure of [`Served::Withheld`].
    pub(crate) fn withheld(&self, gvk: &Gvk) -> Failure {
        match self.is_reported() {
            true => Failure::not_reported(gvk, self.name()),
            false => Failure::withheld(gvk),
        }
    }

    /// True if what the server serves is only reported: see [`super::ApiOptions::is_reported`].
    pub(super) fn is_reported(&self) -> bool {
        self.0.options.is_reported
    }

    /// The versions in which the server serves the group of a kind, the requested one first if it is among them.
    async fn versions(&self, gvk: &Gvk) -> Result<Vec<Str>, Failure> {
        if gvk.group.is_empty() {
            return Ok(vec!["v1".into()]);
        }
        let answer = self
            .discovery(&Path::raw("/apis", "discovery"), "APIGroupList")
            .await?;
        let mut groups = answer["groups"].as_array().into_iter().flatten();
        let Some(group) = groups.find(|each| each["name"] == *gvk.group) else {
            return Ok(Vec::new());
        };
        let preferred = group["preferredVersion"]["version"].as_str();
        let all = group["versions"].as_array().into_iter().flatten();
        let all: Vec<&str> = all.filter_map(|each| each["version"].as_str()).collect();
        let wanted = all.iter().copied().find(|each| **each == *gvk.version);
        let rest = preferred.into_iter().chain(all.iter().copied());
        Ok(wanted.into_iter().chain(rest).map(Str::from).collect())
    }

    /// Returns an object about the API server itself. A server that returns anything else is no API server.
    pub(crate) async fn discovery(&self, path: &Path, kind: &str) -> Result<Value, Failure> {
        match self.get(path, Form::Whole).await {
            Ok(answer) if answer["kind"] == *kind => Ok(answer),
            Err(failure) if failure.class() != Class::Missing => Err(failure),
            _ => Err(no_answer(path, kind)),
        }
    }

    /// True if a definition of the kind exists, or our account may not read whether one does.
    async fn may_be_defined(&self, gvk: &Gvk) -> Result<bool, Failure> {
        let likely = format!("{}.{}", path::plural(gvk), gvk.group);
        let names = match self.definitions(&gvk.group).await {
            Err(failure) if failure.code() == FORBIDDEN => return Ok(true),
            Err(failure) if failure.class() == Class::Missing => {
                return Err(no_answer(
                    &Path::definitions(None),
                    "CustomResourceDefinitionList",
                ));
            }
            names => names?,
        };
        if names.contains(&likely) {
            return Ok(true);
        }
        for name in names {
            let path = Path::definitions(Some(&name));
            match self.get(&path, Form::Whole).await {
                Ok(definition) if definition["spec"]["names"]["kind"] == *gvk.kind => return Ok(true),
                Ok(_) => {}
                Err(failure) if failure.code() == FORBIDDEN => return Ok(true),
                // It was deleted since the names were listed.
                Err(failure) if failure.class() == Class::Missing && failure.is_about(&path.resource) => {}
                Err(failure) if failure.class() == Class::Missing => {
                    return Err(no_answer(&path, "CustomResourceDefinition"));
                }
                Err(failure) => return Err(failure),
            }
        }
        Ok(false)
    }

    /// The names of the CustomResourceDefinitions of a group.
    async fn definitions(&self, group: &str) -> Result<Vec<String>, Failure> {
        let (mut names, mut next) = (Vec::new(), String::new());
        loop {
            let mut path = Path::definitions(None).query("limit", "500");
            if !next.is_empty() {
                path = path.query("continue", &next);
            }
            let call = Call {
                verb: Verb::List,
                path: &path,
                accept: Form::Metadata.accept_list(),
                body: None,
                deadline: None,
            };
            let bytes = self.bytes(call).await?;
            let meta = read::list(&bytes, &mut |item| {
                let name = item["metadata"]["name"].as_str().unwrap_or_default();
                if name.split_once('.').is_some_and(|(_, of)| of == group) {
                    names.push(name.to_owned());
                }
            })
            .map_err(|error| Failure::garbled(&error))?;
            if meta.resource_version.is_empty() {
                return Err(no_answer(&path, "CustomResourceDefinitionList"));
            }
            if meta.next.is_empty() {
                return Ok(names);
            }
            next = meta.next;
        }
    }
}

/// The failure if the responder is no API server: a proxy, or a server that is about to start.
fn no_answer(path: &Path, kind: &str) -> Failure {
    Failure::Garbled(format!("the answer to {} is not a {kind}", path.uri))
}

#[cfg(test)]
mod tests;
