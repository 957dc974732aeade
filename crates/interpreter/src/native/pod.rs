//! Pod.

use serde_json::{Map, Value, json};

use super::{Health, NativeGvk, NativeKind, Operation, Resource, prune_metadata, whole_status};
use crate::json::{at, at_mut, items, remove, same, set, text};

/// v1 Pod.
///
/// Retained: the whole spec except the fields that a running Pod may still change: container images, a shorter
/// `activeDeadlineSeconds`, further tolerations. The rest of it is immutable and completed by the member: the
/// scheduler sets `nodeName`; admission sets the account and its token volume with its mounts, priority, default
/// tolerations, overhead; debugging adds ephemeral containers; a PUT without any of them is refused. So any
/// other change of a template takes effect when the copy is recreated, as in a single cluster.
pub(super) struct Pod;

const CONTAINERS: [&str; 2] = ["containers", "initContainers"];

impl NativeKind for Pod {
    fn gvk(&self) -> NativeGvk<'static> {
        NativeGvk {
            group: "",
            version: "v1",
            kind: "Pod",
        }
    }

    fn summary(&self) -> &'static str {
        "workload: a single pod"
    }

    fn resource(&self) -> Option<Resource> {
        Some(Resource::namespaced("pods"))
    }

    fn operations(&self) -> &'static [Operation] {
        &[
            Operation::References,
            Operation::Replicas,
            Operation::Prune,
            Operation::Retain,
            Operation::Reflect,
            Operation::Aggregate,
            Operation::Health,
        ]
    }

    fn pod_spec_path(&self) -> Option<&'static [&'static str]> {
        Some(&["spec"])
    }

    fn replicas(&self, object: &Value) -> Option<i64> {
        object["spec"].is_object().then_some(1)
    }

    /// Removes the fields that the hub's admission computed: the member's computes them again and refuses other values.
    /// Ephemeral containers cannot be set when a Pod is created. The volume with the hub's token and CA is replaced by the
    /// member's own.
    fn prune(&self, template: &mut Value) {
        prune_metadata(
            template,
            self.hub_only_labels(template),
            self.hub_only_annotations(),
        );
        for field in ["ephemeralContainers", "overhead", "preemptionPolicy", "priority"] {
            remove(template, &["spec", field]);
        }
        let injected: Vec<String> = items(template, &["spec", "volumes"])
            .iter()
            .filter(|volume| is_token_volume(volume))
            .map(|volume| text(volume, &["name"]).to_owned())
            .collect();
        if injected.is_empty() {
            return;
        }
        let is_injected = |value: &Value| injected.iter().any(|name| value["name"] == name.as_str());
        drop_entries(template, &["spec"], "volumes", &is_injected);
        for list in CONTAINERS {
            for container in at_mut(template, &["spec", list])
                .and_then(Value::as_array_mut)
                .into_iter()
                .flatten()
            {
                drop_entries(container, &[], "volumeMounts", &is_injected);
            }
        }
    }

    fn needs_live(&self, _desired: &Value) -> bool {
        true
    }

    fn retain(&self, desired: &mut Value, live: &Value) {
        let Some(mut spec) = live.get("spec").filter(|spec| spec.is_object()).cloned() else {
            return;
        };
        for list in CONTAINERS {
            for container in spec
                .get_mut(list)
                .and_then(Value::as_array_mut)
                .into_iter()
                .flatten()
            {
                let same = items(desired, &["spec", list])
                    .iter()
                    .find(|each| each["name"] == container["name"]);
                if let Some(image) = same.map(|each| &each["image"]).filter(|image| image.is_string()) {
                    set(container, &["image"], image.clone());
                }
            }
        }
        if let Some(deadline) = desired["spec"]["activeDeadlineSeconds"].as_i64()
            && spec["activeDeadlineSeconds"]
                .as_i64()
                .is_none_or(|live| deadline < live)
        {
            set(&mut spec, &["activeDeadlineSeconds"], json!(deadline));
        }
        let tolerations = items(&spec, &["tolerations"]);
        let further = items(desired, &["spec", "tolerations"])
            .iter()
            .filter(|each| !tolerations.contains(each));
        let all: Vec<Value> = tolerations.iter().chain(further).cloned().collect();
        if all.len() != tolerations.len() {
            set(&mut spec, &["tolerations"], json!(all));
        }
        set(desired, &["spec"], spec);
    }

    fn reflect(&self, live: &Value) -> Option<Value> {
        whole_status(live)
    }

    /// Healthy: it ran to success, or it runs and is ready. Source: Karmada reference 3.1.
    fn health(&self, live: &Value) -> Health {
        let is_ready = |each: &Value| each["type"] == "Ready" && each["status"] == "True";
        match text(live, &["status", "phase"]) {
            "Succeeded" => Health::Healthy,
            "Running" if items(live, &["status", "conditions"]).iter().any(is_ready) => Health::Healthy,
            "" => Health::Unknown,
            _ => Health::Unhealthy,
        }
    }

    fn aggregate_reads(&self) -> &'static [&'static [&'static str]] {
        &[&["spec", "restartPolicy"]]
    }

    /// The phase is the worst of all clusters' (Failed, Pending, Running, Succeeded; a cluster that has not reported
    /// counts as Pending), the container statuses are all clusters' together. Without a cluster the status stays.
    ///
    /// A container's name gets its cluster before it when there are several clusters, or when containers are not always
    /// restarted: an API server then refuses a container that was terminated and runs under the same name, as it may
    /// in another cluster.
    fn aggregate(&self, template: &Value, items: &[(&str, Option<&Value>)]) -> Option<Value> {
        const WORST_FIRST: [&str; 4] = ["Failed", "Pending", "Running", "Succeeded"];
        let phase = |item: Option<&Value>| {
            item.and_then(|status| status["phase"].as_str())
                .unwrap_or("Pending")
                .to_owned()
        };
        let phases: Vec<String> = items.iter().map(|(_, item)| phase(*item)).collect();
        let worst = WORST_FIRST
            .into_iter()
            .find(|phase| phases.iter().any(|each| each == phase))?;

        let prefixed = items.len() > 1 || text(template, &["spec", "restartPolicy"]) != "Always";
        let mut status = template["status"].as_object().cloned().unwrap_or_default();
        status.insert("phase".to_owned(), json!(worst));
        for list in ["containerStatuses", "initContainerStatuses"] {
            let all: Vec<Value> = items
                .iter()
                .flat_map(|item| container_statuses(*item, list, prefixed))
                .collect();
            if all.is_empty() {
                status.remove(list);
            } else {
                status.insert(list.to_owned(), json!(all));
            }
        }
        let status = Value::Object(status);
        (!same(&status, &template["status"])).then_some(status)
    }
}

