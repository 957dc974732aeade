//! Each decision, and the patch of an object that is adopted.

use serde_json::{Value, json};

use super::*;

fn transfer() -> Transfer {
    Transfer {
        former: "old".into(),
        hub: "new".into(),
        cluster: "m1".into(),
        namespaces: BTreeMap::from([("labelled".into(), StrMap::from([("ca".into(), "yes".into())]))]),
    }
}

fn state() -> HubState {
    let mut state = HubState::default();
    let on = |cluster: &str| json!({"placement": {}, "clusters": [{"name": cluster}]});
    let conf = ("v1", "ConfigMap", "conf");
    for binding in [
        binding(("apps/v1", "Deployment", "web"), &on("m1")),
        binding(("apps/v1", "Deployment", "far"), &on("m2")),
        binding(("apps/v1", "Deployment", "gone"), &on("m1")),
        binding(conf, &required_by("web-deployment", "m1")),
    ] {
        state.add_binding(&binding);
    }
    let mut ends = binding(("apps/v1", "Deployment", "ends"), &on("m1"));
    ends["metadata"]["deletionTimestamp"] = json!("2026-11-26T00:00:00Z");
    state.add_binding(&ends);
    for name in ["web", "far", "ends"] {
        let id = id("apps/v1", "Deployment", name);
        state.templates.insert(id, format!("uid-{name}").into());
    }
    state
        .templates
        .insert(id("v1", "ConfigMap", "conf"), "uid-conf".into());
    let claim = id("v1", "PersistentVolumeClaim", "data");
    state.templates.insert(claim, "uid-data".into());
    for namespace in [
        json!({"metadata": {"name": "shop", "labels": {"a": "1", "kubernetes.io/metadata.name": "shop"}, "annotations": {"x": "1"}}}),
        json!({"metadata": {"name": "alone", "labels": {"namespace.karmada.io/skip-auto-propagation": "true"}}}),
        json!({"metadata": {"name": "ends", "deletionTimestamp": "2026-11-26T00:00:00Z"}}),
    ] {
        state.add_namespace(&namespace);
    }
    state.add_distribution(&distribution("ca", &json!({"clusters": {"clusterNames": ["m1"]},
        "namespaceLabelSelector": {"matchLabels": {"ca": "yes"}}, "includedNamespaces": {"list": [{"name": "shop"}]}})));
    state.add_quota(&json!({"metadata": {"namespace": "shop", "name": "limits"},
        "spec": {"staticAssignments": [{"clusterName": "m1"}]}}));
    state.add_quota(&json!({"metadata": {"namespace": "shop", "name": "elsewhere"},
        "spec": {"staticAssignments": [{"clusterName": "m2"}]}}));
    state
}

/// A binding that the controllers have made for its template, and the scheduler has seen.
fn binding((api_version, kind, name): (&str, &str, &str), spec: &Value) -> Value {
    let mut binding = json!({
        "metadata": {"namespace": "shop", "name": format!("{name}-{}", kind.to_lowercase()), "generation": 3,
            "ownerReferences": [{"controller": true, "uid": format!("uid-{name}")}]},
        "spec": spec,
        "status": {"schedulerObservedGeneration": 3},
    });
    binding["spec"]["propagateDeps"] = json!(true);
    binding["spec"]["resource"] =
        json!({"apiVersion": api_version, "kind": kind, "namespace": "shop", "name": name});
    binding
}

fn required_by(referrer: &str, cluster: &str) -> Value {
    json!({"requiredBy": [{"namespace": "shop", "name": referrer, "clusters": [{"name": cluster}]}]})
}

/// A distribution of the ConfigMap `ca`.
fn distribution(name: &str, targets: &Value) -> Value {
    json!({"metadata": {"name": name, "generation": 2}, "spec": {
        "resource": {"kind": "ConfigMap", "metadata": {"name": "ca"}, "data": {"key": "value"}}, "targets": targets}})
}

