//! Disturbances of the executor's requests: faults, answers of hooks, and checks of the invariants at each request.

use std::ops::ControlFlow;

use entourage_api::keys::annotation;
use entourage_core::{
    delivery::{RenderSpec, render},
    distribution::{
        self,
        render::{self as distributed, DistributionRenderSpec, Standing},
    },
    event_reasons,
    interpreter::{Interpretation, question::Question},
    namespaces::{self, content::Contents},
    object::{ResourceId, Str, Time},
    observation::{EstimatorAnswer, ObjectRef, Observation, Server, Subject, Watch},
    plan::{Change, EstimateOrder, Event, Key, Plan, Preconditions, RemovalMode},
};
use entourage_simulation::{
    environment::{Environment, Fault, Request, Write},
    executor::{self, Outcome},
    notifications::{self, observe},
    objects::is_exactly,
    process::Process,
    run::Run,
    servers::Servers,
    writes,
};
use serde_json::Value;

use super::{HUB_ID, World, is_reported_by, kind_of, owners, trace, truth};

impl World {
    /// Asserts the rules that hold for a change, whoever carries it out.
    fn assert_sound(&self, change: &Change) {
        if let Change::Deliver { cluster, .. }
        | Change::Remove { cluster, .. }
        | Change::Namespace { cluster, .. } = change
        {
            assert!(
                !self.is_another(cluster),
                "{cluster} is another cluster: {change:?}"
            );
        }
        match change {
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
                let live = self
                    .at(cluster, id)
                    .filter(|live| is_exactly(live, preconditions));
                let is_marked = |live: &Value| render::release(live, HUB_ID, cluster).is_some();
                assert!(live.is_none_or(is_marked), "what is released has our metadata");
            }
            _ => {}
        }
    }

    fn is_down(&self, server: &Server) -> bool {
        matches!(server, Server::Member(cluster) if self.down.contains(cluster))
    }

    fn fault_of_removal(
        &mut self,
        cluster: &Str,
        id: &ResourceId,
        preconditions: &Preconditions,
    ) -> Option<Fault> {
        if self.down.contains(cluster) {
            return Some(Fault::Unreachable("down".into()));
        }
        if let Some(left) = self.unanswered_removals.checked_sub(1) {
            self.unanswered_removals = left;
            return Some(Fault::Unreachable("timeout".into()));
        }
        if let Some(left) = self.failing_removals.checked_sub(1) {
            self.failing_removals = left;
            return Some(Fault::Failed("overloaded".into()));
        }
        if self.refuses_removal {
            return Some(Fault::Rejected("denied".into()));
        }
        if let Some(live) = self
            .at(cluster, id)
            .filter(|live| is_exactly(live, preconditions))
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
        if let Some(check) = self.withdrawal_check {
            check(self, server, render_spec);
        }
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
        let held = self.at(cluster, &executor::namespace(name));
        if let Some(held) = held.filter(|held| is_exactly(held, preconditions)) {
            let creator = &held["metadata"]["annotations"][annotation::CREATED_BY];
            let cluster_object = self.hub_object("Cluster", cluster);
            let is_pull = cluster_object.is_some_and(|object| object["spec"]["syncMode"] == "Pull");
            match creator.as_str() {
                Some(creator) => {
                    assert!(
                        creator.starts_with(&namespaces::creator(HUB_ID, cluster)),
                        "{creator}"
                    );
                    let proof = namespaces::proof(HUB_ID, cluster, &preconditions.uid);
                    let is_release = mode == RemovalMode::Release;
                    assert!(is_release || creator == proof, "{name}: {creator}");
                }
                // A namespace of a member in Pull mode is a Work: one without a record is released when its Cluster leaves.
                None => assert!(
                    is_pull && mode == RemovalMode::Release,
                    "{name} is not ours: {mode:?}, {is_pull}"
                ),
            }
        }
        let is_down = self.down.contains(cluster);
        is_down.then(|| Fault::Unreachable("down".into()))
    }

    /// A namespace goes, with everything in it.
    pub(crate) fn end_namespace(&mut self, name: &str) {
        for id in self.hub_ids(|id| &*id.namespace == name) {
            writes::delete(self, &Server::Hub, &id);
        }
        self.delete_at(&executor::namespace(name));
    }

    /// An object of the hub goes although somebody holds it back.
    pub(crate) fn force_end(&mut self, object: &Value) {
        let id = super::id_of(object);
        self.hub.insert(id.clone(), object.clone());
        writes::delete(self, &Server::Hub, &id);
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
            writes::collect(self, &uid);
        }
        true
    }
}

