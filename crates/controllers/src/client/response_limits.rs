//! The time limit for a server to begin its response to a list or to a new watch. Pure.
//!
//! A healthy server responds in milliseconds, and some take long for some lists. So the limit is short at first, doubles with
//! each time-out of that request, and is never less than a multiple of the time of healthy responses of that server, and to that
//! request. A request that times out once therefore costs seconds, and a slow one succeeds in the end.

use std::{collections::BTreeMap, time::Duration};

/// The initial limit.
const FIRST: Duration = Duration::from_secs(5);
/// The maximum limit.
const MOST: Duration = Duration::from_secs(60);
/// The multiple of the time of healthy responses.
const TIMES: u32 = 4;
/// The factor applied to the slowest response after each faster one.
const DECAY: f64 = 0.75;

/// The response times of one server, with an entry for each kind that is listed.
#[derive(Debug, Default)]
pub(super) struct ResponseLimits {
    requests: BTreeMap<String, Answers>,
    slowest: Duration,
}

#[derive(Debug, Default)]
struct Answers {
    /// The number of time-outs in a row.
    missed: u32,
    slowest: Duration,
}

impl ResponseLimits {
    /// The time limit for the response to a request to begin.
    pub(super) fn of(&self, request: &str) -> Duration {
        let (missed, slowest) = self
            .requests
            .get(request)
            .map_or((0, Duration::ZERO), |each| (each.missed, each.slowest));
        let known = slowest.max(self.slowest) * TIMES;
        (FIRST * (1 << missed.min(4))).max(known).min(MOST)
    }

    /// Records that the response began after this time.
    pub(super) fn answered(&mut self, request: &str, took: Duration) {
        let answers = self.requests.entry(request.to_owned()).or_default();
        answers.missed = 0;
        answers.slowest = took.max(answers.slowest.mul_f64(DECAY));
        self.slowest = took.max(self.slowest.mul_f64(DECAY));
    }

    /// Records a time-out.
    pub(super) fn missed(&mut self, request: &str) {
        let answers = self.requests.entry(request.to_owned()).or_default();
        answers.missed = answers.missed.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_given_follows_from_what_answers_took_and_from_time_outs() {
        // The responses to the list of pods, and to that of secrets; the resulting limit for the list of pods, in seconds. A
        // number is the time of a response; `None` is a time-out.
        type Happened = &'static [(&'static str, Option<u64>)];
        let table: &[(Happened, u64)] = &[
            (&[], 5),
            (&[("pods", Some(0))], 5),
            (&[("pods", None)], 10),
            (&[("pods", None), ("pods", None)], 20),
            (
                &[("pods", None), ("pods", None), ("pods", None), ("pods", None)],
                60,
            ),
            (&[("pods", None), ("pods", None), ("pods", Some(1))], 5),
            (&[("secrets", None), ("secrets", None)], 5),
            (&[("pods", Some(7))], 28),
            (&[("pods", Some(30))], 60),
            (&[("secrets", Some(4))], 16),
            (
                &[("secrets", Some(4)), ("secrets", Some(0)), ("secrets", Some(0))],
                9,
            ),
            (&[("pods", Some(4)), ("pods", None), ("pods", None)], 20),
        ];
        for (happened, wanted) in table {
            let mut response_limits = ResponseLimits::default();
            for (request, took) in *happened {
                match took {
                    Some(seconds) => response_limits.answered(request, Duration::from_secs(*seconds)),
                    None => response_limits.missed(request),
                }
            }
            assert_eq!(response_limits.of("pods").as_secs(), *wanted, "{happened:?}");
        }
    }
}
