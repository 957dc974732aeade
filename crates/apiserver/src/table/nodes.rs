//! Nodes, namespaces, and what workloads run under.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    Printer,
    column::{AGE, NAME, boolean, number, text, wide},
    view::{NONE, UNKNOWN, View, or_none},
};

pub(super) const PRINTERS: &[Printer] = &[
    Printer {
        group: "",
        kind: "Namespace",
        columns: &[NAME, text("Status", "The status of the namespace"), AGE],
        cells: |namespace| {
            vec![
                namespace.name(),
                namespace.text("status.phase").into(),
                namespace.age(),
            ]
        },
    },
    Printer {
        group: "",
        kind: "Node",
        columns: &[
            NAME,
            text("Status", "The status of the node"),
            text("Roles", "The roles of the node"),
            AGE,
            text("Version", ".status.nodeInfo.kubeletVersion"),
            wide("Internal-IP", ".status.addresses"),
            wide("External-IP", ".status.addresses"),
            wide("OS-Image", ".status.nodeInfo.osImage"),
            wide("Kernel-Version", ".status.nodeInfo.kernelVersion"),
            wide("Container-Runtime", ".status.nodeInfo.containerRuntimeVersion"),
        ],
        cells: |node| {
            vec![
                node.name(),
                node_status(node).into(),
                or_none(roles(node)),
                node.age(),
                node.text("status.nodeInfo.kubeletVersion").into(),
                address(node, "InternalIP"),
                address(node, "ExternalIP"),
                node.or("status.nodeInfo.osImage", UNKNOWN),
                node.or("status.nodeInfo.kernelVersion", UNKNOWN),
                node.or("status.nodeInfo.containerRuntimeVersion", UNKNOWN),
            ]
        },
    },
    Printer {
        group: "",
        kind: "ComponentStatus",
        columns: &[
            NAME,
            text("Status", "Status of the component conditions"),
            text("Message", "Message of the component conditions"),
            text("Error", "Error of the component conditions"),
        ],
        cells: |component| {
            let conditions = component.list("conditions");
            let healthy = conditions.iter().find(|one| one["type"] == "Healthy");
            let word = |name: &str| healthy.and_then(|one| one[name].as_str()).unwrap_or_default();
            let status = match word("status") {
                "" => "Unknown",
                "True" => "Healthy",
                _ => "Unhealthy",
            };
            vec![
                component.name(),
                status.into(),
                word("message").into(),
                word("error").into(),
            ]
        },
    },
    Printer {
        group: "scheduling.k8s.io",
        kind: "PriorityClass",
        columns: &[
            NAME,
            number("Value", ".value"),
            boolean("Global-Default", ".globalDefault"),
            AGE,
            text("PreemptionPolicy", ".preemptionPolicy"),
        ],
        cells: |class| {
            vec![
                class.name(),
                class.number("value").into(),
                class.flag("globalDefault").into(),
                class.age(),
                class.text("preemptionPolicy").into(),
            ]
        },
    },
    Printer {
        group: "node.k8s.io",
        kind: "RuntimeClass",
        columns: &[NAME, text("Handler", ".handler"), AGE],
        cells: |class| vec![class.name(), class.text("handler").into(), class.age()],
    },
];

fn node_status(node: &View<'_>) -> String {
    let ready = node
        .list("status.conditions")
        .iter()
        .find(|one| one["type"] == "Ready");
    let mut status = match ready.map(|one| one["status"] == "True") {
        Some(true) => "Ready",
        Some(false) => "NotReady",
        None => "Unknown",
    }
    .to_owned();
    if node.flag("spec.unschedulable") {
        status.push_str(",SchedulingDisabled");
    }
    status
}

/// Roles are told by labels: `node-role.kubernetes.io/ROLE` and `kubernetes.io/role=ROLE`.
fn roles(node: &View<'_>) -> String {
    let labels = node.at("metadata.labels").and_then(Value::as_object);
    let roles: BTreeSet<&str> = labels
        .into_iter()
        .flatten()
        .filter_map(
            |(key, value)| match key.strip_prefix("node-role.kubernetes.io/") {
                Some(role) => Some(role),
                None if key == "kubernetes.io/role" => value.as_str(),
                None => None,
            },
        )
        .filter(|role| !role.is_empty())
        .collect();
    roles.into_iter().collect::<Vec<_>>().join(",")
}

fn address(node: &View<'_>, kind: &str) -> Value {
    let found = node
        .list("status.addresses")
        .iter()
        .find(|one| one["type"] == kind);
    found
        .and_then(|one| one["address"].as_str())
        .unwrap_or(NONE)
        .into()
}
