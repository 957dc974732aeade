//! The nodes and pods of a member, reduced to what its capacity is computed from.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta;
use serde_json::Value;

use crate::{
    interpreter::requirements,
    object::{Gvk, ResourceId, Str, Time, revision},
    scheduler::estimate::{Amounts, Demand, amounts_of},
};

/// A node of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its resourceVersion.
    pub revision: u64,
    /// True if its condition Ready is True.
    pub is_ready: bool,
    /// True if no pods are to be scheduled to it (`kubectl cordon`).
    pub is_cordoned: bool,
    /// The resources that it offers to pods.
    pub allocatable: Amounts,
}

/// A pod of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pod {
    /// Its resourceVersion.
    pub revision: u64,
    /// The node that it runs on; `None` while it is not scheduled.
    pub node: Option<Str>,
    /// The resources that it requests, itself included; `None` if it has ended.
    pub requests: Option<Arc<Amounts>>,
    /// The wait for a node, if no node can take it now. Boxed: few pods wait.
    pub unscheduled: Option<Box<Unscheduled>>,
}

/// The wait of a pod that no node can take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unscheduled {
    /// The workload that the pod belongs to: its controller, or the Deployment of its ReplicaSet.
    pub workload: ResourceId,
    /// The time since which no node can take it, by the clock of the member, if it says so.
    pub since: Option<Time>,
}

impl Node {
    pub(super) fn of(object: &Value) -> Self {
        let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
        let mut ready = conditions.filter(|each| each["type"] == "Ready");
        Self {
            revision: version(object),
            is_ready: ready.any(|each| each["status"] == "True"),
            is_cordoned: object["spec"]["unschedulable"] == true,
            allocatable: amounts_of(&object["status"]["allocatable"]),
        }
    }
}

impl Pod {
    pub(super) fn of(object: &Value) -> Self {
        let phase = object["status"]["phase"].as_str().unwrap_or_default();
        let node = object["spec"]["nodeName"]
            .as_str()
            .filter(|name| !name.is_empty());
        let requests = || {
            let of_pod = requirements::of_pod("", &object["spec"]);
            Arc::new(Demand::of(of_pod.as_ref()).with_pod())
        };
        Self {
            revision: version(object),
            node: node.map(Into::into),
            requests: (!["Succeeded", "Failed"].contains(&phase)).then(requests),
            unscheduled: node
                .is_none()
                .then(|| Unscheduled::of(object))
                .flatten()
                .map(Box::new),
        }
    }
}

impl Unscheduled {
    fn of(object: &Value) -> Option<Self> {
        let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
        let mut scheduled = conditions.filter(|each| each["type"] == "PodScheduled");
        let refused =
            scheduled.find(|each| each["status"] == "False" && each["reason"] == "Unschedulable")?;
        let metadata = &object["metadata"];
        // A node was chosen, and others are evicted for it.
        let is_nominated = !object["status"]["nominatedNodeName"]
            .as_str()
            .unwrap_or_default()
            .is_empty();
        if is_nominated || !metadata["deletionTimestamp"].is_null() {
            return None;
        }
        let since: Option<meta::v1::Time> =
            serde_json::from_value(refused["lastTransitionTime"].clone()).ok();
        Some(Self {
            workload: workload_of(metadata)?,
            since: since.as_ref().map(Time::from_k8s),
        })
    }
}

/// The workload of a pod. A ReplicaSet of a Deployment has the name of the Deployment, a hyphen, and the pods' label
/// `pod-template-hash`.
fn workload_of(metadata: &Value) -> Option<ResourceId> {
    let mut owners = metadata["ownerReferences"].as_array()?.iter();
    let owner = owners.find(|each| each["controller"] == true)?;
    let (api_version, kind, name) = (
        owner["apiVersion"].as_str()?,
        owner["kind"].as_str()?,
        owner["name"].as_str()?,
    );
    let namespace = metadata["namespace"].as_str()?;
    let deployment = || {
        let hash = metadata["labels"]["pod-template-hash"].as_str()?;
        name.strip_suffix(hash)?.strip_suffix('-')
    };
    Some(match (api_version, kind, deployment()) {
        ("apps/v1", "ReplicaSet", Some(name)) => {
            ResourceId::new(Gvk::new("apps/v1", "Deployment"), namespace, name)
        }
        _ => ResourceId::new(Gvk::new(api_version, kind), namespace, name),
    })
}

