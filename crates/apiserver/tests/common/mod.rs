//! Asking a cluster without a socket.
#![allow(dead_code, reason = "not every test asks in every way")]

use std::time::Duration;

use bytes::Bytes;
use entourage_apiserver::Cluster;
use http::{Request, header};
use http_body_util::{BodyExt as _, Full};
use serde_json::Value;
use tower::ServiceExt as _;

/// Status and body of the answer to a request.
pub(crate) async fn ask(
    cluster: &Cluster,
    token: &str,
    method: &str,
    path: &str,
    body: &Value,
) -> (u16, Value) {
    ask_as(cluster, token, method, path, "application/json", body).await
}

/// The same with a content type.
pub(crate) async fn ask_as(
    cluster: &Cluster,
    token: &str,
    method: &str,
    path: &str,
    media: &str,
    body: &Value,
) -> (u16, Value) {
    let (status, _, body) = whole(cluster, token, method, path, media, body).await;
    (status, body)
}

/// The same with the first warning of the answer; without a body for `Null`.
pub(crate) async fn whole(
    cluster: &Cluster,
    token: &str,
    method: &str,
    path: &str,
    media: &str,
    body: &Value,
) -> (u16, String, Value) {
    let body = match body {
        Value::Null => Bytes::new(),
        body => Bytes::from(body.to_string()),
    };
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(header::AUTHORIZATION, format!("Bearer {token}"))
        .header(header::CONTENT_TYPE, media)
        .body(Full::new(body))
        .expect("a request");
    let Ok(response) = cluster.service().oneshot(request).await;
    let status = response.status().as_u16();
    let warning = response.headers().get(header::WARNING);
    let warning = warning
        .and_then(|text| text.to_str().ok())
        .unwrap_or_default()
        .to_owned();
    let body = response
        .into_body()
        .collect()
        .await
        .expect("a whole body")
        .to_bytes();
    (status, warning, serde_json::from_slice(&body).unwrap_or_default())
}

/// The answer to a GET once it is as wanted, looking whenever something was written or other kinds are served.
pub(crate) async fn until(
    cluster: &Cluster,
    token: &str,
    path: &str,
    wanted: impl Fn(u16, &Value) -> bool,
) -> Value {
    let mut ticks = cluster.store().ticks();
    let mut kinds = cluster.kinds_changes();
    let waiting = async {
        loop {
            let (code, body) = ask(cluster, token, "GET", path, &Value::Null).await;
            if wanted(code, &body) {
                return body;
            }
            tokio::select! {
                changed = ticks.changed() => changed.expect("the store is there"),
                changed = kinds.changed() => changed.expect("the cluster is there"),
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(20), waiting)
        .await
        .unwrap_or_else(|_| panic!("waited in vain for {path}"))
}
