//! `HorizontalPodAutoscalers`, in the two versions of one stored object: stored as `autoscaling/v2`.

use serde_json::{Value, json};

use super::workloads;
use crate::{
    object::{
        Object,
        tree::{below, default, list, made, object, within},
    },
    resource::{Rules, Surroundings},
    status::{FieldError, Result},
};

mod convert;
mod validate;

/// The rules of autoscalers, in one of their versions.
#[derive(Debug)]
pub(super) struct Autoscalers {
    /// Whether it is `autoscaling/v1`, which says less.
    pub(super) first: bool,
}

impl Rules for Autoscalers {
    fn defaults(&self, object: &mut Object) {
        default(made(object, "spec"), "minReplicas", 1);
        if self.first {
            workloads::shown_counts(object, &["currentReplicas", "desiredReplicas"]);
        } else {
            second_defaults(made(object, "spec"));
            shown_status(object);
        }
    }

    fn has_status(&self) -> bool {
        true
    }

    fn prepare_create(&self, object: &mut Object, _around: &dyn Surroundings) -> Result<()> {
        if self.first {
            workloads::fresh_status(object, &["currentReplicas", "desiredReplicas"]);
        } else {
            object.insert("status".to_owned(), json!({}));
            shown_status(object);
        }
        Ok(())
    }

    fn validate(&self, object: &Object) -> Vec<FieldError> {
        let mut object = object.clone();
        self.to_stored(&mut object);
        validate::spec(below(&object, "spec"))
    }

    fn validate_update(&self, subresource: &str, new: &Object, _old: &Object) -> Vec<FieldError> {
        if subresource == "status" {
            return workloads::counts(below(new, "status"), &["currentReplicas", "desiredReplicas"], &[]);
        }
        self.validate(new)
    }

    fn show_stored(&self, object: &mut Object) {
        if self.first {
            convert::to_first(object);
        }
    }

    fn to_stored(&self, object: &mut Object) {
        if self.first {
            convert::to_second(object);
            second_defaults(made(object, "spec"));
            shown_status(object);
        }
    }
}

/// A status of `v2` always shows these.
fn shown_status(object: &mut Object) {
    workloads::shown_counts(object, &["desiredReplicas"]);
    let status = made(object, "status");
    status.entry("currentMetrics").or_insert(Value::Null);
}

fn second_defaults(spec: &mut Object) {
    if list(spec, "metrics").is_empty() {
        let cpu = json!([{"type": "Resource", "resource":
            {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}]);
        spec.insert("metrics".to_owned(), cpu);
    }
    if let Some(behavior) = object(spec, "behavior")
        && behavior.is_empty()
    {
        spec.remove("behavior");
    }
    within(spec, "behavior", |behavior| {
        let percent = || json!({"type": "Percent", "value": 100, "periodSeconds": 15});
        let pods = json!({"type": "Pods", "value": 4, "periodSeconds": 15});
        rules(behavior, "scaleUp", &json!([pods, percent()]), Some(0));
        rules(behavior, "scaleDown", &json!([percent()]), None);
    });
}

/// Fills in how fast to scale in one direction.
fn rules(behavior: &mut Object, key: &str, policies: &Value, window: Option<i64>) {
    let rules = made(behavior, key);
    default(rules, "selectPolicy", "Max");
    if let Some(window) = window {
        default(rules, "stabilizationWindowSeconds", window);
    }
    if list(rules, "policies").is_empty() {
        rules.insert("policies".to_owned(), policies.clone());
    }
}
