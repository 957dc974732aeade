//! Execution of plans on the model, one change at a time, as the shell does on real servers.

use serde_json::{Value, json};

use super::{
    Question, Simulation,
    objects::{is_held, merge},
    servers::kind_of,
};
use crate::{
    object::ResourceId,
    observation::{self, Observation, Removed, Subject},
    plan::{Change, HubObject, Key, Verb},
    status,
};

impl Simulation {
    /// Plans a key and executes the plan; returns the questions to answer before that.
    pub(super) fn work(&mut self, key: &Key) -> Vec<Question> {
        self.plans += 1;
        let plan = self.engine.plan(key, self.now);
        let questions: Vec<Question> = plan
            .changes
            .iter()
            .filter_map(|change| self.question(change))
            .collect();
        if !questions.is_empty() {
            return questions;
        }
        self.timers.remove(key);
        if let Some(time) = plan.again_at {
            self.timers.insert(key.clone(), time.max(self.now.plus(1)));
        }
        for change in plan.changes {
            if let Change::Deliver { id, cluster, .. } = &change {
                self.observe(Observation::Started(cluster.clone(), id.clone()));
            }
            if let Change::Remove { id, cluster, .. } = &change {
                let place = (cluster.clone(), id.clone());
                self.whys.insert(place, plan.why.join("; "));
            }
            if let Change::Withdraw { id, place, .. } = &change {
                let server = place.cluster.clone().unwrap_or_default();
                self.whys.insert((server, id.clone()), plan.why.join("; "));
            }
            let seen = self.carry_out(change);
            self.now = self.now.plus(1);
            match seen {
                Some(seen) => seen.into_iter().for_each(|each| self.observe(each)),
                // As in the shell: the rest of the plan is dropped, and the key is planned again a little later.
                None => {
                    self.timers.insert(key.clone(), self.now.plus(1_000));
                    break;
                }
            }
        }
        Vec::new()
    }

    /// The question about the real servers to answer before a change can be executed, or `None`.
    fn question(&self, change: &Change) -> Option<Question> {
        let question = match change {
            Change::GetTemplate(id) if !self.hub.contains(id) => Question::Template(id.clone()),
            Change::Distribute(order) => self.source_of(order)?,
            Change::Deliver {
                id,
                cluster,
                live: None,
                ..
            } => {
                let member = self.members.get(cluster);
                if member.is_some_and(|each| each.unreadable.is_some() || each.objects.contains(id)) {
                    return None;
                }
                Question::Copy(cluster.clone(), id.clone())
            }
            _ => return None,
        };
        (!self.answered.contains(&question)).then_some(question)
    }

    /// Executes a change and returns its observations; `None` if it failed.
    fn carry_out(&mut self, change: Change) -> Option<Vec<Observation>> {
        match change {
            Change::Hub { object, verb } => self.write_hub(&object, verb),
            Change::Deliver {
                id,
                cluster,
                render_spec,
                live,
                read_first,
            } => {
                let seen = self.deliver(&id, &cluster, &render_spec, live.is_some() && !read_first);
                self.define(&cluster, &id);
                Some(seen)
            }
            Change::Remove {
                id,
                cluster,
                preconditions,
                mode,
            } => self.remove(&id, &cluster, &preconditions, mode),
            Change::Namespace {
                cluster,
                name,
                labels,
                annotations,
            } => {
                self.bring_namespace(&cluster, &name, &labels, &annotations);
                Some(Vec::new())
            }
            // The other objects in a namespace are not part of the model.
            Change::LookInto { .. } | Change::EndNamespace { .. } => Some(Vec::new()),
            Change::GetCopy { id, cluster } => {
                let member = self.members.get(&cluster);
                let live = member.and_then(|member| member.objects.get(&id));
                let copy =
                    live.map(|live| observation::copy(&self.engine.interpretation(&id.gvk), &id.gvk, live));
                let hub = &self.engine.config.hub;
                Some(vec![
                    match copy.filter(|copy| copy.meta.hub.as_ref() == Some(hub)) {
                        Some(copy) => Observation::Seen(Subject::Copy(cluster, id, copy)),
                        None => Observation::Removed(cluster, id, Removed::Gone),
                    },
                ])
            }
            // Only a 404 proves that it is gone: the key waits, as in the controllers.
            Change::GetTemplate(id) if !self.hub.contains(&id) && self.unreadable.contains_key(&id) => {
                Some(Vec::new())
            }
            Change::GetTemplate(id) => Some(vec![match self.hub.get(&id) {
                None => Observation::Absent(id),
                Some(object) if crate::interpreter::never_travels(object) => Observation::NeverTravels(id),
                Some(object) => {
                    let template = observation::template(&self.engine.interpretation(&id.gvk), &id, object);
                    Observation::Found(id, template)
                }
            }]),
            Change::Aggregate {
                id,
                interpretation,
                items,
                asked,
            } => {
                let Some(template) = self.hub.get(&id) else {
                    return Some(Vec::new());
                };
                match status::template::aggregated(template, &interpretation, &items) {
                    Ok(Some(verb)) => self.write_hub(&HubObject::Template(id), verb),
                    Ok(None) => Some(vec![Observation::Aggregated(id, asked, None)]),
                    Err(unanswered) => Some(vec![Observation::Aggregated(id, asked, Some(unanswered))]),
                }
            }
            Change::Distribute(order) => Some(self.distribute(&order)),
            Change::Withdraw {
                distribution,
                place,
                id,
                uid,
                preconditions,
                mode,
            } => Some(self.withdraw((distribution, &uid), place, &id, &preconditions, mode)),
            Change::Refuse(_) | Change::Emit(_) => Some(Vec::new()),
        }
    }

