//! Whole requests through the tower service: each gets a well-formed answer, and the server goes on.

use std::sync::LazyLock;

use arbitrary::{Result, Unstructured};
use bytes::Bytes;
use entourage_apiserver::{Cluster, Options, Service, kinds, resource::Kinds};
use futures::FutureExt as _;
use http::{Method, Request, header};
use http_body_util::{BodyExt as _, Full};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tower::ServiceExt as _;

use super::{Case, make, schema};

/// Requests of the admin of a new cluster, one after another.
#[derive(Debug, Serialize, Deserialize)]
pub struct Requests {
    /// The requests.
    pub requests: Vec<One>,
}

/// A request.
#[derive(Debug, Serialize, Deserialize)]
pub struct One {
    /// HTTP method.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// Content-Type, if not empty.
    pub content_type: String,
    /// Accept, if not empty.
    pub accept: String,
    /// The body.
    pub body: String,
}

static BUILTIN: LazyLock<Kinds> = LazyLock::new(kinds::builtin);

/// Requests of one case: more add nothing.
const MOST: usize = 6;

impl Case for Requests {
    fn make(u: &mut Unstructured<'_>) -> Result<Self> {
        let mut requests: Vec<One> = Vec::new();
        for _ in 0..u.int_in_range(1..=4)? {
            let one = match requests.last() {
                Some(last) if u.ratio(1, 3)? => follow(u, last)?,
                _ => one(u)?,
            };
            requests.push(one);
        }
        Ok(Self { requests })
    }

    fn check(&self) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build();
        let Ok(runtime) = runtime else { return };
        runtime.block_on(async {
            let cluster = Cluster::new(Options::default());
            let service = cluster.admin_service();
            for one in self.requests.iter().take(MOST) {
                if let Some(request) = one.request() {
                    answered(&service, request).await;
                    // Time goes by only when there is nothing to do: all controllers are done then.
                    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                }
            }
            for path in [
                "/version",
                "/apis",
                "/api/v1/configmaps",
                "/apis/apps/v1/deployments",
            ] {
                if let Ok(request) = Request::builder().uri(path).body(Full::default()) {
                    assert_eq!(answered(&service, request).await, 200, "{path} afterwards");
                }
            }
        });
    }
}

impl One {
    /// `None` for what no HTTP library lets through, and for webhooks, which would be called.
    fn request(&self) -> Option<Request<Full<Bytes>>> {
        if self.target.contains("webhook") || self.body.contains("WebhookConfiguration") {
            return None;
        }
        let method = Method::from_bytes(self.method.as_bytes()).ok()?;
        let mut request = Request::builder().method(method).uri(self.target.as_str());
        for (name, value) in [
            (header::CONTENT_TYPE, &self.content_type),
            (header::ACCEPT, &self.accept),
        ] {
            if !value.is_empty() {
                request = request.header(name, value.as_str());
            }
        }
        request.body(Full::from(self.body.clone())).ok()
    }
}

/// Sends a request and checks the form of the answer. Answers its code.
async fn answered(service: &Service, request: Request<Full<Bytes>>) -> u16 {
    let head = request.method() == Method::HEAD;
    let Ok(response) = service.clone().oneshot(request).await;
    let code = response.status().as_u16();
    assert!((200..600).contains(&code), "{code}");
    assert!(response.headers().contains_key("audit-id"));
    let media = response
        .headers()
        .get(header::CONTENT_TYPE)
        .and_then(|media| media.to_str().ok());
    let media = media.unwrap_or_default().to_owned();
    let mut body = response.into_body();
    let (mut bytes, mut ended) = (Vec::new(), false);
    // A watch has no end: what is ready is enough.
    for _ in 0..50 {
        match body.frame().now_or_never() {
            Some(Some(Ok(frame))) => bytes.extend(frame.into_data().unwrap_or_default()),
            Some(Some(Err(error))) => panic!("no part of this body fails: {error}"),
            Some(None) => {
                ended = true;
                break;
            }
            None => break,
        }
    }
    if head || !media.starts_with("application/json") {
        return code;
    }
    if ended && code != 204 {
        let values: Vec<Value> = serde_json::Deserializer::from_slice(&bytes)
            .into_iter()
            .collect::<std::result::Result<_, _>>()
            .unwrap_or_default();
        assert!(
            !values.is_empty() || media.contains("watch"),
            "{code} without JSON: {:?}",
            String::from_utf8_lossy(&bytes)
        );
        if let (400.., [status]) = (code, &*values)
            && status.get("kind").is_some()
        {
            assert_eq!(status["kind"], "Status", "{status}");
            assert_eq!(status["code"], code, "{status}");
        }
    }
    code
}

