//! The nodes and pods of a member, reduced to what its capacity is computed from.

use std::sync::Arc;

use serde_json::Value;

use crate::{
    interpreter::requirements,
    object::{Str, revision},
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
        }
    }
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
}
