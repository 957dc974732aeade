//! Hooks behind real TLS on the loopback: good ones, bad ones, and one that is killed during a call.

use std::{net::SocketAddr, time::Duration};

use bytes::Bytes;
use entourage_core::interpreter::{hook::Policy, operations::Operation};
use futures::future::BoxFuture;
use http::{Request, Response, Version};
use http_body_util::{BodyExt as _, Full};
use hyper::{body::Incoming, server::conn, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
};
use serde_json::{Value, json};
use tokio::{
    io::AsyncReadExt as _,
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use tokio_rustls::TlsAcceptor;
use tokio_util::task::AbortOnDropHandle;

use super::*;

const CANARY: &str = "c4n4ry";

const WORKLOAD: Subject<'_> = Subject {
    group: "example.io",
    version: "v1",
    kind: "Workload",
    resource: "workloads",
    is_namespaced: true,
};

/// The behaviour of a server.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Behaves {
    Well,
    /// The first connection ends after a request.
    BreakingOnce,
    /// Every connection ends after a request.
    Breaking,
    WithWrongUid,
    Unsuccessfully,
    Hugely,
    Endlessly,
    Slowly,
    WithGarbage,
    With(u16),
}

/// A certificate for the names of hooks in these tests, and the key.
struct Identity {
    pem: String,
    key: String,
}

fn identity() -> Identity {
    let names = ["127.0.0.1", "hook.team.svc", "localhost"].map(str::to_owned);
    let made = rcgen::generate_simple_self_signed(names).unwrap();
    Identity {
        pem: made.cert.pem(),
        key: made.signing_key.serialize_pem(),
    }
}

/// A running server. When dropped, it ends with all its connections.
struct Fake {
    address: SocketAddr,
    seen: Arc<Mutex<Seen>>,
    _task: AbortOnDropHandle<()>,
}

#[derive(Default)]
struct Seen {
    connections: usize,
    requests: Vec<(Version, Value)>,
}

impl Fake {
    /// Listens on a port, 0 for any, and offers these protocols.
    async fn start(port: u16, identity: &Identity, protocols: &[&str], behaves: Behaves) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let chain = vec![CertificateDer::from_pem_slice(identity.pem.as_bytes()).unwrap()];
        let key = PrivateKeyDer::from_pem_slice(identity.key.as_bytes()).unwrap();
        let mut config = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap();
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Seen::default()));
        let reported = seen.clone();
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                reported.lock().unwrap().connections += 1;
                connections.spawn(connection(acceptor.clone(), stream, reported.clone(), behaves));
            }
        });
        Self {
            address,
            seen,
            _task: AbortOnDropHandle::new(task),
        }
    }

    fn count(&self) -> (usize, usize) {
        let seen = self.seen.lock().unwrap();
        (seen.connections, seen.requests.len())
    }
}

async fn connection(acceptor: TlsAcceptor, stream: TcpStream, seen: Arc<Mutex<Seen>>, behaves: Behaves) {
    let Ok(stream) = acceptor.accept(stream).await else {
        return;
    };
    let is_first = seen.lock().unwrap().connections == 1;
    if behaves == Behaves::Breaking || behaves == Behaves::BreakingOnce && is_first {
        let (mut stream, mut read) = (stream, Vec::new());
        while !read.ends_with(b"}") {
            read.push(stream.read_u8().await.unwrap());
        }
        return;
    }
    let is_h2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    let service = service_fn(move |request| answer(request, seen.clone(), behaves));
    let stream = TokioIo::new(stream);
    if is_h2 {
        let _ = conn::http2::Builder::new(TokioExecutor::new())
            .serve_connection(stream, service)
            .await;
    } else {
        let _ = conn::http1::Builder::new()
            .serve_connection(stream, service)
            .await;
    }
}

async fn answer(
    request: Request<Incoming>,
    seen: Arc<Mutex<Seen>>,
    behaves: Behaves,
) -> Result<
    Response<http_body_util::combinators::BoxBody<Bytes, std::convert::Infallible>>,
    std::convert::Infallible,
