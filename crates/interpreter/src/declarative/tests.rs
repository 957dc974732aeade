//! The meaning of rules that the shipped files do not cover; and that no object and no rule causes a panic.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{NativeKind as _, shipped};

fn compiled(rules: &Value) -> Result<Declared, RuleError> {
    Declared::compile(&serde_json::from_value(rules.clone()).unwrap())
}

fn names(rules: &Value, namespace: &str, object: &Value) -> Vec<String> {
    let found = compiled(rules).unwrap().references(namespace, object);
    let shown = |each: &DependencyReference| {
        let (gvk, id) = (&each.id.gvk, &each.id);
        let mark = if each.optional { "?" } else { "" };
        format!(
            "{} {} {}/{}{mark}",
            gvk.api_version(),
            gvk.kind,
            id.namespace,
            id.name
        )
    };
    found.iter().map(shown).collect()
}

#[test]
fn a_rule_that_cannot_be_kept_is_named_with_its_place_and_a_remedy() {
    for (rules, field, problem) in [
        (
            json!({"dependencies": [{"paths": ["a"], "kind": "Secret"}, {"paths": ["a", "b..c"], "kind": "Secret"}]}),
            "dependencies[1].paths[1]",
            "character 2: recursive descent",
        ),
        (
            json!({"dependencies": [{"paths": ["a"]}]}),
            "dependencies[0].kind",
            "the kind of the named object is missing",
        ),
        (
            json!({"dependencies": [{"paths": ["a"], "kind": "Farm"}]}),
            "dependencies[0].apiVersion",
            "Farm is not a kind of v1",
        ),
        (
            json!({"dependencies": [{"paths": ["a"], "kind": "Farm", "apiVersion": "a/b/c"}]}),
            "dependencies[0].apiVersion",
            "not a group and version",
        ),
        (
            json!({"dependencies": [{"paths": [], "kind": "Secret"}]}),
            "dependencies[0].paths",
            "no path",
        ),
        (
            json!({"dependencies": [{"paths": ["a"], "kind": "Secret", "when": [{"path": "b"}]}]}),
            "dependencies[0].when[0]",
            "the condition is missing",
        ),
        (
            json!({"podTemplates": [{"paths": ["a"], "nameFrom": "["}]}),
            "podTemplates[0].nameFrom",
            "character 2",
        ),
        (
            json!({"containers": ["a", ""]}),
            "containers[1]",
            "the path is empty",
        ),
        (
            json!({"replicas": {"path": "spec.list[*].replicas"}}),
            "replicas.path",
            "to one field",
        ),
        (
            json!({"replicas": {"path": "metadata.name"}}),
            "replicas.path",
            "without a rule",
        ),
        (
            json!({"retention": ["metadata.labels"]}),
            "retention[0]",
            "without a rule",
        ),
        (
            json!({"retention": ["spec.a", "spec.a.b"]}),
            "retention[1]",
            "another path",
        ),
        (
            json!({"statusReflection": {"paths": ["a[0]"]}}),
            "statusReflection.paths[0]",
            "to one field",
        ),
        (
            json!({"statusAggregation": {"fields": [{"path": "a", "merge": "Sum"}, {"path": "a", "merge": "Max"}]}}),
            "statusAggregation.fields[1]",
            "another path",
        ),
        (
            json!({"health": {"phases": [{"path": "status.a"}]}}),
            "health.phases[0]",
            "what is healthy",
        ),
        (
            json!({"health": {"comparisons": [{"number": {}, "atLeast": {"default": 1}}]}}),
            "health.comparisons[0].number",
            "neither path nor default",
        ),
    ] {
        let error = compiled(&rules).unwrap_err();
        assert_eq!(error.field, field, "{error}");
        assert!(error.problem.contains(problem), "{error}");
        assert!(!error.remedy.is_empty());
    }
}

