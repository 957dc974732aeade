//! The status of a distribution: counts, six conditions in a fixed order, a sentence, and events on transition.
//!
//! The six conditions are OpenKruise's, in its order, and always present: users and tests index them. A status is written when
//! nothing is pending any more, and every [`PROGRESS`] while much is: a thousand namespaces cost one to three writes. Lists are
//! sorted and end after [`NAMED`] names, or [`NAMED_BYTES`]; the count beside them is complete. So a status without members
//! stays under 64 KiB, whatever fails.

mod members;

use entourage_api::{
    keys::{annotation, event},
    kruise::WritePolicy,
};
use members::{clusters, list, unlisted};
use serde_json::{Map, Value, json};

use super::{API_VERSION, KIND, Place, TargetStatus};
use crate::{
    fleet::{
        Fleet,
        secrets::{Withheld, withheld_copy},
        target_status::NoSource,
    },
    memory::distributions::{DistributionServer, DistributionState, TargetState},
    object::{Str, Time},
    places::{CONDITIONS, CONFLICT, SUCCEEDED},
    plan::{Change, Event, HubObject, Plan, Regarding, Verb},
};

/// The maximum number of names in a list.
const NAMED: usize = 100;
/// The maximum total size of the entries of a list, in bytes.
const NAMED_BYTES: usize = 4 << 10;
/// The time that a status waits while a change is pending, in milliseconds.
const PROGRESS: i64 = 5_000;
/// The time that the stored status is kept after a start, while the copies are read, in milliseconds.
const LOOKS: i64 = 300_000;
/// The minimum time between two status writes, in milliseconds.
const INTERVAL: i64 = 1_000;

/// Plans the status. Cost: O(places that failed, up to a hundred each, + members); O(1) while it waits.
#[must_use]
pub(crate) fn plan(fleet: &Fleet, name: &Str, now: Time) -> Plan {
    let Some(held) = fleet.memory.distributions.held.get(name) else {
        return Plan::nothing();
    };
    if held.object.meta.deleting.is_some() {
        return Plan::nothing();
    }
    // The members report, and `status::template` aggregates their reports: one writer.
    if held.object.is_claimed() {
        return Plan::nothing();
    }
    let unlisted = unlisted(held);
    let is_first = held.object.status["conditions"].is_null();
    if !unlisted.is_empty() && !is_first {
        return list(name, held, &unlisted);
    }
    if !fleet.are_distributions_judged(name) {
        return Plan::wait("namespaces, or the objects of its name, are not synced yet");
    }
    let wanted = report(fleet, name, held, now);
    if is_same(&held.object.status, &wanted) {
        return Plan::nothing();
    }
    // After a start every copy is read. Until then the stored status is more complete than the cache.
    let generation = held.object.meta.generation.unwrap_or_default();
    let is_reported = !is_first && held.object.observed_generation() == generation;
    let looks_since = held.under_way_since.filter(|_| is_reported && !held.settled);
    let until = looks_since.map(|since| since.plus(LOOKS));
    if let Some(until) = until.filter(|until| now < *until) {
        return Plan::wait_until(until, "not all of it was looked at since the start");
    }
    let earliest = held.status_written.map_or(now, |last| last.plus(INTERVAL));
    let earliest = match held.under_way_since.filter(|_| held.is_under_way()) {
        _ if !unlisted.is_empty() => now,
        Some(since) => earliest.max(held.status_written.unwrap_or(since).max(since).plus(PROGRESS)),
        None => earliest,
    };
    if now < earliest {
        return Plan::wait_until(earliest, "more is under way");
    }
    let meta = &held.object.meta;
    let mut changes = vec![merge(name, held, &patch(&held.object.status, &wanted))];
    changes.extend(
        events(
            &held.object.status,
            &wanted,
            invalid(fleet, name, held).is_some(),
            fleet.held_back(held),
        )
        .into_iter()
        .map(|(warning, reason, message)| {
            Change::Emit(Event {
                regarding: Regarding {
                    api_version: API_VERSION.into(),
                    kind: KIND.into(),
                    namespace: "".into(),
                    name: name.clone(),
                    uid: meta.uid.clone(),
                },
                warning,
                reason,
                message,
            })
        }),
    );
    Plan {
        changes,
        ..Plan::default()
    }
}

