//! The webhook over HTTPS, with an in-memory hub.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    sync::{
        Mutex,
        atomic::{AtomicI64, Ordering},
    },
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use entourage_admission::Settings;
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::TokioIo;
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, ServerName, pem::PemObject as _},
};
use serde_json::{Value, json};
use tokio::{net::TcpStream, sync::oneshot};

use super::*;

mod distributions;

/// A hub that stores objects by their paths, and counts writes.
#[derive(Clone, Default)]
struct Hub(Arc<Mutex<(BTreeMap<String, Value>, u64)>>);

impl Hub {
    fn client(&self) -> kube::Client {
        let hub = self.clone();
        let service = tower::service_fn(move |request: Request<kube::client::Body>| {
            let hub = hub.clone();
            async move {
                let (parts, body) = request.into_parts();
                let body = body.collect_bytes().await.expect("a body");
                let body = serde_json::from_slice(&body).unwrap_or_default();
                let is_trial = parts
                    .uri
                    .query()
                    .is_some_and(|query| query.contains("dryRun=All"));
                let (code, value) = if is_trial {
                    hub.trial(parts.uri.path(), body)
                } else {
                    hub.answer(&parts.method, parts.uri.path(), body)
                };
                let body = Full::new(Bytes::from(value.to_string()));
                let mut response = Response::new(body);
                *response.status_mut() = http::StatusCode::from_u16(code).expect("a code");
                Ok::<_, Infallible>(response)
            }
        });
        kube::Client::new(service, "default")
    }

    fn answer(&self, method: &Method, path: &str, mut body: Value) -> (u16, Value) {
        if path == SUBJECT_ACCESS_REVIEWS {
            return self.access_review(body);
        }
        let failed = |code: u16| {
            let reason = if code == 404 { "NotFound" } else { "Conflict" };
            let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "no",
                "reason": reason, "code": code});
            (code, status)
        };
        let (objects, writes) = &mut *self.0.lock().expect("no panic");
        match *method {
            Method::GET if path.ends_with("customizations") => {
                let items: Vec<&Value> = objects
                    .iter()
                    .filter(|(at, _)| at.starts_with(path))
                    .map(|(_, value)| value)
                    .collect();
                (200, json!({"metadata": {}, "items": items}))
            }
            Method::GET => objects
                .get(path)
                .map_or_else(|| failed(404), |value| (200, value.clone())),
            Method::POST | Method::PUT => {
                let name = body["metadata"]["name"].as_str().unwrap_or_default();
                let at = if *method == Method::POST {
                    format!("{path}/{name}")
                } else {
                    path.to_owned()
                };
                let known = objects
                    .get(&at)
                    .map(|value| value["metadata"]["resourceVersion"].clone());
                let taken = match known {
                    Some(version) => {
                        *method == Method::POST || version != body["metadata"]["resourceVersion"]
                    }
                    None => *method == Method::PUT,
                };
                if taken {
                    return failed(409);
                }
                *writes += 1;
                body["metadata"]["resourceVersion"] = writes.to_string().into();
                objects.insert(at, body.clone());
                (201, body)
            }
            Method::DELETE => {
                *writes += 1;
                objects
                    .remove(path)
                    .map_or_else(|| failed(404), |value| (200, value))
            }
            _ => failed(405),
        }
    }

    /// The rights of users: the value of `/rights/USER` lists `verb resource namespace/name`.
    fn access_review(&self, mut review: Value) -> (u16, Value) {
        let asked = &review["spec"]["resourceAttributes"];
        let word = |key: &str| asked[key].as_str().unwrap_or_default().to_owned();
        let wanted = format!(
            "{} {} {}/{}",
            word("verb"),
            word("resource"),
            word("namespace"),
            word("name")
        );
        let user = review["spec"]["user"].as_str().unwrap_or_default();
        let rights = self.get(&format!("/rights/{user}"));
        if rights.is_null() {
            return (
                500,
                json!({"kind": "Status", "code": 500, "reason": "InternalError", "message": "no"}),
            );
        }
        let allowed = rights.as_array().is_some_and(|all| all.contains(&wanted.into()));
        self.note("/asked", &review["spec"]);
        review["status"] = json!({"allowed": allowed});
        (201, review)
    }

    /// A dry run: the value of `/trial` is the response, code first; by default the object.
    fn trial(&self, path: &str, body: Value) -> (u16, Value) {
        self.note(&format!("/tried{path}"), &body);
        let answer = self.get("/trial");
        match answer[0].as_u64() {
            Some(code) => (u16::try_from(code).expect("a code"), answer[1].clone()),
            None => (201, body),
        }
    }

    /// Adds a value to a list.
    fn note(&self, path: &str, value: &Value) {
        let mut list = self.get(path).as_array().cloned().unwrap_or_default();
        list.push(value.clone());
        self.put(path, list.into());
    }

    fn noted(&self, path: &str) -> usize {
        self.get(path).as_array().map_or(0, Vec::len)
    }

    fn writes(&self) -> u64 {
        self.0.lock().expect("no panic").1
    }

    fn get(&self, path: &str) -> Value {
        self.0
            .lock()
            .expect("no panic")
            .0
            .get(path)
            .cloned()
            .unwrap_or_default()
    }

    fn take(&self, path: &str) {
        self.0.lock().expect("no panic").0.remove(path);
    }

    fn put(&self, path: &str, value: Value) {
        self.0.lock().expect("no panic").0.insert(path.to_owned(), value);
    }
}