#[test]
fn a_named_object_is_of_the_kind_that_is_reported_beside_it() {
    let rules = json!({"dependencies": [{
        "paths": ["spec.refs[*].name"],
        "kind": "Secret", "kindFrom": "kind", "apiVersionFrom": "apiVersion",
        "apiVersions": {"Secret": "v1", "Farm": "example.com/v1"},
        "optionalFrom": "optional", "prefix": "a-", "suffix": "-z",
    }]});
    let object = json!({"spec": {"refs": [
        {"name": "default-kind"},
        {"name": "of-the-table", "kind": "Farm", "optional": true},
        {"name": "as-reported", "kind": "Farm", "apiVersion": "example.com/v2"},
        {"name": "unknown", "kind": "Stranger"},
        {"name": "", "kind": "Secret"},
        {"name": "{{parameter}}"},
        {"name": 7},
        "text",
    ]}});
    assert_eq!(
        names(&rules, "shop", &object),
        [
            "v1 Secret shop/a-default-kind-z",
            "example.com/v2 Farm shop/a-as-reported-z",
            "example.com/v1 Farm shop/a-of-the-table-z?",
        ]
    );
}

#[test]
fn an_object_that_is_named_in_two_versions_is_one() {
    let rules =
        json!({"dependencies": [{"paths": ["spec.refs[*].name"], "kind": "Farm", "apiVersionFrom": "v"}]});
    let object = json!({"spec": {"refs": [
        {"name": "a", "v": "example.com/v2"}, {"name": "a", "v": "example.com/v1"},
    ]}});
    assert_eq!(names(&rules, "shop", &object), ["example.com/v1 Farm shop/a"]);
}

#[test]
fn what_is_named_is_in_the_namespace_that_is_reported_or_in_that_of_the_object() {
    let rules = json!({
        "dependencies": [{"paths": ["spec.refs[*].name"], "kind": "Secret", "namespaceFrom": "namespace"}],
        "podTemplates": [{"paths": ["spec.pods"], "namespaceFrom": "$.spec.target"}],
        "containers": ["spec.container"],
    });
    let container = json!({"envFrom": [{"configMapRef": {"name": "env"}}]});
    let object = json!({"spec": {
        "refs": [{"name": "own"}, {"name": "same", "namespace": "shop"}, {"name": "other", "namespace": "bank"},
                 {"name": "empty", "namespace": ""}, {"name": "number", "namespace": 7},
                 {"name": "later", "namespace": "{{request.namespace}}"}],
        "pods": {"serviceAccountName": "robot"}, "target": "bank", "container": container,
    }});
    assert_eq!(
        names(&rules, "shop", &object),
        [
            "v1 ConfigMap shop/env",
            "v1 Secret bank/other",
            "v1 Secret shop/empty",
            "v1 Secret shop/number",
            "v1 Secret shop/own",
            "v1 Secret shop/same",
            "v1 ServiceAccount bank/robot",
        ]
    );
    assert_eq!(
        names(&rules, "", &object),
        [
            "v1 Secret bank/other",
            "v1 Secret shop/same",
            "v1 ServiceAccount bank/robot",
        ],
        "what has no namespace lends none"
    );
}

#[test]
fn a_rule_counts_only_where_all_of_its_conditions_hold() {
    let with =
        |when: Value| json!({"dependencies": [{"paths": ["spec.name"], "kind": "Secret", "when": [when]}]});
    let object = json!({"spec": {"name": "a", "mode": "on", "flag": true, "number": 3}});
    for (when, holds) in [
        (json!({"path": "mode", "in": ["on", "auto"]}), true),
        (json!({"path": "mode", "notIn": ["on"]}), false),
        (json!({"path": "flag", "in": ["true"]}), true),
        (json!({"path": "number", "in": ["3"]}), true),
        (json!({"path": "absent", "in": ["x"]}), false),
        (json!({"path": "absent", "in": ["x"], "default": "x"}), true),
        (json!({"path": "absent", "notIn": ["x"]}), true),
        (json!({"path": "absent", "exists": false}), true),
        (json!({"path": "mode", "exists": false}), false),
        (
            json!({"path": "$.spec.mode", "exists": true, "notIn": ["off"]}),
            true,
        ),
    ] {
        assert_eq!(
            !names(&with(when.clone()), "shop", &object).is_empty(),
            holds,
            "{when}"
        );
    }
}

