//! HorizontalPodAutoscaler.

use serde_json::Value;

use super::{
    NativeGvk, NativeKind, Operation, Resource,
    counters::{self, Counter, always},
};

/// autoscaling HorizontalPodAutoscaler: v2, v1, and v2beta2 of servers before 1.23; the field is the version.
///
/// It scales the workload of its own cluster. For that to last, the workload's template needs the retain-replicas label.
///
/// Retained: nothing. Its controller on the member writes status only.
pub(super) struct HorizontalPodAutoscaler(pub(super) &'static str);

const COUNTERS: &[Counter] = &[always("currentReplicas"), always("desiredReplicas")];

impl NativeKind for HorizontalPodAutoscaler {
    fn gvk(&self) -> NativeGvk<'static> {
        NativeGvk {
            group: "autoscaling",
            version: self.0,
            kind: "HorizontalPodAutoscaler",
        }
    }

    fn summary(&self) -> &'static str {
        "scaling: as many replicas as a workload needs, in each cluster for itself"
    }

    fn resource(&self) -> Option<Resource> {
        Some(Resource::namespaced("horizontalpodautoscalers"))
    }

    fn operations(&self) -> &'static [Operation] {
        &[Operation::Prune, Operation::Reflect, Operation::Aggregate]
    }

    fn reports_status(&self) -> bool {
        true
    }

    /// The annotations in which v1 serves status fields of later versions.
    fn hub_only_annotations(&self) -> &'static [&'static str] {
        &[
            "autoscaling.alpha.kubernetes.io/conditions",
            "autoscaling.alpha.kubernetes.io/current-metrics",
        ]
    }

    /// An `apiVersion` is optional; without one it is that of the core group, as for the controller.
    fn scale_target<'a>(&self, object: &'a Value) -> Option<(NativeGvk<'a>, &'a str)> {
        let target = &object["spec"]["scaleTargetRef"];
        let api_version = target["apiVersion"].as_str().unwrap_or("v1");
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let kind = target["kind"].as_str()?;
        Some((NativeGvk { group, version, kind }, target["name"].as_str()?))
    }

    fn reflect(&self, live: &Value) -> Option<Value> {
        counters::reflect_counts(live, COUNTERS)
    }

    /// Current and desired replicas are sums over the clusters. Source: Karmada reference 3.1.
    fn aggregate(&self, template: &Value, items: &[(&str, Option<&Value>)]) -> Option<Value> {
        counters::sums(template, items, COUNTERS)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_target_is_what_the_controller_takes_it_for() {
        for (target, want) in [
            (
                json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}),
                Some(("apps", "v1", "Deployment", "web")),
            ),
            (
                json!({"apiVersion": "apps/v1beta2", "kind": "Deployment", "name": "web"}),
                Some(("apps", "v1beta2", "Deployment", "web")),
            ),
            (
                json!({"kind": "ReplicationController", "name": "web"}),
                Some(("", "v1", "ReplicationController", "web")),
            ),
            (json!({"apiVersion": "apps/v1", "kind": "Deployment"}), None),
            (json!("web"), None),
            (json!(null), None),
        ] {
            let object = json!({"spec": {"scaleTargetRef": target}});
            let found = HorizontalPodAutoscaler("v2").scale_target(&object);
            let found = found.map(|(gvk, name)| (gvk.group, gvk.version, gvk.kind, name));
            assert_eq!(found, want, "{object}");
        }
    }
}
