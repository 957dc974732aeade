//! The algebra of targets against an independent set computation, and the index against all of them.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

const NAMESPACES: [&str; 5] = ["a", "b", "c", "d", "kube-system"];
const KEYS: [&str; 3] = ["team", "tier", "example.com/x"];
const VALUES: [&str; 3] = ["", "one", "two"];

fn read(value: &Value) -> DistributionTargets {
    serde_json::from_value(value.clone()).unwrap()
}

fn targets(value: &Value) -> Targets {
    Targets::compile(&read(value)).unwrap_or_else(|problems| panic!("{value}: {problems:?}"))
}

fn labels(pairs: &[(&str, &str)]) -> StrMap {
    let pairs = pairs.iter();
    pairs
        .map(|(key, value)| ((*key).into(), (*value).into()))
        .collect()
}

/// The target namespaces among five, none of which has labels or workloads.
fn meant(value: &Value) -> Vec<&'static str> {
    let targets = targets(value);
    let all = NAMESPACES.into_iter();
    all.filter(|name| targets.means(name, &StrMap::new(), false))
        .collect()
}

#[test]
fn each_way_to_mean_namespaces_means_them() {
    let all = NAMESPACES.to_vec();
    let cases = [
        (json!({}), vec![]),
        (json!({"allNamespaces": true}), all.clone()),
        (json!({"allNamespaces": false}), vec![]),
        (json!({"all": []}), all.clone()),
        (
            json!({"all": [{"exception": "a"}]}),
            vec!["b", "c", "d", "kube-system"],
        ),
        (
            json!({"includedNamespaces": {"list": [{"name": "a"}, {"name": "a"}]}}),
            vec!["a"],
        ),
        (json!({"namespaces": [{"name": "b"}]}), vec!["b"]),
        (
            json!({"includedNamespaces": {"list": [{"name": "a"}]}, "namespaces": [{"name": "b"}]}),
            vec!["a", "b"],
        ),
        // An exception applies only to `all`, an exclusion to all fields.
        (
            json!({"all": [{"exception": "a"}], "namespaces": [{"name": "a"}]}),
            all.clone(),
        ),
        (json!({"all": [{"exception": "a"}], "allNamespaces": true}), all),
        (
            json!({"allNamespaces": true, "excludedNamespaces": {"list": [{"name": "a"}, {"name": "b"}]}}),
            vec!["c", "d", "kube-system"],
        ),
        (json!({"excludedNamespaces": {"list": [{"name": "a"}]}}), vec![]),
        // Selectors without a requirement.
        (json!({"namespaceLabelSelector": {}}), vec![]),
        (
            json!({"namespaceSelector": {"matchLabels": {}, "matchExpressions": []}}),
            vec![],
        ),
        (json!({"workloadLabelSelector": {}}), vec![]),
        // The clusters are irrelevant here.
        (
            json!({"clusters": {"clusterNames": ["m"]}, "namespaces": [{"name": "b"}]}),
            vec!["b"],
        ),
    ];
    for (given, want) in cases {
        assert_eq!(meant(&given), want, "{given}");
    }
}

#[test]
fn a_namespace_is_selected_by_its_labels_and_by_workloads_in_it() {
    let one = labels(&[("team", "one")]);
    for given in [
        json!({"namespaceLabelSelector": {"matchLabels": {"team": "one"}}}),
        json!({"namespaceSelector": {"matchLabels": {"team": "one"}}}),
        json!({"namespaceLabelSelector": {"team": "one"}}),
    ] {
        let targets = targets(&given);
        assert!(targets.means("a", &one, false), "{given}");
        assert!(!targets.means("a", &labels(&[("team", "two")]), true), "{given}");
    }
    let by_workload = targets(&json!({"workloadLabelSelector": {"app": "nginx"},
        "excludedNamespaces": {"list": [{"name": "b"}]}}));
    assert!(by_workload.means("a", &one, true) && !by_workload.means("a", &one, false));
    assert!(!by_workload.means("b", &one, true));
    let selector = by_workload.workloads().unwrap();
    assert_eq!(
        serde_json::to_value(selector).unwrap(),
        json!({"matchLabels": {"app": "nginx"}})
    );
    assert_eq!(targets(&json!({"workloadLabelSelector": {}})).workloads(), None);
}

