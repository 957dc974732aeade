//! Overrides: what is changed in copies, when, and what a bad one does.

use entourage_core::{
    observation::{Delivered, Watch},
    plan::Key,
};
use serde_json::{Value, json};

use crate::{
    binding, condition, config_map, deployment, policy, settled,
    world::{World, id},
};

pub(crate) fn override_policy(name: &str, rules: &Value) -> Value {
    json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "OverridePolicy", "metadata": {"name": name},
        "spec": {"overrideRules": rules},
    })
}

fn cluster_override(name: &str, selectors: &Value, rules: &Value) -> Value {
    json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "ClusterOverridePolicy", "metadata": {"name": name},
        "spec": {"resourceSelectors": selectors, "overrideRules": rules},
    })
}

/// A rule that sets a key of a ConfigMap on one cluster.
pub(crate) fn sets(cluster: &str, path: &str, value: &str) -> Value {
    json!([{
        "targetCluster": {"clusterNames": [cluster]},
        "overriders": {"plaintext": [{"path": path, "operator": "replace", "value": value}]},
    }])
}

pub(crate) fn of_config(mut policy: Value) -> Value {
    policy["spec"]["resourceSelectors"] =
        json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "my-config"}]);
    policy
}

fn key<'a>(world: &'a World, member: &str) -> &'a Value {
    &world.on(member, "ConfigMap", "my-config").expect("copy")["data"]["key"]
}

fn reported<'a>(world: &'a World, reason: &str) -> Vec<&'a String> {
    world
        .events
        .iter()
        .filter(|event| event.starts_with(reason))
        .collect()
}

fn written_since(world: &World, wrote: usize, what: &str) -> Vec<String> {
    world.writes[wrote..]
        .iter()
        .filter(|write| write.contains(what))
        .cloned()
        .collect()
}

