//! ResourceDistribution, where a policy propagates it to members.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{
    Health, NativeGvk, NativeKind, Operation, Resource,
    counters::{self, Counter, always, count},
};
use crate::json::{at, same, text};

/// apps.kruise.io ResourceDistribution in one of its versions; the field is the version. The object is the same in both:
/// the field `failedNamespace` of one, `failedNamespaces` of the other, is written under both names.
///
/// A controller on each member executes it; the hub only propagates it. Its source (`resourceFrom`) stays a name on the member:
/// it has a namespace of its own, which must consent there, so it is no reference.
///
/// Retained: nothing. Its controller on the member writes status only.
pub(super) struct ResourceDistribution(pub(super) &'static str);

const COUNTERS: &[Counter] = &[always("desired"), always("succeeded"), always("failed")];

/// The number of namespaces that a condition names at most, as on the hub.
const NAMED: usize = 100;

/// The placeholder for a reason that may show content of a Secret: servers quote what they cannot read.
const WITHHELD: &str = "the reason is on the member, in the status of the distribution";

impl NativeKind for ResourceDistribution {
    fn gvk(&self) -> NativeGvk<'static> {
        NativeGvk {
            group: "apps.kruise.io",
            version: self.0,
            kind: entourage_model::kinds::DISTRIBUTION,
        }
    }

    fn summary(&self) -> &'static str {
        "one ConfigMap or Secret in many namespaces of each member"
    }

    fn resource(&self) -> Option<Resource> {
        Some(Resource::cluster_scoped("resourcedistributions"))
    }

    fn operations(&self) -> &'static [Operation] {
        &[Operation::Reflect, Operation::Aggregate, Operation::Health]
    }

    fn reports_status(&self) -> bool {
        true
    }

    /// The counts, and the variable parts of the six conditions; no reason if the resource is a
    /// Secret.
    fn reflect(&self, live: &Value) -> Option<Value> {
        let mut reflected = counters::reflect(live, COUNTERS)?;
        let kind = |field| text(live, &["spec", field, "kind"]);
        let is_secret = [kind("resource"), kind("resourceFrom")].contains(&"Secret");
        let conditions: Vec<Value> = conditions(&live["status"])
            .map(|stored| {
                let mut kept = Map::new();
                for field in ["type", "status", "lastTransitionTime", "reason"] {
                    if stored[field].is_string() {
                        kept.insert(field.to_owned(), stored[field].clone());
                    }
                }
                if is_secret && stored["status"] == "True" {
                    kept.insert("reason".to_owned(), json!(WITHHELD));
                }
                let failed = failed(stored);
                if !failed.is_empty() {
                    let named: Vec<&str> = failed.iter().copied().take(NAMED).collect();
                    kept.insert("count".to_owned(), json!(how_many(stored)));
                    kept.insert("failedNamespace".to_owned(), json!(named));
                }
                Value::Object(kept)
            })
            .collect();
        if !conditions.is_empty() {
            reflected["conditions"] = conditions.into();
        }
        Some(reflected)
    }

    /// Healthy: its controller has seen the latest spec, and no namespace is without its copy. Source: ResourceDistribution
    /// reference 6.7.
    fn health(&self, live: &Value) -> Health {
        let status = &live["status"];
        if !status.is_object() {
            return Health::Unknown;
        }
        let observed = count(status, "observedGeneration") >= count(&live["metadata"], "generation");
        if observed && count(status, "failed") == 0 {
            Health::Healthy
        } else {
            Health::Unhealthy
        }
    }

    /// Sums over the clusters, and the six conditions in their order: True where they are on any cluster, Unknown where none
    /// is True and some cluster has not reported. Their namespaces are `<cluster>/<namespace>`. Source: ResourceDistribution
    /// reference 6.7.
    ///
    /// `clusters` stays as stored: it records the clusters with copies of the hub's own distribution. The state of each cluster
    /// is in the binding.
    fn aggregate(&self, template: &Value, items: &[(&str, Option<&Value>)]) -> Option<Value> {
        let stored = at(template, &["status"]);
        let summed = counters::aggregate(template, items, COUNTERS);
        let mut status = summed.unwrap_or_else(|| stored.clone());
        if !status.is_object() {
            status = json!({});
        }
        for counter in COUNTERS {
            status[counter.name] = json!(count(&status, counter.name));
        }
        let merged: Vec<Value> = entourage_model::places::condition_types()
            .map(|type_| merged(type_, stored, items))
            .collect();
        status["conditions"] = merged.into();
        status["description"] = json!(format!(
            "Propagated to {} clusters: present in {}/{} namespaces there",
            items.len(),
            count(&status, "succeeded"),
            count(&status, "desired"),
        ));
        if let Some(status) = status.as_object_mut() {
            status.remove("conflictingNamespaces");
        }
        (!same(&status, stored)).then_some(status)
    }
}

