//! Hooks: webhooks say how a kind is understood, become unresponsive, come back, and are configured otherwise.

use entourage_core::interpreter::question::{Answer, Question};
use serde_json::{Value, json};

use crate::{binding, condition, config_map, deployment, policy_of, world::World};

const SHOP: (&str, &str) = ("example.com/v1", "Shop");

/// Hooks in Karmada's contract: about these kinds, for these operations.
fn interpreter(name: &str, kinds: &[&str], operations: &[&str]) -> Value {
    json!({
        "apiVersion": "config.karmada.io/v1alpha1", "kind": "ResourceInterpreterWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [{
            "name": "shops.example.com", "clientConfig": {"url": "https://hooks.example.com/"},
            "interpreterContextVersions": ["v1alpha1"],
            "rules": [{"operations": operations, "apiGroups": ["*"], "apiVersions": ["*"], "kinds": kinds}],
        }],
    })
}

/// The same in the other contract, which has a policy.
fn explorer(name: &str, resources: &[&str], operations: &[&str], policy: &str) -> Value {
    json!({
        "apiVersion": "config.karmada.io/v1alpha1", "kind": "ResourceExploringWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [{
            "name": "shops.example.com", "clientConfig": {"url": "https://hooks.example.com/"},
            "exploreReviewVersions": ["v1alpha1"], "failurePolicy": policy, "timeoutSeconds": 10,
            "rules": [{"operations": operations, "apiGroups": ["*"], "apiVersions": ["*"], "resources": resources, "scope": "*"}],
        }],
    })
}

fn shop(uses: &[&str], size: i64) -> Value {
    json!({
        "apiVersion": "example.com/v1", "kind": "Shop", "metadata": {"name": "corner"},
        "spec": {"uses": uses, "size": size},
    })
}