> {
    let version = request.version();
    assert_eq!(request.headers()["content-type"], "application/json");
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let asked: Value = serde_json::from_slice(&body).unwrap();
    seen.lock().unwrap().requests.push((version, asked.clone()));
    let whole = |text: String| Full::new(Bytes::from(text)).boxed();
    let message = |response: Value| json!({"apiVersion": asked["apiVersion"], "kind": asked["kind"], "response": response});
    let uid = &asked["request"]["uid"];
    let good = json!({"uid": uid, "successful": true, "healthy": true, "echo": asked["request"]["object"]});
    let body = match behaves {
        Behaves::Well | Behaves::BreakingOnce | Behaves::Breaking => whole(message(good).to_string()),
        Behaves::WithWrongUid => {
            whole(message(json!({"uid": CANARY, "successful": true, "healthy": true})).to_string())
        }
        Behaves::Unsuccessfully => whole(
            message(json!({"uid": uid, "successful": false, "status": {"message": "spec.size is missing"}}))
                .to_string(),
        ),
        Behaves::Hugely => whole(CANARY.repeat(LARGEST / CANARY.len() + 1)),
        Behaves::Endlessly => {
            let chunk = Bytes::from(CANARY.repeat(1000));
            let frame = move |()| Some((Ok(http_body::Frame::data(chunk.clone())), ()));
            let frames = futures::stream::unfold((), move |state| futures::future::ready(frame(state)));
            http_body_util::StreamBody::new(frames).boxed()
        }
        Behaves::Slowly => std::future::pending().await,
        Behaves::WithGarbage => whole(format!("{{\"{CANARY}\": {CANARY}")),
        Behaves::With(code) => {
            let mut response = Response::new(whole(asked.to_string()));
            *response.status_mut() = http::StatusCode::from_u16(code).unwrap();
            response
                .headers_mut()
                .insert("location", "https://127.0.0.1:1/".parse().unwrap());
            return Ok(response);
        }
    };
    Ok(Response::new(body))
}

/// A hook with a rule for all operations and kinds.
#[expect(clippy::needless_pass_by_value, reason = "callers write it on the spot")]
fn hook(client: Value, seconds: u32) -> Hook {
    let configuration = json!({"apiVersion": "config.karmada.io/v1alpha1", "kind": "ResourceInterpreterWebhookConfiguration",
        "metadata": {"name": "some"}, "webhooks": [{"name": "one.example.com", "clientConfig": client, "timeoutSeconds": seconds,
        "interpreterContextVersions": ["v1alpha1"],
        "rules": [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "kinds": ["*"]}]}]});
    Hook::interpreters(&serde_json::from_value(configuration).unwrap()).remove(0)
}

fn at(address: SocketAddr, bundle: &str) -> Hook {
    hook(
        json!({"url": format!("https://{address}/interpret"), "caBundle": base64(bundle)}),
        10,
    )
}

fn base64(text: &str) -> Value {
    serde_json::to_value(k8s_openapi::ByteString(text.as_bytes().to_vec())).unwrap()
}

fn object(version: usize) -> Value {
    json!({"apiVersion": "example.io/v1", "kind": "Workload", "spec": {"password": CANARY},
        "metadata": {"name": "w", "namespace": "team", "uid": "o-1", "resourceVersion": version.to_string()}})
}

async fn healthy(hooks: &Hooks, hook: &Hook, object: &Value) -> Result<Answer, InterpretError> {
    let asked = hooks.ask(hook, &WORKLOAD, Question::Health(object));
    tokio::time::timeout(Duration::from_secs(20), asked)
        .await
        .expect("an end")
}

#[tokio::test]
async fn hooks_are_asked_over_http_2_where_they_offer_it_and_over_http_1_where_not_on_one_connection() {
    let identity = identity();
    for (protocols, version) in [
        (&["h2", "http/1.1"][..], Version::HTTP_2),
        (&["http/1.1"], Version::HTTP_11),
        (&[], Version::HTTP_11),
    ] {
        let server = Fake::start(0, &identity, protocols, Behaves::Well).await;
        let (hooks, hook) = (Hooks::new(Options::default()), at(server.address, &identity.pem));
        for each in 0..5 {
            let answer = healthy(&hooks, &hook, &object(each)).await;
            assert!(
                answer == Ok(Answer::Healthy(true)),
                "{protocols:?}: {:?}",
                answer.err()
            );
        }
        assert_eq!(server.count(), (1, 5), "{protocols:?}");
        let seen = server.seen.lock().unwrap();
        assert!(
            seen.requests.iter().all(|(seen, _)| *seen == version),
            "{protocols:?}"
        );
        let uids: BTreeSet<_> = seen
            .requests
            .iter()
            .map(|(_, asked)| asked["request"]["uid"].to_string())
            .collect();
        assert_eq!(uids.len(), 5);
        assert_eq!(seen.requests[0].1["request"]["operation"], "InterpretHealth");
    }
}

