//! The status of the agent's Cluster, and whether the agent may act on the cluster at all.
//!
//! What a member in Push mode reports through the hub's controllers, the agent reports itself, with the same rules
//! ([`crate::member_status`]): Ready turns after a threshold, and the capacity is written only when it changed.

use std::{collections::BTreeSet, sync::Arc};

use entourage_api::{
    cluster::{Cluster, ClusterStatus, SyncMode},
    keys::reason,
};
use serde_json::json;

use super::{Agent, HubWrite, Plan, Sent, Step, state::Failure};
use crate::{
    cache::{MemberUsage, Usage},
    cluster::identity,
    member_status::{self, node_summary, resource_summary},
    object::{Meta, Str, Time},
    observation::{Probe, Watch},
    readiness::stored_ready,
};

/// The shortest time between two reports of the capacity, in milliseconds.
const INTERVAL: i64 = 10_000;

/// The Cluster as observed, and what it is to report.
#[derive(Default)]
pub(super) struct ClusterState {
    /// The object and its metadata.
    pub(super) object: Option<(Meta, Arc<Cluster>)>,
    /// The uid of the namespace kube-system of the cluster that responds.
    pub(super) identity: Option<Str>,
    pub(super) probe: Option<Probe>,
    pub(super) failing_since: Option<Time>,
    pub(super) answering_since: Option<Time>,
    pub(super) usage: Usage,
    /// The watches of nodes and pods that the cluster forbids.
    pub(super) refused: BTreeSet<Watch>,
    /// The time of the last report with a capacity.
    pub(super) capacity_at: Option<Time>,
    pub(super) hub_failure: Option<Failure>,
}

impl ClusterState {
    /// The reason why nothing is written to the cluster now. Cost: O(1).
    pub(super) fn objection(&self, name: &Str, is_synced: bool) -> Option<String> {
        if !is_synced {
            return Some("the Works and the Cluster of this agent are not listed on the hub yet".into());
        }
        let Some((_, object)) = &self.object else {
            return Some(format!(
                "Cluster {name} does not exist on the hub: create it with spec.syncMode Pull; nothing is applied before"
            ));
        };
        if object.spec.sync_mode == SyncMode::Push {
            return Some(format!(
                "Cluster {name} is in Push mode: the hub's controllers write to it. Set spec.syncMode to Pull, or stop \
                 this agent"
            ));
        }
        let Some(identity) = &self.identity else {
            return Some(match &self.probe {
                None => "which cluster the agent runs against was not read yet".into(),
                Some(probe) => format!(
                    "which cluster the agent runs against is unknown, as the uid of its namespace kube-system cannot be read: {}",
                    probe.message
                ),
            });
        };
        if object.spec.id.is_empty() {
            return Some(if is_new(object) {
                format!("spec.id of Cluster {name} is empty: it is set to {identity} first")
            } else {
                format!(
                    "spec.id of Cluster {name} is empty, and another agent has reported about it already. If this is its \
                     cluster, set spec.id to {identity}; nothing is applied before"
                )
            });
        }
        let named = identity::check(name, &object.spec.id, identity).err();
        named.map(|_| {
            format!(
                "this agent runs against another cluster than Cluster {name}: the uid of the namespace kube-system is \
                 {identity}, spec.id is {}. Check --kubeconfig and --cluster-name",
                object.spec.id
            )
        })
    }

    /// Takes in a probe; one without APIs keeps those of the last.
    pub(super) fn probed(&mut self, mut probe: Probe, now: Time) {
        if let Some(held) = &mut self.probe {
            probe.kubernetes_version = probe.kubernetes_version.or(held.kubernetes_version.take());
            probe.api_enablements = probe.api_enablements.or(held.api_enablements.take());
        }
        let since = |held: Option<Time>, lasts: bool| lasts.then(|| held.unwrap_or(now));
        self.failing_since = since(self.failing_since, !probe.healthy);
        self.answering_since = since(self.answering_since, probe.healthy);
        self.probe = Some(probe);
    }
}

/// True if no agent ever reported about the Cluster. A hub that waited for one in vain says so, ours as Karmada's.
fn is_new(object: &Cluster) -> bool {
    stored_ready(object).is_none_or(|ready| ready.reason == reason::CLUSTER_STATUS_NEVER_UPDATED)
}

