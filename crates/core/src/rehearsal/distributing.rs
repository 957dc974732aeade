//! Copies of distributions in the model. Which request follows which is the core's own business, as it is for the shell.

use std::collections::BTreeMap;

use entourage_api::keys::{annotation, label};
use serde_json::{Value, json};

use super::{
    Question, Rehearsal,
    outcome::{Fate, Note, Outcome, Place as Server, compared, outcome},
};
use crate::{
    distribution::{
        self, Order, Place, Step, Verdict,
        errand::{self, Answer, Errand, Next, No, Request},
    },
    index::distributions::Held,
    object::{Id, Str},
    observation::{Observation, Subject, Watch, Wrote},
    plan::{Guard, How},
    rendered::wipe,
};

/// What a server says to a request: an object, or what its refusal means.
type Said = Result<Value, (No, String)>;

/// How many namespaces of one cause are told one by one.
const TOLD: usize = 100;

impl Rehearsal {
    /// What must be known before a copy is brought in line.
    pub(super) fn source_of(&self, order: &Order) -> Option<Question> {
        let source = errand::source(order);
        (!self.hub.contains(&source)).then_some(Question::Template(source))
    }

    /// Brings the copy of a distribution in line.
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
        id: &Id,
        guard: &Guard,
        how: How,
    ) -> Vec<Observation> {
        let mut seen = Vec::new();
        let recipe = errand::recipe_to_withdraw(&distribution, uid, &place, &self.index.config.hub);
        let wrote = self.ask_until_it_ends(Errand::withdraw(&recipe, guard, how), &place, id, &mut seen);
        seen.push(Observation::Distributed(distribution, place, wrote));
        seen
    }

    fn bring_in_line(&mut self, order: &Order, seen: &mut Vec<Observation>) -> Wrote {
        let Some(mut fetched) = self.hub.get(&errand::source(order)).cloned() else {
            return Wrote::Failed {
                step: Step::Get,
                message: "what is distributed does not exist on the hub".into(),
            };
        };
        let (subject, content) = errand::content(order, &fetched);
        seen.push(Observation::Seen(subject));
        let wrote = match content {
            Ok(content) => {
                self.ask_until_it_ends(Errand::bring(order, content), &order.place, &order.id, seen)
            }
            Err(wrote) => wrote,
        };
        wipe(&mut fetched);
        wrote
    }

    fn ask_until_it_ends(
        &mut self,
        (mut errand, mut request): (Errand<'_>, Request),
        place: &Place,
        id: &Id,
        seen: &mut Vec<Observation>,
    ) -> Wrote {
        loop {
            let mut said = self.ask(&request, place, id);
            let turn = errand.answered(&match &said {
                Ok(object) => Answer::Object(object),
                Err((no, words)) => Answer::No(*no, words.clone()),
            });
            if let Ok(object) = &mut said {
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

    /// The server of a place.
    fn ask(&mut self, request: &Request, place: &Place, id: &Id) -> Said {
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
            (Request::Delete(guard), Some(live)) => {
                let wanted = json!({"uid": &*guard.uid, "resourceVersion": &*guard.resource_version});
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

    fn at(&self, place: &Place, id: &Id) -> Option<&Value> {
        match &place.cluster {
            None => self.hub.get(id),
            Some(cluster) => self.members.get(cluster)?.objects.get(id),
        }
    }

    fn store(&mut self, place: &Place, id: &Id, before: Option<&Value>, object: Value) {
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

/// The distribution that an object of a server says it is a copy of. On members it must say that it is this hub's, made for this
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

/// What becomes of the copies on the hub. Cost: O(objects of the hub + places of the distributions).
pub(super) fn on_hub(rehearsal: &Rehearsal) -> BTreeMap<Id, Outcome> {
    let mut all = BTreeMap::new();
    let given = rehearsal.hub_before.iter().chain(rehearsal.hub.iter());
    for (id, _) in given.filter(|(id, _)| !rehearsal.applied.contains(id)) {
        let (before, after) = (rehearsal.hub_before.get(id), rehearsal.hub.get(id));
        let from = |object| from(&Server::Hub, "", object);
        let (was, is) = (before.and_then(from), after.and_then(from));
        let Some(name) = is
            .or(was)
            .filter(|name| rehearsal.index.distributions.held.contains_key(*name))
        else {
            continue;
        };
        let mut outcome = compared(Server::Hub, id, before, after);
        if outcome.fate == Fate::Changed && is.is_none() {
            outcome.fate = Fate::Released;
        }
        outcome.message = message(rehearsal, id, None, name, is.is_some());
        all.insert(id.clone(), outcome);
    }
    all.extend(held_up(rehearsal, None));
    all
}

/// Why a copy is there, or goes.
pub(super) fn message(
    rehearsal: &Rehearsal,
    id: &Id,
    cluster: Option<&Str>,
    name: &str,
    stays: bool,
) -> String {
    let key = (cluster.cloned().unwrap_or_default(), id.clone());
    match rehearsal.whys.get(&key).filter(|_| !stays) {
        Some(why) if !why.is_empty() => format!("by ResourceDistribution {name}: {why}"),
        _ => format!("by ResourceDistribution {name}"),
    }
}

/// The copies on a server that should be there, or go, and do not.
pub(super) fn held_up(rehearsal: &Rehearsal, cluster: Option<&Str>) -> BTreeMap<Id, Outcome> {
    let server = cluster.map_or(Server::Hub, |name| Server::Member(name.clone()));
    let mut all = BTreeMap::new();
    for (name, held) in &rehearsal.index.distributions.held {
        let Ok(spec) = &held.object.spec else { continue };
        for (verdict, places) in &held.by_verdict {
            let here = places.iter().filter(|place| place.cluster.as_ref() == cluster);
            for place in here.take(TOLD) {
                let Some((fate, why)) = why_not(name, held, *verdict, place) else {
                    continue;
                };
                let id = Id::new(spec.gvk.clone(), &place.namespace, &spec.name);
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

fn why_not(name: &Str, held: &Held, verdict: Verdict, place: &Place) -> Option<(Fate, String)> {
    match verdict {
        Verdict::Done | Verdict::Leaving | Verdict::Kept => None,
        Verdict::Conflict => Some((
            Fate::Refused,
            format!("it already exists and is not managed by {name}; writePolicy overwrite takes it over"),
        )),
        Verdict::NoNamespace => Some((Fate::Waiting, "the namespace does not exist".into())),
        Verdict::Blocked => {
            let conflicts = held.count(Verdict::Conflict);
            let namespaces = if conflicts == 1 {
                "namespace is"
            } else {
                "namespaces are"
            };
            let why =
                format!("nothing is written while {conflicts} {namespaces} in conflict (writePolicy strict)");
            Some((Fate::Waiting, why))
        }
        Verdict::Pending => Some((Fate::Waiting, "the present state is unknown".into())),
        Verdict::Failed(_) => {
            let why = held.spots.get(place).and_then(|spot| spot.why_failed());
            Some((Fate::Refused, why.unwrap_or_else(|| "it cannot be read".into())))
        }
    }
}

/// What is wrong with distributions beside what becomes of each copy.
pub(super) fn notes(rehearsal: &Rehearsal) -> impl Iterator<Item = Note> {
    whole(rehearsal).chain(kept_out(rehearsal))
}

/// Objects of the files that keep copies out: they have lines of their own, so it is told here.
fn kept_out(rehearsal: &Rehearsal) -> impl Iterator<Item = Note> {
    held_up(rehearsal, None).into_iter().filter_map(|(id, told)| {
        let is_given = rehearsal.applied.contains(&id) && told.fate == Fate::Refused;
        is_given.then(|| Note {
            object: id.to_string(),
            condition: "Distributed".into(),
            reason: "Conflict".into(),
            message: told.message,
        })
    })
}

/// Distributions that cannot be read, whose source is missing, or whose copies are kept until somebody confirms.
fn whole(rehearsal: &Rehearsal) -> impl Iterator<Item = Note> {
    rehearsal.hub.iter().filter_map(|(id, object)| {
        if id.gvk != distribution::gvk() {
            return None;
        }
        let held = rehearsal.index.distributions.held.get(&id.name)?;
        let is_bad = held.object.spec.is_err();
        let has_no_source = held.count(Verdict::Failed(Step::Get)) > 0;
        let is_kept = rehearsal.index.held_back(held) > 0;
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

/// Whether a watch tells of copies of distributions on this member.
pub(super) fn watch_of(cluster: &Str, id: &Id) -> Watch {
    Watch::Distributed(Some(cluster.clone()), id.gvk.clone(), id.name.clone())
}

/// The namespaces that distributions name and nobody gave: a plan without a hub takes them to be there.
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
