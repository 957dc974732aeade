//! The time until events reach many watchers: `cargo run -p entourage-apiserver --example fanout -- [WATCHERS [EVENTS]]`.

use std::time::Instant;

use bytes::Bytes;
use entourage_apiserver::{Cluster, Options};
use http::Request;
use http_body_util::{BodyExt as _, Full};
use serde_json::json;
use tower::ServiceExt as _;

const TOKEN: &str = "admin";

fn request(method: &str, path: &str, body: String) -> Request<Full<Bytes>> {
    let mut request = Request::new(Full::new(Bytes::from(body)));
    *request.method_mut() = method.parse().unwrap_or_default();
    *request.uri_mut() = path.parse().unwrap_or_default();
    request
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let number = |at| std::env::args().nth(at).and_then(|text| text.parse().ok());
    let (watchers, events) = (number(1).unwrap_or(100), number(2).unwrap_or(1000));
    let cluster = Cluster::new(Options {
        admin_token: TOKEN.to_owned(),
        ..Options::default()
    });
    let service = cluster.service().with_token(TOKEN);
    let path = "/api/v1/namespaces/default/configmaps";
    let mut tasks = Vec::new();
    for _ in 0..watchers {
        let Ok(answer) = service
            .clone()
            .oneshot(request(
                "GET",
                &format!("{path}?watch=1&resourceVersion=2"),
                String::new(),
            ))
            .await;
        tasks.push(tokio::spawn(async move {
            let (mut body, mut lines) = (answer.into_body(), 0);
            while lines < events {
                let Some(Ok(frame)) = body.frame().await else {
                    break;
                };
                let text = frame.into_data().unwrap_or_default();
                lines += text.iter().filter(|&&byte| byte == b'\n').count();
            }
            lines
        }));
    }
    let begun = Instant::now();
    for at in 0..events {
        let data: Vec<(String, String)> = (0..20)
            .map(|key| (format!("key-{key}"), "v".repeat(80)))
            .collect();
        let data: serde_json::Map<_, _> = data.into_iter().map(|(key, value)| (key, value.into())).collect();
        let object = json!({"metadata": {"name": format!("c-{at}")}, "data": data}).to_string();
        let _ = service.clone().oneshot(request("POST", path, object)).await;
        if at % 16 == 0 {
            tokio::task::yield_now().await;
        }
    }
    let written = begun.elapsed();
    let mut reported = 0;
    for task in tasks {
        reported += task.await?;
    }
    let whole = begun.elapsed();
    println!("{events} writes in {written:?}; {reported} events reported in {whole:?}");
    println!("{:.0} events/s", reported as f64 / whole.as_secs_f64());
    Ok(())
}