#[test]
fn names_are_reported_whether_they_exist_or_not() {
    let given = targets(
        &json!({"includedNamespaces": {"list": [{"name": "z"}, {"name": "a"}, {"name": "z"}]},
        "namespaces": [{"name": "m"}], "allNamespaces": true}),
    );
    let names: Vec<&str> = given.named().iter().map(|name| &**name).collect();
    assert_eq!(names, ["a", "m", "z"]);
    assert!(!given.mean_missing("a"), "all that exist are meant already");
    let only = targets(&json!({"includedNamespaces": {"list": [{"name": "a"}]}, "all": []}));
    assert!(only.mean_missing("a") && !only.mean_missing("b"));
}

#[test]
fn targets_that_can_mean_nothing_are_known() {
    for (given, nothing) in [
        (json!({}), true),
        (json!({"excludedNamespaces": {"list": [{"name": "a"}]}}), true),
        (
            json!({"namespaceSelector": {}, "workloadLabelSelector": {}}),
            true,
        ),
        (json!({"all": []}), false),
        (json!({"allNamespaces": true}), false),
        (json!({"namespaces": [{"name": "a"}]}), false),
        (json!({"workloadLabelSelector": {"a": "b"}}), false),
        (json!({"namespaceLabelSelector": {"a": "b"}}), false),
    ] {
        assert_eq!(targets(&given).mean_nothing(), nothing, "{given}");
    }
}

#[test]
fn everything_that_is_wrong_is_reported_at_once_with_field_cause_and_remedy() {
    let problems = Targets::compile(&read(&json!({
        "all": [{"exception": "fine"}, {"exception": ""}, {}],
        "includedNamespaces": {"list": [{"name": "Upper"}, {"name": "a"}, {"name": "b"}]},
        "namespaces": [{"name": "a.b"}, {"name": "c"}],
        "excludedNamespaces": {"list": [{"name": "-a"}, {"name": "a"}, {"name": "c"}, {"name": "x".repeat(64)}]},
        "namespaceLabelSelector": {"matchLabels": {"/bad/": "x"}},
        "namespaceSelector": {"a": 1},
        "workloadLabelSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]},
    })))
    .unwrap_err();
    let fields: Vec<&str> = problems
        .iter()
        .map(|problem| problem.field.strip_prefix("spec.targets.").unwrap())
        .collect();
    assert_eq!(
        fields,
        [
            "all[1].exception",
            "all[2].exception",
            "includedNamespaces.list[0].name",
            "namespaces[0].name",
            "excludedNamespaces.list[0].name",
            "excludedNamespaces.list[3].name",
            "excludedNamespaces.list",
            "excludedNamespaces.list",
            "namespaceSelector",
            "namespaceLabelSelector",
            "namespaceSelector",
            "workloadLabelSelector",
        ]
    );
    for problem in &problems {
        assert!(
            !problem.cause.is_empty() && !problem.remedy.is_empty(),
            "{problem}"
        );
    }
    let message = problems[6].to_string();
    assert_eq!(
        message,
        "spec.targets.excludedNamespaces.list: \"a\" is both named and excluded; remove it from one of the two"
    );
}

fn arb_names() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(0..NAMESPACES.len(), 0..3)
}

