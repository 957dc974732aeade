//! The answers of estimators: what they said of room lately, what they were asked, and the bindings that wait for that.
//!
//! An answer counts for a few seconds. For a binding that waits, each answer that came since it began to wait counts: it is not asked
//! for again because the binding's turn came late. A question that is open is not asked twice: all bindings with the same
//! requirements wait for its answer. Nothing is asked unless a result depends on it, and all of it ends with time.
//!
//! Invariant: a workload that was refused by an answer is not placed because the next question has none. An estimator that fails, or that
//! could not be asked in time, counts with its last number for a minute.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    object::{ResourceId, Str, Time},
    observation::{EstimatorAnswer, Template},
    plan::{ComponentSet, EstimateUse},
};

#[cfg(test)]
mod tests;

/// The time, in milliseconds, for which an answer counts.
const FRESH: i64 = 5_000;

/// The time, in milliseconds, that a question takes longer than its call and the wait for its turn: the answers of the others come with
/// its failure.
const MARGIN: i64 = 1_000;

/// The time, in milliseconds, for which the last number of an estimator counts while it does not answer again.
const LAST: i64 = 60_000;

/// The time, in milliseconds, after which what could not be asked is asked again.
pub(crate) const AGAIN: i64 = 1_000;

/// The times, in milliseconds, for which answers that refused a binding count for it, by how often it was refused: it is tried every
/// 15 s, and nodes do not become free that often.
const PAUSES: [i64; 4] = [0, 30_000, 60_000, 120_000];

/// The time, in milliseconds, for which answers are kept: the longest for which they count.
pub(super) const KEPT: i64 = PAUSES[3];

/// The longest time-out, in milliseconds, that can be set.
pub(super) const LONGEST_TIMEOUT: i64 = 30_000;

/// The number of answers and open questions that are kept; of more answers, those that end first are dropped.
const MOST: usize = 50_000;

/// The number of questions that may be open; more wait.
const MOST_OPEN: usize = MOST / 2;

/// The answers of estimators, and who waits for them.
#[derive(Debug, Default)]
pub(crate) struct Estimates {
    /// By requirements.
    known: BTreeMap<Str, Known>,
    waiting: BTreeMap<ResourceId, Wait>,
    /// The bindings that wait, by priority.
    by_priority: BTreeSet<(i32, ResourceId)>,
    /// The bindings that answers refused, and how often, the first time not counted.
    refused: BTreeMap<ResourceId, usize>,
    /// The time when the entry of requirements and cluster ends: one for each.
    ends: BTreeSet<(Time, Str, Str)>,
    /// The number of open questions.
    open: usize,
}

/// The answers and questions for the same requirements.
#[derive(Debug, Default)]
struct Known {
    clusters: BTreeMap<Str, Entry>,
    /// The bindings that wait.
    waiting: BTreeSet<ResourceId>,
    /// The bindings that do not wait, and are planned again with the next answers.
    curious: BTreeSet<ResourceId>,
}

/// The questions to the estimator of one cluster.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// The time of the open question.
    asked: Option<Time>,
    /// It is not asked again before.
    until: Time,
    /// The time of the last answer, whether it was a number or a failure.
    answered: Option<Time>,
    /// The last number, and the time when it came.
    last: Option<(Time, Number)>,
    ends: Time,
}

/// The number that an estimator answered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Number {
    /// The time of the question.
    pub(crate) asked: Time,
    pub(crate) replicas: i64,
}

/// A binding that waits.
#[derive(Debug)]
struct Wait {
    requirements: Str,
    /// The time of its first question, whatever its requirements were.
    since: Time,
    /// The clusters whose room it may use.
    clusters: BTreeSet<Str>,
    priority: i32,
    /// The bindings that wait until it does not.
    behind: BTreeSet<ResourceId>,
    /// True if it does not wait any more, but its result is not stored yet, or it was decided without answers. If it is planned again, it
    /// does not begin anew, and its status is planned by the same answers.
    is_decided: bool,
}

/// The plan of a binding, as far as it concerns estimates.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Planned<'a> {
    /// See [`crate::plan::Plan::estimates`].
    pub(crate) used: Option<&'a EstimateUse>,
    /// The clusters whose estimators it asks now.
    pub(crate) asked: &'a [Str],
    /// True if its result is not stored yet.
    pub(crate) is_pending: bool,
    /// True if there is too little room for it.
    pub(crate) lacks_room: bool,
    /// True if it is divided by room.
    pub(crate) is_by_room: bool,
}

/// The end of a wait by a plan.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Ended {
    /// True if the binding waited, and does not any more.
    pub(crate) has_waited: bool,
    /// The bindings that waited behind it.
    pub(crate) behind: BTreeSet<ResourceId>,
}

