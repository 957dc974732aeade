//! The control loop of an agent: the one task that owns its state.
//!
//! Messages are taken in one after the other; then the keys that they made dirty are planned, and each step runs as a task of its
//! own. A key has one running step at most.

use std::{
    collections::{BTreeMap, BTreeSet},
    panic::AssertUnwindSafe,
    time::Duration,
};

use entourage_core::{
    agent::{Agent, Key, Observed, Outcome},
    object::{Str, Time},
    observation::{Observation, Server},
};
use futures::FutureExt as _;
use tokio::{
    sync::{mpsc, watch as cell},
    task::JoinSet,
    time::{sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use super::steps::StepExecutor;
use crate::{
    clock,
    execute::events::Events,
    inbox::Message,
    metrics::{self, Metrics},
    runtime::watches::Watches,
    traces::{self, Subject},
    watch::Scope,
};

/// The time that a stop waits for running steps.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// The control loop.
pub(super) struct Control {
    agent: Agent,
    executor: StepExecutor,
    watches: Watches,
    metrics: Metrics,
    events: Events,
    dirty: BTreeSet<Key>,
    running: BTreeSet<Key>,
    timers: Timers,
    tasks: JoinSet<(Key, Outcome)>,
    /// The last report: that Works are applied, or why not.
    reported: Option<Result<(), String>>,
    /// The number of changes of what is watched.
    demands: u64,
}

impl Control {
    pub(super) fn new(
        agent: Agent,
        executor: StepExecutor,
        namespace: Str,
        brain: mpsc::Sender<Message>,
        (metrics, events): (Metrics, Events),
    ) -> Self {
        let scope = Scope::Agent {
            cluster: executor.cluster.clone(),
            namespace,
        };
        Self {
            watches: Watches::new(scope, executor.interpreters.clone(), brain),
            agent,
            executor,
            metrics,
            events,
            dirty: BTreeSet::new(),
            running: BTreeSet::new(),
            timers: Timers::default(),
            tasks: JoinSet::new(),
            reported: None,
            demands: 0,
        }
    }

    /// Runs until `stop`; then waits for running steps. `synced` is set when the Works and the Cluster are known, `acts` while the
    /// agent may write.
    pub(super) async fn run(
        mut self,
        mut inbox: mpsc::Receiver<Message>,
        (synced, acts): (&cell::Sender<bool>, &cell::Sender<bool>),
        stop: &CancellationToken,
    ) {
        loop {
            self.watch();
            self.publish(synced, acts);
            self.dispatch();
            let next = self.timers.next().map(clock::instant);
            tokio::select! {
                () = stop.cancelled() => break,
                message = inbox.recv() => match message {
                    Some(message) => {
                        self.take_in(message);
                        // What arrived together is planned together.
                        while let Ok(message) = inbox.try_recv() {
                            self.take_in(message);
                        }
                    }
                    None => break,
                },
                Some(ended) = self.tasks.join_next(), if !self.tasks.is_empty() => match ended {
                    Ok((key, outcome)) => {
                        self.running.remove(&key);
                        let observed = self.agent.ended(&key, outcome, clock::now());
                        self.note(observed);
                    }
                    Err(error) => warn!(%error, "a step ended unexpectedly"),
                },
                () = sleep_until(next.unwrap_or_else(tokio::time::Instant::now)), if next.is_some() => {
                    self.dirty.extend(self.timers.due(clock::now()));
                }
            }
        }
        let rest = async { while self.tasks.join_next().await.is_some() {} };
        if timeout(LAST_WORDS, rest).await.is_err() {
            warn!("a step was aborted at shutdown");
        }
    }

    fn take_in(&mut self, message: Message) {
        match message {
            Message::Seen(seen) => self.observe(*seen),
            Message::Watched { run, seen, .. } => {
                for each in seen
                    .into_iter()
                    .take_while(|_| self.watches.is_current(run))
                    .collect::<Vec<_>>()
                {
                    if let Observation::Unserved { watch, other, .. } = &each {
                        let api = Some(self.executor.member.clone());
                        self.watches.unserved(watch, other.as_ref(), api);
                    }
                    self.observe(each);
                }
            }
            Message::Looked { server, run, found } => {
                for each in self.watches.looked(&server, run, found) {
                    self.observe(each);
                }
            }
            // The agent has no members.
            Message::Probed { .. } | Message::Member { .. } => {}
        }
    }

    fn observe(&mut self, seen: Observation) {
        let observed = self.agent.observe(seen, clock::now());
        self.note(observed);
    }

    fn note(&mut self, observed: Observed) {
        for note in observed.notes {
            warn!(cluster = %self.executor.cluster, "{note}");
        }
        for event in observed.events {
            self.events.emit(event);
        }
        self.dirty.extend(observed.dirty);
    }

    /// Starts and ends watches as the agent needs them. Cost: O(kinds).
    fn watch(&mut self) {
        let demand = self.agent.demand();
        if self.watches.demanded() == &demand && self.demands > 0 {
            return;
        }
        self.demands += 1;
        let (hub, member) = (self.executor.hub.clone(), self.executor.member.clone());
        self.watches.demand(self.demands, &demand, |server| match server {
            Server::Hub => Some(hub.clone()),
            Server::Member(_) => Some(member.clone()),
        });
        self.agent.forget_unwatched();
    }

    fn publish(&mut self, synced: &cell::Sender<bool>, acts: &cell::Sender<bool>) {
        let is_synced = self.agent.is_synced();
        let turned = synced.send_if_modified(|held| std::mem::replace(held, is_synced) != is_synced);
        if turned {
            self.metrics.synced(is_synced);
        }
        self.metrics.objects("works", self.agent.count());
        self.metrics
            .pending(self.dirty.len() + self.running.len() + self.timers.len());
        let objection = self.agent.objection();
        let may_act = objection.is_none();
        acts.send_if_modified(|held| std::mem::replace(held, may_act) != may_act);
        let report = objection.map_or(Ok(()), Err);
        if self.agent.is_starting() || self.reported.as_ref() == Some(&report) {
            return;
        }
        match &report {
            Err(why) => warn!(cluster = %self.executor.cluster, "nothing is applied: {why}"),
            Ok(()) => info!(cluster = %self.executor.cluster, "the Works of this cluster are applied"),
        }
        self.reported = Some(report);
    }

    /// Plans dirty keys, as long as the cluster has capacity, and starts their steps.
    fn dispatch(&mut self) {
        let now = clock::now();
        loop {
            let room = self.executor.member.limit().saturating_sub(self.running.len());
            let idle = first_idle(&self.dirty, &self.running, room);
            if idle.is_empty() {
                return;
            }
            for key in idle {
                self.dirty.remove(&key);
                let span = self.metrics.traces().root();
                let plan = self.agent.plan(&key, now);
                self.timers.set(&key, plan.again_at);
                let Some(step) = plan.step else { continue };
                debug!(%step, why = plan.why, "planned");
                self.running.insert(key.clone());
                let executor = self.executor.clone();
                let traces = self.metrics.traces().clone();
                let span = span.and_then(|span| {
                    let subject = subject(&key, &executor.cluster);
                    Some((traces.planned(span, subject.clone(), 1)?, subject))
                });
                self.tasks.spawn(async move {
                    let context = span.as_ref().map(|(apply, _)| apply.context());
                    let step = traces::within(context, executor.carry_out(step));
                    let carried_out = AssertUnwindSafe(step).catch_unwind().await;
                    // The panic's message is not logged: it may quote data.
                    let failed = |_| Outcome::HubFailed("the step ended unexpectedly".to_owned());
                    let outcome = carried_out.unwrap_or_else(failed);
                    if let Some((apply, subject)) = span {
                        traces.applied(apply, subject, counted(&outcome).name());
                    }
                    (key, outcome)
                });
            }
        }
    }
}

/// The subject of a key, for spans.
fn subject(key: &Key, cluster: &str) -> Subject {
    Subject {
        controller: "agent",
        server: cluster.to_owned(),
        object: match key {
            Key::Cluster => cluster.to_owned(),
            Key::Work(name) => name.to_string(),
        },
    }
}

/// The outcome of a step, as spans count it.
fn counted(outcome: &Outcome) -> metrics::Outcome {
    match outcome {
        Outcome::Applied(..) | Outcome::Removed(..) | Outcome::Written(..) => metrics::Outcome::Done,
        Outcome::Changed => metrics::Outcome::Conflict,
        Outcome::HubFailed(_) => metrics::Outcome::Failed,
        Outcome::Abandoned => metrics::Outcome::Empty,
    }
}

/// The first dirty keys without a running step, as many as there is room for. Cost: O(running + room).
fn first_idle(dirty: &BTreeSet<Key>, running: &BTreeSet<Key>, room: usize) -> Vec<Key> {
    let idle = dirty.iter().filter(|key| !running.contains(key));
    idle.take(room).cloned().collect()
}

/// The times at which keys are planned again. One for each key.
#[derive(Default)]
struct Timers {
    at: BTreeMap<Key, Time>,
    due: BTreeSet<(Time, Key)>,
}

impl Timers {
    fn set(&mut self, key: &Key, at: Option<Time>) {
        if let Some((key, before)) = self.at.remove_entry(key) {
            self.due.remove(&(before, key));
        }
        if let Some(at) = at {
            self.at.insert(key.clone(), at);
            self.due.insert((at, key.clone()));
        }
    }

    fn next(&self) -> Option<Time> {
        self.due.first().map(|(at, _)| *at)
    }

    fn len(&self) -> usize {
        self.at.len()
    }

    /// Removes and returns the keys whose time has come.
    fn due(&mut self, now: Time) -> Vec<Key> {
        let due: Vec<Key> = self
            .due
            .extract_if(.., |(at, _)| *at <= now)
            .map(|(_, key)| key)
            .collect();
        for key in &due {
            self.at.remove(key);
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_keys_are_collected_than_there_is_room_for() {
        let key = |name: &str| Key::Work(name.into());
        let dirty = BTreeSet::from(["a", "b", "c", "d"].map(key));
        let running = BTreeSet::from([key("a")]);
        for (room, expected) in [(0, vec![]), (2, vec!["b", "c"]), (9, vec!["b", "c", "d"])] {
            let expected: Vec<Key> = expected.into_iter().map(key).collect();
            assert_eq!(first_idle(&dirty, &running, room), expected);
        }
    }

    #[test]
    fn a_key_has_one_timer() {
        let (mut timers, key) = (Timers::default(), Key::Work("w".into()));
        timers.set(&key, Some(Time(5)));
        timers.set(&key, Some(Time(9)));
        assert_eq!((timers.next(), timers.due(Time(8))), (Some(Time(9)), vec![]));
        assert_eq!(timers.due(Time(9)), [key]);
        assert_eq!((timers.next(), timers.len()), (None, 0));
    }
}
