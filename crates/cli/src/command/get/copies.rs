//! `entourage get copies`: each object on each cluster, as the hub recorded it; of a member in Pull mode as its Work says.

use std::collections::BTreeSet;

use entourage_api::{
    keys::{annotation, condition},
    work::NotAppliedReason,
};
use entourage_core::object::{Gvk, ResourceId, Time};
use serde::Deserialize as _;
use serde_json::{Value, json};

use super::{
    Seen,
    bindings::{clusters, copy, is_of, needed_by, policy_of, replicas, template},
    distributed,
    pulled::{self, Accounted},
    table::{Row, Shown, View, condition as condition_of, items, names, since, text},
};
use crate::apply::label;

pub(super) fn view(seen: &Seen, name: Option<&str>, now: Time) -> View {
    let mut rows: Vec<Row> = Vec::new();
    let mut all: Vec<&Value> = seen.bindings.iter().collect();
    all.sort_by_key(|binding| {
        (
            text(binding, "/metadata/namespace"),
            text(binding, "/metadata/name"),
        )
    });
    let mut accounted = Accounted::default();
    for binding in all {
        let wanted = clusters(binding);
        let recorded = items(binding, "/status/aggregatedStatus").iter();
        let recorded = recorded.map(|item| text(item, "/clusterName").to_owned());
        let places: BTreeSet<String> = wanted.iter().cloned().chain(recorded).collect();
        let pulled = places.iter().filter(|cluster| seen.works.contains_key(*cluster));
        let id = object_of(binding);
        accounted.add(&id, pulled);
        let is_chosen = seen.chosen.as_ref().is_none_or(|chosen| chosen.contains(&id));
        if !is_chosen || name.is_some_and(|name| !is_of(binding, name)) {
            continue;
        }
        rows.extend(
            places
                .iter()
                .map(|cluster| row(seen, binding, (cluster, wanted.contains(cluster)), now)),
        );
    }
    // What no binding accounts for has no template, and so no labels.
    if seen.chosen.is_none() {
        rows.extend(copied(seen, name));
        rows.extend(distributed::rows(seen, name, now));
        rows.extend(pulled::rows(seen, name, &accounted));
    }
    View {
        columns: vec![
            ("NAMESPACE", Shown::AllNamespaces),
            ("OBJECT", Shown::Always),
            ("CLUSTER", Shown::Always),
            ("STATE", Shown::Always),
            ("HEALTH", Shown::Always),
            ("REPLICAS", Shown::Always),
            ("POLICY", Shown::Wide),
            ("NEEDED BY", Shown::Always),
            ("AGE", Shown::Always),
            ("MESSAGE", Shown::Always),
        ],
        rows,
        more: Vec::new(),
    }
}

/// The row of a binding on a cluster, which it wants or not. The age is that of the binding: when a copy was made is not recorded.
fn row(seen: &Seen, binding: &Value, (cluster, wanted): (&str, bool), now: Time) -> Row {
    let none = Value::Null;
    let item = copy(binding, cluster).unwrap_or(&none);
    let id = object_of(binding);
    let (state, message) = pulled::state(seen, cluster, &id, state(seen, item, cluster, wanted));
    let health = pulled::health(seen, cluster, &id).unwrap_or_else(|| text(item, "/health"));
    let own = items(binding, "/spec/clusters")
        .iter()
        .any(|target| target["name"] == *cluster);
    let policy = policy_of(binding)
        .filter(|_| own)
        .map(|policy| policy.to_string());
    let needed = needed_by(binding, Some(cluster));
    let replicas = replicas(binding).get(cluster).copied();
    let created = text(binding, "/metadata/creationTimestamp");
    let resource = &binding["spec"]["resource"];
    let kind = label(text(resource, "/apiVersion"), text(resource, "/kind"));
    let namespace = text(resource, "/namespace");
    let mut item = json!({
        "apiVersion": text(resource, "/apiVersion"), "kind": text(resource, "/kind"), "namespace": namespace,
        "name": text(resource, "/name"), "cluster": cluster, "state": state, "health": health,
        "replicas": replicas, "policy": policy, "neededBy": needed, "created": created, "message": message,
    });
    if let Some(work) = pulled::work(seen, cluster, &id) {
        item["work"] = json!(work);
    }
    Row {
        name: format!("{cluster}/{kind}/{}", text(resource, "/name")),
        cells: vec![
            namespace.to_owned(),
            template(binding),
            cluster.to_owned(),
            state.to_owned(),
            health.to_owned(),
            replicas.map(|replicas| replicas.to_string()).unwrap_or_default(),
            policy.unwrap_or_default(),
            names(&needed, false),
            since(created, now),
            message,
        ],
        item,
    }
}

