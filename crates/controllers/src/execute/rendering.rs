//! Renders a copy, and asks the hooks that its rendering needs.

use std::borrow::Cow;

use entourage_core::{
    delivery::{
        RenderSpec,
        render::{self, Refusal, Rendered},
    },
    interpreter::layers::HookResponses,
    object::{ResourceId, Str},
};
use serde_json::Value;

use crate::interpreter_snapshot::InterpreterSnapshot;

/// The copy of a template on a member, with what is retained of the live one. Each hook is asked once: its response is used in
/// the next step.
///
/// # Errors
/// The reason why it cannot be rendered.
pub(super) async fn render(
    interpreters: &InterpreterSnapshot,
    (id, cluster, render_spec): (&ResourceId, &Str, &RenderSpec),
    template: &Value,
    live: Option<&Value>,
) -> Result<Rendered, Refusal> {
    let interpretation = &render_spec.interpretation;
    let (mut render_spec, mut responses) = (Cow::Borrowed(render_spec), HookResponses::default());
    loop {
        let inquiry = match render::step(&render_spec, id, cluster, template, live)? {
            render::Step::Done(rendered) => return Ok(rendered),
            render::Step::Ask(inquiry) => inquiry,
        };
        let question = inquiry.question();
        let response = interpreters.response(interpretation, &id.gvk, question).await;
        responses = responses.and(question.operation(), response);
        render_spec.to_mut().interpretation = interpretation.with(responses.clone());
    }
}
