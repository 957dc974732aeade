//! What people taught us of kinds, as the core last put it together: for whoever reads objects.

use std::sync::{Arc, PoisonError, RwLock};

use entourage_core::{
    interpreter::{Interpretation, Interpreter},
    object::Gvk,
    observation::Watch,
};

/// Shared by everything that reads objects. Cheap to clone; clones share everything.
#[derive(Clone, Debug, Default)]
pub struct Taught(Arc<RwLock<Arc<Interpreter>>>);

impl Taught {
    /// What is taught of a kind now. Cost: O(log customized kinds).
    #[must_use]
    pub fn of(&self, gvk: &Gvk) -> Interpretation {
        self.0.read().unwrap_or_else(PoisonError::into_inner).of(gvk)
    }

    /// What is taught of the kind that a watch reads.
    #[must_use]
    pub fn to(&self, watch: &Watch) -> Interpretation {
        match watch {
            Watch::Templates(gvk) | Watch::Copies(_, gvk) => self.of(gvk),
            _ => Interpretation::default(),
        }
    }

    /// The core put it together anew. To be told before the watches that it concerns are started again.
    pub fn tell(&self, interpreter: Interpreter) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(interpreter);
    }
}