/// The object that a binding propagates.
pub(super) fn object_of(binding: &Value) -> ResourceId {
    let resource = &binding["spec"]["resource"];
    let gvk = Gvk::new(text(resource, "/apiVersion"), text(resource, "/kind"));
    ResourceId::new(gvk, text(resource, "/namespace"), text(resource, "/name"))
}

/// Objects that carry the hub's ownership metadata and are not managed by it, as each Cluster reports them.
fn copied(seen: &Seen, name: Option<&str>) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut clusters: Vec<&Value> = seen.clusters.iter().collect();
    clusters.sort_by_key(|cluster| text(cluster, "/metadata/name"));
    for cluster in clusters {
        let annotation = cluster["metadata"]["annotations"][annotation::COPIED_OBJECTS].as_str();
        let Some(report) = annotation.and_then(|text| serde_json::from_str::<Value>(text).ok()) else {
            continue;
        };
        let named = items(&report, "/objects").iter().filter_map(Value::as_str);
        let member = text(cluster, "/metadata/name");
        rows.extend(named.filter_map(|object| copied_row(member, object, name)));
    }
    rows
}

/// The row of an object such as `apps/v1 Deployment shop/web`, or without a namespace; `None` if it has another name than the
/// requested one.
fn copied_row(cluster: &str, object: &str, asked: Option<&str>) -> Option<Row> {
    let mut words = object.split(' ');
    let (api_version, kind, path) = (words.next()?, words.next()?, words.next()?);
    let (namespace, name) = path.split_once('/').unwrap_or(("", path));
    if asked.is_some_and(|asked| asked != name) {
        return None;
    }
    let message =
        "carries the ownership metadata of this hub and is not managed by it: never changed or deleted";
    let kind_label = label(api_version, kind);
    Some(Row {
        name: format!("{cluster}/{kind_label}/{name}"),
        cells: vec![
            namespace.to_owned(),
            format!("{kind} {name}"),
            cluster.to_owned(),
            "Copied".to_owned(),
            String::new(),
            String::new(),
            String::new(),
            String::new(),
            String::new(),
            message.to_owned(),
        ],
        item: json!({
            "apiVersion": api_version, "kind": kind, "namespace": namespace, "name": name, "cluster": cluster,
            "state": "Copied", "health": "", "policy": null, "neededBy": [], "message": message,
        }),
    })
}

/// The state of the copy: `Applied`; `Pending`, not written yet; `Suspended` by the policy; `Conflict`, an object that is not
/// managed already exists; `Override`, an override policy cannot be applied; `InterpretError`; `Contended`, another writer there
/// keeps changing it; `Refused` by the member; `Leaving`, not wanted any more and not proven deleted; `Unknown`, as last
/// recorded, since the member does not respond; `NotApplied`, for a reason that only the message has.
fn state(seen: &Seen, item: &Value, cluster: &str, wanted: bool) -> (&'static str, String) {
    let message = text(item, "/appliedMessage").to_owned();
    let member = seen
        .clusters
        .iter()
        .find(|each| text(each, "/metadata/name") == cluster);
    let Some(member) = member else {
        return ("Unknown", format!("cluster {cluster:?} not found"));
    };
    let ready = condition_of(member, condition::READY);
    let unresponsive = !ready.is_null() && ready["status"] != "True";
    let state = match () {
        () if !wanted => "Leaving",
        () if unresponsive => "Unknown",
        () => recorded(item),
    };
    if unresponsive && message.is_empty() {
        let last = if item["applied"] == true {
            "applied"
        } else {
            "not applied"
        };
        return (
            state,
            format!(
                "last known: {last}; {cluster} is not ready: {}",
                text(ready, "/message")
            ),
        );
    }
    (state, message)
}

/// The state that a binding records of a copy that is wanted; null if it records none.
pub(in crate::command) fn recorded(item: &Value) -> &'static str {
    if item["applied"] == true {
        return "Applied";
    }
    match NotAppliedReason::deserialize(&item["appliedReason"]) {
        Ok(NotAppliedReason::Pending) => "Pending",
        Ok(NotAppliedReason::Suspended) => "Suspended",
        Ok(NotAppliedReason::Conflict) => "Conflict",
        Ok(NotAppliedReason::Override) => "Override",
        Ok(NotAppliedReason::InterpretError) => "InterpretError",
        Ok(NotAppliedReason::Contended) => "Contended",
        Ok(NotAppliedReason::Unknown) => "Unknown",
        Ok(NotAppliedReason::Refused) => "Refused",
        Ok(NotAppliedReason::NotAllowed) => "NotAllowed",
        // The entry may not exist yet.
        Err(_) if text(item, "/appliedMessage").is_empty() => "Pending",
        Err(_) => "NotApplied",
    }
}

