//! The namespaces of a member with deliveries, so that a missing one is created once, and none is deleted during a delivery into
//! it.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use entourage_core::object::Str;
use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The gates of a member's namespaces.
#[derive(Debug, Default)]
pub struct Namespaces(Mutex<HashMap<Str, Arc<Gate>>>);

impl Namespaces {
    /// The gate of a namespace.
    #[must_use]
    pub fn gate(&self, namespace: &Str) -> Arc<Gate> {
        let mut gates = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        gates.entry(namespace.clone()).or_default().clone()
    }
}

/// Lets one delivery at a time into a namespace until the first succeeds.
#[derive(Debug, Default)]
pub struct Gate {
    open: AtomicBool,
    turn: tokio::sync::Mutex<()>,
    inside: RwLock<()>,
}

/// The turn of the first delivery.
#[derive(Debug)]
pub struct Turn<'a>(
    &'a Gate,
    #[expect(dead_code, reason = "held until dropped")] tokio::sync::MutexGuard<'a, ()>,
);

impl Gate {
    /// Begins a delivery into the namespace: it is not deleted while the guard lives.
    pub async fn enter(&self) -> RwLockReadGuard<'_, ()> {
        self.inside.read().await
    }

    /// Waits until no delivery into the namespace is running: none begins while the guard lives. The next one goes alone again,
    /// since the namespace may be gone then.
    pub async fn close(&self) -> RwLockWriteGuard<'_, ()> {
        let closed = self.inside.write().await;
        self.open.store(false, Ordering::Release);
        closed
    }

    /// Waits for a turn; `None` if the gate is open.
    pub async fn pass(&self) -> Option<Turn<'_>> {
        if self.open.load(Ordering::Acquire) {
            return None;
        }
        let guard = self.turn.lock().await;
        (!self.open.load(Ordering::Acquire)).then_some(Turn(self, guard))
    }
}

impl Turn<'_> {
    /// Opens the gate: the namespace exists, and no delivery need wait any more.
    pub fn open(self) {
        self.0.open.store(true, Ordering::Release);
    }
}
