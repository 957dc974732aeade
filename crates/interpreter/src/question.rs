//! Questions about an object and their answers: the same types for native code, scripts and webhooks.
//!
//! Neither has a `Debug` that shows an object: it may hold a Secret.

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
    /// How many replicas a template asks for, and what one of them needs.
    Replicas(&'a Value),
    /// The parts of a template with several pod templates.
    Components(&'a Value),
    /// A template on its way to becoming a copy, without what stays on the hub.
    Prune(&'a Value),
    /// A rendered object with this many replicas.
    Revise(&'a Value, i64),
    /// A rendered object with what belongs to the member taken over from the live copy.
    Retain {
        /// The rendered object.
        desired: &'a Value,
        /// The copy as the member serves it.
        live: &'a Value,
    },
    /// What of a live copy's status is worth reporting.
    Reflect(&'a Value),
    /// A template with the status that is made of its copies'.
    Aggregate {
        /// The template as the hub serves it.
        template: &'a Value,
        /// What each cluster reported.
        items: &'a [AggregatedStatusItem],
    },
    /// How a live copy is doing.
    Health(&'a Value),
    /// What a template needs.
    Dependencies(&'a Value),
}

impl<'a> Question<'a> {
    /// The object that it is about; of several the one that an answer changes.
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

    /// The operation that it is about.
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

/// A question about an object that is being made, as it stands. It may hold a Secret: no `Debug`, no `Clone`, wiped on drop.
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
    /// What is asked.
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
        /// How many.
        replicas: i64,
        /// What one of them needs, if anything.
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
    /// To [`Question::Dependencies`], of a layer that knows what a workload can start without; sorted, each once.
    References(Vec<DependencyReference>),
    /// To [`Question::Dependencies`]; each entry is well formed ([`check_dependency`]).
    Dependencies(Vec<DependentObjectReference>),
}

/// Why a question has no answer. Holds nothing of the object that it was about.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{layer}: {why}")]
pub struct InterpretError {
    /// Who was asked, for a person: `ResourceInterpreterCustomization "name"`.
    pub layer: String,
    /// What was asked.
    pub operation: Operation,
    /// What is wrong, and where.
    pub why: Cow<'static, str>,
    /// What may bring one.
    pub until: Until,
}

/// What may bring an answer where there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// Something that was asked about, or who is asked, changes.
    Changed,
    /// A hook is asked again; nothing may begin before.
    Answered,
    /// A hook is asked again; whoever comes next answers in its place until then.
    SkippedByFailurePolicy,
    /// Somebody uses the answer: until then the hook is not asked, and this is no failure.
    Used,
}

impl InterpretError {
    /// Whether asking again later may help although nothing that was asked about has changed.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        matches!(self.until, Until::Answered | Until::SkippedByFailurePolicy)
    }

    /// Whether nobody was asked, because nobody used the answer.
    #[must_use]
    pub fn is_unasked(&self) -> bool {
        self.until == Until::Used
    }

    /// Who failed to answer what, and why: `ResourceInterpreterCustomization "name": InterpretReplica failed: line 3: …`.
    #[must_use]
    pub fn failure(&self) -> String {
        format!("{}: {} failed: {}", self.layer, self.word(), self.why)
    }

    /// What whoever was asked calls the operation.
    #[must_use]
    pub fn word(&self) -> &'static str {
        let explorer = self.layer.starts_with(Contract::Explorer.configuration());
        let own = explorer
            .then(|| Contract::Explorer.word(self.operation))
            .flatten();
        own.unwrap_or_else(|| self.operation.word())
    }
}

impl InterpretError {
    /// As it is told of the parts of a template.
    pub fn of_components(layer: &str, why: Cow<'static, str>) -> Self {
        Self {
            layer: layer.to_owned(),
            operation: Operation::Components,
            why,
            until: Until::Changed,
        }
    }
}

/// A layer that answers by running something: a script, or declared rules.
pub trait Rule: Send + Sync + fmt::Debug {
    /// The answer, of the question's operation.
    ///
    /// # Errors
    /// What is wrong, and where, without anything of the object.
    fn answer(&self, question: Question<'_>) -> Result<Answer, Cow<'static, str>>;
}

/// Whether an entry names something. Source: Karmada reference 3.1 (VerifyDependencies).
///
/// # Errors
/// Which field is wrong.
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
