//! The layers of what is known of a kind, put together: what people taught us of it, over what we know ourselves.
//!
//! An [`Interpretation`] is what people taught us of one kind, usually nothing. It is data that is passed along: a watch
//! reads its objects by the one it was started with, and a delivery renders by the one its plan was made with. Its
//! [version](Interpretation::version) tells one from another, so that what was read by a former one is not taken for news.
//!
//! Order of the layers, for each operation: customizations, then kinds that we know (Karmada reference 3.5). The first that
//! has the operation answers, alone; the dependencies of several customizations add up.

use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

use serde::{Serialize, Serializer};
use serde_json::Value;

use super::{
    NativeKind,
    customized::Customized,
    native,
    operations::Operation,
    question::{Answer, Question, Unanswered},
    references,
};
use crate::object::{Gvk, Str};

/// What people taught us of the kinds.
#[derive(Clone, Debug, Default)]
pub struct Interpreter {
    /// Kinds compare without their version, and what is taught is about one.
    kinds: BTreeMap<(Gvk, Str), Interpretation>,
}

impl Interpreter {
    /// What they taught us of this kind in this version. Cost: O(log customized kinds).
    #[must_use]
    pub fn of(&self, gvk: &Gvk) -> Interpretation {
        if self.kinds.is_empty() {
            return Interpretation::default();
        }
        let key = (gvk.clone(), gvk.version.clone());
        self.kinds.get(&key).cloned().unwrap_or_default()
    }

    /// Takes in what they teach us of a kind now; `None` for nothing any more. Answers whether that is a change.
    pub(crate) fn teach(&mut self, gvk: &Gvk, customized: Option<Customized>) -> bool {
        let key = (gvk.clone(), gvk.version.clone());
        let before = self.kinds.remove(&key).unwrap_or_default();
        let after = Interpretation::from(customized);
        let changed = before != after;
        if after.0.is_some() {
            self.kinds.insert(key, after);
        }
        changed
    }
}

/// What people taught us of one kind; the default is nothing. Two are equal if they have the same version.
#[derive(Clone, Debug, Default)]
pub struct Interpretation(Option<Arc<Customized>>);

impl Interpretation {
    /// What tells it from another one of the same kind; empty for nothing.
    #[must_use]
    pub fn version(&self) -> &str {
        self.0.as_ref().map_or("", |customized| customized.version())
    }

    /// As [`Self::version`], of the rules by which copies are made; `None` if there are none.
    #[must_use]
    pub fn rendering(&self) -> Option<&str> {
        self.0.as_ref()?.rendering()
    }

    /// Whether it has an operation, so that what we know ourselves of the kind does not count.
    #[must_use]
    pub fn has(&self, operation: Operation) -> bool {
        self.0
            .as_ref()
            .is_some_and(|customized| customized.has(operation))
    }

    /// Its answer; `None` if it has none of the question's operation. Not for dependencies: [`Self::dependencies`].
    #[must_use]
    pub fn answer(&self, question: Question<'_>) -> Option<Result<Answer, Unanswered>> {
        self.0.as_ref()?.answer(question)
    }

    /// What its rules find an object to need, each on its own; `None` if it has none for that.
    #[must_use]
    pub fn dependencies(&self, object: &Value) -> Option<Result<Vec<Answer>, Unanswered>> {
        self.0.as_ref()?.dependencies(object)
    }

    /// Who of those that taught us has the question's operation, and the answer of each.
    pub(super) fn each(&self, question: Question<'_>) -> Vec<(String, Result<Answer, Unanswered>)> {
        self.0
            .as_ref()
            .map_or_else(Vec::new, |customized| customized.each(question))
    }

    /// Whether the dependencies that it finds are added to those that are known without it.
    #[must_use]
    pub fn adds(&self) -> bool {
        self.0.as_ref().is_some_and(|customized| customized.adds())
    }

    /// As [`Self::answer`], for an operation that answers an object as a whole.
    #[must_use]
    pub fn object(&self, question: Question<'_>) -> Option<Result<Value, Unanswered>> {
        let misfit = |layer: String| Unanswered {
            layer,
            operation: question.operation(),
            why: Cow::Borrowed("the answer is no object"),
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
            || native(&gvk.group, &gvk.version, &gvk.kind).is_some_and(NativeKind::reports_status)
    }
}

impl From<Option<Customized>> for Interpretation {
    fn from(customized: Option<Customized>) -> Self {
        Self(customized.map(Arc::new))
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
