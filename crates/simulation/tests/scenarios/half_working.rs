//! Half-working interpreters: one operation of a hook or script fails, and only what needs its answer waits. A hook is
//! asked only for answers that somebody uses.

use entourage_core::interpreter::question::{Answer, Question};
use serde_json::{Value, json};

use crate::{
    binding, condition, config_map,
    customizations::{customization, quiet},
    policy_of,
    world::World,
};

const SHOP: (&str, &str) = ("example.com/v1", "Shop");
const ALL: &[&str] = &["*", "InterpretComponent"];
const LAYER: &str = "ResourceInterpreterWebhookConfiguration \"hooks/shops.example.com\"";

pub(crate) fn hooks(kinds: &[&str], operations: &[&str]) -> Value {
    json!({
        "apiVersion": "config.karmada.io/v1alpha1", "kind": "ResourceInterpreterWebhookConfiguration",
        "metadata": {"name": "hooks"},
        "webhooks": [{
            "name": "shops.example.com", "clientConfig": {"url": "https://hooks.example.com/"},
            "interpreterContextVersions": ["v1alpha1"],
            "rules": [{"operations": operations, "apiGroups": ["*"], "apiVersions": ["*"], "kinds": kinds}],
        }],
    })
}

pub(crate) fn shop(uses: &[&str]) -> Value {
    json!({
        "apiVersion": "example.com/v1", "kind": "Shop", "metadata": {"name": "corner"},
        "spec": {"uses": uses, "size": 3},
    })
}

fn policy(follows: bool, divides: bool) -> Value {
    let mut policy = policy_of("shops", SHOP.0, SHOP.1, "corner", &["member1"]);
    policy["spec"]["propagateDeps"] = json!(follows);
    if divides {
        policy["spec"]["placement"]["replicaScheduling"] =
            json!({"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted"});
    }
    policy
}

/// Answers everything about shops.
fn says(_: &str, question: Question<'_>) -> Result<Answer, &'static str> {
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
        Question::Components(_) => Answer::Components(Vec::new()),
        Question::Prune(object) | Question::Revise(object, _) => Answer::Object(object.clone()),
        Question::Retain { desired, .. } => Answer::Object(desired.clone()),
        Question::Reflect(live) => Answer::Status(Some(json!({"mood": live["status"]["mood"]}))),
        Question::Health(live) => Answer::Healthy(live["status"]["mood"] == "fine"),
        Question::Aggregate { template, items } => {
            let mut object = template.clone();
            object["status"] = json!({ "shops": items.len() });
            Answer::Object(object)
        }
    })
}

fn fails(operation: &str, question: Question<'_>) -> Result<Answer, &'static str> {
    if question.operation().word() == operation {
        return Err("connection refused");
    }
    says("", question)
}

/// A shop for member1, taught by this.
fn with_shop(interpretation: Value, policy: Value) -> World {
    let mut world = World::new(&["member1", "member2"]);
    world.hooked.says = Some(says);
    for name in ["goods", "prices"] {
        world.apply(config_map(name, "one"));
    }
    world.apply(interpretation);
    world.apply(shop(&["goods"]));
    world.apply(policy);
    assert!(world.settle());
    world
}

fn with_failing(says: fn(&str, Question<'_>) -> Result<Answer, &'static str>, policy: Value) -> World {
    let mut world = with_shop(
        hooks(&["Shop"], ALL),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other"}}),
    );
    world.hooked.says = Some(says);
    world.apply(policy);
    assert!(world.settle());
    world
}

fn is_placed(world: &World) -> bool {
    world.holders("Shop", "corner") == ["member1"]
}

fn interpreted(world: &World) -> Value {
    condition(world, "corner-shop", "Interpreted")["message"].clone()
}

fn reported<'a>(world: &'a World, part: &str) -> Vec<&'a String> {
    world.events.iter().filter(|event| event.contains(part)).collect()
}

/// The number of times this was asked about an object.
fn asked(world: &World, line: &str) -> usize {
    let asked = world.hooked.asked.borrow();
    asked.iter().filter(|each| each.ends_with(line)).count()
}

