//! The golden cases in `testdata/admission`: one file a case, named after its rule, `want` last. `UPDATE_GOLDEN=1` rewrites
//! `want`.

use std::{borrow::Cow, fmt::Write as _, path::Path, sync::Arc};

use entourage_golden as golden;
use entourage_interpreter::{
    self as interpreter,
    customized::Engine,
    question::{self, Answer, Question},
};
use serde::Deserialize;
use serde_json::Value;

use super::{Operation, RULES, Request, Rule, Settings, filled_by, mutate_by, validate_by, warnings_by};

/// A review: the object after the write (none: a deletion) and before it (none: a create).
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Case {
    object: Option<Value>,
    old: Option<Value>,
    #[serde(default)]
    others: Vec<Value>,
    #[serde(default)]
    allow_no_execute: bool,
    #[serde(default)]
    kinds_per_namespace: Option<usize>,
    #[serde(default)]
    selectors_per_policy: Option<usize>,
    /// Compared as text.
    #[serde(default, rename = "want")]
    _want: serde::de::IgnoredAny,
}

#[test]
fn every_case_comes_out_as_its_file_says() {
    golden::run("admission", RULES.len(), |case: &Case| outcome(RULES, case));
}

#[test]
fn every_rule_has_a_case_in_which_it_acts_and_every_case_has_a_rule() {
    let name = |file: &Path| file.file_stem().unwrap().to_string_lossy().into_owned();
    let files = golden::files("admission");
    let cases: Vec<(String, Case)> = files
        .iter()
        .map(|file| (name(file), golden::read(file)))
        .collect();
    for rule in RULES {
        let mut own = cases.iter().filter(|(name, _)| belongs(name, rule));
        assert!(
            own.any(|(_, case)| outcome(&[*rule], case) != NOTHING),
            "no case of {} shows it",
            rule.name
        );
    }
    for (name, _) in &cases {
        assert!(
            RULES.iter().any(|rule| belongs(name, rule)),
            "{name} is of no rule"
        );
    }
}

/// `rule.yaml` and `rule--what.yaml`.
fn belongs(case: &str, rule: &Rule) -> bool {
    case.split("--").next() == Some(rule.name)
}

/// Accepts every script except those with the word `wrong`, which it refuses with the error text of the real engine.
#[derive(Debug)]
struct Picky;

impl Engine for Picky {
    fn compile(
        &self,
        name: &str,
        _: interpreter::operations::Operation,
        source: &str,
    ) -> Result<Arc<dyn question::Rule>, String> {
        match source.lines().position(|line| line.contains("wrong")) {
            Some(line) => Err(format!(
                "script {name:?}: line {}: unexpected symbol near 'wrong'; correct it",
                line + 1
            )),
            None => Ok(Arc::new(Self)),
        }
    }
}

impl question::Rule for Picky {
    fn answer(&self, _: Question<'_>) -> Result<Answer, Cow<'static, str>> {
        Err("not asked".into())
    }
}

const NOTHING: &str = "want:\n  passes: true\n";

fn outcome(rules: &[Rule], case: &Case) -> String {
    let one = case.object.as_ref().or(case.old.as_ref()).unwrap();
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (api_version, kind) = (word(&one["apiVersion"]), word(&one["kind"]));
    let (namespace, name) = (
        word(&one["metadata"]["namespace"]),
        word(&one["metadata"]["name"]),
    );
    let request = Request {
        group: api_version.split_once('/').map_or("", |(group, _)| group),
        kind: &kind,
        namespace: &namespace,
        name: &name,
        operation: match (&case.object, &case.old) {
            (None, _) => Operation::Delete,
            (_, None) => Operation::Create,
            _ => Operation::Update,
        },
        object: case.object.as_ref(),
        old: case.old.as_ref(),
        others: &case.others,
        settings: Settings {
            allow_no_execute: case.allow_no_execute,
            kinds_per_namespace: case.kinds_per_namespace,
            selectors_per_policy: case.selectors_per_policy,
            scripts: Some(&Picky),
        },
    };
    let mut text = String::from("want:\n");
    let patch = mutate_by(rules, &request);
    if !patch.is_empty() {
        text.push_str("  patch:\n");
    }
    for operation in patch {
        writeln!(text, "    - {operation}").unwrap();
    }
    // The validated object is the one with defaults.
    let filled = filled_by(rules, &request);
    let request = Request {
        object: filled.as_ref(),
        ..request
    };
    match validate_by(rules, &request) {
        Ok(()) => {
            text.push_str("  passes: true\n");
            let warnings = warnings_by(rules, &request);
            if !warnings.is_empty() {
                text.push_str("  warns:\n");
            }
            for doubt in warnings {
                writeln!(text, "    - {:?}", doubt.to_string()).unwrap();
            }
        }
        Err(refusal) => {
            writeln!(text, "  refused: {} {}", refusal.code, refusal.reason).unwrap();
            text.push_str("  problems:\n");
            for problem in refusal.problems {
                writeln!(text, "    - {:?}", problem.to_string()).unwrap();
            }
        }
    }
    text
}
