//! Timeouts until a server begins to respond to a list or a watch. Pure.
//!
//! A healthy server answers in milliseconds, and some take long for some lists. So the time given is short at first, doubles
//! with each time-out of that request, and is never less than a multiple of what healthy answers of that server, and to that
//! request, took. A request that times out once therefore costs seconds, and one that takes long is answered in the end.

use std::{collections::BTreeMap, time::Duration};

/// What is given at first.
const FIRST: Duration = Duration::from_secs(5);
/// What is given at most.
const MOST: Duration = Duration::from_secs(60);
/// How many times what healthy answers took.
const TIMES: u32 = 4;
/// What is left of the slowest answer after each faster one.
const DECAY: f64 = 0.75;

/// What is known of one server. Holds an entry for each kind that is listed.
#[derive(Debug, Default)]
pub(super) struct Patience {
    requests: BTreeMap<String, Answers>,
    slowest: Duration,
}

#[derive(Debug, Default)]
struct Answers {
    /// How often in a row there was none in time.
    missed: u32,
    slowest: Duration,
}

impl Patience {
    /// How long the answer to a request may take to begin.
    pub(super) fn of(&self, request: &str) -> Duration {
        let (missed, slowest) = self
            .requests
            .get(request)
            .map_or((0, Duration::ZERO), |each| (each.missed, each.slowest));
        let known = slowest.max(self.slowest) * TIMES;
        (FIRST * (1 << missed.min(4))).max(known).min(MOST)
    }

    /// It began to answer after this time.
    pub(super) fn answered(&mut self, request: &str, took: Duration) {
        let answers = self.requests.entry(request.to_owned()).or_default();
        answers.missed = 0;
        answers.slowest = took.max(answers.slowest.mul_f64(DECAY));
        self.slowest = took.max(self.slowest.mul_f64(DECAY));
    }

    /// There was no response in time.
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
        // What happened to the list of pods, and to that of secrets; what is given to the list of pods then, in seconds.
        // A number is how long an answer took; `None` is a time-out.
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
            let mut patience = Patience::default();
            for (request, took) in *happened {
                match took {
                    Some(seconds) => patience.answered(request, Duration::from_secs(*seconds)),
                    None => patience.missed(request),
                }
            }
            assert_eq!(patience.of("pods").as_secs(), *wanted, "{happened:?}");
        }
    }
}
