//! The interpreter of a kind: customizations and webhooks of users over shipped rules and native code.
//!
//! An [`Interpretation`] is what people taught us of one kind, usually nothing. It is data that is passed along: a watch
//! reads its objects by the one it was started with, and a delivery renders by the one its plan was made with. Its
//! [version](Interpretation::version) tells one from another, so that what was read by a former one is not taken for news.
//!
//! Order of the layers, for each operation: customizations, then hooks, then kinds that we know (Karmada reference 3.5). The
//! first that has the operation answers, alone; the dependencies of several customizations add up.
//!
//! Nobody is spoken to here. What a hook says of an object is [heard](Heard) by the shell before the object is read, and
//! comes [with](Interpretation::with) the interpretation; what was not heard has no answer.

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
    operations::Operation,
    question::{Answer, InterpretError, Question, Until},
    references,
};
use entourage_model::object::{Gvk, Str};

/// The operations by which copies are made.
const RENDERING: [Operation; 3] = [Operation::Prune, Operation::Revise, Operation::Retain];

/// What people taught us of the kinds.
#[derive(Clone, Debug, Default)]
pub struct Interpreter {
    /// Kinds compare without their version, and what is taught is about one. Those of which something is taught.
    kinds: BTreeMap<(Gvk, Str), Interpretation>,
    /// All of them; those about a kind stand in its interpretation.
    hooks: Arc<[Arc<Hook>]>,
}

impl Interpreter {
    /// What they taught us of this kind in this version. Cost: O(log kinds that something is taught of), and for a kind that
    /// was not asked about before O(rules of all hooks).
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

    /// Takes in what they teach us of a kind now; `None` for nothing any more. Answers whether that is a change.
    pub fn teach(&mut self, gvk: &Gvk, customized: Option<Customized>) -> bool {
        let before = self.of(gvk);
        let customized = customized.map(Arc::new);
        self.set(
            gvk,
            Interpretation::of(customized, Candidates::of(&self.hooks, gvk)),
        );
        before != self.of(gvk)
    }

    /// Takes in which hooks there are now.
    pub fn hooked(&mut self, hooks: Vec<Arc<Hook>>) {
        self.hooks = hooks.into();
    }

    /// Puts together anew what is taught of a kind, after [`Self::hooked`]. Answers whether that is a change.
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

