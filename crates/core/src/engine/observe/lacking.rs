//! The lists of the hub that every deletion needs and that are missing.

use super::Dirty;
use crate::{fleet::Fleet, object::Time, plan::Key};

impl Fleet {
    /// To be called after each event of a hub watch: determines the missing lists that every deletion needs. Cost: O(kinds);
    /// O(members) when the result changes.
    pub(super) fn update_missing_lists(&mut self, now: Time, dirty: &mut Dirty) {
        let lacking = self.lacking();
        let was = self.memory.deletion_pauses.blind.take();
        if lacking.is_empty() {
            self.memory.deletion_pauses.kept_from.clear();
        }
        let is_same = was
            .as_ref()
            .map_or(lacking.is_empty(), |(_, kinds)| *kinds == lacking);
        let since = was.map_or(now, |(since, _)| since);
        self.memory.deletion_pauses.blind = (!lacking.is_empty()).then_some((since, lacking));
        if !is_same {
            dirty.extend(self.cache.members.keys().cloned().map(Key::Cluster));
        }
    }
}
