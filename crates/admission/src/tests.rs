//! Properties of the rules as a whole; single rules have golden cases.

use std::collections::BTreeSet;

use entourage_model::problem::is_label_key;
use serde_json::json;

use super::{
    configuration::{Address, configurations},
    request::{items, text},
    *,
};

fn policy(spec: &Value) -> Value {
    json!({"apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy",
        "metadata": {"name": "p", "namespace": "n"}, "spec": spec})
}

fn request<'a>(object: Option<&'a Value>, old: Option<&'a Value>) -> Request<'a> {
    Request {
        group: "policy.karmada.io",
        kind: "PropagationPolicy",
        namespace: "n",
        name: "p",
        operation: match (object, old) {
            (None, _) => Operation::Delete,
            (_, None) => Operation::Create,
            _ => Operation::Update,
        },
        object,
        old,
        others: &[],
        settings: Settings::default(),
    }
}

#[test]
fn rules_have_names_of_their_own_and_say_what_and_why() {
    let names: BTreeSet<&str> = RULES.iter().map(|rule| rule.name).collect();
    assert_eq!(names.len(), RULES.len());
    for rule in RULES {
        assert!(!rule.says.is_empty() && !rule.reason.is_empty(), "{}", rule.name);
        if let Kinds::These(kinds) = rule.on {
            assert!(kinds.iter().all(|kind| KINDS.contains(kind)), "{}", rule.name);
        }
    }
    // Defaults come first in the table, as they do in a request.
    assert!(RULES.is_sorted_by_key(|rule| !rule.fills()));
}

#[test]
fn what_was_wrong_before_is_no_reason_to_refuse_a_write_that_leaves_it() {
    let wrong =
        json!({"preemption": "Always", "resourceSelectors": [{"apiVersion": "v1", "kind": "Secret"}]});
    let (old, mut new) = (policy(&wrong), policy(&wrong));
    new["metadata"]["finalizers"] = json!(["f"]);
    assert!(validate(&request(Some(&new), None)).is_err());
    assert_eq!(validate(&request(Some(&new), Some(&old))), Ok(()));
    new["spec"]["suspension"] =
        json!({"dispatching": true, "dispatchingOnClusters": {"clusterNames": ["m"]}});
    let refusal = validate(&request(Some(&new), Some(&old))).unwrap_err();
    assert_eq!(refusal.problems.len(), 1, "{refusal}");
}

#[test]
fn what_is_on_its_way_out_is_not_judged() {
    let mut old = policy(&json!({"schedulerName": "a"}));
    old["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    let mut new = old.clone();
    new["spec"] = json!({"schedulerName": "b", "preemption": "Always", "resourceSelectors": [{}]});
    assert_eq!(validate(&request(Some(&new), Some(&old))), Ok(()));
    assert!(mutate(&request(Some(&new), Some(&old))).is_empty());
}

#[test]
fn objects_of_any_shape_are_judged_without_a_panic() {
    let odd = [
        json!(null),
        json!(1),
        json!("x"),
        json!([]),
        json!([1]),
        json!({}),
        json!([{}, null, "x"]),
    ];
    for kind in KINDS {
        for path in [
            "metadata",
            "spec",
            "webhooks",
            "spec.placement",
            "spec.resourceSelectors",
            "spec.failover",
            "spec.placement.spreadConstraints",
            "spec.overrideRules",
            "spec.taints",
            "spec.resource",
            "spec.resourceFrom",
            "spec.targets",
            "metadata.annotations",
            "metadata.labels",
        ] {
            for value in &odd {
                let mut object = json!({"metadata": {}, "spec": {"placement": {}}});
                let (parent, last) = path.rsplit_once('.').unwrap_or(("", path));
                let pointer = parent
                    .split('.')
                    .filter(|step| !step.is_empty())
                    .map(|step| format!("/{step}"));
                let parent = object.pointer_mut(&pointer.collect::<String>()).unwrap();
                parent[last] = value.clone();
                for whole in [&object, value] {
                    let mut request = request(Some(whole), Some(&object));
                    (request.group, request.kind) = (kind.group, kind.kind);
                    let _ = (mutate(&request), validate(&request));
                    request.operation = Operation::Delete;
                    let _ = validate(&request);
                }
            }
        }
    }
}

#[test]
fn filling_in_twice_changes_nothing_more() {
    let object = policy(
        &json!({"resourceSelectors": [{"apiVersion": "multicluster.x-k8s.io/v1alpha1",
        "kind": "ServiceImport"}], "placement": {"spreadConstraints": [{}], "replicaScheduling": {}},
        "failover": {"application": {"decisionConditions": {}}}}),
    );
    let mut filled = object.clone();
    for rule in RULES {
        if let Act::Fill(fill) = rule.act {
            fill(&mut filled, &request(Some(&object), None));
        }
    }
    assert_eq!(mutate(&request(Some(&object), None)).len(), 6);
    assert!(mutate(&request(Some(&filled), None)).is_empty());
    assert_eq!(validate(&request(Some(&filled), None)), Ok(()));
}

#[test]
fn nothing_of_a_protected_secret_is_reported() {
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "data": {"k": "YzRuNHJ5"}, "metadata": {"name": "s",
        "labels": {"resourcetemplate.karmada.io/deletion-protected": "Always"}}});
    let mut request = request(None, Some(&secret));
    (request.group, request.kind) = ("", "Secret");
    let refusal = validate(&request).unwrap_err();
    assert_eq!((refusal.code, refusal.reason), (403, "Forbidden"));
    assert!(!format!("{refusal} {refusal:?} {request:?}").contains("YzRuNHJ5"));
}

