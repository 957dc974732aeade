//! The common part of the kinds with a pod template.

use serde_json::{Map, Value};

use super::pod_spec;
use crate::{
    names,
    object::{
        Object, metadata, metadata_mut,
        tree::{Errors, below, count, list, number, object, text},
    },
    printer::View,
    status::FieldError,
};

const MISMATCH: &str = "`selector` does not match template `labels`";
const HOSTNAMES: &str = "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is recommended:";

/// True if a `LabelSelector` selects these labels; an absent one selects nothing.
pub(crate) fn selects(selector: Option<&Object>, labels: &Object) -> bool {
    let Some(selector) = selector else { return false };
    let equal = below(selector, "matchLabels")
        .iter()
        .all(|(key, value)| labels.get(key) == Some(value));
    equal
        && list(selector, "matchExpressions")
            .iter()
            .filter_map(Value::as_object)
            .all(|one| {
                let value = labels.get(text(one, "key"));
                let among = value.is_some_and(|value| list(one, "values").contains(value));
                match text(one, "operator") {
                    "In" => among,
                    "NotIn" => !among,
                    "Exists" => value.is_some(),
                    "DoesNotExist" => value.is_none(),
                    _ => false,
                }
            })
}

/// The labels of a pod template.
pub(crate) fn template_labels(spec: &Object) -> &Object {
    below(below(below(spec, "template"), "metadata"), "labels")
}

/// An object without labels has those of its template.
pub(crate) fn labels_of_template(object: &mut Object) {
    let labels = template_labels(below(object, "spec")).clone();
    if !labels.is_empty() && below(metadata(object), "labels").is_empty() {
        metadata_mut(object).insert("labels".to_owned(), Value::Object(labels));
    }
}

/// Checks a selector, which is required and may not be empty; `empty` is the message about an empty one.
pub(crate) fn selector(spec: &Object, path: &str, empty: &str, errors: &mut Errors) {
    let field = format!("{path}.selector");
    let Some(selector) = object(spec, "selector") else {
        return errors.required(field, "");
    };
    errors.extend(names::label_selector(selector, &field));
    if below(selector, "matchLabels").is_empty() && list(selector, "matchExpressions").is_empty() {
        errors.invalid(field, Value::Object(selector.clone()), empty);
    }
}

/// Checks that the selector selects the labels of the template; an empty selector is reported elsewhere.
pub(crate) fn labels_selected(spec: &Object, path: &str, errors: &mut Errors) {
    let selector = object(spec, "selector");
    let empty = selector.is_some_and(|selector| {
        below(selector, "matchLabels").is_empty() && list(selector, "matchExpressions").is_empty()
    });
    if !empty && !selects(selector, template_labels(spec)) {
        mismatch(spec, path, errors);
    }
}

/// The error of a template whose labels are not selected.
pub(crate) fn mismatch(spec: &Object, path: &str, errors: &mut Errors) {
    let labels = template_labels(spec);
    let shown = if labels.is_empty() {
        Value::Null
    } else {
        Value::Object(labels.clone())
    };
    errors.invalid(format!("{path}.template.metadata.labels"), shown, MISMATCH);
}

/// A pod template whose pods are started again whatever happens, as `kind` wants it.
pub(crate) fn template(spec: &Object, path: &str, kind: &str, errors: &mut Errors) {
    let template = below(spec, "template");
    errors.extend(pod_spec::validate_template(template, &format!("{path}.template")));
    always(spec, path, kind, errors);
}

/// Only pods that are started again whatever happens, without a deadline.
pub(crate) fn always(spec: &Object, path: &str, kind: &str, errors: &mut Errors) {
    let pod = below(below(spec, "template"), "spec");
    let path = format!("{path}.template.spec");
    errors.one_of(
        format!("{path}.restartPolicy"),
        text(pod, "restartPolicy"),
        &["Always"],
    );
    if pod.contains_key("activeDeadlineSeconds") {
        let why = format!("activeDeadlineSeconds in {kind} is not Supported");
        errors.forbidden(format!("{path}.activeDeadlineSeconds"), &why);
    }
}

/// A number or a percentage that is not negative.
pub(crate) fn amount(parent: &Object, path: &str, key: &str, errors: &mut Errors) {
    match parent.get(key) {
        Some(Value::String(text)) => {
            errors.all_invalid(&format!("{path}.{key}"), text.as_str(), names::percent(text));
        }
        Some(Value::Number(_)) => errors.nonnegative(parent, path, key),
        _ => {}
    }
}

/// A percentage of at most a hundred; numbers are fine.
pub(crate) fn at_most_all(parent: &Object, path: &str, key: &str, errors: &mut Errors) {
    let text = text(parent, key);
    if percentage(text).is_some_and(|percent| percent > 100) {
        errors.invalid(format!("{path}.{key}"), text, "must not be greater than 100%");
    }
}

fn percentage(text: &str) -> Option<i64> {
    text.strip_suffix('%').and_then(|number| number.parse().ok())
}

