//! Sends the requests that apply or remove one copy of a distribution. The core decides the order of requests ([`ApplyTask`]).

use std::sync::Arc;

use entourage_core::{
    distribution::{
        Order, Place, Step,
        apply_task::{self, Answer, ApplyTask, Next, No, Request},
    },
    object::{ResourceId, Str},
    observation::{Observation, Subject, Wrote},
    plan::{Preconditions, RemovalMode},
};
use serde_json::Value;
use tracing::debug;

use super::{Executor, Outcome, deliver::Wiped};
use crate::{
    client::{
        Api, Form,
        path::{Path, plural},
    },
    error::{Class, Failure},
    member::Member,
};

impl Executor {
    /// Executes one `Change::Distribute`. Its outcome is sent to the core, which decides when to retry.
    pub(super) async fn distribute(&self, order: Order, member: Option<&Arc<Member>>) -> Outcome {
        let wrote = match self.api_of(&order.place, member) {
            None => unconnected(Step::Get),
            Some(api) => self.bring_in_line(&order, api).await,
        };
        self.told(order.distribution, order.place, wrote).await
    }

    /// Executes one `Change::Withdraw`.
    pub(super) async fn withdraw(
        &self,
        (distribution, uid): (Str, Str),
        place: Place,
        id: ResourceId,
        preconditions: Preconditions,
        mode: RemovalMode,
        member: Option<&Arc<Member>>,
    ) -> Outcome {
        let render_spec = apply_task::recipe_to_withdraw(&distribution, &uid, &place, &self.hub_id);
        let wrote = match self.api_of(&place, member) {
            None => unconnected(Step::Delete),
            Some(api) => {
                let apply_task = ApplyTask::withdraw(&render_spec, &preconditions, mode);
                self.run(apply_task, api, &place, &id).await
            }
        };
        self.told(distribution, place, wrote).await
    }

    async fn bring_in_line(&self, order: &Order, api: &Api) -> Wrote {
        let id = apply_task::source(order);
        let fetched = match self.sources.fetch(&id).await {
            Ok(fetched) => fetched,
            Err(failure) if failure.class() == Class::Abandoned => return Wrote::Abandoned,
            Err(failure) => {
                return Wrote::Failed {
                    step: Step::Get,
                    message: words(&failure, &id),
                };
            }
        };
        let (seen, content) = apply_task::content(order, fetched.source.object());
        if fetched.first {
            self.tell(Observation::Seen(seen)).await;
        }
        match content {
            Ok(content) => {
                let apply_task = ApplyTask::bring(order, content);
                self.run(apply_task, api, &order.place, &order.id).await
            }
            Err(wrote) => wrote,
        }
    }

    /// Sends requests until the task has ended.
    async fn run(
        &self,
        (mut apply_task, mut request): (ApplyTask<'_>, Request),
        api: &Api,
        place: &Place,
        id: &ResourceId,
    ) -> Wrote {
        loop {
            let answer = send(api, id, &request).await.map(Wiped);
            let turn = apply_task.answered(&match &answer {
                Ok(object) => Answer::Object(&object.0),
                Err(failure) => refusal(failure, id),
            });
            if let Some(part) = turn.seen {
                let subject = Subject::Distributed(place.cluster.clone(), id.clone(), part);
                self.tell(Observation::Seen(subject)).await;
            }
            match turn.next {
                Next::Ask(next) => request = next,
                Next::End(wrote) => return wrote,
            }
        }
    }

    async fn told(&self, distribution: Str, place: Place, wrote: Wrote) -> Outcome {
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

/// Sends one request. A write returns only metadata.
pub(super) async fn send(api: &Api, id: &ResourceId, request: &Request) -> Result<Value, Failure> {
    let path = Path::object(id);
    match request {
        Request::Read => api.get(&path, Form::Whole).await,
        Request::Look => api.get(&path, Form::Metadata).await,
        Request::Create(copy) => {
            let path = Path::collection(id);
            api.create(&path, copy.object(), Form::Metadata).await
        }
        Request::Replace(copy) => api.replace(&path, copy.object(), Form::Metadata).await,
        Request::Delete(preconditions) => {
            api.delete(&path, &preconditions.uid, &preconditions.resource_version)
                .await
        }
    }
}

pub(super) fn refusal(failure: &Failure, id: &ResourceId) -> Answer<'static> {
    let no = match failure.class() {
        Class::Abandoned => return Answer::Abandoned,
        // Any other 404 proves nothing: the kind may not be served, or a proxy may not know the server.
        Class::Missing if failure.is_about(&plural(&id.gvk)) => No::Gone,
        Class::Exists => No::Exists,
        Class::Conflict => No::Changed,
        Class::Refused => No::Refused,
        Class::Missing | Class::Expired | Class::Unauthorized | Class::Busy | Class::Unknown => No::Trouble,
    };
    Answer::No(no, words(failure, id))
}

fn words(failure: &Failure, id: &ResourceId) -> String {
    if failure.is_namespace_missing() {
        return format!("namespace {} does not exist on the server any more", id.namespace);
    }
    failure.text(&id.gvk)
}

fn unconnected(step: Step) -> Wrote {
    Wrote::Failed {
        step,
        message: "there is no connection to the member".into(),
    }
}