fn merge(name: &Str, held: &DistributionState, status: &Value) -> Change {
    let meta = &held.object.meta;
    Change::Hub {
        object: HubObject::Distribution(name.clone()),
        verb: Verb::MergeStatus(json!({
            "apiVersion": API_VERSION,
            "kind": KIND,
            "metadata": {
                "name": &**name,
                "uid": &*meta.uid,
                "resourceVersion": &*meta.resource_version,
            },
            "status": status,
        })),
    }
}

/// The desired status; a condition that did not change keeps its stored transition time.
fn report(fleet: &Fleet, name: &Str, held: &DistributionState, now: Time) -> Value {
    let (desired, succeeded) = (held.meant(), held.count(TargetStatus::Done));
    let generation = held.object.meta.generation.unwrap_or_default();
    let kept = fleet.held_back(held);
    // Stays at the earlier generation until a user confirms, so that a restart finds this state.
    let observed = if kept > 0 {
        held.object.observed_generation()
    } else {
        generation
    };
    let invalid = invalid(fleet, name, held);
    let conditions: Vec<Value> = CONDITIONS
        .iter()
        .enumerate()
        .map(|(at, (type_, target_statuses))| {
            let invalid = invalid.as_ref().filter(|_| at == 0);
            condition(fleet, name, held, type_, target_statuses, invalid, now)
        })
        .collect();
    let mut status = json!({
        "desired": desired,
        "succeeded": succeeded,
        "failed": desired - succeeded,
        "observedGeneration": observed,
        "conditions": conditions,
        "description": description(held, invalid.as_deref(), desired, succeeded, kept),
    });
    // A spec that cannot be read is not distributed.
    if let Ok(spec) = &held.object.spec {
        status[RECORD] = json!({"kind": &*spec.gvk.kind, "name": &*spec.name});
    }
    let conflicting = conflicting(fleet, name, held);
    if !conflicting.is_empty() {
        status["conflictingNamespaces"] = conflicting.into();
    }
    let clusters = if held.object.looks_at_members() {
        clusters(fleet, name, held)
    } else {
        Vec::new()
    };
    if !clusters.is_empty() {
        status["clusters"] = clusters.into();
    }
    status
}

/// The reason why nothing of a distribution can be written; `None` if it can.
fn invalid(fleet: &Fleet, name: &Str, held: &DistributionState) -> Option<String> {
    match &held.object.spec {
        Err(why) => Some(why.clone()),
        Ok(spec) => match fleet.content(name, spec) {
            Err(NoSource::Because(why)) => Some(why),
            _ => None,
        },
    }
}

fn condition(
    fleet: &Fleet,
    name: &Str,
    held: &DistributionState,
    type_: &str,
    target_statuses: &[TargetStatus],
    invalid: Option<&String>,
    now: Time,
) -> Value {
    let places = || {
        target_statuses
            .iter()
            .filter_map(|target_status| held.by_target_status.get(target_status))
            .flatten()
    };
    let count = places().count();
    let is_true = count > 0 || invalid.is_some();
    let status = if is_true { "True" } else { "False" };
    let before = held.object.status["conditions"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|each| each["type"] == *type_);
    let time = before
        .filter(|each| each["status"] == *status)
        .map(|each| each["lastTransitionTime"].clone())
        .filter(Value::is_string)
        .unwrap_or_else(|| json!(now.to_k8s()));
    let reason = match (invalid, places().next()) {
        (Some(why), _) => why.clone(),
        (None, Some(place)) => reason(fleet, name, held, type_, place),
        (None, None) => SUCCEEDED.into(),
    };
    let mut condition = json!({
        "type": type_,
        "status": status,
        "lastTransitionTime": time,
        "reason": reason,
    });
    if count > 0 {
        let named = bounded(places().map(ToString::to_string), String::len);
        condition["failedNamespace"] = json!(named);
        condition["failedNamespaces"] = json!(named);
        condition["count"] = json!(count);
    }
    condition
}

