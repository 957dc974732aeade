//! Unrest: a namespace that was as wanted and is changed again and again, by another hub or a webhook of the member.
//!
//! The first change is put right at once, the next after 250 ms, then twice as long each time, up to a minute: nobody wins
//! such a fight, and nobody is to pay for it. A minute as wanted ends it.

use crate::object::Time;

const FIRST_PAUSE: i64 = 250;
const LONGEST_PAUSE: i64 = 60_000;
const CALM: i64 = 60_000;

/// How restless a namespace of a member is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unrest {
    changes: u32,
    not_before: Time,
    calm_since: Option<Time>,
}

impl Unrest {
    /// It is not as wanted although it was, or was just written.
    pub(crate) fn changed(&mut self, now: Time) {
        if self
            .calm_since
            .take()
            .is_some_and(|since| since.plus(CALM) <= now)
        {
            self.changes = 0;
        }
        // Until it is written again it is as bad as it is.
        if now < self.not_before {
            return;
        }
        let pause = match self.changes {
            0 => 0,
            before => FIRST_PAUSE.saturating_mul(1 << (before - 1).min(16)),
        };
        self.changes = self.changes.saturating_add(1);
        self.not_before = now.plus(pause.min(LONGEST_PAUSE));
    }

    /// It is as wanted.
    pub(crate) fn settled(&mut self, now: Time) {
        self.calm_since.get_or_insert(now);
    }

    /// Until when it is left alone, if that lies ahead.
    pub(crate) fn until(&self, now: Time) -> Option<Time> {
        Some(self.not_before).filter(|time| now < *time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_minute_and_a_minute_of_calm_ends_them() {
        let (mut unrest, mut now) = (Unrest::default(), Time(1));
        let mut pauses = Vec::new();
        for _ in 0..11 {
            unrest.changed(now);
            let until = unrest.until(now).unwrap_or(now);
            pauses.push(until.0 - now.0);
            now = until;
            unrest.settled(now);
        }
        assert_eq!(
            pauses,
            [
                0, 250, 500, 1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000
            ]
        );
        now = now.plus(CALM);
        unrest.changed(now);
        assert_eq!(unrest.until(now), None);
    }

    #[test]
    fn what_happens_during_a_pause_does_not_make_it_longer() {
        let mut unrest = Unrest::default();
        for time in 0..200 {
            unrest.changed(Time(time));
        }
        assert_eq!(unrest.until(Time(200)), Some(Time(251)));
    }
}
