//! Descriptions of objects, and of what is never shown.

use super::*;
use crate::mock::scripted;

const NOW: Time = Time(1_767_312_000_000);

#[test]
fn an_object_of_the_hub_is_shown_with_where_it_is_and_what_goes_with_it() {
    let object = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {
        "name": "web", "namespace": "shop", "labels": {"app": "web"}, "creationTimestamp": "2026-01-01T23:00:00Z"}});
    let binding = json!({
        "kind": "ResourceBinding",
        "metadata": {"name": "web-deployment", "namespace": "shop", "annotations": {
            "propagationpolicy.karmada.io/namespace": "shop", "propagationpolicy.karmada.io/name": "web"}},
        "spec": {"resource": {"kind": "Deployment", "name": "web"}, "clusters": [{"name": "m1", "replicas": 3}, {"name": "m2"}]},
        "status": {
            "conditions": [{"type": "Scheduled", "status": "True", "reason": "Success", "message": "Scheduled to m1 (3), m2."}],
            "aggregatedStatus": [
                {"clusterName": "m1", "applied": true, "health": "Healthy"},
                {"clusterName": "m2", "applied": false, "appliedReason": "Conflict", "appliedMessage": "already exists"},
                {"clusterName": "m3", "applied": true},
            ],
        },
    });
    let attached = json!({
        "metadata": {"name": "config-configmap", "namespace": "shop"},
        "spec": {"resource": {"kind": "ConfigMap", "name": "config"},
            "requiredBy": [{"namespace": "shop", "name": "web-deployment", "clusters": [{"name": "m1"}, {"name": "m2"}]}]},
        "status": {"aggregatedStatus": [{"clusterName": "m1", "applied": true}]},
    });
    let event = json!({"type": "Normal", "reason": "ScheduleBindingSucceed", "message": "done", "count": 1,
        "lastTimestamp": "2026-01-01T23:59:00Z", "source": {"component": "entourage"}});
    let seen = hub::seen(Some(binding), vec![attached], vec![event]);
    assert_eq!(
        hub::text(&object, &seen, NOW),
        "\
Name:         web
Namespace:    shop
Kind:         Deployment (apps/v1)
Created:      60m ago (2026-01-01T23:00:00Z)
Labels:       app=web
Annotations:  <none>
Policy:       PropagationPolicy shop/web
Binding:      ResourceBinding web-deployment
Clusters:
  CLUSTER   REPLICAS   STATE      HEALTH    MESSAGE
  m1        3          Applied    Healthy   -
  m2        -          Conflict   -         already exists
  m3        -          Leaving    -         -
Conditions of the binding:
  TYPE        STATUS   REASON    SINCE   MESSAGE
  Scheduled   True     Success   -       Scheduled to m1 (3), m2.
Dependencies:
  OBJECT             CLUSTERS   APPLIED
  ConfigMap config   m1,m2      1/2
Events:
  TYPE     REASON                   AGE   FROM        MESSAGE
  Normal   ScheduleBindingSucceed   60s   entourage   done
"
    );
    let alone = hub::text(&object, &hub::seen(None, Vec::new(), Vec::new()), NOW);
    assert!(
        alone.ends_with("Policy:       none: it is not propagated\n"),
        "{alone}"
    );
}

#[test]
fn an_object_of_a_member_is_shown_as_it_is_there() {
    let object = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {"replicas": 3},
        "status": {"readyReplicas": 2, "conditions": [{"type": "Available", "status": "False", "reason": "Few", "message": "2/3"}]},
    });
    let text = member::text("m1", &object, &Err("forbidden".to_owned()), NOW);
    assert_eq!(
        text,
        "\
Cluster:      m1
Name:         web
Kind:         Deployment (apps/v1)
Created:      <none>
Labels:       <none>
Annotations:  <none>
Spec:
  replicas: 3
Status:
  readyReplicas: 2
Conditions:
  TYPE        STATUS   REASON   SINCE   MESSAGE
  Available   False    Few      -       2/3
Events:
  cannot be read: forbidden
"
    );
}

