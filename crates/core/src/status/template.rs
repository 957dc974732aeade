//! The template's own status: the merged status of its copies.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use entourage_api::work::AggregatedStatusItem;
use serde_json::{Value, json};

use crate::{
    cache::{Binding, ResourceState},
    distributed::observed::is_claimed,
    fleet::{Fleet, contests, wanted::wants},
    interpreter::{
        self, Interpretation,
        operations::Operation,
        question::{InterpretError, Question},
    },
    kinds::DISTRIBUTION,
    object::{Gvk, ResourceId, Str, Time},
    observation::Template,
    plan::{Change, HubObject, Plan, SyncRequirement, Verb},
    status::events,
};

/// Plans the aggregated status of a template. Cost: O(its copies).
#[must_use]
pub fn plan(fleet: &Fleet, id: &ResourceId, now: Time) -> Plan {
    let Some(resource) = fleet.resource(id) else {
        return Plan::nothing();
    };
    let (Some(stored), Some(template)) = (&resource.binding, &resource.template) else {
        return Plan::nothing();
    };
    if let Some(why) = contests::is_of_others(fleet, &id.gvk) {
        return Plan::wait(why);
    }
    if !template.interpretation.is_interpreted(&id.gvk)
        || stored.meta.deleting.is_some()
        || template.meta.deleting.is_some()
    {
        return Plan::nothing();
    }
    // A distribution is executed here or on its members, and the executor reports its status: one writer
    // (`distribution::status`). Copies may outlive a policy that propagated it once.
    let is_distribution = fleet.config.distribute && *id.gvk.kind == *DISTRIBUTION;
    if is_distribution && !is_claimed(&template.meta) {
        return Plan::nothing();
    }
    if !fleet.is_kind_listed(&id.gvk) {
        return Plan::wait_for(
            SyncRequirement::Kind(id.gvk.clone()),
            "the interpreters of the kind are not synced yet",
        );
    }
    if template.interpretation.has(Operation::Aggregate) {
        return by_rule(fleet, id, (resource, stored), template, now);
    }
    let Some(native) = interpreter::native(&id.gvk.group, &id.gvk.version, &id.gvk.kind) else {
        return Plan::nothing();
    };
    let targets: Vec<_> = resource
        .copies
        .iter()
        .filter(|(cluster, _)| wants(fleet, id, resource, cluster))
        .collect();
    // A list that fails is not pending: the other members must not wait for it.
    let is_settled = |cluster: &Str| {
        let copies = fleet.copies(cluster, &id.gvk);
        fleet.cache.watches.is_listed(&copies)
            || fleet.cache.watches.is_unlistable(&copies)
            || fleet.cache.watches.is_no_such_kind(&copies)
    };
    if targets
        .iter()
        .any(|(cluster, _)| !fleet.was_probed(cluster) || (fleet.answers(cluster) && !is_settled(cluster)))
    {
        return Plan::wait("a member is not synced yet");
    }
    // The last report of a member that does not respond is still the best available.
    let stored = stored
        .object
        .status
        .iter()
        .flat_map(|status| &status.aggregated_status);
    let reported: BTreeMap<&str, &Value> = stored
        .filter_map(|item| Some((item.cluster_name.as_str(), item.status.as_ref()?)))
        .collect();
    let items: Vec<(&str, Option<&Value>)> = targets
        .iter()
        .map(|(cluster, state)| {
            let live = state.live.as_ref();
            // A failed interpretation does not make it empty, either.
            let is_unread = live.is_some_and(|live| live.lacks(Operation::Reflect).is_some());
            let held = reported
                .get(&***cluster)
                .copied()
                .filter(|_| is_unread || !fleet.copies_known(cluster, &id.gvk));
            (&***cluster, live.and_then(|live| live.status.as_ref()).or(held))
        })
        .collect();
    let mut as_served = template.shape.clone();
    as_served["metadata"] = json!({ "generation": template.meta.generation });
    as_served["spec"]["replicas"] = json!(template.replicas);
    as_served["status"] = template.status.clone().unwrap_or_else(|| json!({}));
    let Some(status) = native.aggregate(&as_served, &items) else {
        return Plan::nothing();
    };
    let pause = resource
        .template_status_written
        .map(|time| time.plus(fleet.config.status_interval));
    if let Some(until) = pause.filter(|until| now < *until) {
        return Plan::wait_until(until, "at most one status write a second");
    }
    let mut body = replacing(template.status.as_ref(), status);
    body = json!({
        "metadata": { "uid": &*template.meta.uid, "resourceVersion": &*template.meta.resource_version },
        "status": body,
    });
    let verb = Verb::MergeStatus(body);
    let mut plan = Plan::one(
        Change::Hub {
            object: HubObject::Template(id.clone()),
            verb,
        },
        "the members' status differs",
    );
    if !has_status(template) {
        plan.changes
            .push(Change::Emit(events::first_aggregation(id, template, &items)));
    }
    plan
}

