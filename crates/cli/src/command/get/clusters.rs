//! `entourage get clusters`: the members, their state, and the number of copies on them.

use entourage_api::keys::condition;
use entourage_core::object::Time;
use serde_json::{Value, json};

use super::{
    Seen,
    bindings::copy,
    table::{Row, Shown, View, condition as condition_of, items, names, since, text},
};

pub(super) fn view(seen: &Seen, name: Option<&str>, now: Time) -> View {
    let mut all: Vec<&Value> = seen
        .clusters
        .iter()
        .filter(|cluster| name.is_none_or(|name| text(cluster, "/metadata/name") == name))
        .collect();
    all.sort_by_key(|cluster| text(cluster, "/metadata/name"));
    View {
        columns: vec![
            ("NAME", Shown::Always),
            ("READY", Shown::Always),
            ("SINCE", Shown::Always),
            ("VERSION", Shown::Always),
            ("MODE", Shown::Always),
            ("COPIES", Shown::Always),
            ("TAINTS", Shown::Always),
            ("PROVIDER", Shown::Wide),
            ("REGION", Shown::Wide),
            ("ZONES", Shown::Wide),
            ("ENDPOINT", Shown::Wide),
            ("AGE", Shown::Always),
            ("PROBLEM", Shown::Always),
        ],
        rows: all.into_iter().map(|cluster| row(seen, cluster, now)).collect(),
        more: Vec::new(),
    }
}

fn row(seen: &Seen, cluster: &Value, now: Time) -> Row {
    let name = text(cluster, "/metadata/name");
    let ready = condition_of(cluster, condition::READY);
    let copies = seen
        .bindings
        .iter()
        .filter(|binding| copy(binding, name).is_some_and(|item| item["applied"] == true))
        .count();
    let taints: Vec<String> = items(cluster, "/spec/taints").iter().map(taint).collect();
    let zones: Vec<String> = items(cluster, "/spec/zones")
        .iter()
        .filter_map(|zone| zone.as_str().map(str::to_owned))
        .collect();
    let spec = |field: &str| text(cluster, &format!("/spec/{field}")).to_owned();
    let (status, problem) = match text(ready, "/status") {
        "" if spec("syncMode") == "Pull" => ("Unknown", "its agent has not reported yet: is it running?"),
        "" => ("Unknown", "not synced yet: are the controllers running?"),
        "True" => ("True", ""),
        status => (status, text(ready, "/message")),
    };
    let leaving = !text(cluster, "/metadata/deletionTimestamp").is_empty();
    let problem = if leaving {
        "it is being removed from the hub"
    } else {
        problem
    };
    let turned = since(text(ready, "/lastTransitionTime"), now);
    let created = text(cluster, "/metadata/creationTimestamp");
    let version = text(cluster, "/status/kubernetesVersion");
    Row {
        name: format!("cluster.cluster.karmada.io/{name}"),
        cells: vec![
            name.to_owned(),
            status.to_owned(),
            turned,
            version.to_owned(),
            spec("syncMode"),
            copies.to_string(),
            names(&taints, false),
            spec("provider"),
            spec("region"),
            names(&zones, true),
            spec("apiEndpoint"),
            since(created, now),
            problem.to_owned(),
        ],
        item: json!({
            "name": name, "ready": status, "since": text(ready, "/lastTransitionTime"), "version": version,
            "mode": spec("syncMode"), "copies": copies, "taints": taints, "provider": spec("provider"),
            "region": spec("region"), "zones": zones, "endpoint": spec("apiEndpoint"), "created": created,
            "problem": problem,
        }),
    }
}

/// `key=value:Effect`, as kubectl writes it.
pub(in crate::command) fn taint(taint: &Value) -> String {
    let value = text(taint, "/value");
    let equals = if value.is_empty() { "" } else { "=" };
    format!(
        "{}{equals}{value}:{}",
        text(taint, "/key"),
        text(taint, "/effect")
    )
}
