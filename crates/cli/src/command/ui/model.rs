//! The rows of the page, each the summary of one object of the hub.
//!
//! Pure. A row has names, counts, states and messages, never a payload: of the object that a distribution embeds only kind and name.

use entourage_api::keys::condition;
use entourage_core::{
    interpreter::quantity,
    object::{Str, Time},
};
use serde::Serialize;
use serde_json::Value;

use super::super::get::{
    bindings, clusters, copies, distributions,
    table::{condition as condition_of, items, text},
};

/// A member.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Member {
    pub(super) name: String,
    /// `True`, `False` or `Unknown`.
    ready: String,
    /// The last transition of `ready`.
    since: Option<i64>,
    /// The cause if it is not ready.
    problem: String,
    version: String,
    mode: String,
    region: String,
    provider: String,
    taints: Vec<String>,
    /// Deletions there are paused.
    paused: bool,
    /// It is being removed from the hub.
    leaving: bool,
    created: Option<i64>,
    room: Vec<Room>,
}

/// The use of a resource on a member.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Room {
    resource: &'static str,
    /// Allocated and about to be.
    used: f64,
    total: f64,
}

/// A template with its clusters: a binding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Workload {
    api_version: String,
    kind: String,
    namespace: String,
    name: String,
    policy: String,
    created: Option<i64>,
    state: State,
    /// The messages of failed conditions.
    problem: String,
    pub(super) clusters: Vec<Copy>,
    /// The keys of the bindings that need it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    needed_by: Vec<String>,
}

/// A copy, in short names: there are many.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Copy {
    /// The cluster.
    #[serde(rename = "c")]
    pub(super) cluster: Str,
    /// The state, as of `entourage get copies`.
    #[serde(rename = "s")]
    state: &'static str,
    #[serde(rename = "r", skip_serializing_if = "Option::is_none")]
    replicas: Option<i64>,
    #[serde(rename = "h", skip_serializing_if = "String::is_empty")]
    health: String,
    #[serde(rename = "m", skip_serializing_if = "String::is_empty")]
    message: String,
    #[serde(skip)]
    pub(super) class: Class,
}

/// The classes of copies that are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Applied,
    Unhealthy,
    Pending,
    Suspended,
    Leaving,
    Evicting,
    Failing,
}

/// The state of a template: that of the copy with the most trouble. The worst comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
enum State {
    NotScheduled,
    Failing,
    DependencyMissing,
    Unhealthy,
    Evicting,
    Pending,
    Suspended,
    /// No cluster needs it.
    Unplaced,
    Applied,
}

/// A ResourceDistribution.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Distribution {
    name: String,
    kind: String,
    object: String,
    source_namespace: String,
    desired: i64,
    succeeded: i64,
    failed: i64,
    conflicts: i64,
    message: String,
    created: Option<i64>,
}

/// A policy; of it only the metadata is read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Policy {
    namespace: String,
    name: String,
    created: Option<i64>,
}

impl Member {
    /// The summary of a Cluster.
    pub(super) fn of(cluster: &Value) -> Self {
        let ready = condition_of(cluster, condition::READY);
        let spec = |field: &str| text(&cluster["spec"], &format!("/{field}")).to_owned();
        let (status, problem) = match text(ready, "/status") {
            "" if spec("syncMode") == "Pull" => ("Unknown", "its agent has not reported yet: is it running?"),
            "" => ("Unknown", "not synced yet: are the controllers running?"),
            "True" => ("True", ""),
            status => (status, text(ready, "/message")),
        };
        let paused = condition_of(cluster, condition::REMOVALS_PAUSED)["status"] == "True";
        Self {
            name: text(cluster, "/metadata/name").to_owned(),
            ready: status.to_owned(),
            since: millis(text(ready, "/lastTransitionTime")),
            problem: problem.to_owned(),
            version: text(cluster, "/status/kubernetesVersion").to_owned(),
            mode: spec("syncMode"),
            region: spec("region"),
            provider: spec("provider"),
            taints: items(cluster, "/spec/taints")
                .iter()
                .map(clusters::taint)
                .collect(),
            paused,
            leaving: !text(cluster, "/metadata/deletionTimestamp").is_empty(),
            created: created(cluster),
            room: ["cpu", "memory", "pods"]
                .into_iter()
                .filter_map(|resource| Room::of(cluster, resource))
                .collect(),
        }
    }
}

impl Room {
    fn of(cluster: &Value, resource: &'static str) -> Option<Self> {
        let amount = |field: &str| {
            let summary = &cluster["status"]["resourceSummary"][field][resource];
            quantity::approximate(summary)
        };
        let total = amount("allocatable")?;
        let used = amount("allocated").unwrap_or_default() + amount("allocating").unwrap_or_default();
        Some(Self {
            resource,
            used,
            total,
        })
    }
}

