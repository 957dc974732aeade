//! Looking into a namespace of a member that the hub deleted, and ending it.
//!
//! Every kind that a deletion of the namespace would take along is listed, as metadata: whatever is served in any version of any
//! group, has a namespace and can be deleted. What cannot be listed may be anything.

use std::collections::BTreeSet;

use entourage_core::{
    namespaces::{
        self,
        content::{Contents, Look, is_passing},
    },
    object::{Gvk, Str},
    observation::{self, Observation, Watch, Which},
    plan::{Guard, How},
};
use futures::{StreamExt, stream};
use serde_json::Value;

use super::super::{Hands, Outcome, trouble};
use crate::{
    client::{Api, Call, Form, catalog, path::Path, read},
    error::{Class, Failure},
    metrics::Verb,
};

/// Objects of one page.
const PAGE: &str = "500";

/// Requests at a time: what comes into a namespace between its list and the deletion is not seen.
const AT_A_TIME: usize = 8;

/// So often a page is asked for.
const TRIES: usize = 5;

/// Every API server has it, and it is what must not be missed: an answer without it is no list of what is served.
const CLAIMS: &str = "persistentvolumeclaims";

/// The server cannot answer for a kind now.
const UNAVAILABLE: u16 = 503;

/// A resource that objects in a namespace may be of.
#[derive(Debug)]
struct Resource {
    group: String,
    plural: String,
    kind: String,
    root: String,
}

/// Why a look does not tell everything.
#[derive(Debug)]
enum Blind {
    /// Nothing that was asked is told: the member, or the way to it.
    Failed(Failure),
    /// A kind may not be listed: a person must do something first.
    Refused(String),
    /// A kind is not listed this time.
    Unanswered(String),
}

impl Hands {
    /// Asks the hub whether it has a namespace, then lists what a member has in it. Cost: a request for each version of each API
    /// group of the member, and one for each kind and page.
    pub(in crate::execute) async fn look_into(
        &self,
        api: &Api,
        (cluster, name): (Str, Str),
        copies: &BTreeSet<Str>,
    ) -> Outcome {
        match self.contents(api, &name, copies).await {
            Ok(contents) => {
                self.tell(Observation::LookedInto(cluster, name, contents)).await;
                Outcome::Done
            }
            Err(failure) => trouble(&failure),
        }
    }

    /// Deletes exactly this namespace if there is nothing in it at this moment, or takes our records off it.
    pub(in crate::execute) async fn end_namespace(
        &self,
        api: &Api,
        (cluster, name): (Str, Str),
        (guard, copies): (&Guard, &BTreeSet<Str>),
        how: How,
    ) -> Outcome {
        let path = Path::namespace(Some(&name));
        let answer = if how == How::Delete {
            match self.contents(api, &name, copies).await {
                Ok(Contents::Nothing) => {}
                Ok(contents) => {
                    self.tell(Observation::LookedInto(cluster, name, contents)).await;
                    return Outcome::Done;
                }
                Err(failure) => return trouble(&failure),
            }
            api.delete(&path, &guard.uid, &guard.resource_version).await
        } else {
            let patch = namespaces::released(guard, &self.hub_id);
            api.merge(&path, &patch, Form::Whole).await
        };
        let now = match answer {
            // It was changed meanwhile, or is another one: what it is now is told, so that the next plan is about that.
            Err(failure) if failure.class() == Class::Conflict => api.get(&path, Form::Whole).await,
            answer => answer,
        };
        match now {
            // It is held until it is empty, and comes as it is; or it is gone.
            Ok(object) if object["metadata"]["uid"].is_string() => {
                let watch = Watch::MemberNamespaces(cluster.clone());
                if let Some(subject) = observation::project(&watch, &Default::default(), &object) {
                    self.tell(Observation::Seen(subject)).await;
                }
            }
            Ok(_) => self.tell(gone(&cluster, &name, guard)).await,
            Err(failure) if failure.class() == Class::Missing && failure.is_about("namespaces") => {
                self.tell(gone(&cluster, &name, guard)).await;
            }
            Err(failure) if failure.class() == Class::Refused => {
                return Outcome::Refused(failure.text(&Gvk::new("v1", "Namespace")));
            }
            Err(failure) => return trouble(&failure),
        }
        self.tell(Observation::NamespaceEnded(cluster, name)).await;
        Outcome::Done
    }

    async fn contents(&self, api: &Api, name: &str, copies: &BTreeSet<Str>) -> Result<Contents, Failure> {
        match self.hub.get(&Path::namespace(Some(name)), Form::Metadata).await {
            Ok(_) => Ok(Contents::OnHub),
            Err(failure) if failure.class() == Class::Missing && failure.is_about("namespaces") => {
                look(api, (&self.hub_id, copies), name).await
            }
            Err(failure) => Err(failure),
        }
    }
}

fn gone(cluster: &Str, name: &Str, guard: &Guard) -> Observation {
    let which = Which::Namespace(Some(cluster.clone()), name.clone());
    let (uid, revision) = (Some(guard.uid.clone()), None);
    Observation::Gone { which, uid, revision }
}