#[test]
fn copies_are_changed_where_the_rules_say_and_dependencies_too() {
    let mut world = settled();
    let wrote = world.writes.len();
    let images = json!([{"overriders": {"imageOverrider": [{"component": "Registry", "operator": "replace", "value": "mirror"}],
        "labelsOverrider": [{"operator": "add", "value": {"tier": "front"}}]}}]);
    let deployments = json!([{"apiVersion": "apps/v1", "kind": "Deployment"}]);
    world.apply(cluster_override("mirror", &deployments, &images));
    world.apply(of_config(override_policy(
        "config",
        &sets("member2", "/data/key", "two"),
    )));
    assert!(world.settle());

    for member in ["member1", "member2"] {
        let copy = world.on(member, "Deployment", "myapp").expect("copy");
        assert_eq!(
            copy["spec"]["template"]["spec"]["containers"][0]["image"],
            "mirror/nginx"
        );
        assert_eq!(copy["metadata"]["labels"]["tier"], "front");
        let record = copy["metadata"]["annotations"]["policy.karmada.io/applied-cluster-overrides"].as_str();
        assert!(record.is_some_and(|record| record.starts_with(r#"[{"policyName":"mirror","overriders":{"#)));
        assert_eq!(
            copy["metadata"]["annotations"]["policy.karmada.io/applied-overrides"],
            Value::Null
        );
    }
    assert_eq!(
        (key(&world, "member1"), key(&world, "member2")),
        (&json!("one"), &json!("two"))
    );
    assert_eq!(
        written_since(&world, wrote, "member1 PUT ConfigMap"),
        [""; 0],
        "it was not concerned"
    );
    assert_eq!(written_since(&world, wrote, "member2 PUT ConfigMap").len(), 1);
    assert_eq!(
        reported(&world, "ApplyOverridePolicySucceed").len(),
        3,
        "{:#?}",
        world.events
    );

    // What was edited by hand comes back, what is quiet stays quiet.
    world.meddle("member2", "ConfigMap", "my-config", |mut copy| {
        copy["metadata"]["annotations"]["policy.karmada.io/applied-overrides"] = json!("[]");
        Some(copy)
    });
    assert!(world.settle());
    let copy = world.on("member2", "ConfigMap", "my-config").expect("copy");
    assert_ne!(
        copy["metadata"]["annotations"]["policy.karmada.io/applied-overrides"],
        "[]"
    );
    let wrote = world.writes.len();
    world.restart();
    assert!(world.settle());
    assert_eq!(world.writes[wrote..], [""; 0], "a restart writes nothing");

    world.apply(of_config(override_policy(
        "config",
        &sets("member1", "/data/key", "two"),
    )));
    assert!(world.settle());
    assert_eq!(
        (key(&world, "member1"), key(&world, "member2")),
        (&json!("two"), &json!("one"))
    );

    world.delete("OverridePolicy", "config");
    world.delete("ClusterOverridePolicy", "mirror");
    assert!(world.settle());
    let undisturbed = settled().outline();
    let left = world.outline();
    for (at, object) in &undisturbed {
        assert_eq!(left.get(at), Some(object), "{at}");
    }
}

#[test]
fn a_bad_override_leaves_the_last_good_version_where_it_fails_and_is_reported_once() {
    let mut world = settled();
    world.apply(of_config(override_policy(
        "config",
        &sets("member1", "/data/key", "good"),
    )));
    assert!(world.settle());
    let wrote = world.writes.len();
    world.apply(of_config(override_policy(
        "config",
        &sets("member1", "/data/none", "bad"),
    )));
    world.apply(config_map("my-config", "changed"));
    assert!(world.settle());

    assert_eq!(
        (key(&world, "member1"), key(&world, "member2")),
        (&json!("good"), &json!("changed"))
    );
    assert_eq!(written_since(&world, wrote, "DELETE"), [""; 0]);
    let applied = condition(&world, "my-config-configmap", "FullyApplied");
    assert_eq!(applied["status"], "False");
    let items = &binding(&world, "my-config-configmap")["status"]["aggregatedStatus"];
    let why = items[0]["appliedMessage"].as_str().expect("message");
    assert!(
        why.starts_with("OverridePolicy default/config spec.overrideRules[0].overriders.plaintext[0]")
            && why.contains("cluster member1")
            && why.contains("/data/none"),
        "{why}"
    );
    assert_eq!(items[1]["applied"], true);
    assert_eq!(
        reported(&world, "ApplyOverridePolicyFailed").len(),
        1,
        "{:#?}",
        world.events
    );

    // A restart finds the same and says nothing.
    let (wrote, events) = (world.writes.len(), world.events.len());
    world.restart();
    assert!(world.settle());
    assert_eq!(world.writes[wrote..], [""; 0]);
    assert_eq!(world.events.len(), events, "{:#?}", &world.events[events..]);

    world.apply(of_config(override_policy(
        "config",
        &sets("member1", "/data/key", "better"),
    )));
    assert!(world.settle());
    assert_eq!(key(&world, "member1"), "better");
    assert_eq!(
        condition(&world, "my-config-configmap", "FullyApplied")["status"],
        "True"
    );
    assert_eq!(
        reported(&world, "ApplyOverridePolicySucceed").len(),
        2,
        "{:#?}",
        world.events
    );
}

#[test]
fn a_bad_override_that_is_taken_back_leaves_no_trace() {
    let mut world = settled();
    let before = world.outline();
    world.apply(of_config(override_policy(
        "config",
        &sets("member1", "/metadata/name", "other"),
    )));
    assert!(world.settle());
    assert_eq!(
        condition(&world, "my-config-configmap", "FullyApplied")["status"],
        "False"
    );
    world.delete("OverridePolicy", "config");
    assert!(world.settle());
    assert_eq!(
        condition(&world, "my-config-configmap", "FullyApplied")["status"],
        "True"
    );
    assert_eq!(world.outline(), before);
}

#[test]
fn a_target_that_cannot_be_read_is_reported_where_the_rule_stands_already_too() {
    let mut world = settled();
    let mut rules = sets("member1", "/data/key", "good");
    world.apply(of_config(override_policy("config", &rules)));
    assert!(world.settle());
    rules[0]["targetCluster"] =
        json!({"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Near", "values": ["b"]}]}});
    world.apply(of_config(override_policy("config", &rules)));
    assert!(world.settle());
    assert_eq!(
        (key(&world, "member1"), key(&world, "member2")),
        (&json!("good"), &json!("one"))
    );
    let items = &binding(&world, "my-config-configmap")["status"]["aggregatedStatus"];
    for item in items.as_array().expect("items") {
        let why = item["appliedMessage"].as_str().unwrap_or_default();
        assert!(why.contains("targetCluster"), "{item}");
    }
}