const NAMES: &[&str] = &[
    "a",
    "b",
    "default",
    "kube-system",
    "x.example.com",
    "things.example.com",
];

/// A path of a resource, or another.
fn path(u: &mut Unstructured<'_>) -> Result<(String, Option<Value>)> {
    if u.ratio(1, 10)? {
        let fixed = make::one_of(
            u,
            &[
                "/",
                "/api",
                "/apis",
                "/api/v1",
                "/apis/apps",
                "/apis/apps/v1",
                "/openapi/v2",
                "/openapi/v3",
                "/openapi/v3/apis/apps/v1",
                "/version",
                "/healthz",
                "/readyz/ping",
                "/livez",
                "/metrics",
                "/.well-known/openid-configuration",
                "/openid/v1/jwks",
                "//",
                "/x",
                "/api/v1/watch/pods",
                "/apis/example.com/v1",
                "/logs/..",
                "/%2e%2e/%00",
                "/api/v1/namespaces/%2F/pods",
            ],
        )?;
        return Ok((fixed, None));
    }
    if u.ratio(1, 6)? {
        let name = make::one_of(u, &["", "/a", "/b", "/a/status", "/a/scale"])?;
        let object = json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": make::any(u, 3)?});
        return Ok((
            format!("/apis/example.com/v1/namespaces/default/things{name}"),
            Some(object),
        ));
    }
    let kinds: Vec<_> = BUILTIN
        .all()
        .filter(|resource| !resource.kind.contains("Webhook"))
        .collect();
    let resource = u.choose(&kinds)?;
    let group = match resource.group.as_str() {
        "" => "/api".to_owned(),
        group => format!("/apis/{group}"),
    };
    let mut path = format!("{group}/{}", resource.version);
    if u.ratio(1, 40)? {
        path.push_str("/watch");
    }
    if resource.namespaced && u.int_in_range(0..=7)? > 0 {
        path.push_str("/namespaces/default");
    }
    path.push_str(&format!("/{}", resource.plural));
    if u.arbitrary()? {
        path.push_str(&format!("/{}", u.choose(NAMES)?));
        if u.ratio(1, 5)? {
            let word = make::one_of(u, &["x", "status", "scale"])?;
            path.push_str(&format!(
                "/{}",
                u.choose(&resource.subresources).map_or(&*word, |known| *known)
            ));
        }
    }
    let object = match u.int_in_range(0..=7)? {
        0 if resource.kind == "CustomResourceDefinition" => make::of(u, resource.schema.get(), 9)?,
        _ if resource.kind == "CustomResourceDefinition" => schema::any_crd(u)?,
        _ => make::of(u, resource.schema.get(), 9)?,
    };
    Ok((
        path,
        Some(filled(
            object,
            &resource.api_version(),
            &resource.kind,
            u.choose(NAMES)?,
        )),
    ))
}

/// The object with its type and a name, where it has none.
fn filled(mut object: Value, api_version: &str, kind: &str, name: &str) -> Value {
    if let Value::Object(object) = &mut object {
        object.insert("apiVersion".to_owned(), api_version.into());
        object.insert("kind".to_owned(), kind.into());
        if let Value::Object(metadata) = object.entry("metadata").or_insert_with(|| json!({})) {
            metadata.entry("name").or_insert_with(|| name.into());
        }
    }
    object
}

