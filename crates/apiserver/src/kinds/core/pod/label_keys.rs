//! `matchLabelKeys` and `mismatchLabelKeys`: a new pod's own values of these labels join the selector beside them.

use serde_json::{Value, json};

use crate::object::{
    Object, metadata,
    tree::{below, each, list, made, object_mut, text, within},
};

/// Joins them in all selectors of a new pod. O(keys).
pub(super) fn merge(pod: &mut Object) {
    let labels = below(metadata(pod), "labels").clone();
    let join = |term: &mut Object| join(term, &labels);
    let spec = made(pod, "spec");
    each(spec, "topologySpreadConstraints", join);
    within(spec, "affinity", |affinity| {
        for kind in ["podAffinity", "podAntiAffinity"] {
            within(affinity, kind, |terms| {
                each(terms, "requiredDuringSchedulingIgnoredDuringExecution", join);
                each(terms, "preferredDuringSchedulingIgnoredDuringExecution", |one| {
                    within(one, "podAffinityTerm", join);
                });
            });
        }
    });
}

/// The keys of one term. Without a selector it matches nothing, and so stays.
fn join(term: &mut Object, labels: &Object) {
    let mut added = Vec::new();
    for (field, operator) in [("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")] {
        let keys = list(term, field).iter().filter_map(Value::as_str);
        added.extend(
            keys.filter(|key| labels.contains_key(*key))
                .map(|key| json!({"key": key, "operator": operator, "values": [text(labels, key)]})),
        );
    }
    if added.is_empty() {
        return;
    }
    if let Some(selector) = object_mut(term, "labelSelector") {
        let mut all = list(selector, "matchExpressions").to_vec();
        all.extend(added);
        selector.insert("matchExpressions".to_owned(), all.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pods_own_values_join_the_selectors_beside_the_keys() {
        let term = json!({"labelSelector": {"matchLabels": {"a": "b"}}, "matchLabelKeys": ["app", "absent"],
            "mismatchLabelKeys": ["tenant"]});
        let joined = json!([{"key": "app", "operator": "In", "values": ["web"]},
            {"key": "tenant", "operator": "NotIn", "values": ["t"]}]);
        let required = "requiredDuringSchedulingIgnoredDuringExecution";
        let preferred = "preferredDuringSchedulingIgnoredDuringExecution";
        let pod = json!({"metadata": {"labels": {"app": "web", "tenant": "t"}}, "spec": {
            "topologySpreadConstraints": [term, {"matchLabelKeys": ["app"]}],
            "affinity": {"podAffinity": {(required): [term]},
                "podAntiAffinity": {(preferred): [{"weight": 1, "podAffinityTerm": term}]}}}});
        let mut object = pod.as_object().cloned().unwrap_or_default();
        merge(&mut object);
        let spec = &object["spec"];
        let terms = [
            &spec["topologySpreadConstraints"][0],
            &spec["affinity"]["podAffinity"][required][0],
            &spec["affinity"]["podAntiAffinity"][preferred][0]["podAffinityTerm"],
        ];
        for term in terms {
            assert_eq!(term["labelSelector"]["matchExpressions"], joined);
        }
        // Without a selector there is nothing to join.
        assert_eq!(
            spec["topologySpreadConstraints"][1],
            json!({"matchLabelKeys": ["app"]})
        );
    }
}
