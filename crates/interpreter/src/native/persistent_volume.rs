//! PersistentVolume.

use serde_json::{Value, json};

use super::{NativeGvk, NativeKind, Operation, Resource, prune_metadata, whole_status};
use crate::json::{at, remove, set, text};

/// v1 PersistentVolume.
///
/// Never sent: a `claimRef` that the hub's binder chose, and the uid in one that the user wrote; both mean a claim of the
/// hub, and a member would take the volume for one whose claim is gone.
///
/// Retained: `spec.claimRef`, unless the template reserves the volume for another claim, and a `nodeAffinity` that the
/// member's admission filled in. Source: Karmada reference 3.1; the exception and the affinity are ours.
pub(super) struct PersistentVolume;

const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";
const CLAIM: &[&str] = &["spec", "claimRef"];
const AFFINITY: &[&str] = &["spec", "nodeAffinity"];

impl NativeKind for PersistentVolume {
    fn gvk(&self) -> NativeGvk<'static> {
        NativeGvk {
            group: "",
            version: "v1",
            kind: "PersistentVolume",
        }
    }

    fn summary(&self) -> &'static str {
        "storage: a volume that every cluster can reach; its data stays where it is"
    }

    fn resource(&self) -> Option<Resource> {
        Some(Resource::cluster_scoped("persistentvolumes"))
    }

    fn operations(&self) -> &'static [Operation] {
        &[
            Operation::Prune,
            Operation::Retain,
            Operation::Reflect,
            Operation::Aggregate,
        ]
    }

    fn reports_status(&self) -> bool {
        true
    }

    fn hub_only_annotations(&self) -> &'static [&'static str] {
        &[BOUND_BY_CONTROLLER]
    }

    fn prune(&self, template: &mut Value) {
        if at(template, &["metadata", "annotations", BOUND_BY_CONTROLLER]).is_null() {
            for field in ["uid", "resourceVersion"] {
                remove(template, &["spec", "claimRef", field]);
            }
        } else {
            remove(template, CLAIM);
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
        if !desired["spec"].is_object() {
            return;
        }
        let (wanted, bound) = (at(desired, CLAIM), at(live, CLAIM));
        let is_same = ["namespace", "name"]
            .iter()
            .all(|field| text(wanted, &[field]) == text(bound, &[field]));
        if bound.is_object() && (wanted.is_null() || is_same) {
            set(desired, CLAIM, bound.clone());
        }
        let affinity = at(live, AFFINITY);
        if affinity.is_object() && at(desired, AFFINITY).is_null() {
            set(desired, AFFINITY, affinity.clone());
        }
    }

    fn reflect(&self, live: &Value) -> Option<Value> {
        whole_status(live)
    }

    /// The phase is the first of Failed, Pending, Available, Bound, Released that any cluster's is; a cluster that has
    /// not reported counts as Pending. Without a cluster the status stays. Source: Karmada reference 3.1.
    fn aggregate(&self, template: &Value, items: &[(&str, Option<&Value>)]) -> Option<Value> {
        const FIRST: [&str; 5] = ["Failed", "Pending", "Available", "Bound", "Released"];
        let phase_of = |item: Option<&Value>| match item.map_or("", |status| text(status, &["phase"])) {
            "" => "Pending".to_owned(),
            phase => phase.to_owned(),
        };
        let phases: Vec<String> = items.iter().map(|(_, item)| phase_of(*item)).collect();
        let phase = FIRST
            .into_iter()
            .find(|phase| phases.iter().any(|each| each == phase))?;
        let mut status = template["status"].as_object().cloned().unwrap_or_default();
        let before = status.insert("phase".to_owned(), json!(phase));
        (before != Some(json!(phase))).then_some(Value::Object(status))
    }
}