/// Reads shops: what they use, how large they are, how they feel.
fn says(_: &str, question: Question<'_>) -> Result<Answer, &'static str> {
    let object = question.object();
    if object["spec"]["broken"] == true {
        return Err("no such shop");
    }
    Ok(match question {
        Question::Dependencies(object) => {
            let uses = object["spec"]["uses"].as_array().into_iter().flatten();
            let all = uses.map(|name| {
                serde_json::from_value(json!({
                    "apiVersion": "v1", "kind": "ConfigMap", "namespace": object["metadata"]["namespace"], "name": name,
                }))
                .expect("a reference")
            });
            Answer::Dependencies(all.collect())
        }
        Question::Replicas(object) => Answer::Replicas {
            replicas: object["spec"]["size"].as_i64().unwrap_or_default(),
            requirements: None,
        },
        Question::Prune(object) => {
            let mut object = object.clone();
            if let Some(spec) = object["spec"].as_object_mut() {
                spec.remove("uses");
            }
            Answer::Object(object)
        }
        Question::Revise(object, replicas) => {
            let mut object = object.clone();
            object["spec"]["size"] = replicas.into();
            Answer::Object(object)
        }
        Question::Retain { desired, live } => {
            let mut object = desired.clone();
            object["spec"]["till"] = live["spec"]["till"].clone();
            Answer::Object(object)
        }
        Question::Reflect(live) => Answer::Status(Some(json!({"mood": live["status"]["mood"]}))),
        Question::Health(live) => Answer::Healthy(live["status"]["mood"] == "fine"),
        Question::Aggregate { template, items } => {
            let mut object = template.clone();
            let moods: Vec<Value> = items
                .iter()
                .map(|item| item.status.clone().unwrap_or_default()["mood"].clone())
                .collect();
            object["status"] = json!({ "moods": moods });
            Answer::Object(object)
        }
        Question::Components(_) => Answer::Components(Vec::new()),
    })
}

/// A shop for member1, and hooks that answer.
fn with_shop(configured: &[Value]) -> World {
    let mut world = World::new(&["member1", "member2"]);
    world.hooked.says = Some(says);
    for name in ["goods", "prices"] {
        world.apply(config_map(name, "one"));
    }
    for each in configured {
        world.apply(each.clone());
    }
    world.apply(shop(&["goods"], 3));
    world.apply(policy_of("shops", SHOP.0, SHOP.1, "corner", &["member1"]));
    assert!(world.settle());
    world
}

fn quiet(world: &mut World) {
    let wrote = world.writes.len();
    world.restart();
    assert!(world.settle_for(60_000));
    assert_eq!(
        world.writes[wrote..],
        [] as [String; 0],
        "a restart writes nothing"
    );
}

fn interpreted(world: &World) -> (Value, String) {
    let reported = condition(world, "corner-shop", "Interpreted");
    let message = reported["message"].as_str().unwrap_or_default();
    (reported["reason"].clone(), message.to_owned())
}

const ALL: &[&str] = &["*"];

#[test]
fn a_kind_takes_along_what_a_hook_of_either_contract_finds_in_it() {
    let configured = [
        interpreter("hooks", &["Shop"], &["InterpretDependency"]),
        explorer("hooks", &["shops"], &["ExploreDependencies"], "Fail"),
        interpreter("hooks", ALL, ALL),
        explorer("hooks", &["*/*"], ALL, "Fail"),
    ];
    for hooks in configured {
        let mut world = with_shop(&[]);
        assert!(world.holders("ConfigMap", "goods").is_empty());
        world.apply(hooks.clone());
        assert!(world.settle());
        assert_eq!(world.holders("ConfigMap", "goods"), ["member1"], "{hooks}");
        world.apply(shop(&["prices"], 3));
        assert!(world.settle());
        assert_eq!(world.holders("ConfigMap", "prices"), ["member1"]);
        assert!(world.holders("ConfigMap", "goods").is_empty());
        quiet(&mut world);

        world.delete(hooks["kind"].as_str().unwrap(), "hooks");
        assert!(world.settle());
        assert!(world.holders("ConfigMap", "prices").is_empty());
        assert_eq!(world.holders("Shop", "corner"), ["member1"]);
        quiet(&mut world);
    }
}

#[test]
fn a_hook_is_asked_about_nothing_that_no_rule_of_it_is_about() {
    for hooks in [
        interpreter("hooks", &["Stall"], ALL),
        explorer("hooks", &["stalls"], ALL, "Fail"),
    ] {
        let world = with_shop(&[hooks]);
        assert_eq!(*world.hooked.asked.borrow(), [] as [String; 0]);
        assert_eq!(world.holders("Shop", "corner"), ["member1"]);
    }
    let mut world = with_shop(&[
        interpreter("hooks", ALL, ALL),
        explorer("hooks", ALL, ALL, "Fail"),
    ]);
    world.apply(
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key"}, "data": {"key": "djE="}}),
    );
    world.apply(policy_of("keys", "v1", "Secret", "key", &["member1"]));
    assert!(world.settle());
    assert_eq!(world.holders("Secret", "key"), ["member1"]);
    let asked = world.hooked.asked.borrow();
    assert!(asked.iter().any(|line| line.ends_with(" goods")), "{asked:#?}");
    assert!(!asked.iter().any(|line| line.ends_with(" key")), "{asked:#?}");
}

#[test]
fn an_unresponsive_hook_takes_nothing_away_over_a_restart_too_and_the_binding_tells() {
    for (hooks, layer, word) in [
        (
            interpreter("hooks", &["Shop"], &["InterpretDependency"]),
            "ResourceInterpreterWebhookConfiguration",
            "InterpretDependency",
        ),
        (
            explorer(
                "hooks",
                &["shops"],
                &["ExploreDependencies", "ExploreStatus", "ExploreHealthy"],
                "Ignore",
            ),
            "ResourceExploringWebhookConfiguration",
            "ExploreDependencies",
        ),
    ] {
        let mut world = with_shop(&[hooks]);
        world.hooked.unresponsive = true;
        world.apply(shop(&["prices"], 3));
        assert!(world.settle());
        for _ in 0..2 {
            assert_eq!(world.holders("ConfigMap", "goods"), ["member1"]);
            assert!(world.holders("ConfigMap", "prices").is_empty());
            let (reason, message) = interpreted(&world);
            assert_eq!(reason, "NoAnswer");
            assert_eq!(
                message,
                format!(
                    "{layer} \"hooks/shops.example.com\": {word} failed: connection refused; its dependencies stay as last known"
                )
            );
            quiet(&mut world);
        }
        world.hooked.unresponsive = false;
        world.hear_again();
        assert!(world.settle());
        assert_eq!(world.holders("ConfigMap", "prices"), ["member1"]);
        assert!(world.holders("ConfigMap", "goods").is_empty());
        assert_eq!(interpreted(&world).0, Value::Null);
        quiet(&mut world);
    }
}

#[test]
fn nothing_begins_before_a_hook_that_must_be_observed_was() {
    for (hooks, travels) in [
        (interpreter("hooks", &["Shop"], &["InterpretDependency"]), false),
        (
            explorer("hooks", &["shops"], &["ExploreDependencies"], "Fail"),
            false,
        ),
        (
            explorer("hooks", &["shops"], &["ExploreDependencies"], "Ignore"),
            true,
        ),
        // Its replicas are not divided.
        (interpreter("hooks", &["Shop"], &["InterpretReplica"]), true),
        (explorer("hooks", &["shops"], &["ExploreReplica"], "Ignore"), true),
    ] {
        let mut world = World::new(&["member1"]);
        world.apply(hooks.clone());
        world.apply(config_map("goods", "one"));
        world.apply(shop(&["goods"], 3));
        world.apply(policy_of("shops", SHOP.0, SHOP.1, "corner", &["member1"]));
        assert!(world.settle());
        assert_eq!(world.holders("Shop", "corner") == ["member1"], travels, "{hooks}");
        world.hooked.says = Some(says);
        world.hear_again();
        assert!(world.settle_for(60_000));
        assert_eq!(world.holders("Shop", "corner"), ["member1"], "{hooks}");
        quiet(&mut world);
    }
}

#[test]
fn replicas_are_reported_and_set_by_a_hook_and_one_that_is_passed_over_leaves_that_to_what_is_known() {
    let mut world = with_shop(&[interpreter(
        "hooks",
        &["Shop"],
        &["InterpretReplica", "ReviseReplica"],
    )]);
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
    let sizes = |world: &World| (size(world, "member1"), size(world, "member2"));
    assert_eq!(sizes(&world), (json!(2), json!(1)));

    world.hooked.unresponsive = true;
    world.apply(shop(&["goods"], 9));
    assert!(world.settle());
    assert_eq!(sizes(&world), (json!(2), json!(1)), "neither reported nor set");
    world.hooked.unresponsive = false;
    world.hear_again();
    assert!(world.settle_for(120_000));
    assert_eq!(sizes(&world), (json!(6), json!(3)));
    quiet(&mut world);

    // A Deployment is known: a hook that may be passed over changes nothing while it is unresponsive.
    world.hooked.unresponsive = true;
    world.apply(explorer("all", &["deployments"], ALL, "Ignore"));
    world.apply(deployment("myapp", &["goods"]));
    world.apply(policy_of("myapp", "apps/v1", "Deployment", "myapp", &["member2"]));
    assert!(world.settle_for(60_000));
    assert_eq!(world.holders("Deployment", "myapp"), ["member2"]);
    assert_eq!(world.holders("ConfigMap", "goods"), ["member2"]);
    assert_eq!(binding(&world, "myapp-deployment")["spec"]["replicas"], 1);
}

#[test]
fn what_a_hook_retains_stays_and_while_it_is_unresponsive_nothing_is_written() {
    let mut world = with_shop(&[interpreter("hooks", &["Shop"], &["Retain"])]);
    world.meddle("member1", "Shop", "corner", |mut copy| {
        copy["spec"]["till"] = json!(7);
        copy["spec"]["uses"] = json!(["theirs"]);
        Some(copy)
    });
    assert!(world.settle());
    let spec = |world: &World| world.on("member1", "Shop", "corner").unwrap()["spec"].clone();
    assert_eq!(spec(&world), json!({"uses": ["goods"], "size": 3, "till": 7}));
    world.hooked.unresponsive = true;
    world.apply(shop(&["prices"], 3));
    assert!(world.settle());
    assert_eq!(spec(&world)["uses"], json!(["goods"]));
    assert_eq!(
        interpreted(&world),
        (
            json!("NoAnswer"),
            "ResourceInterpreterWebhookConfiguration \"hooks/shops.example.com\": Retain failed: connection refused"
                .to_owned()
        )
    );
    world.hooked.unresponsive = false;
    assert!(world.settle_for(120_000));
    assert_eq!(spec(&world), json!({"uses": ["prices"], "size": 3, "till": 7}));
    assert_eq!(interpreted(&world).0, Value::Null);
    quiet(&mut world);
}

#[test]
fn status_and_health_are_reported_by_a_hook_and_stay_while_it_is_unresponsive() {
    let mut world = with_shop(&[interpreter(
        "hooks",
        &["Shop"],
        &["InterpretStatus", "InterpretHealth", "AggregateStatus"],
    )]);
    let say = |world: &mut World, mood: &str| {
        world.meddle("member1", "Shop", "corner", |mut copy| {
            copy["status"] = json!({"mood": mood, "more": 1});
            Some(copy)
        });
        assert!(world.settle());
    };
    let item = |world: &World| {
        let item = &binding(world, "corner-shop")["status"]["aggregatedStatus"][0];
        (item["status"].clone(), item["health"].clone())
    };
    let shown = |world: &World| world.hub_object("Shop", "corner").unwrap()["status"].clone();
    say(&mut world, "fine");
    assert_eq!(item(&world), (json!({"mood": "fine"}), json!("Healthy")));
    assert_eq!(shown(&world), json!({"moods": ["fine"]}));
    quiet(&mut world);

    world.hooked.unresponsive = true;
    say(&mut world, "bad");
    for _ in 0..2 {
        assert_eq!(item(&world), (json!({"mood": "fine"}), json!("Healthy")));
        assert_eq!(shown(&world), json!({"moods": ["fine"]}));
        world.restart();
        assert!(world.settle());
    }
    world.hooked.unresponsive = false;
    world.hear_again();
    assert!(world.settle_for(60_000));
    assert_eq!(item(&world), (json!({"mood": "bad"}), json!("Unhealthy")));
    assert_eq!(shown(&world), json!({"moods": ["bad"]}));
    assert_eq!(interpreted(&world).0, Value::Null);
    quiet(&mut world);
}

#[test]
fn an_unresponsive_hook_is_asked_again_for_a_status() {
    let mut world = with_shop(&[interpreter("hooks", &["Shop"], &["AggregateStatus"])]);
    world.hooked.unresponsive = true;
    world.meddle("member1", "Shop", "corner", |mut copy| {
        copy["status"] = json!({"mood": "fine"});
        Some(copy)
    });
    assert!(world.settle());
    assert_eq!(interpreted(&world).0, "NoAnswer");
    world.hooked.unresponsive = false;
    assert!(world.settle_for(60_000));
    let shop = world.hub_object("Shop", "corner").unwrap();
    assert_eq!(shop["status"], json!({"moods": ["fine"]}));
    assert_eq!(interpreted(&world).0, Value::Null);
}

#[test]
fn a_customization_goes_before_a_hook_and_one_that_adds_beside_it() {
    let customization = |merge: &str| {
        json!({
            "apiVersion": "config.karmada.io/v1alpha1", "kind": "ResourceInterpreterCustomization",
            "metadata": {"name": "shops"},
            "spec": {
                "target": {"apiVersion": SHOP.0, "kind": SHOP.1}, "merge": merge,
                "customizations": {"dependencyInterpretation": {"luaScript": json!({"at": "/spec/more"}).to_string()}},
            },
        })
    };
    let mut shop = shop(&["goods"], 3);
    shop["spec"]["more"] = json!(["prices"]);
    let mut world = with_shop(&[interpreter("hooks", &["Shop"], &["InterpretDependency"])]);
    world.apply(shop);
    world.apply(customization("Replace"));
    assert!(world.settle());
    assert_eq!(world.holders("ConfigMap", "prices"), ["member1"]);
    assert!(world.holders("ConfigMap", "goods").is_empty());
    let asked = world.hooked.asked.borrow().len();
    quiet(&mut world);
    assert_eq!(world.hooked.asked.borrow().len(), asked, "it is not asked");

    world.apply(customization("Add"));
    assert!(world.settle());
    assert_eq!(world.holders("ConfigMap", "prices"), ["member1"]);
    assert_eq!(world.holders("ConfigMap", "goods"), ["member1"]);
    quiet(&mut world);
}

#[test]
fn a_hook_answers_for_a_known_kind_alone_and_other_kinds_are_not_read_again() {
    let mut world = with_shop(&[]);
    world.apply(deployment("myapp", &["goods"]));
    world.apply(policy_of("myapp", "apps/v1", "Deployment", "myapp", &["member2"]));
    assert!(world.settle());
    assert_eq!(world.holders("ConfigMap", "goods"), ["member2"]);
    let before = world.process.engine.demand_changes();
    world.apply(interpreter("other", &["Stall"], ALL));
    assert!(world.settle());
    assert_eq!(
        world.process.engine.demand_changes(),
        before,
        "no watch begins anew"
    );
    world.apply(interpreter("hooks", &["Deployment"], &["InterpretDependency"]));
    assert!(world.settle());
    assert_ne!(world.process.engine.demand_changes(), before);
    assert!(
        world.holders("ConfigMap", "goods").is_empty(),
        "the hook finds nothing in it"
    );
    assert_eq!(world.holders("Deployment", "myapp"), ["member2"]);
}

#[test]
fn what_an_unresponsive_hook_found_in_a_known_kind_stays_over_a_restart() {
    let mut world = with_shop(&[interpreter("hooks", &["Deployment"], &["InterpretDependency"])]);
    let mut app = deployment("myapp", &["prices"]);
    app["spec"]["uses"] = json!(["goods"]);
    world.apply(app.clone());
    world.apply(policy_of("myapp", "apps/v1", "Deployment", "myapp", &["member2"]));
    assert!(world.settle());
    let check = |world: &World| {
        assert_eq!(world.holders("ConfigMap", "goods"), ["member2"]);
        assert!(
            world.holders("ConfigMap", "prices").is_empty(),
            "the hook answers alone"
        );
    };
    check(&world);
    world.hooked.unresponsive = true;
    world.restart();
    assert!(world.settle());
    check(&world);
    quiet(&mut world);
    check(&world);
}

#[test]
fn nothing_is_decided_before_it_is_known_which_hooks_there_are() {
    use entourage_core::{interpreter::hook::Contract, observation::Watch};
    for contract in [Contract::Interpreter, Contract::Explorer] {
        let hooks = match contract {
            Contract::Interpreter => interpreter("hooks", &["Shop"], ALL),
            Contract::Explorer => explorer("hooks", &["shops"], ALL, "Fail"),
        };
        let mut world = with_shop(&[hooks]);
        let wrote = world.writes.len();
        world.shut.insert(Watch::Hooks(contract));
        world.restart();
        world.apply(shop(&[], 3));
        assert!(world.settle_for(120_000));
        assert_eq!(world.holders("ConfigMap", "goods"), ["member1"]);
        assert_eq!(world.writes[wrote..], [] as [String; 0]);
        world.shut.clear();
        assert!(world.settle_for(120_000));
        assert!(world.holders("ConfigMap", "goods").is_empty());
    }
}

#[test]
fn a_hub_that_does_not_know_configurations_of_hooks_has_none() {
    use entourage_core::{
        interpreter::hook::Contract,
        observation::{Observation, Watch},
    };
    let mut world = with_shop(&[interpreter("hooks", &["Shop"], &["InterpretDependency"])]);
    world.shut.insert(Watch::Hooks(Contract::Explorer));
    world.restart();
    world.apply(shop(&["prices"], 3));
    assert!(world.settle());
    assert!(world.holders("ConfigMap", "prices").is_empty());
    world.tell_again(Observation::Unserved {
        watch: Watch::Hooks(Contract::Explorer),
        other: None,
        why: "the hub does not serve it".into(),
    });
    assert!(world.settle_for(60_000));
    assert_eq!(world.holders("ConfigMap", "prices"), ["member1"]);
}

fn account(secrets: &[&str]) -> Value {
    let names: Vec<_> = secrets.iter().map(|name| json!({"name": name})).collect();
    json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}, "imagePullSecrets": names})
}

