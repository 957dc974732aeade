//! Rules of a policy's failover.

use std::time::Duration;

use entourage_api::keys::{TRUE, annotation};
use entourage_core::failover::LONGEST_FAIL_BACK;
use entourage_interpreter::declarative::json_path;
use entourage_model::{
    object::duration,
    problem::{Problem, is_label_key},
};
use serde_json::Value;

use crate::request::{Request, is_unset, items, text};

/// The default grace period of a graceful eviction, in seconds. Source: Karmada reference 6.1.
const GRACE: i64 = 600;

fn application(object: &Value) -> &Value {
    &object["spec"]["failover"]["application"]
}

fn is_graceful(application: &Value) -> bool {
    matches!(text(&application["purgeMode"]), "" | "Gracefully")
}

/// The default grace period of a graceful eviction is ten minutes.
pub(super) fn fill_grace(object: &mut Value, _: &Request<'_>) {
    let Some(application) = object.pointer_mut("/spec/failover/application") else {
        return;
    };
    if application.is_object() && is_graceful(application) && application["gracePeriodSeconds"].is_null() {
        application["gracePeriodSeconds"] = GRACE.into();
    }
}

/// Removes the grace period that was set for Gracefully when purgeMode changes: `kubectl apply` of a file with another mode
/// leaves it.
pub(super) fn drop_grace(object: &mut Value, request: &Request<'_>) {
    let Some(old) = request.old.map(application) else {
        return;
    };
    let Some(new) = object.pointer_mut("/spec/failover/application") else {
        return;
    };
    let was_graceful = old.is_object() && is_graceful(old);
    if was_graceful
        && new.is_object()
        && !is_graceful(new)
        && new["gracePeriodSeconds"] == old["gracePeriodSeconds"]
        && let Some(new) = new.as_object_mut()
    {
        new.remove("gracePeriodSeconds");
    }
}

/// Dependencies are propagated to the new cluster only if propagateDeps is true.
pub(super) fn with_dependencies(object: &Value, warnings: &mut Vec<Problem>) {
    if !application(object).is_null() && object["spec"]["propagateDeps"] != Value::Bool(true) {
        warnings.push(Problem::new(
            "spec.propagateDeps",
            "failover.application moves the workload without its dependencies",
            "set propagateDeps: true, unless the dependencies are propagated to every cluster that the workload may move to",
        ));
    }
}

/// The durations are valid.
pub(super) fn times(object: &Value, problems: &mut Vec<Problem>) {
    const PATH: &str = "spec.failover.application";
    let application = application(object);
    let toleration = application["decisionConditions"]["tolerationSeconds"].as_i64();
    if let Some(seconds) = toleration.filter(|seconds| *seconds < 0) {
        problems.push(Problem::new(
            format!("{PATH}.decisionConditions.tolerationSeconds"),
            format!("{seconds} is negative"),
            "give a number of seconds from 0",
        ));
    }
    let Some(grace) = application["gracePeriodSeconds"].as_i64() else {
        return;
    };
    let field = format!("{PATH}.gracePeriodSeconds");
    if !is_graceful(application) {
        problems.push(Problem::new(
            field,
            format!(
                "it has no effect with purgeMode {}",
                text(&application["purgeMode"])
            ),
            "leave it out, or set purgeMode to Gracefully",
        ));
    } else if grace <= 0 {
        problems.push(Problem::new(
            field,
            format!("{grace} is not a valid period"),
            "give a number of seconds from 1",
        ));
    }
}

/// Preserved values of the old status become labels, so their keys must be valid.
pub(super) fn aliases(object: &Value, problems: &mut Vec<Problem>) {
    for part in ["application", "cluster"] {
        let rules = &object["spec"]["failover"][part]["statePreservation"]["rules"];
        for (at, rule) in items(rules).iter().enumerate() {
            let path = format!("spec.failover.{part}.statePreservation.rules[{at}]");
            let alias = text(&rule["aliasLabelName"]);
            if !is_label_key(alias) {
                problems.push(Problem::new(
                    format!("{path}.aliasLabelName"),
                    format!("{alias:?} cannot be the key of a label"),
                    "use letters, digits, '-', '_' and '.', at most 63, behind a DNS name and '/' if it has a prefix",
                ));
            }
            if is_unset(&rule["jsonPath"]) {
                problems.push(Problem::new(
                    format!("{path}.jsonPath"),
                    "it is empty",
                    "give the path of the value in the status, such as {.currentRevision}",
                ));
            }
        }
    }
}

/// An invalid path preserves nothing. A warning: Karmada accepts text around the braces, and more.
pub(super) fn paths(object: &Value, warnings: &mut Vec<Problem>) {
    for part in ["application", "cluster"] {
        let rules = &object["spec"]["failover"][part]["statePreservation"]["rules"];
        for (at, rule) in items(rules).iter().enumerate() {
            let path = text(&rule["jsonPath"]);
            if path.is_empty() {
                continue;
            }
            if let Err(why) = json_path::check(path) {
                warnings.push(Problem::new(
                    format!("spec.failover.{part}.statePreservation.rules[{at}].jsonPath"),
                    format!("no state is preserved by it: {why}"),
                    "write it as {.field.sub}, {.list[0].sub} or {.list[?(@.type=='x')].sub}",
                ));
            }
        }
    }
}

/// The fail-back annotation is a valid duration.
pub(super) fn fail_back(object: &Value, problems: &mut Vec<Problem>) {
    let wait = &object["metadata"]["annotations"][annotation::FAIL_BACK];
    let is_fine = |wait: Duration| wait.as_millis() <= u128::from(LONGEST_FAIL_BACK.unsigned_abs());
    if !wait.is_null() && !duration(text(wait)).is_some_and(is_fine) {
        problems.push(Problem::new(
            format!("metadata.annotations[{}]", annotation::FAIL_BACK),
            format!("{} is not a duration of at most a year", text(wait)),
            "set how long the cluster must have been ready: 0s, 30s, 10m, 1h",
        ));
    }
}

/// The annotation to wait for data is true or false.
pub(super) fn wait_for_data(object: &Value, problems: &mut Vec<Problem>) {
    let value = &object["metadata"]["annotations"][annotation::WAIT_FOR_DATA];
    if !value.is_null() && !matches!(text(value), "true" | "false") {
        problems.push(Problem::new(
            format!("metadata.annotations[{}]", annotation::WAIT_FOR_DATA),
            format!("{} is neither true nor false", text(value)),
            "set \"true\", or remove it",
        ));
    }
}

/// Claims that are not propagated as dependencies cannot be waited for.
pub(super) fn data_without_claims(object: &Value, warnings: &mut Vec<Problem>) {
    let value = &object["metadata"]["annotations"][annotation::WAIT_FOR_DATA];
    if *value == TRUE && object["spec"]["propagateDeps"] != true {
        warnings.push(Problem::new(
            format!("metadata.annotations[{}]", annotation::WAIT_FOR_DATA),
            "it has no effect without propagateDeps: true",
            "set it, so that the claims of a workload are propagated with it",
        ));
    }
}
