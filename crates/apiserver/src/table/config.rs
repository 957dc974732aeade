//! Configuration, accounts and access, quotas, leases, events.

use serde_json::Value;

use super::{
    Printer,
    column::{AGE, Column, NAME, text, wide},
    view::{View, duration},
};

const BINDING: &[Column] = &[
    NAME,
    text("Role", ".roleRef"),
    AGE,
    wide("Users", "Users in the roleBinding"),
    wide("Groups", "Groups in the roleBinding"),
    wide("ServiceAccounts", "ServiceAccounts in the roleBinding"),
];

pub(super) const PRINTERS: &[Printer] = &[
    Printer {
        group: "",
        kind: "ConfigMap",
        columns: &[NAME, text("Data", ".data"), AGE],
        cells: |map| {
            let entries = map.count("data") + map.count("binaryData");
            vec![map.name(), entries.into(), map.age()]
        },
    },
    Printer {
        group: "",
        kind: "Secret",
        columns: &[NAME, text("Type", ".type"), text("Data", ".data"), AGE],
        cells: |secret| {
            let entries = secret.count("data");
            vec![
                secret.name(),
                secret.text("type").into(),
                entries.into(),
                secret.age(),
            ]
        },
    },
    Printer {
        group: "",
        kind: "ServiceAccount",
        columns: &[NAME, AGE],
        cells: |account| vec![account.name(), account.age()],
    },
    Printer {
        group: "",
        kind: "ResourceQuota",
        columns: &[
            NAME,
            text(
                "Request",
                "Request represents a minimum amount of cpu/memory that a container may consume.",
            ),
            text(
                "Limit",
                "Limits control the maximum amount of cpu/memory that a container may use independent of contention on the node.",
            ),
            AGE,
        ],
        cells: |quota| {
            vec![
                quota.name(),
                used(quota, false).into(),
                used(quota, true).into(),
                quota.age(),
            ]
        },
    },
    Printer {
        group: "",
        kind: "Event",
        columns: EVENT,
        cells: event,
    },
    Printer {
        group: "events.k8s.io",
        kind: "Event",
        columns: EVENT,
        cells: event,
    },
    Printer {
        group: "coordination.k8s.io",
        kind: "Lease",
        columns: &[NAME, text("Holder", ".spec.holderIdentity"), AGE],
        cells: |lease| {
            vec![
                lease.name(),
                lease.text("spec.holderIdentity").into(),
                lease.age(),
            ]
        },
    },
    Printer {
        group: "rbac.authorization.k8s.io",
        kind: "RoleBinding",
        columns: BINDING,
        cells: binding,
    },
    Printer {
        group: "rbac.authorization.k8s.io",
        kind: "ClusterRoleBinding",
        columns: BINDING,
        cells: binding,
    },
    Printer {
        group: "certificates.k8s.io",
        kind: "CertificateSigningRequest",
        columns: &[
            NAME,
            AGE,
            text("SignerName", ".spec.signerName"),
            text("Requestor", ".spec.request"),
            text("RequestedDuration", ".spec.expirationSeconds"),
            text("Condition", ".status.conditions"),
        ],
        cells: |request| {
            let lasts = request.at("spec.expirationSeconds").and_then(Value::as_i64);
            vec![
                request.name(),
                request.age(),
                request.text("spec.signerName").into(),
                request.text("spec.username").into(),
                lasts
                    .map_or_else(|| super::view::NONE.to_owned(), duration)
                    .into(),
                request_status(request).into(),
            ]
        },
    },
];

const EVENT: &[Column] = &[
    text(
        "Last Seen",
        "The time at which the most recent occurrence of this event was recorded.",
    ),
    text("Type", ".type"),
    text(
        "Reason",
        "This should be a short, machine understandable string that gives the reason for the transition into the object's current status.",
    ),
    text("Object", "The object that this event is about."),
    wide(
        "Subobject",
        "If referring to a piece of an object instead of an entire object, this string should contain a valid JSON/Go field access statement, such as desiredState.manifest.containers[2]. For example, if the object reference is to a container within a pod, this would take on a value like: \"spec.containers{name}\" (where \"name\" refers to the name of the container that triggered the event) or if no container name is specified \"spec.containers[2]\" (container with index 2 in this pod). This syntax is chosen only to have some well-defined way of referencing a part of an object.",
    ),
    wide(
        "Source",
        "The component reporting this event. Should be a short machine understandable string.",
    ),
    text(
        "Message",
        "A human-readable description of the status of this operation.",
    ),
    wide(
        "First Seen",
        "The time at which the event was first recorded. (Time of server receipt is in TypeMeta.)",
    ),
    wide("Count", "The number of times this event has occurred."),
    Column { priority: 1, ..NAME },
];

