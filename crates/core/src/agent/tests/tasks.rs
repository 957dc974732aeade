//! The tasks of objects, against scripted answers.

use super::*;
use crate::{
    agent::{apply_task, removal_task},
    apply_task::{
        Answer, RequestError,
        walk::{Walk, no, object as answer, walk, walk_rendering},
    },
    plan::{Preconditions, RemovalMode},
};

fn owner() -> WorkOwner {
    WorkOwner {
        work: NamespacedName::new(NAMESPACE, "w"),
        cluster: "m1".into(),
    }
}

fn removal(id: ResourceId) -> RemovalObject {
    RemovalObject {
        ordinal: 0,
        id,
        hub: "".into(),
    }
}

fn applied(manifest: &Value, may_exist: bool, answers: Vec<Answer>) -> Walk<apply_task::Outcome> {
    let (owner, interpretation) = (owner(), Interpretation::default());
    let order = ObjectOrder {
        ordinal: 0,
        id: config_map(),
        may_exist,
        applied: None,
    };
    let object = apply_task::Manifest {
        owner: &owner,
        order: &order,
        interpretation: &interpretation,
        manifest,
    };
    let rendered = |live: Option<&Value>| Answer::Rendered(object.render(live));
    walk_rendering(apply_task::apply(&object), answers, rendered)
}

fn words(outcome: &apply_task::Outcome) -> String {
    match outcome {
        apply_task::Outcome::Applied(_, differed, created) => format!("applied {differed:?} {created}"),
        apply_task::Outcome::NotApplied(Applied::Failed { message, passes }) => {
            format!("{passes}: {message}")
        }
        apply_task::Outcome::NotApplied(Applied::Done { .. }) => unreachable!(),
    }
}

#[test]
fn the_order_of_requests() {
    let rendered = |data: &str| {
        let mut live = object(7);
        let annotations = &mut live["metadata"]["annotations"];
        annotations[annotation::MANAGED_LABELS] = json!(label::MANAGED);
        annotations[annotation::MANAGED_ANNOTATIONS] = json!(
            "resourcetemplate.karmada.io/managed-annotations,resourcetemplate.karmada.io/managed-labels,\
             work.karmada.io/name,work.karmada.io/namespace"
        );
        live["data"] = json!({ "k": data });
        live
    };
    let mut desired = manifest();
    desired["data"] = json!({"k": "1"});
    let mut foreign = rendered("1");
    foreign["metadata"]["labels"] = json!({});
    let mut leaving = rendered("1");
    leaving["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    for (sentence, may_exist, answers, requests, outcome) in [
        (
            "new",
            false,
            vec![answer(rendered("1"))],
            "POST",
            "applied None true",
        ),
        (
            "equal",
            true,
            vec![answer(rendered("1"))],
            "GET",
            "applied None false",
        ),
        (
            "drifted",
            true,
            vec![answer(rendered("2")), answer(rendered("1"))],
            "GET, PUT 7",
            "applied Some(\"data\") false",
        ),
        (
            "it is gone",
            true,
            vec![no(RequestError::Missing), answer(rendered("1"))],
            "GET, POST",
            "applied None true",
        ),
        (
            "no namespace",
            false,
            vec![no(RequestError::Missing)],
            "POST",
            "true: why",
        ),
        (
            "refused",
            false,
            vec![no(RequestError::Refused)],
            "POST",
            "false: why",
        ),
        (
            "another's",
            false,
            vec![no(RequestError::Exists), answer(foreign)],
            "POST, GET",
            "false: ConfigMap shop/a already exists on m1 and is not managed by Work karmada-es-m1/w: delete it there, or have \
             it taken over with conflictResolution Overwrite in its policy",
        ),
        (
            "it is being deleted",
            true,
            vec![answer(leaving)],
            "GET",
            "true: ConfigMap shop/a is being deleted on the cluster; it is created again when it is gone",
        ),
    ] {
        let walked = applied(&desired, may_exist, answers);
        assert_eq!(
            (&*walked.requests, &*words(&walked.outcome)),
            (requests, outcome),
            "{sentence}"
        );
    }
}

