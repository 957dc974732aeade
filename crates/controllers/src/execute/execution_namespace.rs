//! Deletes the execution namespace of a Cluster that leaves, unless it holds a Work.

use entourage_core::{
    execution_namespaces::HOLDS_WORKS,
    object::Str,
    observation::work_gvk,
    plan::{Event, HubObject, Preconditions, Verb},
};
use serde_json::Value;

use super::{Executor, Outcome, outcome_of};
use crate::{
    client::{Call, Form, path::Path, served::Served},
    error::{Class, Failure},
    metrics,
};

impl Executor {
    /// Asks the hub for one Work in the namespace, and deletes the namespace if there is none.
    pub(super) async fn end_execution_namespace(
        &self,
        name: Str,
        preconditions: Preconditions,
        event: Event,
    ) -> Outcome {
        match self.holds_works(&name).await {
            Ok(false) => {}
            Ok(true) => return Outcome::Refused(HOLDS_WORKS.to_owned()),
            Err(failure) if failure.class() == Class::Refused => {
                return Outcome::Refused(failure.text(&work_gvk()));
            }
            Err(failure) => return outcome_of(&failure),
        }
        let outcome = self
            .write(&HubObject::Namespace(name), Verb::delete(preconditions))
            .await;
        if outcome == Outcome::Done {
            self.events.emit(event);
        }
        outcome
    }

    /// True if a namespace holds a Work. A hub that serves none, and defines none, has none; a 404 alone does not prove that.
    async fn holds_works(&self, namespace: &str) -> Result<bool, Failure> {
        let one = Path::works(namespace).query("limit", "1");
        let call = Call {
            verb: metrics::Verb::List,
            path: &one,
            accept: Form::Metadata.accept_list(),
            body: None,
            deadline: None,
        };
        match self.hub.object(call).await {
            Ok(list) => match list.get("items") {
                Some(Value::Array(all)) => Ok(!all.is_empty()),
                // An API server writes an empty list of metadata so.
                Some(Value::Null) => Ok(false),
                _ => Err(Failure::Garbled("a list of Works without items".into())),
            },
            Err(failure) if failure.class() == Class::Missing => match self.hub.served(&work_gvk()).await? {
                Served::Nowhere => Ok(false),
                Served::In(_) | Served::Withheld => Err(failure),
            },
            Err(failure) => Err(failure),
        }
    }
}
