//! Customizations: people teach us a kind, change their mind, and make mistakes.

use serde_json::{Value, json};

use crate::{
    binding, condition, config_map, deployment, policy_of, settled,
    world::{World, id},
};

/// A customization by scripts of the kind that [`crate::world`] runs.
pub(crate) fn customization(name: &str, (api_version, kind): (&str, &str), scripts: &Value) -> Value {
    json!({
        "apiVersion": "config.karmada.io/v1alpha1", "kind": "ResourceInterpreterCustomization", "metadata": {"name": name},
        "spec": {"target": {"apiVersion": api_version, "kind": kind}, "customizations": scripts},
    })
}

fn script(at: &str) -> Value {
    json!({"luaScript": json!({"at": at}).to_string()})
}

const SHOP: (&str, &str) = ("example.com/v1", "Shop");

fn shop(uses: &[&str]) -> Value {
    json!({
        "apiVersion": "example.com/v1", "kind": "Shop", "metadata": {"name": "corner"},
        "spec": {"uses": uses, "size": 3},
    })
}

fn needs(name: &str, at: &str) -> Value {
    customization(name, SHOP, &json!({"dependencyInterpretation": script(at)}))
}

/// A shop on member1, and what may be taught of it.
fn with_shop(interpretation: &[Value]) -> World {
    let mut world = World::new(&["member1", "member2"]);
    for name in ["goods", "prices"] {
        world.apply(config_map(name, "one"));
    }
    for each in interpretation {
        world.apply(each.clone());
    }
    world.apply(shop(&["goods"]));
    world.apply(policy_of("shops", SHOP.0, SHOP.1, "corner", &["member1"]));
    assert!(world.settle());
    world
}

pub(crate) fn quiet(world: &mut World) {
    let wrote = world.writes.len();
    world.restart();
    assert!(world.settle_for(60_000));
    assert_eq!(
        world.writes[wrote..],
        [] as [String; 0],
        "a restart writes nothing"
    );
}

