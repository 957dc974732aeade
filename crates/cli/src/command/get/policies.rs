//! `entourage get policies`: the templates that each policy selects, their number, and its target clusters.

use std::collections::BTreeSet;

use entourage_api::{
    keys::condition,
    policy::{Placement, PropagationSpec},
};
use entourage_core::{
    detector::matching::{Specificity, may_select},
    object::{Gvk, NamespacedName, ResourceId, Time},
};
use serde::Deserialize as _;
use serde_json::{Value, json};

use super::{
    Seen,
    bindings::{clusters, policy_of},
    table::{Row, Shown, View, condition as condition_of, items, names, since, text},
};

pub(super) fn view(seen: &Seen, name: Option<&str>, now: Time) -> View {
    let mut all: Vec<&Value> = seen
        .policies
        .iter()
        .filter(|policy| name.is_none_or(|name| text(policy, "/metadata/name") == name))
        .collect();
    all.sort_by_key(|policy| {
        (
            text(policy, "/metadata/namespace"),
            text(policy, "/metadata/name"),
        )
    });
    View {
        columns: vec![
            ("NAMESPACE", Shown::Always),
            ("NAME", Shown::Always),
            ("SELECTS", Shown::Always),
            ("TEMPLATES", Shown::Always),
            ("PLACEMENT", Shown::Always),
            ("PRIORITY", Shown::Always),
            ("SUSPENDED", Shown::Always),
            ("CONFLICTS", Shown::Wide),
            ("FOLLOW", Shown::Wide),
            ("AGE", Shown::Always),
            ("PROBLEM", Shown::Always),
        ],
        rows: all.into_iter().map(|policy| row(seen, policy, now)).collect(),
        more: Vec::new(),
    }
}

fn named(policy: &Value) -> NamespacedName {
    NamespacedName::new(
        text(policy, "/metadata/namespace"),
        text(policy, "/metadata/name"),
    )
}

/// The policy of this name.
pub(super) fn find<'a>(seen: &'a Seen, name: &NamespacedName) -> Option<&'a Value> {
    seen.policies.iter().find(|policy| named(policy) == *name)
}

/// The match of a policy with a template: `name`, `labels` or `kind`, and its priority if it has one. The template is not read:
/// if the match depends on its labels, both possibilities are named.
pub(super) fn matched_by(policy: &Value, resource: &Value) -> String {
    let Ok(spec) = PropagationSpec::deserialize(&policy["spec"]) else {
        return "unreadable".to_owned();
    };
    let id = ResourceId::new(
        Gvk::new(text(resource, "/apiVersion"), text(resource, "/kind")),
        text(resource, "/namespace"),
        text(resource, "/name"),
    );
    let ways = may_select(&spec, text(policy, "/metadata/namespace"), &id);
    let word = match (ways.last(), ways.first()) {
        (Some(Specificity::Name), _) => "name",
        (Some(Specificity::Labels), Some(Specificity::Kind)) => "labels or kind",
        (Some(Specificity::Labels), _) => "labels",
        (Some(Specificity::Kind), _) => "kind",
        (None, _) => return "nothing any more".to_owned(),
    };
    match policy["spec"]["priority"].as_i64() {
        None | Some(0) => word.to_owned(),
        Some(priority) => format!("{word}, priority {priority}"),
    }
}

fn row(seen: &Seen, policy: &Value, now: Time) -> Row {
    let name = named(policy);
    let selects: Vec<String> = items(policy, "/spec/resourceSelectors")
        .iter()
        .map(selector)
        .collect();
    let its: Vec<&Value> = seen
        .bindings
        .iter()
        .filter(|binding| policy_of(binding).as_ref() == Some(&name))
        .collect();
    let templates = its.len();
    let clusters: BTreeSet<String> = its.into_iter().flat_map(clusters).collect();
    let placement = placement(&policy["spec"]["placement"]);
    let suspended = suspended(&policy["spec"]["suspension"]);
    let priority = policy["spec"]["priority"].as_i64().unwrap_or_default();
    let bad = [condition::MATCHED, condition::EFFECTIVE]
        .into_iter()
        .map(|type_| condition_of(policy, type_))
        .filter(|each| each["status"] == "False");
    let problem = bad
        .map(|each| text(each, "/message"))
        .collect::<Vec<_>>()
        .join("; ");
    let follow = policy["spec"]["propagateDeps"] == true;
    let kind = text(policy, "/kind").to_lowercase();
    Row {
        name: format!("{kind}.policy.karmada.io/{}", name.name),
        cells: vec![
            name.namespace.to_string(),
            name.name.to_string(),
            names(&selects, false),
            templates.to_string(),
            placement.clone(),
            priority.to_string(),
            suspended.clone(),
            text(policy, "/spec/conflictResolution").to_owned(),
            if follow { "dependencies" } else { "" }.to_owned(),
            since(text(policy, "/metadata/creationTimestamp"), now),
            problem.clone(),
        ],
        item: json!({
            "kind": text(policy, "/kind"), "namespace": &*name.namespace, "name": &*name.name, "selects": selects,
            "templates": templates, "clusters": clusters, "placement": placement, "priority": priority, "suspended": suspended,
            "propagateDeps": follow, "problem": problem,
        }),
    }
}

