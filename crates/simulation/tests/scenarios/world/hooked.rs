//! Webhooks of the world: a function answers for all of them, unless they are unresponsive.

use std::{cell::RefCell, rc::Rc};

use entourage_core::{
    delivery::{RenderSpec, render},
    interpreter::{
        Interpretation,
        hook::Subject,
        layers::{HookResponses, HookResult},
        question::{Answer, InterpretError, Question, Until},
    },
    object::{Gvk, ResourceId},
    observation::{self, ObjectRef, Used, Uses, Watch},
};
use serde_json::Value;

/// Answers for the hook of a name.
type Says = fn(&str, Question<'_>) -> Result<Answer, &'static str>;

#[derive(Clone, Default)]
pub(crate) struct Hooked {
    pub(crate) says: Option<Says>,
    pub(crate) unresponsive: bool,
    /// The answers that are used.
    pub(crate) uses: Uses,
    /// Each question: hook, operation, object.
    pub(crate) asked: Rc<RefCell<Vec<String>>>,
}

impl Hooked {
    pub(crate) fn observed(
        &self,
        interpretation: &Interpretation,
        watch: &Watch,
        object: &Value,
    ) -> Interpretation {
        match watch {
            Watch::Templates(gvk) | Watch::Copies(_, gvk) => {
                let used = match observation::which(watch, object) {
                    Some(ObjectRef::Template(id)) => self.uses.of(&id, object),
                    _ => Used::default(),
                };
                let mut observed = HookResponses::default();
                loop {
                    let questions = observation::questions(watch, interpretation, object, used, &observed);
                    if questions.is_empty() {
                        return interpretation.with(observation::with_unused(
                            watch,
                            interpretation,
                            object,
                            observed,
                        ));
                    }
                    for question in questions {
                        observed =
                            observed.and(question.operation(), self.reported(interpretation, gvk, question));
                    }
                }
            }
            _ => interpretation.clone(),
        }
    }

    pub(crate) fn with<'a>(
        &self,
        interpretation: &Interpretation,
        gvk: &Gvk,
        questions: impl IntoIterator<Item = Question<'a>>,
    ) -> Interpretation {
        let reported = questions
            .into_iter()
            .map(|question| (question.operation(), self.reported(interpretation, gvk, question)));
        interpretation.with(HookResponses::of(reported))
    }

    pub(crate) fn render(
        &self,
        render_spec: &RenderSpec,
        id: &ResourceId,
        cluster: &str,
        template: &Value,
        live: Option<&Value>,
    ) -> Result<render::Rendered, render::Refusal> {
        let (mut render_spec, mut observed) = (render_spec.clone(), HookResponses::default());
        loop {
            match render::step(&render_spec, id, cluster, template, live)? {
                render::Step::Done(rendered) => return Ok(rendered),
                render::Step::Ask(inquiry) => {
                    let question = inquiry.question();
                    let reported = self.reported(&render_spec.interpretation, &id.gvk, question);
                    observed = observed.and(question.operation(), reported);
                    render_spec.interpretation = render_spec.interpretation.with(observed.clone());
                }
            }
        }
    }

    fn reported(&self, interpretation: &Interpretation, gvk: &Gvk, question: Question<'_>) -> HookResult {
        let meta = &question.object()["metadata"];
        let plural = format!("{}s", gvk.kind.to_lowercase());
        let subject = Subject {
            group: &gvk.group,
            version: &gvk.version,
            kind: &gvk.kind,
            resource: &plural,
            is_namespaced: meta["namespace"].is_string(),
        };
        let Some(hook) = interpretation.hook(&subject, question.operation()) else {
            return HookResult::Nobody;
        };
        let line = format!(
            "{} {:?} {}",
            hook.name(),
            question.operation(),
            meta["name"].as_str().unwrap_or_default()
        );
        self.asked.borrow_mut().push(line);
        let answer = match self.says {
            Some(says) if !self.unresponsive => says(hook.name(), question),
            _ => Err("connection refused"),
        };
        let unanswered = |why: &'static str| InterpretError {
            layer: hook.layer(),
            contract: hook.contract(),
            operation: question.operation(),
            why: why.into(),
            until: Until::Answered,
        };
        HookResult::by(hook.policy(), answer.map_err(unanswered))
    }
}
