//! Leadership against a Lease in memory.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
};

use http::{Method, Request, Response};
use http_body_util::BodyExt as _;
use kube::client::Body;
use serde_json::{Value, json};
use tower::service_fn;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn record(holder: &str) -> Record {
    Record {
        holder: holder.into(),
        duration: 15 * SECOND,
        transitions: 3,
        renewed: None,
    }
}

#[test]
fn the_action_follows_from_holder_and_age_of_the_record() {
    let seen = Instant::now();
    let table = [
        (None, 0, LeaseAction::Create),
        (Some(record("me")), 0, LeaseAction::Renew),
        (Some(record("me")), 60, LeaseAction::Renew),
        (Some(record("")), 0, LeaseAction::Take { transitions: 4 }),
        (Some(record("other")), 0, LeaseAction::Wait(15 * SECOND)),
        (Some(record("other")), 14, LeaseAction::Wait(SECOND)),
        (Some(record("other")), 15, LeaseAction::Take { transitions: 4 }),
    ];
    for (record, age, wanted) in table {
        let now = seen + age * SECOND;
        assert_eq!(
            decide(record.as_ref(), seen, now, "me"),
            wanted,
            "{record:?} after {age} s"
        );
    }
}

#[test]
fn identities_differ_between_calls() {
    assert_ne!(identity(), identity());
}

/// One Lease as an API server stores it.
#[derive(Clone, Default)]
struct Server(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    lease: Option<Value>,
    namespace: bool,
    revision: u64,
    hangs: bool,
    writes: Vec<String>,
}

impl Server {
    fn client(&self) -> Client {
        let server = self.clone();
        let service = service_fn(move |request: Request<Body>| {
            let server = server.clone();
            async move {
                let (parts, body) = request.into_parts();
                let bytes = body
                    .collect()
                    .await
                    .map(http_body_util::Collected::to_bytes)
                    .unwrap_or_default();
                if server.0.lock().unwrap().hangs {
                    std::future::pending::<()>().await;
                }
                let body: Value = serde_json::from_slice(&bytes).unwrap_or_default();
                let (code, answer) = server
                    .0
                    .lock()
                    .unwrap()
                    .answer(&parts.method, parts.uri.path(), body);
                let body = Body::from(serde_json::to_vec(&answer).unwrap());
                Ok::<_, Infallible>(Response::builder().status(code).body(body).unwrap())
            }
        });
        Client::new(service, "default")
    }

    fn holder(&self) -> String {
        let state = self.0.lock().unwrap();
        let lease = state.lease.clone().unwrap_or_default();
        lease["spec"]["holderIdentity"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    fn transitions(&self) -> i64 {
        self.0.lock().unwrap().lease.clone().unwrap_or_default()["spec"]["leaseTransitions"]
            .as_i64()
            .unwrap_or(-1)
    }

    fn hang(&self, hangs: bool) {
        self.0.lock().unwrap().hangs = hangs;
    }
}

impl State {
    fn answer(&mut self, method: &Method, path: &str, mut body: Value) -> (u16, Value) {
        if path == "/api/v1/namespaces" {
            self.namespace = true;
            return (201, body);
        }
        if method == Method::GET {
            return match &self.lease {
                Some(lease) => (200, lease.clone()),
                None => status(404, "NotFound"),
            };
        }
        if method == Method::POST && !self.namespace {
            return status(404, "NotFound");
        }
        let held = self
            .lease
            .as_ref()
            .map(|lease| lease["metadata"]["resourceVersion"].clone());
        if (method == Method::POST) != held.is_none()
            || held.is_some_and(|held| held != body["metadata"]["resourceVersion"])
        {
            return status(409, "Conflict");
        }
        self.revision += 1;
        body["metadata"]["resourceVersion"] = json!(self.revision.to_string());
        self.writes.push(
            body["spec"]["holderIdentity"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
        );
        self.lease = Some(body.clone());
        (if method == Method::POST { 201 } else { 200 }, body)
    }
}

fn status(code: u16, reason: &str) -> (u16, Value) {
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason,
        "message": reason});
    (code, status)
}

fn options(identity: &str) -> LeaseOptions {
    LeaseOptions {
        namespace: "system".into(),
        name: "entourage".into(),
        identity: identity.into(),
        timing: Timing::default(),
    }
}

struct Running {
    leading: Leadership,
    stop: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

impl Running {
    fn start(server: &Server, identity: &str) -> Self {
        let options = options(identity);
        let stop = CancellationToken::new();
        let (leading, campaign) = elect(server.client(), options, stop.clone());
        Self {
            leading,
            stop,
            task: tokio::spawn(campaign),
        }
    }

    async fn becomes(&mut self, leading: bool) {
        let mut published = self.leading.published().clone();
        published.wait_for(|now| *now == leading).await.unwrap();
        assert_eq!(self.leading.is_held(), leading);
    }

