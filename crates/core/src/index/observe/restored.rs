//! A server whose revisions went back: it was restored from a backup, or made anew.
//!
//! Revisions tell old news from new only while a server counts on. Invariants:
//!
//! - It is found out before the first item of a list comes ([`crate::observation::Observation::Listing`]), and only by what
//!   the watch itself told before: the answer to a write may overtake a list that was taken before it.
//! - Then no floor is left under the watch: each item of the list replaces what is held, whatever its revision, and what
//!   the list lacks is gone. What is held counts until then, and proves nothing.
//! - Versions that were counted twice may name two contents: what was written from one proves nothing any more, so every
//!   copy is rendered, compared, and written where it differs.
//! - Other watches of that server that are ahead of it prove nothing either until they list again, which the shell sees to:
//!   so in whatever order they do, nothing is concluded from a part that is new and a part that is old.
//! - Without it nothing is forgotten, and nothing of other watches ever is.

use super::lists::first;
use crate::{
    index::{CopyState, Index},
    object::Time,
    observation::{ObjectRef, Server, Watch},
};

/// What a resourceVersion that is no number counts as; nothing is concluded from it.
const UNKNOWN: u64 = u64::MAX;

impl Index {
    /// Cost: O(log watches); O(watches) and that of [`Self::went_back`] when the revision is below what was reached.
    pub(super) fn list_begins(&mut self, watch: &Watch, revision: u64, now: Time) {
        let revision = Some(revision).filter(|revision| *revision != UNKNOWN);
        let before = self.watches.list_begins(watch, revision);
        if let (Some(revision), Some(before)) = (revision, before)
            && revision < before
        {
            let server = watch.server();
            if server == Server::Hub {
                self.brakes.rolled_back(now);
            }
            self.watches.unsync_ahead(&server, revision);
            self.went_back(watch);
        }
    }

    /// Cost: O(log watches).
    pub(super) fn has_come_to(&mut self, watch: &Watch, revision: u64) {
        if revision != UNKNOWN {
            self.watches.has_come_to(watch, revision);
        }
    }

    /// Forgets the floors under a watch. Cost: O(held and remembered under it); for bindings O(entities).
    pub(in crate::index) fn went_back(&mut self, watch: &Watch) {
        self.watches.unsync(watch);
        match watch {
            Watch::Templates(gvk) => {
                let of_kind = self.resources.range_mut(first(gvk)..);
                for (_, resource) in of_kind.take_while(|(id, _)| id.gvk == *gvk) {
                    (
                        resource.min_resource_version,
                        resource.touched,
                        resource.confirmed,
                    ) = (0, None, None);
                    (resource.absent, resource.never_travels) = (false, false);
                    resource.copies.values_mut().for_each(forget_source);
                }
                let of_kind = self.tombstones.range_mut(first(gvk)..);
                for (_, known) in of_kind.take_while(|(id, _)| id.gvk == *gvk) {
                    known.template = 0;
                }
            }
            Watch::Copies(cluster, gvk) => {
                let of_kind = self.resources.range_mut(first(gvk)..);
                for (_, resource) in of_kind.take_while(|(id, _)| id.gvk == *gvk) {
                    if let Some(state) = resource.copies.get_mut(cluster) {
                        state.min_resource_version = 0;
                        forget_source(state);
                    }
                }
                let of_kind = self.tombstones.range_mut(first(gvk)..);
                for (_, known) in of_kind.take_while(|(id, _)| id.gvk == *gvk) {
                    known.copies.retain(|(name, _)| name != cluster);
                }
            }
            Watch::Bindings | Watch::ClusterBindings => {
                let cluster_scoped = *watch == Watch::ClusterBindings;
                for (id, resource) in &mut self.resources {
                    if id.namespace.is_empty() == cluster_scoped {
                        // One that was told to be gone before this list is not accounted for either: the hub never had it.
                        (resource.binding_floor, resource.vanished) = (0, None);
                    }
                }
                for (id, known) in &mut self.tombstones {
                    if id.namespace.is_empty() == cluster_scoped {
                        known.binding = 0;
                    }
                }
            }
            _ => {
                match watch {
                    Watch::MemberNamespaces(cluster) => self.namespaces.lost(cluster),
                    Watch::Distributed(cluster, gvk, name) => {
                        self.distributions.forget_written(cluster, gvk, name)
                    }
                    _ => {}
                }
                let held = self.held(watch);
                self.revisions.went_back(held, |which| is_under(watch, which));
            }
        }
    }
}

/// From which version it was written is not known any more.
fn forget_source(state: &mut CopyState) {
    if let Some(record) = &mut state.record {
        record.source.clear();
    }
}

/// Whether a watch that has its floors in [`crate::index::Index::revisions`] covers an object.
fn is_under(watch: &Watch, which: &ObjectRef) -> bool {
    match (watch, which) {
        (Watch::Policies, ObjectRef::Policy(name)) | (Watch::Overrides, ObjectRef::Override(name)) => {
            !name.namespace.is_empty()
        }
        (Watch::ClusterPolicies, ObjectRef::Policy(name))
        | (Watch::ClusterOverrides, ObjectRef::Override(name)) => name.namespace.is_empty(),
        (Watch::Clusters, ObjectRef::Cluster(_)) | (Watch::Namespaces, ObjectRef::Namespace(None, _)) => true,
        (Watch::MemberNamespaces(cluster), ObjectRef::Namespace(Some(name), _)) => name == cluster,
        (Watch::Distributions, ObjectRef::Distribution(_))
        | (Watch::Customizations, ObjectRef::Customization(_)) => true,
        (Watch::TaintPolicies, ObjectRef::TaintPolicy(_)) => true,
        (Watch::Hooks(watched), ObjectRef::Hooks(contract, _)) => watched == contract,
        (Watch::Distributed(cluster, gvk, name), ObjectRef::Distributed(other, id)) => {
            cluster == other && id.gvk == *gvk && id.name == *name
        }
        (Watch::Rebalancers, ObjectRef::Rebalancer(_)) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests;
