//! The problems that stored conditions of bindings and Clusters report, and the evictions under way, counted as they change: for metrics,
//! and decides nothing.
//!
//! Invariants:
//! - At each moment the counts are those of a recount over all stored bindings and Clusters. A binding that is being deleted counts
//!   for nothing: its status is not written any more.
//! - The labels are bounded: the types in [`OF_BINDINGS`] and [`OF_CLUSTERS`], the reasons of [`reason::ALL`] or [`OTHER`], and the names of
//!   clusters.
//! - A binding without a problem and without an eviction takes no room.

use std::collections::{BTreeMap, BTreeSet};

use entourage_api::{
    cluster::Cluster,
    keys::{condition, reason},
    work::{AggregatedStatusItem, NotAppliedReason, ResourceBinding},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::object::{ResourceId, Str};

/// The conditions of a binding that are counted, and the status of each that reports no problem.
const OF_BINDINGS: &[(&str, &str)] = &[
    (condition::SCHEDULED, "True"),
    (condition::FULLY_APPLIED, "True"),
    (condition::DEPENDENCIES_READY, "True"),
    (condition::HEALTHY, "True"),
    (condition::INTERPRETED, "True"),
    (condition::EVICTION_BLOCKED, "False"),
    (condition::DEPENDENCY_POLICY_CONFLICT, "False"),
];

/// The conditions of a Cluster that are counted, and the status of each that reports no problem.
const OF_CLUSTERS: &[(&str, &str)] = &[
    (condition::READY, "True"),
    (condition::COMPLETE_API_ENABLEMENTS, "True"),
    (condition::COPIES_WATCHED, "True"),
    (condition::AGENT_WATCHED, "True"),
    (condition::CAPACITY_WATCHED, "True"),
    (condition::ENDPOINTS_COLLECTED, "True"),
    (condition::RELEASED, "True"),
    (condition::REMOVALS_PAUSED, "False"),
];

/// The reason of a condition whose own one is not in the table of reasons: another version wrote it.
const OTHER: &str = "Other";

/// The reason of a copy that is not applied and whose status has a message alone: an earlier version wrote it, or the definition on the
/// hub lacks the field. `entourage get copies` shows the same word.
const NOT_APPLIED: &str = "NotApplied";

/// A condition that reports a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConditionProblem {
    /// The type of the condition.
    pub condition: &'static str,
    /// Its reason; `Other` if the table of reasons lacks it.
    pub reason: &'static str,
}

/// The problems of one Cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemberProblems {
    /// True if its condition Ready is True.
    pub is_ready: bool,
    /// Its conditions that report a problem, sorted.
    pub conditions: Vec<ConditionProblem>,
}

/// The problems that one binding reports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct BindingProblems {
    conditions: Vec<ConditionProblem>,
    /// The clusters where its copy is not applied, with the reason.
    copies: Vec<(Str, &'static str)>,
    /// The clusters that it is being evicted from, sorted, each once.
    evicted_from: Vec<Str>,
}

/// The counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProblemCounts {
    /// The bindings that report a problem.
    of_bindings: BTreeMap<ResourceId, BindingProblems>,
    bindings: BTreeMap<ConditionProblem, usize>,
    copies: BTreeMap<(Str, &'static str), usize>,
    evicting: BTreeMap<Str, usize>,
    members: BTreeMap<Str, MemberProblems>,
}

