//! Invariants over time: one writer of each object, claims that end, touches that count once, and news that are reported.

use entourage_core::{object::Gvk, observation::Watch};
use entourage_core::{plan::Key, refusal};
use serde_json::{Value, json};

use crate::{
    binding, condition, config_map, deployment,
    policies::{claim, cluster_policy, cluster_role, lazy, namespace, relabel, touch, widget, with, world},
    policy_of,
    world::{World, id},
};

#[test]
fn a_namespace_whose_cluster_policy_ends_has_one_writer() {
    let mut world = world();
    let selectors = json!([{"apiVersion": "v1", "kind": "Namespace", "name": "shop"}]);
    world.apply(cluster_policy("shop", &selectors, &["member1"]));
    world.apply(namespace("shop", &json!({"team": "a"})));
    assert!(world.settle());
    world.delete("ClusterPropagationPolicy", "shop");
    assert!(world.settle());
    assert!(world.hub_object("ClusterPropagationPolicy", "shop").is_none());
    let wrote = world.writes.len();
    relabel(&mut world, "shop", &json!({"team": "b"}));
    assert!(world.settle());
    assert_eq!(
        world.on("member1", "Namespace", "shop").expect("there")["metadata"]["labels"]["team"],
        "b",
        "what its policy reported stays"
    );
    assert!(
        world
            .holders("Namespace", "shop")
            .iter()
            .all(|each| *each == "member1")
    );
    assert!(world.writes.len() - wrote < 8, "{:?}", &world.writes[wrote..]);
    let wrote = world.writes.len();
    world.restart();
    assert!(world.settle());
    assert_eq!(world.writes[wrote..], [""; 0], "a restart writes nothing");
}

#[test]
fn a_template_that_another_component_claims_does_not_keep_a_policy() {
    let mut world = world();
    world.apply(deployment("one", &[]));
    world.apply(policy_of("p", "apps/v1", "Deployment", "one", &["member1"]));
    assert!(world.settle());
    let mut object = world.hub_object("Deployment", "one").expect("it").clone();
    object["metadata"]["labels"]["resourcetemplate.karmada.io/claimed-by"] = json!("mcs");
    world.replace(object);
    assert!(world.settle());
    assert_eq!(
        claim(&world, "Deployment", "one").1,
        "p",
        "while the policy is there it stays as it is"
    );
    world.delete("PropagationPolicy", "p");
    assert!(world.settle());
    assert!(world.hub_object("PropagationPolicy", "p").is_none());
    let meta = &world.hub_object("Deployment", "one").expect("it")["metadata"];
    assert!(
        meta["annotations"]["propagationpolicy.karmada.io/name"].is_null(),
        "{meta}"
    );
    assert_eq!(world.holders("Deployment", "one"), ["member1"]);
}

#[test]
fn a_template_that_is_long_in_ending_does_not_keep_a_policy() {
    let mut world = world();
    let mut one = deployment("one", &[]);
    one["metadata"]["finalizers"] = json!(["example.com/slow"]);
    world.apply(one);
    world.apply(policy_of("p", "apps/v1", "Deployment", "one", &["member1"]));
    assert!(world.settle());
    world.delete("Deployment", "one");
    assert!(world.settle());
    world.delete("PropagationPolicy", "p");
    assert!(world.settle());
    assert!(world.hub_object("PropagationPolicy", "p").is_none());
    let wrote = world.writes.len();
    world.restart();
    assert!(world.settle());
    assert_eq!(world.writes[wrote..], [""; 0]);
    let mut one = world
        .hub_object("Deployment", "one")
        .expect("it is still ending")
        .clone();
    one["metadata"]["finalizers"] = json!([]);
    world.replace(one);
    world.delete("Deployment", "one");
    assert!(world.settle_for(60_000));
    assert!(world.holders("Deployment", "one").is_empty());
    assert!(world.hub_object("ResourceBinding", "one-deployment").is_none());
}

