//! The answers of estimators: what they said of room lately, what they were asked, and the bindings that wait for that.
//!
//! An answer counts for a few seconds. For a binding that waits, each answer that came since it began to wait counts: it is not asked
//! for again because the binding's turn came late. A question that is open is not asked twice: all bindings with the same
//! requirements wait for its answer. Nothing is asked unless a result depends on it, and all of it ends with time.

use std::collections::{BTreeMap, BTreeSet};

use entourage_api::work::ReplicaRequirements;

use crate::object::{ResourceId, Str, Time};

/// The time, in milliseconds, for which an answer counts.
const FRESH: i64 = 5_000;

/// The time, in milliseconds, that a binding waits longer than an estimator is given: the answers of the others come with its
/// failure.
const MARGIN: i64 = 1_000;

/// The number of answers and open questions that are kept; of more, those that end first are dropped.
const MOST: usize = 50_000;

/// The answers of estimators, and who waits for them.
#[derive(Debug, Default)]
pub(crate) struct Estimates {
    /// By requirements.
    known: BTreeMap<Str, Known>,
    waiting: BTreeMap<ResourceId, Wait>,
    /// The time when the entry of requirements and cluster ends: one for each.
    ends: BTreeSet<(Time, Str, Str)>,
}

/// What is known for the same requirements.
#[derive(Debug, Default)]
struct Known {
    clusters: BTreeMap<Str, Entry>,
    /// The bindings that wait.
    waiting: BTreeSet<ResourceId>,
}

/// The questions to the estimator of one cluster.
#[derive(Debug)]
struct Entry {
    /// The time of the open question.
    asked: Option<Time>,
    /// The last answer, and its time; `None` in it if the estimator gave none.
    answer: Option<(Time, Option<i64>)>,
    ends: Time,
}

/// A binding that waits.
#[derive(Debug)]
struct Wait {
    requirements: Str,
    /// The time of its first question.
    since: Time,
}

impl Estimates {
    /// The requirements of a replica, as they are reported apart here. Cost: O(size of them).
    pub(crate) fn key_of(requirements: Option<&ReplicaRequirements>) -> Str {
        serde_json::to_string(&requirements).unwrap_or_default().into()
    }

    /// The answers that count for a binding now. Cost: O(clusters that were asked for these requirements).
    pub(crate) fn answers(
        &self,
        id: &ResourceId,
        requirements: &Str,
        now: Time,
    ) -> BTreeMap<Str, Option<i64>> {
        let since = self.since(id, requirements);
        let counts = |at: Time| now <= at.plus(FRESH) || since.is_some_and(|since| since <= at);
        let known = self.known.get(requirements).map(|known| &known.clusters);
        let entries = known.into_iter().flatten();
        entries
            .filter_map(|(cluster, entry)| {
                let (_, answer) = entry.answer.filter(|(at, _)| counts(*at))?;
                Some((cluster.clone(), answer))
            })
            .collect()
    }

    /// The time until which a binding waits: the time-out of estimators and a margin after its first question. Cost: O(log bindings).
    pub(crate) fn waits_until(&self, id: &ResourceId, requirements: &Str, timeout: i64, now: Time) -> Time {
        self.since(id, requirements)
            .unwrap_or(now)
            .plus(timeout)
            .plus(MARGIN)
    }

    /// True if the estimator of a cluster was asked and may still answer. Cost: O(log).
    pub(crate) fn is_open(&self, requirements: &Str, cluster: &Str, timeout: i64, now: Time) -> bool {
        let entry = self
            .known
            .get(requirements)
            .and_then(|known| known.clusters.get(cluster));
        let asked = entry.and_then(|entry| entry.asked);
        asked.is_some_and(|asked| now < asked.plus(timeout).plus(MARGIN))
    }

    /// Notes the plan of a binding: that it waits for estimates for these requirements, and asks those of these clusters now; or
    /// that it does not wait. Cost: O(clusters × log entries); O(log bindings) for none.
    pub(crate) fn planned(
        &mut self,
        id: &ResourceId,
        waits: Option<(&Str, &[Str])>,
        timeout: i64,
        now: Time,
    ) {
        let is_same = |wait: &Wait| waits.is_some_and(|(requirements, _)| *requirements == wait.requirements);
        if self.waiting.get(id).is_some_and(|wait| !is_same(wait)) {
            self.forget(id);
        }
        let Some((requirements, clusters)) = waits else {
            return;
        };
        self.expire(now);
        let wait = || Wait {
            requirements: requirements.clone(),
            since: now,
        };
        self.waiting.entry(id.clone()).or_insert_with(wait);
        let known = self.known.entry(requirements.clone()).or_default();
        known.waiting.insert(id.clone());
        for cluster in clusters {
            let answer = known.clusters.get(cluster).and_then(|entry| entry.answer);
            let entry = Entry {
                asked: Some(now),
                answer,
                ends: now.plus(timeout).plus(MARGIN).plus(FRESH),
            };
            keep(&mut self.ends, requirements, cluster, known, entry);
        }
        while self.ends.len() > MOST
            && let Some((_, requirements, cluster)) = self.ends.pop_first()
        {
            self.end(&requirements, &cluster);
        }
    }

