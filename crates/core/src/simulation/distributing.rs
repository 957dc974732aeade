//! Copies of distributions in the model. The core decides the order of requests, as for the shell.

use std::collections::BTreeMap;

use entourage_api::keys::{annotation, label};
use serde_json::{Value, json};

use super::{
    Question, Simulation,
    outcome::{Fate, Note, Outcome, Place as Server, compared, outcome},
};
use crate::{
    distribution::{
        self, Order, Place, Step, TargetStatus,
        apply_task::{self, Answer, ApplyTask, Next, No, Request},
    },
    memory::distributions::DistributionState,
    object::{ResourceId, Str},
    observation::{Observation, Subject, Watch, Wrote},
    plan::{Preconditions, RemovalMode},
    rendered::wipe,
};

/// The response of a server: an object, or the class of its error with the message.
type Response = Result<Value, (No, String)>;

/// The maximum number of namespaces of one cause that are listed one by one.
const MAX_LISTED: usize = 100;

impl Simulation {
    /// The question to answer before a copy is applied, or `None`.
    pub(super) fn source_of(&self, order: &Order) -> Option<Question> {
        let source = apply_task::source(order);
        (!self.hub.contains(&source)).then_some(Question::Template(source))
    }

    /// Applies the copy of a distribution.
    pub(super) fn distribute(&mut self, order: &Order) -> Vec<Observation> {
        let mut seen = Vec::new();
        let wrote = self.bring_in_line(order, &mut seen);
        let (name, place) = (order.distribution.clone(), order.place.clone());
        seen.push(Observation::Distributed(name, place, wrote));
        seen
    }

    /// Deletes or releases the copy of a distribution.
    pub(super) fn withdraw(
        &mut self,
        (distribution, uid): (Str, &Str),
        place: Place,
        id: &ResourceId,
        preconditions: &Preconditions,
        mode: RemovalMode,
    ) -> Vec<Observation> {
        let mut seen = Vec::new();
        let render_spec = apply_task::recipe_to_withdraw(&distribution, uid, &place, &self.engine.config.hub);
        let wrote = self.ask_until_it_ends(
            ApplyTask::withdraw(&render_spec, preconditions, mode),
            &place,
            id,
            &mut seen,
        );
        seen.push(Observation::Distributed(distribution, place, wrote));
        seen
    }

    fn bring_in_line(&mut self, order: &Order, seen: &mut Vec<Observation>) -> Wrote {
        let Some(mut fetched) = self.hub.get(&apply_task::source(order)).cloned() else {
            return Wrote::Failed {
                step: Step::Get,
                message: "what is distributed does not exist on the hub".into(),
            };
        };
        let (subject, content) = apply_task::content(order, &fetched);
        seen.push(Observation::Seen(subject));
        let wrote = match content {
            Ok(content) => {
                self.ask_until_it_ends(ApplyTask::bring(order, content), &order.place, &order.id, seen)
            }
            Err(wrote) => wrote,
        };
        wipe(&mut fetched);
        wrote
    }

