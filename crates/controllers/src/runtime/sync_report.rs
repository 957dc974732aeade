//! The log of lists that are missing for long: until they arrive the process is not ready, and what depends on them waits.

use entourage_core::{
    object::Time,
    observation::{Server, Watch},
};

use crate::client::path::Path;

/// The time after which missing lists are reported, in milliseconds: lists are late at a start, and fail for moments.
const PATIENCE: i64 = 30_000;
/// The maximum number of lists named.
const NAMED: usize = 5;

/// The last report.
#[derive(Debug, Default)]
pub(super) struct SyncReport {
    /// The time since when lists are missing.
    since: Option<Time>,
    is_told: bool,
}

/// The report that is due.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// Lists are missing for long.
    Missing,
    /// All lists are complete again.
    Complete,
}

impl SyncReport {
    /// Notes whether all lists are synced; returns the report that is due, once for each transition.
    pub(super) fn note(&mut self, is_synced: bool, now: Time) -> Option<Due> {
        if is_synced {
            self.since = None;
            return std::mem::take(&mut self.is_told).then_some(Due::Complete);
        }
        let since = *self.since.get_or_insert(now);
        let is_due = !self.is_told && now >= since.plus(PATIENCE);
        self.is_told |= is_due;
        is_due.then_some(Due::Missing)
    }
}

/// The lists as a text: the server and the resource of each, a few of them.
pub(super) fn named(lists: &[Watch]) -> String {
    let of = |watch: &Watch| {
        let resource = Path::watched(watch).resource;
        match watch.server() {
            Server::Hub => format!("{resource} of the hub"),
            Server::Member(cluster) => format!("{resource} of {cluster}"),
        }
    };
    let mut named: Vec<String> = lists.iter().take(NAMED).map(of).collect();
    if let Some(more) = lists.len().checked_sub(NAMED).filter(|more| *more > 0) {
        named.push(format!("and {more} more"));
    }
    named.join(", ")
}

#[cfg(test)]
mod tests {
    use entourage_core::object::Gvk;

    use super::*;

    #[test]
    fn lists_that_are_missing_for_long_are_reported_once_and_so_is_their_arrival() {
        let mut report = SyncReport::default();
        // True if all lists are synced, the time in seconds, the report.
        let table = [
            (false, 0, None),
            (false, 29, None),
            (true, 29, None),
            (false, 30, None),
            (false, 60, Some(Due::Missing)),
            (false, 90, None),
            (true, 91, Some(Due::Complete)),
            (true, 92, None),
            (false, 93, None),
            (false, 123, Some(Due::Missing)),
        ];
        for (is_synced, seconds, wanted) in table {
            assert_eq!(
                report.note(is_synced, Time(seconds * 1_000)),
                wanted,
                "at {seconds} s"
            );
        }
    }

    #[test]
    fn a_few_missing_lists_are_named_with_their_server() {
        let mut lists = vec![
            Watch::Policies,
            Watch::Copies("member1".into(), Gvk::new("apps/v1", "Deployment")),
        ];
        assert_eq!(
            named(&lists),
            "propagationpolicies of the hub, deployments of member1"
        );
        lists.extend((0..5).map(|_| Watch::Clusters));
        assert!(
            named(&lists).ends_with("clusters of the hub, and 2 more"),
            "{}",
            named(&lists)
        );
    }
}
