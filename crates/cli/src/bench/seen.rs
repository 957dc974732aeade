//! The state that the watches have shown, and waiting for it.
//!
//! The [`Ledger`] is plain data: events go in, and an expectation ("these copies, on these servers, present / absent / at that step")
//! is a set of outstanding objects, which events reduce. The event that removes its last entry ends the wait: nothing is
//! polled.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use anyhow::{Result, bail};
use tokio::sync::watch;

use super::kind::ObjectId;

/// A server, by its index in the list of all servers.
pub type Place = usize;

/// The expected state of each object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expectation {
    /// It exists.
    Present,
    /// It does not exist.
    Absent,
    /// It exists and its annotation [`super::objects::STEP`] is this.
    Step(String),
}

/// The time at which an object fulfilled an expectation.
#[derive(Clone, Copy, Debug)]
pub struct Fulfilled {
    /// The time at which the benchmark observed it: each kind has its own watch, so the order between kinds may differ.
    pub at: Instant,
    /// The resourceVersion that the server wrote: etcd's revision, and so ordered for all objects of a server.
    pub revision: u64,
}

/// The observed objects, and the expectation.
#[derive(Debug, Default)]
pub struct Ledger {
    /// All objects that exist, with their step.
    objects: HashMap<(Place, ObjectId), Option<String>>,
    expectation: Option<(Expectation, HashSet<(Place, ObjectId)>)>,
    /// The objects that fulfilled the expectation, with the time.
    fulfilled: BTreeMap<(Place, ObjectId), Fulfilled>,
}

impl Ledger {
    /// Records that an object exists, with this step, at this revision. Returns true if it fulfils the expectation.
    pub fn present(&mut self, place: Place, id: ObjectId, step: Option<String>, revision: u64) -> bool {
        let key = (place, id);
        let closer = match &mut self.expectation {
            Some((Expectation::Present, left)) => left.remove(&key),
            Some((Expectation::Step(wanted), left)) if step.as_ref() == Some(wanted) => left.remove(&key),
            _ => false,
        };
        if closer {
            let at = Instant::now();
            self.fulfilled.insert(key.clone(), Fulfilled { at, revision });
        }
        self.objects.insert(key, step);
        closer
    }

    /// Records that an object is deleted. Returns true if that fulfils the expectation.
    pub fn gone(&mut self, place: Place, id: ObjectId) -> bool {
        let key = (place, id);
        self.objects.remove(&key);
        match &mut self.expectation {
            Some((Expectation::Absent, left)) => left.remove(&key),
            _ => false,
        }
    }

    /// Sets the expectation. Returns the number of outstanding objects.
    pub fn arm(
        &mut self,
        expectation: Expectation,
        of: impl IntoIterator<Item = (Place, ObjectId)>,
    ) -> usize {
        let open = |key: &(Place, ObjectId)| match (&expectation, self.objects.get(key)) {
            (Expectation::Present, found) => found.is_none(),
            (Expectation::Absent, found) => found.is_some(),
            (Expectation::Step(wanted), found) => found != Some(&Some(wanted.clone())),
        };
        let left: HashSet<_> = of.into_iter().filter(open).collect();
        let count = left.len();
        self.expectation = Some((expectation, left));
        self.fulfilled.clear();
        count
    }

    /// The outstanding objects, sorted.
    #[must_use]
    pub fn outstanding(&self) -> BTreeSet<(Place, ObjectId)> {
        self.expectation
            .as_ref()
            .map(|(_, left)| left.iter().cloned().collect())
            .unwrap_or_default()
    }

    /// All objects that exist on a server.
    #[must_use]
    pub fn on(&self, place: Place) -> BTreeSet<ObjectId> {
        self.objects
            .keys()
            .filter(|key| key.0 == place)
            .map(|key| key.1.clone())
            .collect()
    }

    fn left(&self) -> usize {
        self.expectation.as_ref().map_or(0, |(_, left)| left.len())
    }
}

/// A ledger that watches write and scenarios wait on. Cheap to clone; clones share it.
#[derive(Clone, Debug)]
pub struct Seen {
    ledger: Arc<Mutex<Ledger>>,
    /// The number of outstanding objects, and the time of its last change.
    progress: watch::Sender<(usize, Instant)>,
    names: Arc<[String]>,
}

impl Seen {
    /// For servers with these names, in the order of their indexes.
    #[must_use]
    pub fn new(names: Vec<String>) -> Self {
        Self {
            ledger: Arc::default(),
            progress: watch::Sender::new((0, Instant::now())),
            names: names.into(),
        }
    }

    /// As [`Ledger::present`].
    pub fn present(&self, place: Place, id: ObjectId, step: Option<String>, revision: u64) {
        let mut ledger = self.lock();
        if ledger.present(place, id, step, revision) {
            self.progress.send_replace((ledger.left(), Instant::now()));
        }
    }

    /// As [`Ledger::gone`].
    pub fn gone(&self, place: Place, id: ObjectId) {
        let mut ledger = self.lock();
        if ledger.gone(place, id) {
            self.progress.send_replace((ledger.left(), Instant::now()));
        }
    }

    /// As [`Ledger::on`].
    #[must_use]
    pub fn on(&self, place: Place) -> BTreeSet<ObjectId> {
        self.lock().on(place)
    }

    /// The objects that fulfilled the last expectation, with the time.
    #[must_use]
    pub fn fulfilled(&self) -> BTreeMap<(Place, ObjectId), Fulfilled> {
        self.lock().fulfilled.clone()
    }

