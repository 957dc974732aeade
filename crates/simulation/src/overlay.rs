//! The result of `kubectl apply` for a stored object and a file: a three-way merge, without a server.
//!
//! A server (by a dry run) is more exact: it fills in defaults and validates. This is for plans without a server, and for the
//! body of a dry run.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use entourage_core::object::LAST_APPLIED;

/// The object after an apply of `file` over `live`. A field of the last apply that the file no longer has is removed; fields of
/// other writers stay. Lists of named items (containers, volumes, env …) are merged by name if the kind is Kubernetes' own; all
/// other lists are replaced, as for custom resources.
///
/// Cost: O(size of the objects).
#[must_use]
pub fn overlay(live: Option<&Value>, file: &Value) -> Value {
    let Some(live) = live else {
        return without_status(file);
    };
    let last = live["metadata"]["annotations"][LAST_APPLIED].as_str();
    let mut last: Value = last
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or(Value::Null);
    let group = file["apiVersion"].as_str().unwrap_or_default();
    let group = group.split_once('/').map_or("", |(group, _)| group);
    let merges_lists = !group.contains('.') || group.ends_with(".k8s.io");
    let mut file = without_status(file);
    // kubectl always writes an annotation of its own, so that the last annotation removed from the file does not remove those of
    // other writers.
    if file["metadata"]["annotations"].is_null() {
        file["metadata"]["annotations"] = Value::Object(Map::new());
    }
    let mut next = three(live, &file, &last, merges_lists);
    if let Some(status) = live.get("status") {
        next["status"] = status.clone();
    }
    entourage_core::rendered::wipe(&mut last);
    next
}

fn without_status(file: &Value) -> Value {
    let mut file = file.clone();
    // A Cluster's status in a file describes a member that cannot be probed.
    if file["kind"] != "Cluster"
        && let Some(map) = file.as_object_mut()
    {
        map.remove("status");
    }
    file
}

fn three(live: &Value, file: &Value, last: &Value, merges_lists: bool) -> Value {
    match (live, file) {
        (Value::Object(live), Value::Object(file)) => {
            let mut next = live.clone();
            for key in last.as_object().into_iter().flat_map(Map::keys) {
                if !file.contains_key(key) {
                    next.remove(key);
                }
            }
            for (key, wanted) in file {
                if wanted.is_null() {
                    next.remove(key);
                    continue;
                }
                let held = live.get(key).unwrap_or(&Value::Null);
                next.insert(key.clone(), three(held, wanted, &last[key], merges_lists));
            }
            Value::Object(next)
        }
        (Value::Array(held), Value::Array(wanted)) if merges_lists => by_name(held, wanted, last),
        (_, wanted) => wanted.clone(),
    }
}

/// Merges two lists whose items all have unique names; any other list is replaced.
fn by_name(live: &[Value], file: &[Value], last: &Value) -> Value {
    let none = Vec::new();
    let last = last.as_array().unwrap_or(&none);
    let (Some(_), Some(wanted)) = (names(live), names(file)) else {
        return Value::Array(file.to_vec());
    };
    let of = |list: &'_ [Value], name: &Value| -> Value {
        let found = list.iter().find(|item| item["name"] == *name);
        found.cloned().unwrap_or(Value::Null)
    };
    let mut next: Vec<Value> = file
        .iter()
        .map(|item| three(&of(live, &item["name"]), item, &of(last, &item["name"]), true))
        .collect();
    let others = live.iter().filter(|item| {
        let name = item["name"].as_str().unwrap_or_default();
        !wanted.contains(name) && of(last, &item["name"]).is_null()
    });
    next.extend(others.cloned());
    Value::Array(next)
}

fn names(list: &[Value]) -> Option<BTreeSet<&str>> {
    let names: BTreeSet<&str> = list.iter().filter_map(|item| item["name"].as_str()).collect();
    (names.len() == list.len()).then_some(names)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_the_last_apply_reported_and_the_file_no_longer_says_goes() {
        let last =
            json!({"metadata": {"labels": {"a": "1", "b": "2"}}, "data": {"x": "1", "y": "2"}}).to_string();
        let live = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"uid": "u", "labels": {"a": "1", "b": "2", "other": "3"}, "annotations": {LAST_APPLIED: last, "claim": "x"}},
            "data": {"x": "1", "y": "2", "z": "by hand"},
        });
        let file = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"labels": {"a": "9"}}, "data": {"x": "1"},
        });
        let next = overlay(Some(&live), &file);
        assert_eq!(next["metadata"]["labels"], json!({"a": "9", "other": "3"}));
        assert_eq!(next["data"], json!({"x": "1", "z": "by hand"}));
        assert_eq!(next["metadata"]["uid"], "u");
        assert_eq!(next["metadata"]["annotations"]["claim"], "x");
    }

    #[test]
    fn named_items_are_merged_and_keep_what_the_server_filled_in() {
        let spec = |containers: Value| json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"containers": containers}});
        let mut live = spec(json!([
            {"name": "web", "image": "nginx:1", "imagePullPolicy": "Always"},
            {"name": "old", "image": "busybox"},
            {"name": "sidecar", "image": "injected"},
        ]));
        live["metadata"]["annotations"][LAST_APPLIED] = json!(
            spec(json!([{"name": "web", "image": "nginx:1"}, {"name": "old", "image": "busybox"}]))
                .to_string()
        );
        let file = spec(json!([{"name": "web", "image": "nginx:2"}]));
        let next = overlay(Some(&live), &file);
        assert_eq!(
            next["spec"]["containers"],
            json!([
                {"name": "web", "image": "nginx:2", "imagePullPolicy": "Always"},
                {"name": "sidecar", "image": "injected"},
            ])
        );
    }

    #[test]
    fn lists_of_custom_resources_are_replaced() {
        let live = json!({"apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy",
            "spec": {"resourceSelectors": [{"name": "a", "kind": "Deployment"}, {"name": "b", "kind": "Deployment"}]}});
        let file = json!({"apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy",
            "spec": {"resourceSelectors": [{"name": "b"}]}});
        assert_eq!(overlay(Some(&live), &file)["spec"], file["spec"]);
    }

    #[test]
    fn a_status_in_a_file_counts_for_clusters_alone() {
        let of = |kind: &str| overlay(None, &json!({"kind": kind, "status": {"x": 1}}));
        assert_eq!(of("Cluster")["status"], json!({"x": 1}));
        assert_eq!(of("Deployment").get("status"), None);
    }
}
