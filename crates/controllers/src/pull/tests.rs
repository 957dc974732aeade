//! Requests to a member in Pull mode against a scripted hub.

use entourage_api::cluster::ApiResource;
use entourage_core::{
    object::{Gvk, ResourceId},
    observation::Server,
    pulled::{self, REPORT},
};
use serde_json::json;

use super::*;
use crate::{
    client::{
        Api, Form,
        path::Path,
        served::Served,
        tests::{Asked, Log, Reply as Scripted, client as scripted, gone, options, status as refused},
    },
    error::{Class, Failure},
};

const WORKS: &str = "/apis/work.karmada.io/v1alpha1/namespaces/karmada-es-m1/works";
const CANARY: &str = "canary-4d1e";

fn facts() -> Facts {
    let served = |group_version: &str, all: &[(&str, &str)]| ApiEnablement {
        group_version: group_version.into(),
        resources: all
            .iter()
            .map(|(name, kind)| ApiResource {
                name: (*name).into(),
                kind: (*kind).into(),
            })
            .collect(),
    };
    Facts {
        id: "id-m1".into(),
        version: "v1.33.0".into(),
        apis: vec![
            served("apps/v1", &[("deployments", "Deployment")]),
            served("v1", &[("secrets", "Secret"), ("namespaces", "Namespace")]),
        ],
    }
}

/// A member in Pull mode over a hub, and the requests that the hub gets.
fn pulled_by(facts: Facts, hub: impl Fn(&Asked) -> Scripted + Send + Sync + 'static) -> (Api, Log) {
    let (hub, log) = scripted(hub);
    let (_sender, facts) = watch::channel(facts);
    let client = client(hub, &"m1".into(), facts);
    let options = crate::client::ApiOptions {
        is_reported: true,
        ..options(Server::Member("m1".into()))
    };
    (Api::new(client, options), log)
}

fn deployment(namespace: &str) -> ResourceId {
    ResourceId::new(Gvk::new("apps/v1", "Deployment"), namespace, "web")
}

fn secret() -> ResourceId {
    ResourceId::new(Gvk::new("v1", "Secret"), "default", "login")
}

fn copy(id: &ResourceId) -> Value {
    json!({
        "apiVersion": id.gvk.api_version(), "kind": &*id.gvk.kind,
        "metadata": {"namespace": &*id.namespace, "name": &*id.name, "labels": {"entourage.dev/hub": "h"}},
        "data": {"password": CANARY},
    })
}

/// The Work of a copy as the hub stores it.
fn stored(id: &ResourceId, object: &Value) -> Value {
    let mut work = pulled::work(id, "m1", object);
    work["metadata"]["uid"] = json!("u");
    work["metadata"]["resourceVersion"] = json!("7");
    work["status"]["conditions"] = json!([{"type": "Applied", "status": "False", "message": "no room"}]);
    work
}

fn line_of(id: &ResourceId) -> String {
    format!("{WORKS}/{}", pulled::name_of(id, "m1").name)
}

#[tokio::test]
async fn a_copy_is_created_read_replaced_and_deleted_as_its_work() {
    let id = deployment("default");
    let (of_hub, line) = (id.clone(), line_of(&id));
    let (api, log) = pulled_by(facts(), move |_| {
        Scripted::Json(200, stored(&of_hub, &copy(&of_hub)))
    });
    let made = api
        .create(&Path::collection(&id), &copy(&id), Form::Whole)
        .await
        .unwrap();
    assert_eq!(made["metadata"]["uid"], "u");
    assert_eq!(made["metadata"]["name"], "web");
    assert_eq!(made[REPORT]["message"], "no room");
    let read = api.get(&Path::object(&id), Form::Metadata).await.unwrap();
    assert_eq!(read["kind"], "PartialObjectMetadata");
    assert_eq!(read.get("data"), None);
    api.replace(&Path::object(&id), &made, Form::Whole).await.unwrap();
    api.delete(&Path::object(&id), "u", "7", Form::Whole)
        .await
        .unwrap();
    let wanted = [
        format!("POST {WORKS}"),
        format!("GET {line}"),
        format!("PATCH {line}"),
        format!("GET {line}"),
        format!("DELETE {line}"),
    ];
    assert_eq!(log.lines(), wanted);
    let all = log.all();
    assert_eq!(
        all[0].body["spec"]["workload"]["manifests"][0]["metadata"]["name"],
        "web"
    );
    assert_eq!(all[2].body["metadata"]["resourceVersion"], "7");
    assert_eq!(all[2].body["spec"]["preserveResourcesOnDeletion"], Value::Null);
    assert_eq!(
        all[4].body["preconditions"],
        json!({"uid": "u", "resourceVersion": "7"})
    );
}