#[test]
fn an_object_of_another_hub_is_named_with_what_takes_it_over() {
    let mut desired = manifest();
    desired["metadata"]["labels"][label::HUB] = json!("new");
    for (hub, remedy) in [
        (Value::Null, "delete it there"),
        (
            json!("old"),
            "hub old manages it; if the hub of the Work replaces that one, `entourage adopt --former-hub old --member m1=FILE`",
        ),
    ] {
        let mut live = object(7);
        live["metadata"]["annotations"][annotation::WORK_NAME] = json!("other");
        live["metadata"]["labels"][label::HUB] = hub;
        let walked = applied(&desired, false, vec![no(RequestError::Exists), answer(live)]);
        let outcome = words(&walked.outcome);
        assert!(outcome.contains(remedy), "{outcome}");
    }
}

#[test]
fn an_object_is_deleted_only_if_it_names_this_very_work() {
    let mut other = object(7);
    other["metadata"]["annotations"][annotation::WORK_NAME] = json!("other");
    let mut unmanaged = object(7);
    unmanaged["metadata"]["labels"] = json!({});
    let mut leaving = object(7);
    leaving["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let mut other_hub = object(7);
    other_hub["metadata"]["labels"][label::HUB] = json!("h");
    for (sentence, preserves, response, expected) in [
        ("of another hub", false, answer(other_hub.clone()), "kept"),
        ("of another hub, preserved", true, answer(other_hub), "kept"),
        ("ours", false, answer(object(7)), "DELETE"),
        ("preserved", true, answer(object(7)), "Release"),
        ("of another Work", false, answer(other), "kept"),
        ("not managed", false, answer(unmanaged), "kept"),
        ("it leaves already", false, answer(leaving), "held"),
        ("it is gone", false, no(RequestError::Gone), "done"),
        ("no proof", false, no(RequestError::Missing), "failed"),
        ("a proxy", false, answer(json!({})), "failed"),
    ] {
        use removal_task::Decision;
        let words = match removal_task::decide(&owner(), &removal(config_map()), preserves, &response) {
            Decision::Remove(_, RemovalMode::Delete) => "DELETE",
            Decision::Remove(..) => "Release",
            Decision::End(Removed::Done(None)) => "done",
            Decision::End(Removed::Done(Some(_))) => "kept",
            Decision::End(Removed::Held) => "held",
            Decision::End(Removed::Failed(_)) => "failed",
        };
        assert_eq!(words, expected, "{sentence}");
    }
}

#[test]
fn a_namespace_is_released_and_never_deleted() {
    let id = ResourceId::new(Gvk::new("v1", "Namespace"), "", "shop");
    let mut namespace = object(7);
    for record in [
        json!(null),
        json!("karmada-es-m1/m1"),
        json!("karmada-es-m1/m1/o"),
    ] {
        namespace["metadata"]["annotations"][annotation::CREATED_BY] = record;
        let known = Preconditions {
            uid: "o".into(),
            resource_version: "7".into(),
        };
        let decided = removal_task::decide(&owner(), &removal(id.clone()), false, &answer(namespace.clone()));
        assert_eq!(
            decided,
            removal_task::Decision::Remove(known, RemovalMode::Release)
        );
    }
}

#[test]
fn what_is_released_has_no_ownership_metadata_left() {
    let known = Preconditions {
        uid: "o".into(),
        resource_version: "7".into(),
    };
    let owner = owner();
    let object_of_it = removal(config_map());
    let task = removal_task::remove(&owner, &object_of_it, &known, RemovalMode::Release);
    let walked = walk(task, [answer(object(7)), answer(object(8))]);
    assert_eq!(walked.requests, "GET, PUT 7");
    assert_eq!(walked.sent["metadata"]["labels"], json!({}));
    assert_eq!(walked.sent["metadata"]["annotations"], json!({}));
}
