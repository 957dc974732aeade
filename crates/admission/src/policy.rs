//! Rules of PropagationPolicy and ClusterPropagationPolicy beside those of placement and failover.

use std::collections::BTreeSet;

use entourage_api::keys::label;
use entourage_core::config::KINDS_PER_NAMESPACE;
use entourage_interpreter as interpreter;
use entourage_model::{object::Gvk, problem::Problem};
use serde_json::{Value, json};

use crate::request::{Around, Request, SELECTORS_PER_POLICY, is_unset, items, items_mut, text};

/// The API group of imported services.
const MULTI_CLUSTER_GROUP: &str = "multicluster.x-k8s.io/";

/// The default scheduler of a policy.
const SCHEDULER: &str = "default-scheduler";

const IDS: [&str; 2] = [label::PROPAGATION_POLICY_ID, label::CLUSTER_PROPAGATION_POLICY_ID];

/// Sets the policy's own namespace in a selector without a namespace.
pub(super) fn fill_namespaces(object: &mut Value, request: &Request<'_>) {
    for selector in items_mut(object, "/spec/resourceSelectors") {
        if selector.is_object() && is_unset(&selector["namespace"]) {
            selector["namespace"] = request.namespace.into();
        }
    }
}

/// A selector names no namespace other than the policy's own.
pub(super) fn own_namespaces(object: &Value, request: &Request<'_>, problems: &mut Vec<Problem>) {
    for (at, selector) in items(&object["spec"]["resourceSelectors"]).iter().enumerate() {
        let named = text(&selector["namespace"]);
        if !named.is_empty() && named != request.namespace {
            problems.push(Problem::new(
                format!("spec.resourceSelectors[{at}].namespace"),
                format!(
                    "{named:?} is not the namespace of this policy, {:?}",
                    request.namespace
                ),
                "leave it out, or use a policy in that namespace or a cluster-scoped one",
            ));
        }
    }
}

/// Limits the selectors: each object of the namespace is compared with every selector of a policy that names its kind, and again
/// whenever the policy changes.
pub(super) fn selectors(object: &Value, request: &Request<'_>, problems: &mut Vec<Problem>) {
    let limit = request
        .settings
        .selectors_per_policy
        .unwrap_or(SELECTORS_PER_POLICY);
    let count = |object: &Value| items(&object["spec"]["resourceSelectors"]).len();
    let before = request.old.map_or(0, count);
    if count(object) > limit.max(before) {
        problems.push(Problem::new(
            "spec.resourceSelectors",
            format!(
                "a PropagationPolicy may have {limit} selectors (--selectors-per-policy), and this one has {}",
                count(object)
            ),
            "select by labels, use several policies, or run entourage webhook with a larger --selectors-per-policy",
        ));
    }
}

/// A change that names no additional custom kind puts no kind in use.
pub(super) fn names_more(request: &Request<'_>) -> Option<Around> {
    let before = request.old.map(custom_kinds).unwrap_or_default();
    let named = request.object.map(custom_kinds).unwrap_or_default();
    named.difference(&before).next().map(|_| Around::Namespace)
}

/// Limits the custom kinds: each is watched on the hub and on every member. The controllers count them too: of two policies
/// written at the same time neither sees the other here.
pub(super) fn kinds(object: &Value, request: &Request<'_>, problems: &mut Vec<Problem>) {
    let limit = request
        .settings
        .kinds_per_namespace
        .unwrap_or(KINDS_PER_NAMESPACE);
    let mut known: BTreeSet<Gvk> = request
        .others
        .iter()
        .filter(|other| {
            let meta = &other["metadata"];
            text(&meta["namespace"]) == request.namespace && text(&meta["name"]) != request.name
        })
        .flat_map(custom_kinds)
        .collect();
    let own = custom_kinds(object);
    let before = request.old.map(custom_kinds).unwrap_or_default();
    let new = own
        .iter()
        .find(|gvk| !known.contains(*gvk) && !before.contains(*gvk))
        .cloned();
    known.extend(own);
    let Some(new) = new.filter(|_| known.len() > limit) else {
        return;
    };
    problems.push(Problem::new(
        "spec.resourceSelectors",
        format!(
            "with {} {} the policies of namespace {} name {} custom kinds, and they may name {limit} \
             (--kinds-per-namespace)",
            new.api_version(),
            new.kind,
            request.namespace,
            known.len()
        ),
        "name fewer kinds, delete policies that name others, or run entourage webhook and entourage controllers with a \
         larger --kinds-per-namespace",
    ));
}

