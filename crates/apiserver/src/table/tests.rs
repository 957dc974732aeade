//! Rows of built-in kinds and columns of CRDs.

use serde_json::json;

use super::*;

const NOW: i64 = 1_000_000;

fn cells(group: &str, version: &str, plural: &str, object: Value) -> Vec<Value> {
    let kinds = crate::kinds::builtin();
    let resource = kinds.find(group, version, plural).unwrap();
    let Value::Object(object) = object else { panic!() };
    let row = row(resource, &object, Include::None, NOW);
    row["cells"].as_array().unwrap().clone()
}

#[test]
fn every_column_is_described() {
    for resource in crate::kinds::builtin().all() {
        for column in columns(resource) {
            assert_ne!(column["description"], "", "{} {}", resource.kind, column["name"]);
        }
    }
}

#[test]
fn spans_are_reported_as_people_say_them() {
    let (minute, hour, day) = (60, 3600, 86400);
    let cases = [
        (-2, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (9 * minute + 59, "9m59s"),
        (10 * minute + 59, "10m"),
        (179 * minute, "179m"),
        (3 * hour, "3h"),
        (7 * hour + 59 * minute, "7h59m"),
        (47 * hour, "47h"),
        (2 * day, "2d"),
        (7 * day + 23 * hour, "7d23h"),
        (8 * day + 23 * hour, "8d"),
        (729 * day, "729d"),
        (730 * day, "2y"),
        (731 * day, "2y1d"),
        (365 * 8 * day, "8y"),
    ];
    for (seconds, expected) in cases {
        assert_eq!(crate::printer::duration(seconds), expected, "{seconds}");
    }
}

#[test]
fn a_pods_status_is_that_of_its_containers() {
    let running = json!({"ready": true, "restartCount": 2, "state": {"running": {}},
        "lastState": {"terminated": {"finishedAt": "1970-01-12T13:45:40Z"}}});
    let crashed = json!({"restartCount": 1, "state": {"waiting": {"reason": "CrashLoopBackOff"}}});
    let ended = |code: i64| json!({"state": {"terminated": {"exitCode": code}}});
    let cases = [
        (
            json!({"phase": "Running", "containerStatuses": [running]}),
            "1/2",
            "Running",
            "2 (60s ago)",
        ),
        (
            json!({"phase": "Running", "containerStatuses": [running, crashed]}),
            "1/2",
            "CrashLoopBackOff",
            "3 (60s ago)",
        ),
        (
            json!({"phase": "Failed", "reason": "Evicted"}),
            "0/2",
            "Evicted",
            "0",
        ),
        (
            json!({"phase": "Failed", "containerStatuses": [ended(3)]}),
            "0/2",
            "ExitCode:3",
            "0",
        ),
        (
            json!({"phase": "Pending", "initContainerStatuses": [ended(0), ended(1)]}),
            "0/2",
            "Init:ExitCode:1",
            "0",
        ),
        (
            json!({"phase": "Pending", "initContainerStatuses": [crashed]}),
            "0/2",
            "Init:CrashLoopBackOff",
            "1",
        ),
        (
            json!({"phase": "Pending", "initContainerStatuses": [{}]}),
            "0/2",
            "Init:0/1",
            "0",
        ),
        (
            json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}]}),
            "0/2",
            "SchedulingGated",
            "0",
        ),
    ];
    for (status, ready, word, restarts) in cases {
        let pod = json!({"metadata": {"name": "p"}, "status": status,
            "spec": {"containers": [{"name": "a"}, {"name": "b"}], "initContainers": [{"name": "i"}]}});
        let cells = cells("", "v1", "pods", pod);
        assert_eq!(
            cells[1..4],
            [json!(ready), json!(word), json!(restarts)],
            "{word}"
        );
    }
    let leaving =
        json!({"metadata": {"name": "p", "deletionTimestamp": "x"}, "status": {"phase": "Running"}});
    assert_eq!(cells("", "v1", "pods", leaving)[2], "Terminating");
}

