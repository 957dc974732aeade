//! The tables, and the differences that count.

use std::collections::BTreeSet;

use serde_json::json;

use super::*;
use crate::NATIVE;

fn deployment(pod_spec: &Value) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": {"spec": pod_spec}},
    })
}

fn config_map(data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": data})
}

/// Kinds without a rule that have fields which servers fill in or rewrite.
const WITHOUT_A_RULE: &[&str] = &[
    "ClusterRoleBinding.rbac.authorization.k8s.io",
    "Endpoints",
    "LimitRange",
    "NetworkPolicy.networking.k8s.io",
    "PriorityClass.scheduling.k8s.io",
    "RoleBinding.rbac.authorization.k8s.io",
    "RuntimeClass.node.k8s.io",
    "StorageClass.storage.k8s.io",
];

#[test]
fn no_default_is_listed_twice_and_every_kind_is_known() {
    let rows: BTreeSet<_> = DEFAULTS.iter().map(|row| (row.scope, row.path)).collect();
    assert_eq!(rows.len(), DEFAULTS.len());
    let quantities: BTreeSet<_> = QUANTITIES.iter().collect();
    assert_eq!(quantities.len(), QUANTITIES.len());
    let scopes = rows
        .iter()
        .map(|(scope, _)| *scope)
        .chain(QUANTITIES.iter().map(|row| row.0));
    for scope in scopes {
        if let Scope::Kind(kind) = scope {
            let (name, group) = kind.split_once('.').unwrap_or((kind, ""));
            let mut native = NATIVE.iter().map(|native| native.gvk());
            let is_native = native.any(|gvk| gvk.kind == name && gvk.group == group);
            assert!(
                is_native != WITHOUT_A_RULE.contains(&kind),
                "{kind} is native: {is_native}. WITHOUT_A_RULE (crates/interpreter/src/equal/tests.rs) lists the others of DEFAULTS"
            );
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
    let (name, group) = kind.split_once('.').unwrap_or((kind, ""));
    let version = if group.is_empty() {
        "v1".to_owned()
    } else {
        format!("{group}/v1")
    };
    inner["apiVersion"] = json!(version);
    inner["kind"] = json!(name);
    inner
}

fn cases(row: &DefaultRow) -> Vec<(&'static str, String)> {
    match row.scope {
        Scope::PodSpec => ["Deployment.apps", "Job.batch"]
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
fn a_removed_data_key_differs_and_its_name_is_not_reported() {
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
fn an_amount_that_is_no_quantity_is_compared_as_it_is_spelled() {
    let labelled = |value: &str| {
        let mut object = deployment(&json!({"containers": []}));
        object["spec"]["template"]["metadata"] =
            json!({"labels": {"example.com/resources.limits.cpu": value}});
        object
    };
    assert!(differs(&labelled("1"), &labelled("1000m")));
    let annotated = |value: &str| {
        let mut object = deployment(&json!({"containers": []}));
        object["spec"]["template"]["metadata"] = json!({"annotations": {"target.value": value}});
        object
    };
    assert!(differs(&annotated("1Gi"), &annotated("1024Mi")));
    let limited = |value: Value| {
        deployment(
            &json!({"containers": [{"name": "a", "resources": {"limits": {"nvidia.com/gpu": value}}}]}),
        )
    };
    assert!(!differs(&limited(json!(1)), &limited(json!("1"))));
    assert!(differs(&limited(json!(1)), &limited(json!("2"))));
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
fn a_port_on_the_hosts_network_is_the_same_number_there_and_no_other() {
    let with = |network: bool, port: Value| {
        deployment(&json!({"hostNetwork": network, "containers": [{"name": "a", "ports": [port]}]}))
    };
    let (ours, completed) = (
        json!({"containerPort": 9100, "protocol": "TCP"}),
        json!({"containerPort": 9100, "hostPort": 9100, "protocol": "TCP"}),
    );
    let other = json!({"containerPort": 9100, "hostPort": 9101, "protocol": "TCP"});
    assert_eq!(
        difference(&with(true, ours.clone()), &with(true, completed.clone())),
        None
    );
    assert_eq!(
        difference(&with(true, completed.clone()), &with(true, ours.clone())),
        None
    );
    assert!(differs(&with(true, ours.clone()), &with(true, other)));
    assert!(differs(&with(false, ours), &with(false, completed)));
}

/// The object that an override sends, and the one that a server makes of it.
fn completed_by_servers() -> Vec<(Value, Value)> {
    let of = |api_version: &str, kind: &str, ours: Value, live: Value| {
        let [mut ours, mut live] = [ours, live];
        for object in [&mut ours, &mut live] {
            object["apiVersion"] = json!(api_version);
            object["kind"] = json!(kind);
        }
        (ours, live)
    };
    let percent = json!({"type": "Percent", "value": 100, "periodSeconds": 15});
    let pods = json!({"type": "Pods", "value": 4, "periodSeconds": 15});
    vec![
        of(
            "autoscaling/v2",
            "HorizontalPodAutoscaler",
            json!({"spec": {"behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}}}}),
            json!({"spec": {"behavior": {
                "scaleDown": {"stabilizationWindowSeconds": 0, "selectPolicy": "Max", "policies": [percent]},
                "scaleUp": {"stabilizationWindowSeconds": 0, "selectPolicy": "Max", "policies": [pods, percent]},
            }}}),
        ),
        of(
            "networking.k8s.io/v1",
            "NetworkPolicy",
            json!({"spec": {"podSelector": {}, "ingress": [{"ports": [{"port": 80}]}]}}),
            json!({"spec": {"podSelector": {}, "policyTypes": ["Ingress"],
                "ingress": [{"ports": [{"port": 80, "protocol": "TCP"}]}]}}),
        ),
        of(
            "networking.k8s.io/v1",
            "NetworkPolicy",
            json!({"spec": {"podSelector": {}, "egress": [{"ports": [{"port": 80}]}]}}),
            json!({"spec": {"podSelector": {}, "policyTypes": ["Ingress", "Egress"],
                "egress": [{"ports": [{"port": 80, "protocol": "TCP"}]}]}}),
        ),
        of(
            "v1",
            "ResourceQuota",
            json!({"spec": {"hard": {"requests.memory": "1024Mi", "cpu": "1000m", "limits.example.com/gpu": 1}}}),
            json!({"spec": {"hard": {"requests.memory": "1Gi", "cpu": "1", "limits.example.com/gpu": "1"}}}),
        ),
        of(
            "v1",
            "LimitRange",
            json!({"spec": {"limits": [{"type": "Container", "default": {"memory": "1024Mi"}, "max": {"cpu": "1000m"},
                "min": {"example.com/gpu": 1}}]}}),
            json!({"spec": {"limits": [{"type": "Container", "default": {"memory": "1Gi", "cpu": "1"}, "max": {"cpu": "1"},
                "min": {"example.com/gpu": "1"},
                "defaultRequest": {"memory": "1Gi", "cpu": "1", "example.com/gpu": "1"}}]}}),
        ),
        of(
            "rbac.authorization.k8s.io/v1",
            "RoleBinding",
            json!({"subjects": [{"kind": "User", "name": "x"}], "roleRef": {"kind": "Role", "name": "r"}}),
            json!({"subjects": [{"kind": "User", "name": "x", "apiGroup": "rbac.authorization.k8s.io"}],
                "roleRef": {"kind": "Role", "name": "r", "apiGroup": "rbac.authorization.k8s.io"}}),
        ),
        of(
            "autoscaling/v2",
            "HorizontalPodAutoscaler",
            json!({"spec": {"maxReplicas": 3}}),
            json!({"spec": {"maxReplicas": 3, "metrics": [{"type": "Resource", "resource": {"name": "cpu",
                "target": {"type": "Utilization", "averageUtilization": 80}}}]}}),
        ),
        of(
            "batch/v1",
            "Job",
            json!({"spec": {"completionMode": "Indexed", "completions": 3, "backoffLimitPerIndex": 1}}),
            json!({"spec": {"completionMode": "Indexed", "completions": 3, "backoffLimitPerIndex": 1,
                "backoffLimit": 2_147_483_647}}),
        ),
        of(
            "v1",
            "ReplicationController",
            json!({"spec": {"template": {"metadata": {"labels": {"app": "a"}}}}}),
            json!({"spec": {"template": {"metadata": {"labels": {"app": "a"}}}, "selector": {"app": "a"}}}),
        ),
        of(
            "v1",
            "Service",
            json!({"spec": {"clusterIP": "None"}}),
            json!({"spec": {"clusterIP": "None", "clusterIPs": ["None"]}}),
        ),
    ]
}

#[test]
fn what_servers_complete_in_any_kind_does_not_differ_and_another_value_there_does() {
    for (ours, live) in completed_by_servers() {
        assert_eq!(difference(&ours, &live), None);
        assert_eq!(difference(&live, &ours), None);
    }
    for (at, pointer, other) in [
        (0, "/spec/behavior/scaleUp/policies/0/value", json!(5)),
        (0, "/spec/behavior/scaleDown/policies", json!([])),
        (1, "/spec/policyTypes", json!(["Ingress", "Egress"])),
        (1, "/spec/ingress/0/ports/0/protocol", json!("UDP")),
        (2, "/spec/policyTypes", json!(["Egress"])),
        (3, "/spec/hard/requests.memory", json!("2Gi")),
        (4, "/spec/limits/0/defaultRequest/memory", json!("512Mi")),
        (4, "/spec/limits/0/default/cpu", json!("500m")),
        (5, "/subjects/0/apiGroup", json!("other")),
        (6, "/spec/metrics/0/resource/target/averageUtilization", json!(50)),
        (7, "/spec/backoffLimit", json!(6)),
        (8, "/spec/selector/app", json!("b")),
        (9, "/spec/clusterIPs/0", json!("10.0.0.1")),
    ] {
        let (ours, mut live) = completed_by_servers().swap_remove(at);
        *live.pointer_mut(pointer).unwrap() = other;
        assert!(differs(&ours, &live), "{pointer}");
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
