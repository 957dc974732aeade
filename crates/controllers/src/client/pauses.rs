//! The paths of a server that asked to retry later (Retry-After). Pure.
//!
//! One path is paused, not the server: the backend of one path (an aggregated API, a webhook of one namespace) does not speak
//! for the others. A server that is overloaded as a whole returns Retry-After on each path, and the limiter reacts to that.

use std::collections::HashMap;

use entourage_core::object::Time;

use crate::error::Answer;

/// The maximum number of entries; beyond it paths are retried earlier than they asked.
const MOST: usize = 10_000;

/// The paused paths, each with the end of the pause and the response.
#[derive(Default)]
pub(super) struct Pauses(HashMap<String, (Time, Answer)>);

impl Pauses {
    /// The response of a path that is still paused, with the remaining time; else `None`.
    pub(super) fn of(&mut self, uri: &str, now: Time) -> Option<Answer> {
        let path = path(uri);
        let (until, answer) = self.0.get(path)?;
        let Some(left) = u64::try_from(until.0 - now.0).ok().filter(|left| *left > 0) else {
            self.0.remove(path);
            return None;
        };
        let mut answer = answer.clone();
        answer.retry_after = Some(std::time::Duration::from_millis(left));
        Some(answer)
    }

    /// Records the response of a path. Cost: O(1); O(paths) when there are too many.
    pub(super) fn answered(&mut self, uri: &str, answer: &Answer, now: Time) {
        let Some(after) = answer.retry_after else { return };
        if self.0.len() >= MOST {
            self.0.retain(|_, (until, _)| *until > now);
        }
        if self.0.len() < MOST {
            let until = now.plus(i64::try_from(after.as_millis()).unwrap_or_default());
            self.0.insert(path(uri).to_owned(), (until, answer.clone()));
        }
    }
}

fn path(uri: &str) -> &str {
    uri.split_once('?').map_or(uri, |(path, _)| path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_path_is_paused_for_the_time_it_asked_for_and_the_others_are_not() {
        let mut pauses = Pauses::default();
        let busy = Answer::read(429, Some(3), b"");
        pauses.answered("/api/v1/pods?limit=500", &busy, Time(1_000));
        let left =
            |pauses: &mut Pauses, uri, now| pauses.of(uri, Time(now)).and_then(|answer| answer.retry_after);
        let table = [
            ("/api/v1/pods", 1_000, Some(3_000)),
            ("/api/v1/pods?limit=1", 3_500, Some(500)),
            ("/api/v1/secrets", 1_000, None),
            ("/api/v1/pods", 4_000, None),
        ];
        for (uri, now, wanted) in table {
            let wanted = wanted.map(std::time::Duration::from_millis);
            assert_eq!(left(&mut pauses, uri, now), wanted, "{uri} at {now}");
        }
    }
}
