//! The taints of a Cluster that this control plane writes: into `spec.taints`, where other schedulers see them.
//!
//! Three kinds, and no other entry of the list is changed, nor its order:
//!
//! - Ready is False: `cluster.karmada.io/not-ready:NoSchedule`; Ready is Unknown: `cluster.karmada.io/unreachable:NoSchedule`;
//!   else neither. With another effect these keys belong to the user. They follow from the stored condition, of any writer; a
//!   Cluster without the condition is not changed.
//! - The orders of ClusterTaintPolicies ([`super::taint_policies`]), except for the two above.
//! - A NoExecute taint without `timeAdded` gets it: toleration periods count from there.
//!
//! While the hub is cut off from a member ([`crate::memory::cut_off`]), its taints stay as they are: the state of the member is unknown.
//! Source: Karmada reference 4.1.

use entourage_api::keys::event;
use k8s_openapi::{api::core::v1::Taint, apimachinery::pkg::apis::meta::v1::Condition};
use serde_json::{Value, json};

use super::{
    event_of,
    taint_policies::{self, Order},
};
use crate::{
    cache::Member,
    fleet::{
        Fleet,
        taints::{NO_SCHEDULE, OWN, is_own},
    },
    object::{Str, Time},
    plan::{Change, HubObject, Plan, Verb},
    readiness::{is_cut_off, stored_ready},
};

const NO_EXECUTE: &str = "NoExecute";

/// Plans the taints; `None` if nothing differs. Cost: O(taints), and that of [`taint_policies::orders`].
pub(super) fn keep(fleet: &Fleet, name: &Str, member: &Member, now: Time) -> Option<Plan> {
    let stored = &member.object.spec.taints;
    let ready = stored_ready(&member.object);
    let orders = if ready.is_some_and(is_cut_off) {
        Vec::new()
    } else {
        taint_policies::orders(fleet, name, member)
    };
    let kept = decide(stored, ready, &orders, now);
    if kept.taints == *stored {
        return None;
    }
    // A merge patch replaces the list; null removes it.
    let taints = if kept.taints.is_empty() {
        Value::Null
    } else {
        json!(kept.taints)
    };
    let body = json!({
        "metadata": { "uid": &*member.meta.uid, "resourceVersion": &*member.meta.resource_version },
        "spec": { "taints": taints },
    });
    let write = Change::Hub {
        object: HubObject::Cluster(name.clone()),
        verb: Verb::Merge(body),
    };
    let mut plan = Plan::one(write, "its taints differ");
    if !kept.changes.is_empty() {
        let message = format!("{}.", kept.changes.join("; "));
        let normal = (false, event::TAINT_CLUSTER_SUCCEED);
        plan.changes.push(event_of(name, member, normal, message));
    }
    Some(plan)
}

/// The desired taints.
#[derive(Debug, PartialEq)]
struct Kept {
    taints: Vec<Taint>,
    /// The additions and removals, with their reasons.
    changes: Vec<String>,
}

fn decide(stored: &[Taint], ready: Option<&Condition>, orders: &[Order], now: Time) -> Kept {
    let mut kept = Kept {
        taints: stored.to_vec(),
        changes: Vec::new(),
    };
    if let Some(ready) = ready.filter(|ready| !is_cut_off(ready)) {
        for (key, status) in OWN {
            let wanted = (ready.status == status).then(|| new(key, NO_SCHEDULE, "", None));
            kept.set((key, NO_SCHEDULE), wanted, &format!("Ready is {}", ready.status));
        }
    }
    for order in last_words(orders) {
        let taint = new(
            &order.key,
            &order.effect,
            order.add.as_deref().unwrap_or_default(),
            Some(now),
        );
        if is_own(&taint) {
            continue;
        }
        let wanted = order.add.is_some().then_some(taint);
        let why = format!("ClusterTaintPolicy {}", order.by);
        kept.set((&order.key, &order.effect), wanted, &why);
    }
    for each in &mut kept.taints {
        if each.effect == NO_EXECUTE && each.time_added.is_none() {
            each.time_added = Some(now.to_k8s());
        }
    }
    kept
}

/// Returns the last order about each taint; of several in a row that add it the first, whose value it has.
fn last_words(orders: &[Order]) -> Vec<&Order> {
    let mut words: Vec<&Order> = Vec::new();
    for order in orders {
        let held = words
            .iter_mut()
            .find(|held| held.key == order.key && held.effect == order.effect);
        match held {
            Some(held) if held.add.is_some() && order.add.is_some() => {}
            Some(held) => *held = order,
            None => words.push(order),
        }
    }
    words
}

impl Kept {
    /// Adds a taint, unless one with its key and effect exists, or removes those.
    fn set(&mut self, (key, effect): (&str, &str), wanted: Option<Taint>, why: &str) {
        let is_it = |each: &Taint| each.key == key && each.effect == effect;
        let stands = self.taints.iter().any(is_it);
        match wanted {
            Some(taint) if !stands => {
                self.taints.push(taint);
                self.changes
                    .push(format!("Added the taint {key}:{effect} ({why})"));
            }
            None if stands => {
                self.taints.retain(|each| !is_it(each));
                self.changes
                    .push(format!("Removed the taint {key}:{effect} ({why})"));
            }
            _ => {}
        }
    }
}

fn new(key: &str, effect: &str, value: &str, added: Option<Time>) -> Taint {
    Taint {
        key: key.into(),
        effect: effect.into(),
        value: (!value.is_empty()).then(|| value.into()),
        time_added: added.map(Time::to_k8s),
    }
}

#[cfg(test)]
mod tests;
