//! The actions of users.

use entourage_core::object::ResourceId;
use serde_json::{Value, json};

use super::MEMBERS;
use crate::{
    config_map, deployment,
    world::{Random, World, id as key, id_of},
};

/// The Deployments, with their namespaces.
const DEPLOYMENTS: [(&str, &str); 4] = [
    ("default", "one"),
    ("default", "two"),
    ("shop", "three"),
    ("shop", "one"),
];
const CONFIGS: [(&str, &str); 4] = [
    ("default", "red"),
    ("default", "green"),
    ("shop", "blue"),
    ("shop", "red"),
];
const PLACES: [&str; 2] = ["default", "shop"];

/// The kinds of templates; two groups have a Widget.
pub(super) const TEMPLATES: [&str; 7] = [
    "Deployment",
    "ConfigMap",
    "Widget",
    "ClusterRole",
    "ServiceImport",
    "EndpointSlice",
    "Namespace",
];

fn one_of<T: Copy>(users: &mut Random, all: &[T]) -> T {
    all[users.below(all.len())]
}

fn some_of<'a>(users: &mut Random, all: &[&'a str]) -> Vec<&'a str> {
    all.iter().copied().filter(|_| users.below(2) == 0).collect()
}

/// As `kubectl apply`: what users set replaces what users set before, what the control plane set stays.
pub(super) fn apply(world: &mut World, mut object: Value) {
    let key = id_of(&object);
    if world.deleted_namespaces.contains(&*key.namespace) {
        return;
    }
    let is_ending = |world: &World| {
        let held = world.hub.get(&key);
        held.is_some_and(|held| !held["metadata"]["deletionTimestamp"].is_null())
    };
    // Twins must not differ in whether a policy comes while the former one of its name still ends.
    while is_ending(world) {
        if !world.settle() {
            world.restart();
        }
    }
    let Some(held) = world.hub.get(&key).cloned() else {
        return world.apply(object);
    };
    let mut next = held.clone();
    for field in ["spec", "data", "rules"] {
        if object.get(field).is_some() {
            next[field] = object[field].take();
        }
    }
    let labels = next["metadata"]["labels"]
        .as_object()
        .cloned()
        .unwrap_or_default();
    let mut labels: serde_json::Map<_, _> = labels
        .into_iter()
        .filter(|(key, _)| key.contains("karmada.io") && !key.contains("skip-auto"))
        .collect();
    labels.extend(
        object["metadata"]["labels"]
            .as_object()
            .cloned()
            .unwrap_or_default(),
    );
    next["metadata"]["labels"] = labels.into();
    if next != held {
        world.replace(next);
    }
}

/// A ConfigMap of a member's own.
pub(super) fn theirs() -> Value {
    config_map("red", "theirs")
}

pub(super) fn namespace(name: &str, labels: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
}

fn labelled(users: &mut Random, mut object: Value) -> Value {
    match users.below(3) {
        0 => object["metadata"]["labels"]["tier"] = json!("a"),
        1 => object["metadata"]["labels"]["tier"] = json!("b"),
        _ => {}
    }
    object
}

pub(super) fn random_deployment(users: &mut Random) -> Value {
    let (namespace, name) = one_of(users, &DEPLOYMENTS);
    let near: Vec<&str> = CONFIGS
        .iter()
        .filter(|each| each.0 == namespace)
        .map(|each| each.1)
        .collect();
    let mut object = deployment(name, &some_of(users, &near));
    object["metadata"]["namespace"] = json!(namespace);
    object["spec"]["replicas"] = json!(one_of(users, &[0, 1, 2, 5, 9]));
    labelled(users, object)
}

pub(super) fn random_config(users: &mut Random) -> Value {
    let (namespace, name) = one_of(users, &CONFIGS);
    let mut object = config_map(name, one_of(users, &["a", "b", "c"]));
    object["metadata"]["namespace"] = json!(namespace);
    labelled(users, object)
}