fn id(api_version: &str, kind: &str, name: &str) -> ResourceId {
    let namespace = if kind == "Namespace" { "" } else { "shop" };
    ResourceId::new(Gvk::new(api_version, kind), namespace, name)
}

/// A copy of a Deployment's binding.
fn copy(hub: &str, cluster: &str, binding: &str) -> Value {
    json!({
        "uid": "u", "resourceVersion": "7", "labels": {label::HUB: hub, "app": "web"},
        "annotations": {
            annotation::WORK_NAMESPACE: format!("karmada-es-{cluster}"),
            annotation::RESOURCE_BINDING_NAMESPACE: "shop", annotation::RESOURCE_BINDING_NAME: binding,
        },
    })
}

fn decided(kind: (&str, &str, &str), metadata: &Value) -> Option<Decision> {
    let live = Meta::of(&json!({"metadata": metadata}));
    decide(&state(), &transfer(), &id(kind.0, kind.1, kind.2), &live)
}

#[test]
fn a_copy_changes_hands_only_where_this_hub_wants_it() {
    use Decision::{Adopt, Deleting, NoBinding, NoTemplate, NotPlaced, OtherCluster, OtherHub};
    let mut deleting = copy("old", "m1", "web-deployment");
    deleting["deletionTimestamp"] = json!("2026-11-26T00:00:00Z");
    let mut no_place = copy("old", "m1", "web-deployment");
    no_place["annotations"] = json!({});
    let cases = [
        (
            "scheduled",
            "web",
            copy("old", "m1", "web-deployment"),
            Some(Adopt),
        ),
        ("ours already", "web", copy("new", "m1", "web-deployment"), None),
        ("of nobody", "web", json!({"labels": {"app": "web"}}), None),
        (
            "a third hub",
            "web",
            copy("x", "m1", "web-deployment"),
            Some(OtherHub("x".into())),
        ),
        (
            "copied from m2",
            "web",
            copy("old", "m2", "web-deployment"),
            Some(OtherCluster("m2".into())),
        ),
        ("no cluster", "web", no_place, Some(OtherCluster("".into()))),
        (
            "another template's",
            "far",
            copy("old", "m1", "web-deployment"),
            Some(NotPlaced(Origin::Template)),
        ),
        (
            "scheduled elsewhere",
            "far",
            copy("old", "m1", "far-deployment"),
            Some(NotPlaced(Origin::Template)),
        ),
        (
            "its binding ends",
            "ends",
            copy("old", "m1", "ends-deployment"),
            Some(NoBinding),
        ),
        (
            "a binding, no template",
            "gone",
            copy("old", "m1", "gone-deployment"),
            Some(NoTemplate),
        ),
        (
            "nothing at all",
            "nope",
            copy("old", "m1", "nope-deployment"),
            Some(NoTemplate),
        ),
        ("being deleted", "web", deleting, Some(Deleting)),
    ];
    for (sentence, name, metadata, expected) in cases {
        let decision = decided(("apps/v1", "Deployment", name), &metadata);
        assert_eq!(decision, expected, "{sentence}");
    }
    let required = decided(("v1", "ConfigMap", "conf"), &copy("old", "m1", "conf-configmap"));
    assert_eq!(required, Some(Adopt), "a dependency");
    let renamed = decided(("apps/v1", "Deployment", "web"), &copy("old", "m1", "web-x"));
    let name = |name: &str| NamespacedName::new("shop", name);
    assert_eq!(
        renamed,
        Some(Decision::OtherBinding(name("web-x"), name("web-deployment")))
    );
    let version = decided(
        ("apps/v1beta1", "Deployment", "web"),
        &copy("old", "m1", "web-deployment"),
    );
    assert_eq!(version, Some(Adopt), "another version of the kind");
}