#[test]
fn a_policy_ends_although_a_member_that_is_down_keeps_the_binding_of_what_it_placed() {
    for restart in [false, true] {
        let mut world = world();
        world.apply(deployment("one", &[]));
        world.apply(policy_of(
            "p",
            "apps/v1",
            "Deployment",
            "one",
            &["member1", "member2"],
        ));
        assert!(world.settle());
        world.set_down("member1", true);
        world.delete("Deployment", "one");
        if restart {
            assert!(world.settle());
            world.restart();
        }
        world.delete("PropagationPolicy", "p");
        assert!(world.settle());
        assert!(world.hub_object("PropagationPolicy", "p").is_none());
        assert!(world.hub_object("ResourceBinding", "one-deployment").is_some());
        let wrote = world.writes.len();
        world.restart();
        assert!(world.settle());
        assert_eq!(world.writes[wrote..], [""; 0]);
        world.set_down("member1", false);
        assert!(world.settle());
        assert!(world.hub_object("ResourceBinding", "one-deployment").is_none());
        assert!(world.holders("Deployment", "one").is_empty());
    }
}

#[test]
fn a_binding_that_another_component_keeps_does_not_keep_a_policy() {
    let mut world = world();
    world.apply(deployment("one", &[]));
    world.apply(policy_of("p", "apps/v1", "Deployment", "one", &["member1"]));
    assert!(world.settle());
    let mut bound = world
        .hub_object("ResourceBinding", "one-deployment")
        .expect("it")
        .clone();
    bound["metadata"]["labels"]["binding.karmada.io/managed-by"] = json!("other");
    world.replace(bound);
    assert!(world.settle());
    world.delete("PropagationPolicy", "p");
    assert!(world.settle());
    assert!(world.hub_object("PropagationPolicy", "p").is_none());
    assert_eq!(world.holders("Deployment", "one"), ["member1"]);
}

#[test]
fn a_status_is_summed_up_although_a_member_refuses_the_kind() {
    let mut world = world();
    let copies = Watch::Copies("member1".into(), Gvk::new("apps/v1", "Deployment"));
    world.forbidden.insert(copies);
    world.apply(deployment("one", &[]));
    world.apply(policy_of(
        "p",
        "apps/v1",
        "Deployment",
        "one",
        &["member1", "member2"],
    ));
    assert!(world.settle());
    world.meddle("member2", "Deployment", "one", |mut copy| {
        let generation = copy["metadata"]["generation"].clone();
        copy["status"] = json!({"observedGeneration": generation, "replicas": 1, "readyReplicas": 1});
        Some(copy)
    });
    assert!(world.settle());
    let template = world.hub_object("Deployment", "one").expect("it");
    assert_eq!(template["status"]["readyReplicas"], 1, "{:#}", template["status"]);
}

#[test]
fn what_a_user_suspends_is_no_alarm() {
    let mut world = world();
    world.apply(deployment("one", &[]));
    let suspended = |on: &Value| {
        let policy = policy_of("p", "apps/v1", "Deployment", "one", &["member1", "member2"]);
        with(policy, &json!({ "suspension": on }))
    };
    world.apply(suspended(&json!({"dispatching": true})));
    assert!(world.settle());
    let alarms = |world: &World| {
        let alarms = world.events.iter().filter(|each| each.starts_with("SyncFailed"));
        alarms.cloned().collect::<Vec<_>>()
    };
    assert_eq!(alarms(&world), [""; 0]);
    let applied = condition(&world, "one-deployment", "FullyApplied");
    assert_eq!(
        (&applied["status"], &applied["reason"]),
        (&json!("False"), &json!("SuspendDispatching"))
    );
    world.set_down("member2", true);
    world.apply(suspended(
        &json!({"dispatchingOnClusters": {"clusterNames": ["member1"]}}),
    ));
    assert!(world.settle());
    let applied = condition(&world, "one-deployment", "FullyApplied");
    assert_eq!(applied["reason"], "FullyAppliedFailed", "member2 does not answer");
    assert_eq!(alarms(&world).len(), 1);
}