#[test]
fn a_pod_template_and_a_pod_spec_are_read_alike_and_own_claims_left_out() {
    let rules = json!({"podTemplates": [{"paths": ["spec.pods[*].it"], "ownClaims": "claims[*]"}]});
    let spec = |claim: &str| json!({"volumes": [{"persistentVolumeClaim": {"claimName": claim}}]});
    let object = json!({"spec": {"pods": [
        {"it": {"metadata": {}, "spec": spec("a")}, "claims": ["own"]},
        {"it": spec("own"), "claims": ["own"]},
        {"it": spec("own-elsewhere"), "claims": ["own"]},
    ]}});
    assert_eq!(
        names(&rules, "shop", &object),
        [
            "v1 PersistentVolumeClaim shop/a",
            "v1 PersistentVolumeClaim shop/own-elsewhere"
        ]
    );
}

#[test]
fn every_way_to_merge_does_what_it_says_and_nothing_reported_changes_nothing() {
    let ways = ["Sum", "Max", "Min", "Latest", "First", "Same", "Concat"];
    let fields: Vec<_> = ways
        .iter()
        .map(|way| json!({"path": way, "merge": way}))
        .collect();
    let rules = compiled(&json!({"statusAggregation": {"fields": fields}})).unwrap();
    let status = |n: i64, time: &str, word: &str, list: Value| json!({"Sum": n, "Max": n, "Min": n, "Latest": time, "First": word, "Same": word, "Concat": list});
    let one = status(2, "2026-01-01T00:00:00Z", "a", json!(["x", "y"]));
    let two = status(5, "2025-01-01T00:00:00Z", "b", json!(["y", "z"]));
    let template = json!({"status": {"Latest": "2024-01-01T00:00:00Z", "Same": "old", "other": 1}});
    let merged = rules.aggregate(&template, &[("m1", Some(&one)), ("m2", Some(&two)), ("m3", None)]);
    let wanted = json!({
        "Sum": 7, "Max": 5, "Min": 2, "Latest": "2026-01-01T00:00:00Z", "First": "a", "Concat": ["x", "y", "z"],
        "other": 1,
    });
    assert_eq!(merged, Some(wanted.clone()));
    let next = json!({"status": wanted});
    let gone = rules.aggregate(&next, &[("m1", None)]).unwrap();
    assert_eq!(gone["Sum"], 0, "what is counted is gone");
    assert_eq!(gone["Latest"], "2026-01-01T00:00:00Z");
    assert_eq!(rules.aggregate(&json!({"status": {}}), &[("m1", None)]), None);
}

#[test]
fn a_generation_is_observed_once_every_cluster_has_it_and_by_nobody_where_there_is_none() {
    let rules = compiled(&json!({"statusAggregation": {"observedGeneration": true}})).unwrap();
    let template = json!({"metadata": {"generation": 3}, "status": {"observedGeneration": 2}});
    let status = |source: i64, seen: i64| json!({"observedGeneration": seen, "generation": 7, "resourceTemplateGeneration": source});
    let (current, older, unseen) = (status(3, 7), status(2, 7), status(3, 6));
    let merged = |items: &[Option<&Value>]| {
        let items: Vec<_> = items.iter().map(|item| ("m", *item)).collect();
        rules.aggregate(&template, &items)
    };
    assert_eq!(merged(&[Some(&current)]), Some(json!({"observedGeneration": 3})));
    assert_eq!(merged(&[Some(&current), Some(&older)]), None);
    assert_eq!(merged(&[Some(&current), Some(&unseen)]), None);
    assert_eq!(merged(&[Some(&current), None]), None);
    assert_eq!(merged(&[]), None);
}

