//! The number of requests that an API server gets at a time, and what its clients share to keep it.
//!
//! A server that responds as one server has one [`Capacity`], whatever number of clients reach it: the members in Pull mode are
//! all reached through the hub, so all of their clients together are limited as one member is.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicUsize, Ordering},
};

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::limiter::{Bounds, Limiter};

/// The maximum number of concurrent lists: each buffers a page in memory.
pub(crate) const LISTS: usize = 2;

/// The capacity of one API server. Cheap to clone; clones are the same.
#[derive(Clone)]
pub struct Capacity(Arc<Inner>);

struct Inner {
    is_shared: bool,
    limiter: Mutex<Limiter>,
    requests: AtomicUsize,
    plans: AtomicUsize,
    lists: Semaphore,
}

impl Capacity {
    /// That of a server with one client.
    #[must_use]
    pub fn new(bounds: Bounds) -> Self {
        Self::of(bounds, false)
    }

    /// That of a server that the clients of several members reach.
    #[must_use]
    pub fn shared(bounds: Bounds) -> Self {
        Self::of(bounds, true)
    }

    fn of(bounds: Bounds, is_shared: bool) -> Self {
        Self(Arc::new(Inner {
            is_shared,
            limiter: Mutex::new(Limiter::new(bounds)),
            requests: AtomicUsize::new(0),
            plans: AtomicUsize::new(0),
            lists: Semaphore::new(LISTS),
        }))
    }

    /// True if clients of several members share it.
    pub(crate) fn is_shared(&self) -> bool {
        self.0.is_shared
    }

    /// Changes or reads the limiter.
    pub(super) fn limiter<R>(&self, with: impl FnOnce(&mut Limiter) -> R) -> R {
        with(&mut self.0.limiter.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits for a permit to list.
    pub(super) async fn list_turn(&self) -> Option<SemaphorePermit<'_>> {
        // The semaphore is never closed.
        self.0.lists.acquire().await.ok()
    }

    /// The number of requests that run; watches do not count.
    pub(super) fn requests(&self) -> usize {
        self.0.requests.load(Ordering::Relaxed)
    }

    /// Counts a request for as long as the result exists.
    pub(super) fn request(&self) -> Counted {
        Counted::new(self.clone(), |inner| &inner.requests)
    }

    /// The number of plans that are being executed.
    pub(crate) fn plans(&self) -> usize {
        self.0.plans.load(Ordering::Relaxed)
    }

    /// Counts a plan for as long as the result exists.
    pub(crate) fn plan(&self) -> Counted {
        Counted::new(self.clone(), |inner| &inner.plans)
    }
}

/// Something that is counted while this exists, also if it is dropped half way.
pub(crate) struct Counted {
    capacity: Capacity,
    counter: fn(&Inner) -> &AtomicUsize,
    /// The number when it began, with it.
    pub(super) count: usize,
}

impl Counted {
    fn new(capacity: Capacity, counter: fn(&Inner) -> &AtomicUsize) -> Self {
        let count = counter(&capacity.0).fetch_add(1, Ordering::Relaxed) + 1;
        Self {
            capacity,
            counter,
            count,
        }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        (self.counter)(&self.capacity.0).fetch_sub(1, Ordering::Relaxed);
    }
}
