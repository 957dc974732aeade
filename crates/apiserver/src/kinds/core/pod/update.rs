//! Updates of a pod: the fields that may change.

use serde_json::Value;

use crate::{
    kinds::pod_spec,
    names,
    object::{
        Object,
        tree::{Errors, at, below, items, list, made, number, same, text},
    },
    status::FieldError,
};

const ALLOWED: &str = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/// The errors in a whole pod, new or changed.
pub(super) fn whole(pod: &Object) -> Vec<FieldError> {
    let spec = below(pod, "spec");
    let mut errors = Errors(pod_spec::validate(spec, "spec", true));
    for key in ["containers", "initContainers"] {
        for (path, container) in items(spec, key, "spec") {
            let image = text(container, "image");
            if image.trim() != image {
                errors.invalid(
                    format!("{path}.image"),
                    image,
                    "must not have leading or trailing whitespace",
                );
            }
        }
    }
    if text(spec, "serviceAccountName").is_empty() {
        for (path, volume) in items(spec, "volumes", "spec") {
            let path = format!("{path}.projected");
            for (path, source) in items(below(volume, "projected"), "sources", &path) {
                if source.contains_key("serviceAccountToken") {
                    errors.forbidden(
                        format!("{path}.serviceAccountToken"),
                        "must not be specified when serviceAccountName is not set",
                    );
                }
            }
        }
    }
    errors.0
}

/// The errors in a change of a pod.
pub(super) fn validate(new: &Object, old: &Object) -> Vec<FieldError> {
    let mut errors = Errors(whole(new));
    let (spec, before) = (below(new, "spec"), below(old, "spec"));
    for (key, kind) in [
        ("containers", "containers"),
        ("initContainers", "init containers"),
    ] {
        if list(spec, key).len() != list(before, key).len() {
            let why = format!("pod updates may not add or remove {kind}");
            errors.forbidden(format!("spec.{key}"), &why);
            return errors.0;
        }
    }
    for key in ["containers", "initContainers"] {
        for (path, container) in items(spec, key, "spec") {
            errors.needs(container, &path, "image");
        }
    }
    deadline(spec, before, &mut errors);
    only_added_tolerations(spec, before, &mut errors);
    gates(spec, before, &mut errors);
    if !errors.0.is_empty() {
        return errors.0;
    }
    waiting(spec, before, &mut errors);
    let munged = munged(spec, before);
    let differs = munged
        .keys()
        .chain(before.keys())
        .any(|key| !same(munged.get(key), before.get(key)));
    if differs {
        let diff = pod_spec::internal::difference("PodSpec", before, &munged);
        errors.forbidden("spec", &format!("{ALLOWED}\n{diff}"));
    }
    errors.0
}

fn deadline(spec: &Object, before: &Object, errors: &mut Errors) {
    const FIELD: &str = "spec.activeDeadlineSeconds";
    match (
        number(spec, "activeDeadlineSeconds"),
        number(before, "activeDeadlineSeconds"),
    ) {
        (Some(new), old) => {
            let range = names::in_range(new, 0, i64::from(i32::MAX));
            if range.is_empty() {
                if old.is_some_and(|old| old < new) {
                    errors.invalid(FIELD, new, "must be less than or equal to previous value");
                }
            } else {
                errors.all_invalid(FIELD, new, range);
            }
        }
        (None, Some(_)) => errors.invalid(
            FIELD,
            Value::Null,
            "must not update from a positive integer to nil value",
        ),
        (None, None) => {}
    }
}

/// Gates are only opened.
fn gates(spec: &Object, before: &Object, errors: &mut Errors) {
    for (path, gate) in items(spec, "schedulingGates", "spec") {
        let name = text(gate, "name");
        let known = list(before, "schedulingGates")
            .iter()
            .any(|old| old["name"] == name);
        if !known {
            let why = format!("only deletion is allowed, but found new scheduling gate '{name}'");
            errors.forbidden(format!("{path}.name"), &why);
        }
    }
}

