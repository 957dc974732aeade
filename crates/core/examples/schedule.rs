//! The time to plan the bindings of many templates for many clusters, on one core: clusters are filtered and selected,
//! replicas are divided, and the object to write is made; and the cost of one event of a Cluster. Nothing is sent anywhere.
//!
//! `cargo run --release -p entourage-core --example schedule` prints a table; figures are in docs/performance.md.

#![expect(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a measurement reads the clock; no decision does"
)]

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use entourage_core::{
    Engine,
    config::Config,
    object::{Gvk, ResourceId, Time},
    observation::{self, ObjectRef, Observation, Watch},
    plan::{Change, Key, Verb},
};
use serde_json::{Value, json};

/// Bindings and clusters of each measurement.
const SIZES: [(usize, usize); 5] = [
    (2_500, 100),
    (5_000, 100),
    (10_000, 100),
    (10_000, 50),
    (10_000, 200),
];

/// The placements of the policies, one after the other.
fn placements() -> Vec<(&'static str, Value)> {
    let regions = json!([{"spreadByField": "cluster", "maxGroups": 9}, {"spreadByField": "region", "maxGroups": 3, "minGroups": 2}]);
    let weights = json!({"replicaSchedulingType": "Divided", "weightPreference": {"staticWeightList": [
        {"targetCluster": {"labelSelector": {"matchLabels": {"tier": "1"}}}, "weight": 3},
        {"targetCluster": {}, "weight": 1},
    ]}});
    vec![
        ("everywhere", json!({})),
        (
            "three by name",
            json!({"clusterAffinity": {"clusterNames": ["c0007", "c0013", "c0021"]}}),
        ),
        (
            "a tier by label",
            json!({"clusterAffinity": {"labelSelector": {"matchLabels": {"tier": "1"}}}}),
        ),
        ("nine in three regions", json!({"spreadConstraints": regions})),
        ("divided by weight", json!({"replicaScheduling": weights})),
        (
            "two groups",
            json!({"clusterAffinities": [
                {"affinityName": "none", "labelSelector": {"matchLabels": {"tier": "9"}}},
                {"affinityName": "some", "fieldSelector": {"matchExpressions": [
                    {"key": "region", "operator": "In", "values": ["r1", "r2"]},
                ]}},
            ]}),
        ),
    ]
}

fn main() {
    println!("| Bindings | Clusters | first choice | per binding | chosen again, unchanged | per binding |");
    println!("|---|---|---|---|---|---|");
    for (bindings, clusters) in SIZES {
        let mut world = World::new(bindings, clusters, &placements());
        let first = world.plan(bindings);
        let again = world.plan(0);
        let each = |time: Duration| time / u32::try_from(bindings).unwrap_or(u32::MAX);
        println!(
            "| {bindings} | {clusters} | {first:.2?} | {:.1?} | {again:.2?} | {:.1?} |",
            each(first),
            each(again)
        );
    }
    println!("\n| 10,000 bindings, 100 clusters, all of them | first choice | chosen again |\n|---|---|---|");
    let impossible = json!({"spreadConstraints": [
        {"spreadByField": "region", "maxGroups": 1},
        {"spreadByField": "zone", "minGroups": 3},
    ]});
    let by_room = |more: Value| {
        let mut strategy = json!({"replicaSchedulingType": "Divided"});
        for (key, value) in more.as_object().into_iter().flatten() {
            strategy[key] = value.clone();
        }
        json!({"replicaScheduling": strategy})
    };
    let dynamic = by_room(json!({"weightPreference": {"dynamicWeight": "AvailableReplicas"}}));
    let aggregated = by_room(json!({"replicaDivisionPreference": "Aggregated"}));
    let all = placements()
        .into_iter()
        .chain([
            ("divided by room", dynamic),
            ("on few clusters with room", aggregated),
        ])
        .chain([("constraints that cannot hold", impossible)]);
    for (name, placement) in all {
        let mut world = World::new(10_000, 100, &[(name, placement)]);
        println!("| {name} | {:.2?} | {:.2?} |", world.plan(10_000), world.plan(0));
    }
    println!(
        "\n| Bindings | Clusters | Event of one Cluster | keys planned | taken in | with its plans |\n|---|---|---|---|---|---|"
    );
    for (bindings, clusters) in [(2_500, 100), (5_000, 100), (10_000, 100), (2_000, 1_000)] {
        let mut world = World::new(bindings, clusters, &placements());
        world.plan(bindings);
        for (name, change) in EVENTS {
            let (keys, taken_in, planned) = world.event(*change);
            println!("| {bindings} | {clusters} | {name} | {keys} | {taken_in:.1?} | {planned:.1?} |");
        }
    }
}

