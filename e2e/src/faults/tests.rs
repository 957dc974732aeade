//! Each fault over a mock of a server: the requests that reach it, and the responses that the client gets.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;

use futures::{StreamExt, TryStreamExt};
use http::{Request, Response};
use http_body_util::BodyExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::{Api, DynamicObject, PostParams, WatchEvent, WatchParams};
use kube::client::{Body, ClientBuilder};
use serde_json::json;
use tower::{Layer, Service};

use super::*;

/// The form in which controllers take it.
type Factory = Arc<dyn Fn(&str, kube::Config) -> kube::Result<Client> + Send + Sync>;

/// A server that counts what reaches it and answers everything with a ConfigMap, and a watch with fixed frames.
#[derive(Clone, Default)]
struct Server {
    reached: Arc<AtomicU64>,
    frames: Arc<Vec<String>>,
}

impl Server {
    fn with_frames(frames: &[&str]) -> Self {
        Self {
            frames: Arc::new(frames.iter().map(|f| (*f).to_owned()).collect()),
            ..Self::default()
        }
    }

    fn reached(&self) -> u64 {
        self.reached.load(Ordering::SeqCst)
    }

    fn client(&self, faults: &Faults, scope: &str) -> Client {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let server = server.clone();
            async move {
                server.reached.fetch_add(1, Ordering::SeqCst);
                let watch = request.uri().query().unwrap_or_default().contains("watch=true");
                let body = if watch {
                    server.frames.concat()
                } else {
                    config_map("a").to_string()
                };
                Ok::<_, Infallible>(Response::new(Body::from(body.into_bytes())))
            }
        });
        ClientBuilder::new(service, "ns")
            .with_layer(&FaultLayer::new(faults, scope))
            .build()
    }
}

fn faults(line: &str) -> Faults {
    Faults::new(line.parse().unwrap())
}

fn config_map(name: &str) -> serde_json::Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "ns", "uid": "u1"}})
}

fn config_maps(client: &Client) -> Api<ConfigMap> {
    Api::namespaced(client.clone(), "ns")
}

async fn create(client: &Client) -> kube::Result<ConfigMap> {
    let object = serde_json::from_value(config_map("a")).unwrap();
    config_maps(client).create(&PostParams::default(), &object).await
}

/// A frame as a line.
fn frame(kind: &str, name: &str, uid: &str, version: u64) -> String {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "ns", "uid": uid, "resourceVersion": version.to_string()}});
    format!("{}\n", json!({"type": kind, "object": object}))
}

/// The events of a watch until it ends: `ADDED a 1`, `410`.
async fn watched(client: &Client) -> Vec<String> {
    let resource = kube::api::ApiResource::erase::<ConfigMap>(&());
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), "ns", &resource);
    let events = api.watch(&WatchParams::default(), "0").await.unwrap();
    let show = |kind: &str, object: DynamicObject| {
        format!(
            "{kind} {} {}",
            object.metadata.name.unwrap(),
            object.metadata.resource_version.unwrap()
        )
    };
    let lines = events.map_ok(|event| match event {
        WatchEvent::Added(o) => show("ADDED", o),
        WatchEvent::Modified(o) => show("MODIFIED", o),
        WatchEvent::Deleted(o) => show("DELETED", o),
        WatchEvent::Bookmark(_) => "BOOKMARK".to_owned(),
        WatchEvent::Error(status) => status.code.to_string(),
    });
    lines
        .map(|line| line.unwrap_or_else(|error| error.to_string()))
        .collect()
        .await
}

fn code(error: &kube::Error) -> u16 {
    match error {
        kube::Error::Api(status) => status.code,
        other => panic!("not a status: {other}"),
    }
}

#[tokio::test]
async fn an_error_before_the_effect_does_not_reach_the_server() {
    let (server, faults) = (Server::default(), faults("seed=1 error-before=100% status=409"));
    let client = server.client(&faults, "hub");
    let error = create(&client).await.unwrap_err();
    assert_eq!(code(&error), 409);
    assert_eq!(server.reached(), 0);
    assert_eq!(faults.recorder().writes(), []);
    assert_eq!(
        faults.recorder().all_writes()[0].to_string(),
        "hub create configmaps ns/: not sent"
    );
    assert_eq!(faults.recorder().faults(), BTreeMap::from([("error-before", 1)]));
}

