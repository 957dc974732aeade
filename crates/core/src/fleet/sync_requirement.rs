//! What is known well enough, and who waits until it is.
//!
//! Whatever is destroyed, moved or taken back needs proof: lists of the hub that are complete, and not overtaken by an
//! outage. What a proof takes is said here, in [`Fleet::has`], and nowhere else. Invariants:
//!
//! - A planner that would change something, or say something, but for a proof that is lacking answers
//!   [`crate::plan::Plan::wait_for`] with that proof, and never only "wait" or "nothing": so it is known who waits.
//! - [`Fleet::plan`] remembers the key under that one proof, and forgets what it remembered of it before.
//! - Only what is told of a watch can make a proof: a list, an outage, a kind that is not served. When any of these is
//!   observed, the proofs that it concerns and somebody waits for are tried, and the keys of those that hold are planned
//!   again: nobody else is. Cost: O(kinds that are waited for × kinds) and the keys that waited.
//! - A key that waits for several proofs waits for the first that is lacking; planned again, it waits for the next.
//!
//! So the order in which watches list, and how late, decides when something is done, and never whether. What is done to a
//! copy is another matter: what a member holds is known or not for itself ([`Fleet::copies_known`]), and the list of a
//! member's kind has everything planned that has a place there.

use crate::{
    fleet::Fleet,
    interpreter::hook::Contract,
    object::{Gvk, ResourceId, Str},
    observation::{Watch, kind_read_by},
    plan::SyncRequirement,
};

/// The watches that every decision needs.
pub(super) const BASE: [Watch; 5] = [
    Watch::Policies,
    Watch::ClusterPolicies,
    Watch::Bindings,
    Watch::ClusterBindings,
    Watch::Clusters,
];

/// The watches that tell what is changed in copies: without them nothing is planned that would deliver or report, since
/// it would be without its overrides. They prove nothing about removals.
pub(super) const OVERRIDES: [Watch; 2] = [Watch::Overrides, Watch::ClusterOverrides];

/// Those of what teaches us kinds.
pub(crate) const INTERPRETER_WATCHES: [Watch; 3] = [
    Watch::Customizations,
    Watch::Hooks(Contract::Interpreter),
    Watch::Hooks(Contract::Explorer),
];

impl Fleet {
    /// How many wait for a proof.
    pub(crate) fn waiting_for(&self, proof: &SyncRequirement) -> usize {
        self.memory.waiting.count(proof)
    }

