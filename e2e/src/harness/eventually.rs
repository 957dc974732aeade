//! Waiting for what must become true.

use std::time::Duration;

use anyhow::{Result, anyhow};
use tokio::time::{Instant, sleep};

/// How long [`eventually`] asks. Long, because machines are slow at times; what takes long on purpose says so itself.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// The first pause between two looks, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(15), Duration::from_millis(150));

/// Asks until the answer is no error, at most for [`PATIENCE`].
///
/// # Errors
/// Names what was waited for and the last error, which should describe the state that was seen.
pub async fn eventually<T>(what: &str, probe: impl AsyncFnMut() -> Result<T>) -> Result<T> {
    eventually_within(PATIENCE, what, probe).await
}

/// As [`eventually`], with a deadline of its own.
///
/// # Errors
/// As [`eventually`].
pub async fn eventually_within<T>(
    deadline: Duration,
    what: &str,
    mut probe: impl AsyncFnMut() -> Result<T>,
) -> Result<T> {
    let until = Instant::now() + deadline;
    let mut pause = PAUSES.0;
    loop {
        match probe().await {
            Ok(value) => return Ok(value),
            Err(last) if Instant::now() >= until => {
                let waited = deadline.as_secs_f32();
                return Err(anyhow!("waited {waited:.0} s until {what}; last seen: {last:#}"));
            }
            Err(_) => {}
        }
        sleep(pause).await;
        pause = (pause * 3 / 2).min(PAUSES.1);
    }
}
