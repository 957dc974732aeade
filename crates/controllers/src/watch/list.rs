//! The list before the watch.

use std::collections::BTreeSet;

use entourage_core::{
    object::revision,
    observation::{self, Observation, Which},
};

use super::{LIST_DEADLINE, PAGE, PAGE_WHOLE, Watcher};
use crate::{
    client::{
        Call, Form,
        read::{self, ListMeta},
    },
    error::Failure,
    metrics::Verb,
};

impl Watcher {
    /// Lists everything, page by page; the resourceVersion to watch from, or `None` when the brain is gone.
    pub(super) async fn list(&self) -> Result<Option<String>, Failure> {
        let _turn = self.api.list_turn().await;
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
                deadline: Some(LIST_DEADLINE),
            };
            let bytes = self.api.bytes(call).await?;
            let (items, meta) = self.page(&bytes, &mut present)?;
            drop(bytes);
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
        }
    }

    fn page(
        &self,
        bytes: &[u8],
        present: &mut BTreeSet<Which>,
    ) -> Result<(Vec<Observation>, ListMeta), Failure> {
        let mut seen = Vec::new();
        let meta = read::list(bytes, &mut |mut item| {
            present.extend(observation::which(&self.watch, &item));
            seen.extend(self.project(&item));
            self.wipe(&mut item);
        })
        .map_err(|error| Failure::garbled(&error))?;
        Ok((seen, meta))
    }
}
