//! The state of FederatedResourceQuotas: their specs, their ResourceQuotas on members, and the use of their namespaces by
//! bindings.
//!
//! The use of a namespace is a sum that follows each binding, so that an event of a binding costs that binding, not the namespace.
//! What a plan is about to store counts from the moment it is planned: two bindings that are planned one after the other never
//! use the same rest of a quota. Namespaces without a quota have no sum.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use entourage_api::{policy::FederatedResourceQuota, work::Resources};

use crate::{
    cache::{add_amounts, meta_of, subtract_amounts},
    drift::DriftBackoff,
    object::{Meta, NamespacedName, ResourceId, Str, Time},
    observation::AssignedQuota,
    scheduler::estimate::Amounts,
};

/// All quotas.
#[derive(Debug, Default)]
pub(crate) struct Quotas {
    held: BTreeMap<NamespacedName, QuotaState>,
    /// The ResourceQuotas that carry the label of this hub, by member.
    copies: BTreeMap<Str, BTreeMap<NamespacedName, AssignedQuota>>,
    /// The use of namespaces that have a quota.
    uses: BTreeMap<Str, NamespaceUse>,
    /// The bindings that wait until the quotas of their namespace leave more.
    waiting: BTreeMap<Str, BTreeSet<ResourceId>>,
}

/// A quota.
#[derive(Debug)]
pub(crate) struct QuotaState {
    pub(crate) meta: Meta,
    pub(crate) object: Arc<FederatedResourceQuota>,
    /// Its attempts on members.
    pub(crate) targets: BTreeMap<Str, QuotaTarget>,
    /// The time when the status was last written.
    pub(crate) status_written: Option<Time>,
    /// The state of its assignments as last seen by a plan of the status: events follow from its change.
    pub(crate) sync: Sync,
}

/// The state of the assignments of a quota.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Sync {
    /// No plan has seen it.
    #[default]
    Unknown,
    /// There are none.
    Nothing,
    /// Some are still to be made.
    Pending,
    /// All are as they should be.
    Done,
    /// Some failed, for this reason.
    Failed(String),
}

/// The attempts to make the ResourceQuota of a quota on a member.
#[derive(Clone, Debug, Default)]
pub(crate) struct QuotaTarget {
    /// True if it was found equal or written.
    pub(crate) written: bool,
    /// The limits of the last attempt, if it failed, and the cause for the user.
    pub(crate) failure: Option<(Resources, String)>,
    pub(crate) attempts: u32,
    /// No request before this time.
    pub(crate) not_before: Option<Time>,
    /// Its drift.
    pub(crate) drift_backoff: Option<Box<DriftBackoff>>,
}

/// The use of a namespace.
#[derive(Debug, Default)]
struct NamespaceUse {
    bindings: BTreeMap<ResourceId, BindingUse>,
    /// The sum of what is stored.
    stored: Amounts,
    /// The sum of what is stored or planned, the greater of both for each binding.
    taken: Amounts,
}

/// The use of a binding.
#[derive(Clone, Debug, Default)]
struct BindingUse {
    stored: Amounts,
    planned: Option<Amounts>,
}

impl BindingUse {
    fn taken(&self) -> Amounts {
        let mut taken = self.stored.clone();
        for (name, amount) in self.planned.iter().flatten() {
            let held = taken.entry(name.clone()).or_default();
            *held = (*held).max(*amount);
        }
        taken
    }
}

impl Quotas {
    pub(crate) fn get(&self, name: &NamespacedName) -> Option<&QuotaState> {
        self.held.get(name)
    }

