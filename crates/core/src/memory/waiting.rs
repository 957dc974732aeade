//! The keys that wait for a sync requirement: see [`crate::fleet::Fleet::has`].

use std::collections::{BTreeMap, BTreeSet};

use crate::plan::{Key, SyncRequirement};

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

    /// The requirements that keys wait for, in order.
    pub(crate) fn requirements(&self) -> impl Iterator<Item = &SyncRequirement> {
        self.keys.keys()
    }

    /// How many keys wait for a requirement.
    pub(crate) fn count(&self, requirement: &SyncRequirement) -> usize {
        self.keys.get(requirement).map_or(0, BTreeSet::len)
    }

    /// The keys that waited for a requirement; they do not any more.
    pub(crate) fn end(&mut self, proof: &SyncRequirement) -> BTreeSet<Key> {
        let keys = self.keys.remove(proof).unwrap_or_default();
        for key in &keys {
            self.proofs.remove(key);
        }
        keys
    }
}