impl Agent {
    pub(super) fn plan_cluster(&self, now: Time) -> Plan {
        let state = &self.cluster;
        let (Some((meta, object)), Some(probe)) = (&state.object, &state.probe) else {
            return Plan::wait(None, "the Cluster or its member was not observed yet");
        };
        if object.spec.sync_mode == SyncMode::Push {
            return Plan::wait(None, "its status is the controllers'");
        }
        if let Some(identity) = &state.identity
            && self.is_synced()
            && object.spec.id.is_empty()
            && is_new(object)
        {
            return self.fill_in(meta, identity, now);
        }
        // What another cluster says is never reported, nor anything before it is known which one responds. Once that is known it
        // stays known: that this cluster no longer responds is reported.
        if let Some(why) = self.objection() {
            return Plan::wait(None, why);
        }
        if let Some(failure) = state.hub_failure.as_ref().filter(|each| now < each.retry_at) {
            return Plan::wait(Some(failure.retry_at), failure.message.clone());
        }
        let mut status = object.status.clone().unwrap_or_default();
        let mut again_at = self.turns_at(object, probe).filter(|until| now < *until);
        if again_at.is_none() {
            member_status::describe(&mut status, probe, meta.generation, now);
        }
        let collects_at = self.fill(object, &mut status, now);
        again_at = again_at.into_iter().chain(collects_at).min();
        if object.status.as_ref() == Some(&status) {
            return Plan::wait(again_at, "its status is as it should be");
        }
        let write = HubWrite {
            work: None,
            uid: meta.uid.clone(),
            is_status: true,
            patch: member_status::patch(meta, object.status.as_ref(), &status),
            sent: Sent::Cluster,
            events: Vec::new(),
        };
        let mut plan = Plan::step(Step::Write(write), "the status of the Cluster differs");
        plan.again_at = again_at;
        plan
    }

    /// Sets the id of the Cluster, if it is still as it was observed.
    fn fill_in(&self, meta: &Meta, identity: &Str, now: Time) -> Plan {
        let failure = self.cluster.hub_failure.as_ref();
        if let Some(failure) = failure.filter(|each| now < each.retry_at) {
            return Plan::wait(Some(failure.retry_at), failure.message.clone());
        }
        let write = HubWrite {
            work: None,
            uid: meta.uid.clone(),
            is_status: false,
            patch: json!({
                "metadata": {"uid": &*meta.uid, "resourceVersion": &*meta.resource_version},
                "spec": {"id": &**identity},
            }),
            sent: Sent::Cluster,
            events: Vec::new(),
        };
        Plan::step(Step::Write(write), "which cluster it is was not stored")
    }

    /// The time at which a probe has lasted long enough to be reported; `None`: at once.
    fn turns_at(&self, object: &Cluster, probe: &Probe) -> Option<Time> {
        let stored = stored_ready(object)?;
        let (since, threshold) = match (stored.status.as_str(), probe.healthy) {
            ("True", false) => (self.cluster.failing_since?, self.config.failure_threshold),
            ("False", true) => (self.cluster.answering_since?, self.config.success_threshold),
            _ => return None,
        };
        Some(since.plus(threshold))
    }

    /// Sets the capacity. Returns the time to look again if it is too early for a new report.
    fn fill(&self, object: &Cluster, status: &mut ClusterStatus, now: Time) -> Option<Time> {
        if !self.config.collects_capacity {
            return None;
        }
        let name = &self.config.cluster;
        let watches = [Watch::Nodes(name.clone()), Watch::Pods(name.clone())];
        if watches.iter().any(|watch| self.cluster.refused.contains(watch)) {
            (status.node_summary, status.resource_summary) = (None, None);
            return None;
        }
        if !watches.iter().all(|watch| self.synced.contains_key(watch)) {
            return None;
        }
        let none = MemberUsage::default();
        let usage = self.cluster.usage.of(name).unwrap_or(&none);
        let (nodes, resources) = (
            node_summary(usage),
            resource_summary(usage, &object.spec.resource_models),
        );
        if status.node_summary.as_ref() == Some(&nodes)
            && status.resource_summary.as_ref() == Some(&resources)
        {
            return None;
        }
        let due = self.cluster.capacity_at.map(|last| last.plus(INTERVAL));
        if let Some(due) = due.filter(|due| now < *due) {
            return Some(due);
        }
        (status.node_summary, status.resource_summary) = (Some(nodes), Some(resources));
        None
    }
}
