//! The tables, and what counts as a difference.

use std::collections::BTreeSet;

use serde_json::json;

use super::*;
use crate::interpreter::NATIVE;

fn deployment(pod_spec: &Value) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": {"spec": pod_spec}},
    })
}

fn config_map(data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": data})
}

#[test]
fn no_default_is_listed_twice_and_every_kind_is_interpreted() {
    let rows: BTreeSet<_> = DEFAULTS.iter().map(|row| (row.scope, row.path)).collect();
    assert_eq!(rows.len(), DEFAULTS.len());
    for row in DEFAULTS {
        if let Scope::Kind(kind) = row.scope {
            assert!(NATIVE.iter().any(|native| native.gvk().kind == kind), "{kind}");
        }
    }
}

#[test]
fn an_object_equals_itself_whatever_the_server_set() {
    let mut live = deployment(&json!({"containers": [{"name": "a", "image": "i"}]}));
    let desired = live.clone();
    live["metadata"] = json!({"name": "web", "uid": "u", "resourceVersion": "9", "generation": 4});
    live["status"] = json!({"replicas": 1});
    assert_eq!(difference(&desired, &live), None);
}

/// An object with one value at a pattern's path.
fn object_with(kind: &str, path: &str, value: Value) -> Value {
    let mut inner = value;
    for segment in path.rsplit('.') {
        inner = match segment.strip_suffix("[]") {
            Some(list) => json!({ list: [inner] }),
            None if segment == "*" => json!({ "preStop": inner }),
            None => json!({ segment: inner }),
        };
    }
    let native = NATIVE
        .iter()
        .find(|native| native.gvk().kind == kind)
        .unwrap()
        .gvk();
    let group = if native.group.is_empty() {
        String::new()
    } else {
        format!("{}/", native.group)
    };
    inner["apiVersion"] = json!(format!("{group}{}", native.version));
    inner["kind"] = json!(kind);
    inner
}

fn cases(row: &DefaultRow) -> Vec<(&'static str, String)> {
    match row.scope {
        Scope::PodSpec => ["Deployment", "Job"]
            .map(|kind| (kind, format!("spec.template.spec.{}", row.path)))
            .to_vec(),
        Scope::Kind(kind) => vec![(kind, row.path.to_owned())],
    }
}

#[test]
fn a_default_equals_its_absence_on_either_side_and_any_other_value_does_not() {
    for row in DEFAULTS {
        for (kind, path) in cases(row) {
            let (parent, field) = path.rsplit_once('.').unwrap_or(("", &path));
            let values = match row.default {
                FilledIn::Text(text) => vec![(json!(text), true), (json!("other"), false)],
                FilledIn::OneOf(texts) => vec![(json!(texts[0]), true), (json!("other"), false)],
                FilledIn::Number(number) => vec![(json!(number), true), (json!(number + 1), false)],
                FilledIn::Flag(flag) => vec![(json!(flag), true), (json!(!flag), false)],
                FilledIn::ObjectOfDefaults => vec![(json!({}), true), (json!({"unknown": 1}), false)],
                FilledIn::ByTheServer => vec![(json!("anything"), true)],
                FilledIn::AliasOf(_) => vec![(json!(""), true), (json!("other"), false)],
            };
            for (value, same) in values {
                let with = |value: Value| {
                    if parent.is_empty() {
                        let mut object = object_with(kind, field, value);
                        object["other"] = json!(1);
                        object
                    } else {
                        object_with(kind, parent, json!({ field: value, "other": 1 }))
                    }
                };
                let without = with(Value::Null);
                assert_eq!(
                    !differs(&with(value.clone()), &without),
                    same,
                    "{kind} {path} {value}"
                );
                assert_eq!(
                    !differs(&without, &with(value.clone())),
                    same,
                    "{kind} {path} {value}"
                );
            }
        }
    }
}

#[test]
fn a_removed_data_key_differs_and_its_name_is_not_told() {
    let (one, two) = (
        config_map(&json!({"a": "1"})),
        config_map(&json!({"a": "1", "canary": "2"})),
    );
    assert_eq!(difference(&one, &two).as_deref(), Some("data"));
    assert_eq!(difference(&two, &one).as_deref(), Some("data"));
    assert_eq!(
        difference(&config_map(&json!({})), &config_map(&json!(null))),
        None
    );
    assert!(differs(&config_map(&json!({"a": ""})), &config_map(&json!({}))));
    assert!(differs(
        &config_map(&json!({"a": "1.0"})),
        &config_map(&json!({"a": "1"}))
    ));
}

