//! The merged layers of a kind's interpretation: customizations and hooks over native interpreters.
//!
//! An [`Interpretation`] is that of one kind by customizations and hooks, usually empty. It is plain data: a watch reads its
//! objects by the one it was started with, and a delivery renders by the one of its plan. Its [version](Interpretation::version)
//! identifies it, so that a result of an earlier one is not taken for a change.
//!
//! The order of the layers, for each operation: customizations, then hooks, then native kinds (Karmada reference 3.5). The first
//! that has the operation answers, alone; the dependencies of several customizations are merged.
//!
//! No call is made here. The shell collects the [responses of hooks](HookResponses) about an object before the object is read,
//! and adds them to the interpretation by [`with`](Interpretation::with); an operation without a response fails.

mod hook_responses;

pub use hook_responses::{HookResponses, HookResult};

use std::{borrow::Cow, collections::BTreeMap, fmt, sync::Arc};

use serde::{Serialize, Serializer};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::{
    NativeKind,
    customized::Customized,
    hook::{self, Candidates, Hook, Subject},
    native,
    operations::{Contract, Operation},
    question::{Answer, InterpretError, Question, Until},
    references,
};
use entourage_model::object::{Gvk, Str};

/// The operations that render copies.
const RENDERING: [Operation; 3] = [Operation::Prune, Operation::Revise, Operation::Retain];

/// The interpretations of all kinds.
#[derive(Clone, Debug, Default)]
pub struct Interpreter {
    /// The kinds with an interpretation. Kinds compare without their version, and an interpretation is for one version.
    kinds: BTreeMap<(Gvk, Str), Interpretation>,
    /// All hooks; those of a kind are also in its interpretation.
    hooks: Arc<[Arc<Hook>]>,
}

impl Interpreter {
    /// The interpretation of this kind in this version. Cost: O(log kinds with an interpretation), and for a kind that was not
    /// requested before O(rules of all hooks).
    #[must_use]
    pub fn of(&self, gvk: &Gvk) -> Interpretation {
        if self.kinds.is_empty() && self.hooks.is_empty() {
            return Interpretation::default();
        }
        let key = (gvk.clone(), gvk.version.clone());
        match self.kinds.get(&key) {
            Some(known) => known.clone(),
            None => Interpretation::of(None, Candidates::of(&self.hooks, gvk)),
        }
    }

    /// Sets the customizations of a kind; `None` for none. Returns true if that is a change.
    pub fn customize(&mut self, gvk: &Gvk, customized: Option<Customized>) -> bool {
        let before = self.of(gvk);
        let customized = customized.map(Arc::new);
        self.set(
            gvk,
            Interpretation::of(customized, Candidates::of(&self.hooks, gvk)),
        );
        before != self.of(gvk)
    }

    /// Sets the hooks.
    pub fn hooked(&mut self, hooks: Vec<Arc<Hook>>) {
        self.hooks = hooks.into();
    }

    /// Merges the layers of a kind again, after [`Self::hooked`]. Returns true if that is a change.
    /// Cost: O(rules of all hooks).
    pub fn review(&mut self, gvk: &Gvk) -> bool {
        let key = (gvk.clone(), gvk.version.clone());
        let before = self.kinds.get(&key).cloned().unwrap_or_default();
        let customized = before
            .layers
            .as_ref()
            .and_then(|layers| layers.customized.clone());
        let after = Interpretation::of(customized, Candidates::of(&self.hooks, gvk));
        let changed = before != after;
        self.set(gvk, after);
        changed
    }

    /// The kinds that have an interpretation by name.
    pub fn kinds(&self) -> impl Iterator<Item = &Gvk> {
        self.kinds.keys().map(|(gvk, _)| gvk)
    }

    /// All hooks.
    #[must_use]
    pub fn hooks(&self) -> &[Arc<Hook>] {
        &self.hooks
    }

    fn set(&mut self, gvk: &Gvk, interpretation: Interpretation) {
        let key = (gvk.clone(), gvk.version.clone());
        if interpretation.layers.is_some() {
            self.kinds.insert(key, interpretation);
        } else {
            self.kinds.remove(&key);
        }
    }
}

/// The interpretation of one kind by customizations and hooks; empty by default. Two are equal if they have the same version.
#[derive(Clone, Default)]
pub struct Interpretation {
    layers: Option<Arc<Layers>>,
    /// The responses of hooks about the object that is about to be read.
    responses: HookResponses,
}

#[derive(Debug)]
struct Layers {
    customized: Option<Arc<Customized>>,
    hooks: Candidates,
    version: String,
    rendering: Option<String>,
}

/// The dependencies of an object by customizations and hooks.
#[derive(Default)]
pub struct Found {
    /// The result of each layer.
    pub answers: Vec<Answer>,
    /// True if native references do not count.
    pub is_all: bool,
    /// The layer that failed: a dependency that it would have found must not be taken for absent.
    pub unanswered: Option<InterpretError>,
}

