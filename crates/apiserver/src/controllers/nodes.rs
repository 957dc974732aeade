//! The Node that pods of members run on, the taint of nodes that are cordoned, and the default StorageClass. There is no kubelet: the node is ready for good, and nothing
//! is written while it is.

use serde_json::{Value, json};

use super::{
    Context, Controller, Seen, create,
    objects::change,
    volumes::{CLASSES, PROVISIONER},
};
use crate::{
    object::{
        field,
        tree::{flag, list, made},
    },
    store::Happened,
};

const NODES: &str = "nodes";
const NODE: &str = "stand-in";
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

/// Room for what a cluster of this kind runs: nothing is refused for it.
const ROOM: [(&str, &str); 4] = [
    ("cpu", "256"),
    ("ephemeral-storage", "4Ti"),
    ("memory", "1Ti"),
    ("pods", "10k"),
];

/// True if the objects may be missing, or the taints of nodes outdated.
#[derive(Default)]
pub(super) struct Nodes {
    node: bool,
    class: bool,
    taints: bool,
}

impl Controller for Nodes {
    fn reset(&mut self) {
        // A class that somebody deletes stays deleted until the next start.
        *self = Self {
            node: true,
            class: true,
            taints: true,
        };
    }

    fn see(&mut self, seen: &Seen) {
        let is_node = seen.place.collection == NODES && seen.place.key == NODE;
        self.node |= is_node && seen.happened == Happened::Deleted;
        self.taints |= seen.place.collection == NODES && seen.happened != Happened::Deleted;
    }

    fn work(&mut self, cluster: &dyn Context) -> bool {
        let (node, class) = (std::mem::take(&mut self.node), std::mem::take(&mut self.class));
        if node && cluster.stand_ins().node {
            let now = cluster.now();
            create(cluster.store(), &now, NODES, NODE, self::node(&now));
        }
        if class && cluster.stand_ins().volumes {
            create(
                cluster.store(),
                &cluster.now(),
                CLASSES,
                "standard",
                storage_class(),
            );
        }
        let taints = std::mem::take(&mut self.taints);
        if taints && cluster.stand_ins().node {
            taint(cluster);
        }
        node || class || taints
    }
}

/// Gives nodes that are cordoned the taint of it, and takes it from the others. O(nodes).
fn taint(cluster: &dyn Context) {
    let now = cluster.now();
    let is_of_it = |taint: &Value| taint["key"] == UNSCHEDULABLE && taint["effect"] == "NoSchedule";
    for node in cluster.list(NODES, "") {
        change(cluster, NODES, field(&node, "name"), "", |node| {
            let spec = made(node, "spec");
            let mut taints = list(spec, "taints").to_vec();
            let cordoned = flag(spec, "unschedulable");
            if taints.iter().any(is_of_it) == cordoned {
                return false;
            }
            if cordoned {
                taints.push(json!({"key": UNSCHEDULABLE, "effect": "NoSchedule", "timeAdded": now}));
            } else {
                taints.retain(|taint| !is_of_it(taint));
            }
            if taints.is_empty() {
                spec.remove("taints");
            } else {
                spec.insert("taints".to_owned(), taints.into());
            }
            true
        });
    }
}

fn storage_class() -> Value {
    json!({"metadata": {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        "provisioner": PROVISIONER, "reclaimPolicy": "Delete", "volumeBindingMode": "Immediate",
        "allowVolumeExpansion": true})
}

fn node(now: &str) -> Value {
    let arch = match std::env::consts::ARCH {
        "aarch64" => "arm64",
        _ => "amd64",
    };
    let condition = |kind: &str, holds: bool, reason: &str, message: &str| {
        json!({"type": kind, "status": if holds { "True" } else { "False" }, "reason": reason, "message": message,
            "lastHeartbeatTime": now, "lastTransitionTime": now})
    };
    let sufficient = |what: &str| format!("kubelet has sufficient {what} available");
    let room: Value = ROOM.into_iter().collect();
    json!({
        "metadata": {"labels": {"beta.kubernetes.io/arch": arch, "beta.kubernetes.io/os": "linux",
            "kubernetes.io/arch": arch, "kubernetes.io/hostname": NODE, "kubernetes.io/os": "linux"}},
        "spec": {},
        "status": {
            "addresses": [{"type": "InternalIP", "address": "192.0.2.1"}, {"type": "Hostname", "address": NODE}],
            "capacity": room, "allocatable": room,
            "conditions": [
                condition("MemoryPressure", false, "KubeletHasSufficientMemory", &sufficient("memory")),
                condition("DiskPressure", false, "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
                condition("PIDPressure", false, "KubeletHasSufficientPID", &sufficient("PID")),
                condition("Ready", true, "KubeletReady", "kubelet is posting ready status"),
            ],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "nodeInfo": {"architecture": arch, "operatingSystem": "linux", "kubeletVersion": "v1.36.2",
                "kubeProxyVersion": "", "containerRuntimeVersion": "stand-in://0", "osImage": "stand-in",
                "kernelVersion": "0", "bootID": "", "machineID": "", "systemUUID": ""},
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        controllers::{Loop, StandIns},
        resource::Surroundings as _,
        server::{Options, Server},
        store::Store,
    };
    use std::sync::Arc;

    fn settled(stand_ins: StandIns) -> Arc<Server> {
        let options = Options {
            stand_ins,
            ..Options::default()
        };
        let server = Server::new(options, Store::new());
        let mut state = Loop::new();
        while state.turn(&*server) {}
        server
    }

    #[test]
    fn a_member_has_a_node_that_is_ready_and_a_class_of_storage() {
        let server = settled(StandIns::ALL);
        let node = server.get(NODES, NODE).expect("a node");
        let ready = node["status"]["conditions"].as_array().and_then(|all| all.last());
        assert_eq!(ready.map(|one| &one["status"]), Some(&json!("True")));
        assert!(server.get(CLASSES, "standard").is_some());
        let entry = server.store.get(NODES, NODE).expect("stored");
        let gone = server
            .store
            .delete(NODES, NODE, entry.revision, |_| entry.object.clone());
        gone.expect("deleted");
        let mut state = Loop::new();
        while state.turn(&*server) {}
        assert!(server.get(NODES, NODE).is_some(), "it comes back");
    }

    #[test]
    fn a_hub_has_neither() {
        let server = settled(StandIns::default());
        assert!(server.get(NODES, NODE).is_none() && server.get(CLASSES, "standard").is_none());
    }
}
