//! Properties for any JSON: nothing panics, and the operations are consistent.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{NATIVE, common_prune, difference, differs, not_propagatable, references::references};

/// Field names that the operations read, so that generated JSON reaches them.
const FIELDS: &[&str] = &[
    "metadata",
    "labels",
    "annotations",
    "name",
    "generation",
    "spec",
    "template",
    "containers",
    "initContainers",
    "env",
    "envFrom",
    "valueFrom",
    "configMapRef",
    "secretKeyRef",
    "volumes",
    "projected",
    "sources",
    "secret",
    "secretName",
    "optional",
    "replicas",
    "parallelism",
    "completions",
    "completionMode",
    "manualSelector",
    "selector",
    "matchLabels",
    "controller-uid",
    "status",
    "phase",
    "conditions",
    "type",
    "observedGeneration",
    "containerStatuses",
    "state",
    "secrets",
    "imagePullSecrets",
    "resources",
    "requests",
    "storage",
    "image",
    "tolerations",
    "volumeMounts",
    "serviceAccountName",
    "serviceAccount",
    "serviceAccountToken",
    "volumeClaimTemplates",
    "startTime",
    "completionTime",
    "data",
    "volumeName",
    "activeDeadlineSeconds",
    "updateStrategy",
    "rollingUpdate",
    "partition",
    "active",
    "succeeded",
    "failed",
];

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop::sample::select(vec![
            "",
            "a",
            "True",
            "Complete",
            "Failed",
            "Bound",
            "1Gi",
            "kube-api-access-x",
            "ü"
        ])
        .prop_map(Value::from),
        ".{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(8, 128, 6, |inner| {
        prop_oneof![
            1 => prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            3 => prop::collection::btree_map(prop::sample::select(FIELDS), inner, 0..6)
                .prop_map(|map: BTreeMap<&str, Value>| json!(map)),
        ]
    })
}

/// An object with the correct outline, so that the generated parts are where the operations read.
fn any_object() -> impl Strategy<Value = Value> {
    let outline =
        (any_json(), any_json(), any_json(), any_json()).prop_map(|(metadata, pod, spec, status)| {
            let mut spec = if spec.is_object() { spec } else { json!({}) };
            spec["template"] = json!({"metadata": metadata, "spec": pod});
            json!({"metadata": metadata, "spec": spec, "status": status, "data": status})
        });
    prop_oneof![any_json(), outline]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn nothing_panics_whatever_the_json(template in any_object(), live in any_object(), item in any_json()) {
        let _ = not_propagatable(&template);
        for kind in NATIVE {
            let sorted = references(*kind, "ns", &template);
            prop_assert!(sorted.windows(2).all(|pair| pair[0].id < pair[1].id));
            prop_assert!(sorted.iter().all(|each| !each.id.name.is_empty()));

            let mut desired = template.clone();
            common_prune(&mut desired);
            kind.prune(&mut desired);
            let pruned = desired.clone();
            common_prune(&mut desired);
            kind.prune(&mut desired);
            prop_assert_eq!(&pruned, &desired, "pruning twice prunes no more");

            let _ = kind.replicas(&desired);
            kind.revise_replicas(&mut desired, 3);
            kind.retain(&mut desired, &live);
            let retained = desired.clone();
            kind.retain(&mut desired, &live);
            prop_assert_eq!(&retained, &desired, "retaining twice retains no more");
            if !kind.needs_live(&pruned) {
                let mut desired = pruned.clone();
                kind.retain(&mut desired, &live);
                prop_assert_eq!(&pruned, &desired, "a kind that needs no live copy retains nothing");
            }

            let _ = kind.health(&live);
            let reflected = kind.reflect(&live);
            let items = [("a", reflected.as_ref()), ("b", Some(&item)), ("c", None)];
            for items in [&items[..], &items[..1], &items[..0]] {
                if let Some(status) = kind.aggregate(&template, items)
                    && template.is_object()
                {
                    let mut next = template.clone();
                    next["status"] = status;
                    prop_assert_eq!(kind.aggregate(&next, items), None, "{}: aggregating twice changes no more", kind.gvk().kind);
                }
            }
        }
    }

    #[test]
    fn comparing_is_symmetric_and_an_object_equals_itself(mut left in any_object(), mut right in any_object()) {
        for kind in NATIVE {
            let gvk = kind.gvk();
            for object in [&mut left, &mut right] {
                if object.is_object() {
                    let group = if gvk.group.is_empty() { String::new() } else { format!("{}/", gvk.group) };
                    object["apiVersion"] = json!(format!("{group}{}", gvk.version));
                    object["kind"] = json!(gvk.kind);
                }
            }
            prop_assert_eq!(difference(&left, &left), None);
            if left.is_object() && right.is_object() {
                prop_assert_eq!(differs(&left, &right), differs(&right, &left));
            }
        }
    }
}