/// The reason, with the first place in order: the object, the place, the cause, what to do.
fn reason(fleet: &Fleet, name: &Str, held: &DistributionState, type_: &str, place: &Place) -> String {
    let target_state = held.target_states.get(place);
    match type_ {
        CONFLICT => {
            let owner = fleet
                .memory
                .distributions
                .place_of(name, place)
                .and_then(|at| {
                    fleet
                        .memory
                        .distributions
                        .part(&at, &place.namespace)
                        .map(super::observed::ObservedObject::owner)
                })
                .filter(|owner| !owner.is_empty())
                .map_or_else(
                    || "without a controller".to_owned(),
                    |owner| format!("of {owner}"),
                );
            format!(
                "namespace {place}: an object of this kind and name, {owner}, already exists: delete or rename it, \
                 exclude the namespace, or set writePolicy: overwrite where it has no controller"
            )
        }
        "NamespaceNotExists" => {
            format!(
                "namespace {place} does not exist or is being deleted: create it, or remove it from the targets"
            )
        }
        _ => {
            let spec = held.object.spec.as_ref().ok();
            let withheld = spec.and_then(|spec| withheld_copy(fleet, spec, place.cluster.as_ref()));
            let words = withheld
                .as_ref()
                .and_then(Withheld::message)
                .map(ToOwned::to_owned)
                .or_else(|| target_state.and_then(TargetState::failure_message))
                .or_else(|| fleet.unread(name, place))
                .unwrap_or_else(|| "it cannot be read".into());
            format!("namespace {place}: {words}")
        }
    }
}

fn description(
    held: &DistributionState,
    invalid: Option<&str>,
    desired: usize,
    succeeded: usize,
    kept: usize,
) -> String {
    if let Some(why) = invalid {
        return format!("Nothing is written: {why}");
    }
    if kept > 0 {
        return format!(
            "The targets select no namespace any more; {kept} copies are kept. To delete them, set the annotation \
             {}: \"true\"",
            annotation::ALLOW_EMPTY_TARGETS
        );
    }
    let conflicts = held.count(TargetStatus::Conflict);
    let strict = matches!(&held.object.spec, Ok(spec) if spec.write_policy == WritePolicy::Strict);
    if conflicts > 0 && strict {
        return format!(
            "Name conflict in {conflicts}/{desired} namespaces: nothing is written (writePolicy strict)"
        );
    }
    if conflicts > 0 {
        return format!("Name conflict in {conflicts}/{desired} namespaces; present in {succeeded}");
    }
    if desired == 0 {
        return "The targets select no namespace".into();
    }
    format!("Present in {succeeded}/{desired} namespaces")
}

fn conflicting(fleet: &Fleet, name: &Str, held: &DistributionState) -> Vec<Value> {
    let places = held
        .by_target_status
        .get(&TargetStatus::Conflict)
        .into_iter()
        .flatten();
    let entries = places.map(|place| {
        let part = fleet
            .memory
            .distributions
            .place_of(name, place)
            .and_then(|at| fleet.memory.distributions.part(&at, &place.namespace).cloned())
            .unwrap_or_default();
        let mut entry = Map::new();
        entry.insert("name".into(), json!(&*place.namespace));
        if let Some(cluster) = &place.cluster {
            entry.insert("cluster".into(), json!(&**cluster));
        }
        let owner = part.owner();
        let reason = if owner.is_empty() {
            "NotControlled"
        } else {
            "ControlledByOther"
        };
        if !owner.is_empty() {
            entry.insert("owner".into(), json!(owner));
        }
        entry.insert("reason".into(), json!(reason));
        Value::Object(entry)
    });
    bounded(entries, |entry| entry.to_string().len())
}

/// The first items of a list, up to its limits.
fn bounded<T>(all: impl Iterator<Item = T>, size: impl Fn(&T) -> usize) -> Vec<T> {
    let mut left = NAMED_BYTES;
    all.take(NAMED)
        .map_while(|each| {
            left = left.checked_sub(size(&each))?;
            Some(each)
        })
        .collect()
}

/// True if the stored status is equal; fields of other writers do not count.
fn is_same(stored: &Value, wanted: &Value) -> bool {
    let map = |value: &Value| value.as_object().cloned().unwrap_or_default();
    let (stored, wanted) = (map(stored), map(wanted));
    let gone = OPTIONAL
        .iter()
        .any(|field| stored.contains_key(*field) && !wanted.contains_key(*field));
    // The record is written together with other fields: a server whose CRD lacks the field would drop it each time.
    let says = |key: &String, value: &Value| match stored.get(key) {
        None => key == RECORD,
        Some(held) => held == value,
    };
    !gone && wanted.iter().all(|(key, value)| says(key, value))
}

