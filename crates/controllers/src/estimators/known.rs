//! The state of the estimator of one member: its address and connection, its turns, and whether it is left alone.

use std::{sync::Arc, time::Duration};

use entourage_core::{interpreter::hook::Breaker, object::Time};
use tokio::{sync::Semaphore, time::Instant};

use super::call::Client;

/// The maximum number of concurrent calls of one estimator: one that hangs takes no turns from the others.
pub(super) const TURNS: usize = 4;
/// The time that an address is used before the Service is read again.
const LOCATED: Duration = Duration::from_secs(60);
/// The time for which a member without an estimator is not asked.
const ABSENT: Duration = Duration::from_secs(60);

/// The state of an estimator.
pub(super) struct Known {
    address: Option<(Address, Instant)>,
    /// Its connection, which nothing else uses: after a time-out it may be lost, and another one is made.
    client: Client,
    /// The turns of its calls.
    pub(super) turns: Arc<Semaphore>,
    breaker: Breaker,
    /// The number of times that the breaker opened, or permitted a trial: a call from before says nothing new.
    period: u64,
    /// It is there no earlier.
    absent_until: Option<Instant>,
    /// True if it answered the last question with an error.
    refuses: bool,
    pub(super) used: Instant,
}

/// The host and port of an estimator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) at: String,
    /// True if no Service of the hub says that there is an estimator.
    pub(super) is_guessed: bool,
}

/// A call that may be made.
pub(super) struct Call {
    pub(super) client: Client,
    period: u64,
}

/// The kind of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The member has no estimator.
    Absent,
    /// The estimator answers with an error, which may be about the question.
    Refuses,
    /// The estimator as a whole fails.
    Out,
    /// There is no answer in time.
    Late,
}

/// A change of state that is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transition {
    /// It is left alone from now on.
    Fails,
    /// It answers again.
    Recovers,
    /// It answers with errors from now on.
    Refuses,
}

impl Known {
    pub(super) fn new(client: Client) -> Self {
        Self {
            address: None,
            client,
            turns: Arc::new(Semaphore::new(TURNS)),
            breaker: Breaker::default(),
            period: 0,
            absent_until: None,
            refuses: false,
            used: Instant::now(),
        }
    }

    /// The address, if it was found not long ago.
    pub(super) fn address(&self) -> Option<Address> {
        let (address, at) = self.address.as_ref()?;
        (at.elapsed() < LOCATED).then(|| address.clone())
    }

    pub(super) fn found(&mut self, address: Address) {
        self.address = Some((address, Instant::now()));
    }

    /// True if it would not be called now.
    pub(super) fn is_left_alone(&self, now: Time) -> bool {
        self.is_absent() || self.breaker.is_left_alone(now)
    }

    /// A call, if one may be made now.
    pub(super) fn enter(&mut self, now: Time) -> Option<Call> {
        if self.is_absent() {
            return None;
        }
        let is_trial = self.breaker.is_open();
        self.breaker.enter(now).ok()?;
        self.period += u64::from(is_trial);
        Some(Call {
            client: self.client.clone(),
            period: self.period,
        })
    }

    /// Records the end of a call. Returns what is to be reported.
    pub(super) fn record(&mut self, call: &Call, failure: Option<Kind>, now: Time) -> Option<Transition> {
        let was_open = self.breaker.is_open();
        let did_refuse = std::mem::replace(&mut self.refuses, failure == Some(Kind::Refuses));
        match failure {
            None | Some(Kind::Refuses) => self.breaker.record(now, true),
            Some(Kind::Absent) => {
                self.address = None;
                self.absent_until = Some(Instant::now() + ABSENT);
                self.breaker = Breaker::default();
                return None;
            }
            Some(kind) => {
                self.address = None;
                if kind == Kind::Late {
                    self.client = self.client.renewed();
                }
                if call.period == self.period {
                    self.breaker.record(now, false);
                }
            }
        }
        let is_open = self.breaker.is_open();
        self.period += u64::from(is_open && !was_open);
        match (was_open, is_open) {
            (false, true) => Some(Transition::Fails),
            _ if self.refuses && !did_refuse => Some(Transition::Refuses),
            (true, false) => Some(Transition::Recovers),
            _ => None,
        }
    }

    fn is_absent(&self) -> bool {
        self.absent_until.is_some_and(|until| Instant::now() < until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimators::trust;

    fn known() -> Known {
        Known::new(Client::new(trust::config(None).unwrap(), true))
    }

    /// Fails five times in a row, with calls that begin together.
    fn fails(known: &mut Known, now: Time) -> Vec<Call> {
        let calls: Vec<Call> = (0..5).map(|_| known.enter(now).unwrap()).collect();
        for (at, call) in calls.iter().enumerate() {
            let reported = known.record(call, Some(Kind::Out), now);
            assert_eq!(reported, (at == 4).then_some(Transition::Fails));
        }
        calls
    }

    #[tokio::test]
    async fn a_call_from_before_the_back_off_does_not_end_the_trial_after_it() {
        let mut known = known();
        let old = fails(&mut known, Time(0));
        assert!(known.is_left_alone(Time(999)) && known.enter(Time(999)).is_none());
        let trial = known.enter(Time(1_000)).unwrap();
        assert_eq!(known.record(&old[0], Some(Kind::Late), Time(1_100)), None);
        assert!(!known.is_left_alone(Time(1_101)), "the trial goes on");
        assert!(known.enter(Time(1_101)).is_none(), "and it is the only one");
        assert_eq!(
            known.record(&trial, None, Time(1_200)),
            Some(Transition::Recovers)
        );
        assert!(known.enter(Time(1_201)).is_some());
    }

    #[tokio::test]
    async fn a_failed_trial_prolongs_the_back_off() {
        let mut known = known();
        fails(&mut known, Time(0));
        let trial = known.enter(Time(1_000)).unwrap();
        assert_eq!(known.record(&trial, Some(Kind::Late), Time(1_100)), None);
        assert!(known.is_left_alone(Time(3_099)) && !known.is_left_alone(Time(3_100)));
    }

    #[tokio::test]
    async fn errors_are_reported_once_and_a_member_without_an_estimator_never() {
        let mut known = known();
        let call = known.enter(Time(0)).unwrap();
        for (failure, want) in [
            (Some(Kind::Refuses), Some(Transition::Refuses)),
            (Some(Kind::Refuses), None),
            (None, None),
            (Some(Kind::Refuses), Some(Transition::Refuses)),
            (Some(Kind::Absent), None),
        ] {
            assert_eq!(known.record(&call, failure, Time(1)), want, "{failure:?}");
        }
        assert!(known.is_left_alone(Time(1)) && known.enter(Time(1)).is_none());
    }
}
