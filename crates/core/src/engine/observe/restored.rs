//! A server whose revisions went back: it was restored from a backup, or created anew.
//!
//! Revisions order events only while a server counts on. Invariants:
//!
//! - It is detected before the first item of a list arrives ([`crate::observation::Observation::Listing`]), and only by earlier
//!   events of the watch itself: the response to a write may overtake a list that was taken before it.
//! - Then no cached object of the watch is fresh: each item of the list replaces the cached object, whatever its revision, and
//!   objects that the list lacks are deleted. The cached objects count until then, and prove nothing.
//! - Versions that were counted twice may name two contents: a copy that was written from one proves nothing any more, so every
//!   copy is rendered, compared, and written if it differs.
//! - Other watches of that server that are ahead of it prove nothing either until they list again, which the shell ensures: so
//!   in whatever order they do, no decision combines new state with old.
//! - Otherwise nothing is forgotten, and no objects of other watches ever are.

use super::lists::first;
use crate::{
    cache::{CopyState, Freshness},
    fleet::Fleet,
    object::Time,
    observation::{Server, Watch},
};

/// The value for a resourceVersion that is not a number; nothing is concluded from it.
const UNKNOWN: u64 = u64::MAX;

impl Fleet {
    /// A list begins. Cost: O(log watches); O(watches) and that of [`Self::went_back`] when the revision is below the one that
    /// was reached.
    pub(super) fn list_begins(&mut self, watch: &Watch, revision: u64, now: Time) {
        let revision = Some(revision).filter(|revision| *revision != UNKNOWN);
        let before = self.cache.watches.list_begins(watch, revision);
        if let (Some(revision), Some(before)) = (revision, before)
            && revision < before
        {
            let server = watch.server();
            if server == Server::Hub {
                self.memory.deletion_pauses.rolled_back(now);
            }
            self.cache.watches.unsync_ahead(&server, revision);
            self.went_back(watch);
        }
    }

    /// The watch has reached a revision. Cost: O(log watches).
    pub(super) fn watch_reached(&mut self, watch: &Watch, revision: u64) {
        if revision != UNKNOWN {
            self.cache.watches.reached(watch, revision);
        }
    }

    /// Forgets the freshness of a watch's objects. Cost: O(cached and remembered under it); for bindings O(resources).
    pub(crate) fn went_back(&mut self, watch: &Watch) {
        self.cache.watches.unsync(watch);
        match watch {
            Watch::Templates(gvk) => {
                let of_kind = self.cache.resources.range_mut(first(gvk)..);
                for (_, resource) in of_kind.take_while(|(id, _)| id.gvk == *gvk) {
                    resource.freshness = Freshness::default();
                    (resource.touched, resource.confirmed) = (None, None);
                    (resource.absent, resource.not_propagatable) = (false, false);
                    resource
                        .copies
                        .iter_mut()
                        .for_each(|(_, state)| forget_source(state));
                }
                let of_kind = self.cache.tombstones.range_mut(first(gvk)..);
                for (_, known) in of_kind.take_while(|(id, _)| id.gvk == *gvk) {
                    known.template = Freshness::default();
                }
            }
            Watch::Copies(cluster, gvk) => {
                let of_kind = self.cache.resources.range_mut(first(gvk)..);
                for (_, resource) in of_kind.take_while(|(id, _)| id.gvk == *gvk) {
                    if let Some(state) = resource.copies.get_mut(cluster) {
                        state.freshness = Freshness::default();
                        forget_source(state);
                    }
                }
                let of_kind = self.cache.tombstones.range_mut(first(gvk)..);
                for (_, known) in of_kind.take_while(|(id, _)| id.gvk == *gvk) {
                    known.copies.retain(|(name, _)| name != cluster);
                }
            }
            Watch::Bindings | Watch::ClusterBindings => {
                let cluster_scoped = *watch == Watch::ClusterBindings;
                for (id, resource) in &mut self.cache.resources {
                    if id.namespace.is_empty() == cluster_scoped {
                        // One that was reported as deleted before this list is not accounted for either: the hub never had it.
                        (resource.binding_freshness, resource.vanished) = (Freshness::default(), None);
                    }
                }
                self.regrouped(cluster_scoped);
                for (id, known) in &mut self.cache.tombstones {
                    if id.namespace.is_empty() == cluster_scoped {
                        known.binding = Freshness::default();
                    }
                }
            }
            // They are listed again, in no order with what was read before.
            Watch::Nodes(cluster) | Watch::Pods(cluster) => self.cache.usage.forget(cluster, watch),
            _ => {
                match watch {
                    Watch::MemberNamespaces(cluster) => self.cache.namespaces.lost(cluster),
                    Watch::Distributed(cluster, gvk, name) => {
                        self.memory.distributions.forget_written(cluster, gvk, name)
                    }
                    _ => {}
                }
                let held = self.held(watch);
                self.cache
                    .revisions
                    .went_back(held, |which| which.watch() == *watch);
            }
        }
    }
}

/// The version from which it was written is no longer known.
fn forget_source(state: &mut CopyState) {
    if let Some(record) = &mut state.record {
        record.source.clear();
    }
}

#[cfg(test)]
mod tests;
