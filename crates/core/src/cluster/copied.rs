//! The report of objects on a member that carry this hub's ownership metadata and are not managed by it: an annotation of the
//! Cluster, which the Index reads at a start. It is written on a change, once that has settled, and only when the member's copies are known.

use entourage_api::keys::annotation;
use serde_json::{Value, json};

use super::merge;
use crate::{
    index::{Index, Member},
    object::{ResourceId, Str, Time},
    plan::{Plan, SyncRequirement},
};

/// How many objects are named.
const NAMED: usize = 20;
/// How long a change must have lasted, in milliseconds: a list tells of its items one by one, and a binding may come after
/// what it accounts for.
const SETTLED: i64 = 2_000;

/// Plans the annotation. Cost: O(kinds); O(objects named) when there are any.
pub(super) fn report(index: &Index, name: &Str, member: &Member, now: Time) -> Plan {
    let held = member.meta.annotation(annotation::COPIED_OBJECTS);
    let copied = index.copied.get(name);
    let objects = copied.map(|copied| &copied.objects);
    let count = objects.map_or(0, |objects| objects.len());
    if held.is_none() && count == 0 {
        return Plan::nothing();
    }
    // Policies and bindings say which kinds are in use, and bindings what is accounted for.
    if !index.is_base_synced() {
        return Plan::wait_for(SyncRequirement::Base, "the hub is not synced yet");
    }
    if !are_copies_known(index, name) {
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

/// Whether the list of every kind came, or is known not to come.
fn are_copies_known(index: &Index, name: &Str) -> bool {
    index.answers(name)
        && index.kinds.iter().all(|gvk| {
            let watch = index.copies(name, gvk);
            index.copies_known(name, gvk) || index.watches.is_unlistable(&watch)
        })
}

fn shown(id: &ResourceId) -> String {
    let at = match &*id.namespace {
        "" => String::new(),
        namespace => format!("{namespace}/"),
    };
    format!("{} {} {at}{}", id.gvk.api_version(), id.gvk.kind, id.name)
}
