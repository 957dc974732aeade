//! The requests of a plan in its trace.

use super::*;
use crate::{
    client::tests::metrics,
    traces::tests::{attribute, recorded, spans},
    traces::within,
};

const CANARY: &str = "Y2FuYXJ5LWluLXRyYWNlcw==";

#[tokio::test]
async fn the_requests_of_a_delivery_are_in_its_trace_and_nothing_of_the_secret() {
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": {"k": CANARY},
        "metadata": {"namespace": "ns", "name": "a", "uid": "t", "resourceVersion": "5",
            "annotations": {"note": CANARY}}});
    let refusal = json!({"kind": "Status", "reason": "Invalid", "code": 422, "message": CANARY});
    let bench = bench(
        vec![("GET /api/v1/namespaces/ns/secrets/a", ok(secret))],
        vec![("POST /api/v1/namespaces/ns/secrets", Reply::Json(422, refusal))],
    );
    let mut recorded = recorded(1.0);
    metrics(&bench.hands.hub).trace(recorded.traces.clone());
    metrics(&bench.member.api).trace(recorded.traces.clone());
    let span = recorded.traces.root().unwrap();
    let plan = Plan {
        changes: vec![Change::Deliver {
            id: id("Secret"),
            cluster: "m1".into(),
            render_spec: render_spec(),
            live: None,
            read_first: false,
        }],
        ..Plan::default()
    };
    let carried_out = bench.hands.carry_out(plan, Some(&bench.member));
    within(Some(span.context()), carried_out).await;
    assert!(
        bench.on_member.all()[0].body.to_string().contains(CANARY),
        "the Secret was sent"
    );

    let sent: Vec<_> = [bench.hub.all(), bench.on_member.all()].concat();
    let parents: Vec<_> = sent.iter().map(|asked| asked.traceparent.clone()).collect();
    let wanted = span.context().to_string();
    assert_eq!(parents, [wanted.clone(), wanted]);

    let body = recorded.body();
    let seen: Vec<_> = spans(&body)
        .iter()
        .map(|span| {
            let of = |key: &str| attribute(span, key).unwrap_or_default().to_owned();
            [
                of("entourage.server"),
                of("entourage.verb"),
                of("entourage.resource"),
                of("http.response.status_code"),
            ]
        })
        .collect();
    assert_eq!(
        seen,
        [
            ["hub", "get", "secrets", "200"],
            ["m1", "create", "secrets", "422"]
        ]
    );
    assert!(!body.to_string().contains(CANARY), "{body}");
}
