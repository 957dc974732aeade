//! The outcomes of steps.

use entourage_api::work::ResourceHealth;
use serde::Deserialize as _;

use super::{
    Agent, HubWrite, Key, Observed, Sent, Source, Step, Str, Time,
    state::{Equal, Failure, ObjectState, Record, Removal, delay},
};
use crate::{
    drift::{DriftBackoff, Drifting},
    object::{ResourceId, revision},
    observation::Copy,
};

/// The path at which an object that was deleted on the cluster differs.
const DELETED: &str = "metadata.deletionTimestamp";
/// The time after which an object whose deletion was accepted is looked at again, in milliseconds: finalizers hold it.
const HELD: i64 = 5_000;

/// An object that an outcome is about: the uid of its Work, its index in the manifests, its id.
type ManifestRef<'a> = (&'a Str, usize, &'a ResourceId);

/// The outcome of a step.
pub enum Outcome {
    /// Of [`Step::Apply`]: the outcome of each object.
    Applied(Source, Vec<(usize, ResourceId, Applied)>),
    /// Of [`Step::Remove`]: the uid of the Work, and the outcome of each object.
    Removed(Str, Vec<(usize, ResourceId, Removed)>),
    /// Of [`Step::Write`]: it was accepted, and this is the object's resourceVersion now.
    Written(Box<HubWrite>, Str),
    /// The object of the hub is another by now, or is gone: its watch reports that.
    Changed,
    /// The hub refused it or did not respond, with this message.
    HubFailed(String),
    /// Nothing was sent.
    Abandoned,
}

/// The outcome of applying an object.
pub enum Applied {
    /// It is as its manifest says.
    Done {
        /// The object as it is now.
        copy: Box<Copy>,
        /// The plural of its kind.
        resource: String,
        /// The path at which it differed.
        differed: Option<String>,
        /// True if it was created.
        created: bool,
    },
    /// It is not, with a message for a user; `passes`: the cause may pass by itself.
    Failed {
        /// The message.
        message: String,
        /// True if the cause may pass by itself.
        passes: bool,
    },
}

/// The outcome of removing an object.
#[derive(Debug, PartialEq, Eq)]
pub enum Removed {
    /// It is gone or released, or is kept for a reason that a user should know.
    Done(Option<String>),
    /// It is being deleted.
    Held,
    /// It is not removed, with this message.
    Failed(String),
}

impl Agent {
    /// Takes in the outcome of a step. Cost: O(objects of the Work).
    #[must_use]
    pub fn ended(&mut self, key: &Key, outcome: Outcome, now: Time) -> Observed {
        let mut out = Observed::default();
        out.dirty.insert(key.clone());
        let name = match key {
            Key::Work(name) => name,
            Key::Cluster => {
                if let Outcome::HubFailed(message) = &outcome
                    && self
                        .cluster
                        .hub_failure
                        .as_ref()
                        .is_none_or(|held| held.message != *message)
                {
                    out.notes
                        .push(hub_note(&format!("Cluster {}", self.config.cluster), message));
                }
                self.cluster_ended(&outcome, now);
                return out;
            }
        };
        if let Some(state) = self.works.get_mut(name) {
            let failed = match &outcome {
                Outcome::HubFailed(message) => Some(message.clone()),
                Outcome::Changed => Some("the Work changed meanwhile".to_owned()),
                Outcome::Abandoned => Some("nothing was sent".to_owned()),
                _ => None,
            };
            if let Outcome::HubFailed(message) = &outcome
                && state
                    .hub_failure
                    .as_ref()
                    .is_none_or(|held| held.message != *message)
            {
                out.notes.push(hub_note(
                    &format!("Work {}/{name}", self.config.namespace),
                    message,
                ));
            }
            state.hub_failure = failed.map(|message| {
                let source = state.source();
                Failure::again(state.hub_failure.as_ref(), source, (message, true), now)
            });
        }
        match outcome {
            Outcome::Applied(source, all) => {
                for (ordinal, id, applied) in all {
                    let which = (&source.uid, ordinal, &id);
                    self.applied(name, (which, &source), applied, now, &mut out);
                }
            }
            Outcome::Removed(uid, all) => {
                for (ordinal, id, removed) in all {
                    self.removed(name, (&uid, ordinal, &id), removed, now, &mut out);
                }
            }
            Outcome::Written(mut write, version) => {
                out.events.append(&mut write.events);
                self.written(name, *write, version, now);
            }
            Outcome::Changed | Outcome::HubFailed(_) | Outcome::Abandoned => {}
        }
        out
    }

    fn cluster_ended(&mut self, outcome: &Outcome, now: Time) {
        let message = match outcome {
            Outcome::Written(write, _) => {
                self.cluster.hub_failure = None;
                if write.is_status {
                    self.cluster.capacity_at = Some(now);
                }
                // The next plan waits for the watch: else the same would be written again.
                "it was just written".to_owned()
            }
            Outcome::HubFailed(message) => message.clone(),
            _ => "the Cluster changed meanwhile".to_owned(),
        };
        let source = Source {
            uid: "".into(),
            version: "".into(),
        };
        let held = self.cluster.hub_failure.as_ref();
        self.cluster.hub_failure = Some(Failure::again(held, source, (message, true), now));
    }