    /// Whether something is proven. Cost: O(kinds in use).
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
            SyncRequirement::Removal(gvk) => self.is_removal_safe(gvk),
            SyncRequirement::Copies(cluster, gvk) => self.are_copies_listed(cluster, gvk),
            SyncRequirement::Removals(cluster) => self.memory.deletion_pauses.is_released(cluster),
        }
    }

    /// Whether policies, overrides, bindings, clusters, what people teach us and the templates of this kind are known well
    /// enough to plan for one.
    pub(crate) fn is_kind_listed(&self, gvk: &Gvk) -> bool {
        BASE.iter().all(|watch| self.cache.watches.is_listed(watch))
            && self.are_overrides_listed()
            && self.is_taught()
            && self.are_consents_known()
            && {
                let templates = self.templates(gvk);
                self.cache.watches.is_listed(&templates) || self.cache.watches.is_unlistable(&templates)
            }
    }

    /// Whether the copies of a kind on a member were listed, or cannot be.
    fn are_copies_listed(&self, cluster: &Str, gvk: &Gvk) -> bool {
        let copies = self.copies(cluster, gvk);
        !self.cache.watches.is_demanded(&copies)
            || self.cache.watches.is_listed(&copies)
            || self.cache.watches.is_unlistable(&copies)
            || self.cache.watches.is_no_such_kind(&copies)
    }

    /// As [`Self::are_copies_listed`], but a list that failed may yet come: only a server that answers that it cannot be is
    /// believed.
    pub(crate) fn are_copies_observed(&self, cluster: &Str, gvk: &Gvk) -> bool {
        let copies = self.copies(cluster, gvk);
        !self.cache.watches.is_demanded(&copies)
            || self.cache.watches.is_listed(&copies)
            || self.cache.watches.is_no_such_kind(&copies)
            || self.cache.watches.refused(&copies).is_some()
            || self.cache.watches.is_unserved(&copies)
    }

    /// Whether every ClusterTaintPolicy is known, or the hub does not know the kind.
    pub(crate) fn are_taint_policies_listed(&self) -> bool {
        self.cache.watches.is_listed(&Watch::TaintPolicies)
    }

    /// Whether all bindings were seen.
    pub(crate) fn are_bindings_listed(&self) -> bool {
        [Watch::Bindings, Watch::ClusterBindings]
            .iter()
            .all(|watch| self.cache.watches.is_listed(watch))
    }

    /// Whether all override policies were seen: nothing may be delivered or reported before.
    pub(crate) fn are_overrides_listed(&self) -> bool {
        OVERRIDES.iter().all(|watch| self.cache.watches.is_listed(watch))
    }

    /// Whether all customizations and hooks were seen: without them templates are read in another way, and may look as if they needed
    /// nothing.
    fn is_taught(&self) -> bool {
        INTERPRETER_WATCHES
            .iter()
            .all(|watch| self.cache.watches.is_listed(watch))
    }

    /// Whether policies, bindings and clusters are known as they are now.
    pub(crate) fn is_base_synced(&self) -> bool {
        BASE.iter().all(|watch| self.cache.watches.is_synced(watch))
    }

    /// Whether what the hub holds is known well enough to remove something of this kind: the first part of the proof
    /// (I1, I2). It takes policies, bindings, clusters, the kind itself, every kind that may refer to it, and the memory
    /// of who referred to it when this process began.
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

    /// The kinds of the hub that every deletion needs and that are not known as they are now: the rest of what
    /// [`Self::is_removal_safe`] takes concerns single kinds. Cost: as that.
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

    /// Whether a kind cannot be listed, and nothing of it was ever placed: no object of it needs anything anywhere. A
    /// third-party kind that somebody names without giving the rights on it must not keep everything else in place.
    /// Counts once all bindings were seen. Cost: O(objects of the kind).
    fn is_nowhere(&self, gvk: &Gvk) -> bool {
        let mut of_kind = self
            .cache
            .resources
            .range(ResourceId::new(gvk.clone(), "", "")..)
            .take_while(|(id, _)| id.gvk == *gvk);
        self.cache.watches.is_unlistable(&self.templates(gvk))
            && of_kind.all(|(_, resource)| resource.template.is_none() && resource.last_binding().is_none())
    }

    /// Whether it is known which templates refer to what, as far as it can be: all bindings were listed, and so was every
    /// kind in use that refers, or cannot be.
    fn are_referrers_listed(&self) -> bool {
        self.refers_only(|kind| {
            let templates = self.templates(kind);
            self.cache.watches.is_listed(&templates) || self.cache.watches.is_unlistable(&templates)
        })
    }

    /// Whether it is known for certain which templates refer to what. A kind that comes into use later has no binding that
    /// was stored before.
    pub(crate) fn are_referrers_certain(&self) -> bool {
        self.refers_only(|kind| {
            let templates = self.templates(kind);
            self.cache.watches.is_listed(&templates)
                || self.cache.watches.is_no_such_kind(&templates)
                || self.is_nowhere(kind)
        })
    }

    /// Whether objects of a kind may refer to others.
    pub(crate) fn refers(&self, gvk: &Gvk) -> bool {
        self.graph.interpreter.of(gvk).refers(gvk)
    }

    fn refers_only(&self, is_known: impl Fn(&Gvk) -> bool) -> bool {
        let mut kinds = self.graph.kinds.iter().filter(|kind| self.refers(kind));
        self.are_bindings_listed() && kinds.all(is_known)
    }
}
