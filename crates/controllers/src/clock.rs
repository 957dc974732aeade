//! The time that is passed to the core, and jitter. The only place that reads either.

use std::{
    hash::{BuildHasher as _, Hasher as _, RandomState},
    sync::OnceLock,
    time::SystemTime,
};

use entourage_core::object::Time;
use tokio::time::Instant;

/// The wall clock at the first call, advanced by the monotonic clock: it never goes back, and in tests it is paused together
/// with Tokio's.
static START: OnceLock<(SystemTime, Instant)> = OnceLock::new();

/// The current time.
#[must_use]
pub fn now() -> Time {
    let (wall, instant) = *START.get_or_init(|| (SystemTime::now(), Instant::now()));
    let since = wall.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default() + instant.elapsed();
    Time(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// The current time in nanoseconds since 1970.
#[must_use]
pub fn nanos() -> u64 {
    let (wall, instant) = *START.get_or_init(|| (SystemTime::now(), Instant::now()));
    let since = wall.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default() + instant.elapsed();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// A duration in milliseconds.
#[must_use]
pub fn millis(duration: std::time::Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// Milliseconds as a duration; a negative number is none.
#[must_use]
pub fn duration(millis: i64) -> std::time::Duration {
    std::time::Duration::from_millis(u64::try_from(millis).unwrap_or(0))
}

/// The instant at which [`now`] will be `time`; the current one for a time in the past.
#[must_use]
pub fn instant(time: Time) -> Instant {
    let millis = u64::try_from(time.0 - now().0).unwrap_or(0);
    Instant::now() + std::time::Duration::from_millis(millis)
}

/// A number from 0 to 1, to spread timers; not for secrets.
#[must_use]
pub fn jitter() -> f64 {
    (RandomState::new().build_hasher().finish() >> 11) as f64 / (1_u64 << 53) as f64
}
