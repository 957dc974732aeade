//! The golden cases in `testdata/scheduler`: one file a case, `want` last. `UPDATE_GOLDEN=1` rewrites `want`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use entourage_api::{
    cluster::{ApiEnablement, ApiResource, Cluster, ClusterStatus, ResourceModel, ResourceSummary},
    policy::Placement,
    work::{ReplicaRequirements, Resources, TargetCluster},
};
use k8s_openapi::api::core::v1::Taint;
use serde::Deserialize;

use super::{
    Candidate, FILTERS, Group, Outcome, Request, Room,
    estimate::{Capacity, Demand},
    relevant_change, schedule,
    schedule::rounds,
};
use entourage_golden as golden;
use entourage_model::object::{Gvk, Str, StrMap};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Case {
    placement: Placement,
    /// apiVersion and kind; a Deployment if left out.
    #[serde(default = "deployment")]
    kind: String,
    replicas: Option<i32>,
    #[serde(default)]
    uid: String,
    #[serde(default)]
    current: Current,
    /// The placement that `current` was scheduled by.
    applied: Option<Placement>,
    /// `current` was scheduled by the placement of this case.
    #[serde(default)]
    settled: bool,
    /// The group in use.
    affinity: Option<String>,
    #[serde(default)]
    fresh: bool,
    /// Clusters that it is being evicted from.
    #[serde(default)]
    evicted: Vec<Str>,
    /// The affinity group, with the clusters that all its other members have.
    beside: Option<OthersOf>,
    /// The anti-affinity group, with the clusters that its other members use.
    apart: Option<OthersOf>,
    /// The resources that one replica requests.
    #[serde(default)]
    requests: Resources,
    clusters: Vec<Member>,
    /// Compared as text.
    #[serde(default, rename = "want")]
    _want: serde::de::IgnoredAny,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OthersOf {
    group: String,
    clusters: BTreeSet<Str>,
}

impl OthersOf {
    fn group(&self) -> Group<'_> {
        Group {
            name: &self.group,
            clusters: &self.clusters,
        }
    }
}

/// Names, or names with replicas.
#[derive(Deserialize)]
#[serde(untagged)]
enum Current {
    Names(Vec<String>),
    Replicas(BTreeMap<String, i32>),
}

impl Default for Current {
    fn default() -> Self {
        Self::Names(Vec::new())
    }
}

impl Current {
    fn targets(&self) -> Vec<TargetCluster> {
        let target = |name: &String, replicas| TargetCluster {
            name: name.clone(),
            replicas,
            ..Default::default()
        };
        match self {
            Self::Names(names) => names.iter().map(|name| target(name, 0)).collect(),
            Self::Replicas(map) => map.iter().map(|(name, count)| target(name, *count)).collect(),
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Member {
    name: String,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default)]
    provider: String,
    #[serde(default)]
    region: String,
    #[serde(default)]
    zone: String,
    #[serde(default)]
    zones: Vec<String>,
    #[serde(default)]
    taints: Vec<Taint>,
    /// apiVersion and kind each; left out: unknown.
    #[serde(default)]
    serves: Vec<String>,
    #[serde(default = "yes")]
    ready: bool,
    /// Its condition Ready is Unknown.
    #[serde(default)]
    unreachable: bool,
    #[serde(default)]
    deleting: bool,
    /// Its `status.resourceSummary`.
    summary: Option<ResourceSummary>,
    /// Its `spec.resourceModels`.
    #[serde(default)]
    models: Vec<ResourceModel>,
}

#[test]
fn every_case_comes_out_as_its_file_says() {
    golden::run("scheduler", 20, |case: &Case| describe(&outcome(case)));
}

/// A filter without a case is untested. Of two clusters that it tells apart the change from one
/// to the other must be relevant: else nothing is scheduled again when a Cluster changes in this way.
#[test]
fn every_filter_leaves_out_a_cluster_of_a_case_and_what_it_reads_is_a_relevant_change() {
    let cases: Vec<Case> = golden::files("scheduler")
        .iter()
        .map(|file| golden::read(file))
        .collect();
    for filter in FILTERS {
        let mut has_case = false;
        for case in &cases {
            given(case, |request, candidates| {
                for round in rounds(request) {
                    let passes = |candidate: &Candidate<'_>| (filter.check)(&round, candidate).is_ok();
                    has_case |= !candidates.iter().all(passes);
                    for (one, other) in pairs(candidates) {
                        // The same cluster, changed: its name is no change.
                        let changed = Candidate {
                            name: one.name,
                            ..*other
                        };
                        let is_relevant = relevant(one, &changed);
                        assert!(
                            is_relevant || passes(one) == passes(&changed),
                            "filter {}: a change from {} to {} is not in `relevant_change` (crates/scheduler/src/relevance.rs)",
                            filter.name,
                            one.name,
                            other.name
                        );
                    }
                }
            });
        }
        assert!(
            has_case,
            "filter {}: write a case in crates/scheduler/testdata/scheduler in which it leaves out a cluster",
            filter.name
        );
    }
}

fn pairs<'a>(
    candidates: &'a [Candidate<'a>],
) -> impl Iterator<Item = (&'a Candidate<'a>, &'a Candidate<'a>)> {
    let others = |one| candidates.iter().map(move |other| (one, other));
    candidates.iter().flat_map(others)
}

