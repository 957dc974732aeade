//! `entourage get overrides`: the templates that each override policy selects, and the number of copies it changes, or why
//! none.

use std::collections::BTreeSet;

use entourage_api::{cluster::Cluster, policy::OverrideSpec};
use entourage_core::{
    object::{Gvk, Meta, NamespacedName, ResourceId, StrMap, Time},
    override_effect as effect,
    overrides::{Candidates, Policy, select},
    scheduler::Candidate,
};
use serde::Deserialize as _;
use serde_json::{Value, json};

use super::{
    Seen,
    policies::selector,
    table::{Row, Shown, View, items, names, since, text},
};
use crate::command::resource::is_kind;

/// The properties of a cluster that rules depend on.
struct Member {
    name: String,
    labels: StrMap,
    cluster: Cluster,
}

impl Member {
    fn candidate(&self) -> Candidate<'_> {
        Candidate {
            name: &self.name,
            labels: &self.labels,
            cluster: &self.cluster,
            ready: true,
            deleting: false,
        }
    }
}

/// A propagated object.
struct Propagated {
    id: ResourceId,
    labels: StrMap,
    clusters: BTreeSet<String>,
}

pub(super) fn view(seen: &Seen, name: Option<&str>, now: Time) -> View {
    // KIND/NAME is an object that policies select; a name alone is a policy's.
    let object = name.and_then(|name| name.split_once('/'));
    let is_named =
        |policy: &&Value| object.is_some() || name.is_none_or(|name| text(policy, "/metadata/name") == name);
    let mut all: Vec<&Value> = seen.overrides.iter().filter(is_named).collect();
    all.sort_by_key(|policy| {
        (
            text(policy, "/metadata/namespace"),
            text(policy, "/metadata/name"),
        )
    });
    let members: Vec<Member> = seen.clusters.iter().filter_map(member).collect();
    let objects: Vec<Propagated> = seen
        .bindings
        .iter()
        .map(|binding| propagated(seen, binding))
        .filter(|each| object.is_none_or(|(kind, name)| *each.id.name == *name && is_kind(kind, &each.id)))
        .collect();
    let rows = all.into_iter().map(|policy| row(policy, &members, &objects, now));
    let rows = rows.filter(|row| object.is_none() || row.item["copies"] != 0);
    View {
        columns: vec![
            ("NAMESPACE", Shown::Always),
            ("NAME", Shown::Always),
            ("SELECTS", Shown::Always),
            ("CLUSTERS", Shown::Always),
            ("COPIES", Shown::Always),
            ("CHANGES", Shown::Wide),
            ("AGE", Shown::Always),
            ("PROBLEM", Shown::Always),
        ],
        rows: rows.collect(),
        more: Vec::new(),
    }
}

/// The kinds that override policies select by labels: the labels of their templates must be read.
pub(super) fn selected_by_labels(policies: &[Value]) -> BTreeSet<Gvk> {
    let selectors = policies
        .iter()
        .flat_map(|policy| items(policy, "/spec/resourceSelectors"));
    selectors
        .filter(|selector| selector["labelSelector"].is_object() && text(selector, "/name").is_empty())
        .map(|selector| Gvk::new(text(selector, "/apiVersion"), text(selector, "/kind")))
        .collect()
}

/// The labels of an object.
pub(super) fn labelled(gvk: &Gvk, object: &Value) -> (ResourceId, StrMap) {
    let name = text(object, "/metadata/name");
    let id = ResourceId::new(gvk.clone(), text(object, "/metadata/namespace"), name);
    (id, labels(object))
}

fn labels(object: &Value) -> StrMap {
    let all = object["metadata"]["labels"].as_object();
    all.into_iter()
        .flatten()
        .map(|(key, value)| (key.as_str().into(), value.as_str().unwrap_or_default().into()))
        .collect()
}

fn member(cluster: &Value) -> Option<Member> {
    Some(Member {
        name: text(cluster, "/metadata/name").to_owned(),
        labels: labels(cluster),
        cluster: Cluster::deserialize(cluster).ok()?,
    })
}

fn propagated(seen: &Seen, binding: &Value) -> Propagated {
    let resource = &binding["spec"]["resource"];
    let id = ResourceId::new(
        Gvk::new(text(resource, "/apiVersion"), text(resource, "/kind")),
        text(resource, "/namespace"),
        text(resource, "/name"),
    );
    let required = items(binding, "/spec/requiredBy").iter();
    let clusters = items(binding, "/spec/clusters")
        .iter()
        .chain(required.flat_map(|each| items(each, "/clusters")));
    Propagated {
        labels: seen.labels.get(&id).cloned().unwrap_or_default(),
        clusters: clusters
            .map(|cluster| text(cluster, "/name").to_owned())
            .collect(),
        id,
    }
}