impl Environment for World {
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
        if let Some(cluster) = request.member() {
            self.assert_exists(cluster);
        }
        let down = |is_down: bool| is_down.then(|| Fault::Unreachable("connection refused".into()));
        match request {
            Request::Deliver(cluster, id) => {
                self.deliveries += 1;
                if self.mute || self.down.contains(cluster) {
                    return down(true);
                }
                if let Some(words) = &self.breaks {
                    return Some(Fault::Failed(words.clone()));
                }
                if !self.lands && self.hub.contains_key(id) {
                    self.assert_not_suspended(cluster, id);
                }
                None
            }
            Request::Write(server, _, copy, live) => self
                .objection(server, copy, live)
                .or_else(|| self.refuses?(copy).then(|| Fault::Rejected("denied".into()))),
            Request::Remove(cluster, id, preconditions) => self.fault_of_removal(cluster, id, preconditions),
            Request::GetCopy(cluster) | Request::Namespace(cluster) => down(self.down.contains(cluster)),
            Request::GetTemplate(id) => {
                let is_forbidden = self.forbidden.contains(&Watch::Templates(id.gvk.clone()));
                is_forbidden.then(|| Fault::Rejected("forbidden".into()))
            }
            Request::GetLease(_) => {
                self.asked_for_lease += 1;
                let refusal = || Fault::Rejected("forbidden".into());
                let no_response = || Fault::Unreachable("no response".into());
                let refused = self.forbids_lease.then(refusal);
                refused.or_else(|| self.mute_lease.then(no_response))
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

    fn observed(&self, interpretation: &Interpretation, watch: &Watch, object: &Value) -> Interpretation {
        self.hooked.observed(interpretation, watch, object)
    }

    fn answered(
        &self,
        interpretation: &Interpretation,
        id: &ResourceId,
        question: Question<'_>,
    ) -> Interpretation {
        self.hooked.with(interpretation, &id.gvk, [question])
    }

    fn estimate(&mut self, order: &EstimateOrder) -> Option<Vec<(Str, EstimatorAnswer)>> {
        let estimators = &mut self.estimators;
        estimators.asked.push(order.clusters.join(" "));
        let requests = order
            .requirements
            .iter()
            .flat_map(|needs| &needs.resource_request);
        let cpu = requests
            .filter(|(name, _)| *name == "cpu")
            .map(|(_, amount)| amount.0.clone());
        estimators.requests.extend(cpu);
        let answer = |cluster: &Str| {
            let room = estimators
                .answers
                .get(cluster)
                .copied()
                .map(EstimatorAnswer::Room);
            let other = if estimators.overloaded.contains(cluster) {
                EstimatorAnswer::NotAsked
            } else {
                EstimatorAnswer::Failed
            };
            (cluster.clone(), room.unwrap_or(other))
        };
        let hangs = order
            .clusters
            .iter()
            .any(|cluster| estimators.hanging.contains(cluster));
        (!estimators.loses && !hangs).then(|| order.clusters.iter().map(answer).collect())
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

    fn observes_now(&mut self, event: &Observation) -> bool {
        let kind = match event {
            Observation::Seen(Subject::Template(id, _)) => Some(&*id.gvk.kind),
            Observation::Gone {
                which: ObjectRef::Template(id),
                ..
            } => Some(&*id.gvk.kind),
            Observation::Seen(Subject::Policy(_)) => Some("PropagationPolicy"),
            Observation::Seen(Subject::Binding(_)) => Some("ResourceBinding"),
            Observation::Seen(Subject::Lease(..)) => Some("Lease"),
            Observation::Seen(Subject::Cluster(_))
            | Observation::Gone {
                which: ObjectRef::Cluster(_),
                ..
            } => Some("Cluster"),
            Observation::Seen(Subject::Namespace(..) | Subject::MemberNamespace(..))
            | Observation::Gone {
                which: ObjectRef::Namespace(..),
                ..
            } => Some("Namespace"),
            Observation::Seen(Subject::Distribution(..))
            | Observation::Gone {
                which: ObjectRef::Distribution(_),
                ..
            } => Some("ResourceDistribution"),
            _ => None,
        };
        let is_late = kind.is_some() && kind == self.slow;
        if is_late {
            self.late.push_back(event.clone());
        } else if self.chaos.is_some() {
            self.reported.push(event.clone());
        }
        !is_late
    }

    fn undecodable(&self, watch: &Watch, object: &Value) {
        panic!("not readable by {watch:?}: {object:#}");
    }

    fn opened(&mut self, watch: &Watch, listed: &Observation) {
        trace(|| format!("OPENED {watch:?}"));
        self.lists.insert(watch.clone(), listed.clone());
        if *watch == Watch::Clusters {
            for member in self.members.keys().cloned().collect::<Vec<_>>() {
                self.probe(&member);
            }
        }
    }

    fn changed(&mut self, server: &Server, id: &ResourceId, before: Option<&Value>) {
        if *server == Server::Hub {
            match (self.hub.get(id).cloned(), before) {
                (Some(after), _) => {
                    if super::setting("WORLD_DIFF").is_some() {
                        eprintln!("STORES {id}\n  from {before:?}\n  to   {after}");
                    }
                    self.note_template(id);
                    if truth::is_binding(&after) {
                        self.assert_is_true(&after);
                    }
                }
                (None, Some(held)) => self.note_end(id, held),
                (None, None) => {}
            }
        }
        self.standby_sees(server, id, before);
    }

    fn dirtied(&mut self, keys: &[Key]) {
        let uses: Vec<_> = keys
            .iter()
            .filter_map(|key| self.process.engine.used(key))
            .collect();
        for each in uses {
            let Some(id) = self.hooked.uses.take(each) else {
                continue;
            };
            let watch = Watch::Templates(id.gvk.clone());
            let object = self.hub.get(&id).filter(|_| self.process.open.contains(&watch));
            let seen = object.and_then(|object| notifications::project(self, &self.process, &watch, object));
            if let Some(seen) = seen.map(Observation::Seen)
                && self.observes_now(&seen)
            {
                observe(self, seen);
            }
        }
    }

    fn wrote(&mut self, server: &Server, write: Write, id: &ResourceId) {
        self.crash_in = self.crash_in.map(|left| left.saturating_sub(1));
        let line = match (server, write) {
            (Server::Hub, write) => {
                if write == Write::Create {
                    self.ended.retain(|(ended, _)| *ended != *id.name);
                }
                format!(
                    "hub {} {} {}/{}",
                    method(write),
                    kind_of(id),
                    id.namespace,
                    id.name
                )
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
        self.note_seen(cluster, id, template, replicas);
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

/// The process crashed.
pub(crate) struct Crashed;

impl Run for World {
    type Stop = Crashed;

    /// At once and in order, or under chaos one watch after another, each in its own time, while keys are planned.
    fn next_watch(&mut self) -> Option<Watch> {
        self.refuse_watches();
        let closed = self.process.closed().filter(|watch| self.can_open(watch));
        let closed: Vec<Watch> = closed.cloned().collect();
        let Some(random) = &mut self.chaos else {
            return closed.into_iter().next();
        };
        self.slow_lists.retain(|watch, _| closed.contains(watch));
        let now = self.servers.now;
        for watch in closed {
            let after = [0, 3, 30, 300, 3_000][random.below(5)];
            self.slow_lists.entry(watch).or_insert(now.plus(after));
        }
        let due = self.slow_lists.iter().filter(|(_, at)| **at <= now);
        let watch = due.min_by_key(|(_, at)| **at).map(|(watch, _)| watch.clone())?;
        self.slow_lists.remove(&watch);
        Some(watch)
    }

    /// Its events are dropped: the shell drops the last events of a watch that was ended.
    fn closed(&mut self, watch: &Watch) {
        self.reported.retain(|reported| !is_reported_by(watch, reported));
    }

    fn turn(&mut self) -> ControlFlow<Crashed, bool> {
        self.turns += 1;
        if self.turns > 20_000 {
            let process = &self.process;
            let plan = |key: &Key| format!("{key:?}: {:?}", process.engine.preview(key, self.now));
            let plans: Vec<String> = process.queue.iter().map(plan).collect();
            let (timers, now) = (&process.timers, self.now);
            panic!("it never settles; queued: {plans:#?}; timers: {timers:?} at {now:?}");
        }
        self.tell_old_news();
        self.number_a_rollout();
        self.cut_a_watch();
        self.collect_garbage(false);
        self.carry_out_some_late();
        self.land_one(false)
    }

    fn next_key(&mut self) -> Option<Key> {
        loop {
            let key = match &mut self.chaos {
                None => self.process.next_key()?,
                Some(random) => {
                    let queue = &mut self.process.queue;
                    let key = queue.iter().nth(random.below(queue.len()))?.clone();
                    queue.take(&key)?
                }
            };
            if !self.serialization_keys.contains(&key.serialization_key()) {
                return Some(key);
            }
            self.parked.insert(key);
        }
    }

    fn defers(&mut self, key: &Key, plan: &Plan) -> bool {
        self.check_plan(key, plan);
        self.takes_off(key, plan)
    }

    fn carry_out(&mut self, change: Change, _: &[String]) -> ControlFlow<Crashed, Outcome> {
        self.assert_sound(&change);
        let outcome = executor::carry_out(self, change);
        if self.crash_in == Some(0) {
            return ControlFlow::Break(Crashed);
        }
        ControlFlow::Continue(outcome)
    }

    fn idle(&mut self) -> ControlFlow<Crashed, bool> {
        let landed = self.land_one(true)?;
        ControlFlow::Continue(landed || self.collect_garbage(true))
    }

    /// A plan that always fails never settles; a GET of a Lease without a response is tried again after a pause, as in the shell.
    fn retry(&self) -> i64 {
        if self.mute_lease { 1_000 } else { 0 }
    }

    fn wakes_at(&self) -> Option<Time> {
        let sent = self.sent.iter().map(|(latest, _)| *latest);
        self.slow_lists.values().copied().chain(sent).min()
    }
}

fn method(write: Write) -> &'static str {
    match write {
        Write::Create => "POST",
        Write::Delete => "DELETE",
        _ => "PUT",
    }
}

fn is_distribution(object: &Value) -> bool {
    object["kind"] == distribution::KIND
}