/// A change of a Cluster.
type Event = fn(&mut Value);

/// The events of the Cluster `c0007`, one after the other.
const EVENTS: &[(&str, Event)] = &[
    ("a status that decides nothing", |cluster| {
        cluster["status"]["nodeSummary"] = json!({"totalNum": 3});
    }),
    ("a label that no policy reads", |cluster| {
        cluster["metadata"]["labels"]["team"] = json!("a");
    }),
    ("one more API", |cluster| {
        let more = json!({"groupVersion": "batch/v1", "resources": [{"name": "jobs", "kind": "Job"}]});
        if let Some(served) = cluster["status"]["apiEnablements"].as_array_mut() {
            served.push(more);
        }
    }),
    ("a label that a policy reads", |cluster| {
        cluster["metadata"]["labels"]["tier"] = json!("1");
    }),
    ("not ready", |cluster| {
        cluster["status"]["conditions"][0]["status"] = json!("False");
    }),
    ("ready again", |cluster| {
        cluster["status"]["conditions"][0]["status"] = json!("True");
    }),
];

/// A hub as the control plane knows it: templates that are claimed, and clusters that are ready.
struct World {
    engine: Engine,
    templates: Vec<ResourceId>,
    seen: BTreeMap<Watch, BTreeSet<ObjectRef>>,
    version: u64,
    /// The Cluster that events are about.
    cluster: Value,
}

impl World {
    fn new(bindings: usize, clusters: usize, placements: &[(&str, Value)]) -> Self {
        let mut world = Self {
            engine: Engine::new(Config::new("hub")),
            templates: Vec::new(),
            seen: BTreeMap::new(),
            version: 0,
            cluster: cluster(7),
        };
        for number in 0..clusters {
            world.see(&Watch::Clusters, cluster(number));
        }
        for (number, (_, placement)) in placements.iter().enumerate() {
            world.see(&Watch::Policies, policy(number, placement));
        }
        let deployments = Watch::Templates(Gvk::new("apps/v1", "Deployment"));
        for number in 0..bindings {
            let template = template(number, number % placements.len());
            if let Some(ObjectRef::Template(id)) = observation::which(&deployments, &template) {
                world.templates.push(id);
            }
            world.see(&deployments, template);
        }
        for watch in world.engine.demand().clone() {
            world.list(watch);
        }
        world
    }

    /// Plans every binding and takes over what would be written, which must be so many. Answers how long the planning
    /// took.
    fn plan(&mut self, writes: usize) -> Duration {
        let mut spent = Duration::ZERO;
        let mut written = Vec::new();
        for id in &self.templates {
            let key = Key::Binding(id.clone());
            let begin = Instant::now();
            let plan = self.engine.plan(&key, Time(1));
            spent += begin.elapsed();
            written.extend(plan.changes.into_iter().filter_map(|change| match change {
                Change::Hub {
                    verb: Verb::Create(object) | Verb::Replace(object),
                    ..
                } => Some(object),
                _ => None,
            }));
        }
        assert_eq!(written.len(), writes, "bindings to write");
        for mut object in written {
            object["metadata"]["uid"] = json!("u");
            object["metadata"]["generation"] = json!(1);
            object["status"] = json!({"conditions": [{
                "type": "Scheduled", "status": "True", "reason": "Success", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z",
            }]});
            self.see(&Watch::Bindings, object);
        }
        spent
    }

