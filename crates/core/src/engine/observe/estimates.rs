//! The answers of estimators.

use super::Dirty;
use crate::{
    engine::routes::Changed,
    fleet::Fleet,
    object::{Str, Time},
    observation::EstimatorAnswer,
};

impl Fleet {
    /// Estimators answered a question of that time for these requirements, or did not. Cost: O(answers × log + the bindings that wait
    /// for them).
    pub(super) fn estimated(
        &mut self,
        requirements: &Str,
        answers: (Time, Vec<(Str, EstimatorAnswer)>),
        now: Time,
        dirty: &mut Dirty,
    ) {
        for id in self.memory.estimates.answered(requirements, answers, now) {
            self.route(Changed::Binding(&id), dirty);
        }
    }
}
