//! The responses of hooks about one object, as the shell passes them on.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    hook::Policy,
    operations::Operation,
    question::{Answer, InterpretError, Until},
};

/// The responses of hooks about one object. Cheap to clone.
#[derive(Clone, Default)]
pub struct HookResponses(pub(super) Arc<BTreeMap<Operation, HookResult>>);

/// The response of a hook to one question.
#[derive(Clone)]
pub enum HookResult {
    /// A result, or the error that blocks the operation.
    Answer(Result<Answer, InterpretError>),
    /// The hook failed and is skipped by failurePolicy: the next layer answers as if there were no hook.
    Ignored(InterpretError),
    /// No hook matches after all: the next layer answers.
    Nobody,
    /// No call was made, because the result is not in use.
    Unused,
}

impl HookResponses {
    /// Builds responses by operation.
    #[must_use]
    pub fn of(results: impl IntoIterator<Item = (Operation, HookResult)>) -> Self {
        Self(Arc::new(results.into_iter().collect()))
    }

    /// Adds a response. Cost: O(earlier responses).
    #[must_use]
    pub fn and(&self, operation: Operation, result: HookResult) -> Self {
        let mut all = (*self.0).clone();
        all.insert(operation, result);
        Self(Arc::new(all))
    }

    /// True if this operation was requested, or need not be.
    #[must_use]
    pub fn has(&self, operation: Operation) -> bool {
        self.0.contains_key(&operation)
    }

    /// True if the next layer answers this operation, because the hook was skipped or does not match.
    #[must_use]
    pub fn is_passed(&self, operation: Operation) -> bool {
        matches!(
            self.0.get(&operation),
            Some(HookResult::Ignored(_) | HookResult::Nobody)
        )
    }

    /// True if a hook failed, and may respond to a retry.
    #[must_use]
    pub fn lacks(&self) -> bool {
        self.0
            .values()
            .any(|result| matches!(result, HookResult::Ignored(_) | HookResult::Answer(Err(_))))
    }
}

impl HookResult {
    /// The error of a skipped hook, or `None`.
    #[must_use]
    pub const fn ignored(&self) -> Option<&InterpretError> {
        match self {
            Self::Ignored(unanswered) => Some(unanswered),
            _ => None,
        }
    }

    /// The response by the hook's policy.
    #[must_use]
    pub fn by(policy: Policy, answer: Result<Answer, InterpretError>) -> Self {
        match (answer, policy) {
            (Err(unanswered), Policy::Ignore) => Self::Ignored(InterpretError {
                until: Until::SkippedByFailurePolicy,
                ..unanswered
            }),
            (answer, _) => Self::Answer(answer),
        }
    }
}
