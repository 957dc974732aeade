//! The answers of estimators.

use super::Dirty;
use crate::{
    engine::routes::Changed,
    fleet::Fleet,
    object::{Str, Time},
    observation::EstimatorAnswer,
};

impl Fleet {
    /// Estimators answered, or did not, for these requirements. Cost: O(answers × log + the bindings that wait for them).
    pub(super) fn estimated(
        &mut self,
        requirements: &Str,
        answers: Vec<(Str, EstimatorAnswer)>,
        now: Time,
        dirty: &mut Dirty,
    ) {
        for id in self.memory.estimates.answered(requirements, answers, now) {
            self.route(Changed::Binding(&id), dirty);
        }
    }
}
