//! The outcomes of writing and removing copies.

use entourage_api::work::CopyRecord;

use super::Dirty;
use crate::{
    cache::{Attempt, CopyState, Problem, ProblemKind},
    drift::DriftBackoff,
    engine::routes::Changed,
    fleet::{
        Fleet,
        autoscaling::{delivered_share, share_left_to_member},
        current::{expected_source, is_current, is_problem_over},
    },
    messages,
    object::{ResourceId, Str, Time},
    observation::{Copy, Delivered, Holder, Removed},
    plan::{Change, Key, Plan},
};

/// The longest pause between two attempts to deliver or remove a copy, in milliseconds.
const LONGEST_PAUSE: i64 = 60_000;
/// The longest pause for a member that does not respond: its probe reports a change sooner.
const LONGEST_PAUSE_UNREACHABLE: i64 = 5_000;
/// The pause before a retry for a copy that was written from another version than the expected one.
const SETTLING: i64 = 1_000;

impl Fleet {
    /// A copy is about to be written. Cost: O(1).
    pub(super) fn started(&mut self, cluster: &Str, id: &ResourceId) {
        self.copy_state(id, cluster).in_flight = true;
    }

    pub(super) fn delivered(
        &mut self,
        cluster: &Str,
        id: &ResourceId,
        outcome: Delivered,
        now: Time,
        dirty: &mut Dirty,
    ) {
        if !self.cache.members.contains_key(cluster) {
            return;
        }
        let expected = expected_source(self, id, cluster);
        let share = share_left_to_member(self, id, cluster);
        let attempt = Attempt::Delivery(expected.clone());
        let interpretation = self.graph.interpreter.of(&id.gvk);
        let mut outcome = outcome;
        if let Delivered::Applied { copy, .. } = &mut outcome {
            self.restore_failed_results_of_copy(cluster, id, copy);
        }
        let own_hub = self.config.hub.clone();
        let state = self.copy_state(id, cluster);
        state.in_flight = false;
        state.removing = None;
        let existed = state.live.is_some();
        let reported = state.problem.as_ref().map(|problem| problem.message.clone());
        let mut was_copied = false;
        match outcome {
            Delivered::Applied {
                copy,
                source,
                differed,
            } => {
                let as_planned = expected.as_ref() == Some(&source);
                put_right(state, id, cluster, &source, differed.as_deref(), now);
                let shares = delivered_share(state.record.as_ref(), &copy, share, as_planned);
                state.record = Some(record(&copy, source, shares));
                state.pending = None;
                was_copied = state.copied.take().is_some();
                let news = !state.freshness.is_outdated(&copy.meta.resource_version);
                if news {
                    state.freshness.set(copy.meta.revision());
                    // The interpretation of this version by the current interpreter stays.
                    let is_known = |held: &Copy| {
                        held.interpretation == interpretation && held.meta.is_same_version(&copy.meta)
                    };
                    if copy.interpretation == interpretation || !state.live.as_ref().is_some_and(is_known) {
                        state.live = Some(copy);
                    }
                    self.note_health(cluster, id, now);
                }
                // Written, and yet not in the desired state: without a pause this would be repeated at full speed.
                if !is_current(self, id, cluster) {
                    let state = self.copy_state(id, cluster);
                    if as_planned && news {
                        let message = format!(
                            "{cluster} changes labels or annotations of {id} as they are written: look for a mutating webhook there"
                        );
                        fail(state, ProblemKind::Rejected, message, attempt, now);
                    } else {
                        state.not_before = Some(now.plus(SETTLING));
                    }
                }
            }
            Delivered::Abandoned => {}
            Delivered::Foreign(holder) => {
                state.live = None;
                state.pending = None;
                let remedy = match holder {
                    Holder::Hub(hub) if hub != own_hub => format!(
                        ", but by hub {hub}; if this hub replaces that one, `entourage adopt --former-hub {hub}` takes over its \
                         copies"
                    ),
                    Holder::Karmada => ", but by a Karmada; `entourage adopt --from-karmada FILE` takes over its copies when \
                                        its controllers are stopped"
                        .to_owned(),
                    // The metadata of an object that was copied from elsewhere may name this hub.
                    Holder::Hub(_) | Holder::Unknown => {
                        "; delete it there, or set conflictResolution: Overwrite to take it over".to_owned()
                    }
                };
                let message =
                    format!("{id} already exists on {cluster} and is not managed by this hub{remedy}");
                fail(state, ProblemKind::Foreign, message, attempt, now);
            }
            Delivered::BadOverride(why) => fail(state, ProblemKind::Override, why, attempt, now),
            Delivered::Uninterpreted(why) => {
                let kind = match why.is_passing() {
                    true => ProblemKind::NoResponse,
                    false => ProblemKind::Interpretation,
                };
                fail(state, kind, why.failure(), attempt, now);
                if let Some(problem) = &mut state.problem {
                    problem.interpret_error = Some(Box::new(why));
                }
            }
            Delivered::NoSource(why) => fail(state, ProblemKind::NoSource, why, attempt, now),
            Delivered::Rejected(why) => {
                let message = format!("{cluster} refused {id}: {why}");
                fail(state, ProblemKind::Rejected, message, attempt, now);
            }
            Delivered::Failed(why) => {
                state.note_pending();
                let message = format!("apply of {id} on {cluster} failed: {why}; retrying");
                fail(state, ProblemKind::Failed, message, attempt, now);
            }
            Delivered::Unreachable(why) => {
                state.note_pending();
                let message = format!("no response from {cluster} to the apply of {id}: {why}; retrying");
                fail(state, ProblemKind::Unreachable, message, attempt, now);
            }
        }
        if was_copied {
            self.copied_changed(cluster, id, now, dirty);
        }
        let state = self.copy_state(id, cluster);
        let exists = state.live.is_some();
        if reported != state.problem.as_ref().map(|problem| problem.message.clone()) {
            self.route(Changed::Problem(id), dirty);
        }
        self.answered(id, now);
        self.route(Changed::CopyTried(id, cluster), dirty);
        // Referrers wait for the first success, stale dependencies for the latest one, and terminating objects for the outcome.
        self.route(Changed::Existence(id, cluster), dirty);
        self.release_stale_dependencies(id, now, dirty);
        self.route(Changed::Health(id), dirty);
        if existed != exists || !exists {
            self.route(Changed::Binding(id), dirty);
        }
    }