#[test]
fn what_is_set_in_a_secret_follows_the_policy_and_its_labels_write_nothing() {
    let mut world = settled();
    world.apply(
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"key": "eA=="}}),
    );
    world.apply(crate::policy_of("secrets", "v1", "Secret", "s", &["member1"]));
    let rules = |value: &str| {
        let mut rules = override_policy("secret", &sets("member1", "/data/key", value));
        rules["spec"]["resourceSelectors"] = json!([{"apiVersion": "v1", "kind": "Secret"}]);
        rules
    };
    let held = |world: &World| world.on("member1", "Secret", "s").expect("copy")["data"]["key"].clone();
    for value in ["YQ==", "Yg=="] {
        world.apply(rules(value));
        assert!(world.settle());
        assert_eq!(held(&world), value);
    }
    let wrote = world.writes.len();
    let mut labelled = rules("Yg==");
    labelled["metadata"]["labels"] = json!({"team": "a"});
    world.apply(labelled);
    assert!(world.settle());
    assert_eq!(world.writes[wrote..], [""; 0], "a label of the policy");
    world.delete("OverridePolicy", "secret");
    world.apply(rules("Yg=="));
    assert!(world.settle());
    assert_eq!(held(&world), "Yg==");
}

#[test]
fn nothing_is_delivered_or_reported_before_the_overrides_are_known() {
    for shut in [Watch::Overrides, Watch::ClusterOverrides] {
        let mut world = World::new(&["member1", "member2", "member3"]);
        world.apply(of_config(override_policy(
            "config",
            &sets("member1", "/data/key", "two"),
        )));
        world.shut.insert(shut.clone());
        for object in crate::example() {
            world.apply(object);
        }
        assert!(world.settle());
        assert!(world.holders("Deployment", "myapp").is_empty(), "{shut:?}");
        world.shut.clear();
        assert!(world.settle());
        assert_eq!(key(&world, "member1"), "two", "{shut:?}");

        // The same for what changes while a restarted control plane does not know them.
        world.restart();
        world.shut.insert(shut.clone());
        world.apply(config_map("my-config", "changed"));
        let wrote = world.writes.len();
        assert!(world.settle());
        assert_eq!(world.writes[wrote..], [""; 0], "{shut:?}");
        world.shut.clear();
        assert!(world.settle());
        assert_eq!(
            (key(&world, "member1"), key(&world, "member2")),
            (&json!("two"), &json!("changed"))
        );
    }
}

#[test]
fn a_rule_follows_the_fields_of_a_cluster() {
    let mut world = settled();
    let rules = json!([{
        "targetCluster": {"fieldSelector": {"matchExpressions": [{"key": "region", "operator": "In", "values": ["eu"]}]}},
        "overriders": {"plaintext": [{"path": "/data/key", "operator": "replace", "value": "eu"}]},
    }]);
    world.apply(of_config(override_policy("config", &rules)));
    assert!(world.settle());
    assert_eq!(key(&world, "member1"), "one");
    let member = |region: &str| {
        json!({
            "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": "member1"},
            "spec": {"syncMode": "Push", "apiEndpoint": "https://x", "region": region},
        })
    };
    world.apply(member("eu"));
    assert!(world.settle());
    assert_eq!(
        (key(&world, "member1"), key(&world, "member2")),
        (&json!("eu"), &json!("one"))
    );
    world.apply(member("us"));
    assert!(world.settle());
    assert_eq!(key(&world, "member1"), "one");
}