#[tokio::test]
async fn an_error_after_the_effect_hides_what_the_server_did() {
    let (server, faults) = (Server::default(), faults("seed=1 error-after=100%"));
    let client = server.client(&faults, "hub");
    for n in 1..=20 {
        match create(&client).await.unwrap_err() {
            kube::Error::Api(status) => assert!(matches!(status.code, 500 | 504), "{status:?}"),
            other => assert!(other.to_string().contains("reset"), "{other}"),
        }
        assert_eq!(server.reached(), n);
    }
    assert!(
        faults
            .recorder()
            .writes()
            .iter()
            .all(|w| w.outcome == Outcome::Answered(200))
    );
}

#[tokio::test]
async fn a_throttled_client_learns_how_long_to_wait() {
    let faults = faults("seed=1 error-before=100% status=429");
    let inner =
        tower::service_fn(|_: Request<Body>| async { Ok::<_, Infallible>(Response::new(Body::empty())) });
    let mut service = FaultLayer::new(&faults, "hub").layer(inner);
    let request = Request::builder()
        .uri("/api/v1/pods")
        .body(Body::empty())
        .unwrap();
    let response = service.call(request).await.unwrap();
    assert_eq!(
        (
            response.status().as_u16(),
            response.headers()["retry-after"].to_str().unwrap()
        ),
        (429, "1")
    );
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let status: serde_json::Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(status["reason"], "TooManyRequests");
}

#[tokio::test]
async fn a_hung_call_is_pending_until_it_is_dropped_or_the_process_dies() {
    let (server, faults) = (Server::default(), faults("seed=1 hang=100%"));
    let client = server.client(&faults, "hub");
    let mut call = pin!(create(&client));
    // Long enough for the client's own worker task to hand the call to the layer.
    while faults.recorder().faults().is_empty() {
        assert!(futures::poll!(&mut call).is_pending());
        tokio::task::yield_now().await;
    }
    assert!(matches!(futures::poll!(&mut call), Poll::Pending));
    faults.kill();
    assert!(is_crash(&call.await.unwrap_err()));
}

#[tokio::test]
async fn latency_is_waited_before_the_call_is_sent() {
    let (server, faults) = (Server::default(), faults("seed=1 latency=5..5ms"));
    let client = server.client(&faults, "hub");
    let start = std::time::Instant::now();
    create(&client).await.unwrap();
    assert!(start.elapsed().as_millis() >= 5);
    assert_eq!(server.reached(), 1);
}

#[tokio::test]
async fn a_crash_after_the_kth_call_lets_it_take_effect_and_then_nothing() {
    let (server, faults) = (Server::default(), faults("seed=1 crash-after=3"));
    let (hub, member) = (server.client(&faults, "hub"), server.client(&faults, "member1"));
    create(&hub).await.unwrap();
    create(&member).await.unwrap();
    assert!(!faults.is_crashed());
    assert!(is_crash(&create(&hub).await.unwrap_err()));
    assert_eq!(server.reached(), 3);
    faults.crashed().await;
    assert!(is_crash(&create(&member).await.unwrap_err()));
    assert_eq!(server.reached(), 3);
}

#[tokio::test]
async fn a_crash_before_the_kth_call_does_not_send_it() {
    let (server, faults) = (Server::default(), faults("seed=1 crash-before=2"));
    let client = server.client(&faults, "hub");
    create(&client).await.unwrap();
    assert!(is_crash(&create(&client).await.unwrap_err()));
    assert_eq!(server.reached(), 1);
}

#[tokio::test]
async fn a_crash_that_counts_writes_lets_reads_pass() {
    let (server, faults) = (
        Server::default(),
        faults("seed=1 crash-after=1:writes only=member1"),
    );
    let (hub, member) = (server.client(&faults, "hub"), server.client(&faults, "member1"));
    for _ in 0..5 {
        config_maps(&member).get("a").await.unwrap();
        create(&hub).await.unwrap();
    }
    assert!(is_crash(&create(&member).await.unwrap_err()));
    assert!(
        is_crash(&create(&hub).await.unwrap_err()),
        "a process dies as a whole"
    );
}

#[tokio::test]
async fn after_a_restart_new_clients_live_and_old_ones_stay_dead() {
    let (server, faults) = (Server::default(), faults("seed=1 crash-after=1"));
    let old = server.client(&faults, "hub");
    assert!(is_crash(&create(&old).await.unwrap_err()));
    faults.restart();
    assert!(!faults.is_crashed());
    let new = server.client(&faults, "hub");
    for _ in 0..3 {
        create(&new).await.unwrap();
    }
    assert!(is_crash(&create(&old).await.unwrap_err()));
    assert_eq!(server.reached(), 4);
}

