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
    /// This hub deletes or releases it.
    Removal,
    /// It is not known, and why.
    Unknown(String),
}

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
    match interpreter::difference(&probe, before) {
        Some(path) => Next::Pods(path),
        None => Next::Content(path),
    }
}

/// The path of the Pod template, whose labels and annotations count as well; that of the spec for a Pod itself.
fn template_of(pod_spec: &'static [&'static str]) -> &'static [&'static str] {
    match pod_spec {
        [template @ .., _] if !template.is_empty() => template,
        whole => whole,
    }
}

impl Next {
    /// The decision on a copy that would be adopted, given what this hub writes next. `is_forced`: Pods may restart.
    #[must_use]
    pub fn decided(&self, is_forced: bool) -> Decision {
        match self {
            Self::Removal => Decision::WouldBeRemoved,
            Self::Pods(path) if !is_forced => Decision::WouldRestart(path.clone()),
            Self::Unknown(why) if !is_forced => Decision::Unknown(why.clone()),
            Self::Metadata | Self::Content(_) | Self::Pods(_) | Self::Unknown(_) => Decision::Adopt,
        }
    }

    /// The field that is changed next, for a user.
    #[must_use]
    pub fn changes(&self) -> Option<&str> {
        match self {
            Self::Content(path) | Self::Pods(path) => Some(path),
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
            assert!(native.is_some_and(|native| native.declared().is_some()), "{kind} is shipped");
            let next = next(&shipped("nginx:1"), &shipped("nginx:2"));
            assert!(matches!(next, Next::Pods(_)), "{kind}: {next:?}");
        }
    }

    #[test]
    fn only_a_user_lets_pods_restart() {
        let pods = Next::Pods("spec.template".into());
        let unknown = Next::Unknown("no response".into());
        for (next, forced, expected) in [
            (Next::Metadata, false, Decision::Adopt),
            (Next::Content("data".into()), false, Decision::Adopt),
            (
                pods.clone(),
                false,
                Decision::WouldRestart("spec.template".into()),
            ),
            (pods, true, Decision::Adopt),
            (unknown.clone(), false, Decision::Unknown("no response".into())),
            (unknown, true, Decision::Adopt),
            (Next::Removal, true, Decision::WouldBeRemoved),
        ] {
            assert_eq!(next.decided(forced), expected, "{next:?} {forced}");
        }
    }
}
