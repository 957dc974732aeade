//! Lists the content of a namespace of a member that the hub deleted.
//!
//! Every kind that a deletion of the namespace would delete is listed, as metadata: every namespaced kind that is served in any
//! version of any group and can be deleted. A kind that cannot be listed may have any objects.

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

/// The objects of one page: few, since the listing ends when there are more than can be named, and several namespaces may be
/// listed at a time.
const PAGE: &str = "100";

/// The number of concurrent requests: an object created in a namespace between its list and the deletion is not detected.
pub(super) const AT_A_TIME: usize = 8;

/// The number of attempts for a page, and for a list that takes longer than the server keeps its state.
const TRIES: u32 = 5;

/// The delay before a retry, and the longest one, in milliseconds: it doubles.
const FIRST_PAUSE: u64 = 50;
const LONGEST_PAUSE: u64 = 1_000;

/// The server cannot respond now.
const UNAVAILABLE: u16 = 503;

/// The reason why a listing is incomplete.
#[derive(Debug)]
pub(super) enum Blind {
    /// No request succeeded: the cause is the member, or the connection to it.
    Failed(Failure),
    /// A kind may not be listed: a user must act first.
    Refused(String),
    /// A kind could not be listed this time.
    NoResponse(String),
}

/// The content of a namespace. Found objects are returned rather than an error: they keep the namespace in any case. Cost: a
/// request for each kind and page, until more is found than can be named; [`AT_A_TIME`] pages in memory.
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

/// Lists all pages of a resource's objects. A list that outlasts the server's continue token is started again.
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
            // Any server may return an object: a list has a resourceVersion.
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

/// Retries a request for about a second. A listing sends requests for all kinds: a server that fails now and then must not make
/// it start again each time. A request that timed out is not retried now: the next listing gives it more time.
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

/// The consequence of a failed request that is about every kind. A server that is unavailable for a moment gives no response;
/// else the member, or the connection to it, is at fault.
pub(super) fn blind_for_all(failure: Failure, what: &str) -> Blind {
    let is_moment = failure.code() == UNAVAILABLE || matches!(failure, Failure::Garbled(_));
    match failure.class() {
        Class::Busy | Class::Unknown | Class::Expired if !is_moment => Blind::Failed(failure),
        _ => blind_for_one(failure, what),
    }
}

/// The consequence of a failed request for a kind, or for the kinds of a group. A refusal is reported to a user, and so is a
/// lasting failure in the end: one kind must not repeat all other requests without end.
pub(super) fn blind_for_one(failure: Failure, what: &str) -> Blind {
    let words = format!("{what}: {}", failure.text(&Gvk::new("v1", "Namespace")));
    match failure.class() {
        Class::Unauthorized | Class::Abandoned => Blind::Failed(failure),
        _ if matches!(failure, Failure::Transport(_)) => Blind::Failed(failure),
        Class::Refused => Blind::Refused(words),
        _ => Blind::NoResponse(words),
    }
}