#[test]
fn a_removed_env_entry_volume_or_label_differs() {
    let container = |env: Value| deployment(&json!({"containers": [{"name": "a", "env": env}]}));
    let env = json!([{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]);
    assert!(differs(
        &container(json!([{"name": "A", "value": "1"}])),
        &container(env.clone())
    ));
    assert!(differs(&container(Value::Null), &container(env)));
    assert!(!differs(&container(Value::Null), &container(json!([]))));
    assert!(differs(
        &deployment(&json!({"nodeSelector": {"a": "b"}})),
        &deployment(&json!({"nodeSelector": {"a": "b", "c": "d"}}))
    ));
    assert_eq!(
        difference(
            &deployment(&json!({"containers": [{"name": "a", "image": "i:1"}]})),
            &deployment(&json!({"containers": [{"name": "a", "image": "i:2"}]}))
        )
        .as_deref(),
        Some("spec.template.spec.containers[].image")
    );
}

#[test]
fn what_only_looks_empty_still_differs() {
    let affinity = |selector: Value| {
        deployment(&json!({"affinity": {"podAffinity": {"x": [{"labelSelector": selector}]}}}))
    };
    assert!(
        differs(&affinity(json!({})), &affinity(Value::Null)),
        "an empty selector selects everything"
    );
    assert!(differs(
        &deployment(&json!({"automountServiceAccountToken": false})),
        &deployment(&json!({}))
    ));
    assert!(differs(
        &deployment(&json!({"securityContext": {"runAsUser": 0}})),
        &deployment(&json!({}))
    ));
}

#[test]
fn a_member_that_fills_in_its_own_defaults_does_not_differ() {
    let desired = json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {
        "template": {"metadata": {"labels": {"app": "a"}}, "spec": {
            "serviceAccountName": "robot",
            "containers": [{"name": "a", "image": "i", "resources": {"limits": {"memory": "1024Mi", "cpu": 1}}}],
            "initContainers": [{"name": "b", "image": "i"}],
            "volumes": [{"name": "v", "secret": {"secretName": "s"}}],
        }},
    }});
    let live = json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {
        "replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600,
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
        "template": {"metadata": {"creationTimestamp": null, "labels": {"app": "a"}}, "spec": {
            "serviceAccountName": "robot", "serviceAccount": "robot", "securityContext": {},
            "schedulerName": "default-scheduler", "restartPolicy": "Always", "dnsPolicy": "ClusterFirst",
            "terminationGracePeriodSeconds": 30,
            "containers": [{
                "name": "a", "image": "i", "imagePullPolicy": "Always",
                "resources": {"limits": {"memory": "1Gi", "cpu": "1"}},
                "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
            }],
            "initContainers": [{
                "name": "b", "image": "i", "imagePullPolicy": "Always", "resources": {},
                "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
            }],
            "volumes": [{"name": "v", "secret": {"secretName": "s", "defaultMode": 420}}],
        }},
    }});
    assert_eq!(difference(&desired, &live), None);
    assert_eq!(difference(&live, &desired), None);
    for (pointer, value) in [
        ("/spec/replicas", json!(2)),
        ("/spec/strategy/rollingUpdate/maxSurge", json!("50%")),
        ("/spec/strategy/type", json!("Recreate")),
        ("/spec/template/spec/serviceAccountName", json!("other")),
        (
            "/spec/template/spec/containers/0/resources/limits/memory",
            json!("2Gi"),
        ),
        (
            "/spec/template/spec/initContainers/0/imagePullPolicy",
            json!("Never"),
        ),
        ("/spec/template/spec/volumes/0/secret/defaultMode", json!(256)),
    ] {
        let mut changed = live.clone();
        *changed.pointer_mut(pointer).unwrap() = value;
        assert!(differs(&desired, &changed), "{pointer}");
    }
}

#[test]
fn the_deprecated_name_of_the_account_is_an_alias() {
    let with = |new: &str, old: &str| deployment(&json!({"serviceAccountName": new, "serviceAccount": old}));
    assert!(
        !differs(&with("robot", "stale"), &with("robot", "robot")),
        "the new name wins"
    );
    assert!(!differs(
        &deployment(&json!({"serviceAccount": "robot"})),
        &with("robot", "robot")
    ));
    assert!(differs(
        &deployment(&json!({"serviceAccount": "other"})),
        &with("robot", "robot")
    ));
    assert!(differs(&deployment(&json!({})), &with("robot", "robot")));
}

#[test]
fn an_unknown_kind_is_compared_exactly() {
    let object = |spec: Value| json!({"apiVersion": "example.com/v1", "kind": "Thing", "spec": spec});
    assert!(differs(&object(json!({"replicas": 1})), &object(json!({}))));
    assert!(!differs(
        &object(json!({"replicas": 1})),
        &object(json!({"replicas": 1}))
    ));
}