#[test]
fn nothing_of_what_is_distributed_is_reported_but_its_kind_and_its_name() {
    let metadata =
        json!({"name": "s", "annotations": {"a": "c4n4ry"}, "labels": {"c4n4ry c4n4ry": "c4n4ry"}});
    let fine =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {"c4n4ry": "YzRuNHJ5"}});
    let with = |part: &str, value: Value| {
        let mut resource = fine.clone();
        resource[part] = value;
        resource
    };
    let distribution = |resource: &Value, targets: Value| {
        json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "ResourceDistribution", "metadata": {"name": "d"},
            "spec": {"resource": resource, "targets": targets}})
    };
    let old = distribution(&fine, json!({"allNamespaces": true}));
    for resource in [
        json!("c4n4ry"),
        json!(["c4n4ry"]),
        json!({"c4n4ry": "c4n4ry"}),
        with("apiVersion", json!("c4n4ry/v1")),
        with("apiVersion", json!({"c4n4ry": 1})),
        with("kind", json!("c4n4ry c4n4ry")),
        with("metadata", json!({"name": "c4n4ry c4n4ry"})),
        with("metadata", json!({"generateName": "c4n4ry"})),
        with("metadata", json!("c4n4ry")),
        with("items", json!(["c4n4ry"])),
        with("data", json!({"c4n4ry c4n4ry": "YzRuNHJ5"})),
        with("data", json!({"c4n4ry": "%c4n4ry%"})),
        with("data", json!({"c4n4ry": {"c4n4ry": "c4n4ry"}})),
        with("data", json!("c4n4ry")),
        with("stringData", json!(["c4n4ry"])),
        with("immutable", json!("c4n4ry")),
        with("type", json!("kubernetes.io/service-account-token")),
    ] {
        let new = distribution(&resource, json!({"namespaces": [{"name": "a"}]}));
        for old in [None, Some(&old)] {
            let mut request = request(Some(&new), old);
            (request.group, request.kind) = ("apps.kruise.io", "ResourceDistribution");
            let refusal = validate(&request).unwrap_err();
            let message = format!("{refusal} {refusal:?} {request:?}");
            assert!(
                !message.contains("c4n4ry") && !message.contains("YzRuNHJ5"),
                "{message}"
            );
        }
    }
}

#[test]
fn a_warning_is_short_enough_to_be_shown_whole() {
    let names: Vec<Value> = (0..1000)
        .map(|at| json!({"name": format!("karmada-es-{at:052}")}))
        .collect();
    let flat = json!({"a": "b"});
    for targets in [
        json!({"namespaces": names, "namespaceLabelSelector": flat, "workloadLabelSelector": flat}),
        json!({"namespaceSelector": flat}),
        json!({"excludedNamespaces": {"list": names}}),
        json!({"workloadLabelSelector": {}}),
        json!({}),
    ] {
        let object = json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "ResourceDistribution", "metadata": {"name": "d"},
            "spec": {"resource": {}, "targets": targets, "writePolicy": "overwrite"}});
        let mut request = request(Some(&object), None);
        (request.group, request.kind) = ("apps.kruise.io", "ResourceDistribution");
        let all = warnings(&request);
        assert!(all.len() > 1, "{all:?}");
        for warning in all {
            let text = warning.to_string();
            assert!(text.chars().count() <= warnings::LONGEST, "{text}");
        }
    }
}

