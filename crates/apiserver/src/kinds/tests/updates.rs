//! The changes that kinds permit, in one table: the state before, a merge patch of it, and the errors.

use serde_json::{Value, json};

use super::super::find;
use crate::object::Object;

/// Group, version, kind; the state before; a merge patch of it; the errors of the change.
type Row = (
    (&'static str, &'static str, &'static str),
    Value,
    Value,
    &'static [&'static str],
);

fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (key, value) in patch {
        if value.is_null() {
            target.as_object_mut().unwrap().remove(key);
        } else {
            merge(&mut target[key.as_str()], value);
        }
    }
}

fn object(value: Value) -> Object {
    match value {
        Value::Object(object) => object,
        other => panic!("no object: {other}"),
    }
}

/// The errors of a change, as the server writes them. Of a message over several lines only the first counts.
fn errors_of(kind: (&str, &str, &str), old: &Value, patch: &Value) -> Vec<String> {
    let def = find(kind.0, kind.1, kind.2).expect("a kind of the table");
    let rules = def.rules();
    let mut new = old.clone();
    merge(&mut new, patch);
    let (mut old, mut new) = (object(old.clone()), object(new));
    rules.defaults(&mut old);
    rules.defaults(&mut new);
    let errors = rules.validate_update("", &new, &old);
    let first = |text: String| text.lines().next().unwrap_or_default().to_owned();
    errors.iter().map(|error| first(error.to_string())).collect()
}

fn check(rows: Vec<Row>) {
    for (kind, old, patch, expected) in rows {
        assert_eq!(errors_of(kind, &old, &patch), expected, "{kind:?} {patch}");
    }
}

#[test]
fn classes_and_drivers_of_storage_hardly_change() {
    const CLASS: (&str, &str, &str) = ("storage.k8s.io", "v1", "StorageClass");
    const DRIVER: (&str, &str, &str) = ("storage.k8s.io", "v1", "CSIDriver");
    const ATTRIBUTES: (&str, &str, &str) = ("storage.k8s.io", "v1", "VolumeAttributesClass");
    const NODE: (&str, &str, &str) = ("storage.k8s.io", "v1", "CSINode");
    const ATTACHMENT: (&str, &str, &str) = ("storage.k8s.io", "v1", "VolumeAttachment");
    let class = json!({"provisioner": "p.example.com", "parameters": {"a": "b"}});
    let driver = json!({"spec": {"attachRequired": true}});
    let attributes = json!({"driverName": "d.example.com", "parameters": {"a": "b"}});
    let node = json!({"spec": {"drivers": [{"name": "d", "nodeID": "i", "topologyKeys": ["zone"]}]}});
    let attachment =
        json!({"spec": {"attacher": "d", "nodeName": "n", "source": {"persistentVolumeName": "pv"}}});
    check(vec![
        (
            CLASS,
            class.clone(),
            json!({"allowVolumeExpansion": true, "mountOptions": ["ro"]}),
            &[],
        ),
        (
            CLASS,
            class.clone(),
            json!({"provisioner": "q", "reclaimPolicy": "Retain"}),
            &[
                r#"provisioner: Invalid value: "q": field is immutable"#,
                r#"reclaimPolicy: Invalid value: "Retain": field is immutable"#,
            ],
        ),
        (
            CLASS,
            class,
            json!({"parameters": null}),
            &["parameters: Invalid value: null: field is immutable"],
        ),
        (
            DRIVER,
            driver.clone(),
            json!({"spec": {"podInfoOnMount": true, "fsGroupPolicy": "File"}}),
            &[],
        ),
        (
            DRIVER,
            driver,
            json!({"spec": {"attachRequired": false, "tokenRequests": [{"audience": "a"}, {"audience": "a"}]}}),
            &[
                r#"spec.tokenRequests[1].audience: Duplicate value: "a""#,
                "spec.attachedRequired: Invalid value: false: field is immutable",
            ],
        ),
        (
            ATTRIBUTES,
            attributes,
            json!({"driverName": "e"}),
            &["driverName: Forbidden: updates to driverName are forbidden."],
        ),
        (
            NODE,
            node.clone(),
            json!({"spec": {"drivers": [{"name": "d", "nodeID": "j", "topologyKeys": ["zone"]}]}}),
            &[
                r#"spec.drivers: Invalid value: {"Name":"d","NodeID":"j","TopologyKeys":["zone"],"Allocatable":null}: field is immutable"#,
            ],
        ),
        (
            NODE,
            node,
            json!({"spec": {"drivers": [{"name": "d", "nodeID": "i", "topologyKeys": ["zone"], "allocatable": {"count": 3}}]}}),
            &[],
        ),
        (
            ATTACHMENT,
            attachment,
            json!({"spec": {"nodeName": "m"}}),
            &[
                r#"spec: Invalid value: {"Attacher":"d","Source":{"PersistentVolumeName":"pv","InlineVolumeSpec":null},"NodeName":"m"}: field is immutable"#,
            ],
        ),
    ]);
}

