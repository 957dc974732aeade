//! The node that Pods run on, as the scheduler sees it: whether it takes a Pod.

use serde_json::Value;

use super::parts::{part, text};
use crate::object::Object;

/// The name of the node.
pub(super) const NODE: &str = "stand-in";

/// The place of the node.
pub(super) const NODES: &str = "nodes";

const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

/// The labels and taints of the node. Without a Node object it takes every Pod.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Node {
    labels: Option<Object>,
    taints: Vec<[String; 3]>,
}

impl Node {
    pub(super) fn of(node: &Object) -> Self {
        let spec = part(node, "spec");
        let taint = |taint: &Value| ["key", "value", "effect"].map(|key| text(&taint[key]).to_owned());
        let mut taints: Vec<[String; 3]> = spec["taints"]
            .as_array()
            .into_iter()
            .flatten()
            .map(taint)
            .collect();
        if spec["unschedulable"] == true && !taints.iter().any(|[key, ..]| key == UNSCHEDULABLE) {
            taints.push([UNSCHEDULABLE, "", "NoSchedule"].map(str::to_owned));
        }
        let labels = node["metadata"]["labels"].as_object().cloned();
        Self {
            labels: Some(labels.unwrap_or_default()),
            taints,
        }
    }

    /// The reason why it does not take a Pod, in the words of the scheduler.
    pub(super) fn refuses(&self, spec: &Value) -> Option<String> {
        if !self.selected(spec) {
            return Some("1 node(s) didn't match Pod's node affinity/selector".to_owned());
        }
        let hard = |effect: &str| matches!(effect, "NoSchedule" | "NoExecute");
        let mut taints = self.taints.iter().filter(|[.., effect]| hard(effect));
        let [key, value, _] = taints.find(|taint| !tolerates(spec, taint))?;
        Some(if key == UNSCHEDULABLE {
            "1 node(s) were unschedulable".to_owned()
        } else {
            format!("1 node(s) had untolerated taint(s) {{{key}: {value}}}")
        })
    }

    /// True if a Pod of a DaemonSet that is on it stays there.
    pub(super) fn keeps(&self, spec: &Value) -> bool {
        let mut taints = self.taints.iter().filter(|[.., effect]| effect == "NoExecute");
        self.selected(spec) && taints.all(|taint| tolerates(spec, taint))
    }

    fn selected(&self, spec: &Value) -> bool {
        if !matches!(text(&spec["nodeName"]), "" | NODE) {
            return false;
        }
        let Some(labels) = &self.labels else { return true };
        let by_label = spec["nodeSelector"].as_object();
        let terms = &spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
        by_label.is_none_or(|wanted| wanted.iter().all(|(key, value)| labels.get(key) == Some(value)))
            && terms["nodeSelectorTerms"].as_array().is_none_or(|terms| {
                terms.iter().any(|term| {
                    let by_field = term["matchFields"].as_array().into_iter().flatten();
                    let by_label = term["matchExpressions"].as_array().into_iter().flatten();
                    by_field.clone().chain(by_label.clone()).next().is_some()
                        && by_field.clone().all(|one| fits(one, Some(NODE)))
                        && by_label.clone().all(|one| fits(one, label(labels, one)))
                })
            })
    }
}

fn label<'a>(labels: &'a Object, requirement: &Value) -> Option<&'a str> {
    labels.get(text(&requirement["key"])).and_then(Value::as_str)
}

/// True if a value meets a requirement of a node selector.
fn fits(requirement: &Value, value: Option<&str>) -> bool {
    let values = || requirement["values"].as_array().into_iter().flatten();
    let among = values().any(|one| one.as_str() == value);
    let number = |text: &str| text.parse::<i64>().ok();
    let pair = value
        .and_then(number)
        .zip(values().next().and_then(|one| number(text(one))));
    match text(&requirement["operator"]) {
        "In" => among,
        "NotIn" => !among,
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => pair.is_some_and(|(value, than)| value > than),
        "Lt" => pair.is_some_and(|(value, than)| value < than),
        _ => false,
    }
}

fn tolerates(spec: &Value, [key, value, effect]: &[String; 3]) -> bool {
    let mut tolerations = spec["tolerations"].as_array().into_iter().flatten();
    tolerations.any(|one| {
        let same = |name: &str, of: &str| text(&one[name]).is_empty() || text(&one[name]) == of;
        same("key", key)
            && same("effect", effect)
            && (one["operator"] == "Exists" || !text(&one["key"]).is_empty() && text(&one["value"]) == value)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn node(spec: &Value) -> Node {
        let node = json!({"metadata": {"labels": {"zone": "a", "cores": "8"}}, "spec": spec});
        Node::of(node.as_object().expect("an object"))
    }

    #[test]
    fn the_node_takes_what_selects_it_and_tolerates_its_taints() {
        let tainted = json!({"taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]});
        let affinity = |requirement: Value| {
            json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
                {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}}}})
        };
        let cases = [
            (json!({}), json!({}), true),
            (json!({"unschedulable": true}), json!({}), false),
            (json!({}), json!({"nodeSelector": {"zone": "a"}}), true),
            (json!({}), json!({"nodeSelector": {"zone": "b"}}), false),
            (
                json!({}),
                affinity(json!({"key": "zone", "operator": "In", "values": ["a"]})),
                true,
            ),
            (
                json!({}),
                affinity(json!({"key": "cores", "operator": "Gt", "values": ["8"]})),
                false,
            ),
            (
                json!({}),
                affinity(json!({"key": "x", "operator": "Exists"})),
                false,
            ),
            (tainted.clone(), json!({}), false),
            (
                tainted.clone(),
                json!({"tolerations": [{"operator": "Exists"}]}),
                true,
            ),
            (
                tainted.clone(),
                json!({"tolerations": [{"key": "gpu", "value": "yes"}]}),
                true,
            ),
            (
                tainted,
                json!({"tolerations": [{"key": "gpu", "value": "no"}]}),
                false,
            ),
        ];
        for (of_node, of_pod, taken) in cases {
            assert_eq!(
                node(&of_node).refuses(&of_pod).is_none(),
                taken,
                "{of_node} {of_pod}"
            );
        }
    }

    #[test]
    fn a_daemon_stays_unless_it_is_to_leave_or_belongs_elsewhere() {
        for (taint, of_pod, stays) in [
            ("NoSchedule", json!({}), true),
            ("NoExecute", json!({}), false),
            (
                "NoExecute",
                json!({"tolerations": [{"key": "a", "operator": "Exists"}]}),
                true,
            ),
            ("NoSchedule", json!({"nodeSelector": {"zone": "b"}}), false),
            ("NoSchedule", json!({"nodeName": "other"}), false),
        ] {
            let tainted = node(&json!({"taints": [{"key": "a", "effect": taint}]}));
            assert_eq!(tainted.keeps(&of_pod), stays, "{taint} {of_pod}");
        }
    }
}
