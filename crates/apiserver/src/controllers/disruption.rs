//! The status of PodDisruptionBudgets: how many of their pods are healthy, and how many may be evicted. Source: the disruption
//! controller of kube-controller-manager.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use tokio::time::Instant;

use super::{Context, Controller, Seen, objects::change, paced::Paced};
use crate::{
    kinds::{
        policy::pod_disruption_budget::report,
        workloads::{selects, share},
    },
    object::{
        Object, field, holds, is_leaving, metadata,
        tree::{below, list, made, number, object},
    },
    resource::{Kinds, Resource},
    scale::Paths,
    store::Happened,
};

const BUDGETS: &str = "policy/poddisruptionbudgets";
const PODS: &str = "pods";

/// The kinds that control pods and say how many there should be. The scale of a custom resource is read when a pod changes.
const SCALES: [&str; 4] = [
    "apps/deployments",
    "apps/replicasets",
    "apps/statefulsets",
    "replicationcontrollers",
];

/// The time in which a pod is deleted after its eviction was allowed; after it, the pod counts again.
const DELETION: SignedDuration = SignedDuration::from_mins(2);

/// The budgets whose status may be outdated.
#[derive(Default)]
pub(super) struct Disruption(Paced);

impl Controller for Disruption {
    fn reset(&mut self) {
        *self = Self::default();
    }

    /// Cost: the budgets of the namespace.
    fn see(&mut self, seen: &Seen) {
        let (collection, key) = (seen.place.collection.as_str(), &seen.place.key);
        match (collection, seen.happened) {
            (BUDGETS, Happened::Deleted) => self.0.remove(key),
            (BUDGETS, _) => self.0.add(key),
            _ if collection == PODS || SCALES.contains(&collection) => {
                self.0.all_of(seen.place.namespace(), Duration::ZERO);
            }
            _ => {}
        }
    }

    /// Cost: O(pods of the namespace), a few times a second at most.
    fn work(&mut self, cluster: &dyn Context) -> bool {
        if !cluster.stand_ins().disruption {
            self.reset();
            return false;
        }
        let Some(key) = self.0.pop() else {
            return false;
        };
        if let Some(again) = count_pods(cluster, &key) {
            self.0.after(&key, again);
        }
        true
    }

    fn wakes(&self) -> Option<Instant> {
        self.0.wakes()
    }
}

/// Writes the status of a budget. Returns the time until an eviction that was allowed counts as not done.
fn count_pods(cluster: &dyn Context, key: &str) -> Option<Duration> {
    let kinds = cluster.kinds();
    let namespace = key.split_once('/').map_or("", |(namespace, _)| namespace);
    let all = cluster.list(PODS, &format!("{namespace}/"));
    let now = cluster.timestamp();
    let mut again = None;
    change(cluster, BUDGETS, key, "status", |budget| {
        let selector = object(below(budget, "spec"), "selector");
        let pods: Vec<&Object> = all
            .iter()
            .filter(|pod| selects(selector, below(metadata(pod), "labels")))
            .collect();
        let (disrupted, left) = disrupted(below(budget, "status"), &pods, now);
        again = left;
        let scale = || scale(cluster, &kinds, namespace, &pods);
        let next = match Counts::of(below(budget, "spec"), &pods, &disrupted, scale) {
            Ok(counts) => counts.status(budget, disrupted, &cluster.now()),
            Err(why) => failed(budget, &why, &cluster.now()),
        };
        let changed = next != *below(budget, "status");
        if changed {
            *made(budget, "status") = next;
        }
        changed
    });
    again
}

/// The pods whose eviction was allowed and that are not being deleted yet, and the time until the first of them counts again.
fn disrupted(status: &Object, pods: &[&Object], now: Timestamp) -> (Object, Option<Duration>) {
    let staying = pods.iter().filter(|pod| !is_leaving(pod));
    let staying: BTreeSet<&str> = staying.map(|pod| field(pod, "name")).collect();
    let (mut kept, mut first) = (Object::new(), None);
    for (name, since) in below(status, "disruptedPods") {
        let since_when: Option<Timestamp> = since.as_str().and_then(|since| since.parse().ok());
        let end = since_when.and_then(|since| since.checked_add(DELETION).ok());
        let left = end.map(|end| end.duration_since(now));
        if let Some(left) = left.and_then(|left| Duration::try_from(left).ok())
            && staying.contains(name.as_str())
        {
            first = Some(first.map_or(left, |first: Duration| first.min(left)));
            kept.insert(name.clone(), since.clone());
        }
    }
    // Past the end, not at it.
    (kept, first.map(|first| first + Duration::from_millis(1)))
}

