//! Tables of selectors and policies.

use serde_json::{Value, json};

use super::*;
use crate::{config::Config, reserved::is_skipped_namespace};

/// The name, selectors and priority of each.
type Policies<'a> = &'a [(&'a str, &'a Value, i32)];

fn spec(selectors: &Value, priority: i32) -> PropagationSpec {
    serde_json::from_value(json!({"resourceSelectors": selectors, "priority": priority})).unwrap()
}

fn web() -> (ResourceId, StrMap) {
    let labels = [("app".into(), "web".into())].into();
    (
        ResourceId::new(Gvk::new("apps/v1", "Deployment"), "shop", "web"),
        labels,
    )
}

#[test]
fn how_a_policy_could_mean_a_template_is_reported_without_its_labels() {
    let selectors = json!([
        {"apiVersion": "apps/v1beta1", "kind": "Deployment", "labelSelector": {"matchLabels": {"a": "b"}}},
        {"apiVersion": "apps/v1", "kind": "Deployment"},
        {"apiVersion": "apps/v1", "kind": "Deployment", "name": "other"},
        {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "namespace": "elsewhere"},
        {"apiVersion": "v1", "kind": "Deployment", "name": "web"},
    ]);
    let spec = spec(&selectors, 0);
    let (id, _) = web();
    let both = [Specificity::Kind, Specificity::Labels].into();
    assert_eq!(may_select(&spec, "shop", &id), both);
    assert_eq!(may_select(&spec, "elsewhere", &id), BTreeSet::new());
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
        // Every version of a kind has the same objects.
        (
            json!([{"apiVersion": "apps/v1beta1", "kind": "Deployment"}]),
            Some(Specificity::Kind),
        ),
        (json!([{"apiVersion": "other/v1", "kind": "Deployment"}]), None),
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
        let all: Vec<(NamespacedName, PropagationSpec)> = policies
            .iter()
            .map(|(name, selectors, priority)| {
                (NamespacedName::new("shop", name), spec(selectors, *priority))
            })
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
            json!([{"apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy"}]),
            "spec.resourceSelectors[0]: policy.karmada.io/v1alpha1 PropagationPolicy belongs to the control plane",
        ),
        (
            json!([{"apiVersion": "", "kind": ""}]),
            "spec.resourceSelectors[0]: apiVersion and kind must both be given",
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
fn a_cluster_policy_selects_everywhere_or_in_the_selectors_namespace_and_cluster_scoped_templates() {
    let of = |selectors: &serde_json::Value, namespace: &str, kind: &str| {
        let id = ResourceId::new(Gvk::new("v1", kind), namespace, "one");
        selects(&spec(selectors, 0), "", &id, &StrMap::new())
    };
    let everywhere = json!([{"apiVersion": "v1", "kind": "ConfigMap"}]);
    let in_shop = json!([{"apiVersion": "v1", "kind": "ConfigMap", "namespace": "shop", "name": "one"}]);
    let namespaces = json!([{"apiVersion": "v1", "kind": "Namespace"}]);
    assert_eq!(of(&everywhere, "shop", "ConfigMap"), Some(Specificity::Kind));
    assert_eq!(of(&everywhere, "bank", "ConfigMap"), Some(Specificity::Kind));
    assert_eq!(of(&in_shop, "shop", "ConfigMap"), Some(Specificity::Name));
    assert_eq!(of(&in_shop, "bank", "ConfigMap"), None);
    assert_eq!(of(&namespaces, "", "Namespace"), Some(Specificity::Kind));
    assert_eq!(check(&spec(&in_shop, 0), ""), Ok(()));
}

#[test]
fn a_policy_of_the_namespace_wins_over_a_cluster_policy_whatever_its_priority() {
    let selectors = json!([{"apiVersion": "v1", "kind": "ConfigMap"}]);
    let (own, everywhere) = (
        NamespacedName::new("shop", "own"),
        NamespacedName::new("", "everywhere"),
    );
    let (low, high) = (spec(&selectors, 0), spec(&selectors, 100));
    let id = ResourceId::new(Gvk::new("v1", "ConfigMap"), "shop", "one");
    let found = best(
        [(&everywhere, &high), (&own, &low)].into_iter(),
        &id,
        &StrMap::new(),
    );
    assert_eq!(found, Some(&own));
}

#[test]
fn the_control_planes_own_kinds_and_namespaces_are_no_templates() {
    let own = json!([{"apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding"}]);
    let error = check(&spec(&own, 0), "shop").unwrap_err();
    assert!(error.contains("belongs to the control plane"), "{error}");
    let namespace = |name| ResourceId::new(Gvk::new("v1", "Namespace"), "", name);
    let mut config = Config::new("hub");
    config.reserved.insert("fleet".into());
    for (name, skipped) in [("kube-system", true), ("fleet", true), ("shop", false)] {
        assert_eq!(config.is_skipped(&namespace(name)), skipped, "{name}");
        let secret = ResourceId::new(Gvk::new("v1", "Secret"), name, "s");
        assert_eq!(config.is_skipped(&secret), skipped, "a Secret in {name}");
    }
}

#[test]
fn an_event_is_no_template() {
    for api_version in ["v1", "events.k8s.io/v1"] {
        let events = json!([{"apiVersion": api_version, "kind": "Event"}]);
        let error = check(&spec(&events, 0), "shop").unwrap_err();
        assert!(error.contains("never propagated"), "{error}");
        let event = ResourceId::new(Gvk::new(api_version, "Event"), "shop", "e");
        assert!(Config::new("hub").is_skipped(&event));
    }
    assert!(!is_skipped_kind(&Gvk::new("example.com/v1", "Event")));
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
