//! Ending a namespace of a member that the hub deleted, or seeing what keeps it.

use std::collections::BTreeSet;

use entourage_core::{
    namespaces::{self, content::Contents},
    object::{Gvk, Str},
    observation::{self, ObjectRef, Observation, Watch},
    plan::{Preconditions, RemovalMode},
};

use super::{
    super::{Executor, Outcome, trouble},
    look::look,
};
use crate::{
    client::{Api, Form, path::Path},
    error::{Class, Failure},
    members::Member,
};

impl Executor {
    /// Asks the hub whether it has a namespace, then lists what a member has in it. Cost: a request for each version of each API
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
            Err(failure) => trouble(&failure),
        }
    }

    /// Deletes exactly this namespace if there is nothing in it at this moment and the hub has none, or takes our records off.
    /// Answers whether these were taken off, too.
    ///
    /// The hub may have got the namespace while it was looked into, and copies may have come into it. So it is asked again in
    /// the end, when no delivery into the namespace is under way and none can begin: what was delivered before, the hub had by
    /// then; what is delivered after, makes the namespace anew.
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
            Ok(Contents::Nothing) => self.is_on_hub(&name).await.map(|is_there| match is_there {
                true => Contents::OnHub,
                false => Contents::Nothing,
            }),
            found => found,
        };
        let answer = match found {
            Ok(Contents::Nothing) if mode == RemovalMode::Delete => {
                api.delete(&path, &preconditions.uid, &preconditions.resource_version)
                    .await
            }
            Ok(Contents::Nothing) => {
                let patch = namespaces::released(preconditions, &self.hub_id);
                api.merge(&path, &patch, Form::Whole).await
            }
            Ok(contents) => {
                self.tell(Observation::LookedInto(cluster, name, contents)).await;
                return (Outcome::Done, false);
            }
            Err(failure) => return (trouble(&failure), false),
        };
        let released = mode != RemovalMode::Delete && answer.is_ok();
        let now = match answer {
            // It was changed meanwhile, or is another one: what it is now is told, so that the next plan is about that.
            Err(failure) if failure.class() == Class::Conflict => api.get(&path, Form::Whole).await,
            answer => answer,
        };
        match now {
            // It is held until it is empty, and comes as it is; or it is gone.
            Ok(object) if object["metadata"]["uid"].is_string() => {
                let watch = Watch::MemberNamespaces(cluster.clone());
                if let Some(subject) = observation::project(&watch, &Default::default(), &object) {
                    self.tell(Observation::Seen(subject)).await;
                }
            }
            Ok(_) => self.tell(gone(&cluster, &name, preconditions)).await,
            Err(failure) if failure.class() == Class::Missing && failure.is_about("namespaces") => {
                self.tell(gone(&cluster, &name, preconditions)).await;
            }
            Err(failure) if failure.class() == Class::Refused => {
                let words = failure.text(&Gvk::new("v1", "Namespace"));
                return (Outcome::Refused(words), released);
            }
            Err(failure) => return (trouble(&failure), released),
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

    /// Only a 404 about the namespace proves that it is not there.
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
