//! The metadata and spec of a Work, from its order and the rendered copy.

use entourage_api::{
    keys::{annotation, label},
    names,
};
use serde_json::{Map, Value, json};

use crate::{
    fleet::works::work_of,
    object::WHOLE_OBJECTS,
    plan::{Verb, WorkOrder},
    pulled::REPEATED,
    scope,
};

/// The write of the Work of a rendered copy: it is created, or an existing one is changed. Cost: O(size of the copy).
#[must_use]
pub fn verb(order: &WorkOrder, copy: &Value) -> Verb {
    match order.live {
        None => Verb::Create(body(order, copy)),
        Some(_) => Verb::Merge(patch(order, copy)),
    }
}

fn body(order: &WorkOrder, copy: &Value) -> Value {
    let name = work_of(&order.id, &order.cluster);
    let owner = scope::binding(&order.render_spec.binding.namespace);
    let permanent_id = names::permanent_id(&[&order.render_spec.hub, "Work", &name.namespace, &name.name]);
    let mut annotations = Map::new();
    for key in REPEATED {
        if let Some(value) = copy["metadata"]["annotations"].get(key) {
            annotations.insert(key.into(), value.clone());
        }
    }
    annotations.insert(annotation::WORK_SOURCE.into(), json!(&*order.source));
    let mut spec = json!({"workload": {"manifests": [shown(order, copy)]}});
    if order.preserves {
        spec["preserveResourcesOnDeletion"] = json!(true);
    }
    if order.suspend == Some(true) {
        spec["suspendDispatching"] = json!(true);
        annotations.insert(annotation::WORK_SUSPENDED_BY_BINDING.into(), json!("true"));
    }
    json!({
        "apiVersion": "work.karmada.io/v1alpha1", "kind": "Work",
        "metadata": {
            "namespace": &*name.namespace, "name": &*name.name,
            "labels": {
                owner.id_label: &*order.render_spec.permanent_id,
                label::WORK_ID: permanent_id,
                label::HUB: &*order.render_spec.hub,
            },
            "annotations": annotations,
        },
        "spec": spec,
    })
}

/// The merge patch that makes an existing Work the one of [`body`]. What a user suspended stays.
fn patch(order: &WorkOrder, copy: &Value) -> Value {
    let mut patch = body(order, copy);
    if let Some(live) = &order.live {
        patch["metadata"]["uid"] = json!(&*live.uid);
        patch["metadata"]["resourceVersion"] = json!(&*live.resource_version);
    }
    if let Some(finalizers) = &order.finalizers {
        patch["metadata"]["finalizers"] = finalizers.iter().map(|each| &**each).collect();
    }
    for key in REPEATED {
        if patch["metadata"]["annotations"].get(key).is_none() {
            patch["metadata"]["annotations"][key] = Value::Null;
        }
    }
    if !order.preserves {
        patch["spec"]["preserveResourcesOnDeletion"] = Value::Null;
    }
    if order.suspend == Some(false) {
        patch["spec"]["suspendDispatching"] = Value::Null;
        patch["metadata"]["annotations"][annotation::WORK_SUSPENDED_BY_BINDING] = Value::Null;
    }
    patch
}

/// The copy as a Work shows it: of a Secret its metadata and type alone.
fn shown(order: &WorkOrder, copy: &Value) -> Value {
    if !(order.id.gvk.group.is_empty() && &*order.id.gvk.kind == "Secret") {
        return copy.clone();
    }
    let mut metadata = copy["metadata"].clone();
    if let Some(annotations) = metadata["annotations"].as_object_mut() {
        annotations.retain(|key, _| !WHOLE_OBJECTS.contains(&key.as_str()));
    }
    let mut shown = json!({"apiVersion": copy["apiVersion"], "kind": copy["kind"], "metadata": metadata});
    for field in ["type", "immutable"] {
        if let Some(value) = copy.get(field) {
            shown[field] = value.clone();
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        object::{Gvk, NamespacedName, ResourceId},
        plan::Preconditions,
        render_spec::RenderSpec,
    };

    const CANARY: &str = "canary-3b1f";

    fn order(kind: &str, suspend: Option<bool>) -> WorkOrder {
        WorkOrder {
            id: ResourceId::new(Gvk::new("v1", kind), "shop", "login"),
            cluster: "m1".into(),
            render_spec: RenderSpec {
                hub: "hub".into(),
                binding: NamespacedName::new("shop", "login-secret"),
                permanent_id: "p".into(),
                replicas: None,
                at_least: None,
                raise: None,
                keeps_replicas: false,
                completions: None,
                interpretation: Default::default(),
                overrides: Default::default(),
                preserved: Default::default(),
                overwrite: false,
                written_uid: None,
            },
            source: "u.v1.0".into(),
            live: Some(Preconditions {
                uid: "w".into(),
                resource_version: "7".into(),
            }),
            finalizers: None,
            preserves: false,
            suspend,
        }
    }

    fn copy(kind: &str) -> Value {
        json!({
            "apiVersion": "v1", "kind": kind, "type": "Opaque",
            "metadata": {"name": "login", "namespace": "shop", "annotations": {
                "work.karmada.io/conflict-resolution": "abort",
                "kubectl.kubernetes.io/last-applied-configuration": CANARY,
            }},
            "data": {"password": CANARY}, "stringData": {"other": CANARY}, "unknown": CANARY,
        })
    }

    #[test]
    fn the_work_of_a_secret_has_nothing_of_its_data() {
        for made in [
            body(&order("Secret", None), &copy("Secret")),
            patch(&order("Secret", None), &copy("Secret")),
        ] {
            let manifest = &made["spec"]["workload"]["manifests"][0];
            assert_eq!(manifest["type"], "Opaque");
            assert_eq!(manifest["metadata"]["name"], "login");
            assert!(!made.to_string().contains(CANARY), "{made}");
        }
        let made = body(&order("ConfigMap", None), &copy("ConfigMap"));
        assert_eq!(made["spec"]["workload"]["manifests"], json!([copy("ConfigMap")]));
    }

    #[test]
    fn a_work_carries_the_marks_of_karmadas() {
        let made = body(&order("Secret", None), &copy("Secret"));
        let labels = &made["metadata"]["labels"];
        assert_eq!(labels["resourcebinding.karmada.io/permanent-id"], "p");
        assert!(labels["work.karmada.io/permanent-id"].is_string());
        let annotations = &made["metadata"]["annotations"];
        assert_eq!(annotations["work.karmada.io/conflict-resolution"], "abort");
        assert_eq!(made["metadata"]["namespace"], "karmada-es-m1");
        assert_eq!(made["spec"].get("suspendDispatching"), None);
    }

    #[test]
    fn a_patch_keeps_the_suspension_of_a_user_and_ends_that_of_the_binding() {
        let kept = patch(&order("Secret", None), &copy("Secret"));
        assert_eq!(kept["spec"].get("suspendDispatching"), None);
        assert_eq!(kept["metadata"].get("finalizers"), None);
        assert_eq!(kept["metadata"]["resourceVersion"], "7");
        let begun = patch(&order("Secret", Some(true)), &copy("Secret"));
        assert_eq!(begun["spec"]["suspendDispatching"], true);
        let ended = patch(&order("Secret", Some(false)), &copy("Secret"));
        assert_eq!(ended["spec"].get("suspendDispatching"), Some(&Value::Null));
    }
}