#[test]
fn a_volume_keeps_its_source_and_a_claim_its_spec() {
    const VOLUME: (&str, &str, &str) = ("", "v1", "PersistentVolume");
    const CLAIM: (&str, &str, &str) = ("", "v1", "PersistentVolumeClaim");
    const FIXED: &str = "spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";
    let volume = json!({"spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
        "hostPath": {"path": "/a"}, "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
            {"key": "k", "operator": "Exists"}]}]}}}});
    let bound = json!({"spec": {"accessModes": ["ReadWriteOnce"], "volumeName": "v", "storageClassName": "c",
        "resources": {"requests": {"storage": "2Gi"}}},
        "status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}});
    let mut waits = bound.clone();
    merge(
        &mut waits,
        &json!({"spec": {"volumeName": null, "storageClassName": null}, "status": {"phase": "Pending"}}),
    );
    let size = |size: &str| json!({"spec": {"resources": {"requests": {"storage": size}}}});
    check(vec![
        (
            VOLUME,
            volume.clone(),
            json!({"spec": {"capacity": {"storage": "2Gi"}}}),
            &[],
        ),
        (
            VOLUME,
            volume.clone(),
            json!({"spec": {"hostPath": {"path": "/b"}}}),
            &[
                "spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable after creation",
            ],
        ),
        (
            VOLUME,
            volume.clone(),
            json!({"spec": {"volumeMode": "Block"}}),
            &[r#"volumeMode: Invalid value: "Block": field is immutable"#],
        ),
        (
            VOLUME,
            volume,
            json!({"spec": {"nodeAffinity": null}}),
            &[
                "nodeAffinity: Invalid value: null: field is immutable, except for updating from beta label to GA",
            ],
        ),
        (CLAIM, bound.clone(), size("3Gi"), &[]),
        (CLAIM, bound.clone(), size("1500Mi"), &[]),
        (
            CLAIM,
            bound.clone(),
            size("1Gi"),
            &["spec.resources.requests.storage: Forbidden: field can not be less than status.capacity"],
        ),
        (
            CLAIM,
            bound.clone(),
            json!({"spec": {"volumeAttributesClassName": "gold"}}),
            &[],
        ),
        (
            CLAIM,
            bound.clone(),
            json!({"spec": {"storageClassName": "d"}}),
            &[FIXED],
        ),
        (CLAIM, bound, json!({"spec": {"volumeName": "w"}}), &[FIXED]),
        (
            CLAIM,
            waits.clone(),
            json!({"spec": {"volumeName": "w", "storageClassName": "d"}}),
            &[],
        ),
        (CLAIM, waits.clone(), size("3Gi"), &[FIXED]),
        (
            CLAIM,
            waits,
            json!({"spec": {"volumeMode": "Block"}}),
            &[FIXED, r#"volumeMode: Invalid value: "Block": field is immutable"#],
        ),
    ]);
}

#[test]
fn of_a_pod_images_deadlines_and_tolerations_change() {
    const POD: (&str, &str, &str) = ("", "v1", "Pod");
    const FIXED: &str = "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";
    let pod = json!({"spec": {"containers": [{"name": "a", "image": "i:1"}], "nodeSelector": {"x": "y"},
        "tolerations": [{"key": "k", "operator": "Exists"}]}});
    let mut gated = pod.clone();
    merge(
        &mut gated,
        &json!({"spec": {"schedulingGates": [{"name": "g"}, {"name": "h"}]}}),
    );
    let terms = |keys: &[&str]| {
        let all: Vec<Value> = keys
            .iter()
            .map(|key| json!({"key": key, "operator": "Exists"}))
            .collect();
        json!({"spec": {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
            {"nodeSelectorTerms": [{"matchExpressions": all}]}}}}})
    };
    let mut placed = gated.clone();
    merge(&mut placed, &terms(&["a"]));
    let patch = |spec: Value| json!({"spec": spec});
    let mut rows: Vec<Row> = vec![
        (
            POD,
            pod.clone(),
            patch(json!({"containers": [{"name": "a", "image": "i:2"}]})),
            &[],
        ),
        (POD, pod.clone(), patch(json!({"activeDeadlineSeconds": 5})), &[]),
        (
            POD,
            pod.clone(),
            patch(
                json!({"tolerations": [{"key": "k", "operator": "Exists"}, {"key": "l", "operator": "Exists"}]}),
            ),
            &[],
        ),
        (
            POD,
            pod.clone(),
            patch(json!({"tolerations": []})),
            &[
                "spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds",
            ],
        ),
        (
            POD,
            pod.clone(),
            patch(json!({"schedulingGates": [{"name": "g"}]})),
            &[
                "spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new scheduling gate 'g'",
            ],
        ),
        (
            POD,
            gated.clone(),
            patch(json!({"schedulingGates": [{"name": "h"}]})),
            &[],
        ),
        (
            POD,
            gated.clone(),
            patch(json!({"nodeSelector": {"z": "1"}})),
            &[],
        ),
        (
            POD,
            gated.clone(),
            patch(json!({"nodeSelector": {"x": "1"}})),
            &[
                r#"spec.nodeSelector: Invalid value: {"x":"1"}: only additions to spec.nodeSelector are allowed (no mutations or deletions)"#,
            ],
        ),
        (POD, gated.clone(), terms(&["a"]), &[]),
        (POD, placed.clone(), terms(&["a", "b"]), &[]),
        (
            POD,
            placed,
            terms(&["b"]),
            &[
                r#"spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]: Invalid value: {"matchExpressions":[{"key":"b","operator":"Exists"}]}: only additions are allowed (no mutations or deletions)"#,
            ],
        ),
        (POD, pod.clone(), terms(&["a"]), &[FIXED]),
    ];
    for spec in [
        json!({"restartPolicy": "Never"}),
        json!({"serviceAccountName": "s"}),
        json!({"nodeSelector": {"z": "1"}}),
        json!({"terminationGracePeriodSeconds": 1}),
        json!({"hostNetwork": true}),
        json!({"volumes": [{"name": "v", "emptyDir": {}}]}),
        json!({"containers": [{"name": "a", "image": "i:1", "command": ["x"]}]}),
    ] {
        rows.push((POD, pod.clone(), patch(spec), &[FIXED]));
    }
    check(rows);
}

#[test]
fn workloads_nodes_and_services_keep_what_names_them() {
    const SET: (&str, &str, &str) = ("apps", "v1", "DaemonSet");
    const NODE: (&str, &str, &str) = ("", "v1", "Node");
    const SERVICE: (&str, &str, &str) = ("", "v1", "Service");
    const INGRESS_CLASS: (&str, &str, &str) = ("networking.k8s.io", "v1", "IngressClass");
    const QUOTA: (&str, &str, &str) = ("", "v1", "ResourceQuota");
    let set = json!({"spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "a", "image": "i"}]}}}});
    let node = json!({"spec": {"podCIDR": "10.1.0.0/24", "providerID": "x://1"}});
    let service = json!({"spec": {"type": "LoadBalancer", "loadBalancerClass": "e.com/a", "ports": [{"port": 80}],
        "clusterIP": "10.96.0.9", "clusterIPs": ["10.96.0.9"]}});
    check(vec![
        (
            SET,
            set,
            json!({"spec": {"selector": null}}),
            &[
                "spec.selector: Invalid value: null: field is immutable",
                r#"spec.template.metadata.labels: Invalid value: {"a":"b"}: `selector` does not match template `labels`"#,
            ],
        ),
        (
            NODE,
            node.clone(),
            json!({"spec": {"podCIDR": "10.2.0.0/24", "podCIDRs": ["10.2.0.0/24"], "providerID": "x://2"}}),
            &[
                r#"spec.podCIDRs: Forbidden: node updates may not change podCIDR except from "" to valid"#,
                r#"spec.providerID: Forbidden: node updates may not change providerID except from "" to valid"#,
            ],
        ),
        (NODE, node, json!({"spec": {"unschedulable": true}}), &[]),
        (
            SERVICE,
            service,
            json!({"spec": {"loadBalancerClass": "e.com/b"}}),
            &[r#"spec.loadBalancerClass: Invalid value: "e.com/b": may not change once set"#],
        ),
        (
            INGRESS_CLASS,
            json!({"spec": {"controller": "e.com/a"}}),
            json!({"spec": {"controller": "e.com/b"}}),
            &[r#"spec.controller: Invalid value: "e.com/b": field is immutable"#],
        ),
        (
            QUOTA,
            json!({"spec": {"hard": {"pods": "1"}}}),
            json!({"spec": {"scopes": ["BestEffort"]}}),
            &[r#"spec.scopes: Invalid value: ["BestEffort"]: field is immutable"#],
        ),
    ]);
}
