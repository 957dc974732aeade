//! The stages of an object, as data: the state in which one begins, its duration, and the next state.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Action, parts};
use crate::object::Object;

/// Stages in order: the first that matches an object is the one it is in.
#[derive(Clone, Debug)]
pub struct Stages(Vec<Stage>);

/// One stage.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stage {
    /// The name of the stage, for people.
    #[allow(
        dead_code,
        reason = "says in the data what the stage is for; errors of the data name it"
    )]
    name: String,
    collection: String,
    /// JSON pointer → `present`, `absent` or the value.
    #[serde(rename = "match")]
    matches: BTreeMap<String, Value>,
    /// Since the object was made.
    after_ms: u64,
    status: Option<Value>,
    /// The finalizer that is taken away; only objects that have it are in the stage.
    release: Option<String>,
    bind: Option<String>,
    delete: Option<Value>,
}

impl Default for Stages {
    /// Pods become ready, Pods of Jobs succeed, claims are bound; Pods with the annotation `stand-in.kubelet/fail` wait for
    /// ever with the reason that it gives, and Pods of Jobs with `stand-in.kubelet/exit-code` fail with that code.
    fn default() -> Self {
        Self::parse(include_str!("stages.json")).expect("the data of this crate, which a test reads")
    }
}

impl Stages {
    /// Reads stages.
    ///
    /// # Errors
    /// When the text is not a JSON list of stages.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text).map(Self)
    }

    /// The requests about an object of a collection now, or the time until then.
    pub(super) fn next(
        &self,
        collection: &str,
        object: &Object,
        now: &str,
        time: Timestamp,
    ) -> (Vec<Action>, Option<Duration>) {
        let whole = Value::Object(object.clone());
        let stage = self
            .0
            .iter()
            .find(|stage| stage.collection == collection && stage.is_of(&whole));
        let Some(stage) = stage else {
            return (Vec::new(), None);
        };
        let made = whole["metadata"]["creationTimestamp"]
            .as_str()
            .and_then(|text| text.parse::<Timestamp>().ok());
        let age = made.map_or(Duration::ZERO, |made| {
            Duration::try_from(time.duration_since(made)).unwrap_or_default()
        });
        let rest = Duration::from_millis(stage.after_ms).saturating_sub(age);
        if !rest.is_zero() {
            return (Vec::new(), Some(rest));
        }
        (stage.actions(collection, object, &whole, now), None)
    }
}

impl Stage {
    fn is_of(&self, object: &Value) -> bool {
        let has = |finalizer: &String| finalizers(object).any(|name| name == finalizer);
        self.release.as_ref().is_none_or(has)
            && self.matches.iter().all(|(pointer, wanted)| {
                let found = object.pointer(pointer);
                match wanted.as_str() {
                    Some("present") => found.is_some(),
                    Some("absent") => found.is_none(),
                    _ => found == Some(wanted),
                }
            })
    }

    fn actions(&self, collection: &str, object: &Object, whole: &Value, now: &str) -> Vec<Action> {
        let path = parts::path_of("api/v1", collection, object);
        let mut actions = Vec::new();
        if let Some(node) = &self.bind {
            actions.push(Action::Create {
                path: format!("{path}/binding"),
                object: json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": whole["metadata"]["name"]},
                    "target": {"apiVersion": "v1", "kind": "Node", "name": node}}),
            });
        }
        if let Some(finalizer) = &self.release {
            let others: Vec<&Value> = finalizers(whole).filter(|name| *name != finalizer).collect();
            actions.push(Action::Patch {
                path: path.clone(),
                // The other finalizers are those of this state.
                patch: json!({"metadata": {"finalizers": others, "resourceVersion": whole["metadata"]["resourceVersion"]}}),
            });
        }
        if let Some(status) = &self.status {
            actions.push(Action::Patch {
                path: format!("{path}/status"),
                patch: json!({"status": filled(status, whole, whole, now)}),
            });
        }
        if let Some(options) = &self.delete {
            actions.push(Action::Delete {
                path,
                options: options.clone(),
            });
        }
        actions
    }
}

fn finalizers(object: &Value) -> impl Iterator<Item = &Value> {
    let list = object["metadata"]["finalizers"].as_array();
    list.into_iter().flatten()
}

