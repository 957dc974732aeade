//! The keys that wait for a sync requirement: see [`crate::fleet::Fleet::has`].

use std::collections::{BTreeMap, BTreeSet};

use crate::plan::{Key, SyncRequirement};

/// The keys that wait for each sync requirement.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waiting {
    keys: BTreeMap<SyncRequirement, BTreeSet<Key>>,
    proofs: BTreeMap<Key, SyncRequirement>,
}

impl Waiting {
    /// Notes the requirement that a plan for a key waits for. Cost: O(log waiting keys).
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

    /// The requirements that keys wait for, in order.
    pub(crate) fn requirements(&self) -> impl Iterator<Item = &SyncRequirement> {
        self.keys.keys()
    }

    /// The number of keys that wait for a requirement.
    pub(crate) fn count(&self, requirement: &SyncRequirement) -> usize {
        self.keys.get(requirement).map_or(0, BTreeSet::len)
    }

    /// Returns the keys that waited for a requirement, and forgets them.
    pub(crate) fn end(&mut self, proof: &SyncRequirement) -> BTreeSet<Key> {
        let keys = self.keys.remove(proof).unwrap_or_default();
        for key in &keys {
            self.proofs.remove(key);
        }
        keys
    }
}
