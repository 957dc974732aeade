//! The client against estimators on the loopback: good ones, bad ones, with TLS and without.

use std::{collections::BTreeSet, convert::Infallible, net::SocketAddr};

use bytes::Bytes;
use futures::{StreamExt, future::BoxFuture, stream};
use http::{HeaderMap, Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody, combinators::BoxBody};
use hyper::{body::Incoming, server::conn::http2, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
    task::JoinSet,
};
use tokio_rustls::TlsAcceptor;
use tokio_util::task::AbortOnDropHandle;

use EstimatorAnswer::{Failed, NotAsked, Room};

use entourage_core::object::Time;

use super::*;

/// The behaviour of an estimator.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Behaves {
    /// It answers with these bytes, and success.
    With(&'static [u8]),
    /// It answers with an error in the trailers, after no message.
    Refusing(&'static str),
    /// The same, in the head.
    RefusingAtOnce(&'static str),
    /// It ends without a status.
    WithoutStatus,
    /// It is another kind of server.
    AsAnother(u16),
    /// It never answers.
    Slowly,
}

const SEVEN: Behaves = Behaves::With(&[0, 0, 0, 0, 2, 8, 7]);

/// A running estimator. When dropped, it ends with all its connections.
struct Fake {
    address: SocketAddr,
    behaves: Arc<Mutex<Behaves>>,
    seen: Arc<Mutex<Seen>>,
    _task: AbortOnDropHandle<()>,
}

#[derive(Default)]
struct Seen {
    connections: usize,
    requests: Vec<(http::request::Parts, Bytes)>,
}

impl Fake {
    async fn start(behaves: Behaves) -> Self {
        Self::start_with(None, behaves).await
    }

    async fn start_with(tls: Option<TlsAcceptor>, behaves: Behaves) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen: Arc<Mutex<Seen>> = Arc::default();
        let behaves = Arc::new(Mutex::new(behaves));
        let (reported, current) = (seen.clone(), behaves.clone());
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (seen, tls, behaves) = (reported.clone(), tls.clone(), current.clone());
                lock(&seen).connections += 1;
                connections.spawn(async move {
                    match tls {
                        None => serve(stream, seen, behaves).await,
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                serve(stream, seen, behaves).await;
                            }
                        }
                    }
                });
            }
        });
        Self {
            address,
            behaves,
            seen,
            _task: AbortOnDropHandle::new(task),
        }
    }

    fn count(&self) -> (usize, usize) {
        let seen = lock(&self.seen);
        (seen.connections, seen.requests.len())
    }
}

async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    seen: Arc<Mutex<Seen>>,
    behaves: Arc<Mutex<Behaves>>,
) {
    let service = service_fn(move |request| {
        let behaves = *lock(&behaves);
        answer(request, seen.clone(), behaves)
    });
    let connection = http2::Builder::new(TokioExecutor::new());
    // How it ends is the client's affair.
    let _ = connection.serve_connection(TokioIo::new(stream), service).await;
}

async fn answer(
    request: Request<Incoming>,
    seen: Arc<Mutex<Seen>>,
    behaves: Behaves,
) -> Result<Response<BoxBody<Bytes, Infallible>>, Infallible> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    lock(&seen).requests.push((head, body));
    let status_of = |code: &str| {
        let mut status = HeaderMap::new();
        status.insert("grpc-status", code.parse().unwrap());
        status.insert("grpc-message", "it%20fails".parse().unwrap());
        status
    };
    let (data, trailers): (&[u8], _) = match behaves {
        Behaves::With(bytes) => (bytes, Some(status_of("0"))),
        Behaves::Refusing(code) => (&[], Some(status_of(code))),
        Behaves::Slowly => std::future::pending().await,
        Behaves::RefusingAtOnce(_) | Behaves::WithoutStatus | Behaves::AsAnother(_) => (&[], None),
    };
    let frames = [
        (!data.is_empty()).then(|| Frame::data(Bytes::from_static(data))),
        trailers.map(Frame::trailers),
    ];
    let frames = StreamExt::map(stream::iter(frames.into_iter().flatten()), Ok);
    let mut response = Response::new(http_body_util::BodyExt::boxed(StreamBody::new(frames)));
    let headers = response.headers_mut();
    headers.insert("content-type", "application/grpc".parse().unwrap());
    if let Behaves::RefusingAtOnce(code) = behaves {
        headers.extend(status_of(code));
    }
    if let Behaves::AsAnother(code) = behaves {
        headers.insert("content-type", "text/html".parse().unwrap());
        *response.status_mut() = StatusCode::from_u16(code).unwrap();
    }
    Ok(response)
}

/// The Services of a hub: that of each member leads to one port, and one is refused.
struct Hub {
    port: u16,
    without: BTreeSet<String>,
}

