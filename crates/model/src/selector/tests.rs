//! Tables of selectors: their matches, and the causes of errors.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn selector(value: Value) -> LabelSelector {
    serde_json::from_value(value).unwrap()
}

fn labels(pairs: &[(&str, &str)]) -> StrMap {
    pairs
        .iter()
        .map(|(key, value)| ((*key).into(), (*value).into()))
        .collect()
}

fn expression(key: &str, operator: &str, values: &[&str]) -> LabelSelector {
    selector(json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]}))
}

#[test]
fn each_operator_means_what_kubernetes_says() {
    let here = labels(&[("tier", "web"), ("empty", "")]);
    let cases = [
        (selector(json!({})), true),
        (selector(json!({"matchLabels": {"tier": "web"}})), true),
        (selector(json!({"matchLabels": {"tier": "db"}})), false),
        (selector(json!({"matchLabels": {"other": "web"}})), false),
        (selector(json!({"matchLabels": {"empty": ""}})), true),
        (selector(json!({"matchLabels": {"absent": ""}})), false),
        (expression("tier", "In", &["db", "web"]), true),
        (expression("tier", "In", &["db"]), false),
        (expression("absent", "In", &["db"]), false),
        (expression("empty", "In", &[""]), true),
        (expression("tier", "NotIn", &["db"]), true),
        (expression("tier", "NotIn", &["web"]), false),
        (expression("absent", "NotIn", &["web"]), true),
        (expression("empty", "Exists", &[]), true),
        (expression("absent", "Exists", &[]), false),
        (expression("tier", "DoesNotExist", &[]), false),
        (expression("absent", "DoesNotExist", &[]), true),
    ];
    for (selector, want) in cases {
        assert_eq!(check(&selector), Ok(()), "{selector:?}");
        assert_eq!(matches(&selector, &here), want, "{selector:?}");
    }
}

#[test]
fn all_requirements_must_hold() {
    let both = selector(json!({
        "matchLabels": {"a": "1"},
        "matchExpressions": [{"key": "b", "operator": "Exists"}],
    }));
    assert!(matches(&both, &labels(&[("a", "1"), ("b", "2")])));
    assert!(!matches(&both, &labels(&[("a", "1")])));
    assert!(!matches(&both, &labels(&[("b", "2")])));
}

#[test]
fn a_selector_that_is_refused_says_why_and_matches_nothing() {
    let long = "x".repeat(64);
    let cases = [
        (
            expression("tier", "In", &[]),
            "matchExpressions[0] \"tier\" In: give at least one value",
        ),
        (
            expression("tier", "NotIn", &[]),
            "matchExpressions[0] \"tier\" NotIn: give at least one value",
        ),
        (expression("absent", "DoesNotExist", &["a"]), "takes no values"),
        (expression("tier", "Exists", &["a"]), "takes no values"),
        (
            expression("tier", "in", &["web"]),
            "the operators are In, NotIn, Exists and DoesNotExist",
        ),
        (
            expression("tier", "Gt", &["1"]),
            "the operators are In, NotIn, Exists and DoesNotExist",
        ),
        (
            expression("", "DoesNotExist", &[]),
            "the name in a label key is 1 to 63",
        ),
        (
            expression("a/b/c", "DoesNotExist", &[]),
            "the name in a label key is 1 to 63",
        ),
        (
            expression("/a", "DoesNotExist", &[]),
            "before the slash is a DNS name",
        ),
        (
            expression("Example.com/a", "DoesNotExist", &[]),
            "before the slash is a DNS name",
        ),
        (
            expression("example..com/a", "DoesNotExist", &[]),
            "before the slash is a DNS name",
        ),
        (
            expression("tier", "In", &["web", "no space"]),
            "\"no space\": a label value is at most 63",
        ),
        (
            selector(json!({"matchLabels": {"tier": "-web"}})),
            "matchLabels \"tier\": a label value",
        ),
        (
            selector(json!({"matchLabels": {"tier": long}})),
            "matchLabels \"tier\": a label value",
        ),
        (
            selector(json!({"matchLabels": {"-tier": "web"}})),
            "matchLabels \"-tier\": the name in a label key",
        ),
    ];
    let here = labels(&[("tier", "web")]);
    for (selector, want) in cases {
        let error = check(&selector).unwrap_err();
        assert!(error.contains(want), "{error:?} lacks {want:?}");
        assert!(!matches(&selector, &here), "{selector:?}");
    }
}

#[test]
fn usual_keys_and_values_are_taken() {
    for key in [
        "a",
        "A_b.c-1",
        "app.kubernetes.io/name",
        "1/2",
        &format!("a.b/{}", "x".repeat(63)),
    ] {
        assert_eq!(check(&expression(key, "Exists", &[])), Ok(()), "{key}");
    }
    for value in ["", "1", "v1.2_3-rc", &"x".repeat(63)] {
        assert_eq!(check(&expression("a", "In", &[value])), Ok(()), "{value}");
    }
}

proptest! {
    #[test]
    fn in_and_not_in_are_opposites_and_nothing_panics(
        key in ".{0,6}", values in proptest::collection::vec("[a-c]{0,2}", 1..3), label in "[a-c]{0,2}",
    ) {
        let values: Vec<&str> = values.iter().map(String::as_str).collect();
        let here = labels(&[(&key, &label)]);
        let within = expression(&key, "In", &values);
        let without = expression(&key, "NotIn", &values);
        if check(&within).is_ok() {
            prop_assert_ne!(matches(&within, &here), matches(&without, &here));
        } else {
            prop_assert!(!matches(&within, &here) && !matches(&without, &here));
        }
    }
}
