//! The next write of this hub to a copy that it adopts: whether Pods restart because of it.

use serde_json::Value;

use crate::{adoption::Decision, interpreter};

/// The next write to a copy that is adopted, with the path of the first field that it changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// None, or one of labels and annotations alone.
    Metadata,
    /// One that leaves Pods alone.
    Content(String),
    /// One of the template that Pods are made from, or of a kind that may have one.
    Pods(String),
    /// One of the other fields of a workload, or of its autoscaler: Pods may be removed, or a revision that was held back rolls out.
    Workload(String),
    /// This hub deletes or releases it.
    Removal,
    /// It is not known, and why.
    Unknown(String),
}

/// The fields of the spec of a workload that no Pod depends on. Replicas are one while they do not become fewer.
const HARMLESS: &[&str] = &[
    "minReadySeconds",
    "progressDeadlineSeconds",
    "revisionHistoryLimit",
];

/// Compares a copy with what this hub makes of it. A kind that is not interpreted by code may make Pods of any field.
///
/// Cost: O(size of the object).
#[must_use]
pub fn next(before: &Value, after: &Value) -> Next {
    let Some(path) = interpreter::difference(after, before) else {
        return Next::Metadata;
    };
    let text = |field: &str| after[field].as_str().unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let Some(native) = interpreter::native(group, version, kind) else {
        return Next::Pods(path);
    };
    // Rules name no path of a Pod template, and such a kind may restart Pods because of any field.
    if native.declared().is_some() {
        return Next::Pods(path);
    }
    if kind == "HorizontalPodAutoscaler" {
        return Next::Workload(path);
    }
    let Some(template) = native.pod_spec_path().map(template_of) else {
        return Next::Content(path);
    };
    // The object before with the other Pod template: all other differences are left out.
    let mut probe = before.clone();
    let pointer = format!("/{}", template.join("/"));
    match (probe.pointer_mut(&pointer), after.pointer(&pointer)) {
        (Some(held), Some(wanted)) => *held = wanted.clone(),
        (None, None) => {}
        _ => return Next::Pods(path),
    }
    if let Some(path) = interpreter::difference(&probe, before) {
        return Next::Pods(path);
    }
    // The object after with the harmless fields of that before: only what may end Pods differs.
    let mut probe = after.clone();
    let mut harmless = HARMLESS.to_vec();
    if native.replicas(after) >= native.replicas(before) {
        harmless.push("replicas");
    }
    for field in harmless {
        restore(&mut probe["spec"], &before["spec"], field);
    }
    match interpreter::difference(&probe, before) {
        Some(path) => Next::Workload(path),
        None => Next::Content(path),
    }
}

/// Makes a field as it is in the other object.
fn restore(into: &mut Value, from: &Value, field: &str) {
    let Some(fields) = into.as_object_mut() else {
        return;
    };
    match from.get(field) {
        Some(value) => fields.insert(field.to_owned(), value.clone()),
        None => fields.remove(field),
    };
}

/// The path of the Pod template, whose labels and annotations count as well; that of the spec for a Pod itself.
fn template_of(pod_spec: &'static [&'static str]) -> &'static [&'static str] {
    match pod_spec {
        [template @ .., _] if !template.is_empty() => template,
        whole => whole,
    }
}

/// The effects on Pods that the user allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allowed {
    /// Pods may restart or be removed.
    pub restarts: bool,
    /// It need not be known what is written next.
    pub unknown: bool,
}

impl Next {
    /// The decision on a copy that would be adopted, given what this hub writes next.
    #[must_use]
    pub fn decided(&self, allowed: Allowed) -> Decision {
        match self {
            Self::Removal => Decision::WouldBeRemoved,
            Self::Pods(path) if !allowed.restarts => Decision::WouldRestart(path.clone()),
            Self::Workload(path) if !allowed.restarts => Decision::WouldRemovePods(path.clone()),
            Self::Unknown(why) if !allowed.unknown => Decision::Unknown(why.clone()),
            Self::Metadata | Self::Content(_) | Self::Pods(_) | Self::Workload(_) | Self::Unknown(_) => {
                Decision::Adopt
            }
        }
    }

