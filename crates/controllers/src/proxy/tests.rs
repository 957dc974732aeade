//! Requests through the hub, against a hub in memory and members that are functions or sockets.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use entourage_api::keys::annotation;
use futures::{StreamExt as _, channel::mpsc};
use http_body_util::{Empty, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use k8s_openapi::ByteString;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

use super::*;

const ENDPOINT: &str = "https://m1:6443";

/// A Cluster that is reached at `endpoint`.
fn cluster(endpoint: &str) -> Value {
    json!({
        "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": "m1", "uid": "u1"},
        "spec": {
            "syncMode": "Push", "apiEndpoint": endpoint, "insecureSkipTLSVerification": true,
            "impersonatorSecretRef": {"namespace": "karmada-cluster", "name": "m1-impersonator"},
        },
    })
}

fn secret(endpoint: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {
            "name": "m1-impersonator", "namespace": "karmada-cluster", "resourceVersion": "5",
            "annotations": {
                annotation::CREDENTIALS_CLUSTER: "m1", annotation::CREDENTIALS_ENDPOINT: endpoint,
                annotation::CREDENTIALS_INSECURE: "true",
            },
        },
        "data": {"token": ByteString(b"canary-t0ken".to_vec())},
    })
}

const CLUSTER: &str = "/apis/cluster.karmada.io/v1alpha1/clusters/m1";
const IMPERSONATOR: &str = "/api/v1/namespaces/karmada-cluster/secrets/m1-impersonator";
const CONTROLLERS: &str = "/api/v1/namespaces/karmada-cluster/secrets/m1";

/// The objects of a hub, by path.
type Objects = Arc<Mutex<HashMap<&'static str, Value>>>;

/// A hub with these objects.
fn hub_of(objects: &Objects) -> kube::Client {
    let objects = objects.clone();
    let service = tower::service_fn(move |request: Request<kube::client::Body>| {
        let object = objects.lock().unwrap().get(request.uri().path()).cloned();
        let missing = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404});
        let code = if object.is_some() { 200 } else { 404 };
        let body = Full::from(object.unwrap_or(missing).to_string());
        let mut response = Response::new(body);
        *response.status_mut() = StatusCode::from_u16(code).unwrap();
        async move { Ok::<_, Infallible>(response) }
    });
    kube::Client::new(service, "default")
}

/// A hub with one Cluster and one Secret.
fn hub(cluster: Option<Value>, secret: Option<Value>) -> kube::Client {
    let all = [(CLUSTER, cluster), (IMPERSONATOR, secret)];
    let all = all.into_iter().filter_map(|(path, object)| Some((path, object?)));
    hub_of(&Arc::new(Mutex::new(all.collect())))
}

fn proxy(hub: kube::Client, clients: ClientFactory) -> Proxy {
    proxy_until(&CancellationToken::new(), hub, clients)
}

fn proxy_until(stop: &CancellationToken, hub: kube::Client, clients: ClientFactory) -> Proxy {
    Proxy::new(ProxyOptions {
        hub,
        clients,
        cluster_namespace: "karmada-cluster".to_owned(),
        deadline: Duration::from_secs(5),
        stop: stop.clone(),
    })
}

fn jane() -> Requester {
    Requester {
        name: "jane".into(),
        groups: vec!["devs".into()],
        ..Requester::default()
    }
}

fn get() -> Request<Empty<Bytes>> {
    let request = Request::get("/apis/cluster.karmada.io/v1alpha1/clusters/m1/proxy/api/v1/pods?limit=5");
    let request = request
        .header("authorization", "Bearer hub")
        .header("impersonate-user", "root");
    request.body(Empty::new()).unwrap()
}

async fn text(response: Response<Body>) -> String {
    String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
}

