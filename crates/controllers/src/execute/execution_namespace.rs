//! Deletes the execution namespace of a Cluster that leaves, unless it holds a Work.

use entourage_core::{
    execution_namespaces::HOLDS_WORKS,
    object::{Gvk, Str},
    plan::{Event, HubObject, Preconditions, Verb},
};

use super::{Executor, Outcome, outcome_of};
use crate::{
    client::{Call, Form, path::Path},
    error::Class,
    metrics,
};

impl Executor {
    /// Asks the hub for one Work in the namespace, and deletes the namespace if there is none. A hub without the definition of
    /// Works has none.
    pub(super) async fn end_execution_namespace(
        &self,
        name: Str,
        preconditions: Preconditions,
        event: Event,
    ) -> Outcome {
        let one = Path::works(&name).query("limit", "1");
        let call = Call {
            verb: metrics::Verb::List,
            path: &one,
            accept: Form::Metadata.accept_list(),
            body: None,
            deadline: None,
        };
        match self.hub.object(call).await {
            Ok(list) if list["items"].as_array().is_some_and(|all| !all.is_empty()) => {
                return Outcome::Refused(HOLDS_WORKS.to_owned());
            }
            Ok(_) => {}
            Err(failure) => match failure.class() {
                Class::Missing => {}
                Class::Refused => {
                    return Outcome::Refused(failure.text(&Gvk::new("work.karmada.io/v1alpha1", "Work")));
                }
                _ => return outcome_of(&failure),
            },
        }
        let outcome = self
            .write(&HubObject::Namespace(name), Verb::delete(preconditions))
            .await;
        if outcome == Outcome::Done {
            self.events.emit(event);
        }
        outcome
    }
}