/// `Deployment/web`, `Deployment app=web`, `Deployment`.
pub(super) fn selector(selector: &Value) -> String {
    let kind = text(selector, "/kind");
    let name = text(selector, "/name");
    let namespace = text(selector, "/namespace");
    let within = if namespace.is_empty() {
        String::new()
    } else {
        format!(" in {namespace}")
    };
    if !name.is_empty() {
        return format!("{kind}/{name}{within}");
    }
    let labels = selector["labelSelector"]["matchLabels"].as_object();
    let mut words: Vec<String> = labels
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    if !items(selector, "/labelSelector/matchExpressions").is_empty() {
        words.push("…".to_owned());
    }
    format!("{kind} {}{within}", words.join("+"))
        .trim_end()
        .to_owned()
}

/// The placement in short form.
fn placement(placement: &Value) -> String {
    let Ok(placement) = Placement::deserialize(placement) else {
        return if placement.is_null() {
            "all clusters".to_owned()
        } else {
            "unreadable".to_owned()
        };
    };
    let affinity = |affinity: &entourage_api::policy::ClusterAffinity| {
        let mut words = Vec::new();
        if !affinity.cluster_names.is_empty() {
            words.push(names(&affinity.cluster_names, false));
        }
        if affinity.label_selector.is_some() {
            words.push("by labels".to_owned());
        }
        if affinity.field_selector.is_some() {
            words.push("by fields".to_owned());
        }
        if !affinity.exclude.is_empty() {
            words.push(format!("not {}", names(&affinity.exclude, false)));
        }
        words.join(" ")
    };
    let mut words = Vec::new();
    if let Some(one) = &placement.cluster_affinity {
        words.push(affinity(one));
    }
    if !placement.cluster_affinities.is_empty() {
        let groups: Vec<String> = placement
            .cluster_affinities
            .iter()
            .map(|term| {
                let overflow = term.overflow_affinities.iter().map(|each| &each.affinity_name);
                let all: Vec<&str> = std::iter::once(&term.affinity_name)
                    .chain(overflow)
                    .map(String::as_str)
                    .collect();
                all.join("+")
            })
            .collect();
        words.push(format!("first of {}", names(&groups, false)));
    }
    words.retain(|word| !word.is_empty());
    if words.is_empty() {
        words.push("all clusters".to_owned());
    }
    if !placement.spread_constraints.is_empty() {
        words.push("spread".to_owned());
    }
    if placement.replica_scheduling.is_some() {
        words.push(format!("{:?}", placement.replica_scheduling_type()).to_lowercase());
    }
    words.join(", ")
}

fn suspended(suspension: &Value) -> String {
    if suspension["dispatching"] == true {
        return "everywhere".to_owned();
    }
    let clusters: Vec<String> = items(suspension, "/dispatchingOnClusters/clusterNames")
        .iter()
        .filter_map(|name| name.as_str().map(str::to_owned))
        .collect();
    names(&clusters, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_reported_to_mean_a_template_as_the_detector_matches_it() {
        let labelled = json!({"apiVersion": "apps/v1", "kind": "Deployment", "labelSelector": {"matchLabels": {"tier": "x"}}});
        let kind = json!({"apiVersion": "apps/v1", "kind": "Deployment"});
        let named = |name: &str| json!({"apiVersion": "apps/v1beta1", "kind": "Deployment", "name": name});
        let table = [
            (json!([labelled, kind]), "labels or kind"),
            (json!([labelled]), "labels"),
            (json!([kind]), "kind"),
            (json!([named("other")]), "nothing any more"),
            (json!([named("web"), labelled]), "name"),
            (
                json!([{"apiVersion": "apps/v1", "kind": "Job"}]),
                "nothing any more",
            ),
            (json!("none"), "unreadable"),
        ];
        let resource =
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": "web"});
        for (selectors, wanted) in table {
            let policy = json!({"metadata": {"namespace": "shop", "name": "p"}, "spec": {"resourceSelectors": selectors}});
            assert_eq!(matched_by(&policy, &resource), wanted, "{policy}");
        }
    }
}