/// The number that a pod is known by: members have many, and their names are long.
pub(super) fn number(namespace: &str, name: &str) -> u64 {
    let bytes = namespace.bytes().chain([b'/']).chain(name.bytes());
    // FNV-1a.
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn version(object: &Value) -> u64 {
    revision(object["metadata"]["resourceVersion"].as_str().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_node_offers_what_is_allocatable() {
        let node = Node::of(&json!({
            "metadata": {"resourceVersion": "7"},
            "spec": {"unschedulable": true},
            "status": {
                "allocatable": {"cpu": "1930m", "pods": "110", "memory": "many"},
                "conditions": [{"type": "DiskPressure", "status": "True"}, {"type": "Ready", "status": "Unknown"}],
            },
        }));
        assert_eq!((node.revision, node.is_ready, node.is_cordoned), (7, false, true));
        let want: Amounts = [("cpu".into(), 1_930_000_000), ("pods".into(), 110_000_000_000)].into();
        assert_eq!(node.allocatable, want);
    }

    #[test]
    fn a_pod_requests_itself_and_its_resources_until_it_has_ended() {
        let mut object = json!({
            "metadata": {"resourceVersion": "7"},
            "spec": {"nodeName": "n", "containers": [{"resources": {"requests": {"cpu": "1"}}}]},
            "status": {"phase": "Running"},
        });
        let pod = Pod::of(&object);
        let want: Amounts = [("cpu".into(), 1_000_000_000), ("pods".into(), 1_000_000_000)].into();
        assert_eq!(
            (pod.node.as_deref(), pod.requests.as_deref()),
            (Some("n"), Some(&want))
        );
        object["status"]["phase"] = json!("Succeeded");
        assert_eq!(Pod::of(&object).requests, None);
        assert_ne!(number("a", "b"), number("b", "a"));
    }

    #[test]
    fn a_pod_that_no_node_can_take_waits_for_its_workload() {
        let pod = json!({
            "metadata": {
                "namespace": "shop", "labels": {"pod-template-hash": "5d4"},
                "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-5d4", "controller": true}],
            },
            "status": {"phase": "Pending", "conditions": [{
                "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "lastTransitionTime": "1970-01-01T00:01:00Z",
            }]},
        });
        let owner = "/metadata/ownerReferences/0";
        let web = |kind: &str, name: &str| Some((kind.to_owned(), name.to_owned()));
        let cases = [
            ("a Deployment's", "", json!(null), web("Deployment", "web")),
            (
                "a ReplicaSet's own",
                "/metadata/labels",
                json!({}),
                web("ReplicaSet", "web-5d4"),
            ),
            (
                "a StatefulSet's",
                owner,
                json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "controller": true}),
                web("StatefulSet", "db"),
            ),
            (
                "nobody's",
                owner,
                json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "db"}),
                None,
            ),
            ("has a node", "/spec", json!({"nodeName": "n"}), None),
            (
                "is being deleted",
                "/metadata/deletionTimestamp",
                json!("1970-01-01T00:02:00Z"),
                None,
            ),
            (
                "held back by a gate",
                "/status/conditions/0/reason",
                json!("SchedulingGated"),
                None,
            ),
            (
                "about to get a node",
                "/status/nominatedNodeName",
                json!("n"),
                None,
            ),
            ("not looked at yet", "/status/conditions", json!([]), None),
        ];
        for (case, path, value, want) in cases {
            let mut pod = pod.clone();
            match path.rsplit_once('/') {
                None => {}
                Some((parent, field)) => match pod.pointer_mut(path) {
                    Some(held) => *held = value,
                    None => pod.pointer_mut(parent).unwrap()[field] = value,
                },
            }
            let unscheduled = Pod::of(&pod).unscheduled;
            let workload = unscheduled.as_ref().map(|each| &each.workload);
            let named = workload.map(|id| (id.gvk.kind.to_string(), id.name.to_string()));
            assert_eq!(named, want, "{case}");
            assert!(
                unscheduled.is_none_or(|each| each.since == Some(Time(60_000))),
                "{case}"
            );
        }
    }
}
