//! The detector: which policy claims a template, and what a policy itself carries.
//!
//! A claim is sticky: it is the label and annotations on the template, and it stays while its policy exists and selects
//! the template (karmada reference 1.1).

pub mod matching;

use std::collections::BTreeSet;

use entourage_api::{
    keys::{annotation, condition, event, finalizer, label, reason},
    names,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::{Map, Value, json};

use crate::{
    condition as conditions,
    index::{Index, Policy, claim_of},
    object::{Gvk, Id, Meta, Named, Time},
    observation::Watch,
    plan::{Change, Event, HubObject, Plan, Regarding, Verb},
};

/// The policy whose claim on a template is valid: named by its annotations, with the same permanent id, not being
/// deleted, and still selecting it. Cost: O(selectors of the policy).
#[must_use]
pub fn claimed_by<'a>(index: &'a Index, id: &Id, template: &Meta) -> Option<(&'a Named, &'a Policy)> {
    let claim = claim_of(template)?;
    let (name, policy) = index.policies.get_key_value(&claim)?;
    let permanent_id = policy.meta.label(label::PROPAGATION_POLICY_ID)?;
    let valid = template.label(label::PROPAGATION_POLICY_ID) == Some(permanent_id)
        && policy.meta.deleting.is_none()
        && matching::selects(&policy.object.spec, &name.namespace, id, &template.labels).is_some();
    valid.then_some((name, policy))
}

/// Plans the claim of a template. Cost: O(policies of its namespace that select its kind).
#[must_use]
pub fn plan_template(index: &Index, id: &Id, _now: Time) -> Plan {
    let Some(template) = index.entity(id).and_then(|entity| entity.template.as_ref()) else {
        return Plan::nothing();
    };
    if !index.is_kind_listed(&id.gvk) {
        return Plan::wait("the hub is not known yet");
    }
    let meta = &template.meta;
    if meta.deleting.is_some() || meta.label(label::CLAIMED_BY).is_some() {
        return Plan::nothing();
    }
    if claimed_by(index, id, meta).is_some() {
        return Plan::nothing();
    }
    let held = claim_of(meta);
    if held.is_some() && !index.is_base_synced() {
        return Plan::wait("whether the policy is gone is not known");
    }
    let best = if matching::is_skipped_namespace(&id.namespace) {
        None
    } else {
        best(index, id, meta)
    };
    match best {
        Some((name, policy)) => {
            let Some(permanent_id) = policy.meta.label(label::PROPAGATION_POLICY_ID) else {
                return Plan::wait(format!("{name} has no permanent id yet"));
            };
            let claim = json!({
                "labels": {label::PROPAGATION_POLICY_ID: permanent_id},
                "annotations": {
                    annotation::PROPAGATION_POLICY_NAMESPACE: &*name.namespace,
                    annotation::PROPAGATION_POLICY_NAME: &*name.name,
                },
            });
            patch(id, meta, &claim, format!("{name} selects it"))
        }
        None if held.is_some() || meta.label(label::PROPAGATION_POLICY_ID).is_some() => {
            let none = json!({
                "labels": {label::PROPAGATION_POLICY_ID: null},
                "annotations": {
                    annotation::PROPAGATION_POLICY_NAMESPACE: null,
                    annotation::PROPAGATION_POLICY_NAME: null,
                },
            });
            patch(
                id,
                meta,
                &none,
                "its policy is gone or no longer selects it".into(),
            )
        }
        None => Plan::nothing(),
    }
}

/// The policy that selects a template best. Cost: O(policies of the namespace that select the kind).
fn best<'a>(index: &'a Index, id: &Id, meta: &Meta) -> Option<(&'a Named, &'a Policy)> {
    let names = index.selecting.get(&(id.namespace.clone(), id.gvk.clone()))?;
    let candidates: BTreeSet<Named> = names
        .iter()
        .map(|name| Named {
            namespace: id.namespace.clone(),
            name: name.clone(),
        })
        .collect();
    let candidates = candidates
        .iter()
        .filter_map(|name| index.policies.get_key_value(name))
        .filter(|(_, policy)| policy.meta.deleting.is_none());
    let best = matching::best(
        candidates.map(|(name, policy)| (name, &policy.object.spec)),
        id,
        &meta.labels,
    )?;
    index.policies.get_key_value(best)
}

fn patch(id: &Id, meta: &Meta, metadata: &Value, why: String) -> Plan {
    let mut body: Map<String, Value> = metadata.as_object().cloned().unwrap_or_default();
    body.insert("uid".into(), json!(&*meta.uid));
    body.insert("resourceVersion".into(), json!(&*meta.resource_version));
    let verb = Verb::Merge(json!({ "metadata": body }));
    Plan::one(
        Change::Hub {
            object: HubObject::Template(id.clone()),
            verb,
        },
        why,
    )
}

/// How long after a policy was first seen it is said to select nothing, in milliseconds.
const FIRST_LOOK: i64 = 2_000;