#[test]
fn a_kind_takes_along_what_a_customization_finds_in_it() {
    let mut world = with_shop(&[]);
    assert_eq!(world.holders("Shop", "corner"), ["member1"]);
    assert!(world.holders("ConfigMap", "goods").is_empty());

    world.apply(needs("shops", "/spec/uses"));
    assert!(world.settle());
    assert_eq!(world.holders("ConfigMap", "goods"), ["member1"]);
    let reported =
        &binding(&world, "corner-shop")["metadata"]["annotations"]["resourcebinding.karmada.io/dependencies"];
    assert_eq!(
        *reported,
        json!(r#"[{"apiVersion":"v1","kind":"ConfigMap","namespace":"default","name":"goods"}]"#)
    );

    world.apply(shop(&["prices"]));
    assert!(world.settle());
    assert_eq!(world.holders("ConfigMap", "prices"), ["member1"]);
    assert!(world.holders("ConfigMap", "goods").is_empty());
    quiet(&mut world);

    world.delete("ResourceInterpreterCustomization", "shops");
    assert!(world.settle());
    assert!(
        world.holders("ConfigMap", "prices").is_empty(),
        "nobody says that it needs it"
    );
    assert_eq!(world.holders("Shop", "corner"), ["member1"]);
    quiet(&mut world);
}

#[test]
fn what_several_customizations_find_adds_up_and_each_may_go() {
    let mut shop = shop(&["goods"]);
    shop["spec"]["lists"] = json!(["prices"]);
    let mut world = with_shop(&[needs("a", "/spec/uses"), needs("b", "/spec/lists")]);
    world.apply(shop);
    assert!(world.settle());
    assert_eq!(world.holders("ConfigMap", "goods"), ["member1"]);
    assert_eq!(world.holders("ConfigMap", "prices"), ["member1"]);
    world.delete("ResourceInterpreterCustomization", "a");
    assert!(world.settle());
    assert!(world.holders("ConfigMap", "goods").is_empty());
    assert_eq!(world.holders("ConfigMap", "prices"), ["member1"]);
}

#[test]
fn a_customization_of_a_native_kind_answers_alone() {
    let mut world = settled();
    assert_eq!(world.holders("ConfigMap", "my-config"), ["member1", "member2"]);
    let none = json!({"dependencyInterpretation": script("/spec/nothing")});
    world.apply(customization("no-deps", ("apps/v1", "Deployment"), &none));
    assert!(world.settle());
    assert!(world.holders("ConfigMap", "my-config").is_empty());
    world.delete("ResourceInterpreterCustomization", "no-deps");
    assert!(world.settle());
    assert_eq!(world.holders("ConfigMap", "my-config"), ["member1", "member2"]);
    quiet(&mut world);
}

#[test]
fn a_customization_of_one_kind_has_no_other_kind_read_again() {
    let mut world = settled();
    let before = world.process.engine.demand_changes();
    world.apply(needs("shops", "/spec/uses"));
    assert!(world.settle());
    assert_eq!(
        world.process.engine.demand_changes(),
        before,
        "nobody propagates a shop"
    );
    let other = json!({"dependencyInterpretation": script("/spec/uses")});
    world.apply(customization(
        "other-version",
        ("apps/v1beta2", "Deployment"),
        &other,
    ));
    assert!(world.settle());
    assert_eq!(
        world.process.engine.demand_changes(),
        before,
        "another version is watched"
    );
    assert_eq!(world.holders("ConfigMap", "my-config"), ["member1", "member2"]);
}

#[test]
fn what_was_answered_last_stays_in_force_over_a_restart_too_and_the_binding_tells() {
    let mut world = with_shop(&[needs("shops", "/spec/uses")]);
    let mut broken = shop(&["prices"]);
    broken["spec"]["broken"] = json!(true);
    world.apply(broken);
    assert!(world.settle());
    for restarted in [false, true] {
        if restarted {
            quiet(&mut world);
        }
        assert_eq!(
            world.holders("ConfigMap", "goods"),
            ["member1"],
            "restarted: {restarted}"
        );
        assert!(world.holders("ConfigMap", "prices").is_empty());
        let reported = condition(&world, "corner-shop", "Interpreted");
        assert_eq!(
            (&reported["status"], &reported["reason"]),
            (&json!("False"), &json!("NoAnswer"))
        );
        assert_eq!(
            reported["message"],
            "ResourceInterpreterCustomization \"shops\": InterpretDependency failed: line 3: attempt to index a nil value; its dependencies stay as last known"
        );
    }
    let reported = world
        .events
        .iter()
        .filter(|event| event.starts_with("InterpretationFailed Shop corner"));
    assert_eq!(reported.count(), 1, "{:#?}", world.events);
    world.apply(shop(&["prices"]));
    assert!(world.settle());
    assert_eq!(*condition(&world, "corner-shop", "Interpreted"), Value::Null);
    assert_eq!(world.holders("ConfigMap", "prices"), ["member1"]);
    assert!(world.holders("ConfigMap", "goods").is_empty());
}

#[test]
fn a_script_that_does_not_compile_takes_nothing_away() {
    let mut world = with_shop(&[needs("shops", "/spec/uses")]);
    let bad = json!({"dependencyInterpretation": {"luaScript": "function ("}});
    world.apply(customization("shops", SHOP, &bad));
    assert!(world.settle());
    assert_eq!(world.holders("ConfigMap", "goods"), ["member1"]);
    let message = condition(&world, "corner-shop", "Interpreted")["message"]
        .as_str()
        .unwrap();
    assert!(
        message.contains("\"shops\": InterpretDependency failed: line 1: this is no JSON"),
        "{message}"
    );
    quiet(&mut world);
    assert_eq!(world.holders("ConfigMap", "goods"), ["member1"]);
}

#[test]
fn replicas_are_reported_and_set_by_scripts() {
    let scripts = json!({"replicaResource": script("/spec/size"), "replicaRevision": script("/spec/size")});
    let mut world = with_shop(&[customization("shops", SHOP, &scripts)]);
    let mut divided = policy_of("shops", SHOP.0, SHOP.1, "corner", &["member1", "member2"]);
    divided["spec"]["placement"]["replicaScheduling"] = json!({
        "replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted",
        "weightPreference": {"staticWeightList": [
            {"targetCluster": {"clusterNames": ["member1"]}, "weight": 2},
            {"targetCluster": {"clusterNames": ["member2"]}, "weight": 1},
        ]},
    });
    world.apply(divided);
    assert!(world.settle());
    let size =
        |world: &World, member: &str| world.on(member, "Shop", "corner").unwrap()["spec"]["size"].clone();
    assert_eq!(
        (size(&world, "member1"), size(&world, "member2")),
        (json!(2), json!(1))
    );

    let mut broken = shop(&[]);
    broken["spec"]["broken"] = json!(true);
    broken["spec"]["size"] = json!(9);
    world.apply(broken);
    assert!(world.settle());
    assert_eq!(
        (size(&world, "member1"), size(&world, "member2")),
        (json!(2), json!(1))
    );
    assert_eq!(condition(&world, "corner-shop", "Interpreted")["status"], "False");
    world.restart();
    assert!(world.settle());
    assert_eq!(
        (size(&world, "member1"), size(&world, "member2")),
        (json!(2), json!(1))
    );
}

/// The last interpretation stays, over a restart too; the template goes everywhere as a whole. Where replicas are known,
/// too, they are what is divided, and components are not written.
#[test]
fn components_are_reported_by_scripts_and_go_no_way_of_their_own() {
    let parts = |parts: &Value| {
        let mut shop = shop(&[]);
        shop["spec"]["parts"] = parts.clone();
        shop
    };
    let reported = |world: &World| binding(world, "corner-shop")["spec"]["components"].clone();
    let rules = customization(
        "shops",
        SHOP,
        &json!({"componentResource": script("/spec/parts")}),
    );
    let mut world = World::new(&["member1", "member2"]);
    world.apply(rules);
    world.apply(parts(&json!({"clerk": 2, "till": 1})));
    let mut divided = policy_of("shops", SHOP.0, SHOP.1, "corner", &["member1", "member2"]);
    divided["spec"]["placement"]["replicaScheduling"] = json!({"replicaSchedulingType": "Divided"});
    world.apply(divided);
    assert!(world.settle());
    let both = json!([{"name": "clerk", "replicas": 2}, {"name": "till", "replicas": 1}]);
    assert_eq!(reported(&world), both);
    assert_eq!(
        binding(&world, "corner-shop")["spec"]["clusters"],
        json!([{"name": "member1"}, {"name": "member2"}])
    );
    for member in ["member1", "member2"] {
        let copy = world.on(member, "Shop", "corner").expect("the copy");
        assert_eq!(copy["spec"]["parts"], json!({"clerk": 2, "till": 1}));
    }

    let mut broken = parts(&json!({"clerk": 5}));
    broken["spec"]["broken"] = json!(true);
    let long = parts(&json!({"a-name-that-no-binding-can-hold-at-all": 1}));
    for (object, says) in [
        (broken, "attempt to index"),
        (long, "component 0: its name is longer"),
    ] {
        world.apply(object);
        assert!(world.settle());
        assert_eq!(reported(&world), both, "{says}");
        let why = condition(&world, "corner-shop", "Interpreted")["message"].clone();
        assert!(why.as_str().unwrap().contains(says), "{why}");
        assert!(why.as_str().unwrap().contains("shops"), "{why}");
        world.restart();
        let wrote = world.writes.len();
        assert!(world.settle());
        assert_eq!(reported(&world), both, "{says}");
        assert_eq!(world.writes.len(), wrote, "a restart writes nothing");
    }
    world.apply(parts(&json!({"clerk": 3})));
    assert!(world.settle());
    assert_eq!(reported(&world), json!([{"name": "clerk", "replicas": 3}]));
    assert!(condition(&world, "corner-shop", "Interpreted").is_null());

    let both = json!({"componentResource": script("/spec/parts"), "replicaResource": script("/spec/size")});
    world.replace(customization("shops", SHOP, &both));
    assert!(world.settle());
    assert!(reported(&world).is_null());
    assert_eq!(binding(&world, "corner-shop")["spec"]["replicas"], 3);
}

#[test]
fn a_template_whose_replicas_are_to_be_divided_and_were_never_reported_does_not_travel() {
    let scripts = json!({"replicaResource": script("/spec/size")});
    let mut world = World::new(&["member1"]);
    world.apply(customization("shops", SHOP, &scripts));
    let mut broken = shop(&[]);
    broken["spec"]["broken"] = json!(true);
    world.apply(broken);
    let mut divided = policy_of("shops", SHOP.0, SHOP.1, "corner", &["member1"]);
    divided["spec"]["placement"]["replicaScheduling"] =
        json!({"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted"});
    world.apply(divided);
    assert!(world.settle());
    assert!(world.holders("Shop", "corner").is_empty());
    world.apply(shop(&[]));
    assert!(world.settle());
    assert_eq!(world.holders("Shop", "corner"), ["member1"]);
}

#[test]
fn what_a_script_retains_stays_and_another_script_retains_otherwise() {
    let mut world = with_shop(&[customization(
        "shops",
        SHOP,
        &json!({"retention": script("/spec/size")}),
    )]);
    world.meddle("member1", "Shop", "corner", |mut copy| {
        copy["spec"]["size"] = json!(7);
        copy["spec"]["uses"] = json!(["theirs"]);
        Some(copy)
    });
    assert!(world.settle());
    let spec = |world: &World| world.on("member1", "Shop", "corner").unwrap()["spec"].clone();
    assert_eq!(
        (&spec(&world)["size"], &spec(&world)["uses"]),
        (&json!(7), &json!(["goods"]))
    );
    quiet(&mut world);
    world.delete("ResourceInterpreterCustomization", "shops");
    assert!(world.settle());
    assert_eq!(spec(&world)["size"], 3, "rendered anew without the rule");
}

#[test]
fn status_and_health_are_reported_by_scripts_and_the_template_shows_what_a_script_makes_of_them() {
    let scripts = json!({
        "statusReflection": script("/status/mood"), "healthInterpretation": script("/status/mood"),
        "statusAggregation": script(""),
    });
    let mut world = with_shop(&[customization("shops", SHOP, &scripts)]);
    let say = |world: &mut World, status: Value| {
        world.meddle("member1", "Shop", "corner", |mut copy| {
            copy["status"] = status;
            Some(copy)
        });
        assert!(world.settle());
    };
    let item = |world: &World| binding(world, "corner-shop")["status"]["aggregatedStatus"][0].clone();
    say(&mut world, json!({"mood": "fine"}));
    assert_eq!(
        (&item(&world)["status"], &item(&world)["health"]),
        (&json!({"shown": "fine"}), &json!("Healthy"))
    );
    assert_eq!(
        world.hub_object("Shop", "corner").unwrap()["status"],
        json!({"all": "fine"})
    );
    say(&mut world, json!({"mood": "fine", "broken": true}));
    assert_eq!(
        (&item(&world)["status"], &item(&world)["health"]),
        (&json!({"shown": "fine"}), &json!("Unknown"))
    );
    assert_eq!(condition(&world, "corner-shop", "Interpreted")["status"], "False");
    say(&mut world, json!({"mood": "bad"}));
    assert_eq!(
        (&item(&world)["status"], &item(&world)["health"]),
        (&json!({"shown": "bad"}), &json!("Unhealthy"))
    );
    assert_eq!(
        world.hub_object("Shop", "corner").unwrap()["status"],
        json!({"all": "bad"})
    );
    assert_eq!(*condition(&world, "corner-shop", "Interpreted"), Value::Null);
    quiet(&mut world);
}

#[test]
fn nothing_is_decided_before_it_is_known_what_was_taught() {
    let mut world = with_shop(&[needs("shops", "/spec/uses")]);
    let wrote = world.writes.len();
    world
        .shut
        .insert(entourage_core::observation::Watch::Customizations);
    world.restart();
    world.delete("ConfigMap", "prices");
    world.apply(deployment("other", &[]));
    assert!(world.settle_for(120_000));
    assert_eq!(world.holders("ConfigMap", "goods"), ["member1"]);
    let removed: Vec<_> = world.writes[wrote..]
        .iter()
        .filter(|write| write.contains("DELETE"))
        .collect();
    assert!(removed.is_empty(), "{removed:#?}");
    world.shut.clear();
    assert!(world.settle());
    assert_eq!(world.holders("ConfigMap", "goods"), ["member1"]);
}

#[test]
fn a_change_of_what_is_taught_survives_a_crash_after_any_change() {
    for after in 1.. {
        let mut world = with_shop(&[needs("shops", "/spec/uses")]);
        world.apply(shop(&["prices"]));
        world.apply(needs("shops", "/spec/nothing"));
        world.apply(needs("more", "/spec/uses"));
        world.crash_in = Some(after);
        let crashed = !world.settle();
        if crashed {
            world.restart();
            assert!(world.settle());
        }
        assert_eq!(world.holders("ConfigMap", "prices"), ["member1"], "after {after}");
        assert!(world.holders("ConfigMap", "goods").is_empty(), "after {after}");
        if !crashed {
            break;
        }
    }
}

#[test]
fn rules_without_a_script_take_along_what_their_paths_name() {
    let mut rules = customization("shops", SHOP, &json!({}));
    rules["spec"]["declarative"] = json!({
        "dependencies": [{"paths": ["spec.uses[*]"], "apiVersion": "v1", "kind": "ConfigMap"}],
        "replicas": {"path": "spec.size", "default": 1},
    });
    let mut world = with_shop(&[rules]);
    assert_eq!(world.holders("ConfigMap", "goods"), ["member1"]);
    assert_eq!(binding(&world, "corner-shop")["spec"]["replicas"], 3);
    world.apply(shop(&["prices"]));
    assert!(world.settle());
    assert_eq!(world.holders("ConfigMap", "prices"), ["member1"]);
    assert!(world.holders("ConfigMap", "goods").is_empty());
    quiet(&mut world);
}

#[test]
fn a_rule_that_cannot_be_kept_is_reported_with_its_field() {
    let mut rules = customization("shops", SHOP, &json!({}));
    rules["spec"]["declarative"] =
        json!({"dependencies": [{"paths": ["spec.[["], "apiVersion": "v1", "kind": "ConfigMap"}]});
    let world = with_shop(&[rules]);
    let message = condition(&world, "corner-shop", "Interpreted")["message"]
        .as_str()
        .unwrap();
    assert!(
        message.starts_with(
            "ResourceInterpreterCustomization \"shops\": InterpretDependency failed: spec.declarative.dependencies[0].paths[0]: "
        ),
        "{message}"
    );
}

#[test]
fn what_a_customization_adds_comes_to_what_is_known_without_it() {
    let mut world = settled();
    world.apply(config_map("extra", "one"));
    let mut more = customization("more", ("apps/v1", "Deployment"), &json!({}));
    more["spec"]["merge"] = json!("Add");
    more["spec"]["declarative"] = json!({
        "dependencies": [{"paths": ["spec.template.metadata.annotations.uses"], "apiVersion": "v1", "kind": "ConfigMap"}],
    });
    world.apply(more);
    let mut uses = deployment("myapp", &["my-config"]);
    uses["spec"]["template"]["metadata"]["annotations"] = json!({"uses": "extra"});
    world.apply(uses);
    assert!(world.settle());
    for name in ["my-config", "extra"] {
        assert_eq!(world.holders("ConfigMap", name), ["member1", "member2"], "{name}");
    }
    world.delete("ResourceInterpreterCustomization", "more");
    assert!(world.settle());
    assert_eq!(world.holders("ConfigMap", "my-config"), ["member1", "member2"]);
    assert!(world.holders("ConfigMap", "extra").is_empty());
}

/// Rules for a shop that say in which namespace what it names lies.
fn rules_abroad(namespace: &str) -> Value {
    let mut rules = customization("shops", SHOP, &json!({}));
    rules["spec"]["customizations"]["dependencyInterpretation"] = json!({"luaScript":
        json!({"at": "/spec/uses", "namespace": namespace}).to_string()});
    rules
}

#[test]
fn what_lies_in_another_namespace_goes_along_only_if_that_lets_it() {
    let mut world = World::new(&["member1"]);
    let mut vault = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "vault"}});
    world.apply(vault.clone());
    let mut goods = config_map("goods", "one");
    goods["metadata"]["namespace"] = json!("vault");
    world.apply(goods);
    world.apply(rules_abroad("vault"));
    world.apply(shop(&["goods"]));
    world.apply(policy_of("shops", SHOP.0, SHOP.1, "corner", &["member1"]));
    assert!(world.settle());
    let key = id("ConfigMap", "vault", "goods");
    let stands = |world: &World| world.at("member1", &key).is_some();
    assert!(!stands(&world));
    let message = condition(&world, "corner-shop", "Interpreted")["message"].clone();
    assert_eq!(
        message,
        "dependencies in namespace vault are not propagated: permit it by annotating that namespace with \
         entourage.dev/references-from: default"
    );

    for (says, goes) in [("other, default", true), ("other", false), ("*", true)] {
        vault["metadata"]["annotations"] = json!({"entourage.dev/references-from": says});
        world.replace(vault.clone());
        assert!(world.settle());
        assert_eq!(stands(&world), goes, "{says}");
        assert_eq!(
            condition(&world, "corner-shop", "Interpreted").is_null(),
            goes,
            "{says}"
        );
    }
    world.restart();
    let wrote = world.writes.len();
    assert!(world.settle_for(60_000));
    assert_eq!(
        world.writes[wrote..],
        [] as [String; 0],
        "a restart writes nothing"
    );
}

