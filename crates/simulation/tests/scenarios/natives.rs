//! Native kinds beyond the main job: references by label, and statuses of kinds without a generation.

use entourage_core::observation::Observation;
use serde_json::{Value, json};

use crate::{binding, condition, policy_of, settled, world::World};

const SERVICE_NAME: &str = "kubernetes.io/service-name";

fn import() -> Value {
    json!({
        "apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ServiceImport", "metadata": {"name": "web"},
        "spec": {"type": "ClusterSetIP", "ports": [{"port": 80}]},
    })
}

fn slice(name: &str, service: &str) -> Value {
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {"name": name, "labels": {SERVICE_NAME: service}},
        "addressType": "IPv4", "endpoints": [{"addresses": ["10.0.0.1"]}], "ports": [],
    })
}

fn relabel(world: &mut World, name: &str, service: &str) {
    let mut held = world.hub_object("EndpointSlice", name).expect("slice").clone();
    held["metadata"]["labels"][SERVICE_NAME] = json!(service);
    world.replace(held);
}

fn imported() -> World {
    let mut world = World::new(&["member1", "member2"]);
    for object in [
        slice("before", "derived-web"),
        slice("of-another", "derived-shop"),
        import(),
        policy_of(
            "imports",
            "multicluster.x-k8s.io/v1alpha1",
            "ServiceImport",
            "web",
            &["member1"],
        ),
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "derived-web"},
            "spec": {"ports": [{"port": 80}]},
        }),
    ] {
        world.apply(object);
    }
    assert!(world.settle());
    world
}

fn assert_quiet(world: &mut World) {
    let wrote = world.writes.len();
    assert!(world.settle_for(60_000));
    world.restart();
    assert!(world.settle_for(60_000));
    assert_eq!(world.writes.len(), wrote, "{:#?}", &world.writes[wrote..]);
}

#[test]
fn what_a_selector_matches_goes_along_and_leaves_when_it_does_not_match_any_more() {
    let mut world = imported();
    assert_eq!(world.holders("ServiceImport", "web"), ["member1"]);
    assert_eq!(world.holders("Service", "derived-web"), ["member1"]);
    assert_eq!(world.holders("EndpointSlice", "before"), ["member1"]);
    assert!(world.holders("EndpointSlice", "of-another").is_empty());
    let listed = binding(&world, "web-serviceimport")["metadata"]["annotations"]
        ["resourcebinding.karmada.io/dependencies"]
        .as_str()
        .map(|text| serde_json::from_str::<Value>(text).expect("JSON"));
    assert_eq!(
        listed,
        Some(json!([
            {"apiVersion": "v1", "kind": "Service", "namespace": "default", "name": "derived-web"},
            {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "namespace": "default",
             "labelSelector": {"matchLabels": {SERVICE_NAME: "derived-web"}}},
        ]))
    );
    assert_quiet(&mut world);

    world.apply(slice("later", "derived-web"));
    relabel(&mut world, "of-another", "derived-web");
    relabel(&mut world, "before", "derived-shop");
    assert!(world.settle());
    assert_eq!(world.holders("EndpointSlice", "later"), ["member1"]);
    assert_eq!(world.holders("EndpointSlice", "of-another"), ["member1"]);
    assert!(world.holders("EndpointSlice", "before").is_empty());
    assert!(
        world
            .hub_object("ResourceBinding", "before-endpointslice")
            .is_none()
    );

    world.delete("EndpointSlice", "later");
    assert!(world.settle_for(60_000));
    assert!(world.holders("EndpointSlice", "later").is_empty());
    assert_eq!(world.holders("EndpointSlice", "of-another"), ["member1"]);
    assert_quiet(&mut world);
}

#[test]
fn an_imported_service_takes_its_endpoints_along_though_its_policy_does_not_ask_for_it() {
    let mut world = imported();
    let mut policy = world
        .hub_object("PropagationPolicy", "imports")
        .expect("policy")
        .clone();
    policy["spec"]["propagateDeps"] = json!(false);
    world.replace(policy);
    assert!(world.settle_for(60_000));
    assert_eq!(world.holders("Service", "derived-web"), ["member1"]);
    assert_eq!(world.holders("EndpointSlice", "before"), ["member1"]);
    assert_quiet(&mut world);
}

