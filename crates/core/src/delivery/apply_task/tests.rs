//! Every row of the decision: the requests that follow the answers, and the outcome. A webhook answers while the sender renders.

use serde_json::{Value, json};

use super::*;
use crate::{
    apply_task::{
        Answer,
        walk::{Walk, no, object, walk_rendering},
    },
    object::{Gvk, NamespacedName},
};

fn template() -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"k": "v"},
        "metadata": {"namespace": "ns", "name": "a", "uid": "t", "resourceVersion": "5"}})
}

/// An order to create the copy.
fn order() -> Order {
    Order {
        id: ResourceId::new(Gvk::new("v1", "ConfigMap"), "ns", "a"),
        cluster: "m1".into(),
        render_spec: RenderSpec {
            interpretation: Default::default(),
            hub: "hub".into(),
            binding: NamespacedName::new("ns", "a-configmap"),
            permanent_id: "p".into(),
            replicas: None,
            at_least: None,
            raise: None,
            keeps_replicas: false,
            completions: None,
            overrides: Default::default(),
            preserved: Default::default(),
            overwrite: false,
            written_uid: None,
        },
        live: None,
        read_first: false,
    }
}

/// An order for a copy that is known to exist in version 7.
fn known(read_first: bool) -> Order {
    Order {
        live: Some(Preconditions {
            uid: "copy".into(),
            resource_version: "7".into(),
        }),
        read_first,
        ..order()
    }
}

/// Renders without webhooks.
fn rendered(order: &Order, live: Option<&Value>) -> Result<Rendered, Refusal> {
    render::render(&order.render_spec, &order.id, &order.cluster, &template(), live)
}

fn walk(order: &Order, answers: impl IntoIterator<Item = Answer>) -> Walk<Outcome> {
    walk_rendering(apply(order), answers, |live| {
        Answer::Rendered(rendered(order, live))
    })
}

/// The copy on the member.
fn copy(version: &str) -> Value {
    let rendered = rendered(&order(), None);
    let mut copy = rendered.expect("no override").object().clone();
    copy["metadata"]["uid"] = json!("copy");
    copy["metadata"]["resourceVersion"] = json!(version);
    copy
}

/// The copy, whose data a user edited.
fn drifted(version: &str) -> Answer {
    let mut copy = copy(version);
    copy["data"]["k"] = json!("drift");
    object(copy)
}

