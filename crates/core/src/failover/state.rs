//! State preservation: values of the old copy's status become labels of its replacement.
//!
//! An eviction task ends when the old copy is gone; with purgeMode Directly that is before the new one is written. So the labels
//! are stored on the binding, by cluster, as long as the workload is scheduled there.
//!
//! Source: Karmada reference 4.4; differences are listed in docs/differences.md.

use std::collections::BTreeMap;

use entourage_api::{
    policy::{StatePreservation, StatePreservationRule},
    work::{ResourceBinding, TargetCluster},
};
use serde_json::Value;

use super::records::Exchange;
use crate::{
    interpreter::declarative::json_path,
    object::Str,
    stored_binding::{Labels, is_label_value, preserved_labels},
};

/// Returns the labels preserved from a copy's status, and a message without values about those that could not be.
///
/// `cluster`: the one evicted from. A label that this copy itself got, and whose value its status lacks now, is preserved again.
/// Cost: O(rules × size of the status).
pub(super) fn preserved(
    held: &ResourceBinding,
    cluster: &str,
    rules: Option<&StatePreservation>,
) -> (BTreeMap<String, String>, Vec<String>) {
    let Some(rules) = rules else {
        return Default::default();
    };
    let earlier = preserved_labels(held).remove(cluster).unwrap_or_default();
    let status = held.status.iter().flat_map(|status| &status.aggregated_status);
    let status = status
        .filter(|item| item.cluster_name == cluster)
        .find_map(|item| item.status.as_ref());
    let (mut labels, mut lacks) = (BTreeMap::new(), Vec::new());
    for rule in &rules.rules {
        let alias = rule.alias_label_name.as_str();
        match read(rule, status) {
            Ok(value) => {
                labels.insert(alias.to_owned(), value);
            }
            Err(why) => match earlier.get(alias) {
                Some(value) => {
                    labels.insert(alias.to_owned(), value.to_string());
                }
                None => lacks.push(format!("{alias} is not preserved, because {why}")),
            },
        }
    }
    (labels, lacks)
}

fn read(rule: &StatePreservationRule, status: Option<&Value>) -> Result<String, String> {
    let path = &rule.json_path;
    let status = status.ok_or("the status of the copy is unknown")?;
    let found = json_path::read(path, status)?;
    let value = match &found[..] {
        [] => return Err(format!("{path} was not found in the status")),
        [Value::String(text)] => text.clone(),
        [value @ (Value::Number(_) | Value::Bool(_))] => value.to_string(),
        [_] => return Err(format!("{path} leads to no single value")),
        _ => return Err(format!("{path} leads to several values")),
    };
    if is_label_value(&value) {
        Ok(value)
    } else {
        Err(format!("what {path} leads to cannot be the value of a label"))
    }
}

/// The labels of the replacements on the clusters that are scheduled now: the stored ones, and those of tasks that are created
/// now. If the replacements are not one for one, no cluster gets a label specific to another. Cost: O(tasks × clusters).
pub(super) fn handed_on(held: &ResourceBinding, exchange: &Exchange<'_>) -> BTreeMap<Str, Labels> {
    let mut all = preserved_labels(held);
    all.retain(|cluster, _| TargetCluster::find(exchange.chosen, cluster).is_some());
    for task in &exchange.made {
        let labels = &task.preserved_label_state;
        if let Some(cluster) = exchange.place_of(task).filter(|_| !labels.is_empty()) {
            let labels = labels
                .iter()
                .map(|(key, value)| (key.as_str().into(), value.as_str().into()));
            all.insert(cluster.into(), labels.collect());
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rule(path: &str) -> StatePreservationRule {
        StatePreservationRule {
            alias_label_name: "alias".into(),
            json_path: path.into(),
        }
    }

    #[test]
    fn a_value_of_the_status_is_read_as_kubectl_would_print_it() {
        let status = json!({
            "jobStatus": {"jobId": "fd72014d4c864993a2e5a9287b4a9c5d", "state": "RUNNING"},
            "count": 3, "ready": true, "empty": "", "list": ["a", "b"], "wrong": "two words", "nothing": null,
            "conditions": [{"type": "A", "status": "False"}, {"type": "Ready", "status": "True"}],
            "long": "x".repeat(64), "ends": "a-",
        });
        let cases = [
            ("{.jobStatus.jobId}", Ok("fd72014d4c864993a2e5a9287b4a9c5d")),
            ("{ .jobStatus.state }", Ok("RUNNING")),
            ("{$.jobStatus.state}", Ok("RUNNING")),
            (".jobStatus.state", Ok("RUNNING")),
            ("jobStatus.state", Ok("RUNNING")),
            ("{.jobStatus['state']}", Ok("RUNNING")),
            ("{.count}", Ok("3")),
            ("{.ready}", Ok("true")),
            ("{.empty}", Ok("")),
            ("{.list[1]}", Ok("b")),
            (r#"{.conditions[?(@.type=="Ready")].status}"#, Ok("True")),
            ("{.missing}", Err("{.missing} was not found in the status")),
            ("{.nothing}", Err("{.nothing} was not found in the status")),
            ("{.list[*]}", Err("{.list[*]} leads to several values")),
            ("{.jobStatus}", Err("{.jobStatus} leads to no single value")),
            (
                "{.wrong}",
                Err("what {.wrong} leads to cannot be the value of a label"),
            ),
            (
                "{.long}",
                Err("what {.long} leads to cannot be the value of a label"),
            ),
            (
                "{.ends}",
                Err("what {.ends} leads to cannot be the value of a label"),
            ),
            (
                "{..state}",
                Err(
                    "{..state} is not a supported path: character 2: recursive descent is not supported: name the \
                     steps",
                ),
            ),
        ];
        for (path, wanted) in cases {
            let got = read(&rule(path), Some(&status));
            assert_eq!(got.as_deref().map_err(String::as_str), wanted, "{path}");
        }
        assert_eq!(
            read(&rule("{.a}"), None),
            Err("the status of the copy is unknown".to_owned())
        );
    }
}