#[test]
fn nothing_of_the_systems_goes_along_and_nothing_without_a_namespace() {
    for namespace in ["kube-system", ""] {
        let mut world = World::new(&["member1"]);
        world.apply(rules_abroad(namespace));
        world.apply(shop(&["goods"]));
        world.apply(policy_of("shops", SHOP.0, SHOP.1, "corner", &["member1"]));
        assert!(world.settle());
        assert_eq!(
            condition(&world, "corner-shop", "Interpreted")["status"],
            "False",
            "{namespace}"
        );
        let needed = world.process.engine.links(
            world
                .process
                .engine
                .by_binding(&entourage_core::object::NamespacedName::new(
                    "default",
                    "corner-shop",
                ))
                .unwrap(),
        );
        assert!(needed.references.is_empty());
    }
}

#[test]
fn what_labels_select_in_another_namespace_goes_along_only_if_that_lets_it_whenever_it_comes() {
    for namespace in ["vault", "kube-system"] {
        let mut world = World::new(&["member1"]);
        world.apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}));
        let mut rules = customization("shops", SHOP, &json!({}));
        rules["spec"]["customizations"]["dependencyInterpretation"] = json!({"luaScript":
            json!({"at": "/spec/uses", "namespace": namespace, "label": "goods"}).to_string()});
        world.apply(rules);
        world.apply(shop(&["yes"]));
        world.apply(policy_of("shops", SHOP.0, SHOP.1, "corner", &["member1"]));
        assert!(world.settle());
        let mut goods = config_map("goods", "one");
        goods["metadata"]["namespace"] = json!(namespace);
        goods["metadata"]["labels"] = json!({"goods": "yes"});
        world.apply(goods);
        assert!(world.settle());
        let key = id("ConfigMap", namespace, "goods");
        assert!(world.at("member1", &key).is_none(), "{namespace}");
        world.restart();
        assert!(world.settle());
        assert!(
            world.at("member1", &key).is_none(),
            "{namespace}, after a restart"
        );
        let mut lets = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        lets["metadata"]["annotations"] = json!({"entourage.dev/references-from": "*"});
        world.replace(lets);
        assert!(world.settle());
        assert_eq!(
            world.at("member1", &key).is_some(),
            namespace == "vault",
            "{namespace}"
        );
    }
}

