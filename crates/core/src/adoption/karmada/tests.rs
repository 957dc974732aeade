//! Each decision on a copy of Karmada, and the patches that adopt it and give it back.

use super::*;
use crate::object::Gvk;

const HUB: &str = "new";

const KARMADA: &str = "karmada-id";

fn transfer() -> Transfer {
    Transfer {
        former: KARMADA.into(),
        hub: HUB.into(),
        cluster: "m1".into(),
        namespaces: std::collections::BTreeMap::new(),
    }
}

/// Work `web-1` of Deployment shop/web on m1 and m2, one of a user's, and one of a namespace.
fn karmada() -> Karmada {
    let mut karmada = Karmada {
        id: KARMADA.into(),
        ..Karmada::default()
    };
    for cluster in ["m1", "m2"] {
        karmada.add_work(
            &json!({"metadata": {"namespace": format!("karmada-es-{cluster}"), "name": "web-1",
            "labels": {label::WORK_ID: format!("w-{cluster}"), label::RESOURCE_BINDING_ID: "b"},
            "annotations": {annotation::RESOURCE_BINDING_NAMESPACE: "shop",
                annotation::RESOURCE_BINDING_NAME: "web-deployment"}},
            "spec": {"workload": {"manifests": [{"apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": {"namespace": "shop", "name": "web"}, "spec": {"replicas": 2}}]}}}),
        );
    }
    karmada.add_work(&json!({"metadata": {"namespace": "karmada-es-m1", "name": "own",
        "labels": {label::WORK_ID: "w-own"}},
        "spec": {"workload": {"manifests": [{"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"namespace": "shop", "name": "own"}}]}}}));
    karmada.add_binding(
        &json!({"metadata": {"namespace": "shop", "name": "web-deployment",
        "labels": {label::RESOURCE_BINDING_ID: "b"}}}),
    );
    karmada.add_cluster(&json!({"metadata": {"name": "m1"}, "spec": {"id": "uid-m1", "syncMode": "Pull"}}));
    karmada
}

/// This hub, which has the Deployment and schedules it to m1.
fn state() -> HubState {
    let mut state = HubState::default();
    state.add_binding(&json!({
        "metadata": {"namespace": "shop", "name": "web-deployment", "generation": 1,
            "ownerReferences": [{"controller": true, "uid": "uid-web"}]},
        "spec": {"placement": {}, "clusters": [{"name": "m1"}],
            "resource": {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": "web"}},
        "status": {"schedulerObservedGeneration": 1},
    }));
    state.templates.insert(web(), "uid-web".into());
    state
}

fn web() -> ResourceId {
    ResourceId::new(Gvk::new("apps/v1", "Deployment"), "shop", "web")
}

/// The copy of the Deployment as Karmada leaves it on m1.
fn copy() -> Value {
    json!({"uid": "u", "resourceVersion": "7",
        "labels": {"app": "web", label::MANAGED: "true", label::WORK_ID: "w-m1", label::RESOURCE_BINDING_ID: "b"},
        "annotations": {annotation::WORK_NAMESPACE: "karmada-es-m1", annotation::WORK_NAME: "web-1",
            annotation::RESOURCE_BINDING_NAMESPACE: "shop", annotation::RESOURCE_BINDING_NAME: "web-deployment",
            annotation::MANAGED_LABELS: format!("app,{},{},{}", label::MANAGED, label::RESOURCE_BINDING_ID, label::WORK_ID)}})
}

fn with(change: impl FnOnce(&mut Value)) -> Meta {
    let mut metadata = copy();
    change(&mut metadata);
    Meta::of(&json!({"metadata": metadata}))
}

/// The metadata after a merge patch.
fn patched(before: &Value, patch: &Value) -> Value {
    let mut after = before.clone();
    for field in ["labels", "annotations"] {
        for (key, value) in patch["metadata"][field].as_object().into_iter().flatten() {
            if value.is_null() {
                after[field].as_object_mut().map(|all| all.remove(key));
            } else {
                after[field][key] = value.clone();
            }
        }
    }
    after
}

#[test]
fn a_copy_is_karmadas_by_its_ids_and_not_by_its_names() {
    use Decision::{Adopt, Deleting, NoTemplate, NoWork, OtherCluster, OtherHub, OtherKarmada, Overwritten};
    let label_of =
        |key: &'static str, value: &'static str| with(move |meta| meta["labels"][key] = json!(value));
    let cases = [
        ("as Karmada leaves it", with(|_| {}), Some(Adopt)),
        ("of nobody", with(|meta| meta["labels"] = json!({})), None),
        (
            "of this hub, without a record",
            label_of(label::HUB, HUB),
            Some(Overwritten),
        ),
        (
            "of another hub",
            label_of(label::HUB, "x"),
            Some(OtherHub("x".into())),
        ),
        (
            "being deleted",
            with(|meta| meta["deletionTimestamp"] = json!("2026-11-26T00:00:00Z")),
            Some(Deleting),
        ),
        (
            "restored from m2",
            with(|meta| meta["annotations"][annotation::WORK_NAMESPACE] = json!("karmada-es-m2")),
            Some(OtherCluster("m2".into())),
        ),
        (
            "another Work",
            label_of(label::WORK_ID, "w-former"),
            Some(OtherKarmada),
        ),
        (
            "another binding",
            label_of(label::RESOURCE_BINDING_ID, "b-former"),
            Some(OtherKarmada),
        ),
        (
            "names another binding",
            with(|meta| meta["annotations"][annotation::RESOURCE_BINDING_NAME] = json!("web-x")),
            Some(OtherKarmada),
        ),
        (
            "without ids",
            with(|meta| meta["labels"] = json!({label::MANAGED: "true"})),
            Some(OtherKarmada),
        ),
        (
            "orphaned",
            with(|meta| meta["annotations"][annotation::WORK_NAME] = json!("gone-1")),
            Some(NoWork),
        ),
    ];
    for (sentence, live, expected) in cases {
        let decision = decide(&state(), &karmada(), &transfer(), &web(), &live);
        assert_eq!(decision, expected, "{sentence}");
    }
    let missing = decide(
        &HubState::default(),
        &karmada(),
        &transfer(),
        &web(),
        &with(|_| {}),
    );
    assert_eq!(missing, Some(NoTemplate));
    // A duplicate under another name has all the marks, and the Work does not contain it.
    let duplicate = ResourceId::new(Gvk::new("apps/v1", "Deployment"), "shop", "web2");
    let decision = decide(&state(), &karmada(), &transfer(), &duplicate, &with(|_| {}));
    assert_eq!(decision, Some(NoWork));
    let mut rebuilt = karmada();
    rebuilt.add_binding(
        &json!({"metadata": {"namespace": "shop", "name": "web-deployment",
        "labels": {label::RESOURCE_BINDING_ID: "b-new"}}}),
    );
    let decision = decide(&state(), &rebuilt, &transfer(), &web(), &with(|_| {}));
    assert_eq!(decision, Some(OtherKarmada), "a binding that was made again");
}

#[test]
fn what_has_no_binding_is_left_alone() {
    let own = ResourceId::new(Gvk::new("v1", "ConfigMap"), "shop", "own");
    let live = Meta::of(
        &json!({"metadata": {"labels": {label::MANAGED: "true", label::WORK_ID: "w-own"},
        "annotations": {annotation::WORK_NAMESPACE: "karmada-es-m1", annotation::WORK_NAME: "own"}}}),
    );
    let decision = decide(&state(), &karmada(), &transfer(), &own, &live);
    assert_eq!(decision, Some(Decision::NotOfBinding));
    let namespace = ResourceId::new(Gvk::new("v1", "Namespace"), "", "shop");
    assert_eq!(decide(&state(), &karmada(), &transfer(), &namespace, &live), None);
}

#[test]
fn adoption_changes_one_label_and_records_what_gives_it_back() {
    let karmada = karmada();
    let patch = patch(&karmada, &transfer(), &with(|_| {}));
    let expected = json!({"metadata": {"uid": "u", "resourceVersion": "7", "labels": {label::HUB: HUB},
        "annotations": {annotation::ADOPTED_FROM: "karmada-id/w-m1/b"}}});
    assert_eq!(patch, expected);

    let adopted = patched(&copy(), &patch);
    let live = Meta::of(&json!({"metadata": adopted}));
    assert_eq!(
        decide(&state(), &karmada, &transfer(), &web(), &live),
        Some(Decision::Adopted)
    );
    // The controllers set the id of their own binding, and no Work's.
    let mut written = adopted;
    written["labels"][label::RESOURCE_BINDING_ID] = json!("b-ours");
    written["labels"]
        .as_object_mut()
        .map(|all| all.remove(label::WORK_ID));
    let live = Meta::of(&json!({"metadata": written}));
    assert_eq!(
        decide_return(&karmada, &transfer(), &web(), &live),
        Some(Decision::Return)
    );
    let returned = patched(&written, &return_patch(&live));
    assert_eq!(returned, copy(), "as it was");
    let live = Meta::of(&json!({"metadata": returned}));
    assert_eq!(decide_return(&karmada, &transfer(), &web(), &live), None);
    assert_eq!(
        decide(&state(), &karmada, &transfer(), &web(), &live),
        Some(Decision::Adopt)
    );
}

#[test]
fn only_what_karmada_still_has_is_given_back() {
    use Decision::{Deleting, NoWork, OtherCluster, OtherKarmada, Overwritten, Return};
    let adopted = |record: &'static str| {
        move |meta: &mut Value| {
            meta["labels"][label::HUB] = json!(HUB);
            meta["annotations"][annotation::ADOPTED_FROM] = json!(record);
        }
    };
    let ours = "karmada-id/w-m1/b";
    for (sentence, live, expected) in [
        ("adopted", with(adopted(ours)), Return),
        ("of a former Karmada", with(adopted("other/w-m1/b")), OtherKarmada),
        (
            "of a Work that was made again",
            with(adopted("karmada-id/w-x/b")),
            NoWork,
        ),
        (
            "in a Work of Karmada, without a record",
            with(|meta| meta["labels"][label::HUB] = json!(HUB)),
            Overwritten,
        ),
        ("a record without ids", with(adopted("karmada-id//")), Overwritten),
        (
            "being deleted",
            with(|meta| {
                adopted(ours)(meta);
                meta["deletionTimestamp"] = json!("2026-11-26T00:00:00Z");
            }),
            Deleting,
        ),
        (
            "copied from m2",
            with(|meta| {
                adopted(ours)(meta);
                meta["annotations"][annotation::WORK_NAMESPACE] = json!("karmada-es-m2");
            }),
            OtherCluster("m2".into()),
        ),
    ] {
        let decision = decide_return(&karmada(), &transfer(), &web(), &live);
        assert_eq!(decision, Some(expected), "{sentence}");
    }
}

#[test]
fn what_this_hub_made_is_told_from_what_it_took_over_without_a_record() {
    let live = with(|meta| meta["labels"][label::HUB] = json!(HUB));
    let mut elsewhere = karmada();
    elsewhere.clear_works();
    assert_eq!(decide(&state(), &elsewhere, &transfer(), &web(), &live), None);
    let decision = decide_return(&elsewhere, &transfer(), &web(), &live);
    assert_eq!(decision, Some(Decision::NotAdopted));
    // A namespace that a policy placed on both sides.
    let namespace = ResourceId::new(Gvk::new("v1", "Namespace"), "", "shop");
    elsewhere.add_work(&json!({"metadata": {"namespace": "karmada-es-m1", "name": "shop-1"},
        "spec": {"workload": {"manifests": [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}]}}}));
    let decision = decide(&state(), &elsewhere, &transfer(), &namespace, &live);
    assert_eq!(decision, Some(Decision::Overwritten));
    let mut other = transfer();
    other.cluster = "m2".into();
    assert_eq!(decide(&state(), &elsewhere, &other, &namespace, &live), None);
}

#[test]
fn what_karmada_would_delete_at_its_start_is_not_given_back() {
    let binding = |id: &str, deleting: bool| {
        let mut binding = json!({"metadata": {"namespace": "shop", "name": "web-deployment",
            "labels": {label::RESOURCE_BINDING_ID: id}}});
        if deleting {
            binding["metadata"]["deletionTimestamp"] = json!("2026-11-26T00:00:00Z");
        }
        binding
    };
    let name = || NamespacedName::new("shop", "web-deployment");
    let adopted = |record: &'static str| {
        with(move |meta| {
            meta["labels"][label::HUB] = json!(HUB);
            meta["annotations"][annotation::ADOPTED_FROM] = json!(record);
        })
    };
    for (binding, record, expected) in [
        (
            binding("b", true),
            "karmada-id/w-m1/b",
            Hazard::BindingDeleted(name()),
        ),
        (
            binding("b2", false),
            "karmada-id/w-m1/b",
            Hazard::OtherBinding(name()),
        ),
        (
            binding("b", false),
            "karmada-id/w-m1/b0",
            Hazard::OtherBinding(name()),
        ),
    ] {
        let mut karmada = karmada();
        karmada.add_binding(&binding);
        let decision = decide_return(&karmada, &transfer(), &web(), &adopted(record));
        assert_eq!(decision, Some(Decision::Hazardous(expected)));
    }
    let mut confirmed = karmada();
    confirmed.bindings.clear();
    let decision = decide_return(&confirmed, &transfer(), &web(), &adopted("karmada-id/w-m1/b"));
    assert_eq!(decision, Some(Decision::Hazardous(Hazard::NoBinding(name()))));
}

#[test]
fn nothing_of_a_manifest_is_kept() {
    let mut karmada = Karmada::default();
    karmada.add_work(
        &json!({"metadata": {"namespace": "karmada-es-m1", "name": "login-1"},
        "spec": {"workload": {"manifests": [{"apiVersion": "v1", "kind": "Secret",
            "metadata": {"namespace": "shop", "name": "login"}, "data": {"password": "canary"}}]}}}),
    );
    assert!(!format!("{karmada:?}").contains("canary"));
    let kinds: Vec<String> = karmada.kinds().iter().map(ToString::to_string).collect();
    assert_eq!(kinds, ["Secret"]);
    assert_eq!(
        karmada.clusters_of_works().into_iter().collect::<Vec<_>>(),
        ["m1"]
    );
    let clusters = self::karmada().clusters;
    let pulled = KarmadaCluster {
        id: "uid-m1".into(),
        is_pulled: true,
        is_deleting: false,
    };
    assert_eq!(clusters.get("m1"), Some(&pulled));
}
