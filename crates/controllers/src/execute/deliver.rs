//! Applies one copy on one member: get the template, send the requests of its task, observe.
//!
//! A missing namespace is created while the copy is: the gate of the namespace is held meanwhile.

use std::sync::Arc;

use entourage_core::{
    apply_task::{Answer, Fetched},
    delivery::{
        apply_task::{self, Order, Outcome as End},
        render::{Refusal, Rendered},
        source_version,
    },
    interpreter::Interpretation,
    namespaces,
    object::Gvk,
    observation::{Copy, Delivered, Observation, Subject},
};
use serde_json::Value;
use tracing::{debug, warn};

use super::{
    Executor, Outcome,
    namespace::prove,
    outcome_of, rendering,
    send::{Sort, Target, answer, class, form_of_copy},
};
use crate::{
    client::{Form, path::Path},
    error::{Class, Failure},
    interpreter_snapshot::InterpreterSnapshot,
    member::Member,
    source::Source,
};

impl Executor {
    /// Executes one delivery. Its outcome is sent to the core, which decides when to retry.
    pub(super) async fn deliver(&self, order: Order, member: Option<&Arc<Member>>) -> Outcome {
        let applied = match member {
            Some(member) => self.apply_copy(&order, member).await,
            None => Ok(Delivered::Unreachable(
                "there is no connection to the member".into(),
            )),
        };
        let (delivered, outcome) = match applied {
            Ok(delivered) => (delivered, Outcome::Done),
            // The member is not at fault, and the shell decides when to retry.
            Err(failure) => {
                let error = failure.text(&order.id.gvk);
                warn!(object = %order.id, error, "the source of a copy cannot be read on the hub");
                (Delivered::Abandoned, outcome_of(&failure))
            }
        };
        if !matches!(delivered, Delivered::Applied { .. }) {
            debug!(object = %order.id, cluster = %order.cluster, "a copy could not be updated");
        }
        self.tell(Observation::Delivered(order.cluster, order.id, delivered))
            .await;
        outcome
    }

    /// A failure is the hub's: the template cannot be read now.
    async fn apply_copy(&self, order: &Order, member: &Member) -> Result<Delivered, Failure> {
        let source = match self.sources.fetch(&order.id).await {
            Ok(fetched) => {
                if fetched.first {
                    let template = self
                        .interpreters
                        .template(
                            &order.render_spec.interpretation,
                            &order.id,
                            fetched.source.object(),
                        )
                        .await;
                    self.tell(Observation::Seen(Subject::Template(order.id.clone(), template)))
                        .await;
                }
                fetched.source
            }
            Err(failure)
                if failure.class() == Class::Missing && self.hub.is_gone(&order.id, &failure).await? =>
            {
                self.tell(Observation::Absent(order.id.clone())).await;
                return Ok(Delivered::NoSource("it does not exist on the hub".into()));
            }
            Err(failure) => return Err(failure),
        };
        let delivery = Delivery {
            order,
            member,
            source: &source,
            interpreters: &self.interpreters,
        };
        let target = Target {
            api: &member.api,
            cluster: Some(&order.cluster),
            id: &order.id,
            form: delivery.form(),
            sort: Sort::Delivered(&delivery),
        };
        Ok(match self.run(apply_task::apply(order), &target).await {
            End::Applied(copy, differed) => Delivered::Applied {
                copy: delivery.copy(copy).await,
                source: source_version(source.meta(), &order.render_spec),
                differed: differed.map(String::into_boxed_str),
            },
            End::NotApplied(delivered) => delivered,
            End::NotRendered(Refusal::Override(bad)) => Delivered::BadOverride(bad.to_string()),
            End::NotRendered(Refusal::NoResponse(why)) => Delivered::Uninterpreted(why),
            End::NotRendered(refusal) => {
                if refusal == Refusal::Token {
                    self.tell(Observation::NotPropagatable(order.id.clone())).await;
                }
                Delivered::NoSource(refusal.to_string())
            }
        })
    }
}

/// The delivery of one copy to one member.
pub(crate) struct Delivery<'a> {
    order: &'a Order,
    member: &'a Member,
    source: &'a Source,
    interpreters: &'a InterpreterSnapshot,
}

impl Delivery<'_> {
    /// Creates the copy, and its namespace if it is missing.
    pub(super) async fn create(&self, rendered: &Rendered) -> Answer {
        let id = &self.order.id;
        if id.namespace.is_empty() {
            return match self.post(rendered).await {
                Ok(made) if id.gvk.is_namespace() => {
                    let proven = prove(&self.member.api, self.creator(), made, self.form()).await;
                    Answer::Object(Fetched(proven))
                }
                result => answer(result, id),
            };
        }
        let gate = self.member.namespaces.gate(&id.namespace);
        // The namespace is not deleted meanwhile.
        let _inside = gate.enter().await;
        // The first delivery into a namespace goes alone: else all of them would try to create it.
        let turn = gate.pass().await;
        let answered = match self.post(rendered).await {
            Err(failure) if failure.is_namespace_missing() => match self.make_namespace().await {
                Ok(()) => answer(self.post(rendered).await, id),
                Err(failure) => {
                    let words = failure.text(&Gvk::new("v1", "Namespace"));
                    Answer::Failed(
                        class(&failure, id),
                        format!("namespace {}: {words}", id.namespace),
                    )
                }
            },
            result => answer(result, id),
        };
        // Whatever the outcome: if the gate stayed closed, all deliveries there would fail one after the other.
        if let Some(turn) = turn {
            turn.open();
        }
        answered
    }

    async fn make_namespace(&self) -> Result<(), Failure> {
        let namespace = &*self.order.id.namespace;
        let creator = self.creator();
        let body = namespaces::created(creator, namespace, &Default::default(), &Default::default());
        let api = &self.member.api;
        match api.create(&Path::namespace(None), &body, Form::Metadata).await {
            Ok(made) => {
                prove(api, creator, made, Form::Metadata).await;
                Ok(())
            }
            Err(failure) if failure.class() == Class::Exists => Ok(()),
            Err(failure) => Err(failure),
        }
    }

    async fn post(&self, rendered: &Rendered) -> Result<Value, Failure> {
        let path = Path::collection(&self.order.id);
        self.member
            .api
            .create(&path, rendered.object(), self.form())
            .await
    }

    /// Renders the copy, with what is retained of the live one.
    pub(super) async fn render(&self, live: Option<&Value>) -> Result<Rendered, Refusal> {
        let order = self.order;
        let copy = (&order.id, &order.cluster, &order.render_spec);
        rendering::render(self.interpreters, copy, self.source.object(), live).await
    }

    async fn copy(&self, copy: Fetched) -> Copy {
        let (cluster, gvk) = (&self.order.cluster, &self.order.id.gvk);
        self.interpreters
            .copy(self.interpretation(), cluster, gvk, &copy.0)
            .await
    }

    fn form(&self) -> Form {
        form_of_copy(self.interpretation(), &self.order.id.gvk)
    }

    const fn interpretation(&self) -> &Interpretation {
        &self.order.render_spec.interpretation
    }

    fn creator(&self) -> (&str, &str) {
        (&self.order.render_spec.hub, &self.order.cluster)
    }
}