    /// Clears the problems of copies that are in the desired state again although nothing was written. Every change of the
    /// desired state or of the copy has it planned again: so only these copies are checked.
    ///
    /// Cost: O(copies to be planned again).
    pub(super) fn end_problems(&mut self, dirty: &mut Dirty) {
        let mut over = Vec::new();
        for key in &*dirty {
            let Key::Copy(id, cluster) = key else { continue };
            let copies = self.cache.resources.get(id).map(|resource| &resource.copies);
            let state = copies.and_then(|copies| copies.get(cluster));
            if state.is_some_and(|state| state.problem.is_some()) && is_problem_over(self, id, cluster) {
                over.push((id.clone(), cluster.clone()));
            }
        }
        for (id, cluster) in over {
            let Some(resource) = self.cache.resources.get_mut(&id) else {
                continue;
            };
            if let Some(state) = resource.copies.get_mut(&cluster) {
                state.problem = None;
            }
            self.route(Changed::Problem(&id), dirty);
        }
    }

    pub(super) fn removed(
        &mut self,
        cluster: &Str,
        id: &ResourceId,
        outcome: Removed,
        now: Time,
        dirty: &mut Dirty,
    ) {
        if !self.cache.members.contains_key(cluster) {
            return;
        }
        let state = self.copy_state(id, cluster);
        let removing = state.removing.take();
        // Nothing was to be removed: this was a GET for the copy.
        let is_look = removing.is_none();
        match outcome {
            Removed::Accepted => {
                state.problem = None;
                // The response of the API server; the watch reports it later.
                let ended = state
                    .live
                    .as_mut()
                    .filter(|live| Some(&live.meta.uid) == removing.as_ref());
                if let Some(live) = ended {
                    live.meta.deleting.get_or_insert(now);
                }
            }
            Removed::Gone if is_look && !state.note_absent(now) => {}
            Removed::Rejected(_) | Removed::Failed(_) | Removed::Unreachable(_) if is_look => {
                state.note_failed_look(now)
            }
            Removed::Gone | Removed::Released => {
                let held = state.live.take().filter(|_| !state.freshness.is_unknown());
                let revision = held.map(|held| held.meta.revision().saturating_add(1));
                state.freshness.raise(revision);
                state.record = None;
                state.unhealthy_since = None;
                state.pending = None;
                // A GET that finds no copy proves nothing about the reason why none can be written.
                state
                    .problem
                    .take_if(|problem| !is_look || !problem.kind.is_of_source());
                self.copy_ended(id, cluster, now, dirty);
            }
            Removed::Rejected(why) => {
                let message = format!("{cluster} refused to remove {id}: {why}");
                fail(state, ProblemKind::Rejected, message, Attempt::Removal, now);
                self.stays(id, cluster, dirty);
            }
            Removed::Failed(why) => {
                // A server may carry out a request that it responds to with an error.
                state.note_pending();
                let message = format!("{cluster} failed to remove {id}: {why}; retrying");
                fail(state, ProblemKind::Failed, message, Attempt::Removal, now);
            }
            Removed::Unreachable(why) => {
                // The removal may have been carried out, or may be yet.
                state.note_pending();
                let message = format!("no response from {cluster} to the removal of {id}: {why}; retrying");
                fail(state, ProblemKind::Unreachable, message, Attempt::Removal, now);
            }
        }
        self.route(Changed::CopyTried(id, cluster), dirty);
    }