/// Something of the other kinds.
pub(super) fn random_other(users: &mut Random) -> Value {
    let size = users.below(4);
    let verb = ["get", "list", "watch", "create"][size];
    let object = match users.below(6) {
        0 => {
            json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": size}})
        }
        1 => {
            json!({"apiVersion": "other.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"colour": size}})
        }
        2 => {
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
                "metadata": {"name": one_of(users, &["viewer", "editor"])},
                "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": [verb]}],
            })
        }
        3 => json!({
            "apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ServiceImport", "metadata": {"name": "web"},
            "spec": {"type": "ClusterSetIP", "ports": [{"port": 80 + size}]},
        }),
        _ => {
            let service = one_of(users, &["derived-web", "derived-web", "other"]);
            json!({
                "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
                "metadata": {"name": one_of(users, &["s1", "s2"]), "labels": {"kubernetes.io/service-name": service}},
                "addressType": "IPv4", "endpoints": [],
            })
        }
    };
    if object["kind"] == "EndpointSlice" {
        object
    } else {
        labelled(users, object)
    }
}

fn random_template(users: &mut Random) -> ResourceId {
    match users.below(10) {
        0..=2 => {
            let (namespace, name) = one_of(users, &DEPLOYMENTS);
            key("Deployment", namespace, name)
        }
        3..=5 => {
            let (namespace, name) = one_of(users, &CONFIGS);
            key("ConfigMap", namespace, name)
        }
        6 => key(one_of(users, &["Widget", "Widget.other.com"]), "default", "w"),
        7 => key("ClusterRole", "", one_of(users, &["viewer", "editor"])),
        8 => key("ServiceImport", "default", "web"),
        _ => key("EndpointSlice", "default", one_of(users, &["s1", "s2"])),
    }
}

pub(super) fn delete_template(world: &mut World, users: &mut Random) {
    let key = random_template(users);
    world.delete_at(&key);
}

pub(super) fn random_binding(users: &mut Random) -> ResourceId {
    let template = random_template(users);
    let binding = if template.namespace.is_empty() {
        "ClusterResourceBinding"
    } else {
        "ResourceBinding"
    };
    let name = format!("{}-{}", template.name, template.gvk.kind.to_lowercase());
    key(binding, &template.namespace, &name)
}

pub(super) fn random_policy(users: &mut Random) -> Value {
    let namespace = one_of(users, &["default", "default", "shop", ""]);
    let name = if namespace == "shop" {
        "pa"
    } else {
        one_of(users, &["pa", "pb", "pc"])
    };
    let selectors: Vec<Value> = (0..=users.below(2))
        .map(|_| random_selector(users, namespace))
        .collect();
    let mut spec = json!({
        "propagateDeps": users.below(4) != 0,
        "resourceSelectors": selectors,
        "priority": users.below(3),
        "placement": random_placement(users),
    });
    if users.below(2) == 0 {
        spec["preemption"] = json!("Always");
    }
    if users.below(4) == 0 {
        spec["activationPreference"] = json!("Lazy");
    }
    match users.below(8) {
        0 => spec["suspension"] = json!({"dispatching": true}),
        1 => {
            let clusters = some_of(users, &MEMBERS);
            spec["suspension"] = json!({"dispatchingOnClusters": {"clusterNames": clusters}});
        }
        2 => spec["dependentOverrides"] = json!(["oa"]),
        _ => {}
    }
    policy(namespace, name, &spec)
}

