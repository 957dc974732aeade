//! The errors in one state of the less common kinds, in one table: only the fields that are wrong.

use serde_json::{Value, json};

use super::super::find;

type Row = (
    (&'static str, &'static str, &'static str),
    Value,
    &'static [&'static str],
);

fn check(rows: Vec<Row>) {
    for (kind, state, expected) in rows {
        let rules = find(kind.0, kind.1, kind.2).expect("a kind of the table").rules();
        let Value::Object(mut object) = state.clone() else {
            panic!("no object: {state}");
        };
        rules.defaults(&mut object);
        let errors: Vec<String> = rules.validate(&object).iter().map(ToString::to_string).collect();
        assert_eq!(errors, expected, "{kind:?} {state}");
    }
}

#[test]
fn quotas_limit_known_resources_in_scopes_that_fit_them() {
    const QUOTA: (&str, &str, &str) = ("", "v1", "ResourceQuota");
    check(vec![
        (
            QUOTA,
            json!({"spec": {"hard": {"pods": "1500m", "cpu": "1500m", "count/jobs.batch": "1"}}}),
            &[r#"spec.hard[pods]: Invalid value: "1500m": must be an integer"#],
        ),
        (
            QUOTA,
            json!({"spec": {"hard": {"bogus": "1"}}}),
            &[
                r#"spec.hard[bogus]: Invalid value: "bogus": must be a standard resource type or fully qualified"#,
                r#"spec.hard[bogus]: Invalid value: "bogus": must be a standard resource for quota"#,
            ],
        ),
        (
            QUOTA,
            json!({"spec": {"hard": {"services": "1"}, "scopes": ["BestEffort", "NotBestEffort"]}}),
            &[
                r#"spec.scopes: Invalid value: ["BestEffort","NotBestEffort"]: unsupported scope applied to resource"#,
                r#"spec.scopes: Invalid value: ["BestEffort","NotBestEffort"]: unsupported scope applied to resource"#,
                r#"spec.scopes: Invalid value: ["BestEffort","NotBestEffort"]: conflicting scopes"#,
            ],
        ),
        (
            QUOTA,
            json!({"spec": {"hard": {"persistentvolumeclaims": "1"}, "scopeSelector": {"matchExpressions": [
                {"scopeName": "VolumeAttributesClass", "operator": "In", "values": ["gold"]}]}}}),
            &[],
        ),
    ]);
}

#[test]
fn volumes_have_one_good_source() {
    const VOLUME: (&str, &str, &str) = ("", "v1", "PersistentVolume");
    let with = |source: Value| {
        let mut spec = json!({"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]});
        for (key, value) in source.as_object().unwrap() {
            spec[key] = value.clone();
        }
        json!({ "spec": spec })
    };
    check(vec![
        (VOLUME, with(json!({"hostPath": {"path": "/a"}})), &[]),
        (
            VOLUME,
            with(json!({})),
            &["spec: Required value: must specify a volume type"],
        ),
        (
            VOLUME,
            with(json!({"hostPath": {"path": "/a/.."}})),
            &[r#"spec.hostPath.path: Invalid value: "/a/..": must not contain '..'"#],
        ),
        (
            VOLUME,
            with(json!({"local": {"path": ""}})),
            &[
                "spec.local.path: Required value",
                "spec.nodeAffinity: Required value: Local volume requires node affinity",
            ],
        ),
        (
            VOLUME,
            with(json!({"csi": {"driver": "", "volumeHandle": "", "nodePublishSecretRef": {"name": "s"}}})),
            &[
                "spec.csi.driver: Required value",
                "spec.csi.volumeHandle: Required value",
                "spec.csi.nodePublishSecretRef.namespace: Required value",
            ],
        ),
        (
            VOLUME,
            with(json!({"nfs": {"server": "", "path": "x"}, "iscsi": {"targetPortal": "p", "iqn": "iqn.x"}})),
            &[
                "spec.nfs.server: Required value",
                r#"spec.nfs.path: Invalid value: "x": must be an absolute path"#,
                "spec.iscsi: Forbidden: may not specify more than 1 volume type",
            ],
        ),
        (
            VOLUME,
            with(
                json!({"hostPath": {"path": "/"}, "persistentVolumeReclaimPolicy": "Recycle",
                "volumeAttributesClassName": ""}),
            ),
            &[
                "spec.persistentVolumeReclaimPolicy: Forbidden: may not be 'recycle' for a hostPath mount of '/'",
                "spec.volumeAttributesClassName: Required value: an empty string is disallowed",
                "spec.csi: Required value: has to be specified when using volumeAttributesClassName",
            ],
        ),
    ]);
}

#[test]
fn drivers_classes_and_taints_are_checked_as_a_real_server_does() {
    const NODE: (&str, &str, &str) = ("", "v1", "Node");
    const CSI_NODE: (&str, &str, &str) = ("storage.k8s.io", "v1", "CSINode");
    const CLASS: (&str, &str, &str) = ("storage.k8s.io", "v1", "StorageClass");
    const SCALER: (&str, &str, &str) = ("autoscaling", "v2", "HorizontalPodAutoscaler");
    let scaler = |spec: Value| {
        let mut all = json!({"maxReplicas": 2, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"}});
        for (key, value) in spec.as_object().unwrap() {
            all[key] = value.clone();
        }
        json!({ "spec": all })
    };
    check(vec![
        (
            NODE,
            json!({"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}, {"key": "a", "effect": "NoSchedule"}]}}),
            &[
                r#"metadata.taints[1]: Duplicate value: {"Key":"a","Value":"","Effect":"NoSchedule","TimeAdded":null}: taints must be unique by key and effect pair"#,
            ],
        ),
        (
            NODE,
            json!({"spec": {"podCIDRs": ["10.0.0.1/24", "10.1.0.0/24"]}}),
            &[
                r#"spec.podCIDRs[0]: Invalid value: "10.0.0.1/24": must not have bits set beyond the prefix length"#,
                r#"spec.podCIDRs: Invalid value: ["10.0.0.1/24","10.1.0.0/24"]: may specify no more than one CIDR for each IP family"#,
            ],
        ),
        (
            CSI_NODE,
            json!({"spec": {"drivers": [{"name": "d", "nodeID": "", "topologyKeys": ["a", "a"]}]}}),
            &[
                "spec.drivers[0].nodeID: Required value",
                r#"spec.drivers[0]: Duplicate value: "a""#,
            ],
        ),
        (
            CLASS,
            json!({"provisioner": "p", "allowedTopologies": [{"matchLabelExpressions": [{"key": "z", "values": ["a", "a"]}]}]}),
            &[r#"allowedTopologies[0].matchLabelExpressions[0].values[1]: Duplicate value: "a""#],
        ),
        (
            SCALER,
            scaler(json!({"minReplicas": 0})),
            &[
                "spec.minReplicas: Invalid value: 0: must be greater than or equal to 1",
                "spec.metrics: Forbidden: must specify at least one Object or External metric to support scaling to zero replicas",
            ],
        ),
        (
            SCALER,
            scaler(json!({"behavior": {"scaleDown": {"policies": [], "tolerance": "-1"}}})),
            &[
                "spec.behavior.scaleDown.policies: Required value: must specify at least one Policy",
                r#"spec.behavior.scaleDown.tolerance: Invalid value: "-1": must be greater than or equal to 0"#,
            ],
        ),
    ]);
}

#[test]
fn addresses_are_written_without_leading_zeros() {
    for (ip, problem) in [
        ("10.0.0.1", None),
        ("2001:db8::1", None),
        ("010.0.0.1", Some("must not have leading 0s")),
        ("::ffff:10.0.0.1", Some("must not be an IPv4-mapped IPv6 address")),
        (
            "x",
            Some("must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"),
        ),
    ] {
        assert_eq!(crate::names::ip(ip).first().map(String::as_str), problem, "{ip}");
    }
    for (range, problem) in [
        ("10.0.0.0/8", None),
        ("::/0", None),
        (
            "10.0.0.0/08",
            Some("must not have leading 0s in IP or prefix length"),
        ),
        (
            "10.0.0.1/8",
            Some("must not have bits set beyond the prefix length"),
        ),
        (
            "10.0.0.0/33",
            Some("must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"),
        ),
        (
            "10.0.0.0",
            Some("must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"),
        ),
    ] {
        assert_eq!(
            crate::names::cidr(range).first().map(String::as_str),
            problem,
            "{range}"
        );
    }
    for (part, whole, expected) in [
        ("10.1.0.0/16", "10.0.0.0/8", true),
        ("10.0.0.0/8", "10.0.0.0/8", false),
        ("11.0.0.0/16", "10.0.0.0/8", false),
        ("fd00::/8", "::/0", true),
        ("10.0.0.0/8", "::/0", false),
    ] {
        assert_eq!(crate::names::is_smaller(part, whole), expected, "{part} {whole}");
    }
}
