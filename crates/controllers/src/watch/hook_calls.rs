//! Objects of kinds with hooks: the hooks are called before an object is read.
//!
//! Order is kept: events are sent in the order of the watch. An object for which a hook failed is read without it, and read
//! again later, until the hook responds: nothing else would call it again while the object does not change.

use std::{collections::BTreeSet, time::Duration};

use entourage_core::{
    object::ResourceId,
    observation::{Observation, Watch},
};
use futures::{StreamExt as _, stream};
use serde_json::Value;
use tokio::time::Instant;
use tracing::debug;

use super::Watcher;
use crate::{client::path::Path, clock, error::Class};

/// The number of objects of a watch for which hooks are called concurrently.
const AT_A_TIME: usize = 16;
/// The shortest and the longest delay before hooks are called again for objects for which they failed.
const PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));
/// The number of objects in a row without a response that ends an attempt: the rest would have none either.
const ENOUGH: usize = 3;

/// An event of a watch.
pub(super) enum WatchEvent {
    /// An object in its current state.
    Object(Value),
    /// An object in its last state.
    Deleted(Value),
}

/// The objects for which hooks failed.
#[derive(Debug, Default)]
pub(super) struct HookRetries {
    objects: BTreeSet<ResourceId>,
    /// The last object tried: a hook that always fails for one must not keep it from the others.
    last: Option<ResourceId>,
    failures: u32,
    again: Option<Instant>,
}

impl WatchEvent {
    pub(super) fn object(&mut self) -> &mut Value {
        match self {
            Self::Object(object) | Self::Deleted(object) => object,
        }
    }
}

impl HookRetries {
    pub(super) fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// The time to call hooks again.
    pub(super) fn again(&self) -> Instant {
        self.again.unwrap_or_else(Instant::now)
    }

    /// Records whether hooks failed for an object. Cost: O(log objects with a failure).
    fn record(&mut self, id: ResourceId, lacks: bool) {
        if !lacks {
            self.objects.remove(&id);
            return;
        }
        self.objects.insert(id);
        if self.again.is_none() {
            self.pause();
        }
    }

    /// Adds objects to be asked about now: they were not before.
    pub(super) fn ask(&mut self, objects: BTreeSet<ResourceId>) {
        self.objects.extend(objects);
        self.again = Some(Instant::now());
    }

    fn pause(&mut self) {
        let doubled = PAUSE.0.saturating_mul(1 << self.failures.min(10)).min(PAUSE.1);
        self.again = Some(Instant::now() + doubled.mul_f64(1.0 + clock::jitter() / 2.0));
    }

    /// Records the end of an attempt: whether any object got a response, and whether all did. Then the rest need not wait: after
    /// a long outage they are many.
    fn tried(&mut self, helped: bool, all: bool) {
        self.failures = if helped {
            0
        } else {
            self.failures.saturating_add(1)
        };
        self.again = None;
        if !self.objects.is_empty() {
            if helped && all {
                self.again = Some(Instant::now());
            } else {
                self.pause();
            }
        }
    }

    /// The next object to try, round-robin.
    fn next(&mut self) -> Option<ResourceId> {
        let after = self.last.as_ref().and_then(|last| {
            let bounds = (std::ops::Bound::Excluded(last), std::ops::Bound::Unbounded);
            self.objects.range(bounds).next()
        });
        let next = after.or_else(|| self.objects.first()).cloned();
        self.last.clone_from(&next);
        next
    }
}

impl Watcher {
    /// Reads events, each object after its hooks were called. Takes about as long as the slowest hook for each [`AT_A_TIME`] of
    /// them.
    pub(super) async fn read_events(&mut self, events: impl Iterator<Item = WatchEvent>) -> Vec<Observation> {
        let events: Vec<WatchEvent> = events.collect();
        let this = &*self;
        let read_results: Vec<_> = stream::iter(events)
            .map(|each| this.read(each))
            .buffered(AT_A_TIME)
            .collect()
            .await;
        let mut seen = Vec::with_capacity(read_results.len() + 1);
        for (observation, id, lacks) in read_results {
            seen.extend(observation);
            if let Some(id) = id {
                self.hook_retries.record(id, lacks);
            }
        }
        seen
    }

    async fn read(&self, mut event: WatchEvent) -> (Option<Observation>, Option<ResourceId>, bool) {
        let id = self.id(event.object());
        let (observation, lacks) = match &event {
            WatchEvent::Deleted(object) => (self.end(object), false),
            WatchEvent::Object(object) => {
                let (interpretation, lacks) = self
                    .interpreters
                    .responses(&self.interpretation, &self.watch, object)
                    .await;
                (self.project(&interpretation, object), lacks)
            }
        };
        self.wipe(event.object());
        (observation, id, lacks)
    }