impl Services for Hub {
    fn service<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<Value>, String>> {
        assert_eq!(namespace, "karmada-system");
        let service = match name.strip_prefix("karmada-scheduler-estimator-").unwrap() {
            "refused" => Err("forbidden".to_owned()),
            member if self.without.contains(member) => Ok(None),
            _ => Ok(Some(json!({"spec": {
                "type": "ExternalName", "externalName": "127.0.0.1",
                "ports": [{"port": 10_352, "targetPort": self.port}],
            }}))),
        };
        Box::pin(async move { service })
    }
}

fn client(port: u16, options: Options) -> (Estimators, Metrics) {
    let hub = Hub {
        port,
        without: ["without".to_owned()].into(),
    };
    let metrics = Metrics::new();
    let estimators = Estimators::new(options, Arc::new(hub), metrics.clone()).unwrap();
    (estimators, metrics)
}

fn hasty() -> Options {
    Options {
        timeout: Duration::from_millis(300),
        ..Options::default()
    }
}

fn order(clusters: &[&str]) -> EstimateOrder {
    let requirements = serde_json::from_value(json!({"resourceRequest": {"cpu": "1"}})).unwrap();
    EstimateOrder {
        key: "key".into(),
        asked: Time(7),
        requirements: Some(Arc::new(requirements)),
        set: None,
        clusters: clusters.iter().map(|name| Str::from(*name)).collect(),
    }
}

/// Asks one estimator without a turn, and returns why there is no answer.
async fn failure(estimators: &Estimators, member: &str) -> (String, Kind) {
    let client = estimators.0.client.renewed();
    let deadline = Instant::now() + estimators.0.options.timeout;
    let answer = estimators
        .exchange(&member.into(), Question::Replicas(None), &client, deadline)
        .await;
    answer.unwrap_err()
}

async fn estimate(estimators: &Estimators, member: &str) -> EstimatorAnswer {
    estimators
        .estimate(&member.into(), Question::Replicas(None))
        .await
}

/// The answers to an order that is sent as plans send it.
async fn answers(estimators: &Estimators, order: EstimateOrder) -> Vec<(Str, EstimatorAnswer)> {
    let (brain, mut inbox) = mpsc::channel(10);
    estimators.ask(order, brain);
    let Some(Message::Seen(seen)) = inbox.recv().await else {
        panic!("there is an observation");
    };
    let Observation::Estimated(key, asked, answers) = *seen else {
        panic!("{seen:?}");
    };
    assert_eq!((&*key, asked), ("key", Time(7)));
    answers
}

fn named<const N: usize>(answers: [(&str, EstimatorAnswer); N]) -> [(Str, EstimatorAnswer); N] {
    answers.map(|(name, answer)| (Str::from(name), answer))
}

#[tokio::test]
async fn all_answers_of_an_order_come_together_over_one_connection_of_each_member() {
    let fake = Fake::start(SEVEN).await;
    let (estimators, metrics) = client(fake.address.port(), Options::default());
    let found = answers(&estimators, order(&["m1", "m2", "refused"])).await;
    let want = [("m1", Room(7)), ("m2", Room(7)), ("refused", Failed)];
    assert_eq!(found, named(want));
    assert_eq!(estimate(&estimators, "m1").await, Room(7));
    assert_eq!(fake.count(), (2, 3));
    let seen = lock(&fake.seen);
    let (head, body) = &seen.requests[2];
    assert_eq!(
        head.uri.path(),
        "/github.com.karmada_io.karmada.pkg.estimator.service.Estimator/MaxAvailableReplicas"
    );
    assert_eq!(
        ["content-type", "te"].map(|name| head.headers[name].to_str().unwrap()),
        ["application/grpc", "trailers"]
    );
    // What is left of three seconds.
    let timeout = head.headers["grpc-timeout"].to_str().unwrap();
    let left: u64 = timeout.strip_suffix('m').unwrap().parse().unwrap();
    assert!((1..=3_000).contains(&left), "{timeout}");
    assert_eq!(body[..], [0, 0, 0, 0, 6, 0x0a, 2, b'm', b'1', 0x12, 0]);
    let text = metrics.render();
    for line in [
        "entourage_estimator_requests_total{member=\"m1\",outcome=\"answered\"} 2",
        "entourage_estimator_requests_total{member=\"m2\",outcome=\"answered\"} 1",
        "entourage_estimator_requests_total{member=\"refused\",outcome=\"no_response\"} 1",
    ] {
        assert!(text.contains(line), "{text}");
    }
}

