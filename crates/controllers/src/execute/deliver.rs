//! Applies one copy on one member: get the template, render, send, observe.
//!
//! The identity, the owner and the content of the copy are functions of the core; this module only orders the requests: POST if
//! no object is known to exist, PUT of exactly the known copy, or GET, compare, PUT.

use std::sync::Arc;

use entourage_core::{
    delivery::{
        RenderSpec,
        render::{self, Refusal, Rendered, Standing},
        source_version,
    },
    namespaces,
    object::{Gvk, ResourceId, Str},
    observation::{Delivered, Observation, Subject},
    plan::Preconditions,
};
use serde_json::{Value, json};
use tracing::{debug, warn};

use super::{Executor, Outcome, namespace::prove, outcome_of, rendering};
use crate::{
    client::{Form, path::Path},
    error::{Class, Failure},
    interpreter_snapshot::InterpreterSnapshot,
    member::Member,
    source::Source,
};

/// The number of times that a copy under concurrent change is read again before the delivery gives up.
const ROUNDS: usize = 3;

/// A `Change::Deliver`.
pub(super) struct Order {
    pub(super) id: ResourceId,
    pub(super) cluster: Str,
    pub(super) render_spec: RenderSpec,
    pub(super) live: Option<Preconditions>,
    pub(super) read_first: bool,
}

/// The next request.
enum Step {
    Create,
    Update(Preconditions),
    Read,
}

