//! The ResourceInterpreterCustomizations of one kind, merged.
//!
//! Source: Karmada reference 3.3: of several objects for a kind the first by name decides, operation by operation; their
//! dependencies are merged. A script that does not compile returns no result, and its operation fails: an intended customization
//! must not be ignored.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use entourage_api::config::{
    ResourceInterpreterCustomization,
    customization::{MergeDependencies, Script},
};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::{
    declarative::Declared,
    operations::{Contract, Operation},
    question::{Answer, InterpretError, Question, Rule, Until},
    requirements::check_components,
    rule,
};

/// The compiler of scripts.
pub trait Engine: Send + Sync + fmt::Debug {
    /// Compiles a script for the questions of one operation; `name` is for error texts.
    ///
    /// # Errors
    /// The syntax error, with its line.
    fn compile(&self, name: &str, operation: Operation, source: &str) -> Result<Arc<dyn Rule>, String>;
}

/// The rules for one kind.
#[derive(Debug)]
pub struct Customized {
    rules: BTreeMap<Operation, Ruled>,
    dependencies: Vec<Ruled>,
    adds: bool,
    version: String,
    rendering: Option<String>,
}

#[derive(Debug)]
struct Ruled {
    layer: String,
    rule: Result<Arc<dyn Rule>, Cow<'static, str>>,
}

impl Customized {
    /// Merges these customizations of one kind, sorted by name. `None` if they have no rules.
    ///
    /// Cost: O(the length of the scripts), which are compiled here and not again.
    pub fn of<'a>(
        customizations: impl Iterator<Item = &'a ResourceInterpreterCustomization>,
        engine: Option<&dyn Engine>,
    ) -> Option<Self> {
        let mut all = Self {
            rules: BTreeMap::new(),
            dependencies: Vec::new(),
            adds: true,
            version: String::new(),
            rendering: None,
        };
        let (mut whole, mut rendering) = (Sha256::new(), Sha256::new());
        let mut renders = false;
        for each in customizations {
            let name = each.metadata.name.as_deref().unwrap_or_default();
            let layer = format!("ResourceInterpreterCustomization {name:?}");
            for (operation, text, rule) in rules(each, engine) {
                if operation != Operation::References && all.rules.contains_key(&operation) {
                    continue;
                }
                for text in [name, &format!("{operation:?}"), &text] {
                    whole.update((text.len() as u64).to_le_bytes());
                    whole.update(text);
                }
                if matches!(operation, Operation::Revise | Operation::Retain) {
                    renders = true;
                    rendering.update((text.len() as u64).to_le_bytes());
                    rendering.update(&text);
                }
                let ruled = Ruled {
                    layer: layer.clone(),
                    rule,
                };
                if operation == Operation::References {
                    let adds = each.spec.merge == Some(MergeDependencies::Add);
                    whole.update([u8::from(adds)]);
                    all.adds &= adds;
                    all.dependencies.push(ruled);
                } else {
                    all.rules.insert(operation, ruled);
                }
            }
        }
        if all.rules.is_empty() && all.dependencies.is_empty() {
            return None;
        }
        all.version = short(&whole.finalize());
        all.rendering = renders.then(|| short(&rendering.finalize()));
        Some(all)
    }

    /// The version, which changes with the rules.
    pub(super) fn version(&self) -> &str {
        &self.version
    }

    /// The version of the rules that render copies; `None` without such rules.
    pub(super) fn rendering(&self) -> Option<&str> {
        self.rendering.as_deref()
    }

    /// True if its dependencies are merged with those of lower layers.
    pub(super) fn adds(&self) -> bool {
        self.adds && !self.dependencies.is_empty()
    }

    /// True if it has an operation.
    pub(super) fn has(&self, operation: Operation) -> bool {
        match operation {
            Operation::References => !self.dependencies.is_empty(),
            other => self.rules.contains_key(&other),
        }
    }

    /// The result of the rule for the question's operation; `None` if there is none. For dependencies use
    /// [`Self::dependencies`].
    pub(super) fn answer(&self, question: Question<'_>) -> Option<Result<Answer, InterpretError>> {
        self.rules
            .get(&question.operation())
            .map(|ruled| ruled.answer(question))
    }

    /// The rules for the question's operation, with the result of each.
    pub(super) fn each(&self, question: Question<'_>) -> Vec<(String, Result<Answer, InterpretError>)> {
        let rules: Vec<&Ruled> = match question {
            Question::Dependencies(_) => self.dependencies.iter().collect(),
            _ => self.rules.get(&question.operation()).into_iter().collect(),
        };
        let answer = |ruled: &Ruled| (ruled.layer.clone(), ruled.answer(question));
        rules.into_iter().map(answer).collect()
    }

    /// The dependencies found by each rule. If one fails the whole fails: a dependency that it would have found must not be
    /// taken for absent.
    pub(super) fn dependencies(&self, object: &Value) -> Option<Result<Vec<Answer>, InterpretError>> {
        let found = self
            .dependencies
            .iter()
            .map(|ruled| ruled.answer(Question::Dependencies(object)));
        (!self.dependencies.is_empty()).then(|| found.collect())
    }
}

