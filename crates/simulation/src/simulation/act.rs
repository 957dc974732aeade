//! Execution of plans on the model, one change at a time, as the shell does on real servers.

use entourage_core::{
    Engine,
    distribution::apply_task,
    object::{ResourceId, Str, Time},
    observation::{Observation, Server, Watch},
    plan::{Change, Key},
    rendered::wipe,
};
use serde_json::Value;

use super::{Question, Simulation};
use crate::{
    environment::{Environment, Fault, Request},
    executor::{self, Outcome, namespace},
    objects::Versions,
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
            let outcome = self.carry_out(change);
            self.now = self.now.plus(1);
            for each in outcome.seen {
                self.observe(each);
            }
            // As in the shell: the rest of the plan is dropped, and the key is planned again a little later.
            if outcome.failed {
                self.timers.insert(key.clone(), self.now.plus(1_000));
                break;
            }
        }
        Vec::new()
    }

    /// The question about the real servers to answer before a change can be executed, or `None`.
    fn question(&self, change: &Change) -> Option<Question> {
        let question = match change {
            Change::GetTemplate(id) if !self.hub.contains(id) => Question::Template(id.clone()),
            Change::Distribute(order) => {
                let source = apply_task::source(order);
                Question::Template(Some(source).filter(|source| !self.hub.contains(source))?)
            }
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

    fn carry_out(&mut self, change: Change) -> Outcome {
        match &change {
            // The other objects in a namespace are not part of the model.
            Change::LookInto { .. } | Change::EndNamespace { .. } => Outcome::default(),
            // Only a 404 proves that it is gone: the key waits, as in the controllers.
            Change::GetTemplate(id) if !self.hub.contains(id) && self.unreadable.contains_key(id) => {
                Outcome::default()
            }
            Change::Deliver { id, cluster, .. } => {
                let (id, cluster) = (id.clone(), cluster.clone());
                let outcome = executor::carry_out(self, change);
                self.define(&cluster, &id);
                outcome
            }
            _ => executor::carry_out(self, change),
        }
    }
}

impl Environment for Simulation {
    fn engine(&self) -> &Engine {
        &self.engine
    }

    fn now(&self) -> Time {
        self.now
    }

    fn versions(&mut self) -> &mut Versions {
        &mut self.versions
    }

    fn object(&self, server: &Server, id: &ResourceId) -> Option<&Value> {
        match server {
            Server::Hub => self.hub.get(id),
            Server::Member(cluster) => self.members.get(cluster)?.objects.get(id),
        }
    }

    fn objects<'a>(&'a self, server: &Server) -> Box<dyn Iterator<Item = (ResourceId, &'a Value)> + 'a> {
        let objects = match server {
            Server::Hub => Some(&self.hub),
            Server::Member(cluster) => self.members.get(cluster).map(|member| &member.objects),
        };
        let all = objects.into_iter().flat_map(|objects| objects.iter());
        Box::new(all.map(|(id, object)| (id.clone(), object)))
    }

    fn store(&mut self, server: &Server, id: &ResourceId, object: Option<Value>) {
        let mut before = self.object(server, id).cloned();
        let objects = match server {
            Server::Hub => &mut self.hub,
            Server::Member(cluster) => match self.members.get_mut(cluster) {
                Some(member) => &mut member.objects,
                // Every request to it fails.
                None => return,
            },
        };
        match object {
            Some(object) => objects.insert(id.clone(), object),
            None => {
                objects.remove(id);
                self.versions.advance();
            }
        }
        self.changed(server, id, before.as_ref());
        before.iter_mut().for_each(wipe);
    }

    fn fault(&mut self, request: Request<'_>) -> Option<Fault> {
        let cluster = request.member()?;
        let is_known = self.members.contains_key(cluster);
        (!is_known).then(|| Fault::Unreachable("there is no such member".into()))
    }

    fn lacks_namespace(&self, cluster: &Str, name: &Str) -> bool {
        let known = self.open.contains(&Watch::MemberNamespaces(cluster.clone()));
        let member = self.members.get(cluster);
        let member = member.filter(|member| member.unreadable.is_none());
        let lacks = member.is_some_and(|member| !member.objects.contains(&namespace(name)));
        // Every server has `default` from the start.
        known && lacks && &**name != "default"
    }

    // A plan shows no uid that only the model has.
    fn proves_namespaces(&self) -> bool {
        false
    }
}