#[test]
fn a_condition_is_as_bad_as_in_the_worst_cluster() {
    let rules = json!({"statusAggregation": {"fields": [
        {"path": "conditions", "merge": "Conditions", "badWhenTrue": ["Stalled"]},
    ]}});
    let rules = compiled(&rules).unwrap();
    let status = |type_: &str, status: &str| json!({"conditions": [{"type": type_, "status": status, "message": "m"}]});
    let merged = |type_: &str, all: [&str; 2]| {
        let (one, two) = (status(type_, all[0]), status(type_, all[1]));
        let merged = rules
            .aggregate(&json!({}), &[("a", Some(&one)), ("b", Some(&two))])
            .unwrap();
        merged["conditions"][0]["status"].as_str().unwrap().to_owned()
    };
    for (type_, all, wanted) in [
        ("Ready", ["True", "True"], "True"),
        ("Ready", ["True", "Unknown"], "Unknown"),
        ("Ready", ["Unknown", "False"], "False"),
        ("Stalled", ["False", "True"], "True"),
        ("Stalled", ["False", "Unknown"], "Unknown"),
        ("Stalled", ["False", "False"], "False"),
    ] {
        assert_eq!(merged(type_, all), wanted, "{type_} {all:?}");
    }
    let long = json!({"conditions": [{"type": "Ready", "status": "True", "message": "ü".repeat(3000)}]});
    let merged = rules
        .aggregate(&json!({}), &[("a", Some(&long)), ("b", Some(&long))])
        .unwrap();
    assert!(
        merged["conditions"][0]["message"]
            .as_str()
            .is_some_and(|text| text.len() < 2100)
    );
}

#[test]
fn conditions_of_more_types_than_any_controller_has_are_not_all_merged() {
    let rules = json!({"statusAggregation": {"fields": [{"path": "conditions", "merge": "Conditions"}]}});
    let conditions: Vec<Value> = (0..5000)
        .map(|at| json!({"type": format!("T{at}"), "status": "True"}))
        .collect();
    let status = json!({ "conditions": conditions });
    let merged = compiled(&rules)
        .unwrap()
        .aggregate(&json!({}), &[("a", Some(&status))])
        .unwrap();
    let types: Vec<_> = merged["conditions"].as_array().unwrap().iter().collect();
    assert_eq!(types.len(), 64);
    assert_eq!(types[63]["type"], "T63");
}

#[test]
fn health_is_unknown_without_a_status_and_unhealthy_if_any_check_says_so() {
    let rules = compiled(&json!({"health": {
        "conditions": [{"type": "Ready"}, {"type": "Failed", "status": "False", "mayBeAbsent": true}],
        "phases": [{"path": "status.phase", "healthy": ["Up"], "unhealthy": ["Down"], "default": "Up"}],
        "comparisons": [{"number": {"path": "status.ready", "default": 0}, "atLeast": {"path": "spec.count", "default": 1}}],
    }}))
    .unwrap();
    let ready = |status: &str| json!({"type": "Ready", "status": status});
    for (live, health) in [
        (json!({"spec": {}}), Health::Unknown),
        (json!({"status": {"ready": 1}}), Health::Unknown),
        (
            json!({"status": {"ready": 1, "conditions": [ready("True")]}}),
            Health::Healthy,
        ),
        (
            json!({"status": {"ready": 0, "conditions": [ready("True")]}}),
            Health::Unhealthy,
        ),
        (
            json!({"spec": {"count": 2}, "status": {"ready": 1, "conditions": [ready("True")]}}),
            Health::Unhealthy,
        ),
        (
            json!({"status": {"ready": 1, "conditions": [ready("Unknown")]}}),
            Health::Unknown,
        ),
        (
            json!({"status": {"ready": 1, "phase": "Down", "conditions": [ready("Unknown")]}}),
            Health::Unhealthy,
        ),
        (
            json!({"status": {"ready": 1, "phase": "Between", "conditions": [ready("True")]}}),
            Health::Unknown,
        ),
        (
            json!({"status": {"ready": 1, "conditions": [ready("True"), {"type": "Failed", "status": "True"}]}}),
            Health::Unhealthy,
        ),
    ] {
        assert_eq!(rules.health(&live), health, "{live}");
    }
}

