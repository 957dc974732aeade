//! What happens to the requests of the executor: faults, answers of hooks, and checks of the invariants at each request.

use entourage_api::keys::annotation;
use entourage_core::{
    Engine,
    delivery::{RenderSpec, render},
    distribution::{
        self,
        render::{self as distributed, DistributionRenderSpec, Standing},
    },
    event_reasons,
    interpreter::{Interpretation, question::Question},
    namespaces::{self, content::Contents},
    object::{ResourceId, Str, Time},
    observation::{Server, Watch},
    plan::{Change, Event, Preconditions, RemovalMode},
};
use entourage_simulation::{
    environment::{Environment, Fault, Request, Write},
    executor::{self, Outcome},
    objects::Versions,
};
use serde_json::Value;

use super::{HUB_ID, World, id_key, key_named, owners};

impl World {
    /// Carries out a change.
    pub(super) fn carry_out(&mut self, change: Change) -> Outcome {
        if let Change::Deliver { cluster, .. }
        | Change::Remove { cluster, .. }
        | Change::Namespace { cluster, .. } = &change
        {
            assert!(
                !self.is_another(cluster),
                "{cluster} is another cluster: {change:?}"
            );
        }
        match &change {
            Change::EndNamespace {
                mode: RemovalMode::Release,
                event,
                ..
            } => assert!(event.is_some(), "what is released is reported"),
            Change::Remove {
                id,
                cluster,
                preconditions,
                mode: RemovalMode::Release,
            } => {
                let live = self.members[&**cluster].objects.get(&id_key(id));
                let live = live.filter(|live| is_it(live, preconditions));
                let is_marked = |live: &Value| render::release(live, HUB_ID, cluster).is_some();
                assert!(live.is_none_or(is_marked), "what is released has our metadata");
            }
            _ => {}
        }
        executor::carry_out(self, change)
    }

    fn is_down(&self, server: &Server) -> bool {
        matches!(server, Server::Member(cluster) if self.members[&**cluster].down)
    }

    fn fault_of_removal(
        &mut self,
        cluster: &Str,
        id: &ResourceId,
        preconditions: &Preconditions,
    ) -> Option<Fault> {
        let member = &self.members[&**cluster];
        if member.down {
            return Some(Fault::Unreachable("down".into()));
        }
        if let Some(left) = self.unanswered_removals.checked_sub(1) {
            self.unanswered_removals = left;
            return Some(Fault::Unreachable("timeout".into()));
        }
        if self.refuses_removal {
            return Some(Fault::Rejected("denied".into()));
        }
        if let Some(live) = member
            .objects
            .get(&id_key(id))
            .filter(|live| is_it(live, preconditions))
        {
            let mut owners = owners(id).into_iter();
            assert!(
                owners.any(|owner| render::standing(&owner, cluster, live) == render::Standing::Ours),
                "{id} on {cluster} is not ours"
            );
            self.assert_unneeded(cluster, id, &self.stood);
        }
        None
    }

    /// A copy of a distribution needs its namespace, and what is immutable is not changed.
    fn objection(&self, server: &Server, copy: &Value, live: Option<&Value>) -> Option<Fault> {
        let is_distributed =
            *server == Server::Hub || copy["metadata"]["labels"]["entourage.dev/hub"].is_null();
        if !is_distributed {
            return None;
        }
        let Some(live) = live else {
            let namespace = copy["metadata"]["namespace"].as_str().unwrap_or_default();
            let held = self.object(server, &executor::namespace(namespace));
            let takes = held.is_some_and(|held| held["metadata"]["deletionTimestamp"].is_null());
            return (!takes).then(|| Fault::Rejected(format!("namespace {namespace} takes nothing")));
        };
        let is_changed = ["data", "binaryData", "stringData", "immutable"]
            .iter()
            .any(|field| copy[field] != live[field]);
        (live["immutable"] == true && is_changed).then(|| Fault::Rejected("it is immutable".into()))
    }

    fn fault_of_withdrawal(
        &mut self,
        server: &Server,
        id: &ResourceId,
        render_spec: &DistributionRenderSpec,
        live: &Value,
    ) -> Option<Fault> {
        assert!(
            distributed::standing(render_spec, live) == Standing::Ours || render_spec.take_over,
            "{id} on {server:?} is not of {} and is deleted: {live}",
            render_spec.distribution
        );
        if !self.refuses_removal {
            return None;
        }
        self.asked_to_remove += 1;
        Some(if self.refuses_as_changed {
            Fault::Changed
        } else {
            Fault::Rejected("denied".into())
        })
    }