/// A member that says what it was asked, with this code. `built` counts its clients.
fn echo(code: u16, built: Arc<AtomicUsize>) -> ClientFactory {
    Arc::new(move |_, config| {
        built.fetch_add(1, Ordering::SeqCst);
        assert!(config.auth_info.token.is_some() && config.accept_invalid_certs);
        let service = tower::service_fn(move |request: Request<kube::client::Body>| {
            let seen = format!("{} {} {:?}", request.method(), request.uri(), request.headers());
            let mut response = Response::new(Full::from(seen));
            *response.status_mut() = StatusCode::from_u16(code).unwrap();
            async move { Ok::<_, Infallible>(response) }
        });
        Ok(kube::Client::new(service, "default"))
    })
}

/// A member that responds to everything with this.
fn answering(
    code: u16,
    headers: &'static [(&'static str, &'static str)],
    body: &'static str,
) -> ClientFactory {
    Arc::new(move |_, _| {
        let service = tower::service_fn(move |_: Request<kube::client::Body>| {
            let mut response = Response::new(Full::<Bytes>::from(body));
            *response.status_mut() = StatusCode::from_u16(code).unwrap();
            for (name, value) in headers {
                response.headers_mut().insert(*name, value.parse().unwrap());
            }
            async move { Ok::<_, Infallible>(response) }
        });
        Ok(kube::Client::new(service, "default"))
    })
}

/// The body of an API server's response 401.
const UNAUTHORIZED: &str = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Unauthorized","reason":"Unauthorized","code":401}"#;

/// A member that nothing can be sent to.
fn dead() -> ClientFactory {
    Arc::new(|_, _| {
        let service = tower::service_fn(|_: Request<kube::client::Body>| async {
            Err::<Response<Full<Bytes>>, _>(io::Error::new(
                io::ErrorKind::ConnectionRefused,
                "connection refused",
            ))
        });
        Ok(kube::Client::new(service, "default"))
    })
}

