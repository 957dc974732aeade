//! Copies on members, as their watches report them.

use entourage_api::work::{AggregatedStatusItem, ResourceHealth};

use super::Dirty;
use crate::{
    cache::{Attempt, Deletion, ProblemKind},
    engine::routes::Changed,
    fleet::{Fleet, autoscaling::is_raise_over, exports::is_export, wanted::wants},
    interpreter::Health,
    object::{ResourceId, Str, Time},
    observation::Copy,
};

impl Fleet {
    pub(super) fn copy_seen(
        &mut self,
        cluster: &Str,
        id: &ResourceId,
        mut copy: Copy,
        now: Time,
        dirty: &mut Dirty,
    ) {
        if copy.meta.hub.as_deref() != Some(&*self.config.hub) || !self.cache.members.contains_key(cluster) {
            return;
        }
        self.restore_failed_results_of_copy(cluster, id, &mut copy);
        // One string for all copies.
        copy.meta.hub = Some(self.config.hub.clone());
        let is_managed = self.is_managed(cluster, id, &copy.meta);
        let state = self.copy_state(id, cluster);
        if state.freshness.is_outdated(&copy.meta.resource_version) {
            return;
        }
        if !is_managed {
            return self.copied_seen(cluster, id, copy, now, dirty);
        }
        let was_copied = state.copied.take().is_some();
        if was_copied {
            self.copied_changed(cluster, id, now, dirty);
        }
        let state = self.copy_state(id, cluster);
        let outdated = state.freshness.is_unknown();
        state.freshness.set(copy.meta.revision());
        let was_pending = state.pending.take().is_some();
        // The result of a hook may differ although the object does not; an interpret error never replaces an earlier response.
        let is_echo = |held: &Copy| {
            let is_answered = held.failed_operations.is_empty() && !copy.failed_operations.is_empty();
            held.meta.is_same_version(&copy.meta)
                && held.interpretation == copy.interpretation
                && (!copy.interpretation.is_hooked() || is_answered)
        };
        if !outdated && state.live.as_ref().is_some_and(is_echo) {
            if was_pending {
                self.route(Changed::Copy(id, cluster), dirty);
                self.stays(id, cluster, dirty);
            }
            return;
        }
        let before = state.live.replace(copy);
        if let Some(problem) = &mut state.problem
            && before.is_none()
            && problem.kind == ProblemKind::Foreign
        {
            // What stood in the way is ours now: `entourage adopt`, or a user, replaced its marks.
            problem.retry_at = now;
        }
        let raised_to = state.record.as_ref().and_then(|record| record.raised_to);
        let is_decided = raised_to.is_some_and(|raised_to| {
            let live = state.live.as_ref();
            live.is_some_and(|live| is_raise_over(live, raised_to))
        });
        if let Some(record) = state.record.as_mut().filter(|_| is_decided) {
            record.raised_to = None;
        }
        let live = state.live.as_ref();
        let report_of = |copy: &Copy| {
            (
                copy.status.clone(),
                copy.health,
                copy.failed_operations.clone(),
                copy.why_unhealthy.clone(),
            )
        };
        let reported = before.as_ref().map(report_of) != live.map(report_of);
        let appeared = before.is_none();
        let restored = |copy: &Copy| copy.data_restored_at.clone();
        let by_agent = |copy: &Copy| copy.by_agent;
        let replicas = |copy: &Copy| copy.replicas;
        let is_scaled = before.as_ref().and_then(replicas) != live.and_then(replicas);
        let is_tried = before.as_ref().map(by_agent) != live.map(by_agent);
        let is_filled = before.as_ref().map(restored) != live.map(restored);
        self.note_health(cluster, id, now);
        if appeared || reported || is_tried || is_decided {
            self.answered(id, now);
            self.route(Changed::Report(id), dirty);
        }
        if is_tried {
            self.route(Changed::Problem(id), dirty);
        }
        if is_scaled || is_tried {
            self.route(Changed::Scaled(id), dirty);
        }
        self.route(Changed::Health(id), dirty);
        self.route(Changed::Copy(id, cluster), dirty);
        if appeared || is_filled || is_tried || was_pending {
            self.route(Changed::Existence(id, cluster), dirty);
        }
        self.settle_on_standby(id, now, dirty);
    }