/// True if a volume is the service-account token that admission added: a projected one of that name.
fn is_token_volume(volume: &Value) -> bool {
    text(volume, &["name"]).starts_with("kube-api-access-")
        && items(volume, &["projected", "sources"])
            .iter()
            .any(|source| source["serviceAccountToken"].is_object())
}

/// Removes entries from a list, and the list itself when that leaves it empty.
fn drop_entries(object: &mut Value, parent: &[&str], list: &str, is_dropped: &dyn Fn(&Value) -> bool) {
    let path: Vec<_> = parent.iter().copied().chain([list]).collect();
    let Some(entries) = at_mut(object, &path).and_then(Value::as_array_mut) else {
        return;
    };
    let before = entries.len();
    entries.retain(|entry| !is_dropped(entry));
    if entries.is_empty() && before > 0 {
        remove(object, &path);
    }
}

/// The container statuses of one cluster: the fields that an API server requires, and the state.
fn container_statuses(item: (&str, Option<&Value>), list: &str, prefixed: bool) -> Vec<Value> {
    let (cluster, status) = item;
    let statuses = status.map(|status| items(status, &[list])).unwrap_or_default();
    let reduced = |each: &Value| {
        let name = text(each, &["name"]);
        let mut kept = Map::new();
        kept.insert(
            "name".to_owned(),
            json!(if prefixed {
                format!("{cluster}/{name}")
            } else {
                name.to_owned()
            }),
        );
        kept.insert("image".to_owned(), json!(text(each, &["image"])));
        kept.insert("imageID".to_owned(), json!(text(each, &["imageID"])));
        kept.insert("ready".to_owned(), json!(each["ready"] == true));
        kept.insert(
            "restartCount".to_owned(),
            json!(each["restartCount"].as_i64().unwrap_or_default()),
        );
        let state = at(each, &["state"]);
        kept.insert(
            "state".to_owned(),
            if state.is_object() {
                state.clone()
            } else {
                json!({})
            },
        );
        kept.insert("lastState".to_owned(), json!({}));
        Value::Object(kept)
    };
    statuses.iter().map(reduced).collect()
}
