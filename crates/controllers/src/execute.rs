//! Executes plans: the only place that writes to API servers on behalf of the core.
//!
//! Changes are sent in order and stop at the first that fails. Each response is sent to the control loop at once, as an
//! observation, before the next change begins (read your writes).

use std::{sync::Arc, time::Duration};

use entourage_core::{
    delivery::apply_task::Order,
    object::Str,
    observation::Observation,
    plan::{Change, EstimateOrder, Plan},
};
use tokio::sync::mpsc;
use tracing::debug;

use crate::{
    client::Api,
    error::{Class, Failure},
    estimators::Estimators,
    failure_kind::FailureKind,
    inbox::Message,
    interpreter_snapshot::InterpreterSnapshot,
    member::Member,
    metrics,
    source::Sources,
};

mod agent_lease;
mod aggregate;
mod deliver;
mod distribute;
pub mod events;
mod evidence;
mod execution_namespace;
mod hub;
pub(crate) mod namespace;
mod quota;
mod remove;
mod rendering;
pub(crate) mod send;
mod work;

use events::Events;

/// The account is not allowed to.
const FORBIDDEN: u16 = 403;

/// The dependencies of the execution of a plan. Cheap to clone.
#[derive(Clone)]
pub struct Executor {
    /// The hub.
    pub hub: Api,
    /// Its id.
    pub hub_id: Str,
    /// The templates as whole objects.
    pub sources: Sources,
    /// The interpretations of kinds.
    pub interpreters: InterpreterSnapshot,
    /// The estimators of members, if they are asked.
    pub estimators: Option<Estimators>,
    /// The recorder of Events.
    pub events: Events,
    /// The inbox of the control loop.
    pub brain: mpsc::Sender<Message>,
}

/// The outcome of the execution of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All changes were made, or a failure was reported to the core, which decides when to retry.
    Done,
    /// The key is retried later by the shell's own rules.
    Failed {
        /// The class of the failure.
        failure_kind: FailureKind,
        /// The time after which the server asks to retry.
        asked: Option<Duration>,
    },
    /// The hub refuses the write, or a member that of a namespace, with this message, which has nothing of the object's data.
    /// Only a user can fix it; the key is retried slowly.
    Refused(String),
}

impl Outcome {
    /// The outcome, as metrics and spans count it.
    #[must_use]
    pub fn counted(&self) -> metrics::Outcome {
        match self {
            Self::Done => metrics::Outcome::Done,
            Self::Failed {
                failure_kind: FailureKind::Conflict,
                ..
            } => metrics::Outcome::Conflict,
            Self::Failed { .. } | Self::Refused(_) => metrics::Outcome::Failed,
        }
    }
}

impl Executor {
    /// Executes a plan. `member` is the client of the member that the plan is for, if it has one now.
    pub async fn carry_out(&self, plan: Plan, member: Option<&Arc<Member>>) -> Outcome {
        for change in plan.changes {
            let outcome = match change {
                Change::Hub { object, verb } => self.write(&object, verb).await,
                Change::Deliver {
                    id,
                    cluster,
                    render_spec,
                    live,
                    read_first,
                } => {
                    let order = Order {
                        id,
                        cluster,
                        render_spec,
                        live,
                        read_first,
                    };
                    self.deliver(order, member).await
                }
                Change::Remove {
                    id,
                    cluster,
                    preconditions,
                    mode,
                } => self.remove(id, cluster, preconditions, mode, member).await,
                Change::Distribute(order) => self.distribute(*order, member).await,
                Change::Withdraw(order) => self.withdraw(*order, member).await,
                Change::AssignQuota(order) => self.assign_quota(*order, member).await,
                Change::UnassignQuota {
                    quota,
                    cluster,
                    preconditions,
                } => self.unassign_quota(quota, cluster, preconditions, member).await,
                Change::GetCopy { id, cluster } => self.confirm(id, cluster, member).await,
                Change::Namespace {
                    cluster,
                    name,
                    labels,
                    annotations,
                } => match member {
                    Some(member) => {
                        let marks = (labels, annotations);
                        self.bring_namespace(&member.api, &cluster, &name, &marks).await
                    }
                    None => Outcome::Done,
                },
                Change::LookInto {
                    cluster,
                    name,
                    copies,
                } => match member {
                    Some(member) => self.look_into(&member.api, (cluster, name), &copies).await,
                    None => Outcome::Done,
                },
                Change::EndNamespace {
                    cluster,
                    name,
                    preconditions,
                    copies,
                    mode,
                    event,
                } => match member {
                    Some(member) => {
                        let outcome =
                            self.end_namespace(member, (cluster, name), (&preconditions, &copies), mode);
                        let (outcome, released) = outcome.await;
                        if let Some(event) = event.filter(|_| released) {
                            self.events.emit(*event);
                        }
                        outcome
                    }
                    None => Outcome::Done,
                },
                Change::MirrorWork(order) => self.mirror(*order).await,
                Change::EndExecutionNamespace {
                    name,
                    preconditions,
                    event,
                } => self.end_execution_namespace(name, preconditions, *event).await,
                Change::GetTemplate(id) => self.need(&id).await,
                Change::GetLease(cluster) => self.read_lease(cluster).await,
                Change::Aggregate {
                    id,
                    interpretation,
                    items,
                    asked,
                } => self.aggregate(id, (&interpretation, &items), asked).await,
                Change::Estimate(order) => {
                    self.ask(*order);
                    Outcome::Done
                }
                Change::Refuse(words) => Outcome::Refused(words),
                Change::Emit(event) => {
                    self.events.emit(event);
                    Outcome::Done
                }
            };
            if outcome != Outcome::Done {
                return outcome;
            }
        }
        Outcome::Done
    }

    /// Asks estimators: the answers come later.
    pub fn ask(&self, order: EstimateOrder) {
        if let Some(estimators) = &self.estimators {
            estimators.ask(order, self.brain.clone());
        }
    }

    /// Sends an observation to the control loop. It lives as long as any plan is executed, so a failure means that the process
    /// ends.
    async fn tell(&self, seen: Observation) {
        if self.brain.send(Message::Seen(Box::new(seen))).await.is_err() {
            debug!("the control loop has ended");
        }
    }
}

/// The outcome of a failure on the hub, except for 404 and 409, which need a read of the object first.
fn outcome_of(failure: &Failure) -> Outcome {
    let failure_kind = match failure.class() {
        Class::Missing | Class::Exists | Class::Conflict => FailureKind::Conflict,
        Class::Busy | Class::Expired | Class::Abandoned => FailureKind::Busy,
        Class::Unknown | Class::Unauthorized => FailureKind::NoResponse,
        Class::Refused => FailureKind::Refused,
    };
    Outcome::Failed {
        failure_kind,
        asked: failure.retry_after(),
    }
}

#[cfg(test)]
mod tests;
