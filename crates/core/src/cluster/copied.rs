//! The report of objects on a member that carry this hub's ownership metadata and are not managed by it: an annotation of the
//! Cluster, which the engine reads at a start. It is written on a change, once that has lasted, and only when the member's copies
//! are synced.

use entourage_api::keys::annotation;
use serde_json::{Value, json};

use super::merge;
use crate::{
    cache::Member,
    fleet::Fleet,
    object::{ResourceId, Str, Time},
    plan::{Plan, SyncRequirement},
};

/// The maximum number of objects named.
const NAMED: usize = 20;
/// The time that a change must last, in milliseconds: a list reports its items one by one, and a binding may be observed after
/// the copy it manages.
const SETTLED: i64 = 2_000;

/// Plans the annotation. Cost: O(kinds); O(objects named) when there are any.
pub(super) fn report(fleet: &Fleet, name: &Str, member: &Member, now: Time) -> Plan {
    let held = member.meta.annotation(annotation::COPIED_OBJECTS);
    let copied = fleet.cache.copied.get(name);
    let objects = copied.map(|copied| &copied.objects);
    let count = objects.map_or(0, |objects| objects.len());
    if held.is_none() && count == 0 {
        return Plan::nothing();
    }
    // Policies and bindings determine the kinds in use, and bindings the managed copies.
    if !fleet.is_base_synced() {
        return Plan::wait_for(SyncRequirement::Base, "the hub is not synced yet");
    }
    if !are_copies_known(fleet, name) {
        return Plan::wait("the member is not synced yet");
    }
    let settled = copied
        .and_then(|copied| copied.changed)
        .map(|at| at.plus(SETTLED));
    if let Some(until) = settled.filter(|until| now < *until) {
        return Plan::wait_until(until, "more may come");
    }
    let wanted = objects.filter(|_| count > 0).map(|objects| {
        let named: Vec<String> = objects.iter().take(NAMED).map(shown).collect();
        json!({"count": count, "objects": named}).to_string()
    });
    if held == wanted.as_deref() {
        return Plan::nothing();
    }
    let value = wanted.map_or(Value::Null, Value::String);
    merge(
        name,
        member,
        json!({"annotations": {annotation::COPIED_OBJECTS: value}}),
        "objects that are not managed carry ownership metadata of this hub",
    )
}

/// True if the list of every kind was received, or is known to be impossible.
fn are_copies_known(fleet: &Fleet, name: &Str) -> bool {
    fleet.answers(name)
        && fleet.graph.kinds.iter().all(|gvk| {
            let watch = fleet.copies(name, gvk);
            fleet.copies_known(name, gvk) || fleet.cache.watches.is_unlistable(&watch)
        })
}

fn shown(id: &ResourceId) -> String {
    let at = match &*id.namespace {
        "" => String::new(),
        namespace => format!("{namespace}/"),
    };
    format!("{} {} {at}{}", id.gvk.api_version(), id.gvk.kind, id.name)
}
