//! Calls all layers in their order: customizations, webhooks, native and shipped rules.

use std::io::Write;

use anyhow::Result;
use entourage_controllers::hooks::{Hooks, Options};
use entourage_core::{
    interpreter::{
        ask,
        hook::{self, Address, Hook, Policy, Subject},
        question::{Answer, InterpretError, Question, Until},
    },
    object::Gvk,
};
use entourage_lua::Lua;

use super::given::Given;

/// Returns the interpreters of an operation for an object, with their responses: one, or for dependencies all that are added
/// up. Empty if no layer has the operation. Webhooks that failed and are skipped by their failurePolicy are reported in
/// `notes`.
///
/// # Errors
/// The interpreter that failed, and the cause; or `notes` cannot be written.
pub(super) async fn ask(
    given: &Given,
    gvk: &Gvk,
    question: Question<'_>,
    notes: &mut impl Write,
) -> Result<Vec<(String, Answer)>> {
    let interpretation = ask::interpretation(gvk, &given.customizations(), Some(&Lua::default()));
    let mut answers = Vec::new();
    for (layer, answer) in ask::ask_customizations(&interpretation, question) {
        answers.push((layer, answer?));
    }
    if !ask::asks_below(&interpretation, question.operation()) {
        return Ok(answers);
    }
    let (resource, is_namespaced) = given.place(gvk, question.object());
    let subject = Subject {
        group: &gvk.group,
        version: &gvk.version,
        kind: &gvk.kind,
        resource: &resource,
        is_namespaced,
    };
    if let Some(hook) = hook::choose(given.hooks(), &subject, question.operation()) {
        match ask_hook(given, hook, &subject, question).await {
            Ok(answer) => {
                answers.push((hook.layer(), answer));
                return Ok(answers);
            }
            Err(unanswered) if hook.policy() == Policy::Ignore => {
                writeln!(
                    notes,
                    "note: {unanswered}; skipped by failurePolicy Ignore: the next layer is called"
                )?;
            }
            Err(unanswered) => return Err(unanswered.into()),
        }
    }
    let known = ask::ask_known(gvk, question);
    answers.extend(known.map(|(layer, answer)| (layer.to_owned(), answer)));
    Ok(answers)
}

async fn ask_hook(
    given: &Given,
    hook: &Hook,
    subject: &Subject<'_>,
    question: Question<'_>,
) -> Result<Answer, InterpretError> {
    if let Ok(call) = hook.call()
        && let Address::Service { namespace, name, .. } = &call.address
        && !given.reach.knows(namespace, name)
    {
        return Err(InterpretError {
            layer: hook.layer(),
 contract: hook.contract(),
            operation: question.operation(),
            why: format!(
                "it is behind Service {namespace}/{name}, which is not called from outside of the cluster; open a way to it \
                 with kubectl port-forward, and name that: --hook-url {}=https://127.0.0.1:PORT",
                hook.name()
            )
            .into(),
            until: Until::Changed,
        });
    }
    let hooks = Hooks::new(Options {
        services: Some(given.reach.services()),
        ..Options::default()
    });
    hooks.ask(hook, subject, question).await
}
