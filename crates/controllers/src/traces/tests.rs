//! Traces, at a collector in this process.

use std::{convert::Infallible, sync::Mutex};

use entourage_core::object::{Gvk, ResourceId, Time};
use http::{Response, StatusCode};
use http_body_util::{BodyExt as _, Empty};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpListener;

use super::*;

/// Traces, and the spans that wait to be sent.
pub(crate) struct Recorded {
    pub(crate) traces: Traces,
    spans: mpsc::Receiver<Span>,
    counts: SpanCounts,
}

/// Traces that are not sent.
pub(crate) fn recorded(ratio: f64) -> Recorded {
    let counts = SpanCounts::default();
    let (traces, spans) = Traces::queued(ratio, counts.clone());
    Recorded {
        traces,
        spans,
        counts,
    }
}

impl Recorded {
    /// The body of the export of all spans so far.
    pub(crate) fn body(&mut self) -> Value {
        let mut spans = Vec::new();
        while let Ok(span) = self.spans.try_recv() {
            spans.push(span);
        }
        otlp::body("test", "this", &spans)
    }
}

/// The spans of a body.
pub(crate) fn spans(body: &Value) -> Vec<Value> {
    let spans = body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array();
    spans.cloned().unwrap_or_default()
}

/// The value of an attribute as text.
pub(crate) fn attribute<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    let all = object["attributes"].as_array()?;
    let value = &all.iter().find(|each| each["key"] == key)?["value"];
    value["stringValue"].as_str().or(value["intValue"].as_str())
}

type Bodies = Arc<Mutex<Vec<Value>>>;

/// A collector that responds with these codes one after the other, and then with the last of them; without any it never responds.
async fn collector(codes: &'static [u16]) -> (Endpoint, Bodies) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let bodies = Bodies::default();
    let seen = bodies.clone();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let seen = seen.clone();
            let answer = service_fn(move |request: http::Request<Incoming>| {
                let seen = seen.clone();
                async move {
                    assert_eq!(request.uri().path(), "/v1/traces");
                    assert_eq!(request.headers()["content-type"], "application/json");
                    let bytes = request.into_body().collect().await.unwrap().to_bytes();
                    let count = {
                        let mut seen = seen.lock().unwrap();
                        seen.push(serde_json::from_slice(&bytes).unwrap());
                        seen.len()
                    };
                    let Some(last) = codes.last() else {
                        return std::future::pending().await;
                    };
                    let code = StatusCode::from_u16(*codes.get(count - 1).unwrap_or(last)).unwrap();
                    Ok::<_, Infallible>(
                        Response::builder()
                            .status(code)
                            .body(Empty::<bytes::Bytes>::new())
                            .unwrap(),
                    )
                }
            });
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), answer));
        }
    });
    (endpoint.parse().unwrap(), bodies)
}

fn started(endpoint: Endpoint) -> (Traces, Exporter, SpanCounts) {
    let counts = SpanCounts::default();
    let options = TraceOptions {
        endpoint,
        ratio: 1.0,
        service: "entourage-controllers",
        instance: "one".to_owned(),
    };
    let (traces, exporter) = Traces::start(&options, counts.clone());
    (traces, exporter, counts)
}

fn subject() -> Subject {
    let id = ResourceId::new(Gvk::new("v1", "Secret"), "shop", "login");
    Subject::of(&Key::Copy(id, "member1".into()))
}