    fn id(&self, object: &Value) -> Option<ResourceId> {
        let (Watch::Templates(gvk) | Watch::Copies(_, gvk)) = &self.watch else {
            return None;
        };
        let meta = &object["metadata"];
        let namespace = meta["namespace"].as_str().unwrap_or_default();
        Some(ResourceId::new(gvk.clone(), namespace, meta["name"].as_str()?))
    }

    /// Calls hooks again for objects for which they failed: for one at a time until one gets a response, then for many. Cost: a
    /// GET and the hooks' responses for each object.
    pub(super) async fn retry_hooks(&mut self) -> Vec<Observation> {
        let (mut seen, mut helped) = (Vec::new(), false);
        let mut first = None;
        for _ in 0..self.hook_retries.objects.len().min(ENOUGH) {
            let Some(id) = self.hook_retries.next() else { break };
            seen.extend(self.read_again(vec![id.clone()]).await);
            helped = !self.hook_retries.objects.contains(&id);
            first.get_or_insert(id);
            if helped {
                break;
            }
        }
        if !helped {
            // A hook in back-off is tried with one question at a time; the next attempt begins with another object.
            self.hook_retries.last = first;
            self.hook_retries.tried(false, false);
            return seen;
        }
        let rest: Vec<ResourceId> = (1..AT_A_TIME.min(self.hook_retries.objects.len() + 1))
            .filter_map(|_| self.hook_retries.next())
            .collect();
        seen.extend(self.read_again(rest.clone()).await);
        let all = rest.iter().all(|id| !self.hook_retries.objects.contains(id));
        self.hook_retries.tried(true, all);
        seen
    }

    /// Reads objects once more, concurrently.
    async fn read_again(&mut self, ids: Vec<ResourceId>) -> Vec<Observation> {
        let this = &*self;
        let read: Vec<_> = stream::iter(ids)
            .map(|id| async move {
                let read = this.api.get(&Path::object(&id), this.form).await;
                (id, read)
            })
            .buffered(AT_A_TIME)
            .collect()
            .await;
        let mut objects = Vec::new();
        for (id, read) in read {
            match read {
                Ok(object) => objects.push(WatchEvent::Object(object)),
                // Its deletion is about to be observed.
                Err(failure) if failure.class() == Class::Missing => {
                    self.hook_retries.objects.remove(&id);
                }
                Err(failure) => {
                    debug!(cluster = self.api.name(), object = %id, error = ?failure, "an object cannot be fetched again");
                }
            }
        }
        self.read_events(objects.into_iter()).await
    }
}

#[cfg(test)]
mod tests {
    use entourage_core::object::Gvk;

    use super::*;

    fn id(name: &str) -> ResourceId {
        ResourceId::new(Gvk::new("example.com/v1", "Shop"), "ns", name)
    }

    #[test]
    fn one_object_that_is_never_answered_about_does_not_keep_others_from_their_turn() {
        let mut hook_retries = HookRetries::default();
        for name in ["a", "b", "c"] {
            hook_retries.record(id(name), true);
        }
        let turns: Vec<_> = (0..4)
            .map(|_| hook_retries.next().unwrap().name.to_string())
            .collect();
        assert_eq!(turns, ["a", "b", "c", "a"]);
        hook_retries.record(id("b"), false);
        assert_eq!(hook_retries.next(), Some(id("c")));
        hook_retries.record(id("a"), false);
        hook_retries.record(id("c"), false);
        assert!(hook_retries.is_empty());
        assert_eq!(hook_retries.next(), None);
    }

    #[test]
    fn the_pause_grows_while_nothing_helps_and_is_short_again_after_an_answer() {
        let mut hook_retries = HookRetries::default();
        hook_retries.record(id("a"), true);
        let pause = |hook_retries: &HookRetries| hook_retries.again() - Instant::now();
        assert!(pause(&hook_retries) <= PAUSE.0.mul_f64(1.5));
        for _ in 0..20 {
            hook_retries.tried(false, false);
        }
        assert!(pause(&hook_retries) > PAUSE.1.mul_f64(0.9));
        assert!(pause(&hook_retries) <= PAUSE.1.mul_f64(1.5));
        hook_retries.tried(true, false);
        assert!(pause(&hook_retries) <= PAUSE.0.mul_f64(1.5));
        assert!(pause(&hook_retries) > Duration::ZERO);
        hook_retries.tried(true, true);
        assert_eq!(
            pause(&hook_retries),
            Duration::ZERO,
            "the rest is asked about at once"
        );
    }
}
