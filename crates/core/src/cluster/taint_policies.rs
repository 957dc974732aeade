//! ClusterTaintPolicies: the taints that they add to a Cluster, and those that they remove.
//!
//! Source: Karmada reference 4.1, and the behaviour of its controller: policies are applied from the oldest to the youngest,
//! ties by name, and the last one about a taint counts; within one policy, removals are applied last. An existing taint keeps
//! its value and its time. A condition that the Cluster does not have matches nothing, neither `In` nor `NotIn`. A taint added
//! by a policy stays when the policy is deleted.

use entourage_api::policy::{ClusterTaintPolicy, MatchCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::{
    cache::Member,
    fleet::Fleet,
    object::{Str, Time},
    readiness::is_ready,
    scheduler::{Candidate, affinity},
};

/// The order of a policy about one taint; of all orders about it, the last one counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) key: String,
    pub(crate) effect: String,
    /// The value to add it with; `None` removes it.
    pub(crate) add: Option<String>,
    /// The policy.
    pub(crate) by: Str,
}

/// The orders of all policies about a Cluster as it is stored. Empty before all policies are synced: the last order counts.
/// Cost: O(policies × (their affinity + conditions + taints)).
pub(super) fn orders(fleet: &Fleet, name: &str, member: &Member) -> Vec<Order> {
    if !fleet.are_taint_policies_listed() {
        return Vec::new();
    }
    let conditions = member.object.status.as_ref();
    let conditions = conditions.map_or(&[][..], |status| &status.conditions);
    let candidate = Candidate {
        name,
        labels: &member.meta.labels,
        cluster: &member.object,
        ready: is_ready(&member.object),
        deleting: false,
    };
    let mut policies: Vec<_> = fleet
        .cache
        .taint_policies
        .iter()
        .filter(|(_, policy)| {
            let targets = policy.object.spec.target_clusters.as_ref();
            policy.meta.deleting.is_none()
                && targets.is_none_or(|targets| affinity::selects(targets, &candidate))
        })
        .collect();
    policies.sort_by_key(|(_, policy)| policy.meta.created.unwrap_or(Time(0)));
    policies
        .into_iter()
        .flat_map(|(name, policy)| orders_of(name, &policy.object, conditions))
        .collect()
}

/// The orders of one policy for a Cluster with these conditions.
fn orders_of(name: &Str, policy: &ClusterTaintPolicy, conditions: &[Condition]) -> Vec<Order> {
    let spec = &policy.spec;
    let adds = hold(conditions, &spec.add_on_conditions);
    let removes = hold(conditions, &spec.remove_on_conditions);
    if !adds && !removes {
        return Vec::new();
    }
    let order = |taint: &entourage_api::policy::PolicyTaint| Order {
        key: taint.key.clone(),
        effect: taint.effect.clone(),
        add: (!removes).then(|| taint.value.clone()),
        by: name.clone(),
    };
    spec.taints.iter().map(order).collect()
}

/// True if all of the wanted conditions are met; false if none are wanted.
fn hold(conditions: &[Condition], wanted: &[MatchCondition]) -> bool {
    !wanted.is_empty()
        && wanted.iter().all(|wanted| {
            let of_type = conditions.iter().find(|each| each.type_ == wanted.condition_type);
            of_type.is_some_and(|held| {
                let is_listed = wanted.status_values.contains(&held.status);
                match wanted.operator.as_str() {
                    "In" => is_listed,
                    "NotIn" => !is_listed,
                    _ => false,
                }
            })
        })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn condition(type_: &str, status: &str) -> Condition {
        Condition {
            type_: type_.into(),
            status: status.into(),
            reason: "Because".into(),
            message: String::new(),
            observed_generation: None,
            last_transition_time: Time(0).to_k8s(),
        }
    }

    #[test]
    fn conditions_are_matched_as_karmada_matches_them() {
        let held = [condition("Ready", "False"), condition("Effective", "Unknown")];
        let table = [
            (json!([]), false),
            (json!([["Ready", "In", ["False"]]]), true),
            (json!([["Ready", "In", ["True", "False"]]]), true),
            (json!([["Ready", "In", ["True"]]]), false),
            (json!([["Ready", "NotIn", ["True"]]]), true),
            (json!([["Ready", "NotIn", ["True", "False"]]]), false),
            (json!([["Ready", "In", []]]), false),
            (json!([["Ready", "NotIn", []]]), true),
            (
                json!([["Ready", "In", ["False"]], ["Effective", "NotIn", ["True"]]]),
                true,
            ),
            (
                json!([["Ready", "In", ["False"]], ["Effective", "In", ["True"]]]),
                false,
            ),
            // A condition that the Cluster does not have.
            (json!([["Other", "In", ["True"]]]), false),
            (json!([["Other", "NotIn", ["True"]]]), false),
            (json!([["Ready", "Exists", ["False"]]]), false),
        ];
        for (wanted, holds) in table {
            let wanted: Vec<MatchCondition> = wanted
                .as_array()
                .expect("list")
                .iter()
                .map(|each| {
                    serde_json::from_value(
                        json!({"conditionType": each[0], "operator": each[1], "statusValues": each[2]}),
                    )
                    .expect("condition")
                })
                .collect();
            assert_eq!(hold(&held, &wanted), holds, "{wanted:?}");
        }
    }

    #[test]
    fn of_one_policy_that_adds_and_removes_removing_counts() {
        let spec = |add: &str, remove: &str| {
            let on = |status: &str| json!([{"conditionType": "Ready", "operator": "In", "statusValues": [status]}]);
            serde_json::from_value(json!({
                "apiVersion": "policy.karmada.io/v1alpha1", "kind": "ClusterTaintPolicy", "metadata": {"name": "p"},
                "spec": {"addOnConditions": on(add), "removeOnConditions": on(remove),
                    "taints": [{"key": "a", "effect": "NoExecute", "value": "v"}]},
            }))
            .expect("policy")
        };
        let table = [
            ("False", "True", Some(Some("v"))),
            ("True", "False", Some(None)),
            ("False", "False", Some(None)),
            ("True", "True", None),
        ];
        for (add, remove, wanted) in table {
            let orders = orders_of(&"p".into(), &spec(add, remove), &[condition("Ready", "False")]);
            let first = orders.first().map(|order| order.add.as_deref());
            assert_eq!(first, wanted, "{add} {remove}");
        }
    }
}
