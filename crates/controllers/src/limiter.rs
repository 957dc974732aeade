//! The limit of concurrent requests to one API server: additive increase, multiplicative decrease.
//!
//! No constant fits both a laptop and a large cluster (architecture 2.7). The limit grows by one per window of calls as long as
//! latency stays near the recent best, and shrinks on overload (429, 5xx, no response) or when latency rises. Time is an
//! argument.

use std::time::Duration;

use entourage_core::object::Time;

/// The sign of a call about the server's load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallOutcome {
    /// Any response that is no sign of overload.
    Answered,
    /// 429, 5xx or no response in time.
    Overloaded,
}

/// The range of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The minimum.
    pub least: usize,
    /// The initial value.
    pub start: usize,
    /// The maximum.
    pub most: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            least: 2,
            start: 16,
            most: 128,
        }
    }
}

/// The state for one API server.
#[derive(Clone, Debug)]
pub struct Limiter {
    bounds: Bounds,
    limit: f64,
    window: Window,
    /// The best window mean of the current and of the previous half of [`MEMORY`], in microseconds. Means and not single calls:
    /// a GET among POSTs does not predict the POSTs.
    floor: [Option<u64>; 2],
    turned: Time,
    cut: Time,
}

#[derive(Clone, Copy, Debug, Default)]
struct Window {
    calls: u32,
    micros: u64,
    /// Calls that found at least half of the limit in use: without load, success proves nothing.
    busy: u32,
}

/// The time for which a best mean counts, in milliseconds.
const MEMORY: i64 = 10_000;
/// Overload responses within this time count once, in milliseconds: they arrive in bursts.
const ONE_CUT: i64 = 100;
/// The factor of a decrease.
const DECREASE: f64 = 0.7;
/// A mean up to this multiple of the floor lets the limit grow.
const NEAR: u64 = 2;
/// A mean above this multiple of the floor shrinks it, if it is also [`FAR_MICROS`] above.
const FAR: u64 = 3;
/// Differences below this are noise.
const FAR_MICROS: u64 = 20_000;

impl Limiter {
    /// A limiter at its start value.
    #[must_use]
    pub fn new(bounds: Bounds) -> Self {
        let limit = bounds.start.clamp(bounds.least, bounds.most) as f64;
        let (turned, cut) = (Time(0), Time(i64::MIN));
        Self {
            bounds,
            limit,
            window: Window::default(),
            floor: [None; 2],
            turned,
            cut,
        }
    }