    /// Records since when a copy has not been healthy; called at every change of its cached state. Cost: O(entries of the
    /// status) for one that is not.
    pub(super) fn note_health(&mut self, cluster: &Str, id: &ResourceId, now: Time) {
        let state = self.copy_state(id, cluster);
        let live = state.live.as_ref();
        if live.is_none_or(Copy::is_known_healthy) {
            state.unhealthy_since = None;
            return;
        }
        let is_unhealthy = live.is_some_and(|live| live.health == Some(Health::Unhealthy));
        if state.unhealthy_since.is_some() {
            return;
        }
        // The result of a hook or script is not known at first: until then the stored result counts.
        let uid = live.map(|live| live.meta.uid.clone()).unwrap_or_default();
        let reported = self.reported_unhealthy_since(id, cluster, &uid);
        self.copy_state(id, cluster).unhealthy_since = reported.or(is_unhealthy.then_some(now));
    }

    /// The time since when this copy has not been healthy, if the stored status reports so. Cost: O(entries).
    fn reported_unhealthy_since(&self, id: &ResourceId, cluster: &str, uid: &str) -> Option<Time> {
        let binding = self.cache.resources.get(id)?.binding.as_ref()?;
        let reported = binding.object.status.iter();
        let mut items = reported.flat_map(|status| &status.aggregated_status);
        let is_it = |item: &&AggregatedStatusItem| {
            item.cluster_name == cluster
                && item.health == Some(ResourceHealth::Unhealthy)
                && item.copy.as_ref().is_some_and(|record| record.uid == uid)
        };
        let item = items.find(is_it)?;
        item.unhealthy_since.as_ref().map(Time::from_k8s)
    }

    /// The copy no longer exists, or no longer carries our label. The record stays: an object with the recorded uid is ours
    /// even without the label.
    pub(super) fn copy_gone(
        &mut self,
        cluster: &Str,
        id: &ResourceId,
        deletion: &Deletion,
        now: Time,
        dirty: &mut Dirty,
    ) {
        let Some(state) = self
            .cache
            .resources
            .get_mut(id)
            .and_then(|resource| resource.copies.get_mut(cluster))
        else {
            return;
        };
        let Some(held) = state.live.as_ref().or(state.copied.as_deref()) else {
            state.freshness.raise(deletion.revision);
            return;
        };
        if !state.freshness.is_end_of(&held.meta.uid, deletion) {
            return;
        }
        state.freshness.end(deletion);
        state.live = None;
        state.unhealthy_since = None;
        // It refused to have that copy changed: it may accept another one.
        state
            .problem
            .take_if(|problem| problem.kind == ProblemKind::Rejected && problem.attempt != Attempt::Removal);
        if state.copied.take().is_some() {
            self.copied_changed(cluster, id, now, dirty);
        }
        let wanted = self
            .cache
            .resources
            .get(id)
            .is_some_and(|resource| wants(self, id, resource, cluster));
        if !wanted {
            self.copy_state(id, cluster).record = None;
        }
        if is_export(&id.gvk) {
            self.export_ended(cluster, id, now);
        }
        self.copy_ended(id, cluster, now, dirty);
    }

    pub(super) fn copy_ended(&mut self, id: &ResourceId, cluster: &Str, now: Time, dirty: &mut Dirty) {
        self.route(Changed::Emptied(&id.namespace, cluster), dirty);
        self.answered(id, now);
        self.route(Changed::Existence(id, cluster), dirty);
        self.release_stale_dependencies(id, now, dirty);
        self.remember_preserved(id, cluster);
        self.route(Changed::CopyGone(id, cluster), dirty);
        self.route(Changed::Health(id), dirty);
        if self
            .cache
            .members
            .get(cluster)
            .is_some_and(|member| member.meta.deleting.is_some())
        {
            self.route(Changed::Cluster(cluster), dirty);
            self.route(Changed::ExecutionNamespace(cluster), dirty);
        }
        self.forget_if_empty(id, now);
    }
}
