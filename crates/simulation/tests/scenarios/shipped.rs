//! Third-party kinds that are known by rules: what they name goes along, over several steps and from outside of namespaces.

use serde_json::{Value, json};

use crate::{
    binding, condition, config_map,
    policies::cluster_policy,
    policy_of,
    world::{World, id},
};

fn secret(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": {"a": "Yg=="}})
}

fn release() -> Value {
    json!({
        "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "metadata": {"name": "shop"},
        "spec": {
            "chart": {"spec": {"chart": "shop", "sourceRef": {"kind": "HelmRepository", "name": "charts"}}},
            "valuesFrom": [{"kind": "ConfigMap", "name": "values"}, {"kind": "Secret", "name": "password"}],
        },
    })
}

fn repository() -> Value {
    json!({
        "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "HelmRepository", "metadata": {"name": "charts"},
        "spec": {"url": "https://charts.example.com", "secretRef": {"name": "registry"}},
    })
}

#[test]
fn a_helm_release_takes_its_source_and_values_along_and_the_credentials_of_the_source() {
    let mut world = World::new(&["member1", "member2"]);
    for object in [
        secret("password"),
        secret("registry"),
        config_map("values", "a"),
        repository(),
        release(),
        policy_of(
            "p",
            "helm.toolkit.fluxcd.io/v2",
            "HelmRelease",
            "shop",
            &["member1"],
        ),
    ] {
        world.apply(object);
    }
    assert!(world.settle());
    let all = [
        ("HelmRelease", "shop"),
        ("HelmRepository", "charts"),
        ("ConfigMap", "values"),
        ("Secret", "password"),
        ("Secret", "registry"),
    ];
    for (kind, name) in &all {
        assert_eq!(world.holders(kind, name), ["member1"], "{kind} {name}");
    }
    for attached in ["charts-helmrepository", "registry-secret"] {
        let required = &binding(&world, attached)["spec"]["requiredBy"];
        assert_eq!(required.as_array().map(Vec::len), Some(1), "{required}");
        assert_eq!(required[0]["name"], "shop-helmrelease");
    }
    world.restart();
    assert!(world.settle());
    world.delete("HelmRelease", "shop");
    assert!(world.settle_for(600_000));
    for (kind, name) in all {
        assert!(world.holders(kind, name).is_empty(), "{kind} {name}");
    }
}

/// The source of a release in another namespace, as most people have it, and a release that has to be there before.
#[test]
fn what_a_shipped_rule_finds_in_another_namespace_goes_along_only_if_that_lets_it() {
    let mut world = World::new(&["member1"]);
    let in_flux = |mut object: Value| {
        object["metadata"]["namespace"] = json!("flux-system");
        object
    };
    let mut release = release();
    release["spec"]["chart"]["spec"]["sourceRef"]["namespace"] = json!("flux-system");
    release["spec"]["dependsOn"] = json!([{"name": "crds", "namespace": "kube-system"}]);
    let mut flux = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "flux-system"}});
    for object in [
        flux.clone(),
        in_flux(repository()),
        secret("password"),
        release,
        policy_of(
            "p",
            "helm.toolkit.fluxcd.io/v2",
            "HelmRelease",
            "shop",
            &["member1"],
        ),
    ] {
        world.apply(object);
    }
    assert!(world.settle());
    let source = id("HelmRepository", "flux-system", "charts");
    let reported = |world: &World| {
        let message = &condition(world, "shop-helmrelease", "Interpreted")["message"];
        message.as_str().unwrap_or_default().to_owned()
    };
    let system = "dependencies in namespace kube-system are never propagated: it is a system namespace";
    let kept_out = format!(
        "dependencies in namespace flux-system are not propagated: permit it by annotating that namespace with \
         entourage.dev/references-from: default; {system}"
    );
    assert_eq!(world.holders("Secret", "password"), ["member1"]);
    assert!(world.at("member1", &source).is_none());
    assert_eq!(reported(&world), kept_out);

    for (says, goes) in [("default", true), ("bakery", false), ("*", true)] {
        flux["metadata"]["annotations"] = json!({"entourage.dev/references-from": says});
        world.replace(flux.clone());
        assert!(world.settle_for(600_000));
        assert_eq!(world.at("member1", &source).is_some(), goes, "{says}");
        assert_eq!(reported(&world), if goes { system } else { &kept_out }, "{says}");
    }
    world.restart();
    let wrote = world.writes.len();
    assert!(world.settle_for(60_000));
    assert_eq!(world.writes.len(), wrote, "a restart writes nothing");
}

#[test]
fn an_object_without_a_namespace_takes_along_what_lies_in_the_namespace_that_it_names() {
    let mut world = World::new(&["member1", "member2"]);
    let set = json!({
        "apiVersion": "apps.kruise.io/v1alpha1", "kind": "SidecarSet", "metadata": {"name": "proxy"},
        "spec": {"namespace": "default", "containers": [{"name": "a", "envFrom": [{"secretRef": {"name": "proxy"}}]}]},
    });
    let selectors = json!([{"apiVersion": "apps.kruise.io/v1alpha1", "kind": "SidecarSet", "name": "proxy"}]);
    for object in [
        secret("proxy"),
        set,
        cluster_policy("p", &selectors, &["member1"]),
    ] {
        world.apply(object);
    }
    assert!(world.settle());
    assert_eq!(world.holders("SidecarSet", "proxy"), ["member1"]);
    assert_eq!(world.holders("Secret", "proxy"), ["member1"]);
    world.delete("SidecarSet", "proxy");
    assert!(world.settle_for(600_000));
    assert!(world.holders("Secret", "proxy").is_empty());
}

