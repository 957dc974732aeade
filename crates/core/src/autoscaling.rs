//! Autoscaling on members, as the templates on the hub show it: the label that leaves replicas to the members, and the replicas
//! that their autoscalers have made.
//!
//! Both are parts of a template's metadata and spec that its other planner, [`crate::detector`], does not write; the engine asks
//! for one after the other, and the requests for one object never overlap. Each write has the resourceVersion that was observed:
//! a user who edits the object at the same time wins, and it is decided anew.
//!
//! - [`plan_label`]: a HorizontalPodAutoscaler that is propagated has the template of its target labelled, and an annotation says
//!   so. The label goes when no such autoscaler is left, on the hub or on a member. A label without the annotation is a user's.
//! - [`plan_replicas`]: `spec.replicas` of a template with the label becomes the sum of what the members report, once each of
//!   them does. The scheduler does not divide that sum again ([`crate::fleet::autoscaling::as_scaled`]).

use entourage_api::keys::{self, annotation, label};
use serde_json::{Map, Value, json};

use crate::{
    cache::ResourceState,
    config::Config,
    fleet::{
        Fleet,
        autoscaling::{autoscaler, is_followed, is_scaled_kind, marked_by, scaler, sum},
    },
    object::{Meta, ResourceId},
    observation::Template,
    plan::{Change, HubObject, Plan, SyncRequirement, Verb},
    scheduling::{Own, own_part},
};

/// Plans the label of a template. Cost: O(1) without the marker; else O(autoscalers of the workload × candidate policies).
#[must_use]
pub fn plan_label(fleet: &Fleet, id: &ResourceId) -> Plan {
    let Some((resource, template)) = subject(fleet, id, |config| config.mark_scale_targets) else {
        return Plan::nothing();
    };
    let meta = &template.meta;
    let (held, marked) = (meta.label(label::RETAIN_REPLICAS), marked_by(id, meta));
    let scaler = scaler(fleet, id).map(|scaler| &*scaler.name);
    let Some(to) = wanted(held, marked.as_ref().map(|marked| &*marked.name), scaler) else {
        return Plan::nothing();
    };
    match (
        own_part(fleet, id, (resource, template), resource.last_binding()),
        &marked,
        scaler,
    ) {
        // A write would count as the change that a lazy policy waits for.
        (Some(Own::Held(..)), ..) | (None, None, _) | (_, None, None) => Plan::nothing(),
        (_, _, Some(scaler)) => {
            let why = format!("HorizontalPodAutoscaler {scaler} scales it");
            write_label(id, meta, to, why)
        }
        (_, Some(marked), None) => unlabel(fleet, id, meta, marked, to),
    }
}

/// The label and the annotation that a template is to have: their values, or `None` to remove one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Label<'a> {
    value: Option<&'a str>,
    by: Option<&'a str>,
}

/// The label and annotation of a template with this label, this annotation, and this autoscaler; `None` if they are as they are to
/// be. A label without the annotation is a user's, and so is a value that this control plane does not set.
fn wanted<'a>(held: Option<&'a str>, marked: Option<&'a str>, scaler: Option<&'a str>) -> Option<Label<'a>> {
    match (marked, scaler) {
        (None, Some(_)) if held.is_some() => None,
        (_, Some(_)) if marked == scaler && held.is_some() => None,
        (_, Some(by)) => Some(Label {
            value: held.or(Some(keys::TRUE)),
            by: Some(by),
        }),
        (Some(_), None) => Some(Label {
            value: held.filter(|held| *held != keys::TRUE),
            by: None,
        }),
        (None, None) => None,
    }
}

/// The end of the label: no autoscaler that is propagated names the workload, and the one that it was set for is proven to be gone
/// from the members. Before that it would scale there against the replicas of the hub.
fn unlabel(fleet: &Fleet, id: &ResourceId, meta: &Meta, marked: &ResourceId, to: Label<'_>) -> Plan {
    let needed = [SyncRequirement::Base, SyncRequirement::Templates(autoscaler())];
    if let Some(proof) = needed.into_iter().find(|proof| !fleet.has(proof)) {
        return Plan::wait_for(proof, "the autoscaler may still exist: not synced yet");
    }
    let targets_other = |resource: &ResourceState| {
        let target = resource.standing().and_then(|held| held.scales.as_deref());
        target.is_some_and(|target| target != id)
    };
    let remains = fleet.resource(marked).is_some_and(|resource| {
        let may_exist = resource
            .copies
            .iter()
            .any(|(cluster, state)| !state.is_absent() || fleet.may_exist(marked, cluster));
        may_exist && !targets_other(resource)
    });
    if remains {
        return Plan::wait("the autoscaler may still exist on a member");
    }
    let why = format!("HorizontalPodAutoscaler {} no longer scales it", marked.name);
    write_label(id, meta, to, why)
}