    fn write_hub(&mut self, object: &HubObject, verb: Verb) -> Option<Vec<Observation>> {
        let id = kind_of(object);
        let held = self.hub.get(&id).cloned();
        let next = match verb {
            Verb::Create(body) => {
                if held.is_some() {
                    return None;
                }
                let created = self.versions.created(&id, body, self.now);
                self.hub.insert(id.clone(), created);
                self.hub_changed(&id);
                return Some(Vec::new());
            }
            Verb::Delete { uid, .. } => {
                let held = held?;
                if held["metadata"]["uid"] != *uid {
                    return None;
                }
                self.delete_on_hub(&id);
                return Some(Vec::new());
            }
            Verb::Replace(body) => with_status_of(body, held.as_ref()?),
            Verb::Merge(body) => {
                let mut next = held.clone()?;
                merge(&mut next, &body);
                with_status_of(next, held.as_ref()?)
            }
            Verb::ReplaceStatus(body) | Verb::MergeStatus(body) => {
                let mut next = held.clone()?;
                merge(&mut next["status"], &body["status"]);
                next
            }
        };
        let held = held?;
        let next = self.versions.replaced(&id, &held, next);
        if next["metadata"]["deletionTimestamp"].is_string() && !is_held(&next) {
            self.forget(&id, &held);
        } else {
            self.hub.insert(id.clone(), next);
            self.hub_changed(&id);
        }
        Some(Vec::new())
    }

    /// A DELETE on the hub: at once, or when the last finalizer is removed.
    pub(super) fn delete_on_hub(&mut self, id: &ResourceId) {
        let Some(held) = self.hub.get(id).cloned() else {
            return;
        };
        if !is_held(&held) {
            self.forget(id, &held);
        } else if held["metadata"]["deletionTimestamp"].is_null() {
            let mut next = held;
            next["metadata"]["deletionTimestamp"] = json!(self.now.to_k8s());
            next["metadata"]["resourceVersion"] = json!(self.versions.next().to_string());
            self.hub.insert(id.clone(), next);
            self.hub_changed(id);
        }
    }

    /// Removes an object and the objects that it owns.
    fn forget(&mut self, id: &ResourceId, held: &Value) {
        self.hub.remove(id);
        self.hub_gone(id, held);
        let uid = &held["metadata"]["uid"];
        let owned: Vec<ResourceId> = self
            .hub
            .iter()
            .filter(|(_, object)| {
                let owners = object["metadata"]["ownerReferences"].as_array();
                owners.is_some_and(|all| all.iter().any(|owner| owner["uid"] == *uid))
            })
            .map(|(id, _)| id.clone())
            .collect();
        for id in owned {
            self.delete_on_hub(&id);
        }
    }
}

/// Keeps the status of an object in a write of it.
fn with_status_of(mut body: Value, held: &Value) -> Value {
    match held.get("status") {
        Some(status) => body["status"] = status.clone(),
        None => {
            if let Some(map) = body.as_object_mut() {
                map.remove("status");
            }
        }
    }
    body
}