#[test]
fn who_cannot_tell_dependencies_holds_up_nothing_where_none_are_propagated() {
    let script = |at: &str| json!({"dependencyInterpretation": {"luaScript": json!({"at": at}).to_string()}});
    let mut broken = customization("shops", SHOP, &script("/spec/uses"));
    broken["spec"]["customizations"]["dependencyInterpretation"]["luaScript"] = json!("no script");
    for (interpretation, unresponsive) in [
        (hooks(&["Shop"], &["InterpretDependency"]), true),
        (hooks(&["Shop"], ALL), false),
        (broken, false),
    ] {
        let mut world = with_shop(interpretation.clone(), policy(true, false));
        world.delete("PropagationPolicy", "shops");
        world.delete("Shop", "corner");
        assert!(world.settle());
        world.hooked.asked.borrow_mut().clear();
        world.events.clear();
        world.hooked.says = Some(|_, question| fails("InterpretDependency", question));
        world.hooked.unresponsive = unresponsive;
        world.apply(shop(&["goods"]));
        world.apply(policy(false, false));
        assert!(world.settle());
        assert!(is_placed(&world), "{interpretation}");
        assert_eq!(asked(&world, "References corner"), 0, "{interpretation}");
        assert_eq!(interpreted(&world), Value::Null, "{interpretation}");
        assert_eq!(
            reported(&world, "InterpretDependency"),
            [] as [&String; 0],
            "{interpretation}"
        );
        quiet(&mut world);
        assert_eq!(asked(&world, "References corner"), 0, "{interpretation}");
    }
}

#[test]
fn where_dependencies_are_propagated_the_first_placement_waits_and_the_words_say_what_for() {
    let mut world = with_failing(
        |_, question| fails("InterpretDependency", question),
        policy(true, false),
    );
    assert!(!is_placed(&world));
    let failed = format!("refused: {LAYER}: InterpretDependency failed: connection refused; ");
    let reported = reported(&world, &failed);
    assert!(!reported.is_empty(), "{:#?}", world.events);
    for event in reported {
        assert!(
            event.ends_with("is not scheduled, because its dependencies are to be propagated"),
            "{event}"
        );
    }
    world.hooked.says = Some(says);
    world.hear_again();
    assert!(world.settle());
    assert!(is_placed(&world));
    assert_eq!(world.holders("ConfigMap", "goods"), ["member1"]);
    quiet(&mut world);
}

#[test]
fn dependencies_that_are_propagated_from_now_on_are_asked_for_although_the_object_is_as_it_was() {
    for answers in [true, false] {
        let mut world = with_shop(hooks(&["Shop"], ALL), policy(false, false));
        assert!(is_placed(&world));
        assert!(world.holders("ConfigMap", "goods").is_empty());
        assert_eq!(asked(&world, "References corner"), 0);
        if !answers {
            world.hooked.says = Some(|_, question| fails("InterpretDependency", question));
        }
        world.apply(policy(true, false));
        assert!(world.settle());
        assert!(asked(&world, "References corner") > 0);
        if !answers {
            assert!(world.holders("ConfigMap", "goods").is_empty());
            assert_eq!(
                interpreted(&world),
                format!(
                    "{LAYER}: InterpretDependency failed: connection refused; its dependencies stay as last known"
                )
            );
            world.hooked.says = Some(says);
            world.hear_again();
            assert!(world.settle_for(60_000));
        }
        assert_eq!(world.holders("ConfigMap", "goods"), ["member1"]);
        assert_eq!(interpreted(&world), Value::Null);
        quiet(&mut world);

        // Back again: they end, the shop stays, and nothing more is asked.
        world.apply(policy(false, false));
        assert!(world.settle());
        assert!(world.holders("ConfigMap", "goods").is_empty());
        let before = asked(&world, "References corner");
        world.apply(shop(&["prices"]));
        assert!(world.settle());
        assert_eq!(asked(&world, "References corner"), before);
        world.apply(policy(true, false));
        assert!(world.settle());
        assert_eq!(world.holders("ConfigMap", "prices"), ["member1"]);
        assert!(
            world.holders("ConfigMap", "goods").is_empty(),
            "nobody uses it any more"
        );
        quiet(&mut world);
    }
}

#[test]
fn replicas_that_are_not_reported_hold_up_only_what_divides_them() {
    for divides in [false, true] {
        let mut world = with_failing(
            |_, question| fails("InterpretReplica", question),
            policy(false, divides),
        );
        assert_eq!(is_placed(&world), !divides);
        if divides {
            let reported = reported(&world, "InterpretReplica failed: connection refused");
            assert!(
                reported
                    .iter()
                    .any(|event| event.contains("its replicas are to be divided")),
                "{reported:#?}"
            );
        } else {
            let failed = format!(
                "{LAYER}: InterpretReplica failed: connection refused; its replicas stay as last known"
            );
            assert_eq!(interpreted(&world), failed);
        }
        world.hooked.says = Some(says);
        world.hear_again();
        assert!(world.settle_for(60_000));
        assert!(is_placed(&world));
        assert_eq!(binding(&world, "corner-shop")["spec"]["replicas"], 3);
        assert_eq!(interpreted(&world), Value::Null);
        quiet(&mut world);
    }
}