    /// Records answers. Returns the bindings that wait for some for these requirements. Cost: O(answers × log entries + those
    /// bindings).
    pub(crate) fn answered(
        &mut self,
        requirements: &Str,
        answers: Vec<(Str, Option<i64>)>,
        timeout: i64,
        now: Time,
    ) -> Vec<ResourceId> {
        // Nobody asks for these any more.
        let Some(known) = self.known.get_mut(requirements) else {
            return Vec::new();
        };
        for (cluster, answer) in answers {
            let entry = Entry {
                asked: None,
                answer: Some((now, answer)),
                ends: now.plus(timeout).plus(MARGIN).plus(FRESH),
            };
            keep(&mut self.ends, requirements, &cluster, known, entry);
        }
        known.waiting.iter().cloned().collect()
    }

    /// A Cluster was deleted. Cost: O(requirements).
    pub(crate) fn forget_member(&mut self, cluster: &Str) {
        for (requirements, known) in &mut self.known {
            if let Some(entry) = known.clusters.remove(cluster) {
                self.ends
                    .remove(&(entry.ends, requirements.clone(), cluster.clone()));
            }
        }
        self.known.retain(|_, known| !known.is_unused());
    }

    /// The time of the first question of a binding, if it waits for estimates for these requirements.
    fn since(&self, id: &ResourceId, requirements: &Str) -> Option<Time> {
        let wait = self.waiting.get(id)?;
        (wait.requirements == *requirements).then_some(wait.since)
    }

