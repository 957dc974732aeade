//! The problems that conditions of bindings and Clusters report, and the evictions under way, encoded on each scrape from the last published counts: a scrape never
//! sees half of them, and a problem that is over has no series.

use std::{
    fmt,
    sync::{Mutex, PoisonError},
};

use entourage_core::{
    fleet::{ConditionProblem, MemberProblems, ProblemCounts},
    object::Str,
};
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric as _},
    metrics::{MetricType, gauge::ConstGauge},
};

use super::gauge;

/// Collects the problems.
#[derive(Debug, Default)]
pub(super) struct Problems(Mutex<Snapshot>);

/// The counts as of the last publication.
#[derive(Debug, Default)]
struct Snapshot {
    bindings: Vec<(ConditionProblem, usize)>,
    copies: Vec<(Str, &'static str, usize)>,
    evicting: Vec<(Str, usize)>,
    members: Vec<(Str, MemberProblems)>,
}

impl Problems {
    /// Publishes the counts. Cost: O(members + series).
    pub(super) fn publish(&self, counts: &ProblemCounts) {
        let copies = counts.copies();
        let evicting = counts.evicting();
        let members = counts.members();
        let snapshot = Snapshot {
            bindings: counts.bindings().collect(),
            copies: copies
                .map(|(cluster, reason, count)| (cluster.clone(), reason, count))
                .collect(),
            evicting: evicting
                .map(|(cluster, count)| (cluster.clone(), count))
                .collect(),
            members: members
                .map(|(name, problems)| (name.clone(), problems.clone()))
                .collect(),
        };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = snapshot;
    }
}

impl Collector for Problems {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let snapshot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let help = "1 if the condition Ready of the Cluster is True, else 0";
        let mut metric =
            encoder.encode_descriptor("entourage_member_ready", help, None, MetricType::Gauge)?;
        for (member, problems) in &snapshot.members {
            let labels = [("member", &**member)];
            ConstGauge::new(i64::from(problems.is_ready)).encode(metric.encode_family(&labels)?)?;
        }
        let help = "1 for each condition of a Cluster that reports a problem, by condition and reason";
        let mut metric =
            encoder.encode_descriptor("entourage_member_problems", help, None, MetricType::Gauge)?;
        for (member, problems) in &snapshot.members {
            for each in &problems.conditions {
                let labels = [
                    ("member", &**member),
                    ("condition", each.condition),
                    ("reason", each.reason),
                ];
                ConstGauge::new(1_i64).encode(metric.encode_family(&labels)?)?;
            }
        }
        let help = "Bindings whose condition reports a problem, by condition and reason";
        let mut metric =
            encoder.encode_descriptor("entourage_binding_problems", help, None, MetricType::Gauge)?;
        for (problem, count) in &snapshot.bindings {
            let labels = [("condition", problem.condition), ("reason", problem.reason)];
            ConstGauge::new(gauge(*count)).encode(metric.encode_family(&labels)?)?;
        }
        let help =
            "Copies that are not applied, by member and reason, as the status of bindings reports them";
        let mut metric =
            encoder.encode_descriptor("entourage_copies_not_applied", help, None, MetricType::Gauge)?;
        for (member, reason, count) in &snapshot.copies {
            let labels = [("member", &**member), ("reason", *reason)];
            ConstGauge::new(gauge(*count)).encode(metric.encode_family(&labels)?)?;
        }
        let help = "Bindings that are being evicted from a member, by member";
        let mut metric =
            encoder.encode_descriptor("entourage_bindings_evicting", help, None, MetricType::Gauge)?;
        for (member, count) in &snapshot.evicting {
            let labels = [("member", &**member)];
            ConstGauge::new(gauge(*count)).encode(metric.encode_family(&labels)?)?;
        }
        Ok(())
    }
}