fn policy(namespace: &str, name: &str, spec: &Value) -> Value {
    let kind = if namespace.is_empty() {
        "ClusterPropagationPolicy"
    } else {
        "PropagationPolicy"
    };
    let mut object = json!({"apiVersion": "policy.karmada.io/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec});
    if !namespace.is_empty() {
        object["metadata"]["namespace"] = json!(namespace);
    }
    object
}

fn random_placement(users: &mut Random) -> Value {
    let mut clusters = some_of(users, &MEMBERS);
    if clusters.is_empty() {
        clusters = MEMBERS.to_vec();
    }
    let mut placement = json!({"clusterAffinity": {"clusterNames": clusters}});
    match users.below(4) {
        0 => {
            placement["replicaScheduling"] = json!({
                "replicaSchedulingType": "Divided",
                "weightPreference": {"staticWeightList": [
                    // Powers of two: their shares never tie.
                    {"targetCluster": {"clusterNames": ["member1"]}, "weight": 1},
                    {"targetCluster": {"clusterNames": ["member2"]}, "weight": 2},
                    {"targetCluster": {"clusterNames": ["member3"]}, "weight": 4},
                ]},
            });
        }
        1 => placement["replicaScheduling"] = json!({"replicaSchedulingType": "Duplicated"}),
        _ => {}
    }
    match users.below(6) {
        0 => {
            placement["spreadConstraints"] =
                json!([{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1 + users.below(2)}])
        }
        1 => {
            placement["spreadConstraints"] =
                json!([{"spreadByField": "region", "minGroups": 1, "maxGroups": 1}])
        }
        _ => {}
    }
    placement
}

fn random_selector(users: &mut Random, namespace: &str) -> Value {
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment"});
    let config = json!({"apiVersion": "v1", "kind": "ConfigMap"});
    let with = |mut object: Value, field: &str, value: Value| {
        object[field] = value;
        object
    };
    let tier = |users: &mut Random| json!({"matchLabels": {"tier": one_of(users, &["a", "b"])}});
    if namespace.is_empty() {
        return match users.below(9) {
            0 => deployment,
            1 => with(deployment, "namespace", json!("shop")),
            2 => {
                let tier = tier(users);
                with(deployment, "labelSelector", tier)
            }
            3 => {
                let tier = tier(users);
                with(config, "labelSelector", tier)
            }
            4 => json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"}),
            5 => {
                json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "name": "viewer"})
            }
            6 => json!({"apiVersion": "v1", "kind": "Namespace", "name": one_of(users, &["shop", "yard"])}),
            7 => json!({"apiVersion": one_of(users, &["example.com/v1", "other.com/v1"]), "kind": "Widget"}),
            _ => json!({"apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ServiceImport"}),
        };
    }
    match users.below(8) {
        0 | 1 => {
            let name = one_of(users, &["one", "two", "three"]);
            with(deployment, "name", json!(name))
        }
        2 => {
            let tier = tier(users);
            with(deployment, "labelSelector", tier)
        }
        3 => deployment,
        4 => {
            let name = one_of(users, &["red", "green", "blue"]);
            with(config, "name", json!(name))
        }
        5 => json!({"apiVersion": "example.com/v1", "kind": "Widget", "name": "w"}),
        6 => json!({"apiVersion": "other.com/v1", "kind": "Widget", "name": "w"}),
        _ => json!({"apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ServiceImport", "name": "web"}),
    }
}

pub(super) fn delete_policy(world: &mut World, users: &mut Random) {
    let namespace = one_of(users, &["default", "default", "shop", ""]);
    let name = if namespace == "shop" {
        "pa"
    } else {
        one_of(users, &["pa", "pb", "pc"])
    };
    world.delete_at(&id_of(&policy(namespace, name, &json!({}))));
}