#[tokio::test]
async fn an_answer_is_used_again_until_the_object_or_the_hook_changes() {
    let identity = identity();
    let server = Fake::start(0, &identity, &["h2"], Behaves::Well).await;
    let (hooks, hook) = (Hooks::new(Options::default()), at(server.address, &identity.pem));
    for _ in 0..3 {
        assert!(healthy(&hooks, &hook, &object(1)).await.is_ok());
    }
    assert_eq!(server.count().1, 1);
    assert!(healthy(&hooks, &hook, &object(2)).await.is_ok());
    assert_eq!(server.count().1, 2);
    let other = self::hook(
        json!({"url": format!("https://{}/other", server.address), "caBundle": base64(&identity.pem)}),
        10,
    );
    assert!(healthy(&hooks, &other, &object(2)).await.is_ok());
    assert_eq!(server.count().1, 3);
    // A question that depends on more than the object is asked each time.
    for _ in 0..2 {
        let object = object(2);
        assert!(
            hooks
                .ask(&other, &WORKLOAD, Question::Revise(&object, 2))
                .await
                .is_ok()
        );
    }
    assert_eq!(server.count().1, 5);
}

#[tokio::test]
async fn what_a_bad_hook_does_becomes_a_text_with_cause_and_remedy_and_without_content() {
    let identity = identity();
    for (behaves, wanted) in [
        (
            Behaves::WithWrongUid,
            "uid is not that of the request; the hook has to copy it",
        ),
        (
            Behaves::Unsuccessfully,
            "the hook was not successful: spec.size is missing",
        ),
        (Behaves::Hugely, "responds with more than 3145728 bytes"),
        (Behaves::Endlessly, "responds with more than 3145728 bytes"),
        (Behaves::Slowly, "does not respond within 1 s; is it running"),
        (
            Behaves::WithGarbage,
            "the response is not JSON: Syntax error at line 1",
        ),
        (
            Behaves::With(500),
            "responds with status 500, not 200; its own log",
        ),
        (Behaves::With(302), "status 302; redirects are not followed"),
    ] {
        for protocols in [&["h2"][..], &["http/1.1"]] {
            let server = Fake::start(0, &identity, protocols, behaves).await;
            let hooks = Hooks::new(Options::default());
            let client =
                json!({"url": format!("https://{}/x", server.address), "caBundle": base64(&identity.pem)});
            let hook = hook(client, if behaves == Behaves::Slowly { 1 } else { 10 });
            let Err(error) = healthy(&hooks, &hook, &object(1)).await else {
                panic!("{behaves:?} was taken for an answer");
            };
            assert!(error.why.contains(wanted), "{behaves:?}: {error}");
            assert_eq!(error.operation, Operation::Health);
            let layer = r#"ResourceInterpreterWebhookConfiguration "some/one.example.com": "#;
            let shown = format!("{error} {error:?} {hooks:?} {hook:?}");
            assert!(shown.starts_with(layer) && !shown.contains(CANARY), "{shown}");
            assert_eq!(server.count().1, 1, "{behaves:?}");
        }
    }
}

#[tokio::test]
async fn who_is_not_trusted_is_not_asked() {
    let (own, other) = (identity(), identity());
    let server = Fake::start(0, &own, &["h2"], Behaves::Well).await;
    let url = |host: &str| format!("https://{host}:{}/x", server.address.port());
    let (here, elsewhere) = (url("127.0.0.1"), url("127.0.0.2"));
    let plain = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let plain_url = format!("https://{}/x", plain.local_addr().unwrap());
    let _plain = AbortOnDropHandle::new(tokio::spawn(async move {
        use tokio::io::AsyncWriteExt as _;
        loop {
            let (mut stream, _) = plain.accept().await.unwrap();
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        }
    }));
    for (client, wanted) in [
        (
            json!({"url": here, "caBundle": base64(&other.pem)}),
            "no TLS with 127.0.0.1",
        ),
        // By the certificates that the system trusts.
        (json!({ "url": here }), "no TLS with 127.0.0.1"),
        (
            json!({"url": elsewhere, "caBundle": base64(&own.pem)}),
            "cannot connect to 127.0.0.2",
        ),
        (
            json!({"url": plain_url, "caBundle": base64(&own.pem)}),
            "no TLS with 127.0.0.1",
        ),
        (
            json!({"url": here, "caBundle": base64("nonsense")}),
            "caBundle holds no certificate",
        ),
        (
            json!({"url": "https://nowhere.invalid/", "caBundle": base64(&own.pem)}),
            "the host nowhere.invalid has no address",
        ),
        (
            json!({"url": "http://127.0.0.1/"}),
            "does not begin with https://",
        ),
    ] {
        let hook = hook(client.clone(), 10);
        let error = healthy(&Hooks::new(Options::default()), &hook, &object(1))
            .await
            .err();
        let error = error.unwrap_or_else(|| panic!("{client} was asked"));
        assert!(error.why.contains(wanted), "{client}: {error}");
        assert!(!error.to_string().contains(CANARY));
        assert_eq!(hook.policy(), Policy::Fail);
    }
    assert_eq!(server.count().1, 0);
}

