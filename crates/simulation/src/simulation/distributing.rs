//! Copies of distributions in the report.

use std::collections::BTreeMap;

use entourage_api::keys::{annotation, label};
use serde_json::Value;

use super::{
    Simulation,
    outcome::{Fate, Note, Outcome, Place as Server, compared, outcome},
};
use entourage_core::{
    distribution::{self, Place, Step, TargetStatus},
    inspection::{self, DistributionView},
    object::{ResourceId, Str},
};

/// The maximum number of namespaces of one cause that are listed one by one.
const MAX_LISTED: usize = 100;

/// The distribution that an object of a server claims to be a copy of, or `None`. On members it must name this hub and this
/// place.
pub(super) fn from<'a>(server: &Server, hub: &str, object: &'a Value) -> Option<&'a str> {
    let (labels, annotations) = (&object["metadata"]["labels"], &object["metadata"]["annotations"]);
    let is_here = match server {
        Server::Hub => true,
        Server::Member(cluster) => {
            let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
            labels[label::DISTRIBUTED_BY] == *hub
                && annotations[annotation::DISTRIBUTED_IN] == format!("{cluster}/{namespace}")
        }
    };
    annotations[annotation::DISTRIBUTED_FROM]
        .as_str()
        .filter(|_| is_here)
}

/// The outcomes of the copies on the hub. Cost: O(objects of the hub + places of the distributions).
pub(super) fn on_hub(simulation: &Simulation) -> BTreeMap<ResourceId, Outcome> {
    let mut all = BTreeMap::new();
    let given = simulation
        .before()
        .hub
        .iter()
        .chain(simulation.servers.hub.iter());
    for (id, _) in given.filter(|(id, _)| !simulation.applied.contains_key(id)) {
        let (before, after) = (simulation.before().hub.get(id), simulation.servers.hub.get(id));
        let from = |object| from(&Server::Hub, "", object);
        let (was, is) = (before.and_then(from), after.and_then(from));
        let Some(name) = is
            .or(was)
            .filter(|name| inspection::distribution(simulation.engine(), name).is_some())
        else {
            continue;
        };
        let mut outcome = compared(Server::Hub, id, before, after);
        if outcome.fate == Fate::Changed && is.is_none() {
            outcome.fate = Fate::Released;
        }
        outcome.message = message(simulation, id, None, name, is.is_some());
        all.insert(id.clone(), outcome);
    }
    all.extend(held_up(simulation, None));
    all
}

/// The reason why a copy is created or removed.
pub(super) fn message(
    simulation: &Simulation,
    id: &ResourceId,
    cluster: Option<&Str>,
    name: &str,
    stays: bool,
) -> String {
    let key = (cluster.cloned().unwrap_or_default(), id.clone());
    match simulation.whys.get(&key).filter(|_| !stays) {
        Some(why) if !why.is_empty() => format!("by ResourceDistribution {name}: {why}"),
        _ => format!("by ResourceDistribution {name}"),
    }
}

/// The copies on a server that should be created or removed, and are blocked.
pub(super) fn held_up(simulation: &Simulation, cluster: Option<&Str>) -> BTreeMap<ResourceId, Outcome> {
    let server = cluster.map_or(Server::Hub, |name| Server::Member(name.clone()));
    let mut all = BTreeMap::new();
    for (name, distribution) in inspection::distributions(simulation.engine()) {
        let Some(spec) = distribution.spec() else { continue };
        for (target_status, places) in distribution.places() {
            let here = places.filter(|place| place.cluster.as_ref() == cluster);
            for place in here.take(MAX_LISTED) {
                let Some((fate, why)) = why_not(name, distribution, target_status, place) else {
                    continue;
                };
                let id = ResourceId::new(spec.gvk.clone(), &place.namespace, &spec.name);
                let reported = outcome(
                    server.clone(),
                    &id,
                    fate,
                    format!("by ResourceDistribution {name}: {why}"),
                );
                all.insert(id, reported);
            }
        }
    }
    all
}