impl Interpretation {
    fn of(customized: Option<Arc<Customized>>, hooks: Candidates) -> Self {
        if customized.is_none() && hooks.0.is_empty() {
            return Self::default();
        }
        let mut layers = Layers {
            version: customized.as_ref().map_or("", |each| each.version()).to_owned(),
            rendering: customized
                .as_ref()
                .and_then(|each| each.rendering())
                .map(str::to_owned),
            customized,
            hooks,
        };
        if !layers.hooks.0.is_empty() {
            layers.version = layers.digest();
            if RENDERING.iter().any(|operation| layers.asks(*operation)) {
                layers.rendering = Some(layers.rendering());
            }
        }
        Self {
            layers: Some(Arc::new(layers)),
            responses: HookResponses::default(),
        }
    }

    /// Adds the responses of hooks about the object that is read next.
    #[must_use]
    pub fn with(&self, responses: HookResponses) -> Self {
        Self {
            layers: self.layers.clone(),
            responses,
        }
    }

    /// Removes everything about an object: for storage.
    #[must_use]
    pub fn kept(&self) -> Self {
        self.with(HookResponses::default())
    }

    /// The version among those of the same kind; empty without layers.
    #[must_use]
    pub fn version(&self) -> &str {
        self.layers.as_ref().map_or("", |layers| &layers.version)
    }

    /// The version of the rules that render copies; `None` if there are none.
    #[must_use]
    pub fn rendering(&self) -> Option<&str> {
        self.layers.as_ref()?.rendering.as_deref()
    }

    /// True if hooks must be called for this operation before it can be interpreted. Which hook depends on the plural of the
    /// kind: [`Self::hook`].
    #[must_use]
    pub fn asks(&self, operation: Operation) -> bool {
        self.layers.as_ref().is_some_and(|layers| layers.asks(operation))
    }

    /// True if hooks must be called for any operation.
    #[must_use]
    pub fn is_hooked(&self) -> bool {
        self.layers
            .as_ref()
            .is_some_and(|layers| !layers.hooks.0.is_empty())
    }

    /// The hook to call; `None` if none matches the kind after all. Cost: O(rules of the kind's hooks).
    #[must_use]
    pub fn hook(&self, subject: &Subject<'_>, operation: Operation) -> Option<&Hook> {
        let hooks = &self.layers.as_ref()?.hooks;
        hook::choose(hooks.for_operation(operation), subject, operation)
    }

    /// True if it has an operation, so that the native interpreter does not count.
    #[must_use]
    pub fn has(&self, operation: Operation) -> bool {
        self.customized()
            .is_some_and(|customized| customized.has(operation))
            || self.asks(operation) && !self.is_passed(operation)
    }

    /// Its result; `None` if it does not have the question's operation. Not for dependencies: [`Self::dependencies`].
    #[must_use]
    pub fn answer(&self, question: Question<'_>) -> Option<Result<Answer, InterpretError>> {
        let operation = question.operation();
        let customized = self.customized().and_then(|each| each.answer(question));
        if customized.is_some() {
            return customized;
        }
        self.asks(operation).then(|| self.hook_answer(operation))?
    }

    /// The dependencies of an object.
    #[must_use]
    pub fn dependencies(&self, object: &Value) -> Found {
        let mut all = Found::default();
        let customized = self.customized();
        match customized.and_then(|each| each.dependencies(object)) {
            Some(Ok(answers)) => all.answers = answers,
            Some(Err(unanswered)) => all.unanswered = Some(unanswered),
            None => {}
        }
        all.is_all = customized.is_some_and(|each| each.has(Operation::References) && !each.adds());
        if !self.asks(Operation::References) {
            return all;
        }
        if let Some(HookResult::Ignored(unanswered)) = self.responses.0.get(&Operation::References) {
            all.unanswered.get_or_insert_with(|| unanswered.clone());
            return all;
        }
        match self.hook_answer(Operation::References) {
            Some(Ok(answer)) => {
                all.answers.push(answer);
                all.is_all = true;
            }
            Some(Err(unanswered)) => {
                all.unanswered.get_or_insert(unanswered);
                all.is_all = true;
            }
            None => {}
        }
        all
    }

    fn customized(&self) -> Option<&Customized> {
        self.layers.as_ref()?.customized.as_deref()
    }

    /// True if hooks were called, and the next layer answers.
    fn is_passed(&self, operation: Operation) -> bool {
        self.responses.is_passed(operation)
    }

    /// The error of a skipped hook, which is final if no layer follows.
    pub fn ignored(&self, operation: Operation) -> Option<InterpretError> {
        match self.responses.0.get(&operation)? {
            HookResult::Ignored(unanswered) => Some(InterpretError {
                until: Until::Answered,
                ..unanswered.clone()
            }),
            _ => None,
        }
    }

    /// The result of hooks; `None` if the next layer answers.
    fn hook_answer(&self, operation: Operation) -> Option<Result<Answer, InterpretError>> {
        match self.responses.0.get(&operation) {
            Some(HookResult::Answer(answer)) => Some(answer.clone()),
            Some(HookResult::Ignored(_) | HookResult::Nobody) => None,
            Some(HookResult::Unused) => Some(Err(InterpretError {
                why: Cow::Borrowed("its answer is not used"),
                until: Until::Used,
                ..self.not_called(operation)
            })),
            None => Some(Err(self.not_called(operation))),
        }
    }

