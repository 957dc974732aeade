//! Outdated copies: their record is not from the current version of their template.
//!
//! Conditions are computed from the record of each place and the desired version (I9), whether or not the member responds.
//! Every change of either has the copy planned again: so only the copies to be planned again are compared here.

use std::collections::BTreeSet;

use super::Dirty;
use crate::{
    fleet::{Fleet, current},
    memory::{Origin, propagations::End},
    object::Time,
    plan::Key,
};

impl Fleet {
    /// Compares the records of these copies. Cost: O(copies to be planned again × labels and annotations); O(referrers) more
    /// for each that changes and whose member does not respond.
    pub(super) fn compare_records(&mut self, now: Time, dirty: &mut Dirty) {
        let copies: BTreeSet<_> = dirty
            .iter()
            .filter_map(|key| match key {
                Key::Copy(id, cluster) => Some((id.clone(), cluster.clone())),
                _ => None,
            })
            .collect();
        for (id, cluster) in copies {
            let responds = self.answers(&cluster);
            let is_outdated = current::is_record_outdated(self, &id, &cluster);
            let Some(resource) = self.cache.resources.get_mut(&id) else {
                continue;
            };
            let Some(state) = resource.copies.get_mut(&cluster) else {
                continue;
            };
            if state.outdated_since.is_some() == is_outdated {
                continue;
            }
            state.outdated_since = is_outdated.then_some(now);
            // Without a template, a binding or a copy there is nothing to compare: it is no longer wanted.
            let is_reached = state.live.is_some()
                && state.record.is_some()
                && resource.template.is_some()
                && resource.binding.is_some();
            let end = if is_reached { End::Reached } else { End::Dropped };
            // What a list shows changed earlier.
            let began = (self.memory.origin != Origin::List).then_some(now);
            match is_outdated {
                true => self.memory.propagations.begins(&id, &cluster, began),
                false => self
                    .memory
                    .propagations
                    .ends(&id, &cluster, end, self.leading, now),
            }
            // If the member responds, the outcome is reported to the referrers soon.
            if !responds {
                let referrers = self.graph.links.of(&id).referrers.iter();
                dirty.extend(referrers.cloned().map(Key::BindingStatus));
            }
            dirty.push(Key::BindingStatus(id));
        }
    }
}
