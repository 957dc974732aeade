//! The cut-off of the hub: members that stop responding together are hardly down together.
//!
//! When more than half of the members, and at least [`LEAST`], began to fail within one failure threshold of each other, the
//! fault is most likely on the hub's side: its network, its DNS, a proxy. Then Ready of each of them becomes Unknown with the
//! reason `HubCutOff`, no taint follows from it, and so nothing is evicted. Invariants:
//!
//! - Only members that were ready count: a member that was down before is down, which proves nothing about the hub. After a
//!   restart, therefore, the stored state counts, and not that everything fails since the process began.
//! - Only failures that may be the hub's fault count: a member that responds and refuses our credentials, or reports that it is
//!   not healthy, is reachable.
//! - While it lasts, every member that begins to fail belongs to it.
//! - The time for which the hub was cut off does not count: for a member that still fails when it is over, the failure
//!   threshold begins anew.

use std::collections::BTreeSet;

use crate::object::{Str, Time};

/// The minimum number of members that must stop responding together: of two, both may be down.
const LEAST: usize = 3;

/// The members that stopped answering together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CutOff {
    pub(crate) together: BTreeSet<Str>,
    /// The number of members that count.
    among: usize,
    /// The time when the first of them began to fail.
    pub(crate) since: Option<Time>,
}

impl CutOff {
    /// The message in the condition of a Cluster; `None` if it does not belong to them.
    pub(crate) fn message(&self, cluster: &str) -> Option<String> {
        self.together.contains(cluster).then(|| {
            format!(
                "{} of {} members stopped responding at the same time: the fault is most likely on the side of the \
                 hub (its \
                 network, DNS or proxy). Nothing is tainted or evicted because of it; if these clusters are down, taint them \
                 with kubectl",
                self.together.len(),
                self.among
            )
        })
    }
}

/// The members that began to fail within the threshold of each other, or since an earlier cut-off began, if they are enough.
pub(crate) fn together(
    counted: &[(&Str, Option<Time>)],
    lasts_since: Option<Time>,
    threshold: i64,
) -> CutOff {
    let mut begins: Vec<Time> = counted.iter().filter_map(|(_, since)| *since).collect();
    begins.sort_unstable();
    let near = |since: Time| {
        let (first, last) = (since.plus(-threshold), since.plus(threshold));
        let low = begins.partition_point(|each| *each < first);
        begins.partition_point(|each| *each <= last) - low
    };
    let lasting = begins.len() - begins.partition_point(|each| lasts_since.is_none_or(|since| *each < since));
    let are_enough = |count: usize| count >= LEAST && count * 2 > counted.len();
    let belongs = |since: Time| {
        are_enough(near(since)) || (are_enough(lasting) && lasts_since.is_some_and(|began| since >= began))
    };
    let belonging = counted
        .iter()
        .filter_map(|(name, since)| since.filter(|since| belongs(*since)).map(|since| (*name, since)));
    let belonging: Vec<(&Str, Time)> = belonging.collect();
    let first = belonging.iter().map(|(_, since)| *since).min();
    CutOff {
        among: if belonging.is_empty() { 0 } else { counted.len() },
        // It began when the first one failed, even if that one responds again.
        since: first.map(|first| lasts_since.map_or(first, |since| since.min(first))),
        together: belonging.into_iter().map(|(name, _)| name.clone()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The members of a cut-off, given the seconds at which each began to fail; `None` responds.
    fn who(fails: &[Option<i64>], lasts_since: Option<i64>) -> Vec<usize> {
        let names: Vec<Str> = (0..fails.len()).map(|at| at.to_string().into()).collect();
        let second = |each: i64| Time(each * 1_000);
        let counted: Vec<_> = names
            .iter()
            .zip(fails.iter().map(|each| each.map(second)))
            .collect();
        let found = together(&counted, lasts_since.map(second), 30_000);
        assert_eq!(found.together.is_empty(), found.since.is_none());
        found
            .together
            .iter()
            .map(|name| name.parse().expect("number"))
            .collect()
    }

    #[test]
    fn more_than_half_and_at_least_three_that_begin_together_are_cut_off() {
        type Case<'a> = (&'a str, &'a [Option<i64>], Option<i64>, &'a [usize]);
        let table: [Case<'_>; 10] = [
            ("nobody fails", &[None, None, None], None, &[]),
            ("two are too few", &[Some(1), Some(2)], None, &[]),
            ("all three", &[Some(1), Some(12), Some(3)], None, &[0, 1, 2]),
            (
                "half is no majority",
                &[Some(1), Some(2), Some(3), None, None, None],
                None,
                &[],
            ),
            (
                "a majority",
                &[Some(1), Some(2), Some(3), None, None],
                None,
                &[0, 1, 2],
            ),
            ("one by one", &[Some(0), Some(40), Some(80), None], None, &[]),
            (
                "who was down long before is down",
                &[Some(0), Some(500), Some(501), Some(502)],
                None,
                &[1, 2, 3],
            ),
            (
                "at the threshold",
                &[Some(0), Some(30), Some(30)],
                None,
                &[0, 1, 2],
            ),
            (
                "who fails later belongs to one that lasts",
                &[Some(1), Some(2), Some(90), None],
                Some(1),
                &[0, 1, 2],
            ),
            (
                "and to none that is over",
                &[Some(1), None, Some(90), None],
                Some(1),
                &[],
            ),
        ];
        for (what, fails, lasts, wanted) in table {
            assert_eq!(who(fails, lasts), wanted, "{what}");
        }
    }
}