/// The time that a question takes at most, in milliseconds: the wait for its turn, and its call.
pub(crate) const fn question(timeout: i64) -> i64 {
    timeout.saturating_mul(2).saturating_add(MARGIN)
}

/// The time that a binding waits at most, in milliseconds: what could not be asked at once is asked again.
const fn limit(timeout: i64) -> i64 {
    question(timeout).saturating_mul(2)
}

impl Estimates {
    /// The question about a template: what it requires, as it is reported apart here, and the set that it is, if it has components and no
    /// replicas. Cost: O(size of the requirements).
    pub(crate) fn question_about(id: &ResourceId, template: &Template) -> (Str, Option<ComponentSet>) {
        let components = template.components.clone();
        let set = components.filter(|_| template.replicas.is_none());
        let set = set.map(|components| ComponentSet {
            components,
            namespace: id.namespace.clone(),
        });
        let key = match &set {
            Some(set) => serde_json::to_string(set),
            None => serde_json::to_string(&template.requirements.as_deref()),
        };
        (key.unwrap_or_default().into(), set)
    }

    /// The answers that count for a binding now, `None` for an estimator that failed. `reported` is the time of the last report of a
    /// cluster: a binding that was refused asks again where there is a new one. Cost: O(clusters that were asked for these
    /// requirements).
    pub(crate) fn answers(
        &self,
        id: &ResourceId,
        requirements: &Str,
        reported: impl Fn(&Str) -> Option<Time>,
        timeout: i64,
        now: Time,
    ) -> BTreeMap<Str, Option<Number>> {
        let since = self.since(id, timeout, now);
        let has_waited = self.waits_until(id, timeout, now) <= now;
        let pause = self
            .refused
            .get(id)
            .map_or(0, |times| PAUSES[(*times).min(PAUSES.len() - 1)]);
        let known = self.known.get(requirements).map(|known| &known.clusters);
        let entries = known.into_iter().flatten();
        entries
            .filter_map(|(cluster, entry)| {
                let is_paused = |at: Time| {
                    now < at.plus(pause)
                        && entry.is_number()
                        && reported(cluster).is_none_or(|reported| reported <= at)
                };
                let counts = |at: Time| {
                    now <= at.plus(FRESH) || since.is_some_and(|since| since <= at) || is_paused(at)
                };
                let is_recent = |(at, _): (Time, Number)| now <= at.plus(LAST);
                // An entry may be there for longer than it is kept.
                let answered = entry.answered.filter(|at| now <= at.plus(KEPT));
                let is_answer =
                    answered.is_some_and(counts) || has_waited && entry.last.is_some_and(is_recent);
                is_answer.then(|| (cluster.clone(), entry.number(now)))
            })
            .collect()
    }

    /// The time until which a binding waits, counted from its first question. Cost: O(log bindings).
    pub(crate) fn waits_until(&self, id: &ResourceId, timeout: i64, now: Time) -> Time {
        self.since(id, timeout, now).unwrap_or(now).plus(limit(timeout))
    }

    /// The time until which the estimator of a cluster is not asked again: it may still answer, or could not be asked just now. Cost:
    /// O(log).
    pub(crate) fn asked_until(&self, requirements: &Str, cluster: &Str, now: Time) -> Option<Time> {
        let entry = self.known.get(requirements)?.clusters.get(cluster)?;
        Some(entry.until).filter(|until| now < *until)
    }

    /// The number of questions that may be asked now.
    pub(crate) const fn places(&self) -> usize {
        MOST_OPEN.saturating_sub(self.open)
    }

    /// The other binding with the highest priority above this one that waits for the room of one of these clusters, and the time until
    /// which it waits. Cost: O(bindings of a higher priority that wait × clusters × log).
    pub(crate) fn goes_first(
        &self,
        own: &ResourceId,
        (clusters, priority): (&BTreeSet<Str>, i32),
        timeout: i64,
        now: Time,
    ) -> Option<(&ResourceId, Time)> {
        let higher = self.by_priority.iter().rev();
        let mut higher = higher.take_while(|(each, _)| *each > priority);
        higher.find_map(|(_, id)| {
            let wait = self.waiting.get(id)?;
            let until = wait.since.plus(limit(timeout));
            (id != own && now < until && !wait.clusters.is_disjoint(clusters)).then_some((id, until))
        })
    }

