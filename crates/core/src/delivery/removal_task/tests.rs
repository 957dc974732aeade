//! Every row of the decision: the requests that follow the answers, and the outcome.

use entourage_api::keys::annotation;
use serde_json::{Value, json};

use super::*;
use crate::apply_task::walk::{Walk, no, object, walk};

const CREATOR: (&str, &str) = ("hub", "m1");

fn live(version: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {
        "name": "a", "uid": "copy", "resourceVersion": version,
        "labels": {label::HUB: "hub"},
        "annotations": {annotation::WORK_NAMESPACE: "karmada-es-m1", annotation::CREATED_BY: "hub/m1"}}})
}

fn copy(version: &str) -> Answer {
    object(live(version))
}

/// The copy, which is being deleted.
fn leaving(finalizers: &[&str]) -> Answer {
    let mut leaving = live("8");
    leaving["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    leaving["metadata"]["finalizers"] = json!(finalizers);
    object(leaving)
}

/// The copy without ownership metadata.
fn unmarked() -> Answer {
    object(json!({"metadata": {"name": "a", "uid": "copy", "resourceVersion": "9"}}))
}

/// Another object of the same name.
fn theirs() -> Answer {
    object(json!({"metadata": {"name": "a", "uid": "x", "resourceVersion": "3"}}))
}

fn status() -> Answer {
    object(json!({"kind": "Status", "status": "Success"}))
}

/// The requests, the version that was observed on the way, and the outcome.
fn reported(walk: Walk<Outcome>) -> String {
    let seen = walk.seen.iter().map(|version| format!("saw {version}, "));
    let outcome = match walk.outcome {
        Outcome::Removed(removed) => format!("{removed:?}"),
        outcome => format!("{outcome:?}"),
    };
    format!("{}: {}{outcome}", walk.requests, seen.collect::<String>())
}

/// One row: the sentence, the answers, and what is expected as `requests: outcome`.
type Row = (&'static str, Vec<Answer>, &'static str);

fn check(mode: RemovalMode, rows: Vec<Row>) {
    let known = known();
    for (sentence, answers, expected) in rows {
        let actual = reported(walk(remove(CREATOR, &known, mode), answers));
        assert_eq!(actual, expected, "{sentence}");
    }
}

fn known() -> Preconditions {
    Preconditions {
        uid: "copy".into(),
        resource_version: "7".into(),
    }
}

#[test]
fn a_deletion_is_over_when_its_answer_says_so() {
    check(
        RemovalMode::Delete,
        vec![
            ("a Status", vec![status()], "DELETE 7: Gone"),
            ("the last state of the object", vec![copy("7")], "DELETE 7: Gone"),
            ("nothing keeps it", vec![leaving(&[])], "DELETE 7: Gone"),
            (
                "a finalizer keeps it",
                vec![leaving(&["x/y"])],
                "DELETE 7: saw 8, Accepted",
            ),
            ("it was gone", vec![no(RequestError::Gone)], "DELETE 7: Gone"),
            (
                "an empty response of a proxy",
                vec![object(Value::Null)],
                "DELETE 7: Failed(\"the response is not an object\")",
            ),
            (
                "refused",
                vec![no(RequestError::Refused)],
                "DELETE 7: Rejected(\"why\")",
            ),
            (
                "an error",
                vec![no(RequestError::Other)],
                "DELETE 7: Failed(\"why\")",
            ),
            (
                "silence",
                vec![no(RequestError::NoResponse)],
                "DELETE 7: Unreachable(\"why\")",
            ),
            (
                "no name is taken",
                vec![no(RequestError::Exists)],
                "DELETE 7: Failed(\"why\")",
            ),
            (
                "abandoned",
                vec![no(RequestError::Abandoned)],
                "DELETE 7: Abandoned",
            ),
        ],
    );
}

#[test]
fn after_a_conflict_a_deletion_reads_and_leaves_another_object_alone() {
    let after = |answer: Answer| vec![no(RequestError::Changed), answer];
    check(
        RemovalMode::Delete,
        vec![
            (
                "it changed",
                after(copy("9")),
                "DELETE 7, GET metadata: saw 9, Changed",
            ),
            (
                "the conflict is about this very version",
                after(copy("7")),
                "DELETE 7, GET metadata: saw 7, Rejected(\"why\")",
            ),
            (
                "it is another object",
                after(theirs()),
                "DELETE 7, GET metadata: Gone",
            ),
            (
                "an empty response",
                after(object(json!({}))),
                "DELETE 7, GET metadata: Failed(\"the response is not an object\")",
            ),
            (
                "it is gone",
                after(no(RequestError::Gone)),
                "DELETE 7, GET metadata: Gone",
            ),
            (
                "refused",
                after(no(RequestError::Refused)),
                "DELETE 7, GET metadata: Rejected(\"why\")",
            ),
            (
                "silence",
                after(no(RequestError::NoResponse)),
                "DELETE 7, GET metadata: Unreachable(\"why\")",
            ),
            (
                "abandoned",
                after(no(RequestError::Abandoned)),
                "DELETE 7, GET metadata: Unreachable(\"why\")",
            ),
        ],
    );
}

#[test]
fn a_release_reads_the_copy_and_writes_it_without_ownership_metadata() {
    let read = |answer: Answer| vec![copy("9"), answer];
    check(
        RemovalMode::Release,
        vec![
            ("released", read(unmarked()), "GET, PUT 9: Released"),
            ("without ownership metadata", vec![unmarked()], "GET: Gone"),
            ("another object", vec![theirs()], "GET: Gone"),
            (
                "an empty response",
                vec![object(json!({}))],
                "GET: Failed(\"the response is not an object\")",
            ),
            ("gone when it is read", vec![no(RequestError::Gone)], "GET: Gone"),
            (
                "gone when it is written",
                read(no(RequestError::Gone)),
                "GET, PUT 9: Gone",
            ),
            (
                "a read is refused",
                vec![no(RequestError::Refused)],
                "GET: Rejected(\"why\")",
            ),
            (
                "refused",
                read(no(RequestError::Refused)),
                "GET, PUT 9: Rejected(\"why\")",
            ),
            (
                "silence",
                read(no(RequestError::NoResponse)),
                "GET, PUT 9: Unreachable(\"why\")",
            ),
            (
                "a read is abandoned",
                vec![no(RequestError::Abandoned)],
                "GET: Unreachable(\"why\")",
            ),
            (
                "abandoned",
                read(no(RequestError::Abandoned)),
                "GET, PUT 9: Abandoned",
            ),
        ],
    );
}

#[test]
fn a_copy_that_keeps_changing_is_read_three_times_for_a_release() {
    let once = |version: &str| [copy(version), no(RequestError::Changed)];
    check(
        RemovalMode::Release,
        vec![
            (
                "it settles",
                [once("9"), [copy("10"), unmarked()]]
                    .into_iter()
                    .flatten()
                    .collect(),
                "GET, PUT 9, GET, PUT 10: Released",
            ),
            (
                "it did not change, and the conflict has another cause",
                [once("9"), once("9"), once("9")].into_iter().flatten().collect(),
                "GET, PUT 9, GET, PUT 9, GET, PUT 9: Rejected(\"why\")",
            ),
            (
                "it does not",
                [once("9"), once("10"), once("11")]
                    .into_iter()
                    .flatten()
                    .collect(),
                "GET, PUT 9, GET, PUT 10, GET, PUT 11: Failed(\"the copy keeps changing on the member\")",
            ),
        ],
    );
}

#[test]
fn a_handover_keeps_the_record_of_the_creator_and_a_release_does_not() {
    for (mode, creator) in [
        (RemovalMode::Release, Value::Null),
        (RemovalMode::HandOver, json!("hub/m1")),
    ] {
        let known = known();
        let walk = walk(remove(CREATOR, &known, mode), [copy("9"), unmarked()]);
        let meta = &walk.sent["metadata"];
        assert_eq!(meta["annotations"][annotation::CREATED_BY], creator);
        assert_eq!(meta["labels"][label::HUB], Value::Null);
    }
}

#[test]
fn a_404_that_proves_nothing_is_no_proof_of_absence() {
    check(
        RemovalMode::Delete,
        vec![
            (
                "on a deletion",
                vec![no(RequestError::Missing)],
                "DELETE 7: Failed(\"why\")",
            ),
            (
                "after a conflict",
                vec![no(RequestError::Changed), no(RequestError::Missing)],
                "DELETE 7, GET metadata: Failed(\"why\")",
            ),
        ],
    );
    check(
        RemovalMode::Release,
        vec![
            (
                "on a read",
                vec![no(RequestError::Missing)],
                "GET: Failed(\"why\")",
            ),
            (
                "on a write",
                vec![copy("9"), no(RequestError::Missing)],
                "GET, PUT 9: Failed(\"why\")",
            ),
        ],
    );
}

#[test]
fn a_write_with_an_unknown_outcome_is_confirmed_by_a_read() {
    let mut of_another_hub = live("9");
    of_another_hub["metadata"]["labels"][label::HUB] = json!("other");
    let rows = [
        ("it exists", copy("9"), "exists"),
        ("another hub manages it", object(of_another_hub), "Gone"),
        ("nobody does", theirs(), "Gone"),
        (
            "an empty response",
            object(Value::Null),
            "Failed(\"the response is not an object\")",
        ),
        ("gone", no(RequestError::Gone), "Gone"),
        ("an unproven 404", no(RequestError::Missing), "Failed(\"why\")"),
        ("silence", no(RequestError::NoResponse), "Unreachable(\"why\")"),
        ("refused", no(RequestError::Refused), "Rejected(\"why\")"),
        ("abandoned", no(RequestError::Abandoned), "Unreachable(\"why\")"),
    ];
    for (sentence, answer, expected) in rows {
        let actual = match confirmed("hub", answer) {
            Ok(_) => "exists".into(),
            Err(removed) => format!("{removed:?}"),
        };
        assert_eq!(actual, expected, "{sentence}");
    }
}