/// The numbers of pods that a budget reports.
#[derive(Debug, PartialEq, Eq)]
struct Counts {
    healthy: i64,
    desired: i64,
    expected: i64,
}

impl Counts {
    fn of(
        spec: &Object,
        pods: &[&Object],
        disrupted: &Object,
        scale: impl FnOnce() -> Result<i64, String>,
    ) -> Result<Self, String> {
        let healthy = pods.iter().filter(|pod| {
            holds(pod, "Ready") && !is_leaving(pod) && !disrupted.contains_key(field(pod, "name"))
        });
        let (expected, desired) = match (spec.get("maxUnavailable"), spec.get("minAvailable")) {
            (Some(most), _) => {
                let expected = scale()?;
                (
                    expected,
                    expected.saturating_sub(share(most, expected, true)).max(0),
                )
            }
            (None, Some(Value::Number(least))) => (number_of(pods.len()), least.as_i64().unwrap_or_default()),
            (None, Some(least)) => {
                let expected = scale()?;
                (expected, share(least, expected, true))
            }
            (None, None) => (0, 0),
        };
        Ok(Self {
            healthy: number_of(healthy.count()),
            desired,
            expected,
        })
    }

    const fn allowed(&self) -> i64 {
        let left = self.healthy.saturating_sub(self.desired);
        if self.expected > 0 && left > 0 { left } else { 0 }
    }

    /// The status of the budget.
    fn status(&self, budget: &Object, disrupted: Object, now: &str) -> Object {
        let generation = number(metadata(budget), "generation").unwrap_or(1);
        let mut next = below(budget, "status").clone();
        for (name, value) in [
            ("currentHealthy", self.healthy),
            ("desiredHealthy", self.desired),
            ("expectedPods", self.expected),
            ("disruptionsAllowed", self.allowed()),
            ("observedGeneration", generation),
        ] {
            next.insert(name.to_owned(), value.into());
        }
        next.remove("disruptedPods");
        if !disrupted.is_empty() {
            next.insert("disruptedPods".to_owned(), Value::Object(disrupted));
        }
        let [status, reason] = if self.allowed() > 0 {
            ["True", "SufficientPods"]
        } else {
            ["False", "InsufficientPods"]
        };
        report(&mut next, [status, reason, ""], generation, now);
        next
    }
}

/// The status of a budget whose pods could not be counted: nothing may be evicted.
fn failed(budget: &Object, why: &str, now: &str) -> Object {
    let mut next = below(budget, "status").clone();
    next.insert("disruptionsAllowed".to_owned(), 0.into());
    let generation = number(&next, "observedGeneration").unwrap_or_default();
    report(&mut next, ["False", "SyncFailed", why], generation, now);
    next
}

fn number_of(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// The number of pods that the controllers of these pods are to have. Pods without one do not count.
fn scale(cluster: &dyn Context, kinds: &Kinds, namespace: &str, pods: &[&Object]) -> Result<i64, String> {
    // By the uid of the owner of a pod: pods of one ReplicaSet are looked up once.
    let mut owners: BTreeMap<&str, String> = BTreeMap::new();
    let mut scales: BTreeMap<String, i64> = BTreeMap::new();
    for pod in pods {
        let Some(owner) = controller(pod) else { continue };
        let uid = owner["uid"].as_str().unwrap_or_default();
        if owners.contains_key(uid) {
            continue;
        }
        let (top, replicas) = replicas(cluster, kinds, namespace, owner)?
            .ok_or_else(|| format!("found no controllers for pod {:?}", field(pod, "name")))?;
        owners.insert(uid, top.clone());
        scales.insert(top, replicas);
    }
    Ok(scales
        .values()
        .fold(0, |sum: i64, replicas| sum.saturating_add(*replicas)))
}

/// The uid and the replicas of an owner, or of the Deployment that controls it; `None` when it is gone.
fn replicas(
    cluster: &dyn Context,
    kinds: &Kinds,
    namespace: &str,
    owner: &Value,
) -> Result<Option<(String, i64)>, String> {
    let Some((resource, object)) = owner_of(cluster, kinds, namespace, owner) else {
        return Ok(None);
    };
    if resource.collection == "apps/replicasets"
        && let Some(deployment) = controller(&object)
        && deployment["kind"] == "Deployment"
    {
        let found = owner_of(cluster, kinds, namespace, deployment);
        return Ok(found.map(|(_, object)| read(&Paths::builtin(), &object)));
    }
    let paths = match &resource.custom {
        Some(custom) => custom.scale.clone(),
        None => SCALES
            .contains(&resource.collection.as_str())
            .then(Paths::builtin)
            .flatten(),
    };
    if paths.is_none() {
        let (plural, group) = (&resource.plural, &resource.group);
        return Err(format!(
            "{plural}.{group} does not implement the scale subresource"
        ));
    }
    Ok(Some(read(&paths, &object)))
}

/// The object that an owner reference means, if it is still that one.
fn owner_of<'a>(
    cluster: &dyn Context,
    kinds: &'a Kinds,
    namespace: &str,
    owner: &Value,
) -> Option<(&'a Resource, Object)> {
    let text = |key: &str| owner[key].as_str().unwrap_or_default();
    let (group, version) = text("apiVersion")
        .split_once('/')
        .unwrap_or(("", text("apiVersion")));
    let resource = kinds
        .all()
        .find(|one| one.group == group && one.version == version && one.kind == text("kind"))?;
    let key = format!("{namespace}/{}", text("name"));
    let object = cluster.get(&resource.collection, &key)?;
    (field(&object, "uid") == text("uid")).then_some((resource, object))
}