#[test]
fn components_are_asked_for_only_where_there_are_no_replicas_and_hold_up_nothing() {
    let world = with_shop(hooks(&["Shop"], ALL), policy(false, false));
    assert!(asked(&world, "Replicas corner") > 0);
    assert_eq!(asked(&world, "Components corner"), 0);

    let mut world = with_shop(hooks(&["Shop"], &["InterpretComponent"]), policy(false, false));
    assert!(asked(&world, "Components corner") > 0);
    world.hooked.says = Some(|_, question| fails("InterpretComponent", question));
    let mut larger = shop(&["goods"]);
    larger["spec"]["size"] = json!(4);
    world.apply(larger);
    assert!(world.settle());
    assert_eq!(
        world.on("member1", "Shop", "corner").expect("a copy")["spec"]["size"],
        4
    );
    let failed =
        format!("{LAYER}: InterpretComponent failed: connection refused; its components stay as last known");
    assert_eq!(interpreted(&world), failed);
}

#[test]
fn a_status_that_cannot_be_read_leaves_health_alone_and_the_other_way_round() {
    let feels = |world: &mut World, mood: &'static str| {
        world.meddle("member1", "Shop", "corner", move |mut copy| {
            copy["status"] = json!({"mood": mood});
            Some(copy)
        });
        assert!(world.settle());
    };
    let reported = |world: &World| {
        let item = &binding(world, "corner-shop")["status"]["aggregatedStatus"][0];
        (item["status"]["mood"].clone(), item["health"].clone())
    };
    let mut world = with_shop(hooks(&["Shop"], ALL), policy(false, false));
    feels(&mut world, "fine");
    assert_eq!(reported(&world), (json!("fine"), json!("Healthy")));

    world.hooked.says = Some(|_, question| fails("InterpretStatus", question));
    feels(&mut world, "bad");
    assert_eq!(reported(&world), (json!("fine"), json!("Unhealthy")));
    let failed = "InterpretStatus failed: connection refused; the reported statuses stay as last known";
    assert_eq!(interpreted(&world), format!("{LAYER}: {failed}"));
    quiet(&mut world);
    assert_eq!(reported(&world), (json!("fine"), json!("Unhealthy")));

    world.hooked.says = Some(|_, question| fails("InterpretHealth", question));
    feels(&mut world, "well");
    assert_eq!(reported(&world), (json!("well"), json!("Unhealthy")));
    quiet(&mut world);
    assert_eq!(reported(&world), (json!("well"), json!("Unhealthy")));

    world.hooked.says = Some(|_, question| match question {
        Question::Reflect(_) | Question::Health(_) => Err("connection refused"),
        other => says("", other),
    });
    feels(&mut world, "fine");
    assert_eq!(reported(&world), (json!("well"), json!("Unhealthy")));
    let failed = "InterpretStatus, InterpretHealth failed: connection refused; the reported statuses, the reported health \
                  states stay as last known";
    assert_eq!(interpreted(&world), format!("{LAYER}: {failed}"));
}

#[test]
fn a_template_status_that_cannot_be_made_holds_up_no_copy() {
    let mut world = with_failing(
        |_, question| fails("AggregateStatus", question),
        policy(true, false),
    );
    assert!(is_placed(&world));
    assert_eq!(world.holders("ConfigMap", "goods"), ["member1"]);
    let mut larger = shop(&["prices"]);
    larger["spec"]["size"] = json!(4);
    world.apply(larger);
    assert!(world.settle());
    assert_eq!(
        world.on("member1", "Shop", "corner").expect("a copy")["spec"]["size"],
        4
    );
    assert_eq!(world.holders("ConfigMap", "prices"), ["member1"]);
    let message = interpreted(&world);
    let message = message.as_str().expect("it is reported");
    assert!(
        message.starts_with(&format!("{LAYER}: AggregateStatus failed: ")),
        "{message}"
    );
}