#[test]
fn a_policy_waits_for_the_overrides_that_it_depends_on_and_says_so() {
    let mut world = World::new(&["member1", "member2", "member3"]);
    let mut dependent = policy(&["member1"]);
    dependent["spec"]["dependentOverrides"] = json!(["config", "other"]);
    world.apply(deployment("myapp", &["my-config"]));
    world.apply(config_map("my-config", "one"));
    world.apply(dependent.clone());
    world.apply(override_policy("other", &json!([])));
    assert!(world.settle());
    assert!(world.holders("Deployment", "myapp").is_empty());
    assert!(world.hub_object("ResourceBinding", "myapp-deployment").is_none());
    let matched = &world
        .hub_object("PropagationPolicy", "myapp-propagation")
        .expect("policy")["status"]["conditions"][0];
    assert_eq!(
        (&matched["status"], &matched["reason"]),
        (&json!("False"), &json!("DependentOverrideMissing"))
    );
    assert!(
        matched["message"]
            .as_str()
            .is_some_and(|why| why.contains("OverridePolicy config:"))
    );

    world.apply(of_config(override_policy(
        "config",
        &sets("member1", "/data/key", "two"),
    )));
    assert!(world.settle());
    assert_eq!(world.holders("Deployment", "myapp"), ["member1"]);
    assert_eq!(key(&world, "member1"), "two");
    let matched = &world
        .hub_object("PropagationPolicy", "myapp-propagation")
        .expect("policy")["status"]["conditions"][0];
    assert_eq!(matched["status"], "True");

    // What is propagated stays as it is while one is missing.
    world.delete("OverridePolicy", "other");
    dependent["spec"]["placement"]["clusterAffinity"]["clusterNames"] = json!(["member2"]);
    world.apply(dependent);
    assert!(world.settle());
    assert_eq!(world.holders("Deployment", "myapp"), ["member1"]);
    world.apply(override_policy("other", &json!([])));
    assert!(world.settle());
    assert_eq!(world.holders("Deployment", "myapp"), ["member2"]);
}

#[test]
fn a_crash_after_any_change_by_an_override_leads_to_the_same_end() {
    type Act = fn(&mut World);
    let acts: [Act; 3] = [
        |world| {
            world.apply(of_config(override_policy(
                "config",
                &sets("member1", "/data/key", "two"),
            )))
        },
        |world| {
            world.apply(of_config(override_policy(
                "config",
                &sets("member1", "/data/none", "two"),
            )))
        },
        |world| world.delete("OverridePolicy", "other"),
    ];
    let start = || {
        let mut world = settled();
        let everything =
            json!([{"overriders": {"labelsOverrider": [{"operator": "add", "value": {"a": "b"}}]}}]);
        world.apply(override_policy("other", &everything));
        assert!(world.settle());
        world
    };
    for (at, act) in acts.into_iter().enumerate() {
        let mut undisturbed = start();
        let wrote = undisturbed.writes.len();
        act(&mut undisturbed);
        assert!(undisturbed.settle());
        for k in 1..=undisturbed.writes.len() - wrote {
            let mut world = start();
            act(&mut world);
            world.crash_in = Some(k);
            if !world.settle() {
                world.restart();
                assert!(world.settle());
            }
            assert_eq!(
                undisturbed.outline(),
                world.outline(),
                "act {at}, crash after {k}"
            );
        }
    }
}

