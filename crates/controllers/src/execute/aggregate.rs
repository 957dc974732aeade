//! Making the status of a template by what people taught us of its kind: read the template, ask, write what differs.

use entourage_api::work::AggregatedStatusItem;
use entourage_core::{
    delivery::render::wipe, interpreter::Interpretation, object::Id, observation::Observation,
    plan::HubObject, status::template::aggregated,
};
use tracing::debug;

use super::{Hands, Outcome, trouble};
use crate::{
    client::{Form, path::Path},
    error::Class,
};

impl Hands {
    /// Carries out a `Change::Aggregate`. What the template lacks is no trouble: its end is on the way here.
    pub(super) async fn aggregate(
        &self,
        id: Id,
        interpretation: &Interpretation,
        items: &[AggregatedStatusItem],
    ) -> Outcome {
        let mut template = match self.hub.get(&Path::object(&id), Form::Whole).await {
            Ok(template) => template,
            Err(failure) if failure.class() == Class::Missing => return Outcome::Done,
            Err(failure) => {
                debug!(object = %id, error = ?failure, "a template cannot be read for its status");
                return trouble(&failure);
            }
        };
        let answer = aggregated(&template, interpretation, items);
        wipe(&mut template);
        let (verb, unanswered) = match answer {
            Ok(verb) => (verb, None),
            Err(unanswered) => (None, Some(unanswered)),
        };
        self.tell(Observation::Aggregated(id.clone(), unanswered)).await;
        match verb {
            Some(verb) => self.write(&HubObject::Template(id), verb).await,
            None => Outcome::Done,
        }
    }
}