#[test]
fn what_makes_a_copy_and_fails_holds_up_that_copy_alone() {
    for (operation, divides) in [("Prune", false), ("ReviseReplica", true), ("Retain", false)] {
        let mut world = with_shop(
            hooks(&["Shop"], &["InterpretReplica", "InterpretDependency", operation]),
            policy(true, divides),
        );
        assert!(is_placed(&world), "{operation}");
        world.hooked.says = Some(|_, question| match question {
            Question::Prune(_) | Question::Revise(..) | Question::Retain { .. } => Err("connection refused"),
            other => says("", other),
        });
        let mut larger = shop(&["prices"]);
        larger["spec"]["size"] = json!(4);
        world.apply(larger);
        assert!(world.settle());
        assert_eq!(
            world.on("member1", "Shop", "corner").expect("a copy")["spec"]["size"],
            3,
            "{operation}"
        );
        assert_eq!(world.holders("ConfigMap", "prices"), ["member1"], "{operation}");
        let message = interpreted(&world);
        let failed = format!("{LAYER}: {operation} failed: connection refused");
        assert!(
            message.as_str().is_some_and(|text| text.starts_with(&failed)),
            "{message}"
        );
    }
}

#[test]
fn a_dependency_is_asked_what_it_refers_to_only_while_somebody_takes_it_along() {
    let robot = json!({
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"},
        "imagePullSecrets": [{"name": "pull"}],
    });
    let mut world = World::new(&["member1"]);
    world.hooked.says = Some(|_, question| match question {
        Question::Dependencies(_) => {
            let pull = json!({"apiVersion": "v1", "kind": "Secret", "namespace": "default", "name": "pull"});
            Ok(Answer::Dependencies(vec![
                serde_json::from_value(pull).expect("a reference"),
            ]))
        }
        other => says("", other),
    });
    world.apply(hooks(&["ServiceAccount"], &["InterpretDependency"]));
    world.apply(
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "pull"}, "data": {"key": "djE="}}),
    );
    world.apply(robot);
    let mut app = crate::deployment("myapp", &[]);
    app["spec"]["template"]["spec"]["serviceAccountName"] = json!("robot");
    world.apply(app);
    let policy = |follows: bool| {
        let mut policy = policy_of("myapp", "apps/v1", "Deployment", "myapp", &["member1"]);
        policy["spec"]["propagateDeps"] = json!(follows);
        policy
    };
    world.apply(policy(false));
    assert!(world.settle());
    assert_eq!(asked(&world, "References robot"), 0);
    world.apply(policy(true));
    assert!(world.settle());
    assert!(asked(&world, "References robot") > 0);
    assert_eq!(world.holders("ServiceAccount", "robot"), ["member1"]);
    assert_eq!(world.holders("Secret", "pull"), ["member1"]);
    quiet(&mut world);
    world.apply(policy(false));
    assert!(world.settle());
    assert!(world.holders("Secret", "pull").is_empty());
    assert!(world.holders("ServiceAccount", "robot").is_empty());
}

#[test]
fn an_operation_that_fails_and_that_succeeds_again_is_reported_once_each() {
    type Says = fn(&str, Question<'_>) -> Result<Answer, &'static str>;
    let table: [(Says, [&str; 2], &str); 5] = [
        (
            |_, question| fails("InterpretDependency", question),
            ["GetDependenciesFailed", "GetDependenciesSucceed"],
            "Shop corner",
        ),
        (
            |_, question| fails("InterpretReplica", question),
            ["GetReplicasFailed", "GetReplicasSucceed"],
            "Shop corner",
        ),
        (
            |_, question| fails("InterpretStatus", question),
            ["ReflectStatusFailed", "ReflectStatusSucceed"],
            "ResourceBinding corner-shop",
        ),
        (
            |_, question| fails("InterpretHealth", question),
            ["InterpretHealthFailed", "InterpretHealthSucceed"],
            "ResourceBinding corner-shop",
        ),
        (
            |_, question| fails("AggregateStatus", question),
            ["AggregateStatusFailed", "AggregateStatusSucceed"],
            "Shop corner",
        ),
    ];
    for (failing, [failed, succeeded], about) in table {
        let mut world = with_failing(says, policy(true, true));
        for (size, (now, reason)) in [(4, (failing, failed)), (5, (says as Says, succeeded))] {
            world.events.clear();
            world.hooked.says = Some(now);
            let mut changed = shop(&["goods", "prices"]);
            changed["spec"]["size"] = json!(size);
            world.apply(changed);
            assert!(world.settle());
            let words = format!("{reason} {about}: ");
            let reported = world.events.iter().filter(|event| event.starts_with(&words));
            assert_eq!(reported.count(), 1, "{words}: {:#?}", world.events);
        }
    }
}