#[tokio::test]
async fn what_is_no_answer_gives_no_estimate_and_says_why() {
    for (behaves, is_out, want) in [
        (
            Behaves::Refusing("2"),
            false,
            "answers with the error 2: it%20fails",
        ),
        (Behaves::RefusingAtOnce("5"), false, "answers with the error 5"),
        (Behaves::Refusing("4"), true, "answers with the error 4"),
        (Behaves::Refusing("8"), true, "answers with the error 8"),
        (Behaves::RefusingAtOnce("12"), true, "answers with the error 12"),
        (Behaves::Refusing("13"), true, "answers with the error 13"),
        (Behaves::Refusing("14"), true, "answers with the error 14"),
        (Behaves::Refusing("16"), true, "answers with the error 16"),
        (
            Behaves::AsAnother(404),
            true,
            "responds with status 404, not with gRPC",
        ),
        (
            Behaves::AsAnother(200),
            true,
            "responds with status 200, not with gRPC",
        ),
        (Behaves::WithoutStatus, true, "it has no status"),
        (Behaves::With(b""), true, "it is empty"),
        (Behaves::With(b"hello world"), true, "it is compressed"),
        (
            Behaves::With(&[0, 0, 0, 0, 3, 8, 7]),
            true,
            "its length is not as announced",
        ),
    ] {
        let fake = Fake::start(behaves).await;
        let (estimators, _) = client(fake.address.port(), Options::default());
        let (why, kind) = failure(&estimators, "m1").await;
        let expected = if is_out { Kind::Out } else { Kind::Refuses };
        assert!(
            why.contains(want) && kind == expected,
            "{behaves:?}: {kind:?} {why}"
        );
        assert_eq!(estimate(&estimators, "m1").await, Failed);
    }
}

#[tokio::test]
async fn one_that_does_not_answer_is_waited_for_no_longer_than_the_time_out_and_then_left_alone() {
    let fake = Fake::start(Behaves::Slowly).await;
    let (estimators, metrics) = client(fake.address.port(), hasty());
    let began = Instant::now();
    let answers = estimators.answers(&order(&["m1", "m2", "m3"])).await;
    assert!(answers.iter().all(|(_, answer)| *answer == Failed));
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    for _ in 0..5 {
        assert_eq!(estimate(&estimators, "m1").await, Failed);
    }
    let text = metrics.render();
    let count = |outcome: &str| format!("{{member=\"m1\",outcome=\"{outcome}\"}}");
    assert!(text.contains(&format!("{} 5", count("no_response"))), "{text}");
    assert!(text.contains(&format!("{} 1", count("left_alone"))), "{text}");
    assert!(!text.contains("member=\"m2\",outcome=\"left_alone\""), "{text}");
    // A connection that gave no answer may be lost: it is not used again.
    assert_eq!(fake.count(), (7, 7));
}

/// Turns are held by calls that hang.
#[tokio::test]
async fn who_gets_no_turn_was_not_asked_and_the_estimators_of_others_are() {
    let fake = Fake::start(SEVEN).await;
    let (estimators, metrics) = client(fake.address.port(), hasty());
    let turns = estimators.with(&"m1".into(), |known| known.turns.clone());
    let held = turns.acquire_many(4).await.unwrap();
    for _ in 0..6 {
        let found = estimators.answers(&order(&["m1", "m2"])).await;
        assert_eq!(found, named([("m1", NotAsked), ("m2", Room(7))]));
    }
    drop(held);
    assert_eq!(estimate(&estimators, "m1").await, Room(7), "it is not left alone");
    let text = metrics.render();
    let line = "entourage_estimator_requests_total{member=\"m1\",outcome=\"no_turn\"} 6";
    assert!(text.contains(line), "{text}");
}

#[tokio::test]
async fn more_questions_than_there_are_places_for_are_not_asked_and_do_not_wait() {
    let fake = Fake::start(SEVEN).await;
    let (estimators, _) = client(fake.address.port(), Options::default());
    let held = estimators
        .0
        .places
        .acquire_many(u32::try_from(PLACES).unwrap() - 1)
        .await
        .unwrap();
    let found = answers(&estimators, order(&["m1", "m2"])).await;
    assert_eq!(found, named([("m1", NotAsked), ("m2", NotAsked)]));
    assert_eq!(fake.count(), (0, 0));
    let found = answers(&estimators, order(&["m1"])).await;
    assert_eq!(found, named([("m1", Room(7))]));
    drop(held);
}

#[tokio::test]
async fn one_that_is_not_there_is_no_answer_and_says_where_it_should_be() {
    let port = {
        let fake = Fake::start(SEVEN).await;
        let (estimators, _) = client(fake.address.port(), hasty());
        assert_eq!(estimate(&estimators, "m1").await, Room(7));
        fake.address.port()
    };
    let (estimators, _) = client(port, hasty());
    let (why, kind) = failure(&estimators, "m1").await;
    let at = format!("cannot connect to 127.0.0.1:{port}");
    assert!(why.contains(&at) && kind == Kind::Out, "{why}");
    let (why, kind) = failure(&estimators, "refused").await;
    let at = "Service karmada-system/karmada-scheduler-estimator-refused of the hub: forbidden";
    assert!(why.contains(at) && kind == Kind::Out, "{why}");
    let guessed = Address {
        at: "karmada-scheduler-estimator-without.karmada-system.svc:10352".to_owned(),
        is_guessed: true,
    };
    assert_eq!(estimators.address(&"without".into()).await, Ok(guessed));
}