#[tokio::test]
async fn a_request_reaches_the_member_as_the_user_of_the_hub() {
    let built = Arc::new(AtomicUsize::new(0));
    let proxy = proxy(
        hub(Some(cluster(ENDPOINT)), Some(secret(ENDPOINT))),
        echo(200, built.clone()),
    );
    for _ in 0..2 {
        let response = proxy.send(&jane(), "m1", "/api/v1/pods", get()).await;
        assert_eq!(response.status(), 200);
        let seen = text(response).await;
        assert!(seen.starts_with("GET /api/v1/pods?limit=5 "), "{seen}");
        assert!(seen.contains(r#""impersonate-user": "jane""#), "{seen}");
        assert!(seen.contains(r#""impersonate-group": "devs""#), "{seen}");
        assert!(!seen.contains("root") && !seen.contains("hub"), "{seen}");
    }
    assert_eq!(built.load(Ordering::SeqCst), 1, "one client serves both");
}

#[tokio::test]
async fn what_is_not_sent_on_is_a_status_with_cause_and_remedy_and_never_a_token() {
    let here = || (Some(cluster(ENDPOINT)), Some(secret(ENDPOINT)));
    let without = |field: &str| {
        let mut cluster = cluster(ENDPOINT);
        cluster["spec"].as_object_mut().unwrap().remove(field);
        (Some(cluster), Some(secret(ENDPOINT)))
    };
    let mut pull = without("apiEndpoint");
    if let Some(cluster) = &mut pull.0 {
        cluster["spec"]["syncMode"] = json!("Pull");
    }
    let mut elsewhere = secret(ENDPOINT);
    elsewhere["metadata"]["namespace"] = json!("other");
    let mut namespace = cluster(ENDPOINT);
    namespace["spec"]["impersonatorSecretRef"]["namespace"] = json!("other");
    let ok = || echo(200, Arc::default());
    let cases: Vec<(&str, _, ClientFactory, u16, &str)> = vec![
        ("no cluster", (None, None), ok(), 404, "not found"),
        ("pull", pull, ok(), 503, "is in Pull mode"),
        (
            "no endpoint",
            without("apiEndpoint"),
            ok(),
            503,
            "has no spec.apiEndpoint",
        ),
        (
            "no reference",
            without("impersonatorSecretRef"),
            ok(),
            503,
            "--impersonate",
        ),
        (
            "no secret",
            (Some(cluster(ENDPOINT)), None),
            ok(),
            503,
            "Secret karmada-cluster/m1-impersonator",
        ),
        (
            "another namespace",
            (Some(namespace), Some(elsewhere)),
            ok(),
            503,
            "spec.impersonatorSecretRef.namespace is other",
        ),
        // Whoever may write Clusters must not get the token.
        (
            "another address",
            (Some(cluster("https://evil")), Some(secret(ENDPOINT))),
            ok(),
            503,
            "no token is sent",
        ),
        ("dead", here(), dead(), 503, "did not respond"),
        (
            "refused",
            here(),
            answering(401, &[], UNAUTHORIZED),
            503,
            "refuses the token",
        ),
        (
            "led away",
            here(),
            answering(307, &[("location", "https://hub/api/v1/secrets")], ""),
            502,
            "a redirect",
        ),
        (
            "changed unasked",
            here(),
            answering(101, &[("connection", "Upgrade"), ("upgrade", "SPDY/3.1")], ""),
            502,
            "was not asked for",
        ),
    ];
    for (what, (cluster, secret), clients, code, words) in cases {
        let proxy = proxy(hub(cluster, secret), clients);
        let response = proxy.send(&jane(), "m1", "/api/v1/pods", get()).await;
        assert_eq!(response.status().as_u16(), code, "{what}");
        let status: Value = serde_json::from_str(&text(response).await).unwrap();
        let message = status["message"].as_str().unwrap();
        assert!(
            message.contains(words) && message.contains("m1"),
            "{what}: {message}"
        );
        assert!(!status.to_string().contains("canary"), "{what}");
        assert_eq!(
            (&status["kind"], &status["code"]),
            (&json!("Status"), &json!(code)),
            "{what}"
        );
    }
    let built = Arc::new(AtomicUsize::new(0));
    let (cluster, secret) = here();
    let proxy = proxy(hub(cluster, secret), echo(200, built.clone()));
    for (requester, rest, code) in [
        (Requester::default(), "/api", 403),
        (jane(), "/api/../x", 400),
        (jane(), "/api/%2e%2e/x", 400),
    ] {
        let response = proxy.send(&requester, "m1", rest, get()).await;
        assert_eq!(response.status().as_u16(), code, "{rest}");
    }
    // The hub authorizes no such method.
    for method in ["OPTIONS", "TRACE", "CONNECT", "PROPFIND"] {
        let mut request = get();
        *request.method_mut() = method.parse().unwrap();
        let response = proxy.send(&jane(), "m1", "/api", request).await;
        assert_eq!(response.status(), 405, "{method}");
        assert_eq!(
            response.headers()["allow"],
            "GET, HEAD, POST, PUT, PATCH, DELETE",
            "{method}"
        );
    }
    assert_eq!(built.load(Ordering::SeqCst), 0, "nothing was sent");
}

#[tokio::test]
async fn only_a_redirect_is_one_and_only_the_members_own_401_is_about_its_token() {
    let pods = "/api/v1/pods";
    let service = "/api/v1/namespaces/a/services/web/proxy/login";
    let to = &[("location", "/x"), ("refresh", "0; url=/x")];
    // path, response of the member, response to the caller
    let cases: [(&str, ClientFactory, u16, &str); 10] = [
        (pods, answering(301, to, "x"), 502, "redirect"),
        (pods, answering(302, to, "x"), 502, "redirect"),
        (pods, answering(303, to, "x"), 502, "redirect"),
        (pods, answering(308, to, "x"), 502, "redirect"),
        (service, answering(302, to, "x"), 502, "redirect"),
        (pods, answering(304, &[], ""), 304, ""),
        (pods, answering(201, to, "made"), 201, "made"),
        (pods, answering(401, &[], UNAUTHORIZED), 503, "refuses the token"),
        (pods, answering(401, &[], "log in"), 503, "refuses the token"),
        (
            service,
            answering(401, &[], UNAUTHORIZED),
            401,
            r#""reason":"Unauthorized""#,
        ),
    ];
    for (at, (path, clients, code, words)) in cases.into_iter().enumerate() {
        let hub = hub(Some(cluster(ENDPOINT)), Some(secret(ENDPOINT)));
        let response = proxy(hub, clients).send(&jane(), "m1", path, get()).await;
        assert_eq!(response.status().as_u16(), code, "{at}");
        for name in ["location", "refresh"] {
            assert!(!response.headers().contains_key(name), "{at}: {name}");
        }
        let text = text(response).await;
        assert!(text.contains(words), "{at}: {text}");
        assert!(!text.contains("/x"), "{at}: {text}");
    }
}

/// The certificates that a client trusts.
type Certificates = Option<Vec<Vec<u8>>>;

/// The Secret of the controllers, with this certificate, for this Cluster.
fn trusted(certificate: &str, version: &str, of: &str) -> Value {
    let bundle = format!("-----BEGIN CERTIFICATE-----\n{certificate}\n-----END CERTIFICATE-----\n");
    json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {
            "name": "m1", "namespace": "karmada-cluster", "resourceVersion": version,
            "annotations": {annotation::CREDENTIALS_CLUSTER: of, annotation::CREDENTIALS_ENDPOINT: ENDPOINT},
        },
        "data": {"token": ByteString(b"canary".to_vec()), "caBundle": ByteString(bundle.into_bytes())},
    })
}

#[tokio::test]
async fn the_certificates_of_the_controllers_count_while_their_secret_is_for_the_cluster() {
    let mut cluster = cluster(ENDPOINT);
    cluster["spec"]["insecureSkipTLSVerification"] = json!(false);
    cluster["spec"]["secretRef"] = json!({"namespace": "karmada-cluster", "name": "m1"});
    let objects: Objects = Arc::new(Mutex::new(HashMap::from([
        (CLUSTER, cluster),
        (IMPERSONATOR, secret(ENDPOINT)),
    ])));
    let built: Arc<Mutex<Vec<Certificates>>> = Arc::default();
    let clients: ClientFactory = {
        let built = built.clone();
        Arc::new(move |name, config| {
            built.lock().unwrap().push(config.root_cert.clone());
            answering(200, &[], "ok")(name, config)
        })
    };
    let proxy = proxy(hub_of(&objects), clients);
    // the Secret of the controllers, response, the certificates of all clients until then
    let cases = [
        (trusted("AQI=", "1", "m1"), 200, vec![[1_u8, 2]]),
        (trusted("AQI=", "1", "m1"), 200, vec![[1_u8, 2]]),
        (trusted("AwQ=", "2", "m1"), 200, vec![[1_u8, 2], [3, 4]]),
        (trusted("BQY=", "3", "m2"), 503, vec![[1_u8, 2], [3, 4]]),
    ];
    for (at, (held, code, certificates)) in cases.into_iter().enumerate() {
        objects.lock().unwrap().insert(CONTROLLERS, held);
        let response = proxy.send(&jane(), "m1", "/api/v1/pods", get()).await;
        assert_eq!(response.status().as_u16(), code, "{at}");
        let text = text(response).await;
        assert!(!text.contains("canary"), "{at}: {text}");
        assert_eq!(
            code == 503,
            text.contains("holds the credentials of Cluster m2"),
            "{at}: {text}"
        );
        let wanted: Vec<Certificates> = certificates
            .iter()
            .map(|each| Some(vec![each.to_vec()]))
            .collect();
        assert_eq!(*built.lock().unwrap(), wanted, "{at}");
    }
}

#[tokio::test]
async fn a_members_own_refusal_is_passed_on() {
    let proxy = proxy(
        hub(Some(cluster(ENDPOINT)), Some(secret(ENDPOINT))),
        echo(403, Arc::default()),
    );
    let response = proxy.send(&jane(), "m1", "/api/v1/pods", get()).await;
    assert_eq!(response.status(), 403);
    assert!(text(response).await.starts_with("GET /api/v1/pods"));
}

#[tokio::test]
async fn the_lines_of_a_stream_arrive_one_by_one_and_its_break_is_no_end() {
    let (sender, lines) = mpsc::unbounded::<io::Result<Frame<Bytes>>>();
    let lines = Arc::new(Mutex::new(Some(lines)));
    let clients: ClientFactory = Arc::new(move |_, _| {
        let lines = lines.lock().unwrap().take().unwrap();
        let lines = Arc::new(Mutex::new(Some(lines)));
        let service = tower::service_fn(move |_: Request<kube::client::Body>| {
            let lines = lines.lock().unwrap().take().unwrap();
            async move { Ok::<_, Infallible>(Response::new(StreamBody::new(lines))) }
        });
        Ok(kube::Client::new(service, "default"))
    });
    let proxy = proxy(hub(Some(cluster(ENDPOINT)), Some(secret(ENDPOINT))), clients);
    let response = proxy.send(&jane(), "m1", "/api/v1/pods", get()).await;
    let mut frames = http_body_util::BodyStream::new(response.into_body());
    for line in ["one\n", "two\n"] {
        sender.unbounded_send(Ok(Frame::data(Bytes::from(line)))).unwrap();
        let frame = frames.next().await.unwrap().unwrap();
        assert_eq!(frame.into_data().unwrap(), line);
    }
    sender.unbounded_send(Err(io::Error::other("reset"))).unwrap();
    assert!(frames.next().await.unwrap().is_err());
}

/// A member that takes any request as an upgrade, sends back one word that it gets, in upper case, and keeps the connection.
async fn shouting() -> (String, tokio::task::JoinHandle<(String, TcpStream)>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let serving = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let asked = head(&mut stream).await;
        let head = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nSet-Cookie: a=b\r\n\r\n";
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut word = [0; 5];
        stream.read_exact(&mut word).await.unwrap();
        stream.write_all(&word.to_ascii_uppercase()).await.unwrap();
        (asked, stream)
    });
    (endpoint, serving)
}

