//! Lists: their revision, page and objects.

use std::{sync::Arc, time::Duration};

use serde_json::{Map, json};

use crate::{
    call::{Call, Item, Reply},
    resource::Resource,
    selector::Selection,
    status::{Result, Status},
    store::{Entry, Page, Revision, Store, TooOld},
};

mod options;
#[cfg(test)]
mod tests;
mod token;

use options::Matching;
pub(crate) use options::{Options, revision_of};

/// The time for which a request waits for a revision that the store has not reached yet.
const PATIENCE: Duration = Duration::from_secs(3);

/// Objects that are looked into before others get their turn.
const BREATH: usize = 256;

/// The state that a list shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The latest.
    Latest,
    /// The latest, which must have reached this revision.
    NotOlderThan(Revision),
    /// The list at this revision.
    Exact(Revision),
}

/// GET of a collection. O(objects of the collection), or of a page what is on it and behind it.
pub(crate) async fn list(store: &Store, call: &Call) -> Result<Reply> {
    let options = Options::of(call, false)?;
    let prefix = prefix(call);
    let (state, after) = asked(&options, &prefix)?;
    let limit = if options.revision == "0" { 0 } else { options.limit };
    if let State::NotOlderThan(revision) | State::Exact(revision) = state {
        reach(store, revision).await?;
    }
    let want = Wanted {
        resource: &call.resource,
        prefix: &prefix,
        after: after.as_deref(),
        limit,
        selection: &options.selection,
    };
    let found = want.find(store, state).await.map_err(|TooOld(_)| match &after {
        Some(after) => expired_page(after.strip_prefix(&prefix).unwrap_or(after)),
        None => Status::expired("The resourceVersion for the provided list is too old."),
    })?;
    let next = match found.page.entries.last() {
        Some(last) if found.more => {
            let key = last.key.strip_prefix(&prefix).unwrap_or(&last.key);
            token::encode(key, i64::try_from(found.page.revision).unwrap_or(i64::MAX))
        }
        _ => String::new(),
    };
    Ok(Reply::List {
        remaining: (found.more && options.selection.is_everything()).then_some(found.page.remaining),
        items: found.page.entries.into_iter().map(Item::Stored).collect(),
        revision: found.page.revision,
        next,
    })
}

/// The prefix of the keys of the call's collection.
pub(crate) fn prefix(call: &Call) -> String {
    if call.namespace.is_empty() {
        String::new()
    } else {
        format!("{}/", call.namespace)
    }
}

/// For a GET of one object: waits until the store is as new as the request wants it; a revision too far ahead is a timeout.
pub(crate) async fn wait_for_revision(store: &Store, call: &Call) -> Result<()> {
    let text = call.query.get("resourceVersion").unwrap_or_default();
    let revision = revision_of(text).map_err(Status::unforeseen)?;
    reach(store, revision).await
}

/// Waits until the store has reached `revision`, for three seconds at most.
pub(crate) async fn reach(store: &Store, revision: Revision) -> Result<()> {
    if store.revision() >= revision {
        return Ok(());
    }
    let mut ticks = store.ticks();
    let reached = ticks.wait_for(|now| *now >= revision);
    if tokio::time::timeout(PATIENCE, reached).await.is_ok() {
        return Ok(());
    }
    let message = format!(
        "Timeout: Too large resource version: {revision}, current: {}",
        store.revision()
    );
    let mut details = Map::new();
    let cause = json!([{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]);
    details.insert("causes".to_owned(), cause);
    Err(Status::new(504, "Timeout", message)
        .with_details(details)
        .with_retry_after(1))
}

/// The state that the options request, and the key behind which the list continues.
fn asked(options: &Options, prefix: &str) -> Result<(State, Option<String>)> {
    if !options.token.is_empty() {
        let (key, revision) = token::decode(&options.token)
            .map_err(|error| Status::bad_request(format!("invalid continue token: {error}")))?;
        if !matches!(options.revision.as_str(), "" | "0") {
            return Err(Status::bad_request(
                "specifying resource version is not allowed when using continue",
            ));
        }
        let state = Revision::try_from(revision).map_or(State::Latest, State::Exact);
        return Ok((state, Some(format!("{prefix}{key}"))));
    }
    let revision = revision_of(&options.revision)
        .map_err(|error| Status::bad_request(format!("invalid resource version: {error}")))?;
    let state = match options.matching {
        Matching::Exact => State::Exact(revision),
        Matching::Unset if revision > 0 && options.limit > 0 => State::Exact(revision),
        _ if revision > 0 => State::NotOlderThan(revision),
        _ => State::Latest,
    };
    Ok((state, None))
}

/// The page of a token is forgotten: 410 with a token that goes on behind the same key in the latest state.
fn expired_page(key: &str) -> Box<Status> {
    let mut status = Status::expired(
        "The provided continue parameter is too old to display a consistent list result. You can start a new list without \
         the continue parameter, or use the continue token in this response to retrieve the remainder of the results. \
         Continuing with the provided token results in an inconsistent list - objects that were created, modified, or \
         deleted between the time the first chunk was returned and now may show up in the list.",
    );
    status
        .metadata
        .insert("continue".to_owned(), token::encode(key, -1).into());
    status
}

/// The objects that are requested.
struct Wanted<'a> {
    resource: &'a Resource,
    prefix: &'a str,
    after: Option<&'a str>,
    /// 0: no limit.
    limit: usize,
    selection: &'a Selection,
}

/// The objects that were found; `more` is true if there are more behind them.
struct Found {
    page: Page,
    more: bool,
}

impl Wanted<'_> {
    async fn find(&self, store: &Store, state: State) -> std::result::Result<Found, TooOld> {
        let everything = self.selection.is_everything();
        if let Some(page) = self.one(store, state) {
            return Ok(Found { page, more: false });
        }
        let limit = if everything { self.limit } else { 0 };
        let collection = &self.resource.collection;
        let mut page = match state {
            State::Exact(revision) => store.list_at(collection, self.prefix, self.after, limit, revision)?,
            State::Latest | State::NotOlderThan(_) => store.list(collection, self.prefix, self.after, limit),
        };
        if everything {
            let more = page.remaining > 0;
            return Ok(Found { page, more });
        }
        let all = std::mem::take(&mut page.entries);
        let count = all.len();
        for (at, entry) in all.into_iter().enumerate() {
            if at % BREATH == BREATH - 1 {
                tokio::task::yield_now().await;
            }
            if self.selection.matches_stored(self.resource, &entry) {
                page.entries.push(entry);
                if page.entries.len() == self.limit {
                    return Ok(Found {
                        page,
                        more: at + 1 < count,
                    });
                }
            }
        }
        Ok(Found { page, more: false })
    }

    /// The latest state of a list of one name, without looking at the others. O(log n).
    fn one(&self, store: &Store, state: State) -> Option<Page> {
        let name = self.selection.name()?;
        let pinned = self.after.is_none()
            && !matches!(state, State::Exact(_))
            && (!self.resource.namespaced || !self.prefix.is_empty());
        if !pinned {
            return None;
        }
        let revision = store.revision();
        let found: Option<Arc<Entry>> =
            store.get(&self.resource.collection, &format!("{}{name}", self.prefix));
        let entries: Vec<_> = found
            .filter(|entry| self.selection.matches_stored(self.resource, entry))
            .into_iter()
            .collect();
        // It may have been written in between.
        let revision = entries
            .iter()
            .map(|entry| entry.revision)
            .fold(revision, Revision::max);
        Some(Page {
            entries,
            remaining: 0,
            revision,
        })
    }
}