#[test]
fn a_binding_counts_only_as_the_controllers_have_left_it() {
    let web = || {
        binding(
            ("apps/v1", "Deployment", "web"),
            &json!({"placement": {}, "clusters": [{"name": "m1"}]}),
        )
    };
    let with = |pointer: &str, value: Value| {
        let mut binding = web();
        if let Some(held) = binding.pointer_mut(pointer) {
            *held = value;
        }
        binding
    };
    for (sentence, binding, expected) in [
        ("settled", web(), Decision::Adopt),
        (
            "no placement",
            with("/spec/placement", Value::Null),
            Decision::NotScheduled,
        ),
        (
            "of a former template",
            with("/metadata/ownerReferences/0/uid", json!("uid-former")),
            Decision::NotScheduled,
        ),
        (
            "of no template",
            with("/metadata/ownerReferences", json!([])),
            Decision::NotScheduled,
        ),
        (
            "changed since it was scheduled",
            with("/metadata/generation", json!(4)),
            Decision::NotScheduled,
        ),
        (
            "never scheduled",
            with("/status", json!({})),
            Decision::NotScheduled,
        ),
        (
            "scheduled to no cluster",
            with("/spec/clusters", json!([])),
            Decision::NotPlaced(Origin::Template),
        ),
    ] {
        let mut state = state();
        state.add_binding(&binding);
        let live = Meta::of(&json!({"metadata": copy("old", "m1", "web-deployment")}));
        let decision = decide(&state, &transfer(), &id("apps/v1", "Deployment", "web"), &live);
        assert_eq!(decision, Some(expected), "{sentence}");
    }
}

#[test]
fn a_dependency_is_adopted_where_a_live_referrer_is() {
    let web = |cluster: &str, propagates: bool| {
        let spec = json!({"placement": {}, "clusters": [{"name": cluster}]});
        let mut binding = binding(("apps/v1", "Deployment", "web"), &spec);
        binding["spec"]["propagateDeps"] = json!(propagates);
        binding
    };
    let conf = |referrer: &str| binding(("v1", "ConfigMap", "conf"), &required_by(referrer, "m1"));
    let through = |referrer: &str| {
        let mut binding = binding(("apps/v1", "Deployment", "far"), &required_by(referrer, "m1"));
        binding["spec"]["propagateDeps"] = json!(false);
        binding
    };
    for (sentence, bindings, expected) in [
        ("a referrer", vec![conf("web-deployment")], Decision::Adopt),
        (
            "without a binding",
            vec![conf("nope-deployment")],
            Decision::NotScheduled,
        ),
        (
            "without a template",
            vec![conf("gone-deployment")],
            Decision::NotScheduled,
        ),
        (
            "scheduled elsewhere",
            vec![web("m2", true), conf("web-deployment")],
            Decision::NotScheduled,
        ),
        (
            "that propagates none",
            vec![web("m1", false), conf("web-deployment")],
            Decision::NotScheduled,
        ),
        (
            "an indirect one",
            vec![through("web-deployment"), conf("far-deployment")],
            Decision::Adopt,
        ),
        (
            "two that need each other",
            vec![through("conf-configmap"), conf("far-deployment")],
            Decision::NotScheduled,
        ),
    ] {
        let mut state = state();
        bindings.iter().for_each(|binding| state.add_binding(binding));
        let live = Meta::of(&json!({"metadata": copy("old", "m1", "conf-configmap")}));
        let decision = decide(&state, &transfer(), &id("v1", "ConfigMap", "conf"), &live);
        assert_eq!(decision, Some(expected), "{sentence}");
    }
    let kinds: Vec<String> = state()
        .kinds_of_referrers()
        .iter()
        .map(|gvk| gvk.kind.to_string())
        .collect();
    assert_eq!(kinds, ["Deployment"]);
}

