//! Generations of clients: a crash ends all clients of one generation.

use std::fmt;

use tokio::sync::watch;

/// The error of every call of a dead generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Crashed;

impl fmt::Display for Crashed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("crashed: this client belongs to a process that the fault plan has ended")
    }
}

impl std::error::Error for Crashed {}

/// Generations are numbered from 1; those up to `dead` are dead, and none is made before the one before it died.
pub(super) struct Life(watch::Sender<State>);

#[derive(Clone, Copy)]
struct State {
    generation: u64,
    dead: u64,
}

impl Default for Life {
    fn default() -> Self {
        Self(watch::Sender::new(State {
            generation: 1,
            dead: 0,
        }))
    }
}

impl Life {
    /// The generation that clients made now belong to.
    pub(super) fn generation(&self) -> u64 {
        self.0.borrow().generation
    }

    pub(super) fn is_dead(&self, generation: u64) -> bool {
        self.0.borrow().dead >= generation
    }

    pub(super) fn kill(&self, generation: u64) {
        self.0.send_if_modified(|state| {
            let news = state.dead < generation;
            state.dead = state.dead.max(generation);
            news
        });
    }

    pub(super) fn restart(&self) {
        self.0.send_modify(|state| {
            state.dead = state.generation;
            state.generation += 1;
        });
    }

    /// Resolves when `generation` is dead.
    pub(super) async fn died(&self, generation: u64) {
        let mut state = self.0.subscribe();
        // The sender lives in self, so waiting cannot fail.
        let _ = state.wait_for(|state| state.dead >= generation).await;
    }
}
