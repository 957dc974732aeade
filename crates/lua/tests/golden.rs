//! The golden cases: `testdata/scripts/<case>.yaml`. `UPDATE_GOLDEN=1` rewrites `want`; read the difference before you commit it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use std::collections::BTreeSet;

use entourage_api::work::AggregatedStatusItem;
use entourage_golden as golden;
use entourage_interpreter::question::{Answer, Question};
use entourage_lua::Script;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    script: String,
    /// The function that is called, with the fields below as its arguments.
    function: String,
    object: Value,
    #[serde(default)]
    observed: Value,
    #[serde(default)]
    replicas: i64,
    #[serde(default)]
    items: Vec<AggregatedStatusItem>,
    /// The answer, an object as changes of the given one; or the error. Compared as text.
    #[serde(default, rename = "want")]
    _want: serde::de::IgnoredAny,
}

fn outcome(case: &Case) -> Value {
    let script = match Script::compile("sample", &case.script) {
        Ok(script) => script,
        Err(error) => return json!({ "error": error.to_string() }),
    };
    let object = &case.object;
    let question = match &*case.function {
        "GetReplicas" => Question::Replicas(object),
        "GetComponents" => Question::Components(object),
        "ReviseReplica" => Question::Revise(object, case.replicas),
        "Retain" => Question::Retain {
            desired: object,
            live: &case.observed,
        },
        "ReflectStatus" => Question::Reflect(object),
        "AggregateStatus" => Question::Aggregate {
            template: object,
            items: &case.items,
        },
        "InterpretHealth" => Question::Health(object),
        "GetDependencies" => Question::Dependencies(object),
        other => panic!("{other} is no function of a script"),
    };
    match script.answer(question) {
        Ok(answer) => json!({ "answer": written(answer, object) }),
        Err(error) => json!({ "error": error.to_string() }),
    }
}

fn written(answer: Answer, given: &Value) -> Value {
    match answer {
        Answer::Replicas {
            replicas,
            requirements,
        } => json!({"replicas": replicas, "requirements": requirements}),
        Answer::Components(components) => json!(components),
        Answer::Object(object) => golden::changes(given, &object),
        Answer::Status(status) => json!({ "status": status }),
        Answer::Healthy(healthy) => json!({ "healthy": healthy }),
        Answer::Dependencies(dependencies) => json!(dependencies),
        Answer::References(references) => json!(references),
    }
}

#[test]
fn every_golden_case_is_answered_as_written() {
    golden::run("scripts", 30, |case: &Case| golden::wanted(&outcome(case)));
}

#[test]
fn the_golden_cases_show_every_function_an_answer_and_an_error_of_each() {
    let (mut answered, mut failed) = (BTreeSet::new(), BTreeSet::new());
    for file in golden::files("scripts") {
        let case: Case = golden::read(&file);
        let is_error = !outcome(&case)["error"].is_null();
        if is_error { &mut failed } else { &mut answered }.insert(case.function);
    }
    let all = [
        "AggregateStatus",
        "GetComponents",
        "GetDependencies",
        "GetReplicas",
        "InterpretHealth",
        "ReflectStatus",
        "Retain",
        "ReviseReplica",
    ];
    assert_eq!(Vec::from_iter(&answered), all);
    assert_eq!(Vec::from_iter(&failed), all);
}
