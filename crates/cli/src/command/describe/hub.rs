//! An object as the hub has it: its policy, its binding, its clusters, and what is attached to it.

use std::collections::BTreeSet;

use anyhow::Result;
use entourage_core::{object::Time, scope};
use serde_json::Value;

use super::{
    Subject,
    sections::{conditions, events, head, line, section, table},
};
use crate::command::{
    get::{
        bindings::{clusters, copy, needed_by, policy_of, template},
        table::{items, names, text as text_of},
    },
    pods::{binding_of, bindings_in},
};

/// The state on the hub besides the object.
#[derive(Debug)]
pub(super) struct Seen {
    /// Its binding, or why it cannot be read.
    binding: Result<Option<Value>, String>,
    /// The bindings of its dependencies.
    dependencies: Vec<Value>,
    /// Bindings that cannot be read, with the cause.
    unread: Vec<String>,
    /// The events about the object, and about its binding.
    events: Result<Vec<Value>, String>,
}

pub(super) async fn read(subject: &Subject<'_>, object: &Value) -> Result<Seen> {
    let hub = &subject.server;
    let kind = (&subject.gvk, &subject.served);
    let binding = binding_of(hub, kind, subject.namespace, subject.name).await;
    let binding = binding.map_err(|error| format!("{error:#}"));
    let mut all = subject.events(object).await;
    let (mut dependencies, mut unread) = (Vec::new(), Vec::new());
    if let Ok(Some(binding)) = &binding {
        if let Ok(all) = &mut all {
            all.extend(subject.events(binding).await.unwrap_or_default());
        }
        // Dependencies of a namespaced object are in its namespace or in none.
        for (kind, namespace) in [
            (scope::BINDING.kind, subject.namespace),
            (scope::CLUSTER_BINDING.kind, ""),
        ] {
            match bindings_in(hub, kind, namespace).await {
                Ok(all) => dependencies.extend(all.into_iter().filter(|each| is_attached(each, binding))),
                Err(error) => unread.push(format!("{error:#}")),
            }
        }
    }
    Ok(Seen {
        binding,
        dependencies,
        unread,
        events: all,
    })
}

/// True if a binding is that of a dependency of another one.
fn is_attached(each: &Value, to: &Value) -> bool {
    let (namespace, name) = (text_of(to, "/metadata/namespace"), text_of(to, "/metadata/name"));
    items(each, "/spec/requiredBy")
        .iter()
        .any(|by| text_of(by, "/namespace") == namespace && text_of(by, "/name") == name)
}

/// The description of an object of the hub.
pub(super) fn text(object: &Value, seen: &Seen, now: Time) -> String {
    let mut text = head(object, now);
    let binding = match &seen.binding {
        Ok(Some(binding)) => Some(binding),
        Ok(None) => {
            text.push_str(&line("Policy", "none: it is not propagated"));
            None
        }
        Err(why) => {
            text.push_str(&line("Binding", &format!("cannot be read: {why}")));
            None
        }
    };
    if let Some(binding) = binding {
        text.push_str(&line("Policy", &policy(binding)));
        let kind = text_of(binding, "/kind");
        text.push_str(&line(
            "Binding",
            &format!("{kind} {}", text_of(binding, "/metadata/name")),
        ));
        let needed = needed_by(binding, None);
        if !needed.is_empty() {
            text.push_str(&line("Required by", &names(&needed, true)));
        }
        text.push_str(&section("Clusters", &places(binding)));
    }
    text.push_str(&section("Conditions", &conditions(object, now)));
    if let Some(binding) = binding {
        text.push_str(&section("Conditions of the binding", &conditions(binding, now)));
    }
    let mut attached = dependencies(&seen.dependencies);
    for why in &seen.unread {
        attached.push_str(&format!("not all are known: {why}\n"));
    }
    text.push_str(&section("Dependencies", &attached));
    text.push_str(&section("Events", &events(&seen.events, now)));
    text
}

/// `PropagationPolicy shop/web`.
fn policy(binding: &Value) -> String {
    match policy_of(binding) {
        Some(policy) if policy.namespace.is_empty() => format!("{} {policy}", scope::CLUSTER_POLICY.kind),
        Some(policy) => format!("{} {policy}", scope::POLICY.kind),
        None => "none: it is there as a dependency".to_owned(),
    }
}

/// The clusters of a binding, and those that still have a copy.
fn places(binding: &Value) -> String {
    let recorded = items(binding, "/status/aggregatedStatus").iter();
    let recorded = recorded.map(|item| text_of(item, "/clusterName").to_owned());
    let wanted = clusters(binding);
    let all: BTreeSet<String> = wanted.iter().cloned().chain(recorded).collect();
    let rows = all.iter().map(|cluster| {
        let own = items(binding, "/spec/clusters").iter();
        let mut own = own.filter(|target| target["name"] == **cluster);
        let replicas = own.find_map(|target| target["replicas"].as_i64());
        let none = Value::Null;
        let item = copy(binding, cluster).unwrap_or(&none);
        let state = match text_of(item, "/appliedReason") {
            _ if !wanted.contains(cluster) => "Leaving",
            _ if item["applied"] == true => "Applied",
            "" if text_of(item, "/appliedMessage").is_empty() => "Pending",
            "" => "NotApplied",
            reason => reason,
        };
        [
            cluster.clone(),
            replicas.map(|count| count.to_string()).unwrap_or_default(),
            state.to_owned(),
            text_of(item, "/health").to_owned(),
            text_of(item, "/appliedMessage").to_owned(),
        ]
    });
    table(
        ["CLUSTER", "REPLICAS", "STATE", "HEALTH", "MESSAGE"],
        rows.collect(),
    )
}

/// The dependencies, and on how many of their clusters they are applied.
fn dependencies(bindings: &[Value]) -> String {
    let mut rows: Vec<[String; 3]> = bindings
        .iter()
        .map(|binding| {
            let clusters: Vec<String> = clusters(binding).into_iter().collect();
            let is_applied =
                |cluster: &&String| copy(binding, cluster).is_some_and(|item| item["applied"] == true);
            let applied = clusters.iter().filter(is_applied).count();
            [
                template(binding),
                names(&clusters, false),
                format!("{applied}/{}", clusters.len()),
            ]
        })
        .collect();
    rows.sort();
    table(["OBJECT", "CLUSTERS", "APPLIED"], rows)
}

#[cfg(test)]
pub(super) fn seen(binding: Option<Value>, dependencies: Vec<Value>, events: Vec<Value>) -> Seen {
    Seen {
        binding: Ok(binding),
        dependencies,
        unread: Vec::new(),
        events: Ok(events),
    }
}
