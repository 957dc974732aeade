//! Works on the hub, and the execution namespaces that hold them.

use entourage_core::plan::{Event, Regarding, WorkOrder};

use super::*;
use crate::client::tests::Asked;

const LIST: &str = "GET /apis/work.karmada.io/v1alpha1/namespaces/karmada-es-m1/works?limit=1";
const DELETE_NAMESPACE: &str = "DELETE /api/v1/namespaces/karmada-es-m1";
const POST_WORK: &str = "POST /apis/work.karmada.io/v1alpha1/namespaces/karmada-es-m1/works";
const SECRET: &str = "GET /api/v1/namespaces/ns/secrets/a";

fn end() -> Change {
    let event = Event {
        regarding: Regarding {
            api_version: "cluster.karmada.io/v1alpha1".into(),
            kind: "Cluster".into(),
            namespace: "".into(),
            name: "m1".into(),
            uid: "c".into(),
        },
        warning: false,
        reason: "RemoveExecutionSpaceSucceed",
        message: "it was deleted".into(),
    };
    Change::EndExecutionNamespace {
        name: "karmada-es-m1".into(),
        preconditions: preconditions("7"),
        event: Box::new(event),
    }
}

fn list(names: &[&str]) -> Reply {
    let items: Vec<_> = names
        .iter()
        .map(|name| json!({"metadata": {"name": name}}))
        .collect();
    ok(json!({"kind": "List", "metadata": {"resourceVersion": "9"}, "items": items}))
}

#[tokio::test]
async fn an_execution_namespace_is_deleted_when_the_hub_lists_no_work_in_it() {
    let null =
        ok(json!({"kind": "PartialObjectMetadataList", "metadata": {"resourceVersion": "9"}, "items": null}));
    for empty in [list(&[]), null] {
        let deleted = ok(json!({"kind": "Status", "status": "Success"}));
        let mut bench = bench(vec![(LIST, empty), (DELETE_NAMESPACE, deleted)], vec![]);
        let (outcome, _) = bench.carry_out(end()).await;
        assert_eq!(outcome, Outcome::Done);
        assert_eq!(bench.hub.lines(), [LIST, DELETE_NAMESPACE]);
    }
}

#[tokio::test]
async fn an_execution_namespace_is_deleted_when_nothing_on_the_hub_defines_works() {
    let answer = |asked: &Asked| match asked.line.as_str() {
        DELETE_NAMESPACE => ok(json!({"kind": "Status", "status": "Success"})),
        line => served_nothing(line),
    };
    let mut bench = bench_of(
        api(Server::Hub, answer),
        script(Server::Member("m1".into()), vec![]),
    );
    let (outcome, _) = bench.carry_out(end()).await;
    assert_eq!(outcome, Outcome::Done, "{:?}", bench.hub.lines());
}

#[tokio::test]
async fn an_execution_namespace_stays_while_it_holds_a_work_or_that_is_not_known() {
    let garbled = ok(json!({"kind": "List"}));
    let nobody = status(404, "NotFound");
    for works in [
        list(&["a"]),
        status(403, "Forbidden"),
        garbled,
        nobody,
        Reply::Broken,
    ] {
        let answer = move |asked: &Asked| match asked.line.as_str() {
            LIST => works.clone(),
            _ => status(404, "NotFound"),
        };
        let mut bench = bench_of(
            api(Server::Hub, answer),
            script(Server::Member("m1".into()), vec![]),
        );
        let (outcome, _) = bench.carry_out(end()).await;
        assert_ne!(outcome, Outcome::Done);
        assert!(!bench.hub.lines().contains(&DELETE_NAMESPACE.to_owned()));
    }
}

#[tokio::test]
async fn an_execution_namespace_stays_while_discovery_lists_works_although_they_are_not_found() {
    let answer = |asked: &Asked| match asked.line.as_str() {
        "GET /apis" => ok(json!({"kind": "APIGroupList", "groups": [{
            "name": "work.karmada.io", "versions": [{"groupVersion": "work.karmada.io/v1alpha1", "version": "v1alpha1"}],
        }]})),
        "GET /apis/work.karmada.io/v1alpha1" => ok(json!({"kind": "APIResourceList",
            "resources": [{"name": "works", "kind": "Work"}]})),
        _ => status(404, "NotFound"),
    };
    let mut bench = bench_of(
        api(Server::Hub, answer),
        script(Server::Member("m1".into()), vec![]),
    );
    let (outcome, _) = bench.carry_out(end()).await;
    assert_ne!(outcome, Outcome::Done);
    let lines = bench.hub.lines();
    assert!(
        lines.contains(&"GET /apis/work.karmada.io/v1alpha1".to_owned()),
        "{lines:?}"
    );
    assert!(!lines.contains(&DELETE_NAMESPACE.to_owned()), "{lines:?}");
}

#[tokio::test]
async fn the_work_of_a_secret_is_sent_without_its_data() {
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": {"password": "Y2FuYXJ5"},
        "metadata": {"name": "a", "namespace": "ns", "uid": "t", "resourceVersion": "5"},
    });
    let order = WorkOrder {
        id: id("Secret"),
        cluster: "m1".into(),
        render_spec: render_spec(),
        source: "t.5".into(),
        live: None,
        finalizers: None,
        preserves: false,
        suspend: None,
    };
    let mut bench = bench(vec![(SECRET, ok(secret)), (POST_WORK, ok(json!({})))], vec![]);
    bench.carry_out(Change::MirrorWork(Box::new(order))).await;
    assert_eq!(bench.hub.lines(), [SECRET, POST_WORK]);
    let sent = bench.hub.all().pop().expect("a request").body;
    let manifest = &sent["spec"]["workload"]["manifests"][0];
    assert_eq!(
        (&manifest["kind"], &manifest["type"]),
        (&json!("Secret"), &json!("Opaque"))
    );
    assert!(!sent.to_string().contains("Y2FuYXJ5"), "{sent}");
}
