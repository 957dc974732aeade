//! Namespaces of the hub and of members as observed, with the drift and the termination of those of members.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    drift::{DriftBackoff, Drifting},
    member_namespace::{Seen, content::Contents},
    object::{Meta, Str, Time},
    observation::ObjectRef,
};

/// Namespaces as observed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Namespaces {
    /// The namespaces of the hub.
    pub(crate) hub: BTreeMap<Str, Meta>,
    /// The namespaces of members.
    pub(crate) members: BTreeMap<Str, BTreeMap<Str, Seen>>,
    /// Members whose namespaces are synced.
    pub(crate) listed: BTreeSet<Str>,
    /// (member, namespace) → the drift of the metadata that this hub set.
    pub(crate) drift_backoffs: BTreeMap<(Str, Str), DriftBackoff>,
    /// (member, namespace) → its state while it ends: only for namespaces that carry our record and exist on a member, but not
    /// on the hub.
    pub(crate) endings: BTreeMap<(Str, Str), Ending>,
}

impl Namespaces {
    /// A namespace of a member.
    pub(crate) fn on(&self, cluster: &str, name: &str) -> Option<&Seen> {
        self.members.get(cluster)?.get(name)
    }

    /// Notes that a namespace of a member has drifted. Cost: O(log namespaces).
    pub(crate) fn note_drift(&mut self, cluster: &Str, name: &Str, now: Time) {
        let which = (cluster.clone(), name.clone());
        let held = self.drift_backoffs.remove(&which);
        let next = DriftBackoff::differs(held, Drifting::Namespace, "metadata", now);
        self.drift_backoffs.insert(which, next);
    }

    /// The time before which drift of a namespace of a member is not corrected, if it is in the future. Cost: O(log namespaces).
    pub(crate) fn drift_corrected_at(&self, cluster: &Str, name: &Str, now: Time) -> Option<Time> {
        let held = self.drift_backoffs.get(&(cluster.clone(), name.clone()))?;
        Some(held.retry_at()).filter(|time| now < *time)
    }

    /// The state of a member's namespace that ends.
    pub(crate) fn ending(&self, cluster: &Str, name: &Str) -> Option<&Ending> {
        self.endings.get(&(cluster.clone(), name.clone()))
    }

    /// The same, to be changed; `None` where the member has no such namespace, or the hub has it. Cost: O(log namespaces).
    pub(crate) fn ending_mut(&mut self, cluster: &Str, name: &Str) -> Option<&mut Ending> {
        if self.hub.contains_key(name) {
            return None;
        }
        let uid = self.on(cluster, name)?.uid.clone();
        let which = (cluster.clone(), name.clone());
        Some(self.endings.entry(which).or_insert_with(|| Ending {
            uid,
            ..Ending::default()
        }))
    }

    pub(crate) fn looked_into(&mut self, cluster: &Str, name: &Str, contents: Contents, now: Time) {
        if let Some(ending) = self.ending_mut(cluster, name) {
            let looks = ending.observed_contents.as_ref().map_or(0, |found| found.looks) + 1;
            let at = now;
            ending.observed_contents = Some(NamespaceContents { contents, at, looks });
        }
    }

    pub(crate) fn forget_contents(&mut self, cluster: &Str, name: &Str) {
        if let Some(ending) = self.endings.get_mut(&(cluster.clone(), name.clone())) {
            ending.observed_contents = None;
        }
    }

    /// Members that have a namespace. Cost: O(members).
    pub(crate) fn having<'a>(&'a self, name: &'a Str) -> impl Iterator<Item = &'a Str> {
        let having = self
            .members
            .iter()
            .filter(move |(_, of_it)| of_it.contains_key(name));
        having.map(|(cluster, _)| cluster)
    }

    /// The names of a member's namespaces, in order.
    pub(crate) fn names_on(&self, cluster: &str) -> impl Iterator<Item = &Str> {
        self.members.get(cluster).into_iter().flat_map(BTreeMap::keys)
    }

    /// True if the namespaces of a member are synced.
    pub(crate) fn is_listed(&self, cluster: &str) -> bool {
        self.listed.contains(cluster)
    }

    /// The cached namespaces of one server: the hub, or a member.
    pub(crate) fn held(&self, member: Option<&Str>) -> Vec<ObjectRef> {
        let names: Vec<Str> = match member {
            None => self.hub.keys().cloned().collect(),
            Some(cluster) => self
                .members
                .get(cluster)
                .into_iter()
                .flat_map(BTreeMap::keys)
                .cloned()
                .collect(),
        };
        names
            .into_iter()
            .map(|name| ObjectRef::Namespace(member.cloned(), name))
            .collect()
    }

    pub(crate) fn forget_member(&mut self, cluster: &str) {
        self.members.remove(cluster);
        self.listed.remove(cluster);
        self.drift_backoffs.retain(|(member, _), _| **member != *cluster);
        self.endings.retain(|(member, _), _| **member != *cluster);
    }

    pub(crate) fn lost(&mut self, cluster: &str) {
        self.listed.remove(cluster);
    }
}

/// The content that was found in a namespace.
#[derive(Clone, Debug)]
pub(crate) struct NamespaceContents {
    pub(crate) contents: Contents,
    pub(crate) at: Time,
    /// The number of lookups.
    pub(crate) looks: u32,
}

/// The state of a member's namespace that, by its metadata, we created, while it ends there.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ending {
    /// Its uid: another namespace of the same name begins anew.
    pub(crate) uid: Str,
    /// A watch reported that it was deleted on the hub.
    pub(crate) explained: bool,
    /// It was counted by [`crate::governor`].
    pub(crate) counted: bool,
    /// The content that was found in it.
    pub(crate) observed_contents: Option<NamespaceContents>,
}
