//! Configured hooks, and the questions they are asked about an object before it is projected.

use std::sync::Arc;

use serde_json::Value;

use super::{Used, Watch, read};
use crate::{
    interpreter::{
        self, Interpretation,
        hook::{Contract, Hook},
        layers::{HookResponses, HookResult},
        operations::Operation,
        question::Question,
    },
    object::{Gvk, Meta},
};

/// A configuration of hooks.
#[derive(Clone, Debug, PartialEq)]
pub struct Configured {
    /// Its metadata.
    pub meta: Meta,
    /// The protocol of the hooks.
    pub contract: Contract,
    /// The hooks, in the order of the configuration.
    pub hooks: Vec<Arc<Hook>>,
}

impl Configured {
    /// Reads a configuration, or returns `None` if it is invalid.
    pub(super) fn of(contract: Contract, object: &Value) -> Option<Self> {
        let hooks = match contract {
            Contract::Interpreter => Hook::interpreters(&read(object)?),
            Contract::Explorer => Hook::explorers(&read(object)?),
        };
        Some(Self {
            meta: Meta::of(object),
            contract,
            hooks: hooks.into_iter().map(Arc::new).collect(),
        })
    }
}

/// The questions for hooks about an object before it is projected; the interpretation gets the responses by
/// [`with`](Interpretation::with). Only operations whose results are `used` are requested, and none for an object that is never
/// propagated. Components are requested after replicas, if there are none: so this is called again with the responses in
/// `responses`, until the result is empty.
#[must_use]
pub fn questions<'a>(
    watch: &Watch,
    interpretation: &Interpretation,
    object: &'a Value,
    used: Used,
    responses: &HookResponses,
) -> Vec<Question<'a>> {
    if !interpretation.is_hooked() || interpreter::not_propagatable(object) {
        return Vec::new();
    }
    let mut all = match watch {
        Watch::Templates(gvk) => {
            let components = !has_replicas(interpretation, gvk, object, responses);
            let components = components.then_some(Question::Components(object));
            [Question::Replicas(object), Question::Dependencies(object)]
                .into_iter()
                .chain(components)
                .filter(|question| used.has(question.operation()))
                .collect()
        }
        Watch::Copies(..) => vec![Question::Reflect(object), Question::Health(object)],
        _ => Vec::new(),
    };
    all.retain(|question| interpretation.asks(question.operation()) && !responses.has(question.operation()));
    all
}

/// Returns the responses of hooks about an object that a watch served, and the operations that were skipped because their
/// results are not in use.
#[must_use]
pub fn with_unused(
    watch: &Watch,
    interpretation: &Interpretation,
    object: &Value,
    responses: HookResponses,
) -> HookResponses {
    if !matches!(watch, Watch::Templates(_))
        || !interpretation.is_hooked()
        || interpreter::not_propagatable(object)
    {
        return responses;
    }
    [Operation::Replicas, Operation::Components, Operation::References]
        .into_iter()
        .filter(|operation| interpretation.asks(*operation))
        .fold(responses, |responses, operation| {
            if responses.has(operation) {
                responses
            } else {
                responses.and(operation, HookResult::Unused)
            }
        })
}

/// True if a template has replicas, or that is still to be asked.
fn has_replicas(
    interpretation: &Interpretation,
    gvk: &Gvk,
    object: &Value,
    responses: &HookResponses,
) -> bool {
    if interpretation.has(Operation::Replicas) && !responses.is_passed(Operation::Replicas) {
        return true;
    }
    interpreter::native(&gvk.group, &gvk.version, &gvk.kind)
        .is_some_and(|native| native.replicas(object).is_some())
}