fn read(paths: &Option<Paths>, object: &Object) -> (String, i64) {
    let replicas = paths.as_ref().and_then(|paths| paths.spec_replicas.get(object));
    let replicas = replicas.and_then(Value::as_i64).unwrap_or(1);
    (field(object, "uid").to_owned(), replicas)
}

/// The owner that controls an object.
fn controller(object: &Object) -> Option<&Value> {
    list(metadata(object), "ownerReferences")
        .iter()
        .find(|owner| owner["controller"] == true)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        controllers::{Loop, StandIns},
        resource::{Surroundings as _, stored::encode},
        server::{Options, Server},
        store::{Expect, Store},
    };
    use std::sync::Arc;

    fn server(stand_ins: StandIns) -> Arc<Server> {
        let options = Options {
            stand_ins,
            ..Options::default()
        };
        Server::new(options, Store::new())
    }

    fn put(server: &Server, collection: &str, name: &str, mut object: Value) {
        for (field, value) in [("namespace", "default"), ("name", name), ("uid", name)] {
            object["metadata"][field] = value.into();
        }
        let Value::Object(object) = object else {
            panic!("an object")
        };
        let key = format!("default/{name}");
        server
            .store
            .put(collection, &key, Expect::Absent, |revision| {
                encode(object, revision)
            })
            .expect("written");
    }

    fn pod(ready: bool, owned: bool) -> Value {
        let owners = json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "web", "controller": true}]);
        json!({"metadata": {"labels": {"app": "web"}, "ownerReferences": if owned { owners } else { json!([]) }},
            "status": {"conditions": [{"type": "Ready", "status": if ready { "True" } else { "False" }}]}})
    }

    /// The status of a budget of two ready pods and one that is not, and whether they have a ReplicaSet of four.
    fn status(stand_ins: StandIns, mut spec: Value, owned: bool) -> Value {
        let server = server(stand_ins);
        spec["selector"] = json!({"matchLabels": {"app": "web"}});
        put(
            &server,
            BUDGETS,
            "b",
            json!({"metadata": {"generation": 2}, "spec": spec}),
        );
        put(
            &server,
            "apps/replicasets",
            "web",
            json!({"spec": {"replicas": 4}}),
        );
        for (name, ready) in [("p1", true), ("p2", true), ("p3", false)] {
            put(&server, PODS, name, pod(ready, owned));
        }
        let mut state = Loop::new();
        while state.turn(&*server) {}
        let budget = server.get(BUDGETS, "default/b").expect("stored");
        budget.get("status").cloned().unwrap_or_default()
    }

    #[test]
    fn a_budget_counts_its_pods() {
        // Spec, owned by a ReplicaSet, desired, expected, allowed.
        let cases = [
            (json!({"minAvailable": 1}), false, 1, 3, 1),
            (json!({"minAvailable": 2}), false, 2, 3, 0),
            // Pods without a controller count only for a number.
            (json!({"minAvailable": "50%"}), false, 0, 0, 0),
            (json!({"minAvailable": "30%"}), true, 2, 4, 0),
            (json!({"minAvailable": "25%"}), true, 1, 4, 1),
            (json!({"maxUnavailable": 1}), false, 0, 0, 0),
            (json!({"maxUnavailable": 3}), true, 1, 4, 1),
            (json!({"maxUnavailable": "51%"}), true, 1, 4, 1),
            (json!({"maxUnavailable": 9}), true, 0, 4, 2),
        ];
        for (spec, owned, desired, expected, allowed) in cases {
            let status = status(StandIns::ALL, spec.clone(), owned);
            let found = [
                "currentHealthy",
                "desiredHealthy",
                "expectedPods",
                "disruptionsAllowed",
            ]
            .map(|name| status[name].as_i64());
            let wanted = [2, desired, expected, allowed].map(Some);
            assert_eq!(found, wanted, "{spec} {owned}");
            assert_eq!(status["observedGeneration"], 2);
            let is_allowed = if allowed > 0 { "True" } else { "False" };
            assert_eq!(status["conditions"][0]["status"], is_allowed);
        }
    }

    #[test]
    fn pods_of_what_has_no_scale_are_not_evicted() {
        let server = server(StandIns::ALL);
        let owner =
            json!([{"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "j", "controller": true}]);
        let selector = json!({"matchLabels": {"app": "web"}});
        put(
            &server,
            BUDGETS,
            "b",
            json!({"spec": {"maxUnavailable": 1, "selector": selector}}),
        );
        put(&server, "batch/jobs", "j", json!({"spec": {}}));
        let mut pod = pod(true, false);
        pod["metadata"]["ownerReferences"] = owner;
        put(&server, PODS, "p", pod);
        let mut state = Loop::new();
        while state.turn(&*server) {}
        let budget = server.get(BUDGETS, "default/b").expect("stored");
        let status = &budget["status"];
        assert_eq!(status["disruptionsAllowed"], 0);
        let condition = &status["conditions"][0];
        assert_eq!(
            (&condition["reason"], &condition["message"]),
            (
                &json!("SyncFailed"),
                &json!("jobs.batch does not implement the scale subresource")
            )
        );
    }

    #[test]
    fn a_deployment_counts_once() {
        let server = server(StandIns::ALL);
        let owner = |kind: &str, name: &str| json!([{"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": name, "controller": true}]);
        let selector = json!({"matchLabels": {"app": "web"}});
        put(
            &server,
            BUDGETS,
            "b",
            json!({"spec": {"maxUnavailable": "50%", "selector": selector}}),
        );
        put(&server, "apps/deployments", "d", json!({"spec": {"replicas": 3}}));
        for set in ["new", "old"] {
            let metadata = json!({"ownerReferences": owner("Deployment", "d")});
            put(
                &server,
                "apps/replicasets",
                set,
                json!({"metadata": metadata, "spec": {"replicas": 2}}),
            );
            for number in 0..2 {
                let mut pod = pod(true, false);
                pod["metadata"]["ownerReferences"] = owner("ReplicaSet", set);
                put(&server, PODS, &format!("{set}{number}"), pod);
            }
        }
        let mut state = Loop::new();
        while state.turn(&*server) {}
        let budget = server.get(BUDGETS, "default/b").expect("stored");
        let found = [
            "currentHealthy",
            "expectedPods",
            "desiredHealthy",
            "disruptionsAllowed",
        ]
        .map(|name| budget["status"][name].as_i64());
        assert_eq!(found, [4, 3, 1, 3].map(Some));
    }

    #[test]
    fn an_eviction_that_is_not_done_counts_for_two_minutes() {
        let now: Timestamp = "2026-01-01T00:10:00Z".parse().expect("a time");
        let status = json!({"disruptedPods": {"a": "2026-01-01T00:09:00Z", "b": "2026-01-01T00:07:59Z",
            "c": "2026-01-01T00:09:30Z", "gone": "2026-01-01T00:09:30Z", "d": "soon"}});
        let pod = |name: &str, leaving: bool| {
            let mut pod = json!({"metadata": {"name": name}});
            if leaving {
                pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:09:40Z".into();
            }
            match pod {
                Value::Object(pod) => pod,
                _ => panic!("an object"),
            }
        };
        let pods = [pod("a", false), pod("b", false), pod("c", true), pod("d", false)];
        let pods: Vec<&Object> = pods.iter().collect();
        let Value::Object(status) = status else {
            panic!("an object")
        };
        let (kept, again) = disrupted(&status, &pods, now);
        assert_eq!(kept.keys().collect::<Vec<_>>(), ["a"]);
        assert_eq!(again, Some(Duration::from_millis(60_001)));
    }

    #[test]
    fn a_hub_counts_nothing() {
        let status = status(StandIns::default(), json!({"minAvailable": 1}), false);
        assert_eq!(status, Value::Null);
    }
}