#[test]
fn the_kinds_of_the_hub_are_those_that_it_makes_copies_of() {
    let kinds: BTreeSet<String> = state().kinds().iter().map(|gvk| gvk.kind.to_string()).collect();
    let expected = ["ConfigMap", "Deployment", "Namespace", "ResourceQuota"].map(str::to_owned);
    assert_eq!(kinds, BTreeSet::from(expected));
    assert!(HubState::default().kinds().is_empty());
    let mut state = HubState::default();
    for version in ["v2", "v1", "v2"] {
        let scaler = json!({"apiVersion": format!("autoscaling/{version}"), "kind": "HorizontalPodAutoscaler", "namespace": "shop", "name": "web"});
        state.add_binding(
            &json!({"metadata": {"namespace": "shop", "name": version}, "spec": {"resource": scaler}}),
        );
    }
    let versions: Vec<String> = state.versions().iter().map(Gvk::api_version).collect();
    assert_eq!(versions, ["autoscaling/v1", "autoscaling/v2"]);
    let written = state.version_of(&NamespacedName::new("shop", "v2"));
    assert_eq!(written.map(Gvk::api_version).as_deref(), Some("autoscaling/v2"));
}

#[test]
fn quotas_and_distributions_are_compared_by_the_place_they_were_made_for() {
    use Decision::{Adopt, NoTemplate, NotPlaced, OtherCluster};
    let quota = |made_for: &str| json!({"labels": {label::FEDERATED_QUOTA: "old"}, "annotations": {annotation::FEDERATED_QUOTA_FOR: made_for}});
    let distributed = |from: &str, place: &str| {
        json!({"labels": {label::DISTRIBUTED_BY: "old"},
            "annotations": {annotation::DISTRIBUTED_FROM: from, annotation::DISTRIBUTED_IN: place}})
    };
    for (kind, name, metadata, expected) in [
        ("ResourceQuota", "limits", quota("m1/shop/limits"), Adopt),
        (
            "ResourceQuota",
            "limits",
            quota("m2/shop/limits"),
            OtherCluster("m2".into()),
        ),
        (
            "ResourceQuota",
            "elsewhere",
            quota("m1/shop/elsewhere"),
            NotPlaced(Origin::Quota),
        ),
        ("ResourceQuota", "none", quota("m1/shop/none"), NoTemplate),
        ("ConfigMap", "ca", distributed("ca", "m1/shop"), Adopt),
        (
            "ConfigMap",
            "ca",
            distributed("ca", "m2/shop"),
            OtherCluster("m2".into()),
        ),
        ("ConfigMap", "ca", distributed("other", "m1/shop"), NoTemplate),
    ] {
        let decision = decided(("v1", kind, name), &metadata);
        assert_eq!(decision, Some(expected), "{kind} {metadata}");
    }
}

