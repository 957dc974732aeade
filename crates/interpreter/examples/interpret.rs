//! The cost of finding the dependencies of an object: a Deployment with 20 references, natively and by rules, and the
//! largest sample of each kind.
//!
//! `cargo run --release -p entourage-interpreter --example interpret` prints a table, the median of many runs on one core.

#![expect(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a measurement reads the clock; no decision does"
)]

use std::time::Instant;

use entourage_interpreter::{NativeKind, native, references::references};
use serde_json::{Value, json};

/// Runs of each measurement; one run is a batch of [`BATCH`], so that reading the clock costs nothing.
const RUNS: usize = 400;
const BATCH: u32 = 50;

fn main() {
    println!("| Object | References | µs each |\n|---|---|---|");
    for (group, version, kind) in [
        ("apps", "v1", "Deployment"),
        ("apps.kruise.io", "v1alpha1", "CloneSet"),
    ] {
        let found = native(group, version, kind).expect("a kind that is known");
        measure(kind, found, &workload());
    }
    let release = native("helm.toolkit.fluxcd.io", "v2", "HelmRelease").expect("a kind that is known");
    measure("HelmRelease", release, &helm_release());
}

fn measure(name: &str, kind: &dyn NativeKind, object: &Value) {
    let count = references(kind, "shop", object).len();
    let mut times: Vec<f64> = (0..RUNS)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..BATCH {
                std::hint::black_box(references(kind, "shop", std::hint::black_box(object)));
            }
            start.elapsed().as_secs_f64() * 1e6 / f64::from(BATCH)
        })
        .collect();
    times.sort_by(f64::total_cmp);
    println!("| {name} | {count} | {:.1} |", times[RUNS / 2]);
}

/// Two containers and an init container that name 20 objects in the usual ways.
fn workload() -> Value {
    let container = |name: &str| {
        json!({
            "name": name, "image": "web:1", "ports": [{"containerPort": 80}],
            "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
            "env": [
                {"name": "A", "valueFrom": {"secretKeyRef": {"name": format!("{name}-token"), "key": "t"}}},
                {"name": "B", "valueFrom": {"configMapKeyRef": {"name": format!("{name}-mode"), "key": "m"}}},
                {"name": "C", "value": "plain"},
            ],
            "envFrom": [{"configMapRef": {"name": format!("{name}-env")}}, {"secretRef": {"name": format!("{name}-env")}}],
            "volumeMounts": [{"name": "a", "mountPath": "/a"}],
        })
    };
    json!({
        "metadata": {"name": "web", "namespace": "shop", "generation": 3},
        "spec": {"replicas": 3, "template": {"metadata": {"labels": {"app": "web"}}, "spec": {
            "serviceAccountName": "web",
            "imagePullSecrets": [{"name": "pull"}],
            "containers": [container("web"), container("proxy")],
            "initContainers": [container("init")],
            "volumes": [
                {"name": "a", "configMap": {"name": "files"}},
                {"name": "b", "secret": {"secretName": "certs"}},
                {"name": "c", "persistentVolumeClaim": {"claimName": "data"}},
                {"name": "d", "projected": {"sources": [
                    {"configMap": {"name": "more"}}, {"secret": {"name": "more"}}, {"serviceAccountToken": {"path": "t"}},
                ]}},
                {"name": "e", "csi": {"driver": "a", "nodePublishSecretRef": {"name": "publish"}}},
                {"name": "f", "emptyDir": {}},
            ],
        }}},
    })
}

fn helm_release() -> Value {
    json!({
        "metadata": {"name": "shop", "namespace": "shop"},
        "spec": {
            "chart": {"spec": {"chart": "shop", "sourceRef": {"kind": "HelmRepository", "name": "charts"}}},
            "serviceAccountName": "deployer",
            "valuesFrom": (0..18).map(|n| json!({"kind": "ConfigMap", "name": format!("values-{n}")})).collect::<Vec<_>>(),
        },
    })
}