    /// The kinds of which something is taught by name.
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

/// What people taught us of one kind; the default is nothing. Two are equal if they have the same version.
#[derive(Clone, Default)]
pub struct Interpretation {
    layers: Option<Arc<Layers>>,
    /// What hooks said of the object that is about to be read.
    heard: HookResponses,
}

#[derive(Debug)]
struct Layers {
    customized: Option<Arc<Customized>>,
    hooks: Candidates,
    version: String,
    rendering: Option<String>,
}

/// What an object was found to need by what people taught us.
#[derive(Default)]
pub struct Found {
    /// What each layer found.
    pub answers: Vec<Answer>,
    /// Whether what is known without them does not count.
    pub is_all: bool,
    /// Who has no answer: what it would have found must not be taken for not needed.
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
            heard: HookResponses::default(),
        }
    }

    /// As it is, with what hooks said of the object that is read next.
    #[must_use]
    pub fn with(&self, heard: HookResponses) -> Self {
        Self {
            layers: self.layers.clone(),
            heard,
        }
    }

    /// As it is, without anything of an object: for keeping.
    #[must_use]
    pub fn kept(&self) -> Self {
        self.with(HookResponses::default())
    }

    /// What tells it from another one of the same kind; empty for nothing.
    #[must_use]
    pub fn version(&self) -> &str {
        self.layers.as_ref().map_or("", |layers| &layers.version)
    }

    /// As [`Self::version`], of the rules by which copies are made; `None` if there are none.
    #[must_use]
    pub fn rendering(&self) -> Option<&str> {
        self.layers.as_ref()?.rendering.as_deref()
    }

    /// Whether hooks are to be heard for this operation before anything else is known. Which one it is takes what the API
    /// server calls the kind: [`Self::hook`].
    #[must_use]
    pub fn asks(&self, operation: Operation) -> bool {
        self.layers.as_ref().is_some_and(|layers| layers.asks(operation))
    }

    /// Whether hooks are to be heard for anything.
    #[must_use]
    pub fn is_hooked(&self) -> bool {
        self.layers
            .as_ref()
            .is_some_and(|layers| !layers.hooks.0.is_empty())
    }

    /// The hook that is asked; `None` if none is about the kind after all. Cost: O(rules of the kind's hooks).
    #[must_use]
    pub fn hook(&self, subject: &Subject<'_>, operation: Operation) -> Option<&Hook> {
        let hooks = &self.layers.as_ref()?.hooks;
        hook::choose(hooks.for_operation(operation), subject, operation)
    }

    /// Whether it has an operation, so that what we know ourselves of the kind does not count.
    #[must_use]
    pub fn has(&self, operation: Operation) -> bool {
        self.customized()
            .is_some_and(|customized| customized.has(operation))
            || self.asks(operation) && !self.is_passed(operation)
    }

    /// Its answer; `None` if it has none of the question's operation. Not for dependencies: [`Self::dependencies`].
    #[must_use]
    pub fn answer(&self, question: Question<'_>) -> Option<Result<Answer, InterpretError>> {
        let operation = question.operation();
        let customized = self.customized().and_then(|each| each.answer(question));
        if customized.is_some() {
            return customized;
        }
        self.asks(operation).then(|| self.heard(operation))?
    }

    /// What it finds an object to need.
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
        if let Some(HookResult::Ignored(unanswered)) = self.heard.0.get(&Operation::References) {
            all.unanswered.get_or_insert_with(|| unanswered.clone());
            return all;
        }
        match self.heard(Operation::References) {
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

    /// Whether hooks were heard, and the next layer answers.
    fn is_passed(&self, operation: Operation) -> bool {
        self.heard.is_passed(operation)
    }

    /// Who was passed over, which is no answer where nobody comes next.
    pub fn ignored(&self, operation: Operation) -> Option<InterpretError> {
        match self.heard.0.get(&operation)? {
            HookResult::Ignored(unanswered) => Some(InterpretError {
                until: Until::Answered,
                ..unanswered.clone()
            }),
            _ => None,
        }
    }

    /// What hooks said; `None` if the next layer answers.
    fn heard(&self, operation: Operation) -> Option<Result<Answer, InterpretError>> {
        match self.heard.0.get(&operation) {
            Some(HookResult::Told(answer)) => Some(answer.clone()),
            Some(HookResult::Ignored(_) | HookResult::Nobody) => None,
            Some(HookResult::Unused) => Some(Err(InterpretError {
                why: Cow::Borrowed("its answer is not used"),
                until: Until::Used,
                ..self.unheard(operation)
            })),
            None => Some(Err(self.unheard(operation))),
        }
    }

    /// Nobody asked.
    pub fn unheard(&self, operation: Operation) -> InterpretError {
        let mut hooks = self
            .layers
            .iter()
            .flat_map(|layers| layers.hooks.for_operation(operation));
        InterpretError {
            layer: hooks.next().map(Hook::layer).unwrap_or_default(),
            operation,
            why: Cow::Borrowed("it was not asked"),
            until: Until::Answered,
        }
    }

    /// Whether it was asked and has said something about this.
    pub fn was_heard(&self, operation: Operation) -> bool {
        self.heard.0.contains_key(&operation)
    }

    /// Who of those that taught us has the question's operation, and the answer of each.
    pub(super) fn each(&self, question: Question<'_>) -> Vec<(String, Result<Answer, InterpretError>)> {
        self.customized()
            .map_or_else(Vec::new, |customized| customized.each(question))
    }

    /// Whether the dependencies that its customizations find are added to those that are known without them.
    #[must_use]
    pub fn adds(&self) -> bool {
        self.customized().is_some_and(Customized::adds)
    }

    /// As [`Self::answer`], for an operation that answers an object as a whole.
    #[must_use]
    pub fn object(&self, question: Question<'_>) -> Option<Result<Value, InterpretError>> {
        let misfit = |layer: String| InterpretError {
            layer,
            operation: question.operation(),
            why: Cow::Borrowed("the answer is not an object"),
            until: Until::Changed,
        };
        Some(match self.answer(question)? {
            Ok(Answer::Object(object)) if object.is_object() => Ok(object),
            Ok(_) => Err(misfit("interpretation".to_owned())),
            Err(unanswered) => Err(unanswered),
        })
    }

    /// Whether objects of the kind may refer to others.
    #[must_use]
    pub fn refers(&self, gvk: &Gvk) -> bool {
        self.has(Operation::References)
            || native(&gvk.group, &gvk.version, &gvk.kind).is_some_and(references::refers)
    }

    /// Whether the kind's copies are watched, and asked for in answers to writes, as whole objects: their status is shown.
    #[must_use]
    pub fn is_copied_whole(&self, gvk: &Gvk) -> bool {
        self.has(Operation::Reflect)
            || self.has(Operation::Health)
            || native(&gvk.group, &gvk.version, &gvk.kind).is_none_or(NativeKind::reports_status)
    }

    /// Whether the kind's templates are watched as whole objects: they refer to others, or their status is reported.
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

    /// What tells this, with the hooks, from another.
    fn digest(&self) -> String {
        let hooks = self.hooks.0.iter();
        digest(
            &self.version,
            hooks.flat_map(|(hook, _)| [hook.name(), hook.version()]),
        )
    }

    /// What tells the rules that make copies, with the hooks, from others.
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

/// Without anything of an object.
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
