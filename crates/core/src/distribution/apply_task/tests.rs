//! Every row of the decision: the requests that follow the answers, and the outcome.

use serde_json::json;

use super::*;
use crate::{
    apply_task::{
        Answer,
        walk::{no, object, walk},
    },
    distribution::render::Mark,
    object::{Gvk, ResourceId},
};

fn distribution() -> Value {
    json!({
        "apiVersion": "apps.kruise.io/v1alpha1", "kind": "ResourceDistribution",
        "metadata": {"name": "d", "uid": "rd", "resourceVersion": "5", "generation": 2},
        "spec": {
            "resource": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}},
            "targets": {"allNamespaces": true},
        },
    })
}

/// An order to create the copy.
fn order() -> Order {
    Order {
        distribution: "d".into(),
        place: Place {
            cluster: None,
            namespace: "ns".into(),
        },
        id: ResourceId::new(Gvk::new("v1", "ConfigMap"), "ns", "a"),
        render_spec: DistributionRenderSpec {
            distribution: "d".into(),
            uid: "rd".into(),
            namespace: "ns".into(),
            mark: Mark::Owner,
            take_over: false,
        },
        source: None,
        live: None,
        read_first: false,
        may_recreate: true,
        may_write: true,
    }
}

fn preconditions() -> Preconditions {
    Preconditions {
        uid: "copy".into(),
        resource_version: "7".into(),
    }
}

/// An order for a copy that is known to exist in version 7.
fn known(read_first: bool) -> Order {
    Order {
        live: Some(preconditions()),
        read_first,
        ..order()
    }
}

/// An order to compare a copy, and not to write it.
fn compared(live: Option<Preconditions>) -> Order {
    Order {
        live,
        may_write: false,
        ..order()
    }
}

fn live(version: &str) -> Value {
    let rendered = render::render(&order().render_spec, &distribution()["spec"]["resource"], None);
    let mut copy = rendered.object().clone();
    copy["metadata"]["uid"] = json!("copy");
    copy["metadata"]["resourceVersion"] = json!(version);
    copy
}

fn equal(version: &str) -> Answer {
    object(live(version))
}

/// The copy, whose data a user edited.
fn drifted(version: &str) -> Answer {
    let mut copy = live(version);
    copy["data"]["k"] = json!("drift");
    object(copy)
}

/// The copy with other data that no update can change.
fn immutable(version: &str) -> Answer {
    let mut copy = live(version);
    copy["data"]["k"] = json!("drift");
    copy["immutable"] = json!(true);
    object(copy)
}

/// The copy, which is being deleted and kept by a finalizer.
fn leaving(version: &str) -> Answer {
    let mut copy = live(version);
    copy["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    copy["metadata"]["finalizers"] = json!(["x/y"]);
    object(copy)
}

/// An object that no distribution owns.
fn theirs() -> Answer {
    object(
        json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"k": "v"},
        "metadata": {"namespace": "ns", "name": "a", "uid": "theirs", "resourceVersion": "3"}}),
    )
}

fn status() -> Answer {
    object(json!({"kind": "Status", "status": "Success"}))
}

fn reported(wrote: Wrote) -> String {
    match wrote {
        Wrote::Applied {
            part,
            differed,
            created,
            ..
        } => format!(
            "applied {}{}{}",
            part.resource_version,
            if created { ", created" } else { "" },
            differed
                .map(|path| format!(", differed at {path}"))
                .unwrap_or_default()
        ),
        Wrote::Unequal { .. } => "unequal".into(),
        Wrote::Gone { uid } => format!("{uid} is gone"),
        Wrote::Failed { step, message, .. } => format!("{step:?} failed: {message}"),
        Wrote::Abandoned => "abandoned".into(),
    }
}

/// The requests, the version that was observed on the way, and the outcome.
fn walked<A: Applied<Outcome = Wrote>>(begun: (ApplyTask<A>, Next<Wrote>), answers: Vec<Answer>) -> String {
    let walk = walk(begun, answers);
    let seen = walk.seen.iter().map(|version| format!("saw {version}, "));
    format!(
        "{}: {}{}",
        walk.requests,
        seen.collect::<String>(),
        reported(walk.outcome)
    )
}

fn check(rows: Vec<(&'static str, Order, Vec<Answer>, &'static str)>) {
    let distribution = distribution();
    for (sentence, order, answers, expected) in rows {
        let Ok(content) = content(&order, &distribution).1 else {
            panic!("{sentence}: no content");
        };
        let actual = walked(apply(&order, content), answers);
        assert_eq!(actual, expected, "{sentence}");
    }
}

fn check_removal(mode: RemovalMode, rows: Vec<(&'static str, Vec<Answer>, &'static str)>) {
    let (render_spec, preconditions) = (order().render_spec, preconditions());
    for (sentence, answers, expected) in rows {
        let actual = walked(withdraw(&render_spec, &preconditions, mode), answers);
        assert_eq!(actual, expected, "{sentence}");
    }
}