    /// A namespace is ended only if it is the one that this hub created.
    fn fault_of_end(
        &mut self,
        cluster: &Str,
        name: &Str,
        preconditions: &Preconditions,
        mode: RemovalMode,
    ) -> Option<Fault> {
        if let Some(left) = self.changed_before_it_ends.checked_sub(1) {
            self.changed_before_it_ends = left;
            self.meddle(cluster, "Namespace", name, |mut live| {
                live["metadata"]["annotations"]["theirs"] = left.to_string().into();
                Some(live)
            });
        }
        let held = self.at(cluster, &key_named("Namespace", name));
        if let Some(held) = held.filter(|held| is_it(held, preconditions)) {
            let creator = &held["metadata"]["annotations"][annotation::CREATED_BY];
            let creator = creator.as_str().expect("it is not ours");
            assert!(
                creator.starts_with(&namespaces::creator(HUB_ID, cluster)),
                "{creator}"
            );
            let proof = namespaces::proof(HUB_ID, cluster, &preconditions.uid);
            assert!(
                mode == RemovalMode::Release || creator == proof,
                "{name}: {creator}"
            );
        }
        self.members[&**cluster]
            .down
            .then(|| Fault::Unreachable("down".into()))
    }

    /// A namespace goes, with everything in it.
    pub(crate) fn end_namespace(&mut self, name: &str) {
        let inside: Vec<_> = self.hub.keys().filter(|key| key.1 == name).cloned().collect();
        for key in inside {
            self.delete_key(&key);
        }
        self.delete_at(&("Namespace".into(), String::new(), name.into()));
    }

    /// An object of the hub goes although somebody holds it back.
    pub(crate) fn force_end(&mut self, object: &Value) {
        let key = super::key_of(object);
        self.hub.insert(key.clone(), object.clone());
        self.delete_key(&key);
    }

    /// The garbage collector comes round: at once, or under chaos in its own time. Answers whether it did.
    pub(super) fn collect_garbage(&mut self, must: bool) -> bool {
        if self.garbage.is_empty() {
            return false;
        }
        if let Some(random) = self.chaos.as_mut().filter(|_| !must)
            && random.below(4) != 0
        {
            return false;
        }
        for uid in std::mem::take(&mut self.garbage) {
            executor::collect(self, &uid);
        }
        true
    }
}