#[tokio::test]
async fn a_hook_that_is_killed_and_comes_back_is_asked_again() {
    let identity = identity();
    for protocols in [&["h2"][..], &["http/1.1"]] {
        let mut server = Fake::start(0, &identity, protocols, Behaves::Well).await;
        let (hooks, hook) = (Hooks::new(Options::default()), at(server.address, &identity.pem));
        assert!(healthy(&hooks, &hook, &object(0)).await.is_ok());
        // Restarted at once: callers see no more than a broken connection.
        let port = server.address.port();
        drop(server);
        server = again(port, &identity, protocols).await;
        let answer = healthy(&hooks, &hook, &object(1)).await;
        assert!(answer.is_ok(), "{:?}", answer.err());
        drop(server);
        // Gone for good: after some attempts it is in back-off, which costs a lookup, with the same message.
        let why: BTreeSet<_> = {
            let mut why = Vec::new();
            for each in 2..12 {
                why.push(
                    healthy(&hooks, &hook, &object(each))
                        .await
                        .err()
                        .expect("it is gone")
                        .to_string(),
                );
            }
            why.into_iter().skip(1).collect()
        };
        assert!(hooks.is_unresponsive(&hook));
        assert!(
            why.len() == 1 && why.first().is_some_and(|why| why.contains("is it running")),
            "{why:?}"
        );
        // Its earlier response is still valid.
        assert!(healthy(&hooks, &hook, &object(1)).await.is_ok());
        let server = again(port, &identity, protocols).await;
        let back = async {
            while healthy(&hooks, &hook, &object(99)).await.is_err() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(15), back)
            .await
            .expect("it is asked again");
        assert!(!hooks.is_unresponsive(&hook));
        assert_eq!(server.count().1, 1);
    }
}

/// A server on a port that was just released.
async fn again(port: u16, identity: &Identity, protocols: &[&str]) -> Fake {
    let is_free = async {
        while TcpListener::bind(("127.0.0.1", port)).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), is_free)
        .await
        .expect("the port");
    Fake::start(port, identity, protocols, Behaves::Well).await
}

#[tokio::test]
async fn a_question_whose_connection_breaks_is_asked_once_more() {
    let identity = identity();
    for protocols in [&["h2"][..], &["http/1.1"]] {
        let server = Fake::start(0, &identity, protocols, Behaves::BreakingOnce).await;
        let hook = at(server.address, &identity.pem);
        let answer = healthy(&Hooks::new(Options::default()), &hook, &object(1)).await;
        assert!(answer.is_ok(), "{protocols:?}: {:?}", answer.err());
        assert_eq!(server.count(), (2, 1), "{protocols:?}");
        let server = Fake::start(0, &identity, protocols, Behaves::Breaking).await;
        let hook = at(server.address, &identity.pem);
        let error = healthy(&Hooks::new(Options::default()), &hook, &object(1))
            .await
            .err();
        let error = error.expect("it breaks each time").to_string();
        assert!(
            error.contains("the connection broke; its own log"),
            "{protocols:?}: {error}"
        );
        assert_eq!(server.count(), (2, 0), "{protocols:?}");
    }
}

#[tokio::test]
async fn one_unresponsive_hook_stops_only_its_own_kinds() {
    let identity = identity();
    let (good, bad) = (
        Fake::start(0, &identity, &["h2"], Behaves::Well).await,
        Fake::start(0, &identity, &["h2"], Behaves::With(503)).await,
    );
    let hooks = Hooks::new(Options::default());
    let bad_hook = at(bad.address, &identity.pem);
    for each in 0..20 {
        assert!(healthy(&hooks, &bad_hook, &object(each)).await.is_err());
    }
    assert_eq!(bad.count().1, 5);
    // The same name with another configuration is another hook.
    let good_hook = at(good.address, &identity.pem);
    assert!(!hooks.is_unresponsive(&good_hook));
    assert!(healthy(&hooks, &good_hook, &object(1)).await.is_ok());
    hooks.keep([]);
    assert!(healthy(&hooks, &bad_hook, &object(1)).await.is_err());
    assert_eq!(bad.count().1, 6);
    // A hook that responds, be it with a refusal, is not in back-off.
    let refusing = Fake::start(0, &identity, &["h2"], Behaves::Unsuccessfully).await;
    let refusing_hook = at(refusing.address, &identity.pem);
    for each in 0..10 {
        assert!(healthy(&hooks, &refusing_hook, &object(each)).await.is_err());
    }
    assert_eq!(
        (refusing.count().1, hooks.is_unresponsive(&refusing_hook)),
        (10, false)
    );
}

