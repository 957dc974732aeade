//! The pod of a DaemonSet, and its status: there is one node. Source: the daemon controller of kube-controller-manager.

use std::time::Duration;

use serde_json::{Value, json};

use super::{
    Action,
    parts::{
        Around, Counts, available, count, create, int, is_leaving, is_over, part, pod, prefix, ready, remove,
        share, text,
    },
    revisions::{HASH, Revisions},
};
use crate::object::Object;

/// The taints that its pods tolerate, after `node.kubernetes.io/`, with the effect; the last if they are in the network of the node.
const TOLERATED: [(&str, &str); 7] = [
    ("not-ready", "NoExecute"),
    ("unreachable", "NoExecute"),
    ("disk-pressure", "NoSchedule"),
    ("memory-pressure", "NoSchedule"),
    ("pid-pressure", "NoSchedule"),
    ("unschedulable", "NoSchedule"),
    ("network-unavailable", "NoSchedule"),
];

/// A DaemonSet has a pod on the node, if its template fits it.
pub(super) fn daemon_set(
    set: &Object,
    pods: &[Object],
    revisions: &[Object],
    around: &Around,
) -> (Vec<Action>, Option<Duration>) {
    if is_leaving(set) {
        return (Vec::new(), None);
    }
    let spec = part(set, "spec");
    let (revisions, mut actions) = Revisions::of(set, "DaemonSet", revisions);
    let template = template_of(spec);
    let wanted = around.node.refuses(&template["spec"]).is_none();
    let live: Vec<&Object> = pods.iter().filter(|pod| !is_leaving(pod)).collect();
    let is_new = |pod: &&&Object| text(&pod["metadata"]["labels"][HASH]) == revisions.hash;
    let (new, old): (Vec<&Object>, Vec<&Object>) = (
        live.iter().filter(is_new).copied().collect(),
        live.iter().filter(|pod| !is_new(pod)).copied().collect(),
    );
    let least = int(&spec["minReadySeconds"], 0);
    let (number, again) = available(&live, least, around);
    let new_available = available(&new, least, around).0 > 0;
    let rolling = &spec["updateStrategy"]["rollingUpdate"];
    let surges = share(&rolling["maxSurge"], 1, true) > 0;
    let mut make = false;
    if !around.node.keeps(&template["spec"]) {
        actions.extend(live.iter().map(|pod| remove(pod)));
    } else if spec["updateStrategy"]["type"] == "OnDelete" {
        make = live.is_empty();
    } else {
        make = new.is_empty() && (old.is_empty() || surges);
        if !surges || new_available {
            actions.extend(old.iter().map(|pod| remove(pod)));
        }
    }
    actions.extend(live.iter().filter(|pod| is_over(pod)).map(|pod| remove(pod)));
    // The next one comes when the last is gone.
    if make && wanted && (surges || pods.is_empty()) {
        let labels = [(HASH, revisions.hash.as_str())];
        let made = pod(
            set,
            ("apps/v1", "DaemonSet"),
            &prefix(set),
            &template,
            &labels,
            &around.node,
        );
        actions.push(create("api/v1", "pods", set, made));
    }
    let is_there = !live.is_empty();
    let one = |holds: bool| i64::from(holds);
    let mut status = Counts::default();
    for (field, value) in [
        ("currentNumberScheduled", one(wanted && is_there)),
        ("desiredNumberScheduled", one(wanted)),
        ("numberMisscheduled", one(!wanted && is_there)),
        ("numberReady", ready(&live).min(one(wanted))),
        ("numberAvailable", number.min(one(wanted))),
        ("updatedNumberScheduled", count(new.len()).min(one(wanted))),
    ] {
        let is_optional = matches!(field, "numberAvailable" | "updatedNumberScheduled");
        status.set(field, (value != 0 || !is_optional).then_some(value));
    }
    status.count("numberUnavailable", one(wanted && number == 0));
    actions.extend(status.patch("apis/apps/v1", "daemonsets", set));
    let used: Vec<&str> = live
        .iter()
        .map(|pod| text(&pod["metadata"]["labels"][HASH]))
        .collect();
    actions.extend(revisions.outdated(int(&spec["revisionHistoryLimit"], 10), &used));
    (actions, again)
}

/// The template of its pods, with what they tolerate.
fn template_of(spec: &Value) -> Value {
    let mut template = spec["template"].clone();
    let given = template["spec"]["tolerations"].as_array();
    let mut all = given.cloned().unwrap_or_default();
    let number = TOLERATED.len() - usize::from(template["spec"]["hostNetwork"] != true);
    for (key, effect) in &TOLERATED[..number] {
        let key = format!("node.kubernetes.io/{key}");
        let one = json!({"key": key, "operator": "Exists", "effect": effect});
        if !all.contains(&one) {
            all.push(one);
        }
    }
    template["spec"]["tolerations"] = json!(all);
    template
}