const CONFIGURATIONS: &str =
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/entourage";
const SUBJECT_ACCESS_REVIEWS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
const SECRET: &str = "/api/v1/namespaces/karmada-system/secrets/entourage-webhook";

fn server(hub: &Hub) -> Server {
    server_that(hub, true)
}

fn server_that(hub: &Hub, authorizes: bool) -> Server {
    let (_, tls) = watch::channel(None);
    let (_, ready) = watch::channel(true);
    let distributions = Distributions::new(hub.client(), "karmada-system".to_owned(), authorizes);
    Server::new(hub.client(), Settings::default(), distributions, tls, ready)
}

async fn asked(
    server: &Server,
    method: &str,
    path: &str,
    media: &str,
    body: impl Into<Bytes>,
) -> (u16, String) {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", media)
        .body(Full::new(body.into()))
        .expect("a request");
    let response = server.answer(request).await;
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.expect("a body").to_bytes();
    (code, String::from_utf8(body.to_vec()).expect("text"))
}

fn review(kind: &str, operation: &str, object: &Value) -> Value {
    let (group, version) = object["apiVersion"]
        .as_str()
        .and_then(|text| text.split_once('/'))
        .unwrap_or(("", "v1"));
    let metadata = &object["metadata"];
    let states = if operation == "DELETE" {
        (Value::Null, object.clone())
    } else {
        (object.clone(), Value::Null)
    };
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "u1",
        "kind": {"group": group, "version": version, "kind": kind}, "operation": operation,
        "namespace": metadata["namespace"].as_str().unwrap_or_default(), "name": metadata["name"],
        "object": states.0, "oldObject": states.1}})
}

fn policy(spec: &Value) -> Value {
    json!({"apiVersion": "policy.karmada.io/v1alpha1", "metadata": {"name": "p", "namespace": "team"}, "spec": spec})
}

async fn reviewed(server: &Server, path: &str, review: &Value) -> Value {
    let (code, body) = asked(server, "POST", path, "application/json", review.to_string()).await;
    assert_eq!(code, 200, "{body}");
    let answer: Value = serde_json::from_str(&body).expect("JSON");
    assert_eq!(
        (&answer["apiVersion"], &answer["kind"]),
        (&review["apiVersion"], &json!("AdmissionReview"))
    );
    assert_eq!(answer["response"]["uid"], "u1");
    answer["response"].clone()
}

#[tokio::test]
async fn a_review_is_answered_with_a_patch_or_a_refusal_in_words() {
    let server = server(&Hub::default());
    let wanted = policy(&json!({"resourceSelectors": [{"apiVersion": "v1", "kind": "Secret"}]}));
    let response = reviewed(
        &server,
        "/mutate",
        &review("PropagationPolicy", "CREATE", &wanted),
    )
    .await;
    assert_eq!(
        (&response["allowed"], &response["patchType"]),
        (&json!(true), &json!("JSONPatch"))
    );
    let patch = STANDARD
        .decode(response["patch"].as_str().expect("text"))
        .expect("base64");
    assert_eq!(
        serde_json::from_slice::<Value>(&patch).expect("JSON"),
        json!([{"op": "add", "path": "/spec/resourceSelectors/0/namespace", "value": "team"}])
    );
    assert_eq!(
        reviewed(
            &server,
            "/validate",
            &review("PropagationPolicy", "CREATE", &wanted)
        )
        .await["allowed"],
        true
    );
    let other =
        policy(&json!({"resourceSelectors": [{"apiVersion": "v1", "kind": "Secret", "namespace": "other"}]}));
    let response = reviewed(
        &server,
        "/validate",
        &review("PropagationPolicy", "CREATE", &other),
    )
    .await;
    let message = "spec.resourceSelectors[0].namespace: \"other\" is not the namespace of this policy, \"team\"; leave it out, or use a policy in that namespace or a cluster-scoped one";
    assert_eq!(response["status"]["message"], message);
    assert_eq!(
        (&response["allowed"], &response["status"]["code"]),
        (&json!(false), &json!(422))
    );
    assert_eq!(
        response["status"]["details"]["causes"][0]["field"],
        "spec.resourceSelectors[0].namespace"
    );
}