pub(super) fn random_override(users: &mut Random) -> Value {
    let namespace = one_of(users, &["default", "shop", ""]);
    let name = one_of(users, &["oa", "ob"]);
    let value = one_of(users, &["x", "y", "z"]);
    let (selector, overriders) = match users.below(6) {
        0 | 1 => (
            json!({"apiVersion": "apps/v1", "kind": "Deployment"}),
            json!({"imageOverrider": [{"component": "Registry", "operator": "replace", "value": format!("mirror-{value}.io")}]}),
        ),
        2 => (
            one_of_values(
                users,
                &[
                    json!({"apiVersion": "apps/v1", "kind": "Deployment"}),
                    json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "red"}),
                    json!({"apiVersion": "v1", "kind": "Namespace"}),
                    json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"}),
                    json!({"apiVersion": "example.com/v1", "kind": "Widget"}),
                ],
            ),
            json!({"labelsOverrider": [{"operator": "add", "value": {"front": value}}]}),
        ),
        3 | 4 => (
            one_of_values(
                users,
                &[
                    json!({"apiVersion": "v1", "kind": "ConfigMap"}),
                    json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "green"}),
                    json!({"apiVersion": "v1", "kind": "ConfigMap", "labelSelector": {"matchLabels": {"tier": "a"}}}),
                ],
            ),
            json!({"plaintext": [{"path": "/data/key", "operator": "replace", "value": value}]}),
        ),
        // A bad one.
        _ => (
            one_of_values(
                users,
                &[
                    json!({"apiVersion": "v1", "kind": "ConfigMap"}),
                    json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "one"}),
                ],
            ),
            json!({"plaintext": [{"path": "/data/none", "operator": "replace", "value": value}]}),
        ),
    };
    let mut rule = json!({ "overriders": overriders });
    let clusters = some_of(users, &MEMBERS);
    if users.below(2) == 0 && !clusters.is_empty() {
        rule["targetCluster"] = json!({ "clusterNames": clusters });
    }
    override_policy(
        namespace,
        name,
        &json!({"resourceSelectors": [selector], "overrideRules": [rule]}),
    )
}

fn one_of_values(users: &mut Random, all: &[Value]) -> Value {
    all[users.below(all.len())].clone()
}

fn override_policy(namespace: &str, name: &str, spec: &Value) -> Value {
    let mut object = policy(namespace, name, spec);
    object["kind"] = json!(if namespace.is_empty() {
        "ClusterOverridePolicy"
    } else {
        "OverridePolicy"
    });
    object
}

pub(super) fn delete_override(world: &mut World, users: &mut Random) {
    let (namespace, name) = (
        one_of(users, &["default", "shop", ""]),
        one_of(users, &["oa", "ob"]),
    );
    world.delete_at(&id_of(&override_policy(namespace, name, &json!({}))));
}

pub(super) fn random_namespace(users: &mut Random) -> Value {
    let mut labels = json!({});
    if users.below(3) != 0 {
        labels["team"] = json!(one_of(users, &["a", "b"]));
    }
    if users.below(4) == 0 {
        labels["namespace.karmada.io/skip-auto-propagation"] = json!("true");
    }
    namespace(one_of(users, &["shop", "yard"]), &labels)
}

/// Deletes a namespace as its controller does: what is in it in any order, then itself.
pub(super) fn delete_namespace(world: &mut World, users: &mut Random) {
    let (name, backwards) = (one_of(users, &["shop", "yard", "yard"]), users.below(2) == 0);
    if !world.hub.contains_key(&key("Namespace", "", name)) {
        return;
    }
    let mut inside = world.hub_ids(|id| &*id.namespace == name);
    if backwards {
        inside.reverse();
    }
    for each in inside {
        world.delete_at(&each);
    }
    world.delete_at(&key("Namespace", "", name));
}

/// Somebody changes a copy of ours by hand.
pub(super) fn edit_copy(world: &mut World, users: &mut Random, member: &str) {
    let key = random_template(users);
    let Some(held) = world.members[member].get(&key) else {
        return;
    };
    if held["metadata"]["labels"]["entourage.dev/hub"].is_null() || world.down.contains(member) {
        return;
    }
    world.meddle_at(member, &key, |mut copy| {
        // A label that is not ours would stay.
        if !copy["metadata"]["labels"]["tier"].is_null() {
            copy["metadata"]["labels"]["tier"] = json!("edited");
        }
        match copy["kind"].as_str() {
            Some("ConfigMap") => copy["data"]["key"] = json!("edited"),
            Some("Deployment") => copy["spec"]["replicas"] = json!(77),
            Some("Widget") => copy["spec"]["size"] = json!(77),
            _ => {}
        }
        Some(copy)
    });
}

