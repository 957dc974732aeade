//! Whole resource templates, fetched from the hub for a delivery and dropped right after.
//!
//! Deliveries of one template to several members begin at about the same time; they share one GET. A fetched object is
//! shared for `SHARED` after the fetch began, and never once something newer was seen ([`Sources::saw`]): a delivery
//! planned after an observation renders that version or a later one. The payload is wiped when the last user drops it.

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

/// How long after it began a fetch is shared.
const SHARED: Duration = Duration::from_millis(250);

/// Fetches in flight at a time: they come on top of the hub's own queue.
const AT_ONCE: usize = 32;

/// How often a fetch is repeated because the hub answered with less than what was seen already.
const ROUNDS: usize = 3;

/// A template as it stands on the hub. Its payload is wiped when it is dropped.
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

/// What a delivery gets.
pub struct Fetched {
    /// The source.
    pub source: Arc<Source>,
    /// Whether this caller's GET brought it: then it is the one who observes it.
    pub first: bool,
}

/// The fetches that are shared right now. Cheap to clone; clones share everything.
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
    /// What the source must at least be, as far as was observed.
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

    /// The template, at least as new as anything that was seen of it.
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
        // The hub insists on an older object than what was seen: what it serves is what counts.
        last.ok_or_else(|| Failure::Transport("no source after several attempts".into()))
    }

    /// Something was seen of this template: nothing older is shared from now on.
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

    /// It is gone: nothing of it is shared from now on.
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

    /// Takes a flight out, unless another has taken its place.
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
