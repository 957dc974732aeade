//! Configurations of interpreters as they are written and read.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::explorer::FailurePolicy;
use super::*;

/// Reads YAML and checks that it is written as it was read.
fn round_trip<T: DeserializeOwned + Serialize>(yaml: &str) -> T {
    let value: Value = serde_saphyr::from_str(yaml).unwrap();
    let read: T = serde_json::from_value(value.clone()).unwrap();
    assert_eq!(serde_json::to_value(&read).unwrap(), value);
    read
}

#[test]
fn scripts_of_a_kind_survive_unchanged() {
    let read: ResourceInterpreterCustomization = round_trip(
        r#"
apiVersion: config.karmada.io/v1alpha1
kind: ResourceInterpreterCustomization
metadata: { name: nginx }
spec:
  target: { apiVersion: example.com/v1, kind: Nginx }
  customizations:
    retention: { luaScript: "function Retain(desiredObj, observedObj) return desiredObj end" }
    replicaResource: { luaScript: "function GetReplicas(desiredObj) return 1, {} end" }
    componentResource: { luaScript: "function GetComponents(desiredObj) return {} end" }
    replicaRevision: { luaScript: "function ReviseReplica(desiredObj, n) return desiredObj end" }
    statusReflection: { luaScript: "function ReflectStatus(observedObj) return observedObj.status end" }
    statusAggregation: { luaScript: "function AggregateStatus(desiredObj, items) return desiredObj end" }
    healthInterpretation: { luaScript: "function InterpretHealth(observedObj) return true end" }
    dependencyInterpretation: { luaScript: "function GetDependencies(desiredObj) return {} end" }
"#,
    );
    assert_eq!(read.spec.target.kind, "Nginx");
    assert!(read.spec.customizations.component_resource.is_some());
}

#[test]
fn rules_without_scripts_survive_unchanged() {
    let read: ResourceInterpreterCustomization = round_trip(
        r#"
apiVersion: config.karmada.io/v1alpha1
kind: ResourceInterpreterCustomization
metadata: { name: farms }
spec:
  target: { apiVersion: example.com/v1, kind: Farm }
  customizations: {}
  declarative:
    podTemplates:
    - paths: ["spec.sheds[*].template"]
      name: shed
      nameFrom: name
      replicas: { path: count, default: 1 }
      namespaceFrom: $.spec.namespace
      ownClaims: "claims[*].name"
    containers: [spec.helper]
    dependencies:
    - paths: ["spec.refs[?@.type == 'Secret'].name"]
      apiVersion: v1
      kind: Secret
      apiVersionFrom: apiVersion
      kindFrom: kind
      apiVersions: { Secret: v1 }
      namespaceFrom: namespace
      prefix: a-
      suffix: -b
      optional: true
      optionalFrom: optional
      when: [{ path: mode, in: [a], notIn: [b], default: a, exists: true }]
    replicas: { path: spec.replicas, default: 1 }
    retention: [spec.paused]
    statusReflection: { paths: [ready], generations: true }
    statusAggregation:
      fields: [{ path: conditions, merge: Conditions, badWhenTrue: [Failed] }]
      observedGeneration: true
    health:
      observedGeneration: true
      conditions: [{ type: Ready, status: "True", mayBeAbsent: true }]
      phases: [{ path: status.phase, healthy: [Up], unhealthy: [Down], default: Up }]
      comparisons: [{ number: { path: status.ready }, atLeast: { default: 1 } }]
"#,
    );
    assert_eq!(
        read.spec.declarative.map(|rules| rules.dependencies.len()),
        Some(1)
    );
}

#[test]
fn interpreting_hooks_survive_unchanged() {
    let read: ResourceInterpreterWebhookConfiguration = round_trip(
        r#"
apiVersion: config.karmada.io/v1alpha1
kind: ResourceInterpreterWebhookConfiguration
metadata: { name: examples }
webhooks:
- name: workloads.example.com
  clientConfig:
    service: { namespace: hooks, name: interpreter, path: /interpret, port: 8443 }
    caBundle: Q0E=
  interpreterContextVersions: [v1alpha1]
  timeoutSeconds: 3
  rules:
  - operations: [InterpretReplica, InterpretDependency]
    apiGroups: [workload.example.io]
    apiVersions: [v1alpha1]
    kinds: [Workload]
- name: others.example.com
  clientConfig: { url: "https://hooks.example.com/interpret" }
  interpreterContextVersions: [v1alpha1]
"#,
    );
    let hooks = &read.spec.webhooks;
    assert_eq!(hooks[0].client_config.ca_bundle.as_ref().unwrap().0, b"CA");
    assert_eq!(hooks[0].client_config.service.as_ref().unwrap().port, Some(8443));
    assert_eq!(hooks[1].rules, []);
}

/// Source: the proposal's own example.
#[test]
fn exploring_hooks_survive_unchanged_and_have_the_defaults_of_the_proposal() {
    let read: ResourceExploringWebhookConfiguration = round_trip(
        r#"
apiVersion: config.karmada.io/v1alpha1
kind: ResourceExploringWebhookConfiguration
metadata: { name: example }
webhooks:
- name: bar.example.com
  rules:
  - operations: [ExploreDependencies, ExploreHealthy]
    apiGroups: [bar.example.com]
    apiVersions: ["*"]
    resources: [bars]
    scope: Cluster
  clientConfig: { url: "https://xxx:443/explore-bar", caBundle: Q0E= }
  failurePolicy: Fail
  exploreReviewVersions: [v1alpha1]
  timeoutSeconds: 3
"#,
    );
    assert_eq!(read.spec.webhooks[0].timeout_seconds, 3);

    let short: ResourceExploringWebhookConfiguration = serde_json::from_value(serde_json::json!({
        "metadata": { "name": "short" },
        "webhooks": [{
            "name": "a.example.com",
            "clientConfig": { "url": "https://a.example.com" },
            "exploreReviewVersions": ["v1alpha1"],
        }],
    }))
    .unwrap();
    let hook = &short.spec.webhooks[0];
    assert_eq!(
        (hook.failure_policy, hook.timeout_seconds),
        (FailurePolicy::Fail, 10)
    );
}
