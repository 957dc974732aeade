//! The list before the watch, and the check whether a watch may continue without one.

use std::collections::BTreeSet;

use entourage_core::{
    object::revision,
    observation::{self, ObjectRef, Observation, Watch},
};
use serde_json::Value;
use tracing::warn;

use super::{End, PAGE, PAGE_WHOLE, Reported, Watcher, hook_calls::WatchEvent};
use crate::{
    client::{
        Call, Form,
        read::{self, ListMeta},
    },
    error::Failure,
    metrics::Verb,
};

impl Watcher {
    /// Lists all objects, page by page; returns the resourceVersion to watch from, or `None` if the control loop has ended.
    pub(super) async fn list(&mut self) -> Result<Option<String>, Failure> {
        let api = self.api.clone();
        let mut turn = Some(api.list_turn().await);
        let mut present = BTreeSet::new();
        let mut next = String::new();
        let page = if self.form == Form::Whole {
            PAGE_WHOLE
        } else {
            PAGE
        };
        loop {
            let mut path = self.list.clone().query("limit", page);
            if !next.is_empty() {
                path = path.query("continue", &next);
            }
            let accept = self.form.accept_list();
            let call = Call {
                verb: Verb::List,
                path: &path,
                accept,
                body: None,
                deadline: None,
            };
            let bytes = self.api.bytes(call).await?;
            let (items, meta) = if self.interpretation.is_hooked() {
                let (items, meta) = self.page_of_objects(&bytes, &mut present)?;
                // A slow hook delays its kinds, not the lists of others.
                drop(turn.take());
                (
                    self.read_events(items.into_iter().map(WatchEvent::Object)).await,
                    meta,
                )
            } else {
                self.page(&bytes, &mut present)?
            };
            drop(bytes);
            if api.capacity().is_shared() {
                // The next page waits behind the lists of the other members.
                drop(turn.take());
            }
            let mut seen = Vec::with_capacity(items.len() + 2);
            if next.is_empty() {
                seen.push(Observation::Listing {
                    watch: self.watch.clone(),
                    revision: revision(&meta.resource_version),
                });
            }
            seen.extend(items);
            let last = meta.next.is_empty();
            if last {
                seen.push(Observation::Listed {
                    watch: self.watch.clone(),
                    present: std::mem::take(&mut present),
                    revision: revision(&meta.resource_version),
                });
            }
            if self.tell(seen, true).await.is_none() {
                return Ok(None);
            }
            if last {
                return Ok(Some(meta.resource_version));
            }
            next = meta.next;
            if turn.is_none() {
                turn = Some(api.list_turn().await);
            }
        }
    }

    /// Records a complete list and its revision; `restores` is the number of known restores when it began. Doubts about the
    /// server are resolved.
    pub(super) fn was_listed(&mut self, restores: usize, revision: u64) {
        if revision < self.reached && restores == self.restores {
            self.api.was_restored(restores);
            self.restores += 1;
        } else {
            self.restores = restores;
        }
        (self.reached, self.doubtful) = (revision, false);
    }

    /// Watches from this version, if the server is known to have reached it, and no other watch has found that it had not. After
    /// a reported outage there is a new list in any case.
    pub(super) async fn resume(&mut self, version: String) -> Result<End, Failure> {
        if self.restores != self.api.restores() {
            return Ok(End::Relist);
        }
        if self.doubtful && self.reported == Reported::Works {
            if self.revision_now().await? < revision(&version) {
                warn!(cluster = self.api.name(), resource = %self.list.resource, "the server's revision went back: it was restored; listing again");
                self.api.was_restored(self.restores);
                return Ok(End::Relist);
            }
            self.doubtful = false;
        }
        self.follow(version).await
    }

    /// The current revision of the server. Cost: a list of one object.
    async fn revision_now(&self) -> Result<u64, Failure> {
        let path = self.list.clone().query("limit", "1");
        let call = Call {
            verb: Verb::List,
            path: &path,
            accept: Form::Metadata.accept_list(),
            body: None,
            deadline: None,
        };
        let bytes = self.api.bytes(call).await?;
        let meta = read::list(&bytes, &mut |mut item| self.wipe(&mut item))
            .map_err(|error| Failure::garbled(&error))?;
        Ok(revision(&meta.resource_version))
    }

    fn page(
        &self,
        bytes: &[u8],
        present: &mut BTreeSet<ObjectRef>,
    ) -> Result<(Vec<Observation>, ListMeta), Failure> {
        let mut seen = Vec::new();
        let meta = read::list(bytes, &mut |mut item| {
            present.extend(observation::which(&self.watch, &item));
            self.say_kind(&mut item);
            seen.extend(self.project(&self.interpretation, &item));
            self.wipe(&mut item);
        })
        .map_err(|error| Failure::garbled(&error))?;
        Ok((seen, meta))
    }

    /// As [`Self::page`], for objects that are read after their hooks were called. In memory as a whole, unlike other pages.
    fn page_of_objects(
        &self,
        bytes: &[u8],
        present: &mut BTreeSet<ObjectRef>,
    ) -> Result<(Vec<Value>, ListMeta), Failure> {
        let mut items = Vec::new();
        let meta = read::list(bytes, &mut |mut item| {
            present.extend(observation::which(&self.watch, &item));
            self.say_kind(&mut item);
            items.push(item);
        })
        .map_err(|error| Failure::garbled(&error))?;
        Ok((items, meta))
    }

    /// Sets the kind of a list's item, which the API server omits for its own kinds. Hooks and scripts read it first, and get an
    /// object in one form, whether from a list or a watch.
    fn say_kind(&self, item: &mut Value) {
        let (Watch::Templates(gvk) | Watch::Copies(_, gvk)) = &self.watch else {
            return;
        };
        if self.interpretation.version().is_empty() {
            return;
        }
        if let Some(fields) = item.as_object_mut() {
            fields
                .entry("apiVersion")
                .or_insert_with(|| gvk.api_version().into());
            fields.entry("kind").or_insert_with(|| (*gvk.kind).into());
        }
    }
}