/// The lines that a side sends up to the empty one, in lower case.
async fn head(stream: &mut TcpStream) -> String {
    let mut read = Vec::new();
    while !read.ends_with(b"\r\n\r\n") {
        read.push(stream.read_u8().await.unwrap());
    }
    String::from_utf8(read).unwrap().to_lowercase()
}

/// True if nothing comes but the end.
async fn has_ended(stream: &mut TcpStream) -> bool {
    let mut byte = [0];
    let read = tokio::time::timeout(Duration::from_secs(30), stream.read(&mut byte)).await;
    // A reset is an end, too.
    read.unwrap().unwrap_or_default() == 0
}

/// A caller whose connection has changed to SPDY/3.1 through a proxy, and the head of the response.
async fn changed(proxy: &Arc<Proxy>) -> (TcpStream, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let proxy = proxy.clone();
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let service = service_fn(move |request: Request<Incoming>| {
            let proxy = proxy.clone();
            async move {
                let rest = "/api/v1/namespaces/default/pods/p/exec";
                Ok::<_, Infallible>(proxy.send(&jane(), "m1", rest, request).await)
            }
        });
        let connection = hyper::server::conn::http1::Builder::new()
            .serve_connection(TokioIo::new(stream), service)
            .with_upgrades();
        let _ = connection.await;
    });
    let mut caller = TcpStream::connect(address).await.unwrap();
    let request = "POST /x?command=sh HTTP/1.1\r\nHost: hub\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nAuthorization: Bearer hub\r\nContent-Length: 0\r\n\r\n";
    caller.write_all(request.as_bytes()).await.unwrap();
    let response = head(&mut caller).await;
    (caller, response)
}

