//! Waiting for a condition.
//!
//! A limit is about progress, not about seconds: it begins anew whenever something else is seen than before, and it counts
//! the pauses between two attempts, not the time that a busy machine takes for them. The total time is bounded as well.

use std::time::Duration;

use anyhow::{Result, anyhow};
use tokio::time::{Instant, sleep};

/// The time that [`eventually`] asks while nothing changes. Long, because machines are slow at times; a step that takes long
/// on purpose says so itself.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// The first pause between two attempts, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(15), Duration::from_millis(150));

/// The maximum total time of a wait, as a multiple of its patience.
const MOST: u32 = 5;

/// Repeats `probe` until it returns no error, for at most [`PATIENCE`] without progress.
///
/// # Errors
/// Names what was waited for and the last error, which should describe the state that was seen.
pub async fn eventually<T>(what: &str, probe: impl AsyncFnMut() -> Result<T>) -> Result<T> {
    eventually_within(PATIENCE, what, probe).await
}

/// As [`eventually`], with a patience of its own: how long is waited while the same is seen, in pauses between two looks.
///
/// # Errors
/// As [`eventually`].
pub async fn eventually_within<T>(
    patience: Duration,
    what: &str,
    mut probe: impl AsyncFnMut() -> Result<T>,
) -> Result<T> {
    let began = Instant::now();
    let (mut limit, mut pause) = (Limit::new(patience), PAUSES.0);
    loop {
        let last = match probe().await {
            Ok(value) => return Ok(value),
            Err(last) => last,
        };
        let took = began.elapsed();
        if limit.is_over(&format!("{last:#}"), pause, took) {
            let waited = took.as_secs_f32();
            return Err(anyhow!("waited {waited:.0} s until {what}; last seen: {last:#}"));
        }
        sleep(pause).await;
        pause = (pause * 3 / 2).min(PAUSES.1);
    }
}

/// The end of a wait. Pure.
struct Limit {
    patience: Duration,
    /// The last state, and the sum of the pauses since it was first seen.
    seen: String,
    paused: Duration,
}

impl Limit {
    fn new(patience: Duration) -> Self {
        Self {
            patience,
            seen: String::new(),
            paused: Duration::ZERO,
        }
    }

    /// Takes in one look, after which there is a pause; the wait has taken so long in all.
    fn is_over(&mut self, seen: &str, pause: Duration, took: Duration) -> bool {
        if self.seen != seen {
            (self.seen, self.paused) = (seen.to_owned(), Duration::ZERO);
        }
        self.paused += pause;
        self.paused > self.patience || took > self.patience * MOST
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// After how many looks, each after a second, a wait of ten is over; each look takes so many seconds itself.
    fn looks(seen: impl Fn(u32) -> String, takes: u32) -> u32 {
        let mut limit = Limit::new(10 * SECOND);
        (1..)
            .find(|look| limit.is_over(&seen(*look), SECOND, SECOND * (1 + takes) * *look))
            .unwrap_or_default()
    }

    #[test]
    fn a_wait_ends_when_the_same_is_seen_for_too_long_and_goes_on_while_there_is_progress() {
        let same = |_| "1 of 3".to_owned();
        let slow = |look: u32| format!("{} of 9", look / 6);
        let restless = |look: u32| format!("{look}");
        let table = [
            ("the same", looks(same, 0), 11),
            (
                "the same, on a machine that is three times as slow",
                looks(same, 2),
                11,
            ),
            ("something new after every six looks", looks(slow, 0), 51),
            ("always something else", looks(restless, 0), 51),
        ];
        for (what, looks, wanted) in table {
            assert_eq!(looks, wanted, "{what}");
        }
    }
}
