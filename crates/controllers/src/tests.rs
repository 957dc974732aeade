//! The whole shell with the real core, over scripted servers.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use super::*;
use crate::client::tests::{Asked, Log, Reply, client, status};

/// A running control plane, and its hub's requests.
struct Bench {
    hub: Log,
    stop: CancellationToken,
    task: tokio::task::JoinHandle<Result<(), Error>>,
}

fn start(options: Options, reply: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Bench {
    let (hub, log) = client(reply);
    let clients: ClientFactory = Arc::new(move |scope, config| {
        assert!(!config.default_retry, "{scope}");
        Ok(hub.clone())
    });
    let stop = CancellationToken::new();
    let config = kube::Config::new(http::Uri::from_static("https://hub:6443"));
    let task = tokio::spawn(run(options, config, clients, stop.clone()));
    Bench { hub: log, stop, task }
}

impl Bench {
    /// Waits until the hub got this request.
    async fn asked(&self, start: &str) {
        while !self.hub.lines().iter().any(|line| line.starts_with(start)) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    async fn stop(self) -> Vec<String> {
        self.stop.cancel();
        self.task.await.unwrap().unwrap();
        self.hub.lines()
    }
}

/// A hub without objects except its own namespace.
fn empty(asked: &Asked) -> Reply {
    match asked.line.as_str() {
        "GET /api/v1/namespaces/kube-system" => Reply::Json(200, json!({"metadata": {"uid": "hub"}})),
        line if line.contains("watch=true") => Reply::Lines(vec![], true),
        line if line.contains("limit=") => list(&[]),
        _ => status(404, "NotFound"),
    }
}

fn list(items: &[Value]) -> Reply {
    Reply::Json(200, json!({"metadata": {"resourceVersion": "5"}, "items": items}))
}

#[tokio::test(start_paused = true)]
async fn an_empty_hub_is_listed_watched_and_left_alone() {
    let bench = start(Options::default(), empty);
    for each in [
        "GET /apis/policy.karmada.io/v1alpha1/propagationpolicies?watch=true",
        "GET /apis/work.karmada.io/v1alpha2/resourcebindings?watch=true",
        "GET /apis/cluster.karmada.io/v1alpha1/clusters?watch=true",
    ] {
        bench.asked(each).await;
    }
    let calls = bench.hub.lines().len();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(bench.hub.lines().len(), calls, "a quiet system asks nothing");
    let lines = bench.stop().await;
    assert!(lines.iter().all(|line| line.starts_with("GET ")), "{lines:?}");
}

#[tokio::test(start_paused = true)]
async fn a_hub_that_does_not_answer_yet_is_asked_until_it_does() {
    let up = Arc::new(AtomicBool::new(false));
    let is_up = up.clone();
    let bench = start(Options::default(), move |asked| {
        if is_up.load(Ordering::SeqCst) {
            empty(asked)
        } else {
            Reply::Broken
        }
    });
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(!bench.task.is_finished() && bench.hub.lines().len() < 25);
    up.store(true, Ordering::SeqCst);
    bench
        .asked("GET /apis/cluster.karmada.io/v1alpha1/clusters?watch=true")
        .await;
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_stop_while_the_hub_is_unresponsive_ends_at_once() {
    let bench = start(Options::default(), |_| Reply::Silence);
    tokio::time::sleep(Duration::from_secs(1)).await;
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_lease_is_taken_before_and_released_after_everything_else() {
    let options = Options {
        leader_election: true,
        ..Options::default()
    };
    let lease = "/apis/coordination.k8s.io/v1/namespaces/karmada-system/leases";
    let bench = start(options, move |asked| match asked.line.as_str() {
        line if line.contains("/leases") && !line.starts_with("GET") => {
            let mut held = asked.body.clone();
            held["metadata"]["resourceVersion"] = json!("1");
            Reply::Json(201, held)
        }
        _ => empty(asked),
    });
    bench.asked(&format!("POST {lease}")).await;
    let lines = bench.stop().await;
    assert!(
        lines.last().is_some_and(|line| line.contains("/leases")),
        "{lines:?}"
    );
}
