//! An interpreter over HTTP: it accepts the core's requests, and the core accepts its responses.

use entourage_core::interpreter::{
    hook::{Contract, Hook, LARGEST as LARGEST_ANSWER, Subject},
    question::{Answer, Question},
};
use http_body_util::BodyExt as _;
use serde_json::json;

use super::*;

/// Implements every operation.
struct Whole;

impl Interpret for Whole {
    fn replicas(&self, template: &Value) -> Answered<(u32, Option<ReplicaRequirements>)> {
        match template["spec"]["replicas"].as_u64() {
            Some(replicas) => Ok((
                u32::try_from(replicas).unwrap_or(u32::MAX),
                Some(ReplicaRequirements::default()),
            )),
            None => Err(Refusal::bad("spec.replicas is missing; give a number")),
        }
    }

    fn components(&self, _: &Value) -> Answered<Vec<Component>> {
        Ok(vec![Component {
            name: "head".into(),
            replicas: 1,
            replica_requirements: None,
        }])
    }

    fn revise_replicas(&self, mut copy: Value, replicas: i64) -> Answered<Value> {
        copy["spec"]["replicas"] = replicas.into();
        Ok(copy)
    }

    fn retain(&self, mut desired: Value, live: &Value) -> Answered<Value> {
        desired["spec"]["paused"] = live["spec"]["paused"].clone();
        Ok(desired)
    }

    fn status(&self, live: &Value) -> Answered<Option<Value>> {
        Ok(live.get("status").cloned())
    }

    fn aggregate_status(&self, mut template: Value, items: &[AggregatedStatusItem]) -> Answered<Value> {
        template["status"] = json!({"clusters": items.len()});
        Ok(template)
    }

    fn is_healthy(&self, live: &Value) -> Answered<bool> {
        assert!(live["panics"].is_null(), "as the test wants");
        Ok(live["status"]["ready"] == true)
    }

    fn dependencies(&self, template: &Value) -> Answered<Vec<DependentObjectReference>> {
        Ok(vec![DependentObjectReference {
            api_version: "v1".into(),
            kind: "Secret".into(),
            namespace: template["metadata"]["namespace"]
                .as_str()
                .unwrap_or_default()
                .into(),
            name: "tls".into(),
            label_selector: None,
        }])
    }
}

/// Implements no operation.
struct Empty;

impl Interpret for Empty {}

const WORKLOAD: Subject<'_> = Subject {
    group: "example.io",
    version: "v1",
    kind: "Workload",
    resource: "workloads",
    is_namespaced: true,
};

fn hook(contract: Contract) -> Hook {
    let entry = json!({"name": "x.example.com", "clientConfig": {"url": "https://x/"},
        "interpreterContextVersions": ["v1alpha1"], "exploreReviewVersions": ["v1alpha1"]});
    let whole = json!({"apiVersion": "config.karmada.io/v1alpha1", "kind": contract.configuration(),
        "metadata": {"name": "c"}, "webhooks": [entry]});
    match contract {
        Contract::Interpreter => Hook::interpreters(&serde_json::from_value(whole).expect("one")).remove(0),
        Contract::Explorer => Hook::explorers(&serde_json::from_value(whole).expect("one")).remove(0),
    }
}

async fn posted(interpreter: &Interpreter, method: &str, media: &str, body: String) -> (u16, Bytes) {
    let request = Request::builder()
        .method(method)
        .uri("/any")
        .header("content-type", media)
        .body(Full::new(Bytes::from(body)))
        .expect("a request");
    let response = interpreter.answer(request).await;
    let code = response.status().as_u16();
    (
        code,
        response.into_body().collect().await.expect("a body").to_bytes(),
    )
}

/// The response of a webhook to a request, or the status of its failure.
async fn asked(
    interpret: impl Interpret,
    contract: Contract,
    question: Question<'_>,
) -> Result<Answer, String> {
    let (hook, interpreter) = (hook(contract), Interpreter::new(interpret));
    let request = hook.request("u-1", &WORKLOAD, question).expect("a word for it");
    let (code, body) = posted(&interpreter, "POST", "application/json", request.to_string()).await;
    if code != 200 {
        return Err(format!("{code} {}", String::from_utf8_lossy(&body)));
    }
    hook.answer("u-1", question, &body, LARGEST_ANSWER)
        .map_err(std::borrow::Cow::into_owned)
}