#[test]
fn a_copy_of_a_distribution_is_adopted_only_where_the_distribution_wants_it() {
    use Decision::Adopt;
    const NOT_PLACED: Decision = Decision::NotPlaced(Origin::Distribution);
    let everywhere = || json!({"clusters": {"clusterNames": ["m1", "m2"]}, "allNamespaces": true});
    let by_label =
        || json!({"clusters": {"labelSelector": {"matchLabels": {"a": "b"}}}, "allNamespaces": true});
    let reported = |generation: i64, cluster: &str| json!({"observedGeneration": generation, "clusters": [{"name": cluster, "desired": 1}]});
    let by_workload = || json!({"clusters": {"clusterNames": ["m1"]}, "workloadLabelSelector": {"matchLabels": {"a": "b"}}});
    let conflict =
        json!({"observedGeneration": 2, "conflictingNamespaces": [{"name": "shop", "cluster": "m1"}]});
    let of_secret = json!({"distributed": {"kind": "Secret", "name": "ca"}});
    let cases = [
        ("by name", everywhere(), json!({}), "shop", Adopt),
        (
            "of the system",
            everywhere(),
            json!({}),
            "kube-system",
            NOT_PLACED,
        ),
        ("of another kind", everywhere(), of_secret, "shop", NOT_PLACED),
        (
            "hub only",
            json!({"allNamespaces": true}),
            json!({}),
            "shop",
            NOT_PLACED,
        ),
        (
            "not this cluster",
            json!({"clusters": {"clusterNames": ["m2"]}, "allNamespaces": true}),
            json!({}),
            "shop",
            NOT_PLACED,
        ),
        (
            "cluster by label, no report",
            by_label(),
            json!({}),
            "shop",
            NOT_PLACED,
        ),
        (
            "cluster by label, reported",
            by_label(),
            reported(2, "m1"),
            "shop",
            Adopt,
        ),
        (
            "reported of older targets",
            by_label(),
            reported(1, "m1"),
            "shop",
            NOT_PLACED,
        ),
        (
            "by workload, no report",
            by_workload(),
            json!({}),
            "shop",
            NOT_PLACED,
        ),
        ("by workload, reported", by_workload(), conflict, "shop", Adopt),
    ];
    for (sentence, targets, status, namespace, expected) in cases {
        let mut object = distribution("ca", &targets);
        object["status"] = status;
        let mut state = HubState::default();
        state.add_distribution(&object);
        let live = json!({"metadata": {"labels": {label::DISTRIBUTED_BY: "old"}, "annotations": {
            annotation::DISTRIBUTED_FROM: "ca", annotation::DISTRIBUTED_IN: format!("m1/{namespace}")}}});
        let id = ResourceId::new(Gvk::new("v1", "ConfigMap"), namespace, "ca");
        let decision = decide(&state, &transfer(), &id, &Meta::of(&live));
        assert_eq!(decision, Some(expected), "{sentence}");
    }
    for (namespace, name, expected) in [
        ("labelled", "ca", Adopt),
        ("unlabelled", "ca", NOT_PLACED),
        ("shop", "other-name", NOT_PLACED),
    ] {
        let live = json!({"metadata": {"labels": {label::DISTRIBUTED_BY: "old"}, "annotations": {
            annotation::DISTRIBUTED_FROM: "ca", annotation::DISTRIBUTED_IN: format!("m1/{namespace}")}}});
        let id = ResourceId::new(Gvk::new("v1", "ConfigMap"), namespace, name);
        let decision = decide(&state(), &transfer(), &id, &Meta::of(&live));
        assert_eq!(decision, Some(expected), "{namespace} {name}");
    }
}

#[test]
fn a_namespace_is_adopted_with_its_records() {
    use Decision::{Adopt, NoTemplate, NotPlaced, OtherCluster, OtherHub};
    let list = |hub: &str| format!("managed-by.entourage.dev/{hub}");
    for (name, annotations, expected) in [
        ("shop", json!({list("old"): "{}"}), Some(Adopt)),
        ("shop", json!({annotation::CREATED_BY: "old/m1/u"}), Some(Adopt)),
        (
            "shop",
            json!({annotation::CREATED_BY: "old/m2/u"}),
            Some(OtherCluster("m2".into())),
        ),
        ("gone", json!({list("old"): "{}"}), Some(NoTemplate)),
        ("ends", json!({list("old"): "{}"}), Some(NoTemplate)),
        (
            "alone",
            json!({list("old"): "{}"}),
            Some(NotPlaced(Origin::Namespace)),
        ),
        ("shop", json!({list("x"): "{}"}), Some(OtherHub("x".into()))),
        (
            "shop",
            json!({list("new"): "{}", annotation::CREATED_BY: "new/m1/u"}),
            None,
        ),
        ("shop", json!({}), None),
    ] {
        let decision = decided(("v1", "Namespace", name), &json!({"annotations": annotations}));
        assert_eq!(decision, expected, "{name} {annotations}");
    }
}