#[test]
fn kinds_are_printed_as_kubectl_shows_them() {
    let created = "1970-01-12T13:41:40Z";
    let cases = [
        (
            ("", "v1", "services"),
            json!({"spec": {"type": "LoadBalancer", "clusterIP": "10.0.0.1", "externalIPs": ["9.9.9.9"],
            "ports": [{"port": 80, "nodePort": 30080, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}]},
            "status": {"loadBalancer": {"ingress": [{"hostname": "b"}, {"ip": "1.1.1.1"}]}}}),
            json!([
                "x",
                "LoadBalancer",
                "10.0.0.1",
                "1.1.1.1,b,9.9.9.9",
                "80:30080/TCP,53/UDP",
                "5m",
                "<none>"
            ]),
        ),
        (
            ("", "v1", "endpoints"),
            json!({"subsets": [{"addresses": [{"ip": "1.1.1.1"}, {"ip": "fd::1"}], "ports": [{"port": 1}, {"port": 2}]}]}),
            json!(["x", "1.1.1.1:1,[fd::1]:1,1.1.1.1:2 + 1 more...", "5m"]),
        ),
        (
            ("", "v1", "persistentvolumeclaims"),
            json!({"spec": {"volumeName": "v", "storageClassName": "fast", "volumeMode": "Filesystem"},
            "status": {"phase": "Bound", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany", "ReadWriteOnce"]}}),
            json!([
                "x",
                "Bound",
                "v",
                "1Gi",
                "RWO,RWX",
                "fast",
                "<unset>",
                "5m",
                "Filesystem"
            ]),
        ),
        (
            ("", "v1", "nodes"),
            json!({"spec": {"unschedulable": true}, "status": {"conditions": [{"type": "Ready", "status": "True"}],
            "nodeInfo": {"kubeletVersion": "v1"}, "addresses": [{"type": "InternalIP", "address": "10.1.1.1"}]}}),
            json!([
                "x",
                "Ready,SchedulingDisabled",
                "<none>",
                "5m",
                "v1",
                "10.1.1.1",
                "<none>",
                "<unknown>",
                "<unknown>",
                "<unknown>"
            ]),
        ),
        (
            ("", "v1", "resourcequotas"),
            json!({"status": {"hard": {"pods": "4", "limits.cpu": "2"}, "used": {"pods": "1"}}}),
            json!(["x", "pods: 1/4", "limits.cpu: 0/2", "5m"]),
        ),
        (
            ("apps", "v1", "daemonsets"),
            json!({"spec": {"selector": {"matchLabels": {"b": "c"}, "matchExpressions":
            [{"key": "a", "operator": "In", "values": ["y", "x"]}, {"key": "d", "operator": "DoesNotExist"}]}}, "status": {"numberReady": 2}}),
            json!(["x", 0, 0, 2, 0, 0, "<none>", "5m", "", "", "a in (x,y),b=c,!d"]),
        ),
        (
            ("batch", "v1", "jobs"),
            json!({"spec": {"parallelism": 3}, "status": {"succeeded": 1, "startTime": created,
            "conditions": [{"type": "Failed", "status": "True"}]}}),
            json!(["x", "Failed", "1/1 of 3", "5m", "5m", "", "", "<none>"]),
        ),
        (
            ("autoscaling", "v2", "horizontalpodautoscalers"),
            json!({"spec": {"scaleTargetRef": {"kind": "Deployment", "name": "w"},
            "maxReplicas": 5, "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"averageUtilization": 80}}}]}}),
            json!(["x", "Deployment/w", "cpu: <unknown>/80%", "<unset>", 5, 0, "5m"]),
        ),
        (
            ("networking.k8s.io", "v1", "ingresses"),
            json!({"spec": {"rules": [{"host": "a"}, {}, {"host": "b"}]}}),
            json!(["x", "<none>", "a,b", "", "80", "5m"]),
        ),
        (
            ("rbac.authorization.k8s.io", "v1", "rolebindings"),
            json!({"roleRef": {"kind": "Role", "name": "r"},
            "subjects": [{"kind": "User", "name": "u"}, {"kind": "ServiceAccount", "name": "s", "namespace": "n"}]}),
            json!(["x", "Role/r", "5m", "u", "", "n/s"]),
        ),
        (
            ("rbac.authorization.k8s.io", "v1", "roles"),
            json!({}),
            json!(["x", created]),
        ),
        (
            ("storage.k8s.io", "v1", "storageclasses"),
            json!({"provisioner": "p"}),
            json!(["x", "p", "Delete", "Immediate", false, "5m"]),
        ),
    ];
    for ((group, version, plural), mut object, expected) in cases {
        object["metadata"] = json!({"name": "x", "creationTimestamp": created});
        assert_eq!(
            Value::Array(cells(group, version, plural, object)),
            expected,
            "{plural}"
        );
    }
}

#[test]
fn columns_of_a_crd_show_the_first_value_of_their_type() {
    let given = [
        json!({"name": "A", "type": "string", "jsonPath": ".spec.a"}),
        json!({"name": "B", "type": "integer", "jsonPath": ".spec.b"}),
        json!({"name": "C", "type": "date", "jsonPath": ".spec.c"}),
        json!({"name": "D", "type": "boolean", "jsonPath": ".spec.a"}),
        json!({"name": "E", "type": "string", "jsonPath": ".spec["}),
        json!({"name": "F", "type": "string", "jsonPath": ".spec.list"}),
    ];
    let Value::Object(object) =
        json!({"metadata": {"name": "x"}, "spec": {"a": 7, "b": 2.9, "c": "yesterday", "list": [1, "b"]}})
    else {
        panic!()
    };
    let cells = custom::cells(
        &given,
        &View {
            object: &object,
            now: NOW,
        },
    );
    assert_eq!(
        Value::Array(cells),
        json!(["x", "7", 2, "<invalid>", null, null, "[1,\"b\"]"])
    );
}

#[test]
fn metadata_alone_lacks_annotations_that_stand_for_fields() {
    let kinds = crate::kinds::builtin();
    for (group, version, plural, annotation) in [
        (
            "apps",
            "v1",
            "daemonsets",
            "deprecated.daemonset.template.generation",
        ),
        (
            "autoscaling",
            "v1",
            "horizontalpodautoscalers",
            "autoscaling.alpha.kubernetes.io/behavior",
        ),
    ] {
        let resource = kinds.find(group, version, plural).unwrap();
        for (others, shown) in [
            (json!({"a": "b"}), json!({"name": "x", "annotations": {"a": "b"}})),
            (json!({}), json!({"name": "x"})),
        ] {
            let mut annotations = others;
            annotations[annotation] = "1".into();
            let Value::Object(object) = json!({"metadata": {"name": "x", "annotations": annotations}}) else {
                panic!()
            };
            assert_eq!(
                partial(resource, &object, "meta.k8s.io/v1")["metadata"],
                shown,
                "{plural}"
            );
            let whole = row(resource, &object, Include::Object, NOW);
            assert_eq!(
                whole["object"]["metadata"]["annotations"], annotations,
                "{plural}"
            );
        }
    }
}

#[test]
fn a_scale_of_a_custom_resource_has_no_desired_replicas_where_there_are_none() {
    let scale = |spec: Value| {
        json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "web"}, "spec": spec,
            "status": {"replicas": 0}})
    };
    let cases = [
        (json!({}), true, json!(null)),
        (json!({}), false, json!(0)),
        (json!({"replicas": 2}), true, json!(2)),
        (json!({"replicas": 2}), false, json!(2)),
    ];
    for (spec, is_custom, desired) in cases {
        let Value::Object(object) = scale(spec) else {
            panic!()
        };
        let view = View {
            object: &object,
            now: NOW,
        };
        let cells = scale_cells(&view, is_custom);
        assert_eq!(
            cells[..3],
            [json!("web"), desired, json!(0)],
            "{object:?} {is_custom}"
        );
    }
}