#[test]
fn a_webhook_that_is_down_stops_what_is_new_and_nothing_that_is_there() {
    let address = Address::Service {
        namespace: "karmada-system".into(),
        name: "entourage-webhook".into(),
        port: 443,
    };
    let [mutating, validating] = configurations(&address, "Qg==");
    let hooks: Vec<&Value> = [&mutating, &validating]
        .iter()
        .flat_map(|configuration| items(&configuration["webhooks"]))
        .collect();
    let listed = |hook: &Value, part: &str| -> Vec<String> {
        let rules = items(&hook["rules"]).iter();
        let all = rules.flat_map(|rule| items(&rule[part]));
        all.map(|each| text(each).to_owned()).collect()
    };
    for hook in &hooks {
        let passes = text(&hook["failurePolicy"]) == "Ignore";
        let changes = listed(hook, "operations").contains(&"UPDATE".to_owned());
        // Adding or removing a finalizer is a change, whoever writes it.
        assert_eq!(passes, changes, "{hook}");
        // Objects that only the control plane writes wait for no webhook.
        assert!(
            !listed(hook, "resources")
                .iter()
                .any(|plural| plural.contains("bindings"))
        );
    }
    let names: Vec<&str> = hooks.iter().map(|hook| text(&hook["name"])).collect();
    assert_eq!(
        names,
        [
            "defaults",
            "changed-defaults",
            "policies",
            "changed-policies",
            "deletion-protection"
        ]
        .map(|name| format!("{name}.webhook.entourage.dev"))
    );
    let filled = [
        "propagationpolicies",
        "clusterpropagationpolicies",
        "overridepolicies",
    ];
    let judged = [
        "clusteroverridepolicies",
        "clustertaintpolicies",
        "federatedresourcequotas",
        "resourceinterpretercustomizations",
        "resourceinterpreterwebhookconfigurations",
        "resourceexploringwebhookconfigurations",
        "resourcedistributions",
        "clusters",
    ];
    for at in [0, 1] {
        assert_eq!(listed(hooks[at], "resources"), filled);
    }
    assert_eq!(listed(hooks[2], "resources"), [&filled[..], &judged].concat());
    let mut made_and_changed = [&filled[..], &judged].concat();
    let mut listed_in_changes = listed(hooks[3], "resources");
    made_and_changed.sort_unstable();
    listed_in_changes.sort();
    assert_eq!(listed_in_changes, made_and_changed);
    // A webhook that is down must not block all deletions.
    assert!(hooks[4]["objectSelector"]["matchLabels"].is_object());
    assert_eq!(hooks[0]["clientConfig"]["service"]["path"], "/mutate");
}

#[test]
fn a_webhook_that_hangs_lets_a_change_pass_before_the_control_plane_gives_it_up() {
    let [mutating, validating] = configurations(&Address::Url("https://h".into()), "");
    let waits = [mutating, validating].map(|configuration| {
        let hooks = items(&configuration["webhooks"]).iter();
        let changes = hooks.filter(|hook| hook["failurePolicy"] == "Ignore");
        changes
            .map(|hook| hook["timeoutSeconds"].as_i64().unwrap())
            .max()
            .unwrap()
    });
    // One after the other, and twice if the last finalizer is removed; the control plane waits five seconds for the hub.
    assert!(2 * waits.iter().sum::<i64>() <= 4, "{waits:?}");
}

/// Objects that the CRDs accept and these rules refuse: case, rule, and reason.
const STRICTER: &[(&str, &str, &str)] = &[
    (
        "groups by one label twice",
        "spread-once",
        "no planner could satisfy both; comparing labels with each other would cost a hub too much",
    ),
    (
        "taints of one key with different effects",
        "taint-no-execute",
        "whether a taint may evict is a choice of whoever runs the webhook",
    ),
];

#[test]
fn what_the_definitions_accept_passes_here_too_save_where_a_table_says_why_not() {
    let cases: Vec<Value> = serde_saphyr::from_str(include_str!("../../api/testdata/rules.yaml")).unwrap();
    let mut refused = Vec::new();
    for case in cases.iter().filter(|case| case["refused"].is_null()) {
        let (plural, group) = text(&case["crd"]).split_once('.').unwrap();
        let known = KINDS
            .iter()
            .find(|kind| kind.plural == plural && kind.group == group);
        let Some(kind) = known else { continue };
        let namespace = if kind.kind.starts_with("Cluster") { "" } else { "n" };
        let object = |spec: &Value| {
            json!({"apiVersion": format!("{group}/v1alpha1"), "kind": kind.kind,
                "metadata": {"name": "p", "namespace": namespace}, "spec": spec, "webhooks": case["webhooks"]})
        };
        let (new, old) = (object(&case["spec"]), case.get("was").map(object));
        let mut request = request(Some(&new), old.as_ref());
        (request.kind, request.group, request.namespace) = (kind.kind, kind.group, namespace);
        let filled = filled_by(RULES, &request);
        request.object = filled.as_ref();
        for rule in RULES {
            if validate_by(&[*rule], &request).is_err() {
                refused.push((text(&case["name"]), rule.name));
            }
        }
    }
    let stricter: Vec<_> = STRICTER.iter().map(|(case, rule, _)| (*case, *rule)).collect();
    assert_eq!(refused, stricter);
}

#[test]
fn an_address_says_what_its_certificate_must_be_for() {
    for (url, name, loopback) in [
        ("https://hooks.example.com:8443", "hooks.example.com", false),
        ("https://127.0.0.1:8443/", "127.0.0.1", true),
        ("https://[::1]:8443", "::1", true),
        ("https://localhost", "localhost", true),
    ] {
        let address = Address::Url(url.to_owned());
        assert_eq!(
            (address.names(), address.is_loopback()),
            (vec![name.to_owned()], loopback)
        );
    }
}

#[test]
fn keys_of_labels_are_those_of_kubernetes() {
    for key in ["a", "A_b.c-9", "example.com/name", "a.b/c"] {
        assert!(is_label_key(key), "{key}");
    }
    for key in ["", "-a", "a-", "a/b/c", "/a", "a/", "A.com/x", "a b", "é"] {
        assert!(!is_label_key(key), "{key}");
    }
    assert!(!is_label_key(&"a".repeat(64)));
}
