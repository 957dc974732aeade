//! The answers of estimators.

use super::Dirty;
use crate::{
    engine::routes::Changed,
    fleet::Fleet,
    object::{Str, Time},
};

impl Fleet {
    /// Estimators answered, or did not, for these requirements. Cost: O(answers × log + the bindings that wait for them).
    pub(super) fn estimated(
        &mut self,
        requirements: &Str,
        answers: Vec<(Str, Option<i64>)>,
        now: Time,
        dirty: &mut Dirty,
    ) {
        let Some(settings) = self.config.estimators else {
            return;
        };
        let estimates = &mut self.memory.estimates;
        for id in estimates.answered(requirements, answers, settings.timeout, now) {
            self.route(Changed::Binding(&id), dirty);
        }
    }
}
