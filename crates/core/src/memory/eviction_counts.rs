//! The evictions that began, counted by cluster and reason as the bindings with their tasks are stored: for metrics, and decides nothing.
//!
//! Invariants:
//! - An eviction begins with the first stored task for its cluster. It counts once, however often the task is written afterwards.
//! - A binding that is observed for the first time, after a start or after it was created again, began its evictions nobody knows when:
//!   they do not count.
//! - A process that does not lead counts nothing: each eviction is counted by one process.
//! - The labels are bounded: the names of clusters, and the reasons of the table of reasons or `Other`.

use std::collections::BTreeMap;

use entourage_api::work::ResourceBindingSpec;

use super::problem_counts::known;
use crate::{object::Str, stored_binding::eviction_from};

/// The labels of an eviction.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Eviction {
    /// The cluster that the workload leaves.
    pub from: Str,
    /// The reason of its task; `Other` if the table of reasons lacks it.
    pub reason: &'static str,
}

/// The evictions that began since the last report.
#[derive(Clone, Debug, Default)]
pub(crate) struct EvictionCounts(BTreeMap<Eviction, u64>);

impl EvictionCounts {
    /// A binding was stored. Cost: O(1) without tasks, else O(its tasks²).
    pub(crate) fn stored(&mut self, before: &ResourceBindingSpec, after: &ResourceBindingSpec) {
        let tasks = after.graceful_eviction_tasks.iter();
        for task in tasks.filter(|task| eviction_from(before, &task.from_cluster).is_none()) {
            let eviction = Eviction {
                from: task.from_cluster.as_str().into(),
                reason: known(&task.reason),
            };
            *self.0.entry(eviction).or_default() += 1;
        }
    }

    /// The evictions that began since the last call.
    pub(crate) fn take(&mut self) -> BTreeMap<Eviction, u64> {
        std::mem::take(&mut self.0)
    }
}

#[cfg(test)]
mod tests {
    use entourage_api::work::GracefulEvictionTask;

    use super::*;

    /// Tasks: cluster, reason.
    type Tasks = &'static [(&'static str, &'static str)];

    fn spec(tasks: Tasks) -> ResourceBindingSpec {
        let tasks = tasks.iter().map(|(cluster, reason)| GracefulEvictionTask {
            from_cluster: (*cluster).to_owned(),
            reason: (*reason).to_owned(),
            ..GracefulEvictionTask::default()
        });
        ResourceBindingSpec {
            graceful_eviction_tasks: tasks.collect(),
            ..ResourceBindingSpec::default()
        }
    }

    #[test]
    fn an_eviction_counts_when_its_task_is_stored_first() {
        let cases: [(Tasks, Tasks, &[&str]); 6] = [
            (&[], &[], &[]),
            (&[], &[("m1", "TaintUntolerated")], &["m1 TaintUntolerated 1"]),
            (&[("m1", "TaintUntolerated")], &[("m1", "TaintUntolerated")], &[]),
            (
                &[("m1", "TaintUntolerated")],
                &[("m1", "ApplicationFailure")],
                &[],
            ),
            (
                &[("m1", "TaintUntolerated")],
                &[("m1", "TaintUntolerated"), ("m2", "ReasonOfAnotherVersion")],
                &["m2 Other 1"],
            ),
            (&[("m1", "TaintUntolerated")], &[], &[]),
        ];
        for (before, after, wanted) in cases {
            let mut counts = EvictionCounts::default();
            counts.stored(&spec(before), &spec(after));
            let taken = counts.take().into_iter();
            let taken: Vec<String> = taken
                .map(|(each, count)| format!("{} {} {count}", each.from, each.reason))
                .collect();
            assert_eq!(taken, wanted, "{before:?} {after:?}");
            assert!(counts.take().is_empty());
        }
    }

    #[test]
    fn evictions_of_several_bindings_from_one_cluster_add_up() {
        let mut counts = EvictionCounts::default();
        for _ in 0..3 {
            counts.stored(&spec(&[]), &spec(&[("m1", "TaintUntolerated")]));
        }
        counts.stored(&spec(&[]), &spec(&[("m1", "ClusterRecovered")]));
        let taken: Vec<_> = counts.take().into_values().collect();
        assert_eq!(taken, [1, 3]);
    }
}
