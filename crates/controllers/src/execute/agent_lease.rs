//! Reads the Lease of the agent of a cluster in Pull mode, before its absence is reported.

use entourage_core::{
    object::{Gvk, Str},
    observation::{Lease, LeaseAnswer, Observation},
};
use tracing::debug;

use super::{Executor, FORBIDDEN, Outcome, outcome_of};
use crate::{
    client::{Form, path::Path},
    error::Class,
    failure_kind::FailureKind,
};

impl Executor {
    /// A response that is not about the Lease proves nothing, and neither does none: it is requested again later.
    pub(super) async fn read_lease(&self, cluster: Str) -> Outcome {
        let path = Path::lease(&cluster);
        let answer = match self.hub.get(&path, Form::Whole).await {
            Ok(lease) => LeaseAnswer::Found(Lease::of(&lease)),
            Err(failure) if failure.class() == Class::Missing && failure.is_about(&path.resource) => {
                LeaseAnswer::Absent
            }
            Err(failure) if failure.class() == Class::Missing => {
                return Outcome::Failed {
                    failure_kind: FailureKind::Busy,
                    asked: None,
                };
            }
            Err(failure) if failure.code() == FORBIDDEN => {
                LeaseAnswer::Refused(failure.text(&Gvk::new("coordination.k8s.io/v1", "Lease")))
            }
            Err(failure) => {
                debug!(%cluster, error = ?failure, "the Lease of an agent cannot be read");
                return outcome_of(&failure);
            }
        };
        self.tell(Observation::LeaseRead(cluster, answer)).await;
        Outcome::Done
    }
}