#[tokio::test]
async fn a_watch_under_way_breaks_when_the_process_dies() {
    let faults = Faults::none();
    let (send, receive) =
        futures::channel::mpsc::unbounded::<Result<http_body::Frame<bytes::Bytes>, Infallible>>();
    let body = frames::mortal(http_body_util::StreamBody::new(receive), &faults, 1);
    let mut body = pin!(body);
    send.unbounded_send(Ok(http_body::Frame::data(frame("ADDED", "a", "u1", 1).into())))
        .unwrap();
    assert!(body.frame().await.unwrap().is_ok());
    faults.kill();
    let error = body.frame().await.unwrap().unwrap_err();
    assert!(error.is::<Crashed>());
    assert!(body.frame().await.is_none());
}

#[tokio::test]
async fn without_faults_a_watch_is_handed_on_as_it_is() {
    let bookmark = json!({"type": "BOOKMARK", "object":
        {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}}});
    let bookmark = format!("{bookmark}\n");
    let server = Server::with_frames(&[
        &frame("ADDED", "a", "u1", 1),
        &bookmark,
        &frame("DELETED", "a", "u1", 2),
    ]);
    let client = server.client(&Faults::none(), "hub");
    assert_eq!(watched(&client).await, ["ADDED a 1", "BOOKMARK", "DELETED a 2"]);
}

#[tokio::test]
async fn a_cut_watch_ends_before_the_frame_and_a_resume_finds_it() {
    let frames: Vec<String> = (1..=40).map(|n| frame("MODIFIED", "a", "u1", n)).collect();
    let faults = faults("seed=3 watch-cut=20%");
    let mut next = 0;
    while next < frames.len() {
        // What a server answers to a resume: everything after the last version seen.
        let rest: Vec<&str> = frames[next..].iter().map(String::as_str).collect();
        let seen = watched(&Server::with_frames(&rest).client(&faults, "hub")).await;
        for (offset, line) in seen.iter().enumerate() {
            assert_eq!(*line, format!("MODIFIED a {}", next + offset + 1));
        }
        next += seen.len();
    }
    assert!(faults.recorder().faults()["watch-cut"] > 1);
}

#[tokio::test]
async fn a_gone_watch_answers_410_and_ends() {
    let server = Server::with_frames(&[&frame("ADDED", "a", "u1", 1), &frame("ADDED", "b", "u2", 2)]);
    let client = server.client(&faults("seed=1 watch-gone=100%"), "hub");
    assert_eq!(watched(&client).await, ["410"]);
}

