//! Sync requirements: the watches that must be synced before a decision, and the keys that wait for them.
//!
//! Every deletion, eviction and release needs proof: lists of the hub that are complete, and not outdated by an outage. The
//! watches that a proof needs are defined here, in [`Fleet::has`], and nowhere else. Invariants:
//!
//! - A planner that lacks a requirement for a change or a report returns [`crate::plan::Plan::wait_for`] with that requirement,
//!   and never just an empty plan: so the waiting keys are known.
//! - [`Fleet::plan`] records the key under that one requirement, and forgets its earlier one.
//! - Only events of a watch can meet a requirement: a list, an outage, a kind that is not served. When any of these is
//!   observed, the requirements that it concerns and keys wait for are checked, and the keys of those that are met are planned
//!   again, and no others. Cost: O(kinds that are waited for × kinds) and the keys that waited.
//! - A key with several requirements waits for the first that is not met; planned again, it waits for the next.
//!
//! So the order and the delay of lists determine when something is done, and never whether it is done. Changes of copies
//! differ: the copies of a member are synced or not independently ([`Fleet::copies_known`]), and the list of a member's kind
//! causes all copies there to be planned.

use crate::{
    fleet::Fleet,
    interpreter::hook::Contract,
    object::{Gvk, ResourceId, Str},
    observation::{Watch, kind_read_by},
    plan::SyncRequirement,
};

/// The watches that every decision needs.
pub(crate) const BASE: [Watch; 5] = [
    Watch::Policies,
    Watch::ClusterPolicies,
    Watch::Bindings,
    Watch::ClusterBindings,
    Watch::Clusters,
];

/// The watches of overrides: without them no plan delivers or reports, since it would do so without its overrides. They prove
/// nothing about removals.
pub(super) const OVERRIDES: [Watch; 2] = [Watch::Overrides, Watch::ClusterOverrides];

/// The watches of customizations and webhooks.
pub(crate) const INTERPRETER_WATCHES: [Watch; 3] = [
    Watch::Customizations,
    Watch::Hooks(Contract::Interpreter),
    Watch::Hooks(Contract::Explorer),
];

impl Fleet {
    /// The number of keys that wait for a requirement.
    pub(crate) fn waiting_for(&self, proof: &SyncRequirement) -> usize {
        self.memory.waiting.count(proof)
    }

    /// True if a requirement is met. Cost: O(kinds in use).
    pub(crate) fn has(&self, proof: &SyncRequirement) -> bool {
        match proof {
            SyncRequirement::Kind(gvk) => self.is_kind_listed(gvk),
            SyncRequirement::Referrers => self.are_referrers_listed(),
            SyncRequirement::Templates(gvk) => {
                let templates = self.templates(gvk);
                !self.graph.kinds.contains(gvk)
                    || self.cache.watches.is_synced(&templates)
                    || self.cache.watches.is_unlistable(&templates)
                    || self.cache.watches.is_no_such_kind(&templates)
            }
            SyncRequirement::Base => self.is_base_synced(),
            SyncRequirement::Overrides => self.are_overrides_listed(),
            SyncRequirement::Priorities => self.are_priorities_known(),
            SyncRequirement::SecretLists => self.are_secret_lists_certain(),
            SyncRequirement::Removal(gvk) => self.is_removal_safe(gvk),
            SyncRequirement::Copies(cluster, gvk) => self.are_copies_listed(cluster, gvk),
            SyncRequirement::Removals(cluster) => self.memory.deletion_pauses.is_released(cluster),
        }
    }

    /// True if policies, overrides, bindings, clusters, interpreters and the templates of this kind are known well enough to
    /// plan for one.
    pub(crate) fn is_kind_listed(&self, gvk: &Gvk) -> bool {
        BASE.iter().all(|watch| self.cache.watches.is_listed(watch))
            && self.are_overrides_listed()
            && self.are_interpreters_listed()
            && self.are_consents_known()
            && self.are_quotas_known()
            && self.are_secret_lists_known(gvk)
            && {
                let templates = self.templates(gvk);
                self.cache.watches.is_listed(&templates) || self.cache.watches.is_unlistable(&templates)
            }
    }

    /// True if the copies of a kind on a member were listed, or cannot be.
    fn are_copies_listed(&self, cluster: &Str, gvk: &Gvk) -> bool {
        let copies = self.copies(cluster, gvk);
        !self.cache.watches.is_demanded(&copies)
            || self.cache.watches.is_listed(&copies)
            || self.cache.watches.is_unlistable(&copies)
            || self.cache.watches.is_no_such_kind(&copies)
    }

    /// As [`Self::are_copies_listed`], but a list that failed may still succeed: only the answer of a server that it cannot be
    /// listed counts.
    pub(crate) fn are_copies_observed(&self, cluster: &Str, gvk: &Gvk) -> bool {
        let copies = self.copies(cluster, gvk);
        !self.cache.watches.is_demanded(&copies)
            || self.cache.watches.is_listed(&copies)
            || self.cache.watches.is_no_such_kind(&copies)
            || self.cache.watches.refused(&copies).is_some()
            || self.cache.watches.is_unserved(&copies)
    }