impl ProblemCounts {
    /// Counts a binding as it is stored now; `None` if it is gone. Cost: O(its conditions + its copies + its evictions), and O(log) for
    /// each problem that begins or ends.
    pub fn binding(&mut self, id: &ResourceId, stored: Option<&ResourceBinding>) {
        let stored = stored.filter(|stored| stored.metadata.deletion_timestamp.is_none());
        let problems = stored.map(BindingProblems::of).unwrap_or_default();
        let is_empty = problems == BindingProblems::default();
        match self.of_bindings.get(id) {
            Some(held) if *held == problems => return,
            None if is_empty => return,
            _ => {}
        }
        for each in &problems.conditions {
            *self.bindings.entry(*each).or_default() += 1;
        }
        for each in &problems.copies {
            *self.copies.entry(each.clone()).or_default() += 1;
        }
        for each in &problems.evicted_from {
            *self.evicting.entry(each.clone()).or_default() += 1;
        }
        let before = match is_empty {
            true => self.of_bindings.remove(id),
            false => self.of_bindings.insert(id.clone(), problems),
        };
        let before = before.unwrap_or_default();
        for each in &before.conditions {
            subtract(&mut self.bindings, each);
        }
        for each in &before.copies {
            subtract(&mut self.copies, each);
        }
        for each in &before.evicted_from {
            subtract(&mut self.evicting, each);
        }
    }

    /// Notes a Cluster as it is stored now; `None` if it is gone. Cost: O(its conditions).
    pub fn member(&mut self, name: &Str, stored: Option<&Cluster>) {
        match stored {
            Some(stored) => self.members.insert(name.clone(), MemberProblems::of(stored)),
            None => self.members.remove(name),
        };
    }

    /// The number of bindings with each problem; none is 0.
    pub fn bindings(&self) -> impl Iterator<Item = (ConditionProblem, usize)> {
        self.bindings.iter().map(|(problem, count)| (*problem, *count))
    }

    /// The number of copies that are not applied, by cluster and reason as the status of bindings reports them; none is 0.
    pub fn copies(&self) -> impl Iterator<Item = (&Str, &'static str, usize)> {
        let all = self.copies.iter();
        all.map(|((cluster, reason), count)| (cluster, *reason, *count))
    }

    /// The number of bindings that are being evicted from each cluster; none is 0.
    pub fn evicting(&self) -> impl Iterator<Item = (&Str, usize)> {
        self.evicting.iter().map(|(cluster, count)| (cluster, *count))
    }

    /// All Clusters.
    pub fn members(&self) -> impl Iterator<Item = (&Str, &MemberProblems)> {
        self.members.iter()
    }
}

impl BindingProblems {
    fn of(stored: &ResourceBinding) -> Self {
        let tasks = stored.spec.graceful_eviction_tasks.iter();
        let evicted_from: BTreeSet<Str> = tasks.map(|task| task.from_cluster.as_str().into()).collect();
        let evicted_from = evicted_from.into_iter().collect();
        let Some(status) = &stored.status else {
            return Self {
                evicted_from,
                ..Self::default()
            };
        };
        let copies = status.aggregated_status.iter().filter_map(|item| {
            let reason = not_applied(item)?;
            Some((Str::from(item.cluster_name.as_str()), reason))
        });
        Self {
            conditions: problems(&status.conditions, OF_BINDINGS),
            copies: copies.collect(),
            evicted_from,
        }
    }
}

/// The reason why a copy is not applied; `None` if it is, or if nothing is said of it.
fn not_applied(item: &AggregatedStatusItem) -> Option<&'static str> {
    match item.applied_reason {
        Some(reason) => Some(name(reason)),
        None => (!item.applied && !item.applied_message.is_empty()).then_some(NOT_APPLIED),
    }
}

impl MemberProblems {
    fn of(stored: &Cluster) -> Self {
        let conditions = stored.status.as_ref().map(|status| status.conditions.as_slice());
        let conditions = conditions.unwrap_or_default();
        Self {
            is_ready: crate::condition::status(conditions, condition::READY) == Some("True"),
            conditions: problems(conditions, OF_CLUSTERS),
        }
    }
}

