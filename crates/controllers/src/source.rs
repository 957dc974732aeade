//! Whole templates, fetched from the hub when they are delivered and dropped right after.
//!
//! Deliveries of one template to several members begin at about the same time; they share one GET. A fetched object is shared
//! for `SHARED` after the fetch began, and never once a newer version was observed ([`Sources::saw`]): a delivery planned after
//! an observation renders that version or a later one. The payload is wiped when the last user drops it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use dashmap::DashMap;
use entourage_core::{
    delivery::render::wipe,
    object::{Meta, ResourceId},
    observation::template_meta,
};
use serde_json::Value;
use tokio::sync::{OnceCell, Semaphore};

use crate::{
    client::{Api, Form, path::Path},
    error::Failure,
};

/// The time after its start for which a fetch is shared.
const SHARED: Duration = Duration::from_millis(250);

/// The maximum number of concurrent fetches: they are additional to the hub's own queue.
const AT_ONCE: usize = 32;

/// The number of times that a fetch is repeated because the hub returned an older version than was observed.
const ROUNDS: usize = 3;

/// A template as read from the hub. Its payload is wiped when it is dropped.
pub struct Source {
    object: Value,
    meta: Meta,
}

impl Source {
    /// The whole object.
    #[must_use]
    pub fn object(&self) -> &Value {
        &self.object
    }

    /// Its metadata.
    #[must_use]
    pub fn meta(&self) -> &Meta {
        &self.meta
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        wipe(&mut self.object);
    }
}

/// The result of a fetch.
pub struct Fetched {
    /// The template.
    pub source: Arc<Source>,
    /// True if this caller's GET fetched it: then this caller observes it.
    pub first: bool,
}

/// The fetches that are shared now. Cheap to clone; clones share the state.
#[derive(Clone)]
pub struct Sources(Arc<Inner>);

struct Inner {
    hub: Api,
    permits: Semaphore,
    flights: DashMap<ResourceId, Arc<Flight>>,
}

#[derive(Default)]
struct Flight {
    slot: OnceCell<Result<Arc<Source>, Failure>>,
    /// The minimum revision of the template, by the observations so far.
    at_least: AtomicU64,
}

impl Sources {
    /// Fetches from this hub.
    #[must_use]
    pub fn new(hub: Api) -> Self {
        let (permits, flights) = (Semaphore::new(AT_ONCE), DashMap::new());
        Self(Arc::new(Inner {
            hub,
            permits,
            flights,
        }))
    }

    /// The template, at least as new as its last observation.
    ///
    /// # Errors
    /// [`Failure`]; class Missing when it does not exist.
    pub async fn fetch(&self, id: &ResourceId) -> Result<Fetched, Failure> {
        let mut last = None;
        for _ in 0..ROUNDS {
            let flight = self.flight(id);
            let mut first = false;
            let result = flight
                .slot
                .get_or_init(|| {
                    first = true;
                    self.get(id)
                })
                .await;
            let source = match result {
                Ok(source) => source.clone(),
                Err(failure) => {
                    self.forget(id, &flight);
                    return Err(failure.clone());
                }
            };
            let fetched = Fetched { source, first };
            if fetched.source.meta.revision() >= flight.at_least.load(Ordering::Acquire) {
                return Ok(fetched);
            }
            self.forget(id, &flight);
            last = Some(fetched);
        }
        // The hub keeps returning an older object than was observed: the version that it serves counts.
        last.ok_or_else(|| Failure::Transport("no source after several attempts".into()))
    }

    /// Records an observation of this template: no older version is shared from now on.
    pub fn saw(&self, id: &ResourceId, revision: u64) {
        let Some(flight) = self.0.flights.get(id).map(|flight| flight.clone()) else {
            return;
        };
        flight.at_least.fetch_max(revision, Ordering::AcqRel);
        let stale = match flight.slot.get() {
            Some(Ok(source)) => source.meta.revision() < revision,
            Some(Err(_)) => true,
            None => false,
        };
        if stale {
            self.forget(id, &flight);
        }
    }

    /// Records that the template is gone: no version of it is shared from now on.
    pub fn gone(&self, id: &ResourceId) {
        self.0.flights.remove(id);
    }

    fn flight(&self, id: &ResourceId) -> Arc<Flight> {
        let mut made = false;
        let flight = self
            .0
            .flights
            .entry(id.clone())
            .or_insert_with(|| {
                made = true;
                Arc::default()
            })
            .clone();
        if !made {
            return flight;
        }
        let (sources, id, ours) = (self.clone(), id.clone(), Arc::downgrade(&flight));
        tokio::spawn(async move {
            tokio::time::sleep(SHARED).await;
            if let Some(flight) = ours.upgrade() {
                sources.forget(&id, &flight);
            }
        });
        flight
    }

    /// Removes a flight, unless another has replaced it.
    fn forget(&self, id: &ResourceId, flight: &Arc<Flight>) {
        self.0
            .flights
            .remove_if(id, |_, standing| Arc::ptr_eq(standing, flight));
    }

    async fn get(&self, id: &ResourceId) -> Result<Arc<Source>, Failure> {
        let _permit = self.0.permits.acquire().await;
        let object = self.0.hub.get(&Path::object(id), Form::Whole).await?;
        Ok(Arc::new(Source {
            meta: template_meta(&id.gvk, &object),
            object,
        }))
    }
}

#[cfg(test)]
mod tests;