    /// The number of calls that may be in flight now.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.limit as usize
    }

    /// Records the end of one call; `in_flight` counts it.
    pub fn record(&mut self, now: Time, latency: Duration, in_flight: usize, outcome: CallOutcome) {
        if outcome == CallOutcome::Overloaded {
            if now.0.saturating_sub(self.cut.0) >= ONE_CUT {
                self.cut = now;
                self.decrease(self.bounds.least);
            }
            return;
        }
        self.window.calls += 1;
        self.window.micros += u64::try_from(latency.as_micros())
            .unwrap_or(u64::MAX / 1024)
            .min(60_000_000);
        self.window.busy += u32::from(in_flight * 2 >= self.limit());
        if self.window.calls as usize >= self.limit().max(8) {
            let window = std::mem::take(&mut self.window);
            self.evaluate(now, window);
        }
    }

    fn evaluate(&mut self, now: Time, window: Window) {
        let mean = window.micros / u64::from(window.calls.max(1));
        if now.0 - self.turned.0 >= MEMORY / 2 {
            self.turned = now;
            self.floor = [None, self.floor[0]];
        }
        self.floor[0] = Some(self.floor[0].map_or(mean, |best| best.min(mean)));
        let floor = self.floor.iter().flatten().min().copied().unwrap_or(mean);
        if mean > floor * FAR && mean > floor + FAR_MICROS {
            self.decrease(self.bounds.start / 2);
        } else if window.busy * 2 >= window.calls && (mean <= floor * NEAR || mean <= floor + FAR_MICROS / 4)
        {
            self.limit = (self.limit + 1.0).min(self.bounds.most as f64);
        }
    }

    /// Decreases the limit, not below `floor`, and never up. Latency alone does not go below half of the start: on a machine
    /// with a busy CPU latency rises without the server being at fault.
    fn decrease(&mut self, floor: usize) {
        let floor = floor.max(self.bounds.least) as f64;
        self.limit = (self.limit * DECREASE).max(floor.min(self.limit));
        self.window = Window::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(limiter: &mut Limiter, from: i64, calls: usize, millis: u64, busy: bool) {
        for call in 0..calls {
            let in_flight = if busy { limiter.limit() } else { 1 };
            let now = Time(from + i64::try_from(call).unwrap_or(0));
            limiter.record(
                now,
                Duration::from_millis(millis),
                in_flight,
                CallOutcome::Answered,
            );
        }
    }

    #[test]
    fn it_grows_by_one_per_window_while_latency_stays_near_the_floor() {
        let mut limiter = Limiter::new(Bounds::default());
        feed(&mut limiter, 0, 16 + 17 + 18, 10, true);
        assert_eq!(limiter.limit(), 19);
    }

    #[test]
    fn it_does_not_grow_without_load() {
        let mut limiter = Limiter::new(Bounds::default());
        feed(&mut limiter, 0, 1000, 10, false);
        assert_eq!(limiter.limit(), 16);
    }

    #[test]
    fn it_shrinks_when_latency_leaves_the_floor() {
        let mut limiter = Limiter::new(Bounds::default());
        feed(&mut limiter, 0, 16, 10, true);
        feed(&mut limiter, 20, 17, 100, true);
        assert_eq!(limiter.limit(), 11);
    }

    #[test]
    fn latency_alone_leaves_half_of_the_start() {
        let mut limiter = Limiter::new(Bounds::default());
        feed(&mut limiter, 0, 16, 1, true);
        for round in 1..50 {
            feed(&mut limiter, round * 20, 20, 500, true);
        }
        assert_eq!(limiter.limit(), 8);
        limiter.record(Time(2000), Duration::ZERO, 1, CallOutcome::Overloaded);
        assert_eq!(limiter.limit(), 5);
    }

    #[test]
    fn a_crowd_of_overload_answers_counts_once() {
        let mut limiter = Limiter::new(Bounds::default());
        for _ in 0..10 {
            limiter.record(Time(5), Duration::ZERO, 1, CallOutcome::Overloaded);
        }
        assert_eq!(limiter.limit(), 11);
        limiter.record(Time(5 + ONE_CUT), Duration::ZERO, 1, CallOutcome::Overloaded);
        assert_eq!(limiter.limit(), 7);
    }

    #[test]
    fn it_stays_within_its_bounds() {
        let bounds = Bounds {
            least: 2,
            start: 4,
            most: 6,
        };
        let mut limiter = Limiter::new(bounds);
        feed(&mut limiter, 0, 1000, 1, true);
        assert_eq!(limiter.limit(), 6);
        for at in 0..100 {
            limiter.record(
                Time(10_000 + at * 1000),
                Duration::ZERO,
                1,
                CallOutcome::Overloaded,
            );
        }
        assert_eq!(limiter.limit(), 2);
    }

    #[test]
    fn an_old_floor_is_forgotten() {
        let mut limiter = Limiter::new(Bounds::default());
        feed(&mut limiter, 0, 16, 1, true);
        feed(&mut limiter, 6_000, 100, 50, true);
        let low = limiter.limit();
        feed(&mut limiter, 12_000, 20, 50, true);
        feed(&mut limiter, 18_000, 200, 50, true);
        assert!(limiter.limit() > low, "{} > {low}", limiter.limit());
    }
}
