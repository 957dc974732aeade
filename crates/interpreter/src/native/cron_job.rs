//! CronJob.

use serde_json::{Value, json};

use super::{NativeGvk, NativeKind, Operation, Resource, whole_status};
use crate::json::{items as list, same};

/// batch/v1 CronJob, and batch/v1beta1 of servers before 1.21; the field is the version.
///
/// Retained: nothing. Its controller on the member writes status only, and the API server's defaults are the hub's.
pub(super) struct CronJob(pub(super) &'static str);

impl NativeKind for CronJob {
    fn gvk(&self) -> NativeGvk<'static> {
        NativeGvk {
            group: "batch",
            version: self.0,
            kind: "CronJob",
        }
    }

    fn summary(&self) -> &'static str {
        "workload: Jobs made by a schedule, in each cluster by its own clock"
    }

    fn resource(&self) -> Option<Resource> {
        Some(Resource::namespaced("cronjobs"))
    }

    fn operations(&self) -> &'static [Operation] {
        &[Operation::References, Operation::Reflect, Operation::Aggregate]
    }

    fn pod_spec_path(&self) -> Option<&'static [&'static str]> {
        Some(&["spec", "jobTemplate", "spec", "template", "spec"])
    }

    fn reflect(&self, live: &Value) -> Option<Value> {
        whole_status(live)
    }

    // No rule for health (Karmada reference 3.1): one failed run is no evidence about the next.

    /// The Jobs that are active in any cluster, cluster by cluster, by kind, namespace and name (the rest of a reference
    /// is of the member's object and changes with it), and the latest times; a time never goes back when a
    /// cluster leaves. Source: Karmada reference 3.1.
    fn aggregate(&self, template: &Value, items: &[(&str, Option<&Value>)]) -> Option<Value> {
        let stored = &template["status"];
        let mut status = stored.as_object().cloned().unwrap_or_default();
        let reported = || items.iter().filter_map(|(_, item)| *item);
        let active: Vec<Value> = reported()
            .flat_map(|item| list(item, &["active"]))
            .map(of_no_cluster)
            .collect();
        if active.is_empty() {
            status.remove("active");
        } else {
            status.insert("active".to_owned(), json!(active));
        }
        for field in ["lastScheduleTime", "lastSuccessfulTime"] {
            let latest = reported().filter_map(|item| item[field].as_str()).max();
            if let Some(latest) = latest.max(stored[field].as_str()) {
                status.insert(field.to_owned(), json!(latest));
            }
        }
        let status = Value::Object(status);
        (!same(&status, stored)).then_some(status)
    }
}

/// The part of a reference to an object that has a meaning outside its cluster.
fn of_no_cluster(reference: &Value) -> Value {
    let fields = ["kind", "namespace", "name"].into_iter();
    let kept = fields.filter_map(|field| Some((field.to_owned(), reference.get(field)?.clone())));
    Value::Object(kept.collect())
}
