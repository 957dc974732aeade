//! The namespaces of a member that deliveries went into, so that a missing one is created once, and none is deleted while a
//! copy is on its way into it.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use entourage_core::object::Str;
use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

/// What was learnt of a member's namespaces: whether a delivery went into each.
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

/// Lets one delivery at a time into a namespace until the first got through.
#[derive(Debug, Default)]
pub struct Gate {
    open: AtomicBool,
    turn: tokio::sync::Mutex<()>,
    inside: RwLock<()>,
}

/// The delivery that goes first.
#[derive(Debug)]
pub struct Turn<'a>(
    &'a Gate,
    #[expect(dead_code, reason = "held until dropped")] tokio::sync::MutexGuard<'a, ()>,
);

impl Gate {
    /// Begins a delivery into the namespace: it is not deleted while this lives.
    pub async fn enter(&self) -> RwLockReadGuard<'_, ()> {
        self.inside.read().await
    }

    /// Waits until no delivery into the namespace is under way: none begins while this lives. The next one goes alone again, since
    /// the namespace may be gone then.
    pub async fn close(&self) -> RwLockWriteGuard<'_, ()> {
        let closed = self.inside.write().await;
        self.open.store(false, Ordering::Release);
        closed
    }

    /// Waits for one's turn; `None` when the gate is open.
    pub async fn pass(&self) -> Option<Turn<'_>> {
        if self.open.load(Ordering::Acquire) {
            return None;
        }
        let guard = self.turn.lock().await;
        (!self.open.load(Ordering::Acquire)).then_some(Turn(self, guard))
    }
}

impl Turn<'_> {
    /// The namespace is there: nobody need wait any more.
    pub fn open(self) {
        self.0.open.store(true, Ordering::Release);
    }
}
