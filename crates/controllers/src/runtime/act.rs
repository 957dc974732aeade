//! From keys to requests: plans keys and executes the plans where there is capacity, and handles their outcomes.

use entourage_core::{
    object::Time,
    observation::Server,
    plan::{Change, Key},
};
use tokio::time::{Instant, timeout_at};
use tracing::{error, info, trace, warn};

use super::{
    ControlLoop, Decide, Ended, INBOX, LAST_WORDS, PLANS, PUBLISH,
    queue::Priority,
    sync_report::{self, Due},
};
use crate::{
    client::{Api, capacity::Capacity},
    clock,
    execute::Outcome,
    failure_kind::FailureKind,
    metrics,
    traces::{self, Subject},
};

impl<D: Decide> ControlLoop<D> {
    /// Plans and executes keys where there is capacity. Returns true if keys were left although there is capacity.
    pub(super) fn dispatch(&mut self, now: Time) -> bool {
        let mut raised = Vec::new();
        // Members that share a capacity get it in turns: those after the last that got any, then the others.
        let after = self.shared_turn.clone();
        let mut more = self.dispatch_those(|shared, server| !shared || *server > after, now, &mut raised);
        more |= self.dispatch_those(|shared, server| shared && *server <= after, now, &mut raised);
        more |= !raised.is_empty();
        for key in raised {
            self.push(key, Priority::Live, now);
        }
        more
    }

    /// As [`Self::dispatch`], for some servers: the first argument is true if the server shares its capacity.
    fn dispatch_those(
        &mut self,
        is_meant: impl Fn(bool, &Server) -> bool,
        now: Time,
        raised: &mut Vec<Key>,
    ) -> bool {
        let mut more = false;
        for (server, queue) in &mut self.serialization_keys {
            let mut left = PLANS;
            let member = match server {
                Server::Hub => None,
                Server::Member(name) => self.connections.get(name),
            };
            let api = match server {
                Server::Hub => Some(&self.options.hands.hub),
                Server::Member(_) => member.map(|member| &member.api),
            };
            let capacity = api.map(Api::capacity);
            if !is_meant(capacity.is_some_and(Capacity::is_shared), server) {
                continue;
            }
            // Without a client its plans end at once: no request is sent.
            let limit = api.map_or(1, Api::limit);
            while queue.in_flight().max(capacity.map_or(0, Capacity::plans)) < limit {
                if left == 0 {
                    more = true;
                    break;
                }
                let Some(key) = queue.pop(now) else { break };
                if let Some(at) = self.retries.held(&key, now) {
                    self.timers.set(&key, at, Priority::Timer);
                    continue;
                }
                left -= 1;
                let span = self.options.metrics.traces().root();
                let mut plan = self.options.decider.plan(&key, now);
                trace!(key = ?key, changes = plan.changes.len(), why = ?plan.why, "planned");
                raised.extend(self.options.decider.take_raised());
                self.timers.clear(&key);
                if let Some(at) = plan.again_at {
                    self.timers.set(&key, at, Priority::Timer);
                }
                // Questions to estimators are no requests to this server: their outcome says nothing of it.
                let is_question = |change: &mut Change| matches!(change, Change::Estimate(_));
                for change in plan.changes.extract_if(.., is_question) {
                    if let Change::Estimate(order) = change {
                        self.options.hands.ask(*order);
                    }
                }
                if plan.changes.is_empty() {
                    // A write that failed before is not repeated yet.
                    if !plan.waits_for_estimates() {
                        self.retries.succeeded(&key);
                    }
                    self.options
                        .metrics
                        .planned(key.controller(), metrics::Outcome::Empty);
                    continue;
                }
                if let [Change::Refuse(words)] = plan.changes.as_slice() {
                    // No request was sent, so there is nothing to retry: a change of the decision's inputs dirties the key.
                    let is_first = self.retries.is_first_refusal(&key);
                    if is_first {
                        warn!(key = ?key, "{words}");
                    }
                    if is_first && let Some(event) = self.options.decider.undecided(&key, words) {
                        self.options.hands.events.emit(event);
                    }
                    self.retries.reported(&key, now);
                    let (metrics, controller) = (&self.options.metrics, key.controller());
                    metrics.planned(controller, metrics::Outcome::Failed);
                    continue;
                }
                queue.start(&key);
                for change in &plan.changes {
                    if let Some(begun) = change.begun() {
                        self.options.decider.observe(begun, now);
                    }
                }
                if capacity.is_some_and(Capacity::is_shared) {
                    self.shared_turn = server.clone();
                }
                let (hands, member) = (self.options.hands.clone(), member.cloned());
                let counted = capacity.map(Capacity::plan);
                let traces = self.options.metrics.traces().clone();
                let span = span.and_then(|span| {
                    let subject = Subject::of(&key);
                    let apply = traces.planned(span, subject.clone(), plan.changes.len())?;
                    Some((apply, subject))
                });
                let task = self.tasks.spawn(async move {
                    let context = span.as_ref().map(|(apply, _)| apply.context());
                    let outcome = traces::within(context, hands.carry_out(plan, member.as_ref())).await;
                    drop(counted);
                    if let Some((apply, subject)) = span {
                        traces.applied(apply, subject, outcome.counted().name());
                    }
                    outcome
                });
                self.carried.insert(task.id(), key);
            }
        }
        more
    }

