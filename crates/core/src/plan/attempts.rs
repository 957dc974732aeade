//! The observations of the write of a copy beside its outcome: its begin, and that it was broken off.

use super::{Change, Key};
use crate::{
    observation::{Delivered, Observation, Wrote},
    places::Step,
};

const BROKEN_OFF: &str = "the attempt was broken off";

impl Change {
    /// The begin of the write of a copy; `None` for any other change. Cost: O(1).
    #[must_use]
    pub fn begun(&self) -> Option<Observation> {
        match self {
            Self::Deliver { id, cluster, .. } => Some(Observation::Started(cluster.clone(), id.clone())),
            Self::Distribute(order) => {
                let (name, place) = (order.distribution.clone(), order.place.clone());
                Some(Observation::Distributing(name, place))
            }
            _ => None,
        }
    }
}

impl Key {
    /// The outcome of a plan that will not report one, for the key of a copy. Cost: O(1).
    #[must_use]
    pub fn broken_off(&self) -> Option<Observation> {
        match self {
            Self::Copy(id, cluster) => {
                let outcome = Delivered::Unreachable(BROKEN_OFF.into());
                Some(Observation::Delivered(cluster.clone(), id.clone(), outcome))
            }
            Self::Distributed(name, place) => {
                let outcome = Wrote::Failed {
                    step: Step::Create,
                    message: BROKEN_OFF.into(),
                    may_exist: true,
                };
                Some(Observation::Distributed(name.clone(), place.clone(), outcome))
            }
            _ => None,
        }
    }
}
