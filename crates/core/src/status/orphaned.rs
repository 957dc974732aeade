//! The status of a binding whose template was deleted with `--cascade=orphan`.
//!
//! Every other condition is about a template that is gone: they are removed. The items of the members stay: they record the
//! clusters of the copies.

use entourage_api::keys::{condition, event, reason};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::{
    cache::{Binding, ResourceState},
    condition as conditions,
    fleet::{Fleet, regarding::on_binding},
    object::{ResourceId, Str, Time},
    plan::{Change, Event, HubObject, Plan, Verb},
    stored_binding::to_value,
};

/// Plans the status of an orphaned binding. Cost: O(its copies).
pub(super) fn plan(
    fleet: &Fleet,
    id: &ResourceId,
    resource: &ResourceState,
    stored: &Binding,
    now: Time,
) -> Plan {
    let mut status = stored.object.status.clone().unwrap_or_default();
    let before = status.clone();
    status.conditions.retain(|each| each.type_ == condition::ORPHANED);
    let message = message(fleet, id, resource);
    let turned = conditions::set(
        &mut status.conditions,
        Condition {
            type_: condition::ORPHANED.into(),
            status: "True".into(),
            reason: reason::TEMPLATE_ORPHANED.into(),
            message: message.clone(),
            observed_generation: stored.meta.generation,
            last_transition_time: now.to_k8s(),
        },
    );
    if status == before {
        return Plan::nothing();
    }
    let mut object = (*stored.object).clone();
    object.status = Some(status);
    let mut plan = Plan::one(
        Change::Hub {
            object: HubObject::Binding(stored.name.clone()),
            verb: Verb::ReplaceStatus(to_value(&object)),
        },
        "its template was deleted with --cascade=orphan",
    );
    if turned {
        plan.changes.push(Change::Emit(Event {
            regarding: on_binding(stored),
            warning: false,
            reason: event::TEMPLATE_ORPHANED,
            message,
        }));
    }
    plan
}

fn message(fleet: &Fleet, id: &ResourceId, resource: &ResourceState) -> String {
    // A copy that may have been sent and is not observed is not reported.
    let is_known_absent = |cluster: &Str| {
        let state = resource.copies.get(cluster);
        fleet.copies_known(cluster, &id.gvk) && state.is_some_and(|state| state.live.is_none())
    };
    let held = resource
        .copies
        .keys()
        .filter(|cluster| fleet.may_exist(id, cluster) && !is_known_absent(cluster));
    let clusters: Vec<&str> = held.map(|cluster| &**cluster).collect();
    let kept = match clusters.as_slice() {
        [] => "it has no copies".to_owned(),
        [one] => format!("its copy on {one} is kept as it is"),
        all => format!(
            "its {} copies on {} are kept as they are",
            all.len(),
            all.join(", ")
        ),
    };
    format!(
        "{id} was deleted with --cascade=orphan: {kept}; create it again to have them updated again, or delete this binding to \
         release them"
    )
}