    /// The error if no hook was called.
    pub fn not_called(&self, operation: Operation) -> InterpretError {
        let mut hooks = self
            .layers
            .iter()
            .flat_map(|layers| layers.hooks.for_operation(operation));
        let hook = hooks.next();
        InterpretError {
            layer: hook.map(Hook::layer).unwrap_or_default(),
            contract: hook.map_or(Contract::Interpreter, Hook::contract),
            operation,
            why: Cow::Borrowed("it was not asked"),
            until: Until::Answered,
        }
    }

    /// True if a hook was called for this operation.
    pub fn was_called(&self, operation: Operation) -> bool {
        self.responses.0.contains_key(&operation)
    }

    /// The customizations that have the question's operation, with the result of each.
    pub(super) fn each(&self, question: Question<'_>) -> Vec<(String, Result<Answer, InterpretError>)> {
        self.customized()
            .map_or_else(Vec::new, |customized| customized.each(question))
    }

    /// True if the dependencies of its customizations are merged with those of lower layers.
    #[must_use]
    pub fn adds(&self) -> bool {
        self.customized().is_some_and(Customized::adds)
    }

    /// As [`Self::answer`], for an operation whose result is a whole object.
    #[must_use]
    pub fn object(&self, question: Question<'_>) -> Option<Result<Value, InterpretError>> {
        let misfit = || InterpretError {
            layer: "interpretation".to_owned(),
            contract: Contract::Interpreter,
            operation: question.operation(),
            why: Cow::Borrowed("the result is not an object"),
            until: Until::Changed,
        };
        Some(match self.answer(question)? {
            Ok(Answer::Object(object)) if object.is_object() => Ok(object),
            Ok(_) => Err(misfit()),
            Err(unanswered) => Err(unanswered),
        })
    }

    /// True if objects of the kind may refer to others.
    #[must_use]
    pub fn refers(&self, gvk: &Gvk) -> bool {
        self.has(Operation::References)
            || native(&gvk.group, &gvk.version, &gvk.kind).is_some_and(references::refers)
    }

    /// True if the kind's copies are watched, and requested in responses to writes, as whole objects: their status is reflected.
    #[must_use]
    pub fn is_copied_whole(&self, gvk: &Gvk) -> bool {
        self.has(Operation::Reflect)
            || self.has(Operation::Health)
            || native(&gvk.group, &gvk.version, &gvk.kind).is_none_or(NativeKind::reports_status)
    }

    /// True if the kind's templates are watched as whole objects: they refer to others, or their status is aggregated.
    #[must_use]
    pub fn is_interpreted(&self, gvk: &Gvk) -> bool {
        let of_templates = [
            Operation::References,
            Operation::Replicas,
            Operation::Components,
            Operation::Aggregate,
        ];
        of_templates.iter().any(|operation| self.has(*operation))
            || native(&gvk.group, &gvk.version, &gvk.kind)
                .is_some_and(|native| native.reports_status() || references::refers(native))
    }
}

impl Layers {
    fn asks(&self, operation: Operation) -> bool {
        let customized = self.customized.as_ref();
        let is_customized = customized.is_some_and(|each| match operation {
            Operation::References => each.has(operation) && !each.adds(),
            _ => each.has(operation),
        });
        !is_customized && self.hooks.for_operation(operation).next().is_some()
    }

    /// The version of the layers, with the hooks.
    fn digest(&self) -> String {
        let hooks = self.hooks.0.iter();
        digest(
            &self.version,
            hooks.flat_map(|(hook, _)| [hook.name(), hook.version()]),
        )
    }

    /// The version of the rules that render copies, with the hooks.
    fn rendering(&self) -> String {
        let before = self.rendering.as_deref().unwrap_or_default();
        let hooks = self.hooks.0.iter();
        let chosen = hooks.filter(|(_, operations)| RENDERING.iter().any(|each| operations.contains(each)));
        digest(before, chosen.flat_map(|(hook, _)| [hook.name(), hook.meaning()]))
    }
}

fn digest<'a>(before: &'a str, texts: impl Iterator<Item = &'a str>) -> String {
    let mut hash = Sha256::new();
    for text in [before].into_iter().chain(texts) {
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text);
    }
    let hash = hash.finalize();
    hash[..5].iter().map(|byte| format!("{byte:02x}")).collect()
}

impl From<Option<Customized>> for Interpretation {
    fn from(customized: Option<Customized>) -> Self {
        Self::of(customized.map(Arc::new), Candidates::default())
    }
}

/// Debug output omits the content of objects.
impl fmt::Debug for Interpretation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Interpretation").field(&self.version()).finish()
    }
}

impl PartialEq for Interpretation {
    fn eq(&self, other: &Self) -> bool {
        self.version() == other.version()
    }
}

impl Eq for Interpretation {}

impl Serialize for Interpretation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.version())
    }
}