fn row(policy: &Value, members: &[Member], objects: &[Propagated], now: Time) -> Row {
    let name = NamespacedName::new(
        text(policy, "/metadata/namespace"),
        text(policy, "/metadata/name"),
    );
    let selectors = items(policy, "/spec/resourceSelectors");
    let selects = if selectors.is_empty() {
        vec!["everything".to_owned()]
    } else {
        selectors.iter().map(selector).collect()
    };
    let (clusters, copies, problem) = match OverrideSpec::deserialize(&policy["spec"]) {
        Ok(spec) => effect_of(&name, &spec, members, objects),
        Err(_) => (Vec::new(), 0, "its spec cannot be read".to_owned()),
    };
    let kind = text(policy, "/kind").to_lowercase();
    let changes = changes(policy);
    Row {
        name: format!("{kind}.policy.karmada.io/{}", name.name),
        cells: vec![
            name.namespace.to_string(),
            name.name.to_string(),
            names(&selects, false),
            names(&clusters, false),
            copies.to_string(),
            names(&changes, true),
            since(text(policy, "/metadata/creationTimestamp"), now),
            problem.clone(),
        ],
        item: json!({
            "kind": text(policy, "/kind"), "namespace": &*name.namespace, "name": &*name.name, "selects": selects,
            "clusters": clusters, "copies": copies, "changes": changes, "problem": problem,
        }),
    }
}

/// The fields that a policy changes; never the values, which may be secret.
fn changes(policy: &Value) -> Vec<String> {
    let rules = items(policy, "/spec/overrideRules").iter();
    let all = rules
        .map(|rule| &rule["overriders"])
        .chain([&policy["spec"]["overriders"]]);
    let mut changes: Vec<String> = all.flat_map(of_overriders).collect();
    // Rules for several clusters change the same fields.
    let mut seen = BTreeSet::new();
    changes.retain(|change| seen.insert(change.clone()));
    changes
}

fn of_overriders(overriders: &Value) -> Vec<String> {
    let each = |list: &str, of: &dyn Fn(&Value) -> String| -> Vec<String> {
        let all = items(overriders, &format!("/{list}")).iter();
        all.map(of).collect()
    };
    let keys = |overrider: &Value| {
        let keys = overrider["value"].as_object().into_iter().flatten();
        keys.map(|(key, _)| key.as_str()).collect::<Vec<_>>().join("+")
    };
    [
        each("plaintext", &|each| text(each, "/path").to_owned()),
        each("imageOverrider", &|each| {
            format!("image {}", text(each, "/component").to_lowercase())
        }),
        each("commandOverrider", &|each| {
            format!("command of {}", text(each, "/containerName"))
        }),
        each("argsOverrider", &|each| {
            format!("args of {}", text(each, "/containerName"))
        }),
        each("labelsOverrider", &|each| format!("labels {}", keys(each))),
        each("annotationsOverrider", &|each| {
            format!("annotations {}", keys(each))
        }),
        each("fieldOverrider", &|each| text(each, "/fieldPath").to_owned()),
    ]
    .concat()
}

/// The clusters of a policy, the number of copies it changes, and the reason if none. OverridePolicies are matched with the
/// labels of the templates, not with the result of ClusterOverridePolicies.
fn effect_of(
    name: &NamespacedName,
    spec: &OverrideSpec,
    members: &[Member],
    objects: &[Propagated],
) -> (Vec<String>, usize, String) {
    let policy = Policy::new(name, &Meta::default(), spec);
    let mut candidates = Candidates::default();
    if name.namespace.is_empty() {
        candidates.cluster_wide.push((name, &policy));
    } else {
        candidates.of_namespace.push((name, &policy));
    }
    let aimed: Vec<&Member> = members
        .iter()
        .filter(|member| policy.aims_at(&member.candidate()))
        .collect();
    let (mut copies, mut selected) = (0, 0);
    for object in objects.iter().filter(|object| !object.clusters.is_empty()) {
        let changes = |member: &&&Member| {
            !select(&candidates, &object.id, &object.labels, &member.candidate()).is_empty()
        };
        selected += usize::from(aimed.first().is_some_and(|member| changes(&member)));
        let here = aimed
            .iter()
            .filter(|member| object.clusters.contains(&member.name));
        copies += here.filter(changes).count();
    }
    let clusters = aimed.iter().map(|member| member.name.clone()).collect();
    // Most namespaces have no binding: the namespaces that a policy changes are not read here.
    let selectors = &spec.resource_selectors;
    let is_for_namespaces = name.namespace.is_empty()
        && (selectors.is_empty() || selectors.iter().any(|selector| selector.kind == "Namespace"));
    let problem = if policy.is_empty() {
        effect::NO_RULE.to_owned()
    } else if aimed.is_empty() {
        effect::NO_CLUSTER.to_owned()
    } else if copies > 0 || is_for_namespaces {
        String::new()
    } else if selected == 0 {
        effect::NO_OBJECT.to_owned()
    } else {
        effect::not_there(selected)
    };
    (clusters, copies, problem)
}
