//! The copies on clusters over time: each change of a copy with its time and the revision at which the cluster made it.
//!
//! The order of revisions is that of the cluster's store, so coexistence is decided without comparing clocks or watches.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use entourage_api::keys::label;
use entourage_core::object::ResourceId;
use futures::TryStreamExt as _;
use kube::{
    Api, Client,
    api::{DynamicObject, ListParams, WatchEvent, WatchParams},
};
use serde_json::Value;
use tokio::time::{sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

use crate::{
    connect::{self, explain, within},
    kinds::Served,
    lists,
};

/// The pause before a watch that ended is opened again.
const PAUSE: Duration = Duration::from_millis(20);

/// An object of a cluster after a change.
#[derive(Clone, Debug, PartialEq)]
pub struct Sighting {
    /// The cluster.
    pub cluster: String,
    /// The object.
    pub id: ResourceId,
    /// The revision of the change: comparable among the sightings of one cluster.
    pub revision: u64,
    /// The time at which it was observed.
    pub at: Instant,
    /// True if it existed before the observation.
    pub initial: bool,
    /// Its state; `None`: it was deleted.
    pub copy: Option<Copy>,
}

/// A copy on a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copy {
    /// True if a hub manages it.
    pub managed: bool,
    /// Its replicas; 1 for a kind without any.
    pub replicas: i64,
    /// True for a claim that is bound, and so may hold data.
    pub bound: bool,
}

impl Copy {
    fn of(object: &DynamicObject) -> Self {
        let labels = object.metadata.labels.as_ref();
        Self {
            managed: labels.is_some_and(|labels| labels.contains_key(label::HUB)),
            replicas: object.data["spec"]["replicas"].as_i64().unwrap_or(1),
            bound: object.data["status"]["phase"] == "Bound",
        }
    }
}

/// Watches kinds on clusters until it is dropped.
#[derive(Debug)]
pub struct Observer {
    seen: Seen,
    _watches: Vec<AbortOnDropHandle<()>>,
}

type Seen = Arc<Mutex<Vec<Sighting>>>;

impl Observer {
    /// Lists these kinds on every cluster and starts to watch them. A kind that a cluster does not serve is watched once it
    /// does. Cost: one watch for each kind and cluster.
    ///
    /// # Errors
    /// A cluster cannot be read.
    pub async fn start(clusters: &[(String, Client)], kinds: &[Served]) -> Result<Self> {
        let seen = Seen::default();
        let mut watches = Vec::new();
        for (cluster, client) in clusters {
            for served in kinds {
                let mut watch = Watch {
                    cluster: cluster.clone(),
                    api: lists::api(client, served, ""),
                    served: served.clone(),
                    there: BTreeMap::new(),
                    seen: seen.clone(),
                };
                let from = watch
                    .list(true)
                    .await
                    .with_context(|| format!("cannot read the {} of {cluster}", served.resource.plural))?;
                watches.push(AbortOnDropHandle::new(tokio::spawn(watch.run(from))));
            }
        }
        Ok(Self {
            seen,
            _watches: watches,
        })
    }

    /// All sightings: by cluster, then in the order in which the cluster made the changes. Their times have the same order.
    #[must_use]
    pub fn sightings(&self) -> Vec<Sighting> {
        let mut all = lock(&self.seen).clone();
        all.sort_by(|a, b| (&a.cluster, a.revision).cmp(&(&b.cluster, b.revision)));
        order_times(&mut all);
        all
    }

    /// The copy of an object on a cluster as last observed, or `None` if there is none.
    #[must_use]
    pub fn copy(&self, cluster: &str, id: &ResourceId) -> Option<Copy> {
        let seen = lock(&self.seen);
        let mut all = seen.iter().rev();
        all.find(|each| each.cluster == cluster && each.id == *id)?.copy
    }
}

/// Moves the time of a sighting to that of a later change of the same cluster that was observed before it: each kind has a watch
/// of its own, and one may be late, but a change was made by the time a later one was observed.
fn order_times(sorted: &mut [Sighting]) {
    for at in (1..sorted.len()).rev() {
        let (earlier, later) = sorted.split_at_mut(at);
        let (earlier, later) = (&mut earlier[at - 1], &later[0]);
        if earlier.cluster == later.cluster {
            earlier.at = earlier.at.min(later.at);
        }
    }
}

fn lock(seen: &Seen) -> MutexGuard<'_, Vec<Sighting>> {
    // A panic elsewhere leaves only complete sightings.
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One kind on one cluster.
struct Watch {
    cluster: String,
    api: Api<DynamicObject>,
    served: Served,
    there: BTreeMap<ResourceId, Copy>,
    seen: Seen,
}

impl Watch {
    async fn run(mut self, mut from: Option<u64>) {
        loop {
            // The next list covers the events that a closed watch missed.
            let followed = match from {
                Some(revision) => self.follow(revision).await,
                None => Ok(()),
            };
            drop(followed);
            sleep(PAUSE).await;
            from = self.list(false).await.ok().flatten();
        }
    }

