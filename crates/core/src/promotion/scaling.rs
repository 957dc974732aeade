//! Autoscalers of members: the replicas of a workload that one of them scales are the member's.

use entourage_api::keys::{TRUE, label};
use serde_json::{Value, json};

use crate::{
    object::{Gvk, ResourceId},
    rendered::Rendered,
};

/// The kinds that scale workloads, each in the versions to ask for, in order.
pub const SCALERS: &[(&str, &[&str])] = &[
    ("HorizontalPodAutoscaler", &["autoscaling/v2", "autoscaling/v1"]),
    ("ScaledObject", &["keda.sh/v1alpha1"]),
];

/// The kinds whose replicas are retained on request, with their group.
const RETAINED: [(&str, &str); 4] = [
    ("apps", "Deployment"),
    ("apps", "ReplicaSet"),
    ("apps", "StatefulSet"),
    ("", "ReplicationController"),
];

/// The autoscaler among those of its namespace that scales an object, as `Kind name`. A ScaledObject that names no kind scales a
/// Deployment. Cost: O(scalers).
#[must_use]
pub fn scaled_by(id: &ResourceId, scalers: &[Value]) -> Option<String> {
    let scaler = scalers.iter().find(|scaler| {
        let target = &scaler["spec"]["scaleTargetRef"];
        let gvk = Gvk::new(
            target["apiVersion"].as_str().unwrap_or("apps/v1"),
            target["kind"].as_str().unwrap_or("Deployment"),
        );
        scaler["metadata"]["namespace"] == *id.namespace && target["name"] == *id.name && gvk == id.gvk
    })?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Some(format!(
        "{} {}",
        text(&scaler["kind"]),
        text(&scaler["metadata"]["name"])
    ))
}

/// The template with the label by which the member's number of replicas is retained; `None` if those of its kind are not.
#[must_use]
pub fn retain_replicas(id: &ResourceId, template: Rendered) -> Option<Rendered> {
    if !RETAINED.contains(&(&*id.gvk.group, &*id.gvk.kind)) {
        return None;
    }
    let mut template = template.into_object();
    template["metadata"]["labels"][label::RETAIN_REPLICAS] = json!(TRUE);
    Some(Rendered(template))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workload_and_its_autoscaler_are_matched_by_kind_and_name() {
        let deployment = |name: &str| ResourceId::new(Gvk::new("apps/v1", "Deployment"), "shop", name);
        let scaler = |kind: &str, namespace: &str, target: Value| json!({"kind": kind, "metadata": {"name": "s", "namespace": namespace}, "spec": {"scaleTargetRef": target}});
        let web = |kind: &str| json!({"apiVersion": "apps/v1", "kind": kind, "name": "web"});
        for (scaler, name, expected) in [
            (
                scaler("HorizontalPodAutoscaler", "shop", web("Deployment")),
                "web",
                Some("HorizontalPodAutoscaler s"),
            ),
            (
                scaler("ScaledObject", "shop", json!({"name": "web"})),
                "web",
                Some("ScaledObject s"),
            ),
            (
                scaler("HorizontalPodAutoscaler", "shop", web("Deployment")),
                "api",
                None,
            ),
            (
                scaler("HorizontalPodAutoscaler", "shop", web("StatefulSet")),
                "web",
                None,
            ),
            (
                scaler("HorizontalPodAutoscaler", "other", web("Deployment")),
                "web",
                None,
            ),
        ] {
            let found = scaled_by(&deployment(name), std::slice::from_ref(&scaler));
            assert_eq!(found.as_deref(), expected, "{scaler} {name}");
        }
    }

    #[test]
    fn replicas_are_retained_of_kinds_that_know_the_label() {
        let template = || Rendered(json!({"metadata": {"name": "web"}, "spec": {"replicas": 2}}));
        for (api_version, kind, expected) in [
            ("apps/v1", "Deployment", true),
            ("apps/v1", "StatefulSet", true),
            ("example.com/v1", "Deployment", false),
            ("argoproj.io/v1alpha1", "Rollout", false),
        ] {
            let id = ResourceId::new(Gvk::new(api_version, kind), "shop", "web");
            let retained = retain_replicas(&id, template());
            let is_set = retained.is_some_and(|template| {
                template.object()["metadata"]["labels"][label::RETAIN_REPLICAS] == TRUE
            });
            assert_eq!(is_set, expected, "{kind}");
        }
    }
}
