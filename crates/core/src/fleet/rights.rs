//! What the rights of our account on a member say of the copies there.
//!
//! A copy is written only after its kind was listed there, and what was written is recorded in the status of its binding.
//! So of a kind that the member has refused to list ever since this process began, or has not served, and of which no record
//! tells, nothing of ours stands there. What this leaves out is an account that lost its rights, or a kind that ceased to be
//! served, between a write and its record, while this process was not there; a record of any other copy of the kind tells
//! that it could be written once, and then nothing is taken for granted.

use std::collections::BTreeSet;

use crate::{
    cache::{CopyState, ResourceState},
    fleet::Fleet,
    object::{Gvk, ResourceId, Str},
};

impl Fleet {
    /// Whether a copy may still exist on the member, where it cannot be asked because it refuses the kind to our account or
    /// does not serve it, too. Cost: that of [`Self::is_unwritten`] there, else O(1).
    pub(crate) fn may_stand(&self, id: &ResourceId, cluster: &Str) -> bool {
        self.may_exist(id, cluster) && !self.is_unwritten(cluster, &id.gvk)
    }

    /// Whether nothing of a kind was ever written to a member, as far as any record tells, and nothing is now: its list is
    /// refused to an account that is otherwise welcome there, or the kind is not served. Cost: O(log kinds); O(objects of the
    /// kind) then, if something told of a copy when that began, or does since.
    pub(crate) fn is_unwritten(&self, cluster: &Str, gvk: &Gvk) -> bool {
        let copies = self.copies(cluster, gvk);
        (self.cache.watches.refused(&copies).is_some() || self.cache.watches.is_unserved(&copies))
            && !self.cache.watches.is_listed(&copies)
            && self.cache.namespaces.is_listed(cluster)
            && self.are_bindings_listed()
            && (self.cache.watches.is_never_written(&copies) || !self.has_traces(cluster, gvk))
    }

    pub(crate) fn has_traces(&self, cluster: &Str, gvk: &Gvk) -> bool {
        let first = ResourceId::new(gvk.clone(), "", "");
        let mut of_kind = self
            .cache
            .resources
            .range(first..)
            .take_while(|(id, _)| id.gvk == *gvk);
        of_kind.any(|(_, resource)| tells_of_a_copy(resource, cluster))
    }

    /// The kinds of which nothing was ever written to a member, see [`Self::is_unwritten`]. Cost: O(kinds), and O(their
    /// objects) for those that are refused.
    pub(crate) fn unwritten_kinds(&self, cluster: &Str) -> BTreeSet<&Gvk> {
        let unwritten = |gvk: &&Gvk| self.is_unwritten(cluster, gvk);
        self.graph.kinds.iter().filter(unwritten).collect()
    }
}

/// Whether anything tells that a copy stands on a member, stood there, or may be about to.
fn tells_of_a_copy(resource: &ResourceState, cluster: &Str) -> bool {
    let traces = |state: &CopyState| {
        state.live.is_some() || state.record.is_some() || state.in_flight || state.pending.is_some()
    };
    let stored = resource
        .last_binding()
        .and_then(|binding| binding.object.status.as_ref());
    let mut recorded = stored.into_iter().flat_map(|status| &status.aggregated_status);
    resource.copies.get(cluster).is_some_and(traces)
        || recorded.any(|item| *item.cluster_name == **cluster && (item.copy.is_some() || item.applied))
}