#[tokio::test]
async fn a_watch_that_stalls_says_nothing_for_a_while_and_breaks() {
    let server = Server::with_frames(&[&frame("ADDED", "a", "u1", 1), &frame("ADDED", "b", "u2", 2)]);
    let client = server.client(&faults("seed=1 watch-stall=100%"), "hub");
    let began = tokio::time::Instant::now();
    let reported = watched(&client).await;
    assert!(
        matches!(&*reported, [broken] if broken.contains("reset by the fault plan")),
        "{reported:?}"
    );
    assert!(began.elapsed() >= frames::STALL, "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_dropped_frame_never_comes() {
    let server = Server::with_frames(&[&frame("ADDED", "a", "u1", 1), &frame("ADDED", "b", "u2", 2)]);
    let client = server.client(&faults("seed=1 watch-drop=100%"), "hub");
    assert_eq!(watched(&client).await, [""; 0]);
}

#[tokio::test]
async fn a_repeated_frame_comes_twice() {
    let server = Server::with_frames(&[&frame("ADDED", "a", "u1", 1), &frame("MODIFIED", "a", "u1", 2)]);
    let client = server.client(&faults("seed=1 watch-repeat=100% watch-delay=0..2ms"), "hub");
    assert_eq!(
        watched(&client).await,
        ["ADDED a 1", "ADDED a 1", "MODIFIED a 2", "MODIFIED a 2"]
    );
}

#[tokio::test]
async fn a_stale_frame_of_the_same_object_comes_after_a_newer_one() {
    let frames = [
        frame("ADDED", "a", "u1", 1),
        frame("ADDED", "b", "u2", 2),
        frame("MODIFIED", "a", "u1", 3),
    ];
    let server = Server::with_frames(&frames.each_ref().map(String::as_str));
    let client = server.client(&faults("seed=1 watch-stale=100%"), "hub");
    assert_eq!(
        watched(&client).await,
        ["ADDED a 1", "ADDED b 2", "MODIFIED a 3", "ADDED a 1"]
    );
}

#[tokio::test]
async fn after_a_stale_frame_of_another_life_the_truth_comes_again() {
    let frames = [
        frame("ADDED", "a", "u1", 1),
        frame("DELETED", "a", "u1", 2),
        frame("ADDED", "a", "u2", 3),
    ];
    let server = Server::with_frames(&frames.each_ref().map(String::as_str));
    let client = server.client(&faults("seed=1 watch-stale=100%"), "hub");
    let seen = watched(&client).await;
    assert_eq!(
        seen[..4],
        ["ADDED a 1", "DELETED a 2", "ADDED a 1", "DELETED a 2"]
    );
    assert_eq!(
        (seen[4].as_str(), seen[6].as_str(), seen.len()),
        ("ADDED a 3", "ADDED a 3", 7)
    );
    assert_ne!(seen[5], "ADDED a 3");
}

#[tokio::test]
async fn frames_are_found_however_the_bytes_are_cut() {
    let text = [frame("ADDED", "ä", "u1", 1), frame("MODIFIED", "ä", "u1", 2)].concat();
    for size in 1..40 {
        let pieces = text
            .as_bytes()
            .chunks(size)
            .map(|piece| Ok::<_, Infallible>(http_body::Frame::data(bytes::Bytes::copy_from_slice(piece))));
        let pieces: Vec<_> = pieces.collect();
        let body = http_body_util::StreamBody::new(futures::stream::iter(pieces));
        let body = frames::watch(
            body,
            &faults("seed=1 watch-repeat=100%"),
            1,
            "hub watch".to_owned(),
        );
        let out = body.collect().await.unwrap().to_bytes();
        assert_eq!(out.iter().filter(|b| **b == b'\n').count(), 4, "pieces of {size}");
    }
}

#[tokio::test]
async fn the_same_line_gives_the_same_run_however_tasks_interleave() {
    let run = |reverse: bool| async move {
        let (server, faults) = (
            Server::default(),
            faults("seed=9 error-before=30% error-after=30%"),
        );
        let client = server.client(&faults, "hub");
        let mut names: Vec<u64> = (0..30).collect();
        if reverse {
            names.reverse();
        }
        let calls = names.into_iter().map(|n| {
            let api = config_maps(&client);
            async move {
                (
                    n,
                    api.get(&format!("a{n}")).await.map_err(|e| e.to_string()).err(),
                )
            }
        });
        let mut outcomes = futures::future::join_all(calls).await;
        outcomes.sort();
        outcomes
    };
    let first = run(false).await;
    assert_eq!(first, run(true).await);
    assert!(first.iter().any(|o| o.1.is_some()) && first.iter().any(|o| o.1.is_none()));
}

#[tokio::test]
async fn the_recorder_counts_by_scope_verb_and_resource_and_leaves_leases_apart() {
    let (server, faults) = (Server::default(), Faults::none());
    let (hub, member) = (server.client(&faults, "hub"), server.client(&faults, "member1"));
    config_maps(&hub).get("a").await.unwrap();
    create(&member).await.unwrap();
    let lease = Request::put("/apis/coordination.k8s.io/v1/namespaces/ns/leases/l")
        .body(Vec::new())
        .unwrap();
    hub.request_text(lease).await.unwrap();

    let recorder = faults.recorder();
    let calls: Vec<String> = recorder
        .calls()
        .iter()
        .map(|((s, v, r), n)| format!("{s} {v} {r} {n}"))
        .collect();
    let want = [
        "hub get configmaps 1",
        "hub update leases.coordination.k8s.io 1",
        "member1 create configmaps 1",
    ];
    assert_eq!(calls, want);
    let writes: Vec<String> = recorder.writes().iter().map(ToString::to_string).collect();
    assert_eq!(writes, ["member1 create configmaps ns/: 200"]);
    assert_eq!((recorder.all_writes().len(), recorder.total()), (2, 3));

    recorder.reset();
    assert_eq!((recorder.total(), recorder.writes().len()), (0, 0));
}

#[tokio::test]
async fn the_factory_makes_clients_that_die_with_the_run() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let faults = Faults::none();
    let factory: Factory = Arc::new(client_factory(&faults));
    let client = factory(
        "member1",
        kube::Config::new("http://127.0.0.1:1".parse().unwrap()),
    )
    .unwrap();
    faults.kill();
    assert!(is_crash(&create(&client).await.unwrap_err()));
    assert_eq!(faults.recorder().total(), 0);
}
