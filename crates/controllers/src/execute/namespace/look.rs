//! Looking into a namespace of a member that the hub deleted.
//!
//! Every kind that a deletion of the namespace would take along is listed, as metadata: whatever is served in any version of any
//! group, has a namespace and can be deleted. What cannot be listed may be anything.

use std::{collections::BTreeSet, time::Duration};

use entourage_core::{
    namespaces::content::{Contents, Look},
    object::{Gvk, Str},
};
use futures::{StreamExt, stream};

use super::resources::{Resource, resources};
use crate::{
    client::{Api, Call, Form, path::Path, read},
    error::{Class, Failure},
    metrics::Verb,
};

/// Objects of one page: few, as more than can be named end the look, and several namespaces may be looked into at a time.
const PAGE: &str = "100";

/// Requests at a time: what comes into a namespace between its list and the deletion is not seen.
pub(super) const AT_A_TIME: usize = 8;

/// So often a page is asked for, and a list begun that takes longer than the server keeps its state.
const TRIES: u32 = 5;

/// The pause before it is asked again, and the longest one, in milliseconds: it doubles.
const FIRST_PAUSE: u64 = 50;
const LONGEST_PAUSE: u64 = 1_000;

/// The server cannot answer now.
const UNAVAILABLE: u16 = 503;

/// Why a look does not tell everything.
#[derive(Debug)]
pub(super) enum Blind {
    /// Nothing that was asked is told: the member, or the way to it.
    Failed(Failure),
    /// A kind may not be listed: a person must do something first.
    Refused(String),
    /// A kind is not listed this time.
    NoResponse(String),
}

/// What a namespace holds. What was found is told before what was not: it keeps the namespace in any case.
/// Cost: a request for each kind and page, until more is found than can be named; [`AT_A_TIME`] pages in memory.
pub(super) async fn look(
    api: &Api,
    (hub, copies): (&str, &BTreeSet<Str>),
    namespace: &str,
) -> Result<Contents, Failure> {
    let mut look = Look::new(hub, copies);
    let (mut failed, mut refused, mut unanswered) = (None, None, None);
    let mut blind = |each| match each {
        Blind::Failed(failure) => failed = failed.take().or(Some(failure)),
        Blind::Refused(words) => refused = refused.take().or(Some(words)),
        Blind::NoResponse(words) => unanswered = unanswered.take().or(Some(words)),
    };
    let mut all = Vec::new();
    for each in resources(api).await {
        match each {
            Ok(resource) => all.push(resource),
            Err(Blind::Failed(failure)) => return Err(failure),
            Err(each) => blind(each),
        }
    }
    let mut lists = stream::iter(all)
        .map(|resource| list(api, (hub, copies), namespace, resource))
        .buffered(AT_A_TIME);
    while let Some(each) = lists.next().await {
        match each {
            Ok(part) => look.join(part),
            Err(each) => blind(each),
        }
        if look.has_enough() {
            look.cut();
            break;
        }
    }
    match (look.contents(), failed, refused, unanswered) {
        (held @ Contents::Held(_), ..) => Ok(held),
        (_, Some(failure), ..) => Err(failure),
        (_, _, Some(words), _) => Ok(Contents::Unknown(words)),
        (_, _, _, Some(words)) => Ok(Contents::NoResponse(words)),
        (contents, ..) => Ok(contents),
    }
}

/// Every page of a resource's objects. A list that outlasts what the server keeps is begun again.
async fn list<'a>(
    api: &Api,
    (hub, copies): (&'a str, &'a BTreeSet<Str>),
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
    let (mut look, mut next, mut begun) = (Look::new(hub, copies), String::new(), 1);
    loop {
        let mut path = Path::of(uri.clone(), plural.clone()).query("limit", PAGE);
        if !next.is_empty() {
            path = path.query("continue", &next);
        }
        let bytes = match tried(|| page(api, &path)).await {
            Err(failure) if failure.class() == Class::Expired && begun < TRIES => {
                (look, next, begun) = (Look::new(hub, copies), String::new(), begun + 1);
                continue;
            }
            answer => answer.map_err(|failure| blind_for_one(failure, &what()))?,
        };
        let page = read::list(&bytes, &mut |item| look.add((group, kind), &item))
            .ok()
            // Anything may answer with an object: a list says which version it is of.
            .filter(|page| !page.resource_version.is_empty())
            .ok_or_else(|| Blind::NoResponse(format!("{}: the answer is not a list", what())))?;
        next = page.next;
        if next.is_empty() || look.has_enough() {
            return Ok(look);
        }
    }
}

/// One page of a list of metadata.
pub(super) async fn page(api: &Api, path: &Path) -> Result<bytes::Bytes, Failure> {
    let call = Call {
        verb: Verb::List,
        path,
        accept: Form::Metadata.accept_list(),
        body: None,
        deadline: None,
    };
    api.bytes(call).await
}

/// Asks until there is an answer, for about a second. A look asks for everything there is: a server that fails now and then must
/// not make it begin again each time. Who did not answer in time is not asked again now: the next look gives it more.
pub(super) async fn tried<T, F>(ask: impl Fn() -> F) -> Result<T, Failure>
where
    F: Future<Output = Result<T, Failure>>,
{
    let mut pause = Duration::from_millis(FIRST_PAUSE);
    for _ in 1..TRIES {
        let failure = match ask().await {
            Err(failure) if may_pass(&failure) => failure,
            answer => return answer,
        };
        let asked = failure.retry_after().unwrap_or_default();
        if asked > Duration::from_millis(LONGEST_PAUSE) {
            return Err(failure);
        }
        tokio::time::sleep(pause.max(asked)).await;
        pause *= 2;
    }
    ask().await
}

fn may_pass(failure: &Failure) -> bool {
    matches!(failure, Failure::Transport(_)) || failure.class() == Class::Busy
}

/// What it means that something did not answer that is about every kind. Who cannot answer for a moment did not; else the member,
/// or the way to it, is at fault.
pub(super) fn blind_for_all(failure: Failure, what: &str) -> Blind {
    let is_moment = failure.code() == UNAVAILABLE || matches!(failure, Failure::Garbled(_));
    match failure.class() {
        Class::Busy | Class::Unknown | Class::Expired if !is_moment => Blind::Failed(failure),
        _ => blind_for_one(failure, what),
    }
}

/// What it means that a kind, or the kinds of a group, did not answer. A refusal is for a person, and so is in the end what does
/// not answer for long: one kind must not have all others asked again without end.
pub(super) fn blind_for_one(failure: Failure, what: &str) -> Blind {
    let words = format!("{what}: {}", failure.text(&Gvk::new("v1", "Namespace")));
    match failure.class() {
        Class::Unauthorized | Class::Abandoned => Blind::Failed(failure),
        _ if matches!(failure, Failure::Transport(_)) => Blind::Failed(failure),
        Class::Refused => Blind::Refused(words),
        _ => Blind::NoResponse(words),
    }
}
