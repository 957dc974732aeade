//! The known changes of an object, in order of time: from its metadata, its binding and its Events. The hub keeps no other
//! history: of each condition the last transition, of each manager of fields its last write, and Events for as long as it keeps them.

use serde::Serialize;
use serde_json::Value;

use crate::object::Time;

/// One change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// Its time as recorded, RFC 3339.
    pub time: String,
    /// The record that it is from.
    pub source: Source,
    /// The object whose record it is: `Deployment web`, `ResourceBinding web-deployment`.
    pub object: String,
    /// The change: a reason, a condition with its status, a manager.
    pub what: String,
    /// The message; empty if there is none.
    pub message: String,
}

/// The record of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Source {
    /// `metadata.creationTimestamp` and `metadata.deletionTimestamp`.
    Metadata,
    /// `metadata.managedFields`.
    ManagedFields,
    /// `status.conditions`.
    Condition,
    /// `spec.taints` of a Cluster.
    Taint,
    /// `status.lastScheduledTime` and `spec.rescheduleTriggeredAt` of a binding.
    Scheduling,
    /// `spec.gracefulEvictionTasks` of a binding.
    Eviction,
    /// `status.aggregatedStatus` of a binding.
    Health,
    /// An Event.
    Event,
}

impl Source {
    /// Its name in the output.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Metadata => "metadata",
            Self::ManagedFields => "managedFields",
            Self::Condition => "condition",
            Self::Taint => "taint",
            Self::Scheduling => "scheduling",
            Self::Eviction => "eviction",
            Self::Health => "health",
            Self::Event => "event",
        }
    }
}

/// The changes of an object and its binding, oldest first. Records without a time that can be read are left out.
///
/// Cost: O(records × log records).
#[must_use]
pub fn timeline(object: &Value, binding: Option<&Value>, events: &[Value]) -> Vec<Entry> {
    let mut all = of_object(object);
    if let Some(binding) = binding {
        all.extend(of_object(binding));
        all.extend(of_binding(binding));
    }
    all.extend(events.iter().flat_map(of_event));
    let mut dated: Vec<(Time, Entry)> = all
        .into_iter()
        .filter_map(|entry| Some((parsed(&entry.time)?, entry)))
        .collect();
    // A stable sort: records of one time stay in the order of their sources.
    dated.sort_by_key(|(time, _)| *time);
    dated.into_iter().map(|(_, entry)| entry).collect()
}

fn of_object(object: &Value) -> Vec<Entry> {
    let name = title(object);
    let entry = |time: &Value, source: Source, what: String, message: &Value| Entry {
        time: text(time),
        source,
        object: name.clone(),
        what,
        message: text(message),
    };
    let metadata = &object["metadata"];
    let none = Value::Null;
    let mut all = vec![
        entry(
            &metadata["creationTimestamp"],
            Source::Metadata,
            "created".to_owned(),
            &none,
        ),
        entry(
            &metadata["deletionTimestamp"],
            Source::Metadata,
            "deletion requested".to_owned(),
            &none,
        ),
    ];
    for fields in items(&metadata["managedFields"]) {
        let subresource = match text(&fields["subresource"]).as_str() {
            "" => String::new(),
            subresource => format!(" of {subresource}"),
        };
        let what = format!(
            "{}{subresource} by {}",
            text(&fields["operation"]),
            text(&fields["manager"])
        );
        all.push(entry(&fields["time"], Source::ManagedFields, what, &none));
    }
    for condition in items(&object["status"]["conditions"]) {
        let reason = match text(&condition["reason"]).as_str() {
            "" => String::new(),
            reason => format!(" ({reason})"),
        };
        let what = format!(
            "{}={}{reason}",
            text(&condition["type"]),
            text(&condition["status"])
        );
        let time = &condition["lastTransitionTime"];
        all.push(entry(time, Source::Condition, what, &condition["message"]));
    }
    for taint in items(&object["spec"]["taints"]) {
        let value = match text(&taint["value"]).as_str() {
            "" => String::new(),
            value => format!("={value}"),
        };
        let what = format!(
            "tainted {}{value}:{}",
            text(&taint["key"]),
            text(&taint["effect"])
        );
        all.push(entry(&taint["timeAdded"], Source::Taint, what, &none));
    }
    all
}

