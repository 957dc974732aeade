//! Rules of a policy's failover.

use std::time::Duration;

use entourage_api::keys::{TRUE, annotation};
use serde_json::Value;

use super::{Problem, Request, is_label_key, is_unset, items, text};
use crate::{failover::home::LONGEST, interpreter::declarative::json_path, object::duration};

/// How many seconds a copy stays while its successor is not healthy. Source: Karmada reference 6.1.
const GRACE: i64 = 600;

fn application(object: &Value) -> &Value {
    &object["spec"]["failover"]["application"]
}

fn is_graceful(application: &Value) -> bool {
    matches!(text(&application["purgeMode"]), "" | "Gracefully")
}

/// Who leaves gracefully has ten minutes for it.
pub(super) fn fill_grace(object: &mut Value, _: &Request<'_>) {
    let Some(application) = object.pointer_mut("/spec/failover/application") else {
        return;
    };
    if application.is_object() && is_graceful(application) && application["gracePeriodSeconds"].is_null() {
        application["gracePeriodSeconds"] = GRACE.into();
    }
}

/// A grace that was filled in, or given, for Gracefully goes with it: `kubectl apply` of a file that turns to another mode
/// leaves it there.
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

/// Dependencies move only where that is asked for.
pub(super) fn with_dependencies(object: &Value, warnings: &mut Vec<Problem>) {
    if !application(object).is_null() && object["spec"]["propagateDeps"] != Value::Bool(true) {
        warnings.push(Problem::new(
            "spec.propagateDeps",
            "failover.application moves the workload without its dependencies",
            "set propagateDeps: true, unless the dependencies are propagated to every cluster that the workload may move to",
        ));
    }
}

/// Times that can be.
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

/// What of the old status is handed on becomes labels.
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

/// A path that is not read hands nothing on. A warning: Karmada takes text around the braces, and more.
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

/// When an evicted workload goes back.
pub(super) fn fail_back(object: &Value, problems: &mut Vec<Problem>) {
    let wait = &object["metadata"]["annotations"][annotation::FAIL_BACK];
    let is_fine = |wait: Duration| wait.as_millis() <= u128::from(LONGEST.unsigned_abs());
    if !wait.is_null() && !duration(text(wait)).is_some_and(is_fine) {
        problems.push(Problem::new(
            format!("metadata.annotations[{}]", annotation::FAIL_BACK),
            format!("{} is not a duration of at most a year", text(wait)),
            "say for how long the cluster must have been ready: 0s, 30s, 10m, 1h",
        ));
    }
}

/// Whether an evicted workload waits for its data.
pub(super) fn wait_for_data(object: &Value, problems: &mut Vec<Problem>) {
    let wish = &object["metadata"]["annotations"][annotation::WAIT_FOR_DATA];
    if !wish.is_null() && !matches!(text(wish), "true" | "false") {
        problems.push(Problem::new(
            format!("metadata.annotations[{}]", annotation::WAIT_FOR_DATA),
            format!("{} is neither true nor false", text(wish)),
            "set \"true\", or remove it",
        ));
    }
}

/// Claims that are not taken along are not known to be needed.
pub(super) fn data_without_claims(object: &Value, warnings: &mut Vec<Problem>) {
    let wish = &object["metadata"]["annotations"][annotation::WAIT_FOR_DATA];
    if *wish == TRUE && object["spec"]["propagateDeps"] != true {
        warnings.push(Problem::new(
            format!("metadata.annotations[{}]", annotation::WAIT_FOR_DATA),
            "it has no effect without propagateDeps: true",
            "set it, so that the claims of a workload are propagated with it",
        ));
    }
}