fn arb_selector() -> impl Strategy<Value = Value> {
    let label = (0..KEYS.len(), 0..VALUES.len());
    let expression = (
        0..KEYS.len(),
        0..4_usize,
        prop::collection::vec(0..VALUES.len(), 1..3),
    );
    (
        prop::collection::vec(label, 0..2),
        prop::collection::vec(expression, 0..3),
        any::<bool>(),
    )
        .prop_map(|(pairs, expressions, flat)| {
            let pairs: serde_json::Map<String, Value> = pairs
                .into_iter()
                .map(|(key, value)| (KEYS[key].to_owned(), VALUES[value].into()))
                .collect();
            let expressions: Vec<Value> = expressions
                .into_iter()
                .map(|(key, operator, values)| {
                    let operator = ["In", "NotIn", "Exists", "DoesNotExist"][operator];
                    let values: Vec<&str> = values.into_iter().map(|value| VALUES[value]).collect();
                    if operator.ends_with("In") {
                        json!({"key": KEYS[key], "operator": operator, "values": values})
                    } else {
                        json!({"key": KEYS[key], "operator": operator})
                    }
                })
                .collect();
            let mut selector = json!({});
            if flat {
                selector = Value::Object(pairs);
            } else if !pairs.is_empty() {
                selector["matchLabels"] = Value::Object(pairs);
            }
            if !expressions.is_empty() {
                selector["matchExpressions"] = expressions.into();
            }
            selector
        })
}

/// Targets that compile.
fn arb_targets() -> impl Strategy<Value = Value> {
    (
        prop::option::weighted(0.2, any::<bool>()),
        prop::option::weighted(0.2, arb_names()),
        prop::option::of(arb_names()),
        prop::option::of(arb_names()),
        prop::option::of(arb_names()),
        prop::option::of((arb_selector(), any::<bool>())),
        prop::option::weighted(0.3, arb_selector()),
    )
        .prop_map(
            |(all_namespaces, all, included, namespaces, excluded, labels, workloads)| {
                let excluded = excluded.unwrap_or_default();
                let entries = |key: &str, names: &[usize]| -> Value {
                    names.iter().map(|at| json!({key: NAMESPACES[*at]})).collect()
                };
                let kept = |names: Vec<usize>| -> Vec<usize> {
                    names.into_iter().filter(|at| !excluded.contains(at)).collect()
                };
                let mut targets = json!({});
                if let Some(all) = all_namespaces {
                    targets["allNamespaces"] = all.into();
                }
                if let Some(exceptions) = all {
                    targets["all"] = entries("exception", &exceptions);
                }
                if let Some(names) = included {
                    targets["includedNamespaces"] = json!({"list": entries("name", &kept(names))});
                }
                if let Some(names) = namespaces {
                    targets["namespaces"] = entries("name", &kept(names));
                }
                if !excluded.is_empty() {
                    targets["excludedNamespaces"] = json!({"list": entries("name", &excluded)});
                }
                if let Some((selector, beta)) = labels {
                    targets[if beta {
                        "namespaceSelector"
                    } else {
                        "namespaceLabelSelector"
                    }] = selector;
                }
                if let Some(selector) = workloads {
                    targets["workloadLabelSelector"] = selector;
                }
                targets
            },
        )
}

