//! `entourage logs`, `exec` and `top` as processes: through the hub of a fleet, to a member that plays a node and a metrics server.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use std::{
    io::Write as _,
    process::{Command, Output, Stdio},
};

use entourage::fleet::{Fleet, Place};
use entourage_api::keys::annotation;
use entourage_controllers::Options;
use http::Request;
use k8s_openapi::ByteString;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

/// The text that a server appends to the key. Source: RFC 6455.
const WEBSOCKET: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// The lines that a side sends up to the empty one.
async fn head(stream: &mut TcpStream) -> String {
    let mut read = Vec::new();
    while !read.ends_with(b"\r\n\r\n") {
        read.push(stream.read_u8().await.unwrap());
    }
    String::from_utf8(read).unwrap()
}

fn header<'a>(head: &'a str, name: &str) -> &'a str {
    let mut lines = head.lines().filter_map(|line| line.split_once(": "));
    let found = lines.find(|(each, _)| each.eq_ignore_ascii_case(name));
    found.map_or("", |(_, value)| value)
}

/// Answers one request.
async fn answer(mut stream: TcpStream) {
    let asked = head(&mut stream).await;
    let path = asked.split(' ').nth(1).unwrap_or_default();
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let is_ours = header(&asked, "authorization") == "Bearer of-the-impersonator"
        && !header(&asked, "impersonate-user").is_empty();
    let pod = "/api/v1/namespaces/default/pods/web-1";
    let (code, body) = match path.strip_prefix(pod) {
        _ if !is_ours => (
            403,
            json!({"kind": "Status", "code": 403, "message": "who?"}).to_string(),
        ),
        Some("") => {
            let containers = json!([{"name": "app"}]);
            (
                200,
                json!({"metadata": {"name": "web-1"}, "spec": {"containers": containers}}).to_string(),
            )
        }
        Some("/log") => (200, format!("{query}\nthe last")),
        Some("/exec") => return run(stream, &asked).await,
        _ if path == "/apis/metrics.k8s.io/v1beta1/namespaces/default/pods" => {
            let containers = json!([{"usage": {"cpu": "12m", "memory": "34Mi"}}]);
            let pod =
                json!({"metadata": {"namespace": "default", "name": "web-1"}, "containers": containers});
            (200, json!({"items": [pod]}).to_string())
        }
        _ => (
            404,
            json!({"kind": "Status", "code": 404, "message": "not found"}).to_string(),
        ),
    };
    let length = body.len();
    let answer = format!("HTTP/1.1 {code} X\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}");
    stream.write_all(answer.as_bytes()).await.unwrap();
}

/// One message of the client: channel and content.
async fn message(stream: &mut TcpStream) -> Vec<u8> {
    stream.read_u8().await.unwrap();
    let length = stream.read_u8().await.unwrap() & 0x7f;
    assert!(length < 126, "longer messages are not sent here");
    let (mut mask, mut content) = ([0; 4], vec![0; length.into()]);
    stream.read_exact(&mut mask).await.unwrap();
    stream.read_exact(&mut content).await.unwrap();
    for (at, byte) in content.iter_mut().enumerate() {
        *byte ^= mask[at % 4];
    }
    content
}

/// A command that returns its input in upper case, and ends with code 3.
async fn run(mut stream: TcpStream, asked: &str) {
    let key = format!("{}{WEBSOCKET}", header(asked, "sec-websocket-key"));
    let digest = ring::digest::digest(&ring::digest::SHA1_FOR_LEGACY_USE_ONLY, key.as_bytes());
    let accepted = serde_json::to_value(ByteString(digest.as_ref().to_vec())).unwrap();
    let accepted = accepted.as_str().unwrap();
    let answer = format!(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: {accepted}\r\n\
         Sec-WebSocket-Protocol: v5.channel.k8s.io\r\n\r\n"
    );
    stream.write_all(answer.as_bytes()).await.unwrap();
    let mut input = Vec::new();
    loop {
        match message(&mut stream).await.as_slice() {
            [0, typed @ ..] => input.extend_from_slice(typed),
            [255, 0] => break,
            other => panic!("{other:?}"),
        }
    }
    let causes = json!([{"reason": "ExitCode", "message": "3"}]);
    let status = json!({"metadata": {}, "status": "Failure", "reason": "NonZeroExitCode", "message": "exit code 3",
        "details": {"causes": causes}});
    let line = asked.lines().next().unwrap_or_default();
    let commands = line.matches("command=").count();
    let warning = format!("{commands} words");
    let messages: [(u8, Vec<u8>); 3] = [
        (1, input.to_ascii_uppercase()),
        (2, warning.into_bytes()),
        (3, status.to_string().into_bytes()),
    ];
    for (channel, content) in messages {
        let length = u16::try_from(content.len() + 1).unwrap();
        let mut frame = vec![0x82, 126];
        frame.extend(length.to_be_bytes());
        frame.push(channel);
        frame.extend(content);
        stream.write_all(&frame).await.unwrap();
    }
    stream.write_all(&[0x88, 0]).await.unwrap();
    // Until the client has read that.
    let _ = stream.read_to_end(&mut Vec::new()).await;
}

