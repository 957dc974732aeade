//! The circuit breaker of a hook that does not respond, so that it does not delay other operations.

use entourage_model::object::Time;

/// The number of calls in a row without a response that opens it.
const ENOUGH: u32 = 5;

/// The back-off in milliseconds: at first and at most.
const PAUSE: (i64, i64) = (1_000, 60_000);

/// The time limit of a trial, in milliseconds: the longest timeout of a call, and a margin. A trial that its caller dropped
/// counts for nothing after that.
const TRIAL: i64 = 35_000;

/// The state of one hook. Time is an argument.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Breaker {
    /// The number of calls in a row without a response.
    failures: u32,
    /// The number of back-offs in a row.
    pauses: u32,
    /// The end of the back-off; `None`: closed.
    left_until: Option<Time>,
    /// The start of a running trial.
    trial: Option<Time>,
}

impl Breaker {
    /// Checks that the hook may be called now. After the back-off a single caller may try; its [`record`](Self::record) decides
    /// for all.
    ///
    /// # Errors
    /// The earliest end of the back-off.
    pub fn enter(&mut self, now: Time) -> Result<(), Time> {
        let Some(until) = self.left_until else {
            return Ok(());
        };
        if now < until {
            return Err(until);
        }
        match self.trial {
            Some(since) if now < since.plus(TRIAL) => Err(since.plus(PAUSE.0).max(now.plus(1))),
            _ => {
                self.trial = Some(now);
                Ok(())
            }
        }
    }

    /// Records a call: whether the hook responded, be it with a refusal. A call that began before a back-off, and ends in it,
    /// does not extend it.
    pub fn record(&mut self, now: Time, has_answered: bool) {
        if has_answered {
            *self = Self::default();
            return;
        }
        self.failures = self.failures.saturating_add(1);
        let was_trial = self.trial.take().is_some();
        if was_trial || self.left_until.is_none() && self.failures >= ENOUGH {
            let doubled = PAUSE.0.saturating_mul(1 << self.pauses.min(10));
            self.left_until = Some(now.plus(doubled.min(PAUSE.1)));
            self.pauses = self.pauses.saturating_add(1);
        }
    }

    /// True during the back-off: no question would be sent.
    #[must_use]
    pub fn is_left_alone(&self, now: Time) -> bool {
        self.left_until.is_some_and(|until| now < until)
    }

    /// True if it is in back-off, or on trial after it.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.left_until.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An event of a breaker at a time in milliseconds.
    enum Step {
        /// A caller asks, and may call.
        Enters,
        /// A caller asks, and must wait until this time.
        Waits(i64),
        /// A call failed.
        Fails,
        /// A call got a response.
        Answers,
    }

    #[test]
    fn it_opens_after_enough_failures_tries_once_after_a_doubling_pause_and_closes_on_success() {
        use Step::{Answers, Enters, Fails, Waits};
        #[rustfmt::skip]
        let cases: &[(&str, &[(i64, Step)])] = &[
            (
                "four failures are not enough, and an answer forgets them",
                &[
                    (0, Fails), (0, Fails), (0, Fails), (0, Fails), (0, Enters), (0, Answers),
                    (1, Fails), (1, Fails), (1, Fails), (1, Fails), (1, Enters),
                ],
            ),
            (
                "five open it for a second, then one may try",
                &[
                    (0, Fails), (0, Fails), (0, Fails), (0, Fails), (10, Fails), (10, Waits(1010)),
                    (1009, Waits(1010)), (1010, Enters), (1010, Waits(2010)), (1500, Answers), (1500, Enters), (1500, Enters),
                ],
            ),
            (
                "each failed trial doubles the pause, up to a minute",
                &[
                    (0, Fails), (0, Fails), (0, Fails), (0, Fails), (0, Fails),
                    (1_000, Enters), (1_000, Fails), (1_000, Waits(3_000)),
                    (3_000, Enters), (3_000, Fails), (3_000, Waits(7_000)),
                    (7_000, Enters), (7_000, Fails), (15_000, Enters), (15_000, Fails),
                    (31_000, Enters), (31_000, Fails), (63_000, Enters), (63_000, Fails), (63_000, Waits(123_000)),
                    (123_000, Enters), (123_000, Fails), (123_000, Waits(183_000)),
                    (183_000, Enters), (183_000, Answers), (183_000, Fails), (183_000, Enters),
                ],
            ),
            (
                "what began before the pause and ends in it prolongs nothing",
                &[
                    (0, Fails), (0, Fails), (0, Fails), (0, Fails), (0, Fails),
                    (900, Fails), (900, Fails), (1_000, Enters),
                ],
            ),
            (
                "a trial that was given up is made again by another",
                &[
                    (0, Fails), (0, Fails), (0, Fails), (0, Fails), (0, Fails),
                    (1_000, Enters), (35_999, Waits(36_000)), (36_000, Enters),
                ],
            ),
        ];
        for (name, steps) in cases {
            let mut breaker = Breaker::default();
            for (at, (time, step)) in steps.iter().enumerate() {
                let now = Time(*time);
                match step {
                    Enters => assert_eq!(breaker.enter(now), Ok(()), "{name}: {at}"),
                    Waits(until) => assert_eq!(breaker.enter(now), Err(Time(*until)), "{name}: {at}"),
                    Fails => breaker.record(now, false),
                    Answers => breaker.record(now, true),
                }
            }
        }
    }
}
