//! Policies: twins, kinds that nothing is known of, preemption, lazy activation, suspension.

use serde_json::{Value, json};

use crate::{
    binding, condition, config_map, deployment, policy_of,
    world::{World, id},
};

pub(crate) fn cluster_policy(name: &str, selectors: &Value, clusters: &[&str]) -> Value {
    json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "ClusterPropagationPolicy", "metadata": {"name": name},
        "spec": {
            "propagateDeps": true,
            "resourceSelectors": selectors,
            "placement": {"clusterAffinity": {"clusterNames": clusters}},
        },
    })
}

pub(crate) fn cluster_role(name: &str) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name},
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}],
    })
}

pub(crate) fn widget(name: &str) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": {"size": 1}})
}

pub(crate) fn with(mut policy: Value, fields: &Value) -> Value {
    for (key, value) in fields.as_object().expect("fields") {
        policy["spec"][key] = value.clone();
    }
    policy
}

pub(crate) fn world() -> World {
    let mut world = World::new(&["member1", "member2"]);
    assert!(world.settle());
    world
}

pub(crate) fn claim<'a>(world: &'a World, kind: &str, name: &str) -> (&'a str, &'a str) {
    let annotations = &world.hub_object(kind, name).expect("template")["metadata"]["annotations"];
    let own = annotations["propagationpolicy.karmada.io/name"].as_str();
    let cluster = annotations["clusterpropagationpolicy.karmada.io/name"].as_str();
    match (own, cluster) {
        (Some(name), None) => ("PropagationPolicy", name),
        (None, Some(name)) => ("ClusterPropagationPolicy", name),
        (None, None) => ("", ""),
        (Some(_), Some(_)) => panic!("claimed twice"),
    }
}

