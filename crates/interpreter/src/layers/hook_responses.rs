//! The responses of webhooks about one object, as the shell passes them on.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    hook::Policy,
    operations::Operation,
    question::{Answer, InterpretError, Until},
};

/// What hooks said of one object. Cheap to clone.
#[derive(Clone, Default)]
pub struct HookResponses(pub(super) Arc<BTreeMap<Operation, HookResult>>);

/// What a hook said to one question.
#[derive(Clone)]
pub enum HookResult {
    /// An answer, or why there is none although nothing may go on without it.
    Told(Result<Answer, InterpretError>),
    /// There is no answer, and the next layer is to be asked as if there were no hook.
    Ignored(InterpretError),
    /// No hook is about it after all: the next layer answers.
    Nobody,
    /// It was not asked, because nobody uses the answer.
    Unused,
}

impl HookResponses {
    /// What was said, by operation.
    #[must_use]
    pub fn of(said: impl IntoIterator<Item = (Operation, HookResult)>) -> Self {
        Self(Arc::new(said.into_iter().collect()))
    }

    /// And this. Cost: O(what was said before).
    #[must_use]
    pub fn and(&self, operation: Operation, said: HookResult) -> Self {
        let mut all = (*self.0).clone();
        all.insert(operation, said);
        Self(Arc::new(all))
    }

    /// Whether this was asked, or need not be.
    #[must_use]
    pub fn has(&self, operation: Operation) -> bool {
        self.0.contains_key(&operation)
    }

    /// Whether the next layer answers this, because the hook was asked and does not.
    #[must_use]
    pub fn is_passed(&self, operation: Operation) -> bool {
        matches!(
            self.0.get(&operation),
            Some(HookResult::Ignored(_) | HookResult::Nobody)
        )
    }

    /// Whether somebody has no answer, and may have one when asked again.
    #[must_use]
    pub fn lacks(&self) -> bool {
        self.0
            .values()
            .any(|said| matches!(said, HookResult::Ignored(_) | HookResult::Told(Err(_))))
    }
}

impl HookResult {
    /// Who was passed over.
    #[must_use]
    pub const fn ignored(&self) -> Option<&InterpretError> {
        match self {
            Self::Ignored(unanswered) => Some(unanswered),
            _ => None,
        }
    }

    /// What a hook's answer means by its policy.
    #[must_use]
    pub fn by(policy: Policy, answer: Result<Answer, InterpretError>) -> Self {
        match (answer, policy) {
            (Err(unanswered), Policy::Ignore) => Self::Ignored(InterpretError {
                until: Until::SkippedByFailurePolicy,
                ..unanswered
            }),
            (answer, _) => Self::Told(answer),
        }
    }
}