/// A namespace: its name, its labels, and true if it contains workloads that any selector selects.
type Namespace = (&'static str, StrMap, bool);

fn arb_namespaces() -> impl Strategy<Value = Vec<Namespace>> {
    let labels = prop::collection::btree_map(0..KEYS.len(), 0..VALUES.len(), 0..3);
    let one = (labels, any::<bool>());
    prop::collection::vec(one, NAMESPACES.len()).prop_map(|all| {
        let named = NAMESPACES.into_iter().zip(all);
        named
            .map(|(name, (labels, workload))| {
                let pairs = labels.into_iter();
                let labels = pairs.map(|(key, value)| (KEYS[key].into(), VALUES[value].into()));
                (name, labels.collect(), workload)
            })
            .collect()
    })
}

/// The sets of the module's documentation, computed as sets over the JSON.
fn by_sets(targets: &Value, namespaces: &[Namespace]) -> BTreeSet<&'static str> {
    let every: BTreeSet<&'static str> = namespaces.iter().map(|(name, ..)| *name).collect();
    let in_list = |list: &Value, key: &str| -> BTreeSet<&'static str> {
        let listed = list.as_array().into_iter().flatten();
        let names: BTreeSet<&str> = listed.filter_map(|entry| entry[key].as_str()).collect();
        every
            .iter()
            .copied()
            .filter(|name| names.contains(name))
            .collect()
    };
    let a = if targets["allNamespaces"] == true {
        every.clone()
    } else {
        BTreeSet::new()
    };
    let b = match targets.get("all") {
        Some(all) => &every - &in_list(all, "exception"),
        None => BTreeSet::new(),
    };
    let c =
        &in_list(&targets["includedNamespaces"]["list"], "name") | &in_list(&targets["namespaces"], "name");
    let selector = targets
        .get("namespaceSelector")
        .or(targets.get("namespaceLabelSelector"));
    let selected = |labels: &StrMap| selector.is_some_and(|one| holds_all(one, labels));
    let d = namespaces.iter().filter(|(_, labels, _)| selected(labels));
    let d: BTreeSet<&str> = d.map(|(name, ..)| *name).collect();
    let by_workload = targets
        .get("workloadLabelSelector")
        .is_some_and(|one| !requirements(one).is_empty());
    let e = namespaces
        .iter()
        .filter(|(_, _, workload)| *workload && by_workload);
    let e: BTreeSet<&str> = e.map(|(name, ..)| *name).collect();
    let excluded = in_list(&targets["excludedNamespaces"]["list"], "name");
    &(&(&(&(&a | &b) | &c) | &d) | &e) - &excluded
}

/// Requirements as key, operator and values.
fn requirements(selector: &Value) -> Vec<(&str, &str, Vec<&str>)> {
    let flat = selector.as_object().into_iter().flatten();
    let flat = flat.filter(|(key, _)| !key.starts_with("match"));
    let nested = selector["matchLabels"].as_object().into_iter().flatten();
    let labels = flat.chain(nested);
    let labels = labels.map(|(key, value)| (key.as_str(), "In", vec![value.as_str().unwrap()]));
    let expressions = selector["matchExpressions"].as_array().into_iter().flatten();
    let expressions = expressions.map(|one| {
        let values = one["values"].as_array().into_iter().flatten();
        let values = values.map(|value| value.as_str().unwrap()).collect();
        (
            one["key"].as_str().unwrap(),
            one["operator"].as_str().unwrap(),
            values,
        )
    });
    labels.chain(expressions).collect()
}

fn holds_all(selector: &Value, labels: &StrMap) -> bool {
    let requirements = requirements(selector);
    !requirements.is_empty()
        && requirements.iter().all(|(key, operator, values)| {
            let value = labels.get(key).map(|value| &**value);
            let listed = value.is_some_and(|value| values.contains(&value));
            match *operator {
                "In" => listed,
                "NotIn" => !listed,
                "Exists" => value.is_some(),
                _ => value.is_none(),
            }
        })
}