#[tokio::test]
async fn what_no_rule_is_about_passes() {
    let server = server(&Hub::default());
    let mut wrong = review(
        "PropagationPolicy",
        "CREATE",
        &policy(&json!({"preemption": "Always", "resourceSelectors": [{}]})),
    );
    assert_eq!(reviewed(&server, "/validate", &wrong).await["allowed"], false);
    wrong["request"]["subResource"] = "status".into();
    assert_eq!(reviewed(&server, "/validate", &wrong).await["allowed"], true);
    wrong["request"]["subResource"] = "".into();
    wrong["request"]["operation"] = "CONNECT".into();
    assert_eq!(reviewed(&server, "/validate", &wrong).await["allowed"], true);
    let pod = review(
        "Pod",
        "CREATE",
        &json!({"apiVersion": "v1", "metadata": {"name": "p"}}),
    );
    assert_eq!(
        reviewed(&server, "/mutate", &pod).await,
        json!({"allowed": true, "uid": "u1"})
    );
}

#[tokio::test]
async fn a_protected_secret_stays_and_its_content_is_not_shown() {
    let server = server(&Hub::default());
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "data": {"k": "YzRuNHJ5"}, "metadata": {"name": "s",
        "labels": {"resourcetemplate.karmada.io/deletion-protected": "Always"}}});
    let response = reviewed(&server, "/validate", &review("Secret", "DELETE", &secret)).await;
    assert_eq!(
        (&response["allowed"], &response["status"]["code"]),
        (&json!(false), &json!(403))
    );
    assert!(!response.to_string().contains("YzRuNHJ5"));
    // Nor if the body is not a review.
    let broken = r#"{"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": {"uid": 5, "object": "YzRuNHJ5"}}"#;
    let (code, body) = asked(&server, "POST", "/validate", "application/json", broken).await;
    assert!(code == 400 && !body.contains("YzRuNHJ5"), "{body}");
}

#[tokio::test]
async fn a_customization_is_compared_with_those_on_the_hub() {
    let hub = Hub::default();
    let server = server(&hub);
    let one = |name: &str| {
        json!({"apiVersion": "config.karmada.io/v1alpha1", "kind": "ResourceInterpreterCustomization",
            "metadata": {"name": name}, "spec": {"target": {"apiVersion": "x/v1", "kind": "X"},
            "customizations": {"retention": {"luaScript": "x"}}}})
    };
    let mine = review("ResourceInterpreterCustomization", "CREATE", &one("mine"));
    assert_eq!(reviewed(&server, "/validate", &mine).await["allowed"], true);
    hub.put(
        "/apis/config.karmada.io/v1alpha1/resourceinterpretercustomizations/theirs",
        one("theirs"),
    );
    let response = reviewed(&server, "/validate", &mine).await;
    assert!(
        response["status"]["message"]
            .as_str()
            .expect("text")
            .contains("\"theirs\" already implements it"),
        "{response}"
    );
}

#[tokio::test]
async fn what_is_no_review_is_reported_as_such_by_its_code() {
    let server = server(&Hub::default());
    let json = "application/json";
    let fine = review("Pod", "CREATE", &json!({"metadata": {"name": "p"}})).to_string();
    for (method, path, media, body, code) in [
        ("GET", "/validate", json, "", 405),
        ("POST", "/healthz", json, "", 405),
        ("POST", "/other", json, "", 404),
        ("POST", "/validate", "text/yaml", fine.as_str(), 415),
        ("POST", "/validate", json, "{", 400),
        ("POST", "/validate", json, "[]", 400),
        (
            "POST",
            "/validate",
            json,
            r#"{"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v2"}"#,
            400,
        ),
        (
            "POST",
            "/validate",
            json,
            r#"{"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"}"#,
            400,
        ),
        ("POST", "/validate", "application/json; charset=utf-8", &fine, 200),
        ("GET", "/healthz", json, "", 200),
        ("GET", "/readyz", json, "", 200),
        ("POST", "/metrics", json, "", 405),
        ("GET", "/metrics", json, "", 200),
    ] {
        let (got, answer) = asked(&server, method, path, media, body.to_owned()).await;
        assert_eq!(got, code, "{method} {path} {media} {body}: {answer}");
    }
    let large = vec![b' '; server::LARGEST + 1];
    assert_eq!(asked(&server, "POST", "/validate", json, large).await.0, 413);
    let (_, metrics) = asked(&server, "GET", "/metrics", json, "").await;
    for (code, count) in [(200, 1), (400, 4), (405, 1), (413, 1), (415, 1)] {
        let line =
            format!("entourage_webhook_requests_total{{webhook=\"validate\",code=\"{code}\"}} {count}\n");
        assert!(metrics.contains(&line), "{line}{metrics}");
    }
    assert!(!metrics.contains("mutate"), "{metrics}");
    let measured = server.measured(Some(|| "# TYPE of_the_process gauge\n".to_owned()));
    let (_, metrics) = asked(&measured, "GET", "/metrics", json, "").await;
    assert!(
        metrics.ends_with("# TYPE of_the_process gauge\n# EOF\n"),
        "{metrics}"
    );
}