    /// Notes the plan of a binding. Cost: O(clusters × log entries), and O(bindings behind it × those of higher priorities) if its wait
    /// ends; O(log bindings) for none.
    pub(crate) fn planned(&mut self, id: &ResourceId, plan: &Planned<'_>, timeout: i64, now: Time) -> Ended {
        let has_waited = self.waiting.get(id).is_some_and(|wait| !wait.is_decided);
        let waits = plan.used.filter(|used| used.waits);
        let behind = match waits {
            Some(used) => {
                self.wait(id, used, timeout, now);
                BTreeSet::new()
            }
            None => {
                let is_late = plan.is_by_room && self.waits_until(id, timeout, now) <= now;
                let behind = self.end_wait(id, plan.is_pending || is_late);
                self.hand_on(behind, timeout, now)
            }
        };
        if plan.lacks_room {
            let times = self.refused.get(id).copied();
            let times = times.map_or(0, |times| times + usize::from(has_waited));
            self.refused.insert(id.clone(), times);
        } else if waits.is_none() {
            self.refused.remove(id);
        }
        if let Some(used) = plan.used {
            self.expire(now);
            self.ask((id, used), plan.asked, timeout, now);
        }
        Ended {
            has_waited: has_waited && waits.is_none(),
            behind,
        }
    }

    /// Records answers to the questions of a time, as far as they are open. Returns the bindings to plan again. Cost: O(answers × log
    /// entries + those bindings).
    pub(crate) fn answered(
        &mut self,
        requirements: &Str,
        (asked, answers): (Time, Vec<(Str, EstimatorAnswer)>),
        now: Time,
    ) -> BTreeSet<ResourceId> {
        for (cluster, answer) in answers {
            let known = self.known.get(requirements);
            let Some(mut entry) = known.and_then(|known| known.clusters.get(&cluster)).copied() else {
                continue;
            };
            // The Cluster was deleted meanwhile, or the question is over; there may be another one.
            if entry.asked != Some(asked) {
                continue;
            }
            entry.asked = None;
            entry.until = now;
            entry.ends = now.plus(KEPT);
            match answer {
                EstimatorAnswer::Room(replicas) => {
                    entry.answered = Some(now);
                    entry.last = Some((now, Number { asked, replicas }));
                }
                EstimatorAnswer::Failed => entry.answered = Some(now),
                EstimatorAnswer::NotAsked => entry.until = now.plus(AGAIN),
            }
            self.keep(requirements, &cluster, entry);
        }
        let Some(known) = self.known.get_mut(requirements) else {
            return BTreeSet::new();
        };
        let mut all = std::mem::take(&mut known.curious);
        all.extend(known.waiting.iter().cloned());
        all
    }

    /// A Cluster was deleted. Cost: O(requirements).
    pub(crate) fn forget_member(&mut self, cluster: &Str) {
        for (requirements, known) in &mut self.known {
            if let Some(entry) = known.clusters.remove(cluster) {
                self.open -= usize::from(entry.asked.is_some());
                self.ends
                    .remove(&(entry.ends, requirements.clone(), cluster.clone()));
            }
        }
        self.known.retain(|_, known| !known.is_unused());
    }

    /// The time of the first question of a binding, if it waits, or its result is not stored yet. After a wait that long ago another
    /// one begins.
    fn since(&self, id: &ResourceId, timeout: i64, now: Time) -> Option<Time> {
        let since = self.waiting.get(id)?.since;
        (now < since.plus(limit(timeout)).plus(LAST)).then_some(since)
    }

    /// A binding waits.
    fn wait(&mut self, id: &ResourceId, used: &EstimateUse, timeout: i64, now: Time) {
        let since = self.since(id, timeout, now).unwrap_or(now);
        let before = self.waiting.remove(id);
        if let Some(before) = &before {
            self.by_priority.remove(&(before.priority, id.clone()));
            if before.requirements != used.key {
                self.leave(id, &before.requirements);
            }
        }
        let wait = Wait {
            requirements: used.key.clone(),
            since,
            clusters: used.clusters.clone(),
            priority: used.priority,
            behind: before.map(|before| before.behind).unwrap_or_default(),
            is_decided: false,
        };
        self.waiting.insert(id.clone(), wait);
        self.by_priority.insert((used.priority, id.clone()));
        let known = self.known.entry(used.key.clone()).or_default();
        known.waiting.insert(id.clone());
        if let Some(first) = &used.behind
            && let Some(first) = self.waiting.get_mut(first)
        {
            first.behind.insert(id.clone());
        }
    }

    /// A binding waits no more. Returns those behind it.
    fn end_wait(&mut self, id: &ResourceId, is_kept: bool) -> BTreeSet<ResourceId> {
        let Some(mut wait) = self.waiting.remove(id) else {
            return BTreeSet::new();
        };
        self.by_priority.remove(&(wait.priority, id.clone()));
        self.leave(id, &wait.requirements);
        let behind = std::mem::take(&mut wait.behind);
        if is_kept {
            wait.is_decided = true;
            self.waiting.insert(id.clone(), wait);
        }
        behind
    }

