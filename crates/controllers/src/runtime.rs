//! The control loop: the one task that owns the Engine. It observes, keeps the queues, plans keys when their server has capacity,
//! and has the plans executed.
//!
//! Invariants:
//! - Observations that a task sent before it ended are made before its serialization key is free again (read your writes).
//! - A plan is made at the moment it is executed, never earlier: keys wait, plans do not.
//! - Nothing is planned while another process may be leading, and no key waits meanwhile.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use entourage_core::{
    distribution,
    object::{ResourceId, Str, Time},
    observation::{ObjectRef, Observation, Server, Subject},
    plan::Key,
};
use tokio::{
    sync::{mpsc, watch},
    task::{Id as TaskId, JoinError, JoinSet},
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::{
    client::Api,
    clock,
    execute::{Executor, Outcome},
    lease::Leadership,
    members::{Member, Members},
    metrics::Metrics,
    watch::Scope,
};

mod act;
mod decide;
pub mod queue;
pub mod retries;
pub mod scout;
mod sync_report;
pub mod timers;
pub(crate) mod watches;

pub use crate::inbox::{INBOX, Message};
pub use decide::Decide;
use queue::{Priority, Queue};
use retries::Retries;
use sync_report::SyncReport;
use timers::Timers;
use watches::Watches;

/// The number of plans for one server before the inbox is read again.
const PLANS: usize = 32;
/// The interval of publishing sizes, in milliseconds.
const PUBLISH: i64 = 5_000;
/// The time that a stop waits for running plans.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// The parts of the control loop.
pub struct BrainOptions<D> {
    /// The decisions.
    pub decider: D,
    /// The executor of plans.
    pub hands: Executor,
    /// The members' tasks.
    pub members: Members,
    /// The id of this hub.
    pub hub: Str,
    /// Its messages.
    pub inbox: mpsc::Receiver<Message>,
    /// The right of this process to act.
    pub leading: Leadership,
    /// Publishes whether all required lists are synced.
    pub synced: watch::Sender<bool>,
    /// Its metrics.
    pub metrics: Metrics,
}

/// Runs the control loop until `stop`; then waits up to five seconds for running plans. Returns true if all of them ended: else
/// the outcome of a request is unknown, and it may still be executed.
pub async fn run<D: Decide>(options: BrainOptions<D>, stop: CancellationToken) -> bool {
    let watches = Watches::new(
        Scope::Hub(options.hub.clone()),
        options.hands.interpreters.clone(),
        options.hands.brain.clone(),
    );
    let mut brain = ControlLoop {
        watches,
        connections: BTreeMap::new(),
        serialization_keys: BTreeMap::new(),
        timers: Timers::default(),
        retries: Retries::default(),
        tasks: JoinSet::new(),
        carried: HashMap::new(),
        published: Time(0),
        sync_report: SyncReport::default(),
        leads: true,
        shared_turn: Server::Hub,
        options,
    };
    brain.think(&stop).await;
    brain.finish().await
}

type Ended = Result<(TaskId, Outcome), JoinError>;

struct ControlLoop<D> {
    options: BrainOptions<D>,
    watches: Watches,
    connections: BTreeMap<Str, Arc<Member>>,
    serialization_keys: BTreeMap<Server, Queue>,
    timers: Timers,
    retries: Retries,
    tasks: JoinSet<Outcome>,
    carried: HashMap<TaskId, Key>,
    published: Time,
    sync_report: SyncReport,
    /// The right to act, as last sent to the core.
    leads: bool,
    /// Of the members that share a capacity, the last of which a plan was begun.
    shared_turn: Server,
}

impl<D: Decide> ControlLoop<D> {
    async fn think(&mut self, stop: &CancellationToken) {
        self.demand();
        let mut batch = Vec::with_capacity(INBOX);
        self.lead(self.options.leading.is_held(), clock::now());
        let mut more = false;
        loop {
            let mut ended = Vec::new();
            let wake = self.timers.next().filter(|_| self.leads);
            if more {
                // Let other tasks send their messages.
                tokio::task::yield_now().await;
                if stop.is_cancelled() {
                    return;
                }
            } else {
                tokio::select! {
                    biased;
                    () = stop.cancelled() => return,
                    count = self.options.inbox.recv_many(&mut batch, INBOX) => {
                        if count == 0 {
                            return;
                        }
                    }
                    Some(end) = self.tasks.join_next_with_id() => ended.push(end),
                    changed = self.options.leading.changed() => {
                        if changed.is_err() {
                            return;
                        }
                    }
                    () = sleep_until(wake.map_or_else(Instant::now, clock::instant)), if wake.is_some() => {}
                }
            }
            while let Some(end) = self.tasks.try_join_next_with_id() {
                ended.push(end);
            }
            // All messages of an ended task are in the inbox by now: observe them before its serialization key is freed.
            let waiting = self.options.inbox.len();
            if waiting > 0 {
                self.options.inbox.recv_many(&mut batch, waiting).await;
            }
            let now = clock::now();
            // Before the messages are observed: the next leader may have written them.
            self.lead(self.options.leading.is_held(), now);
            self.take_in(&mut batch, now);
            for end in ended {
                self.conclude(end, now);
            }
            while let Some((key, priority)) = self.timers.pop(now) {
                self.push(key, priority, now);
            }
            if !self.leads {
                self.forget_keys();
            }
            more = self.leads && self.dispatch(now);
            self.publish(now);
            let waiting: usize = self.serialization_keys.values().map(Queue::len).sum();
            let pending = waiting + self.tasks.len() + self.timers.count();
            self.options.metrics.pending(pending);
        }
    }

    /// Observes a batch of messages.
    fn take_in(&mut self, batch: &mut Vec<Message>, now: Time) {
        if batch.is_empty() {
            return;
        }
        let mut listed = false;
        for message in batch.drain(..) {
            match message {
                Message::Seen(seen) => self.observe(*seen, Priority::Live, now),
                // A late message of a task whose Cluster was deleted or created again.
                Message::Probed { name, run, .. } | Message::Member { name, run, .. }
                    if !self.options.members.is_current(&name, run) => {}
                Message::Probed { name, probe, .. } => {
                    listed = true;
                    // A member that begins to respond concerns every copy on it.
                    self.observe(Observation::Probed(name, probe), Priority::Listed, now);
                }
                Message::Watched { run, .. } if !self.watches.is_current(run) => {}
                Message::Watched { seen, initial, .. } => {
                    listed |= initial;
                    let priority = if initial { Priority::Listed } else { Priority::Live };
                    for each in seen {
                        let unserved = match &each {
                            Observation::Unserved { watch, other, .. } => {
                                Some((watch.clone(), other.clone()))
                            }
                            _ => None,
                        };
                        self.observe(each, priority, now);
                        if let Some((watch, other)) = unserved {
                            let api = self.api(&watch.server());
                            self.watches.unserved(&watch, other.as_ref(), api);
                        }
                    }
                }
                Message::Looked { server, run, found } => {
                    listed = true;
                    for each in self.watches.looked(&server, run, found) {
                        self.observe(each, Priority::Listed, now);
                    }
                }
                Message::Member { name, member, .. } => {
                    listed = true;
                    self.connect(name, member, now);
                }
            }
            // At once: late messages of a watch that ends because of this batch must be ignored.
            self.demand();
        }
        if listed {
            let synced = self.options.decider.is_synced();
            if self
                .options
                .synced
                .send_if_modified(|standing| std::mem::replace(standing, synced) != synced)
            {
                self.options.metrics.synced(synced);
            }
        }
    }

    fn observe(&mut self, seen: Observation, priority: Priority, now: Time) {
        match &seen {
            Observation::Seen(Subject::Template(id, template)) | Observation::Found(id, template) => {
                self.options.hands.sources.saw(id, template.meta.revision());
            }
            Observation::Seen(Subject::Distribution(name, object)) => {
                let id = ResourceId::new(distribution::gvk(), "", name);
                self.options.hands.sources.saw(&id, object.meta.revision());
            }
            Observation::Seen(Subject::Distributed(None, id, part)) => {
                self.options.hands.sources.saw(id, part.revision());
            }
            Observation::Gone {
                which: ObjectRef::Template(id) | ObjectRef::Distributed(None, id),
                ..
            } => self.options.hands.sources.gone(id),
            _ => {}
        }
        let policy = match &seen {
            Observation::Gone {
                which: ObjectRef::Policy(name),
                ..
            } => Some(Key::Policy(name.clone())),
            _ => None,
        };
        let dirty = self.options.decider.observe(seen, now);
        for notice in self.options.decider.take_notices() {
            warn!("{notice}");
        }
        for key in dirty.iter().chain(&policy) {
            if let Some(change) = self.options.decider.used(key) {
                self.options.hands.interpreters.used(change);
            }
        }
        for key in dirty {
            if let Key::Cluster(name) = &key {
                let cluster = self.options.decider.cluster(name);
                if self.options.members.ensure(name, cluster.as_deref()) {
                    self.connect(name.clone(), None, now);
                }
            }
            self.push(key, priority, now);
        }
    }

    fn connect(&mut self, name: Str, member: Option<Arc<Member>>, now: Time) {
        let lost = self
            .watches
            .reconnect(&name, member.as_ref().map(|each| &each.api));
        // Before any write over it.
        if let Some(id) = member.as_ref().and_then(|member| member.api.id()) {
            self.observe(
                Observation::Identified(name.clone(), id.clone()),
                Priority::Listed,
                now,
            );
        }
        match member {
            Some(member) => self.connections.insert(name, member),
            None => self.connections.remove(&name),
        };
        for each in lost {
            self.observe(each, Priority::Listed, now);
        }
    }

    /// Cost: O(1) while the demand is unchanged, which is checked for every batch of messages.
    fn demand(&mut self) {
        let changes = self.options.decider.demand_changes();
        if !self.watches.is_outdated(changes) {
            return;
        }
        self.options
            .hands
            .interpreters
            .tell(self.options.decider.interpreter());
        self.watches.end_those(self.options.decider.take_ended());
        let (hub, connections) = (&self.options.hands.hub, &self.connections);
        self.watches
            .demand(changes, self.options.decider.demand(), |server| match server {
                Server::Hub => Some(hub.clone()),
                Server::Member(name) => connections.get(name).map(|member| member.api.clone()),
            });
    }

    /// Notifies the core when leadership begins or ends. A standby keeps no keys: at a takeover the core returns all of them.
    fn lead(&mut self, leads: bool, now: Time) {
        if leads != self.leads {
            self.leads = leads;
            self.forget_keys();
            self.observe(Observation::Leads(leads), Priority::Listed, now);
        }
        self.options.metrics.leading(leads);
    }

    /// Cost: O(1) when there are none.
    fn forget_keys(&mut self) {
        self.serialization_keys.values_mut().for_each(Queue::forget);
        (self.timers, self.retries) = (Timers::default(), Retries::default());
    }

    fn api(&self, server: &Server) -> Option<Api> {
        match server {
            Server::Hub => Some(self.options.hands.hub.clone()),
            Server::Member(name) => self.connections.get(name).map(|member| member.api.clone()),
        }
    }

    fn push(&mut self, key: Key, priority: Priority, now: Time) {
        if !self.leads {
            return;
        }
        let rank = self.options.decider.rank(&key);
        let queue = self.serialization_keys.entry(key.server()).or_default();
        queue.push(key, priority, rank, now);
    }
}

#[cfg(test)]
mod tests;
