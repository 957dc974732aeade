//! The objects with the names of distributions, and the outcomes of writing copies.

use entourage_api::{keys::finalizer, kruise::WritePolicy};

use super::Dirty;
use crate::{
    cache::{Deletion, Held},
    distributed::observed::ObservedObject,
    drift::{DELETED, DriftBackoff},
    engine::routes::Changed,
    fleet::Fleet,
    memory::distributions::{DistributionServer, Failure, Written},
    object::{ResourceId, Str, Time},
    observation::{ObjectRef, Wrote},
    places::{Place, TargetStatus},
    plan::Key,
};

/// The first pause after an attempt that failed, in milliseconds; each is twice the one before.
const FIRST_PAUSE: i64 = 1_000;
/// The longest such pause, in milliseconds.
const LONGEST_PAUSE: i64 = 300_000;
/// The time after a write with an unknown outcome in which a watch reports what it created, in milliseconds.
const UNTIL_REPORTED: i64 = 10_000;

impl Fleet {
    /// An object was observed. Cost: O(distributions of this name of object); O(copies of a distribution whose source it is).
    pub(super) fn part_seen(
        &mut self,
        cluster: Option<&Str>,
        id: &ResourceId,
        part: ObservedObject,
        now: Time,
        dirty: &mut Dirty,
    ) {
        let at = where_of(cluster, id);
        if !self.memory.distributions.looked.contains_key(&at) {
            return;
        }
        let held = self.memory.distributions.part(&at, &id.namespace);
        let which = ObjectRef::Distributed(cluster.cloned(), id.clone());
        let known = held.map(|held| Held {
            revision: held.revision(),
            is_same: *held == part,
        });
        let is_another = held.is_some_and(|held| held.uid != part.uid);
        if self.cache.revisions.see(&which, known, part.revision()).is_none() {
            return;
        }
        if let Some(looked) = self.memory.distributions.looked.get_mut(&at) {
            looked.parts.insert(id.namespace.clone(), part);
        }
        self.part_changed(&at, id, is_another, now, dirty);
    }

    /// An object was deleted. Cost: as [`Self::part_seen`].
    pub(super) fn part_gone(
        &mut self,
        cluster: Option<&Str>,
        id: &ResourceId,
        deletion: &Deletion,
        now: Time,
        dirty: &mut Dirty,
    ) {
        let at = where_of(cluster, id);
        let Some(held) = self.memory.distributions.part(&at, &id.namespace) else {
            return;
        };
        let which = ObjectRef::Distributed(cluster.cloned(), id.clone());
        let held_as = (&*held.uid, held.revision());
        if self.cache.revisions.end(which, held_as, deletion, now).is_none() {
            return;
        }
        if let Some(looked) = self.memory.distributions.looked.get_mut(&at) {
            looked.parts.remove(&id.namespace);
        }
        self.part_changed(&at, id, true, now, dirty);
    }

    /// A copy is about to be written. Cost: O(log places).
    pub(super) fn distributing(&mut self, name: &Str, place: Place) {
        if let Some(held) = self.memory.distributions.held.get_mut(name) {
            held.in_flight.insert(place, None);
        }
    }

    /// The write of a copy ended: the finalizer, once it is not needed any more, waits for that. Cost: O(log places).
    fn landed(&mut self, name: &Str, place: &Place, wrote: &Wrote, now: Time, dirty: &mut Dirty) {
        let Some(held) = self.memory.distributions.held.get_mut(name) else {
            return;
        };
        let may_exist = matches!(wrote, Wrote::Failed { may_exist: true, .. });
        let was_in_flight = held.in_flight.remove(place).is_some();
        if may_exist {
            held.in_flight
                .insert(place.clone(), Some(now.plus(UNTIL_REPORTED)));
        }
        // Places on members come last.
        let last = held.target_states.last_key_value();
        let is_ending =
            held.object.meta.deleting.is_some() || last.is_none_or(|(place, _)| place.cluster.is_none());
        if was_in_flight && is_ending && held.object.meta.has_finalizer(finalizer::DISTRIBUTION) {
            dirty.push(Key::Distribution(name.clone()));
        }
    }