/// A pod that waits at a gate may be narrowed to fewer nodes.
fn waiting(spec: &Object, before: &Object, errors: &mut Errors) {
    if list(before, "schedulingGates").is_empty() {
        return;
    }
    let (selector, was) = (below(spec, "nodeSelector"), below(before, "nodeSelector"));
    if was.iter().any(|(key, value)| selector.get(key) != Some(value)) {
        errors.invalid(
            "spec.nodeSelector",
            Value::Object(selector.clone()),
            "only additions to spec.nodeSelector are allowed (no mutations or deletions)",
        );
    }
    node_affinity(spec, before, errors);
}

/// Terms of node affinity may only get further requirements.
fn node_affinity(spec: &Object, before: &Object, errors: &mut Errors) {
    const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
    const FIELD: &str =
        "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms";
    let of = |spec| at(spec, &["affinity", "nodeAffinity", REQUIRED]);
    let terms = |spec| list(of(spec), "nodeSelectorTerms");
    let (is, was) = (terms(spec), terms(before));
    if was.is_empty() {
        return;
    }
    if is.len() != was.len() {
        let value = Value::Array(is.to_vec());
        return errors.invalid(
            FIELD,
            value,
            "no additions/deletions to non-empty NodeSelectorTerms list are allowed",
        );
    }
    for (at, (is, was)) in is.iter().zip(was).enumerate() {
        let grows = ["matchExpressions", "matchFields"].iter().all(|key| {
            let part = |term: &Value| term[key].as_array().cloned().unwrap_or_default();
            part(is).starts_with(&part(was))
        });
        let empty = |term: &Value| term.as_object().is_none_or(Object::is_empty);
        if !grows || empty(was) && !empty(is) {
            let detail = "only additions are allowed (no mutations or deletions)";
            errors.invalid(format!("{FIELD}[{at}]"), is.clone(), detail);
        }
    }
}

fn only_added_tolerations(spec: &Object, before: &Object, errors: &mut Errors) {
    let without_seconds = |toleration: &Value| {
        let mut toleration = toleration.as_object().cloned().unwrap_or_default();
        toleration.remove("tolerationSeconds");
        toleration
    };
    let new: Vec<Object> = list(spec, "tolerations").iter().map(without_seconds).collect();
    let lost = list(before, "tolerations")
        .iter()
        .any(|old| !new.contains(&without_seconds(old)));
    if lost {
        errors.forbidden(
            "spec.tolerations",
            "existing toleration can not be modified except its tolerationSeconds",
        );
    }
}

/// The new spec with what may change set back to what it was.
fn munged(spec: &Object, before: &Object) -> Object {
    let mut munged = spec.clone();
    for key in ["containers", "initContainers"] {
        let images: Vec<Option<Value>> = list(before, key)
            .iter()
            .map(|one| one.get("image").cloned())
            .collect();
        if let Some(Value::Array(containers)) = munged.get_mut(key) {
            for (container, image) in containers.iter_mut().zip(images) {
                if let (Some(container), Some(image)) = (container.as_object_mut(), image) {
                    container.insert("image".to_owned(), image);
                }
            }
        }
    }
    let mut kept = vec!["activeDeadlineSeconds", "tolerations"];
    let grace = |spec: &Object| number(spec, "terminationGracePeriodSeconds");
    if grace(before).is_some_and(|grace| grace < 0) && grace(spec) == Some(1) {
        kept.push("terminationGracePeriodSeconds");
    }
    kept.push("schedulingGates");
    if !list(before, "schedulingGates").is_empty() {
        kept.push("nodeSelector");
        keep_node_affinity(&mut munged, before);
    }
    for key in kept {
        match before.get(key) {
            Some(value) => munged.insert(key.to_owned(), value.clone()),
            None => munged.remove(key),
        };
    }
    made(&mut munged, "securityContext");
    munged
}

/// Sets node affinity back, and nothing else of the affinity.
fn keep_node_affinity(spec: &mut Object, before: &Object) {
    const KEY: &str = "nodeAffinity";
    let (is, was) = (
        below(spec, "affinity").get(KEY),
        below(before, "affinity").get(KEY),
    );
    if is == was {
        return;
    }
    let was = was.cloned();
    let affinity = made(spec, "affinity");
    match was {
        Some(was) => affinity.insert(KEY.to_owned(), was),
        None => affinity.remove(KEY),
    };
    if affinity.is_empty() && !before.contains_key("affinity") {
        spec.remove("affinity");
    }
}
