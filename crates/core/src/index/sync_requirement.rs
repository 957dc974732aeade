//! What is known well enough, and who waits until it is.
//!
//! Whatever is destroyed, moved or taken back needs proof: lists of the hub that are complete, and not overtaken by an
//! outage. What a proof takes is said here, in [`Index::has`], and nowhere else. Invariants:
//!
//! - A planner that would change something, or say something, but for a proof that is lacking answers
//!   [`crate::plan::Plan::wait_for`] with that proof, and never only "wait" or "nothing": so it is known who waits.
//! - [`Index::plan`] remembers the key under that one proof, and forgets what it remembered of it before.
//! - Only what is told of a watch can make a proof: a list, an outage, a kind that is not served. When any of these is
//!   observed, the proofs that it concerns and somebody waits for are tried, and the keys of those that hold are planned
//!   again: nobody else is. Cost: O(kinds that are waited for × kinds) and the keys that waited.
//! - A key that waits for several proofs waits for the first that is lacking; planned again, it waits for the next.
//!
//! So the order in which watches list, and how late, decides when something is done, and never whether. What is done to a
//! copy is another matter: what a member holds is known or not for itself ([`Index::copies_known`]), and the list of a
//! member's kind has everything planned that has a place there.

use std::collections::{BTreeMap, BTreeSet};

use super::Index;
use crate::{
    interpreter::hook::Contract,
    object::{Gvk, ResourceId, Str, Time},
    observation::{Watch, kind_read_by},
    plan::{Key, SyncRequirement},
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

/// Who waits for which proof.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waiting {
    keys: BTreeMap<SyncRequirement, BTreeSet<Key>>,
    proofs: BTreeMap<Key, SyncRequirement>,
}

impl Waiting {
    /// Takes in what a plan for a key says. Cost: O(log keys that wait).
    pub(crate) fn note(&mut self, key: &Key, awaits: Option<&SyncRequirement>) {
        if self.proofs.get(key) == awaits {
            return;
        }
        if let Some(before) = self.proofs.remove(key)
            && let Some(keys) = self.keys.get_mut(&before)
        {
            keys.remove(key);
            if keys.is_empty() {
                self.keys.remove(&before);
            }
        }
        if let Some(proof) = awaits {
            self.keys.entry(proof.clone()).or_default().insert(key.clone());
            self.proofs.insert(key.clone(), proof.clone());
        }
    }

    /// Who waited for this; nobody does any more.
    fn end(&mut self, proof: &SyncRequirement) -> BTreeSet<Key> {
        let keys = self.keys.remove(proof).unwrap_or_default();
        for key in &keys {
            self.proofs.remove(key);
        }
        keys
    }
}

impl Index {
    /// Plans again who waited for what is proven now. To be called after all that may make a proof: what is told of a watch.
    pub(super) fn wake(&mut self, watch: &Watch, now: Time, dirty: &mut Vec<Key>) {
        let concerned: Vec<SyncRequirement> = match watch {
            Watch::MemberNamespaces(_) => Vec::new(),
            Watch::Copies(cluster, gvk) => vec![SyncRequirement::Copies(cluster.clone(), gvk.clone())],
            _ => {
                let of_hub = |proof: &&SyncRequirement| !matches!(proof, SyncRequirement::Copies(..));
                self.waiting.keys.keys().take_while(of_hub).cloned().collect()
            }
        };
        for proof in concerned {
            if !self.has(&proof) {
                continue;
            }
            for key in self.waiting.end(&proof) {
                match &key {
                    Key::BindingStatus(id) => self.lists_came(id, now),
                    // Its delivery begins only now.
                    Key::Copy(id, _) => {
                        if let Some(resource) = self.resources.get_mut(id) {
                            resource.lists_came = Some(now);
                        }
                    }
                    _ => {}
                }
                dirty.push(key);
            }
        }
    }

    /// How many wait for a proof.
    pub(crate) fn waiting_for(&self, proof: &SyncRequirement) -> usize {
        self.waiting.keys.get(proof).map_or(0, BTreeSet::len)
    }

    /// Plans again what waited for deletions on a member to be released. Cost: O(keys that waited).
    pub(super) fn wake_removals(&mut self, cluster: &Str, dirty: &mut Vec<Key>) {
        dirty.extend(self.waiting.end(&SyncRequirement::Removals(cluster.clone())));
    }

    /// Whether something is proven. Cost: O(kinds in use).
    pub(crate) fn has(&self, proof: &SyncRequirement) -> bool {
        match proof {
            SyncRequirement::Kind(gvk) => self.is_kind_listed(gvk),
            SyncRequirement::Referrers => self.are_referrers_listed(),
            SyncRequirement::Templates(gvk) => {
                let templates = self.templates(gvk);
                !self.kinds.contains(gvk)
                    || self.watches.is_synced(&templates)
                    || self.watches.is_unlistable(&templates)
                    || self.watches.is_no_such_kind(&templates)
            }
            SyncRequirement::Base => self.is_base_synced(),
            SyncRequirement::Overrides => self.are_overrides_listed(),
            SyncRequirement::Removal(gvk) => self.is_removal_safe(gvk),
            SyncRequirement::Copies(cluster, gvk) => self.are_copies_listed(cluster, gvk),
            SyncRequirement::Removals(cluster) => self.brakes.is_released(cluster),
        }
    }

    /// Whether policies, overrides, bindings, clusters, what people teach us and the templates of this kind are known well
    /// enough to plan for one.
    pub(crate) fn is_kind_listed(&self, gvk: &Gvk) -> bool {
        BASE.iter().all(|watch| self.watches.is_listed(watch))
            && self.are_overrides_listed()
            && self.is_taught()
            && self.are_consents_known()
            && {
                let templates = self.templates(gvk);
                self.watches.is_listed(&templates) || self.watches.is_unlistable(&templates)
            }
    }