fn secret(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": {"key": "djE="}})
}

#[test]
fn a_hook_that_never_spoke_takes_nothing_away_from_what_lies_between() {
    for down in [false, true] {
        let mut world = with_shop(&[]);
        world.apply(secret("pull"));
        world.apply(account(&["pull"]));
        let mut app = deployment("myapp", &[]);
        app["spec"]["template"]["spec"]["serviceAccountName"] = json!("robot");
        world.apply(app);
        world.apply(policy_of("myapp", "apps/v1", "Deployment", "myapp", &["member2"]));
        assert!(world.settle());
        assert_eq!(world.holders("Secret", "pull"), ["member2"]);
        world.hooked.unresponsive = true;
        world.apply(interpreter(
            "hooks",
            &["ServiceAccount"],
            &["InterpretDependency"],
        ));
        if down {
            world.restart();
        }
        assert!(world.settle_for(60_000));
        assert_eq!(world.holders("Secret", "pull"), ["member2"], "down: {down}");
        assert_eq!(world.holders("ServiceAccount", "robot"), ["member2"]);
        world.restart();
        assert!(world.settle_for(60_000));
        assert_eq!(world.holders("Secret", "pull"), ["member2"], "down: {down}");
    }
}

#[test]
fn what_an_unresponsive_hook_does_not_report_is_not_summed_up_as_nothing() {
    let mut world = with_shop(&[interpreter("hooks", &["Deployment"], &["InterpretStatus"])]);
    world.hooked.says = Some(|_, question| Ok(Answer::Status(Some(question.object()["status"].clone()))));
    world.apply(deployment("myapp", &[]));
    world.apply(policy_of("myapp", "apps/v1", "Deployment", "myapp", &["member2"]));
    assert!(world.settle());
    world.meddle("member2", "Deployment", "myapp", |mut copy| {
        copy["status"] =
            json!({"replicas": 1, "readyReplicas": 1, "availableReplicas": 1, "updatedReplicas": 1});
        Some(copy)
    });
    assert!(world.settle());
    let ready = |world: &World| {
        let app = world.hub_object("Deployment", "myapp").expect("it is there");
        app["status"]["readyReplicas"].clone()
    };
    assert_eq!(ready(&world), 1);
    world.hooked.unresponsive = true;
    for _ in 0..2 {
        world.restart();
        assert!(world.settle_for(60_000));
        assert_eq!(ready(&world), 1);
    }
}