    /// True if every ClusterTaintPolicy is known, or the hub does not serve the kind.
    pub(crate) fn are_taint_policies_listed(&self) -> bool {
        self.cache.watches.is_listed(&Watch::TaintPolicies)
    }

    /// True if all bindings were observed.
    pub(crate) fn are_bindings_listed(&self) -> bool {
        [Watch::Bindings, Watch::ClusterBindings]
            .iter()
            .all(|watch| self.cache.watches.is_listed(watch))
    }

    /// True if all override policies were observed: nothing may be delivered or reported before.
    pub(crate) fn are_overrides_listed(&self) -> bool {
        OVERRIDES.iter().all(|watch| self.cache.watches.is_listed(watch))
    }

    /// True if all customizations and hooks were observed: without them templates are interpreted differently, and may seem to
    /// have no dependencies.
    fn are_interpreters_listed(&self) -> bool {
        INTERPRETER_WATCHES
            .iter()
            .all(|watch| self.cache.watches.is_listed(watch))
    }

    /// True if the watches of policies, bindings and clusters are synced.
    pub(crate) fn is_base_synced(&self) -> bool {
        BASE.iter().all(|watch| self.cache.watches.is_synced(watch))
    }

    /// True if the state of the hub is known well enough to remove an object of this kind: the first part of the proof (I1,
    /// I2). It requires the watches of policies, bindings, clusters, the kind itself, and every kind that may refer to it to be
    /// synced, and the former referrers from before this process began to be known.
    pub(crate) fn is_removal_safe(&self, gvk: &Gvk) -> bool {
        self.is_base_synced()
            && self.memory.remembers_former
            && self.are_consents_certain()
            && INTERPRETER_WATCHES
                .iter()
                .all(|watch| self.cache.watches.is_synced(watch))
            && self
                .graph
                .kinds
                .iter()
                .filter(|kind| *kind == gvk || self.refers(kind) || self.graph.read_again.contains(kind))
                .all(|kind| {
                    let templates = self.templates(kind);
                    self.cache.watches.is_synced(&templates)
                        || self.cache.watches.is_no_such_kind(&templates)
                        || (kind != gvk && self.is_nowhere(kind))
                })
    }

    /// The kinds of the hub that every deletion needs and that are not synced: the other requirements of
    /// [`Self::is_removal_safe`] concern single kinds. Cost: as that.
    pub(crate) fn lacking(&self) -> Vec<Gvk> {
        let own = BASE
            .iter()
            .chain(&INTERPRETER_WATCHES)
            .filter(|watch| !self.cache.watches.is_synced(watch));
        let kinds = self
            .graph
            .kinds
            .iter()
            .filter(|kind| self.refers(kind) || self.graph.read_again.contains(kind))
            .filter(|kind| {
                let templates = self.templates(kind);
                !self.cache.watches.is_synced(&templates)
                    && !self.cache.watches.is_no_such_kind(&templates)
                    && !self.is_nowhere(kind)
            });
        own.map(kind_read_by).chain(kinds.cloned()).collect()
    }

    /// True if a kind cannot be listed, and no object of it was ever scheduled: so none needs any dependency anywhere. A
    /// third-party kind that is referred to without rights to list it must not block the removal of everything else. Counts
    /// once all bindings were observed. Cost: O(objects of the kind).
    fn is_nowhere(&self, gvk: &Gvk) -> bool {
        let mut of_kind = self
            .cache
            .resources
            .range(ResourceId::new(gvk.clone(), "", "")..)
            .take_while(|(id, _)| id.gvk == *gvk);
        self.cache.watches.is_unlistable(&self.templates(gvk))
            && of_kind.all(|(_, resource)| resource.template.is_none() && resource.last_binding().is_none())
    }

    /// True if the references of templates are known, as far as possible: all bindings were listed, and every kind in use that
    /// refers was listed or cannot be.
    fn are_referrers_listed(&self) -> bool {
        self.refers_only(|kind| {
            let templates = self.templates(kind);
            self.cache.watches.is_listed(&templates) || self.cache.watches.is_unlistable(&templates)
        })
    }

    /// True if the references of templates are synced. A kind that comes into use later has no binding that was stored before.
    pub(crate) fn are_referrers_certain(&self) -> bool {
        self.refers_only(|kind| {
            let templates = self.templates(kind);
            self.cache.watches.is_listed(&templates)
                || self.cache.watches.is_no_such_kind(&templates)
                || self.is_nowhere(kind)
        })
    }

    /// True if objects of a kind may refer to others.
    pub(crate) fn refers(&self, gvk: &Gvk) -> bool {
        self.graph.interpreter.of(gvk).refers(gvk)
    }

    fn refers_only(&self, is_known: impl Fn(&Gvk) -> bool) -> bool {
        let mut kinds = self.graph.kinds.iter().filter(|kind| self.refers(kind));
        self.are_bindings_listed() && kinds.all(is_known)
    }
}
