//! `entourage get distributions`: one ConfigMap or Secret in many namespaces: the namespaces with and without it, and the
//! causes.

use std::borrow::Cow;

use entourage_api::keys::annotation;
use entourage_core::{distribution, object::Time};
use serde_json::{Value, json};

use super::{
    Seen,
    table::{Row, Shown, View, items, since, text},
};

pub(super) fn view(seen: &Seen, name: Option<&str>, now: Time) -> View {
    let mut all: Vec<&Value> = seen
        .distributions
        .iter()
        .filter(|each| name.is_none_or(|name| text(each, "/metadata/name") == name))
        .collect();
    all.sort_by_key(|each| text(each, "/metadata/name"));
    // A single distribution is shown with all its failures.
    let more = match (name, all.first()) {
        (Some(_), Some(one)) => [failures(one), clusters(seen, one)]
            .into_iter()
            .filter(|view| !view.rows.is_empty())
            .collect(),
        _ => Vec::new(),
    };
    View {
        columns: vec![
            ("NAME", Shown::Always),
            ("KIND", Shown::Always),
            ("OBJECT", Shown::Always),
            ("TARGETS", Shown::Always),
            ("READY", Shown::Always),
            ("FAILED", Shown::Always),
            ("CONFLICTS", Shown::Always),
            ("POLICY", Shown::Always),
            ("DELETION", Shown::Wide),
            ("CLAIMED BY", Shown::Wide),
            ("AGE", Shown::Always),
            ("MESSAGE", Shown::Always),
        ],
        rows: all
            .into_iter()
            .map(|each| row(seen, each, name.is_some(), now))
            .collect(),
        more,
    }
}

/// The distributed object: the embedded resource, or an object on the hub.
pub(in crate::command) struct Source<'a> {
    pub(in crate::command) kind: &'a str,
    pub(in crate::command) name: &'a str,
    /// Its namespace; empty for an embedded resource.
    pub(in crate::command) namespace: &'a str,
}

impl<'a> Source<'a> {
    pub(in crate::command) fn of(distribution: &'a Value) -> Self {
        let inside = &distribution["spec"]["resource"];
        if inside.is_null() {
            let from = &distribution["spec"]["resourceFrom"];
            return Self {
                kind: text(from, "/kind"),
                name: text(from, "/name"),
                namespace: text(from, "/namespace"),
            };
        }
        Self {
            kind: text(inside, "/kind"),
            name: text(inside, "/metadata/name"),
            namespace: "",
        }
    }
}

fn row(seen: &Seen, distribution: &Value, with_failures: bool, now: Time) -> Row {
    let name = text(distribution, "/metadata/name");
    let source = Source::of(distribution);
    let object = match source.namespace {
        "" => source.name.to_owned(),
        namespace => format!("{} of {namespace}", source.name),
    };
    let count = |field: &str| distribution["status"][field].as_i64().unwrap_or_default();
    let conflicts = condition(distribution, "ConflictOccurred").map_or(0, how_many);
    let or = |pointer: &str, absent: &'static str| match text(distribution, pointer) {
        "" => absent.to_owned(),
        given => given.to_owned(),
    };
    let policy = or("/spec/writePolicy", "ignore");
    let deletion = or("/spec/deletionPolicy", "Delete");
    let claimed = claimed_by(distribution);
    let message = message(distribution);
    let mut item = json!({
        "name": name, "kind": source.kind, "object": source.name, "desired": count("desired"),
        "succeeded": count("succeeded"), "failed": count("failed"), "conflicts": conflicts, "writePolicy": policy,
        "deletionPolicy": deletion, "claimedBy": claimed, "message": message,
    });
    if !source.namespace.is_empty() {
        item["sourceNamespace"] = json!(source.namespace);
    }
    if with_failures {
        let rows = |view: View| -> Vec<Value> { view.rows.into_iter().map(|row| row.item).collect() };
        item["failures"] = rows(failures(distribution)).into();
        item["clusters"] = rows(clusters(seen, distribution)).into();
    }
    Row {
        name: format!("resourcedistribution.apps.kruise.io/{name}"),
        cells: vec![
            name.to_owned(),
            source.kind.to_owned(),
            object,
            count("desired").to_string(),
            count("succeeded").to_string(),
            count("failed").to_string(),
            conflicts.to_string(),
            policy,
            deletion,
            claimed.to_owned(),
            since(text(distribution, "/metadata/creationTimestamp"), now),
            message.into_owned(),
        ],
        item,
    }
}

/// Its state in a sentence. OpenKruise writes none: then the first reason.
pub(in crate::command) fn message(distribution: &Value) -> Cow<'_, str> {
    let description = text(distribution, "/status/description");
    if !description.is_empty() {
        return description.into();
    }
    if distribution["status"]["observedGeneration"].is_null() {
        if !claimed_by(distribution).is_empty() {
            return "a policy propagates it to members, and nothing is reported yet".into();
        }
        return "not synced yet: are controllers running with the feature gate ResourceDistributionGate?"
            .into();
    }
    let failed = items(distribution, "/status/conditions").iter();
    let mut failed = failed.filter(|each| each["status"] == "True");
    failed.next().map_or("", |each| text(each, "/reason")).into()
}

pub(in crate::command) fn condition<'a>(distribution: &'a Value, type_: &str) -> Option<&'a Value> {
    let mut all = items(distribution, "/status/conditions").iter();
    all.find(|each| each["type"] == type_)
}