#[test]
fn a_removal_that_a_suspension_holds_back_is_reported() {
    let mut world = world();
    world.apply(deployment("one", &[]));
    let policy = |clusters: &[&str], on: &Value| {
        let policy = policy_of("p", "apps/v1", "Deployment", "one", clusters);
        with(policy, &json!({ "suspension": on }))
    };
    world.apply(policy(&["member1"], &Value::Null));
    assert!(world.settle());
    let held = json!({"dispatchingOnClusters": {"clusterNames": ["member1"]}});
    world.apply(policy(&["member2"], &held));
    assert!(world.settle());
    assert_eq!(world.holders("Deployment", "one"), ["member1", "member2"]);
    let reported = condition(&world, "one-deployment", "Dispatching");
    assert_eq!(
        (&reported["reason"], &reported["message"]),
        (
            &json!("SuspendDispatching"),
            &json!("Copies that are no longer scheduled are kept, as delivery is suspended, on member1.")
        )
    );
    let applied = condition(&world, "one-deployment", "FullyApplied");
    assert_eq!(applied["status"], "True");
    world.apply(policy(&["member2"], &Value::Null));
    assert!(world.settle());
    assert_eq!(world.holders("Deployment", "one"), ["member2"]);
    assert!(condition(&world, "one-deployment", "Dispatching").is_null());
}