#[tokio::test]
async fn a_copy_without_marks_is_released_and_so_is_a_namespace_that_is_deleted() {
    let namespace = ResourceId::new(Gvk::new("v1", "Namespace"), "", "shop");
    for id in [deployment("default"), namespace] {
        let (of_hub, line) = (id.clone(), line_of(&id));
        let (get, delete) = (format!("GET {line}"), format!("DELETE {line}"));
        let (api, log) = pulled_by(facts(), move |asked| {
            let mut work = stored(&of_hub, &copy(&of_hub));
            work["spec"]["preserveResourcesOnDeletion"] = json!(true);
            // The agent wrote its status between the patch and the deletion.
            if asked.line == get {
                work["metadata"]["resourceVersion"] = json!("8");
            }
            match asked.line == delete && asked.body["preconditions"]["resourceVersion"] == "7" {
                true => refused(409, "Conflict"),
                false => Scripted::Json(200, work),
            }
        });
        if id.gvk.is_namespace() {
            api.delete(&Path::object(&id), "u", "7", Form::Whole)
                .await
                .unwrap();
        } else {
            let mut released = copy(&id);
            released["metadata"]["labels"] = json!({});
            released["metadata"]["resourceVersion"] = json!("7");
            api.replace(&Path::object(&id), &released, Form::Whole)
                .await
                .unwrap();
        }
        let wanted = ["PATCH", "DELETE", "GET", "DELETE"].map(|verb| format!("{verb} {line}"));
        assert_eq!(log.lines(), wanted);
        let all = log.all();
        assert_eq!(
            all[0].body["spec"],
            json!({"preserveResourcesOnDeletion": true}),
            "{id}"
        );
        assert_eq!(all[0].body["metadata"].get("labels"), None, "its marks stay");
        assert_eq!(all[0].body["metadata"]["resourceVersion"], "7");
        let last = &all[3].body["preconditions"];
        assert_eq!(*last, json!({"uid": "u", "resourceVersion": "8"}));
    }
}

#[tokio::test]
async fn a_work_that_lost_the_finalizer_gets_it_before_it_is_deleted() {
    let (id, line) = (deployment("default"), line_of(&deployment("default")));
    let of_hub = id.clone();
    let (api, log) = pulled_by(facts(), move |asked| {
        let mut work = stored(&of_hub, &copy(&of_hub));
        if asked.line.starts_with("GET") {
            work["metadata"]["finalizers"] = json!([]);
        }
        Scripted::Json(200, work)
    });
    api.delete(&Path::object(&id), "u", "7", Form::Whole)
        .await
        .unwrap();
    let wanted = ["GET", "PATCH", "DELETE"].map(|verb| format!("{verb} {line}"));
    assert_eq!(log.lines(), wanted);
    let finalizers = &log.all()[1].body["metadata"]["finalizers"];
    assert_eq!(*finalizers, json!(["karmada.io/execution-controller"]));
}

#[tokio::test]
async fn a_namespace_without_a_work_is_missing_and_is_looked_for_once_when_it_has_one() {
    let id = deployment("shop");
    let namespace = ResourceId::new(Gvk::new("v1", "Namespace"), "", "shop");
    let line = line_of(&namespace);
    let (api, _) = pulled_by(facts(), |_| gone("works"));
    let failure = api
        .create(&Path::collection(&id), &copy(&id), Form::Whole)
        .await
        .unwrap_err();
    assert!(failure.is_namespace_missing());
    let (of_hub, of_namespace, get) = (id.clone(), namespace.clone(), format!("GET {line}"));
    let (api, log) = pulled_by(facts(), move |asked| {
        if asked.line == get {
            return Scripted::Json(200, stored(&of_namespace, &json!({"metadata": {"name": "shop"}})));
        }
        Scripted::Json(201, stored(&of_hub, &copy(&of_hub)))
    });
    for _ in 0..2 {
        api.create(&Path::collection(&id), &copy(&id), Form::Whole)
            .await
            .unwrap();
    }
    let post = format!("POST {WORKS}");
    assert_eq!(log.lines(), [format!("GET {line}"), post.clone(), post]);
}

#[tokio::test]
async fn a_namespace_whose_work_is_deleted_by_others_is_looked_for_again() {
    let id = deployment("shop");
    let namespace = ResourceId::new(Gvk::new("v1", "Namespace"), "", "shop");
    let (of_hub, of_namespace) = (id.clone(), namespace.clone());
    let (api, log) = pulled_by(facts(), move |asked| {
        let work = stored(&of_namespace, &json!({"metadata": {"name": "shop"}}));
        match &*asked.line {
            line if line.contains("watch=true") => {
                Scripted::Lines(vec![json!({"type": "DELETED", "object": work})], false)
            }
            line if line.starts_with("GET") => Scripted::Json(200, work),
            _ => Scripted::Json(201, stored(&of_hub, &copy(&of_hub))),
        }
    });
    let (path, object) = (Path::collection(&id), copy(&id));
    api.create(&path, &object, Form::Whole).await.unwrap();
    let watch = Path::namespace(None).query("watch", "true");
    let body = api.open(&watch, Form::Metadata.accept()).await.unwrap();
    body.collect().await.unwrap();
    api.create(&path, &object, Form::Whole).await.unwrap();
    let looked = format!("GET {}", line_of(&namespace));
    assert_eq!(log.lines().iter().filter(|line| **line == looked).count(), 2);
}