proptest! {
    #[test]
    fn what_is_meant_is_what_the_sets_say(given in arb_targets(), namespaces in arb_namespaces()) {
        let targets = targets(&given);
        let meant = namespaces.iter().filter(|(name, labels, workload)| targets.means(name, labels, *workload));
        let meant: BTreeSet<&str> = meant.map(|(name, ..)| *name).collect();
        prop_assert_eq!(&meant, &by_sets(&given, &namespaces), "{}", given);
        prop_assert!(!targets.mean_nothing() || meant.is_empty(), "{}", given);
    }

    #[test]
    fn nothing_that_is_meant_is_missing_among_the_candidates_and_nothing_stays(
        steps in prop::collection::vec((0..4_usize, prop::option::weighted(0.7, arb_targets())), 1..12),
        namespaces in arb_namespaces(),
    ) {
        let names: [Str; 4] = ["p", "q", "r", "s"].map(Into::into);
        let (mut index, mut there) = (Candidates::default(), BTreeMap::<Str, Targets>::new());
        for (at, given) in steps {
            if let Some(old) = there.remove(&names[at]) {
                index.remove(&names[at], &old);
            }
            if let Some(given) = given {
                let targets = targets(&given);
                index.insert(&names[at], &targets);
                there.insert(names[at].clone(), targets);
            }
            for (namespace, labels, _) in &namespaces {
                let found = index.of(namespace, labels);
                for (name, targets) in &there {
                    // It is not yet known if the namespace contains a selected workload.
                    let may = targets.means(namespace, labels, true);
                    prop_assert!(!may || found.contains(name), "{name} is missing in {namespace}: {targets:?}");
                }
                prop_assert!(found.iter().all(|name| there.contains_key(name)));
            }
            let by_workloads = there.iter().filter(|(_, targets)| targets.workloads().is_some());
            let by_workloads: Vec<&Str> = by_workloads.map(|(name, _)| name).collect();
            prop_assert_eq!(index.by_workloads().collect::<Vec<_>>(), by_workloads);
        }
        for (name, targets) in &there {
            index.remove(name, targets);
        }
        prop_assert_eq!(index.size(), 0);
    }

    #[test]
    fn targets_of_any_content_compile_or_say_why(
        name in ".{0,70}", key in ".{0,70}", operator in ".{0,7}", flat in any::<bool>(),
    ) {
        let selector = if flat {
            json!({key: name})
        } else {
            json!({"matchExpressions": [{"key": key, "operator": operator, "values": [name]}]})
        };
        let given = json!({"all": [{"exception": name}], "namespaces": [{"name": name}],
            "includedNamespaces": {"list": [{"name": name}]}, "excludedNamespaces": {"list": [{"name": name}]},
            "namespaceSelector": selector, "workloadLabelSelector": selector});
        if let Ok(read) = serde_json::from_value::<DistributionTargets>(given) {
            let problems = Targets::compile(&read).expect_err("a name both included and excluded");
            prop_assert!(!problems.is_empty());
        }
    }
}

#[test]
fn a_namespace_costs_what_may_mean_it_whatever_else_there_is() {
    let mut index = Candidates::default();
    let add = |index: &mut Candidates, name: &str, given: &Value| {
        index.insert(&name.into(), &targets(given));
    };
    add(
        &mut index,
        "named",
        &json!({"namespaces": [{"name": "shop"}, {"name": "other"}]}),
    );
    add(
        &mut index,
        "labelled",
        &json!({"namespaceSelector": {"team": "x", "zone": "y"}}),
    );
    add(
        &mut index,
        "listed",
        &json!({"namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "In", "values": ["x", "z"]},
            {"key": "tier", "operator": "Exists"}]}}),
    );
    add(
        &mut index,
        "keyed",
        &json!({"namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "Exists"}]}}),
    );
    add(&mut index, "all", &json!({"all": []}));
    add(
        &mut index,
        "absent",
        &json!({"namespaceSelector": {"matchExpressions": [{"key": "old", "operator": "DoesNotExist"}]}}),
    );
    add(
        &mut index,
        "workloads",
        &json!({"workloadLabelSelector": {"app": "nginx"}}),
    );
    let here = labels(&[("team", "x"), ("kubernetes.io/metadata.name", "shop")]);
    let found = index.of("shop", &here);
    let found: Vec<&str> = found.iter().map(|name| &**name).collect();
    assert_eq!(
        found,
        [
            "absent",
            "all",
            "keyed",
            "labelled",
            "listed",
            "named",
            "workloads"
        ]
    );
    assert_eq!(index.looked_at("shop", &here), 7);
    for at in 0..1000 {
        for (kind, given) in [
            ("n", json!({"namespaces": [{"name": format!("ns-{at}")}]})),
            ("l", json!({"namespaceSelector": {"team": format!("t-{at}")}})),
            (
                "k",
                json!({"namespaceSelector": {"matchExpressions": [{"key": format!("k-{at}"), "operator": "Exists"}]}}),
            ),
        ] {
            add(&mut index, &format!("{kind}-{at}"), &given);
        }
    }
    assert_eq!(index.size(), 3_009);
    assert_eq!(index.looked_at("shop", &here), 7);
}
