//! The time that a copy may stay on a cluster, by the cluster's NoExecute taints and the tolerations.
//!
//! Source: the Kubernetes API reference for Toleration, and Karmada reference 4.2.

use entourage_api::cluster::Cluster;
use k8s_openapi::api::core::v1::{Taint, Toleration};

use crate::{object::Time, scheduler::taint};

/// The time that a copy may stay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stay {
    /// No NoExecute taint, or all of them are tolerated without limit.
    Unlimited,
    /// Until this time, because of this taint.
    Until(Time, String),
    /// No longer, because of this taint.
    Ends(String),
}

/// The time that a copy may stay on a cluster. The first toleration that matches a taint counts for it. A limited toleration of
/// a taint without `timeAdded` starts when that is set. Cost: O(taints × tolerations).
pub(crate) fn stay(cluster: &Cluster, tolerations: &[Toleration]) -> Stay {
    let mut until: Option<(Time, String)> = None;
    for each in cluster
        .spec
        .taints
        .iter()
        .filter(|each| each.effect == taint::NO_EXECUTE)
    {
        let Some(toleration) = tolerations
            .iter()
            .find(|toleration| taint::tolerates(toleration, each))
        else {
            return Stay::Ends(taint::display(each));
        };
        let (Some(seconds), Some(added)) = (toleration.toleration_seconds, &each.time_added) else {
            continue;
        };
        let ends = Time::from_k8s(added).plus(seconds.max(0).saturating_mul(1_000));
        if until.as_ref().is_none_or(|(held, _)| ends < *held) {
            until = Some((ends, taint::display(each)));
        }
    }
    until.map_or(Stay::Unlimited, |(time, taint)| Stay::Until(time, taint))
}

/// True if a taint is tolerated without limit. The first toleration that matches it counts. Cost: O(tolerations).
#[must_use]
pub fn tolerates_without_end(tolerations: &[Toleration], taint: &Taint) -> bool {
    let mut all = tolerations.iter();
    all.find(|toleration| taint::tolerates(toleration, taint))
        .is_some_and(|toleration| toleration.toleration_seconds.is_none())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn of(taints: &Value, tolerations: &Value) -> Stay {
        let cluster: Cluster = serde_json::from_value(json!({
            "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": "member1"},
            "spec": {"syncMode": "Push", "taints": taints},
        }))
        .unwrap();
        let tolerations: Vec<Toleration> = serde_json::from_value(tolerations.clone()).unwrap();
        stay(&cluster, &tolerations)
    }

    #[test]
    fn the_shortest_limit_of_all_no_execute_taints_counts() {
        let added = "2026-11-23T00:00:00Z";
        let start = 1_795_392_000_000;
        let a = json!({"key": "a", "effect": "NoExecute", "timeAdded": added});
        let b = json!({"key": "b", "value": "x", "effect": "NoExecute", "timeAdded": added});
        let late = json!({"key": "a", "effect": "NoExecute"});
        let soft = json!({"key": "a", "effect": "NoSchedule"});
        let all = json!([{"operator": "Exists"}]);
        let short = json!([{"key": "a", "operator": "Exists", "tolerationSeconds": 5}]);
        let both = json!([{"key": "a", "operator": "Exists", "tolerationSeconds": 50},
                          {"key": "b", "value": "x", "tolerationSeconds": 20}]);
        let negative = json!([{"key": "a", "operator": "Exists", "tolerationSeconds": -5}]);
        let cases = [
            (json!([]), json!([]), Stay::Unlimited, "no taint"),
            (
                json!([soft]),
                json!([]),
                Stay::Unlimited,
                "NoSchedule evicts nothing",
            ),
            (
                json!([a]),
                json!([]),
                Stay::Ends("{a:NoExecute}".into()),
                "not tolerated",
            ),
            (json!([a]), all, Stay::Unlimited, "tolerated without an end"),
            (
                json!([a]),
                short.clone(),
                Stay::Until(Time(start + 5_000), "{a:NoExecute}".into()),
                "tolerated for five seconds",
            ),
            (
                json!([a, b]),
                both,
                Stay::Until(Time(start + 20_000), "{b=x:NoExecute}".into()),
                "the shorter of two",
            ),
            (
                json!([a, b]),
                short.clone(),
                Stay::Ends("{b=x:NoExecute}".into()),
                "one of two is not tolerated",
            ),
            (
                json!([a]),
                negative,
                Stay::Until(Time(start), "{a:NoExecute}".into()),
                "a negative limit is none at all",
            ),
            (
                json!([late]),
                short,
                Stay::Unlimited,
                "its time is about to be filled in",
            ),
        ];
        for (taints, tolerations, wanted, why) in cases {
            assert_eq!(of(&taints, &tolerations), wanted, "{why}");
        }
    }
}
