//! The result of a simulation: the outcome of each object of the hub and of each copy, and notes.

use std::collections::{BTreeMap, BTreeSet};

use entourage_api::keys::label;
use serde::Serialize;
use serde_json::Value;

use super::{Simulation, distributing, is_binding, notes};
use crate::{executor::namespace, objects::Objects, shown};
use entourage_core::{
    inspection,
    object::{NamespacedName, ResourceId, Str},
    plan::Key,
};

/// The server of an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// On the hub.
    Hub,
    /// On a member.
    Member(Str),
}

impl Serialize for Place {
    /// `hub`, or `member/<name>`.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Hub => serializer.serialize_str("hub"),
            Self::Member(name) => serializer.collect_str(&format_args!("member/{name}")),
        }
    }
}

/// The change of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Fate {
    /// It is created.
    Created,
    /// It exists and is changed.
    Changed,
    /// It is deleted.
    Removed,
    /// It is kept, without ownership metadata.
    Released,
    /// It is not changed.
    Unchanged,
    /// The server refuses it, or an existing object blocks it.
    Refused,
    /// It is to be created, and something delays it.
    Waiting,
}

impl Fate {
    /// All variants, in the order in which they are counted.
    pub const ALL: &[Self] = &[
        Self::Created,
        Self::Changed,
        Self::Removed,
        Self::Released,
        Self::Unchanged,
        Self::Refused,
        Self::Waiting,
    ];

    /// The word for output.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Changed => "changed",
            Self::Removed => "removed",
            Self::Released => "released",
            Self::Unchanged => "unchanged",
            Self::Refused => "refused",
            Self::Waiting => "waiting",
        }
    }

    /// True if something is written.
    #[must_use]
    pub const fn is_change(self) -> bool {
        matches!(
            self,
            Self::Created | Self::Changed | Self::Removed | Self::Released
        )
    }
}

/// The outcome of one object. It has no value of a Secret.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Outcome {
    /// The server.
    pub place: Place,
    /// The object.
    #[serde(flatten, serialize_with = "parts")]
    pub object: ResourceId,
    /// Its change.
    #[serde(rename = "outcome")]
    pub fate: Fate,
    /// The reason, for a user; may be empty.
    pub message: String,
    /// The object before, redacted; only if it changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// The object after, redacted; only if it changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
}

/// A condition to report.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Note {
    /// Its subject: a template or a policy.
    pub object: String,
    /// The condition that is not True, such as `Scheduled`.
    pub condition: String,
    /// Its reason.
    pub reason: String,
    /// Its message: cause and remedy.
    pub message: String,
}

/// The result of a simulation.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The outcome of each object, the hub's first, then by member.
    pub outcomes: Vec<Outcome>,
    /// Conditions to report.
    pub notes: Vec<Note>,
    /// The members that could not be read, with the reason: their copies are assumed to be as the hub recorded them.
    pub unread: BTreeMap<Str, String>,
}

impl Report {
    /// The number of objects per fate.
    #[must_use]
    pub fn counts(&self) -> BTreeMap<Fate, usize> {
        let mut counts = BTreeMap::new();
        for outcome in &self.outcomes {
            *counts.entry(outcome.fate).or_default() += 1;
        }
        counts
    }

    /// True if anything is written.
    #[must_use]
    pub fn has_changes(&self) -> bool {
        self.outcomes.iter().any(|outcome| outcome.fate.is_change())
    }
}

fn parts<S: serde::Serializer>(id: &ResourceId, serializer: S) -> Result<S::Ok, S::Error> {
    let parts = BTreeMap::from([
        ("apiVersion", id.gvk.api_version()),
        ("kind", id.gvk.kind.to_string()),
        ("namespace", id.namespace.to_string()),
        ("name", id.name.to_string()),
    ]);
    parts.serialize(serializer)
}

/// Compares the model with the given objects. Cost: O(objects of all servers + entities × members).
pub(super) fn report(simulation: &Simulation) -> Report {
    let mut outcomes = on_hub(simulation);
    for (cluster, objects) in &simulation.servers.members {
        outcomes.extend(on_member(simulation, cluster, objects));
    }
    Report {
        outcomes,
        notes: notes::notes(simulation),
        unread: simulation.unread.clone(),
    }
}

fn on_hub(simulation: &Simulation) -> Vec<Outcome> {
    let mut all = BTreeMap::new();
    for (id, after) in simulation.applied.iter() {
        let outcome = compared(Place::Hub, id, simulation.before().hub.get(id), Some(after));
        all.insert(id.clone(), outcome);
    }
    for (id, why) in &simulation.refused {
        all.insert(id.clone(), outcome(Place::Hub, id, Fate::Refused, why.clone()));
    }
    let bindings = simulation
        .before()
        .hub
        .iter()
        .chain(simulation.servers.hub.iter());
    let bindings: BTreeSet<&ResourceId> = bindings.map(|(id, _)| id).filter(|id| is_binding(id)).collect();
    for id in bindings {
        let (before, after) = (simulation.before().hub.get(id), simulation.servers.hub.get(id));
        all.insert(id.clone(), compared(Place::Hub, id, before, after));
    }
    for (id, outcome) in distributing::on_hub(simulation) {
        all.entry(id).or_insert(outcome);
    }
    all.into_values().collect()
}

