//! The ClusterTaintPolicies of a hub that evict from members that are down.

use anyhow::{Context as _, Result};
use entourage_api::keys::condition;
use kube::{
    Client,
    api::{ApiResource, ListParams},
};
use serde_json::{Value, json};

use crate::{
    connect::{self, explain},
    kinds::Served,
    lists::{PAGE, list},
};

/// The ClusterTaintPolicies of a hub; none if it does not serve the kind.
///
/// # Errors
/// They cannot be read.
pub async fn policies(hub: &Client) -> Result<Vec<Value>> {
    let served = Served {
        resource: ApiResource {
            group: "policy.karmada.io".to_owned(),
            version: "v1alpha1".to_owned(),
            api_version: "policy.karmada.io/v1alpha1".to_owned(),
            kind: "ClusterTaintPolicy".to_owned(),
            plural: "clustertaintpolicies".to_owned(),
        },
        namespaced: false,
    };
    match list(hub, &served, "", &ListParams::default().limit(PAGE)).await {
        Err(error) if connect::is_not_found(&error) => Ok(Vec::new()),
        policies => policies
            .map_err(explain)
            .context("cannot read the ClusterTaintPolicies of the hub"),
    }
}

/// The key of the NoExecute taint that a policy adds to members that are not ready, or `None` if there is none.
#[must_use]
pub fn evicting_key(policies: &[Value]) -> Option<&str> {
    let on_ready = |policy: &&Value| {
        let mut conditions = each(&policy["spec"]["addOnConditions"]);
        conditions.any(|each| each["conditionType"] == condition::READY)
    };
    let policies = policies.iter().filter(on_ready);
    let mut taints = policies.flat_map(|policy| each(&policy["spec"]["taints"]));
    taints.find(|taint| taint["effect"] == "NoExecute")?["key"].as_str()
}

/// The policies for this NoExecute taint, without the conditions that remove it: a failed member does not meet them.
pub(super) fn kept(policies: &[Value], key: &str) -> Vec<Value> {
    let is_about = |policy: &&Value| {
        let mut taints = each(&policy["spec"]["taints"]);
        taints.any(|taint| taint["key"] == key && taint["effect"] == "NoExecute")
    };
    let of_it = policies.iter().filter(is_about);
    let without = of_it.map(|policy| {
        let mut spec = policy["spec"].clone();
        spec["removeOnConditions"] = json!([]);
        json!({"apiVersion": policy["apiVersion"], "kind": policy["kind"],
            "metadata": {"name": policy["metadata"]["name"]}, "spec": spec})
    });
    without.collect()
}

fn each(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(key: &str, effect: &str, on: &str) -> Value {
        json!({"apiVersion": "policy.karmada.io/v1alpha1", "kind": "ClusterTaintPolicy",
            "metadata": {"name": key, "uid": "1"},
            "spec": {"taints": [{"key": key, "effect": effect}],
                "addOnConditions": [{"conditionType": on, "operator": "In", "statusValues": ["False"]}],
                "removeOnConditions": [{"conditionType": on, "operator": "In", "statusValues": ["True"]}]}})
    }

    #[test]
    fn the_policy_that_evicts_from_dead_members_is_found_among_others() {
        let all = [
            policy("slow", "NoSchedule", "Ready"),
            policy("network", "NoExecute", "NetworkUp"),
            policy("dead", "NoExecute", "Ready"),
        ];
        assert_eq!(evicting_key(&all), Some("dead"));
        assert_eq!(evicting_key(&all[..2]), None);
    }

    #[test]
    fn a_member_that_failed_keeps_the_taint_that_policies_would_take_off() {
        let kept = kept(
            &[
                policy("dead", "NoExecute", "Ready"),
                policy("dead", "NoSchedule", "Ready"),
            ],
            "dead",
        );
        assert_eq!(kept.len(), 1);
        assert_eq!(kept[0]["spec"]["removeOnConditions"], json!([]));
        assert_eq!(kept[0]["spec"]["taints"][0]["key"], "dead");
        assert_eq!(kept[0]["metadata"], json!({"name": "dead"}));
    }
}