impl Executor {
    /// Executes one delivery. Its outcome is sent to the core, which decides when to retry.
    pub(super) async fn deliver(&self, order: Order, member: Option<&Arc<Member>>) -> Outcome {
        let brought = match member {
            Some(member) => self.bring(&order, member).await,
            None => Ok(Delivered::Unreachable(
                "there is no connection to the member".into(),
            )),
        };
        let (delivered, outcome) = match brought {
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
    async fn bring(&self, order: &Order, member: &Member) -> Result<Delivered, Failure> {
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
        Ok(match delivery.run().await {
            Ok(delivered) => delivered,
            Err(Stop::Refused(Refusal::Override(bad))) => Delivered::BadOverride(bad.to_string()),
            Err(Stop::Refused(Refusal::NoResponse(why))) => Delivered::Uninterpreted(why),
            Err(Stop::Refused(refusal)) => {
                if refusal == Refusal::Token {
                    self.tell(Observation::NotPropagatable(order.id.clone())).await;
                }
                Delivered::NoSource(refusal.to_string())
            }
            Err(Stop::Failed(failure)) => failed(&failure, failure.text(&order.id.gvk)),
            Err(Stop::Namespace(failure)) => {
                let words = failure.text(&Gvk::new("v1", "Namespace"));
                failed(&failure, format!("namespace {}: {words}", order.id.namespace))
            }
        })
    }
}

/// The reason why a delivery ended without a copy.
enum Stop {
    Refused(Refusal),
    Failed(Failure),
    /// The namespace does not exist and cannot be created.
    Namespace(Failure),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

struct Delivery<'a> {
    order: &'a Order,
    member: &'a Member,
    source: &'a Source,
    interpreters: &'a InterpreterSnapshot,
}

impl Delivery<'_> {
    async fn run(&self) -> Result<Delivered, Stop> {
        let order = self.order;
        let mut step = match &order.live {
            None => Step::Create,
            Some(_) if order.read_first => Step::Read,
            Some(preconditions) => Step::Update(preconditions.clone()),
        };
        // One round more than a concurrent change may cost: the first may be the plan's guess.
        for _ in 0..=ROUNDS {
            step = match step {
                Step::Create => match self.create().await {
                    Ok(answer) => return Ok(self.applied(answer).await),
                    Err(Stop::Failed(failure)) if failure.class() == Class::Exists => Step::Read,
                    Err(stop) => return Err(stop),
                },
                Step::Update(preconditions) => match self.update(&preconditions).await {
                    Ok(answer) => return Ok(self.applied(answer).await),
                    Err(Stop::Failed(failure)) if failure.class() == Class::Conflict => Step::Read,
                    Err(Stop::Failed(failure)) if failure.class() == Class::Missing => Step::Create,
                    Err(stop) => return Err(stop),
                },
                Step::Read => match self.member.api.get(&Path::object(&order.id), Form::Whole).await {
                    Ok(live) => {
                        let live = Wiped(live);
                        match self.reconcile(&live.0).await {
                            Ok(delivered) => return Ok(delivered),
                            Err(Stop::Failed(failure)) if failure.class() == Class::Conflict => Step::Read,
                            Err(Stop::Failed(failure)) if failure.class() == Class::Missing => Step::Create,
                            Err(stop) => return Err(stop),
                        }
                    }
                    Err(failure) if failure.class() == Class::Missing => Step::Create,
                    Err(failure) => return Err(failure.into()),
                },
            };
        }
        Ok(Delivered::Failed("the copy keeps changing on the member".into()))
    }

    async fn create(&self) -> Result<Value, Stop> {
        let rendered = self.render(None).await?;
        let id = &self.order.id;
        if id.namespace.is_empty() {
            let made = self.post(&rendered).await?;
            if !id.gvk.is_namespace() {
                return Ok(made);
            }
            let creator = (&*self.order.render_spec.hub, &*self.order.cluster);
            return Ok(prove(&self.member.api, creator, made, self.answer_form()).await);
        }
        let gate = self.member.namespaces.gate(&id.namespace);
        // The namespace is not deleted meanwhile.
        let _inside = gate.enter().await;
        // The first delivery into a namespace goes alone: else all of them would try to create it.
        let turn = gate.pass().await;
        let mut result = self.post(&rendered).await.map_err(Stop::Failed);
        if matches!(&result, Err(Stop::Failed(failure)) if failure.is_namespace_missing()) {
            result = match self.make_namespace().await {
                Ok(()) => self.post(&rendered).await.map_err(Stop::Failed),
                Err(failure) => Err(Stop::Namespace(failure)),
            };
        }
        // Whatever the outcome: if the gate stayed closed, all deliveries there would fail one after the other.
        if let Some(turn) = turn {
            turn.open();
        }
        result
    }

    async fn make_namespace(&self) -> Result<(), Failure> {
        let namespace = &*self.order.id.namespace;
        let creator = (&*self.order.render_spec.hub, &*self.order.cluster);
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

    async fn update(&self, preconditions: &Preconditions) -> Result<Value, Stop> {
        // Nothing of the live copy is to be retained (else the plan says read_first), so its preconditions are enough.
        let live = json!({"metadata": {"uid": &*preconditions.uid, "resourceVersion": &*preconditions.resource_version}});
        let rendered = self.render(Some(&live)).await?;
        Ok(self.put(&rendered).await?)
    }

    async fn reconcile(&self, live: &Value) -> Result<Delivered, Stop> {
        if render::standing(&self.order.render_spec, &self.order.cluster, live) == Standing::Foreign {
            return Ok(Delivered::Foreign);
        }
        let rendered = self.render(Some(live)).await?;
        let Some(path) = render::difference(&rendered, live) else {
            return Ok(self.applied_as(live).await);
        };
        let answer = self.put(&rendered).await?;
        let mut delivered = self.applied(answer).await;
        if let Delivered::Applied { differed, .. } = &mut delivered {
            *differed = Some(path);
        }
        Ok(delivered)
    }

    async fn render(&self, live: Option<&Value>) -> Result<Rendered, Stop> {
        let order = self.order;
        let copy = (&order.id, &order.cluster, &order.render_spec);
        let rendered = rendering::render(self.interpreters, copy, self.source.object(), live).await;
        rendered.map_err(Stop::Refused)
    }

    async fn post(&self, rendered: &Rendered) -> Result<Value, Failure> {
        let path = Path::collection(&self.order.id);
        self.member
            .api
            .create(&path, rendered.object(), self.answer_form())
            .await
    }

    async fn put(&self, rendered: &Rendered) -> Result<Value, Failure> {
        let path = Path::object(&self.order.id);
        self.member
            .api
            .replace(&path, rendered.object(), self.answer_form())
            .await
    }

    /// If only a copy's metadata is kept no more is requested: no Secret is returned.
    fn answer_form(&self) -> Form {
        if self
            .order
            .render_spec
            .interpretation
            .is_copied_whole(&self.order.id.gvk)
        {
            Form::Whole
        } else {
            Form::Metadata
        }
    }

    async fn applied(&self, answer: Value) -> Delivered {
        self.applied_as(&Wiped(answer).0).await
    }

    async fn applied_as(&self, copy: &Value) -> Delivered {
        let order = self.order;
        let interpretation = &order.render_spec.interpretation;
        Delivered::Applied {
            copy: self
                .interpreters
                .copy(interpretation, &order.cluster, &order.id.gvk, copy)
                .await,
            source: source_version(self.source.meta(), &self.order.render_spec),
            differed: None,
        }
    }
}

/// An object of a member that may be a Secret.
pub(super) struct Wiped(pub(super) Value);

impl Drop for Wiped {
    fn drop(&mut self) {
        render::wipe(&mut self.0);
    }
}

fn failed(failure: &Failure, text: String) -> Delivered {
    match failure.class() {
        Class::Abandoned => Delivered::Abandoned,
        Class::Refused | Class::Missing => Delivered::Rejected(text),
        _ if !failure.is_silence() => Delivered::Failed(text),
        _ => Delivered::Unreachable(text),
    }
}