    /// The outcome of an attempt to write or to delete a copy. Cost: as [`Self::evaluate`].
    pub(super) fn distributed(
        &mut self,
        name: &Str,
        place: &Place,
        wrote: Wrote,
        now: Time,
        dirty: &mut Dirty,
    ) {
        self.landed(name, place, &wrote, now, dirty);
        let Some(at) = self.memory.distributions.place_of(name, place) else {
            return;
        };
        let id = ResourceId {
            gvk: at.gvk.clone(),
            namespace: place.namespace.clone(),
            name: at.name.clone(),
        };
        let content_now = self.content_now(name);
        let reported_before = self.failure_message(name, place);
        match wrote {
            Wrote::Applied {
                part,
                content,
                differed,
                created,
            } => {
                let Some(held) = self.memory.distributions.held.get_mut(name) else {
                    return;
                };
                let is_strict =
                    matches!(&held.object.spec, Ok(spec) if spec.write_policy == WritePolicy::Strict);
                let target_state = held.target_states.entry(place.clone()).or_default();
                // A copy that was deleted in order to be recreated is not new.
                let is_new = created && differed.is_none() && target_state.written.is_none();
                let earlier = target_state
                    .written
                    .as_ref()
                    .filter(|written| written.content == content);
                let (same_content, was_equal) =
                    (earlier.is_some(), earlier.is_some_and(|written| written.equal));
                let wrong = differed.or_else(|| created.then(|| DELETED.to_owned()));
                let before = target_state.drift_backoff.take().filter(|_| same_content);
                let wrong = wrong.filter(|_| was_equal);
                target_state.drift_backoff = DriftBackoff::compared(before, wrong.as_deref(), now);
                let drift_backoff = target_state.drift_backoff.as_ref();
                target_state.is_contended = drift_backoff.is_some_and(|drift_backoff| {
                    drift_backoff.is_reported() && now < drift_backoff.reported_until()
                });
                target_state.failure = None;
                target_state.not_before = (content != content_now).then(|| now.plus(FIRST_PAUSE));
                target_state.written = Some(Written {
                    uid: part.uid.clone(),
                    resource_version: part.resource_version.clone(),
                    content,
                    equal: true,
                });
                if is_new && is_strict {
                    held.made.insert(place.clone());
                }
                self.part_seen(at.cluster.as_ref(), &id, part, now, dirty);
            }
            Wrote::Unequal { part, content } => {
                let Some(held) = self.memory.distributions.held.get_mut(name) else {
                    return;
                };
                let target_state = held.target_states.entry(place.clone()).or_default();
                if target_state
                    .written
                    .as_ref()
                    .is_none_or(|written| written.content != content)
                {
                    target_state.reset_drift();
                }
                target_state.failure = None;
                target_state.not_before = (content != content_now).then(|| now.plus(FIRST_PAUSE));
                target_state.written = Some(Written {
                    uid: part.uid.clone(),
                    resource_version: part.resource_version.clone(),
                    content,
                    equal: false,
                });
                self.part_seen(at.cluster.as_ref(), &id, part, now, dirty);
            }
            Wrote::Failed { step, message, .. } => {
                let Some(held) = self.memory.distributions.held.get_mut(name) else {
                    return;
                };
                let Some(target_state) = held.target_states.get_mut(place) else {
                    return;
                };
                let attempts = target_state
                    .failure
                    .as_ref()
                    .filter(|failure| failure.step == step && failure.content == content_now)
                    .map_or(1, |failure| failure.attempts.saturating_add(1));
                let pause = (FIRST_PAUSE << (attempts - 1).min(20)).min(LONGEST_PAUSE);
                target_state.failure = Some(Failure {
                    step,
                    message,
                    content: content_now,
                    attempts,
                    retry_at: now.plus(pause),
                });
            }
            Wrote::Gone { uid } => {
                let target_state = self.memory.distributions.held.get_mut(name);
                if let Some(target_state) = target_state.and_then(|held| held.target_states.get_mut(place)) {
                    target_state.reset_drift();
                }
                let deletion = Deletion {
                    uid: Some(uid),
                    revision: None,
                };
                self.part_gone(at.cluster.as_ref(), &id, &deletion, now, dirty);
            }
            Wrote::Abandoned => {
                // Without a pause the same request may be sent at once, and again: a response may be older than the cached version,
                // and is not recorded then, and what a removal was decided from may be gone. The end of a deletion is waited for
                // anyhow.
                let is_ending = self
                    .memory
                    .distributions
                    .part(&at, &place.namespace)
                    .is_some_and(|part| part.deleting.is_some());
                let held = self
                    .memory
                    .distributions
                    .held
                    .get_mut(name)
                    .filter(|_| !is_ending);
                if let Some(target_state) = held.and_then(|held| held.target_states.get_mut(place)) {
                    target_state.not_before = Some(now.plus(FIRST_PAUSE));
                }
            }
        }
        // The report states the reason.
        if self.failure_message(name, place) != reported_before {
            self.route(Changed::DistributionReport(name), dirty);
        }
        self.evaluate(name, place, now, dirty);
    }

    fn part_changed(
        &mut self,
        at: &DistributionServer,
        id: &ResourceId,
        is_another: bool,
        now: Time,
        dirty: &mut Dirty,
    ) {
        let place = Place {
            cluster: at.cluster.clone(),
            namespace: id.namespace.clone(),
        };
        let by: Vec<Str> = match self.memory.distributions.looked.get(at) {
            Some(looked) => looked.by.iter().cloned().collect(),
            None => return,
        };
        for name in by {
            let Some(held) = self.memory.distributions.held.get_mut(&name) else {
                continue;
            };
            if is_another && let Some(target_state) = held.target_states.get_mut(&place) {
                target_state.failure = None;
            }
            let is_source = place.cluster.is_none()
                && matches!(&held.object.spec, Ok(spec) if spec.source.as_ref() == Some(id));
            if is_source {
                self.route(Changed::DistributionReport(&name), dirty);
                self.evaluate_all(&name, None, now, dirty);
            } else {
                self.evaluate(&name, &place, now, dirty);
            }
            // The report names its owner.
            let held = self.memory.distributions.held.get(&name);
            if held.and_then(|held| held.target_states.get(&place)?.target_status)
                == Some(TargetStatus::Conflict)
            {
                self.route(Changed::DistributionReport(&name), dirty);
            }
        }
    }

    fn failure_message(&self, name: &Str, place: &Place) -> Option<String> {
        self.memory
            .distributions
            .held
            .get(name)?
            .target_states
            .get(place)?
            .failure_message()
    }

    fn content_now(&self, name: &Str) -> u64 {
        let Some(held) = self.memory.distributions.held.get(name) else {
            return 0;
        };
        let Ok(spec) = &held.object.spec else { return 0 };
        self.content(name, spec).unwrap_or_default()
    }
}

fn where_of(cluster: Option<&Str>, id: &ResourceId) -> DistributionServer {
    DistributionServer {
        cluster: cluster.cloned(),
        gvk: id.gvk.clone(),
        name: id.name.clone(),
    }
}
