//! Hooks as they are configured, and what they are asked about an object before it is read.

use std::sync::Arc;

use serde_json::Value;

use super::{Watch, read};
use crate::{
    interpreter::{
        self, Interpretation,
        hook::{Contract, Hook},
        question::Question,
    },
    object::Meta,
};

/// A configuration of hooks.
#[derive(Clone, Debug, PartialEq)]
pub struct Configured {
    /// Its metadata.
    pub meta: Meta,
    /// In which words they are asked.
    pub contract: Contract,
    /// The hooks, in its order.
    pub hooks: Vec<Arc<Hook>>,
}

impl Configured {
    /// `None` if it cannot be read.
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

/// What hooks are to be asked about an object before it is projected: their answers come [with](Interpretation::with) what is
/// taught. What never travels is not asked about.
#[must_use]
pub fn questions<'a>(watch: &Watch, taught: &Interpretation, object: &'a Value) -> Vec<Question<'a>> {
    if !taught.is_hooked() {
        return Vec::new();
    }
    let mut all = match watch {
        Watch::Templates(_) => vec![
            Question::Replicas(object),
            Question::Components(object),
            Question::Dependencies(object),
        ],
        Watch::Copies(..) => vec![Question::Reflect(object), Question::Health(object)],
        _ => Vec::new(),
    };
    all.retain(|question| taught.asks(question.operation()));
    if interpreter::never_travels(object) {
        all.clear();
    }
    all
}