/// True if the scheduler is asked again. Labels, readiness and deletion lie in the Cluster's metadata and conditions, which
/// these candidates have beside it.
fn relevant(one: &Candidate<'_>, other: &Candidate<'_>) -> bool {
    relevant_change(one.cluster, other.cluster)
        || one.labels != other.labels
        || (one.ready, one.deleting) != (other.ready, other.deleting)
}

fn outcome(case: &Case) -> Outcome {
    given(case, schedule)
}

/// Calls `ask` with the request of a case and its clusters.
fn given<T>(case: &Case, ask: impl FnOnce(&Request<'_>, &[Candidate<'_>]) -> T) -> T {
    let clusters: Vec<Cluster> = case.clusters.iter().map(cluster).collect();
    let labels: Vec<StrMap> = case
        .clusters
        .iter()
        .map(|each| {
            each.labels
                .iter()
                .map(|(key, value)| (key.as_str().into(), value.as_str().into()))
                .collect()
        })
        .collect();
    let candidates: Vec<Candidate<'_>> = case
        .clusters
        .iter()
        .zip(&clusters)
        .zip(&labels)
        .map(|((each, cluster), labels)| Candidate {
            name: &each.name,
            labels,
            cluster,
            ready: each.ready && !each.unreachable,
            deleting: each.deleting,
        })
        .collect();
    let current = case.current.targets();
    let applied = case.applied.as_ref().or(case.settled.then_some(&case.placement));
    let applied = applied.map_or_else(String::new, |placement| serde_json::to_string(placement).unwrap());
    let (api_version, kind) = case.kind.split_once(' ').unwrap();
    let gvk = Gvk::new(api_version, kind);
    let demand = Demand::of(Some(&ReplicaRequirements {
        resource_request: case.requests.clone(),
        ..Default::default()
    }));
    let capacities: BTreeMap<Str, Capacity> = candidates
        .iter()
        .filter_map(|each| Some((each.name.into(), Capacity::of(each.cluster)?)))
        .collect();
    let request = Request {
        room: Some(Room {
            demand: &demand,
            capacities: &capacities,
            accounted: &current,
            reserved: &[],
            estimates: None,
        }),
        uid: &case.uid,
        current: &current,
        applied: &applied,
        affinity: case.affinity.as_deref(),
        fresh: case.fresh,
        evicted: &case.evicted,
        beside: case.beside.as_ref().map(OthersOf::group),
        apart: case.apart.as_ref().map(OthersOf::group),
        ..Request::first(&case.placement, &gvk, case.replicas)
    };
    ask(&request, &candidates)
}

fn cluster(member: &Member) -> Cluster {
    let mut cluster = Cluster::default();
    cluster.spec.provider = member.provider.clone();
    cluster.spec.region = member.region.clone();
    cluster.spec.zone = member.zone.clone();
    cluster.spec.zones = member.zones.clone();
    cluster.spec.taints = member.taints.clone();
    cluster.spec.resource_models = member.models.clone();
    let api_enablements = member
        .serves
        .iter()
        .map(|served| {
            let (group_version, kind) = served.split_once(' ').unwrap();
            let resource = ApiResource {
                name: format!("{}s", kind.to_lowercase()),
                kind: kind.into(),
            };
            ApiEnablement {
                group_version: group_version.into(),
                resources: vec![resource],
            }
        })
        .collect();
    let conditions = serde_json::json!([{
        "type": "Ready", "status": "Unknown", "reason": "ClusterNotReachable", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }]);
    cluster.status = Some(ClusterStatus {
        api_enablements,
        conditions: match member.unreachable {
            true => serde_json::from_value(conditions).unwrap(),
            false => Vec::new(),
        },
        resource_summary: member.summary.clone(),
        ..Default::default()
    });
    cluster
}

fn describe(outcome: &Outcome) -> String {
    let mut text = String::from("want:\n");
    match outcome {
        Outcome::Placed {
            clusters,
            affinity,
            note,
        } => {
            text.push_str("  clusters:\n");
            for target in clusters {
                writeln!(text, "    {}: {}", target.name, target.replicas).unwrap();
            }
            if !affinity.is_empty() {
                writeln!(text, "  affinity: {affinity}").unwrap();
            }
            writeln!(text, "  note: {note:?}").unwrap();
        }
        Outcome::Failed {
            reason,
            message,
            unselected,
        } => {
            writeln!(text, "  reason: {reason}\n  message: {message:?}").unwrap();
            if !unselected.is_empty() {
                writeln!(text, "  unselected: [{}]", unselected.join(", ")).unwrap();
            }
        }
    }
    text
}

fn deployment() -> String {
    "apps/v1 Deployment".into()
}

fn yes() -> bool {
    true
}
