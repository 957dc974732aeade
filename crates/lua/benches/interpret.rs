//! The cost of one operation: a Deployment with 20 references, asked for its dependencies by a walk in Lua and by
//! `kube.getPodDependencies`. Aim: at most 200 µs, from JSON to JSON. Run: `cargo bench -p entourage-lua`.

use std::{hint::black_box, time::Instant};

use entourage_interpreter::question::{Answer, Question};
use entourage_lua::Script;
use serde_json::{Value, json};

const RUNS: usize = 2000;

const WALK: &str = include_str!("walk.lua");

const KUBE: &str = "
local kube = require('kube')
function GetDependencies(desiredObj)
  return kube.getPodDependencies(desiredObj.spec.template, desiredObj.metadata.namespace)
end
";

const HEALTH: &str = "
function InterpretHealth(observedObj)
  return observedObj.status ~= nil and observedObj.status.readyReplicas == observedObj.spec.replicas
end
";

/// Ten ConfigMaps and ten Secrets, from environments, volumes and pull secrets of three containers.
fn deployment() -> Value {
    let container = |index: usize| {
        json!({
            "name": format!("container-{index}"),
            "image": "registry.example.com/team/app:1.2.3",
            "ports": [{"containerPort": 8080, "name": "http", "protocol": "TCP"}],
            "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "100m", "memory": "128Mi"}},
            "env": [
                {"name": "A", "valueFrom": {"configMapKeyRef": {"name": format!("config-env-{index}"), "key": "a"}}},
                {"name": "B", "valueFrom": {"secretKeyRef": {"name": format!("secret-env-{index}"), "key": "b"}}},
                {"name": "C", "value": "plain"},
            ],
            "envFrom": [
                {"configMapRef": {"name": format!("config-all-{index}")}},
                {"secretRef": {"name": format!("secret-all-{index}")}},
            ],
            "volumeMounts": [{"name": "v0", "mountPath": "/etc/v0"}, {"name": "v1", "mountPath": "/etc/v1"}],
        })
    };
    let volumes: Vec<_> = (0..4)
        .flat_map(|index| {
            [
                json!({"name": format!("v{index}"), "configMap": {"name": format!("config-volume-{index}")}}),
                json!({"name": format!("s{index}"), "secret": {"secretName": format!("secret-volume-{index}")}}),
            ]
        })
        .chain([json!({"name": "tmp", "emptyDir": {}})])
        .take(8)
        .collect();
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": "shop", "namespace": "shop", "generation": 3, "resourceVersion": "4711",
            "labels": {"app": "shop", "team": "a"}, "annotations": {"example.com/note": "some words"},
        },
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"app": "shop"}},
            "template": {
                "metadata": {"labels": {"app": "shop"}},
                "spec": {
                    "containers": (0..3).map(container).collect::<Vec<_>>(),
                    "volumes": volumes,
                },
            },
        },
        "status": {"replicas": 3, "readyReplicas": 3},
    })
}

fn main() {
    let object = deployment();
    for (what, source, is_health) in [
        ("walk in Lua", WALK, false),
        ("kube", KUBE, false),
        ("health", HEALTH, true),
    ] {
        let script = Script::compile(what, source).expect("compiles");
        let question = if is_health {
            Question::Health(&object)
        } else {
            Question::Dependencies(&object)
        };
        if let Answer::Dependencies(found) = script.answer(question).expect("answers") {
            assert_eq!(found.len(), 20, "{what}");
        }
        let mut times: Vec<_> = (0..RUNS)
            .map(|_| {
                let started = Instant::now();
                let _ = black_box(script.answer(black_box(question)));
                started.elapsed()
            })
            .collect();
        times.sort();
        println!(
            "{what}: min {:?} median {:?}, 99 % {:?}",
            times[0],
            times[RUNS / 2],
            times[RUNS * 99 / 100]
        );
    }
}