/// A running webhook.
struct Running {
    address: SocketAddr,
    stop: CancellationToken,
    task: tokio::task::JoinHandle<Result<(), Error>>,
}

async fn start(hub: &Hub, options: Options, clock: &Arc<AtomicI64>) -> Running {
    let (send, ready) = oneshot::channel();
    let stop = CancellationToken::new();
    let days = clock.clone();
    let clock: Clock = Arc::new(move || {
        // Clients use the real clock.
        Timestamp::now() + jiff::SignedDuration::from_hours(24 * days.load(Ordering::Relaxed))
    });
    let options = Options {
        bind: SocketAddr::from(([127, 0, 0, 1], 0)),
        round: Duration::from_millis(5),
        linger: options.linger.min(Duration::from_millis(500)),
        ..options
    };
    let task = tokio::spawn(run(options, hub.client(), clock, Some(send), stop.clone()));
    let address = tokio::time::timeout(Duration::from_secs(10), ready)
        .await
        .expect("soon")
        .expect("it runs");
    Running { address, stop, task }
}

/// The certificate of a webhook as a client with a bundle receives it; `None` if the client does not trust it.
async fn shown(address: SocketAddr, bundle: &str) -> Option<Vec<u8>> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&STANDARD.decode(bundle).expect("base64")) {
        roots.add(certificate.expect("PEM")).expect("a certificate");
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(address).await.expect("it listens");
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    let stream = connector
        .connect(ServerName::from(address.ip()), stream)
        .await
        .ok()?;
    let certificate = stream.get_ref().1.peer_certificates().expect("one")[0].to_vec();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .expect("HTTP");
    let connection = tokio::spawn(connection);
    let request = Request::get("/readyz")
        .header("host", "x")
        .body(Full::new(Bytes::new()))
        .expect("a request");
    let response = sender.send_request(request).await.expect("an answer");
    // 503 during shutdown: it responds, and reports that it is not ready.
    assert!([200, 503].contains(&response.status().as_u16()));
    connection.abort();
    Some(certificate)
}

fn bundle(hub: &Hub) -> String {
    let value = hub.get(CONFIGURATIONS);
    value["webhooks"][0]["clientConfig"]["caBundle"]
        .as_str()
        .expect("a bundle")
        .to_owned()
}

