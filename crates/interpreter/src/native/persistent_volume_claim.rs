//! PersistentVolumeClaim.

use std::cmp::Ordering;

use serde_json::{Value, json};

use super::{Health, NativeGvk, NativeKind, Operation, Resource, prune_metadata, whole_status};
use crate::{
    json::{at, remove, set, text},
    quantity,
};

/// v1 PersistentVolumeClaim.
///
/// Retained: the whole spec, because it is immutable and the member completes it: the binder sets `volumeName`,
/// admission the default `storageClassName`, the API server `volumeMode` and the two spellings of a data source; a
/// PUT without any of them is refused. Fields that a bound claim may still change come from the template: a larger storage
/// request (a smaller one is kept as it is: the volume has grown on the member) and `volumeAttributesClassName`.
pub(super) struct PersistentVolumeClaim;

const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";

impl NativeKind for PersistentVolumeClaim {
    fn reports_status(&self) -> bool {
        true
    }

    fn gvk(&self) -> NativeGvk<'static> {
        NativeGvk {
            group: "",
            version: "v1",
            kind: "PersistentVolumeClaim",
        }
    }

    fn summary(&self) -> &'static str {
        "dependency: a claim for storage; its data stays where it is"
    }

    fn resource(&self) -> Option<Resource> {
        Some(Resource::namespaced("persistentvolumeclaims"))
    }

    fn operations(&self) -> &'static [Operation] {
        &[
            Operation::Prune,
            Operation::Retain,
            Operation::Reflect,
            Operation::Aggregate,
            Operation::Health,
        ]
    }

    /// Notes of the hub's binder, provisioner and scheduler about the hub's own volume. Source: Karmada reference 1.4
    /// names the selected node; the rest is ours.
    fn hub_only_annotations(&self) -> &'static [&'static str] {
        &[
            BIND_COMPLETED,
            BOUND_BY_CONTROLLER,
            "volume.beta.kubernetes.io/storage-provisioner",
            "volume.kubernetes.io/selected-node",
            "volume.kubernetes.io/storage-provisioner",
            "volume.kubernetes.io/storage-resizer",
        ]
    }

    /// A `volumeName` that the hub's binder set is removed; one that the user wrote is propagated.
    fn prune(&self, template: &mut Value) {
        if !at(template, &["metadata", "annotations", BOUND_BY_CONTROLLER]).is_null() {
            remove(template, &["spec", "volumeName"]);
        }
        prune_metadata(
            template,
            self.hub_only_labels(template),
            self.hub_only_annotations(),
        );
    }

    fn needs_live(&self, _desired: &Value) -> bool {
        true
    }

    fn retain(&self, desired: &mut Value, live: &Value) {
        const STORAGE: &[&str] = &["spec", "resources", "requests", "storage"];
        const CLASS: &[&str] = &["spec", "volumeAttributesClassName"];
        if !live["spec"].is_object() {
            return;
        }
        let (storage, class) = (at(desired, STORAGE).clone(), at(desired, CLASS).clone());
        let grows = quantity::compare(&storage, at(live, STORAGE)) == Some(Ordering::Greater);
        set(desired, &["spec"], live["spec"].clone());
        if text(live, &["status", "phase"]) == "Bound" {
            if grows {
                set(desired, STORAGE, storage);
            }
            if class.is_string() {
                set(desired, CLASS, class);
            }
        }
    }

    /// True if it was bound once, by the binder's annotation, its volume, or its phase; also if its state is unknown.
    fn holds_data(&self, live: &Value) -> bool {
        !at(live, &["metadata", "annotations", BIND_COMPLETED]).is_null()
            || !text(live, &["spec", "volumeName"]).is_empty()
            || ["Bound", "Lost"].contains(&text(live, &["status", "phase"]))
    }

    fn reflect(&self, live: &Value) -> Option<Value> {
        whole_status(live)
    }

    /// Healthy: bound. Source: Karmada reference 3.1.
    fn health(&self, live: &Value) -> Health {
        match text(live, &["status", "phase"]) {
            "Bound" => Health::Healthy,
            "" => Health::Unknown,
            _ => Health::Unhealthy,
        }
    }

    /// Lost if lost anywhere, else Pending unless bound in every cluster. Without a cluster the status stays.
    fn aggregate(&self, template: &Value, items: &[(&str, Option<&Value>)]) -> Option<Value> {
        let phases: Vec<_> = items
            .iter()
            .map(|(_, item)| item.map_or("", |status| text(status, &["phase"])))
            .collect();
        let phase = match phases.as_slice() {
            [] => return None,
            all if all.contains(&"Lost") => "Lost",
            all if all.iter().all(|phase| *phase == "Bound") => "Bound",
            _ => "Pending",
        };
        let mut status = template["status"].as_object().cloned().unwrap_or_default();
        let before = status.insert("phase".to_owned(), json!(phase));
        (before != Some(json!(phase))).then_some(Value::Object(status))
    }
}
