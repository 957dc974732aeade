//! Job.

mod status;

use serde_json::{Value, json};

use super::{NativeGvk, NativeKind, Operation, Resource, TEMPLATE_SPEC, prune_metadata};
use crate::json::{at, int, remove, remove_keys, set, text};

/// batch/v1 Job.
///
/// Retained: `spec.selector`, `spec.manualSelector` and the labels that the member's API server generated in the pod
/// template (they hold the uid of the member's Job and are immutable), and `spec.completions` of a Job whose
/// completions may not change (they differ from the hub's when completions were divided among clusters; a later
/// division applies to clusters that get the Job anew). The rest of the pod template is immutable too, but it is the
/// user's: a hub Job that was deleted and recreated with another template is refused by the member, which must be
/// visible.
///
/// Never sent: `ttlSecondsAfterFinished`. The member would delete the finished copy, and it would be recreated and run again.
/// The hub's own TTL controller removes the template and with it the copies. Source: Karmada reference 1.4.
pub(super) struct Job;

const SELECTOR: &[&str] = &["spec", "selector"];
const TEMPLATE_LABELS: &[&str] = &["spec", "template", "metadata", "labels"];
const UID_LABELS: &[&str] = &["controller-uid", "batch.kubernetes.io/controller-uid"];
const GENERATED_LABELS: &[&str] = &[
    "controller-uid",
    "batch.kubernetes.io/controller-uid",
    "job-name",
    "batch.kubernetes.io/job-name",
];

impl NativeKind for Job {
    fn gvk(&self) -> NativeGvk<'static> {
        NativeGvk {
            group: "batch",
            version: "v1",
            kind: "Job",
        }
    }

    fn summary(&self) -> &'static str {
        "workload: pods that run to completion"
    }

    fn resource(&self) -> Option<Resource> {
        Some(Resource::namespaced("jobs"))
    }

    fn operations(&self) -> &'static [Operation] {
        &[
            Operation::References,
            Operation::Replicas,
            Operation::Revise,
            Operation::Prune,
            Operation::Retain,
            Operation::Reflect,
            Operation::Aggregate,
        ]
    }

    fn pod_spec_path(&self) -> Option<&'static [&'static str]> {
        Some(TEMPLATE_SPEC)
    }

    /// The number of pods that run at a time.
    fn replicas(&self, object: &Value) -> Option<i64> {
        object["spec"].as_object()?;
        Some(int(object, &["spec", "parallelism"]).unwrap_or(1))
    }

    fn revise_replicas(&self, object: &mut Value, replicas: i64) {
        set(object, &["spec", "parallelism"], json!(replicas));
    }

    /// An API server that fills in a Job's labels from its pod template's writes the Job's uid there.
    fn hub_only_labels(&self, template: &Value) -> &'static [&'static str] {
        if has_manual_selector(template) {
            &[]
        } else {
            UID_LABELS
        }
    }

    fn prune(&self, template: &mut Value) {
        remove(template, &["spec", "ttlSecondsAfterFinished"]);
        prune_metadata(
            template,
            self.hub_only_labels(template),
            self.hub_only_annotations(),
        );
        if !has_manual_selector(template) {
            remove_keys(template, &["spec", "selector", "matchLabels"], UID_LABELS);
            if at(template, SELECTOR)
                .as_object()
                .is_some_and(serde_json::Map::is_empty)
            {
                remove(template, SELECTOR);
            }
            remove_keys(template, TEMPLATE_LABELS, GENERATED_LABELS);
        }
    }

    fn needs_live(&self, _desired: &Value) -> bool {
        true
    }

    fn retain(&self, desired: &mut Value, live: &Value) {
        for path in [SELECTOR, &["spec", "manualSelector"]] {
            let live = at(live, path);
            if !live.is_null() {
                set(desired, path, live.clone());
            }
        }
        for label in GENERATED_LABELS {
            let path: Vec<_> = TEMPLATE_LABELS.iter().chain([label]).copied().collect();
            let live = at(live, &path);
            if live.is_string() {
                set(desired, &path, live.clone());
            }
        }
        if text(live, &["spec", "completionMode"]) != "Indexed"
            && let Some(completions) = completions(live)
        {
            revise_completions(desired, completions);
        }
    }

    fn reflect(&self, live: &Value) -> Option<Value> {
        status::reflect(live)
    }

    // No rule for health (Karmada reference 3.1): a Job that failed must not be moved and run again because of it.

    fn aggregate(&self, template: &Value, items: &[(&str, Option<&Value>)]) -> Option<Value> {
        status::aggregate(template, items)
    }
}

/// The number of successes that a Job needs; `None` if any success ends it (or it is no Job).
#[must_use]
pub fn completions(job: &Value) -> Option<i64> {
    int(job, &["spec", "completions"])
}

/// Sets the number of successes that a Job needs, for completions divided among clusters (Karmada reference 1.4).
pub fn revise_completions(job: &mut Value, completions: i64) {
    set(job, &["spec", "completions"], json!(completions));
}

fn has_manual_selector(job: &Value) -> bool {
    *at(job, &["spec", "manualSelector"]) == true
}