/// A field of an event, by its name in the first or in the second API.
fn either<'a>(event: &View<'a>, old: &str, new: &str) -> &'a str {
    match event.text(old) {
        "" => event.text(new),
        found => found,
    }
}

fn event(event: &View<'_>) -> Vec<Value> {
    let first = match either(event, "firstTimestamp", "deprecatedFirstTimestamp") {
        "" => event.text("eventTime"),
        time => time,
    };
    let mut last = match either(event, "lastTimestamp", "deprecatedLastTimestamp") {
        "" => first,
        time => time,
    };
    let mut count = event.number("count").max(event.number("deprecatedCount")).max(1);
    if event.at("series").is_some() {
        last = event.text("series.lastObservedTime");
        count = event.number("series.count");
    }
    let kind = either(event, "involvedObject.kind", "regarding.kind").to_lowercase();
    let target = match either(event, "involvedObject.name", "regarding.name") {
        "" => kind,
        name => format!("{kind}/{name}"),
    };
    let source = match either(event, "source.component", "deprecatedSource.component") {
        "" => {
            let reporter = either(event, "reportingComponent", "reportingController");
            [reporter, event.text("reportingInstance")]
        }
        component => [component, either(event, "source.host", "deprecatedSource.host")],
    };
    let source = if source[1].is_empty() {
        source[0].to_owned()
    } else {
        source.join(", ")
    };
    vec![
        event.since_text(last).into(),
        event.text("type").into(),
        event.text("reason").into(),
        target.into(),
        either(event, "involvedObject.fieldPath", "regarding.fieldPath").into(),
        source.into(),
        either(event, "message", "note").trim().into(),
        event.since_text(first).into(),
        count.into(),
        event.name(),
    ]
}

fn binding(binding: &View<'_>) -> Vec<Value> {
    let subjects = |kind: &str| {
        let found = binding
            .list("subjects")
            .iter()
            .filter(|subject| subject["kind"] == kind);
        let names: Vec<String> = found
            .map(|subject| {
                let text = |name: &str| subject[name].as_str().unwrap_or_default();
                match text("namespace") {
                    namespace if kind == "ServiceAccount" && !namespace.is_empty() => {
                        format!("{namespace}/{}", text("name"))
                    }
                    _ => text("name").to_owned(),
                }
            })
            .collect();
        Value::from(names.join(", "))
    };
    vec![
        binding.name(),
        format!(
            "{}/{}",
            binding.text("roleRef.kind"),
            binding.text("roleRef.name")
        )
        .into(),
        binding.age(),
        subjects("User"),
        subjects("Group"),
        subjects("ServiceAccount"),
    ]
}

/// What is used of a quota: `pods: 1/10, …`; limits are apart from the rest.
fn used(quota: &View<'_>, limits: bool) -> String {
    let hard = quota.at("status.hard").and_then(Value::as_object);
    let used = quota.at("status.used");
    let words: Vec<String> = hard
        .into_iter()
        .flatten()
        .filter(|(name, _)| name.starts_with("limits.") == limits)
        .map(|(name, hard)| {
            let used = used
                .and_then(|used| used.get(name))
                .and_then(Value::as_str)
                .unwrap_or("0");
            format!("{name}: {used}/{}", hard.as_str().unwrap_or_default())
        })
        .collect();
    words.join(", ")
}

fn request_status(request: &View<'_>) -> String {
    let has = |kind: &str| {
        request
            .list("status.conditions")
            .iter()
            .any(|one| one["type"] == kind)
    };
    let mut status = match (has("Denied"), has("Approved")) {
        (true, _) => "Denied",
        (_, true) => "Approved",
        _ => "Pending",
    }
    .to_owned();
    if has("Failed") {
        status.push_str(",Failed");
    }
    if !request.text("status.certificate").is_empty() {
        status.push_str(",Issued");
    }
    status
}