/// The field for the distributed object: it never changes.
const RECORD: &str = "distributed";

/// The optional fields of the status.
const OPTIONAL: [&str; 2] = ["conflictingNamespaces", "clusters"];

/// A merge patch from the stored to the desired status.
fn patch(stored: &Value, wanted: &Value) -> Value {
    let mut patch = wanted.clone();
    for field in OPTIONAL {
        if !stored[field].is_null() && patch[field].is_null() {
            patch[field] = Value::Null;
        }
    }
    if let Some(map) = patch.as_object_mut() {
        map.retain(|key, value| !value.is_null() || !stored[key.as_str()].is_null());
    }
    patch
}

/// The events: true for a warning, reason, message. On transition only: the stored status differs.
fn events(stored: &Value, wanted: &Value, invalid: bool, kept: usize) -> Vec<(bool, &'static str, String)> {
    let turned = |at: usize| {
        let is_true = |status: &Value| status["conditions"][at]["status"] == "True";
        is_true(wanted) && !is_true(stored)
    };
    let words = |at: usize| {
        let text = wanted["conditions"][at]["reason"].as_str().unwrap_or_default();
        let count = wanted["conditions"][at]["count"].as_i64().unwrap_or_default();
        if count > 1 {
            format!("{text} (and {} more)", count - 1)
        } else {
            text.to_owned()
        }
    };
    let sentence = || wanted["description"].as_str().unwrap_or_default().to_owned();
    let mut all = Vec::new();
    if turned(0) {
        let reason = if invalid {
            event::DISTRIBUTION_INVALID
        } else {
            event::DISTRIBUTION_FAILED
        };
        all.push((true, reason, words(0)));
    }
    for at in [1, 2, 3, 5] {
        if turned(at) {
            all.push((true, event::DISTRIBUTION_FAILED, words(at)));
        }
    }
    if turned(4) {
        all.push((true, event::DISTRIBUTION_CONFLICT, words(4)));
    }
    if kept > 0 && stored["description"] != wanted["description"] {
        all.push((true, event::DISTRIBUTION_HELD, sentence()));
    }
    let complete = |status: &Value| {
        status["desired"].as_i64().is_some_and(|desired| desired > 0)
            && status["desired"] == status["succeeded"]
    };
    let anew = stored["observedGeneration"] != wanted["observedGeneration"];
    if complete(wanted) && (anew || !complete(stored)) {
        all.push((false, event::DISTRIBUTED, sentence()));
    }
    all
}

impl Fleet {
    /// True if the places of a distribution are synced: its server's namespaces and the objects of its name were listed, or
    /// cannot be. Cost: O(members) for one that targets members, else O(1).
    fn are_distributions_judged(&self, name: &Str) -> bool {
        use crate::observation::Watch;
        let known = |watch: &Watch| {
            self.cache.watches.is_listed(watch)
                || self.cache.watches.is_unlistable(watch)
                || self.cache.watches.is_no_such_kind(watch)
        };
        let held = self.memory.distributions.held.get(name);
        let looks_at_members = held.is_some_and(|held| held.object.looks_at_members());
        self.cache.watches.is_listed(&Watch::Distributions)
            && (self.cache.watches.is_listed(&Watch::Clusters) || !looks_at_members)
            && known(&Watch::Namespaces)
            && self
                .distribution_servers(name)
                .iter()
                .all(|at: &DistributionServer| match &at.cluster {
                    None => known(&at.watch()),
                    // A member that does not respond does not delay the report on the others, once that is known.
                    Some(cluster) if self.was_probed(cluster) && !self.answers(cluster) => true,
                    Some(cluster) => known(&at.watch()) && known(&Watch::MemberNamespaces(cluster.clone())),
                })
    }

    /// The reason why objects of a name cannot be listed, or `None`.
    fn unread(&self, name: &Str, place: &Place) -> Option<String> {
        let at = self.memory.distributions.place_of(name, place)?;
        self.cache.watches.unlistable(&at.watch()).cloned()
    }
}

#[cfg(test)]
mod waiting;
