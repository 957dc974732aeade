//! The layers of small kinds, and that a listed layer is the one that answers.

use serde_json::{Value, json};

use super::*;
use crate::{NATIVE, golden, question::Question};
use entourage_model::object::Gvk;

fn subject<'a>(group: &'a str, kind: &'a str) -> Subject<'a> {
    Subject {
        group,
        version: "v1",
        kind,
        resource: "things",
        is_namespaced: true,
    }
}

/// A customization with a script for health and dependencies.
fn customization(name: &str, api_version: &str, kind: &str, merge: &str) -> ResourceInterpreterCustomization {
    let script = json!({"luaScript": "…"});
    let object = json!({"apiVersion": "config.karmada.io/v1alpha1", "kind": "ResourceInterpreterCustomization",
        "metadata": {"name": name}, "spec": {"target": {"apiVersion": api_version, "kind": kind}, "merge": merge,
            "customizations": {"healthInterpretation": script, "dependencyInterpretation": script}}});
    serde_json::from_value(object).unwrap()
}

/// A hook for every kind and operation.
fn hook(policy: &str) -> Hook {
    let object = json!({"apiVersion": "config.karmada.io/v1alpha1", "kind": "ResourceExploringWebhookConfiguration",
        "metadata": {"name": "some"}, "webhooks": [{"name": "one.example.com", "failurePolicy": policy,
        "clientConfig": {"url": "https://hooks.example.com"}, "exploreReviewVersions": ["v1alpha1"], "timeoutSeconds": 3,
        "rules": [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]}]}]});
    Hook::explorers(&serde_json::from_value(object).unwrap()).remove(0)
}

/// `Answers a, Adds b`.
fn line(all: &[Layer]) -> String {
    let words = all.iter().map(|layer| format!("{:?} {}", layer.role, layer.name));
    words.collect::<Vec<_>>().join(", ")
}

#[test]
fn customizations_come_before_hooks_and_hooks_before_what_is_known() {
    let b = customization("b", "apps/v1", "Deployment", "Replace");
    let a = customization("a", "apps/v1", "Deployment", "Replace");
    let added = customization("c", "apps/v1", "Deployment", "Add");
    let other = customization("o", "apps/v1beta1", "Deployment", "Replace");
    let (fail, ignore) = (hook("Fail"), hook("Ignore"));
    let name = |name: &str| format!("ResourceInterpreterCustomization {name:?}");
    let (a_is, b_is, c_is) = (name("a"), name("b"), name("c"));
    let hooked = r#"ResourceExploringWebhookConfiguration "some/one.example.com""#;
    let health = Operation::Health;
    let refers = Operation::References;
    let table: [(Operation, &[&ResourceInterpreterCustomization], &[&Hook], String); 11] = [
        (health, &[], &[], "Answers native rules".into()),
        (health, &[&other], &[], "Answers native rules".into()),
        (health, &[&b, &a], &[&fail], format!("Answers {a_is}")),
        (health, &[], &[&fail], format!("Answers {hooked}")),
        (
            health,
            &[],
            &[&ignore],
            format!("Answers {hooked}, StandsIn native rules"),
        ),
        (
            refers,
            &[&b, &a],
            &[&fail],
            format!("Answers {a_is}, Adds {b_is}"),
        ),
        (refers, &[&added, &a], &[], format!("Answers {a_is}, Adds {c_is}")),
        (
            refers,
            &[&added],
            &[],
            format!("Answers {c_is}, Adds native rules"),
        ),
        (
            refers,
            &[&added],
            &[&fail],
            format!("Answers {c_is}, Adds {hooked}"),
        ),
        (
            refers,
            &[&added],
            &[&ignore],
            format!("Answers {c_is}, Adds {hooked}, StandsIn native rules"),
        ),
        (Operation::Prune, &[&a], &[&fail], "Answers native rules".into()),
    ];
    for (operation, customizations, hooks, wanted) in table {
        let customizations: Vec<_> = customizations.iter().map(|each| (*each).clone()).collect();
        let hooks: Vec<_> = hooks.iter().map(|each| (*each).clone()).collect();
        let all = layers_of(&subject("apps", "Deployment"), operation, &customizations, &hooks);
        assert_eq!(line(&all), wanted, "{operation:?} {}", customizations.len());
    }
    assert_eq!(layers_of(&subject("example.com", "Shop"), health, &[], &[]), []);
}

#[test]
fn a_shipped_kind_has_the_operations_of_its_rules() {
    let certificate = subject("cert-manager.io", "Certificate");
    for (operation, wanted) in [
        (Operation::References, "Answers shipped rules"),
        (Operation::Reflect, "Answers shipped rules"),
        (Operation::Health, "Answers shipped rules"),
        (Operation::Replicas, ""),
        (Operation::Retain, ""),
    ] {
        assert_eq!(
            line(&layers_of(&certificate, operation, &[], &[])),
            wanted,
            "{operation:?}"
        );
    }
}

/// For the native kinds' golden cases.
#[test]
fn who_is_named_is_who_answers() {
    let mut asked = 0;
    for native in NATIVE {
        let gvk = native.gvk();
        for golden::Case { object, .. } in golden::cases(gvk.kind) {
            let version = object["apiVersion"].as_str().unwrap();
            let of_object = Gvk::new(version, gvk.kind);
            let subject = Subject {
                group: &of_object.group,
                version: &of_object.version,
                kind: gvk.kind,
                resource: "",
                is_namespaced: true,
            };
            for question in questions(&object) {
                let named = layers_of(&subject, question.operation(), &[], &[]);
                let answered = ask::ask_known(&of_object, question).map(|(layer, _)| layer);
                let named = named.first().map(|layer| &*layer.name);
                // An object need not have all that its kind may have.
                let may_lack = answered.is_none() && question.operation() == Operation::Replicas;
                assert!(
                    named == answered || may_lack,
                    "{}: {:?}: {named:?} {answered:?}",
                    object["metadata"],
                    question.operation()
                );
                asked += 1;
            }
        }
    }
    assert!(asked > 100, "{asked}");
}

fn questions(object: &Value) -> [Question<'_>; 7] {
    [
        Question::Replicas(object),
        Question::Components(object),
        Question::Retain {
            desired: object,
            live: object,
        },
        Question::Reflect(object),
        Question::Aggregate {
            template: object,
            items: &[],
        },
        Question::Health(object),
        Question::Dependencies(object),
    ]
}
