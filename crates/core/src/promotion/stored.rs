//! Differences between a template and its stored form on a hub, from which the copy on the member is made.

use std::fmt;

use serde_json::Value;

use entourage_model::quantity;

use crate::{object::ResourceId, rendered::Rendered};

/// The places of pod templates in workloads.
const POD_TEMPLATES: [&str; 2] = ["/spec/template", "/spec/jobTemplate/spec/template"];

/// A difference that would change the object on the member, by its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Altered {
    /// A field that the hub would not store.
    Lost(String),
    /// A value that the hub would store differently.
    Changed(String),
    /// A field of the pod template that the hub would store differently.
    PodTemplate(String),
}

impl fmt::Display for Altered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost(path) => write!(
                f,
                "without {path}, which its API server does not know; the object on the member would lose it, and its Pods might \
                 restart"
            ),
            Self::Changed(path) => {
                write!(
                    f,
                    "with another value of {path}; the object on the member would change"
                )
            }
            Self::PodTemplate(path) => {
                write!(
                    f,
                    "with another value of {path}; the Pods on the member would restart"
                )
            }
        }
    }
}

/// The first difference of a template and what an API server would store of it, without what belongs to that server. Fields with
/// defaults may be added, except in the pod template of a workload, where each of them replaces Pods. Null and empty values count
/// as absent, and quantities by their amount. Cost: O(size).
#[must_use]
pub fn altered(template: &Value, stored: &Value) -> Option<Altered> {
    let path = |path: String| path.trim_start_matches('.').to_owned();
    let first = |is_other: fn(&Value, &Value) -> bool| unlike(template, stored, "", is_other).map(path);
    if let Some(lost) = first(|_, stored| stored.is_null()) {
        return Some(Altered::Lost(lost));
    }
    let mut pods = POD_TEMPLATES.iter().filter_map(|pointer| {
        let pods = template.pointer(pointer)?;
        pods["spec"]["containers"].as_array()?;
        different(pods, stored.pointer(pointer)?, &pointer.replace('/', "."))
    });
    let pods = pods.next().map(path).map(Altered::PodTemplate);
    pods.or_else(|| first(|sent, stored| !is_equal(sent, stored)).map(Altered::Changed))
}

/// The path, below `path`, of the first difference of two values. Null and empty values count as absent. Cost: O(size).
#[must_use]
pub fn different(one: &Value, other: &Value, path: &str) -> Option<String> {
    match (one, other) {
        (Value::Object(_), Value::Object(_) | Value::Null) | (Value::Null, Value::Object(_)) => {
            let keys = [one, other].into_iter().filter_map(Value::as_object);
            let mut keys = keys.flat_map(|map| map.keys());
            keys.find_map(|key| different(&one[key], &other[key], &format!("{path}.{key}")))
        }
        (Value::Array(items), Value::Array(others)) if items.len() == others.len() => {
            let mut pairs = items.iter().zip(others).enumerate();
            pairs.find_map(|(at, (one, other))| different(one, other, &format!("{path}[{at}]")))
        }
        _ => (one != other && !(is_nothing(one) && is_nothing(other))).then(|| path.to_owned()),
    }
}

/// The path of the first field in which an object of the hub differs from a template of the same name: as a template itself it
/// would change the object on the member. Further labels and annotations do not count. Cost: O(size).
#[must_use]
pub fn differs(id: &ResourceId, template: &Value, held: &Value) -> Option<String> {
    let held = Rendered(super::pruned(id, held));
    let (one, other) = (template.as_object()?, held.object().as_object()?);
    let is_content = |key: &&String| !["apiVersion", "kind", "metadata", "status"].contains(&key.as_str());
    let mut fields = one.keys().chain(other.keys()).filter(is_content);
    let content = fields.find_map(|key| different(&template[key], &held.object()[key], key));
    content.or_else(|| {
        let mut all = ["labels", "annotations"].into_iter().flat_map(|field| {
            let given = template["metadata"][field].as_object();
            given
                .into_iter()
                .flatten()
                .map(move |(key, value)| (field, key, value))
        });
        let is_other = |(field, key, value): &(&str, &String, &Value)| {
            held.object()["metadata"][*field][*key] != **value
        };
        let (field, key, _) = all.find(is_other)?;
        Some(format!("metadata.{field}.{key}"))
    })
}

/// The path of the first value sent for which `is_other` of it and the stored one is true, or list of another length.
fn unlike(sent: &Value, stored: &Value, path: &str, is_other: fn(&Value, &Value) -> bool) -> Option<String> {
    match (sent, stored) {
        (Value::Object(sent), stored) => {
            let mut given = sent.iter().filter(|(_, value)| !is_nothing(value));
            given.find_map(|(key, value)| {
                unlike(value, &stored[key.as_str()], &format!("{path}.{key}"), is_other)
            })
        }
        (Value::Array(items), Value::Array(others)) if items.len() == others.len() => {
            let mut pairs = items.iter().zip(others).enumerate();
            pairs.find_map(|(at, (sent, stored))| unlike(sent, stored, &format!("{path}[{at}]"), is_other))
        }
        (Value::Array(_), _) => Some(path.to_owned()),
        (sent, stored) => is_other(sent, stored).then(|| path.to_owned()),
    }
}

