//! Carries out a step: requests to the cluster, and writes on the hub.
//!
//! The payload of a Work is fetched for one step and wiped after it.

use entourage_core::{
    agent::{
        Applied, ApplyOrder, HubWrite, ObjectOrder, Outcome, RemovalObject, RemovalOrder, Removed, Step,
        apply_task::{self, Manifest},
        removal_task::{self, Decision},
        source_of,
    },
    apply_task::{Answer, Applied as Rules, ApplyTask, Fetched, Next, Request},
    manifest::WorkOwner,
    object::{Gvk, NamespacedName, ResourceId, Str},
    observation::work_gvk,
    plan::HubObject,
};
use serde_json::Value;

use crate::{
    client::{
        Api, Form,
        path::{self, Path},
    },
    error::{Class, Failure},
    execute::send::{Sort, Target, answer, form_of_copy},
    interpreter_snapshot::InterpreterSnapshot,
};

/// The dependencies of a step. Cheap to clone.
#[derive(Clone)]
pub(super) struct StepExecutor {
    /// The name of the Cluster.
    pub(super) cluster: Str,
    pub(super) hub: Api,
    /// The cluster's API server.
    pub(super) member: Api,
    pub(super) interpreters: InterpreterSnapshot,
}

impl StepExecutor {
    pub(super) async fn carry_out(&self, step: Step) -> Outcome {
        match step {
            Step::Apply(order) => self.apply(order).await,
            Step::Remove(order) => self.remove(order).await,
            Step::Write(write) => self.write(write).await,
        }
    }

    async fn apply(&self, order: ApplyOrder) -> Outcome {
        let path = Path::hub(&HubObject::Work(order.owner.work.clone()));
        let work = match self.hub.get(&path, Form::Whole).await {
            Ok(work) => Fetched(work),
            Err(failure) => return hub_failed(&failure, &work_gvk()),
        };
        if source_of(&work.0) != order.source {
            return Outcome::Changed;
        }
        let mut all = Vec::new();
        for object in &order.objects {
            let manifest = &work.0["spec"]["workload"]["manifests"][object.ordinal];
            let applied = self.apply_object(&order.owner, object, manifest).await;
            all.push((object.ordinal, object.id.clone(), applied));
        }
        Outcome::Applied(order.source, all)
    }

    async fn apply_object(&self, owner: &WorkOwner, order: &ObjectOrder, manifest: &Value) -> Applied {
        let id = &order.id;
        if !path::is_built_in(&id.gvk)
            && !path::is_known(&id.gvk)
            && let Err(failure) = self.member.learn_plural(&id.gvk).await
        {
            let (message, passes) = (failure.text(&id.gvk), true);
            return Applied::Failed { message, passes };
        }
        let interpretation = self.interpreters.of(&id.gvk);
        let object = Manifest {
            owner,
            order,
            interpretation: &interpretation,
            manifest,
        };
        let target = self.target(id, form_of_copy(&interpretation, &id.gvk), Sort::Manifest);
        let render = |live: Option<&Value>| Answer::Rendered(object.render(live));
        match self.run(apply_task::apply(&object), &target, render).await {
            apply_task::Outcome::Applied(live, differed, created) => Applied::Done {
                copy: Box::new(
                    self.interpreters
                        .copy(&interpretation, &self.cluster, &id.gvk, &live.0)
                        .await,
                ),
                resource: path::plural(&id.gvk).into_owned(),
                differed,
                created,
            },
            apply_task::Outcome::NotApplied(applied) => applied,
        }
    }

    async fn remove(&self, order: RemovalOrder) -> Outcome {
        let mut all = Vec::new();
        for object in &order.objects {
            let removed = self.remove_object(&order.owner, object, order.preserves).await;
            all.push((object.ordinal, object.id.clone(), removed));
        }
        Outcome::Removed(order.uid, all)
    }

    async fn remove_object(&self, owner: &WorkOwner, object: &RemovalObject, preserves: bool) -> Removed {
        // Metadata is enough, so no Secret is returned.
        let target = self.target(&object.id, Form::Metadata, Sort::Removed);
        let found = target.send(Request::Look).await;
        match removal_task::decide(owner, object, preserves, &found) {
            Decision::End(removed) => removed,
            Decision::Remove(known, mode) => {
                let task = removal_task::remove(owner, object, &known, mode);
                // It is not rendered.
                let render = |_: Option<&Value>| {
                    Answer::Rendered(Err(entourage_core::delivery::render::Refusal::Deleting))
                };
                self.run(task, &target, render).await
            }
        }
    }

    fn target<'a>(&'a self, id: &'a ResourceId, form: Form, sort: Sort<'a>) -> Target<'a> {
        Target {
            api: &self.member,
            cluster: Some(&self.cluster),
            id,
            form,
            sort,
        }
    }

    /// Sends requests until the task has ended.
    async fn run<A: Rules>(
        &self,
        (mut task, mut next): (ApplyTask<A>, Next<A::Outcome>),
        target: &Target<'_>,
        render: impl Fn(Option<&Value>) -> Answer,
    ) -> A::Outcome {
        loop {
            let request = match next {
                Next::Ask(request) => request,
                Next::End(outcome) => return outcome,
            };
            let answer = match request {
                Request::Render => render(task.live()),
                Request::Create(object) => self.create(target, object.object()).await,
                request => target.send(request).await,
            };
            next = task.answered(answer).next;
        }
    }

    async fn create(&self, target: &Target<'_>, object: &Value) -> Answer {
        let (id, form) = (target.id, target.form);
        let made = self.member.create(&Path::collection(id), object, form).await;
        match made {
            Err(failure) if failure.is_namespace_missing() => {
                let message = format!(
                    "namespace {} does not exist on {} yet: the hub delivers it with a Work of its own",
                    id.namespace, self.cluster
                );
                Answer::Failed(entourage_core::apply_task::RequestError::Missing, message)
            }
            result => answer(result, id),
        }
    }

    async fn write(&self, write: HubWrite) -> Outcome {
        let object = match &write.work {
            Some(name) => {
                let namespace = entourage_api::names::execution_namespace(&self.cluster);
                HubObject::Work(NamespacedName::new(&namespace, name))
            }
            None => HubObject::Cluster(self.cluster.clone()),
        };
        let path = Path::hub(&object);
        let path = if write.is_status { path.status() } else { path };
        // Of a Work only the metadata is returned, not its payload.
        match self.hub.merge(&path, &write.patch, Form::Metadata).await {
            Ok(answer) => {
                let version = answer["metadata"]["resourceVersion"].as_str();
                let version = version.unwrap_or_default().into();
                Outcome::Written(Box::new(write), version)
            }
            Err(failure) => {
                let gvk = match &write.work {
                    Some(_) => work_gvk(),
                    None => Gvk::new("cluster.karmada.io/v1alpha1", "Cluster"),
                };
                hub_failed(&failure, &gvk)
            }
        }
    }
}

fn hub_failed(failure: &Failure, gvk: &Gvk) -> Outcome {
    match failure.class() {
        Class::Missing | Class::Conflict => Outcome::Changed,
        Class::Abandoned => Outcome::Abandoned,
        _ => Outcome::HubFailed(failure.text(gvk)),
    }
}
