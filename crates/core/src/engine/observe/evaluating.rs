//! The evaluation of distributions' places, when an input of their status changed.

use std::collections::BTreeSet;

use entourage_api::kruise::WritePolicy;

use super::Dirty;
use crate::{
    engine::routes::Changed,
    fleet::Fleet,
    memory::Origin,
    object::{Str, Time},
    places::{Place, Step, TargetStatus},
    plan::Key,
};

impl Fleet {
    /// Evaluates every place of a distribution, or those on one member. Cost: O(namespaces + places).
    pub(super) fn evaluate_all(&mut self, name: &Str, only: Option<&Str>, now: Time, dirty: &mut Dirty) {
        let Some(held) = self.memory.distributions.held.get(name) else {
            return;
        };
        let mut places: BTreeSet<Place> = held.target_states.keys().cloned().collect();
        for at in self.distribution_servers(name) {
            let in_place = |namespace: &Str| Place {
                cluster: at.cluster.clone(),
                namespace: namespace.clone(),
            };
            if let Some(looked) = self.memory.distributions.looked.get(&at) {
                places.extend(looked.parts.keys().map(in_place));
            }
            match &at.cluster {
                None => places.extend(self.cache.namespaces.hub.keys().map(in_place)),
                Some(cluster) => places.extend(self.cache.namespaces.names_on(cluster).map(in_place)),
            }
            if let Ok(spec) = &held.object.spec {
                places.extend(spec.targets.named().iter().map(in_place));
            }
        }
        let of_it = |place: &&Place| only.is_none() || place.cluster.as_ref() == only;
        for place in places.iter().filter(of_it) {
            self.evaluate_place(name, place, now, dirty);
        }
        self.evaluate_dependent_places(name, now, dirty);
    }

    /// Evaluates one place, and those whose status depends on the number of places in some state. Cost: O(distribution's
    /// places) when a strict distribution gets its first conflict or loses its last, or when the first namespace is selected or
    /// the last one no longer is; else that of the selectors.
    pub(super) fn evaluate(&mut self, name: &Str, place: &Place, now: Time, dirty: &mut Dirty) {
        let counts = |fleet: &Self| {
            let held = fleet.memory.distributions.held.get(name);
            held.map(|held| (held.meant() == 0, held.count(TargetStatus::Conflict) == 0))
        };
        let before = counts(self);
        self.evaluate_place(name, place, now, dirty);
        if before != counts(self) {
            self.evaluate_dependent_places(name, now, dirty);
        } else {
            self.note_completeness(name);
        }
    }

    /// Evaluates the places whose status depends on others. Cost: O(their number).
    fn evaluate_dependent_places(&mut self, name: &Str, now: Time, dirty: &mut Dirty) {
        let Some(held) = self.memory.distributions.held.get(name) else {
            return;
        };
        let is_strict = matches!(&held.object.spec, Ok(spec) if spec.write_policy == WritePolicy::Strict);
        let depends = |target_status: &TargetStatus| match target_status {
            TargetStatus::Leaving | TargetStatus::Kept => true,
            TargetStatus::Pending | TargetStatus::Blocked | TargetStatus::Done | TargetStatus::Failed(_) => {
                is_strict
            }
            _ => false,
        };
        let of_it = held
            .by_target_status
            .iter()
            .filter(|(target_status, _)| depends(target_status));
        let places: Vec<Place> = of_it.flat_map(|(_, places)| places.iter().cloned()).collect();
        for place in places {
            self.evaluate_place(name, &place, now, dirty);
        }
        self.note_completeness(name);
    }

    /// Once every place has its copy, a later conflict deletes none; a contended copy counts while it is equal. Cost:
    /// O(statuses), O(contended copies) when no others are left, and O(copies created) once.
    fn note_completeness(&mut self, name: &Str) {
        let Some(held) = self.memory.distributions.held.get(name) else {
            return;
        };
        let failed = TargetStatus::Failed(Step::Update);
        if held.made.is_empty() || held.meant() != held.count(TargetStatus::Done) + held.count(failed) {
            return;
        }
        let holds_it = |place: &Place| {
            let at = self.memory.distributions.place_of(name, place)?;
            let part = self.memory.distributions.part(&at, &place.namespace)?;
            Some(held.target_states.get(place)?.is_equal_but_contended(part))
        };
        let mut contended = held.by_target_status.get(&failed).into_iter().flatten();
        if contended.all(|place| holds_it(place) == Some(true))
            && let Some(held) = self.memory.distributions.held.get_mut(name)
        {
            held.made.clear();
        }
    }

    fn evaluate_place(&mut self, name: &Str, place: &Place, now: Time, dirty: &mut Dirty) {
        let target_status = self.target_status(name, place, now);
        let Some(held) = self.memory.distributions.held.get_mut(name) else {
            return;
        };
        let leaves = |target_status| {
            matches!(
                target_status,
                Some(TargetStatus::Leaving | TargetStatus::Failed(Step::Delete))
            )
        };
        let left = leaves(
            held.target_states
                .get(place)
                .and_then(|target_state| target_state.target_status),
        );
        let changed = held.set(place, target_status, now);
        if changed && let Some(target_state) = held.target_states.get_mut(place) {
            target_state.explained = leaves(target_status)
                && (self.memory.origin == Origin::Edit || (left && target_state.explained));
            target_state.counted &= leaves(target_status);
        }
        if target_status == Some(TargetStatus::NoNamespace)
            && let Some(target_state) = held.target_states.get_mut(place)
        {
            target_state.reset_drift();
        }
        if changed {
            self.route(Changed::DistributionReport(name), dirty);
            if target_status.is_none() {
                dirty.push(Key::Distribution(name.clone()));
            }
        }
        match target_status {
            Some(_) => {
                let names = self.memory.distributions.at.entry(place.clone()).or_default();
                names.insert(name.clone());
            }
            None => self.leave(name, place),
        }
        let acts = target_status.is_some_and(|target_status| {
            target_status.is_under_way() || matches!(target_status, TargetStatus::Failed(_))
        });
        if acts {
            self.route(Changed::Place(name, place), dirty);
        }
    }

    pub(super) fn leave(&mut self, name: &Str, place: &Place) {
        if let Some(names) = self.memory.distributions.at.get_mut(place) {
            names.remove(name);
            if names.is_empty() {
                self.memory.distributions.at.remove(place);
            }
        }
    }
}