    fn applied(
        &mut self,
        name: &Str,
        (which, source): (ManifestRef<'_>, &Source),
        applied: Applied,
        now: Time,
        out: &mut Observed,
    ) {
        let Some(object) = self.object(name, which) else {
            return;
        };
        let id = which.2.clone();
        match applied {
            Applied::Done {
                copy,
                resource,
                differed,
                created,
            } => {
                let known = object.record.take().filter(|record| record.is_in(source));
                let path = match (&known, created) {
                    (Some(_), true) => Some(DELETED),
                    _ => differed.as_deref(),
                };
                let held = object.drift.take().filter(|_| known.is_some());
                // What a new version changes is no drift.
                object.drift = match (&known, path) {
                    (Some(_), Some(path)) => {
                        let held = held.map(|held| *held);
                        let drift = DriftBackoff::corrected(held, Drifting::Copy, path, now);
                        Some(Box::new(drift))
                    }
                    _ => DriftBackoff::compared(held, None, now),
                };
                if let Some(path) = path.filter(|_| known.is_some()) {
                    out.notes
                        .push(format!("{id} was changed on the cluster at {path}: corrected"));
                }
                // Its resourceVersion is all that says whether it changed: a writer of anything else must not cause a read each time.
                object.equal = match (&known, path, copy.meta.generation) {
                    (Some(_), None, None) => Some(Equal::again(object.equal, now)),
                    _ => None,
                };
                object.failure = None;
                object.record = Some(Record {
                    source: Some(source.clone()),
                    copy: copy.meta.clone(),
                    resource,
                });
                self.copy_seen(id, *copy, out);
            }
            Applied::Failed { message, passes } => {
                let failure = Failure::again(object.failure.as_ref(), source.clone(), (message, passes), now);
                if object
                    .failure
                    .as_ref()
                    .is_none_or(|held| held.message != failure.message)
                {
                    out.notes
                        .push(format!("{id} is not applied: {}", failure.message));
                }
                object.failure = Some(failure);
            }
        }
    }

    /// The object that an outcome is about; `None` if its Work is another one by now, or carries another object there.
    fn object(&mut self, name: &Str, (uid, ordinal, id): ManifestRef<'_>) -> Option<&mut ObjectState> {
        let state = self
            .works
            .get_mut(name)
            .filter(|state| state.work.meta.uid == *uid)?;
        let object = state.objects.get_mut(ordinal)?;
        (object.id.as_ref() == Some(id)).then_some(object)
    }

    fn removed(
        &mut self,
        name: &Str,
        which: ManifestRef<'_>,
        removed: Removed,
        now: Time,
        out: &mut Observed,
    ) {
        let Some(object) = self.object(name, which) else {
            return;
        };
        let id = object.id.as_ref().map(ResourceId::to_string).unwrap_or_default();
        let failures = match object.removal {
            Removal::Later(_, count) => count,
            _ => 0,
        };
        object.removal = match removed {
            Removed::Done(note) => {
                out.notes.extend(note.map(|note| format!("{id}: {note}")));
                Removal::Done
            }
            Removed::Held => Removal::Later(now.plus(HELD), 0),
            Removed::Failed(message) => {
                out.notes
                    .push(format!("{id} cannot be removed: {message}; retrying"));
                Removal::Later(now.plus(delay(failures)), failures.saturating_add(1))
            }
        };
    }

    /// A write on the hub was accepted: what it set is known at once.
    fn written(&mut self, name: &Str, write: HubWrite, version: Str, now: Time) {
        let state = self.works.get_mut(name);
        let Some(state) = state.filter(|state| state.work.meta.uid == write.uid) else {
            return;
        };
        match write.sent {
            Sent::Finalizers(finalizers) => {
                let held = |all: &[Str]| {
                    all.iter()
                        .any(|each| &**each == entourage_api::keys::finalizer::EXECUTION)
                };
                state.is_ended = !held(&finalizers);
                state.work.meta.finalizers = finalizers.into_iter().collect();
            }
            Sent::Report(conditions, digest) => {
                (state.work.conditions, state.work.reported) = (conditions, digest);
                state.reported_at = Some(now);
                if let Some(statuses) = write.patch["status"].get("manifestStatuses") {
                    state.has_reported = true;
                    state.work.reflected = !statuses[0]["status"].is_null();
                    state.work.health = ResourceHealth::deserialize(&statuses[0]["health"]).ok();
                }
            }
            Sent::Cluster => return,
        }
        if revision(&version) > state.work.meta.revision() {
            state.work.meta.resource_version = version;
        }
    }
}

fn hub_note(object: &str, message: &str) -> String {
    format!("{object}: a request to the hub failed: {message}; retrying")
}

/// For logs: no payload is in a step.
impl std::fmt::Display for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Apply(order) => write!(f, "apply {} objects of {}", order.objects.len(), order.owner.work),
            Self::Remove(order) => write!(
                f,
                "remove {} objects of {}",
                order.objects.len(),
                order.owner.work
            ),
            Self::Write(write) => write!(f, "write {}", write.work.as_deref().unwrap_or("the Cluster")),
        }
    }
}