fn why_not(
    name: &Str,
    distribution: DistributionView<'_>,
    target_status: TargetStatus,
    place: &Place,
) -> Option<(Fate, String)> {
    match target_status {
        TargetStatus::Done | TargetStatus::Leaving | TargetStatus::Kept => None,
        TargetStatus::Conflict => Some((
            Fate::Refused,
            format!("it already exists and is not managed by {name}; writePolicy overwrite takes it over"),
        )),
        TargetStatus::NoNamespace => Some((Fate::Waiting, "the namespace does not exist".into())),
        TargetStatus::Blocked => {
            let conflicts = distribution.count(TargetStatus::Conflict);
            let namespaces = if conflicts == 1 {
                "namespace is"
            } else {
                "namespaces are"
            };
            let why =
                format!("nothing is written while {conflicts} {namespaces} in conflict (writePolicy strict)");
            Some((Fate::Waiting, why))
        }
        TargetStatus::Pending => Some((Fate::Waiting, "the present state is unknown".into())),
        TargetStatus::Failed(_) => {
            let why = distribution.failure_message(place);
            Some((Fate::Refused, why.unwrap_or_else(|| "it cannot be read".into())))
        }
    }
}

/// Notes about distributions in addition to the outcome of each copy.
pub(super) fn notes(simulation: &Simulation) -> impl Iterator<Item = Note> {
    whole(simulation).chain(kept_out(simulation))
}

/// Notes about given objects that block copies: they have outcomes of their own, so the conflict is noted here.
fn kept_out(simulation: &Simulation) -> impl Iterator<Item = Note> {
    held_up(simulation, None)
        .into_iter()
        .filter_map(|(id, reported)| {
            let is_given = simulation.applied.contains_key(&id) && reported.fate == Fate::Refused;
            is_given.then(|| Note {
                object: id.to_string(),
                condition: "Distributed".into(),
                reason: "Conflict".into(),
                message: reported.message,
            })
        })
}

/// Notes about distributions that cannot be read, whose source is missing, or whose copies are kept until a user confirms.
fn whole(simulation: &Simulation) -> impl Iterator<Item = Note> {
    simulation.servers.hub.iter().filter_map(|(id, object)| {
        if id.gvk != distribution::gvk() {
            return None;
        }
        let state = inspection::distribution(simulation.engine(), &id.name)?;
        let is_bad = state.spec().is_none();
        let has_no_source = state.count(TargetStatus::Failed(Step::Get)) > 0;
        let is_kept = state.is_held_back();
        let reason = match (is_bad, has_no_source, is_kept) {
            (true, ..) => "Invalid",
            (_, true, _) => "GetResourceFailed",
            (.., true) => "HeldBack",
            _ => return None,
        };
        let reported = object["status"]["description"].as_str().unwrap_or_default();
        Some(Note {
            object: id.to_string(),
            condition: "Distributed".into(),
            reason: reason.into(),
            message: reported.to_owned(),
        })
    })
}

/// The namespaces that distributions name and that are not given: a plan without a hub assumes that they exist.
#[must_use]
pub fn named_namespaces(objects: &[Value]) -> Vec<Str> {
    let is_given = |name: &str| {
        objects
            .iter()
            .any(|object| object["kind"] == "Namespace" && object["metadata"]["name"] == *name)
    };
    let targets = objects
        .iter()
        .filter(|object| object["kind"] == distribution::KIND)
        .filter_map(|object| serde_json::from_value(object["spec"]["targets"].clone()).ok())
        .filter_map(|targets| distribution::targets::Targets::compile(&targets).ok());
    let mut names: Vec<Str> = targets.flat_map(|targets| targets.named().clone()).collect();
    names.sort();
    names.dedup();
    names.retain(|name| !is_given(name));
    names
}