fn matched(world: &World, kind: &str, namespace: &str, name: &str) -> String {
    let stored = &world.hub[&id(kind, namespace, name)];
    let message = &stored["status"]["conditions"][0]["message"];
    message.as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_policy_in_a_reserved_namespace_says_why_it_does_nothing() {
    let mut world = world();
    world.process.engine.config_mut().reserved.insert("fleet".into());
    for namespace in ["kube-system", "fleet"] {
        let mut policy = policy_of("p", "apps/v1", "Deployment", "one", &["member1"]);
        let mut one = deployment("one", &[]);
        policy["metadata"]["namespace"] = json!(namespace);
        one["metadata"]["namespace"] = json!(namespace);
        world.apply(one);
        world.apply(policy);
        assert!(world.settle());
        let message = matched(&world, "PropagationPolicy", namespace, "p");
        assert!(message.contains("is reserved for the system"), "{message}");
    }
    world.apply(namespace("fleet", &json!({})));
    assert!(world.settle());
    assert!(world.members.values().all(|member| member.is_empty()));
}

#[test]
fn a_policy_that_selects_what_lies_in_no_namespace_says_what_to_make_instead() {
    let mut world = world();
    world.apply(cluster_role("reader"));
    world.apply(policy_of(
        "p",
        "rbac.authorization.k8s.io/v1",
        "ClusterRole",
        "reader",
        &["member1"],
    ));
    assert!(world.settle());
    let message = matched(&world, "PropagationPolicy", "default", "p");
    assert!(message.contains("use a ClusterPropagationPolicy"), "{message}");
}

#[test]
fn three_objects_whose_bindings_would_have_one_name_are_distinguished() {
    let mut world = world();
    let selectors = json!([{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"}]);
    world.apply(cluster_policy("roles", &selectors, &["member1"]));
    let names = ["a:b:c", "a.b:c", "a.b.c"];
    for name in names {
        world.apply(cluster_role(name));
    }
    assert!(world.settle());
    for name in names {
        assert_eq!(world.holders("ClusterRole", name), ["member1"], "{name}");
    }
    let bindings = world
        .hub
        .keys()
        .filter(|key| &*key.gvk.kind == "ClusterResourceBinding");
    assert_eq!(bindings.count(), 3);
    let wrote = world.writes.len();
    world.restart();
    assert!(world.settle());
    assert_eq!(world.writes[wrote..], [""; 0], "a restart writes nothing");
}

#[test]
fn a_member_that_changes_the_labels_of_a_namespace_again_and_again_is_answered_ever_more_slowly() {
    let mut world = world();
    world.apply(namespace("shop", &json!({"team": "a"})));
    assert!(world.settle());
    let wrote = world.writes.len();
    let revert = |world: &mut World| {
        world.meddle("member1", "Namespace", "shop", |mut live| {
            live["metadata"]["labels"]["team"] = json!("theirs");
            Some(live)
        });
    };
    for _ in 0..50 {
        revert(&mut world);
        assert!(world.settle_for(0));
    }
    assert_eq!(world.writes.len() - wrote, 1, "at once the first time only");
    assert!(world.settle_for(60_000));
    let team = |world: &World| {
        world.on("member1", "Namespace", "shop").expect("there")["metadata"]["labels"]["team"].clone()
    };
    assert_eq!(team(&world), "a", "and put right in the end");
    world.now = world.now.plus(60_000);
    revert(&mut world);
    assert!(world.settle_for(0));
    assert_eq!(team(&world), "a", "after a time of calm at once again");
}

fn override_policy(name: &str, rules: &Value) -> Value {
    json!({"apiVersion": "policy.karmada.io/v1alpha1", "kind": "OverridePolicy", "metadata": {"name": name},
        "spec": {"overrideRules": rules}})
}

#[test]
fn a_touch_is_not_lost_while_an_override_is_missing() {
    for kind in ["Deployment", "ConfigMap"] {
        let mut world = world();
        let version = if kind == "ConfigMap" { "v1" } else { "apps/v1" };
        let policy = |clusters: &[&str], overrides: &Value| {
            let fields = json!({"activationPreference": "Lazy", "dependentOverrides": overrides});
            with(policy_of("p", version, kind, "one", clusters), &fields)
        };
        world.apply(policy(&["member1"], &json!([])));
        assert!(world.settle());
        world.apply(if kind == "ConfigMap" {
            config_map("one", "a")
        } else {
            deployment("one", &[])
        });
        assert!(world.settle());
        assert_eq!(world.holders(kind, "one"), ["member1"]);
        world.apply(policy(&["member2"], &json!(["o"])));
        assert!(world.settle());
        touch(&mut world, kind, "one", "1");
        assert!(world.settle());
        assert_eq!(world.holders(kind, "one"), ["member1"], "{kind}");
        world.apply(override_policy("o", &json!([])));
        assert!(world.settle());
        assert_eq!(world.holders(kind, "one"), ["member2"], "{kind}");
        world.apply(policy(&["member1"], &json!(["o"])));
        assert!(world.settle());
        assert_eq!(
            world.holders(kind, "one"),
            ["member2"],
            "{kind}: the touch was used"
        );
    }
}

#[test]
fn a_template_that_is_held_back_without_a_record_waits_for_its_next_touch() {
    let mut world = world();
    world.apply(deployment("one", &[]));
    world.apply(policy_of("p", "apps/v1", "Deployment", "one", &["member1"]));
    assert!(world.settle());
    world.apply(lazy("p", "one", &["member2"]));
    assert!(world.settle());
    assert_eq!(world.holders("Deployment", "one"), ["member1"]);
    world.delete("ResourceBinding", "one-deployment");
    assert!(world.settle());
    assert_eq!(
        world.holders("Deployment", "one"),
        ["member1"],
        "made again as it was"
    );
    touch(&mut world, "Deployment", "one", "1");
    assert!(world.settle());
    assert_eq!(world.holders("Deployment", "one"), ["member2"]);
}

#[test]
fn taking_a_label_off_again_is_a_touch() {
    let mut world = world();
    let policy = |clusters: &[&str]| {
        let policy = policy_of("p", "apps/v1", "StatefulSet", "one", clusters);
        with(policy, &json!({"activationPreference": "Lazy"}))
    };
    let mut set = deployment("one", &[]);
    set["kind"] = json!("StatefulSet");
    world.apply(set);
    assert!(world.settle());
    world.now = world.now.plus(60_000);
    world.apply(policy(&["member1"]));
    assert!(world.settle());
    assert!(world.holders("StatefulSet", "one").is_empty());
    let label = |world: &mut World, value: &Value| {
        let mut object = world.hub_object("StatefulSet", "one").expect("it").clone();
        object["metadata"]["labels"]["x"] = value.clone();
        if value.is_null() {
            object["metadata"]["labels"]
                .as_object_mut()
                .expect("labels")
                .remove("x");
        }
        world.replace(object);
    };
    label(&mut world, &json!("y"));
    assert!(world.settle());
    assert_eq!(world.holders("StatefulSet", "one"), ["member1"]);
    for (clusters, value) in [
        ("member2", Value::Null),
        ("member1", json!("y")),
        ("member2", Value::Null),
    ] {
        let before = world.holders("StatefulSet", "one").join(" ");
        world.apply(policy(&[clusters]));
        assert!(world.settle());
        assert_eq!(
            world.holders("StatefulSet", "one"),
            [&*before],
            "nobody touched it"
        );
        label(&mut world, &value);
        assert!(world.settle());
        assert_eq!(world.holders("StatefulSet", "one"), [clusters]);
    }
}

#[test]
fn a_label_of_a_control_plane_is_no_touch() {
    let mut world = world();
    world.apply(config_map("red", "a"));
    assert!(world.settle());
    world.now = world.now.plus(60_000);
    let policy = policy_of("p", "v1", "ConfigMap", "red", &["member1"]);
    world.apply(with(policy, &json!({"activationPreference": "Lazy"})));
    assert!(world.settle());
    let mut object = world.hub_object("ConfigMap", "red").expect("it").clone();
    object["metadata"]["labels"]["resourcetemplate.karmada.io/deletion-protected"] = json!("Always");
    world.replace(object);
    assert!(world.settle());
    assert!(world.holders("ConfigMap", "red").is_empty());
    touch(&mut world, "ConfigMap", "red", "1");
    assert!(world.settle());
    assert_eq!(world.holders("ConfigMap", "red"), ["member1"]);
}

#[test]
fn a_namespace_that_cannot_be_brought_in_line_is_reported_on_its_cluster() {
    let mut world = world();
    world.apply(namespace("shop", &json!({"team": "a"})));
    world.apply(json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "ClusterOverridePolicy", "metadata": {"name": "bad"},
        "spec": {"overrideRules": [{
            "targetCluster": {"clusterNames": ["member1"]},
            "overriders": {"plaintext": [{"path": "/metadata/labels/none", "operator": "remove"}]},
        }]},
    }));
    assert!(world.settle());
    let reported = world.events.iter().find(|each| each.starts_with("refused: "));
    assert!(
        reported.is_some_and(|reported| reported.contains("ClusterOverridePolicy bad")),
        "{:?}",
        world.events
    );
    assert_eq!(world.holders("Namespace", "shop"), ["member2"]);
    let key = Key::Namespace("shop".into(), "member1".into());
    let event = refusal::event(&world.process.engine, &key, "no rights").expect("the Cluster is known");
    assert_eq!(
        (&*event.regarding.kind, &*event.regarding.name),
        ("Cluster", "member1")
    );
    assert!(
        event
            .message
            .starts_with("namespace shop cannot be updated on member1: no rights; ")
    );
}

#[test]
fn a_status_that_is_too_large_for_the_binding_is_left_out_and_the_rest_is_shown() {
    let mut world = world();
    world.apply(widget("w"));
    world.apply(policy_of(
        "p",
        "example.com/v1",
        "Widget",
        "w",
        &["member1", "member2"],
    ));
    assert!(world.settle());
    for (member, size) in [("member1", 600_000), ("member2", 10)] {
        world.meddle(member, "Widget", "w", |mut live| {
            live["status"] = json!({"text": "x".repeat(size)});
            Some(live)
        });
    }
    assert!(world.settle());
    let items = &binding(&world, "w-widget")["status"]["aggregatedStatus"];
    assert!(items[0]["status"].is_null() && items[0]["copy"].is_object());
    let message = items[0]["appliedMessage"].as_str().expect("words");
    assert!(
        message.contains("too large") && items[0]["applied"] == true,
        "{message}"
    );
    assert_eq!(items[1]["status"], json!({"text": "xxxxxxxxxx"}));
    assert_eq!(condition(&world, "w-widget", "FullyApplied")["status"], "True");
    let wrote = world.writes.len();
    world.restart();
    assert!(world.settle());
    assert_eq!(world.writes[wrote..], [""; 0], "a restart writes nothing");
}

#[test]
fn rules_that_are_put_right_again_are_reported_as_applied() {
    let mut world = world();
    world.apply(deployment("one", &[]));
    world.apply(policy_of("p", "apps/v1", "Deployment", "one", &["member1"]));
    let rules = |path: &str| {
        let one = json!({"path": path, "operator": "replace", "value": 2});
        json!([{ "overriders": {"plaintext": [one]} }])
    };
    for path in ["/spec/replicas", "/spec/none/at/all", "/spec/replicas"] {
        world.apply(override_policy("o", &rules(path)));
        assert!(world.settle());
    }
    let reported: Vec<_> = world
        .events
        .iter()
        .filter_map(|each| each.strip_prefix("ApplyOverridePolicy"))
        .filter_map(|each| each.split(' ').next())
        .collect();
    assert_eq!(reported, ["Succeed", "Failed", "Succeed"]);
}
