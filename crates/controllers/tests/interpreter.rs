//! The example of a hook, as people would run and configure it: its server behind TLS, the sample's configurations, and our
//! side of the line.

#![allow(
    clippy::unwrap_used,
    reason = "a panic with a backtrace is what a failing test should give"
)]

use std::{fs, path::Path};

use entourage_api::work::AggregatedStatusItem;
use entourage_controllers::hooks::{Hooks, Options};
use entourage_core::interpreter::{
    hook::{Contract, Hook, Subject, choose},
    operations::Operation,
    question::{Answer, Question},
};
use entourage_webhook::interpret::{self, Interpreter};
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;

#[path = "../../webhook/examples/interpreter/workload.rs"]
mod workload;

const WORKLOAD: Subject<'_> = Subject {
    group: "workload.example.io",
    version: "v1alpha1",
    kind: "Workload",
    resource: "workloads",
    is_namespaced: true,
};

/// The operations that the example answers: all that hooks are asked except the components of an object.
const ANSWERED: &[Operation] = &[
    Operation::References,
    Operation::Replicas,
    Operation::Revise,
    Operation::Retain,
    Operation::Reflect,
    Operation::Aggregate,
    Operation::Health,
];

fn sample(file: &str) -> Value {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config/samples/interpreter-webhook");
    let text = fs::read_to_string(folder.join(file)).unwrap();
    serde_saphyr::from_str(&text).unwrap()
}

fn hooks(configuration: Value) -> Vec<Hook> {
    match configuration["kind"].as_str().unwrap() {
        "ResourceInterpreterWebhookConfiguration" => {
            Hook::interpreters(&serde_json::from_value(configuration).unwrap())
        }
        _ => Hook::explorers(&serde_json::from_value(configuration).unwrap()),
    }
}

/// The sample's configuration, with the hook at an address of the loopback.
fn configured(file: &str, url: &str, bundle: &str) -> Vec<Hook> {
    let mut configuration = sample(file);
    configuration["webhooks"][0]["clientConfig"] = json!({"url": url, "caBundle": bundle});
    hooks(configuration)
}

/// A running example.
struct Running {
    port: u16,
    bundle: String,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

async fn start(port: u16) -> Running {
    let listener = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (tls, bundle) = interpret::self_signed(&["127.0.0.1".to_owned()], jiff::Timestamp::now()).unwrap();
    let stop = CancellationToken::new();
    let served = interpret::serve(listener, tls, Interpreter::new(workload::Workloads), stop.clone());
    Running {
        port,
        bundle,
        stop,
        task: tokio::spawn(served),
    }
}

impl Running {
    async fn end(self) {
        self.stop.cancel();
        self.task.await.unwrap();
    }
}

#[test]
fn the_samples_name_what_the_example_answers_and_nothing_else() {
    for (file, contract) in [
        ("interpreter.yaml", Contract::Interpreter),
        ("explorer/explorer.yaml", Contract::Explorer),
    ] {
        let hooks = hooks(sample(file));
        assert_eq!(
            hooks[0].call().map(|call| call.address.host().into_owned()),
            Ok("interpreter.karmada-system.svc".to_owned())
        );
        for operation in Operation::ALL.iter().chain([&Operation::Components]) {
            let is_asked = choose(&hooks, &WORKLOAD, *operation).is_some();
            assert_eq!(
                is_asked,
                ANSWERED.contains(operation),
                "{contract:?} {operation:?}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_example_answers_every_question_in_both_contracts_and_again_after_a_restart() {
    let template = sample("workload.yaml");
    let mut live = template.clone();
    live["spec"]["paused"] = true.into();
    live["status"] = json!({"readyReplicas": 2, "observedGeneration": 1});
    let item = |cluster: &str, ready: i64| AggregatedStatusItem {
        cluster_name: cluster.to_owned(),
        status: Some(json!({ "readyReplicas": ready })),
        applied: true,
        ..AggregatedStatusItem::default()
    };
    let items = [item("member1", 1), item("member2", 2)];
    let with = |field: &str, value: Value| {
        let mut object = template.clone();
        object["spec"][field] = value;
        object
    };
    let mut aggregated = template.clone();
    aggregated["status"] = json!({"readyReplicas": 3});
    let requirements = json!({"resourceRequest": {"cpu": "100m", "memory": "64Mi"}, "namespace": "default"});
    let needed =
        json!([{"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": "batch-settings"}]);
    let table = [
        (
            Question::Replicas(&template),
            Answer::Replicas {
                replicas: 3,
                requirements: Some(serde_json::from_value(requirements).unwrap()),
            },
        ),
        (
            Question::Revise(&template, 1),
            Answer::Object(with("replicas", json!(1))),
        ),
        (
            Question::Retain {
                desired: &template,
                live: &live,
            },
            Answer::Object(with("paused", json!(true))),
        ),
        (
            Question::Reflect(&live),
            Answer::Status(Some(json!({"readyReplicas": 2}))),
        ),
        (
            Question::Aggregate {
                template: &template,
                items: &items,
            },
            Answer::Object(aggregated),
        ),
        (Question::Health(&live), Answer::Healthy(false)),
        (
            Question::Dependencies(&template),
            Answer::Dependencies(serde_json::from_value(needed).unwrap()),
        ),
    ];
    let asking = Hooks::new(Options::default());
    let mut running = start(0).await;
    for file in ["interpreter.yaml", "explorer/explorer.yaml"] {
        for round in ["before", "after"] {
            let url = format!("https://127.0.0.1:{}/any", running.port);
            let hooks = configured(file, &url, &running.bundle);
            for (question, wanted) in &table {
                let hook = choose(&hooks, &WORKLOAD, question.operation()).expect("a rule for it");
                let got = asking.ask(hook, &WORKLOAD, *question).await;
                let operation = question.operation();
                assert!(
                    got.as_ref() == Ok(wanted),
                    "{file} {round} {operation:?}: {:?}",
                    got.err()
                );
            }
            let port = running.port;
            running.end().await;
            // Down: an answer that was not given yet is missing, in words.
            let hook = choose(&hooks, &WORKLOAD, Operation::Revise).expect("a rule for it");
            let error = asking
                .ask(hook, &WORKLOAD, Question::Revise(&template, 1))
                .await
                .err();
            let error = error.expect("nobody is there").to_string();
            assert!(error.contains("cannot connect to 127.0.0.1"), "{error}");
            running = start(port).await;
        }
    }
    running.end().await;
}
