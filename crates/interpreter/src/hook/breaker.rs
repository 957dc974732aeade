//! The circuit breaker of a webhook that does not respond.

use entourage_model::object::Time;

/// So many calls in a row without an answer.
const ENOUGH: u32 = 5;

/// How long a hook is left alone, in milliseconds: at first and at most.
const PAUSE: (i64, i64) = (1_000, 60_000);

/// How long a trial may take, in milliseconds: the longest deadline of a call, and some. One that was given up by its
/// caller counts for nothing after that.
const TRIAL: i64 = 35_000;

/// What is known of one hook's health. Time is passed in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Breaker {
    /// Calls in a row without an answer.
    failures: u32,
    /// How often in a row it was left alone.
    pauses: u32,
    /// Until when it is left alone; `None`: it is called as usual.
    left_until: Option<Time>,
    /// Since when a trial is under way.
    trial: Option<Time>,
}

impl Breaker {
    /// Whether it may be called now. After a pause a single caller may try; its [`record`](Self::record) decides for all.
    ///
    /// # Errors
    /// Until when it is left alone, at least.
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

    /// What came of a call: whether it answered, be it with a refusal. A call that began before a pause, and ends in it,
    /// prolongs nothing.
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

    /// Whether it is left alone now: nothing that is asked would be sent.
    #[must_use]
    pub fn is_left_alone(&self, now: Time) -> bool {
        self.left_until.is_some_and(|until| now < until)
    }

    /// Whether it is left alone, or tried after that.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.left_until.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What happens to a breaker at a time in milliseconds.
    enum Step {
        /// Somebody wants to call, and may.
        Enters,
        /// Somebody wants to, and is told to wait until then.
        Waits(i64),
        /// A call failed.
        Fails,
        /// A call was answered.
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