    async fn stopped(self) {
        self.stop.cancel();
        self.task.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_candidate_makes_namespace_and_lease_and_leads() {
    let server = Server::default();
    let mut a = Running::start(&server, "a");
    a.becomes(true).await;
    assert_eq!((server.holder().as_str(), server.transitions()), ("a", 0));
}

#[tokio::test(start_paused = true)]
async fn a_stopped_leader_releases_and_the_follower_need_not_wait() {
    let server = Server::default();
    let mut a = Running::start(&server, "a");
    a.becomes(true).await;
    let mut b = Running::start(&server, "b");
    sleep(60 * SECOND).await;
    assert!(a.leading.is_held() && !b.leading.is_held());
    a.stopped().await;
    assert_eq!(server.holder(), "");
    let released = Instant::now();
    b.becomes(true).await;
    assert!(released.elapsed() < 3 * SECOND, "{:?}", released.elapsed());
    assert_eq!((server.holder().as_str(), server.transitions()), ("b", 1));
}

#[tokio::test(start_paused = true)]
async fn acting_ends_at_the_renew_deadline_when_nothing_answers() {
    let server = Server::default();
    let mut a = Running::start(&server, "a");
    a.becomes(true).await;
    sleep(Duration::from_millis(5)).await;
    server.hang(true);
    let hung = Instant::now();
    a.becomes(false).await;
    assert!(
        hung.elapsed() <= Timing::default().renew_deadline,
        "{:?}",
        hung.elapsed()
    );
    server.hang(false);
    a.becomes(true).await;
    assert_eq!(server.transitions(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_unresponsive_leader_is_replaced_only_after_its_lease_ended() {
    let server = Server::default();
    let mut dead = Running::start(&server, "dead");
    dead.becomes(true).await;
    dead.task.abort();
    let died = Instant::now();
    let mut b = Running::start(&server, "b");
    b.becomes(true).await;
    assert!(
        died.elapsed() >= Timing::default().duration,
        "{:?}",
        died.elapsed()
    );
    assert!(
        died.elapsed() < Timing::default().duration + 5 * SECOND,
        "{:?}",
        died.elapsed()
    );
    assert_eq!(server.transitions(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_lease_was_taken_notices_and_does_not_release_it() {
    let server = Server::default();
    let mut a = Running::start(&server, "a");
    a.becomes(true).await;
    {
        let mut state = server.0.lock().unwrap();
        let mut lease = state.lease.clone().unwrap();
        lease["spec"]["holderIdentity"] = json!("thief");
        lease["metadata"]["resourceVersion"] = json!("stolen");
        state.lease = Some(lease);
    }
    a.becomes(false).await;
    a.stopped().await;
    assert_eq!(server.holder(), "thief");
}

#[tokio::test(start_paused = true)]
async fn of_many_candidates_never_two_lead() {
    let server = Server::default();
    let mut running: Vec<_> = (0..5)
        .map(|n| Running::start(&server, &format!("c{n}")))
        .collect();
    for _ in 0..5 {
        let deadline = Instant::now() + 60 * SECOND;
        while !running.iter().any(|each| each.leading.is_held()) && Instant::now() < deadline {
            sleep(SECOND / 10).await;
        }
        let leads = |each: &Running| each.leading.is_held();
        assert_eq!(running.iter().filter(|each| leads(each)).count(), 1);
        let leader = running.iter().position(leads).unwrap();
        running.remove(leader).stopped().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_renewed_has_a_holder_and_one_that_is_unresponsive_or_released_has_none() {
    let server = Server::default();
    let asked = async || holder(server.client(), &options("without")).await.unwrap();
    assert_eq!(asked().await, None, "there is no lease");
    let mut a = Running::start(&server, "a");
    a.becomes(true).await;
    assert_eq!(asked().await.as_deref(), Some("a"));
    a.task.abort();
    let died = Instant::now();
    assert_eq!(asked().await, None, "nobody renews it");
    assert!(died.elapsed() >= 15 * SECOND, "{:?}", died.elapsed());
    let mut b = Running::start(&server, "b");
    b.becomes(true).await;
    b.stopped().await;
    let released = Instant::now();
    assert_eq!(asked().await, None, "it was released");
    assert!(released.elapsed() < SECOND);
    server.hang(true);
    assert!(holder(server.client(), &options("without")).await.is_err());
}

/// A reader between the two steps in which the end of leadership is published.
#[tokio::test(start_paused = true)]
async fn the_end_of_a_lease_is_never_seen_as_a_lease_without_end() {
    let shared = leadership::Until::default();
    let (leading, published) = watch::channel(false);
    let client = Server::default().client();
    let mut candidate = Candidate {
        api: Api::namespaced(client.clone(), "ns"),
        client,
        options: options("one"),
        seen: None,
        observed_at: Instant::now(),
        until: Some(Instant::now() + SECOND),
        shared: shared.clone(),
        leading,
    };
    candidate.publish();
    // A reader that is notified late.
    let late = Leadership::new(watch::channel(true).1, shared);
    assert!(late.is_held());
    tokio::time::advance(SECOND).await;
    candidate.publish();
    assert!(!*published.borrow() && !late.is_held());
}
