//! What is observed of the write of a copy beside its outcome: its begin, and that it was broken off.

use super::{Delivered, Observation, Wrote};
use crate::{
    distribution::Step,
    plan::{Change, Key},
};

const BROKEN_OFF: &str = "the attempt was broken off";

impl Observation {
    /// The begin of a write of a copy; `None` for any other change. Cost: O(1).
    #[must_use]
    pub fn begun(change: &Change) -> Option<Self> {
        match change {
            Change::Deliver { id, cluster, .. } => Some(Self::Started(cluster.clone(), id.clone())),
            Change::Distribute(order) => Some(Self::Distributing(
                order.distribution.clone(),
                order.place.clone(),
            )),
            _ => None,
        }
    }

    /// The outcome of a plan that will not report one, for the key of a copy. Cost: O(1).
    #[must_use]
    pub fn broken_off(key: &Key) -> Option<Self> {
        match key {
            Key::Copy(id, cluster) => {
                let outcome = Delivered::Unreachable(BROKEN_OFF.into());
                Some(Self::Delivered(cluster.clone(), id.clone(), outcome))
            }
            Key::Distributed(name, place) => {
                let outcome = Wrote::Failed {
                    step: Step::Create,
                    message: BROKEN_OFF.into(),
                    may_exist: true,
                };
                Some(Self::Distributed(name.clone(), place.clone(), outcome))
            }
            _ => None,
        }
    }
}