impl Workload {
    /// The summary of a ResourceBinding or ClusterResourceBinding.
    pub(super) fn of(binding: &Value) -> Self {
        let resource = &binding["spec"]["resource"];
        let of = |field: &str| text(resource, field).to_owned();
        let clusters = copies_of(binding);
        let needed_by = items(binding, "/spec/requiredBy").iter();
        let needed_by = needed_by.map(|each| key(text(each, "/namespace"), text(each, "/name")));
        Self {
            api_version: of("/apiVersion"),
            kind: of("/kind"),
            namespace: of("/namespace"),
            name: of("/name"),
            policy: bindings::policy_of(binding)
                .map(|policy| policy.to_string())
                .unwrap_or_default(),
            created: created(binding),
            state: state(binding, &clusters),
            problem: bindings::problem(binding),
            needed_by: needed_by.collect(),
            clusters,
        }
    }
}

/// The key of the row of a binding.
pub(super) fn key(namespace: &str, name: &str) -> String {
    format!("b/{namespace}/{name}")
}

/// The copies of a binding: those that are wanted, and those that are recorded or being evicted.
fn copies_of(binding: &Value) -> Vec<Copy> {
    let wanted = bindings::clusters(binding);
    let evicted = items(binding, "/spec/gracefulEvictionTasks").iter();
    let evicted: Vec<&str> = evicted.map(|task| text(task, "/fromCluster")).collect();
    let recorded = items(binding, "/status/aggregatedStatus").iter();
    let recorded = recorded.map(|item| text(item, "/clusterName"));
    let mut places: Vec<&str> = wanted.iter().map(String::as_str).collect();
    places.extend(recorded.chain(evicted.iter().copied()));
    places.sort_unstable();
    places.dedup();
    let copy = |cluster: &str| {
        let item = bindings::copy(binding, cluster).unwrap_or(&Value::Null);
        let health = text(item, "/health");
        let state = match () {
            () if evicted.contains(&cluster) => "Evicting",
            () if !wanted.contains(cluster) => "Leaving",
            () => copies::recorded(item),
        };
        let own = items(binding, "/spec/clusters").iter();
        let replicas = own
            .filter(|target| target["name"] == *cluster)
            .find_map(|target| target["replicas"].as_i64());
        Copy {
            cluster: cluster.into(),
            state,
            replicas,
            health: health.to_owned(),
            message: text(item, "/appliedMessage").to_owned(),
            class: class(state, health),
        }
    };
    places.into_iter().map(copy).collect()
}

fn class(state: &str, health: &str) -> Class {
    match (state, health) {
        ("Applied", "Unhealthy") => Class::Unhealthy,
        ("Applied", _) => Class::Applied,
        ("Pending" | "Unknown", _) => Class::Pending,
        ("Suspended", _) => Class::Suspended,
        ("Leaving", _) => Class::Leaving,
        ("Evicting", _) => Class::Evicting,
        _ => Class::Failing,
    }
}

fn state(binding: &Value, copies: &[Copy]) -> State {
    let is_false = |type_: &str| condition_of(binding, type_)["status"] == "False";
    let missing = condition_of(binding, condition::DEPENDENCIES_READY)["reason"] == "DependencyMissing";
    let of_conditions = [
        (is_false(condition::SCHEDULED), State::NotScheduled),
        (
            missing && is_false(condition::DEPENDENCIES_READY),
            State::DependencyMissing,
        ),
        (copies.is_empty(), State::Unplaced),
    ];
    let of_conditions = of_conditions.into_iter().filter(|(holds, _)| *holds);
    let of_copies = copies.iter().map(|copy| match copy.class {
        Class::Failing => State::Failing,
        Class::Unhealthy => State::Unhealthy,
        Class::Evicting => State::Evicting,
        Class::Pending | Class::Leaving => State::Pending,
        Class::Suspended => State::Suspended,
        Class::Applied => State::Applied,
    });
    let all = of_conditions.map(|(_, state)| state).chain(of_copies);
    all.min().unwrap_or(State::Applied)
}

impl Distribution {
    /// The summary of a ResourceDistribution.
    pub(super) fn of(distribution: &Value) -> Self {
        let source = distributions::Source::of(distribution);
        let count = |field: &str| distribution["status"][field].as_i64().unwrap_or_default();
        Self {
            name: text(distribution, "/metadata/name").to_owned(),
            kind: source.kind.to_owned(),
            object: source.name.to_owned(),
            source_namespace: source.namespace.to_owned(),
            desired: count("desired"),
            succeeded: count("succeeded"),
            failed: count("failed"),
            conflicts: distributions::condition(distribution, "ConflictOccurred")
                .map_or(0, distributions::how_many),
            message: distributions::message(distribution).into_owned(),
            created: created(distribution),
        }
    }
}

impl Policy {
    /// The summary of a PropagationPolicy or ClusterPropagationPolicy, by its metadata.
    pub(super) fn of(policy: &Value) -> Self {
        Self {
            namespace: text(policy, "/metadata/namespace").to_owned(),
            name: text(policy, "/metadata/name").to_owned(),
            created: created(policy),
        }
    }
}

