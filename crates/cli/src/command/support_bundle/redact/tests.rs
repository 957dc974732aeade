//! Redaction of objects and texts.

use serde_json::json;

use super::*;

const CANARY: &str = "hunter2-canary";

#[test]
fn no_payload_is_left_wherever_it_is() {
    for object in [
        json!({"kind": "Secret", "metadata": {"name": "s"}, "data": {"k": CANARY}, "stringData": {"k": CANARY}}),
        json!({"kind": "ConfigMap", "data": {"k": CANARY}, "binaryData": {"k": CANARY}}),
        json!({"kind": "Work", "spec": {"workload": {"manifests": [{"kind": "Crd", "metadata": {"name": "x"}, "spec": CANARY}]}}}),
        json!({"kind": "ResourceDistribution", "spec": {"resource": {"kind": "Secret", "metadata": {"name": "s"}, "data": {"k": CANARY}}}}),
        json!({"kind": "Pod", "spec": {"containers": [{"env": [{"name": "A", "value": CANARY}]}]}}),
        json!({"kind": "OverridePolicy", "spec": {"overrideRules": [{"overriders": {
            "plaintext": [{"path": "/a", "operator": "add", "value": {"b": CANARY}}],
            "argsOverrider": [{"containerName": "c", "operator": "add", "value": [CANARY]}],
            "labelsOverrider": [{"value": {"a": CANARY}}],
            "fieldOverrider": [{"fieldPath": "/a", "yaml": [{"subPath": "/b", "value": CANARY}]}]}}]}}),
        json!({"kind": "OverridePolicy", "spec": {"overriders": {"plaintext": [{"value": CANARY}]}}}),
        json!({"kind": "Cluster", "spec": {"proxyURL": format!("https://u:{CANARY}@proxy:1"), "proxyHeader": {"Proxy-Authorization": CANARY}}}),
        json!({"metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": CANARY,
            "example.com/note": CANARY, "plain": CANARY, "evilkarmada.io/x": CANARY}}}),
        json!({"status": {"aggregatedStatus": [{"clusterName": "m1", "status": {"replicas": 2, "note": CANARY, "deep": [CANARY]}}]}}),
        json!({"metadata": {"annotations": {"policy.karmada.io/applied-overrides":
            json!([{"policyName": "o", "overriders": {"plaintext": [{"path": "/a", "value": CANARY}]}}]).to_string()}}}),
        json!({"kind": "Work", "status": {"manifestStatuses": [{"health": "Healthy", "status": {"note": CANARY}}]}}),
        json!({"metadata": {"managedFields": [{"fieldsV1": {"f:data": {"f:hunter2-canary": {}}}}]}}),
        json!({"message": format!("authorization: Bearer {CANARY}")}),
        json!({"spec": {"token": CANARY, "clientSecret": CANARY}}),
        json!({"data": [CANARY], "spec": {"gracefulEvictionTasks": [{"preservedLabelState": {"a": CANARY}}]}}),
        json!({"kind": "Pod", "spec": {"containers": [{"args": ["--token", CANARY, "-v", format!("--password={CANARY}")],
            "command": ["sh", "-c", format!("login --secret {CANARY}")],
            "livenessProbe": {"httpGet": {"httpHeaders": [{"name": "Authorization", "value": CANARY}]}}}]}}),
        json!({"metadata": {"annotations": {"nginx.ingress.kubernetes.io/snippet": CANARY, "helm.sh/x": CANARY}}}),
        json!({"webhooks": [{"clientConfig": {"caBundle": CANARY, "url": format!("https://a:{CANARY}@b/?token={CANARY}")}}]}),
    ] {
        let mut redacted = object.clone();
        redact(&mut redacted);
        assert!(!redacted.to_string().contains("canary"), "{redacted}");
    }
}

#[test]
fn what_support_needs_is_kept() {
    for object in [
        json!({"spec": {"resource": {"kind": "Deployment", "name": "web", "namespace": "shop"}}}),
        json!({"metadata": {"annotations": {"policy.karmada.io/applied-placement": "{}", "entourage.dev/x": "y",
            "kubernetes.io/service-account.name": "m1"}}}),
        json!({"spec": {"containers": [{"args": ["--kubeconfig", "/etc/hub/kubeconfig", "--token-file=/var/token", "-v"]}]}}),
        json!({"spec": {"volumes": [{"secret": {"secretName": "login"}}], "automountServiceAccountToken": false}}),
        json!({"status": {"aggregatedStatus": [{"clusterName": "m1", "applied": true, "appliedMessage": "no right",
            "status": {"replicas": 2, "conditions": [{"type": "Available", "status": "True", "reason": "Ready"}]}}]}}),
        json!({"status": {"conditions": [{"type": "Ready", "message": "connection refused by https://10.0.0.1:6443"}]}}),
        json!({"spec": {"secretRef": {"namespace": "karmada-cluster", "name": "m1"}}}),
    ] {
        let mut redacted = object.clone();
        redact(&mut redacted);
        assert_eq!(redacted, object);
    }
    let mut work = json!({"manifests": [{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "n"}, "data": {}}]});
    redact(&mut work);
    let kept = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "n"}});
    assert_eq!(work["manifests"][0], kept);
}
