//! The target namespaces of a configuration. Names are plain strings in it, and objects in the output.
//!
//! `namespaces`, `all` and `workloadLabelSelector`, which the original does not have, are copied as they are given.

use serde_json::{Map, Value, json};

use super::{Wrong, node::Node};
use crate::selector;

/// The fields that select namespaces; one is required. The first four are the original's.
const CHOOSING: [&str; 7] = [
    "allNamespaces",
    "includedNamespaces",
    "excludedNamespaces",
    "namespaceLabelSelector",
    "namespaces",
    "all",
    "workloadLabelSelector",
];

/// The field that limits the clusters, and selects no namespace.
const CLUSTERS: &str = "clusters";

/// Reads the targets of the distribution.
pub(super) fn read(node: &Node<'_>, wrong: &mut Vec<Wrong>) -> Value {
    let faults = wrong.len();
    let mut known = CHOOSING.to_vec();
    known.push(CLUSTERS);
    node.only(&known, wrong);
    let mut targets = Map::new();
    if node.at("allNamespaces").flag(wrong) {
        targets.insert("allNamespaces".into(), true.into());
    }
    for key in ["includedNamespaces", "excludedNamespaces"] {
        let names = node.at(key);
        if names.is_given() {
            let items = names.items(wrong).into_iter();
            let list: Vec<Value> = items.map(|item| json!({"name": item.namespace(wrong)})).collect();
            targets.insert(key.into(), json!({ "list": list }));
        }
    }
    for (key, inner) in [("namespaces", "name"), ("all", "exception")] {
        let entries = node.at(key);
        if entries.is_given() {
            targets.insert(key.into(), named(&entries, inner, wrong));
        }
    }
    let namespaces = node.at("namespaceLabelSelector");
    namespaces.only(&["matchLabels", "matchExpressions"], wrong);
    let namespaces = selector_of(&namespaces, wrong);
    let workloads = workloads(&node.at("workloadLabelSelector"), wrong);
    for (key, selector) in [
        ("namespaceLabelSelector", namespaces),
        ("workloadLabelSelector", workloads),
    ] {
        // An empty selector selects nothing.
        if !selector.is_empty() {
            targets.insert(key.into(), selector.into());
        }
    }
    if targets.is_empty() && wrong.len() == faults {
        wrong.push(node.wrong(format!(
            "selects no namespace; give one of {}",
            CHOOSING.join(", ")
        )));
    }
    let clusters = node.at(CLUSTERS);
    if clusters.is_given() {
        let names = clusters.items(wrong).into_iter();
        let names: Vec<Value> = names.map(|name| name.name(wrong).into()).collect();
        targets.insert(CLUSTERS.into(), json!({ "clusterNames": names }));
    }
    targets.into()
}

/// Labels, validated as a server would.
pub(super) fn labels(node: &Node<'_>, wrong: &mut Vec<Wrong>) -> Map<String, Value> {
    let mut labels = Map::new();
    for (key, node) in node.entries(wrong) {
        let value = node.text(wrong).unwrap_or_default();
        if let Err(why) = selector::check_key(key).and_then(|()| selector::check_value(&value)) {
            wrong.push(node.wrong(why));
        }
        labels.insert(key.to_owned(), value.into());
    }
    labels
}

/// A list of objects with one name each.
fn named(list: &Node<'_>, key: &str, wrong: &mut Vec<Wrong>) -> Value {
    let entries = list.items(wrong).into_iter().filter_map(|entry| {
        let is_map = entry.only(&[key], wrong);
        is_map.then(|| json!({ key: entry.at(key).namespace(wrong) }))
    });
    entries.collect()
}

/// `matchLabels` and `matchExpressions`, sorted: equal selectors have equal output.
fn selector_of(node: &Node<'_>, wrong: &mut Vec<Wrong>) -> Map<String, Value> {
    let mut selector = Map::new();
    let labels = labels(&node.at("matchLabels"), wrong);
    if !labels.is_empty() {
        selector.insert("matchLabels".into(), labels.into());
    }
    let expressions = node.at("matchExpressions").items(wrong).into_iter();
    let mut expressions: Vec<(String, Value)> = expressions
        .map(|expression| requirement(&expression, wrong))
        .collect();
    expressions.sort_by(|(one, _), (other, _)| one.cmp(other));
    if !expressions.is_empty() {
        let expressions: Vec<Value> = expressions.into_iter().map(|(_, value)| value).collect();
        selector.insert("matchExpressions".into(), expressions.into());
    }
    selector
}

/// One of `matchExpressions`, with its key.
fn requirement(node: &Node<'_>, wrong: &mut Vec<Wrong>) -> (String, Value) {
    node.only(&["key", "operator", "values"], wrong);
    let (key_node, operator_node, values_node) = (node.at("key"), node.at("operator"), node.at("values"));
    let key = key_node.text(wrong).unwrap_or_default();
    if key.is_empty() {
        wrong.push(key_node.wrong("is empty; give the key of a label"));
    } else if let Err(why) = selector::check_key(&key) {
        wrong.push(key_node.wrong(why));
    }
    let operator = operator_node.text(wrong).unwrap_or_default();
    let mut values = Vec::new();
    for value_node in values_node.items(wrong) {
        let value = value_node.text(wrong).unwrap_or_default();
        if value.is_empty() {
            wrong.push(value_node.wrong("is empty; give the value of a label"));
        } else if let Err(why) = selector::check_value(&value) {
            wrong.push(value_node.wrong(why));
        } else if values.contains(&value) {
            wrong.push(value_node.wrong("is given twice; remove one of the two"));
        } else {
            values.push(value);
        }
    }
    values.sort();
    let mut requirement = Map::new();
    requirement.insert("key".into(), key.clone().into());
    requirement.insert("operator".into(), operator.clone().into());
    match operator.as_str() {
        "In" | "NotIn" if values_node.is_empty() => {
            wrong.push(values_node.wrong(format!("is empty; {operator} takes at least one value")));
        }
        "In" | "NotIn" => {
            requirement.insert("values".into(), values.into());
        }
        "Exists" | "DoesNotExist" if values_node.is_empty() => {}
        "Exists" | "DoesNotExist" => {
            wrong.push(values_node.wrong(format!("must be left out: {operator} takes no values")));
        }
        _ => wrong.push(operator_node.wrong("must be In, NotIn, Exists or DoesNotExist")),
    }
    (key, requirement.into())
}

/// The labels of workloads: a flat map, or a label selector.
fn workloads(node: &Node<'_>, wrong: &mut Vec<Wrong>) -> Map<String, Value> {
    // So a label with one of these names needs a selector.
    let parts = ["matchLabels", "matchExpressions"];
    if !parts.iter().any(|part| node.at(part).is_given()) {
        return labels(node, wrong);
    }
    node.only(&parts, wrong);
    let selector = selector_of(node, wrong);
    if selector.is_empty() {
        wrong.push(node.wrong("selects no workload; give matchLabels or matchExpressions"));
    }
    selector
}
