//! Templates and policies of promoted objects.

use serde_json::{Value, json};

use super::*;

fn id(api_version: &str, kind: &str) -> ResourceId {
    ResourceId::new(Gvk::new(api_version, kind), "shop", "web")
}

fn deployment(metadata: &Value) -> Value {
    let mut object = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {
            "name": "web", "namespace": "shop", "uid": "u", "resourceVersion": "7", "generation": 3,
            "creationTimestamp": "2026-11-26T00:00:00Z", "managedFields": [{}],
            "annotations": {"deployment.kubernetes.io/revision": "2", "team": "a",
                "kubectl.kubernetes.io/last-applied-configuration": "{}"},
        },
        "spec": {"replicas": 2, "template": {"metadata": {"labels": {"app": "web"}}}},
        "status": {"replicas": 2},
    });
    for (key, value) in metadata.as_object().into_iter().flatten() {
        object["metadata"][key] = value.clone();
    }
    object
}

#[test]
fn a_template_has_what_the_user_wrote() {
    let live = deployment(&json!({"labels": {"app": "web"}, "finalizers": ["example.com/x"]}));
    let template = template(&id("apps/v1", "Deployment"), &live, "hub").unwrap_or_else(|why| panic!("{why}"));
    let expected = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {
            "name": "web", "namespace": "shop", "labels": {"app": "web"},
            "annotations": {"team": "a"},
        },
        "spec": {"replicas": 2, "template": {"metadata": {"labels": {"app": "web"}}}},
    });
    assert_eq!(template.object(), &expected);
}

#[test]
fn the_addresses_of_a_service_stay_with_the_member() {
    let live = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"clusterIP": "10.0.0.7", "clusterIPs": ["10.0.0.7"], "ports": [{"port": 80}]},
        "status": {"loadBalancer": {}}});
    let template = template(&id("v1", "Service"), &live, "hub").unwrap_or_else(|why| panic!("{why}"));
    assert_eq!(template.object()["spec"], json!({"ports": [{"port": 80}]}));
    assert!(template.object()["status"].is_null());
}

#[test]
fn what_belongs_to_somebody_or_to_the_system_is_no_template() {
    use NotPromotable::{Deleting, Made, Managed, ManagedByOther, Owned, Reserved, Token};
    let owner = json!([{"kind": "Release", "name": "r"}, {"kind": "App", "name": "a", "controller": true}]);
    for (metadata, expected) in [
        (json!({"deletionTimestamp": "2026-11-26T00:00:00Z"}), Deleting),
        (json!({"labels": {"entourage.dev/hub": "hub"}}), Managed),
        (
            json!({"labels": {"entourage.dev/hub": "old"}}),
            ManagedByOther("old".into()),
        ),
        (json!({"labels": {"entourage.dev/distributed-by": "hub"}}), Made),
        (json!({"labels": {"entourage.dev/federated-quota": "hub"}}), Made),
        (
            json!({"labels": {"entourage.dev/distributed-by": "old"}}),
            ManagedByOther("old".into()),
        ),
        (
            json!({"labels": {"entourage.dev/hub": "hub", "entourage.dev/federated-quota": "old"}}),
            ManagedByOther("old".into()),
        ),
        (
            json!({"labels": {"karmada.io/managed": "true"}}),
            ManagedByOther(String::new()),
        ),
        (json!({"ownerReferences": owner}), Owned("App a".into())),
    ] {
        let refused = template(&id("apps/v1", "Deployment"), &deployment(&metadata), "hub").err();
        assert_eq!(refused, Some(expected), "{metadata}");
    }
    let token = json!({"kind": "Secret", "type": "kubernetes.io/service-account-token"});
    assert_eq!(template(&id("v1", "Secret"), &token, "hub").err(), Some(Token));
    let event = template(&id("v1", "Event"), &json!({}), "hub").err();
    assert_eq!(event, Some(Reserved));
    let system = ResourceId::new(Gvk::new("apps/v1", "Deployment"), "kube-system", "dns");
    assert_eq!(
        template(&system, &deployment(&json!({})), "hub").err(),
        Some(Reserved)
    );
    for (name, expected) in [
        ("kube-system", Some(Reserved)),
        ("karmada-es-m1", Some(Reserved)),
        ("shop", None),
    ] {
        let namespace = ResourceId::new(Gvk::new("v1", "Namespace"), "", name);
        let live = json!({"metadata": {"name": name}});
        assert_eq!(template(&namespace, &live, "hub").err(), expected, "{name}");
    }
}

#[test]
fn the_policy_places_one_object_on_one_cluster() {
    let of_namespace = policy(&id("apps/v1", "Deployment"), "m1", "web-deployment", true);
    assert_eq!(of_namespace["kind"], "PropagationPolicy");
    assert_eq!(
        of_namespace["metadata"],
        json!({"name": "web-deployment", "namespace": "shop"})
    );
    assert_eq!(
        of_namespace["spec"],
        json!({
            "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": "web"}],
            "placement": {"clusterAffinity": {"clusterNames": ["m1"]}}, "propagateDeps": true,
            "conflictResolution": "Overwrite",
        })
    );
    let gvk = Gvk::new("rbac.authorization.k8s.io/v1", "ClusterRole");
    let name = policy_name(&gvk, "system:Reader");
    assert_eq!(name, "system.reader-clusterrole");
    let cluster_wide = policy(&ResourceId::new(gvk, "", "system:Reader"), "m1", &name, false);
    assert_eq!(cluster_wide["kind"], "ClusterPropagationPolicy");
    assert_eq!(cluster_wide["metadata"], json!({"name": name}));
    assert_eq!(cluster_wide["spec"]["propagateDeps"], false);
}

#[test]
fn a_job_is_stored_as_it_is_but_for_what_each_server_generates() {
    let job = |uid: &str, image: &str| {
        let labels = json!({"app": "once", "controller-uid": uid, "batch.kubernetes.io/controller-uid": uid,
            "job-name": "web", "batch.kubernetes.io/job-name": "web"});
        json!({
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": "web", "namespace": "shop", "uid": uid, "labels": labels},
            "spec": {
                "parallelism": 1, "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}},
                "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": image}]}},
            },
        })
    };
    let id = id("batch/v1", "Job");
    let template = template(&id, &job("member", "a:1"), "hub").unwrap_or_else(|why| panic!("{why}"));
    for (image, expected) in [
        ("a:1", None),
        ("a:2", Some("spec.template.spec.containers[0].image")),
    ] {
        let stored = pruned(&id, &job("hub", image));
        let expected = expected.map(|path: &str| Altered::PodTemplate(path.to_owned()));
        assert_eq!(altered(template.object(), &stored), expected, "{image}");
    }
}