/// Plans what a policy carries: its permanent id, finalizer and status, and the end of them.
#[must_use]
pub fn plan_policy(index: &Index, name: &Named, now: Time) -> Plan {
    let Some(policy) = index.policies.get(name) else {
        return Plan::nothing();
    };
    let meta = &policy.meta;
    let guarded = |mut metadata: Map<String, Value>, why: &str| {
        metadata.insert("uid".into(), json!(&*meta.uid));
        metadata.insert("resourceVersion".into(), json!(&*meta.resource_version));
        let verb = Verb::Merge(json!({ "metadata": metadata }));
        Plan::one(
            Change::Hub {
                object: HubObject::Policy(name.clone()),
                verb,
            },
            why,
        )
    };
    let mut metadata = Map::new();
    if meta.deleting.is_some() {
        if !meta.has_finalizer(finalizer::PROPAGATION_POLICY) {
            return Plan::nothing();
        }
        let selected = policy.object.spec.resource_selectors.iter();
        let kinds_known = selected
            .map(|selector| Gvk::new(&selector.api_version, &selector.kind))
            .all(|gvk| !index.kinds.contains(&gvk) || index.synced.contains(&Watch::Templates(gvk)));
        if !kinds_known
            || !index.is_base_synced()
            || index.claimed.get(name).is_some_and(|ids| !ids.is_empty())
        {
            return Plan::wait("templates still carry its claim");
        }
        let rest: Vec<&str> = meta
            .finalizers
            .iter()
            .map(|each| &**each)
            .filter(|each| *each != finalizer::PROPAGATION_POLICY)
            .collect();
        metadata.insert("finalizers".into(), json!(rest));
        return guarded(metadata, "no template carries its claim any more");
    }
    if meta.label(label::PROPAGATION_POLICY_ID).is_none() {
        let permanent_id = names::permanent_id(&[&index.config.hub, &meta.uid, "PropagationPolicy"]);
        metadata.insert(
            "labels".into(),
            json!({label::PROPAGATION_POLICY_ID: permanent_id}),
        );
    }
    if !meta.has_finalizer(finalizer::PROPAGATION_POLICY) {
        let mut all: Vec<&str> = meta.finalizers.iter().map(|each| &**each).collect();
        all.push(finalizer::PROPAGATION_POLICY);
        metadata.insert("finalizers".into(), json!(all));
    }
    if metadata.is_empty() {
        report(index, name, policy, now)
    } else {
        guarded(metadata, "it is new")
    }
}

/// The Matched condition: whether the policy propagates anything, and if not, why.
fn report(index: &Index, name: &Named, policy: &Policy, now: Time) -> Plan {
    let matched = index.claimed.get(name).is_some_and(|ids| !ids.is_empty());
    let invalid = matching::check(&policy.object.spec, &name.namespace).err();
    let (good, reason, message) = match invalid {
        Some(why) => (
            false,
            reason::INVALID_SELECTOR,
            format!("{why}; what the other selectors mean still counts"),
        ),
        None if matched => (
            true,
            reason::TEMPLATES_MATCHED,
            "It propagates what it selects.".to_owned(),
        ),
        None => {
            let until = policy.since.plus(FIRST_LOOK);
            if now < until {
                return Plan::wait_until(until, "its templates may be on their way");
            }
            let message = format!(
                "nothing in namespace {} is selected, or other policies hold what is: compare spec.resourceSelectors \
                 with kubectl get -n {} --show-labels",
                name.namespace, name.namespace
            );
            (false, reason::NO_TEMPLATE, message)
        }
    };
    let mut status = policy.object.status.clone().unwrap_or_default();
    let before = status.clone();
    let turned = conditions::set(
        &mut status.conditions,
        Condition {
            type_: condition::MATCHED.into(),
            status: if good { "True" } else { "False" }.into(),
            reason: reason.into(),
            message: message.clone(),
            observed_generation: policy.meta.generation,
            last_transition_time: now.to_k8s(),
        },
    );
    if status == before || !index.is_base_synced() {
        return Plan::nothing();
    }
    let body = json!({
        "metadata": { "uid": &*policy.meta.uid, "resourceVersion": &*policy.meta.resource_version },
        "status": serde_json::to_value(&status).unwrap_or_default(),
    });
    let object = HubObject::Policy(name.clone());
    let mut plan = Plan::one(
        Change::Hub {
            object,
            verb: Verb::MergeStatus(body),
        },
        "its status differs",
    );
    if turned && !good {
        plan.changes.push(Change::Emit(Event {
            regarding: Regarding {
                api_version: "policy.karmada.io/v1alpha1".into(),
                kind: "PropagationPolicy".into(),
                namespace: name.namespace.clone(),
                name: name.name.clone(),
                uid: policy.meta.uid.clone(),
            },
            warning: true,
            reason: event::APPLY_POLICY_FAILED,
            message,
        }));
    }
    plan
}