#[cfg(test)]
mod tests {
    use entourage_core::config::Config;
    use entourage_simulation::{Answer, Progress, Question, Simulation};

    use super::*;

    const NOW: Time = Time(1_700_000_000_000);

    fn template(name: &str) -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "default", "name": name},
            "data": {"key": "value"}})
    }

    fn policy(kind: &str, name: &str, spec: &Value) -> Value {
        json!({"apiVersion": "policy.karmada.io/v1alpha1", "kind": kind,
            "metadata": {"namespace": "default", "name": name}, "spec": spec})
    }

    fn propagation(name: &str, more: &Value) -> Value {
        let mut spec =
            json!({"resourceSelectors": [{"apiVersion": "v1", "kind": "ConfigMap", "name": name}]});
        spec["suspension"] = more.clone();
        policy("PropagationPolicy", name, &spec)
    }

    /// The objects that the control plane writes for these objects, if `foreign` already exists on the member.
    fn written(objects: Vec<Value>, foreign: &str) -> Seen {
        let mut simulation = Simulation::new(Config::new("hub"), NOW);
        for object in objects {
            simulation.apply(None, object);
        }
        while let Progress::Asks(questions) = simulation.run() {
            for question in questions {
                let there = match &question {
                    Question::Copy(_, id) if *id.name == *foreign => {
                        let mut object = template(foreign);
                        object["metadata"]["uid"] = json!("theirs");
                        object["metadata"]["resourceVersion"] = json!("7");
                        vec![object]
                    }
                    _ => Vec::new(),
                };
                simulation.answer(question, Answer::Objects(there));
            }
        }
        let mut seen = Seen::default();
        for (id, object) in simulation.hub() {
            match &*id.gvk.kind {
                "Cluster" => seen.clusters.push(object.clone()),
                "ResourceBinding" => seen.bindings.push(object.clone()),
                _ => {}
            }
        }
        seen
    }

    #[test]
    fn an_object_that_was_copied_is_shown_as_such() {
        let report = json!({"count": 2, "objects": ["apps/v1 Deployment shop/web", "v1 Namespace shop"]});
        let seen = Seen {
            clusters: vec![json!({"metadata": {"name": "east",
                "annotations": {"entourage.dev/copied-objects": report.to_string()}}})],
            ..Seen::default()
        };
        let rows = view(&seen, None, NOW).rows;
        let shown: Vec<&[String]> = rows.iter().map(|row| &row.cells[..4]).collect();
        assert_eq!(
            shown,
            [
                ["shop", "Deployment web", "east", "Copied"],
                ["", "Namespace shop", "east", "Copied"],
            ]
        );
        assert_eq!(view(&seen, Some("web"), NOW).rows.len(), 1);
    }

    #[test]
    fn an_entry_without_a_reason_is_shown_as_not_applied() {
        let seen = Seen {
            clusters: vec![json!({"metadata": {"name": "east"}})],
            ..Seen::default()
        };
        for (item, wanted) in [
            (json!({"appliedMessage": "of an earlier version"}), "NotApplied"),
            (
                json!({"appliedMessage": "m", "appliedReason": "Later"}),
                "NotApplied",
            ),
            (
                json!({"appliedMessage": "m", "appliedReason": "Contended"}),
                "Contended",
            ),
            (json!({"appliedReason": "Refused", "applied": true}), "Applied"),
            (json!({}), "Pending"),
            (Value::Null, "Pending"),
        ] {
            assert_eq!(state(&seen, &item, "east", true).0, wanted, "{item}");
        }
    }

    #[test]
    fn the_state_of_a_copy_is_derived_from_what_the_control_plane_writes() {
        let broken = policy(
            "OverridePolicy",
            "o",
            &json!({"resourceSelectors": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "overridden"}],
                "overrideRules": [{"overriders": {"plaintext": [{"path": "/a/b", "operator": "replace", "value": 1}]}}]}),
        );
        let mut objects = vec![
            json!({"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": "east"},
                "spec": {"syncMode": "Push"}}),
            broken,
        ];
        for name in ["fine", "foreign", "overridden", "suspended"] {
            let held = if name == "suspended" {
                json!({"dispatching": true})
            } else {
                Value::Null
            };
            objects.extend([template(name), propagation(name, &held)]);
        }
        let seen = written(objects, "foreign");
        let rows = view(&seen, None, NOW).rows;
        let states: Vec<(&str, &str)> = rows
            .iter()
            .map(|row| (text(&row.item, "/name"), text(&row.item, "/state")))
            .collect();
        assert_eq!(
            states,
            [
                ("fine", "Applied"),
                ("foreign", "Conflict"),
                ("overridden", "Override"),
                ("suspended", "Suspended"),
            ],
            "{rows:#?}"
        );
    }
}