    /// Those that waited behind one wait behind the next of a higher priority that waits for the same room. Returns those without one.
    fn hand_on(&mut self, behind: BTreeSet<ResourceId>, timeout: i64, now: Time) -> BTreeSet<ResourceId> {
        let mut free = BTreeSet::new();
        for id in behind {
            let wait = self.waiting.get(&id).filter(|wait| !wait.is_decided);
            let next =
                wait.and_then(|wait| self.goes_first(&id, (&wait.clusters, wait.priority), timeout, now));
            let next = next.map(|(next, _)| next.clone());
            match next.and_then(|next| self.waiting.get_mut(&next)) {
                Some(next) => {
                    next.behind.insert(id);
                }
                None => {
                    free.insert(id);
                }
            }
        }
        free
    }

    /// A binding does not wait for answers for these requirements.
    fn leave(&mut self, id: &ResourceId, requirements: &Str) {
        if let Some(known) = self.known.get_mut(requirements) {
            known.waiting.remove(id);
            if known.is_unused() {
                self.known.remove(requirements);
            }
        }
    }

    /// The estimators of these clusters are asked for a binding.
    fn ask(&mut self, (id, used): (&ResourceId, &EstimateUse), asked: &[Str], timeout: i64, now: Time) {
        for cluster in asked {
            let known = self.known.get(&used.key);
            let before = known.and_then(|known| known.clusters.get(cluster)).copied();
            let entry = Entry {
                asked: Some(now),
                until: now.plus(question(timeout)),
                answered: before.and_then(|before| before.answered),
                last: before.and_then(|before| before.last),
                ends: now.plus(question(timeout)).plus(KEPT),
            };
            self.keep(&used.key, cluster, entry);
        }
        // Without an entry no answer comes.
        if !used.waits
            && let Some(known) = self.known.get_mut(&used.key)
        {
            known.curious.insert(id.clone());
        }
    }

    /// Keeps an entry, in place of the one before.
    fn keep(&mut self, requirements: &Str, cluster: &Str, entry: Entry) {
        let end = |at: Time| (at, requirements.clone(), cluster.clone());
        let known = self.known.entry(requirements.clone()).or_default();
        let before = known.clusters.insert(cluster.clone(), entry);
        self.open += usize::from(entry.asked.is_some());
        if let Some(before) = before {
            self.open -= usize::from(before.asked.is_some());
            self.ends.remove(&end(before.ends));
        }
        self.ends.insert(end(entry.ends));
        self.trim();
    }

    /// Drops answers beyond [`MOST`], never open questions: they would be asked again. Cost: O(1) if there are not too many.
    fn trim(&mut self) {
        while self.ends.len() > MOST {
            let known = &self.known;
            let is_open = |(_, requirements, cluster): &&(Time, Str, Str)| {
                let entry = known
                    .get(requirements)
                    .and_then(|known| known.clusters.get(cluster));
                entry.is_some_and(|entry| entry.asked.is_some())
            };
            let Some(end) = self.ends.iter().find(|end| !is_open(end)).cloned() else {
                return;
            };
            self.ends.remove(&end);
            self.end(&end.1, &end.2);
        }
    }

    /// Ends what is over. Cost: O(that × log); O(1) for none.
    fn expire(&mut self, now: Time) {
        while let Some((until, ..)) = self.ends.first()
            && *until <= now
            && let Some((_, requirements, cluster)) = self.ends.pop_first()
        {
            self.end(&requirements, &cluster);
        }
    }

    fn end(&mut self, requirements: &Str, cluster: &Str) {
        let Some(known) = self.known.get_mut(requirements) else {
            return;
        };
        if let Some(entry) = known.clusters.remove(cluster) {
            self.open -= usize::from(entry.asked.is_some());
        }
        if known.is_unused() {
            self.known.remove(requirements);
        }
    }
}

impl Known {
    /// True if nobody waits, and nothing is kept or asked: no answer comes for who is curious.
    fn is_unused(&self) -> bool {
        self.clusters.is_empty() && self.waiting.is_empty()
    }
}

impl Entry {
    /// True if the last answer was a number.
    fn is_number(&self) -> bool {
        self.answered.is_some() && self.last.map(|(at, _)| at) == self.answered
    }

    /// The number that counts now: that of the last answer, or one not long before it.
    fn number(&self, now: Time) -> Option<Number> {
        let (at, number) = self.last?;
        (self.is_number() || now <= at.plus(LAST)).then_some(number)
    }
}