#[tokio::test]
async fn certificates_are_made_once_shared_and_renewed_without_a_restart() {
    let (hub, today) = (Hub::default(), Arc::new(AtomicI64::new(-300)));
    let first = start(&hub, Options::default(), &today).await;
    let url = hub.get(CONFIGURATIONS)["webhooks"][0]["clientConfig"]["url"].clone();
    assert_eq!(url, format!("https://{}/validate", first.address));
    let before = shown(first.address, &bundle(&hub)).await.expect("believed");
    // Quiet: rounds that change nothing write nothing.
    let writes = hub.writes();
    tokio::time::timeout(Duration::from_secs(10), async {
        for _ in 0..10 {
            shown(first.address, &bundle(&hub)).await;
        }
    })
    .await
    .expect("soon");
    assert_eq!((hub.writes(), writes), (3, 3));
    // Another replica uses the existing certificates.
    let options = Options {
        address: Some(Address::Url(format!("https://{}", first.address))),
        ..Options::default()
    };
    let second = start(&hub, options, &today).await;
    assert_eq!(shown(second.address, &bundle(&hub)).await.as_ref(), Some(&before));
    assert_eq!(hub.writes(), writes);
    // The certificate expires.
    today.store(0, Ordering::Relaxed);
    for address in [first.address, second.address] {
        let renewed = async {
            loop {
                match shown(address, &bundle(&hub)).await {
                    Some(now) if now != before => break now,
                    _ => tokio::task::yield_now().await,
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(10), renewed)
            .await
            .expect("renewed");
    }
    assert_eq!(hub.writes(), writes + 1);
    let secret = hub.get(SECRET);
    assert_eq!(secret["type"], "kubernetes.io/tls");
    for running in [first, second] {
        running.stop.cancel();
        running.task.await.expect("no panic").expect("an orderly end");
    }
    assert!(
        !hub.get(CONFIGURATIONS).is_null(),
        "a restart must not open a hole"
    );
}

#[tokio::test]
async fn what_somebody_changed_or_removed_comes_back_and_goes_on_exit_if_asked_for() {
    let (hub, today) = (Hub::default(), Arc::new(AtomicI64::new(-300)));
    let options = Options {
        remove_on_exit: true,
        ..Options::default()
    };
    let running = start(&hub, options, &today).await;
    let right = hub.get(CONFIGURATIONS)["webhooks"].clone();
    for (part, value) in [
        ("failurePolicy", json!("Ignore")),
        ("namespaceSelector", json!({"matchLabels": {"x": "y"}})),
        (
            "matchConditions",
            json!([{"name": "never", "expression": "false"}]),
        ),
    ] {
        let mut wrong = hub.get(CONFIGURATIONS);
        wrong["webhooks"][0][part] = value;
        hub.put(CONFIGURATIONS, wrong);
        let back = async {
            while hub.get(CONFIGURATIONS)["webhooks"] != right {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), back)
            .await
            .expect("it comes back");
    }
    running.stop.cancel();
    running.task.await.expect("no panic").expect("an orderly end");
    assert!(hub.get(CONFIGURATIONS).is_null());
    assert!(
        !hub.get(SECRET).is_null(),
        "the next one is believed by the same bundle"
    );
}

#[tokio::test]
async fn after_its_secret_is_deleted_old_and_new_certificates_are_believed_and_then_only_new_ones() {
    let (hub, today) = (Hub::default(), Arc::new(AtomicI64::new(-300)));
    let running = start(&hub, Options::default(), &today).await;
    let old = bundle(&hub);
    let before = shown(running.address, &old).await.expect("believed");
    hub.take(SECRET);
    until(|| bundle(&hub) != old).await;
    let both = bundle(&hub);
    let pem = |bundle: &str| String::from_utf8(STANDARD.decode(bundle).expect("base64")).expect("PEM");
    assert!(pem(&both).ends_with(&pem(&old)));
    // A replica that has not reloaded yet serves the old one: the bundle contains its authority as well.
    let after = shown(running.address, &both).await.expect("believed");
    assert_ne!(after, before);
    assert_eq!(shown(running.address, &old).await, None);
    today.fetch_add(1, Ordering::Relaxed);
    until(|| bundle(&hub) != both).await;
    let alone = bundle(&hub);
    assert_eq!(format!("{}{}", pem(&alone), pem(&old)), pem(&both));
    assert_eq!(shown(running.address, &alone).await, Some(after));
    running.stop.cancel();
    running.task.await.expect("no panic").expect("an orderly end");
}

#[tokio::test]
async fn at_its_end_it_serves_on_until_its_configurations_are_gone_and_a_moment_longer() {
    let (hub, today) = (Hub::default(), Arc::new(AtomicI64::new(-300)));
    let options = Options {
        remove_on_exit: true,
        ..Options::default()
    };
    let running = start(&hub, options, &today).await;
    let trusted = bundle(&hub);
    running.stop.cancel();
    until(|| hub.get(CONFIGURATIONS).is_null()).await;
    assert!(shown(running.address, &trusted).await.is_some());
    running.task.await.expect("no panic").expect("an orderly end");
    assert!(TcpStream::connect(running.address).await.is_err());
}

/// Waits until a condition holds.
async fn until(holds: impl Fn() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), waiting)
        .await
        .expect("soon");
}

#[tokio::test]
async fn an_address_that_is_taken_is_an_error_that_says_what_to_do() {
    let taken = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let options = Options {
        bind: taken.local_addr().expect("an address"),
        ..Options::default()
    };
    let clock: Clock = Arc::new(|| Timestamp::UNIX_EPOCH);
    let error = run(
        options,
        Hub::default().client(),
        clock,
        None,
        CancellationToken::new(),
    )
    .await
    .expect_err("it is taken");
    assert!(error.to_string().contains("--port"), "{error}");
}