    /// Starts to wait; call it before the action that causes the change.
    pub fn expect_that(
        &self,
        expectation: Expectation,
        of: impl IntoIterator<Item = (Place, ObjectId)>,
    ) -> Wait<'_> {
        let mut ledger = self.lock();
        let left = ledger.arm(expectation, of);
        self.progress.send_replace((left, Instant::now()));
        Wait {
            seen: self,
            progress: self.progress.subscribe(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An expectation that is being waited for.
#[derive(Debug)]
pub struct Wait<'a> {
    seen: &'a Seen,
    progress: watch::Receiver<(usize, Instant)>,
}

impl Wait<'_> {
    /// The number of outstanding objects.
    #[must_use]
    pub fn left(&self) -> usize {
        self.progress.borrow().0
    }

    /// Waits until at most `left` are outstanding. Returns the moment.
    ///
    /// # Errors
    /// The time is up; names some of the outstanding objects.
    pub async fn down_to(&mut self, left: usize, limit: Duration) -> Result<Instant> {
        let wait = self.progress.wait_for(|(now, _)| *now <= left);
        if let Ok(Ok(progress)) = tokio::time::timeout(limit, wait).await {
            return Ok(progress.1);
        }
        let ledger = self.seen.lock();
        let missing = ledger.outstanding();
        let expectation = ledger.expectation.as_ref().map(|(expectation, _)| expectation);
        let some: Vec<_> = missing.iter().take(5).collect();
        let some: Vec<_> = some
            .iter()
            .map(|(place, id)| format!("{id} on {}", self.seen.names[*place]))
            .collect();
        let expectation = match expectation {
            Some(Expectation::Absent) => "still there",
            Some(Expectation::Step(_)) => "without the new content",
            _ => "missing",
        };
        bail!(
            "after {} s {} copies are {expectation}, such as {}",
            limit.as_secs(),
            missing.len(),
            some.join(", ")
        )
    }

    /// Waits until the expectation is fulfilled. Returns the moment.
    ///
    /// # Errors
    /// As [`Wait::down_to`].
    pub async fn met(mut self, limit: Duration) -> Result<Instant> {
        self.down_to(0, limit).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::kind::Kind;

    fn id(name: &str) -> ObjectId {
        ObjectId::new(Kind::ConfigMap, "a", name)
    }

    #[test]
    fn an_expectation_counts_what_is_outstanding_at_first_and_then_event_by_event() {
        let mut ledger = Ledger::default();
        ledger.present(0, id("x"), None, 1);
        assert_eq!(
            ledger.arm(Expectation::Present, [(0, id("x")), (1, id("x")), (1, id("y"))]),
            2
        );
        assert!(!ledger.present(0, id("x"), None, 1));
        assert!(ledger.present(1, id("x"), None, 1));
        assert!(!ledger.present(1, id("x"), None, 1));
        assert_eq!(ledger.outstanding(), BTreeSet::from([(1, id("y"))]));
    }

    #[test]
    fn a_step_is_reached_by_that_step_alone() {
        let mut ledger = Ledger::default();
        assert_eq!(ledger.arm(Expectation::Step("2".into()), [(0, id("x"))]), 1);
        assert!(!ledger.present(0, id("x"), Some("1".into()), 1));
        assert!(ledger.present(0, id("x"), Some("2".into()), 1));
        assert_eq!(ledger.arm(Expectation::Step("2".into()), [(0, id("x"))]), 0);
    }

    #[test]
    fn what_is_gone_was_there() {
        let mut ledger = Ledger::default();
        ledger.present(0, id("x"), None, 1);
        assert_eq!(ledger.arm(Expectation::Absent, [(0, id("x")), (0, id("y"))]), 1);
        assert!(ledger.gone(0, id("x")));
        assert!(ledger.outstanding().is_empty() && ledger.on(0).is_empty());
    }

    #[test]
    fn the_result_of_an_expectation_is_kept_with_its_time_until_the_next_one() {
        let seen = Seen::new(vec!["hub".into()]);
        let _ = seen.expect_that(Expectation::Present, [(0, id("x")), (0, id("y"))]);
        seen.present(0, id("x"), None, 1);
        seen.present(0, id("z"), None, 1);
        let fulfilled = seen.fulfilled();
        assert_eq!(fulfilled.keys().collect::<Vec<_>>(), [&(0, id("x"))]);
        seen.present(0, id("y"), None, 2);
        let (first, second) = (fulfilled[&(0, id("x"))], seen.fulfilled()[&(0, id("y"))]);
        assert!(first.at <= second.at && first.revision < second.revision);
        let _ = seen.expect_that(Expectation::Present, [(0, id("w"))]);
        assert!(seen.fulfilled().is_empty());
    }

    #[tokio::test]
    async fn what_is_missing_is_named_when_time_is_up() {
        let seen = Seen::new(vec!["hub".into(), "m1".into()]);
        let error = seen
            .expect_that(Expectation::Present, [(1, id("x"))])
            .met(Duration::from_millis(1))
            .await;
        let error = error.unwrap_err().to_string();
        assert!(
            error.contains("1 copies are missing, such as ConfigMap a/x on m1"),
            "{error}"
        );
    }

    #[tokio::test]
    async fn a_wait_ends_with_the_event_that_fulfils_it() {
        let seen = Seen::new(vec!["hub".into()]);
        let wait = seen.expect_that(Expectation::Present, [(0, id("x"))]);
        let other = seen.clone();
        let task = tokio::spawn(async move { other.present(0, id("x"), None, 1) });
        assert!(wait.met(Duration::from_secs(30)).await.is_ok());
        task.await.unwrap();
    }
}
