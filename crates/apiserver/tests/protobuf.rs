//! Bodies in protocol buffers, as the typed clients of Go send and read them.

use bytes::Bytes;
use entourage_apiserver::{Cluster, Options};
use http::{Request, header};
use http_body_util::{BodyExt as _, Full};
use serde_json::Value;
use tower::ServiceExt as _;

const MEDIA: &str = "application/vnd.kubernetes.protobuf";

fn cluster() -> Cluster {
    Cluster::new(Options {
        admin_token: "admin".to_owned(),
        ..Options::default()
    })
}

/// A message: its fields, each with its number.
fn message(fields: &[(u8, &[u8])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (number, field) in fields {
        bytes.push(number << 3 | 2);
        let mut length = field.len();
        while length >= 0x80 {
            bytes.push((length & 0x7f) as u8 | 0x80);
            length >>= 7;
        }
        bytes.push(length as u8);
        bytes.extend(*field);
    }
    bytes
}

/// A message behind the prefix, with its kind around it.
fn envelope(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let meta = message(&[(1, api_version.as_bytes()), (2, kind.as_bytes())]);
    [
        &b"k8s\0"[..],
        &message(&[(1, &meta), (2, raw), (3, b""), (4, b"")]),
    ]
    .concat()
}

/// Code, media type and body of the answer to the admin.
async fn ask(
    cluster: &Cluster,
    method: &str,
    path: &str,
    accept: &str,
    body: Vec<u8>,
) -> (u16, String, Bytes) {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(header::AUTHORIZATION, "Bearer admin")
        .header(header::CONTENT_TYPE, MEDIA)
        .header(header::ACCEPT, accept)
        .body(Full::new(Bytes::from(body)))
        .expect("a request");
    let Ok(response) = cluster.service().oneshot(request).await;
    let status = response.status().as_u16();
    let media = response.headers().get(header::CONTENT_TYPE);
    let media = media
        .and_then(|text| text.to_str().ok())
        .unwrap_or_default()
        .to_owned();
    let body = response
        .into_body()
        .collect()
        .await
        .expect("a whole body")
        .to_bytes();
    (status, media, body)
}

/// The definition as the clientset of CRDs sends it: what is empty but no pointer is written, too.
fn definition() -> Vec<u8> {
    let names = message(&[
        (1, b"widgets"),
        (2, b"widget"),
        (4, b"Widget"),
        (5, b"WidgetList"),
    ]);
    let schema = message(&[
        (1, b""),
        (2, b""),
        (4, b""),
        (5, b"object"),
        (6, b""),
        (7, b""),
        (15, b""),
    ]);
    // The booleans `served` and `storage` are fields 2 and 3.
    let mut version = message(&[(1, b"v1")]);
    version.extend([2 << 3, 1, 3 << 3, 1]);
    version.extend(message(&[(4, &message(&[(1, &schema)]))]));
    // `deprecated`, which is false.
    version.extend([7 << 3, 0]);
    let mut spec = message(&[
        (1, b"example.com"),
        (3, &names),
        (4, b"Namespaced"),
        (7, &version),
    ]);
    spec.extend([10 << 3, 0]);
    let metadata = message(&[(1, b"widgets.example.com"), (2, b""), (3, b""), (8, b"")]);
    let accepted = message(&[(1, b""), (2, b""), (4, b""), (5, b"")]);
    let status = message(&[(2, &accepted)]);
    let raw = message(&[(1, &metadata), (2, &spec), (3, &status)]);
    envelope("apiextensions.k8s.io/v1", "CustomResourceDefinition", &raw)
}

#[tokio::test]
async fn the_clientset_of_definitions_creates_one() {
    const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let cluster = cluster();
    let (code, _, body) = ask(&cluster, "POST", CRDS, "application/json", definition()).await;
    let made: Value = serde_json::from_slice(&body).expect("JSON");
    assert_eq!(code, 201, "{made}");
    assert_eq!(
        made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["type"],
        "object"
    );
    assert_eq!(made["spec"]["names"]["kind"], "Widget");
}

/// True if `part` is somewhere in `whole`.
fn contains(whole: &[u8], part: &[u8]) -> bool {
    whole.windows(part.len()).any(|window| window == part)
}

#[tokio::test]
async fn a_typed_client_reads_what_it_prefers() {
    const MAPS: &str = "/api/v1/namespaces/default/configmaps";
    // What client-go sends for typed clients.
    const ACCEPT: &str = "application/vnd.kubernetes.protobuf,application/json";
    let cluster = cluster();
    let metadata = message(&[(1, b"settings")]);
    let entry = message(&[(1, b"key"), (2, b"value")]);
    let raw = message(&[(1, &metadata), (2, &entry)]);
    let body = envelope("v1", "ConfigMap", &raw);
    let (code, media, made) = ask(&cluster, "POST", MAPS, ACCEPT, body).await;
    assert_eq!((code, media.as_str()), (201, MEDIA));
    assert!(made.starts_with(b"k8s\0") && contains(&made, &entry));
    for path in [MAPS.to_owned(), format!("{MAPS}/settings")] {
        let (code, media, found) = ask(&cluster, "GET", &path, ACCEPT, Vec::new()).await;
        assert_eq!((code, media.as_str()), (200, MEDIA), "{path}");
        assert!(contains(&found, &entry), "{path}");
    }
    let watch = format!("{MAPS}?watch=1&timeoutSeconds=1&resourceVersion=0");
    let (code, media, events) = ask(&cluster, "GET", &watch, ACCEPT, Vec::new()).await;
    assert_eq!(code, 200);
    assert_eq!(media, "application/vnd.kubernetes.protobuf;stream=watch");
    let length = u32::from_be_bytes(events[..4].try_into().expect("four bytes")) as usize;
    let event = &events[4..4 + length];
    assert!(contains(event, b"ADDED") && contains(event, &entry));
    let (code, media, status) = ask(&cluster, "GET", &format!("{MAPS}/none"), ACCEPT, Vec::new()).await;
    assert_eq!((code, media.as_str()), (404, MEDIA));
    assert!(status.starts_with(b"k8s\0") && contains(&status, b"NotFound"));
}