#[test]
fn a_copy_is_not_written_without_a_hook_that_nobody_stands_in_for() {
    let mut world = with_shop(&[explorer("hooks", &["shops"], ALL, "Ignore")]);
    let spec = |world: &World| {
        world
            .on("member1", "Shop", "corner")
            .map(|copy| copy["spec"].clone())
    };
    world.meddle("member1", "Shop", "corner", |mut copy| {
        copy["spec"]["till"] = json!(7);
        Some(copy)
    });
    assert!(world.settle());
    let before = spec(&world);
    world.hooked.unresponsive = true;
    world.apply(shop(&["goods"], 5));
    assert!(world.settle());
    assert_eq!(spec(&world), before, "what it retains would be lost");
    assert_eq!(interpreted(&world).0, "NoAnswer");
    world.hooked.unresponsive = false;
    world.hear_again();
    assert!(world.settle_for(120_000));
    assert_eq!(
        spec(&world),
        Some(json!({"uses": ["goods"], "size": 5, "till": 7}))
    );
    assert_eq!(interpreted(&world).0, Value::Null);
}

#[test]
fn a_reading_without_an_answer_does_not_replace_one_of_the_same_version() {
    let mut world = with_shop(&[interpreter(
        "hooks",
        &["Shop"],
        &["InterpretDependency", "InterpretHealth"],
    )]);
    let wrote = world.writes.len();
    world.hooked.unresponsive = true;
    world.hear_again();
    assert!(world.settle_for(60_000));
    assert_eq!(interpreted(&world).0, Value::Null);
    assert_eq!(world.writes[wrote..], [] as [String; 0]);
}