/// The value with its references filled in: `$now`, `$/pointer` into the object, `$number/pointer` for the number that is
/// written there, `$item/pointer` into the item of an `$each`.
fn filled(value: &Value, object: &Value, item: &Value, now: &str) -> Value {
    match value {
        Value::String(text) if text == "$now" => now.into(),
        Value::String(text) => match (text.strip_prefix("$item"), text.strip_prefix('$')) {
            (Some(pointer), _) => item.pointer(pointer).cloned().unwrap_or_default(),
            (None, Some(pointer)) => match pointer.strip_prefix("number") {
                Some(pointer) => {
                    let written = object
                        .pointer(pointer)
                        .and_then(Value::as_str)
                        .unwrap_or_default();
                    written.parse::<i64>().unwrap_or(1).into()
                }
                None => object.pointer(pointer).cloned().unwrap_or_default(),
            },
            _ => value.clone(),
        },
        Value::Array(list) => list.iter().map(|each| filled(each, object, item, now)).collect(),
        Value::Object(map) => match map.get("$each").and_then(Value::as_str) {
            Some(pointer) => {
                let items = object.pointer(pointer).and_then(Value::as_array);
                let items = items.into_iter().flatten();
                items
                    .map(|item| filled(&map["value"], object, item, now))
                    .collect()
            }
            None => map
                .iter()
                .map(|(key, value)| (key.clone(), filled(value, object, item, now)))
                .collect(),
        },
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(pod: Value) -> (Vec<Action>, Option<Duration>) {
        let Value::Object(pod) = pod else { panic!() };
        Stages::default().next(
            "pods",
            &pod,
            "2026-01-01T00:00:09Z",
            "2026-01-01T00:00:09Z".parse().unwrap(),
        )
    }

    fn pod(annotations: &Value) -> Value {
        json!({
            "metadata": {"name": "p", "namespace": "d", "creationTimestamp": "2026-01-01T00:00:00Z", "annotations": annotations},
            "spec": {"nodeName": "n", "containers": [{"name": "a", "image": "x"}, {"name": "b", "image": "y"}]},
            "status": {"phase": "Pending"},
        })
    }

    #[test]
    fn a_pod_becomes_ready_with_all_its_containers() {
        let (actions, again) = next(pod(&json!({})));
        assert_eq!(again, None);
        let [Action::Patch { path, patch }] = actions.as_slice() else {
            panic!("{actions:?}")
        };
        assert_eq!(path, "/api/v1/namespaces/d/pods/p/status");
        assert_eq!(patch["status"]["phase"], "Running");
        assert_eq!(patch["status"]["containerStatuses"][1]["name"], "b");
        assert_eq!(patch["status"]["startTime"], "2026-01-01T00:00:09Z");
    }

    #[test]
    fn a_pod_fails_on_request() {
        let (actions, _) = next(pod(&json!({"stand-in.kubelet/fail": "ImagePullBackOff"})));
        let [Action::Patch { patch, .. }] = actions.as_slice() else {
            panic!("{actions:?}")
        };
        assert_eq!(
            patch["status"]["containerStatuses"][0]["state"]["waiting"]["reason"],
            "ImagePullBackOff"
        );
        let mut failed = pod(&json!({"stand-in.kubelet/fail": "ImagePullBackOff"}));
        failed["status"] = patch["status"].clone();
        assert_eq!(next(failed), (Vec::new(), None), "and stays so");
    }

    #[test]
    fn a_young_pod_waits() {
        let mut young = pod(&json!({}));
        young["metadata"]["creationTimestamp"] = json!("2026-01-01T00:00:09Z");
        let (actions, again) = next(young);
        assert!(actions.is_empty() && again.is_some_and(|rest| rest <= Duration::from_millis(5)));
    }

    #[test]
    fn a_claim_that_is_deleted_keeps_the_finalizers_of_others() {
        let claim = |finalizers: Value| {
            let claim = json!({"metadata": {"name": "c", "namespace": "d", "resourceVersion": "7", "finalizers": finalizers,
                "deletionTimestamp": "2026-01-01T00:00:00Z"}, "status": {"phase": "Bound"}});
            let Value::Object(claim) = claim else { panic!() };
            let time = "2026-01-01T00:00:09Z";
            Stages::default()
                .next("persistentvolumeclaims", &claim, time, time.parse().unwrap())
                .0
        };
        let actions = claim(json!(["example.com/hold", "kubernetes.io/pvc-protection"]));
        let [Action::Patch { patch, .. }] = actions.as_slice() else {
            panic!("{actions:?}")
        };
        assert_eq!(
            patch["metadata"],
            json!({"finalizers": ["example.com/hold"], "resourceVersion": "7"})
        );
        assert_eq!(claim(json!(["example.com/hold"])), []);
    }

    #[test]
    fn damaged_data_is_refused() {
        assert!(Stages::parse("[{\"name\": \"x\"}]").is_err());
        assert!(Stages::parse("{").is_err());
    }
}