/// The conditions that report a problem, sorted.
fn problems(all: &[Condition], table: &[(&'static str, &str)]) -> Vec<ConditionProblem> {
    let reported = all.iter().filter_map(|each| {
        let (condition, good) = *table.iter().find(|(type_, _)| each.type_ == *type_)?;
        (each.status != good).then(|| ConditionProblem {
            condition,
            reason: known(&each.reason),
        })
    });
    let mut reported: Vec<ConditionProblem> = reported.collect();
    reported.sort_unstable();
    reported
}

/// The reason as the table of reasons has it, else `Other`.
pub(super) fn known(text: &str) -> &'static str {
    let found = reason::ALL.iter().find(|(_, known)| *known == text);
    found.map_or(OTHER, |(_, known)| *known)
}

/// The reason as the status of a binding has it.
const fn name(reason: NotAppliedReason) -> &'static str {
    match reason {
        NotAppliedReason::Pending => "Pending",
        NotAppliedReason::Suspended => "Suspended",
        NotAppliedReason::Conflict => "Conflict",
        NotAppliedReason::Override => "Override",
        NotAppliedReason::InterpretError => "InterpretError",
        NotAppliedReason::Contended => "Contended",
        NotAppliedReason::Unknown => "Unknown",
        NotAppliedReason::Refused => "Refused",
        NotAppliedReason::NotAllowed => "NotAllowed",
    }
}