#[tokio::test]
async fn the_core_understands_every_answer_in_both_contracts() {
    let object = json!({"apiVersion": "example.io/v1", "kind": "Workload", "spec": {"replicas": 3},
        "status": {"ready": true}, "metadata": {"name": "w", "namespace": "team"}});
    let with = |parent: &str, field: &str, value: Value| {
        let mut object = object.clone();
        match parent {
            "" => object[field] = value,
            parent => object[parent][field] = value,
        }
        object
    };
    let live = with("spec", "paused", json!(true));
    let requirements = ReplicaRequirements {
        namespace: "team".into(),
        ..ReplicaRequirements::default()
    };
    let dependency = DependentObjectReference {
        api_version: "v1".into(),
        kind: "Secret".into(),
        namespace: "team".into(),
        name: "tls".into(),
        label_selector: None,
    };
    let table = [
        (
            Question::Replicas(&object),
            Answer::Replicas {
                replicas: 3,
                requirements: Some(requirements),
            },
        ),
        (Question::Revise(&object, 3), Answer::Object(object.clone())),
        (
            Question::Revise(&object, 5),
            Answer::Object(with("spec", "replicas", json!(5))),
        ),
        (
            Question::Retain {
                desired: &object,
                live: &live,
            },
            Answer::Object(live.clone()),
        ),
        (
            Question::Reflect(&object),
            Answer::Status(Some(object["status"].clone())),
        ),
        (
            Question::Aggregate {
                template: &object,
                items: &[AggregatedStatusItem::default()],
            },
            Answer::Object(with("", "status", json!({"clusters": 1}))),
        ),
        (Question::Health(&object), Answer::Healthy(true)),
        (
            Question::Dependencies(&object),
            Answer::Dependencies(vec![dependency]),
        ),
    ];
    for (question, wanted) in table {
        for contract in [Contract::Interpreter, Contract::Explorer] {
            let got = asked(Whole, contract, question).await;
            let operation = question.operation();
            assert!(
                got.as_ref() == Ok(&wanted),
                "{contract:?} {operation:?}: {:?}",
                got.err()
            );
        }
    }
    let parts = asked(Whole, Contract::Interpreter, Question::Components(&object)).await;
    assert!(matches!(parts, Ok(Answer::Components(parts)) if parts.len() == 1));
}

#[tokio::test]
async fn what_an_interpreter_refuses_lacks_or_fails_at_is_reported_in_the_contracts_words() {
    let object = json!({"apiVersion": "example.io/v1", "kind": "Workload", "panics": true});
    let (replicas, health) = (Question::Replicas(&object), Question::Health(&object));
    let err = |answer: Result<Answer, String>| answer.err().expect("no answer");
    let (karmada, proposal) = (Contract::Interpreter, Contract::Explorer);
    let refused = "spec.replicas is missing; give a number";
    assert_eq!(
        err(asked(Whole, karmada, replicas).await),
        format!("the hook was not successful: {refused}")
    );
    assert_eq!(
        err(asked(Whole, proposal, replicas).await),
        format!("400 {refused}\n")
    );
    assert!(err(asked(Empty, karmada, health).await).contains("does not implement the operation"));
    assert!(err(asked(Empty, proposal, health).await).starts_with("501 this hook does not implement"));
    for contract in [karmada, proposal] {
        assert_eq!(
            err(asked(Whole, contract, health).await),
            "500 the interpreter failed\n"
        );
    }
}

#[tokio::test]
async fn what_is_no_message_is_reported_as_such_and_nothing_of_it_is_repeated() {
    let interpreter = Interpreter::new(Empty);
    let message = |request: Value| {
        json!({"apiVersion": "config.karmada.io/v1alpha1", "kind": "ExploreReview", "request": request})
            .to_string()
    };
    let media = "application/json";
    for (method, media, body, code) in [
        ("GET", media, String::new(), 405),
        ("POST", "text/plain", message(json!({})), 415),
        ("POST", media, "{\"c4n4ry\": c4n4ry".to_owned(), 400),
        ("POST", media, json!({"kind": "c4n4ry"}).to_string(), 400),
        ("POST", media, message(json!({"uid": 5, "object": "c4n4ry"})), 400),
        (
            "POST",
            media,
            message(json!({"uid": "u", "operation": "c4n4ry", "object": {}})),
            400,
        ),
        (
            "POST",
            media,
            message(json!({"uid": "u", "operation": "Retain", "object": {}})),
            400,
        ),
        (
            "POST",
            media,
            message(json!({"uid": "u", "operation": "ExploreRetaining", "object": {}})),
            400,
        ),
        ("POST", media, " ".repeat(LARGEST + 1), 413),
    ] {
        let shown = body.chars().take(80).collect::<String>();
        let (got, answer) = posted(&interpreter, method, media, body).await;
        assert_eq!(got, code, "{method} {shown}: {answer:?}");
        assert!(!String::from_utf8_lossy(&answer).contains("c4n4ry"), "{answer:?}");
    }
}