fn created(object: &Value) -> Option<i64> {
    millis(text(object, "/metadata/creationTimestamp"))
}

/// A time as milliseconds since 1970, as the page reckons.
pub(super) fn millis(time: &str) -> Option<i64> {
    let time: k8s_openapi::apimachinery::pkg::apis::meta::v1::Time =
        serde_json::from_value(Value::from(time)).ok()?;
    Some(Time::from_k8s(&time).0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A binding of a Deployment, with these clusters, entries of the aggregated status, evictions and conditions.
    #[allow(clippy::needless_pass_by_value, reason = "cases are easier to read without &")]
    fn binding(clusters: &[&str], items: Value, evicted: &[&str], conditions: Value) -> Value {
        let named = |field: &str, names: &[&str]| -> Vec<Value> {
            names.iter().map(|name| json!({ field: name })).collect()
        };
        json!({"metadata": {"namespace": "shop", "name": "web-deployment"},
            "spec": {"resource": {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": "web"},
                "clusters": named("name", clusters), "gracefulEvictionTasks": named("fromCluster", evicted)},
            "status": {"aggregatedStatus": items, "conditions": conditions}})
    }

    #[test]
    fn a_workload_has_the_state_of_the_copy_with_the_most_trouble() {
        let item = |cluster: &str, applied: bool, more: Value| {
            let mut item = json!({"clusterName": cluster, "applied": applied});
            for (name, value) in more.as_object().unwrap() {
                item[name] = value.clone();
            }
            item
        };
        let (ok, none) = (item("m1", true, json!({"health": "Healthy"})), json!([]));
        let refused = item(
            "m2",
            false,
            json!({"appliedReason": "Refused", "appliedMessage": "denied"}),
        );
        let sick = item("m2", true, json!({"health": "Unhealthy"}));
        let is_false =
            |type_: &str, reason: &str| json!([{"type": type_, "status": "False", "reason": reason}]);
        let table = [
            (
                "all applied",
                binding(&["m1"], json!([ok]), &[], none.clone()),
                State::Applied,
            ),
            (
                "one refused",
                binding(&["m1", "m2"], json!([ok, refused]), &[], none.clone()),
                State::Failing,
            ),
            (
                "one not written yet",
                binding(&["m1", "m2"], json!([ok]), &[], none.clone()),
                State::Pending,
            ),
            (
                "one unhealthy",
                binding(&["m1", "m2"], json!([ok, sick]), &[], none.clone()),
                State::Unhealthy,
            ),
            (
                "one no longer wanted",
                binding(&["m1"], json!([ok, sick]), &[], none.clone()),
                State::Pending,
            ),
            (
                "one being evicted",
                binding(&["m1"], json!([ok, sick]), &["m2"], none.clone()),
                State::Evicting,
            ),
            (
                "no cluster",
                binding(&[], none.clone(), &[], none),
                State::Unplaced,
            ),
            (
                "no cluster fits",
                binding(&[], json!([]), &[], is_false("Scheduled", "NoClusterFit")),
                State::NotScheduled,
            ),
            (
                "a dependency is not on the hub",
                binding(
                    &["m1"],
                    json!([ok]),
                    &[],
                    is_false("DependenciesReady", "DependencyMissing"),
                ),
                State::DependencyMissing,
            ),
            (
                "a dependency is under way",
                binding(
                    &["m1"],
                    json!([ok]),
                    &[],
                    is_false("DependenciesReady", "NotDelivered"),
                ),
                State::Applied,
            ),
        ];
        for (name, binding, wanted) in table {
            assert_eq!(Workload::of(&binding).state, wanted, "{name}");
        }
    }

    #[test]
    fn room_is_the_part_of_what_pods_may_use() {
        let cluster = json!({"status": {"resourceSummary": {
            "allocatable": {"cpu": "4", "memory": "8Gi"},
            "allocated": {"cpu": "1500m", "memory": "2Gi"}, "allocating": {"cpu": "500m"}}}});
        let room: Vec<_> = Member::of(&cluster)
            .room
            .into_iter()
            .map(|each| (each.resource, each.used, each.total))
            .collect();
        let gi = f64::from(1 << 30);
        assert_eq!(room, [("cpu", 2.0, 4.0), ("memory", 2.0 * gi, 8.0 * gi)]);
    }

    #[test]
    fn nothing_of_an_embedded_object_but_kind_and_name_is_in_a_row() {
        let distribution = json!({"metadata": {"name": "pull"}, "spec": {"resource": {"kind": "Secret",
            "metadata": {"name": "registry"}, "data": {"a": "c2VjcmV0"}, "stringData": {"b": "c2VjcmV0"}}},
            "status": {"desired": 3, "succeeded": 2, "failed": 1}});
        let row = serde_json::to_string(&Distribution::of(&distribution)).unwrap();
        assert!(row.contains("registry") && !row.contains("c2VjcmV0"), "{row}");
    }
}