fn subtract<K: Ord>(counts: &mut BTreeMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use entourage_api::work::GracefulEvictionTask;
    use serde_json::{Value, json};

    use super::*;
    use crate::object::Gvk;

    /// Conditions: type, status, reason.
    type Conditions = &'static [(&'static str, &'static str, &'static str)];
    /// Copies: cluster, reason.
    type Copies = &'static [(&'static str, &'static str)];
    type Lines = &'static [&'static str];

    fn id(name: &str) -> ResourceId {
        ResourceId::new(Gvk::new("apps/v1", "Deployment"), "shop", name)
    }

    /// A binding with these conditions, and this reason for each copy.
    fn binding(conditions: Conditions, copies: Copies) -> ResourceBinding {
        let copies = copies
            .iter()
            .map(|(cluster, reason)| json!({"clusterName": cluster, "appliedReason": reason}));
        serde_json::from_value(json!({
            "apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding",
            "metadata": {"name": "web-deployment", "namespace": "shop"},
            "spec": {"resource": {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": "web"}},
            "status": {"conditions": stored(conditions), "aggregatedStatus": copies.collect::<Vec<Value>>()},
        }))
        .expect("a binding")
    }

    fn cluster(conditions: Conditions) -> Cluster {
        serde_json::from_value(json!({
            "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": "m1"},
            "spec": {"syncMode": "Push"}, "status": {"conditions": stored(conditions)},
        }))
        .expect("a Cluster")
    }

    fn stored(conditions: Conditions) -> Vec<Value> {
        let each = |(type_, status, reason): &(&str, &str, &str)| {
            json!({
                "type": type_, "status": status, "reason": reason, "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            })
        };
        conditions.iter().map(each).collect()
    }

    fn counted(counts: &ProblemCounts) -> Vec<String> {
        let bindings = counts.bindings();
        let bindings = bindings.map(|(each, count)| format!("{} {} {count}", each.condition, each.reason));
        let copies = counts.copies();
        let copies = copies.map(|(cluster, reason, count)| format!("{cluster} {reason} {count}"));
        let evicting = counts.evicting();
        let evicting = evicting.map(|(cluster, count)| format!("evicting {cluster} {count}"));
        bindings.chain(copies).chain(evicting).collect()
    }

    #[test]
    fn a_binding_is_counted_by_what_its_conditions_and_its_copies_report() {
        let cases: [(Conditions, Copies, Lines); 8] = [
            (&[("Scheduled", "True", "Success")], &[], &[]),
            (
                &[("Scheduled", "False", "NoClusterFit")],
                &[],
                &["Scheduled NoClusterFit 1"],
            ),
            (
                &[("Scheduled", "Unknown", "ReasonOfAnotherVersion")],
                &[],
                &["Scheduled Other 1"],
            ),
            (
                &[("FullyApplied", "False", "FullyAppliedFailed")],
                &[("m1", "Contended"), ("m2", "Refused")],
                &[
                    "FullyApplied FullyAppliedFailed 1",
                    "m1 Contended 1",
                    "m2 Refused 1",
                ],
            ),
            (
                &[("EvictionBlocked", "True", "NoReplacement")],
                &[],
                &["EvictionBlocked NoReplacement 1"],
            ),
            (&[("EvictionBlocked", "False", "NoReplacement")], &[], &[]),
            (&[("SomebodyElses", "False", "NoReplacement")], &[], &[]),
            (
                &[
                    ("FullyApplied", "False", "Delivering"),
                    ("Scheduled", "False", "Unschedulable"),
                ],
                &[("m1", "Pending"), ("m2", "Pending")],
                &[
                    "FullyApplied Delivering 1",
                    "Scheduled Unschedulable 1",
                    "m1 Pending 1",
                    "m2 Pending 1",
                ],
            ),
        ];
        for (conditions, copies, wanted) in cases {
            let mut counts = ProblemCounts::default();
            counts.binding(&id("web"), Some(&binding(conditions, copies)));
            assert_eq!(counted(&counts), wanted, "{conditions:?} {copies:?}");
            counts.binding(&id("web"), None);
            assert_eq!(counts, ProblemCounts::default(), "{conditions:?} {copies:?}");
        }
    }

    #[test]
    fn the_same_binding_counts_once_and_as_it_was_stored_last() {
        let mut counts = ProblemCounts::default();
        let lacks = binding(&[("DependenciesReady", "False", "DependencyMissing")], &[]);
        for _ in 0..3 {
            counts.binding(&id("web"), Some(&lacks));
            counts.binding(&id("api"), Some(&lacks));
        }
        assert_eq!(counted(&counts), ["DependenciesReady DependencyMissing 2"]);
        let late = binding(&[("DependenciesReady", "False", "NotDelivered")], &[]);
        counts.binding(&id("web"), Some(&late));
        let both = [
            "DependenciesReady DependencyMissing 1",
            "DependenciesReady NotDelivered 1",
        ];
        assert_eq!(counted(&counts), both);
        counts.binding(&id("web"), Some(&binding(&[], &[])));
        counts.binding(&id("api"), Some(&binding(&[], &[])));
        assert_eq!(counts, ProblemCounts::default());
    }

    #[test]
    fn a_binding_that_is_being_deleted_counts_for_nothing() {
        let mut counts = ProblemCounts::default();
        let mut ends = binding(&[("FullyApplied", "False", "Delivering")], &[("m1", "Pending")]);
        counts.binding(&id("web"), Some(&ends));
        ends.metadata.deletion_timestamp = Some(crate::object::Time(1).to_k8s());
        counts.binding(&id("web"), Some(&ends));
        assert_eq!(counts, ProblemCounts::default());
    }

    #[test]
    fn a_copy_without_a_reason_is_counted_if_it_is_not_applied_and_says_why() {
        for (applied, message, wanted) in [
            (
                false,
                "admission webhook denied the request",
                &["m1 NotApplied 1"][..],
            ),
            (false, "", &[]),
            (true, "", &[]),
            (true, "of an earlier version", &[]),
        ] {
            let mut stored = binding(&[], &[("m1", "ReasonOfALaterVersion")]);
            let items = &mut stored.status.as_mut().expect("a status").aggregated_status;
            let item = items.first_mut().expect("a copy");
            assert_eq!(item.applied_reason, None);
            item.applied = applied;
            item.applied_message = message.to_owned();
            let mut counts = ProblemCounts::default();
            counts.binding(&id("web"), Some(&stored));
            assert_eq!(counted(&counts), wanted, "{applied} {message}");
        }
    }

    #[test]
    fn a_binding_is_counted_once_for_each_cluster_that_it_is_being_evicted_from() {
        let evicted = |clusters: &[&str]| {
            let mut stored = binding(&[], &[]);
            let tasks = clusters.iter().map(|cluster| GracefulEvictionTask {
                from_cluster: (*cluster).to_owned(),
                ..GracefulEvictionTask::default()
            });
            stored.spec.graceful_eviction_tasks = tasks.collect();
            stored
        };
        let mut counts = ProblemCounts::default();
        let steps: [(&str, &[&str], &[&str]); 5] = [
            ("web", &["m2", "m1", "m2"], &["evicting m1 1", "evicting m2 1"]),
            ("api", &["m1"], &["evicting m1 2", "evicting m2 1"]),
            ("web", &["m2"], &["evicting m1 1", "evicting m2 1"]),
            ("api", &[], &["evicting m2 1"]),
            ("web", &[], &[]),
        ];
        for (name, clusters, wanted) in steps {
            counts.binding(&id(name), Some(&evicted(clusters)));
            assert_eq!(counted(&counts), wanted, "{name} {clusters:?}");
        }
        let mut unreported = evicted(&["m1"]);
        unreported.status = None;
        counts.binding(&id("web"), Some(&unreported));
        assert_eq!(counted(&counts), ["evicting m1 1"]);
        counts.binding(&id("web"), None);
        assert_eq!(counts, ProblemCounts::default());
    }

    #[test]
    fn a_cluster_is_ready_only_if_it_says_so() {
        let cases: [(Conditions, bool, Lines); 6] = [
            (&[], false, &[]),
            (&[("Ready", "True", "ClusterReady")], true, &[]),
            (
                &[("Ready", "False", "CredentialsRefused")],
                false,
                &["Ready CredentialsRefused"],
            ),
            (&[("Ready", "Unknown", "HubCutOff")], false, &["Ready HubCutOff"]),
            (
                &[
                    ("RemovalsPaused", "True", "HubLooksEmpty"),
                    ("Ready", "True", "ClusterReady"),
                ],
                true,
                &["RemovalsPaused HubLooksEmpty"],
            ),
            (&[("RemovalsPaused", "False", "RemovalsResumed")], false, &[]),
        ];
        for (conditions, is_ready, wanted) in cases {
            let mut counts = ProblemCounts::default();
            counts.member(&"m1".into(), Some(&cluster(conditions)));
            let (_, member) = counts.members().next().expect("a member");
            let reported = member.conditions.iter();
            let reported: Vec<String> = reported
                .map(|each| format!("{} {}", each.condition, each.reason))
                .collect();
            assert_eq!(member.is_ready, is_ready, "{conditions:?}");
            assert_eq!(reported, wanted, "{conditions:?}");
            counts.member(&"m1".into(), None);
            assert_eq!(counts, ProblemCounts::default());
        }
    }

    /// Each condition is counted once, or is one of other objects, or of a state that is no problem.
    #[test]
    fn each_condition_is_counted_or_is_none_to_count() {
        const OTHERS: &[&str] = &[
            condition::MATCHED,
            condition::EFFECTIVE,
            condition::APPLIED,
            condition::EVICTING,
            condition::DISPATCHING,
            condition::ORPHANED,
        ];
        let tables = [OF_BINDINGS, OF_CLUSTERS].into_iter().flatten();
        let mut listed: Vec<&str> = tables
            .map(|(type_, _)| *type_)
            .chain(OTHERS.iter().copied())
            .collect();
        let mut all: Vec<&str> = condition::ALL.iter().map(|(_, type_)| *type_).collect();
        listed.sort_unstable();
        all.sort_unstable();
        assert_eq!(listed, all);
    }

    #[test]
    fn each_reason_of_a_copy_has_the_name_that_a_status_has() {
        for reason in [
            NotAppliedReason::Pending,
            NotAppliedReason::Suspended,
            NotAppliedReason::Conflict,
            NotAppliedReason::Override,
            NotAppliedReason::InterpretError,
            NotAppliedReason::Contended,
            NotAppliedReason::Unknown,
            NotAppliedReason::Refused,
        ] {
            assert_eq!(json!(reason), name(reason));
        }
    }
}