    pub(crate) fn get_mut(&mut self, name: &NamespacedName) -> Option<&mut QuotaState> {
        self.held.get_mut(name)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &NamespacedName> {
        self.held.keys()
    }

    /// The quotas of a namespace. Cost: O(log quotas) to start.
    pub(crate) fn of_namespace(
        &self,
        namespace: &Str,
    ) -> impl Iterator<Item = (&NamespacedName, &QuotaState)> {
        let first = NamespacedName::new(namespace, "");
        let all = self.held.range(first..);
        all.take_while(move |(name, _)| name.namespace == *namespace)
    }

    /// True if a namespace has a quota.
    pub(crate) fn is_limited(&self, namespace: &str) -> bool {
        self.uses.contains_key(namespace)
    }

    /// True if a quota assigns limits to single clusters.
    pub(crate) fn is_assigned(&self, name: &NamespacedName) -> bool {
        let held = self.held.get(name);
        held.is_some_and(|held| !held.object.spec.static_assignments.is_empty())
    }

    /// True if a quota has, or may have, ResourceQuotas on members. Cost: O(quotas).
    pub(crate) fn looks_at_members(&self) -> bool {
        self.held.values().any(QuotaState::looks_at_members)
    }

    /// Inserts a quota. Returns true if it is the first of its namespace: then the bindings there are to be [counted](Self::stored).
    /// Cost: O(log quotas).
    pub(crate) fn insert(&mut self, name: &NamespacedName, object: Arc<FederatedResourceQuota>) -> bool {
        let meta = meta_of(&object.metadata);
        match self.held.get_mut(name).filter(|held| held.meta.uid == meta.uid) {
            Some(held) => (held.meta, held.object) = (meta, object),
            None => {
                let state = QuotaState {
                    meta,
                    object,
                    targets: BTreeMap::new(),
                    status_written: None,
                    sync: Sync::default(),
                };
                self.held.insert(name.clone(), state);
            }
        }
        if self.uses.contains_key(&name.namespace) {
            return false;
        }
        self.uses.insert(name.namespace.clone(), NamespaceUse::default());
        true
    }

    /// Removes a quota. Cost: O(bindings of the namespace) for the last one there.
    pub(crate) fn remove(&mut self, name: &NamespacedName) {
        self.held.remove(name);
        if self.of_namespace(&name.namespace).next().is_none() {
            self.uses.remove(&name.namespace);
        }
    }

    /// The ResourceQuota of a quota on a member, by its name. Cost: O(log).
    pub(crate) fn copy(&self, cluster: &str, name: &NamespacedName) -> Option<&AssignedQuota> {
        self.copies.get(cluster)?.get(name)
    }

    /// The names of the ResourceQuotas on a member.
    pub(crate) fn copies_on(&self, cluster: &str) -> impl Iterator<Item = &NamespacedName> {
        self.copies.get(cluster).into_iter().flat_map(BTreeMap::keys)
    }

    pub(crate) fn insert_copy(&mut self, cluster: &Str, name: &NamespacedName, copy: AssignedQuota) {
        let of_it = self.copies.entry(cluster.clone()).or_default();
        of_it.insert(name.clone(), copy);
    }

    pub(crate) fn remove_copy(&mut self, cluster: &str, name: &NamespacedName) {
        if let Some(of_it) = self.copies.get_mut(cluster) {
            of_it.remove(name);
        }
    }

    /// A member was removed. Cost: O(quotas).
    pub(crate) fn forget_member(&mut self, cluster: &str) {
        self.copies.remove(cluster);
        for held in self.held.values_mut() {
            held.targets.remove(cluster);
        }
    }

    /// A member begins or ceases to respond: failed attempts are repeated at once. Cost: O(quotas).
    pub(crate) fn try_again(&mut self, cluster: &str) {
        for held in self.held.values_mut() {
            if let Some(target) = held.targets.get_mut(cluster) {
                (target.attempts, target.not_before) = (0, None);
            }
        }
    }

    /// The usage stored for the bindings of a namespace. `None` without a quota.
    pub(crate) fn used(&self, namespace: &str) -> Option<&Amounts> {
        self.uses.get(namespace).map(|uses| &uses.stored)
    }

    /// The usage of the other bindings of the namespace, now or after writes that are pending. Cost: O(resources).
    pub(crate) fn used_by_others(&self, id: &ResourceId) -> Amounts {
        let Some(uses) = self.uses.get(&id.namespace) else {
            return Amounts::new();
        };
        let mut others = uses.taken.clone();
        if let Some(own) = uses.bindings.get(id) {
            subtract_amounts(&mut others, &own.taken());
        }
        others
    }

    /// Stores the usage of a binding; `None` if it was deleted. Returns true if the sum of its namespace changed, and the
    /// bindings that may find more quota now. Cost: O(resources), and O(waiting bindings) where less is used.
    pub(crate) fn stored(&mut self, id: &ResourceId, used: Option<Amounts>) -> (bool, Vec<ResourceId>) {
        let Some(uses) = self.uses.get_mut(&id.namespace) else {
            return (false, Vec::new());
        };
        let mut own = uses.bindings.get(id).cloned().unwrap_or_default();
        if used.is_none() || own.planned == used {
            own.planned = None;
        }
        let used = used.unwrap_or_default();
        let is_changed = own.stored != used;
        subtract_amounts(&mut uses.stored, &own.stored);
        add_amounts(&mut uses.stored, &used);
        own.stored = used;
        let is_freed = uses.replace(id, own);
        (is_changed, self.freed(id, is_freed))
    }

    /// True if a plan of a binding that is not observed yet is about to store something. Cost: O(log bindings).
    pub(crate) fn is_planned(&self, id: &ResourceId) -> bool {
        let own = self
            .uses
            .get(&id.namespace)
            .and_then(|uses| uses.bindings.get(id));
        own.is_some_and(|own| own.planned.is_some())
    }

    /// Notes the plan of a binding: what it is about to store, if it is written, and whether it waits. Returns the bindings that
    /// may find more now. Cost: O(resources), and O(waiting bindings) where less is planned than before.
    pub(crate) fn planned(
        &mut self,
        id: &ResourceId,
        planned: Option<Amounts>,
        waits: bool,
    ) -> Vec<ResourceId> {
        let waiting = self.waiting.entry(id.namespace.clone()).or_default();
        if waits {
            waiting.insert(id.clone());
        } else {
            waiting.remove(id);
        }
        if waiting.is_empty() {
            self.waiting.remove(&id.namespace);
        }
        let Some(uses) = self.uses.get_mut(&id.namespace) else {
            return Vec::new();
        };
        let mut own = uses.bindings.get(id).cloned().unwrap_or_default();
        if own.planned == planned {
            return Vec::new();
        }
        own.planned = planned;
        let is_freed = uses.replace(id, own);
        self.freed(id, is_freed)
    }

    /// The bindings of a namespace whose last quota was deleted wait for it no more.
    pub(crate) fn forget_waiting(&mut self, namespace: &str) {
        if !self.is_limited(namespace) {
            self.waiting.remove(namespace);
        }
    }

    /// The bindings of a namespace that wait for its quotas.
    pub(crate) fn waiting(&self, namespace: &str) -> Vec<ResourceId> {
        self.waiting
            .get(namespace)
            .into_iter()
            .flatten()
            .cloned()
            .collect()
    }

    fn freed(&self, by: &ResourceId, is_freed: bool) -> Vec<ResourceId> {
        let mut waiting = match is_freed {
            true => self.waiting(&by.namespace),
            false => Vec::new(),
        };
        waiting.retain(|id| id != by);
        waiting
    }
}

impl QuotaState {
    /// True if it has, or may have, ResourceQuotas on members.
    pub(crate) fn looks_at_members(&self) -> bool {
        !self.object.spec.static_assignments.is_empty()
            || self.meta.has_finalizer(entourage_api::keys::finalizer::QUOTA)
    }