#[test]
fn a_cluster_scoped_template_has_a_cluster_binding_and_copies_that_go_with_it() {
    let mut world = world();
    world.apply(cluster_role("viewer"));
    let selectors = json!([{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"}]);
    world.apply(cluster_policy("roles", &selectors, &["member1", "member2"]));
    assert!(world.settle());
    let stored = world
        .hub_object("ClusterResourceBinding", "viewer-clusterrole")
        .expect("binding");
    assert_eq!(stored["metadata"]["namespace"], Value::Null);
    let finalizers = stored["metadata"]["finalizers"].as_array().expect("finalizers");
    assert!(finalizers.contains(&json!("karmada.io/cluster-resource-binding-controller")));
    assert!(!finalizers.contains(&json!("karmada.io/binding-controller")));
    assert_eq!(world.holders("ClusterRole", "viewer"), ["member1", "member2"]);
    let copy = world.on("member1", "ClusterRole", "viewer").expect("copy");
    let (labels, annotations) = (&copy["metadata"]["labels"], &copy["metadata"]["annotations"]);
    assert_eq!(
        annotations["clusterresourcebinding.karmada.io/name"],
        "viewer-clusterrole"
    );
    assert_eq!(annotations["resourcebinding.karmada.io/name"], Value::Null);
    assert!(labels["clusterresourcebinding.karmada.io/permanent-id"].is_string());
    assert_eq!(copy["rules"], cluster_role("viewer")["rules"]);

    let wrote = world.writes.len();
    world.restart();
    assert!(world.settle());
    assert_eq!(world.writes[wrote..], [""; 0], "a restart writes nothing");

    world.delete("ClusterRole", "viewer");
    assert!(world.settle());
    assert!(world.holders("ClusterRole", "viewer").is_empty());
    assert!(
        world
            .hub_object("ClusterResourceBinding", "viewer-clusterrole")
            .is_none()
    );
    world.delete("ClusterPropagationPolicy", "roles");
    assert!(world.settle());
    assert!(world.hub_object("ClusterPropagationPolicy", "roles").is_none());
}

#[test]
fn a_cluster_policy_takes_workloads_of_every_namespace_with_their_dependencies() {
    let mut world = world();
    world.apply(config_map("red", "a"));
    world.apply(deployment("one", &["red"]));
    let mut elsewhere = deployment("one", &[]);
    elsewhere["metadata"]["namespace"] = json!("shop");
    world.apply(elsewhere);
    let selectors = json!([{"apiVersion": "apps/v1", "kind": "Deployment"}]);
    world.apply(cluster_policy("all", &selectors, &["member1"]));
    assert!(world.settle());
    assert_eq!(world.holders("Deployment", "one"), ["member1"]);
    assert_eq!(world.holders("ConfigMap", "red"), ["member1"]);
    assert!(
        world.members["member1"]
            .keys()
            .any(|key| &*key.namespace == "shop" && &*key.gvk.kind == "Deployment")
    );
    assert_eq!(
        claim(&world, "Deployment", "one"),
        ("ClusterPropagationPolicy", "all")
    );
}

#[test]
fn a_kind_that_nothing_is_known_of_is_carried_whole_and_its_status_is_shown() {
    let mut world = world();
    world.apply(widget("w"));
    world.apply(policy_of(
        "widgets",
        "example.com/v1",
        "Widget",
        "w",
        &["member1"],
    ));
    assert!(world.settle());
    assert_eq!(
        world.on("member1", "Widget", "w").expect("copy")["spec"]["size"],
        1
    );
    world.meddle("member1", "Widget", "w", |mut copy| {
        copy["status"] = json!({"phase": "Ready"});
        Some(copy)
    });
    assert!(world.settle());
    let item = &binding(&world, "w-widget")["status"]["aggregatedStatus"][0];
    assert_eq!(
        (&item["status"], &item["health"]),
        (&json!({"phase": "Ready"}), &json!("Healthy"))
    );
    // Its status is the member's: it is no drift.
    let wrote = world.writes.len();
    world.restart();
    assert!(world.settle());
    assert_eq!(world.writes[wrote..], [""; 0]);
    world.meddle("member1", "Widget", "w", |mut copy| {
        copy["spec"]["size"] = json!(9);
        Some(copy)
    });
    assert!(world.settle());
    assert_eq!(
        world.on("member1", "Widget", "w").expect("copy")["spec"]["size"],
        1
    );
}

#[test]
fn two_groups_of_one_kind_and_name_have_a_binding_each() {
    let mut world = world();
    let mut other = widget("w");
    other["apiVersion"] = json!("other.com/v1");
    other["metadata"]["name"] = json!("v");
    world.apply(widget("w"));
    world.apply(policy_of(
        "widgets",
        "example.com/v1",
        "Widget",
        "w",
        &["member1"],
    ));
    assert!(world.settle());
    // The world keys objects by kind: two of one name would be one object, so only the names are looked at.
    assert!(world.hub_object("ResourceBinding", "w-widget").is_some());
    world.apply(other);
    assert!(world.settle());
}

#[test]
fn a_policy_of_a_higher_priority_takes_over_only_if_it_says_so_and_its_priority_is_really_higher() {
    let mut world = world();
    world.apply(deployment("one", &[]));
    world.apply(policy_of("low", "apps/v1", "Deployment", "one", &["member1"]));
    assert!(world.settle());
    let high = |fields: &Value| {
        with(
            policy_of("high", "apps/v1", "Deployment", "one", &["member2"]),
            fields,
        )
    };
    world.apply(high(&json!({"priority": 5})));
    assert!(world.settle());
    assert_eq!(claim(&world, "Deployment", "one").1, "low", "a claim is sticky");
    world.apply(high(&json!({"priority": 0, "preemption": "Always"})));
    assert!(world.settle());
    assert_eq!(claim(&world, "Deployment", "one").1, "low", "it is not higher");
    world.apply(high(&json!({"priority": 5, "preemption": "Always"})));
    assert!(world.settle());
    assert_eq!(claim(&world, "Deployment", "one").1, "high");
    assert_eq!(world.holders("Deployment", "one"), ["member2"]);
    let reported: Vec<_> = world
        .events
        .iter()
        .filter(|each| each.starts_with("PreemptPolicySucceed"))
        .collect();
    assert_eq!(reported.len(), 1, "{reported:?}");
}

#[test]
fn a_holder_whose_priority_is_lowered_while_nobody_watches_is_preempted_after_the_restart() {
    let mut world = world();
    world.apply(deployment("one", &[]));
    let holder = |priority: i32| {
        with(
            policy_of("holder", "apps/v1", "Deployment", "one", &["member1"]),
            &json!({"priority": priority}),
        )
    };
    world.apply(holder(9));
    assert!(world.settle());
    let waiting = with(
        policy_of("waiting", "apps/v1", "Deployment", "one", &["member2"]),
        &json!({"priority": 5, "preemption": "Always"}),
    );
    world.apply(waiting);
    assert!(world.settle());
    assert_eq!(claim(&world, "Deployment", "one").1, "holder");
    world.restart();
    world.apply(holder(1));
    assert!(world.settle());
    assert_eq!(claim(&world, "Deployment", "one").1, "waiting");
}

#[test]
fn a_policy_of_the_namespace_preempts_a_cluster_policy_whatever_its_priority_and_never_the_other_way_round() {
    let mut world = world();
    world.apply(deployment("one", &[]));
    let selectors =
        json!([{"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": "one"}]);
    let everywhere = with(
        cluster_policy("everywhere", &selectors, &["member1"]),
        &json!({"priority": 100, "preemption": "Always"}),
    );
    world.apply(everywhere);
    assert!(world.settle());
    let own = with(
        policy_of("own", "apps/v1", "Deployment", "one", &["member2"]),
        &json!({"preemption": "Always"}),
    );
    world.apply(own);
    assert!(world.settle());
    assert_eq!(claim(&world, "Deployment", "one"), ("PropagationPolicy", "own"));
    assert_eq!(world.holders("Deployment", "one"), ["member2"]);
    let labels = &binding(&world, "one-deployment")["metadata"]["labels"];
    assert!(labels["clusterpropagationpolicy.karmada.io/permanent-id"].is_null());
    assert!(labels["propagationpolicy.karmada.io/permanent-id"].is_string());
    world.delete("PropagationPolicy", "own");
    assert!(world.settle());
    assert_eq!(
        claim(&world, "Deployment", "one"),
        ("ClusterPropagationPolicy", "everywhere")
    );
}

pub(crate) fn lazy(name: &str, selects: &str, clusters: &[&str]) -> Value {
    let policy = policy_of(name, "apps/v1", "Deployment", selects, clusters);
    with(policy, &json!({"activationPreference": "Lazy"}))
}

pub(crate) fn touch(world: &mut World, kind: &str, name: &str, value: &str) {
    let mut object = world.hub_object(kind, name).expect("template").clone();
    if kind == "ConfigMap" {
        object["data"]["touched"] = json!(value);
    } else {
        object["spec"]["paused"] = json!(value);
    }
    world.apply(object);
}

#[test]
fn a_lazy_policy_that_is_there_first_acts_at_once_and_its_changes_wait_for_the_template() {
    let mut world = world();
    world.apply(lazy("p", "one", &["member1"]));
    assert!(world.settle());
    world.apply(config_map("red", "a"));
    world.apply(deployment("one", &["red"]));
    assert!(world.settle());
    assert_eq!(world.holders("Deployment", "one"), ["member1"]);
    assert_eq!(world.holders("ConfigMap", "red"), ["member1"]);
    world.apply(lazy("p", "one", &["member2"]));
    assert!(world.settle());
    assert_eq!(
        world.holders("Deployment", "one"),
        ["member1"],
        "nobody touched it"
    );
    world.restart();
    assert!(world.settle());
    assert_eq!(
        world.holders("Deployment", "one"),
        ["member1"],
        "a restart is no touch"
    );
    touch(&mut world, "Deployment", "one", "1");
    assert!(world.settle());
    assert_eq!(world.holders("Deployment", "one"), ["member2"]);
    assert_eq!(world.holders("ConfigMap", "red"), ["member2"]);
}

/// Watches of two kinds keep no order: the touch that follows a change of the policy may be seen before that.
#[test]
fn a_touch_that_is_seen_before_the_change_of_the_lazy_policy_counts() {
    for restarts in [false, true] {
        let mut world = world();
        world.apply(lazy("p", "one", &["member1"]));
        world.apply(deployment("one", &[]));
        assert!(world.settle());
        world.hold_back("PropagationPolicy");
        world.apply(lazy("p", "one", &["member2"]));
        touch(&mut world, "Deployment", "one", "1");
        assert!(world.settle());
        assert_eq!(
            world.holders("Deployment", "one"),
            ["member1"],
            "nobody knows yet"
        );
        if restarts {
            world.restart();
        } else {
            world.tell_late();
        }
        assert!(world.settle());
        assert_eq!(world.holders("Deployment", "one"), ["member2"]);
        world.apply(lazy("p", "one", &["member1"]));
        world.tell_all_late();
        assert!(world.settle());
        assert_eq!(
            world.holders("Deployment", "one"),
            ["member2"],
            "not touched since"
        );
    }
}

#[test]
fn a_lazy_policy_that_comes_later_claims_and_waits() {
    let mut world = world();
    world.apply(config_map("red", "a"));
    world.apply(deployment("one", &["red"]));
    assert!(world.settle_for(5_000));
    world.now = world.now.plus(60_000);
    let without = with(lazy("p", "one", &["member1"]), &json!({"propagateDeps": false}));
    world.apply(without);
    assert!(world.settle());
    assert_eq!(claim(&world, "Deployment", "one").1, "p");
    assert!(world.hub_object("ResourceBinding", "one-deployment").is_none());
    world.restart();
    assert!(world.settle());
    assert!(world.holders("Deployment", "one").is_empty());
    touch(&mut world, "Deployment", "one", "1");
    assert!(world.settle());
    assert_eq!(world.holders("Deployment", "one"), ["member1"]);
    assert!(
        world.holders("ConfigMap", "red").is_empty(),
        "propagateDeps is off"
    );
    let copy = world.on("member1", "Deployment", "one").expect("copy");
    assert!(copy["metadata"]["annotations"]["entourage.dev/activation-waits"].is_null());
    world.apply(lazy("p", "one", &["member1"]));
    assert!(world.settle());
    assert!(world.holders("ConfigMap", "red").is_empty(), "nobody touched it");
    touch(&mut world, "Deployment", "one", "2");
    assert!(world.settle());
    assert_eq!(world.holders("ConfigMap", "red"), ["member1"]);
}

#[test]
fn a_lazy_policy_waits_for_a_template_without_a_generation_too() {
    let mut world = world();
    world.apply(config_map("red", "a"));
    assert!(world.settle_for(5_000));
    world.now = world.now.plus(60_000);
    let lazy = |clusters: &[&str]| {
        with(
            policy_of("p", "v1", "ConfigMap", "red", clusters),
            &json!({"activationPreference": "Lazy"}),
        )
    };
    world.apply(lazy(&["member1"]));
    assert!(world.settle());
    assert!(world.holders("ConfigMap", "red").is_empty());
    touch(&mut world, "ConfigMap", "red", "1");
    assert!(world.settle());
    assert_eq!(world.holders("ConfigMap", "red"), ["member1"]);
    world.apply(lazy(&["member2"]));
    assert!(world.settle());
    assert_eq!(world.holders("ConfigMap", "red"), ["member1"]);
    touch(&mut world, "ConfigMap", "red", "2");
    assert!(world.settle());
    assert_eq!(world.holders("ConfigMap", "red"), ["member2"]);
}

#[test]
fn a_suspended_workload_and_its_dependencies_stay_as_they_are_until_it_goes_on() {
    let mut world = world();
    world.apply(config_map("red", "a"));
    world.apply(deployment("one", &["red"]));
    let suspended = |clusters: &[&str], suspension: &Value| {
        with(
            policy_of("p", "apps/v1", "Deployment", "one", clusters),
            &json!({ "suspension": suspension }),
        )
    };
    world.apply(suspended(&["member1"], &json!({"dispatching": true})));
    assert!(world.settle());
    assert!(world.holders("Deployment", "one").is_empty());
    assert!(world.holders("ConfigMap", "red").is_empty());
    assert_eq!(
        condition(&world, "one-deployment", "Dispatching")["reason"],
        "SuspendDispatching"
    );
    let wrote = world.writes.len();
    world.restart();
    assert!(world.settle());
    assert_eq!(world.writes[wrote..], [""; 0], "a suspended system is quiet");
    world.apply(suspended(
        &["member1"],
        &json!({"dispatchingOnClusters": {"clusterNames": ["member2"]}}),
    ));
    assert!(world.settle());
    assert_eq!(world.holders("Deployment", "one"), ["member1"]);
    assert_eq!(world.holders("ConfigMap", "red"), ["member1"]);
    assert!(condition(&world, "one-deployment", "Dispatching").is_null());
    // Moved to a cluster that is held back: it stays where it is.
    world.apply(suspended(&["member2"], &json!({"dispatching": true})));
    assert!(world.settle());
    assert_eq!(world.holders("Deployment", "one"), ["member1"]);
    assert_eq!(world.holders("ConfigMap", "red"), ["member1"]);
    world.meddle("member1", "Deployment", "one", |_| None);
    world.apply(config_map("red", "b"));
    assert!(world.settle());
    assert!(world.holders("Deployment", "one").is_empty(), "not even restored");
    world.apply(suspended(&["member2"], &Value::Null));
    assert!(world.settle());
    assert_eq!(world.holders("Deployment", "one"), ["member2"]);
    assert_eq!(world.holders("ConfigMap", "red"), ["member2"]);
    world.apply(suspended(&["member2"], &json!({"dispatching": true})));
    assert!(world.settle());
    world.delete("Deployment", "one");
    assert!(world.settle());
    assert!(
        world.holders("Deployment", "one").is_empty(),
        "what its owner deleted goes"
    );
    assert!(world.holders("ConfigMap", "red").is_empty());
}

#[test]
fn a_shared_dependency_goes_where_any_workload_that_is_not_suspended_needs_it() {
    let mut world = world();
    world.apply(config_map("red", "a"));
    for name in ["one", "two"] {
        world.apply(deployment(name, &["red"]));
    }
    let policy = |name: &str, suspension: &Value| {
        with(
            policy_of(name, "apps/v1", "Deployment", name, &["member1", "member2"]),
            &json!({ "suspension": suspension }),
        )
    };
    world.apply(policy("one", &json!({"dispatching": true})));
    world.apply(policy(
        "two",
        &json!({"dispatchingOnClusters": {"clusterNames": ["member2"]}}),
    ));
    assert!(world.settle());
    assert!(world.holders("Deployment", "one").is_empty());
    assert_eq!(world.holders("Deployment", "two"), ["member1"]);
    assert_eq!(world.holders("ConfigMap", "red"), ["member1"]);
}

#[test]
fn referrers_that_disagree_are_reported_once_and_decide_per_cluster() {
    let mut world = world();
    for member in ["member1", "member2"] {
        world.meddle(member, "ConfigMap", "red", |_| Some(config_map("red", "theirs")));
    }
    world.apply(config_map("red", "ours"));
    for name in ["one", "two"] {
        world.apply(deployment(name, &["red"]));
    }
    let policy = |name: &str, clusters: &[&str], fields: &Value| {
        with(policy_of(name, "apps/v1", "Deployment", name, clusters), fields)
    };
    let overwrite = json!({"conflictResolution": "Overwrite", "preserveResourcesOnDeletion": true});
    world.apply(policy("one", &["member1"], &overwrite));
    world.apply(policy(
        "two",
        &["member2"],
        &json!({"conflictResolution": "Abort"}),
    ));
    assert!(world.settle());
    let reported = |world: &World| {
        world
            .events
            .iter()
            .filter(|each| each.starts_with("DependencyPolicyConflict"))
            .cloned()
            .collect::<Vec<_>>()
    };
    assert_eq!(
        reported(&world),
        [
            "DependencyPolicyConflict ResourceBinding red-configmap: Dependency policy conflict detected: \
          ConflictResolution conflicted (Overwrite vs Abort); PreserveResourcesOnDeletion conflicted (true vs false)."
        ]
    );
    let spec = &binding(&world, "red-configmap")["spec"];
    assert_eq!(
        (&spec["conflictResolution"], &spec["preserveResourcesOnDeletion"]),
        (&json!("Overwrite"), &json!(true))
    );
    let data = |world: &World, member: &str| {
        world.on(member, "ConfigMap", "red").expect("there")["data"]["key"].clone()
    };
    assert_eq!(
        (data(&world, "member1"), data(&world, "member2")),
        (json!("ours"), json!("theirs"))
    );
    world.restart();
    assert!(world.settle());
    assert_eq!(reported(&world).len(), 1, "not reported again");
    world.apply(policy("two", &["member2"], &overwrite));
    assert!(world.settle());
    assert!(condition(&world, "red-configmap", "DependencyPolicyConflict").is_null());
    assert_eq!(data(&world, "member2"), json!("ours"));
}

pub(crate) fn namespace(name: &str, labels: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
}

pub(crate) fn relabel(world: &mut World, name: &str, labels: &Value) {
    let key = id("Namespace", "", name);
    let mut object = world.hub[&key].clone();
    object["metadata"]["labels"] = labels.clone();
    world.replace(object);
}

#[test]
fn namespaces_are_on_every_member_with_their_labels_and_end_where_we_created_them() {
    let mut world = world();
    world.meddle("member2", "Namespace", "shop", |_| {
        Some(namespace("shop", &json!({"theirs": "x"})))
    });
    world.apply(namespace("shop", &json!({"team": "a"})));
    world.apply(namespace("kube-node-lease", &json!({})));
    world.apply(namespace(
        "hidden",
        &json!({"namespace.karmada.io/skip-auto-propagation": "true"}),
    ));
    assert!(world.settle());
    let labels = |world: &World, member: &str| {
        world.on(member, "Namespace", "shop").expect("there")["metadata"]["labels"].clone()
    };
    assert_eq!(labels(&world, "member1"), json!({"team": "a"}));
    assert_eq!(
        labels(&world, "member2"),
        json!({"team": "a", "theirs": "x"}),
        "adopted"
    );
    assert!(world.holders("Namespace", "kube-node-lease").is_empty());
    assert!(world.holders("Namespace", "hidden").is_empty());

    let wrote = world.writes.len();
    world.restart();
    assert!(world.settle());
    assert_eq!(world.writes[wrote..], [""; 0], "a restart writes nothing");

    relabel(&mut world, "shop", &json!({"tier": "1"}));
    assert!(world.settle());
    assert_eq!(labels(&world, "member2"), json!({"tier": "1", "theirs": "x"}));
    world.meddle("member1", "Namespace", "shop", |mut live| {
        live["metadata"]["labels"] = json!({"tier": "edited"});
        Some(live)
    });
    assert!(world.settle());
    assert_eq!(labels(&world, "member1"), json!({"tier": "1"}));
    world.delete("Namespace", "shop");
    assert!(world.settle());
    assert_eq!(
        world.holders("Namespace", "shop"),
        ["member2"],
        "it was there before"
    );
}

#[test]
fn a_namespace_that_a_cluster_policy_claims_goes_where_that_says_and_is_released_in_the_end() {
    let mut world = world();
    let selectors = json!([{"apiVersion": "v1", "kind": "Namespace", "name": "shop"}]);
    world.apply(cluster_policy("shop", &selectors, &["member1"]));
    world.meddle("member1", "Namespace", "shop", |_| {
        Some(namespace("shop", &json!({"theirs": "x"})))
    });
    world.apply(namespace(
        "shop",
        &json!({"team": "a", "namespace.karmada.io/skip-auto-propagation": "true"}),
    ));
    assert!(world.settle());
    let live = world.on("member1", "Namespace", "shop").expect("there");
    assert_eq!(live["metadata"]["labels"]["team"], "a", "adopted");
    assert_eq!(live["metadata"]["labels"]["theirs"], "x");
    world.delete("Namespace", "shop");
    assert!(world.settle());
    let live = world.on("member1", "Namespace", "shop").expect("never deleted");
    assert!(
        live["metadata"]["labels"]["entourage.dev/hub"].is_null(),
        "released"
    );
}

#[test]
fn a_namespace_whose_policy_is_gone_is_left_to_its_binding() {
    let mut world = world();
    let selectors = json!([{"apiVersion": "v1", "kind": "Namespace", "name": "shop"}]);
    world.apply(cluster_policy("shop", &selectors, &["member1"]));
    world.apply(namespace("shop", &json!({"team": "a"})));
    assert!(world.settle());
    world.delete("ClusterPropagationPolicy", "shop");
    assert!(world.settle());
    relabel(&mut world, "shop", &json!({"team": "b"}));
    assert!(world.settle());
    assert_eq!(world.holders("Namespace", "shop"), ["member1"]);
    assert_eq!(
        world.on("member1", "Namespace", "shop").expect("there")["metadata"]["labels"]["team"],
        "b"
    );
    let wrote = world.writes.len();
    world.restart();
    assert!(world.settle());
    assert_eq!(world.writes[wrote..], [""; 0]);
}

#[test]
fn copies_of_a_former_template_that_no_policy_wants_any_more_go() {
    for preserve in [false, true] {
        let mut world = world();
        world.apply(config_map("red", "a"));
        world.apply(deployment("one", &["red"]));
        let preserved = json!({ "preserveResourcesOnDeletion": preserve });
        let policy = policy_of("p", "apps/v1", "Deployment", "one", &["member1", "member2"]);
        world.apply(with(policy, &preserved));
        assert!(world.settle());
        world.delete("PropagationPolicy", "p");
        assert!(world.settle());
        assert_eq!(world.holders("Deployment", "one"), ["member1", "member2"]);
        world.delete("Deployment", "one");
        world.apply(deployment("one", &["red"]));
        assert!(world.settle());
        assert!(world.hub_object("ResourceBinding", "one-deployment").is_none());
        assert!(world.hub_object("ResourceBinding", "red-configmap").is_none());
        assert!(world.hub_object("Deployment", "one").is_some());
        let left: &[&str] = if preserve { &["member1", "member2"] } else { &[] };
        assert_eq!(world.holders("Deployment", "one"), left);
        assert_eq!(world.holders("ConfigMap", "red"), left);
        let ours = world
            .on("member1", "Deployment", "one")
            .map(|copy| &copy["metadata"]["labels"]["entourage.dev/hub"]);
        assert!(ours.is_none_or(Value::is_null));
    }
}

#[test]
fn copies_of_a_former_template_stay_where_a_policy_selects_the_new_one() {
    let mut world = world();
    world.apply(deployment("one", &[]));
    world.apply(policy_of("p", "apps/v1", "Deployment", "one", &["member1"]));
    assert!(world.settle());
    world.delete("PropagationPolicy", "p");
    assert!(world.settle());
    let wrote = world.writes.len();
    world.delete("Deployment", "one");
    world.apply(deployment("one", &[]));
    world.apply(policy_of("q", "apps/v1", "Deployment", "one", &["member1"]));
    assert!(world.settle());
    assert_eq!(world.holders("Deployment", "one"), ["member1"]);
    assert!(
        !world.writes[wrote..]
            .iter()
            .any(|write| write.starts_with("member1 Delete"))
    );
}

#[test]
fn what_a_namespace_got_before_a_policy_claimed_it_is_taken_off_with_the_rest() {
    let mut world = world();
    world.meddle("member1", "Namespace", "shop", |_| {
        Some(namespace("shop", &json!({"theirs": "x"})))
    });
    world.apply(namespace("shop", &json!({"team": "a"})));
    assert!(world.settle());
    let selectors = json!([{"apiVersion": "v1", "kind": "Namespace", "name": "shop"}]);
    relabel(&mut world, "shop", &json!({"tier": "1"}));
    world.apply(cluster_policy("shop", &selectors, &["member1"]));
    assert!(world.settle());
    let meta = &world.on("member1", "Namespace", "shop").expect("there")["metadata"];
    assert_eq!(
        (&meta["labels"]["tier"], &meta["labels"]["theirs"]),
        (&json!("1"), &json!("x"))
    );
    assert!(meta["labels"]["team"].is_null(), "{meta}");
    let lists = meta["annotations"].as_object().expect("annotations").keys();
    assert!(!lists.into_iter().any(|key| key.contains("managed-by")), "{meta}");
}
