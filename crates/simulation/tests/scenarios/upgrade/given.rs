//! The life of a hub whose state is recorded for later versions. Only what the world of every version has is used here: a
//! former version runs this file as it is. A state from before failover and that of 0.1.0 are [`lived`], any other is [`evicting`].

use serde_json::{Value, json};

use crate::world::World;

pub(crate) const MEMBERS: [&str; 4] = ["member1", "member2", "member3", "member4"];

/// A hub on which each kind of record exists: bindings that are applied, not scheduled, without a dependency, in conflict,
/// with an override that fails, orphaned, preserved; attached bindings; divided replicas; a distribution.
pub(crate) fn lived() -> World {
    let mut world = World::distributing(&MEMBERS);
    settle(&mut world);
    for namespace in ["a", "b"] {
        world.apply(json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": {"team": "x"}},
        }));
    }
    world.meddle("member2", "ConfigMap", "foreign", |_| {
        Some(config_map("foreign", "theirs"))
    });
    settle(&mut world);
    for object in templates().into_iter().chain(policies()) {
        world.apply(object);
    }
    settle(&mut world);
    for (member, name, replicas) in [
        ("member1", "myapp", 2),
        ("member2", "myapp", 2),
        ("member3", "kept", 2),
    ] {
        report(&mut world, member, name, replicas);
    }
    world.delete("PropagationPolicy", "orphaned");
    settle(&mut world);
    world
}

/// As [`lived`], and then a workload is evicted from member5 and its replacement is not healthy yet, and a quota is assigned
/// to member1.
pub(crate) fn evicting() -> World {
    let mut world = lived();
    for member in ["member5", "member6"] {
        world.members.insert(member.into(), Default::default());
        world.apply(json!({
            "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": member},
            "spec": {"id": format!("id-{member}"), "syncMode": "Push", "apiEndpoint": "https://x"},
        }));
        world.set_down(member, false);
    }
    world.meddle("member1", "Namespace", "default", |_| {
        Some(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}))
    });
    settle(&mut world);
    let mut moved = policy("moved", ("apps/v1", "Deployment"), &["member5", "member6"]);
    moved["spec"]["placement"]["spreadConstraints"] =
        json!([{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}]);
    for object in [
        deployment("moved", 1, &["of-moved"]),
        config_map("of-moved", "one"),
        moved,
        quota(),
    ] {
        world.apply(object);
    }
    settle(&mut world);
    report(&mut world, "member5", "moved", 1);
    settle(&mut world);
    let mut cluster = world.hub_object("Cluster", "member5").expect("Cluster").clone();
    let since = serde_json::to_value(world.now.to_k8s()).expect("time");
    cluster["spec"]["taints"] = json!([{"key": "broken", "effect": "NoExecute", "timeAdded": since}]);
    world.replace(cluster);
    settle(&mut world);
    world
}

fn settle(world: &mut World) {
    assert!(world.settle_for(120_000));
}

fn templates() -> Vec<Value> {
    let mut uses_secret = deployment("myapp", 2, &["my-config"]);
    uses_secret["spec"]["template"]["spec"]["serviceAccountName"] = json!("runner");
    uses_secret["spec"]["template"]["spec"]["imagePullSecrets"] = json!([{"name": "registry"}]);
    vec![
        uses_secret,
        config_map("my-config", "one"),
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "runner"}}),
        json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "registry"},
            "type": "Opaque", "data": {"password": "c2VjcmV0"},
        }),
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
            "spec": {"selector": {"app": "myapp"}, "ports": [{"port": 80}]},
        }),
        deployment("divided", 7, &["my-config"]),
        deployment("orphaned", 1, &["of-orphaned"]),
        config_map("of-orphaned", "one"),
        deployment("kept", 2, &[]),
        deployment("waiting", 1, &["absent"]),
        deployment("nowhere", 1, &[]),
        config_map("foreign", "ours"),
        config_map("broken", "one"),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "reader"},
            "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}],
        }),
    ]
}