fn of_binding(binding: &Value) -> Vec<Entry> {
    let name = title(binding);
    let entry = |time: &Value, source: Source, what: String, message: String| Entry {
        time: text(time),
        source,
        object: name.clone(),
        what,
        message,
    };
    let (spec, status) = (&binding["spec"], &binding["status"]);
    let clusters = items(&spec["clusters"]).map(|target| match target["replicas"].as_i64() {
        Some(replicas) if replicas > 0 => format!("{} ({replicas})", text(&target["name"])),
        _ => text(&target["name"]),
    });
    let clusters: Vec<String> = clusters.collect();
    let mut all = vec![
        entry(
            &status["lastScheduledTime"],
            Source::Scheduling,
            "last scheduled".to_owned(),
            format!("now on {}", clusters.join(", ")),
        ),
        entry(
            &spec["rescheduleTriggeredAt"],
            Source::Scheduling,
            "rescheduling triggered".to_owned(),
            String::new(),
        ),
    ];
    for task in items(&spec["gracefulEvictionTasks"]) {
        let what = format!(
            "eviction from {} ({})",
            text(&task["fromCluster"]),
            text(&task["reason"])
        );
        let message = match (text(&task["message"]), text(&task["producer"])) {
            (message, producer) if message.is_empty() => format!("by {producer}"),
            (message, _) => message,
        };
        all.push(entry(&task["creationTimestamp"], Source::Eviction, what, message));
    }
    for item in items(&status["aggregatedStatus"]) {
        let what = format!("unhealthy on {}", text(&item["clusterName"]));
        all.push(entry(
            &item["unhealthySince"],
            Source::Health,
            what,
            String::new(),
        ));
    }
    all
}

/// The last time of an Event, and the first one if it was repeated.
fn of_event(event: &Value) -> Vec<Entry> {
    let involved = &event["involvedObject"];
    let count = event["series"]["count"]
        .as_i64()
        .or_else(|| event["count"].as_i64());
    let count = count.unwrap_or(1);
    let times = [
        &event["series"]["lastObservedTime"],
        &event["lastTimestamp"],
        &event["eventTime"],
        &event["metadata"]["creationTimestamp"],
    ];
    let last = times.into_iter().map(text).find(|time| !time.is_empty());
    let last = last.unwrap_or_default();
    let first = match text(&event["firstTimestamp"]) {
        time if time.is_empty() => text(&event["eventTime"]),
        time => time,
    };
    let entry = |time: String, what: String| Entry {
        time,
        source: Source::Event,
        object: format!("{} {}", text(&involved["kind"]), text(&involved["name"])),
        what,
        message: text(&event["message"]),
    };
    let reason = text(&event["reason"]);
    if count > 1 && !first.is_empty() && first != last {
        let repeated = format!("{reason} (last of {count})");
        return vec![
            entry(first, format!("{reason} (first of {count})")),
            entry(last, repeated),
        ];
    }
    vec![entry(last, reason)]
}