    /// Changes the Cluster `c0007`. Returns how many keys are planned for that, how long the change took to be taken in, and that
    /// with all plans.
    fn event(&mut self, change: Event) -> (usize, Duration, Duration) {
        change(&mut self.cluster);
        self.version += 1;
        self.cluster["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let subject =
            observation::project(&Watch::Clusters, &Default::default(), &self.cluster).expect("a Cluster");
        let begin = Instant::now();
        let keys = self.engine.observe(Observation::Seen(subject), Time(1));
        let keys: BTreeSet<_> = keys.into_iter().collect();
        let taken_in = begin.elapsed();
        for key in &keys {
            std::hint::black_box(self.engine.preview(key, Time(1)));
        }
        (keys.len(), taken_in, begin.elapsed())
    }

    fn see(&mut self, watch: &Watch, mut object: Value) {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        if let Some(which) = observation::which(watch, &object) {
            self.seen.entry(watch.clone()).or_default().insert(which);
        }
        if let Some(subject) = observation::project(watch, &Default::default(), &object) {
            self.engine.observe(Observation::Seen(subject), Time(1));
        }
    }

    /// Ends the list of a watch: everything seen so far is there.
    fn list(&mut self, watch: Watch) {
        let revision = self.version;
        let present = self.seen.get(&watch).cloned().unwrap_or_default();
        self.engine.observe(
            Observation::Listed {
                watch,
                present,
                revision,
            },
            Time(1),
        );
    }
}

fn cluster(number: usize) -> Value {
    let served: Vec<Value> = (0..30)
        .map(|group| json!({"groupVersion": format!("group{group}.example.com/v1"), "resources": [{"name": "things", "kind": "Thing"}]}))
        .chain([json!({"groupVersion": "apps/v1", "resources": [{"name": "deployments", "kind": "Deployment"}]})])
        .collect();
    json!({
        "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster",
        "metadata": {"name": format!("c{number:04}"), "uid": format!("c{number}"), "labels": {"tier": (number % 4).to_string()}},
        "spec": {
            "syncMode": "Push", "region": format!("r{}", number % 5), "zones": [format!("z{}", number % 10)],
            "taints": if number.is_multiple_of(10) { json!([{"key": "maintenance", "effect": "NoSchedule"}]) } else { json!([]) },
        },
        "status": {
            "kubernetesVersion": "v1.36.0",
            "apiEnablements": served,
            "resourceSummary": {
                "allocatable": {"cpu": "2000", "memory": "2Ti", "ephemeral-storage": "9Ti", "pods": "9000"},
                "allocated": {"cpu": (number % 7).to_string(), "memory": "100Gi", "pods": "300"},
            },
            "conditions": [{
                "type": "Ready", "status": "True", "reason": "ClusterReady", "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }],
        },
    })
}

fn policy(number: usize, placement: &Value) -> Value {
    json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy",
        "metadata": {
            "namespace": "default", "name": format!("p{number}"), "uid": format!("p{number}"),
            "labels": {"propagationpolicy.karmada.io/permanent-id": format!("p{number}")},
        },
        "spec": {
            "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default"}],
            "placement": placement,
        },
    })
}

fn template(number: usize, policy: usize) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {
            "namespace": "default", "name": format!("d{number:05}"), "uid": format!("d{number}"), "generation": 1,
            "labels": {"propagationpolicy.karmada.io/permanent-id": format!("p{policy}")},
            "annotations": {
                "propagationpolicy.karmada.io/namespace": "default",
                "propagationpolicy.karmada.io/name": format!("p{policy}"),
            },
        },
        "spec": {"replicas": 40, "template": {"spec": {"containers": [
            {"name": "a", "image": "a", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}},
        ]}}},
    })
}