async fn created(fleet: &Fleet, path: &str, object: Value) {
    let request = Request::post(path).header("content-type", "application/json");
    let request = request.body(Body::from(object.to_string().into_bytes())).unwrap();
    let response = fleet.hub.client().send(request).await.unwrap();
    assert_eq!(response.status(), 201, "{path}");
}

/// Runs the binary with this input.
async fn entourage(fleet: &Fleet, line: &str, input: &'static str) -> Output {
    let mut words = line.split(' ');
    let mut command = Command::new(env!("CARGO_BIN_EXE_entourage"));
    command
        .args(words.next())
        .arg("--kubeconfig")
        .arg(fleet.kubeconfig().unwrap())
        .args(words);
    let run = move || {
        let piped = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut process = piped.spawn().unwrap();
        process.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        process.wait_with_output().unwrap()
    };
    tokio::task::spawn_blocking(run).await.unwrap()
}

fn texts(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (text(&output.stdout), text(&output.stderr))
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_commands_and_metrics_of_a_member_come_through_the_hub() {
    entourage::install_tls_provider();
    let place = Place::Temporary("entourage-test-");
    let fleet = Fleet::start(1, &place, Options::default()).await.unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer(stream));
        }
    });
    let namespace = "karmada-cluster";
    created(
        &fleet,
        &format!("/api/v1/namespaces/{namespace}/secrets"),
        json!({
            "metadata": {"name": "stub-impersonator", "annotations": {
                annotation::CREDENTIALS_CLUSTER: "stub", annotation::CREDENTIALS_ENDPOINT: endpoint,
                annotation::CREDENTIALS_INSECURE: "true"}},
            "stringData": {"token": "of-the-impersonator"},
        }),
    )
    .await;
    created(
        &fleet,
        "/apis/cluster.karmada.io/v1alpha1/clusters",
        json!({
            "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": "stub"},
            "spec": {"syncMode": "Push", "apiEndpoint": endpoint, "insecureSkipTLSVerification": true,
                "impersonatorSecretRef": {"namespace": namespace, "name": "stub-impersonator"}},
        }),
    )
    .await;

    let output = entourage(&fleet, "logs web-1 -C stub --tail 2", "").await;
    let (out, err) = texts(&output);
    assert!(output.status.success(), "{err}");
    assert!(
        out.contains("tailLines=2") && out.ends_with("\nthe last"),
        "{out:?}"
    );

    // Without a name of a member, each is asked: member1 has no such pod.
    let output = entourage(&fleet, "logs pod/web-1", "").await;
    let (out, err) = texts(&output);
    assert!(
        output.status.success() && out.ends_with("\nthe last"),
        "{out} {err}"
    );

    let output = entourage(&fleet, "exec web-1 -C stub -i -- tr a-z A-Z", "hello").await;
    let (out, err) = texts(&output);
    assert_eq!((output.status.code(), out.as_str()), (Some(3), "HELLO"), "{err}");
    assert!(
        err.contains("3 words") && err.contains("terminated with exit code 3"),
        "{err}"
    );

    // Embedded members have no metrics.
    let output = entourage(&fleet, "top pods", "").await;
    let (out, err) = texts(&output);
    assert_eq!(
        out, "CLUSTER   NAME    CPU(cores)   MEMORY(bytes)\nstub      web-1   12m          34Mi\n",
        "{err}"
    );
    assert_eq!(output.status.code(), Some(1));
    assert!(
        err.contains("note: member1: metrics.k8s.io is not served there"),
        "{err}"
    );
    assert!(err.contains("no metrics of 1/2 clusters"), "{err}");
    fleet.end().await.unwrap();
}
