//! The object's own status, aggregated from the reports of clusters.

use std::collections::BTreeSet;

use entourage_api::config::declarative::Merge;
use serde_json::{Map, Value, json};

use crate::json::{at, int, remove, same, set, text};

/// The rule of a status.
#[derive(Clone, Debug)]
pub(super) struct Aggregation {
    pub(super) fields: Vec<Field>,
    pub(super) observes: bool,
}

/// A field and its merge rule.
#[derive(Clone, Debug)]
pub(super) struct Field {
    pub(super) names: Vec<String>,
    pub(super) merge: Merge,
    pub(super) bad_when_true: Vec<String>,
}

/// The name of a cluster and its report.
type Items<'a> = [(&'a str, Option<&'a Value>)];

/// The maximum length of a merged message, in bytes: an API server accepts 32 KiB, which is too long for a user.
const LONGEST_MESSAGE: usize = 2048;

/// The maximum number of condition types: controllers have a few, and each is searched in every report.
const MOST_TYPES: usize = 64;

enum Next {
    Keep,
    Remove,
    Set(Value),
}

impl Aggregation {
    /// The next status; `None` if it equals the stored one. Fields without a rule are kept.
    pub(super) fn of(&self, template: &Value, items: &Items<'_>) -> Option<Value> {
        let stored = &template["status"];
        let mut status = Value::Object(stored.as_object().cloned().unwrap_or_default());
        for field in &self.fields {
            let names: Vec<_> = field.names.iter().map(String::as_str).collect();
            match field.next(&names, stored, items) {
                Next::Keep => {}
                Next::Remove => drop(remove(&mut status, &names)),
                Next::Set(value) => set(&mut status, &names, value),
            }
        }
        let generation = int(template, &["metadata", "generation"]).unwrap_or_default();
        if self.observes && is_observed_everywhere(generation, items) {
            set(&mut status, &["observedGeneration"], json!(generation));
        }
        (!same(&status, stored)).then_some(status)
    }
}

/// As for native kinds: every copy was made from the template's generation and its controller has observed it.
fn is_observed_everywhere(generation: i64, items: &Items<'_>) -> bool {
    let count = |item: &Value, name: &str| item[name].as_i64().unwrap_or_default();
    let is_current = |item: &Value| {
        count(item, "observedGeneration") >= count(item, "generation")
            && count(item, "resourceTemplateGeneration") >= generation
    };
    generation > 0 && !items.is_empty() && items.iter().all(|(_, item)| item.is_some_and(is_current))
}

impl Field {
    fn next(&self, names: &[&str], stored: &Value, items: &Items<'_>) -> Next {
        let values = || {
            let reported = items.iter().filter_map(|(_, item)| *item);
            reported
                .map(|item| at(item, names))
                .filter(|value| !value.is_null())
        };
        let has_reported = items.iter().any(|(_, item)| item.is_some());
        let or_keep = |value: Option<Value>| value.map_or(Next::Keep, Next::Set);
        let or_remove = |value: Option<Value>| match value {
            Some(value) => Next::Set(value),
            None if has_reported => Next::Remove,
            None => Next::Keep,
        };
        let stored = at(stored, names);
        match self.merge {
            Merge::Sum => {
                let sum = values().filter_map(Value::as_i64).fold(0, i64::saturating_add);
                if values().next().is_some() || !stored.is_null() {
                    Next::Set(json!(sum))
                } else {
                    Next::Keep
                }
            }
            Merge::Max => or_keep(values().filter_map(Value::as_i64).max().map(Value::from)),
            Merge::Min => or_keep(values().filter_map(Value::as_i64).min().map(Value::from)),
            Merge::Latest => {
                let latest = values().filter_map(Value::as_str).max();
                or_keep(latest.max(stored.as_str()).map(Value::from))
            }
            Merge::First => or_remove(values().next().cloned()),
            Merge::Same => {
                let first = values().next();
                let all_same = values().all(|value| Some(value) == first);
                or_remove(first.filter(|_| all_same).cloned())
            }
            Merge::Concat => {
                // Compared as text: lists come from members, and have any length.
                let (mut all, mut seen) = (Vec::new(), BTreeSet::new());
                for value in values().filter_map(Value::as_array).flatten() {
                    if seen.insert(value.to_string()) {
                        all.push(value.clone());
                    }
                }
                or_remove(Some(json!(all)).filter(|_| !all.is_empty()))
            }
            Merge::Conditions => {
                let all = self.conditions(names, items);
                or_remove(Some(json!(all)).filter(|_| !all.is_empty()))
            }
        }
    }