    /// The field that is changed next, for a user.
    #[must_use]
    pub fn changes(&self) -> Option<&str> {
        match self {
            Self::Content(path) | Self::Pods(path) | Self::Workload(path) => Some(path),
            Self::Metadata | Self::Removal | Self::Unknown(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn deployment(image: &str, replicas: i64) -> Value {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {"replicas": replicas,
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": image}]}}}})
    }

    #[test]
    fn a_pod_template_is_told_from_the_rest() {
        let mut labelled = deployment("nginx:1", 2);
        labelled["metadata"]["labels"] = json!({"entourage.dev/hub": "h"});
        let mut annotated = deployment("nginx:1", 2);
        annotated["spec"]["template"]["metadata"]["annotations"] = json!({"a": "b"});
        let mut bare = deployment("nginx:1", 2);
        bare["spec"]["template"] = Value::Null;
        for (sentence, after, expected) in [
            ("labels", labelled, Next::Metadata),
            (
                "replicas",
                deployment("nginx:1", 3),
                Next::Content("spec.replicas".into()),
            ),
            (
                "an image",
                deployment("nginx:2", 2),
                Next::Pods("spec.template.spec.containers[].image".into()),
            ),
        ] {
            assert_eq!(next(&deployment("nginx:1", 2), &after), expected, "{sentence}");
        }
        for after in [annotated, bare, deployment("nginx:2", 3)] {
            let next = next(&deployment("nginx:1", 2), &after);
            assert!(matches!(next, Next::Pods(_)), "{next:?}");
        }
        let config = |value: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"key": value}});
        assert_eq!(next(&config("a"), &config("b")), Next::Content("data".into()));
        let unknown =
            |value: i64| json!({"apiVersion": "example.com/v1", "kind": "Roll", "spec": {"n": value}});
        assert_eq!(next(&unknown(1), &unknown(2)), Next::Pods("spec.n".into()));
        for (api_version, kind) in [
            ("apps.kruise.io/v1alpha1", "CloneSet"),
            ("argoproj.io/v1alpha1", "Rollout"),
        ] {
            let shipped = |image: &str| {
                json!({"apiVersion": api_version, "kind": kind, "spec": {"replicas": 2,
                    "template": {"spec": {"containers": [{"name": "main", "image": image}]}}}})
            };
            let (group, version) = api_version.split_once('/').unwrap();
            let native = interpreter::native(group, version, kind);
            assert!(
                native.is_some_and(|native| native.declared().is_some()),
                "{kind} is shipped"
            );
            let next = next(&shipped("nginx:1"), &shipped("nginx:2"));
            assert!(matches!(next, Next::Pods(_)), "{kind}: {next:?}");
        }
    }

    #[test]
    fn what_ends_pods_without_another_template_is_no_mere_content() {
        let with = |kind: &str, spec: Value| {
            let group = if kind == "Job" { "batch/v1" } else { "apps/v1" };
            let mut object =
                json!({"apiVersion": group, "kind": kind, "metadata": {"name": "web"}, "spec": spec});
            object["spec"]["template"] =
                json!({"spec": {"containers": [{"name": "main", "image": "nginx:1"}]}});
            object
        };
        let workload = |path: &str| Next::Workload(path.to_owned());
        for (kind, before, after, expected) in [
            (
                "Deployment",
                json!({"replicas": 9}),
                json!({"replicas": 5}),
                workload("spec.replicas"),
            ),
            (
                "Deployment",
                json!({"replicas": 9, "minReadySeconds": 1}),
                json!({"replicas": 5, "minReadySeconds": 2}),
                workload("spec.replicas"),
            ),
            (
                "Deployment",
                json!({"replicas": 5}),
                json!({"replicas": 9}),
                Next::Content("spec.replicas".into()),
            ),
            (
                "Deployment",
                json!({"replicas": 5, "minReadySeconds": 1}),
                json!({"replicas": 5, "minReadySeconds": 2}),
                Next::Content("spec.minReadySeconds".into()),
            ),
            (
                "Deployment",
                json!({"replicas": 5, "paused": true}),
                json!({"replicas": 5, "paused": false}),
                workload("spec.paused"),
            ),
            (
                "Job",
                json!({"parallelism": 4, "suspend": false}),
                json!({"parallelism": 4, "suspend": true}),
                workload("spec.suspend"),
            ),
            (
                "Job",
                json!({"parallelism": 4}),
                json!({"parallelism": 2}),
                workload("spec.parallelism"),
            ),
            (
                "DaemonSet",
                json!({"updateStrategy": {"type": "OnDelete"}}),
                json!({"updateStrategy": {"type": "RollingUpdate"}}),
                workload("spec.updateStrategy.type"),
            ),
        ] {
            let found = next(&with(kind, before.clone()), &with(kind, after.clone()));
            match (&found, &expected) {
                // The path of a default may be a field further down.
                (Next::Workload(_), Next::Workload(_)) if kind == "DaemonSet" => {}
                _ => assert_eq!(found, expected, "{kind} {before} {after}"),
            }
        }
        let autoscaler = |least: i64| json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "spec": {"minReplicas": least}});
        assert!(matches!(next(&autoscaler(9), &autoscaler(2)), Next::Workload(_)));
    }

    #[test]
    fn only_a_user_lets_pods_restart() {
        let (none, all) = (
            Allowed::default(),
            Allowed {
                restarts: true,
                unknown: true,
            },
        );
        let restarts = Allowed {
            restarts: true,
            unknown: false,
        };
        let pods = Next::Pods("spec.template".into());
        let fewer = Next::Workload("spec.replicas".into());
        let unknown = Next::Unknown("no response".into());
        let is_unknown = || Decision::Unknown("no response".into());
        for (next, allowed, expected) in [
            (Next::Metadata, none, Decision::Adopt),
            (Next::Content("data".into()), none, Decision::Adopt),
            (pods.clone(), none, Decision::WouldRestart("spec.template".into())),
            (pods, restarts, Decision::Adopt),
            (
                fewer.clone(),
                none,
                Decision::WouldRemovePods("spec.replicas".into()),
            ),
            (fewer, restarts, Decision::Adopt),
            (unknown.clone(), none, is_unknown()),
            (unknown.clone(), restarts, is_unknown()),
            (unknown, all, Decision::Adopt),
            (Next::Removal, all, Decision::WouldBeRemoved),
        ] {
            assert_eq!(next.decided(allowed), expected, "{next:?} {allowed:?}");
        }
    }
}
