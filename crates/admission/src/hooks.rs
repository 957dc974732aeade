//! Interpreter webhooks have known operations and an address that can be called.

use entourage_api::config::{
    ResourceExploringWebhookConfiguration, ResourceInterpreterWebhookConfiguration, explorer, interpreter,
};
use entourage_interpreter::hook::{Contract, Hook};
use entourage_model::problem::Problem;
use serde::Deserialize as _;
use serde_json::Value;

use crate::request::{Request, items, text};

/// The contract of a configuration, and the operations that its hooks support.
pub(super) fn contract(request: &Request<'_>) -> (Contract, &'static [&'static str]) {
    if request.kind == Contract::Explorer.configuration() {
        (Contract::Explorer, explorer::OPERATIONS)
    } else {
        (Contract::Interpreter, interpreter::OPERATIONS)
    }
}

/// Rules name supported operations, or `*` alone: a hook with another operation is never called.
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

/// The problems with the address of a hook that its fields alone do not show: the errors of the control plane's own client.
pub(super) fn addresses(object: &Value, request: &Request<'_>, problems: &mut Vec<Problem>) {
    // Another shape is refused by the schema, with the field's name.
    let hooks = match contract(request).0 {
        Contract::Interpreter => ResourceInterpreterWebhookConfiguration::deserialize(object)
            .map(|configuration| Hook::interpreters(&configuration)),
        Contract::Explorer => ResourceExploringWebhookConfiguration::deserialize(object)
            .map(|configuration| Hook::explorers(&configuration)),
    };
    for (at, hook) in hooks.unwrap_or_default().iter().enumerate() {
        let path = format!("webhooks[{at}]");
        let is_reported = |problem: &Problem| problem.field.starts_with(&format!("{path}."));
        if let Err(wrong) = hook.call()
            && !problems.iter().any(is_reported)
        {
            let field = format!("{path}.{}", wrong.field);
            problems.push(Problem::new(field, wrong.cause.as_str(), wrong.remedy.as_str()));
        }
    }
}
