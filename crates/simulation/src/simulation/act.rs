//! The run of a simulation: missing facts are requested before a plan that needs them is carried out.

use std::ops::ControlFlow;

use entourage_core::{
    distribution::apply_task,
    object::{ResourceId, Str},
    observation::{Observation, Server, Watch},
    plan::{Change, Key, Plan},
};
use serde_json::Value;

use super::{Progress, Question, Simulation};
use crate::{
    environment::{Environment, Fault, Request},
    executor::{self, Outcome, namespace},
    process::Process,
    run::Run,
    servers::Servers,
    watches,
};

/// The maximum number of plans for each given object; a bound for a system that would never settle.
const PLANS_PER_OBJECT: usize = 2_000;

impl Simulation {
    fn most_plans(&self) -> usize {
        let objects = self.servers.hub.len() * (1 + self.servers.members.len());
        PLANS_PER_OBJECT.saturating_mul(10 + objects)
    }

    /// The question about the real servers to answer before a change can be executed, or `None`.
    fn question(&self, change: &Change) -> Option<Question> {
        let hub = &self.servers.hub;
        let question = match change {
            Change::GetTemplate(id) if !hub.contains_key(id) => Question::Template(id.clone()),
            Change::Distribute(order) => {
                let source = apply_task::source(order);
                Question::Template(Some(source).filter(|source| !hub.contains_key(source))?)
            }
            Change::Deliver {
                id,
                cluster,
                live: None,
                ..
            } => {
                let member = self.servers.members.get(cluster);
                if member.is_some_and(|objects| objects.contains_key(id)) || self.unread.contains_key(cluster)
                {
                    return None;
                }
                Question::Copy(cluster.clone(), id.clone())
            }
            _ => return None,
        };
        (!self.answered.contains(&question)).then_some(question)
    }
}

impl Run for Simulation {
    type Stop = Progress;

    /// Those that were closed and are demanded again; the others are requested.
    fn next_watch(&mut self) -> Option<Watch> {
        let is_known = |watch: &&Watch| self.answered.contains(&Question::List((*watch).clone()));
        self.process.closed().find(is_known).cloned()
    }

    fn turn(&mut self) -> ControlFlow<Progress, bool> {
        let unread: Vec<Question> = self.process.closed().cloned().map(Question::List).collect();
        if !unread.is_empty() {
            return ControlFlow::Break(Progress::Asks(unread));
        }
        if self.plans > self.most_plans() {
            return ControlFlow::Break(Progress::Unsettled);
        }
        let Some((id, after)) = self.pending.pop_front() else {
            return ControlFlow::Continue(false);
        };
        self.put_applied(&id, after);
        ControlFlow::Continue(true)
    }

    fn defers(&mut self, key: &Key, plan: &Plan) -> bool {
        self.plans += 1;
        if self.only_observes && !plan.changes.iter().all(is_read) {
            return true;
        }
        let questions: Vec<Question> = plan
            .changes
            .iter()
            .filter_map(|change| self.question(change))
            .collect();
        let defers = !questions.is_empty();
        if defers {
            self.asked.extend(questions);
            self.blocked.insert(key.clone());
        }
        defers
    }

    fn carry_out(&mut self, change: Change, why: &[String]) -> ControlFlow<Progress, Outcome> {
        match &change {
            // The other objects in a namespace are not part of the model.
            Change::LookInto { .. } | Change::EndNamespace { .. } => {
                return ControlFlow::Continue(Outcome::default());
            }
            // Only a 404 proves that it is gone: the key waits, as in the controllers.
            Change::GetTemplate(id)
                if !self.servers.hub.contains_key(id) && self.unreadable.contains_key(id) =>
            {
                return ControlFlow::Continue(Outcome::default());
            }
            Change::Remove { id, cluster, .. } => {
                self.whys.insert((cluster.clone(), id.clone()), why.join("; "));
            }
            Change::Withdraw(order) => {
                let server = order.place.cluster.clone().unwrap_or_default();
                self.whys.insert((server, order.id.clone()), why.join("; "));
            }
            _ => {}
        }
        ControlFlow::Continue(executor::carry_out(self, change))
    }

    fn idle(&mut self) -> ControlFlow<Progress, bool> {
        if self.asked.is_empty() {
            return ControlFlow::Continue(false);
        }
        ControlFlow::Break(Progress::Asks(self.asked.iter().cloned().collect()))
    }
}

/// True if a change reads an object and writes none.
fn is_read(change: &Change) -> bool {
    matches!(change, Change::GetTemplate(_) | Change::GetCopy { .. })
}

impl Environment for Simulation {
    fn servers(&self) -> &Servers {
        &self.servers
    }

    fn servers_mut(&mut self) -> &mut Servers {
        &mut self.servers
    }

    fn process(&self) -> &Process {
        &self.process
    }

    fn process_mut(&mut self) -> &mut Process {
        &mut self.process
    }

    fn fault(&mut self, request: Request<'_>) -> Option<Fault> {
        let cluster = request.member()?;
        let is_known = self.servers.members.contains_key(cluster);
        (!is_known).then(|| Fault::Unreachable("there is no such member".into()))
    }

    fn lacks_namespace(&self, cluster: &Str, name: &Str) -> bool {
        let is_known = self
            .process
            .open
            .contains(&Watch::MemberNamespaces(cluster.clone()))
            && !self.unread.contains_key(cluster);
        let objects = self.servers.members.get(cluster).filter(|_| is_known);
        // Every server has `default` from the start.
        objects.is_some_and(|objects| !objects.contains_key(&namespace(name))) && &**name != "default"
    }

    // A plan shows no uid that only the model has.
    fn proves_namespaces(&self) -> bool {
        false
    }

    // No hook is called.
    fn covers(&self, watch: &Watch, id: &ResourceId, object: &Value) -> bool {
        !matches!(watch, Watch::Hooks(_))
            && watches::covers(watch, &self.process.engine.config.hub, id, object)
    }

    fn opened(&mut self, _: &Watch, _: &Observation) {
        self.probe_members();
    }

    fn changed(&mut self, server: &Server, id: &ResourceId, _: Option<&Value>) {
        if let Server::Member(cluster) = server {
            self.define(cluster, id);
        }
    }
}