/// Any JSON, with the names in rules of shipped kinds.
fn any_json() -> impl Strategy<Value = Value> {
    let names = [
        "spec",
        "name",
        "kind",
        "template",
        "conditions",
        "type",
        "status",
        "containers",
        "replicas",
        "key",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        prop::sample::select(vec!["", "a", "Secret", "True", "ü{"]).prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map(prop::sample::select(names.to_vec()), inner, 0..4)
                .prop_map(|map| json!(map)),
        ]
    })
}

/// Puts `part` in place of one of the values in `object`, the `at`th in order.
fn replace(object: &mut Value, at: &mut usize, part: &Value) {
    if *at == 0 {
        *object = part.clone();
    }
    *at = at.wrapping_sub(1);
    match object {
        Value::Array(list) => list.iter_mut().for_each(|each| replace(each, at, part)),
        Value::Object(map) => map.values_mut().for_each(|each| replace(each, at, part)),
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Golden objects, each with another value in one place: so that generated JSON is where rules read.
    #[test]
    fn no_object_makes_a_rule_panic_and_the_operations_agree(at in 1_usize..400, part in any_json(), which in any::<prop::sample::Index>()) {
        let kind = *which.get(shipped::all());
        let gvk = kind.gvk();
        for case in crate::golden::shipped_cases(gvk.group, gvk.kind) {
            let mut object = case.object;
            let mut live = case.live.unwrap_or_else(|| part.clone());
            replace(&mut object, &mut at.clone(), &part);
            replace(&mut live, &mut (at % 40), &part);
            let rules = kind.declared().unwrap();
            for namespace in ["", "shop"] {
                let found = rules.references(namespace, &object);
                prop_assert!(found.windows(2).all(|pair| pair[0].id < pair[1].id));
                prop_assert!(found.iter().all(|each| !each.id.name.is_empty() && !each.id.namespace.is_empty()));
            }
            let _ = (rules.pods(&object), rules.health(&live), rules.replicas(&object));
            for place in rules.containers(&object, &["containers", "initContainers"]) {
                prop_assert!(object.pointer(&place).is_some(), "{place}");
            }
            let mut desired = object.clone();
            rules.retain(&mut desired, &live);
            let retained = desired.clone();
            rules.retain(&mut desired, &live);
            prop_assert_eq!(&retained, &desired, "retaining twice retains no more");
            prop_assert!(rules.needs_live(&object) || retained == object);
            let status = rules.reflect(&live);
            let items = [("a", status.as_ref()), ("b", Some(&part)), ("c", None)];
            for items in [&items[..], &items[..1], &items[..0]] {
                if let Some(status) = rules.aggregate(&object, items) && object.is_object() {
                    let mut next = object.clone();
                    next["status"] = status;
                    prop_assert_eq!(rules.aggregate(&next, items), None, "aggregating twice changes no more");
                }
            }
        }
    }

    /// Rules of any texts are compiled or refused, and compiled ones can be evaluated.
    #[test]
    fn no_rule_panics(paths in prop::collection::vec("[a-c.$*?@='\\[\\]0-9]{0,12}", 1..4), object in any_json()) {
        let rules = json!({
            "podTemplates": [{"paths": paths, "replicas": {"path": paths[0]}}],
            "dependencies": [{"paths": paths, "kind": "Secret", "namespaceFrom": paths[0]}],
            "retention": paths,
            "statusAggregation": {"fields": [{"path": paths[0], "merge": "Concat"}]},
        });
        if let Ok(rules) = compiled(&rules) {
            let _ = (rules.references("shop", &object), rules.pods(&object));
            let mut desired = object.clone();
            rules.retain(&mut desired, &object);
        }
    }
}
