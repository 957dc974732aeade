//! Requests of `kubectl` that are answered without an object in the store.

use bytes::Bytes;
use entourage_apiserver::{Cluster, Options};
use http::{Request, header};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use tower::ServiceExt as _;

/// The media types that `kubectl` accepts when it prints a table.
const TABLES: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";

fn cluster() -> Cluster {
    Cluster::new(Options {
        admin_token: "admin".to_owned(),
        ..Options::default()
    })
}

async fn ask(cluster: &Cluster, method: &str, path: &str, accept: &str, body: Value) -> (u16, Value) {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(header::AUTHORIZATION, "Bearer admin")
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::ACCEPT, accept)
        .body(Full::new(Bytes::from(body.to_string())))
        .expect("a request");
    let Ok(response) = cluster.service().oneshot(request).await;
    let status = response.status().as_u16();
    let body = response
        .into_body()
        .collect()
        .await
        .expect("a whole body")
        .to_bytes();
    (status, serde_json::from_slice(&body).unwrap_or_default())
}

#[tokio::test]
async fn a_review_is_answered_as_a_review_where_a_table_is_preferred() {
    let cluster = cluster();
    let attributes = json!({"verb": "get", "resource": "pods", "namespace": "default"});
    let cases = [
        (
            "selfsubjectaccessreviews",
            json!({"resourceAttributes": attributes}),
        ),
        ("selfsubjectrulesreviews", json!({"namespace": "default"})),
    ];
    for (plural, spec) in cases {
        let path = format!("/apis/authorization.k8s.io/v1/{plural}");
        let (code, review) = ask(&cluster, "POST", &path, TABLES, json!({"spec": spec})).await;
        assert_eq!(code, 201, "{review}");
        assert!(review["status"].is_object(), "{review}");
        assert_ne!(review["kind"], "Table");
    }
}

#[tokio::test]
async fn components_are_healthy() {
    const PATH: &str = "/api/v1/componentstatuses";
    let cluster = cluster();
    let (code, list) = ask(&cluster, "GET", PATH, "application/json", Value::Null).await;
    assert_eq!(code, 200, "{list}");
    assert_eq!(list["kind"], "ComponentStatusList");
    let items = list["items"].as_array().expect("a list");
    let names: Vec<&Value> = items.iter().map(|one| &one["metadata"]["name"]).collect();
    assert_eq!(names, ["controller-manager", "scheduler", "etcd-0"]);
    let (code, table) = ask(&cluster, "GET", PATH, TABLES, Value::Null).await;
    assert_eq!(code, 200, "{table}");
    assert_eq!(
        table["rows"][0]["cells"],
        json!(["controller-manager", "Healthy", "ok", ""])
    );
    let one = format!("{PATH}/scheduler");
    let (code, scheduler) = ask(&cluster, "GET", &one, "application/json", Value::Null).await;
    assert_eq!((code, scheduler["kind"].as_str()), (200, Some("ComponentStatus")));
    let (code, _) = ask(
        &cluster,
        "GET",
        &format!("{PATH}/nope"),
        "application/json",
        Value::Null,
    )
    .await;
    assert_eq!(code, 404);
}
