//! The rights of our account on a member, and their consequences for the copies there.
//!
//! A copy is written only after its kind was listed on the member, and the write is recorded in the status of its binding. So
//! if the member has refused to list a kind ever since this process began, or has not served it, and no record mentions a copy
//! of it, none of our copies exists there. The exception is an account that lost its rights, or a kind that was no longer
//! served, between a write and its record, while this process was not running; a record of any other copy of the kind proves
//! that it could be written once, and then nothing is assumed.

use std::collections::BTreeSet;

use crate::{
    cache::{CopyState, ResourceState},
    fleet::Fleet,
    object::{Gvk, ResourceId, Str},
};

impl Fleet {
    /// True if a copy may still exist on the member, also if its watch is refused to our account or its kind is not served.
    /// Cost: that of [`Self::is_unwritten`] there, else O(1).
    pub(crate) fn may_stand(&self, id: &ResourceId, cluster: &Str) -> bool {
        self.may_exist(id, cluster) && !self.is_unwritten(cluster, &id.gvk)
    }

    /// True if no copy of a kind was ever written to a member, as far as any record shows, and none is now: its list is refused
    /// to an account that has access to the member otherwise, or the kind is not served. Cost: O(log kinds); O(objects of the
    /// kind) if something mentioned a copy when that began, or has since.
    pub(crate) fn is_unwritten(&self, cluster: &Str, gvk: &Gvk) -> bool {
        let copies = self.copies(cluster, gvk);
        (self.cache.watches.refused(&copies).is_some() || self.cache.watches.is_unserved(&copies))
            && !self.cache.watches.is_listed(&copies)
            && self.cache.namespaces.is_listed(cluster)
            && self.are_bindings_listed()
            && (self.cache.watches.is_never_written(&copies) || !self.has_any_records(cluster, gvk))
    }

    pub(crate) fn has_any_records(&self, cluster: &Str, gvk: &Gvk) -> bool {
        let first = ResourceId::new(gvk.clone(), "", "");
        let mut of_kind = self
            .cache
            .resources
            .range(first..)
            .take_while(|(id, _)| id.gvk == *gvk);
        of_kind.any(|(_, resource)| records_copy(resource, cluster))
    }

    /// The kinds of which no copy was ever written to a member, see [`Self::is_unwritten`]. Cost: O(kinds), and O(their
    /// objects) for those that are refused.
    pub(crate) fn unwritten_kinds(&self, cluster: &Str) -> BTreeSet<&Gvk> {
        let unwritten = |gvk: &&Gvk| self.is_unwritten(cluster, gvk);
        self.graph.kinds.iter().filter(unwritten).collect()
    }
}

/// True if anything shows that a copy exists on a member, existed there, or may be about to.
fn records_copy(resource: &ResourceState, cluster: &Str) -> bool {
    let traces = |state: &CopyState| {
        state.live.is_some() || state.record.is_some() || state.in_flight || state.pending.is_some()
    };
    let recorded = resource
        .last_binding()
        .and_then(|binding| binding.status_on(cluster));
    resource.copies.get(cluster).is_some_and(traces)
        || recorded.is_some_and(|item| item.copy.is_some() || item.applied)
}
