//! Reads the objects that a removal was decided from once more. The core names them: see [`Evidence`].

use entourage_core::{
    distribution::Step,
    observation::{Server, Wrote, is_whole},
    plan::Evidence,
    rendered::wipe,
};
use tracing::debug;

use super::{Executor, send::words};
use crate::{
    client::{Api, Form, path::Path},
    error::{Class, Failure},
};

impl Executor {
    /// The outcome of a removal that is not carried out, because an object that it was decided from has changed or cannot be read;
    /// `None` if all are as they were observed. An object that changed is observed. `at` is the server of the copy.
    ///
    /// Cost: one GET of metadata for each object.
    pub(super) async fn outdated(&self, evidence: &[Evidence], at: &Api) -> Option<Wrote> {
        for each in evidence {
            let id = each.id();
            match self.is_as_observed(each, at).await {
                Ok(true) => {}
                Ok(false) => {
                    debug!(object = %id, "a copy is not removed yet: the object that this was decided from has changed");
                    return Some(Wrote::Abandoned);
                }
                Err(failure) if matches!(failure.class(), Class::Refused | Class::Unauthorized) => {
                    let why = words(&failure, &id);
                    return Some(Wrote::Failed {
                        step: Step::Delete,
                        message: format!("{id} cannot be read again before the removal: {why}"),
                        may_exist: false,
                    });
                }
                // Nobody need act: it is tried again.
                Err(failure) => {
                    debug!(object = %id, error = ?failure, "a copy is not removed yet");
                    return Some(Wrote::Abandoned);
                }
            }
        }
        None
    }

    async fn is_as_observed(&self, evidence: &Evidence, at: &Api) -> Result<bool, Failure> {
        let (id, watch) = (evidence.id(), evidence.watch());
        let path = Path::object(&id);
        let api = match evidence.server() {
            Server::Hub => &self.hub,
            Server::Member(_) => at,
        };
        let mut live = match api.get(&path, Form::Metadata).await {
            Ok(live) => live,
            // Only a 404 about the object proves that it is absent.
            Err(failure) if failure.is_about(&path.resource) && failure.class() == Class::Missing => {
                return Ok(evidence.holds(None));
            }
            Err(failure) => return Err(failure),
        };
        if evidence.holds(Some(&live)) {
            wipe(&mut live);
            return Ok(true);
        }
        if is_whole(&watch, &self.interpreters.to(&watch)) {
            wipe(&mut live);
            live = api.get(&path, Form::Whole).await?;
        }
        self.see(&watch, live).await;
        Ok(false)
    }
}
