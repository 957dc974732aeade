//! Removes a namespace of a member that the hub deleted, or reports what keeps it.

use std::collections::BTreeSet;

use entourage_core::{
    namespaces::{self, content::Contents},
    object::{Gvk, Str},
    observation::{self, ObjectRef, Observation, Watch},
    plan::{Preconditions, RemovalMode},
};

use super::{
    super::{Executor, Outcome, hub::is_deleted, outcome_of},
    look::look,
};
use crate::{
    client::{Api, Form, path::Path},
    error::{Class, Failure},
    failure_kind::FailureKind,
    members::Member,
};

impl Executor {
    /// Asks the hub whether it has a namespace, then lists its objects on a member. Cost: a request for each version of each API
    /// group of the member, one for its definitions, and one for each kind and page.
    pub(in crate::execute) async fn look_into(
        &self,
        api: &Api,
        (cluster, name): (Str, Str),
        copies: &BTreeSet<Str>,
    ) -> Outcome {
        match self.contents(api, &name, copies).await {
            Ok(contents) => {
                self.tell(Observation::LookedInto(cluster, name, contents)).await;
                Outcome::Done
            }
            Err(failure) => outcome_of(&failure),
        }
    }

    /// Deletes exactly this namespace if it is empty at this moment and the hub has none, or removes this hub's records. Returns
    /// true if the records were removed.
    ///
    /// The namespace may have been created on the hub while it was listed here, and copies may have been delivered into it. So
    /// the hub is asked again at the end, when no delivery into the namespace is running and none can begin: for an earlier
    /// delivery, the hub had the namespace by then; a later one creates the namespace again.
    pub(in crate::execute) async fn end_namespace(
        &self,
        member: &Member,
        (cluster, name): (Str, Str),
        (preconditions, copies): (&Preconditions, &BTreeSet<Str>),
        mode: RemovalMode,
    ) -> (Outcome, bool) {
        let (api, path) = (&member.api, Path::namespace(Some(&name)));
        let gate = member.namespaces.gate(&name);
        let found = match mode {
            RemovalMode::Delete => self.contents(api, &name, copies).await,
            _ => Ok(Contents::Nothing),
        };
        let _closed = match mode {
            RemovalMode::Delete => Some(gate.close().await),
            _ => None,
        };
        let found = match found {
            // Its cluster leaves: it is only no longer managed.
            Ok(Contents::Nothing) if mode == RemovalMode::HandOver => Ok(Contents::Nothing),
            Ok(Contents::Nothing) => self.is_on_hub(&name).await.map(|is_there| match is_there {
                true => Contents::OnHub,
                false => Contents::Nothing,
            }),
            found => found,
        };
        let answer = match found {
            Ok(Contents::Nothing) if mode == RemovalMode::Delete => {
                let Preconditions {
                    uid,
                    resource_version,
                } = preconditions;
                api.delete(&path, uid, resource_version, Form::Whole).await
            }
            Ok(Contents::Nothing) => {
                let patch = namespaces::released(preconditions, &self.hub_id);
                api.merge(&path, &patch, Form::Whole).await
            }
            Ok(contents) => {
                self.tell(Observation::LookedInto(cluster, name, contents)).await;
                return (Outcome::Done, false);
            }
            Err(failure) => return (outcome_of(&failure), false),
        };
        let released = mode != RemovalMode::Delete && answer.is_ok();
        let now = match answer {
            // It was changed meanwhile, or is another object: its current state is observed, so that the next plan is about
            // that.
            Err(failure) if failure.class() == Class::Conflict => api.get(&path, Form::Whole).await,
            answer => answer,
        };
        match now {
            // It is kept until it is empty, and is returned; or it is gone.
            Ok(object) if object["metadata"]["uid"].is_string() => {
                let watch = Watch::MemberNamespaces(cluster.clone());
                if let Some(subject) = observation::project(&watch, &Default::default(), &object) {
                    self.tell(Observation::Seen(subject)).await;
                }
            }
            Ok(status) if is_deleted(&status, &preconditions.uid) => {
                self.tell(gone(&cluster, &name, preconditions)).await;
            }
            // Neither an object nor its end, as of a proxy: it proves nothing.
            Ok(_) => {
                let outcome = Outcome::Failed {
                    failure_kind: FailureKind::NoResponse,
                    asked: None,
                };
                return (outcome, released);
            }
            Err(failure) if failure.class() == Class::Missing && failure.is_about("namespaces") => {
                self.tell(gone(&cluster, &name, preconditions)).await;
            }
            Err(failure) if failure.class() == Class::Refused => {
                let words = failure.text(&Gvk::new("v1", "Namespace"));
                return (Outcome::Refused(words), released);
            }
            Err(failure) => return (outcome_of(&failure), released),
        }
        self.tell(Observation::NamespaceEnded(cluster, name)).await;
        (Outcome::Done, released)
    }

    async fn contents(&self, api: &Api, name: &str, copies: &BTreeSet<Str>) -> Result<Contents, Failure> {
        match self.is_on_hub(name).await? {
            true => Ok(Contents::OnHub),
            false => look(api, (&self.hub_id, copies), name).await,
        }
    }

    /// True if the hub has the namespace. Only a 404 about the namespace proves that it does not.
    async fn is_on_hub(&self, name: &str) -> Result<bool, Failure> {
        match self.hub.get(&Path::namespace(Some(name)), Form::Metadata).await {
            Ok(_) => Ok(true),
            Err(failure) if failure.class() == Class::Missing && failure.is_about("namespaces") => Ok(false),
            Err(failure) => Err(failure),
        }
    }
}

fn gone(cluster: &Str, name: &Str, preconditions: &Preconditions) -> Observation {
    let which = ObjectRef::Namespace(Some(cluster.clone()), name.clone());
    let (uid, revision) = (Some(preconditions.uid.clone()), None);
    Observation::Gone { which, uid, revision }
}