#[tokio::test]
async fn a_connection_that_changes_its_protocol_is_spliced_until_one_side_ends_or_the_server_stops() {
    for end in ["caller", "member", "stop"] {
        let (endpoint, member) = shouting().await;
        let stop = CancellationToken::new();
        let hub = hub(Some(cluster(&endpoint)), Some(secret(&endpoint)));
        let proxy = Arc::new(proxy_until(&stop, hub, crate::passing_clients()));
        let (mut caller, response) = changed(&proxy).await;
        assert!(
            response.starts_with("http/1.1 101") && response.contains("upgrade: spdy/3.1"),
            "{response}"
        );
        assert!(!response.contains("set-cookie"), "{response}");
        caller.write_all(b"hello").await.unwrap();
        let mut word = [0; 5];
        caller.read_exact(&mut word).await.unwrap();
        assert_eq!(&word, b"HELLO");
        let (asked, mut member) = member.await.unwrap();
        assert!(
            asked.starts_with("post /api/v1/namespaces/default/pods/p/exec?command=sh "),
            "{asked}"
        );
        for line in [
            "connection: upgrade",
            "upgrade: spdy/3.1",
            "authorization: bearer canary-t0ken",
            "impersonate-user: jane",
        ] {
            assert!(asked.contains(line), "{line}: {asked}");
        }
        assert!(!asked.contains("bearer hub"), "{asked}");
        match end {
            "caller" => {
                drop(caller);
                assert!(has_ended(&mut member).await, "{end}");
            }
            "member" => {
                drop(member);
                assert!(has_ended(&mut caller).await, "{end}");
            }
            _ => {
                stop.cancel();
                assert!(
                    has_ended(&mut caller).await && has_ended(&mut member).await,
                    "{end}"
                );
            }
        }
    }
}

