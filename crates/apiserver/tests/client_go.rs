//! A recorded session of a Go client is replayed: what kube-controller-manager 1.20.2 sent to a kube-apiserver 1.20.2 in protocol
//! buffers while it ran workloads, a quota and an autoscaler (`testdata/client-go`). Its requests of beta versions, which this release
//! does not serve, and those that end a namespace, which this server does itself, are left out.
//!
//! Requests are sent byte by byte as they were recorded, but for what a server chooses: uids and generated names, which are replaced by
//! those of this server and are as long, and the resourceVersion of an update. Each answer has the recorded code and kind, and in the
//! end the objects have what they had on the recorded server.

use std::collections::{BTreeMap, BTreeSet};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use entourage_apiserver::{Cluster, Options, StandIns};
use http::{Request, header};
use http_body_util::{BodyExt as _, Full};
use serde::Deserialize;
use serde_json::{Value, json};
use tower::ServiceExt as _;

const SESSION: &str = include_str!("../testdata/client-go/session.jsonl");
/// The objects that a user made.
const MADE: &str = include_str!("../testdata/client-go/made.json");
/// The uids of these and of others on the recorded server.
const UIDS: &str = include_str!("../testdata/client-go/uids.json");
/// The objects after the session.
const FINAL: &str = include_str!("../testdata/client-go/final.json");

/// The requests that are replayed.
const REPLAYED: usize = 224;

/// The differences that are allowed in the end: the end of a field's path, or a name before a blank, and the reason. A row that
/// matches nothing fails the test.
const DIFFERS: [(&str, &str); 6] = [
    (
        "spec.serviceAccount",
        "the admission plug-in ServiceAccount is not part of this server",
    ),
    ("spec.serviceAccountName", "the same"),
    (".volumeMounts", "the same"),
    ("spec.volumes", "the same"),
    (
        "spec.selector.matchLabels.controller-uid",
        "since 1.27 Jobs select by batch.kubernetes.io/controller-uid",
    ),
    (
        "/kubernetes ",
        "a stand-in that is off here keeps Service and Endpoints of the API server",
    ),
];

/// An exchange, as a line of the file.
#[derive(Debug, Deserialize)]
struct Exchange {
    method: String,
    path: String,
    #[serde(default)]
    accept: String,
    #[serde(default, rename = "type")]
    media: String,
    code: u16,
    /// Version and kind of the answer.
    kind: String,
    /// The body of the request, in base64.
    #[serde(default)]
    body: String,
    /// The answer to a creation, in base64.
    #[serde(default)]
    answer: String,
}

/// The bytes of a length-delimited field of a message; the last of them counts.
fn field(message: &[u8], number: u64) -> Option<&[u8]> {
    parts(message)
        .filter(|part| part.number == number)
        .last()
        .map(|part| part.bytes)
}

/// A field of a message.
struct Part<'a> {
    number: u64,
    /// With its tag and length.
    whole: &'a [u8],
    bytes: &'a [u8],
}

fn parts(message: &[u8]) -> impl Iterator<Item = Part<'_>> {
    let mut rest = message;
    std::iter::from_fn(move || {
        let before = rest;
        let (tag, after) = varint(rest)?;
        let (bytes, after) = match tag & 7 {
            0 => {
                let (_, next) = varint(after)?;
                (&after[..after.len() - next.len()], next)
            }
            2 => {
                let (length, next) = varint(after)?;
                next.split_at_checked(usize::try_from(length).ok()?)?
            }
            1 => after.split_at_checked(8)?,
            _ => after.split_at_checked(4)?,
        };
        rest = after;
        Some(Part {
            number: tag >> 3,
            whole: &before[..before.len() - rest.len()],
            bytes,
        })
    })
}

fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0;
    for (index, byte) in bytes.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7f) << (7 * index);
        if *byte < 0x80 {
            return Some((value, &bytes[index + 1..]));
        }
    }
    None
}

