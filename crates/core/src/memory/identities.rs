//! The identities of Clusters: the physical cluster that each of them stands for.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    cache::Member,
    object::{Str, Time},
};

/// The Clusters of each id, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Identities {
    by_id: BTreeMap<Str, BTreeSet<(Time, Str)>>,
    held: BTreeMap<Str, (Str, Time)>,
}

impl Identities {
    /// The oldest Cluster with this id: by creation, then by name. Cost: O(log Clusters).
    pub(crate) fn oldest(&self, id: &str) -> Option<&Str> {
        self.by_id.get(id)?.first().map(|(_, name)| name)
    }

    /// Notes the physical cluster of a Cluster. Returns the Clusters that stand, or stood, for the same one. Cost: O(their number).
    pub(crate) fn set(&mut self, name: &Str, id: Option<Str>, created: Time) -> BTreeSet<Str> {
        let now = id.map(|id| (id, created));
        let mut concerned = BTreeSet::new();
        if self.held.get(name) == now.as_ref() {
            return concerned;
        }
        if let Some((id, created)) = self.held.remove(name)
            && let Some(all) = self.by_id.get_mut(&id)
        {
            concerned.extend(all.iter().map(|(_, name)| name.clone()));
            all.remove(&(created, name.clone()));
            if all.is_empty() {
                self.by_id.remove(&id);
            }
        }
        if let Some((id, created)) = now {
            let all = self.by_id.entry(id.clone()).or_default();
            all.insert((created, name.clone()));
            concerned.extend(all.iter().map(|(_, name)| name.clone()));
            self.held.insert(name.clone(), (id, created));
        }
        concerned
    }
}

/// The id that a Cluster stands for: the stored one, else that of the cluster that responds.
pub(crate) fn of(member: &Member) -> Option<Str> {
    match member.object.spec.id.as_str() {
        "" => member.id.clone(),
        stored => Some(stored.into()),
    }
}