    /// A binding waits no more.
    fn forget(&mut self, id: &ResourceId) {
        let Some(wait) = self.waiting.remove(id) else {
            return;
        };
        if let Some(known) = self.known.get_mut(&wait.requirements) {
            known.waiting.remove(id);
            if known.is_unused() {
                self.known.remove(&wait.requirements);
            }
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
        known.clusters.remove(cluster);
        if known.is_unused() {
            self.known.remove(requirements);
        }
    }
}

impl Known {
    fn is_unused(&self) -> bool {
        self.clusters.is_empty() && self.waiting.is_empty()
    }
}

/// Keeps an entry, in place of the one before.
fn keep(
    ends: &mut BTreeSet<(Time, Str, Str)>,
    requirements: &Str,
    cluster: &Str,
    known: &mut Known,
    entry: Entry,
) {
    let end = |at: Time| (at, requirements.clone(), cluster.clone());
    ends.insert(end(entry.ends));
    let until = entry.ends;
    if let Some(before) = known.clusters.insert(cluster.clone(), entry)
        && before.ends != until
    {
        ends.remove(&end(before.ends));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::Gvk;

    const TIMEOUT: i64 = 3_000;

    fn id(name: &str) -> ResourceId {
        ResourceId::new(Gvk::new("apps/v1", "Deployment"), "shop", name)
    }

    fn strs(all: &[&str]) -> Vec<Str> {
        all.iter().map(|name| Str::from(*name)).collect()
    }

    fn answers(all: &[(&str, Option<i64>)]) -> Vec<(Str, Option<i64>)> {
        all.iter()
            .map(|(name, answer)| (Str::from(*name), *answer))
            .collect()
    }

    /// The binding asks the estimators of these clusters, or waits for others' questions.
    fn asks(estimates: &mut Estimates, name: &str, clusters: &[&str], at: i64) {
        let (needs, clusters) = (Str::from("needs"), strs(clusters));
        estimates.planned(&id(name), Some((&needs, &clusters)), TIMEOUT, Time(at));
    }

    fn known(estimates: &Estimates, name: &str, at: i64) -> Vec<(Str, Option<i64>)> {
        let all = estimates.answers(&id(name), &"needs".into(), Time(at));
        all.into_iter().collect()
    }

    fn is_empty(estimates: &Estimates) -> bool {
        estimates.known.is_empty() && estimates.waiting.is_empty() && estimates.ends.is_empty()
    }

    #[test]
    fn an_answer_counts_for_a_while_and_for_who_waits_until_its_turn() {
        let mut estimates = Estimates::default();
        asks(&mut estimates, "x", &["a", "b"], 0);
        assert_eq!(known(&estimates, "x", 1), []);
        let reported = answers(&[("a", Some(4)), ("b", None)]);
        let waiting = estimates.answered(&"needs".into(), reported.clone(), TIMEOUT, Time(1_000));
        assert_eq!(waiting, [id("x")]);
        for (name, at, want) in [
            ("x", 1_000, reported.clone()),
            ("x", 1_000 + FRESH + 1, reported.clone()),
            ("y", 1_000 + FRESH, reported.clone()),
            ("y", 1_000 + FRESH + 1, vec![]),
        ] {
            assert_eq!(known(&estimates, name, at), want, "{name} at {at}");
        }
        let others = estimates.answers(&id("x"), &"other needs".into(), Time(1_000));
        assert_eq!(others, BTreeMap::new());
        // It is planned, and waits no more.
        estimates.planned(&id("x"), None, TIMEOUT, Time(2_000));
        assert_eq!(known(&estimates, "x", 1_000 + FRESH + 1), []);
    }

    #[test]
    fn a_question_is_open_until_its_answer_or_the_time_out_and_the_wait_begins_with_the_first() {
        let mut estimates = Estimates::default();
        let needs = Str::from("needs");
        let is_open = |estimates: &Estimates, cluster: &str, at: i64| {
            estimates.is_open(&needs, &cluster.into(), TIMEOUT, Time(at))
        };
        asks(&mut estimates, "x", &["a", "b"], 0);
        assert!(is_open(&estimates, "a", 0) && !is_open(&estimates, "c", 0));
        estimates.answered(&needs, answers(&[("a", Some(1))]), TIMEOUT, Time(10));
        assert!(!is_open(&estimates, "a", 10) && is_open(&estimates, "b", TIMEOUT + MARGIN - 1));
        assert!(!is_open(&estimates, "b", TIMEOUT + MARGIN));
        // Another one waits for the same, and the first asks once more.
        asks(&mut estimates, "y", &[], 100);
        asks(&mut estimates, "x", &["c"], 200);
        let until = |name: &str| estimates.waits_until(&id(name), &needs, TIMEOUT, Time(300));
        assert_eq!(until("x"), Time(TIMEOUT + MARGIN));
        assert_eq!(until("y"), Time(100 + TIMEOUT + MARGIN));
        assert_eq!(until("z"), Time(300 + TIMEOUT + MARGIN));
        let waiting = estimates.answered(&needs, answers(&[("b", None), ("c", None)]), TIMEOUT, Time(400));
        assert_eq!(waiting, [id("x"), id("y")]);
    }

    #[test]
    fn a_question_that_is_asked_again_keeps_the_answer_for_who_waits_with_it() {
        let mut estimates = Estimates::default();
        asks(&mut estimates, "x", &["a", "b"], 0);
        estimates.answered(&"needs".into(), answers(&[("a", Some(3))]), TIMEOUT, Time(1));
        asks(&mut estimates, "y", &["a"], FRESH + 2);
        assert_eq!(known(&estimates, "x", FRESH + 3), answers(&[("a", Some(3))]));
        assert_eq!(known(&estimates, "y", FRESH + 3), []);
    }

    #[test]
    fn nothing_is_kept_for_long() {
        let mut estimates = Estimates::default();
        asks(&mut estimates, "x", &["a", "b"], 0);
        estimates.answered(&"needs".into(), answers(&[("a", Some(3))]), TIMEOUT, Time(1));
        estimates.planned(&id("x"), None, TIMEOUT, Time(2));
        estimates.forget_member(&"b".into());
        assert_eq!(estimates.ends.len(), 1);
        asks(&mut estimates, "y", &[], 60_000);
        assert!(estimates.ends.is_empty());
        estimates.planned(&id("y"), None, TIMEOUT, Time(60_001));
        assert!(is_empty(&estimates));
        // A late answer that nobody waits for, and a binding whose requirements change.
        assert_eq!(
            estimates.answered(&"needs".into(), answers(&[("a", Some(3))]), TIMEOUT, Time(60_002)),
            []
        );
        assert!(is_empty(&estimates));
        asks(&mut estimates, "x", &["a"], 60_003);
        let (other, clusters) = (Str::from("other needs"), strs(&["a"]));
        estimates.planned(&id("x"), Some((&other, &clusters)), TIMEOUT, Time(60_004));
        let waiting = estimates.answered(&"needs".into(), answers(&[("a", Some(3))]), TIMEOUT, Time(60_005));
        assert_eq!(waiting, []);
    }

    #[test]
    fn no_more_than_so_many_are_kept() {
        let mut estimates = Estimates::default();
        let many: Vec<String> = (0..=MOST).map(|number| format!("m{number:06}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        asks(&mut estimates, "x", &many, 0);
        let kept: usize = estimates.known.values().map(|known| known.clusters.len()).sum();
        assert_eq!((kept, estimates.ends.len()), (MOST, MOST));
    }
}