fn conditions(status: &Value) -> impl Iterator<Item = &Value> {
    status["conditions"].as_array().into_iter().flatten()
}

fn condition<'a>(status: &'a Value, type_: &str) -> Option<&'a Value> {
    conditions(status).find(|each| each["type"] == *type_)
}

/// The namespaces of a condition, under either name; sorted.
fn failed(condition: &Value) -> Vec<&str> {
    let named = |field| condition[field].as_array().filter(|all| !all.is_empty());
    let all = named("failedNamespace").or_else(|| named("failedNamespaces"));
    let mut all: Vec<&str> = all.into_iter().flatten().filter_map(Value::as_str).collect();
    all.sort_unstable();
    all
}

/// The number of namespaces in which a condition is True: OpenKruise names them all, and has no count.
fn how_many(condition: &Value) -> i64 {
    let named = i64::try_from(failed(condition).len()).unwrap_or(i64::MAX);
    count(condition, "count").max(named)
}

/// One condition of all clusters.
fn merged(type_: &str, stored: &Value, items: &[(&str, Option<&Value>)]) -> Value {
    let reported: BTreeMap<&str, &Value> = items
        .iter()
        .filter_map(|(cluster, item)| Some((*cluster, condition((*item)?, type_)?)))
        .collect();
    let is = |word: &'static str| reported.iter().filter(move |(_, each)| each["status"] == *word);
    let unresponsive = items.iter().find(|(cluster, _)| {
        let status = reported.get(cluster).map(|each| &each["status"]);
        status.is_none_or(|status| status != "True" && status != "False")
    });
    let (status, reason) = match (is("True").next(), unresponsive) {
        (Some((cluster, each)), _) => ("True", format!("{cluster}: {}", text(each, &["reason"]))),
        (None, Some((cluster, _))) => ("Unknown", format!("{cluster} has not reported yet")),
        (None, None) if items.is_empty() => ("Unknown", "it is on no cluster".to_owned()),
        (None, None) => ("False", entourage_model::places::SUCCEEDED.to_owned()),
    };
    let mut condition_ = json!({ "type": type_, "status": status, "reason": reason });
    let before = condition(stored, type_).filter(|each| each["status"] == *status);
    let before = before
        .map(|each| &each["lastTransitionTime"])
        .filter(|time| time.is_string());
    // No clock here: where it turned, it turned when the last cluster did. RFC 3339 in UTC is ordered as text.
    let turned = is(status)
        .map(|(_, each)| text(each, &["lastTransitionTime"]))
        .max();
    if let Some(before) = before {
        condition_["lastTransitionTime"] = before.clone();
    } else if let Some(turned) = turned.filter(|time| !time.is_empty()) {
        condition_["lastTransitionTime"] = json!(turned);
    }
    let named: Vec<String> = is("True")
        .flat_map(|(cluster, each)| {
            failed(each)
                .into_iter()
                .map(move |namespace| format!("{cluster}/{namespace}"))
        })
        .take(NAMED)
        .collect();
    if !named.is_empty() {
        let all = is("True")
            .map(|(_, each)| how_many(each))
            .fold(0, i64::saturating_add);
        condition_["count"] = json!(all);
        condition_["failedNamespace"] = json!(named);
        condition_["failedNamespaces"] = json!(named);
    }
    condition_
}
