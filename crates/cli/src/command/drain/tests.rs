//! Waits, against an in-memory server whose bindings are evicted while time passes.

use clap::Parser as _;
use serde_json::{Value, json};

use super::{remaining::*, *};
use crate::{
    command::{Cli, Command},
    mock::Server,
};

const WORK: &str = "/apis/work.karmada.io/v1alpha2";

fn path(name: &str) -> String {
    format!("{WORK}/namespaces/shop/resourcebindings/{name}")
}

fn binding(name: &str, clusters: &[&str]) -> Value {
    let clusters: Vec<Value> = clusters.iter().map(|name| json!({"name": name})).collect();
    json!({"metadata": {"name": name, "namespace": "shop"}, "spec": {"clusters": clusters}})
}

fn hub() -> Server {
    let hub = Server::new("hub-id");
    let cluster = json!({"metadata": {"name": "m1", "resourceVersion": "1"}, "spec": {}});
    hub.put("/apis/cluster.karmada.io/v1alpha1/clusters/m1", cluster);
    for name in ["db", "queue", "web"] {
        hub.put(&path(name), binding(name, &["m1", "m2"]));
    }
    hub
}

async fn drained(line: &str, hub: &Server) -> (Result<()>, String) {
    let line = format!("entourage drain {line}");
    let Command::Drain(args) = Cli::try_parse_from(line.split(' ')).unwrap().command else {
        unreachable!()
    };
    let mut out = Vec::new();
    let done = drain(&args, hub.client(), Time(0), &mut out).await;
    (done, String::from_utf8(out).unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_drain_ends_when_the_last_binding_has_left() {
    let hub = hub();
    let evicting = hub.clone();
    tokio::spawn(async move {
        // Evicted, but its copy still exists.
        let mut evicted = binding("web", &["m2"]);
        evicted["spec"]["gracefulEvictionTasks"] = json!([{"fromCluster": "m1"}]);
        sleep(Duration::from_millis(1_500)).await;
        evicting.put(&path("web"), evicted);
        evicting.put(&path("db"), binding("db", &["m2"]));
        evicting.put(&path("queue"), binding("queue", &[]));
        sleep(Duration::from_secs(60)).await;
        evicting.put(&path("web"), binding("web", &["m2"]));
    });
    let begin = Instant::now();
    let (done, out) = drained("m1", &hub).await;
    done.unwrap();
    assert_eq!(
        out.lines().collect::<Vec<_>>(),
        [
            "cluster/m1 cordoned",
            "cluster/m1 draining",
            "waiting for 3 bindings to leave m1",
            "binding shop/db has left; 1 of 3 bindings have left m1",
            "binding shop/queue has left; 2 of 3 bindings have left m1",
            "binding shop/web has left; 3 of 3 bindings have left m1",
            "cluster/m1 drained",
        ]
    );
    assert_eq!(begin.elapsed().as_secs(), 62);
}

#[tokio::test(start_paused = true)]
async fn a_binding_that_comes_while_others_leave_is_waited_for() {
    let hub = hub();
    let evicting = hub.clone();
    tokio::spawn(async move {
        sleep(Duration::from_millis(1_500)).await;
        evicting.put(&path("web"), binding("web", &[]));
        evicting.put(&path("late"), binding("late", &["m1"]));
    });
    let (done, out) = drained("m1 --timeout 5s", &hub).await;
    assert!(
        out.ends_with("binding shop/web has left; 1 of 4 bindings have left m1\n"),
        "{out}"
    );
    let error = format!("{:#}", done.unwrap_err());
    assert!(
        error.starts_with("3 of 4 bindings are still on m1 after 5 s: shop/db"),
        "{error}"
    );
    assert!(!error.contains("None has left"), "{error}");
}

#[test]
fn what_has_left_before_the_first_look_is_counted() {
    let there = |names: &[&str]| -> BTreeMap<String, Remaining> {
        let all = names.iter().map(|name| binding(name, &["m1"]));
        all.filter_map(|binding| remaining(&binding, "m1")).collect()
    };
    let mut out = Vec::new();
    let mut progress = Progress::new("m1", there(&["db", "web"]));
    progress.begin(&mut out).unwrap();
    progress.advance(there(&["web"]), &mut out).unwrap();
    assert_eq!(
        String::from_utf8(out).unwrap().lines().collect::<Vec<_>>(),
        [
            "waiting for 2 bindings to leave m1",
            "binding shop/db has left; 1 of 2 bindings have left m1",
        ]
    );
    let message = progress.timed_out(Duration::from_secs(5));
    assert!(!message.contains("None has left"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn a_hub_that_fails_in_between_does_not_end_the_drain() {
    let hub = hub();
    let evicting = hub.clone();
    tokio::spawn(async move {
        sleep(Duration::from_millis(1_500)).await;
        let failing = evicting.clone().without(WORK);
        sleep(Duration::from_secs(20)).await;
        for name in ["db", "queue", "web"] {
            failing.put(&path(name), binding(name, &[]));
        }
        failing.serving();
    });
    let (done, out) = drained("m1", &hub).await;
    done.unwrap();
    assert!(out.ends_with("cluster/m1 drained\n"), "{out}");

    // An error if it never responds: then it is unknown if a binding is left.
    let (done, _) = drained("m1", &self::hub().without(WORK)).await;
    let error = format!("{:#}", done.unwrap_err());
    assert!(
        error.starts_with("cannot list resourcebindings on the hub"),
        "{error}"
    );
}

#[test]
fn a_toleration_without_seconds_keeps_a_binding_for_ever() {
    for (tolerations, stays) in [
        (json!([]), false),
        (json!([{"operator": "Exists"}]), true),
        (json!([{"operator": "Exists", "effect": "NoExecute"}]), true),
        (json!([{"operator": "Exists", "effect": "NoSchedule"}]), false),
        (
            json!([{"key": "entourage.dev/drain", "operator": "Exists"}]),
            true,
        ),
        (json!([{"key": "entourage.dev/drain"}]), true),
        (
            json!([{"key": "entourage.dev/drain", "operator": "Equal", "value": ""}]),
            true,
        ),
        (
            json!([{"key": "entourage.dev/drain", "operator": "Equal", "value": "x"}]),
            false,
        ),
        (json!([{"key": "other", "operator": "Exists"}]), false),
        (json!([{"operator": "Exists", "tolerationSeconds": 5}]), false),
        // The first one that matches applies.
        (
            json!([{"operator": "Exists"}, {"operator": "Exists", "tolerationSeconds": 5}]),
            true,
        ),
        (
            json!([{"operator": "Exists", "tolerationSeconds": 5}, {"operator": "Exists"}]),
            false,
        ),
        (
            json!([{"operator": "Exists"}, {"key": "other", "operator": "Exists", "tolerationSeconds": 5}]),
            true,
        ),
    ] {
        let mut binding = binding("web", &["m1"]);
        binding["spec"]["placement"] = json!({"clusterTolerations": tolerations});
        let (_, left) = remaining(&binding, "m1").unwrap();
        assert_eq!(left.tolerates, stays, "{binding}");
        // Once it is evicted, its tolerations are ignored.
        binding["spec"]["gracefulEvictionTasks"] = json!([{"fromCluster": "m1"}]);
        assert!(!remaining(&binding, "m1").unwrap().1.tolerates);
    }
}