    /// A copy that was about to be removed stays for now: others may rely on it again.
    pub(super) fn stays(&self, id: &ResourceId, cluster: &Str, dirty: &mut Dirty) {
        self.route(Changed::Existence(id, cluster), dirty);
        self.route(Changed::Health(id), dirty);
    }

    /// Records that the plan for a copy reads or removes it: other plans must not rely on it from now on. A later plan that no
    /// longer does, after the removal was cancelled, wakes the keys that waited. Cost: O(1), then O(referrers).
    pub(crate) fn note_copy_plan(&mut self, id: &ResourceId, cluster: &Str, plan: &Plan, now: Time) {
        let removes = |change: &Change| match change {
            Change::Remove { preconditions, .. } => Some(preconditions.uid.clone()),
            _ => None,
        };
        let removing = plan.changes.iter().find_map(removes);
        let resource = self.cache.resources.get_mut(id);
        let Some(state) = resource.and_then(|resource| resource.copies.get_mut(cluster)) else {
            return;
        };
        let asks = |change: &Change| matches!(change, Change::GetCopy { .. });
        if plan.changes.iter().any(asks) {
            state.note_look(now);
        }
        let before = std::mem::replace(&mut state.removing, removing);
        if before.is_some() && state.removing.is_none() {
            let mut raised = std::mem::take(&mut self.memory.raised);
            self.stays(id, cluster, &mut raised);
            self.memory.raised = raised;
        }
    }
}

fn record(
    copy: &Copy,
    source: String,
    (share, raise, raised_to): (Option<i32>, Option<i64>, Option<i32>),
) -> CopyRecord {
    let generation = copy.meta.generation;
    CopyRecord {
        uid: copy.meta.uid.to_string(),
        resource_version: generation
            .is_none()
            .then(|| copy.meta.resource_version.to_string()),
        generation,
        source,
        share,
        raise,
        raised_to,
    }
}

/// Counts a correction of a copy that had been written from the same source before, and reports drift that continues; its
/// earlier problem is over.
fn put_right(
    state: &mut CopyState,
    id: &ResourceId,
    cluster: &Str,
    source: &str,
    differed: Option<&str>,
    now: Time,
) {
    let held = state.drift_backoff.take();
    state.problem = None;
    if state.record.as_ref().is_none_or(|record| record.source != source) {
        return;
    }
    let Some(drift_backoff) = DriftBackoff::compared(held, differed, now) else {
        return;
    };
    let problem = |message| Problem {
        kind: ProblemKind::Contended,
        message,
        interpret_error: None,
        attempt: Attempt::Delivery(Some(source.to_owned())),
        attempts: 0,
        retry_at: drift_backoff.retry_at(),
    };
    state.problem = drift_backoff.message(id, cluster).map(problem).map(Box::new);
    state.drift_backoff = Some(drift_backoff);
}

fn fail(state: &mut CopyState, kind: ProblemKind, message: String, attempt: Attempt, now: Time) {
    let message = match state.problem.take() {
        Some(held) => {
            let message = messages::steady(&held.message, message);
            state.problem = Some(held);
            message
        }
        None => message,
    };
    let attempts = state
        .problem
        .as_ref()
        .filter(|held| {
            let is_same = held.kind == kind || (held.kind.is_passing() && kind.is_passing());
            is_same && held.attempt == attempt
        })
        .map_or(1, |held| held.attempts.saturating_add(1));
    let longest = if kind.is_passing() {
        LONGEST_PAUSE_UNREACHABLE
    } else {
        LONGEST_PAUSE
    };
    let pause = match kind {
        // Rendering the same again fails in the same way: a change that matters makes another source version.
        ProblemKind::Override | ProblemKind::Interpretation => longest,
        _ => (250_i64 << attempts.min(16)).min(longest),
    };
    state.problem = Some(Box::new(Problem {
        kind,
        message,
        interpret_error: None,
        attempt,
        attempts,
        retry_at: now.plus(pause),
    }));
}