fn is_equal(one: &Value, other: &Value) -> bool {
    let amount = quantity::amount(one);
    one == other || amount.is_some() && amount == quantity::amount(other)
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::object::Gvk;

    #[test]
    fn a_field_that_the_hub_does_not_store_is_named() {
        for (sent, stored, expected) in [
            (json!({"a": {"b": 1}}), json!({"a": {"b": 1}, "more": 2}), None),
            (json!({"a": {"b": 1}}), json!({"a": {}}), Some("a.b")),
            (
                json!({"a": [{"b": 1}, {"c": 2}]}),
                json!({"a": [{"b": 1}, {}]}),
                Some("a[1].c"),
            ),
            (json!({"a": null, "c": {}, "d": []}), json!({}), None),
            (json!({"a": {"b": false}}), json!({"a": {}}), Some("a.b")),
            (json!({"a": [1, 2]}), json!({"a": [1]}), Some("a")),
            (json!({"a": [1]}), json!({"a": [1, 2]}), Some("a")),
            (json!({"a": [1]}), json!({}), Some("a")),
        ] {
            let expected = expected.map(|path: &str| Altered::Lost(path.to_owned()));
            assert_eq!(altered(&sent, &stored), expected, "{sent} {stored}");
        }
    }

    #[test]
    fn a_value_that_the_hub_stores_differently_is_named() {
        let service = |kind: &str, app: &str| json!({"spec": {"type": kind, "selector": {"app": app}}});
        for (sent, stored, expected) in [
            (
                json!({"spec": {"replicas": 3}}),
                json!({"spec": {"replicas": 1}}),
                Some("spec.replicas"),
            ),
            (
                service("LoadBalancer", "web"),
                service("ClusterIP", "web"),
                Some("spec.type"),
            ),
            (
                service("ClusterIP", "web"),
                service("ClusterIP", "api"),
                Some("spec.selector.app"),
            ),
            (
                json!({"data": {"k": "a"}}),
                json!({"data": {"k": "b", "l": "c"}}),
                Some("data.k"),
            ),
            (
                json!({"a": [1, {"b": 2}]}),
                json!({"a": [1, {"b": 3}]}),
                Some("a[1].b"),
            ),
            (json!({"a": 1}), json!({"a": {"b": 1}}), Some("a")),
            (json!({"a": true}), json!({"a": false}), Some("a")),
            (json!({"a": "1000m"}), json!({"a": "1"}), None),
            (json!({"a": "1Gi"}), json!({"a": "1024Mi", "b": 1}), None),
            (json!({"a": "1Gi"}), json!({"a": "1G"}), Some("a")),
        ] {
            let expected = expected.map(|path: &str| Altered::Changed(path.to_owned()));
            assert_eq!(altered(&sent, &stored), expected, "{sent} {stored}");
        }
    }

    #[test]
    fn a_pod_template_is_stored_as_it_is() {
        let pods = |more: Value| {
            let mut spec = json!({"containers": [{"name": "a", "resources": {}}], "nodeSelector": null});
            for (key, value) in more.as_object().into_iter().flatten() {
                spec[key] = value.clone();
            }
            json!({"metadata": {"labels": {"app": "web"}}, "spec": spec})
        };
        let deployment = |pods: Value| json!({"spec": {"template": pods}});
        let job = |pods: Value| json!({"spec": {"jobTemplate": {"spec": {"template": pods}}}});
        let more = || pods(json!({"hostUsers": true}));
        let at = |path: &str| Some(Altered::PodTemplate(path.to_owned()));
        for (sent, stored, expected) in [
            (deployment(pods(json!({}))), deployment(pods(json!({}))), None),
            (
                deployment(pods(json!({}))),
                deployment(pods(json!({"volumes": []}))),
                None,
            ),
            (
                deployment(pods(json!({}))),
                deployment(more()),
                at("spec.template.spec.hostUsers"),
            ),
            (
                job(pods(json!({}))),
                job(more()),
                at("spec.jobTemplate.spec.template.spec.hostUsers"),
            ),
            (
                deployment(pods(json!({"dnsPolicy": "Default"}))),
                deployment(pods(json!({"dnsPolicy": "ClusterFirst"}))),
                at("spec.template.spec.dnsPolicy"),
            ),
            // No workload: a hub may fill it in.
            (
                json!({"spec": {"template": {"a": 1}}}),
                json!({"spec": {"template": {"a": 1, "b": 2}}}),
                None,
            ),
        ] {
            assert_eq!(altered(&sent, &stored), expected, "{sent} {stored}");
        }
    }

    #[test]
    fn an_object_of_the_hub_that_would_change_the_members_is_told_apart() {
        let id = ResourceId::new(Gvk::new("v1", "Secret"), "shop", "login");
        let secret = |metadata: Value, data: Value| json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data});
        let template = secret(
            json!({"name": "login", "labels": {"a": "1"}}),
            json!({"password": "x"}),
        );
        let claimed =
            json!({"name": "login", "uid": "u", "labels": {"a": "1", "b": "2"}, "annotations": {"c": "3"}});
        for (held, expected) in [
            (secret(claimed.clone(), json!({"password": "x"})), None),
            (
                secret(claimed.clone(), json!({"password": "y"})),
                Some("data.password"),
            ),
            (
                secret(claimed.clone(), json!({"password": "x", "more": "y"})),
                Some("data.more"),
            ),
            (secret(claimed, json!({})), Some("data.password")),
            (
                secret(json!({"name": "login"}), json!({"password": "x"})),
                Some("metadata.labels.a"),
            ),
        ] {
            assert_eq!(differs(&id, &template, &held).as_deref(), expected);
        }
    }
}