#[test]
fn a_namespace_is_changed_by_cluster_overrides_and_never_delivered_without_them() {
    let mut world = World::new(&["member1", "member2"]);
    let rules = json!([{
        "targetCluster": {"clusterNames": ["member2"]},
        "overriders": {"labelsOverrider": [{"operator": "replace", "value": {"team": "b"}}]},
    }]);
    let namespaces = json!([{"apiVersion": "v1", "kind": "Namespace", "name": "shop"}]);
    world.apply(cluster_override("teams", &namespaces, &rules));
    world.apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": {"team": "a"}}}));
    world.shut.insert(Watch::ClusterOverrides);
    assert!(world.settle());
    assert!(world.holders("Namespace", "shop").is_empty());
    world.shut.clear();
    assert!(world.settle());
    let team = |world: &World, member: &str| {
        world.on(member, "Namespace", "shop").expect("there")["metadata"]["labels"]["team"].clone()
    };
    assert_eq!(
        (team(&world, "member1"), team(&world, "member2")),
        (json!("a"), json!("b"))
    );
    let wrote = world.writes.len();
    world.restart();
    assert!(world.settle());
    assert_eq!(world.writes[wrote..], [""; 0], "a restart writes nothing");
    world.delete("ClusterOverridePolicy", "teams");
    assert!(world.settle());
    assert_eq!(team(&world, "member2"), json!("a"));
}

#[test]
fn one_policy_among_many_concerns_only_what_it_may_select() {
    let mut world = settled();
    for n in 0..200 {
        let mut other = override_policy(&format!("other-{n}"), &sets("member1", "/data/key", "other"));
        other["spec"]["resourceSelectors"] =
            json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": format!("c{n}")}]);
        world.apply(other);
    }
    assert!(world.settle());
    let wrote = world.writes.len();
    let (mut seen, watch) = (
        of_config(override_policy("config", &sets("member1", "/data/key", "two"))),
        Watch::Overrides,
    );
    seen["metadata"] =
        json!({"name": "config", "namespace": "default", "uid": "u", "resourceVersion": "1000000"});
    let subject = entourage_core::observation::project(&watch, &Default::default(), &seen).expect("readable");
    let dirty = world
        .process
        .engine
        .observe(entourage_core::observation::Observation::Seen(subject), world.now);
    let copies: Vec<String> = dirty.iter().map(|key| format!("{key:?}")).collect();
    assert!(
        copies.len() <= 4
            && copies
                .iter()
                .all(|key| key.contains("my-config") || key.starts_with("Override(")),
        "{copies:#?}"
    );
    assert_eq!(world.writes.len(), wrote);
}

#[test]
fn an_override_policy_that_changes_no_copy_is_reported_and_why() {
    let odd = [
        (
            of_config(override_policy("odd", &sets("nope", "/data/key", "x"))),
            "targetCluster selects no cluster of this hub",
        ),
        (
            override_policy_of("ConfigMap", "other", &sets("member1", "/data/key", "x")),
            "no propagated resource matches spec.resourceSelectors",
        ),
        (
            of_config(override_policy("odd", &sets("member3", "/data/key", "x"))),
            "1 resource matches spec.resourceSelectors, and it is not scheduled to any cluster",
        ),
        (
            of_config(override_policy("odd", &json!([{"overriders": {}}]))),
            "it has no overriders",
        ),
    ];
    for (policy, why) in odd {
        let mut world = World::new(&["member1", "member2", "member3"]);
        for object in [
            deployment("myapp", &["my-config"]),
            config_map("my-config", "one"),
            self::policy(&["member1", "member2"]),
        ] {
            world.apply(object);
        }
        world.apply(policy);
        assert!(world.settle_for(60_000));
        let reported = world
            .events
            .iter()
            .filter(|event| event.contains("changes no copy"));
        let reported: Vec<&String> = reported.collect();
        assert!(
            reported.iter().any(
                |event| event.contains("OverridePolicy default/odd changes no copy: ") && event.contains(why)
            ),
            "{why}: {reported:?}"
        );
    }
}

fn override_policy_of(kind: &str, name: &str, rules: &Value) -> Value {
    let mut policy = override_policy("odd", rules);
    policy["spec"]["resourceSelectors"] = json!([{"apiVersion": "v1", "kind": kind, "name": name}]);
    policy
}