#[test]
fn a_copy_costs_one_request_unless_it_has_metadata_of_other_writers() {
    check(vec![
        ("created", order(), vec![equal("1")], "POST: applied 1, created"),
        ("replaced", known(false), vec![equal("8")], "PUT 7: applied 8"),
        ("read and equal", known(true), vec![equal("7")], "GET: applied 7"),
        (
            "read and different",
            known(true),
            vec![drifted("8"), equal("9")],
            "GET, PUT 8: applied 9, differed at data",
        ),
    ]);
}

#[test]
fn a_copy_that_exists_changed_is_refused_or_gone_is_compared_or_created() {
    check(vec![
        (
            "it exists",
            order(),
            vec![no(RequestError::Exists), equal("3")],
            "POST, GET: applied 3",
        ),
        (
            "it changed",
            known(false),
            vec![
                no(RequestError::Changed),
                drifted("8"),
                no(RequestError::Changed),
                equal("9"),
            ],
            "PUT 7, GET, PUT 8, GET: applied 9",
        ),
        (
            "an update is refused",
            known(false),
            vec![no(RequestError::Refused), equal("8")],
            "PUT 7, GET: applied 8",
        ),
        (
            "it is gone",
            known(false),
            vec![no(RequestError::Gone), equal("1")],
            "PUT 7, POST: applied 1, created",
        ),
        (
            "it is gone when it is read",
            known(true),
            vec![no(RequestError::Gone), equal("1")],
            "GET, POST: applied 1, created",
        ),
        (
            "a 404 that names no object proves nothing",
            known(true),
            vec![no(RequestError::Missing)],
            "GET: Get failed: why",
        ),
        (
            "it is being deleted",
            known(true),
            vec![leaving("8")],
            "GET: saw 8, abandoned",
        ),
        (
            "it keeps changing",
            known(true),
            ["8", "9", "10", "11"]
                .map(|version| [drifted(version), no(RequestError::Changed)])
                .into_iter()
                .flatten()
                .collect(),
            "GET, PUT 8, GET, PUT 9, GET, PUT 10, GET, PUT 11: Update failed: the object keeps changing",
        ),
        (
            "a webhook refuses exactly this version",
            known(true),
            [0; 4]
                .map(|_| [drifted("8"), no(RequestError::Changed)])
                .into_iter()
                .flatten()
                .collect(),
            "GET, PUT 8, GET, PUT 8, GET, PUT 8, GET, PUT 8: Update failed: why",
        ),
        (
            "it changed since it was read, and then it was gone",
            known(true),
            vec![
                drifted("8"),
                no(RequestError::Changed),
                no(RequestError::Gone),
                equal("1"),
            ],
            "GET, PUT 8, GET, POST: applied 1, created",
        ),
        (
            "an empty response proves nothing",
            known(true),
            vec![object(json!({}))],
            "GET: Get failed: the response is not an object",
        ),
    ]);
}

#[test]
fn an_object_of_another_owner_is_read_and_not_written_unless_it_is_taken_over() {
    let takes_over = || {
        let mut order = order();
        order.render_spec.take_over = true;
        order
    };
    check(vec![
        (
            "it is not",
            order(),
            vec![no(RequestError::Exists), theirs()],
            "POST, GET: saw 3, Create failed: an object that is not managed by it already exists there",
        ),
        (
            "it is",
            takes_over(),
            vec![no(RequestError::Exists), theirs(), equal("4")],
            "POST, GET, PUT 3: applied 4, differed at metadata.annotations",
        ),
    ]);
}

#[test]
fn what_an_update_cannot_change_is_deleted_exactly_and_created_again() {
    let keeps = || Order {
        may_recreate: false,
        ..known(true)
    };
    check(vec![
        (
            "created again",
            known(true),
            vec![immutable("8"), status(), equal("1")],
            "GET, DELETE 8, POST: applied 1, created, differed at data",
        ),
        (
            "a finalizer keeps it",
            known(true),
            vec![immutable("8"), leaving("9")],
            "GET, DELETE 8: saw 9, abandoned",
        ),
        (
            "it changed before it is deleted",
            known(true),
            vec![immutable("8"), no(RequestError::Changed), equal("9")],
            "GET, DELETE 8, GET metadata: saw 9, abandoned",
        ),
        (
            "another object has its name now",
            known(true),
            vec![immutable("8"), no(RequestError::Changed), theirs(), equal("1")],
            "GET, DELETE 8, GET metadata, POST: saw 3, applied 1, created, differed at data",
        ),
        (
            "another was created meanwhile",
            known(true),
            vec![immutable("8"), status(), no(RequestError::Exists), equal("9")],
            "GET, DELETE 8, POST, GET: applied 9",
        ),
        (
            "its DELETE is refused",
            known(true),
            vec![immutable("8"), no(RequestError::Refused)],
            "GET, DELETE 8: Update failed: why",
        ),
        (
            "its DELETE gets no response",
            known(true),
            vec![immutable("8"), no(RequestError::NoResponse)],
            "GET, DELETE 8: Update failed: why",
        ),
        (
            "its DELETE gets a 404 that names no object",
            known(true),
            vec![immutable("8"), no(RequestError::Missing)],
            "GET, DELETE 8: Update failed: why",
        ),
        (
            "it was gone before it is deleted",
            known(true),
            vec![immutable("8"), no(RequestError::Gone), equal("1")],
            "GET, DELETE 8, POST: applied 1, created, differed at data",
        ),
        (
            "it cannot be created again",
            known(true),
            vec![immutable("8"), status(), no(RequestError::Refused)],
            "GET, DELETE 8, POST: Create failed: why",
        ),
        (
            "it may not be deleted",
            keeps(),
            vec![immutable("8")],
            "GET: Update failed: it is immutable, and the distribution's annotation keeps it from being deleted and made again",
        ),
    ]);
}