#[tokio::test]
async fn one_that_comes_back_answers_after_its_back_off() {
    let fake = Fake::start(Behaves::Refusing("14")).await;
    let (estimators, _) = client(fake.address.port(), Options::default());
    for _ in 0..6 {
        assert_eq!(estimate(&estimators, "m1").await, Failed);
    }
    assert_eq!(fake.count().1, 5, "it is left alone");
    *lock(&fake.behaves) = SEVEN;
    let recovers = async {
        while estimate(&estimators, "m1").await != Room(7) {
            tokio::task::yield_now().await;
        }
    };
    assert!(timeout(Duration::from_secs(20), recovers).await.is_ok());
    assert_eq!(fake.count().1, 6, "with the first trial");
    assert_eq!(estimate(&estimators, "m1").await, Room(7));
}

#[tokio::test]
async fn a_connection_that_was_kept_while_the_estimator_restarted_is_made_again() {
    let fake = Fake::start(SEVEN).await;
    let (estimators, _) = client(fake.address.port(), Options::default());
    assert_eq!(estimate(&estimators, "m1").await, Room(7));
    let address = fake.address;
    drop(fake);
    let listener = loop {
        // The port is free once the task that listens has ended.
        match TcpListener::bind(address).await {
            Ok(listener) => break listener,
            Err(_) => tokio::task::yield_now().await,
        }
    };
    let seen: Arc<Mutex<Seen>> = Arc::default();
    let behaves = Arc::new(Mutex::new(SEVEN));
    let serving = tokio::spawn(async move {
        let mut connections = JoinSet::new();
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            connections.spawn(serve(stream, seen.clone(), behaves.clone()));
        }
    });
    let _serving = AbortOnDropHandle::new(serving);
    assert_eq!(estimate(&estimators, "m1").await, Room(7));
}

/// An authority in a file, and TLS with a certificate for these names by itself.
fn authority(dir: &std::path::Path, name: &str) -> (PathBuf, TlsAcceptor) {
    let made = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
    let file = dir.join(format!("{name}.pem"));
    std::fs::write(&file, made.cert.pem()).unwrap();
    let chain = vec![CertificateDer::from_pem_slice(made.cert.pem().as_bytes()).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(made.signing_key.serialize_pem().as_bytes()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec()];
    (file, TlsAcceptor::from(Arc::new(config)))
}

#[tokio::test]
async fn with_tls_only_a_trusted_certificate_for_the_host_is_talked_to() {
    let dir = tempfile::tempdir().unwrap();
    let (ours, acceptor) = authority(dir.path(), "127.0.0.1");
    let (others, of_another) = authority(dir.path(), "another.example.com");
    let good = Fake::start_with(Some(acceptor), SEVEN).await;
    let misnamed = Fake::start_with(Some(of_another), SEVEN).await;
    let plain = Fake::start(SEVEN).await;
    let trusting = |file: &PathBuf| Tls {
        ca_file: Some(file.clone()),
        ..Tls::default()
    };
    let blind = || Tls {
        skips_verification: true,
        ..Tls::default()
    };
    for (what, fake, tls, want) in [
        ("trusted", &good, Some(trusting(&ours)), Room(7)),
        ("untrusted", &good, Some(trusting(&others)), Failed),
        ("another host's", &misnamed, Some(trusting(&others)), Failed),
        ("unverified", &misnamed, Some(blind()), Room(7)),
        ("no TLS of the client", &good, None, Failed),
        ("no TLS of the estimator", &plain, Some(blind()), Failed),
    ] {
        let options = Options {
            tls,
            ..Options::default()
        };
        let (estimators, _) = client(fake.address.port(), options);
        assert_eq!(estimate(&estimators, "m1").await, want, "{what}");
    }
}

#[test]
fn files_that_cannot_be_used_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let (ours, _) = authority(dir.path(), "127.0.0.1");
    let empty = dir.path().join("empty.pem");
    std::fs::write(&empty, "").unwrap();
    let missing = dir.path().join("missing.pem");
    for (ca_file, identity, want) in [
        (&missing, None, "missing.pem"),
        (&empty, None, "empty.pem holds no certificate"),
        (
            &ours,
            Some((ours.clone(), ours.clone())),
            "give the private key in PEM",
        ),
    ] {
        let tls = Tls {
            ca_file: Some(ca_file.clone()),
            identity,
            skips_verification: false,
        };
        let why = trust::config(Some(&tls)).unwrap_err();
        assert!(why.contains(want), "{why}");
    }
}