#[test]
fn a_namespace_is_not_adopted_while_it_would_lose_labels() {
    let listed = |labels: &Vec<&str>, annotations: &Vec<&str>| {
        json!({"labels": labels, "annotations": annotations}).to_string()
    };
    for (labels, annotations, expected) in [
        (vec!["a"], vec!["x"], "adopt"),
        (
            vec!["a", "b"],
            vec!["x"],
            "left alone: would lose labels b; set them on the hub's namespace first",
        ),
        (
            vec!["a", "b", "c"],
            vec!["y"],
            "left alone: would lose labels b, c and annotations y; set them on the hub's namespace first",
        ),
        // Of control planes, or not on the namespace any more.
        (
            vec!["karmada.io/x", "none"],
            vec!["policy.karmada.io/applied-cluster-overrides"],
            "adopt",
        ),
    ] {
        let live = json!({"labels": {"a": "1", "b": "1", "c": "1", "karmada.io/x": "1"}, "annotations": {"x": "1", "y": "1",
            "policy.karmada.io/applied-cluster-overrides": "[]", "managed-by.entourage.dev/old": listed(&labels, &annotations)}});
        let decision = decided(("v1", "Namespace", "shop"), &live).map(|decision| decision.to_string());
        assert_eq!(decision.as_deref(), Some(expected), "{labels:?} {annotations:?}");
    }
}

#[test]
fn a_released_claim_is_adopted_where_its_template_may_return_to() {
    use Decision::{Adopt, NoTemplate, OtherCluster};
    for (name, record, expected) in [
        ("data", "old/m1/shop/data-persistentvolumeclaim", Some(Adopt)),
        (
            "data",
            "old/m2/shop/data-persistentvolumeclaim",
            Some(OtherCluster("m2".into())),
        ),
        ("gone", "old/m1/shop/gone-persistentvolumeclaim", Some(NoTemplate)),
        ("data", "new/m1/shop/data-persistentvolumeclaim", None),
    ] {
        let metadata = json!({"annotations": {annotation::RELEASED_FROM: record}});
        let decision = decided(("v1", "PersistentVolumeClaim", name), &metadata);
        assert_eq!(decision, expected, "{name} {record}");
        let patched = patch(&transfer(), &Meta::of(&json!({"metadata": metadata})));
        let is_moved = record.starts_with("old/m1/");
        let moved = is_moved.then(|| record.replacen("old", "new", 1));
        assert_eq!(
            patched["metadata"]["annotations"][annotation::RELEASED_FROM].as_str(),
            moved.as_deref()
        );
    }
}

#[test]
fn only_the_id_of_the_hub_changes() {
    let live = copy("old", "m1", "web-deployment");
    let patched = patch(&transfer(), &Meta::of(&json!({"metadata": live})));
    let expected = json!({"metadata": {
        "uid": "u", "resourceVersion": "7", "labels": {label::HUB: "new"}, "annotations": {},
    }});
    assert_eq!(patched, expected);
}

#[test]
fn what_both_hubs_set_on_a_namespace_becomes_one_list() {
    let live = json!({"metadata": {"uid": "u", "resourceVersion": "7", "annotations": {
        "managed-by.entourage.dev/old": r#"{"labels":["a","b"],"annotations":["x"]}"#,
        "managed-by.entourage.dev/new": r#"{"labels":["b","c"],"annotations":[]}"#,
        annotation::CREATED_BY: "old/m1/u",
    }}});
    let patched = patch(&transfer(), &Meta::of(&live));
    let annotations = &patched["metadata"]["annotations"];
    assert_eq!(annotations["managed-by.entourage.dev/old"], Value::Null);
    assert_eq!(
        annotations["managed-by.entourage.dev/new"],
        r#"{"labels":["a","b","c"],"annotations":["x"]}"#
    );
    assert_eq!(annotations[annotation::CREATED_BY], "new/m1/u");

    let elsewhere = json!({"metadata": {"annotations": {annotation::CREATED_BY: "old/m2/u"}}});
    let patched = patch(&transfer(), &Meta::of(&elsewhere));
    assert_eq!(
        patched["metadata"]["annotations"],
        json!({}),
        "a record of another cluster stays"
    );
}