/// A change of the user's.
pub(super) fn touch_one(world: &mut World, users: &mut Random) {
    let key = random_template(users);
    touch(world, &key);
}

fn touch(world: &mut World, key: &ResourceId) {
    let Some(mut object) = world.hub.get(key).cloned() else {
        return;
    };
    if !object["metadata"]["deletionTimestamp"].is_null() {
        return;
    }
    let touched = &mut object["metadata"]["annotations"]["touched"];
    *touched = json!(format!("{}x", touched.as_str().unwrap_or_default()));
    world.replace(object);
}

pub(super) fn touch_all(world: &mut World) {
    for key in world.hub_ids(|id| TEMPLATES.contains(&&*id.gvk.kind)) {
        touch(world, &key);
    }
}

/// Suspensions are lifted, bad overrides and waits for overrides are taken out, what is divided is scaled.
pub(super) fn put_right(world: &mut World) {
    for key in world.hub_ids(|_| true) {
        let Some(mut object) = world.hub.get(&key).cloned() else {
            continue;
        };
        let claimed = object["metadata"]["labels"]
            .to_string()
            .contains("propagationpolicy.karmada.io");
        let spec = &mut object["spec"];
        match &*key.gvk.kind {
            "PropagationPolicy" | "ClusterPropagationPolicy" => {
                if let Some(spec) = spec.as_object_mut() {
                    spec.remove("suspension");
                    spec.remove("dependentOverrides");
                }
            }
            "OverridePolicy" | "ClusterOverridePolicy" if spec.to_string().contains("/data/none") => {
                world.delete_at(&key);
                continue;
            }
            // What an orphaned binding says is its own.
            "ResourceBinding" | "ClusterResourceBinding" => {
                if claimed || spec["suspension"].is_null() {
                    continue;
                }
                spec.as_object_mut().expect("spec").remove("suspension");
            }
            "Deployment" => {
                let replicas = spec["replicas"].as_i64().unwrap_or(0);
                spec["replicas"] = json!(replicas + 7);
            }
            _ => continue,
        }
        if world.hub[&key] != object {
            world.replace(object);
        }
    }
}

/// Policies that claim everything over all others, in one way.
pub(super) fn level(world: &mut World) {
    let all = [
        "Deployment",
        "ConfigMap",
        "Widget",
        "ServiceImport",
        "EndpointSlice",
    ];
    let api = |kind: &str| match kind {
        "Deployment" => "apps/v1",
        "ConfigMap" => "v1",
        "Widget" => "example.com/v1",
        "ServiceImport" => "multicluster.x-k8s.io/v1alpha1",
        _ => "discovery.k8s.io/v1",
    };
    let mut selectors: Vec<Value> = all
        .iter()
        .map(|kind| json!({"apiVersion": api(kind), "kind": kind}))
        .collect();
    selectors.push(json!({"apiVersion": "other.com/v1", "kind": "Widget"}));
    let spec = |selectors: &[Value]| {
        json!({
            "propagateDeps": true, "priority": 100, "preemption": "Always", "resourceSelectors": selectors,
            "placement": {
                "clusterAffinity": {"clusterNames": ["member2", "member3"]},
                "replicaScheduling": {"replicaSchedulingType": "Divided", "weightPreference": {"staticWeightList": [
                    {"targetCluster": {"clusterNames": ["member2"]}, "weight": 1},
                    {"targetCluster": {"clusterNames": ["member3"]}, "weight": 2},
                ]}},
            },
        })
    };
    for namespace in PLACES {
        apply(world, policy(namespace, "level", &spec(&selectors)));
    }
    let wide = [
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"}),
        json!({"apiVersion": "v1", "kind": "Namespace"}),
    ];
    apply(world, policy("", "level", &spec(&wide)));
}