#[tokio::test]
async fn a_plan_its_execution_and_its_requests_are_one_trace_at_the_collector() {
    let (endpoint, bodies) = collector(&[200]).await;
    let (traces, exporter, counts) = started(endpoint);
    let plan = traces.root().unwrap();
    let apply = traces.planned(plan, subject(), 2).unwrap();
    within(Some(apply.context()), async {
        traces.requested(
            "member1",
            "create",
            "secrets",
            Some(201),
            Duration::from_millis(3),
        );
        traces.requested("member1", "get", "secrets", None, Duration::from_millis(3));
    })
    .await;
    traces.applied(apply, subject(), "failed");
    exporter.finish().await;

    let bodies = bodies.lock().unwrap().clone();
    let [body] = bodies.as_slice() else {
        panic!("{bodies:#?}")
    };
    let resource = &body["resourceSpans"][0]["resource"];
    assert_eq!(attribute(resource, "service.name"), Some("entourage-controllers"));
    assert_eq!(
        attribute(resource, "service.version"),
        Some(env!("CARGO_PKG_VERSION"))
    );
    assert_eq!(attribute(resource, "service.instance.id"), Some("one"));

    let all = spans(body);
    let names: Vec<&str> = all.iter().map(|each| each["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["plan", "request", "request", "apply"]);
    assert!(all.iter().all(|each| each["traceId"] == all[0]["traceId"]));
    assert_eq!(all[0]["traceId"].as_str().unwrap().len(), 32);
    assert_eq!(all[0].get("parentSpanId"), None);
    assert_eq!(all[3]["parentSpanId"], all[0]["spanId"]);
    assert_eq!(all[1]["parentSpanId"], all[3]["spanId"]);
    for span in [&all[0], &all[3]] {
        assert_eq!(attribute(span, "entourage.controller"), Some("delivery"));
        assert_eq!(attribute(span, "entourage.server"), Some("member1"));
        assert_eq!(attribute(span, "entourage.object"), Some("Secret shop/login"));
    }
    assert_eq!(attribute(&all[0], "entourage.changes"), Some("2"));
    assert_eq!(attribute(&all[3], "entourage.outcome"), Some("failed"));
    assert_eq!(attribute(&all[1], "http.response.status_code"), Some("201"));
    assert_eq!(all[1].get("status"), None);
    assert_eq!(all[2]["status"]["code"], 2);
    let nanos = |field: &str| all[1][field].as_str().unwrap().parse::<u64>().unwrap();
    assert!(nanos("endTimeUnixNano") - nanos("startTimeUnixNano") >= 3_000_000);
    assert_eq!((counts.exported.get(), counts.dropped.get()), (4, 0));
}

#[tokio::test]
async fn a_change_and_a_review_are_traces_of_their_own() {
    let mut recorded = recorded(1.0);
    recorded.traces.propagated(&Propagated {
        template: ResourceId::new(Gvk::new("apps/v1", "Deployment"), "shop", "web"),
        began: Time(1_000),
        reached: Time(3_500),
    });
    recorded
        .traces
        .reviewed("validate", 422, Duration::from_millis(1), None);
    let all = spans(&recorded.body());
    assert_eq!(all[0]["startTimeUnixNano"], "1000000000");
    assert_eq!(all[0]["endTimeUnixNano"], "3500000000");
    assert_eq!(
        attribute(&all[0], "entourage.object"),
        Some("Deployment shop/web")
    );
    assert_eq!(attribute(&all[1], "entourage.webhook"), Some("validate"));
    assert_ne!(all[0]["traceId"], all[1]["traceId"]);
}

#[test]
fn a_review_belongs_to_the_span_of_the_api_server_which_decides_whether_it_is_recorded() {
    const NAMED: &str = "00-000000000000000000000000000000a0-000000000000000b-0";
    // With the share of traces that begin here.
    for (flag, ratio, count) in [(1, 0.0, 1), (0, 1.0, 0)] {
        let mut recorded = recorded(ratio);
        let parent = format!("{NAMED}{flag}");
        recorded
            .traces
            .reviewed("mutate", 200, Duration::ZERO, Some(&parent));
        let all = spans(&recorded.body());
        assert_eq!(all.len(), count, "{parent}");
        for span in all {
            assert_eq!(span["traceId"], "000000000000000000000000000000a0");
            assert_eq!(span["parentSpanId"], "000000000000000b");
        }
    }
    let mut recorded = recorded(1.0);
    recorded
        .traces
        .reviewed("mutate", 200, Duration::ZERO, Some("invalid"));
    assert_eq!(spans(&recorded.body()).len(), 1);
}

#[tokio::test]
async fn off_nothing_is_recorded_and_a_request_without_a_span_is_in_no_trace() {
    assert!(Traces::OFF.root().is_none());
    Traces::OFF.requested("hub", "get", "secrets", Some(200), Duration::ZERO);
    let mut recorded = recorded(1.0);
    let traces = recorded.traces.clone();
    traces.requested("hub", "get", "secrets", Some(200), Duration::ZERO);
    within(None, async {
        traces.requested("hub", "get", "secrets", Some(200), Duration::ZERO);
    })
    .await;
    assert_eq!(spans(&recorded.body()), Vec::<Value>::new());
}

#[test]
fn as_many_traces_are_recorded_as_the_share_says() {
    for (ratio, least, most) in [(0.0, 0, 0), (0.25, 150, 350), (1.0, 1000, 1000)] {
        let recorded = recorded(ratio);
        let count = (0..1000).filter(|_| recorded.traces.root().is_some()).count();
        assert!((least..=most).contains(&count), "{ratio}: {count}");
    }
}

#[test]
fn the_queue_is_bounded_and_what_finds_no_room_is_counted() {
    let mut recorded = recorded(1.0);
    for _ in 0..QUEUE + 100 {
        recorded.traces.reviewed("mutate", 200, Duration::ZERO, None);
    }
    assert_eq!(recorded.counts.dropped.get(), 100);
    assert_eq!(spans(&recorded.body()).len(), QUEUE);
}

#[tokio::test]
async fn a_collector_that_never_responds_holds_nothing_up() {
    let (endpoint, bodies) = collector(&[]).await;
    let (traces, exporter, counts) = started(endpoint);
    let lost = u64::try_from(2 * QUEUE).unwrap();
    // More than fit into one request and the queue: the recorder does not wait for any of them.
    for _ in 0..lost + u64::try_from(export::BATCH + QUEUE).unwrap() {
        traces.reviewed("mutate", 200, Duration::ZERO, None);
    }
    assert!(counts.dropped.get() >= lost, "{}", counts.dropped.get());
    exporter.finish().await;
    assert_eq!(counts.exported.get(), 0);
    assert!(bodies.lock().unwrap().len() <= 1);
}

#[tokio::test]
async fn a_batch_is_sent_again_while_the_collector_is_overloaded_and_not_when_it_refuses() {
    /// The codes of the responses, the number of requests, and that of spans that were exported.
    type Case = (&'static [u16], usize, u64);
    const CASES: [Case; 4] = [
        (&[503, 429, 200], 3, 1),
        (&[503], 3, 0),
        (&[400], 1, 0),
        (&[302], 1, 0),
    ];
    for (codes, sent, exported) in CASES {
        let (endpoint, bodies) = collector(codes).await;
        let (traces, exporter, counts) = started(endpoint);
        traces.reviewed("mutate", 200, Duration::ZERO, None);
        // It stops at once, so nothing is waited for between two attempts.
        exporter.finish().await;
        assert_eq!(bodies.lock().unwrap().len(), sent, "{codes:?}");
        assert_eq!(
            (counts.exported.get(), counts.dropped.get()),
            (exported, 1 - exported),
            "{codes:?}"
        );
    }
}