fn title(object: &Value) -> String {
    format!("{} {}", text(&object["kind"]), text(&object["metadata"]["name"]))
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn parsed(time: &str) -> Option<Time> {
    let time: k8s_openapi::apimachinery::pkg::apis::meta::v1::Time =
        serde_json::from_value(Value::from(time)).ok()?;
    Some(Time::from_k8s(&time))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// `time source object: what: message`, without the day.
    fn lines(all: &[Entry]) -> Vec<String> {
        let line = |entry: &Entry| {
            let time = entry.time.trim_start_matches("2026-01-01T").trim_end_matches('Z');
            let (source, object, what) = (entry.source.word(), &entry.object, &entry.what);
            format!("{time} {source} {object}: {what}: {}", entry.message)
        };
        all.iter().map(line).collect()
    }

    #[test]
    fn records_of_all_sources_come_in_order_of_time() {
        let object = json!({"kind": "Deployment", "metadata": {"name": "web", "creationTimestamp": "2026-01-01T00:00:00Z",
            "managedFields": [{"manager": "kubectl", "operation": "Apply", "time": "2026-01-01T00:05:00Z"},
                {"manager": "entourage", "operation": "Update", "subresource": "status", "time": "2026-01-01T00:06:00Z"}]},
            "status": {"conditions": [{"type": "Available", "status": "True", "lastTransitionTime": "2026-01-01T00:03:00Z",
                "message": "up"}]}});
        let binding = json!({"kind": "ResourceBinding", "metadata": {"name": "web-deployment",
                "creationTimestamp": "2026-01-01T00:00:01Z"},
            "spec": {"clusters": [{"name": "m1", "replicas": 2}, {"name": "m2"}],
                "gracefulEvictionTasks": [{"fromCluster": "m3", "reason": "TaintUntolerated", "producer": "TaintManager",
                    "creationTimestamp": "2026-01-01T00:04:00Z"}]},
            "status": {"lastScheduledTime": "2026-01-01T00:04:01Z",
                "conditions": [{"type": "Scheduled", "status": "True", "reason": "Success",
                    "lastTransitionTime": "2026-01-01T00:00:02Z", "message": "Scheduled."}],
                "aggregatedStatus": [{"clusterName": "m1", "unhealthySince": "2026-01-01T00:07:00Z"}, {"clusterName": "m2"}]}});
        let events = [
            json!({"reason": "SyncWorkFailed", "message": "refused", "count": 3, "involvedObject": {"kind": "Deployment",
                "name": "web"}, "firstTimestamp": "2026-01-01T00:02:00Z", "lastTimestamp": "2026-01-01T00:08:00Z"}),
            json!({"reason": "Scheduled", "eventTime": "2026-01-01T00:01:00.123456Z",
                "involvedObject": {"kind": "ResourceBinding", "name": "web-deployment"}}),
            json!({"reason": "Undated"}),
        ];
        let wanted = [
            "00:00:00 metadata Deployment web: created: ",
            "00:00:01 metadata ResourceBinding web-deployment: created: ",
            "00:00:02 condition ResourceBinding web-deployment: Scheduled=True (Success): Scheduled.",
            "00:01:00.123456 event ResourceBinding web-deployment: Scheduled: ",
            "00:02:00 event Deployment web: SyncWorkFailed (first of 3): refused",
            "00:03:00 condition Deployment web: Available=True: up",
            "00:04:00 eviction ResourceBinding web-deployment: eviction from m3 (TaintUntolerated): by TaintManager",
            "00:04:01 scheduling ResourceBinding web-deployment: last scheduled: now on m1 (2), m2",
            "00:05:00 managedFields Deployment web: Apply by kubectl: ",
            "00:06:00 managedFields Deployment web: Update of status by entourage: ",
            "00:07:00 health ResourceBinding web-deployment: unhealthy on m1: ",
            "00:08:00 event Deployment web: SyncWorkFailed (last of 3): refused",
        ];
        assert_eq!(lines(&timeline(&object, Some(&binding), &events)), wanted);
    }

    #[test]
    fn a_cluster_has_its_taints() {
        let cluster = json!({"kind": "Cluster", "metadata": {"name": "m1"}, "spec": {"taints": [
            {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"},
            {"key": "k", "effect": "NoExecute", "timeAdded": "2026-01-01T00:01:00Z"},
            {"key": "dedicated", "value": "gpu", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:30Z"}]}});
        assert_eq!(
            lines(&timeline(&cluster, None, &[])),
            [
                "00:00:30 taint Cluster m1: tainted dedicated=gpu:NoExecute: ",
                "00:01:00 taint Cluster m1: tainted k:NoExecute: "
            ]
        );
    }

    #[test]
    fn an_object_that_is_gone_has_its_events() {
        let object = json!({"kind": "Deployment", "metadata": {"name": "web"}});
        let event = json!({"reason": "Deleted", "lastTimestamp": "2026-01-01T00:02:00Z", "message": "gone",
            "involvedObject": {"kind": "Deployment", "name": "web"}});
        assert_eq!(
            lines(&timeline(&object, None, &[event])),
            ["00:02:00 event Deployment web: Deleted: gone"]
        );
    }
}