/// The copy, which is being deleted.
fn leaving(version: &str) -> Answer {
    let mut copy = copy(version);
    copy["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    object(copy)
}

fn equal(version: &str) -> Answer {
    object(copy(version))
}

/// An object that is not managed.
fn theirs() -> Answer {
    object(json!({"data": {"k": "theirs"}, "metadata": {"name": "a", "uid": "x", "resourceVersion": "3"}}))
}

fn reported(outcome: Outcome) -> String {
    match outcome {
        Outcome::Applied(copy, differed) => {
            let version = copy.0["metadata"]["resourceVersion"].as_str().unwrap_or_default();
            let at = differed.map(|path| format!(", differed at {path}"));
            format!("applied {version}{}", at.unwrap_or_default())
        }
        Outcome::NotRendered(refusal) => format!("not rendered: {refusal}"),
        Outcome::NotApplied(delivered) => format!("{delivered:?}"),
    }
}

/// One row: the sentence, the order, the answers, and what is expected as `requests: outcome`.
type Row = (&'static str, Order, Vec<Answer>, &'static str);

fn check(rows: Vec<Row>) {
    for (sentence, order, answers, expected) in rows {
        let walk = walk(&order, answers);
        let actual = format!("{}: {}", walk.requests, reported(walk.outcome));
        assert_eq!(actual, expected, "{sentence}");
    }
}

#[test]
fn a_copy_costs_one_request_unless_it_has_metadata_of_other_writers() {
    check(vec![
        ("created", order(), vec![equal("1")], "POST: applied 1"),
        ("replaced", known(false), vec![equal("8")], "PUT 7: applied 8"),
        ("read and equal", known(true), vec![equal("7")], "GET: applied 7"),
        (
            "read and different",
            known(true),
            vec![drifted("8"), equal("9")],
            "GET, PUT 8: applied 9, differed at data",
        ),
        (
            "being deleted and equal",
            known(true),
            vec![leaving("8")],
            "GET: applied 8",
        ),
    ]);
}

#[test]
fn a_copy_that_exists_changed_or_is_gone_is_compared_or_created() {
    check(vec![
        (
            "it exists",
            order(),
            vec![no(RequestError::Exists), drifted("3"), equal("4")],
            "POST, GET, PUT 3: applied 4, differed at data",
        ),
        (
            "it changed since it was observed",
            known(false),
            vec![no(RequestError::Changed), equal("9")],
            "PUT 7, GET: applied 9",
        ),
        (
            "it changed since it was read",
            known(true),
            vec![drifted("8"), no(RequestError::Changed), drifted("9"), equal("10")],
            "GET, PUT 8, GET, PUT 9: applied 10, differed at data",
        ),
        (
            "it was gone when it was replaced",
            known(false),
            vec![no(RequestError::Gone), equal("1")],
            "PUT 7, POST: applied 1",
        ),
        (
            "it was gone when it was read",
            known(true),
            vec![no(RequestError::Gone), equal("1")],
            "GET, POST: applied 1",
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
            "GET, PUT 8, GET, POST: applied 1",
        ),
        (
            "it was gone when it was corrected",
            known(true),
            vec![drifted("8"), no(RequestError::Gone), equal("1")],
            "GET, PUT 8, POST: applied 1",
        ),
        (
            "any other 404 leads to a POST too, which says what is missing",
            known(false),
            vec![no(RequestError::Missing), no(RequestError::Missing)],
            "PUT 7, POST: Rejected(\"why\")",
        ),
    ]);
}

#[test]
fn a_copy_that_keeps_changing_is_given_up_after_four_rounds() {
    let read = |version| [drifted(version), no(RequestError::Changed)];
    let exists = || [no(RequestError::Gone), no(RequestError::Exists)];
    check(vec![
        (
            "it changes after each read",
            known(false),
            [no(RequestError::Changed)]
                .into_iter()
                .chain([read("8"), read("9"), read("10")].into_iter().flatten())
                .collect(),
            "PUT 7, GET, PUT 8, GET, PUT 9, GET, PUT 10: Failed(\"the copy keeps changing on the member\")",
        ),
        (
            "it did not change, and the conflicts have another cause",
            known(false),
            [no(RequestError::Changed)]
                .into_iter()
                .chain([read("8"), read("8"), read("8")].into_iter().flatten())
                .collect(),
            "PUT 7, GET, PUT 8, GET, PUT 8, GET, PUT 8: Rejected(\"why\")",
        ),
        (
            "it comes and goes after a conflict about an unchanged version",
            known(false),
            vec![
                no(RequestError::Changed),
                drifted("7"),
                no(RequestError::Gone),
                no(RequestError::Exists),
                no(RequestError::Gone),
            ],
            "PUT 7, GET, PUT 7, POST, GET: Failed(\"the copy keeps changing on the member\")",
        ),
        (
            "it comes and goes",
            known(true),
            [exists(), exists()].into_iter().flatten().collect(),
            "GET, POST, GET, POST: Failed(\"the copy keeps changing on the member\")",
        ),
    ]);
}

#[test]
fn an_object_that_is_not_managed_is_read_and_not_written_unless_the_policy_overwrites() {
    let overwrites = || {
        let mut order = order();
        order.render_spec.overwrite = true;
        order
    };
    check(vec![
        (
            "abort",
            order(),
            vec![no(RequestError::Exists), theirs()],
            "POST, GET: Foreign(Unknown)",
        ),
        (
            "overwrite",
            overwrites(),
            vec![no(RequestError::Exists), theirs(), equal("4")],
            "POST, GET, PUT 3: applied 4, differed at metadata.labels",
        ),
    ]);
}

#[test]
fn any_other_error_ends_the_task_with_its_class_and_message() {
    let errors = [
        (RequestError::Refused, "Rejected(\"why\")"),
        (RequestError::Other, "Failed(\"why\")"),
        (RequestError::NoResponse, "Unreachable(\"why\")"),
        (RequestError::Abandoned, "Abandoned"),
    ];
    for (error, expected) in errors {
        for (order, before, requests) in [
            (order(), None, "POST"),
            (known(false), None, "PUT 7"),
            (known(true), None, "GET"),
            (known(true), Some(drifted("8")), "GET, PUT 8"),
        ] {
            let answers = before.into_iter().chain([no(error)]);
            let walk = walk(&order, answers);
            assert_eq!((&*walk.requests, &*reported(walk.outcome)), (requests, expected));
        }
    }
    check(vec![
        (
            "a POST is not in conflict with another version",
            order(),
            vec![no(RequestError::Changed)],
            "POST: Failed(\"why\")",
        ),
        (
            "a PUT takes no name",
            known(false),
            vec![no(RequestError::Exists)],
            "PUT 7: Failed(\"why\")",
        ),
        (
            "the kind is not served",
            order(),
            vec![no(RequestError::Missing)],
            "POST: Rejected(\"why\")",
        ),
    ]);
}

#[test]
fn a_copy_that_cannot_be_rendered_causes_no_write() {
    for (order, answers, requests) in [
        (order(), vec![], ""),
        (known(false), vec![], ""),
        (known(true), vec![equal("7")], "GET"),
    ] {
        let walk = walk_rendering(apply(&order), answers, |_| Answer::Rendered(Err(Refusal::Token)));
        assert_eq!(walk.requests, requests);
        assert!(matches!(walk.outcome, Outcome::NotRendered(Refusal::Token)));
    }
}

#[test]
fn it_is_rendered_anew_for_each_write_and_never_for_an_object_that_is_not_managed() {
    for (order, answers, expected) in [
        (order(), vec![equal("1")], &["none"] as &[_]),
        (known(false), vec![equal("8")], &["7"]),
        (
            known(true),
            vec![
                drifted("8"),
                no(RequestError::Changed),
                drifted("9"),
                no(RequestError::Gone),
                equal("1"),
            ],
            &["8", "9", "none"],
        ),
        (known(true), vec![theirs()], &[]),
    ] {
        assert_eq!(walk(&order, answers).rendered, expected);
    }
}