impl Environment for World {
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
            Server::Hub => self.hub.get(&id_key(id)),
            Server::Member(cluster) => self.at(cluster, &id_key(id)),
        }
    }

    fn objects<'a>(&'a self, server: &Server) -> Box<dyn Iterator<Item = (ResourceId, &'a Value)> + 'a> {
        let objects = match server {
            Server::Hub => &self.hub,
            Server::Member(cluster) => &self.members[&**cluster].objects,
        };
        let all = objects.values();
        Box::new(all.map(|object| (ResourceId::of(object).expect("kind and name"), object)))
    }

    fn store(&mut self, server: &Server, id: &ResourceId, object: Option<Value>) {
        let key = id_key(id);
        match (server, object) {
            (Server::Hub, None) => self.end(&key),
            (Server::Hub, Some(object)) => {
                let before = self.hub.insert(key.clone(), object);
                if crate::setting("WORLD_DIFF").is_some() {
                    eprintln!("STORES {id}\n  from {before:?}\n  to   {}", self.hub[&key]);
                }
                self.hub_changed(&key);
            }
            (Server::Member(cluster), object) => {
                let objects = &mut self.members.get_mut(&**cluster).expect("member").objects;
                let before = match object {
                    Some(object) => objects.insert(key.clone(), object),
                    None => objects.remove(&key),
                };
                self.member_changed(cluster, &key, &before.unwrap_or(Value::Null));
            }
        }
    }

    fn fault(&mut self, request: Request<'_>) -> Option<Fault> {
        let down = |is_down: bool| is_down.then(|| Fault::Unreachable("connection refused".into()));
        match request {
            Request::Deliver(cluster, id) => {
                self.deliveries += 1;
                if self.mute || self.members[&**cluster].down {
                    return down(true);
                }
                if let Some(words) = &self.breaks {
                    return Some(Fault::Failed(words.clone()));
                }
                if !self.lands && self.hub.contains_key(&id_key(id)) {
                    self.assert_not_suspended(cluster, id);
                }
                None
            }
            Request::Write(server, _, copy, live) => self
                .objection(server, copy, live)
                .or_else(|| self.refuses?(copy).then(|| Fault::Rejected("denied".into()))),
            Request::Remove(cluster, id, preconditions) => self.fault_of_removal(cluster, id, preconditions),
            Request::GetCopy(cluster) | Request::Namespace(cluster) => down(self.members[&**cluster].down),
            Request::GetTemplate(id) => {
                let is_forbidden = self.forbidden.contains(&Watch::Templates(id.gvk.clone()));
                is_forbidden.then(|| Fault::Rejected("forbidden".into()))
            }
            Request::Create(_) => self.terminating.then(|| Fault::Rejected("terminating".into())),
            Request::Claim(id) => {
                let is_refused = self.unclaimable == Some(&*id.gvk.kind);
                is_refused.then(|| Fault::Rejected("forbidden".into()))
            }
            Request::Distribute(server) => {
                let is_mute = self.mute && *server != Server::Hub;
                let why = || Fault::Unreachable("there is no connection".into());
                (is_mute || self.is_down(server)).then(why)
            }
            Request::Withdraw(server, id, render_spec, live) => {
                self.fault_of_withdrawal(server, id, render_spec, live)
            }
            Request::EndNamespace(cluster, name, preconditions, mode) => {
                self.fault_of_end(cluster, name, preconditions, mode)
            }
        }
    }

    fn unlisted(&self) -> Option<Contents> {
        self.unlisted.clone()
    }

    fn looked_into(&mut self, cluster: &Str) {
        if let Some((key, object)) = self.comes_after_a_look.take() {
            self.meddle_at(cluster, &key, |_| Some(object));
        }
    }

    fn collects(&mut self, owner: &Value) -> bool {
        let is_later = is_distribution(owner);
        if is_later {
            self.garbage.push(owner["metadata"]["uid"].clone());
        }
        !is_later
    }

    fn heard(&self, interpretation: &Interpretation, watch: &Watch, object: &Value) -> Interpretation {
        self.hooked.heard(interpretation, watch, object)
    }

    fn answered(
        &self,
        interpretation: &Interpretation,
        id: &ResourceId,
        question: Question<'_>,
    ) -> Interpretation {
        self.hooked.with(interpretation, &id.gvk, [question])
    }

    fn render(
        &self,
        render_spec: &RenderSpec,
        id: &ResourceId,
        cluster: &Str,
        template: &Value,
        live: Option<&Value>,
    ) -> Result<render::Rendered, render::Refusal> {
        let rendered = self.hooked.render(render_spec, id, cluster, template, live);
        match &rendered {
            Ok(_) | Err(render::Refusal::Override(_) | render::Refusal::NoResponse(_)) => rendered,
            Err(refusal) => panic!("{refusal}"),
        }
    }

    fn wrote(&mut self, server: &Server, write: Write, id: &ResourceId) {
        let line = match (server, write) {
            (Server::Hub, write) => {
                if write == Write::Create {
                    self.ended.retain(|(ended, _)| *ended != *id.name);
                }
                format!("hub {} {}", method(write), line_of(id))
            }
            (Server::Member(cluster), Write::Namespace) => format!("{cluster} namespace {}", id.name),
            (Server::Member(cluster), Write::EndNamespace(mode)) => {
                format!("{cluster} {mode:?} namespace {}", id.name)
            }
            (Server::Member(cluster), Write::Remove(mode)) => format!("{cluster} {mode:?} {id}"),
            (Server::Member(cluster), write) => format!("{cluster} {} {id}", method(write)),
        };
        self.writes.push(line);
    }

    fn seen_with(&mut self, cluster: &Str, id: &ResourceId, template: &Value, replicas: Option<i32>) {
        self.note_seen(cluster, &id_key(id), template, replicas);
        let binding = format!("{}-{}", id.name, id.gvk.kind.to_lowercase());
        self.unaccounted.remove(&(binding, cluster.to_string()));
    }

    fn emit(&mut self, event: &Event) {
        assert!(
            event_reasons::is_listed(event.reason, event.warning, &event.regarding.kind),
            "not in the table of event reasons: {event:?}"
        );
        self.events.push(format!(
            "{} {} {}: {}",
            event.reason, event.regarding.kind, event.regarding.name, event.message
        ));
    }

    fn refuse(&mut self, why: &str) {
        self.events.push(format!("refused: {why}"));
    }
}

fn is_it(held: &Value, preconditions: &Preconditions) -> bool {
    held["metadata"]["uid"] == *preconditions.uid
        && held["metadata"]["resourceVersion"] == *preconditions.resource_version
}

fn method(write: Write) -> &'static str {
    match write {
        Write::Create => "POST",
        Write::Delete => "DELETE",
        _ => "PUT",
    }
}

/// An object of the hub as the log of writes names it: a copy of a distribution like copies on members.
fn line_of(id: &ResourceId) -> String {
    let key = id_key(id);
    format!("{} {}/{}", key.0, key.1, key.2)
}

/// The kind, for keys.
pub(super) fn is_distribution(object: &Value) -> bool {
    object["kind"] == distribution::KIND
}