/// The failed namespaces of a condition, under either of the field's names.
fn named(condition: &Value) -> &[Value] {
    match items(condition, "/failedNamespace") {
        [] => items(condition, "/failedNamespaces"),
        all => all,
    }
}

/// The number of namespaces for which a condition is True; OpenKruise lists them all and writes no count.
pub(in crate::command) fn how_many(condition: &Value) -> i64 {
    let named = i64::try_from(named(condition).len()).unwrap_or(i64::MAX);
    condition["count"].as_i64().unwrap_or_default().max(named)
}

/// The namespaces without it, condition by condition, each with the reason as far as it is recorded: a condition has one
/// reason, that of its first namespace, and a conflict names the owner of the existing object.
fn failures(distribution: &Value) -> View {
    let mut rows = Vec::new();
    for each in items(distribution, "/status/conditions") {
        if each["status"] != "True" {
            continue;
        }
        let (type_, first) = (text(each, "/type"), text(each, "/reason"));
        let named = named(each);
        for (at, place) in named.iter().filter_map(Value::as_str).enumerate() {
            let owner = owner(distribution, place).filter(|_| type_ == "ConflictOccurred");
            let reason = match owner {
                Some("") => {
                    "an object that is not managed by it already exists; it has no controller".to_owned()
                }
                Some(owner) => format!("an object of {owner} already exists"),
                None if at == 0 => first.to_owned(),
                None => String::new(),
            };
            rows.push(failure(place, type_, reason));
        }
        let more = how_many(each) - i64::try_from(named.len()).unwrap_or(i64::MAX);
        if more > 0 {
            rows.push(failure(&format!("and {more} more"), type_, String::new()));
        } else if named.is_empty() {
            rows.push(failure("", type_, first.to_owned()));
        }
    }
    View {
        columns: vec![
            ("FAILING IN", Shown::Always),
            ("CONDITION", Shown::Always),
            ("REASON", Shown::Always),
        ],
        rows,
        more: Vec::new(),
    }
}

fn failure(place: &str, condition: &str, reason: String) -> Row {
    Row {
        name: String::new(),
        item: json!({ "namespace": place, "condition": condition, "reason": reason }),
        cells: vec![place.to_owned(), condition.to_owned(), reason],
    }
}

/// The owner of the conflicting object in a target (`namespace`, or `cluster/namespace`); empty if it has no controller.
fn owner<'a>(distribution: &'a Value, place: &str) -> Option<&'a str> {
    let (cluster, namespace) = place.split_once('/').unwrap_or(("", place));
    let mut all = items(distribution, "/status/conflictingNamespaces").iter();
    let of_it = |each: &&Value| text(each, "/name") == namespace && text(each, "/cluster") == cluster;
    all.find(of_it).map(|each| text(each, "/owner"))
}

/// The policy that propagates it to members; empty if there is none.
fn claimed_by(distribution: &Value) -> &str {
    let annotations = &distribution["metadata"]["annotations"];
    annotations[annotation::CLUSTER_PROPAGATION_POLICY_NAME]
        .as_str()
        .unwrap_or_default()
}

/// True if it is for the member.
pub(super) fn is_on(seen: &Seen, distribution: &Value, cluster: &str) -> bool {
    let all = clusters(seen, distribution);
    all.rows.iter().any(|row| row.item["name"] == cluster)
}

/// Its state on each member. If a policy propagates it, its binding has the state: the list in its status is outdated.
fn clusters(seen: &Seen, distribution: &Value) -> View {
    let all: Vec<Value> = if claimed_by(distribution).is_empty() {
        items(distribution, "/status/clusters").to_vec()
    } else {
        reported(seen, distribution)
    };
    let rows = all.iter().map(|each| {
        let count = |field: &str| each[field].as_i64().unwrap_or_default().to_string();
        Row {
            name: String::new(),
            cells: vec![
                text(each, "/name").to_owned(),
                count("desired"),
                count("succeeded"),
                count("failed"),
                text(each, "/reason").to_owned(),
            ],
            item: each.clone(),
        }
    });
    View {
        columns: vec![
            ("CLUSTER", Shown::Always),
            ("TARGETS", Shown::Always),
            ("READY", Shown::Always),
            ("FAILED", Shown::Always),
            ("REASON", Shown::Always),
        ],
        rows: rows.collect(),
        more: Vec::new(),
    }
}

/// The status that the members report for it, as recorded on its binding.
fn reported(seen: &Seen, distribution: &Value) -> Vec<Value> {
    let is_its = |binding: &&Value| {
        let resource = &binding["spec"]["resource"];
        resource["kind"] == distribution::KIND && resource["name"] == distribution["metadata"]["name"]
    };
    let binding = seen.bindings.iter().find(is_its).unwrap_or(&Value::Null);
    let all = items(binding, "/status/aggregatedStatus").iter();
    all.map(|each| {
        let status = &each["status"];
        let count = |field: &str| status[field].as_i64().unwrap_or_default();
        let failed = items(status, "/conditions")
            .iter()
            .find(|each| each["status"] == "True");
        let reason = match (text(each, "/appliedMessage"), failed) {
            ("", Some(condition)) => text(condition, "/reason"),
            ("", None) if status.is_null() => "it has not reported yet",
            (message, _) => message,
        };
        json!({
            "name": text(each, "/clusterName"), "desired": count("desired"), "succeeded": count("succeeded"),
            "failed": count("failed"), "reason": reason,
        })
    })
    .collect()
}
