//! The policies of Jobs: what the failure of a pod means, and when enough indexes have succeeded.

use serde_json::Value;

use super::{
    indexes::{self, Indexes},
    parts::{int, part, text},
};
use crate::object::Object;

/// The meaning of the failure of a pod.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// It counts.
    Counted,
    Ignored,
    /// The index has failed.
    Index,
    /// The Job has failed, with this message.
    Job(String),
}

/// The first rule of a failure policy that a pod matches decides.
pub(super) fn ending(policy: &Value, pod: &Object) -> Ending {
    let rules = policy["rules"].as_array().into_iter().flatten();
    for (at, rule) in rules.enumerate() {
        let Some(why) = matched(rule, pod) else { continue };
        let action = text(&rule["action"]);
        return match action {
            "FailJob" => Ending::Job(format!("{why} matching {action} rule at index {at}")),
            "FailIndex" => Ending::Index,
            "Ignore" => Ending::Ignored,
            _ => Ending::Counted,
        };
    }
    Ending::Counted
}

/// The reason why a pod matches a rule.
fn matched(rule: &Value, pod: &Object) -> Option<String> {
    let meta = &pod["metadata"];
    let name = format!("{}/{}", text(&meta["namespace"]), text(&meta["name"]));
    let status = part(pod, "status");
    if rule["onExitCodes"].is_object() {
        let wanted = &rule["onExitCodes"];
        let values = wanted["values"].as_array().cloned().unwrap_or_default();
        let lists = ["initContainerStatuses", "containerStatuses"];
        let all = lists.iter().filter_map(|list| status[*list].as_array()).flatten();
        for one in all {
            let of_name = text(&wanted["containerName"]);
            let code = &one["state"]["terminated"]["exitCode"];
            let among = values.contains(code) == (wanted["operator"] == "In");
            if (of_name.is_empty() || of_name == text(&one["name"])) && int(code, 0) != 0 && among {
                let container = text(&one["name"]);
                return Some(format!(
                    "Container {container} for pod {name} failed with exit code {code}"
                ));
            }
        }
        return None;
    }
    let patterns = rule["onPodConditions"].as_array().into_iter().flatten();
    for pattern in patterns {
        let mut conditions = status["conditions"].as_array().into_iter().flatten();
        let same = |one: &&Value| one["type"] == pattern["type"] && one["status"] == pattern["status"];
        if let Some(one) = conditions.find(same) {
            return Some(format!("Pod {name} has condition {}", text(&one["type"])));
        }
    }
    None
}

/// The first rule of a success policy that these indexes meet.
pub(super) fn success(policy: &Value, completed: &Indexes) -> Option<usize> {
    let rules = policy["rules"].as_array()?;
    rules.iter().position(|rule| {
        let wanted = rule["succeededIndexes"].as_str().map(indexes::parse);
        let among = |index: &&i64| wanted.as_ref().is_none_or(|wanted| wanted.contains(index));
        let number = completed.iter().filter(among).count();
        match rule["succeededCount"].as_u64() {
            Some(least) => u64::try_from(number).is_ok_and(|number| number >= least),
            None => wanted.as_ref().is_some_and(|wanted| number == wanted.len()),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_first_rule_that_matches_decides() {
        let policy = json!({"rules": [
            {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
            {"action": "FailJob", "onExitCodes": {"containerName": "a", "operator": "In", "values": [42]}},
            {"action": "FailIndex", "onExitCodes": {"operator": "NotIn", "values": [1, 2]}},
        ]});
        let pod = |code: i64, disrupted: &str| {
            let pod = json!({"metadata": {"namespace": "n", "name": "p"}, "status": {
                "conditions": [{"type": "DisruptionTarget", "status": disrupted}],
                "containerStatuses": [{"name": "a", "state": {"terminated": {"exitCode": code}}}]}});
            pod.as_object().cloned().unwrap_or_default()
        };
        let message = "Container a for pod n/p failed with exit code 42 matching FailJob rule at index 1";
        assert_eq!(
            ending(&policy, &pod(42, "False")),
            Ending::Job(message.to_owned())
        );
        assert_eq!(ending(&policy, &pod(42, "True")), Ending::Ignored);
        assert_eq!(ending(&policy, &pod(3, "False")), Ending::Index);
        assert_eq!(ending(&policy, &pod(1, "False")), Ending::Counted);
        assert_eq!(ending(&policy, &pod(0, "False")), Ending::Counted);
    }

    #[test]
    fn enough_indexes_meet_a_success_policy() {
        for (rule, done, met) in [
            (json!({"succeededIndexes": "0,2"}), "0-2", true),
            (json!({"succeededIndexes": "0,2"}), "0,1", false),
            (json!({"succeededCount": 2}), "0,1", true),
            (
                json!({"succeededIndexes": "0-3", "succeededCount": 2}),
                "3,4",
                false,
            ),
            (
                json!({"succeededIndexes": "0-3", "succeededCount": 2}),
                "1,3",
                true,
            ),
        ] {
            let found = success(&json!({"rules": [rule]}), &indexes::parse(done));
            assert_eq!(found.is_some(), met, "{rule} {done}");
        }
    }
}