/// As in Karmada with its gate on: the parts are reported to whoever reads the binding, and nothing is divided.
#[test]
fn the_parts_of_a_ray_cluster_are_in_its_binding_and_it_goes_everywhere_as_a_whole() {
    let group = |name: &str, replicas: i64, cpu: &str| {
        json!({"groupName": name, "replicas": replicas, "template": {"spec": {"containers": [
            {"name": "ray", "resources": {"requests": {"cpu": cpu}}},
        ]}}})
    };
    let cluster = |groups: &Value| {
        json!({"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": "rays"}, "spec": {
            "headGroupSpec": {"template": {"spec": {"containers": [{"name": "head"}]}}}, "workerGroupSpecs": groups,
        }})
    };
    let mut world = World::new(&["member1", "member2"]);
    world.apply(cluster(&json!([
        group("small", 4, "500m"),
        group("idle", 0, "1")
    ])));
    let mut divided = policy_of("p", "ray.io/v1", "RayCluster", "rays", &["member1", "member2"]);
    divided["spec"]["placement"]["replicaScheduling"] = json!({"replicaSchedulingType": "Divided"});
    world.apply(divided);
    assert!(world.settle());
    let spec = binding(&world, "rays-raycluster")["spec"].clone();
    let needs = |cpu: &str| json!({"resourceRequest": {"cpu": cpu}});
    assert_eq!(
        spec["components"],
        json!([
            {"name": "head", "replicas": 1},
            {"name": "small", "replicas": 4, "replicaRequirements": needs("500m")},
            {"name": "idle", "replicas": 0, "replicaRequirements": needs("1")},
        ])
    );
    assert_eq!(
        (&spec["replicas"], &spec["clusters"]),
        (&Value::Null, &json!([{"name": "member1"}, {"name": "member2"}]))
    );
    world.restart();
    let wrote = world.writes.len();
    assert!(world.settle_for(60_000));
    assert_eq!(world.writes.len(), wrote, "a restart writes nothing");

    world.apply(cluster(&json!([group("small", 6, "500m")])));
    assert!(world.settle());
    let spec = binding(&world, "rays-raycluster")["spec"].clone();
    assert_eq!(spec["components"][1]["replicas"], 6);
    assert_eq!(spec["components"].as_array().map(Vec::len), Some(2));
    let small = &world.on("member2", "RayCluster", "rays").expect("the copy")["spec"]["workerGroupSpecs"][0];
    assert_eq!(small["replicas"], 6, "each cluster gets all of it");

    let name = "a-name-that-no-binding-can-hold-at-all";
    world.apply(cluster(&json!([group(name, 7, "500m")])));
    assert!(world.settle());
    assert_eq!(
        binding(&world, "rays-raycluster")["spec"]["components"],
        spec["components"]
    );
    let small = &world.on("member2", "RayCluster", "rays").expect("the copy")["spec"]["workerGroupSpecs"][0];
    assert_eq!(small["replicas"], 7, "it runs all the same");
    assert_eq!(
        condition(&world, "rays-raycluster", "Interpreted")["message"],
        "shipped rules: InterpretComponent failed: component 1: its name is longer than the 32 characters that a binding \
         holds; shorten it; its components stay as last known"
    );
}

#[test]
fn the_status_of_a_release_says_what_its_clusters_say() {
    let mut world = World::new(&["member1", "member2"]);
    for object in [
        repository(),
        release(),
        policy_of(
            "p",
            "helm.toolkit.fluxcd.io/v2",
            "HelmRelease",
            "shop",
            &["member1", "member2"],
        ),
    ] {
        world.apply(object);
    }
    assert!(world.settle());
    for (member, ready) in [("member1", "True"), ("member2", "False")] {
        world.meddle(member, "HelmRelease", "shop", |mut live| {
            let generation = live["metadata"]["generation"].clone();
            live["status"] = json!({
                "observedGeneration": generation,
                "conditions": [{"type": "Ready", "status": ready, "reason": "Told", "message": "by the controller",
                                "lastTransitionTime": "2026-01-01T00:00:00Z"}],
            });
            Some(live)
        });
    }
    assert!(world.settle_for(60_000));
    let status = &world.hub_object("HelmRelease", "shop").expect("release")["status"];
    assert_eq!(status["conditions"][0]["status"], "False", "{status}");
    assert_eq!(
        status["conditions"][0]["message"],
        "member1: by the controller; member2: by the controller"
    );
    let wrote = world.writes.len();
    assert!(world.settle_for(60_000));
    assert_eq!(world.writes.len(), wrote, "a quiet system writes nothing");
}
