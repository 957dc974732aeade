//! Tasks that must not end: one that panics is logged and restarted.

use std::{panic::AssertUnwindSafe, time::Duration};

use futures::FutureExt as _;
use tokio::time::sleep;
use tracing::error;

use crate::clock;

/// The delay before a task that panicked is restarted; up to half of it more.
const PAUSE: Duration = Duration::from_secs(5);

/// Runs the future of `make` until it ends by itself. After a panic `reported` runs, and a new future runs after a pause. The
/// panic's message is not logged: it may quote data.
pub async fn supervise<F, T>(what: &'static str, mut make: impl FnMut() -> F, mut reported: impl FnMut() -> T)
where
    F: Future<Output = ()>,
    T: Future<Output = ()>,
{
    // No part of a future that panicked is used again.
    while AssertUnwindSafe(make()).catch_unwind().await.is_err() {
        error!(task = what, "a task ended unexpectedly; restarting it");
        reported().await;
        sleep(PAUSE.mul_f64(1.0 + clock::jitter() / 2.0)).await;
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_task_that_panics_is_reported_and_begun_anew_after_a_pause() {
        let (made, reported, began) = (Cell::new(0), Cell::new(0), Instant::now());
        let task = || async {
            made.set(made.get() + 1);
            assert!(made.get() == 3, "a panic of the test");
        };
        supervise("test", task, || async { reported.set(reported.get() + 1) }).await;
        assert_eq!((made.get(), reported.get()), (3, 2));
        assert!(began.elapsed() >= PAUSE * 2);
    }
}