fn on_member(simulation: &Simulation, cluster: &Str, objects: &Objects) -> Vec<Outcome> {
    let hub = &*simulation.engine().config.hub;
    let place = || Place::Member(cluster.clone());
    let server = place();
    let is_ours = |object: &Value| {
        object["metadata"]["labels"][label::HUB] == *hub || distributing::from(&server, hub, object).is_some()
    };
    let mut all = BTreeMap::new();
    let given = simulation.before().members.get(cluster);
    let ids = given.into_iter().chain([objects]).flat_map(|all| all.keys());
    let ids: BTreeSet<&ResourceId> = ids.collect();
    for id in ids {
        let (before, after) = (given.and_then(|given| given.get(id)), objects.get(id));
        let mut outcome = compared(place(), id, before, after);
        let (was, is) = (before.is_some_and(is_ours), after.is_some_and(is_ours));
        // A namespace that is created on every member has no ownership metadata: it is reported when it changes.
        let is_namespace = *id == namespace(&id.name) && outcome.fate != Fate::Unchanged;
        if !was && !is && !is_namespace {
            continue;
        }
        if outcome.fate == Fate::Changed && was != is {
            (outcome.fate, outcome.message) = if is {
                (Fate::Changed, "taken over: it was not managed by this hub".into())
            } else {
                (Fate::Released, String::new())
            };
        }
        let mut objects = [after, before].into_iter().flatten();
        let distributed = objects.find_map(|object| distributing::from(&server, hub, object));
        if outcome.message.is_empty() {
            outcome.message = if let Some(name) = distributed {
                distributing::message(simulation, id, Some(cluster), name, is)
            } else if is {
                because(simulation, id, cluster)
            } else {
                let why = simulation.whys.get(&(cluster.clone(), id.clone()));
                why.cloned().unwrap_or_default()
            };
        }
        all.insert(id.clone(), outcome);
    }
    all.extend(distributing::held_up(simulation, Some(cluster)));
    for (id, resource) in simulation.engine().resources() {
        if !inspection::wants(simulation.engine(), id, cluster) {
            continue;
        }
        let copy = resource.copies.get(cluster);
        if let Some(problem) = copy.and_then(|copy| copy.problem.as_ref()) {
            let refused = outcome(place(), id, Fate::Refused, problem.message.clone());
            all.insert(id.clone(), refused);
        } else if copy.is_none_or(|copy| copy.live.is_none()) && resource.standing().is_some() {
            let key = Key::Copy(id.clone(), cluster.clone());
            let why = simulation
                .engine()
                .preview(&key, simulation.servers.now)
                .why
                .join("; ");
            all.insert(id.clone(), outcome(place(), id, Fate::Waiting, why));
        }
    }
    all.into_values().collect()
}

pub(super) fn outcome(place: Place, id: &ResourceId, fate: Fate, message: String) -> Outcome {
    Outcome {
        place,
        object: id.clone(),
        fate,
        message,
        before: None,
        after: None,
    }
}

/// The outcome of an object, by its states before and after.
pub(super) fn compared(
    place: Place,
    id: &ResourceId,
    before: Option<&Value>,
    after: Option<&Value>,
) -> Outcome {
    let fate = match (before, after) {
        (None, _) => Fate::Created,
        (Some(_), None) => Fate::Removed,
        (Some(before), Some(after)) if shown::clean(before) == shown::clean(after) => Fate::Unchanged,
        (Some(_), Some(_)) => Fate::Changed,
    };
    let mut outcome = outcome(place, id, fate, String::new());
    if fate != Fate::Unchanged {
        (outcome.before, outcome.after) = shown::pair(before, after);
    }
    outcome
}

/// The reason for the copy: the policy, and the workloads that require it.
fn because(simulation: &Simulation, id: &ResourceId, cluster: &str) -> String {
    let engine = simulation.engine();
    let Some(binding) = engine.resource(id).and_then(|resource| resource.binding.as_ref()) else {
        return String::new();
    };
    let mut words = Vec::new();
    if binding.object.spec.placement.is_some() && binding.is_placed_on(cluster) {
        let policy = binding.claimant();
        words.extend(policy.map(|name| format!("by policy {name}")));
    }
    let required = binding.object.spec.required_by.iter();
    let needed: Vec<String> = required
        .filter(|each| each.clusters.iter().any(|target| target.name == cluster))
        .map(|each| {
            let name = NamespacedName::new(&each.namespace, &each.name);
            engine
                .by_binding(&name)
                .map_or_else(|| name.to_string(), ToString::to_string)
        })
        .collect();
    if !needed.is_empty() {
        words.push(format!("dependency of {}", needed.join(", ")));
    }
    words.join("; ")
}
