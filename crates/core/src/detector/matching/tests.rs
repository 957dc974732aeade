//! Tables of selectors and policies.

use serde_json::{Value, json};

use super::*;

/// Name, selectors and priority of each.
type Policies<'a> = &'a [(&'a str, &'a Value, i32)];

fn spec(selectors: &Value, priority: i32) -> PropagationSpec {
    serde_json::from_value(json!({"resourceSelectors": selectors, "priority": priority})).unwrap()
}

fn web() -> (Id, BTreeMap<Str, Str>) {
    let labels = [("app".into(), "web".into())].into();
    (Id::new(Gvk::new("apps/v1", "Deployment"), "shop", "web"), labels)
}

#[test]
fn the_best_matching_selector_counts() {
    let cases = [
        (
            json!([{"apiVersion": "apps/v1", "kind": "Deployment"}]),
            Some(Specificity::Kind),
        ),
        (
            json!([{"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop"}]),
            Some(Specificity::Kind),
        ),
        (
            json!([{"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "other"}]),
            None,
        ),
        (
            json!([{"apiVersion": "apps/v1beta1", "kind": "Deployment"}]),
            None,
        ),
        (json!([{"apiVersion": "v1", "kind": "Deployment"}]), None),
        (json!([{"apiVersion": "apps/v1", "kind": "StatefulSet"}]), None),
        (
            json!([{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}]),
            Some(Specificity::Name),
        ),
        (
            json!([{"apiVersion": "apps/v1", "kind": "Deployment", "name": "api"}]),
            None,
        ),
        (
            json!([{"apiVersion": "apps/v1", "kind": "Deployment", "labelSelector": {"matchLabels": {"app": "web"}}}]),
            Some(Specificity::Labels),
        ),
        (
            json!([{"apiVersion": "apps/v1", "kind": "Deployment", "labelSelector": {}}]),
            Some(Specificity::Labels),
        ),
        (
            json!([{"apiVersion": "apps/v1", "kind": "Deployment", "labelSelector": {"matchLabels": {"app": "db"}}}]),
            None,
        ),
        (
            json!([{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web",
                    "labelSelector": {"matchLabels": {"app": "db"}}}]),
            Some(Specificity::Name),
        ),
        (
            json!([{"apiVersion": "apps/v1", "kind": "Deployment"},
                   {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
                   {"apiVersion": "apps/v1", "kind": "Deployment", "labelSelector": {}}]),
            Some(Specificity::Name),
        ),
        (
            json!([{"apiVersion": "apps/v1", "kind": "Deployment",
                    "labelSelector": {"matchExpressions": [{"key": "app", "operator": "Is"}]}}]),
            None,
        ),
        (json!([]), None),
    ];
    let (id, labels) = web();
    for (selectors, want) in cases {
        assert_eq!(
            selects(&spec(&selectors, 0), "shop", &id, &labels),
            want,
            "{selectors}"
        );
    }
}

#[test]
fn a_policy_selects_nothing_outside_its_namespace() {
    let (id, labels) = web();
    let all = spec(&json!([{"apiVersion": "apps/v1", "kind": "Deployment"}]), 0);
    assert_eq!(selects(&all, "other", &id, &labels), None);
}

#[test]
fn priority_wins_then_specificity_then_the_smaller_name() {
    let (id, labels) = web();
    let kind = json!([{"apiVersion": "apps/v1", "kind": "Deployment"}]);
    let by_labels = json!([{"apiVersion": "apps/v1", "kind": "Deployment", "labelSelector": {}}]);
    let by_name = json!([{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}]);
    let other = json!([{"apiVersion": "apps/v1", "kind": "Deployment", "name": "api"}]);
    let cases: [(Policies<'_>, Option<&str>); 7] = [
        (&[("b", &kind, 0), ("a", &kind, 0)], Some("a")),
        (
            &[("a", &kind, 0), ("b", &by_labels, 0), ("c", &by_name, 0)],
            Some("c"),
        ),
        (&[("a", &kind, 0), ("b", &by_labels, 0)], Some("b")),
        (&[("a", &by_name, 0), ("b", &kind, 1)], Some("b")),
        (&[("a", &kind, -1), ("b", &kind, 0)], Some("b")),
        (&[("a", &other, 9), ("b", &kind, 0)], Some("b")),
        (&[("a", &other, 0)], None),
    ];
    for (policies, want) in cases {
        let all: Vec<(Named, PropagationSpec)> = policies
            .iter()
            .map(|(name, selectors, priority)| (Named::new("shop", name), spec(selectors, *priority)))
            .collect();
        let forwards = best(all.iter().map(|(name, spec)| (name, spec)), &id, &labels);
        let backwards = best(all.iter().rev().map(|(name, spec)| (name, spec)), &id, &labels);
        assert_eq!(forwards.map(|found| &*found.name), want, "{policies:?}");
        assert_eq!(
            forwards, backwards,
            "the order of the candidates decides: {policies:?}"
        );
    }
}

#[test]
fn what_cannot_be_propagated_is_refused_with_the_way_out() {
    let cases = [
        (json!([]), "spec.resourceSelectors is empty"),
        (
            json!([{"apiVersion": "apps/v1", "kind": "Deployment"},
                   {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "other"}]),
            "spec.resourceSelectors[1].namespace: \"other\" is not the policy's own",
        ),
        (
            json!([{"apiVersion": "batch/v9", "kind": "Job"}]),
            "spec.resourceSelectors[0]: batch/v9 Job is not propagated by this version; the kinds that are: ",
        ),
        (
            json!([{"apiVersion": "", "kind": ""}]),
            "spec.resourceSelectors[0]: \"\" \"\" is not propagated",
        ),
        (
            json!([{"apiVersion": "apps/v1", "kind": "Deployment",
                    "labelSelector": {"matchExpressions": [{"key": "app", "operator": "In"}]}}]),
            "spec.resourceSelectors[0].labelSelector: matchExpressions[0] \"app\" In: give at least one value",
        ),
    ];
    for (selectors, want) in cases {
        let error = check(&spec(&selectors, 0), "shop").unwrap_err();
        assert!(error.starts_with(want), "{error:?} does not begin with {want:?}");
    }
}

#[test]
fn an_ignored_label_selector_is_not_checked() {
    let ignored = json!([{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web",
                          "labelSelector": {"matchExpressions": [{"key": "app", "operator": "In"}]}}]);
    assert_eq!(check(&spec(&ignored, 0), "shop"), Ok(()));
}

#[test]
fn every_native_kind_is_taken_and_named_in_the_refusal() {
    let refusal = check(
        &spec(&json!([{"apiVersion": "v1", "kind": "Nothing"}]), 0),
        "shop",
    )
    .unwrap_err();
    for kind in NATIVE.iter().map(|native| native.gvk()) {
        let api_version = if kind.group.is_empty() {
            kind.version.into()
        } else {
            format!("{}/{}", kind.group, kind.version)
        };
        let selectors = json!([{"apiVersion": api_version, "kind": kind.kind}]);
        assert_eq!(check(&spec(&selectors, 0), "shop"), Ok(()), "{kind:?}");
        assert!(
            refusal.contains(&format!("{api_version} {}", kind.kind)),
            "{refusal:?} lacks {kind:?}"
        );
    }
}

#[test]
fn the_namespaces_of_the_system_are_skipped() {
    for (namespace, want) in [
        ("kube-system", true),
        ("kube-public", true),
        ("kube-", true),
        ("karmada-system", true),
        ("karmada-cluster", true),
        ("karmada-es-member1", true),
        ("karmada-es", false),
        ("karmada-systems", false),
        ("kube", false),
        ("my-kube-system", false),
        ("default", false),
        ("", false),
    ] {
        assert_eq!(is_skipped_namespace(namespace), want, "{namespace:?}");
    }
}