#[test]
fn what_a_selector_matched_leaves_with_the_object_that_selected_it() {
    let mut world = imported();
    world.delete("ServiceImport", "web");
    assert!(world.settle_for(60_000));
    assert!(world.holders("EndpointSlice", "before").is_empty());
    assert!(world.holders("Service", "derived-web").is_empty());
    world.apply(slice("later", "derived-web"));
    assert!(world.settle());
    assert!(world.holders("EndpointSlice", "later").is_empty());
    world.apply(import());
    assert!(world.settle());
    assert_eq!(world.holders("EndpointSlice", "later"), ["member1"]);
}

fn autoscaler() -> Value {
    json!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "web"},
        "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
                 "minReplicas": 1, "maxReplicas": 5},
    })
}

#[test]
fn a_status_without_news_costs_nothing_where_a_kind_has_no_generation() {
    let mut world = World::new(&["member1", "member2"]);
    let both = &["member1", "member2"];
    world.apply(autoscaler());
    world.apply(policy_of(
        "scaling",
        "autoscaling/v2",
        "HorizontalPodAutoscaler",
        "web",
        both,
    ));
    assert!(world.settle());
    let report = |world: &mut World, replicas: i64, usage: &str| {
        for member in both {
            world.meddle(member, "HorizontalPodAutoscaler", "web", |mut live| {
                live["status"] = json!({
                    "currentReplicas": replicas, "desiredReplicas": replicas,
                    "currentMetrics": [{"type": "Resource", "resource": {"current": {"averageValue": usage}}}],
                });
                Some(live)
            });
        }
        assert!(world.settle_for(60_000));
    };
    report(&mut world, 2, "1m");
    let status = &world
        .hub_object("HorizontalPodAutoscaler", "web")
        .expect("template")["status"];
    assert_eq!(
        (
            status["currentReplicas"].as_i64(),
            status["desiredReplicas"].as_i64()
        ),
        (Some(4), Some(4))
    );
    let wrote = world.writes.len();
    report(&mut world, 2, "2m");
    assert_eq!(world.writes.len(), wrote, "{:#?}", &world.writes[wrote..]);
    world.meddle("member1", "HorizontalPodAutoscaler", "web", |mut live| {
        live["spec"]["maxReplicas"] = json!(9);
        Some(live)
    });
    assert!(world.settle());
    assert_eq!(
        world
            .on("member1", "HorizontalPodAutoscaler", "web")
            .expect("copy")["spec"]["maxReplicas"],
        5
    );
    assert_quiet(&mut world);
}

#[test]
fn the_points_of_load_balancers_are_on_the_template_until_it_is_none() {
    let mut world = World::new(&["member1", "member2"]);
    let service = |kind: &str| {
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
            "spec": {"type": kind, "clusterIP": "10.96.0.7", "clusterIPs": ["10.96.0.7"], "ports": [{"port": 80}]},
        })
    };
    world.apply(service("LoadBalancer"));
    world.apply(policy_of(
        "services",
        "v1",
        "Service",
        "web",
        &["member1", "member2"],
    ));
    assert!(world.settle());
    for (member, address) in [("member1", "192.0.2.1"), ("member2", "192.0.2.2")] {
        let live = world.on(member, "Service", "web").expect("copy");
        assert!(
            live["spec"]["clusterIP"].is_null(),
            "the hub's address does not travel"
        );
        world.meddle(member, "Service", "web", |mut live| {
            live["spec"]["clusterIP"] = json!("10.43.0.1");
            live["status"] = json!({"loadBalancer": {"ingress": [{"ip": address}]}});
            Some(live)
        });
    }
    assert!(world.settle_for(60_000));
    let points = |world: &World| {
        world.hub_object("Service", "web").expect("template")["status"]["loadBalancer"].clone()
    };
    assert_eq!(
        points(&world)["ingress"],
        json!([{"ip": "192.0.2.1"}, {"ip": "192.0.2.2"}])
    );
    assert_eq!(
        world.on("member1", "Service", "web").expect("copy")["spec"]["clusterIP"],
        "10.43.0.1"
    );
    assert_quiet(&mut world);
    world.set_down("member2", true);
    world.apply(service("ClusterIP"));
    let mut emptied = world.hub_object("Service", "web").expect("template").clone();
    emptied["status"] = json!({"loadBalancer": {}});
    world.replace(emptied);
    assert!(world.settle_for(60_000));
    assert!(
        points(&world)["ingress"].is_null(),
        "an API server would refuse points there"
    );
}