    /// All types that any cluster reports, in the order of their appearance. Cost: O(types × conditions).
    fn conditions(&self, names: &[&str], items: &Items<'_>) -> Vec<Value> {
        let list = |item: &'_ Value| at(item, names).as_array().cloned().unwrap_or_default();
        let reported: Vec<(&str, Option<Vec<Value>>)> = items
            .iter()
            .map(|(cluster, item)| (*cluster, item.map(list)))
            .collect();
        let mut types: Vec<&str> = Vec::new();
        for condition in reported.iter().flat_map(|(_, list)| list.iter().flatten()) {
            let type_ = text(condition, &["type"]);
            if types.len() < MOST_TYPES && !type_.is_empty() && !types.contains(&type_) {
                types.push(type_);
            }
        }
        types
            .iter()
            .map(|type_| self.condition(type_, &reported))
            .collect()
    }

    /// A condition has the worst status of all clusters; that of a cluster without a report is unknown.
    fn condition(&self, type_: &str, reported: &[(&str, Option<Vec<Value>>)]) -> Value {
        let is_bad_when_true = self.bad_when_true.iter().any(|bad| bad == type_);
        let badness = |status: &str| match status {
            "True" => {
                if is_bad_when_true {
                    2
                } else {
                    0
                }
            }
            "False" => {
                if is_bad_when_true {
                    0
                } else {
                    2
                }
            }
            _ => 1,
        };
        let absent = json!({"type": type_, "status": "Unknown", "message": "it has not reported"});
        let of_cluster = |list: &Option<Vec<Value>>| match list {
            Some(list) => list.iter().find(|each| each["type"] == type_).cloned(),
            None => Some(absent.clone()),
        };
        let all: Vec<(&str, Value)> = reported
            .iter()
            .filter_map(|(cluster, list)| Some((*cluster, of_cluster(list)?)))
            .collect();
        let status_of = |condition: &Value| match text(condition, &["status"]) {
            known @ ("True" | "False") => known.to_owned(),
            _ => "Unknown".to_owned(),
        };
        let mut worst: Option<(&Value, i32)> = None;
        for (_, condition) in &all {
            let bad = badness(text(condition, &["status"]));
            if worst.is_none_or(|(_, most)| bad > most) {
                worst = Some((condition, bad));
            }
        }
        let worst = worst.map_or(&Value::Null, |(condition, _)| condition);
        let mut merged = Map::new();
        merged.insert("type".to_owned(), json!(type_));
        merged.insert("status".to_owned(), json!(status_of(worst)));
        let reason = Some(text(worst, &["reason"])).filter(|reason| !reason.is_empty());
        merged.insert("reason".to_owned(), json!(reason.unwrap_or("Aggregated")));
        merged.insert("message".to_owned(), json!(message(&all)));
        let times = all
            .iter()
            .map(|(_, condition)| text(condition, &["lastTransitionTime"]));
        if let Some(latest) = times.filter(|time| !time.is_empty()).max() {
            merged.insert("lastTransitionTime".to_owned(), json!(latest));
        }
        Value::Object(merged)
    }
}

/// The message of each cluster, after its name, up to the maximum length.
fn message(all: &[(&str, Value)]) -> String {
    let mut message = String::new();
    for (cluster, condition) in all {
        let cluster_message = text(condition, &["message"]);
        let cluster_message = if cluster_message.is_empty() {
            text(condition, &["status"])
        } else {
            cluster_message
        };
        let separator = if message.is_empty() { "" } else { "; " };
        let more = format!("{separator}{cluster}: {cluster_message}");
        let room = LONGEST_MESSAGE.saturating_sub(message.len());
        if more.len() > room {
            message.push_str(&more[..more.floor_char_boundary(room)]);
            message.push('…');
            break;
        }
        message.push_str(&more);
    }
    message
}
