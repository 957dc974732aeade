//! Writes the Work of a copy: get the template, render, send. The manifest lives as long as the request.

use entourage_core::{
    delivery::source_version,
    observation::{Observation, Subject},
    plan::{HubObject, WorkOrder},
    works,
};
use tracing::debug;

use super::{Executor, Outcome, outcome_of, rendering};
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
        // As it is to be, whatever stands on the member.
        let copy = (&order.id, &order.cluster, &order.render_spec);
        let rendered = match rendering::render(&self.interpreters, copy, source.object(), None).await {
            Ok(rendered) => rendered,
            Err(refusal) => {
                debug!(object = %order.id, cluster = %order.cluster, %refusal, "a Work cannot be rendered");
                return Outcome::Done;
            }
        };
        // The template may be newer than the one that was planned with.
        order.source = source_version(source.meta(), &order.render_spec).into();
        let object = HubObject::Work(works::name_of(&order));
        self.write(&object, works::verb(&order, rendered.object())).await
    }
}