#[test]
fn zero_replicas_that_were_reported_last_stay_zero_over_a_restart() {
    let scripts = json!({"replicaResource": script("/spec/size"), "replicaRevision": script("/spec/size")});
    let mut world = with_shop(&[customization("shops", SHOP, &scripts)]);
    let mut divided = policy_of("shops", SHOP.0, SHOP.1, "corner", &["member1", "member2"]);
    divided["spec"]["placement"]["replicaScheduling"] = json!({
        "replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted",
        "weightPreference": {"staticWeightList": [
            {"targetCluster": {"clusterNames": ["member1", "member2"]}, "weight": 1},
        ]},
    });
    world.apply(divided);
    let mut none = shop(&[]);
    none["spec"]["size"] = json!(0);
    world.apply(none);
    assert!(world.settle());
    let mut broken = shop(&[]);
    broken["spec"]["size"] = json!(10);
    broken["spec"]["broken"] = json!(true);
    world.apply(broken);
    world.restart();
    assert!(world.settle());
    for member in ["member1", "member2"] {
        if let Some(copy) = world.on(member, "Shop", "corner") {
            assert_eq!(copy["spec"]["size"], 0, "{member}");
        }
    }
}

#[test]
fn what_a_customization_only_adds_to_is_known_while_it_fails() {
    let mut world = World::new(&["member1"]);
    let mut more = customization(
        "more",
        ("apps/v1", "Deployment"),
        &json!({"dependencyInterpretation": {"luaScript": "function ("}}),
    );
    more["spec"]["merge"] = json!("Add");
    world.apply(more);
    world.apply(config_map("my-config", "one"));
    world.apply(deployment("myapp", &["my-config"]));
    world.apply(policy_of("myapp", "apps/v1", "Deployment", "myapp", &["member1"]));
    assert!(world.settle());
    assert_eq!(world.holders("ConfigMap", "my-config"), ["member1"]);
    assert_eq!(
        condition(&world, "myapp-deployment", "Interpreted")["status"],
        "False"
    );
}

#[test]
fn nothing_is_removed_while_it_is_not_known_what_is_taught_now() {
    let mut world = with_shop(&[needs("shops", "/spec/uses")]);
    world.apply(policy_of("prices", "v1", "ConfigMap", "prices", &["member1"]));
    assert!(world.settle());
    world.lose(entourage_core::observation::Watch::Customizations);
    world.apply(shop(&[]));
    assert!(world.settle_for(60_000));
    assert_eq!(
        world.holders("ConfigMap", "goods"),
        ["member1"],
        "a customization that is not seen may need it"
    );
}