#[tokio::test]
async fn errors_are_about_the_object() {
    let id = deployment("default");
    let (api, _) = pulled_by(facts(), |_| gone("works"));
    let failure = api.get(&Path::object(&id), Form::Whole).await.unwrap_err();
    assert!(failure.is_about("deployments") && failure.class() == Class::Missing);
    // The execution namespace is missing: that is no missing namespace of the member.
    let (api, _) = pulled_by(facts(), |_| gone("namespaces"));
    let failure = api
        .create(&Path::collection(&id), &copy(&id), Form::Whole)
        .await
        .unwrap_err();
    assert!(!failure.is_namespace_missing() && failure.class() == Class::Busy);
    // The name of the Work is taken: by this object, or by one of another group.
    for (group, class) in [("apps/v1", Class::Exists), ("example.com/v1", Class::Refused)] {
        let other = ResourceId {
            gvk: Gvk::new(group, "Deployment"),
            ..id.clone()
        };
        let (api, _) = pulled_by(facts(), move |asked| match asked.line.starts_with("POST") {
            true => refused(409, "AlreadyExists"),
            false => Scripted::Json(200, stored(&other, &copy(&other))),
        });
        let failure = api
            .create(&Path::collection(&id), &copy(&id), Form::Whole)
            .await
            .unwrap_err();
        assert_eq!(failure.class(), class, "{group}");
    }
}

#[tokio::test]
async fn a_kind_that_the_agent_does_not_report_is_named_with_what_to_do() {
    let (api, log) = pulled_by(facts(), |_| Scripted::Broken);
    let named = |gvk: &Gvk, failure: &Failure| {
        assert_eq!(failure.class(), Class::Missing, "{gvk}");
        let words = failure.text(gvk);
        let wanted = format!("{} {} is not among the APIs", gvk.api_version(), gvk.kind);
        assert!(words.starts_with(&wanted), "{words}");
        for part in [
            "agent of m1",
            "status.apiEnablements",
            "CustomResourceDefinition",
            "within 5 minutes",
        ] {
            assert!(words.contains(part), "{part}: {words}");
        }
    };
    for gvk in [
        Gvk::new("unreported.example.com/v1", "Gizmo"),
        Gvk::new("batch/v1", "Job"),
    ] {
        let id = ResourceId::new(gvk.clone(), "default", "a");
        let made = api.create(&Path::collection(&id), &copy(&id), Form::Whole).await;
        named(&gvk, &made.unwrap_err());
    }
    let gizmo = ResourceId::new(Gvk::new("unreported.example.com/v1", "Gizmo"), "default", "a");
    let path = Path::object(&gizmo);
    for failure in [
        api.get(&path, Form::Whole).await.unwrap_err(),
        api.replace(&path, &copy(&gizmo), Form::Whole).await.unwrap_err(),
        api.delete(&path, "u", "7", Form::Whole).await.unwrap_err(),
        api.learn_plural(&gizmo.gvk).await.unwrap_err(),
        api.withheld(&gizmo.gvk),
    ] {
        named(&gizmo.gvk, &failure);
    }
    // Without a kind, its address.
    let address = Path::raw(
        "/apis/unreported.example.com/v1/namespaces/default/gizmos/a",
        "gizmos",
    );
    let failure = api.get(&address, Form::Whole).await.unwrap_err();
    let words = failure.text(&gizmo.gvk);
    assert!(
        words.starts_with("gizmos of unreported.example.com/v1 is not among the APIs"),
        "{words}"
    );
    assert!(log.lines().is_empty());
}

#[tokio::test]
async fn a_list_selects_works_by_kind_and_shows_objects_without_payload() {
    let id = secret();
    let of_hub = id.clone();
    let (api, log) = pulled_by(facts(), move |_| {
        let items = json!([stored(&of_hub, &copy(&of_hub))]);
        let list = json!({"kind": "WorkList", "metadata": {"resourceVersion": "9", "continue": "c"}, "items": items});
        Scripted::Json(200, list)
    });
    let path = Path::of("/api/v1/secrets", "secrets".into())
        .query("labelSelector", "entourage.dev/hub=h")
        .query("limit", "500");
    let list = api.get(&path, Form::Metadata).await.unwrap();
    assert_eq!(list["metadata"], json!({"resourceVersion": "9", "continue": "c"}));
    assert_eq!(list["items"].as_array().unwrap().len(), 1);
    assert_eq!(list["items"][0]["metadata"]["name"], "login");
    assert!(!list.to_string().contains(CANARY));
    let selector = "labelSelector=entourage.dev%2Fwork-kind%3DSecret%2Centourage.dev%2Fhub%3Dh";
    assert_eq!(log.lines(), [format!("GET {WORKS}?limit=100&{selector}")]);
}