    fn ask_until_it_ends(
        &mut self,
        (mut apply_task, mut request): (ApplyTask<'_>, Request),
        place: &Place,
        id: &ResourceId,
        seen: &mut Vec<Observation>,
    ) -> Wrote {
        loop {
            let mut response = self.ask(&request, place, id);
            let turn = apply_task.answered(&match &response {
                Ok(object) => Answer::Object(object),
                Err((no, words)) => Answer::No(*no, words.clone()),
            });
            if let Ok(object) = &mut response {
                wipe(object);
            }
            if let Some(part) = turn.seen {
                let subject = Subject::Distributed(place.cluster.clone(), id.clone(), part);
                seen.push(Observation::Seen(subject));
            }
            match turn.next {
                Next::Ask(next) => request = next,
                Next::End(wrote) => return wrote,
            }
        }
    }

    /// Responds as the server of a place.
    fn ask(&mut self, request: &Request, place: &Place, id: &ResourceId) -> Response {
        let live = self.at(place, id).cloned();
        let is_exactly = |live: &Value, wanted: &Value| {
            ["uid", "resourceVersion"]
                .iter()
                .all(|field| live["metadata"][field] == wanted[field])
        };
        let changed = || (No::Changed, "it changed".to_owned());
        match (request, live) {
            (Request::Read | Request::Look, Some(live)) => Ok(live),
            (Request::Create(_), Some(_)) => Err((No::Exists, "it exists".into())),
            (Request::Create(copy), None) => {
                let made = self.versions.created(id, copy.object().clone(), self.now);
                self.store(place, id, None, made.clone());
                Ok(made)
            }
            (_, None) => Err((No::Gone, "it does not exist".into())),
            (Request::Replace(copy), Some(live)) => {
                if !is_exactly(&live, &copy.object()["metadata"]) {
                    return Err(changed());
                }
                let next = self.versions.replaced(id, &live, copy.object().clone());
                self.store(place, id, Some(&live), next.clone());
                Ok(next)
            }
            (Request::Delete(preconditions), Some(live)) => {
                let wanted =
                    json!({"uid": &*preconditions.uid, "resourceVersion": &*preconditions.resource_version});
                if !is_exactly(&live, &wanted) {
                    return Err(changed());
                }
                match &place.cluster {
                    None => self.delete_on_hub(id),
                    Some(cluster) => {
                        if let Some(member) = self.members.get_mut(cluster) {
                            member.objects.remove(id);
                        }
                        self.copy_changed(cluster, id, Some(&live));
                    }
                }
                Ok(json!({"kind": "Status", "status": "Success"}))
            }
        }
    }

    fn at(&self, place: &Place, id: &ResourceId) -> Option<&Value> {
        match &place.cluster {
            None => self.hub.get(id),
            Some(cluster) => self.members.get(cluster)?.objects.get(id),
        }
    }

    fn store(&mut self, place: &Place, id: &ResourceId, before: Option<&Value>, object: Value) {
        match &place.cluster {
            None => {
                self.hub.insert(id.clone(), object);
                self.hub_changed(id);
            }
            Some(cluster) => {
                let member = self.members.entry(cluster.clone()).or_default();
                member.objects.insert(id.clone(), object);
                self.copy_changed(cluster, id, before);
            }
        }
    }
}

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
    let given = simulation.hub_before.iter().chain(simulation.hub.iter());
    for (id, _) in given.filter(|(id, _)| !simulation.applied.contains(id)) {
        let (before, after) = (simulation.hub_before.get(id), simulation.hub.get(id));
        let from = |object| from(&Server::Hub, "", object);
        let (was, is) = (before.and_then(from), after.and_then(from));
        let Some(name) = is
            .or(was)
            .filter(|name| simulation.engine.memory.distributions.held.contains_key(*name))
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
    for (name, held) in &simulation.engine.memory.distributions.held {
        let Ok(spec) = &held.object.spec else { continue };
        for (target_status, places) in &held.by_verdict {
            let here = places.iter().filter(|place| place.cluster.as_ref() == cluster);
            for place in here.take(MAX_LISTED) {
                let Some((fate, why)) = why_not(name, held, *target_status, place) else {
                    continue;
                };
                let id = ResourceId::new(spec.gvk.clone(), &place.namespace, &spec.name);
                let told = outcome(
                    server.clone(),
                    &id,
                    fate,
                    format!("by ResourceDistribution {name}: {why}"),
                );
                all.insert(id, told);
            }
        }
    }
    all
}

fn why_not(
    name: &Str,
    held: &DistributionState,
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
            let conflicts = held.count(TargetStatus::Conflict);
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
            let why = held.spots.get(place).and_then(|spot| spot.why_failed());
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
    held_up(simulation, None).into_iter().filter_map(|(id, told)| {
        let is_given = simulation.applied.contains(&id) && told.fate == Fate::Refused;
        is_given.then(|| Note {
            object: id.to_string(),
            condition: "Distributed".into(),
            reason: "Conflict".into(),
            message: told.message,
        })
    })
}

/// Notes about distributions that cannot be read, whose source is missing, or whose copies are kept until a user confirms.
fn whole(simulation: &Simulation) -> impl Iterator<Item = Note> {
    simulation.hub.iter().filter_map(|(id, object)| {
        if id.gvk != distribution::gvk() {
            return None;
        }
        let held = simulation.engine.memory.distributions.held.get(&id.name)?;
        let is_bad = held.object.spec.is_err();
        let has_no_source = held.count(TargetStatus::Failed(Step::Get)) > 0;
        let is_kept = simulation.engine.held_back(held) > 0;
        let reason = match (is_bad, has_no_source, is_kept) {
            (true, ..) => "Invalid",
            (_, true, _) => "GetResourceFailed",
            (.., true) => "HeldBack",
            _ => return None,
        };
        let told = object["status"]["description"].as_str().unwrap_or_default();
        Some(Note {
            object: id.to_string(),
            condition: "Distributed".into(),
            reason: reason.into(),
            message: told.to_owned(),
        })
    })
}

/// The watch of copies of distributions on a member.
pub(super) fn watch_of(cluster: &Str, id: &ResourceId) -> Watch {
    Watch::Distributed(Some(cluster.clone()), id.gvk.clone(), id.name.clone())
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