/// The member's own controller sets a field back each time it is put right; answers how often it was written.
fn contended(world: &mut World, milliseconds: i64) -> usize {
    let until = world.now.plus(milliseconds);
    let mut written = 0;
    while world.now < until {
        let live = world.on("member1", "Deployment", "myapp").expect("copy");
        let is_right = live["spec"]["paused"].is_null();
        if is_right {
            written += 1;
            pause(world);
        }
        assert!(world.settle_for(100));
        world.now = world.now.plus(100);
    }
    written
}

fn pause(world: &mut World) {
    world.meddle("member1", "Deployment", "myapp", |mut copy| {
        copy["spec"]["paused"] = json!(true);
        Some(copy)
    });
}

fn is_paused(world: &World) -> bool {
    world.on("member1", "Deployment", "myapp").expect("copy")["spec"]["paused"] == true
}

fn reported(world: &World) -> String {
    let condition = condition(world, "myapp-deployment", "FullyApplied");
    condition["message"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn what_keeps_changing_a_copy_back_is_reported_and_fought_ever_more_rarely_until_it_ends() {
    let mut world = settled();
    pause(&mut world);
    assert!(world.settle_for(0));
    assert!(!is_paused(&world), "a single change is put right at once");
    assert!(world.settle_for(60_000));
    let wrote = world.writes.len();

    let rounds = contended(&mut world, 600_000);
    assert!((10..=18).contains(&rounds), "{rounds} rounds in ten minutes");
    let hub = &world.writes[wrote..];
    let hub: Vec<_> = hub.iter().filter(|write| write.starts_with("hub")).collect();
    assert!(
        hub.len() <= rounds + 2,
        "which copy was written, once each time: {hub:#?}"
    );
    let message = reported(&world);
    assert!(
        message.contains("another writer on member1 keeps changing spec.paused"),
        "{message}"
    );

    assert!(world.settle_for(120_000));
    assert!(!is_paused(&world), "it is never given up");
    assert!(reported(&world).contains("keeps changing"), "it may come back");
    let wrote = world.writes.len();
    assert!(world.settle_for(600_000));
    assert_eq!(
        condition(&world, "myapp-deployment", "FullyApplied")["status"],
        "True"
    );
    let members = world.writes[wrote..]
        .iter()
        .filter(|write| !write.starts_with("hub"));
    assert_eq!(members.count(), 0, "what is right is not written");
    pause(&mut world);
    assert!(world.settle_for(0));
    assert!(!is_paused(&world), "it is forgotten");
}

#[test]
fn a_new_template_ends_the_wait_of_a_fight() {
    let mut world = settled();
    contended(&mut world, 120_000);
    assert!(is_paused(&world) && reported(&world).contains("keeps changing"));
    let mut template = world.hub_object("Deployment", "myapp").expect("template").clone();
    template["spec"]["paused"] = json!(true);
    template["spec"]["minReadySeconds"] = json!(5);
    world.replace(template);
    assert!(world.settle_for(0));
    let copy = world.on("member1", "Deployment", "myapp").expect("copy");
    assert_eq!(copy["spec"]["minReadySeconds"], 5, "it does not wait");
    assert!(world.settle_for(5_000));
    let status = &condition(&world, "myapp-deployment", "FullyApplied")["status"];
    assert_eq!(status, "True", "{}", reported(&world));
}

#[test]
fn what_a_selector_matches_goes_along_also_when_there_was_nothing_to_match_for_long() {
    let mut world = imported();
    for name in ["before", "of-another"] {
        world.delete("EndpointSlice", name);
    }
    for _ in 0..3 {
        world.now = world.now.plus(61_000);
        world.tell_again(Observation::Tick);
        assert!(world.settle());
    }
    world.apply(slice("late", "derived-web"));
    assert!(world.settle());
    assert_eq!(world.holders("EndpointSlice", "late"), ["member1"]);
}