/// A Secret of karmadactl: owned by its Cluster, with neither an address nor certificates.
fn karmadas() -> Value {
    let mut object = secret(ENDPOINT);
    object["metadata"]["annotations"] = json!({});
    object["metadata"]["ownerReferences"] = json!([{"kind": "Cluster", "name": "m1"}]);
    object
}

#[tokio::test]
async fn an_impersonators_secret_that_names_no_address_is_used_where_the_controllers_connect() {
    // what is changed in the Cluster; the address on the Secret of the controllers; whether the token is sent
    let recorded = |endpoint: &str| {
        json!({annotation::CREDENTIALS_CLUSTER: "m1", annotation::CREDENTIALS_ENDPOINT: endpoint,
        annotation::CREDENTIALS_INSECURE: "true"})
    };
    for (change, annotations, is_sent) in [
        (json!({}), recorded(ENDPOINT), true),
        (json!({"apiEndpoint": "https://evil"}), recorded(ENDPOINT), false),
        (
            json!({"apiEndpoint": "https://evil", "secretRef": null}),
            recorded(ENDPOINT),
            false,
        ),
        (json!({"secretRef": null}), recorded(ENDPOINT), false),
        // The controllers have not connected yet.
        (json!({}), json!({}), false),
    ] {
        let mut member = cluster(ENDPOINT);
        member["spec"]["secretRef"] = json!({"namespace": "karmada-cluster", "name": "m1"});
        for (field, value) in change.as_object().unwrap() {
            member["spec"][field] = value.clone();
        }
        let mut controllers = secret(ENDPOINT);
        controllers["metadata"]["name"] = json!("m1");
        controllers["metadata"]["annotations"] = annotations.clone();
        let objects: Objects = Arc::default();
        objects.lock().unwrap().extend([
            (CLUSTER, member),
            (IMPERSONATOR, karmadas()),
            (CONTROLLERS, controllers),
        ]);
        let sent = answering(200, &[], "pods");
        let response = proxy(hub_of(&objects), sent)
            .send(&jane(), "m1", "/api/v1/pods", get())
            .await;
        let expected = if is_sent { 200 } else { 503 };
        assert_eq!(
            response.status(),
            expected,
            "{change} {annotations}: {}",
            text(response).await
        );
    }
}