/// The Services of a hub, each with a spec.
struct Known(Value);

impl Services for Known {
    fn service<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<Value>, String>> {
        let spec = &self.0[format!("{namespace}/{name}")];
        let found = match spec {
            Value::Null => Ok(None),
            Value::String(why) => Err(why.clone()),
            spec => Ok(Some(json!({ "spec": spec }))),
        };
        Box::pin(std::future::ready(found))
    }
}

#[tokio::test]
async fn a_service_reference_leads_to_the_services_address_and_asks_for_its_name() {
    let identity = identity();
    let server = Fake::start(0, &identity, &["h2"], Behaves::Well).await;
    let port = server.address.port();
    let ports = json!([{ "port": port }]);
    for (spec, wanted) in [
        (json!({"clusterIP": "127.0.0.1", "ports": ports}), None),
        (json!({"type": "ExternalName", "externalName": "localhost"}), None),
        (
            json!({"clusterIP": "None", "ports": ports}),
            Some("Service team/hook of the hub: the Service is headless"),
        ),
        (
            json!({"clusterIP": "127.0.0.1", "ports": []}),
            Some("has no port"),
        ),
        (
            json!("the hub does not respond"),
            Some("Service team/hook of the hub: the hub does not respond"),
        ),
        (json!(null), Some("the host hook.team.svc has no address")),
    ] {
        let options = Options {
            services: Some(Arc::new(Known(json!({"team/hook": spec})))),
            ..Options::default()
        };
        let reference = json!({"namespace": "team", "name": "hook", "port": port, "path": "interpret"});
        let hook = hook(
            json!({"service": reference, "caBundle": base64(&identity.pem)}),
            10,
        );
        match (healthy(&Hooks::new(options), &hook, &object(1)).await, wanted) {
            (Ok(_), None) => {}
            (Err(error), Some(wanted)) => assert!(error.why.contains(wanted), "{error}"),
            (got, wanted) => panic!("{spec}: {:?}, not {wanted:?}", got.err()),
        }
    }
}

#[tokio::test]
async fn a_secret_does_not_leave_for_a_hook_without_a_rule_that_names_secrets() {
    let identity = identity();
    let server = Fake::start(0, &identity, &["h2"], Behaves::Well).await;
    let hook = at(server.address, &identity.pem);
    let secret =
        json!({"apiVersion": "v1", "kind": "Secret", "data": {"k": CANARY}, "metadata": {"name": "s"}});
    let subject = Subject {
        group: "",
        version: "v1",
        kind: "Secret",
        resource: "secrets",
        is_namespaced: true,
    };
    let hooks = Hooks::new(Options::default());
    for subject in [subject, WORKLOAD] {
        let error = hooks.ask(&hook, &subject, Question::Health(&secret)).await.err();
        let error = error.expect("it is not asked").to_string();
        assert!(
            error.contains("no rule for this operation") && !error.contains(CANARY),
            "{error}"
        );
    }
    assert_eq!(server.count(), (0, 0));
}

/// All text logged on this thread, at every level.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<String>>);

impl tracing::field::Visit for Log {
    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn fmt::Debug) {
        use fmt::Write as _;
        let _ = write!(self.0.lock().unwrap(), "{field}={value:?} ");
    }
}

impl tracing::Subscriber for Log {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        span.record(&mut self.clone());
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, values: &tracing::span::Record<'_>) {
        values.record(&mut self.clone());
    }

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        event.record(&mut self.clone());
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

#[tokio::test]
async fn nothing_of_an_object_or_an_answer_is_logged_at_any_level() {
    let (identity, log) = (identity(), Log::default());
    let _guard = tracing::subscriber::set_default(log.clone());
    tracing::trace!(text = "observed");
    for behaves in [
        Behaves::Well,
        Behaves::WithGarbage,
        Behaves::With(500),
        Behaves::Breaking,
    ] {
        for protocols in [&["h2"][..], &["http/1.1"]] {
            let server = Fake::start(0, &identity, protocols, behaves).await;
            let hook = at(server.address, &identity.pem);
            let _ = healthy(&Hooks::new(Options::default()), &hook, &object(1)).await;
        }
    }
    let logged = log.0.lock().unwrap();
    assert!(logged.contains("observed") && logged.len() > 100, "{logged}");
    assert!(!logged.contains(CANARY), "{logged}");
}