fn policies() -> Vec<Value> {
    let mut divided = policy("divided", ("apps/v1", "Deployment"), &MEMBERS[..3]);
    divided["spec"]["placement"]["replicaScheduling"] = json!({
        "replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted",
        "weightPreference": {"staticWeightList": [
            {"targetCluster": {"clusterNames": ["member1"]}, "weight": 2},
            {"targetCluster": {"clusterNames": ["member2"]}, "weight": 1},
            {"targetCluster": {"clusterNames": ["member3"]}, "weight": 1},
        ]},
    });
    let mut kept = policy("kept", ("apps/v1", "Deployment"), &["member3"]);
    kept["spec"]["preserveResourcesOnDeletion"] = json!(true);
    let mut roles = policy(
        "reader",
        ("rbac.authorization.k8s.io/v1", "ClusterRole"),
        &["member1"],
    );
    roles["kind"] = json!("ClusterPropagationPolicy");
    vec![
        policy("myapp", ("apps/v1", "Deployment"), &["member1", "member2"]),
        policy("web", ("v1", "Service"), &["member1", "member2"]),
        divided,
        policy("orphaned", ("apps/v1", "Deployment"), &["member4"]),
        kept,
        policy("waiting", ("apps/v1", "Deployment"), &["member1"]),
        policy("nowhere", ("apps/v1", "Deployment"), &["nope"]),
        policy("foreign", ("v1", "ConfigMap"), &["member2"]),
        policy("broken", ("v1", "ConfigMap"), &["member1"]),
        roles,
        overrides("my-config", "/data/key", "of member1"),
        overrides("broken", "/data/no/such/path", "x"),
        json!({
            "apiVersion": "apps.kruise.io/v1alpha1", "kind": "ResourceDistribution", "metadata": {"name": "settings"},
            "spec": {
                "resource": config_map("settings", "one"),
                "targets": {"namespaceLabelSelector": {"matchLabels": {"team": "x"}}},
            },
        }),
    ]
}

fn deployment(name: &str, replicas: i64, config_maps: &[&str]) -> Value {
    let volumes = config_maps
        .iter()
        .map(|each| json!({"name": each, "configMap": {"name": each}}));
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {
                    "containers": [{"name": "nginx", "image": "nginx"}],
                    "volumes": volumes.collect::<Vec<_>>(),
                },
            },
        },
    })
}

fn config_map(name: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"key": value}})
}

fn policy(name: &str, (api_version, kind): (&str, &str), clusters: &[&str]) -> Value {
    json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy", "metadata": {"name": name},
        "spec": {
            "propagateDeps": true,
            "resourceSelectors": [{"apiVersion": api_version, "kind": kind, "name": name}],
            "placement": {
                "clusterAffinity": {"clusterNames": clusters},
                "replicaScheduling": {"replicaSchedulingType": "Duplicated"},
            },
            "conflictResolution": "Abort",
        },
    })
}

fn quota() -> Value {
    json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "FederatedResourceQuota", "metadata": {"name": "team"},
        "spec": {
            "overall": {"cpu": "10"},
            "staticAssignments": [{"clusterName": "member1", "hard": {"cpu": "4"}}],
        },
    })
}

/// Sets a value of a ConfigMap on member1.
fn overrides(name: &str, path: &str, value: &str) -> Value {
    json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "OverridePolicy", "metadata": {"name": name},
        "spec": {
            "resourceSelectors": [{"apiVersion": "v1", "kind": "ConfigMap", "name": name}],
            "overrideRules": [{
                "targetCluster": {"clusterNames": ["member1"]},
                "overriders": {"plaintext": [{"path": path, "operator": "replace", "value": value}]},
            }],
        },
    })
}

/// The report of a member's controllers on a Deployment, all of whose replicas are ready.
pub(crate) fn report(world: &mut World, member: &str, name: &str, replicas: i64) {
    world.meddle(member, "Deployment", name, |mut object| {
        object["status"] = json!({
            "observedGeneration": object["metadata"]["generation"], "replicas": replicas,
            "updatedReplicas": replicas, "readyReplicas": replicas, "availableReplicas": replicas,
        });
        Some(object)
    });
}
