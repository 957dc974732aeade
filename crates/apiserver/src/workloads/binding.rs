//! The scheduler: a pod is given to the node when the node takes it and its claims are bound.

use serde_json::{Value, json};

use super::{
    Action,
    node::NODE,
    parts::{Around, claims_of, condition, condition_of, is_held, is_leaving, part, path_of, text},
};
use crate::{controllers::SELECTED, object::Object};

/// The requests for a pod that has no node yet, and whether it has to wait. `bound`: claims are bound to volumes.
pub(super) fn wait(
    pod: &Object,
    claim: &dyn Fn(&str) -> Option<Object>,
    bound: bool,
    around: &Around,
) -> (Vec<Action>, bool) {
    let spec = part(pod, "spec");
    if is_held(spec) {
        return (Vec::new(), true);
    }
    let mut actions = Vec::new();
    let mut why = around.node.refuses(spec);
    for name in claims_of(spec).filter(|_| bound) {
        if why.is_some() {
            break;
        }
        match claim(name) {
            None => why = Some(format!("persistentvolumeclaim {name:?} not found")),
            Some(claim) if is_leaving(&claim) => {
                why = Some(format!("persistentvolumeclaim {name:?} is being deleted"));
            }
            Some(claim) if part(&claim, "status")["phase"] != "Bound" => {
                if claim["metadata"]["annotations"][SELECTED].is_null() {
                    actions.push(Action::Patch {
                        path: path_of("api/v1", "persistentvolumeclaims", &claim),
                        patch: json!({"metadata": {"annotations": {SELECTED: NODE}}}),
                    });
                }
                why = Some("pod has unbound PersistentVolumeClaims".to_owned());
            }
            Some(_) => {}
        }
    }
    let Some(why) = why else {
        return (actions, false);
    };
    let message = format!("0/1 nodes are available: {why}.");
    let old = part(pod, "status");
    let next = condition(
        old,
        ["PodScheduled", "False", "Unschedulable", &message],
        &around.now,
    );
    let before = condition_of(old, "PodScheduled");
    if text(&before["message"]) != message || before["status"] != "False" {
        let others = old["conditions"].as_array().into_iter().flatten();
        let mut conditions: Vec<&Value> = others.filter(|one| one["type"] != "PodScheduled").collect();
        conditions.push(&next);
        actions.push(Action::Patch {
            path: format!("{}/status", path_of("api/v1", "pods", pod)),
            patch: json!({"status": {"conditions": conditions}}),
        });
    }
    (actions, true)
}
