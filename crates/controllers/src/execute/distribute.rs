//! Applies or removes one copy of a distribution: fetch what is distributed, send the requests of its task, report.

use std::sync::Arc;

use entourage_core::{
    distribution::{Order, Place, Step, WithdrawalOrder, apply_task},
    object::{ResourceId, Str},
    observation::{Observation, Wrote},
};
use tracing::debug;

use super::{
    Executor, Outcome,
    send::{Sort, Target, words},
};
use crate::{
    client::{Api, Form},
    error::Class,
    member::Member,
};

impl Executor {
    /// Executes one `Change::Distribute`. Its outcome is sent to the core, which decides when to retry.
    pub(super) async fn distribute(&self, order: Order, member: Option<&Arc<Member>>) -> Outcome {
        let wrote = match self.api_of(&order.place, member) {
            None => unconnected(Step::Get),
            Some(api) => self.apply_distributed(&order, api).await,
        };
        self.report(order.distribution, order.place, wrote).await
    }

    /// Executes one `Change::Withdraw`.
    pub(super) async fn withdraw(&self, order: WithdrawalOrder, member: Option<&Arc<Member>>) -> Outcome {
        let wrote = match self.api_of(&order.place, member) {
            None => unconnected(Step::Delete),
            Some(api) => match self.outdated(&order.evidence, api).await {
                Some(wrote) => wrote,
                None => self.remove_distributed(&order, api).await,
            },
        };
        self.report(order.distribution, order.place, wrote).await
    }

    async fn remove_distributed(&self, order: &WithdrawalOrder, api: &Api) -> Wrote {
        let WithdrawalOrder { place, id, .. } = order;
        let render_spec = apply_task::withdrawal_spec(&order.distribution, &order.uid, place, &self.hub_id);
        let task = apply_task::withdraw(&render_spec, &order.preconditions, order.mode);
        self.run(task, &target(api, place, id)).await
    }

    async fn apply_distributed(&self, order: &Order, api: &Api) -> Wrote {
        let id = apply_task::source(order);
        let fetched = match self.sources.fetch(&id).await {
            Ok(fetched) => fetched,
            Err(failure) if failure.class() == Class::Abandoned => return Wrote::Abandoned,
            Err(failure) => {
                return Wrote::Failed {
                    step: Step::Get,
                    message: words(&failure, &id),
                    may_exist: false,
                };
            }
        };
        let (seen, content) = apply_task::content(order, fetched.source.object());
        if fetched.first {
            self.tell(Observation::Seen(seen)).await;
        }
        match content {
            Ok(content) => {
                let task = apply_task::apply(order, content);
                self.run(task, &target(api, &order.place, &order.id)).await
            }
            Err(wrote) => wrote,
        }
    }

    async fn report(&self, distribution: Str, place: Place, wrote: Wrote) -> Outcome {
        if let Wrote::Failed { message, .. } = &wrote {
            debug!(distribution = %distribution, place = %place, error = message, "a copy could not be updated");
        }
        self.tell(Observation::Distributed(distribution, place, wrote))
            .await;
        Outcome::Done
    }

    fn api_of<'a>(&'a self, place: &Place, member: Option<&'a Arc<Member>>) -> Option<&'a Api> {
        match (&place.cluster, member) {
            (None, _) => Some(&self.hub),
            (Some(_), member) => member.map(|member| &member.api),
        }
    }
}

/// A write returns only metadata.
const fn target<'a>(api: &'a Api, place: &'a Place, id: &'a ResourceId) -> Target<'a> {
    Target {
        api,
        cluster: place.cluster.as_ref(),
        id,
        form: Form::Metadata,
        sort: Sort::Distributed,
    }
}

fn unconnected(step: Step) -> Wrote {
    Wrote::Failed {
        step,
        message: "there is no connection to the member".into(),
        may_exist: false,
    }
}