#[test]
fn a_certificate_that_is_renewed_has_no_copy_rendered_again_and_another_address_has() {
    let mut hooks = interpreter("hooks", &["Shop"], &["Retain"]);
    let mut world = with_shop(&[hooks.clone()]);
    let source = |world: &World| {
        let item = &binding(world, "corner-shop")["status"]["aggregatedStatus"][0];
        item["copy"]["source"].clone()
    };
    let before = source(&world);
    hooks["webhooks"][0]["clientConfig"]["caBundle"] = json!("bmV3");
    let wrote = world.writes.len();
    world.replace(hooks.clone());
    assert!(world.settle());
    assert_eq!(source(&world), before);
    assert_eq!(world.writes[wrote..], [] as [String; 0]);
    hooks["webhooks"][0]["clientConfig"]["url"] = json!("https://other.example.com/");
    world.replace(hooks);
    assert!(world.settle());
    assert_ne!(source(&world), before);
}

#[test]
fn a_hook_for_one_of_kubernetes_own_kinds_concerns_no_other() {
    let mut world = with_shop(&[]);
    world.apply(deployment("myapp", &["goods"]));
    world.apply(policy_of("myapp", "apps/v1", "Deployment", "myapp", &["member2"]));
    assert!(world.settle());
    let before = world.process.engine.demand_changes();
    let mut pods = explorer("hooks", &["pods", "networkpolicies"], ALL, "Fail");
    pods["webhooks"][0]["rules"][0]["apiGroups"] = json!(["", "apps"]);
    world.apply(pods);
    assert!(world.settle());
    assert_eq!(
        world.process.engine.demand_changes(),
        before,
        "no watch begins anew"
    );
    world.hooked.says = Some(|_, _| Ok(Answer::Healthy(true)));
    let mut deployments = explorer("more", &["deployments"], &["ExploreHealthy"], "Fail");
    deployments["webhooks"][0]["rules"][0]["apiGroups"] = json!(["apps"]);
    world.apply(deployments);
    assert!(world.settle());
    assert_ne!(world.process.engine.demand_changes(), before);
}

#[test]
fn what_stays_on_the_hub_is_a_hooks_to_say_where_a_rule_names_that() {
    for (hooks, is_asked) in [
        (interpreter("hooks", &["Shop"], &["Prune"]), true),
        (explorer("hooks", &["shops"], &["ExplorePacking"], "Fail"), true),
        (explorer("hooks", &["shops"], &["ExplorePacking"], "Ignore"), true),
        (interpreter("hooks", &["Shop"], ALL), false),
        (explorer("hooks", &["shops"], ALL, "Fail"), false),
    ] {
        let mut world = with_shop(std::slice::from_ref(&hooks));
        let pruned = json!({"size": 3});
        let copied = world.on("member1", "Shop", "corner").expect("a copy")["spec"].clone();
        assert_eq!(copied == pruned, is_asked, "{hooks}: {copied}");
        quiet(&mut world);
        world.hooked.unresponsive = true;
        world.apply(shop(&["goods"], 4));
        assert!(world.settle());
        let copied = world.on("member1", "Shop", "corner").expect("a copy")["spec"].clone();
        assert_eq!(
            copied == pruned,
            is_asked,
            "nothing is written without it: {hooks}"
        );
    }
}
