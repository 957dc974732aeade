//! Outdated copies: their record is not from the current version of their template.
//!
//! Conditions are computed from the record of each place and the desired version (I9), whether or not the member responds.
//! Every change of either has the copy planned again: so only the copies to be planned again are compared here.

use std::collections::BTreeSet;

use super::Dirty;
use crate::{
    fleet::{Fleet, current, suspension::is_suspended},
    memory::propagations::End,
    object::Time,
    plan::Key,
};

impl Fleet {
    /// Compares the records of the copies that an observation has planned again: a list, or another one. Cost: O(copies to be planned
    /// again × labels and annotations); O(referrers) more for each that is outdated, or changes while its member does not respond.
    pub(super) fn compare_records(&mut self, is_listed: bool, now: Time, dirty: &mut Dirty) {
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
            // A change is not on its way to where a user suspended delivery, neither now nor when that is resumed.
            let is_awaited = is_outdated
                && self
                    .resource(&id)
                    .is_some_and(|resource| !is_suspended(self, &id, resource, &cluster));
            let Some(resource) = self.cache.resources.get_mut(&id) else {
                continue;
            };
            let Some(state) = resource.copies.get_mut(&cluster) else {
                continue;
            };
            let was_outdated = state.outdated_since.is_some();
            if !is_awaited {
                // Without a template that stays, a binding or a copy there is nothing to compare: it is no longer wanted.
                let is_reached = !is_outdated
                    && state.live.is_some()
                    && state.record.is_some()
                    && resource.binding.is_some()
                    && resource
                        .template
                        .as_ref()
                        .is_some_and(|template| template.meta.deleting.is_none());
                let end = if is_reached { End::Reached } else { End::Dropped };
                let propagations = &mut self.memory.propagations;
                propagations.ends(&id, &cluster, end, self.leading, now);
            } else if !was_outdated {
                // What a list shows changed earlier.
                let began = (!is_listed).then_some(now);
                self.memory.propagations.begins(&id, &cluster, began);
            }
            if was_outdated == is_outdated {
                continue;
            }
            state.outdated_since = is_outdated.then_some(now);
            // If the member responds, the outcome is reported to the referrers soon.
            if !responds {
                let referrers = self.graph.links.of(&id).referrers.iter();
                dirty.extend(referrers.cloned().map(Key::BindingStatus));
            }
            dirty.push(Key::BindingStatus(id));
        }
    }
}