    /// Whether the copies of a kind on a member were listed, or cannot be.
    fn are_copies_listed(&self, cluster: &Str, gvk: &Gvk) -> bool {
        let copies = self.copies(cluster, gvk);
        !self.watches.is_demanded(&copies)
            || self.watches.is_listed(&copies)
            || self.watches.is_unlistable(&copies)
            || self.watches.is_no_such_kind(&copies)
    }

    /// As [`Self::are_copies_listed`], but a list that failed may yet come: only a server that answers that it cannot be is
    /// believed.
    pub(crate) fn are_copies_heard(&self, cluster: &Str, gvk: &Gvk) -> bool {
        let copies = self.copies(cluster, gvk);
        !self.watches.is_demanded(&copies)
            || self.watches.is_listed(&copies)
            || self.watches.is_no_such_kind(&copies)
            || self.watches.refused(&copies).is_some()
            || self.watches.is_unserved(&copies)
    }

    /// Whether all bindings were seen.
    pub(crate) fn are_bindings_listed(&self) -> bool {
        [Watch::Bindings, Watch::ClusterBindings]
            .iter()
            .all(|watch| self.watches.is_listed(watch))
    }

    /// Whether all override policies were seen: nothing may be delivered or reported before.
    pub(crate) fn are_overrides_listed(&self) -> bool {
        OVERRIDES.iter().all(|watch| self.watches.is_listed(watch))
    }

    /// Whether all customizations and hooks were seen: without them templates are read in another way, and may look as if they needed
    /// nothing.
    fn is_taught(&self) -> bool {
        INTERPRETER_WATCHES
            .iter()
            .all(|watch| self.watches.is_listed(watch))
    }

    /// Whether policies, bindings and clusters are known as they are now.
    pub(crate) fn is_base_synced(&self) -> bool {
        BASE.iter().all(|watch| self.watches.is_synced(watch))
    }

    /// Whether what the hub holds is known well enough to remove something of this kind: the first part of the proof
    /// (I1, I2). It takes policies, bindings, clusters, the kind itself, every kind that may refer to it, and the memory
    /// of who referred to it when this process began.
    pub(crate) fn is_removal_safe(&self, gvk: &Gvk) -> bool {
        self.is_base_synced()
            && self.remembers_former
            && self.are_consents_certain()
            && INTERPRETER_WATCHES
                .iter()
                .all(|watch| self.watches.is_synced(watch))
            && self
                .kinds
                .iter()
                .filter(|kind| *kind == gvk || self.refers(kind) || self.read_again.contains(kind))
                .all(|kind| {
                    let templates = self.templates(kind);
                    self.watches.is_synced(&templates)
                        || self.watches.is_no_such_kind(&templates)
                        || (kind != gvk && self.is_nowhere(kind))
                })
    }

    /// The kinds of the hub that every deletion needs and that are not known as they are now: the rest of what
    /// [`Self::is_removal_safe`] takes concerns single kinds. Cost: as that.
    pub(crate) fn lacking(&self) -> Vec<Gvk> {
        let own = BASE
            .iter()
            .chain(&INTERPRETER_WATCHES)
            .filter(|watch| !self.watches.is_synced(watch));
        let kinds = self
            .kinds
            .iter()
            .filter(|kind| self.refers(kind) || self.read_again.contains(kind))
            .filter(|kind| {
                let templates = self.templates(kind);
                !self.watches.is_synced(&templates)
                    && !self.watches.is_no_such_kind(&templates)
                    && !self.is_nowhere(kind)
            });
        own.map(kind_read_by).chain(kinds.cloned()).collect()
    }

    /// Whether a kind cannot be listed, and nothing of it was ever placed: no object of it needs anything anywhere. A
    /// third-party kind that somebody names without giving the rights on it must not keep everything else in place.
    /// Counts once all bindings were seen. Cost: O(objects of the kind).
    fn is_nowhere(&self, gvk: &Gvk) -> bool {
        let mut of_kind = self
            .resources
            .range(ResourceId::new(gvk.clone(), "", "")..)
            .take_while(|(id, _)| id.gvk == *gvk);
        self.watches.is_unlistable(&self.templates(gvk))
            && of_kind.all(|(_, resource)| resource.template.is_none() && resource.last_binding().is_none())
    }

    /// Whether it is known which templates refer to what, as far as it can be: all bindings were listed, and so was every
    /// kind in use that refers, or cannot be.
    fn are_referrers_listed(&self) -> bool {
        self.refers_only(|kind| {
            let templates = self.templates(kind);
            self.watches.is_listed(&templates) || self.watches.is_unlistable(&templates)
        })
    }

    /// Whether it is known for certain which templates refer to what. A kind that comes into use later has no binding that
    /// was stored before.
    pub(super) fn are_referrers_certain(&self) -> bool {
        self.refers_only(|kind| {
            let templates = self.templates(kind);
            self.watches.is_listed(&templates)
                || self.watches.is_no_such_kind(&templates)
                || self.is_nowhere(kind)
        })
    }

    /// Whether objects of a kind may refer to others.
    pub(super) fn refers(&self, gvk: &Gvk) -> bool {
        self.interpreter.of(gvk).refers(gvk)
    }

    fn refers_only(&self, is_known: impl Fn(&Gvk) -> bool) -> bool {
        let mut kinds = self.kinds.iter().filter(|kind| self.refers(kind));
        self.are_bindings_listed() && kinds.all(is_known)
    }
}
