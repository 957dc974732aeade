//! Nodes.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::{
    kinds::{
        kind_def::{KindDef, fields},
        pod_spec,
    },
    names,
    object::{
        Object, metadata_mut,
        tree::{Errors, below, flag, items, list, made, object_mut, text},
    },
    printer::{AGE, NAME, NONE, Printer, UNKNOWN, View, or_none, wide, words},
    status::{FieldError, Problem},
};

/// Node. Unlike elsewhere a status given on create is kept; kubelets send it so.
pub(super) static DEF: KindDef = KindDef {
    short: &["no"],
    subresources: &["proxy", "status"],
    keeps_status: true,
    defaults: |node| {
        made(node, "spec");
        let status = made(node, "status");
        if !status.contains_key("allocatable")
            && let Some(capacity) = status.get("capacity").cloned()
        {
            status.insert("allocatable".to_owned(), capacity);
        }
        ranges(made(node, "spec"));
    },
    created: not_ready,
    updated: |subresource, new, old| {
        let (kept, taken) = match subresource {
            "" => ("status", None),
            "status" => ("spec", new.remove("status")),
            _ => return,
        };
        if subresource == "status" {
            let managed = metadata_mut(new).remove("managedFields");
            *new = old.clone();
            if let Some(managed) = managed {
                metadata_mut(new).insert("managedFields".to_owned(), managed);
            }
            if let Some(status) = taken {
                new.insert("status".to_owned(), status);
            }
        }
        match old.get(kept) {
            Some(value) => new.insert(kept.to_owned(), value.clone()),
            None => new.remove(kept),
        };
    },
    errors,
    changes: Some(|new, old, errors| {
        // The server checks taints twice.
        self::errors(new, errors);
        taints(below(new, "spec"), errors);
        let (before, after) = (below(old, "spec"), below(new, "spec"));
        let ranges = list(before, "podCIDRs");
        if !ranges.is_empty() && ranges != list(after, "podCIDRs") {
            let detail = "node updates may not change podCIDR except from \"\" to valid";
            errors.forbidden("spec.podCIDRs", detail);
        }
        if !text(before, "providerID").is_empty() && text(before, "providerID") != text(after, "providerID") {
            let detail = "node updates may not change providerID except from \"\" to valid";
            errors.forbidden("spec.providerID", detail);
        }
    }),
    status_changes: |new, _, errors| {
        for key in ["capacity", "allocatable"] {
            for (name, amount) in below(below(new, "status"), key) {
                pod_spec::resources::one_amount(name, amount, &format!("status.{key}.{name}"), errors);
            }
        }
    },
    selectable: Some(|node| {
        let unschedulable = flag(below(node, "spec"), "unschedulable");
        fields([("spec.unschedulable", if unschedulable { "true" } else { "false" })])
    }),
    printer: Printer::of(&[
        NAME,
        words("Status", "The status of the node").shows(|node| node_status(node).into()),
        words("Roles", "The roles of the node").shows(|node| or_none(roles(node))),
        AGE,
        words("Version", ".status.nodeInfo.kubeletVersion"),
        wide("Internal-IP", ".status.addresses").shows(|node| address(node, "InternalIP")),
        wide("External-IP", ".status.addresses").shows(|node| address(node, "ExternalIP")),
        wide("OS-Image", ".status.nodeInfo.osImage").or(UNKNOWN),
        wide("Kernel-Version", ".status.nodeInfo.kernelVersion").shows(|node| kernel(node).into()),
        wide("Container-Runtime", ".status.nodeInfo.containerRuntimeVersion").or(UNKNOWN),
    ]),
    ..KindDef::of::<k8s_openapi::api::core::v1::Node>()
};

/// A new node takes no pods until its controller reports that it is ready.
fn not_ready(node: &mut Object) {
    const KEY: &str = "node.kubernetes.io/not-ready";
    let spec = made(node, "spec");
    let there = list(spec, "taints")
        .iter()
        .any(|taint| taint.get("key").is_some_and(|key| key == KEY));
    if there {
        return;
    }
    if !spec.get("taints").is_some_and(Value::is_array) {
        spec.insert("taints".to_owned(), json!([]));
    }
    if let Some(Value::Array(taints)) = object_mut(node, "spec").and_then(|spec| spec.get_mut("taints")) {
        taints.push(json!({"key": KEY, "effect": "NoSchedule"}));
    }
}

/// `podCIDR` is the first of `podCIDRs`.
fn ranges(spec: &mut Object) {
    let first = list(spec, "podCIDRs").first().cloned();
    match (first, text(spec, "podCIDR")) {
        (Some(first), _) => {
            spec.insert("podCIDR".to_owned(), first);
        }
        (None, "") => {}
        (None, range) => {
            let all = json!([range]);
            spec.insert("podCIDRs".to_owned(), all);
        }
    }
}

fn errors(node: &Object, errors: &mut Errors) {
    let spec = below(node, "spec");
    taints(spec, errors);
    let ranges: Vec<&str> = list(spec, "podCIDRs").iter().filter_map(Value::as_str).collect();
    for (at, range) in ranges.iter().enumerate() {
        errors.all_invalid(&format!("spec.podCIDRs[{at}]"), *range, names::cidr(range));
    }
    let sixth = |range: &&&str| range.contains(':');
    if ranges.len() > 1 && (ranges.len() > 2 || ranges.iter().filter(sixth).count() != 1) {
        errors.invalid(
            "spec.podCIDRs",
            json!(ranges),
            "may specify no more than one CIDR for each IP family",
        );
    }
}

fn taints(spec: &Object, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for (path, taint) in items(spec, "taints", "metadata") {
        let (key, value, effect) = (text(taint, "key"), text(taint, "value"), text(taint, "effect"));
        errors.all_invalid(&format!("{path}.key"), key, names::qualified_name(key));
        let problems = names::label_value(value);
        if !problems.is_empty() {
            errors.invalid(format!("{path}.value"), value, &problems.join(";"));
        }
        errors.required_one_of(
            format!("{path}.effect"),
            effect,
            &["NoSchedule", "PreferNoSchedule", "NoExecute"],
        );
        if !seen.insert((key, effect)) {
            let shown = Problem::DuplicateText(pod_spec::internal::shown("Taint", taint));
            let detail = "taints must be unique by key and effect pair";
            errors.push(FieldError::new(path, shown, detail));
        }
    }
}

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

fn kernel(node: &View<'_>) -> String {
    let version = match node.text("status.nodeInfo.kernelVersion") {
        "" => UNKNOWN,
        version => version,
    };
    match node.text("status.nodeInfo.architecture") {
        "" => version.to_owned(),
        architecture => format!("{version} ({architecture})"),
    }
}

/// Roles are labels: `node-role.kubernetes.io/ROLE` and `kubernetes.io/role=ROLE`.
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