#[test]
fn an_override_policy_is_reported_when_it_stops_changing_copies_and_not_while_it_does() {
    let mut world = settled();
    let of = |world: &World| {
        let reported = world.events.iter();
        reported.filter(|event| event.contains("changes no copy")).count()
    };
    world.apply(of_config(override_policy(
        "config",
        &sets("member2", "/data/key", "two"),
    )));
    let namespaces = json!([{"apiVersion": "v1", "kind": "Namespace"}]);
    let labels = json!([{"overriders": {"labelsOverrider": [{"operator": "add", "value": {"a": "b"}}]}}]);
    world.apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}));
    world.apply(cluster_override("namespaces", &namespaces, &labels));
    assert!(world.settle_for(60_000));
    assert_eq!(of(&world), 0, "{:?}", world.events);
    world.apply(policy(&["member1"]));
    assert!(world.settle_for(60_000));
    assert!(of(&world) > 0, "{:?}", world.events);
    // A process that starts finds what was reported before.
    world.events.clear();
    world.restart();
    assert!(world.settle_for(60_000));
    assert_eq!(of(&world), 0, "{:?}", world.events);
    // Its end is no news.
    world.delete("OverridePolicy", "config");
    assert!(world.settle_for(60_000));
    assert_eq!(of(&world), 0, "{:?}", world.events);
}

#[test]
fn a_secret_that_ends_together_with_its_policy_and_its_override_leaves_no_copy() {
    for seed in 0..60 {
        let mut world = settled();
        world.apply(
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"key": "eA=="}}),
        );
        world.apply(crate::policy_of("secrets", "v1", "Secret", "s", &["member1"]));
        let rules = |path: &str| {
            let mut rules = override_policy("secret", &sets("member1", path, "YQ=="));
            rules["spec"]["resourceSelectors"] = json!([{"apiVersion": "v1", "kind": "Secret"}]);
            rules
        };
        world.apply(rules("/data/key"));
        assert!(world.settle());
        // The next version of it cannot be delivered.
        world.apply(rules("/no/such/field"));
        world.chaos = Some(crate::world::Random::new(seed));
        world.overlaps = true;
        if seed % 2 == 0 {
            assert!(world.settle_for(100));
        }
        let mut all = [
            ("OverridePolicy", "secret"),
            ("PropagationPolicy", "secrets"),
            ("Secret", "s"),
        ];
        all.rotate_left((seed % 3) as usize);
        if seed % 4 < 2 {
            world.hold_back("Secret");
        }
        for (kind, name) in all {
            world.delete(kind, name);
        }
        assert!(world.settle_for(100));
        world.tell_all_late();
        assert!(world.settle());
        assert!(world.holders("Secret", "s").is_empty(), "seed {seed}");
        let binding = world.hub_object("ResourceBinding", "s-secret");
        assert!(binding.is_none(), "seed {seed}");
    }
}

#[test]
fn a_delivery_that_fails_while_its_template_is_deleted_does_not_hold_up_the_removal() {
    let mut world = settled();
    let rule =
        json!([{"overriders": {"labelsOverrider": [{"operator": "add", "value": {"tier": "front"}}]}}]);
    let mut tier = override_policy("tier", &rule);
    tier["spec"]["resourceSelectors"] = json!([{"apiVersion": "apps/v1", "kind": "Deployment"}]);
    world.apply(tier);
    let copy = Key::Copy(id("Deployment", "default", "myapp"), "member1".into());
    let delivery = world.settle_until_delivery(&copy);
    world.delete("Deployment", "myapp");
    assert!(world.settle_for(0));
    world.land_failed(delivery, &Delivered::BadOverride("there is no such field".into()));
    assert!(world.settle_for(1_000));
    assert_eq!(world.holders("Deployment", "myapp"), [""; 0]);
    assert!(world.hub_object("ResourceBinding", "myapp-deployment").is_none());
}
