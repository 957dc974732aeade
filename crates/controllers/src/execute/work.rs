//! Writes the Work of a copy: get the template, render, send. The manifest lives as long as the request.

use std::borrow::Cow;

use entourage_core::{
    delivery::{
        render::{self, Refusal, Rendered},
        source_version,
    },
    interpreter::layers::HookResponses,
    observation::{Observation, Subject},
    plan::{HubObject, Verb, WorkOrder},
    works,
};
use serde_json::Value;
use tracing::debug;

use super::{Executor, Outcome, outcome_of};
use crate::error::Class;

impl Executor {
    /// Executes a `Change::MirrorWork`. A missing template is no failure: its deletion is about to be observed; nor is one that
    /// cannot be rendered: the delivery reports that.
    pub(super) async fn mirror(&self, mut order: WorkOrder) -> Outcome {
        let source = match self.sources.fetch(&order.id).await {
            Ok(fetched) => {
                if fetched.first {
                    let interpretation = &order.render_spec.interpretation;
                    let object = fetched.source.object();
                    let template = self
                        .interpreters
                        .template(interpretation, &order.id, object)
                        .await;
                    self.tell(Observation::Seen(Subject::Template(order.id.clone(), template)))
                        .await;
                }
                fetched.source
            }
            Err(failure) if failure.class() == Class::Missing => return Outcome::Done,
            Err(failure) => return outcome_of(&failure),
        };
        let rendered = match self.work_manifest(&order, source.object()).await {
            Ok(rendered) => rendered,
            Err(refusal) => {
                debug!(object = %order.id, cluster = %order.cluster, %refusal, "a Work cannot be rendered");
                return Outcome::Done;
            }
        };
        // The template may be newer than the one that was planned with.
        order.source = source_version(source.meta(), &order.render_spec).into();
        let object = HubObject::Work(works::name_of(&order));
        let verb = match order.live {
            None => Verb::Create(works::body(&order, rendered.object())),
            Some(_) => Verb::Merge(works::patch(&order, rendered.object())),
        };
        self.write(&object, verb).await
    }

    /// The copy as it is to be, without a live one: each hook is asked once.
    async fn work_manifest(&self, order: &WorkOrder, template: &Value) -> Result<Rendered, Refusal> {
        let interpretation = &order.render_spec.interpretation;
        let (mut render_spec, mut heard) = (Cow::Borrowed(&order.render_spec), HookResponses::default());
        loop {
            let inquiry = match render::step(&render_spec, &order.id, &order.cluster, template, None)? {
                render::Step::Done(rendered) => return Ok(rendered),
                render::Step::Ask(inquiry) => inquiry,
            };
            let question = inquiry.question();
            let said = self
                .interpreters
                .said(interpretation, &order.id.gvk, question)
                .await;
            heard = heard.and(question.operation(), said);
            render_spec.to_mut().interpretation = interpretation.with(heard.clone());
        }
    }
}
