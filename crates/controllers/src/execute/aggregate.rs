//! Aggregates the status of a template by an interpretation that needs the whole object: read the template, interpret, write the
//! difference.

use entourage_api::work::AggregatedStatusItem;
use entourage_core::{
    delivery::render::wipe,
    interpreter::{
        Interpretation,
        layers::HookResponses,
        operations::{Contract, Operation},
        question::{InterpretError, Question, Until},
    },
    object::ResourceId,
    observation::{Observation, Watch},
    plan::{HubObject, Verb},
    status::template::aggregated,
};
use tracing::debug;

use super::{Executor, Outcome, outcome_of};
use crate::{
    client::{Form, path::Path},
    error::Class,
};

impl Executor {
    /// Executes a `Change::Aggregate`. A missing template is no failure: its deletion is about to be observed.
    pub(super) async fn aggregate(
        &self,
        id: ResourceId,
        (interpretation, items): (&Interpretation, &[AggregatedStatusItem]),
        asked: u64,
    ) -> Outcome {
        // If the hook is in back-off, the template is not read either.
        if let Err(unanswered) = self.interpreters.reach(interpretation, &id, Operation::Aggregate) {
            self.tell(Observation::Aggregated(id, asked, Some(unanswered)))
                .await;
            return Outcome::Done;
        }
        let mut template = match self.hub.get(&Path::object(&id), Form::Whole).await {
            Ok(template) => template,
            Err(failure) if failure.class() == Class::Missing => return Outcome::Done,
            Err(failure) => {
                debug!(object = %id, error = ?failure, "a template cannot be read for its status");
                return outcome_of(&failure);
            }
        };
        let question = Question::Aggregate {
            template: &template,
            items,
        };
        let (mut answered, mut passed) = (interpretation.kept(), None);
        if answered.asks(Operation::Aggregate) {
            let reported = self
                .interpreters
                .response(interpretation, &id.gvk, question)
                .await;
            passed = reported.ignored().cloned();
            answered = answered.with(HookResponses::of([(Operation::Aggregate, reported)]));
        }
        let answer = aggregated(&template, &answered, items);
        wipe(&mut template);
        let (verb, mut unanswered) = match answer {
            // Retried later, although another hook has responded.
            Ok(verb) => (verb, passed),
            Err(unanswered) => (None, Some(unanswered)),
        };
        let outcome = match verb {
            Some(verb) => match self.write_status(&id, verb).await {
                Ok(outcome) => outcome,
                Err(why) => {
                    unanswered = Some(why);
                    Outcome::Done
                }
            },
            None => Outcome::Done,
        };
        // It is interpreted again only after a change; a write that failed is retried.
        if outcome == Outcome::Done {
            self.tell(Observation::Aggregated(id, asked, unanswered)).await;
        }
        outcome
    }

    /// Writes the status; fails if the kind has no status that could be written.
    async fn write_status(&self, id: &ResourceId, verb: Verb) -> Result<Outcome, InterpretError> {
        let object = HubObject::Template(id.clone());
        let Verb::MergeStatus(patch) = &verb else {
            return Ok(self.write(&object, verb).await);
        };
        match self
            .hub
            .merge(&Path::object(id).status(), patch, Form::Whole)
            .await
        {
            Ok(answer) => {
                self.see(&Watch::Templates(id.gvk.clone()), answer).await;
                Ok(Outcome::Done)
            }
            Err(failure) if failure.class() == Class::Missing => Err(InterpretError {
                layer: format!("{} {}", id.gvk.api_version(), id.gvk.kind),
                contract: Contract::Interpreter,
                operation: Operation::Aggregate,
                why: "the hub has no status subresource of it; add one to its definition".into(),
                until: Until::Changed,
            }),
            Err(failure) => Ok(self.learn(&object, &verb, &failure).await),
        }
    }
}
