//! Sends the requests of apply tasks. The core decides their order: see [`ApplyTask`].

use entourage_core::{
    apply_task::{Answer, Applied, ApplyTask, Fetched, Next, Request, RequestError},
    distribution::observed::ObservedObject,
    interpreter::Interpretation,
    object::{Gvk, ResourceId, Str},
    observation::{Observation, Subject},
    plan::Preconditions,
};
use serde_json::Value;

use super::{Executor, deliver::Delivery};
use crate::{
    client::{
        Api, Form,
        path::{Path, plural},
    },
    error::{Class, Failure},
};

/// The object that a task is about.
pub(crate) struct Target<'a> {
    /// Its server.
    pub(crate) api: &'a Api,
    /// The member that the server is; `None` is the hub.
    pub(crate) cluster: Option<&'a Str>,
    pub(crate) id: &'a ResourceId,
    /// The form in which all requests but a read return it.
    pub(crate) form: Form,
    pub(crate) sort: Sort<'a>,
}

/// The sort of object: what its requests take beyond sending them.
pub(crate) enum Sort<'a> {
    /// A copy of a binding that is applied: it is rendered here, and a missing namespace is created.
    Delivered(&'a Delivery<'a>),
    /// A copy of a binding that is removed: a 404 that does not name it is proven by discovery.
    Removed,
    /// A copy of a distribution.
    Distributed,
    /// A ResourceQuota of a quota.
    Quota,
    /// An object of a Work, which its agent applies.
    Manifest,
}

impl Executor {
    /// Sends requests until the task has ended.
    pub(super) async fn run<A: Applied>(
        &self,
        (mut task, mut next): (ApplyTask<A>, Next<A::Outcome>),
        target: &Target<'_>,
    ) -> A::Outcome {
        loop {
            let request = match next {
                Next::Ask(request) => request,
                Next::End(outcome) => return outcome,
            };
            let answer = match (request, &target.sort) {
                (Request::Render, Sort::Delivered(delivery)) => {
                    Answer::Rendered(delivery.render(task.live()).await)
                }
                (Request::Create(copy), Sort::Delivered(delivery)) => delivery.create(&copy).await,
                (request, _) => target.send(request).await,
            };
            let turn = task.answered(answer);
            if let Some(live) = turn.seen {
                self.see_live(target, live).await;
            }
            next = turn.next;
        }
    }

    /// Observes an object that a response shows.
    pub(super) async fn see_live(&self, target: &Target<'_>, live: Fetched) {
        let id = target.id;
        let subject = match (&target.sort, target.cluster) {
            (Sort::Distributed, cluster) => {
                Subject::Distributed(cluster.cloned(), id.clone(), ObservedObject::of(&live.0))
            }
            // No copy of a binding is on a hub, and the outcome of a quota's task has all that is to be known.
            (Sort::Delivered(_) | Sort::Removed, None) | (Sort::Quota | Sort::Manifest, _) => return,
            (Sort::Delivered(_) | Sort::Removed, Some(cluster)) => {
                let (interpreters, interpretation) = (&self.interpreters, self.interpreters.of(&id.gvk));
                let copy = interpreters
                    .copy(&interpretation, cluster, &id.gvk, &live.0)
                    .await;
                Subject::Copy(cluster.clone(), id.clone(), copy)
            }
        };
        drop(live);
        self.tell(Observation::Seen(subject)).await;
    }
}

impl Target<'_> {
    pub(crate) async fn send(&self, request: Request) -> Answer {
        let (api, form, path) = (self.api, self.form, Path::object(self.id));
        let result = match request {
            Request::Read => api.get(&path, Form::Whole).await,
            Request::Look => api.get(&path, form).await,
            Request::Create(copy) => api.create(&Path::collection(self.id), copy.object(), form).await,
            Request::Replace(copy) => api.replace(&path, copy.object(), form).await,
            Request::Delete(preconditions) => {
                let Preconditions {
                    uid,
                    resource_version,
                } = &preconditions;
                api.delete(&path, uid, resource_version, form).await
            }
            // Only a delivery renders.
            Request::Render => Err(Failure::Abandoned),
        };
        match (result, &self.sort) {
            (Err(failure), Sort::Distributed | Sort::Quota) => {
                Answer::Failed(class(&failure, self.id), words(&failure, self.id))
            }
            (Err(failure), Sort::Removed) if failure.class() == Class::Missing => self.proven(failure).await,
            (result, _) => answer(result, self.id),
        }
    }

    /// The response with a 404, after discovery if it does not name the object.
    async fn proven(&self, failure: Failure) -> Answer {
        let (no, failure) = match self.api.is_gone(self.id, &failure).await {
            Ok(true) => (RequestError::Gone, failure),
            Ok(false) => (RequestError::Missing, failure),
            Err(failure) if failure.has_no_response() => (RequestError::NoResponse, failure),
            Err(failure) => (RequestError::Other, failure),
        };
        Answer::Failed(no, failure.text(&self.id.gvk))
    }
}

/// The form in which a copy of a binding is requested: what the cache keeps of its kind, so that no Secret is returned.
pub(crate) fn form_of_copy(interpretation: &Interpretation, gvk: &Gvk) -> Form {
    if interpretation.is_copied_whole(gvk) {
        Form::Whole
    } else {
        Form::Metadata
    }
}

/// The response to a request about an object.
pub(crate) fn answer(result: Result<Value, Failure>, id: &ResourceId) -> Answer {
    match result {
        Ok(object) => Answer::Object(Fetched(object)),
        Err(failure) => Answer::Failed(class(&failure, id), failure.text(&id.gvk)),
    }
}

/// The class of a failed request about an object.
pub(super) fn class(failure: &Failure, id: &ResourceId) -> RequestError {
    match failure.class() {
        Class::Missing if failure.is_about(&plural(&id.gvk)) => RequestError::Gone,
        Class::Missing => RequestError::Missing,
        Class::Exists => RequestError::Exists,
        Class::Conflict => RequestError::Changed,
        Class::Refused => RequestError::Refused,
        Class::Abandoned => RequestError::Abandoned,
        Class::Unknown if failure.has_no_response() => RequestError::NoResponse,
        Class::Expired | Class::Unauthorized | Class::Busy | Class::Unknown => RequestError::Other,
    }
}

/// The text of a failed request about an object.
pub(super) fn words(failure: &Failure, id: &ResourceId) -> String {
    if failure.is_namespace_missing() {
        return format!("namespace {} does not exist on the server any more", id.namespace);
    }
    failure.text(&id.gvk)
}