/// True if the template has a status: from then on, its aggregation is no news.
fn has_status(template: &Template) -> bool {
    let status = template.status.as_ref().and_then(Value::as_object);
    status.is_some_and(|status| !status.is_empty())
}

/// As [`plan`], by an interpretation of the kind that needs the whole template, which is read for it.
fn by_rule(
    fleet: &Fleet,
    id: &ResourceId,
    (resource, stored): (&ResourceState, &Binding),
    template: &Template,
    now: Time,
) -> Plan {
    let pause = resource
        .template_status_written
        .map(|time| time.plus(fleet.config.status_interval));
    if let Some(until) = pause.filter(|until| now < *until) {
        return Plan::wait_until(until, "at most one status write a second");
    }
    let reported = stored
        .object
        .status
        .iter()
        .flat_map(|status| &status.aggregated_status);
    let items: Vec<_> = reported
        .map(|item| AggregatedStatusItem {
            copy: None,
            applied_reason: None,
            ..item.clone()
        })
        .collect();
    let asked = question(template, &items);
    if items.is_empty() {
        return Plan::nothing();
    }
    if resource.aggregated == Some(asked) {
        return match resource.aggregate_again {
            Some(again) if again <= now => ask_for(id, template, items, asked),
            Some(again) => Plan::wait_until(again, "the interpreter failed"),
            None => Plan::nothing(),
        };
    }
    ask_for(id, template, items, asked)
}

fn ask_for(id: &ResourceId, template: &Template, items: Vec<AggregatedStatusItem>, asked: u64) -> Plan {
    Plan::one(
        Change::Aggregate {
            id: id.clone(),
            interpretation: template.interpretation.clone(),
            items,
            asked,
        },
        "whether the members' status differs is a rule's to tell",
    )
}

/// A hash that identifies a question: the version of the template, the interpretation, the reports. In memory only.
fn question(template: &Template, items: &[AggregatedStatusItem]) -> u64 {
    let mut hasher = DefaultHasher::new();
    let meta = &template.meta;
    meta.uid.hash(&mut hasher);
    match meta.generation.or(meta.content) {
        // Not the status: the status just written would cause another question, without end if the result never stays.
        Some(generation) => (generation, &meta.labels, &meta.annotations).hash(&mut hasher),
        None => meta.resource_version.hash(&mut hasher),
    }
    template.interpretation.version().hash(&mut hasher);
    serde_json::to_string(items).unwrap_or_default().hash(&mut hasher);
    hasher.finish()
}

/// The status of a template to write by the interpretation of the kind; `None` if it is up to date.
///
/// # Errors
/// [`InterpretError`] if the interpretation fails.
pub fn aggregated(
    template: &Value,
    interpretation: &Interpretation,
    items: &[AggregatedStatusItem],
) -> Result<Option<Verb>, InterpretError> {
    let before = template.get("status").filter(|status| status.is_object());
    let after = match interpretation.object(Question::Aggregate { template, items }) {
        Some(answer) => answer?["status"].take(),
        // A hook was skipped by failurePolicy.
        None => as_known(template, items),
    };
    if !after.is_object() || before == Some(&after) {
        return Ok(None);
    }
    let meta = &template["metadata"];
    Ok(Some(Verb::MergeStatus(json!({
        "metadata": { "uid": meta["uid"], "resourceVersion": meta["resourceVersion"] },
        "status": replacing(before, after),
    }))))
}

/// The status by the native interpreter; null for none.
fn as_known(template: &Value, items: &[AggregatedStatusItem]) -> Value {
    let text = |field: &str| template[field].as_str().unwrap_or_default();
    let gvk = Gvk::new(text("apiVersion"), text("kind"));
    let items: Vec<(&str, Option<&Value>)> = items
        .iter()
        .map(|item| (item.cluster_name.as_str(), item.status.as_ref()))
        .collect();
    interpreter::native(&gvk.group, &gvk.version, &gvk.kind)
        .and_then(|native| native.aggregate(template, &items))
        .unwrap_or_default()
}

/// A merge patch that replaces one status by another: removed fields become null, at any depth of objects.
fn replacing(before: Option<&Value>, mut after: Value) -> Value {
    if let (Some(Value::Object(before)), Value::Object(after)) = (before, &mut after) {
        for (key, held) in before {
            let now = after.entry(key.clone()).or_insert(Value::Null);
            *now = replacing(Some(held), now.take());
        }
    }
    after
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_merge_patch_takes_away_what_is_no_longer_there_at_any_depth() {
        let before =
            json!({"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}, "pods": {"a": 1, "b": 2}, "old": 1});
        let after = json!({"loadBalancer": {}, "pods": {"b": 3}});
        assert_eq!(
            replacing(Some(&before), after),
            json!({"loadBalancer": {"ingress": null}, "pods": {"a": null, "b": 3}, "old": null})
        );
    }
}