    /// Records the listed objects. Returns the revision, or `None` if the kind is not served.
    async fn list(&mut self, initial: bool) -> Result<Option<u64>> {
        let list = match within(self.api.list(&ListParams::default())).await {
            Ok(list) => list,
            Err(error) if connect::is_not_found(&error) => return Ok(None),
            Err(error) => return Err(explain(error)),
        };
        let revision = number(list.metadata.resource_version.as_deref());
        let mut gone = std::mem::take(&mut self.there);
        for object in &list.items {
            let Some(id) = self.id(object) else { continue };
            let copy = Copy::of(object);
            if gone.remove(&id) != Some(copy) {
                let revision = number(object.metadata.resource_version.as_deref());
                self.record(id.clone(), revision, initial, Some(copy));
            }
            self.there.insert(id, copy);
        }
        for id in gone.into_keys() {
            self.record(id, revision, initial, None);
        }
        Ok(Some(revision))
    }

    async fn follow(&mut self, revision: u64) -> kube::Result<()> {
        let params = WatchParams::default();
        let mut events = Box::pin(self.api.watch(&params, &revision.to_string()).await?);
        while let Some(event) = events.try_next().await? {
            let (object, is_there) = match &event {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => (object, true),
                WatchEvent::Deleted(object) => (object, false),
                WatchEvent::Bookmark(_) => continue,
                WatchEvent::Error(_) => return Ok(()),
            };
            let Some(id) = self.id(object) else { continue };
            let copy = is_there.then(|| Copy::of(object));
            let before = match copy {
                Some(copy) => self.there.insert(id.clone(), copy),
                None => self.there.remove(&id),
            };
            if before != copy {
                let revision = number(object.metadata.resource_version.as_deref());
                self.record(id, revision, false, copy);
            }
        }
        Ok(())
    }

    fn record(&self, id: ResourceId, revision: u64, initial: bool, copy: Option<Copy>) {
        lock(&self.seen).push(Sighting {
            cluster: self.cluster.clone(),
            id,
            revision,
            at: Instant::now(),
            initial,
            copy,
        });
    }

    fn id(&self, object: &DynamicObject) -> Option<ResourceId> {
        let resource = &self.served.resource;
        let gvk = entourage_core::object::Gvk::new(&resource.api_version, &resource.kind);
        let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
        Some(ResourceId::new(gvk, namespace, object.metadata.name.as_deref()?))
    }
}

/// The revision as a number, for a resourceVersion of the embedded API server.
fn number(version: Option<&str>) -> u64 {
    version.and_then(|text| text.parse().ok()).unwrap_or_default()
}

/// Retries a check until it succeeds, for at most `limit`.
///
/// # Errors
/// The last one, if the time is up.
pub async fn eventually<T>(
    limit: Duration,
    pause: Duration,
    probe: impl AsyncFn() -> Result<T>,
) -> Result<T> {
    let last = Mutex::new(None);
    let asked = timeout(limit, async {
        loop {
            match probe().await {
                Ok(found) => return found,
                Err(error) => {
                    *last.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                    sleep(pause).await;
                }
            }
        }
    });
    match asked.await {
        Ok(found) => Ok(found),
        Err(_) => {
            let last = last.into_inner().unwrap_or_else(PoisonError::into_inner);
            Err(last.unwrap_or_else(|| anyhow::anyhow!("no response within {} s", limit.as_secs())))
        }
    }
}

/// The message of an object's condition if it has this status, otherwise `None`.
#[must_use]
pub fn condition<'a>(object: &'a Value, type_: &str, status: &str) -> Option<&'a str> {
    let mut all = object["status"]["conditions"].as_array()?.iter();
    let held = all.find(|each| each["type"] == type_ && each["status"] == status)?;
    Some(held["message"].as_str().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use entourage_core::object::Gvk;

    use super::*;

    #[test]
    fn a_change_has_the_time_of_a_later_one_that_was_observed_first() {
        let begin = Instant::now();
        let sighting = |cluster: &str, revision: u64, millis: u64| Sighting {
            cluster: cluster.to_owned(),
            id: ResourceId::new(Gvk::new("v1", "ConfigMap"), "shop", "settings"),
            revision,
            at: begin + Duration::from_millis(millis),
            initial: false,
            copy: None,
        };
        let mut all = [
            sighting("member1", 1, 10),
            sighting("member1", 2, 40),
            sighting("member1", 3, 30),
            sighting("member1", 4, 35),
            sighting("member2", 1, 5),
        ];
        order_times(&mut all);
        let millis: Vec<u128> = all
            .iter()
            .map(|each| each.at.duration_since(begin).as_millis())
            .collect();
        assert_eq!(millis, [10, 30, 30, 35, 5]);
    }
}
