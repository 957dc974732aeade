//! Leadership: the records of a standby process, and the plans at a takeover.
//!
//! Invariants:
//! - One process writes at a time. While this one leads, its own writes are newer than any stored status, so its records come
//!   from its own responses. While it does not lead, a stored status that changed reports the leader's writes: the records
//!   follow it.
//! - An outdated record costs a read and never a write: a copy is compared before it is written again. Only the share of a workload
//!   that members scale may be delivered once more, as a minimum ([`crate::autoscaling`]).
//! - A standby process plans nothing, so its keys are dropped by the shell. At a takeover all keys are planned once, as after a
//!   start: in a quiet system every plan is empty.

use std::{collections::BTreeSet, sync::Arc};

use entourage_api::work::{AggregatedStatusItem, ResourceBinding};

use super::Dirty;
use crate::{
    cache::ResourceState,
    engine::routes::Changed,
    fleet::Fleet,
    graph::WorkloadGroups,
    object::{ResourceId, Str, Time},
    observation::Copy,
    plan::Key,
};

impl Fleet {
    /// This process may write from now on, or must not any more. Cost: O(members of workload groups that are about to be stored); that of [`Self::take_over`] when it begins to lead.
    pub(super) fn leads(&mut self, leads: bool, now: Time, dirty: &mut Dirty) {
        let led = std::mem::replace(&mut self.leading, leads);
        if leads != led {
            // What this process was about to store is not stored, or it is observed as such.
            self.memory.planned_groups = WorkloadGroups::default();
        }
        if leads && !led {
            self.take_over(now, dirty);
        }
    }

    /// Everything is planned once: the former leader may have stopped anywhere. Cost: O(objects), once per takeover.
    fn take_over(&mut self, now: Time, dirty: &mut Dirty) {
        self.expect_late_writes();
        self.room_taken_over(now);
        let ids: Vec<ResourceId> = self.cache.resources.keys().cloned().collect();
        for id in ids {
            self.release_stale_dependencies(&id, now, dirty);
            // A status of a template that another process of ours wrote is no contest.
            if let Some(resource) = self.cache.resources.get_mut(&id) {
                resource.contest = None;
                resource.scaling_writes = None;
            }
            // It may have been forgotten with its references.
            if self
                .cache
                .resources
                .get(&id)
                .is_some_and(|each| each.template.is_some())
            {
                self.route(Changed::Claim(&id), dirty);
            }
            if self.cache.resources.contains_key(&id) {
                self.route(Changed::Template(&id), dirty);
            }
        }
        dirty.extend(self.cache.policies.keys().cloned().map(Key::Policy));
        dirty.extend(self.cache.members.keys().cloned().map(Key::Cluster));
        dirty.extend(self.cache.members.keys().cloned().map(Key::ExecutionNamespace));
        self.route(Changed::HubNamespaces(""), dirty);
        self.hub_namespaces_listed(dirty);
        let distributions: Vec<Str> = self.memory.distributions.held.keys().cloned().collect();
        for name in distributions {
            self.route(Changed::Distribution(&name), dirty);
            self.evaluate_all(&name, None, now, dirty);
        }
        dirty.extend(self.memory.rebalancers.names().cloned().map(Key::Rebalancer));
        self.quotas_listed(dirty);
    }

    /// A copy of a template, or its record, changed while another process leads: the template's stale dependencies are no
    /// longer needed if its copies are all current. Cost: as [`Self::release_stale_dependencies`].
    pub(super) fn settle_on_standby(&mut self, id: &ResourceId, now: Time, dirty: &mut Dirty) {
        if !self.leading {
            self.release_stale_dependencies(id, now, dirty);
        }
    }
}

/// Updates the records of a template's copies from the status that another process stored. An entry that did not change is no
/// news: this process may have written the copy since, when it led itself. Cost: O(entries).
pub(super) fn follow(resource: &mut ResourceState, object: &Arc<ResourceBinding>) {
    let before = resource.binding.as_ref().map(|held| held.object.clone());
    let earlier = before.as_deref().map(entries).unwrap_or_default();
    let entry = |cluster: &str| earlier.iter().find(|each| each.cluster_name == cluster);
    let mut reported = BTreeSet::new();
    for item in entries(object) {
        reported.insert(item.cluster_name.as_str());
        if let Some(since) = &item.unhealthy_since
            && let Some(state) = resource.copies.get_mut(item.cluster_name.as_str())
            && !state.live.as_ref().is_some_and(Copy::is_known_healthy)
        {
            state.unhealthy_since = Some(Time::from_k8s(since));
        }
        if entry(&item.cluster_name).is_some_and(|held| held.copy == item.copy) {
            continue;
        }
        let state = resource.copies.get_or_default(item.cluster_name.as_str().into());
        state.record.clone_from(&item.copy);
        state.problem = None;
    }
    // An entry ends when the copy is deleted or released.
    for item in earlier {
        if !reported.contains(item.cluster_name.as_str())
            && let Some(state) = resource.copies.get_mut(item.cluster_name.as_str())
        {
            state.record = None;
        }
    }
}

fn entries(binding: &ResourceBinding) -> &[AggregatedStatusItem] {
    binding
        .status
        .as_ref()
        .map_or(&[], |status| &status.aggregated_status)
}

#[cfg(test)]
mod tests {
    use entourage_api::work::WorkloadAffinityGroups;

    use super::*;
    use crate::{config::Config, graph::Membership, object::Gvk, observation::Observation};

    #[test]
    fn what_was_about_to_be_stored_does_not_count_in_another_term() {
        let id = ResourceId::new(Gvk::new("apps/v1", "Deployment"), "ns", "a");
        let membership = Membership {
            groups: WorkloadAffinityGroups {
                anti_affinity_group: "app=db".into(),
                ..WorkloadAffinityGroups::default()
            },
            clusters: ["m1".into()].into(),
            ..Membership::default()
        };
        let mut fleet = Fleet::new(Config::new("hub"));
        fleet.observe(Observation::Leads(true), Time(1));
        for leads in [false, true] {
            fleet.memory.planned_groups.set(&id, Some(membership.clone()));
            fleet.observe(Observation::Leads(!leads), Time(1));
            fleet.memory.planned_groups.set(&id, Some(membership.clone()));
            fleet.observe(Observation::Leads(leads), Time(1));
            assert_eq!(fleet.memory.planned_groups.of(&id), None, "{leads}");
        }
        fleet.memory.planned_groups.set(&id, Some(membership));
        fleet.observe(Observation::Leads(true), Time(1));
        assert!(fleet.memory.planned_groups.of(&id).is_some(), "it leads already");
    }
}