/// Plans the replicas of a template. Cost: O(1) if they are not followed; else O(clusters of its binding).
#[must_use]
pub fn plan_replicas(fleet: &Fleet, id: &ResourceId) -> Plan {
    let Some((resource, template)) = subject(fleet, id, |config| config.sync_replicas) else {
        return Plan::nothing();
    };
    let Some(binding) = resource
        .binding
        .as_ref()
        .filter(|held| held.meta.deleting.is_none())
    else {
        return Plan::nothing();
    };
    let spec = &binding.object.spec;
    let Some(placement) = &spec.placement else {
        return Plan::nothing();
    };
    if !is_followed(fleet, id, template, placement) || !is_propagated(fleet, id, resource, template) {
        return Plan::nothing();
    }
    let Some(sum) = sum(fleet, id, resource, spec) else {
        return Plan::wait("not every cluster has reported its replicas");
    };
    if template.replicas == Some(sum) {
        return Plan::nothing();
    }
    let body = json!({ "metadata": preconditions(&template.meta), "spec": { "replicas": sum } });
    patch(id, body, "the members have another number of replicas".into())
}

/// The template of a workload that autoscalers may scale, while it is to be written.
fn subject<'a>(
    fleet: &'a Fleet,
    id: &ResourceId,
    is_on: fn(&Config) -> bool,
) -> Option<(&'a ResourceState, &'a Template)> {
    if !is_on(&fleet.config) || !is_scaled_kind(&id.gvk) {
        return None;
    }
    let resource = fleet.resource(id)?;
    let template = resource.template.as_ref()?;
    let meta = &template.meta;
    let is_free = meta.deleting.is_none() && meta.label(label::CLAIMED_BY).is_none();
    is_free.then_some((resource, template))
}

/// True if a policy propagates the template, or left its copies. Not while a lazy policy waits for a user's change: a write would
/// count as one.
fn is_propagated(fleet: &Fleet, id: &ResourceId, resource: &ResourceState, template: &Template) -> bool {
    let own = own_part(fleet, id, (resource, template), resource.last_binding());
    matches!(own, Some(Own::Claimed(..) | Own::Orphaned))
}

fn write_label(id: &ResourceId, meta: &Meta, to: Label<'_>, why: String) -> Plan {
    let mut metadata = preconditions(meta);
    metadata.insert("labels".into(), json!({ label::RETAIN_REPLICAS: to.value }));
    metadata.insert("annotations".into(), json!({ annotation::SCALED_BY: to.by }));
    patch(id, json!({ "metadata": metadata }), why)
}

fn preconditions(meta: &Meta) -> Map<String, Value> {
    let of = [("uid", &meta.uid), ("resourceVersion", &meta.resource_version)];
    of.into_iter()
        .map(|(key, value)| (key.to_owned(), json!(&**value)))
        .collect()
}

fn patch(id: &ResourceId, body: Value, why: String) -> Plan {
    let object = HubObject::Template(id.clone());
    let verb = Verb::Merge(body);
    Plan::one(Change::Hub { object, verb }, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_label_is_set_while_an_autoscaler_is_there_and_a_users_label_is_left_alone() {
        let set = |value, by| {
            Some(Label {
                value: Some(value),
                by: Some(by),
            })
        };
        let clear = |value| Some(Label { value, by: None });
        let on = Some("true");
        for (held, marked, scaler, want, case) in [
            (None, None, None, None, "nothing scales it"),
            (None, None, Some("web"), set("true", "web"), "an autoscaler comes"),
            (on, Some("web"), Some("web"), None, "as it is to be"),
            (on, None, Some("web"), None, "a user's label"),
            (Some("false"), None, Some("web"), None, "a user's refusal"),
            (
                Some("false"),
                Some("web"),
                Some("web"),
                None,
                "a user's refusal of our label",
            ),
            (
                None,
                Some("web"),
                Some("web"),
                set("true", "web"),
                "the label alone was lost",
            ),
            (
                on,
                Some("web"),
                Some("web-2"),
                set("true", "web-2"),
                "another autoscaler",
            ),
            (
                Some("no"),
                Some("web"),
                Some("web-2"),
                set("no", "web-2"),
                "another one, refused",
            ),
            (on, Some("web"), None, clear(None), "it goes"),
            (
                Some("false"),
                Some("web"),
                None,
                clear(Some("false")),
                "it goes, and the refusal stays",
            ),
            (
                None,
                Some("web"),
                None,
                clear(None),
                "the annotation alone is left",
            ),
            (on, None, None, None, "a user's label, without an autoscaler"),
        ] {
            let planned = wanted(held, marked, scaler);
            assert_eq!(planned, want, "{case}");
            let after = planned.unwrap_or(Label {
                value: held,
                by: marked,
            });
            assert_eq!(
                wanted(after.value, after.by, scaler),
                None,
                "{case}: written once"
            );
        }
    }
}
