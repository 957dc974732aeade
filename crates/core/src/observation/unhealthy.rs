//! The reason why an object is not healthy, from its own status.

use serde_json::Value;

/// The longest reason, in characters.
const LONGEST: usize = 256;

/// Conditions that report a problem, with the status they then have; the first that matches counts.
const REPORTING: &[(&str, &str)] = &[
    ("ReplicaFailure", "True"),
    ("Failed", "True"),
    ("Progressing", "False"),
    ("Stalled", "True"),
    ("Available", "False"),
    ("Ready", "False"),
];

/// Pairs of desired and ready counters, of the kinds that have them.
const COUNTERS: &[(&str, &str)] = &[
    ("/status/desiredNumberScheduled", "/status/numberReady"),
    ("/spec/replicas", "/status/readyReplicas"),
];

/// Returns the counts first, then the condition that reports the problem, else the phase. Empty if the status has none of them.
///
/// Cost: O(conditions).
pub(super) fn reason(object: &Value) -> String {
    let mut parts: Vec<String> = counts(object).into_iter().collect();
    parts.extend(failure_reason(object));
    if parts.is_empty() {
        parts.extend(
            object["status"]["phase"]
                .as_str()
                .map(|phase| format!("phase {phase}")),
        );
    }
    let text = parts.join(", ");
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

fn counts(object: &Value) -> Option<String> {
    let number = |path: &str| object.pointer(path).and_then(Value::as_i64);
    COUNTERS.iter().find_map(|(wanted, ready)| {
        let wanted = number(wanted)?;
        Some(format!("{}/{wanted} ready", number(ready).unwrap_or(0)))
    })
}

fn failure_reason(object: &Value) -> Option<String> {
    let all = object["status"]["conditions"].as_array()?;
    let find = |(type_, status): &(&str, &str)| {
        let says_so = |each: &&Value| each["type"] == *type_ && each["status"] == *status;
        all.iter().find(says_so)
    };
    let first = REPORTING.iter().find_map(find)?;
    let text = |field: &str| first[field].as_str().unwrap_or_default();
    let words: Vec<&str> = [text("reason"), text("message")]
        .into_iter()
        .filter(|each| !each.is_empty())
        .collect();
    Some(if words.is_empty() {
        format!("{} is {}", text("type"), text("status"))
    } else {
        words.join(": ")
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn counts_come_first_and_the_gravest_condition_follows() {
        let deployment = json!({
            "spec": {"replicas": 3},
            "status": {"conditions": [
                {"type": "Available", "status": "False", "reason": "MinimumReplicasUnavailable", "message": "too few"},
                {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "timed out"},
            ]},
        });
        assert_eq!(
            reason(&deployment),
            "0/3 ready, ProgressDeadlineExceeded: timed out"
        );
        let daemons = json!({"status": {"desiredNumberScheduled": 2, "numberReady": 1}});
        assert_eq!(reason(&daemons), "1/2 ready");
        assert_eq!(reason(&json!({"status": {"phase": "Pending"}})), "phase Pending");
        assert_eq!(reason(&json!({})), "");
    }
}