/// What a namespace holds. What was found is told before what was not: it keeps the namespace in any case.
async fn look(
    api: &Api,
    (hub, copies): (&str, &BTreeSet<Str>),
    namespace: &str,
) -> Result<Contents, Failure> {
    let mut look = Look::new(hub, copies);
    let (mut refused, mut unanswered) = (None, None);
    let mut found: Vec<Result<Look<'_>, Blind>> = Vec::new();
    let mut all = Vec::new();
    for each in resources(api).await {
        match each {
            Ok(resource) => all.push(resource),
            Err(blind) => found.push(Err(blind)),
        }
    }
    let mut lists = stream::iter(all)
        .map(|resource| list(api, Look::new(hub, copies), namespace, resource))
        .buffered(AT_A_TIME);
    while let Some(each) = lists.next().await {
        found.push(each);
    }
    for each in found {
        match each {
            Ok(part) => look.join(part),
            Err(Blind::Failed(failure)) => return Err(failure),
            Err(Blind::Refused(words)) => refused = refused.or(Some(words)),
            Err(Blind::Unanswered(words)) => unanswered = unanswered.or(Some(words)),
        }
    }
    Ok(match (look.contents(), refused, unanswered) {
        (held @ Contents::Held(_), ..) => held,
        (_, Some(words), _) => Contents::Unknown(words),
        (_, None, Some(words)) => Contents::Unanswered(words),
        (contents, None, None) => contents,
    })
}

/// Every page of a resource's objects.
async fn list<'a>(
    api: &Api,
    mut look: Look<'a>,
    namespace: &str,
    resource: Resource,
) -> Result<Look<'a>, Blind> {
    let Resource {
        group, plural, kind, ..
    } = &resource;
    let what = || match group.as_str() {
        "" => format!("{plural} cannot be listed"),
        group => format!("{plural}.{group} cannot be listed"),
    };
    let uri = format!("{}/namespaces/{namespace}/{plural}", resource.root);
    let mut next = String::new();
    loop {
        let mut path = Path::raw(uri.clone(), "namespace content").query("limit", PAGE);
        if !next.is_empty() {
            path = path.query("continue", &next);
        }
        let bytes = page_of(api, &path)
            .await
            .map_err(|failure| blind(failure, &what()))?;
        let page = read::list(&bytes, &mut |item| look.add((group, kind), &item))
            .ok()
            // Anything may answer with an object: a list says which version it is of.
            .filter(|page| !page.resource_version.is_empty())
            .ok_or_else(|| Blind::Unanswered(format!("{}: the answer is no list", what())))?;
        next = page.next;
        if next.is_empty() {
            return Ok(look);
        }
    }
}

/// One page. A look asks for everything there is: a server that fails now and then must not make it begin again each time.
async fn page_of(api: &Api, path: &Path) -> Result<bytes::Bytes, Failure> {
    let mut left = TRIES;
    loop {
        let call = Call {
            verb: Verb::List,
            path,
            accept: Form::Metadata.accept_list(),
            body: None,
            deadline: None,
        };
        left -= 1;
        match api.bytes(call).await {
            Err(failure) if left > 0 && !matches!(failure.class(), Class::Refused | Class::Missing) => {}
            answer => return answer,
        }
    }
}

/// Every resource that has a namespace and can be deleted, each in the version that its group prefers, or in one of those that
/// have it.
async fn resources(api: &Api) -> Vec<Result<Resource, Blind>> {
    let mut roots = vec![(String::new(), "/api/v1".to_owned())];
    match api.told(&Path::raw("/apis", "discovery"), "APIGroupList").await {
        Ok(groups) => {
            let all = catalog::preferred_first(&groups).into_iter();
            roots.extend(all.map(|(group, version)| {
                let root = format!("/apis/{group}/{version}");
                (group, root)
            }));
        }
        Err(failure) => return vec![Err(blind(failure, "/apis cannot be read"))],
    }
    let paths = roots.iter().map(|(_, root)| Path::raw(root.clone(), "discovery"));
    let paths: Vec<Path> = paths.collect();
    let answers: Vec<_> = stream::iter(paths)
        .map(|path| async move { api.told(&path, "APIResourceList").await })
        .buffered(AT_A_TIME)
        .collect()
        .await;
    let (mut all, mut known) = (Vec::new(), BTreeSet::new());
    for ((group, root), answer) in roots.into_iter().zip(answers) {
        let answer = match answer {
            Ok(answer) => answer,
            Err(failure) => {
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
        let words = format!("/api/v1 does not tell of {CLAIMS}");
        all.push(Err(Blind::Unanswered(words)));
    }
    all
}

/// A refusal is for a person, and so is in the end what does not answer for long; what is about more than one kind is tried again.
fn blind(failure: Failure, what: &str) -> Blind {
    let words = || format!("{what}: {}", failure.text(&Gvk::new("v1", "Namespace")));
    match failure.class() {
        Class::Refused => Blind::Refused(words()),
        Class::Missing => Blind::Unanswered(words()),
        _ if failure.code() == UNAVAILABLE || matches!(failure, Failure::Garbled(_)) => {
            Blind::Unanswered(words())
        }
        _ => Blind::Failed(failure),
    }
}