/// A number, or a share of `whole`; zero for none.
pub(crate) fn share(value: &Value, whole: i64, round_up: bool) -> i64 {
    match value.as_str().and_then(percentage) {
        Some(percent) => {
            let more = if round_up { 99 } else { 0 };
            percent.saturating_mul(whole).saturating_add(more) / 100
        }
        None => value.as_i64().unwrap_or(0),
    }
}

/// A number or the number in a percentage; zero when absent.
pub(crate) fn amount_of(parent: &Object, key: &str) -> i64 {
    match parent.get(key) {
        Some(Value::String(text)) => percentage(text).unwrap_or(0),
        value => value.and_then(Value::as_i64).unwrap_or(0),
    }
}

/// Counts of a status: none negative, then none above another, each in the order given.
pub(crate) fn counts(
    status: &Object,
    nonnegative: &[&str],
    bounded: &[(&str, &str, &str)],
) -> Vec<FieldError> {
    let mut errors = Errors::default();
    for key in nonnegative {
        errors.nonnegative(status, "status", key);
    }
    for (key, most, shown) in bounded {
        if count(status, key) > count(status, most) {
            let why = format!("cannot be greater than {shown}");
            errors.invalid(format!("status.{key}"), count(status, key), &why);
        }
    }
    errors.0
}

/// `collisionCount` only grows, and stays once it is there.
pub(crate) fn collisions(new: &Object, old: &Object) -> Option<FieldError> {
    let (new, old) = (below(new, "status"), below(old, "status"));
    let of = |status| number(status, "collisionCount");
    (of(new) < of(old)).then(|| {
        FieldError::invalid(
            "status.collisionCount",
            count(new, "collisionCount"),
            "cannot be decremented",
        )
    })
}

/// A fresh status in which these counts are shown though they are zero.
pub(crate) fn fresh_status(object: &mut Object, counts: &[&str]) {
    let mut status = Map::new();
    for key in counts {
        status.insert((*key).to_owned(), 0.into());
    }
    object.insert("status".to_owned(), Value::Object(status));
}

/// Fills the counts that a status always shows.
pub(crate) fn shown_counts(object: &mut Object, counts: &[&str]) {
    let status = crate::object::tree::made(object, "status");
    for key in counts {
        crate::object::tree::default(status, key, 0);
    }
}

/// The warning about a name that makes no good host name.
pub(crate) fn name_warning(object: &Object) -> Option<String> {
    let problems = names::dns_label(crate::object::field(object, "name"), false);
    (!problems.is_empty()).then(|| format!("{HOSTNAMES} [{}]", problems.join(" ")))
}

/// Warnings of a template that is new or changed, and of the name of a new object.
pub(crate) fn warnings(new: &Object, old: Option<&Object>) -> Vec<String> {
    let template = |object| below(below(object, "spec"), "template");
    let mut found = Vec::new();
    if old.is_none() {
        found.extend(name_warning(new));
    }
    if old.is_none_or(|old| template(old) != template(new)) {
        found.extend(pod_spec::template_warnings(template(new), "spec.template"));
    }
    found
}

/// A cell: how many replicas are ready.
pub(super) fn ready(object: &View<'_>) -> Value {
    format!(
        "{}/{}",
        object.number("status.readyReplicas"),
        object.number("spec.replicas")
    )
    .into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{collisions, selects};
    use crate::object::Object;

    fn object(value: &serde_json::Value) -> Object {
        value.as_object().cloned().unwrap_or_default()
    }

    #[test]
    fn a_selector_selects_by_labels_and_expressions() {
        let labels = object(&json!({"app": "web", "tier": "a"}));
        for (selector, expected) in [
            (json!({}), true),
            (json!({"matchLabels": {"app": "web"}}), true),
            (json!({"matchLabels": {"app": "db"}}), false),
            (
                json!({"matchExpressions": [{"key": "tier", "operator": "In", "values": ["a", "b"]}]}),
                true,
            ),
            (
                json!({"matchExpressions": [{"key": "x", "operator": "NotIn", "values": ["a"]}]}),
                true,
            ),
            (
                json!({"matchExpressions": [{"key": "x", "operator": "Exists"}]}),
                false,
            ),
            (
                json!({"matchExpressions": [{"key": "x", "operator": "DoesNotExist"}]}),
                true,
            ),
        ] {
            assert_eq!(selects(Some(&object(&selector)), &labels), expected, "{selector}");
        }
        assert!(!selects(None, &labels));
    }

    #[test]
    fn collisions_once_counted_stay_counted() {
        for (old, new, fits) in [
            (json!({}), json!({}), true),
            (json!({}), json!({"collisionCount": -1}), true),
            (json!({"collisionCount": 1}), json!({"collisionCount": 1}), true),
            (json!({"collisionCount": 1}), json!({"collisionCount": 0}), false),
            (json!({"collisionCount": 0}), json!({}), false),
        ] {
            let [old, new] = [old, new].map(|status| object(&json!({"status": status})));
            assert_eq!(collisions(&new, &old).is_none(), fits, "{old:?} {new:?}");
        }
    }
}