impl Ruled {
    fn answer(&self, question: Question<'_>) -> Result<Answer, InterpretError> {
        let answer = match &self.rule {
            Ok(rule) => rule.answer(question).and_then(|answer| match answer {
                Answer::Components(all) => check_components(&all).map(|()| Answer::Components(all)),
                other => Ok(other),
            }),
            Err(why) => Err(why.clone()),
        };
        answer.map_err(|why| self.unanswered(question.operation(), why))
    }

    fn unanswered(&self, operation: Operation, why: Cow<'static, str>) -> InterpretError {
        InterpretError {
            layer: self.layer.clone(),
            contract: Contract::Interpreter,
            operation,
            why,
            until: Until::Changed,
        }
    }
}

/// Checks the rules of a customization, by operation: the error of each, if any.
#[must_use]
pub fn check(
    customization: &ResourceInterpreterCustomization,
    engine: &dyn Engine,
) -> BTreeMap<Operation, Result<(), String>> {
    let rules = rules(customization, Some(engine)).into_iter();
    rules
        .map(|(operation, _, rule)| (operation, rule.map(drop).map_err(Cow::into_owned)))
        .collect()
}

/// The operations that a customization has a rule for, valid or not.
pub(super) fn operations(customization: &ResourceInterpreterCustomization) -> BTreeSet<Operation> {
    let rules = rules(customization, None).into_iter();
    rules.map(|(operation, ..)| operation).collect()
}

type Given = (Operation, String, Result<Arc<dyn Rule>, Cow<'static, str>>);

/// The rules of a customization: the operation, the text that identifies the version of the rule, and the rule. For an operation
/// with a script the script counts.
fn rules(customization: &ResourceInterpreterCustomization, engine: Option<&dyn Engine>) -> Vec<Given> {
    let name = customization.metadata.name.as_deref().unwrap_or_default();
    let compile = |operation, script: &Script| match engine {
        Some(engine) => engine
            .compile(name, operation, &script.lua_script)
            .map_err(Cow::Owned),
        None => Err(Cow::Borrowed("scripts are not run here")),
    };
    let given = &customization.spec.customizations;
    let scripts = [
        (Operation::Retain, &given.retention),
        (Operation::Replicas, &given.replica_resource),
        (Operation::Components, &given.component_resource),
        (Operation::Revise, &given.replica_revision),
        (Operation::Reflect, &given.status_reflection),
        (Operation::Aggregate, &given.status_aggregation),
        (Operation::Health, &given.health_interpretation),
        (Operation::References, &given.dependency_interpretation),
    ];
    let mut all: Vec<Given> = scripts
        .into_iter()
        .filter_map(|(operation, script)| {
            let script = script.as_ref()?;
            Some((operation, script.lua_script.clone(), compile(operation, script)))
        })
        .collect();
    if let Some(declared) = &customization.spec.declarative {
        let rule = Declared::compile(declared)
            .map(rule::rule)
            .map_err(|error| Cow::Owned(format!("spec.declarative.{error}")));
        let text = serde_json::to_string(declared).unwrap_or_default();
        for operation in rule::operations(declared) {
            if all.iter().all(|(scripted, ..)| *scripted != operation) {
                all.push((operation, text.clone(), rule.clone()));
            }
        }
    }
    all
}

fn short(hash: &[u8]) -> String {
    hash[..5].iter().map(|byte| format!("{byte:02x}")).collect()
}