const QUERIES: &[&str] = &[
    "watch=1",
    "watch=true&timeoutSeconds=1",
    "resourceVersion=0",
    "resourceVersion=1",
    "resourceVersion=99999999",
    "resourceVersion=x",
    "resourceVersionMatch=Exact",
    "resourceVersionMatch=NotOlderThan",
    "limit=1",
    "limit=-1",
    "continue=x",
    "labelSelector=a%3Db",
    "labelSelector=a%20in%20(b",
    "fieldSelector=metadata.name%3Da",
    "fieldSelector=x",
    "sendInitialEvents=true",
    "allowWatchBookmarks=1",
    "dryRun=All",
    "dryRun=x",
    "fieldManager=m",
    "fieldManager=%00",
    "force=true",
    "fieldValidation=Strict",
    "fieldValidation=x",
    "propagationPolicy=Orphan",
    "propagationPolicy=Foreground",
    "gracePeriodSeconds=0",
    "gracePeriodSeconds=-1",
    "orphanDependents=true",
    "pretty=1",
    "timeout=1s",
    "timeout=x",
    "timeout=99999999999999h",
    "includeObject=Object",
    "%",
    "%ff=%fe",
    "a=b&a=c",
    "timeout=-1e9s",
];

const MEDIA: &[&str] = &[
    "",
    "application/json",
    "application/yaml",
    "application/json;charset=utf-8",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
    "application/vnd.kubernetes.protobuf",
    "text/plain",
    ";",
    "é",
];

const ACCEPT: &[&str] = &[
    "",
    "",
    "application/json",
    "application/yaml",
    "*/*",
    "application/json;as=Table;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
    "application/json;as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io",
    "application/vnd.kubernetes.protobuf",
    "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
    "application/json;q=0.1,application/yaml;q=x",
    "text/html",
    ",;=",
];

fn query(u: &mut Unstructured<'_>) -> Result<String> {
    let mut query = String::new();
    for _ in 0..u.int_in_range(0..=4_u8)?.saturating_sub(2) {
        query.push(if query.is_empty() { '?' } else { '&' });
        query.push_str(u.choose(QUERIES)?);
    }
    Ok(query)
}

fn one(u: &mut Unstructured<'_>) -> Result<One> {
    let (path, object) = path(u)?;
    let method = make::one_of(
        u,
        &[
            "POST", "POST", "POST", "GET", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "X",
        ],
    )?;
    let content_type = match &*method {
        "PATCH" => make::one_of(u, MEDIA)?,
        _ if u.ratio(1, 12)? => make::one_of(u, MEDIA)?,
        _ => "application/json".to_owned(),
    };
    let body = match object {
        Some(mut object) => {
            if u.ratio(1, 4)? {
                make::tweak(u, &mut object)?;
            }
            body(u, &object)?
        }
        None => make::text(u, 20)?,
    };
    Ok(One {
        method,
        target: format!("{path}{}", query(u)?),
        content_type,
        accept: make::one_of(u, ACCEPT)?,
        body,
    })
}

fn body(u: &mut Unstructured<'_>, value: &Value) -> Result<String> {
    Ok(match u.int_in_range(0..=15)? {
        0 => String::new(),
        1 => make::text(u, 60)?,
        2 => format!("---\n{value}"),
        3 => {
            let mut text = value.to_string();
            let at = u.int_in_range(0..=text.len())?;
            if text.is_char_boundary(at) {
                text.insert_str(at, &make::text(u, 3)?);
            }
            text
        }
        4 => json!({"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": make::word(u)?}})
            .to_string(),
        _ => value.to_string(),
    })
}

/// A further request for what the last one was for.
fn follow(u: &mut Unstructured<'_>, last: &One) -> Result<One> {
    let path = last.target.split('?').next().unwrap_or_default();
    let object: Option<Value> = serde_json::from_str(&last.body).ok();
    let name = object
        .as_ref()
        .and_then(|object| object["metadata"]["name"].as_str())
        .unwrap_or("a");
    let path = match last.method.as_str() {
        "POST"
            if !name.contains(|letter: char| {
                !letter.is_ascii_alphanumeric() && letter != '.' && letter != '-'
            }) =>
        {
            let below = make::one_of(u, &["", "", "", "/status", "/scale", "/eviction", "/token"])?;
            format!("{path}/{name}{below}")
        }
        _ => path.to_owned(),
    };
    let mut object = object.unwrap_or_default();
    make::tweak(u, &mut object)?;
    Ok(One {
        method: make::one_of(u, &["GET", "PUT", "PATCH", "PATCH", "PATCH", "DELETE", "POST"])?,
        target: format!("{path}{}", query(u)?),
        content_type: make::one_of(u, MEDIA)?,
        accept: make::one_of(u, ACCEPT)?,
        body: body(u, &object)?,
    })
}
