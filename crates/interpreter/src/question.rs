//! Questions about an object, and their answers: the same types for native rules, scripts and hooks.
//!
//! Neither has a `Debug` that shows an object: it may be a Secret.

use std::{borrow::Cow, fmt};

use entourage_api::work::{AggregatedStatusItem, Component, DependentObjectReference, ReplicaRequirements};
use serde_json::Value;

use crate::{
    mentions::DependencyReference,
    operations::{Contract, Operation},
};
use entourage_model::{rendered::wipe, selector};

/// One question about one object.
#[derive(Clone, Copy)]
pub enum Question<'a> {
    /// The number of replicas that a template requests, and the requirements of one of them.
    Replicas(&'a Value),
    /// The components of a template with several pod templates.
    Components(&'a Value),
    /// A template to be rendered, without fields that stay on the hub.
    Prune(&'a Value),
    /// A rendered object with this many replicas.
    Revise(&'a Value, i64),
    /// A rendered object with the fields that belong to the member taken from the live copy.
    Retain {
        /// The rendered object.
        desired: &'a Value,
        /// The copy as the member serves it.
        live: &'a Value,
    },
    /// The status of a live copy to report.
    Reflect(&'a Value),
    /// A template with the status aggregated from its copies.
    Aggregate {
        /// The template as the hub serves it.
        template: &'a Value,
        /// The report of each cluster.
        items: &'a [AggregatedStatusItem],
    },
    /// The health of a live copy.
    Health(&'a Value),
    /// The dependencies of a template.
    Dependencies(&'a Value),
}

impl<'a> Question<'a> {
    /// The object of the question; of several the one that the answer changes.
    #[must_use]
    pub const fn object(&self) -> &'a Value {
        match self {
            Self::Replicas(object)
            | Self::Components(object)
            | Self::Prune(object)
            | Self::Revise(object, _)
            | Self::Retain { desired: object, .. }
            | Self::Reflect(object)
            | Self::Aggregate { template: object, .. }
            | Self::Health(object)
            | Self::Dependencies(object) => object,
        }
    }

    /// The operation of the question.
    #[must_use]
    pub const fn operation(&self) -> Operation {
        match self {
            Self::Replicas(_) => Operation::Replicas,
            Self::Components(_) => Operation::Components,
            Self::Prune(_) => Operation::Prune,
            Self::Revise(..) => Operation::Revise,
            Self::Retain { .. } => Operation::Retain,
            Self::Reflect(_) => Operation::Reflect,
            Self::Aggregate { .. } => Operation::Aggregate,
            Self::Health(_) => Operation::Health,
            Self::Dependencies(_) => Operation::References,
        }
    }
}

/// A question about an object that is being rendered, in its current state. It may be a Secret: no `Debug`, no `Clone`, wiped on
/// drop.
pub enum Inquiry {
    /// [`Question::Prune`].
    Prune(Value),
    /// [`Question::Revise`].
    Revise(Value, i64),
    /// [`Question::Retain`].
    Retain {
        /// The rendered object.
        desired: Value,
        /// The copy as the member serves it.
        live: Value,
    },
}

impl Inquiry {
    /// The question.
    #[must_use]
    pub const fn question(&self) -> Question<'_> {
        match self {
            Self::Prune(object) => Question::Prune(object),
            Self::Revise(object, replicas) => Question::Revise(object, *replicas),
            Self::Retain { desired, live } => Question::Retain { desired, live },
        }
    }
}

impl Drop for Inquiry {
    fn drop(&mut self) {
        match self {
            Self::Prune(object) | Self::Revise(object, _) => wipe(object),
            Self::Retain { desired, live } => {
                wipe(desired);
                wipe(live);
            }
        }
    }
}

/// The answer to a [`Question`] of the same operation.
#[derive(Clone, PartialEq)]
pub enum Answer {
    /// To [`Question::Replicas`].
    Replicas {
        /// Their number.
        replicas: i64,
        /// The requirements of one of them, or `None`.
        requirements: Option<ReplicaRequirements>,
    },
    /// To [`Question::Components`].
    Components(Vec<Component>),
    /// To [`Question::Prune`], [`Question::Revise`], [`Question::Retain`] and [`Question::Aggregate`]: the object as a whole.
    Object(Value),
    /// To [`Question::Reflect`]; `None` for nothing to report.
    Status(Option<Value>),
    /// To [`Question::Health`].
    Healthy(bool),
    /// To [`Question::Dependencies`], of a layer that distinguishes optional references; sorted, each once.
    References(Vec<DependencyReference>),
    /// To [`Question::Dependencies`]; each entry is well formed ([`check_dependency`]).
    Dependencies(Vec<DependentObjectReference>),
}

/// The reason why a question has no answer. Contains nothing of the object that it was about.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{layer}: {why}")]
pub struct InterpretError {
    /// The layer, for a user: `ResourceInterpreterCustomization "name"`.
    pub layer: String,
    /// The contract of the layer, which names its operations; that of Karmada if the layer is no hook.
    pub contract: Contract,
    /// The operation.
    pub operation: Operation,
    /// The cause, and where.
    pub why: Cow<'static, str>,
    /// The event that may bring an answer.
    pub until: Until,
}

/// The event that may bring an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// A change of the object, or of the interpreter.
    Changed,
    /// Another call of the hook; nothing may begin before.
    Answered,
    /// Another call of the hook; the next layer answers in its place until then.
    SkippedByFailurePolicy,
    /// The result comes into use: until then the hook is not called, and this is no failure.
    Used,
}

impl InterpretError {
    /// True if a retry may help although the object has not changed.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        matches!(self.until, Until::Answered | Until::SkippedByFailurePolicy)
    }

    /// True if no call was made, because the result is not in use.
    #[must_use]
    pub fn is_unasked(&self) -> bool {
        self.until == Until::Used
    }

    /// The layer, the operation, and the cause: `ResourceInterpreterCustomization "name": InterpretReplica failed: line 3: …`.
    #[must_use]
    pub fn failure(&self) -> String {
        format!("{}: {} failed: {}", self.layer, self.word(), self.why)
    }

    /// The name of the operation in the layer's contract.
    #[must_use]
    pub fn word(&self) -> &'static str {
        let own = self.contract.word(self.operation);
        own.unwrap_or_else(|| self.operation.word())
    }
}

impl InterpretError {
    /// The error for the components of a template.
    pub fn of_components(layer: &str, why: Cow<'static, str>) -> Self {
        Self {
            layer: layer.to_owned(),
            contract: Contract::Interpreter,
            operation: Operation::Components,
            why,
            until: Until::Changed,
        }
    }
}

/// A layer that evaluates something: a script, or declared rules.
pub trait Rule: Send + Sync + fmt::Debug {
    /// Returns the answer, of the question's operation.
    ///
    /// # Errors
    /// The cause, and where, without content of the object.
    fn answer(&self, question: Question<'_>) -> Result<Answer, Cow<'static, str>>;
}

/// Checks that an entry names an object. Source: Karmada reference 3.1 (VerifyDependencies).
///
/// # Errors
/// The invalid field.
pub fn check_dependency(each: &DependentObjectReference) -> Result<(), String> {
    if each.api_version.is_empty() || each.kind.is_empty() {
        return Err("a dependency has no apiVersion or no kind".into());
    }
    match &each.label_selector {
        None if each.name.is_empty() => Err(format!("a {} has neither name nor labelSelector", each.kind)),
        Some(labels) => {
            selector::check(labels).map_err(|why| format!("the labelSelector of a {}: {why}", each.kind))
        }
        None => Ok(()),
    }
}