    /// The limits that it assigns to a cluster: of two, the first.
    pub(crate) fn assigned(&self, cluster: &str) -> Option<&Resources> {
        let mut all = self.object.spec.static_assignments.iter();
        let found = all.find(|each| each.cluster_name == *cluster);
        found.map(|each| &each.hard)
    }

    /// True if its status lists a cluster.
    pub(crate) fn reported_on(&self, cluster: &str) -> bool {
        let status = self.object.status.iter();
        let mut listed = status.flat_map(|status| &status.aggregated_status);
        listed.any(|each| each.cluster_name == *cluster)
    }

    /// The clusters that it assigns limits to, or that its status lists. Cost: O(those).
    pub(crate) fn clusters(&self) -> BTreeSet<Str> {
        let assigned = self.object.spec.static_assignments.iter();
        let assigned = assigned.map(|each| each.cluster_name.as_str());
        let status = self.object.status.iter();
        let listed = status.flat_map(|status| &status.aggregated_status);
        let listed = listed.map(|each| each.cluster_name.as_str());
        assigned.chain(listed).map(Str::from).collect()
    }
}

impl NamespaceUse {
    /// Replaces the use of a binding in the sum of what is taken. Returns true if less of any resource is.
    fn replace(&mut self, id: &ResourceId, own: BindingUse) -> bool {
        let before = self.bindings.get(id).map(BindingUse::taken).unwrap_or_default();
        let after = own.taken();
        subtract_amounts(&mut self.taken, &before);
        add_amounts(&mut self.taken, &after);
        if own.stored.is_empty() && own.planned.is_none() {
            self.bindings.remove(id);
        } else {
            self.bindings.insert(id.clone(), own);
        }
        let is_less = |(name, amount): (&Str, &i128)| after.get(name).copied().unwrap_or_default() < *amount;
        before.iter().any(is_less)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::Gvk;

    fn id(name: &str) -> ResourceId {
        ResourceId::new(Gvk::new("apps/v1", "Deployment"), "shop", name)
    }

    fn cpu(amount: i128) -> Amounts {
        [("cpu".into(), amount)].into()
    }

    fn quotas() -> Quotas {
        let mut quotas = Quotas::default();
        let mut object = FederatedResourceQuota::default();
        object.metadata.uid = Some("u".into());
        assert!(quotas.insert(&NamespacedName::new("shop", "q"), Arc::new(object.clone())));
        assert!(!quotas.insert(&NamespacedName::new("shop", "p"), Arc::new(object)));
        quotas
    }

    #[test]
    fn what_is_planned_counts_until_it_is_stored() {
        let mut quotas = quotas();
        quotas.planned(&id("a"), Some(cpu(3)), false);
        assert_eq!(
            (quotas.used("shop"), quotas.used_by_others(&id("b"))),
            (Some(&Amounts::new()), cpu(3))
        );
        assert_eq!(quotas.used_by_others(&id("a")), Amounts::new());
        // An earlier version is observed first.
        quotas.stored(&id("a"), Some(cpu(1)));
        assert_eq!(quotas.used_by_others(&id("b")), cpu(3));
        assert_eq!(quotas.stored(&id("a"), Some(cpu(3))), (true, Vec::new()));
        assert_eq!(
            (quotas.used("shop"), quotas.used_by_others(&id("b"))),
            (Some(&cpu(3)), cpu(3))
        );
        // Less counts when it is stored.
        quotas.planned(&id("a"), Some(cpu(2)), false);
        assert_eq!(quotas.used_by_others(&id("b")), cpu(3));
        quotas.stored(&id("a"), Some(cpu(2)));
        assert_eq!(quotas.used_by_others(&id("b")), cpu(2));
    }

    #[test]
    fn bindings_that_wait_are_planned_again_where_less_is_used() {
        let mut quotas = quotas();
        quotas.stored(&id("a"), Some(cpu(3)));
        assert_eq!(quotas.planned(&id("b"), None, true), []);
        assert_eq!(quotas.stored(&id("a"), Some(cpu(4))), (true, Vec::new()));
        assert_eq!(quotas.stored(&id("a"), Some(cpu(2))), (true, vec![id("b")]));
        assert_eq!(quotas.stored(&id("a"), None), (true, vec![id("b")]));
        assert_eq!(quotas.planned(&id("b"), Some(cpu(1)), false), []);
        assert!(quotas.waiting("shop").is_empty());
        // A plan that was not carried out ends with the next one.
        quotas.planned(&id("c"), None, true);
        assert_eq!(quotas.planned(&id("b"), None, false), [id("c")]);
        assert!(quotas.uses["shop"].bindings.is_empty());
    }

    #[test]
    fn a_namespace_is_counted_while_it_has_a_quota() {
        let mut quotas = quotas();
        quotas.stored(&id("a"), Some(cpu(3)));
        quotas.remove(&NamespacedName::new("shop", "q"));
        assert!(quotas.is_limited("shop"));
        quotas.remove(&NamespacedName::new("shop", "p"));
        assert!(!quotas.is_limited("shop") && quotas.used("shop").is_none());
        assert_eq!(quotas.stored(&id("a"), Some(cpu(5))), (false, Vec::new()));
    }
}
