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
        let reported = seen.clone();
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (seen, tls) = (reported.clone(), tls.clone());
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
    behaves: Behaves,
) {
    let service = service_fn(move |request| answer(request, seen.clone(), behaves));
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
        requirements: Some(Arc::new(requirements)),
        clusters: clusters.iter().map(|name| Str::from(*name)).collect(),
    }
}

#[tokio::test]
async fn all_answers_of_an_order_come_together_over_one_connection() {
    let fake = Fake::start(SEVEN).await;
    let (estimators, metrics) = client(fake.address.port(), Options::default());
    let (brain, mut inbox) = mpsc::channel(10);
    estimators.ask(order(&["m1", "m2", "refused"]), brain);
    let Some(Message::Seen(seen)) = inbox.recv().await else {
        panic!("there is an observation");
    };
    let Observation::Estimated(key, answers) = *seen else {
        panic!("{seen:?}");
    };
    let want = [("m1", Some(7)), ("m2", Some(7)), ("refused", None)];
    assert_eq!(&*key, "key");
    assert_eq!(answers, want.map(|(name, answer)| (Str::from(name), answer)));
    assert_eq!(estimators.estimate(&"m1".into(), None).await, Some(7));
    let (connections, requests) = fake.count();
    assert!(connections <= 2 && requests == 3, "{connections} {requests}");
    let seen = lock(&fake.seen);
    let (head, body) = &seen.requests[2];
    assert_eq!(
        head.uri.path(),
        "/github.com.karmada_io.karmada.pkg.estimator.service.Estimator/MaxAvailableReplicas"
    );
    assert_eq!(
        ["content-type", "te", "grpc-timeout"].map(|name| head.headers[name].to_str().unwrap()),
        ["application/grpc", "trailers", "3000m"]
    );
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
        (Behaves::RefusingAtOnce("12"), false, "answers with the error 12"),
        (Behaves::Refusing("14"), true, "answers with the error 14"),
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
        let (why, fails) = estimators.exchange(&"m1".into(), None).await.unwrap_err();
        assert!(
            why.contains(want) && fails == is_out,
            "{behaves:?}: {fails} {why}"
        );
        assert_eq!(estimators.estimate(&"m1".into(), None).await, None);
    }
}

#[tokio::test]
async fn one_that_does_not_answer_is_waited_for_no_longer_than_the_time_out_and_then_left_alone() {
    let fake = Fake::start(Behaves::Slowly).await;
    let (estimators, metrics) = client(fake.address.port(), hasty());
    let began = Instant::now();
    let answers = estimators.answers(&order(&["m1", "m2", "m3"])).await;
    assert!(answers.iter().all(|(_, answer)| answer.is_none()));
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    for _ in 0..5 {
        assert_eq!(estimators.estimate(&"m1".into(), None).await, None);
    }
    let text = metrics.render();
    let count = |outcome: &str| format!("{{member=\"m1\",outcome=\"{outcome}\"}}");
    assert!(text.contains(&format!("{} 5", count("no_response"))), "{text}");
    assert!(text.contains(&format!("{} 1", count("left_alone"))), "{text}");
    assert!(!text.contains("member=\"m2\",outcome=\"left_alone\""), "{text}");
}

#[tokio::test]
async fn one_that_is_not_there_is_no_answer_and_one_that_comes_back_answers() {
    let port = {
        let fake = Fake::start(SEVEN).await;
        let (estimators, _) = client(fake.address.port(), hasty());
        assert_eq!(estimators.estimate(&"m1".into(), None).await, Some(7));
        fake.address.port()
    };
    let (estimators, _) = client(port, hasty());
    let (why, fails) = estimators.exchange(&"m1".into(), None).await.unwrap_err();
    let at = format!("cannot connect to 127.0.0.1:{port}");
    assert!(why.contains(&at) && fails, "{why}");
    let (why, fails) = estimators.exchange(&"refused".into(), None).await.unwrap_err();
    let at = "Service karmada-system/karmada-scheduler-estimator-refused of the hub: forbidden";
    assert!(why.contains(at) && fails, "{why}");
    assert_eq!(
        estimators.address(&"without".into()).await.unwrap(),
        "karmada-scheduler-estimator-without.karmada-system.svc:10352"
    );
}

#[tokio::test]
async fn a_connection_that_was_kept_while_the_estimator_restarted_is_made_again() {
    let fake = Fake::start(SEVEN).await;
    let (estimators, _) = client(fake.address.port(), Options::default());
    assert_eq!(estimators.estimate(&"m1".into(), None).await, Some(7));
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
    let serving = tokio::spawn(async move {
        let mut connections = JoinSet::new();
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            connections.spawn(serve(stream, seen.clone(), SEVEN));
        }
    });
    let _serving = AbortOnDropHandle::new(serving);
    assert_eq!(estimators.estimate(&"m1".into(), None).await, Some(7));
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
        ("trusted", &good, Some(trusting(&ours)), Some(7)),
        ("untrusted", &good, Some(trusting(&others)), None),
        ("another host's", &misnamed, Some(trusting(&others)), None),
        ("unverified", &misnamed, Some(blind()), Some(7)),
        ("no TLS of the client", &good, None, None),
        ("no TLS of the estimator", &plain, Some(blind()), None),
    ] {
        let options = Options {
            tls,
            ..Options::default()
        };
        let (estimators, _) = client(fake.address.port(), options);
        assert_eq!(estimators.estimate(&"m1".into(), None).await, want, "{what}");
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