/// The kinds that a policy names and that are outside Kubernetes itself.
fn custom_kinds(object: &Value) -> BTreeSet<Gvk> {
    items(&object["spec"]["resourceSelectors"])
        .iter()
        .map(|selector| Gvk::new(text(&selector["apiVersion"]), text(&selector["kind"])))
        .filter(|gvk| interpreter::native(&gvk.group, &gvk.version, &gvk.kind).is_none())
        .collect()
}

/// An imported service needs its dependencies.
pub(super) fn fill_propagate_deps(object: &mut Value, _: &Request<'_>) {
    let imports = items(&object["spec"]["resourceSelectors"])
        .iter()
        .any(|selector| {
            text(&selector["kind"]) == "ServiceImport"
                && text(&selector["apiVersion"]).starts_with(MULTI_CLUSTER_GROUP)
        });
    if imports {
        object["spec"]["propagateDeps"] = true.into();
    }
}

/// Restores an existing permanent id that a write omits.
pub(super) fn keep_id(object: &mut Value, request: &Request<'_>) {
    let Some(old) = request.old else { return };
    for key in IDS {
        let id = &old["metadata"]["labels"][key];
        if is_unset(id) || !is_unset(&object["metadata"]["labels"][key]) {
            continue;
        }
        let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else {
            continue;
        };
        let labels = metadata.entry("labels").or_insert_with(|| json!({}));
        if labels.is_null() {
            *labels = json!({});
        }
        if let Some(labels) = labels.as_object_mut() {
            labels.insert(key.to_owned(), id.clone());
        }
    }
}

/// An existing permanent id does not change.
pub(super) fn same_id(object: &Value, old: &Value, problems: &mut Vec<Problem>) {
    for key in IDS {
        let (before, after) = (
            &old["metadata"]["labels"][key],
            &object["metadata"]["labels"][key],
        );
        if !is_unset(before) && !is_unset(after) && before != after {
            problems.push(Problem::new(
                format!("metadata.labels[{key}]"),
                "it identifies the policy on templates and bindings, and is immutable",
                "leave the label out, or keep its value",
            ));
        }
    }
}

/// The scheduler of a policy does not change.
pub(super) fn same_scheduler(object: &Value, old: &Value, problems: &mut Vec<Problem>) {
    fn name(object: &Value) -> &str {
        match text(&object["spec"]["schedulerName"]) {
            "" => SCHEDULER,
            name => name,
        }
    }
    let (before, after) = (name(old), name(object));
    if before != after {
        problems.push(Problem::new(
            "spec.schedulerName",
            format!("it was {before:?} and is immutable"),
            "make a new policy for another scheduler",
        ));
    }
}

/// A policy that preempts the claims of other policies names its templates.
pub(super) fn preemption(object: &Value, problems: &mut Vec<Problem>) {
    if text(&object["spec"]["preemption"]) != "Always" {
        return;
    }
    for (at, selector) in items(&object["spec"]["resourceSelectors"]).iter().enumerate() {
        if is_unset(&selector["name"]) {
            problems.push(Problem::new(
                format!("spec.resourceSelectors[{at}].name"),
                "preemption Always takes objects from other policies, so each must be named",
                "name the object, or set preemption to Never",
            ));
        }
    }
}

/// Suspends either all clusters or some.
pub(super) fn suspension(object: &Value, problems: &mut Vec<Problem>) {
    let suspension = &object["spec"]["suspension"];
    let some = items(&suspension["dispatchingOnClusters"]["clusterNames"]);
    if suspension["dispatching"] == Value::Bool(true) && !some.is_empty() {
        problems.push(Problem::new(
            "spec.suspension",
            "dispatching suspends every cluster and dispatchingOnClusters only some",
            "set one of the two",
        ));
    }
}