#[test]
fn a_copy_that_may_not_be_written_is_only_compared() {
    check(vec![
        (
            "equal",
            compared(Some(preconditions())),
            vec![equal("7")],
            "GET: applied 7",
        ),
        (
            "different",
            compared(Some(preconditions())),
            vec![drifted("8")],
            "GET: unequal",
        ),
        (
            "gone",
            compared(Some(preconditions())),
            vec![no(RequestError::Gone)],
            "GET: copy is gone",
        ),
        (
            "never observed",
            compared(None),
            vec![no(RequestError::Gone)],
            "GET: abandoned",
        ),
    ]);
}

#[test]
fn any_other_error_fails_the_step_that_it_answers() {
    for error in [RequestError::Other, RequestError::NoResponse] {
        check(vec![
            ("a POST", order(), vec![no(error)], "POST: Create failed: why"),
            (
                "a PUT",
                known(false),
                vec![no(error)],
                "PUT 7: Update failed: why",
            ),
            ("a GET", known(true), vec![no(error)], "GET: Get failed: why"),
            (
                "a correction",
                known(true),
                vec![drifted("8"), no(error)],
                "GET, PUT 8: Update failed: why",
            ),
        ]);
        check_removal(
            RemovalMode::Delete,
            vec![("a DELETE", vec![no(error)], "DELETE 7: Delete failed: why")],
        );
    }
    let abandoned = || vec![no(RequestError::Abandoned)];
    check(vec![(
        "nothing was sent",
        order(),
        abandoned(),
        "POST: abandoned",
    )]);
    check_removal(
        RemovalMode::Delete,
        vec![("nothing was sent", abandoned(), "DELETE 7: abandoned")],
    );
}

#[test]
fn a_deletion_ends_as_its_answers_prove() {
    let after = |answer: Answer| vec![no(RequestError::Changed), answer];
    check_removal(
        RemovalMode::Delete,
        vec![
            ("a Status", vec![status()], "DELETE 7: copy is gone"),
            ("the last state", vec![equal("7")], "DELETE 7: copy is gone"),
            (
                "a finalizer keeps it",
                vec![leaving("8")],
                "DELETE 7: saw 8, abandoned",
            ),
            (
                "it was gone",
                vec![no(RequestError::Gone)],
                "DELETE 7: copy is gone",
            ),
            (
                "an unproven 404",
                vec![no(RequestError::Missing)],
                "DELETE 7: Delete failed: why",
            ),
            (
                "refused",
                vec![no(RequestError::Refused)],
                "DELETE 7: Delete failed: why",
            ),
            (
                "it changed",
                after(equal("9")),
                "DELETE 7, GET metadata: saw 9, abandoned",
            ),
            (
                "a webhook refuses exactly this version",
                after(equal("7")),
                "DELETE 7, GET metadata: Delete failed: why",
            ),
            (
                "another object",
                after(theirs()),
                "DELETE 7, GET metadata: saw 3, copy is gone",
            ),
            (
                "it is gone",
                after(no(RequestError::Gone)),
                "DELETE 7, GET metadata: copy is gone",
            ),
        ],
    );
}

#[test]
fn a_release_reads_the_copy_and_writes_it_without_ownership_metadata() {
    let unowned = || {
        let mut copy = live("9");
        copy["metadata"]["ownerReferences"] = json!([]);
        object(copy)
    };
    for mode in [RemovalMode::Release, RemovalMode::HandOver] {
        check_removal(
            mode,
            vec![
                (
                    "released",
                    vec![equal("8"), unowned()],
                    "GET, PUT 8: saw 9, abandoned",
                ),
                (
                    "it changed",
                    vec![equal("8"), no(RequestError::Changed), equal("9"), unowned()],
                    "GET, PUT 8, GET, PUT 9: saw 9, abandoned",
                ),
                (
                    "without ownership metadata",
                    vec![unowned()],
                    "GET: saw 9, abandoned",
                ),
                ("another object", vec![theirs()], "GET: copy is gone"),
                (
                    "gone",
                    vec![equal("8"), no(RequestError::Gone)],
                    "GET, PUT 8: copy is gone",
                ),
                (
                    "it keeps changing",
                    ["8", "9", "10", "11"]
                        .map(|version| [equal(version), no(RequestError::Changed)])
                        .into_iter()
                        .flatten()
                        .collect(),
                    "GET, PUT 8, GET, PUT 9, GET, PUT 10, GET, PUT 11: Delete failed: the object keeps changing",
                ),
            ],
        );
    }
}