#[tokio::test]
async fn a_watch_is_translated_line_by_line() {
    let id = secret();
    let of_hub = id.clone();
    let (api, _) = pulled_by(facts(), move |_| {
        let event = |kind: &str, object: Value| json!({"type": kind, "object": object});
        Scripted::Lines(
            vec![
                event("MODIFIED", stored(&of_hub, &copy(&of_hub))),
                event(
                    "BOOKMARK",
                    json!({"kind": "Work", "metadata": {"resourceVersion": "12"}}),
                ),
                event("ERROR", json!({"kind": "Status", "code": 410})),
            ],
            false,
        )
    });
    let path = Path::of("/api/v1/secrets", "secrets".into()).query("watch", "true");
    let body = api.open(&path, Form::Metadata.accept()).await.unwrap();
    let bytes = body.collect().await.unwrap().to_bytes();
    let text = std::str::from_utf8(&bytes).unwrap();
    assert!(!text.contains(CANARY));
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let kinds: Vec<&str> = lines.iter().map(|line| line["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["MODIFIED", "BOOKMARK", "ERROR"]);
    assert_eq!(lines[0]["object"]["metadata"]["uid"], "u");
    assert_eq!(lines[1]["object"]["metadata"]["resourceVersion"], "12");
    assert_eq!(lines[2]["object"]["code"], 410);
}

#[tokio::test]
async fn a_work_that_cannot_be_read_proves_nothing_to_be_gone() {
    let id = secret();
    let of_hub = id.clone();
    let (api, _) = pulled_by(facts(), move |asked| {
        let mut work = stored(&of_hub, &copy(&of_hub));
        work["spec"]["workload"]["manifests"][0]["metadata"]["name"] = json!("other");
        match &*asked.line {
            line if line.contains("watch=true") => {
                Scripted::Lines(vec![json!({"type": "MODIFIED", "object": work})], false)
            }
            line if line.contains('?') => Scripted::Json(
                200,
                json!({"kind": "WorkList", "metadata": {"resourceVersion": "9"}, "items": [work]}),
            ),
            _ => Scripted::Json(200, work),
        }
    });
    let all = Path::of("/api/v1/secrets", "secrets".into());
    for path in [Path::object(&id), all.clone()] {
        let failure = api.get(&path, Form::Whole).await.unwrap_err();
        assert_eq!(failure.class(), Class::Refused, "{}", path.uri);
    }
    let body = api
        .open(&all.query("watch", "true"), Form::Whole.accept())
        .await
        .unwrap();
    let bytes = body.collect().await.unwrap().to_bytes();
    let text = std::str::from_utf8(&bytes).unwrap();
    assert!(text.contains("ERROR") && text.contains(&*pulled::name_of(&id, "m1").name));
    assert!(!text.contains(CANARY));
}

#[tokio::test]
async fn what_is_no_copy_is_what_the_agent_reports() {
    let (api, log) = pulled_by(facts(), |_| Scripted::Broken);
    assert_eq!(&*api.identify().await.unwrap(), "id-m1");
    let version = api
        .get(&Path::raw("/version", "version"), Form::Whole)
        .await
        .unwrap();
    assert_eq!(version["gitVersion"], "v1.33.0");
    let catalog = api.catalog().await.unwrap();
    assert_eq!(
        catalog.plural(&Gvk::new("apps/v1", "Deployment")),
        Some("deployments")
    );
    let served = api.served(&Gvk::new("apps/v1", "Deployment")).await.unwrap();
    assert_eq!(served, Served::In("v1".into()));
    let served = api.served(&Gvk::new("example.com/v1", "Widget")).await.unwrap();
    assert_eq!(served, Served::Withheld, "an agent may have failed to read it");
    let widget = catalog.find(&Gvk::new("example.com/v1", "Widget"));
    assert_eq!(widget, Some(Served::Withheld));
    assert!(log.lines().is_empty());
    api.get(&Path::raw("/readyz", "readyz"), Form::Whole)
        .await
        .unwrap_err();
}

#[tokio::test]
async fn it_is_not_ready_before_the_agent_has_reported() {
    let (api, log) = pulled_by(Facts::default(), |_| Scripted::Broken);
    let failure = api.get(&Path::raw("/readyz", "readyz"), Form::Whole).await;
    assert_eq!(failure.unwrap_err().code(), 503);
    assert!(log.lines().is_empty());
}
