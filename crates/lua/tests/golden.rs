//! The golden cases: `testdata/<case>/`, a script, what it is asked and what it answers.
//!
//! | file | what |
//! |---|---|
//! | `script.lua` | the script |
//! | `in.yaml` | `function`, `object`, and where the function takes more: `observed`, `replicas`, `items` |
//! | `want.yaml` | the answer, or the error |
//!
//! `UPDATE_GOLDEN=1` writes `want.yaml` anew; read the difference before you commit it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use entourage_api::work::AggregatedStatusItem;
use entourage_interpreter::question::{Answer, Question};
use entourage_lua::Script;
use serde_json::{Value, json};

fn read(path: &Path) -> Option<Value> {
    let text = fs::read_to_string(path).ok()?;
    Some(serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{path:?}: {error}")))
}

fn cases() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
    let mut cases: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    cases.sort();
    cases
}

fn outcome(case: &Path) -> Value {
    let source =
        fs::read_to_string(case.join("script.lua")).unwrap_or_else(|error| panic!("{case:?}: {error}"));
    let given = read(&case.join("in.yaml")).unwrap_or_else(|| panic!("{case:?} has no in.yaml"));
    let script = match Script::compile("sample", &source) {
        Ok(script) => script,
        Err(error) => return json!({ "error": error.to_string() }),
    };
    let items: Vec<AggregatedStatusItem> = given
        .get("items")
        .map(|items| serde_json::from_value(items.clone()).unwrap())
        .unwrap_or_default();
    let object = &given["object"];
    let question = match given["function"].as_str().unwrap() {
        "GetReplicas" => Question::Replicas(object),
        "GetComponents" => Question::Components(object),
        "ReviseReplica" => Question::Revise(object, given["replicas"].as_i64().unwrap()),
        "Retain" => Question::Retain {
            desired: object,
            live: &given["observed"],
        },
        "ReflectStatus" => Question::Reflect(object),
        "AggregateStatus" => Question::Aggregate {
            template: object,
            items: &items,
        },
        "InterpretHealth" => Question::Health(object),
        "GetDependencies" => Question::Dependencies(object),
        other => panic!("{case:?}: {other} is no function of a script"),
    };
    match script.answer(question) {
        Ok(answer) => json!({ "answer": written(answer) }),
        Err(error) => json!({ "error": error.to_string() }),
    }
}

fn written(answer: Answer) -> Value {
    match answer {
        Answer::Replicas {
            replicas,
            requirements,
        } => json!({"replicas": replicas, "requirements": requirements}),
        Answer::Components(components) => json!(components),
        Answer::Object(object) => object,
        Answer::Status(status) => json!({ "status": status }),
        Answer::Healthy(healthy) => json!({ "healthy": healthy }),
        Answer::Dependencies(dependencies) => json!(dependencies),
        Answer::References(references) => json!(references),
    }
}

#[test]
fn every_golden_case_is_answered_as_written() {
    let is_updating = std::env::var_os("UPDATE_GOLDEN").is_some();
    let mut wrong = Vec::new();
    for case in cases() {
        let got = outcome(&case);
        let file = case.join("want.yaml");
        if is_updating {
            fs::write(&file, serde_saphyr::to_string(&got).unwrap()).unwrap();
        }
        if read(&file).as_ref() != Some(&got) {
            wrong.push(format!(
                "{file:?}: got\n{}",
                serde_saphyr::to_string(&got).unwrap()
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "UPDATE_GOLDEN=1 writes them anew\n{}",
        wrong.join("\n")
    );
}

#[test]
fn the_golden_cases_show_every_function_an_answer_and_an_error_of_each() {
    let (mut answered, mut failed) = (BTreeSet::new(), BTreeSet::new());
    for case in cases() {
        let function = read(&case.join("in.yaml")).unwrap()["function"]
            .as_str()
            .unwrap()
            .to_owned();
        let is_error = !outcome(&case)["error"].is_null();
        if is_error { &mut failed } else { &mut answered }.insert(function);
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
