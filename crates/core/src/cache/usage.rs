//! The nodes and pods of members, with the sums that their capacity is computed from.
//!
//! A pod is a number, its node and its requests; pods with the same requests share them. The sums follow each event, so that the
//! capacity costs the nodes, not the pods.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use crate::{
    object::{ResourceId, Str, Time},
    observation::{Node, ObjectRef, Pod, Unscheduled, Watch},
    scheduler::estimate::Amounts,
};

/// The nodes and pods of all members.
#[derive(Clone, Debug, Default)]
pub(crate) struct Usage {
    members: BTreeMap<Str, MemberUsage>,
}

/// The nodes and pods of a member.
#[derive(Clone, Debug, Default)]
pub(crate) struct MemberUsage {
    nodes: BTreeMap<Str, Node>,
    pods: BTreeMap<u64, Pod>,
    /// The sum of the requests of the pods of each node; without an entry for none.
    requested: BTreeMap<Str, Amounts>,
    /// The sum of the requests of pods that are not scheduled yet.
    pending: Amounts,
    /// The pods that no node can take, by workload, with the time since which that is so: that of their first observation, if the
    /// member does not say.
    unscheduled: BTreeMap<ResourceId, BTreeMap<u64, Time>>,
    /// Each list of requests that a pod has, once.
    lists: BTreeSet<Arc<Amounts>>,
}

impl Usage {
    /// The nodes and pods of a member, as far as they were observed. Cost: O(log members).
    pub(crate) fn of(&self, cluster: &str) -> Option<&MemberUsage> {
        self.members.get(cluster)
    }

    /// A node was observed. Cost: O(log nodes).
    pub(crate) fn node_seen(&mut self, cluster: &Str, name: &Str, node: Node) {
        let member = self.members.entry(cluster.clone()).or_default();
        if member
            .nodes
            .get(name)
            .is_none_or(|held| held.revision <= node.revision)
        {
            member.nodes.insert(name.clone(), node);
        }
    }

    /// A node was deleted. Cost: O(log nodes).
    pub(crate) fn node_gone(&mut self, cluster: &str, name: &str) {
        if let Some(member) = self.members.get_mut(cluster) {
            member.nodes.remove(name);
        }
    }

    /// A pod was observed. Returns its workload if no node can take it, which was not so before. Cost: O(log pods + its resources).
    pub(crate) fn pod_seen(
        &mut self,
        cluster: &Str,
        number: u64,
        mut pod: Pod,
        now: Time,
    ) -> Option<ResourceId> {
        let member = self.members.entry(cluster.clone()).or_default();
        if member
            .pods
            .get(&number)
            .is_some_and(|held| held.revision > pod.revision)
        {
            return None;
        }
        let held = pod
            .unscheduled
            .as_ref()
            .and_then(|waits| member.unscheduled.get(&waits.workload));
        let first = held.and_then(|held| held.get(&number).copied()).unwrap_or(now);
        let before = member.end(number);
        pod.requests = pod.requests.map(|requests| member.shared(requests));
        if let Some(requests) = &pod.requests {
            let sum = match &pod.node {
                Some(node) => member.requested.entry(node.clone()).or_default(),
                None => &mut member.pending,
            };
            add(sum, requests);
            let waits = pod.unscheduled.clone();
            if let Some(waits) = &waits {
                let of_workload = member.unscheduled.entry(waits.workload.clone()).or_default();
                of_workload.insert(number, waits.since.unwrap_or(first));
            }
            member.pods.insert(number, pod);
            return waits
                .filter(|waits| before.as_ref() != Some(waits))
                .map(|waits| waits.workload);
        }
        None
    }

    /// A pod was deleted. Cost: O(log pods + its resources).
    pub(crate) fn pod_gone(&mut self, cluster: &str, number: u64) {
        if let Some(member) = self.members.get_mut(cluster) {
            member.end(number);
        }
    }

    /// A member was deleted, or its nodes and pods are not read any more. Cost: O(its nodes and pods).
    pub(crate) fn forget_member(&mut self, cluster: &str) {
        self.members.remove(cluster);
    }

    /// Forgets the nodes or pods that a watch read on a member. Cost: O(its nodes and pods).
    pub(crate) fn forget(&mut self, cluster: &str, watch: &Watch) {
        let Some(member) = self.members.remove(cluster) else {
            return;
        };
        let kept = match watch {
            Watch::Nodes(_) => MemberUsage {
                nodes: BTreeMap::new(),
                ..member
            },
            _ => MemberUsage {
                nodes: member.nodes,
                ..MemberUsage::default()
            },
        };
        self.members.insert(cluster.into(), kept);
    }

    /// The observed nodes of a member. Cost: O(nodes).
    pub(crate) fn held_nodes(&self, cluster: &Str) -> Vec<ObjectRef> {
        let names = self
            .of(cluster)
            .into_iter()
            .flat_map(|member| member.nodes.keys());
        names
            .map(|name| ObjectRef::Node(cluster.clone(), name.clone()))
            .collect()
    }

    /// The observed pods of a member. Cost: O(pods).
    pub(crate) fn held_pods(&self, cluster: &Str) -> Vec<ObjectRef> {
        let numbers = self.of(cluster).into_iter().flat_map(|member| member.pods.keys());
        numbers
            .map(|number| ObjectRef::Pod(cluster.clone(), *number))
            .collect()
    }
}

impl MemberUsage {
    /// Its nodes, by name.
    pub(crate) const fn nodes(&self) -> &BTreeMap<Str, Node> {
        &self.nodes
    }

    /// The sum of the requests of the pods of a node; `None` if it has none.
    pub(crate) fn requested(&self, node: &str) -> Option<&Amounts> {
        self.requested.get(node)
    }

