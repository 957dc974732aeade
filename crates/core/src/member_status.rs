//! The status of a Cluster as its member shows it: shared by the hub's controllers, for members in Push mode, and by the agent of
//! a member in Pull mode.

use entourage_api::{
    cluster::{ApiEnablement, ApiResource, ClusterStatus},
    keys::{condition, reason},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::{Value, json};

use crate::{
    condition as conditions,
    object::{Meta, Time},
    observation::Probe,
};

mod capacity;

pub(crate) use capacity::{node_summary, resource_summary};

/// Sets Ready, the version and the APIs by a probe. Returns true if Ready turned. Cost: O(kinds it serves).
pub(crate) fn describe(
    status: &mut ClusterStatus,
    probe: &Probe,
    generation: Option<i64>,
    now: Time,
) -> bool {
    let fallback = if probe.healthy {
        reason::CLUSTER_READY
    } else {
        reason::CLUSTER_NOT_REACHABLE
    };
    let why = if probe.reason.is_empty() {
        fallback
    } else {
        &probe.reason
    };
    let is_ready = match why {
        _ if probe.healthy => "True",
        reason::HUB_CUT_OFF => "Unknown",
        _ => "False",
    };
    let message = same_words(&status.conditions, (is_ready, why), probe);
    let turned = conditions::set(
        &mut status.conditions,
        Condition {
            type_: condition::READY.into(),
            status: is_ready.into(),
            reason: why.into(),
            message,
            observed_generation: generation,
            last_transition_time: now.to_k8s(),
        },
    );
    if let Some(version) = &probe.kubernetes_version {
        status.kubernetes_version.clone_from(version);
    }
    if let Some(served) = &probe.api_enablements {
        status.api_enablements = served
            .iter()
            .map(|(group_version, kinds)| ApiEnablement {
                group_version: group_version.clone(),
                resources: kinds
                    .iter()
                    .map(|(plural, kind)| ApiResource {
                        name: plural.clone(),
                        kind: kind.clone(),
                    })
                    .collect(),
            })
            .collect();
        let empty = status.api_enablements.is_empty();
        conditions::set(
            &mut status.conditions,
            Condition {
                type_: condition::COMPLETE_API_ENABLEMENTS.into(),
                status: if empty { "False" } else { "True" }.into(),
                reason: if empty {
                    reason::EMPTY_API_ENABLEMENTS
                } else {
                    reason::FULL_API_ENABLEMENTS
                }
                .into(),
                message: if empty {
                    "It serves no API that the joined account may see."
                } else {
                    "The list is complete."
                }
                .into(),
                observed_generation: generation,
                last_transition_time: now.to_k8s(),
            },
        );
    }
    turned
}

/// The merge patch of the status subresource. Cost: O(size of the status).
pub(crate) fn patch(meta: &Meta, before: Option<&ClusterStatus>, status: &ClusterStatus) -> Value {
    // A merge patch changes only the fields it contains: fields that became empty are included too.
    let mut written = serde_json::to_value(status).unwrap_or_default();
    if status.api_enablements.is_empty() {
        written["apiEnablements"] = json!([]);
    }
    if status.conditions.is_empty() {
        written["conditions"] = json!([]);
    }
    replace_capacity(&mut written, before, status);
    json!({
        "metadata": { "uid": &*meta.uid, "resourceVersion": &*meta.resource_version },
        "status": written,
    })
}

/// A merge patch keeps what it does not name: each resource that is not reported any more is named as null.
fn replace_capacity(written: &mut Value, before: Option<&ClusterStatus>, after: &ClusterStatus) {
    let Some(before) = before else { return };
    for (part, was, is) in [
        (
            "nodeSummary",
            before.node_summary.is_some(),
            after.node_summary.is_some(),
        ),
        (
            "resourceSummary",
            before.resource_summary.is_some(),
            after.resource_summary.is_some(),
        ),
    ] {
        if was && !is {
            written[part] = Value::Null;
        }
    }
    if let Some(nodes) = &after.node_summary {
        written["nodeSummary"] = json!({"totalNum": nodes.total_num, "readyNum": nodes.ready_num});
    }
    let (Some(was), Some(is)) = (&before.resource_summary, &after.resource_summary) else {
        return;
    };
    for (list, was, is) in [
        ("allocatable", &was.allocatable, &is.allocatable),
        ("allocating", &was.allocating, &is.allocating),
        ("allocated", &was.allocated, &is.allocated),
    ] {
        for name in was.keys().filter(|name| !is.contains_key(*name)) {
            written["resourceSummary"][list][name] = Value::Null;
        }
    }
    if is.allocatable_modelings.is_empty() && !was.allocatable_modelings.is_empty() {
        written["resourceSummary"]["allocatableModelings"] = json!([]);
    }
}

/// The errors of a failing transport differ between attempts: while the reason is the same, the stored message is kept.
fn same_words(held: &[Condition], (status, reason): (&str, &str), probe: &Probe) -> String {
    let mut held = held.iter().filter(|held| held.type_ == condition::READY);
    let held = held.find(|held| held.status == status && held.reason == reason);
    match held {
        Some(held) if !probe.healthy && !is_refusal(reason) => held.message.clone(),
        _ => probe.message.clone(),
    }
}

/// True if a probe was not sent because the Cluster may not use its credentials: that does not pass by itself.
pub(crate) fn is_refusal(why: &str) -> bool {
    [
        reason::CREDENTIALS_NOT_FOR_CLUSTER,
        reason::CREDENTIALS_NOT_FOR_ADDRESS,
    ]
    .contains(&why)
}
