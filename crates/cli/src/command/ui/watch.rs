//! The watches of the hub, as the user: each lists its kind page by page, watches it, and lists again when the watch cannot go on.

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use entourage_core::{object::Gvk, rendered::wipe};
use futures::{Stream, TryStreamExt as _};
use kube::{
    Api, Client,
    api::{DynamicObject, ListParams, PartialObjectMeta, WatchEvent, WatchParams},
};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::{
    Shared,
    source::{Form, Source},
};
use crate::{
    connect::{explain, within},
    kinds::{Kinds, Served},
    lists::{PAGE, api},
};

/// The pauses before a hub that could not be read is asked again: the first, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(30));

/// A watch without any event, bookmarks included, for this long is opened again: its connection may be dead.
const IDLE: Duration = Duration::from_secs(330);

/// A watch that lasts for so long works: the pauses begin anew.
const LASTING: Duration = Duration::from_secs(10);

/// Follows a kind until it is dropped; of one namespace, or of all if it is empty.
pub(super) async fn follow(hub: Client, source: Source, namespace: String, shared: Shared) {
    let mut pause = PAUSES.0;
    loop {
        let watch = Watch {
            hub: &hub,
            source,
            namespace: &namespace,
            shared: &shared,
        };
        let ended = watch.run(&mut pause).await;
        if let Err(error) = ended {
            shared.update(|board| board.set_source(source.name, Some(format!("{error:#}"))));
        }
        sleep(pause).await;
        pause = (pause * 2).min(PAUSES.1);
    }
}

struct Watch<'a> {
    hub: &'a Client,
    source: Source,
    namespace: &'a str,
    shared: &'a Shared,
}

impl Watch<'_> {
    /// Lists and watches until that fails, or the revision is too old.
    async fn run(&self, pause: &mut Duration) -> anyhow::Result<()> {
        let Some(served) = self.served().await? else {
            // A kind that the hub does not serve, such as a distribution without its definition, has no objects.
            self.shared
                .update(|board| board.set_source(self.source.name, None));
            *pause = PAUSES.1;
            return Ok(());
        };
        let api = api(self.hub, &served, self.namespace);
        let mut from = self.list(&api).await.map_err(explain)?;
        self.shared
            .update(|board| board.set_source(self.source.name, None));
        loop {
            let begin = Instant::now();
            let ended = self.watch(&api, &mut from).await;
            if begin.elapsed() > LASTING {
                *pause = PAUSES.0;
            }
            match ended {
                // The server ends each watch after some minutes.
                Ok(()) => sleep(PAUSES.0).await,
                Err(kube::Error::Api(status)) if status.code == 410 => return Ok(()),
                Err(error) => return Err(explain(error)),
            }
        }
    }

    async fn served(&self) -> anyhow::Result<Option<Served>> {
        let gvk = Gvk::new(self.source.api_version, self.source.kind);
        let mut kinds = Kinds::default();
        kinds.learn(self.hub, [gvk.clone()]).await?;
        Ok(kinds.get(&gvk).cloned())
    }

    /// Lists all objects. Returns the revision of the list.
    async fn list(&self, api: &Api<DynamicObject>) -> kube::Result<String> {
        let mut params = ListParams::default().limit(PAGE);
        if let Some(fields) = self.source.fields() {
            params = params.fields(fields);
        }
        let mut listed = HashSet::new();
        loop {
            let (metadata, objects) = match self.source.form {
                Form::Metadata => {
                    let page = within(api.list_metadata(&params)).await?;
                    let objects = page.items.iter().map(value_of_metadata).collect();
                    (page.metadata, objects)
                }
                Form::Whole | Form::Events => {
                    let page = within(api.list(&params)).await?;
                    let objects: Vec<Value> = page.items.into_iter().filter_map(value_of).collect();
                    (page.metadata, objects)
                }
            };
            listed.extend(self.take(objects));
            match metadata.continue_.filter(|next| !next.is_empty()) {
                Some(next) => params.continue_token = Some(next),
                None => {
                    self.shared
                        .update(|board| board.retain(self.source.name, &listed));
                    return Ok(metadata.resource_version.unwrap_or_default());
                }
            }
        }
    }

    async fn watch(&self, api: &Api<DynamicObject>, from: &mut String) -> kube::Result<()> {
        let mut params = WatchParams::default();
        if let Some(fields) = self.source.fields() {
            params = params.fields(fields);
        }
        if self.source.form == Form::Metadata {
            let events = api.watch_metadata(&params, from).await?;
            self.each(events, from, value_of_metadata_event).await
        } else {
            let events = api.watch(&params, from).await?;
            self.each(events, from, value_of).await
        }
    }

    /// Takes in each event of a watch until it ends.
    async fn each<K: kube::Resource>(
        &self,
        events: impl Stream<Item = kube::Result<WatchEvent<K>>>,
        from: &mut String,
        value: impl Fn(K) -> Option<Value>,
    ) -> kube::Result<()> {
        let mut events = std::pin::pin!(events);
        loop {
            let Ok(next) = timeout(IDLE, events.try_next()).await else {
                return Ok(());
            };
            let object = match next? {
                None => return Ok(()),
                Some(WatchEvent::Bookmark(bookmark)) => {
                    *from = bookmark.metadata.resource_version;
                    continue;
                }
                Some(WatchEvent::Error(status)) => return Err(kube::Error::Api(status)),
                Some(WatchEvent::Deleted(object)) => {
                    let meta = object.meta();
                    let key = self.source.key(
                        meta.namespace.as_deref().unwrap_or_default(),
                        meta.name.as_deref().unwrap_or_default(),
                    );
                    revision(meta.resource_version.as_deref(), from);
                    self.shared.update(|board| board.remove(&key));
                    continue;
                }
                Some(WatchEvent::Added(object) | WatchEvent::Modified(object)) => object,
            };
            revision(object.meta().resource_version.as_deref(), from);
            self.take(value(object));
        }
    }

    /// Shows objects on the page, and forgets them. Returns their keys.
    fn take(&self, objects: impl IntoIterator<Item = Value>) -> Vec<String> {
        let mut keys = Vec::new();
        let mut seen = Vec::new();
        for mut object in objects {
            let summary = self.source.summary(&mut object);
            wipe(&mut object);
            keys.push(summary.key.clone());
            seen.push(summary);
        }
        self.shared.update(|board| {
            for summary in seen {
                self.source.show(summary, board);
            }
        });
        keys
    }
}

fn revision(of: Option<&str>, from: &mut String) {
    if let Some(of) = of {
        of.clone_into(from);
    }
}

fn value_of(mut object: DynamicObject) -> Option<Value> {
    object.metadata.managed_fields = None;
    serde_json::to_value(object).ok()
}

fn value_of_metadata(object: &PartialObjectMeta<DynamicObject>) -> Value {
    json!({ "metadata": object.metadata })
}

#[allow(clippy::needless_pass_by_value, reason = "a watch hands its objects over")]
fn value_of_metadata_event(object: PartialObjectMeta<DynamicObject>) -> Option<Value> {
    Some(json!({ "metadata": object.metadata }))
}
