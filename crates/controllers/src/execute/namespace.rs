//! Applies a namespace of a member: read it, merge, send, observe.

mod end;
mod look;
mod resources;

use entourage_core::{
    namespaces,
    object::{Gvk, Str, StrMap},
    observation::{self, Observation, Watch},
};
use serde_json::Value;
use tracing::debug;

use super::{Executor, Outcome, outcome_of};
use crate::{
    client::{Api, Form, path::Path},
    error::{Class, Failure},
};

/// Labels and annotations.
type Marks = (StrMap, StrMap);

impl Executor {
    /// Creates the namespace, or merges into the existing one. The shell retries a failure: no delivery waits for it. A refusal
    /// is reported to a user.
    pub(super) async fn bring_namespace(
        &self,
        api: &Api,
        cluster: &Str,
        name: &Str,
        marks: &Marks,
    ) -> Outcome {
        match merge(api, (&self.hub_id, cluster), name, marks).await {
            Ok(object) => {
                let watch = Watch::MemberNamespaces(cluster.clone());
                if let Some(subject) = observation::project(&watch, &Default::default(), &object) {
                    self.tell(Observation::Seen(subject)).await;
                }
                Outcome::Done
            }
            Err(failure) => {
                debug!(%cluster, namespace = %name, error = ?failure, "a namespace could not be updated");
                if failure.class() == Class::Refused {
                    return Outcome::Refused(failure.text(&Gvk::new("v1", "Namespace")));
                }
                outcome_of(&failure)
            }
        }
    }
}

/// Merges labels and annotations, and returns the resulting namespace.
async fn merge(
    api: &Api,
    (hub, cluster): (&str, &str),
    name: &str,
    (labels, annotations): &Marks,
) -> Result<Value, Failure> {
    let path = Path::namespace(Some(name));
    let live = match api.get(&path, Form::Whole).await {
        Err(failure) if failure.class() == Class::Missing => {
            let body = namespaces::created((hub, cluster), name, labels, annotations);
            let made = api.create(&Path::namespace(None), &body, Form::Whole).await?;
            return Ok(prove(api, (hub, cluster), made, Form::Whole).await);
        }
        answer => answer?,
    };
    match namespaces::patch(&live, hub, labels, annotations) {
        Some(patch) => api.merge(&path, &patch, Form::Whole).await,
        None => Ok(live),
    }
}

/// Records on a namespace that was just created that it is this object, and returns the result. If that fails it returns the
/// namespace as it was created: it is then kept when the hub deletes its own.
pub(crate) async fn prove(api: &Api, (hub, cluster): (&str, &str), made: Value, form: Form) -> Value {
    let meta = &made["metadata"];
    let (Some(name), Some(uid)) = (meta["name"].as_str(), meta["uid"].as_str()) else {
        return made;
    };
    let patch = namespaces::proven((hub, cluster), uid);
    let path = Path::namespace(Some(name));
    match look::tried(|| api.merge(&path, &patch, form)).await {
        Ok(proven) => proven,
        Err(failure) => {
            debug!(%cluster, namespace = name, error = ?failure, "a namespace has no record of its uid");
            made
        }
    }
}
