//! Override policies as they are written and read.

use serde_json::json;

use super::*;

#[test]
fn a_rule_is_written_as_karmada_writes_it() {
    let text = concat!(
        r#"{"plaintext":[{"path":"/spec/replicas","operator":"replace","value":2},"#,
        r#"{"path":"/spec/paused","operator":"remove","value":null}],"#,
        r#""imageOverrider":[{"predicate":{"path":"/spec/containers/0/image"},"component":"Registry","#,
        r#""operator":"add","value":".cn"},{"component":"Tag","operator":"remove"}],"#,
        r#""commandOverrider":[{"containerName":"c","operator":"add","value":["--a"]}],"#,
        r#""argsOverrider":[{"containerName":"c","operator":"remove","value":["--b"]}],"#,
        r#""labelsOverrider":[{"operator":"add","value":{"a":"b"}}],"#,
        r#""annotationsOverrider":[{"operator":"replace","value":{"a":"b"}}],"#,
        r#""fieldOverrider":[{"fieldPath":"/data/a","json":[{"subPath":"/x","operator":"add","value":1}],"#,
        r#""yaml":[{"subPath":"/y","operator":"remove","value":null}]}]}"#
    );
    let overriders: Overriders = serde_json::from_str(text).unwrap();
    assert_eq!(serde_json::to_string(&overriders).unwrap(), text);
}

#[test]
fn a_policy_without_selectors_and_the_deprecated_pair_is_read() {
    let policy: OverridePolicy = serde_json::from_value(json!({
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "OverridePolicy",
        "metadata": { "name": "o", "namespace": "default" },
        "spec": {
            "targetCluster": { "clusterNames": ["member1"] },
            "overriders": { "plaintext": [{ "path": "/data/a", "operator": "add", "value": "b" }] },
        },
    }))
    .unwrap();
    assert!(policy.spec.override_rules.is_empty());
    assert!(!policy.spec.overriders.is_empty());
    let scope: ClusterOverridePolicy = serde_json::from_value(json!({
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "ClusterOverridePolicy",
        "metadata": { "name": "o" },
        "spec": { "overrideRules": [], "overriders": {} },
    }))
    .unwrap();
    assert!(scope.spec.overriders.is_empty());
}
