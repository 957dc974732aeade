//! The health of a copy.

use serde_json::Value;

use super::{mentions::Number, path::Path};
use crate::{
    health::Health,
    json::{int, items, text},
};

/// The checks that a healthy copy passes.
#[derive(Clone, Debug)]
pub(super) struct Checks {
    pub(super) observes: bool,
    pub(super) conditions: Vec<Condition>,
    pub(super) phases: Vec<Phase>,
    pub(super) comparisons: Vec<Compare>,
}

/// A condition and its status when healthy.
#[derive(Clone, Debug)]
pub(super) struct Condition {
    pub(super) type_: String,
    pub(super) status: String,
    pub(super) may_be_absent: bool,
}

/// A text and its health; an empty list means "all others".
#[derive(Clone, Debug)]
pub(super) struct Phase {
    pub(super) path: Path,
    pub(super) healthy: Vec<String>,
    pub(super) unhealthy: Vec<String>,
    pub(super) default: Option<String>,
}

/// A number that must be at least another.
#[derive(Clone, Debug)]
pub(super) struct Compare {
    pub(super) number: Number,
    pub(super) at_least: Number,
}

impl Checks {
    /// Unhealthy if any check fails, else unknown if any is unknown.
    pub(super) fn of(&self, live: &Value) -> Health {
        if !live["status"].is_object() {
            return Health::Unknown;
        }
        let observed = int(live, &["status", "observedGeneration"]) == int(live, &["metadata", "generation"]);
        let all = std::iter::once(healthy_if(!self.observes || observed))
            .chain(self.conditions.iter().map(|check| check.of(live)))
            .chain(self.phases.iter().map(|check| check.of(live)))
            .chain(self.comparisons.iter().map(|check| check.of(live)));
        all.fold(Health::Healthy, |worst, each| match (worst, each) {
            (Health::Unhealthy, _) | (_, Health::Unhealthy) => Health::Unhealthy,
            (Health::Unknown, _) | (_, Health::Unknown) => Health::Unknown,
            _ => Health::Healthy,
        })
    }
}

impl Condition {
    fn of(&self, live: &Value) -> Health {
        let mut all = items(live, &["status", "conditions"]).iter();
        match all.find(|each| each["type"] == *self.type_) {
            None if self.may_be_absent => Health::Healthy,
            None => Health::Unknown,
            Some(found) => match text(found, &["status"]) {
                status if status == self.status => Health::Healthy,
                "True" | "False" => Health::Unhealthy,
                _ => Health::Unknown,
            },
        }
    }
}

impl Phase {
    fn of(&self, live: &Value) -> Health {
        let phase = self.path.first(live).as_str().filter(|phase| !phase.is_empty());
        let Some(phase) = phase.or(self.default.as_deref()) else {
            return Health::Unknown;
        };
        let is_in = |list: &[String]| list.iter().any(|each| each == phase);
        if is_in(&self.unhealthy) {
            Health::Unhealthy
        } else if is_in(&self.healthy) || self.healthy.is_empty() {
            Health::Healthy
        } else if self.unhealthy.is_empty() {
            Health::Unhealthy
        } else {
            Health::Unknown
        }
    }
}

impl Compare {
    fn of(&self, live: &Value) -> Health {
        match (self.number.beside(live, live), self.at_least.beside(live, live)) {
            (Some(number), Some(least)) => healthy_if(number >= least),
            _ => Health::Unknown,
        }
    }
}

fn healthy_if(is_so: bool) -> Health {
    if is_so { Health::Healthy } else { Health::Unhealthy }
}