fn length(mut value: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// The message with another value in a length-delimited field on a path of fields.
fn with(message: &[u8], path: &[u64], value: &[u8]) -> Vec<u8> {
    let Some((number, below)) = path.split_first() else {
        return value.to_vec();
    };
    let mut changed = Vec::with_capacity(message.len() + 8);
    for part in parts(message) {
        if part.number == *number {
            let inner = with(part.bytes, below, value);
            changed.push((number << 3 | 2) as u8);
            changed.extend(length(inner.len()));
            changed.extend(inner);
        } else {
            changed.extend(part.whole);
        }
    }
    changed
}

/// Behind the prefix: the envelope.
fn envelope(body: &[u8]) -> Option<&[u8]> {
    body.strip_prefix(b"k8s\0")
}

/// Version and kind of a body.
fn kind(body: &[u8]) -> Option<String> {
    let meta = field(envelope(body)?, 1)?;
    let text = |number| Some(String::from_utf8_lossy(field(meta, number)?).into_owned());
    Some(format!("{} {}", text(1)?, text(2)?))
}

/// Name and uid of the object in a body.
fn identity(body: &[u8]) -> Option<(String, String)> {
    let metadata = field(field(envelope(body)?, 2)?, 1)?;
    let text = |number| Some(String::from_utf8_lossy(field(metadata, number)?).into_owned());
    Some((text(1)?, text(5)?))
}

/// The server, and what it chose otherwise than the recorded one.
struct Replay {
    cluster: Cluster,
    /// The recorded texts and ours, as long.
    chosen: BTreeMap<String, String>,
}

impl Replay {
    async fn send(&self, method: &str, path: &str, accept: &str, media: &str, body: Vec<u8>) -> (u16, Bytes) {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::AUTHORIZATION, "Bearer admin")
            .header(header::CONTENT_TYPE, media)
            .header(header::ACCEPT, accept)
            .body(Full::new(Bytes::from(body)))
            .expect("a request");
        let Ok(response) = self.cluster.service().oneshot(request).await;
        let code = response.status().as_u16();
        let body = response.into_body().collect().await.expect("a whole body");
        (code, body.to_bytes())
    }

    async fn json(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let body = if body.is_null() {
            Vec::new()
        } else {
            body.to_string().into_bytes()
        };
        let (code, answer) = self
            .send(method, path, "application/json", "application/json", body)
            .await;
        (code, serde_json::from_slice(&answer).unwrap_or_default())
    }

    fn choose(&mut self, recorded: &str, ours: &str) {
        if recorded.len() == ours.len() && recorded != ours {
            self.chosen.insert(recorded.to_owned(), ours.to_owned());
        }
    }

    /// The bytes with what this server chose. Cost: O(bytes × choices).
    fn translated(&self, bytes: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        for (recorded, ours) in &self.chosen {
            let mut at = 0;
            while let Some(found) = bytes[at..]
                .windows(recorded.len())
                .position(|each| each == recorded.as_bytes())
            {
                at += found;
                bytes[at..at + ours.len()].copy_from_slice(ours.as_bytes());
                at += ours.len();
            }
        }
        bytes
    }

    /// Makes what the user made.
    async fn set_up(&mut self) {
        for object in items(MADE) {
            let path = collection(&object);
            if !is_gone(&path) && object["metadata"]["name"] != "gone" {
                let (code, answer) = self.json("POST", &path, &object).await;
                assert_eq!(code, 201, "{answer}");
            }
        }
        for object in items(UIDS) {
            let name = object["metadata"]["name"].as_str().expect("a name");
            let path = format!("{}/{name}", collection(&object));
            let (_, live) = self.json("GET", &path, &Value::Null).await;
            let uid = |object: &Value| object["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
            self.choose(&uid(&object), &uid(&live));
        }
    }

    /// The objects of the recorded kinds that the recorded server did not have in the end.
    async fn extra(&self) -> Vec<String> {
        let mut recorded: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for object in items(FINAL) {
            let name = object["metadata"]["name"].as_str().expect("a name");
            let name = String::from_utf8(self.translated(name.as_bytes())).expect("text");
            recorded.entry(collection(&object)).or_default().insert(name);
        }
        let mut extra = Vec::new();
        for (path, names) in recorded {
            let (_, list) = self.json("GET", &path, &Value::Null).await;
            let live = list["items"].as_array().expect("a list").iter();
            let live = live.filter_map(|object| object["metadata"]["name"].as_str());
            extra.extend(
                live.filter(|name| !names.contains(*name))
                    .map(|name| format!("{path}/{name} : not recorded")),
            );
        }
        extra
    }

    /// Sends one request; returns what differs.
    async fn replay(&mut self, exchange: &Exchange) -> Option<String> {
        let path = String::from_utf8(self.translated(exchange.path.as_bytes())).expect("text");
        let mut body = self.translated(&STANDARD.decode(&exchange.body).expect("base64"));
        if exchange.method == "PUT" && exchange.code == 200 {
            let object = path
                .split('?')
                .next()
                .unwrap_or_default()
                .trim_end_matches("/status");
            let (_, live) = self
                .json("GET", object.trim_end_matches("/finalize"), &Value::Null)
                .await;
            let of = |field: &str| live["metadata"][field].as_str().unwrap_or_default();
            let version = of("resourceVersion");
            if let Some((_, uid)) = identity(&body)
                && uid != of("uid")
            {
                self.choose(&uid, of("uid"));
                body = self.translated(&body);
            }
            let changed = with(
                envelope(&body).expect("an envelope"),
                &[2, 1, 6],
                version.as_bytes(),
            );
            body = [&b"k8s\0"[..], &changed].concat();
        }
        let (code, answer) = self
            .send(&exchange.method, &path, &exchange.accept, &exchange.media, body)
            .await;
        let wanted = STANDARD.decode(&exchange.answer).expect("base64");
        if let (Some(recorded), Some(ours)) = (identity(&wanted), identity(&answer)) {
            self.choose(&recorded.0, &ours.0);
            self.choose(&recorded.1, &ours.1);
        }
        let (found, wanted) = (
            (code, kind(&answer)),
            (exchange.code, Some(exchange.kind.clone())),
        );
        (found != wanted).then(|| format!("{} {path}: {found:?} instead of {wanted:?}", exchange.method))
    }
}

fn items(list: &str) -> Vec<Value> {
    let mut list: Value = serde_json::from_str(list).expect("JSON");
    serde_json::from_value(list["items"].take()).expect("items")
}

/// True for versions that a server of this release no longer serves, and for the namespace that ends: here the server itself ends it.
fn is_gone(path: &str) -> bool {
    let version = path.split(['/', '?']).nth(3).unwrap_or_default();
    version.contains("beta") || path.contains("/namespaces/gone")
}

/// The parts of a recorded value that are not in ours, which has the defaults of a later release, too.
fn lacks(recorded: &Value, ours: &Value, at: &str, wrong: &mut Vec<String>) {
    match (recorded, ours) {
        (Value::Object(recorded), Value::Object(ours)) => {
            for (name, value) in recorded.iter().filter(|(name, _)| !name.starts_with("clusterIP")) {
                lacks(
                    value,
                    ours.get(name).unwrap_or(&Value::Null),
                    &format!("{at}.{name}"),
                    wrong,
                );
            }
        }
        (Value::Array(recorded), Value::Array(ours)) if recorded.len() == ours.len() => {
            for (index, (recorded, ours)) in recorded.iter().zip(ours).enumerate() {
                lacks(recorded, ours, &format!("{at}[{index}]"), wrong);
            }
        }
        _ if recorded == ours => {}
        _ => wrong.push(format!("{at}: {ours} instead of {recorded}")),
    }
}

/// The path of an object's collection.
fn collection(object: &Value) -> String {
    let version = object["apiVersion"].as_str().expect("apiVersion");
    let kind = object["kind"].as_str().expect("kind").to_lowercase();
    let plural = match kind.as_str() {
        "endpoints" => kind,
        _ if kind.ends_with('y') => format!("{}ies", kind.trim_end_matches('y')),
        _ if kind.ends_with('s') => format!("{kind}es"),
        _ => format!("{kind}s"),
    };
    let prefix = if version.contains('/') { "apis" } else { "api" };
    match object["metadata"]["namespace"].as_str() {
        Some(namespace) => format!("/{prefix}/{version}/namespaces/{namespace}/{plural}"),
        None => format!("/{prefix}/{version}/{plural}"),
    }
}

#[tokio::test]
async fn a_controller_manager_that_speaks_protocol_buffers_runs_as_on_a_real_server() {
    let cluster = Cluster::new(Options {
        admin_token: "admin".to_owned(),
        stand_ins: StandIns {
            api_services: true,
            ..StandIns::default()
        },
        ..Options::default()
    });
    let mut replay = Replay {
        cluster,
        chosen: BTreeMap::new(),
    };
    let mut differences = Vec::new();
    let (mut sent, mut is_set_up) = (0, false);
    for line in SESSION.lines() {
        let exchange: Exchange = serde_json::from_str(line).expect("an exchange");
        if is_gone(&exchange.path) {
            continue;
        }
        // The user came when the first workload was taken up.
        if !is_set_up && exchange.method == "POST" && exchange.path.contains("/namespaces/default/") {
            replay.set_up().await;
            is_set_up = true;
        }
        sent += 1;
        differences.extend(replay.replay(&exchange).await);
    }
    assert!(differences.is_empty(), "of {sent}: {differences:#?}");
    assert_eq!(sent, REPLAYED);
    // What the user changed meanwhile.
    let change = json!([
        {"op": "replace", "path": "/spec/replicas", "value": 1},
        {"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "nginx:2"},
    ]);
    let (code, _) = replay
        .send(
            "PATCH",
            "/apis/apps/v1/namespaces/default/deployments/web",
            "application/json",
            "application/json-patch+json",
            change.to_string().into_bytes(),
        )
        .await;
    assert_eq!(code, 200);
    let mut wrong = Vec::new();
    for object in items(FINAL) {
        let text = String::from_utf8(replay.translated(object.to_string().as_bytes())).expect("text");
        let object: Value = serde_json::from_str(&text).expect("JSON");
        let name = object["metadata"]["name"].as_str().expect("a name");
        let path = format!("{}/{name}", collection(&object));
        let (_, live) = replay.json("GET", &path, &Value::Null).await;
        for part in ["spec", "status", "subsets", "data"] {
            lacks(&object[part], &live[part], &format!("{path} {part}"), &mut wrong);
        }
    }
    wrong.extend(replay.extra().await);
    for (part, why) in DIFFERS {
        let before = wrong.len();
        wrong.retain(|line| {
            let place = line.split(": ").next().unwrap_or_default();
            let is_of_name = part.ends_with(' ') && place.contains(part);
            !is_of_name && !place.ends_with(part)
        });
        assert!(wrong.len() < before, "no longer so: {part}: {why}");
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
