//! `entourage get bindings`: the target clusters of each template, its policy, and its progress.

use std::collections::{BTreeMap, BTreeSet};

use entourage_api::keys::condition;
use entourage_core::{
    object::{Meta, NamespacedName, Time},
    scope,
};
use serde_json::{Value, json};

use super::{
    Seen, policies,
    table::{Row, Shown, View, condition as condition_of, items, names, since, text},
};

pub(super) fn view(seen: &Seen, name: Option<&str>, now: Time) -> View {
    let mut all: Vec<&Value> = seen
        .bindings
        .iter()
        .filter(|binding| name.is_none_or(|name| is_of(binding, name)))
        .collect();
    all.sort_by_key(|binding| {
        (
            text(binding, "/metadata/namespace"),
            text(binding, "/metadata/name"),
        )
    });
    View {
        columns: vec![
            ("NAMESPACE", Shown::AllNamespaces),
            ("NAME", Shown::Always),
            ("TEMPLATE", Shown::Always),
            ("POLICY", Shown::Always),
            ("MATCHED BY", Shown::Wide),
            ("NEEDED BY", Shown::Always),
            ("CLUSTERS", Shown::Always),
            ("SCHEDULED", Shown::Always),
            ("APPLIED", Shown::Always),
            ("DEPENDENCIES", Shown::Always),
            ("AGE", Shown::Always),
            ("PROBLEM", Shown::Always),
        ],
        rows: all.into_iter().map(|binding| row(seen, binding, now)).collect(),
        more: Vec::new(),
    }
}

/// True if a name is the binding's or its template's.
pub(super) fn is_of(binding: &Value, name: &str) -> bool {
    text(binding, "/metadata/name") == name || text(binding, "/spec/resource/name") == name
}

/// `Deployment web`.
pub(in crate::command) fn template(binding: &Value) -> String {
    format!(
        "{} {}",
        text(binding, "/spec/resource/kind"),
        text(binding, "/spec/resource/name")
    )
}

/// The clusters of the binding: its own, and those of its dependents.
pub(in crate::command) fn clusters(binding: &Value) -> BTreeSet<String> {
    let required = items(binding, "/spec/requiredBy")
        .iter()
        .flat_map(|each| items(each, "/clusters"));
    let all = items(binding, "/spec/clusters").iter().chain(required);
    all.map(|target| text(target, "/name").to_owned()).collect()
}

/// The bindings of its dependents, on one cluster or on any.
pub(in crate::command) fn needed_by(binding: &Value, cluster: Option<&str>) -> Vec<String> {
    let of = |each: &&Value| {
        cluster.is_none_or(|cluster| {
            items(each, "/clusters")
                .iter()
                .any(|target| target["name"] == *cluster)
        })
    };
    let required = items(binding, "/spec/requiredBy").iter().filter(of);
    required.map(|each| text(each, "/name").to_owned()).collect()
}

/// The recorded copy of the binding on the cluster, or `None` if there is none.
pub(in crate::command) fn copy<'a>(binding: &'a Value, cluster: &str) -> Option<&'a Value> {
    items(binding, "/status/aggregatedStatus")
        .iter()
        .find(|item| item["clusterName"] == *cluster)
}

/// The replicas that are scheduled to each cluster; a kind without replicas has none.
pub(super) fn replicas(binding: &Value) -> BTreeMap<String, i64> {
    let targets = items(binding, "/spec/clusters").iter();
    targets
        .filter_map(|target| {
            let replicas = target["replicas"].as_i64().filter(|replicas| *replicas > 0)?;
            Some((text(target, "/name").to_owned(), replicas))
        })
        .collect()
}

fn row(seen: &Seen, binding: &Value, now: Time) -> Row {
    let clusters: Vec<String> = clusters(binding).into_iter().collect();
    let replicas = replicas(binding);
    let with_replicas: Vec<String> = clusters
        .iter()
        .map(|cluster| match replicas.get(cluster) {
            Some(replicas) => format!("{cluster}={replicas}"),
            None => cluster.clone(),
        })
        .collect();
    let needed = needed_by(binding, None);
    let applied = clusters
        .iter()
        .filter(|cluster| copy(binding, cluster).is_some_and(|item| item["applied"] == true))
        .count();
    let policy = policy_of(binding);
    let matched = policy
        .as_ref()
        .and_then(|policy| policies::find(seen, policy))
        .map(|policy| policies::matched_by(policy, &binding["spec"]["resource"]))
        .unwrap_or_default();
    let status = |type_: &str| text(condition_of(binding, type_), "/status").to_owned();
    let dependencies = condition_of(binding, condition::DEPENDENCIES_READY);
    let dependencies = match text(dependencies, "/status") {
        "" => String::new(),
        "True" => "Ready".to_owned(),
        _ => text(dependencies, "/reason").to_owned(),
    };
    let problem = problem(binding);
    let kind = text(binding, "/kind").to_lowercase();
    let (namespace, name) = (
        text(binding, "/metadata/namespace"),
        text(binding, "/metadata/name"),
    );
    let item = json!({
        "namespace": namespace, "name": name, "template": binding["spec"]["resource"],
        "policy": policy.as_ref().map(ToString::to_string), "matchedBy": matched, "neededBy": needed,
        "clusters": clusters, "replicas": replicas, "scheduled": status(condition::SCHEDULED), "applied": applied,
        "dependencies": dependencies, "problem": problem,
    });
    Row {
        name: format!("{kind}.work.karmada.io/{name}"),
        cells: vec![
            namespace.to_owned(),
            name.to_owned(),
            template(binding),
            policy.map(|policy| policy.to_string()).unwrap_or_default(),
            matched,
            names(&needed, false),
            names(&with_replicas, false),
            status(condition::SCHEDULED),
            format!("{applied}/{}", clusters.len()),
            dependencies,
            since(text(binding, "/metadata/creationTimestamp"), now),
            problem,
        ],
        item,
    }
}

/// The policy that made the binding.
pub(in crate::command) fn policy_of(binding: &Value) -> Option<NamespacedName> {
    scope::claim_of(&Meta::of(binding))
}

/// The messages of failed conditions: cause and remedy.
pub(in crate::command) fn problem(binding: &Value) -> String {
    let types = [
        condition::SCHEDULED,
        condition::DEPENDENCIES_READY,
        condition::FULLY_APPLIED,
        condition::HEALTHY,
    ];
    let bad = types
        .iter()
        .map(|type_| condition_of(binding, type_))
        .filter(|each| each["status"] == "False");
    bad.map(|each| text(each, "/message"))
        .collect::<Vec<_>>()
        .join("; ")
}
