//! Webhooks of interpreters are asked in words that are known, at an address that can be called.

use entourage_api::config::{
    ResourceExploringWebhookConfiguration, ResourceInterpreterWebhookConfiguration, explorer, interpreter,
};
use serde::Deserialize as _;
use serde_json::Value;

use super::{Problem, Request, items, text};
use crate::interpreter::hook::{Contract, Hook};

/// The contract of a configuration, and what its hooks can be asked.
pub(super) fn contract(request: &Request<'_>) -> (Contract, &'static [&'static str]) {
    if request.kind == Contract::Explorer.configuration() {
        (Contract::Explorer, explorer::OPERATIONS)
    } else {
        (Contract::Interpreter, interpreter::OPERATIONS)
    }
}

/// Rules name what hooks can be asked, or `*` alone: a hook with another word is never asked.
pub(super) fn operations(object: &Value, request: &Request<'_>, problems: &mut Vec<Problem>) {
    let (_, known) = contract(request);
    for (at, webhook) in items(&object["webhooks"]).iter().enumerate() {
        for (nth, rule) in items(&webhook["rules"]).iter().enumerate() {
            let field = format!("webhooks[{at}].rules[{nth}].operations");
            let operations: Vec<&str> = items(&rule["operations"]).iter().map(text).collect();
            if operations.is_empty() || operations.contains(&"*") && operations.len() > 1 {
                problems.push(Problem::new(
                    &field,
                    "operations and * are mutually exclusive",
                    "give * alone, or the operations",
                ));
            }
            for unknown in operations.iter().filter(|each| !known.contains(each)) {
                problems.push(Problem::new(
                    &field,
                    format!("{unknown:?} is not an operation"),
                    format!("give {}", known.join(", ")),
                ));
            }
        }
    }
}

/// What is wrong with the address of a hook beyond what its fields show: what the control plane itself would say of it.
pub(super) fn addresses(object: &Value, request: &Request<'_>, problems: &mut Vec<Problem>) {
    // What has another shape is refused by the schema, with the field's name.
    let hooks = match contract(request).0 {
        Contract::Interpreter => ResourceInterpreterWebhookConfiguration::deserialize(object)
            .map(|configuration| Hook::interpreters(&configuration)),
        Contract::Explorer => ResourceExploringWebhookConfiguration::deserialize(object)
            .map(|configuration| Hook::explorers(&configuration)),
    };
    for (at, hook) in hooks.unwrap_or_default().iter().enumerate() {
        let path = format!("webhooks[{at}]");
        let is_told = |problem: &Problem| problem.field.starts_with(&format!("{path}."));
        if let Err(why) = hook.call()
            && !problems.iter().any(is_told)
        {
            // `webhook NAME cannot be called: FIELD: CAUSE; REMEDY`
            let why = why.rsplit_once("cannot be called: ").map_or(why, |(_, why)| why);
            let (field, why) = why.split_once(": ").unwrap_or(("clientConfig", why));
            let (cause, remedy) = why.split_once("; ").unwrap_or((why, "correct it"));
            problems.push(Problem::new(format!("{path}.{field}"), cause, remedy));
        }
    }
}