    /// The sum of the requests of pods that are not scheduled yet.
    pub(crate) const fn pending(&self) -> &Amounts {
        &self.pending
    }

    /// The pods of a workload that no node can take, with the time since which that is so. Cost: O(log workloads).
    pub(crate) fn unscheduled(&self, workload: &ResourceId) -> Option<&BTreeMap<u64, Time>> {
        self.unscheduled.get(workload)
    }

    /// Takes a pod out of the sums. Returns its wait for a node.
    fn end(&mut self, number: u64) -> Option<Box<Unscheduled>> {
        let Some(Pod {
            node,
            requests: Some(requests),
            unscheduled,
            ..
        }) = self.pods.remove(&number)
        else {
            return None;
        };
        if let Some(waits) = &unscheduled
            && let Some(others) = self.unscheduled.get_mut(&waits.workload)
        {
            others.remove(&number);
            if others.is_empty() {
                self.unscheduled.remove(&waits.workload);
            }
        }
        match node {
            None => subtract(&mut self.pending, &requests),
            Some(node) => {
                if let Some(sum) = self.requested.get_mut(&node) {
                    subtract(sum, &requests);
                    if sum.is_empty() {
                        self.requested.remove(&node);
                    }
                }
            }
        }
        // The set has one, and so has this function.
        if Arc::strong_count(&requests) <= 2 {
            self.lists.remove(&requests);
        }
        unscheduled
    }

    fn shared(&mut self, requests: Arc<Amounts>) -> Arc<Amounts> {
        if let Some(held) = self.lists.get(&requests) {
            return held.clone();
        }
        self.lists.insert(requests.clone());
        requests
    }
}

/// Adds amounts to a sum. Cost: O(resources).
pub(crate) fn add(sum: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        let held = sum.entry(name.clone()).or_default();
        *held = held.saturating_add(*amount);
    }
}

pub(crate) fn subtract(sum: &mut Amounts, less: &Amounts) {
    for (name, amount) in less {
        if let Some(held) = sum.get_mut(name) {
            *held = held.saturating_sub(*amount);
            if *held == 0 {
                sum.remove(name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::Gvk;

    fn pod(revision: u64, node: Option<&str>, cpu: Option<i128>) -> Pod {
        Pod {
            revision,
            node: node.map(Into::into),
            requests: cpu.map(|cpu| Arc::new([("cpu".into(), cpu)].into())),
            unscheduled: None,
        }
    }

    #[test]
    fn a_workload_is_named_once_for_each_pod_that_begins_to_wait() {
        let (mut usage, cluster) = (Usage::default(), Str::from("m"));
        let web = ResourceId::new(Gvk::new("apps/v1", "Deployment"), "shop", "web");
        let waits = |revision, since| Pod {
            unscheduled: Some(Box::new(Unscheduled {
                workload: web.clone(),
                since,
            })),
            ..pod(revision, None, Some(1))
        };
        assert_eq!(
            usage.pod_seen(&cluster, 1, waits(1, Some(Time(5))), Time(9)),
            Some(web.clone())
        );
        assert_eq!(
            usage.pod_seen(&cluster, 1, waits(2, Some(Time(5))), Time(9)),
            None
        );
        assert_eq!(
            usage.pod_seen(&cluster, 2, waits(3, None), Time(6)),
            Some(web.clone())
        );
        // Its time is that of the first observation.
        assert_eq!(usage.pod_seen(&cluster, 2, waits(4, None), Time(9)), None);
        let waiting = |usage: &Usage| usage.of("m").unwrap().unscheduled(&web).cloned();
        assert_eq!(waiting(&usage), Some([(1, Time(5)), (2, Time(6))].into()));
        assert_eq!(
            usage.pod_seen(&cluster, 1, pod(5, Some("n"), Some(1)), Time(9)),
            None
        );
        usage.pod_gone("m", 2);
        assert_eq!(waiting(&usage), None);
    }

    #[test]
    fn the_sums_follow_each_event() {
        let (mut usage, cluster) = (Usage::default(), Str::from("m"));
        let cpu = |sum: Option<&Amounts>| sum.and_then(|sum| sum.get("cpu").copied()).unwrap_or(0);
        let sums = |usage: &Usage| {
            let member = usage.of("m").unwrap();
            (
                cpu(Some(member.pending())),
                cpu(member.requested("n")),
                member.lists.len(),
            )
        };
        usage.pod_seen(&cluster, 1, pod(1, None, Some(2)), Time(0));
        usage.pod_seen(&cluster, 2, pod(2, Some("n"), Some(2)), Time(0));
        usage.pod_seen(&cluster, 3, pod(3, Some("n"), Some(5)), Time(0));
        assert_eq!(sums(&usage), (2, 7, 2));
        usage.pod_seen(&cluster, 1, pod(4, Some("n"), Some(2)), Time(0));
        assert_eq!(sums(&usage), (0, 9, 2));
        usage.pod_seen(&cluster, 1, pod(3, None, Some(2)), Time(0));
        assert_eq!(sums(&usage), (0, 9, 2), "outdated");
        usage.pod_seen(&cluster, 3, pod(5, Some("n"), None), Time(0));
        assert_eq!(sums(&usage), (0, 4, 1), "it has ended");
        assert_eq!(usage.held_pods(&cluster).len(), 2);
        for number in [1, 2, 2, 9] {
            usage.pod_gone("m", number);
        }
        assert_eq!(sums(&usage), (0, 0, 0));
        assert!(usage.of("m").unwrap().requested.is_empty());
        usage.forget_member("m");
        assert!(usage.of("m").is_none());
    }
}