#[test]
fn events_of_a_former_object_are_not_shown() {
    let event = |kind: &str, name: &str, uid: Option<&str>| json!({"involvedObject": {"kind": kind, "name": name, "uid": uid}});
    let web = json!({"kind": "Pod", "metadata": {"name": "web", "uid": "2"}});
    for (event, is_shown) in [
        (event("Pod", "web", Some("2")), true),
        (event("Pod", "web", Some("1")), false),
        (event("Pod", "web", None), true),
        (event("Pod", "web", Some("web")), true),
        (event("Pod", "db", Some("2")), false),
        (event("Job", "web", Some("2")), false),
    ] {
        assert_eq!(is_about(&event, &web), is_shown, "{event}");
    }
}

#[tokio::test]
async fn all_pages_of_events_are_read() {
    let event = |reason: &str| json!({"metadata": {}, "reason": reason, "involvedObject": {"kind": "Pod", "name": "web"}});
    let server = scripted(move |asked| {
        let (next, reason) = if asked.contains("continue=second") {
            ("", "Second")
        } else {
            ("second", "First")
        };
        let page = json!({"metadata": {"continue": next}, "items": [event(reason)]});
        (200, page.to_string())
    });
    let resource = kube::api::ApiResource::erase::<k8s_openapi::api::core::v1::Pod>(&());
    let subject = Subject {
        server,
        place: "m1",
        is_hub: false,
        gvk: Gvk::new("v1", "Pod"),
        served: Served {
            resource,
            namespaced: true,
        },
        namespace: "shop",
        name: "web",
    };
    let object = json!({"kind": "Pod", "metadata": {"name": "web"}});
    let events = subject.events(&object).await.unwrap();
    let reasons: Vec<&str> = events.iter().map(|event| text(event, "/reason")).collect();
    assert_eq!(reasons, ["First", "Second"]);
}

/// A server with the Secret shop/login, which returns its payload to whoever asks for it.
fn server() -> Client {
    scripted(|asked| {
        let path = asked.strip_prefix("GET ").unwrap_or_default();
        let path = path
            .strip_prefix("/apis/cluster.karmada.io/v1alpha1/clusters/m1/proxy")
            .unwrap_or(path);
        let secret = json!({"name": "secrets", "singularName": "", "kind": "Secret", "namespaced": true, "verbs": ["get"]});
        match path.split('?').next().unwrap_or_default() {
            "/api/v1" => (200, json!({"groupVersion": "v1", "resources": [secret]}).to_string()),
            "/api/v1/namespaces/shop/secrets/login" => (
                200,
                json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login", "namespace": "shop", "annotations": {
                    "kubectl.kubernetes.io/last-applied-configuration": "canary"}}, "data": {"k": "Y2FuYXJ5"}})
                .to_string(),
            ),
            _ => (404, json!({"kind": "Status", "code": 404, "message": "not found"}).to_string()),
        }
    })
}

#[tokio::test]
async fn the_payload_of_a_secret_is_never_shown() {
    for cluster in [None, Some("m1".to_owned())] {
        let args = DescribeArgs {
            target: "secret/login".into(),
            hub: HubArgs::default(),
            namespace: None,
            cluster,
        };
        let text = describe(&args, &server(), "shop", NOW).await.unwrap();
        assert!(text.contains("Secret (v1)"), "{text}");
        assert!(!text.contains("canary") && !text.contains("Y2FuYXJ5"), "{text}");
    }
}

#[tokio::test]
async fn what_is_not_there_is_told_with_its_place() {
    for (target, cluster, says) in [
        (
            "secret/gone",
            None,
            "Secret gone not found in namespace shop on the hub",
        ),
        (
            "secret/gone",
            Some("m1"),
            "Secret gone not found in namespace shop on m1",
        ),
        ("login", None, "\"login\" names no kind"),
    ] {
        let args = DescribeArgs {
            target: target.into(),
            hub: HubArgs::default(),
            namespace: None,
            cluster: cluster.map(str::to_owned),
        };
        let error = describe(&args, &server(), "shop", NOW)
            .await
            .unwrap_err()
            .to_string();
        assert!(error.contains(says), "{error}");
    }
}
