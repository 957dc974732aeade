//! The status of a Job, of each copy and aggregated.
//!
//! An API server from 1.31 on refuses a Job status that contradicts itself or the one before: counters that go back, a start
//! time that changes, Complete without SuccessCriteriaMet, Failed without FailureTarget, a finished Job with active pods, a
//! completion time without Complete. The statuses that are computed here comply with that.

use serde_json::{Map, Value, json};

use crate::{
    counters::count,
    json::{items, same},
};

const COUNTERS: [&str; 3] = ["active", "succeeded", "failed"];

/// Source: Karmada reference 1.6, 3.1. Zero counters are left out, as an API server does.
pub(super) fn reflect(live: &Value) -> Option<Value> {
    let status = live["status"].as_object()?;
    let mut reflected = Map::new();
    for field in COUNTERS {
        if count(&live["status"], field) != 0 {
            reflected.insert(field.to_owned(), json!(count(&live["status"], field)));
        }
    }
    for field in ["conditions", "startTime", "completionTime"] {
        if let Some(value) = status.get(field).filter(|value| !value.is_null()) {
            reflected.insert(field.to_owned(), value.clone());
        }
    }
    Some(Value::Object(reflected))
}

/// The Job as a whole: counters are sums, it is Complete when it is in every cluster, and Failed when it has ended
/// in every cluster and failed in one. Once finished, nothing changes any more. Without a cluster the status stays.
///
/// Times come from the members: it started when the first did (written once all have), it completed when the last did.
/// Different from Karmada: Failed waits for the other clusters to end, because pods may still be active there.
pub(super) fn aggregate(template: &Value, items: &[(&str, Option<&Value>)]) -> Option<Value> {
    let stored = &template["status"];
    if items.is_empty() || outcome(stored).is_some() {
        return None;
    }
    let mut status = stored.as_object().cloned().unwrap_or_default();
    for field in COUNTERS {
        let sum = items
            .iter()
            .filter_map(|(_, item)| *item)
            .map(|item| count(item, field));
        let sum = sum.fold(0, i64::saturating_add);
        // A cluster that leaves takes its counters with it; the whole must not count back.
        let sum = if field == "active" {
            sum
        } else {
            sum.max(count(stored, field))
        };
        put(&mut status, field, (sum != 0).then(|| json!(sum)));
    }

    let times = |field| {
        items
            .iter()
            .filter_map(move |(_, item)| item.and_then(|item| item[field].as_str()))
    };
    let outcomes: Vec<_> = items
        .iter()
        .map(|(name, item)| (*name, item.and_then(outcome)))
        .collect();
    let ended = outcomes.iter().all(|(_, outcome)| outcome.is_some());
    let all_started = times("startTime").count() == items.len();
    if status.get("startTime").is_none_or(Value::is_null) && (all_started || ended) {
        put(
            &mut status,
            "startTime",
            times("startTime").min().map(|time| json!(time)),
        );
    }
    if ended {
        put(&mut status, "active", None);
        let failed: Vec<_> = outcomes
            .iter()
            .filter(|(_, outcome)| *outcome == Some(FAILED))
            .map(|(name, _)| *name)
            .collect();
        let conditions = if failed.is_empty() && !is_true(stored, FAILURE_TARGET) {
            put(
                &mut status,
                "completionTime",
                times("completionTime").max().map(|time| json!(time)),
            );
            let at = last_transition(items, COMPLETE);
            let reached = "every cluster's Job has met its success criteria";
            [
                condition(SUCCESS_CRITERIA_MET, "CompletionsReached", reached, at),
                condition(COMPLETE, "Completed", "every cluster's Job is complete", at),
            ]
        } else {
            let at = last_transition(items, FAILED);
            let message = format!("the Job failed in {}", failed.join(", "));
            [
                condition(FAILURE_TARGET, "JobFailed", &message, at),
                condition(FAILED, "JobFailed", &message, at),
            ]
        };
        let kept = conditions_of(stored)
            .iter()
            .filter(|old| !conditions.iter().any(|new| new["type"] == old["type"]));
        let all: Vec<_> = kept.chain(&conditions).cloned().collect();
        put(&mut status, "conditions", Some(json!(all)));
    }
    let status = Value::Object(status);
    (!same(&status, stored)).then_some(status)
}

const COMPLETE: &str = "Complete";
const FAILED: &str = "Failed";
const FAILURE_TARGET: &str = "FailureTarget";
const SUCCESS_CRITERIA_MET: &str = "SuccessCriteriaMet";

/// The end of a Job: [`COMPLETE`] or [`FAILED`]; `None` while it runs.
fn outcome(status: &Value) -> Option<&'static str> {
    [COMPLETE, FAILED].into_iter().find(|each| is_true(status, each))
}

fn is_true(status: &Value, condition: &str) -> bool {
    conditions_of(status)
        .iter()
        .any(|each| each["type"] == condition && each["status"] == "True")
}

fn conditions_of(status: &Value) -> &[Value] {
    items(status, &["conditions"])
}

/// The time when the last cluster's condition became true, if any has one; RFC 3339 in UTC sorts by time.
fn last_transition<'a>(items: &[(&str, Option<&'a Value>)], condition: &str) -> Option<&'a str> {
    let all = items.iter().filter_map(|(_, item)| *item).flat_map(conditions_of);
    all.filter(|each| each["type"] == condition)
        .filter_map(|each| each["lastTransitionTime"].as_str())
        .max()
}

fn condition(kind: &str, reason: &str, message: &str, at: Option<&str>) -> Value {
    let mut condition = json!({"type": kind, "status": "True", "reason": reason, "message": message});
    if let Some(at) = at {
        condition["lastProbeTime"] = json!(at);
        condition["lastTransitionTime"] = json!(at);
    }
    condition
}

fn put(status: &mut Map<String, Value>, field: &str, value: Option<Value>) {
    match value {
        Some(value) => status.insert(field.to_owned(), value),
        None => status.remove(field),
    };
}