    /// Handles the outcome of a plan.
    pub(super) fn conclude(&mut self, end: Ended, now: Time) {
        let (task, outcome) = match end {
            Ok(end) => end,
            Err(error) => {
                // Not the panic's own message: it may quote data.
                error!(
                    panicked = error.is_panic(),
                    "the execution of a plan ended unexpectedly"
                );
                (
                    error.id(),
                    Outcome::Failed {
                        failure_kind: FailureKind::Lost,
                        asked: None,
                    },
                )
            }
        };
        let Some(key) = self.carried.remove(&task) else {
            return;
        };
        let is_lost = matches!(
            &outcome,
            Outcome::Failed {
                failure_kind: FailureKind::Lost,
                ..
            }
        );
        if let Some(observation) = key.broken_off().filter(|_| is_lost) {
            self.observe(observation, Priority::Timer, now);
        }
        let server = key.server();
        if let Some(queue) = self.serialization_keys.get_mut(&server) {
            queue.finish(&key);
        }
        let counted = outcome.counted();
        match outcome {
            Outcome::Done => {
                self.retries.succeeded(&key);
                if server == Server::Hub {
                    for freed in self.retries.answers_again(now) {
                        self.push(freed, Priority::Timer, now);
                    }
                }
            }
            Outcome::Refused(words) => {
                if self.retries.is_first_refusal(&key)
                    && let Some(event) = self.options.decider.refused(&key, &words)
                {
                    self.options.hands.events.emit(event);
                }
                let at = self
                    .retries
                    .failed(&key, now, FailureKind::Refused, None, clock::jitter());
                self.timers.set(&key, at, Priority::Timer);
            }
            Outcome::Failed { failure_kind, asked } => {
                let at = self
                    .retries
                    .failed(&key, now, failure_kind, asked, clock::jitter());
                let is_conflict = failure_kind == FailureKind::Conflict;
                let priority = if is_conflict {
                    Priority::Live
                } else {
                    Priority::Timer
                };
                self.timers.set(&key, at, priority);
            }
        }
        self.options.metrics.planned(key.controller(), counted);
    }

    pub(super) fn publish(&mut self, now: Time) {
        if now.0 - self.published.0 < PUBLISH {
            return;
        }
        self.published = now;
        // Without a missing list only a probe is missing, which ends within its deadline.
        let unsynced = match self.options.decider.is_synced() {
            true => Vec::new(),
            false => self.options.decider.unsynced(),
        };
        match self.sync_report.note(unsynced.is_empty(), now) {
            Some(Due::Missing) => {
                let missing = sync_report::named(&unsynced);
                warn!(
                    missing,
                    "lists have been missing for 30 s, and what depends on them waits"
                );
            }
            Some(Due::Complete) => info!("all lists are complete"),
            None => {}
        }
        let metrics = &self.options.metrics;
        for (server, queue) in &self.serialization_keys {
            let (name, limit) = match server {
                Server::Hub => ("hub", self.options.hands.hub.limit()),
                Server::Member(name) => match self.connections.get(name) {
                    Some(member) => (&**name, member.api.limit()),
                    // As in `dispatch`.
                    None if self.options.decider.cluster(name).is_some() => (&**name, 1),
                    // Its series were dropped.
                    None => continue,
                },
            };
            let oldest = queue.oldest().map_or(0, |since| now.0 - since.0);
            metrics.queue(name, queue.len(), clock::duration(oldest));
            metrics.concurrency(name, queue.in_flight(), limit as f64);
        }
        let stats = self.options.decider.stats();
        metrics.objects("templates", stats.templates);
        metrics.objects("bindings", stats.bindings);
        metrics.objects("copies", stats.copies);
        metrics.objects("clusters", stats.clusters);
        metrics.objects("policies", stats.policies);
        metrics.objects("unaccounted", stats.unaccounted);
        metrics.objects("copied", stats.copied);
        metrics.objects("outdated", stats.outdated);
        metrics.distributions(&self.options.decider.distributions(now));
        if let Some(counts) = self.options.decider.problem_counts() {
            metrics.problems(counts);
        }
        for change in self.options.decider.take_propagated() {
            metrics.propagated(&change);
        }
        for (eviction, count) in self.options.decider.take_evictions() {
            metrics.evicted(&eviction, count);
        }
    }

    /// Starts nothing new and waits for running plans. Returns true if all of them ended.
    pub(super) async fn finish(&mut self) -> bool {
        let deadline = Instant::now() + LAST_WORDS;
        let mut batch = Vec::new();
        while !self.tasks.is_empty() {
            let ended = timeout_at(deadline, async {
                tokio::select! {
                    Some(_) = self.tasks.join_next() => {}
                    // Else a task could wait for room in the inbox.
                    _ = self.options.inbox.recv_many(&mut batch, INBOX) => batch.clear(),
                }
            });
            if ended.await.is_err() {
                break;
            }
        }
        let all = self.tasks.is_empty();
        self.tasks.shutdown().await;
        all
    }
}
